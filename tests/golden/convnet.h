// convnet: inference, made from convnet.net by mlc 0.1.0.
//
//   weights      8,096 bytes, given by the caller
//   arena        200,704 bytes, given by the caller for each thread that runs the model
//   batch        up to 1
//
// Threads: nothing here is shared or kept between calls. Any number of threads may call convnet_run at the same time,
// each with an arena and outputs of its own. It allocates nothing, calls only libm, and leaves the
// floating-point mode as it was. The same inputs give the same bits, whatever the batch they come in.
//
// Example:
//
//   #include "convnet.h"
//   #include <stdio.h>
//
//   int main(void)
//   {
//       static _Alignas(64) char arena[200704];
//       static float weights[2024];    // fill from a file
//       convnet_io io = {0};
//       io.weights = weights;
//       static float image[64];
//       io.image = image;
//       static float logits[10];
//       io.logits = logits;
//       convnet_status status = convnet_run(&io, 1, arena, sizeof arena);
//       puts(convnet_status_text(status));
//       return status != convnet_OK;
//   }
#ifndef CONVNET_MODEL_H
#define CONVNET_MODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { convnet_ABI = 1, convnet_MAX_BATCH = 1 };

typedef enum convnet_status {
    convnet_OK,              // done
    convnet_NULL_POINTER,    // a pointer is NULL
    convnet_BAD_BATCH,       // the batch is below 1 or above the largest that the memory is planned for
    convnet_BAD_SIZE,        // a named size is below 1 or above its bound
    convnet_BAD_ALIGNMENT,   // a pointer is not aligned as its elements are, or the arena not to 64
    convnet_SMALL_ARENA,     // the arena is smaller than the model needs
    convnet_BAD_INDEX        // an input that holds indices has one out of range
} convnet_status;

// What a call reads and writes. Arrays are row-major without gaps. Outputs overlap neither inputs nor each other.
typedef struct convnet_io {
    const void *weights;        // 8096 bytes, the flat block that `mlc` writes, aligned to 4
    const float *image;         // input (batch, 1, 8, 8), aligned to 4
    float *logits;              // output (batch, 10), aligned to 4
} convnet_io;

typedef struct convnet_tensor {
    char    name[8], type[8];         // type: "f32", "i32", ...
    int32_t rank, labels;       // how many labels its last axis has; 0: none
    int64_t dim[8];             // -1: the batch, or a named size
} convnet_tensor;

// Names and shapes, in the order of the net.
typedef struct convnet_description {
    char    name[8], version[16];
    int64_t weight_bytes, max_batch;
    int32_t inputs, outputs;
    convnet_tensor input[1], output[1];
} convnet_description;

extern const convnet_description convnet_info;

// Bytes of arena that a call with this batch needs; 0: no such batch. Any memory that is aligned to 64 will do.
size_t convnet_arena_bytes(int64_t batch);

// Computes the outputs of `batch` samples. What is wrong with the arguments is found before anything is written.
convnet_status convnet_run(const convnet_io *io, int64_t batch, void *arena, size_t arena_bytes);

// One line for each status. Label i of output `output`, by their order; NULL: there is none.
const char *convnet_status_text(convnet_status status);
const char *convnet_label(int output, int i);

#ifdef __cplusplus
}
#endif

#endif
