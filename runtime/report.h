// report.h: what is left of a run for people: the table on standard output, report.html, the model card.
#ifndef MLRT_REPORT_H
#define MLRT_REPORT_H

#include "folder.h"
#include "metrics.h"

typedef struct MlrtResult {             // of the parts evaluated; parts without samples have rows 0
    MlrtScores  part[MLRT_PARTS];
    int         confusion_part;         // whose sums are still in the engine, -1: none
} MlrtResult;

// Loss and metrics of each part, and the confusion matrices of the last part where they have at most 20 classes.
void mlrt_report_table(FILE *out, const MlrtEngine *engine, const MlrtDataset *data, const MlrtResult *result);

// report.html from metrics.csv; `result` NULL while the run goes on (then the confusion matrix is that of the last evaluation).
MlrtStatus mlrt_report_html(const MlrtFolder *folder, const MlrtEngine *engine, const MlrtDataset *data,
                            const MlrtSettings *settings, const MlrtResult *result, MlrtError *error);

// README.md: the model card.
MlrtStatus mlrt_report_card(const MlrtFolder *folder, const MlrtEngine *engine, const MlrtDataset *data,
                            const MlrtSettings *settings, const MlrtState *state, double seconds,
                            const MlrtResult *result, MlrtError *error);

#endif
