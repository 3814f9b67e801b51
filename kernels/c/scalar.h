// The scalar primitives that are neither a C operator nor one of the elementary functions of math.h.
//
// A name without an ending works on float; _f64, _i32, … on the other types. Integers wrap around, as two's complement
// does, and a division by zero gives 0: no operand is undefined. Minimum and maximum pass a NaN on. Floor division and
// its remainder are Python's: the remainder has the sign of the divisor. f16 and bf16 are kept as 16 bits and computed
// in float.
#ifndef MLK_SCALAR_H
#define MLK_SCALAR_H

#include <math.h>

#include "vector.h"

// Whether index i is one of 0 … n-1.
MLK_LEAF int mlk_in_range(int64_t i, int64_t n) { return (uint64_t)i < (uint64_t)n; }

MLK_LEAF float mlk_max2(float a, float b) { return ((a > b) | (a != a)) ? a : b; }
MLK_LEAF float mlk_min2(float a, float b) { return ((a < b) | (a != a)) ? a : b; }
MLK_LEAF float mlk_floordiv(float a, float b) { return floorf(a / b); }

MLK_LEAF float mlk_mod(float a, float b)
{
    float rest = fmodf(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

MLK_LEAF double mlk_abs_f64(double a) { return fabs(a); }
MLK_LEAF double mlk_max2_f64(double a, double b) { return ((a > b) | (a != a)) ? a : b; }
MLK_LEAF double mlk_min2_f64(double a, double b) { return ((a < b) | (a != a)) ? a : b; }
MLK_LEAF double mlk_floordiv_f64(double a, double b) { return floor(a / b); }

MLK_LEAF double mlk_mod_f64(double a, double b)
{
    double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

MLK_LEAF double mlk_exp_f64(double a) { return exp(a); }
MLK_LEAF double mlk_expm1_f64(double a) { return expm1(a); }
MLK_LEAF double mlk_log_f64(double a) { return log(a); }
MLK_LEAF double mlk_log1p_f64(double a) { return log1p(a); }
MLK_LEAF double mlk_sin_f64(double a) { return sin(a); }
MLK_LEAF double mlk_cos_f64(double a) { return cos(a); }
MLK_LEAF double mlk_tanh_f64(double a) { return tanh(a); }
MLK_LEAF double mlk_sigmoid_f64(double a) { return a < 0 ? 1 - 1 / (1 + exp(a)) : 1 / (1 + exp(-a)); }
MLK_LEAF double mlk_erf_f64(double a) { return erf(a); }
MLK_LEAF double mlk_pow_f64(double a, double b) { return pow(a, b); }

// Integers of type T, computed in the unsigned type U, which is as wide or wider and no narrower than int.
#define MLK_INTEGER(t, T, U)                                                                                                \
    MLK_LEAF T mlk_add_##t(T a, T b) { return (T)((U)a + (U)b); }                                                           \
    MLK_LEAF T mlk_sub_##t(T a, T b) { return (T)((U)a - (U)b); }                                                           \
    MLK_LEAF T mlk_mul_##t(T a, T b) { return (T)((U)a * (U)b); }                                                           \
    MLK_LEAF T mlk_neg_##t(T a) { return (T)(0 - (U)a); }                                                                   \
    MLK_LEAF T mlk_abs_##t(T a) { return a < 0 ? mlk_neg_##t(a) : a; }                                                      \
    MLK_LEAF T mlk_min2_##t(T a, T b) { return a < b ? a : b; }                                                             \
    MLK_LEAF T mlk_max2_##t(T a, T b) { return a > b ? a : b; }                                                             \
    MLK_LEAF T mlk_div_##t(T a, T b) { return b == 0 ? 0 : b == -1 ? mlk_neg_##t(a) : (T)(a / b); }                      \
    MLK_LEAF T mlk_mod_##t(T a, T b)                                                                                        \
    {                                                                                                                       \
        T rest = b == 0 || b == -1 ? 0 : (T)(a % b);                                                                     \
        return rest != 0 && (rest < 0) != (b < 0) ? (T)(rest + b) : rest;                                                   \
    }                                                                                                                       \
    MLK_LEAF T mlk_floordiv_##t(T a, T b)                                                                                   \
    {                                                                                                                       \
        return b == 0 || b == -1 ? mlk_div_##t(a, b) : (T)(a / b - (a % b != 0 && (a < 0) != (b < 0)));                  \
    }

// The same for unsigned T, where nothing is below zero.
#define MLK_NATURAL(t, T, U)                                                                                                \
    MLK_LEAF T mlk_add_##t(T a, T b) { return (T)((U)a + (U)b); }                                                           \
    MLK_LEAF T mlk_sub_##t(T a, T b) { return (T)((U)a - (U)b); }                                                           \
    MLK_LEAF T mlk_mul_##t(T a, T b) { return (T)((U)a * (U)b); }                                                           \
    MLK_LEAF T mlk_neg_##t(T a) { return (T)(0 - (U)a); }                                                                   \
    MLK_LEAF T mlk_abs_##t(T a) { return a; }                                                                               \
    MLK_LEAF T mlk_min2_##t(T a, T b) { return a < b ? a : b; }                                                             \
    MLK_LEAF T mlk_max2_##t(T a, T b) { return a > b ? a : b; }                                                             \
    MLK_LEAF T mlk_div_##t(T a, T b) { return b == 0 ? 0 : (T)(a / b); }                                                    \
    MLK_LEAF T mlk_mod_##t(T a, T b) { return b == 0 ? 0 : (T)(a % b); }                                                    \
    MLK_LEAF T mlk_floordiv_##t(T a, T b) { return b == 0 ? 0 : (T)(a / b); }

// The whole part of x, the nearest value that T has where it is outside, 0 for NaN. `most` is the largest value of T, and
// `edge`, one more, is a double.
#define MLK_WHOLE(t, T, least, most, edge)                                                                                  \
    MLK_LEAF T mlk_whole_##t(double x) { return x >= (edge) ? (most) : x > (double)(least) ? (T)x : x != x ? 0 : (least); }

MLK_INTEGER(i8, int8_t, uint32_t)
MLK_INTEGER(i16, int16_t, uint32_t)
MLK_INTEGER(i32, int32_t, uint32_t)
MLK_INTEGER(i64, int64_t, uint64_t)
MLK_NATURAL(u8, uint8_t, uint32_t)
MLK_NATURAL(u16, uint16_t, uint32_t)
MLK_NATURAL(u32, uint32_t, uint32_t)
MLK_NATURAL(u64, uint64_t, uint64_t)
MLK_NATURAL(bool, uint8_t, uint32_t)

MLK_WHOLE(i8, int8_t, INT8_MIN, INT8_MAX, 128.0)
MLK_WHOLE(u8, uint8_t, 0, UINT8_MAX, 256.0)
MLK_WHOLE(i16, int16_t, INT16_MIN, INT16_MAX, 32768.0)
MLK_WHOLE(u16, uint16_t, 0, UINT16_MAX, 65536.0)
MLK_WHOLE(u32, uint32_t, 0, UINT32_MAX, 4294967296.0)
MLK_WHOLE(u64, uint64_t, 0, UINT64_MAX, 18446744073709551616.0)
MLK_WHOLE(i32, int32_t, INT32_MIN, INT32_MAX, 2147483648.0)
MLK_WHOLE(i64, int64_t, INT64_MIN, INT64_MAX, 9223372036854775808.0)

// bfloat16 is the upper half of a float.
MLK_LEAF float mlk_load_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

// Rounded to nearest, ties to even. A NaN stays one.
MLK_LEAF uint16_t mlk_store_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    return (uint16_t)(x != x ? bits >> 16 | 0x40u : rounded);
}

// IEEE half precision: 5 bits of exponent, 10 of fraction. The multiplication moves the exponent, also of subnormals.
MLK_LEAF float mlk_load_f16(uint16_t bits)
{
    uint32_t wide = (uint32_t)(bits & 0x7fffu) << 13, sign = (uint32_t)(bits & 0x8000u) << 16, power = 0x77800000u;
    float x, scale;
    memcpy(&x, &wide, sizeof x);
    memcpy(&scale, &power, sizeof scale);  // 2^112
    x *= scale;
    memcpy(&wide, &x, sizeof wide);
    wide |= (bits & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0;
    wide |= sign;
    memcpy(&x, &wide, sizeof x);
    return x;
}

// Rounded to nearest, ties to even; 65520 and above become infinite, a NaN stays one.
MLK_LEAF uint16_t mlk_store_f16(float x)
{
    uint32_t bits, half;
    memcpy(&bits, &x, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        half = 0x7e00u;
    else if (magnitude >= 0x477ff000u)
        half = 0x7c00u;
    else if (magnitude >= 0x38800000u)
        half = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1)) >> 13;
    else {  // subnormal: adding 1/2 leaves what is kept in the low bits
        float small;
        memcpy(&small, &magnitude, sizeof small);
        small += 0.5f;
        memcpy(&half, &small, sizeof half);
        half -= 0x3f000000u;
    }
    return (uint16_t)(sign | half);
}

#endif
