// sampler.h: the samples of an epoch drawn with replacement, each as likely as its weight: so that rare classes are seen as
// often as common ones, or samples as often as the data say. An epoch has as many draws as the training part has samples.
#ifndef MLRT_SAMPLER_H
#define MLRT_SAMPLER_H

#include "dataset.h"

typedef struct MlrtSampler {
    int64_t  rows;
    double  *sum;                       // of the weights up to each sample of the training part; NULL: there is no sampler
} MlrtSampler;

// "balanced": each class, a value of the port `sampler_by`, is as likely; "weighted": that port's values are the weights.
MlrtStatus mlrt_sampler_open(MlrtSampler *sampler, const MlrtDataset *data, const MlrtRecipe *recipe, MlrtError *error);
void mlrt_sampler_close(MlrtSampler *sampler);

// Fills order[0 … rows-1] for this epoch: a function of seed and epoch alone.
void mlrt_sampler_draw(const MlrtSampler *sampler, const MlrtPart *part, uint64_t seed, int64_t epoch, int64_t *order);

#endif
