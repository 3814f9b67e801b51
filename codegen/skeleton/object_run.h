// Where everything is while a step runs, and the checks of what the caller gave.
#ifndef MLC_OBJECT_RUN_H
#define MLC_OBJECT_RUN_H

#include <stddef.h>
#include <stdint.h>

typedef struct Run {
    char       *arena, *scratch;        // the caller's arena: activations, then the work area
    char       *param;                  // weights and buffers; only read
    char       *in[64], *out[64];       // inputs, only read, and outputs: the caller's memory
    int64_t     size[16];               // named sizes; 0 is the batch
} Run;

// A pointer that is given and stands where elements of so many bytes may.
static inline int is_aligned(const void *at, size_t bytes) { return at != NULL && (uintptr_t)at % bytes == 0; }

#endif
