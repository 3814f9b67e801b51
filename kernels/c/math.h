// Elementary functions of a float, free of branches, so that a plain loop over them becomes vector code (omp simd).
//
// Each reduces its argument to a short interval and evaluates a polynomial there (near-minimax, coefficients rounded one
// after the other). The remark gives the largest error in units in the last place; the tests assert it against MPFR.
// NaN, infinities, signed zeros, overflow and underflow come out as the C library has them. Values are chosen by masks:
// a compiler may turn ?: into a branch, and a branch keeps a loop from becoming vector code.
#ifndef MLK_MATH_H
#define MLK_MATH_H

#include "vector.h"

#define MLK_INFINITY __builtin_inff()
#define MLK_NAN      __builtin_nanf("")

MLK_LEAF uint32_t mlk_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

MLK_LEAF float mlk_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// yes (0 or 1) ? a : b
MLK_LEAF float mlk_pick(int yes, float a, float b)
{
    uint32_t mask = 0u - (uint32_t)yes;
    return mlk_from_bits((mlk_bits(a) & mask) | (mlk_bits(b) & ~mask));
}

MLK_LEAF float mlk_abs(float x) { return mlk_from_bits(mlk_bits(x) & 0x7fffffffu); }

// |magnitude| with the sign of `sign`
MLK_LEAF float mlk_signed(float magnitude, float sign)
{
    return mlk_from_bits((mlk_bits(magnitude) & 0x7fffffffu) | (mlk_bits(sign) & 0x80000000u));
}

// x limited to low..high; NaN stays.
MLK_LEAF float mlk_clamp(float x, float low, float high)
{
    x = mlk_pick(x < low, low, x);
    return mlk_pick(x > high, high, x);
}

// 2^n for n in -126..127
MLK_LEAF float mlk_power_of_2(int32_t n) { return mlk_from_bits((uint32_t)(n + 127) << 23); }

// x = n ln 2 + r with |r| <= ln 2 / 2, for |x| < 200. Adding 1.5 * 2^23 rounds to an integer and leaves it in the low
// bits; no float is converted to int, which NaN could not be.
MLK_LEAF float mlk_exp_reduce(float x, int32_t *n)
{
    float shifted = mlk_fma1(x, 1.44269504f, 12582912.0f), count = shifted - 12582912.0f;
    *n = (int32_t)((mlk_bits(shifted) & 0x7fffffu) - 0x400000u);
    return mlk_fma1(count, 2.12194440e-4f, mlk_fma1(count, -0.693359375f, x));
}

// exp(r) - 1 for |r| <= ln 2 / 2
MLK_LEAF float mlk_expm1_core(float r)
{
    float q = 0.000199443108f;
    q = mlk_fma1(q, r, 0.00139359408f);
    q = mlk_fma1(q, r, 0.00833320804f);
    q = mlk_fma1(q, r, 0.0416664556f);
    q = mlk_fma1(q, r, 0.166666672f);
    q = mlk_fma1(q, r, 0.5f);
    return mlk_fma1(r * r, q, r);
}

// e^x, 1 ULP. The power of two is multiplied in two halves, so that results below the normal numbers are rounded
// once and results above them become infinite.
MLK_LEAF float mlk_exp(float x)
{
    int32_t n;
    float r = mlk_exp_reduce(mlk_clamp(x, -104.0f, 89.0f), &n);
    int32_t half = n >> 1;
    return (mlk_expm1_core(r) + 1.0f) * mlk_power_of_2(half) * mlk_power_of_2(n - half);
}

// e^x - 1, 1.4 ULP, also where x is small.
MLK_LEAF float mlk_expm1(float x)
{
    int32_t n;
    float r = mlk_exp_reduce(mlk_clamp(x, -20.0f, 89.0f), &n);
    float half = mlk_power_of_2(n - 1);  // halves: 2^128 is no float
    float y = mlk_fma1(mlk_expm1_core(r), half, half - 0.5f) * 2.0f;
    return mlk_pick(mlk_abs(x) < 1e-7f, x, y);
}

