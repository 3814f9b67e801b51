// split.h: which samples train, validate and test.
#ifndef MLRT_SPLIT_H
#define MLRT_SPLIT_H

#include "dataset.h"

// Divides the samples 0 … rows-1 by the shares of the recipe; what is not given away is `train`. `group`: the class of each
// sample, so that every part has its share of each; NULL: none. The parts' row lists are allocated.
MlrtStatus mlrt_split_by_share(MlrtPart part[MLRT_PARTS], const MlrtRecipe *recipe, int64_t rows, const int64_t *group,
                               MlrtError *error);

// MLRT_TRAIN … for the name of a part, -1 if it is none.
int mlrt_part_find(const char *name);

#endif
