// convert.c: an array of a file in the type that the net takes, as numbers of a table would be: whole numbers into any type
// that holds the value, floats into floats. What does not fit is an error that names its row; a fraction is never cut off.
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

static bool is_float(MlrtType type) { return type == MLRT_f16 || type == MLRT_bf16 || type == MLRT_f32 || type == MLRT_f64; }

static double half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                                 : ldexp(exponent ? fraction + 1024 : fraction, (exponent ? exponent : 1) - 25);
    return bits & 0x8000 ? -size : size;
}

static double brain_value(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static double float_value(MlrtType type, const char *at)
{
    uint16_t bits;
    float narrow;
    double wide;
    memcpy(&bits, at, sizeof bits);
    switch (type) {
    case MLRT_f16: return half_value(bits);
    case MLRT_bf16: return brain_value(bits);
    case MLRT_f32: memcpy(&narrow, at, sizeof narrow); return narrow;
    default: memcpy(&wide, at, sizeof wide); return wide;
    }
}

static int64_t whole_value(MlrtType type, const char *at)
{
    switch (type) {
#define READ(name, c_type)                  \
    case MLRT_##name: {                     \
        c_type value;                       \
        memcpy(&value, at, sizeof value);   \
        return value;                       \
    }
    READ(i8, int8_t) READ(i16, int16_t) READ(u16, uint16_t) READ(i32, int32_t) READ(u32, uint32_t) READ(i64, int64_t)
#undef READ
    default: return (unsigned char)*at;
    }
}

// False if the value is none of the type's.
static bool put_float(MlrtType type, double value, char *to)
{
    float narrow = (float)value;
    if (type == MLRT_f64)
        memcpy(to, &value, sizeof value);
    else
        memcpy(to, &narrow, sizeof narrow);
    return type == MLRT_f64 || !isfinite(value) || fabsf(narrow) <= FLT_MAX;
}

static bool put_whole(MlrtType type, int64_t value, char *to)
{
    switch (type) {
#define WRITE(name, c_type)                 \
    case MLRT_##name: {                     \
        c_type narrow = (c_type)value;      \
        memcpy(to, &narrow, sizeof narrow); \
        return narrow == value;             \
    }
    WRITE(i8, int8_t) WRITE(u8, uint8_t) WRITE(i16, int16_t) WRITE(u16, uint16_t) WRITE(i32, int32_t) WRITE(u32, uint32_t)
    WRITE(i64, int64_t)
#undef WRITE
    case MLRT_bool: *to = value != 0; return value == 0 || value == 1;
    default: return put_float(type, (double)value, to) && (int64_t)(type == MLRT_f32 ? (double)(float)value : (double)value) == value;
    }
}

static bool convert_all(const MlrtArray *array, MlrtType type, char *to, size_t *bad)
{
    size_t from_bytes = mlrt_type_bytes(array->type), to_bytes = mlrt_type_bytes(type);
    const char *from = array->data;
    bool real = is_float(array->type), fits = true;
    for (size_t i = 0; i < array->count && fits; i++, from += from_bytes, to += to_bytes) {
        fits = real ? put_float(type, float_value(array->type, from), to) : put_whole(type, whole_value(array->type, from), to);
        *bad = i;
    }
    return fits;
}

MlrtStatus mlrt_array_convert(MlrtArray *array, MlrtType type, const char *path, MlrtError *error)
{
    size_t bytes, bad = 0;
    if (array->type == type)
        return MLRT_OK;
    if (type == MLRT_f16 || type == MLRT_bf16 || (is_float(array->type) && !is_float(type)))
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s holds %s, which does not become %s by itself; convert the file", path,
                         mlrt_type_name(array->type), mlrt_type_name(type));
    char *to = mlrt_size_mul(array->count, mlrt_type_bytes(type), &bytes) ? malloc(bytes + 8) : NULL;
    if (!to)
        return mlrt_fail_memory(error, array->count, path);
    if (!convert_all(array, type, to, &bad)) {
        size_t row = array->rank > 0 && array->shape[0] > 0 ? bad / (array->count / (size_t)array->shape[0]) : 0;
        const char *at = (const char *)array->data + bad * mlrt_type_bytes(array->type);
        free(to);
        if (is_float(array->type))
            return mlrt_fail(error, MLRT_BAD_INPUT, "row %zu of %s: %g is more than an %s holds", row, path,
                             float_value(array->type, at), mlrt_type_name(type));
        return mlrt_fail(error, MLRT_BAD_INPUT, "row %zu of %s: %" PRId64 " is not a value of %s", row, path,
                         whole_value(array->type, at), mlrt_type_name(type));
    }
    free(array->owned);
    mlrt_file_close(&array->file);
    array->data = array->owned = to;
    array->type = type;
    array->bytes = bytes;
    return MLRT_OK;
}
