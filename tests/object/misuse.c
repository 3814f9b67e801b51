// misuse.c: every way to call an object wrongly has its status, and nothing is written; the floating-point mode of the caller
// makes no difference and is left as it was. Compiled with the object of bn.net, batch 4;
// GIVEN: an object whose weights come from its caller, in the file bn.weights.
#include "bn.h"

#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

enum { BATCH = 4, MARK = 0x5A };

static float image[BATCH * 64], logits[BATCH * 10 + 1], shares[BATCH * 10 + 1];
static char *arena;
static size_t room;
static int failures;

#ifdef GIVEN
static _Alignas(64) char weights[1 << 16];
#define IO {.weights = weights, .image = image, .logits = logits, .shares = shares}
#else
#define IO {.image = image, .logits = logits, .shares = shares}
#endif

static void expect(const char *what, bn_status wanted, const bn_io *io, int64_t batch, void *at, size_t bytes)
{
    memset(logits, MARK, sizeof logits);
    memset(shares, MARK, sizeof shares);
    memset(arena, MARK, room + 64);
    const bn_status status = bn_run(io, batch, at, bytes);
    int touched = 0;
    for (size_t i = 0; i < sizeof logits; i++)
        touched |= ((char *)logits)[i] != MARK || ((char *)shares)[i] != MARK;
    for (size_t i = 0; i < room + 64; i++)
        touched |= arena[i] != MARK;
    if (status != wanted || (status != bn_OK && touched)) {
        printf("%s: status %d (%s)%s\n", what, (int)status, bn_status_text(status), touched ? ", memory was written" : "");
        failures++;
    }
}

static void test_statuses(void)
{
    const bn_io io = IO;
    bn_io bad = io;
    expect("as it should be", bn_OK, &io, BATCH, arena, room);
    expect("no io", bn_NULL_POINTER, NULL, BATCH, arena, room);
    expect("no arena", bn_NULL_POINTER, &io, BATCH, NULL, room);
    bad.image = NULL;
    expect("no input", bn_NULL_POINTER, &bad, BATCH, arena, room);
    bad = io, bad.shares = NULL;
    expect("no second output", bn_NULL_POINTER, &bad, BATCH, arena, room);
    expect("no samples", bn_BAD_BATCH, &io, 0, arena, room);
    expect("below zero samples", bn_BAD_BATCH, &io, -1, arena, room);
    expect("the least number of samples", bn_BAD_BATCH, &io, INT64_MIN, arena, room);
    expect("one sample too many", bn_BAD_BATCH, &io, BATCH + 1, arena, room);
    expect("the largest number of samples", bn_BAD_BATCH, &io, INT64_MAX, arena, room);
    expect("a byte too little", bn_SMALL_ARENA, &io, BATCH, arena, room - 1);
    expect("no bytes", bn_SMALL_ARENA, &io, BATCH, arena, 0);
    expect("an arena that stands wrongly", bn_BAD_ALIGNMENT, &io, BATCH, arena + 32, room);
    bad = io, bad.logits = (float *)(void *)((char *)logits + 1);
    expect("an output that stands wrongly", bn_BAD_ALIGNMENT, &bad, BATCH, arena, room);
#ifdef GIVEN
    bad = io, bad.weights = NULL;
    expect("no weights", bn_NULL_POINTER, &bad, BATCH, arena, room);
    bad = io, bad.weights = weights + 2;
    expect("weights that stand wrongly", bn_BAD_ALIGNMENT, &bad, BATCH, arena, room);
#endif
    if (bn_arena_bytes(0) != 0 || bn_arena_bytes(BATCH + 1) != 0 || bn_arena_bytes(1) == 0 || bn_arena_bytes(1) > room)
        puts("bn_arena_bytes"), failures++;
    if (strcmp(bn_status_text(bn_OK), "done") != 0 || strcmp(bn_status_text((bn_status)99), "no such status") != 0)
        puts("bn_status_text"), failures++;
    if (strcmp(bn_label(0, 7), "seven") != 0 || bn_label(0, 10) != NULL || bn_label(0, -1) != NULL || bn_label(1, 0) != NULL)
        puts("bn_label"), failures++;
    const bn_sample sample = {.image = image};
    const bn_fields none = {.columns_0_to_63 = NULL}, some = {.columns_0_to_63 = image};
    const bn_sample nowhere = {.image = NULL};
    if (bn_prepare(NULL, &sample) != bn_NULL_POINTER || bn_prepare(&none, &sample) != bn_NULL_POINTER ||
        bn_prepare(&some, NULL) != bn_NULL_POINTER || bn_prepare(&some, &nowhere) != bn_NULL_POINTER)
        puts("bn_prepare"), failures++;
    const bn_fields aside = {.columns_0_to_63 = (const float *)(const void *)((const char *)image + 2)};
    if (bn_prepare(&aside, &sample) != bn_BAD_ALIGNMENT)
        puts("bn_prepare of fields that stand wrongly"), failures++;
}

// Rounding upwards and, where the processor can, subnormal numbers taken for zero.
static void test_mode(void)
{
    static float first[BATCH * 10], second[BATCH * 10];
    bn_io io = IO, again = IO;
    io.logits = first;
    again.logits = second;
    for (int i = 0; i < BATCH * 64; i++)
        image[i] = (float)(i * 37 % 17) / 16;
    if (bn_run(&io, BATCH, arena, room) != bn_OK)
        puts("run"), failures++;
    if (fesetround(FE_UPWARD) != 0)
        puts("fesetround"), failures++;
#if defined(__SSE__)
    _mm_setcsr(_mm_getcsr() | 0x8040);
    const unsigned before = _mm_getcsr();
#endif
    const bn_status status = bn_run(&again, BATCH, arena, room);
    if (fegetround() != FE_UPWARD)
        puts("the rounding mode was not put back"), failures++;
#if defined(__SSE__)
    if ((_mm_getcsr() & ~0x3Fu) != (before & ~0x3Fu))
        puts("the floating-point mode was not put back"), failures++;
    _mm_setcsr(0x1F80);
#endif
    fesetround(FE_TONEAREST);
    if (status != bn_OK || memcmp(first, second, sizeof first) != 0)
        puts("another floating-point mode of the caller gives other bits"), failures++;
}

int main(void)
{
#ifdef GIVEN
    FILE *file = fopen("bn.weights", "rb");
    if (file == NULL || (int64_t)fread(weights, 1, sizeof weights, file) != bn_info.weight_bytes)
        return 2;
    fclose(file);
#endif
    room = bn_arena_bytes(BATCH);
    arena = aligned_alloc(64, (room + 127) / 64 * 64);
    if (arena == NULL)
        return 2;
    test_statuses();
    test_mode();
    free(arena);
    return failures > 0;
}
