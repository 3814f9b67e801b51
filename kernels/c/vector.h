// The vector that every kernel computes with: as wide as the target's registers.
//
// Compiler vector types give one source for AVX-512, AVX2, SSE2 and NEON. What they cannot say is written here once:
// the fused multiply-add (contraction is off, so that bits do not hang on the compiler's mood) and the ends of rows,
// where only some lanes exist. A target without fused multiply-add rounds twice; its results differ in the last bit.
#ifndef MLK_VECTOR_H
#define MLK_VECTOR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__aarch64__)
#include <arm_neon.h>
#endif

#define MLK_FN   static __attribute__((unused))
#define MLK_LEAF static inline __attribute__((always_inline, unused))  // takes its sizes as constants
#define MLK_TILE static __attribute__((noinline, unused))              // one register tile: compiled once, called often

// Loops over a tile's rows and vectors unroll once the sizes are constants. clang's plain "unroll" would act before that,
// on the body not yet inlined, and leave the sums in memory.
#if defined(__clang__)
#define MLK_UNROLL _Pragma("clang loop unroll(full)")
#else
#define MLK_UNROLL _Pragma("GCC unroll 16")
#endif

#define MLK_SIMD _Pragma("omp simd")  // a loop of independent steps; compile with -fopenmp-simd

// Floats in a vector, and how many rows of two vectors stay in registers as accumulators.
#if defined(__AVX512F__)
#define MLK_W    16
#define MLK_ROWS 8
#elif defined(__AVX2__) && defined(__FMA__)
#define MLK_W    8
#define MLK_ROWS 6
#elif defined(__aarch64__)
#define MLK_W    4
#define MLK_ROWS 8
#else
#define MLK_W    4
#define MLK_ROWS 4
#endif

typedef float mlk_v __attribute__((vector_size(4 * MLK_W)));
typedef float mlk_v_anywhere __attribute__((vector_size(4 * MLK_W), aligned(4), may_alias));

MLK_LEAF mlk_v mlk_load(const float *from) { return *(const mlk_v_anywhere *)from; }
MLK_LEAF void mlk_store(float *to, mlk_v v) { *(mlk_v_anywhere *)to = v; }
MLK_LEAF mlk_v mlk_all(float x) { return x - (mlk_v){0}; }  // x - 0 keeps a negative zero, 0 + x would not

// a * b + c, rounded once where the target can.
MLK_LEAF mlk_v mlk_fma(mlk_v a, mlk_v b, mlk_v c)
{
#if defined(__AVX512F__)
    return (mlk_v)__builtin_ia32_vfmaddps512_mask(a, b, c, (unsigned short)0xffff, 4);
#elif defined(__AVX2__) && defined(__FMA__)
    return (mlk_v)__builtin_ia32_vfmaddps256(a, b, c);
#elif defined(__aarch64__)
    return (mlk_v)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}

// The same for one float: the same bits as a lane of mlk_fma.
MLK_LEAF float mlk_fma1(float a, float b, float c)
{
#if defined(__FMA__) || defined(__aarch64__)
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

#if defined(__AVX2__) && defined(__FMA__) && !defined(__AVX512F__)
typedef int32_t mlk_lanes __attribute__((vector_size(32)));
MLK_LEAF mlk_lanes mlk_first_lanes(int64_t count)
{
    return (mlk_lanes){0, 1, 2, 3, 4, 5, 6, 7} < (int32_t)count - (mlk_lanes){0};
}
#endif

// The first `count` lanes (0..MLK_W) from memory, the others 0. Nothing beyond them is read.
MLK_LEAF mlk_v mlk_load_first(const float *from, int64_t count)
{
#if defined(__AVX512F__)
    return (mlk_v)__builtin_ia32_loadups512_mask(from, (mlk_v){0}, (unsigned short)((1u << count) - 1));
#elif defined(__AVX2__) && defined(__FMA__)
    return (mlk_v)__builtin_ia32_maskloadps256((const mlk_v *)(const void *)from, mlk_first_lanes(count));
#else
    mlk_v v = {0};
    for (int64_t i = 0; i < count; i++)
        v[i] = from[i];
    return v;
#endif
}

// Stores the first `count` lanes (0..MLK_W). Nothing beyond them is written.
MLK_LEAF void mlk_store_first(float *to, mlk_v v, int64_t count)
{
#if defined(__AVX512F__)
    __builtin_ia32_storeups512_mask(to, v, (unsigned short)((1u << count) - 1));
#elif defined(__AVX2__) && defined(__FMA__)
    __builtin_ia32_maskstoreps256((mlk_v *)(void *)to, mlk_first_lanes(count), v);
#else
    for (int64_t i = 0; i < count; i++)
        to[i] = v[i];
#endif
}

// A choice of neighbouring lanes for stores.
#if defined(__AVX512F__)
typedef unsigned short mlk_mask;
#elif defined(__AVX2__) && defined(__FMA__)
typedef mlk_lanes mlk_mask;
#else
typedef struct mlk_mask {
    int32_t first, end;
} mlk_mask;
#endif

MLK_LEAF mlk_mask mlk_mask_lanes(int64_t first, int64_t count)
{
#if defined(__AVX512F__)
    return (mlk_mask)(((1u << count) - 1) << first);
#elif defined(__AVX2__) && defined(__FMA__)
    return mlk_first_lanes(first + count) & ~mlk_first_lanes(first);
#else
    return (mlk_mask){(int32_t)first, (int32_t)(first + count)};
#endif
}

// Stores lane i of v at to[i] for the lanes of the mask; `to` may point before an array whose part these lanes are.
MLK_LEAF void mlk_store_mask(float *to, mlk_v v, mlk_mask mask)
{
#if defined(__AVX512F__)
    __builtin_ia32_storeups512_mask(to, v, mask);
#elif defined(__AVX2__) && defined(__FMA__)
    __builtin_ia32_maskstoreps256((mlk_v *)(void *)to, mask, v);
#else
    if (mask.first == 0 && mask.end == MLK_W) {
        mlk_store(to, v);
        return;
    }
    float lanes[MLK_W];
    mlk_store(lanes, v);
    for (int32_t i = mask.first; i < mask.end; i++)
        to[i] = lanes[i];
#endif
}

// n floats, short rows in mind: for those a call of memcpy takes longer than the copy.
MLK_LEAF void mlk_copy(float *to, const float *from, int64_t n)
{
    for (; n >= MLK_W; n -= MLK_W, to += MLK_W, from += MLK_W)
        mlk_store(to, mlk_load(from));
    if (n > 0)
        mlk_store_first(to, mlk_load_first(from, n), n);
}

// The sum of a vector's lanes: upper half onto lower half, down to one.
MLK_LEAF float mlk_sum_lanes(mlk_v v)
{
    float lanes[MLK_W];
    mlk_store(lanes, v);
    for (int half = MLK_W / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    return lanes[0];
}

// Where share `part` of `parts` begins when `count` things are dealt out evenly.
MLK_LEAF int64_t mlk_share(int64_t count, int part, int parts)
{
    return count / parts * part + count % parts * part / parts;
}

MLK_LEAF int64_t mlk_min(int64_t a, int64_t b) { return a < b ? a : b; }
MLK_LEAF int64_t mlk_max_of(int64_t a, int64_t b) { return a > b ? a : b; }

#endif
