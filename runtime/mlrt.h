// mlrt.h: what a generated training program and the runtime say to each other.
//
// The program is data and steps: tables that describe parameters, inputs, data and recipe, and functions that compute.
// The runtime (trainer.c and its neighbours) does the rest: options, data, the loop, checkpoints, logs. Every step function
// is split into a fixed number of parts, whatever the number of threads, so the bits never depend on it.
#ifndef MLRT_H
#define MLRT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

enum { MLRT_ABI = 2, MLRT_RANK = 8, MLRT_PORTS = 16, MLRT_SIZES = 16, MLRT_HYPERS = 16 };
enum { MLRT_EMA = MLRT_HYPERS - 1 };    // hyper[MLRT_EMA] of group 0: the decay of the average of the weights

// --- Running steps -------------------------------------------------------------------------------------------------------

// Where everything is while a step runs. Each worker has a copy of its own, with its own scratch.
typedef struct MlrtRun {
    char    *arena;                     // activations, gradients of activations, constants of the plan
    char    *param, *grad, *state;      // flat blocks: parameters and buffers, gradients, optimiser states
    char    *in[MLRT_PORTS];            // inputs, then targets: batch x sample
    char    *out[MLRT_PORTS];           // training: loss, auxiliary losses; evaluation: outputs, loss, metrics
    char    *scratch;                   // this worker's
    int64_t  size[MLRT_SIZES];          // named sizes; 0 is the batch: rows in this step
    uint64_t seed, step;                // random ops are functions of these; step counts updates from 1
    const double *hyper;                // numbers of the optimiser: hyper[group * MLRT_HYPERS + k], k as in MlrtRecipe.hyper
} MlrtRun;

typedef struct MlrtStep {
    void (*run)(const MlrtRun *run, int part);
    int   parts;                        // 1 …; run(run, 0) … run(run, parts - 1) in any order, at the same time
    const char *layer, *op;             // "layer1.0.conv1", "conv": for messages and profiles
    int64_t offset, count;              // its result, looked at to find a NaN: bytes into the arena, floats; count 0: none there
} MlrtStep;

typedef struct MlrtSection { const MlrtStep *step; int count; } MlrtSection;

// --- Tables ---------------------------------------------------------------------------------------------------------------

typedef struct MlrtInit { const char *name; double number[3]; int64_t fan_in, fan_out; } MlrtInit;

typedef struct MlrtParam {              // a parameter or a buffer, f32, at `offset` (in floats) of the block
    const char *path;
    int     rank;
    int64_t dim[MLRT_RANK], offset, count;
    bool    trainable, buffer, train_only;
    int     group;
    MlrtInit init;
} MlrtParam;

typedef struct MlrtPort {               // an input, target or output; per sample, that is without the batch axis
    const char *name, *type;            // "image", "f32"
    int     rank;
    int64_t dim[MLRT_RANK];
    int64_t bytes;                      // of one sample (outputs that are no batch: of all)
    bool    batched;
    int64_t below;                      // integers that are class numbers or indices: 0 … below-1, checked when loading; 0: any
    int     n_labels;  const char *const *labels;
} MlrtPort;

typedef struct MlrtMetric {             // an output of evaluation that is a metric
    const char *name;
    int   port;
    bool  sum;                          // batches are added; else averaged, weighted by rows
    int   better;                       // +1 higher, -1 lower, 0 unknown
    const char *finish;                 // "", "f1", "confusion"
} MlrtMetric;

typedef struct MlrtField {              // one input of the data mapping, read from the source, per sample
    const char *how;                    // "columns", "strings", "array"
    const char *name;                   // column or array; NULL: by number
    int64_t first, last;                // columns, both included
    const char *type;                   // as the mapping takes it: "f32", "i32", "u8", …
    int     rank;  int64_t dim[MLRT_RANK];  int64_t bytes;
    const char *codes;                  // "classes", "category" or NULL: strings become codes, fitted on the training part
    int64_t n_codes;
    int     port;                       // the port whose labels the codes are, or -1
    bool    target_only;                // no input needs it: it may be missing from a file of rows to predict
} MlrtField;

