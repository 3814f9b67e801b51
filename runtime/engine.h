// engine.h: the memory of a model and its steps: train, update, evaluate.
#ifndef MLRT_ENGINE_H
#define MLRT_ENGINE_H

#include "dataset.h"

typedef struct MlrtEngine {
    const MlrtModel  *model;
    MlrtPool         *pool;
    MlrtRun          *worker;           // one for each thread; [0] is the pattern of all
    char             *block;            // the one allocation that everything below lies in
    size_t            bytes;
    float            *param, *grad, *state;
    float            *mean;             // parameters with the average of the weights in their place, if the recipe has one
    const float      *shown;            // what is evaluated and saved as weights: param or mean
    char             *in[MLRT_PORTS];
    char             *train_out[MLRT_PORTS], *eval_out[MLRT_PORTS];
    float            *kept;             // what the buffers were before an update
    double           *partial;          // of the sum of squares, one for each chunk
    double           *hyper;            // groups x MLRT_HYPERS, as this step uses them
    double           *total;            // of an evaluation: sums of every output that is added up
} MlrtEngine;

// Takes all memory at once: nothing is allocated afterwards. Close after failure as well.
MlrtStatus mlrt_engine_open(MlrtEngine *engine, const MlrtModel *model, MlrtPool *pool, MlrtError *error);
void mlrt_engine_close(MlrtEngine *engine);

// Copies samples row[0 … rows-1] into the input ports.
void mlrt_engine_gather(MlrtEngine *engine, const MlrtDataset *data, const int64_t *row, int64_t rows);

// Forward and backward for the batch gathered last. Returns the loss; the gradients stay in engine->grad.
double mlrt_engine_train(MlrtEngine *engine, int64_t rows, uint64_t seed, uint64_t step);

// Clips (recipe->clip) and returns the norm of the gradients before; not finite if one of them is not.
double mlrt_engine_clip(MlrtEngine *engine, const MlrtRecipe *recipe);

// What evaluation and weights files take from now on: the average of the weights, where there is one, or the weights.
void mlrt_engine_show(MlrtEngine *engine, bool average);

// One update with the numbers of the recipe and the learning rates times `factor`. False, and nothing is changed, if a buffer
// would get a value that is not finite: batch norm keeps statistics that neither loss nor gradients may show.
bool mlrt_engine_update(MlrtEngine *engine, const MlrtRecipe *recipe, double factor);

// Outputs, loss and metrics for the batch gathered last, into engine->eval_out.
void mlrt_engine_eval(MlrtEngine *engine, int64_t rows, uint64_t seed);

// Looks for the first step of training whose result is not finite, by running them again one by one. NULL: none.
const MlrtStep *mlrt_engine_find_nonfinite(MlrtEngine *engine);

bool mlrt_all_finite(const float *values, int64_t count);

// The evaluation of one part: mean loss, and every metric finished.
typedef struct MlrtScores {
    int64_t rows;
    double  loss;
    double  metric[MLRT_PORTS];         // one for each model->metric; NaN for a confusion matrix, which is in `total`
} MlrtScores;
void mlrt_engine_score(MlrtEngine *engine, const MlrtDataset *data, const MlrtPart *part, int64_t batch, uint64_t seed,
                       MlrtScores *scores);

// Where the sums of a metric are in engine->total after a score, and how many.
const double *mlrt_engine_total(const MlrtEngine *engine, int metric, int64_t *count);

#endif
