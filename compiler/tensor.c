// tensor.c: the interpreter's arrays. Elements are read as a double or, exactly, as an i64; writing rounds to the element type.
#include <math.h>
#include <string.h>

#include "mlc.h"

int64_t tensor_count(const Tensor *t)
{
    int64_t count = 1;
    for (int i = 0; i < t->rank; i++)
        if (!size_mul(count, t->dim[i], &count))
            out_of_memory(SIZE_MAX);
    return count;
}

Tensor *tensor_new(Arena *arena, DType dtype, int rank, const int64_t *dim)
{
    Tensor *t = NEW(arena, Tensor);
    t->dtype = dtype;
    t->rank = rank;
    for (int i = 0; i < rank; i++)
        t->dim[i] = dim[i];
    t->data = arena_alloc_array(arena, (size_t)type_def(dtype)->bytes, tensor_count(t));
    return t;
}

// --- Half precision ----------------------------------------------------------------------------------------------------------

// A number with `fraction` bits after the leading one, exponents from `least`, rounded to nearest, ties to even.
static double round_to(double x, int fraction, int least)
{
    int exponent;
    if (x == 0 || !isfinite(x))
        return x;
    frexp(x, &exponent);                                // |x| in 2^(exponent-1) … 2^exponent
    int unit = exponent - 1 < least ? least : exponent - 1;
    double step = ldexp(1, unit - fraction);
    return rint(x / step) * step;
}

static double round_f16(double x)
{
    double y = round_to((float)x, 10, -14);
    return fabs(y) > 65504 ? copysign(INFINITY, y) : y;
}

static double round_bf16(double x) { return (float)round_to((float)x, 7, -126); }

double type_round(DType type, double x)
{
    switch (type) {
    case TYPE_f16:  return round_f16(x);
    case TYPE_bf16: return round_bf16(x);
    case TYPE_f32:  return (float)x;
    default:        return x;
    }
}

static uint16_t f16_bits(double x)
{
    double y = round_f16(x), size = fabs(y);
    uint16_t sign = signbit(y) ? 0x8000 : 0;
    if (isnan(y) || isinf(y))
        return sign | (isnan(y) ? 0x7e00 : 0x7c00);
    int exponent = size >= 0x1p-14 ? ilogb(size) : -15;  // -15: subnormal
    double fraction = exponent == -15 ? size * 0x1p24 : (ldexp(size, -exponent) - 1) * 1024;
    return (uint16_t)(sign | (exponent + 15) << 10 | (int)fraction);
}

static double f16_number(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size = exponent == 31 ? (fraction ? NAN : INFINITY) : exponent == 0 ? fraction * 0x1p-24 : ldexp(1024 + fraction, exponent - 25);
    return bits & 0x8000 ? -size : size;
}

static uint16_t bf16_bits(double x)
{
    float y = (float)round_bf16(x);
    uint32_t bits;
    memcpy(&bits, &y, sizeof bits);
    return isnan(x) ? (uint16_t)(bits >> 16 | 0x40) : (uint16_t)(bits >> 16);
}

static double bf16_number(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

// --- Elements ------------------------------------------------------------------------------------------------------------------

int64_t tensor_get_whole(const Tensor *t, int64_t i)
{
    switch (t->dtype) {
    case TYPE_bool: case TYPE_u8: return ((const uint8_t *)t->data)[i];
    case TYPE_i8:  return ((const int8_t *)t->data)[i];
    case TYPE_i16: return ((const int16_t *)t->data)[i];
    case TYPE_u16: return ((const uint16_t *)t->data)[i];
    case TYPE_i32: return ((const int32_t *)t->data)[i];
    case TYPE_u32: return ((const uint32_t *)t->data)[i];
    case TYPE_u64: return (int64_t)((const uint64_t *)t->data)[i];
    case TYPE_i64: return ((const int64_t *)t->data)[i];
    default:       return type_whole(TYPE_i64, tensor_get(t, i));
    }
}

double tensor_get(const Tensor *t, int64_t i)
{
    switch (t->dtype) {
    case TYPE_f16:  return f16_number(((const uint16_t *)t->data)[i]);
    case TYPE_bf16: return bf16_number(((const uint16_t *)t->data)[i]);
    case TYPE_f32:  return ((const float *)t->data)[i];
    case TYPE_f64:  return ((const double *)t->data)[i];
    case TYPE_NONE: case TYPE_COUNT: BUG("a tensor without an element type");
    case TYPE_u64:  return (double)((const uint64_t *)t->data)[i];
    default:        return (double)tensor_get_whole(t, i);
    }
}

// Two's complement, cut to the type's width; a bool is whether it is not 0.
int64_t type_wrap(DType type, int64_t n)
{
    switch (type) {
    case TYPE_bool: return n != 0;
    case TYPE_u8:   return (uint8_t)n;
    case TYPE_i8:   return (int8_t)n;
    case TYPE_i16:  return (int16_t)n;
    case TYPE_u16:  return (uint16_t)n;
    case TYPE_i32:  return (int32_t)n;
    case TYPE_u32:  return (uint32_t)n;
    default:        return n;
    }
}

// The whole part of x, the nearest value of the type where it is outside, 0 for NaN.
int64_t type_whole(DType type, double x)
{
    const TypeDef *def = type_def(type);
    int bits = 8 * def->bytes - (def->kind == KIND_INT);
    double most = ldexp(1, bits), least = def->kind == KIND_INT ? -most : 0;
    if (type == TYPE_bool)
        return x != 0;
    if (isnan(x))
        return 0;
    if (x >= most)
        return bits == 64 ? -1 : (int64_t)((1ull << bits) - 1);     // of u64, the bits
    return x <= least ? (int64_t)least : bits == 64 ? (int64_t)(uint64_t)x : (int64_t)x;
}

void tensor_set_whole(Tensor *t, int64_t i, int64_t n)
{
    switch (t->dtype) {
    case TYPE_bool: case TYPE_u8: ((uint8_t *)t->data)[i] = (uint8_t)type_wrap(t->dtype, n); break;
    case TYPE_i8:  ((int8_t *)t->data)[i] = (int8_t)n; break;
    case TYPE_i16: ((int16_t *)t->data)[i] = (int16_t)n; break;
    case TYPE_u16: ((uint16_t *)t->data)[i] = (uint16_t)n; break;
    case TYPE_i32: ((int32_t *)t->data)[i] = (int32_t)n; break;
    case TYPE_u32: ((uint32_t *)t->data)[i] = (uint32_t)n; break;
    case TYPE_u64: ((uint64_t *)t->data)[i] = (uint64_t)n; break;
    case TYPE_i64: ((int64_t *)t->data)[i] = n; break;
    default:       tensor_set(t, i, (double)n); break;
    }
}

void tensor_set(Tensor *t, int64_t i, double x)
{
    switch (t->dtype) {
    case TYPE_f16:  ((uint16_t *)t->data)[i] = f16_bits(x); break;
    case TYPE_bf16: ((uint16_t *)t->data)[i] = bf16_bits(x); break;
    case TYPE_f32:  ((float *)t->data)[i] = (float)x; break;
    case TYPE_f64:  ((double *)t->data)[i] = x; break;
    case TYPE_NONE: case TYPE_COUNT: BUG("a tensor without an element type");
    default:        tensor_set_whole(t, i, type_whole(t->dtype, x)); break;
    }
}