typedef struct MlrtSource {
    const char *kind;                   // csv, npy, idx, text, stream
    int n_args;  const char *const *arg, *const *text;
    int64_t window, stride;             // a sample is so many rows of it, the next begins so many later; 0: it is one row
} MlrtSource;
typedef struct MlrtSplit { const char *part; double share; const MlrtSource *source; } MlrtSplit;  // source: share is 0

typedef struct MlrtDuration { double amount; enum { MLRT_NONE, MLRT_EPOCHS, MLRT_STEPS, MLRT_SECONDS, MLRT_SHARE } unit; } MlrtDuration;

typedef struct MlrtSchedule {           // one link of a chain a then b then c
    const char *name;                   // row of recipe.def
    MlrtDuration length;                // MLRT_NONE: the rest
    double arg[4];                      // as in the row
    bool   share[4];                    // the argument is a share of the learning rate (10%), not a value
    int    n_at;  const MlrtDuration *at;               // moments, from the begin of the link
    const char *by;  int better;        // a metric or "loss"; +1 higher, -1 lower
} MlrtSchedule;

typedef struct MlrtOptimizer { const char *name; int n_hyper; const char *const *hyper; } MlrtOptimizer;

typedef struct MlrtRecipe {
    int64_t batch;                      // rows a step; the memory is planned for it
    double  epochs;  int64_t steps;     // one is 0
    const char *optimizer;
    int     n_hyper;  const char *const *hyper;         // "lr", "beta1", …; lr is always hyper[0]
    int     n_groups; const double *group;              // group g: group[g * MLRT_HYPERS + k]
    const MlrtOptimizer *own;           // of each group, name NULL: as group 0; NULL: all are
    double  ema;                        // decay of the average of the weights, the state "average"; 0: none
    int     n_schedule; const MlrtSchedule *schedule;
    int     clip;  double clip_at;                      // 0 none, 1 by norm, 2 by value
    const char *keep_by;  int keep_better;  int keep_last;      // "loss" or a metric; NULL: loss on valid, else on train
    MlrtDuration stop_after;  const char *stop_by;  int stop_better;
    MlrtDuration evaluate, save;
    bool    shuffle, drop_last;
    uint64_t seed;
    const MlrtSource *source;           // NULL: the net takes its data from nowhere but its own draws
    int     n_splits;  const MlrtSplit *split;
    const char *stratified_by;          // target, or NULL
    const char *sampler, *sampler_by;   // "balanced" or "weighted", by this input or target; NULL: each sample once
} MlrtRecipe;

typedef struct MlrtModel {
    int         abi;                    // MLRT_ABI
    const char *name, *path, *text;     // "digits", "digits.net", the whole source
    const char *version, *fingerprint;  // of mlc; of parameters and structure: what a checkpoint must match
    const char *settings;               // "classes = 10 (digits.net)\n…": values fixed when compiling, with their origin
    const char *summary;                // "59,210 parameters, 1.3 M operations a sample": one line
    int64_t param_count, trainable_count;               // floats in the block; the trainable ones come first
    int     n_params;  const MlrtParam *param;
    int     n_states;  const char *const *state;        // "m", "v": the state block holds n_states x trainable_count floats
    int     n_inputs, n_targets;  const MlrtPort *input;        // inputs, then targets
    int     n_train_outputs, n_outputs;
    const MlrtPort *train_output;       // loss first
    const MlrtPort *output;             // of evaluation: the n_results outputs of the net, then the loss, then metrics
    int     n_results;
    int     n_metrics;  const MlrtMetric *metric;
    int     n_fields;  const MlrtField *field;
    // Turns the fields of one sample into its inputs and targets. target_too: false when there is nothing to read them from
    // (prediction): then only inputs are made. NULL where there is no source.
    void  (*map_sample)(const void *const *field, void *const *port, bool target_too);
    size_t  arena_bytes, scratch_bytes; // of training and evaluation together; of one worker
    MlrtSection train, update, eval;    // train: forward and backward; update: buffers, then the optimiser
    const MlrtRecipe *recipe;
} MlrtModel;

// The whole program: parses options, trains, evaluates or predicts; returns the exit code (0, 1, 2, 3, 4, 5).
int mlrt_main(const MlrtModel *model, int argc, char **argv);

#endif
