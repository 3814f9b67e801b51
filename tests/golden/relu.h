// relu: inference, made from relu.net by mlc 0.1.0.
//
//   weights      0 bytes, in the object
//   arena        64 bytes, given by the caller for each thread that runs the model
//   batch        up to 1
//
// Threads: nothing here is shared or kept between calls. Any number of threads may call relu_run at the same time,
// each with an arena and outputs of its own. It allocates nothing, calls only libm, and leaves the
// floating-point mode as it was. The same inputs give the same bits, whatever the batch they come in.
//
// Example:
//
//   #include "relu.h"
//   #include <stdio.h>
//
//   int main(void)
//   {
//       static _Alignas(64) char arena[64];
//       relu_io io = {0};
//       static float x[6];
//       io.x = x;
//       static float y[6];
//       io.y = y;
//       relu_status status = relu_run(&io, 1, arena, sizeof arena);
//       puts(relu_status_text(status));
//       return status != relu_OK;
//   }
#ifndef RELU_MODEL_H
#define RELU_MODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { relu_ABI = 1, relu_MAX_BATCH = 1 };

typedef enum relu_status {
    relu_OK,              // done
    relu_NULL_POINTER,    // a pointer is NULL
    relu_BAD_BATCH,       // the batch is below 1 or above the largest that the memory is planned for
    relu_BAD_SIZE,        // a named size is below 1 or above its bound
    relu_BAD_ALIGNMENT,   // a pointer is not aligned as its elements are, or the arena not to 64
    relu_SMALL_ARENA,     // the arena is smaller than the model needs
    relu_BAD_INDEX        // an input that holds indices has one out of range
} relu_status;

// What a call reads and writes. Arrays are row-major without gaps. Outputs overlap neither inputs nor each other.
typedef struct relu_io {
    const float *x;             // input (batch, 6), aligned to 4
    float *y;                   // output (batch, 6), aligned to 4
} relu_io;

typedef struct relu_tensor {
    char    name[8], type[8];         // type: "f32", "i32", ...
    int32_t rank, labels;       // how many labels its last axis has; 0: none
    int64_t dim[8];             // -1: the batch, or a named size
} relu_tensor;

// Names and shapes, in the order of the net.
typedef struct relu_description {
    char    name[5], version[16];
    int64_t weight_bytes, max_batch;
    int32_t inputs, outputs;
    relu_tensor input[1], output[1];
} relu_description;

extern const relu_description relu_info;

// Bytes of arena that a call with this batch needs; 0: no such batch. Any memory that is aligned to 64 will do.
size_t relu_arena_bytes(int64_t batch);

// Computes the outputs of `batch` samples. What is wrong with the arguments is found before anything is written.
relu_status relu_run(const relu_io *io, int64_t batch, void *arena, size_t arena_bytes);

// One line for each status. Label i of output `output`, by their order; NULL: there is none.
const char *relu_status_text(relu_status status);
const char *relu_label(int output, int i);

#ifdef __cplusplus
}
#endif

#endif
