// outer_loops.c: vector loops around short inner loops, as products of small matrices print them, under the pragmas that every
// generated program begins with. gcc 12.2 without them gives wrong sums for some of these at -O1 and -O2.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../codegen/skeleton/contract.h"

typedef struct Run { char *arena; const char *in; } Run;

enum { A_AT = 60160, C = 2 };

// y[c][h][w] = sum over i of a[c][i][h] * b[i][c][w]
#define PRODUCT(T, W, I, H)                                                                                                 \
    __attribute__((noinline)) static void product_##T##_##W##_##I##_##H(const Run *run)                                     \
    {                                                                                                                       \
        const T(*restrict a)[C][I][H] = (const void *)(run->arena + A_AT);                                                  \
        const T(*restrict b)[I][C][W] = (const void *)run->in;                                                              \
        T(*restrict y)[C][H][W] = (void *)run->arena;                                                                       \
        for (int64_t c = 0; c < C; c++)                                                                                     \
            for (int64_t h = 0; h < H; h++)                                                                                 \
                _Pragma("omp simd")                                                                                         \
                for (int64_t w = 0; w < W; w++) {                                                                           \
                    T sum = 0;                                                                                              \
                    for (int64_t i = 0; i < I; i++)                                                                         \
                        sum += a[0][c][i][h] * b[0][i][c][w];                                                               \
                    y[0][c][h][w] = sum;                                                                                    \
                }                                                                                                           \
    }                                                                                                                       \
    static int wrong_##T##_##W##_##I##_##H(const Run *run)                                                                  \
    {                                                                                                                       \
        volatile T *a = (void *)(run->arena + A_AT), *b = (void *)(uintptr_t)run->in, *y = (void *)run->arena;              \
        int wrong = 0;                                                                                                      \
        for (int i = 0; i < C * I * H; i++)                                                                                 \
            a[i] = (T)(i % 13 + 1);                                                                                         \
        for (int i = 0; i < I * C * W; i++)                                                                                 \
            b[i] = (T)(i * i % 17 - 3);                                                                                     \
        product_##T##_##W##_##I##_##H(run);                                                                                 \
        for (int c = 0; c < C; c++)                                                                                         \
            for (int h = 0; h < H; h++)                                                                                     \
                for (int w = 0; w < W; w++) {                                                                               \
                    volatile T sum = 0;                                                                                     \
                    for (int i = 0; i < I; i++)                                                                             \
                        sum += a[(c * I + i) * H + h] * b[(i * C + c) * W + w];                                             \
                    wrong += sum != y[(c * H + h) * W + w];                                                                 \
                }                                                                                                           \
        if (wrong > 0)                                                                                                      \
            printf("%s, %d x %d x %d: %d of %d sums are wrong\n", #T, H, W, I, wrong, C * H * W);                           \
        return wrong;                                                                                                       \
    }

#define EACH_H(X, T, W, I) X(T, W, I, 2) X(T, W, I, 3)
#define EACH_I(X, T, W) EACH_H(X, T, W, 2) EACH_H(X, T, W, 3) EACH_H(X, T, W, 4) EACH_H(X, T, W, 5) EACH_H(X, T, W, 8)
#define EACH_W(X, T) EACH_I(X, T, 2) EACH_I(X, T, 3) EACH_I(X, T, 4) EACH_I(X, T, 8) EACH_I(X, T, 16) EACH_I(X, T, 32)
#define EACH(X) EACH_W(X, float) EACH_W(X, double)

EACH(PRODUCT)

int main(void)
{
    Run run = {aligned_alloc(64, 1 << 18), aligned_alloc(64, 1 << 18)};
    int wrong = 0, products = 0;
    if (run.arena == NULL || run.in == NULL)
        return 2;
#define COUNT(T, W, I, H) wrong += wrong_##T##_##W##_##I##_##H(&run), products++;
    EACH(COUNT)
    printf("%d products, %d wrong sums\n", products, wrong);
    return wrong != 0;
}
