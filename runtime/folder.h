// folder.h: the folder of a run: configuration, logs, weights, report.
#ifndef MLRT_FOLDER_H
#define MLRT_FOLDER_H

#include "checkpoint.h"

typedef struct MlrtFolder {
    char    path[1024];                 // "runs/digits-3"
    MlrtLog log, metrics, trace;        // log.jsonl, metrics.csv, and what --log asked for (descriptor -1: nothing)
} MlrtFolder;

typedef struct MlrtPath { char text[1200]; } MlrtPath;
MlrtPath mlrt_folder_file(const MlrtFolder *folder, const char *name);      // "runs/digits-3/weights/last.safetensors"

// Makes a new folder: `path`, or if NULL the next free runs/NET-N, and points runs/latest to it. A folder that holds a run
// already is refused.
MlrtStatus mlrt_folder_make(MlrtFolder *folder, const MlrtModel *model, const char *path, MlrtError *error);

// Takes the folder of a run that is there: `path`, or if NULL runs/latest. Removes what killed writers left.
MlrtStatus mlrt_folder_find(MlrtFolder *folder, const char *path, MlrtError *error);

// config.yaml, model.net, command.txt.
MlrtStatus mlrt_folder_describe(const MlrtFolder *folder, const MlrtSettings *settings, int threads, int argc, char **argv,
                                MlrtError *error);

// split.csv: which part each sample is in. Samples are numbered from 0 in the order of the data, a header not counted.
MlrtStatus mlrt_folder_split(const MlrtFolder *folder, const MlrtDataset *data, MlrtError *error);

// Opens the logs and keeps their lines up to `step`: what an earlier session wrote after its last checkpoint is done again.
// *seconds: the time of training that these lines speak of. `trace`: the file of --log, or NULL.
MlrtStatus mlrt_folder_open_logs(MlrtFolder *folder, const MlrtModel *model, int64_t step, const char *trace, double *seconds,
                                 MlrtError *error);
void mlrt_folder_close(MlrtFolder *folder);

// Keeps the `count` newest weights/step-N.safetensors.
void mlrt_folder_thin(const MlrtFolder *folder, int count);

#endif
