// progress.h: what a person sees while training, on standard error.
//
// In a terminal one line that is drawn anew, ten times a second at most; elsewhere whole lines without control characters,
// one every 30 seconds and one at each evaluation, so that the log of a night stays small.
#ifndef MLRT_PROGRESS_H
#define MLRT_PROGRESS_H

#include "engine.h"

typedef struct MlrtProgress {
    bool    quiet, terminal, color;
    double  begun, shown;               // seconds of the clock: start of this process, last line drawn
    double  epoch_begun;
    double  waited;                     // seconds spent on gathering batches
    int64_t first_step;                 // of this process
    int64_t epoch_first;                // step with which this process's part of the epoch began
    bool    drawn;                      // a line stands there that is not ended
    const char *unit;                   // "img/s", "rows/s"
} MlrtProgress;

typedef struct MlrtMoment {             // one step, for the line
    int64_t step, all_steps, epoch_step, epoch_steps, epoch, epochs;
    double  loss, lr, norm;
    int64_t rows;                       // samples of a step
} MlrtMoment;

double mlrt_clock_now(void);            // seconds, monotonic
void mlrt_progress_begin(MlrtProgress *progress, const MlrtModel *model, bool quiet, const char *when_color, int64_t step);
void mlrt_progress_epoch(MlrtProgress *progress, int64_t step);
void mlrt_progress_step(MlrtProgress *progress, const MlrtMoment *moment);
void mlrt_progress_line(MlrtProgress *progress, const char *format, ...) __attribute__((format(printf, 2, 3)));
void mlrt_progress_end(MlrtProgress *progress);         // leaves the cursor on an empty line

// A message of this program: "digits-train: error: …", in colour where that is wanted.
void mlrt_say(const MlrtProgress *progress, const char *program, const char *kind, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

typedef struct MlrtText { char text[48]; } MlrtText;
MlrtText mlrt_text_time(double seconds);        // "0:31", "1:02:03"
MlrtText mlrt_text_count(int64_t count);        // "1,234,567"
MlrtText mlrt_text_score(double value);         // a loss or metric: "0.3412", "1.2e-05" where four digits would show nothing; "-" for NaN
MlrtText mlrt_text_bytes(double bytes);         // "14 KiB", "1.3 GiB"

#endif
