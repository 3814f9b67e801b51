// mlp: inference, made from mlp.net by mlc 0.1.0.
//
//   weights      9,640 bytes, given by the caller
//   arena        196,736 bytes, given by the caller for each thread that runs the model
//   batch        up to 1
//
// Threads: nothing here is shared or kept between calls. Any number of threads may call mlp_run at the same time,
// each with an arena and outputs of its own. It allocates nothing, calls only libm, and leaves the
// floating-point mode as it was. The same inputs give the same bits, whatever the batch they come in.
//
// Example:
//
//   #include "mlp.h"
//   #include <stdio.h>
//
//   int main(void)
//   {
//       static _Alignas(64) char arena[196736];
//       static float weights[2410];    // fill from a file
//       mlp_io io = {0};
//       io.weights = weights;
//       static float image[64];
//       io.image = image;
//       static float logits[10];
//       io.logits = logits;
//       mlp_status status = mlp_run(&io, 1, arena, sizeof arena);
//       puts(mlp_status_text(status));
//       return status != mlp_OK;
//   }
#ifndef MLP_MODEL_H
#define MLP_MODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { mlp_ABI = 1, mlp_MAX_BATCH = 1 };

typedef enum mlp_status {
    mlp_OK,              // done
    mlp_NULL_POINTER,    // a pointer is NULL
    mlp_BAD_BATCH,       // the batch is below 1 or above the largest that the memory is planned for
    mlp_BAD_SIZE,        // a named size is below 1 or above its bound
    mlp_BAD_ALIGNMENT,   // a pointer is not aligned as its elements are, or the arena not to 64
    mlp_SMALL_ARENA,     // the arena is smaller than the model needs
    mlp_BAD_INDEX        // an input that holds indices has one out of range
} mlp_status;

// What a call reads and writes. Arrays are row-major without gaps. Outputs overlap neither inputs nor each other.
typedef struct mlp_io {
    const void *weights;        // 9640 bytes, the flat block that `mlc` writes, aligned to 4
    const float *image;         // input (batch, 64), aligned to 4
    float *logits;              // output (batch, 10), aligned to 4
} mlp_io;

typedef struct mlp_tensor {
    char    name[8], type[8];         // type: "f32", "i32", ...
    int32_t rank, labels;       // how many labels its last axis has; 0: none
    int64_t dim[8];             // -1: the batch, or a named size
} mlp_tensor;

// Names and shapes, in the order of the net.
typedef struct mlp_description {
    char    name[4], version[16];
    int64_t weight_bytes, max_batch;
    int32_t inputs, outputs;
    mlp_tensor input[1], output[1];
} mlp_description;

extern const mlp_description mlp_info;

// Bytes of arena that a call with this batch needs; 0: no such batch. Any memory that is aligned to 64 will do.
size_t mlp_arena_bytes(int64_t batch);

// Computes the outputs of `batch` samples. What is wrong with the arguments is found before anything is written.
mlp_status mlp_run(const mlp_io *io, int64_t batch, void *arena, size_t arena_bytes);

// One line for each status. Label i of output `output`, by their order; NULL: there is none.
const char *mlp_status_text(mlp_status status);
const char *mlp_label(int output, int i);

// What the data has for one sample, before the net's `data` mapping.
typedef struct mlp_fields {
    const float *columns_0_to_63;       // (64)
} mlp_fields;

// The inputs of one sample: row i of the batch is at mlp_io's pointer plus i rows.
typedef struct mlp_sample {
    float *image;
} mlp_sample;

// Makes the inputs of one sample, as training does: the same steps, the same bits.
mlp_status mlp_prepare(const mlp_fields *fields, const mlp_sample *sample);

#ifdef __cplusplus
}
#endif

#endif
