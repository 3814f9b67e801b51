// init.h: initial values of parameters and buffers.
#ifndef MLRT_INIT_H
#define MLRT_INIT_H

#include "mlrt.h"

// Fills the block of all parameters and buffers (model->param_count floats). The values of a parameter are a function of the
// seed and its path. An initialiser that is not known is MLRT_INTERNAL.
MlrtStatus mlrt_init_params(const MlrtModel *model, uint64_t seed, float *block, MlrtError *error);

#endif