// log(1 + f) - f + f^2 / 2, divided by f^3, for 1 + f in sqrt(1/2)..sqrt(2)
MLK_LEAF float mlk_log_core(float f)
{
    float p = 0.067339994f;
    p = mlk_fma1(p, f, -0.116614535f);
    p = mlk_fma1(p, f, 0.118862063f);
    p = mlk_fma1(p, f, -0.124080926f);
    p = mlk_fma1(p, f, 0.142202243f);
    p = mlk_fma1(p, f, -0.166678578f);
    p = mlk_fma1(p, f, 0.20002073f);
    p = mlk_fma1(p, f, -0.250000119f);
    return mlk_fma1(p, f, 0.333333135f);
}

// log x for x > 0 and finite, plus `rest`, which is small against 1
MLK_LEAF float mlk_log_finite(float x, float rest)
{
    int tiny = x < 1.17549435e-38f;
    uint32_t bits = mlk_bits(x * mlk_pick(tiny, 8388608.0f, 1.0f));
    uint32_t above = bits - 0x3f3504f3u;  // from sqrt(1/2) on, exponents count up from 0
    float n = (float)((int32_t)above >> 23) - mlk_pick(tiny, 23.0f, 0.0f);
    float f = mlk_from_bits((above & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    float small = mlk_fma1(f * f * f, mlk_log_core(f), mlk_fma1(n, -2.12194440e-4f, rest));
    return mlk_fma1(n, 0.693359375f, f + mlk_fma1(-0.5f * f, f, small));
}

// Natural logarithm, 0.9 ULP. 0 gives -infinity, negative numbers NaN.
MLK_LEAF float mlk_log(float x)
{
    float y = mlk_log_finite(x, 0.0f);
    y = mlk_pick(x == 0.0f, -MLK_INFINITY, y);
    y = mlk_pick(x < 0.0f, MLK_NAN, y);
    return mlk_pick((x == MLK_INFINITY) | (x != x), x, y);
}

// log(1 + x), 1 ULP, also where x is small: what rounding 1 + x lost is put back.
MLK_LEAF float mlk_log1p(float x)
{
    float u = 1.0f + x, lost = mlk_pick(x > 1.0f, 1.0f - (u - x), x - (u - 1.0f));
    float y = mlk_log_finite(u, lost / u);
    y = mlk_pick(x == -1.0f, -MLK_INFINITY, y);
    y = mlk_pick(x < -1.0f, MLK_NAN, y);
    return mlk_pick((mlk_abs(x) < 1e-8f) | (x == MLK_INFINITY) | (x != x), x, y);
}

// 1 / (1 + e^-x), 2.3 ULP
MLK_LEAF float mlk_sigmoid(float x)
{
    float e = mlk_exp(-mlk_abs(x));
    return mlk_pick(x < 0.0f, e, 1.0f) / (1.0f + e);
}

// Hyperbolic tangent, 1.3 ULP: an odd polynomial up to 0.625, beyond it 1 - 2 / (e^2x + 1).
MLK_LEAF float mlk_tanh(float x)
{
    float a = mlk_abs(x), z = x * x;
    float p = 0.00215763575f;
    p = mlk_fma1(p, z, -0.00819508638f);
    p = mlk_fma1(p, z, 0.0217087492f);
    p = mlk_fma1(p, z, -0.053948462f);
    p = mlk_fma1(p, z, 0.133332223f);
    p = mlk_fma1(p, z, -0.333333313f);
    float small = mlk_fma1(p * z, x, x), large = 1.0f - 2.0f / (mlk_exp(2.0f * a) + 1.0f);
    return mlk_signed(mlk_pick(a < 0.625f, small, large), x);
}

// Error function, 1.2 ULP: x + x P(x^2) up to 0.92, beyond it 1 - exp(Q(|x|)) with Q near log erfc, up to 4, where it is 1.
MLK_LEAF float mlk_erf(float x)
{
    float a = mlk_abs(x), z = x * x, t = mlk_clamp(a, 0.0f, 4.0f);
    float p = 7.96966342e-5f;
    p = mlk_fma1(p, z, -0.000804383948f);
    p = mlk_fma1(p, z, 0.0051919478f);
    p = mlk_fma1(p, z, -0.026855588f);
    p = mlk_fma1(p, z, 0.112836242f);
    p = mlk_fma1(p, z, -0.376126289f);
    p = mlk_fma1(p, z, 0.128379166f);
    float q = -2.10659091e-5f;
    q = mlk_fma1(q, t, 0.000434086134f);
    q = mlk_fma1(q, t, -0.0041690548f);
    q = mlk_fma1(q, t, 0.0251136739f);
    q = mlk_fma1(q, t, -0.108270504f);
    q = mlk_fma1(q, t, -0.633356214f);
    q = mlk_fma1(q, t, -1.12951005f);
    q = mlk_fma1(q, t, 0.000173613094f);
    float small = mlk_fma1(p, x, x), large = 1.0f - mlk_exp(q);
    return mlk_signed(mlk_pick(a < 0.92f, small, large), x);
}

// 1 / sqrt(x), 1.5 ULP; vector code needs -fno-math-errno.
MLK_LEAF float mlk_rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }

// |x| = quarter (pi / 2) + r, |r| <= pi / 4, for every finite x (Payne and Hanek): the mantissa times those 96 bits of
// 2 / pi that decide the quarter modulo 4 and 62 bits of fraction.
MLK_LEAF float mlk_quarter_turns(float x, uint32_t *quarter)
{
    static const uint32_t two_over_pi[8] = {0,           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                            0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};
    uint32_t bits = mlk_bits(x) & 0x7fffffffu, small = bits < 0x3f490fdbu;  // pi / 4
    uint32_t exponent = bits >> 23, first = (exponent < 126 ? 126 : exponent) - 120;
    uint64_t mantissa = (bits & 0x7fffffu) | 0x800000u;
    uint32_t word = first >> 5, shift = first & 31;
    uint64_t high = (uint64_t)two_over_pi[word] << 32 | two_over_pi[word + 1];
    uint64_t low = (uint64_t)two_over_pi[word + 2] << 32 | two_over_pi[word + 3];
    uint64_t top = high << shift | low >> 1 >> (63 - shift), next = low << shift >> 32;
    uint64_t turns = mantissa * top + (mantissa * next >> 32);
    uint64_t nearest = (turns + (1ull << 61)) >> 62;
    float r = (float)((double)(int64_t)(turns - (nearest << 62)) * 0x1.921fb54442d18p-62);
    *quarter = (uint32_t)nearest & (small - 1);
    return mlk_pick((int)small, mlk_abs(x), r);
}

// sin of r + quarter (pi / 2), |r| <= pi / 4
MLK_LEAF float mlk_sin_core(float r, uint32_t quarter)
{
    float z = r * r;
    float s = 2.83212466e-6f, c = -2.89181742e-7f;
    s = mlk_fma1(s, z, -0.000198530484f);
    s = mlk_fma1(s, z, 0.0083333794f);
    s = mlk_fma1(s, z, -0.166666672f);
    s = mlk_fma1(s * z, r, r);
    c = mlk_fma1(c, z, 2.48224478e-5f);
    c = mlk_fma1(c, z, -0.00138889812f);
    c = mlk_fma1(c, z, 0.0416666679f);
    c = mlk_fma1(c * z, z, mlk_fma1(-0.5f, z, 1.0f));
    float y = mlk_pick((int)(quarter & 1), c, s);
    return mlk_from_bits(mlk_bits(y) ^ (quarter & 2) << 30);
}

// Sine, 1.6 ULP for every float; an infinity gives NaN.
MLK_LEAF float mlk_sin(float x)
{
    uint32_t quarter;
    float r = mlk_quarter_turns(x, &quarter), y = mlk_sin_core(r, quarter);
    y = mlk_from_bits(mlk_bits(y) ^ (mlk_bits(x) & 0x80000000u));
    return mlk_pick(mlk_abs(x) < MLK_INFINITY, y, MLK_NAN);
}

// Cosine, 1.6 ULP for every float; an infinity gives NaN.
MLK_LEAF float mlk_cos(float x)
{
    uint32_t quarter;
    float r = mlk_quarter_turns(x, &quarter), y = mlk_sin_core(r, quarter + 1);
    return mlk_pick(mlk_abs(x) < MLK_INFINITY, y, MLK_NAN);
}

// log2 x in double for positive finite x, relative error 2^-40: 2 atanh(s) / ln 2 with s = (m - 1) / (m + 1)
MLK_LEAF double mlk_log2_wide(float x)
{
    int tiny = x < 1.17549435e-38f;
    uint32_t above = mlk_bits(x * mlk_pick(tiny, 8388608.0f, 1.0f)) - 0x3f3504f3u;
    double n = (double)((int32_t)above >> 23) - (double)mlk_pick(tiny, 23.0f, 0.0f);
    double m = (double)mlk_from_bits((above & 0x7fffffu) + 0x3f3504f3u), s = (m - 1.0) / (m + 1.0), z = s * s;
    double p = 0x1.21bebfef37302p-2;
    p = p * z + 0x1.479466ecb98e8p-2;
    p = p * z + 0x1.a61a346690fedp-2;
    p = p * z + 0x1.2776c28c6f3cbp-1;
    p = p * z + 0x1.ec709dc5421dcp-1;
    p = p * z + 0x1.71547652b824ep+1;
    return n + p * s;
}

// 2^t for |t| <= 300
MLK_LEAF double mlk_exp2_wide(double t)
{
    double shifted = t + 0x1.8p52, f = t - (shifted - 0x1.8p52);
    uint64_t n;
    memcpy(&n, &shifted, sizeof n);
    double p = 0x1.00f79352d46d8p-16;
    p = p * f + 0x1.446c7d36d84dcp-13;
    p = p * f + 0x1.5d8715e73031ep-10;
    p = p * f + 0x1.3b29d8b61f832p-7;
    p = p * f + 0x1.c6b08e06bd3d0p-5;
    p = p * f + 0x1.ebfbe0aa0a74cp-3;
    p = p * f + 0x1.62e42fef6cef5p-1;
    p = p * f + 0x1.ffffffffa6c43p-1;
    n = (n + 1023) << 52;
    double power;
    memcpy(&power, &n, sizeof power);
    return p * power;
}

// x^y, 0.6 ULP, with all the special cases of the C library. Computed in double: the logarithm is multiplied by up to 2^7.
MLK_LEAF float mlk_pow(float x, float y)
{
    float a = mlk_abs(x), whole = mlk_clamp(y, -16777216.0f, 16777216.0f);
    whole = mlk_pick(y != y, 0.0f, whole);
    int32_t integer = (int32_t)whole;
    int is_integer = ((float)integer == whole) & (y == y), is_odd = is_integer & integer & (mlk_abs(y) < 16777216.0f);

    double t = mlk_log2_wide(a) * (double)y;
    float low = mlk_clamp((float)t, -300.0f, 300.0f);  // beyond that the result is 0 or infinite anyway
    int far = mlk_abs((float)t) >= 300.0f;
    uint64_t mask = 0u - (uint64_t)far, near_bits, far_bits;
    double limit = (double)low;
    memcpy(&near_bits, &t, sizeof near_bits);
    memcpy(&far_bits, &limit, sizeof far_bits);
    near_bits = (far_bits & mask) | (near_bits & ~mask);
    memcpy(&t, &near_bits, sizeof t);
    float r = (float)mlk_exp2_wide(t);

    int grows = (a > 1.0f) == (y > 0.0f);
    int edge = (a == 0.0f) | (a == MLK_INFINITY) | (mlk_abs(y) == MLK_INFINITY);
    r = mlk_pick(edge, mlk_pick(grows, MLK_INFINITY, 0.0f), r);
    r = mlk_pick((x < 0.0f) & !is_integer & (a < MLK_INFINITY) & (mlk_abs(y) < MLK_INFINITY), MLK_NAN, r);
    r = mlk_from_bits(mlk_bits(r) ^ (mlk_bits(x) & (uint32_t)is_odd << 31));
    r = mlk_pick((x != x) | (y != y), x + y, r);
    return mlk_pick((x == 1.0f) | (y == 0.0f) | ((a == 1.0f) & (mlk_abs(y) == MLK_INFINITY)), 1.0f, r);
}

#endif
