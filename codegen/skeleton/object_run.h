// Where everything is while a step runs, and the checks of what the caller gave.
#ifndef MLC_OBJECT_RUN_H
#define MLC_OBJECT_RUN_H

#include <stddef.h>
#include <stdint.h>

typedef struct Run {
    char       *arena, *scratch;        // the caller's arena: activations, then the work area
    const char *param;                  // weights and buffers
    const char *in[64];                 // inputs and outputs: the caller's memory
    char       *out[64];
    int64_t     size[16];               // named sizes; 0 is the batch
} Run;

// A pointer that is given and stands where elements of so many bytes may.
static inline int is_aligned(const void *at, size_t bytes) { return at != NULL && (uintptr_t)at % bytes == 0; }

// Whether all `count` indices are in 0 … below - 1.
static inline __attribute__((unused)) int indices_inside_i32(const int32_t *at, int64_t count, int64_t below)
{
    int outside = 0;
    for (int64_t i = 0; i < count; i++)
        outside |= at[i] < 0 || at[i] >= below;
    return !outside;
}

static inline __attribute__((unused)) int indices_inside_i64(const int64_t *at, int64_t count, int64_t below)
{
    int outside = 0;
    for (int64_t i = 0; i < count; i++)
        outside |= at[i] < 0 || at[i] >= below;
    return !outside;
}

static inline __attribute__((unused)) int indices_inside_u8(const uint8_t *at, int64_t count, int64_t below)
{
    int outside = 0;
    for (int64_t i = 0; i < count; i++)
        outside |= at[i] >= below;
    return !outside;
}

#endif
