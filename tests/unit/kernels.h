// What the kernel tests share: counted checks, seeded random floats, and arrays of exactly the size asked for, so that
// the address sanitizer sees every read and write beyond an end.
#ifndef TESTS_KERNELS_H
#define TESTS_KERNELS_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int passed, failed;

// Counts one check; the first failures of a program are shown.
static int check(int ok, const char *what)
{
    if (ok)
        passed++;
    else if (failed++ < 20)
        printf("failed: %s\n", what);
    return ok;
}

static int check_summary(void)
{
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}

static uint64_t random_state = 0x9e3779b97f4a7c15u;

static __attribute__((unused)) uint32_t random_bits(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}

static __attribute__((unused)) int random_below(int n) { return (int)(random_bits() % (uint32_t)n); }

static void *take(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (!p)
        abort();
    return p;
}

static __attribute__((unused)) double *take_doubles(int64_t n)
{
    double *x = take((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = 0;
    return x;
}

// n floats in [-1, 1).
static __attribute__((unused)) float *take_random(int64_t n)
{
    float *x = take((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(int32_t)random_bits() * 0x1p-31f;
    return x;
}

// n floats that hold a value no kernel computes, so that what is not written shows.
static __attribute__((unused)) float *take_unset(int64_t n)
{
    float *x = take((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = -12345.0f;
    return x;
}

static __attribute__((unused)) float *take_copy(const float *from, int64_t n)
{
    float *x = take((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = from[i];
    return x;
}

static __attribute__((unused)) int same_bits(const float *a, const float *b, int64_t n)
{
    return n == 0 || memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

// A sum of `terms` products, rounded at each step (twice without fused multiply-add), is off by at most terms + 1
// units of the sum of their absolute values; 2^-23 allows for the second rounding.
static __attribute__((unused)) int close_sum(float got, double want, double magnitude, int64_t terms)
{
    return fabs(got - want) <= (double)(terms + 1) * magnitude * 0x1p-23 + 1e-37;
}

// The order in which the parts of a kernel run must not matter: part `step` of a fixed shuffle.
static __attribute__((unused)) int part_at(int step, int parts) { return parts == 1 ? 0 : parts - 1 - step; }

#endif
