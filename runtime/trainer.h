// trainer.h: one session of a training program: everything that its modes (train, evaluate, predict) share.
#ifndef MLRT_TRAINER_H
#define MLRT_TRAINER_H

#include "folder.h"
#include "progress.h"
#include "report.h"
#include "sampler.h"
#include "schedule.h"

typedef struct MlrtSession {
    const MlrtModel *model;
    int           argc;
    char        **argv;
    MlrtOptions   options;
    const char  **sets;                 // what options.sets points to
    MlrtSettings  settings;
    MlrtPool     *pool;
    MlrtDataset   data;
    MlrtEngine    engine;
    MlrtState     state;
    double        seconds;              // of training and evaluation, all sessions of this run together
    MlrtFolder    folder;
    MlrtTensors   weights;              // the file that the session begins with; texts of settings point into it
    char          weights_path[1200];
    bool          has_weights;
    MlrtCodes    *codes;                // from that file, or NULL
    MlrtProgress  progress;
    MlrtClock     clock;
    MlrtSampler   sampler;
    int64_t      *order;                // samples of the training part, as this epoch takes them
} MlrtSession;

// The modes. Each reports its progress, leaves `error` filled and returns the status where it fails.
MlrtStatus mlrt_train(MlrtSession *session, MlrtError *error);
MlrtStatus mlrt_dry_run(MlrtSession *session, MlrtError *error);
MlrtStatus mlrt_benchmark(MlrtSession *session, MlrtError *error);
MlrtStatus mlrt_evaluate(MlrtSession *session, MlrtError *error);
MlrtStatus mlrt_predict(MlrtSession *session, MlrtError *error);

// Scores every part that has samples, the last of them with its confusion matrix left in the engine.
void mlrt_score_all(MlrtSession *session, MlrtResult *result);

// Loads the parameters of a weights file into the engine and says what was done with its names.
MlrtStatus mlrt_take_weights(MlrtSession *session, const MlrtTensors *file, MlrtError *error);

#endif
