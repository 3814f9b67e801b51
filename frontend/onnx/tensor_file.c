// tensor_file.c: the numbers of a tensor message, wherever they stand, as a Tensor; and a Tensor as the bytes of a .pb file.
#include "import.h"

#include <string.h>

DType onnx_type(int number)
{
    for (int i = 1; i < TYPE_COUNT; i++)
        if (type_def((DType)i)->onnx == number)
            return (DType)i;
    return TYPE_NONE;
}

const char *onnx_type_name(int number)
{
    static const char *const names[] = {"no type", "float", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16", "double",
                                        "uint32", "uint64", "complex64", "complex128", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
                                        "float8e5m2fnuz", "uint4", "int4", "float4e2m1", "float8e8m0", "uint2", "int2"};
    return number >= 0 && number < COUNT(names) ? names[number] : "an unknown type";
}

static bool count_of(const Onnx__Tensor *p, int64_t *count)
{
    int64_t whole = 1;
    *count = 1;
    for (size_t i = 0; i < p->n_dims; i++)
        if (!size_mul(*count, p->dims[i], count) || (p->dims[i] != 0 && !size_mul(whole, p->dims[i], &whole)) || whole > (int64_t)1 << 48)
            return false;
    return true;
}

// Element i of a typed field, as the format keeps it for the type.
static bool typed(const Onnx__Tensor *p, Tensor *t, int64_t count)
{
    size_t n = (size_t)count;
    switch (t->dtype) {
    case TYPE_f32:
        if (p->n_float_data == n && n > 0)
            memcpy(t->data, p->float_data, n * sizeof(float));
        return p->n_float_data == n;
    case TYPE_f64:
        if (p->n_double_data == n && n > 0)
            memcpy(t->data, p->double_data, n * sizeof(double));
        return p->n_double_data == n;
    case TYPE_i64:
        if (p->n_int64_data == n && n > 0)
            memcpy(t->data, p->int64_data, n * sizeof(int64_t));
        return p->n_int64_data == n;
    case TYPE_u32: case TYPE_u64:
        for (size_t i = 0; i < n && p->n_uint64_data == n; i++)
            tensor_set_whole(t, (int64_t)i, (int64_t)p->uint64_data[i]);
        return p->n_uint64_data == n;
    case TYPE_f16: case TYPE_bf16:
        for (size_t i = 0; i < n && p->n_int32_data == n; i++)
            ((uint16_t *)t->data)[i] = (uint16_t)p->int32_data[i];
        return p->n_int32_data == n;
    default:
        for (size_t i = 0; i < n && p->n_int32_data == n; i++)
            tensor_set_whole(t, (int64_t)i, p->int32_data[i]);
        return p->n_int32_data == n;
    }
}

static bool bools_are_clean(const Tensor *t)
{
    for (int64_t i = 0; t->dtype == TYPE_bool && i < tensor_count(t); i++)
        if (((const uint8_t *)t->data)[i] > 1)
            return false;
    return true;
}

Tensor *onnx_tensor(Arena *arena, const Onnx__Tensor *p, const void *outside, size_t outside_bytes, const char **why)
{
    DType dtype = onnx_type(p->data_type);
    int64_t count, bytes;
    if (dtype == TYPE_NONE)
        return *why = arena_printf(arena, "elements of type %s are not available in this version", onnx_type_name(p->data_type)), NULL;
    if (p->n_dims > RANK_MAX)
        return *why = arena_printf(arena, "it has %zu axes; 8 are the most", p->n_dims), NULL;
    if (!count_of(p, &count) || !size_mul(count, type_def(dtype)->bytes, &bytes))
        return *why = "its sizes are negative, or do not fit into 64 bits", NULL;
    bool is_outside = p->data_location == 1, raw = p->has_raw_data != 0;
    int typed_fields = (p->n_float_data > 0) + (p->n_int32_data > 0) + (p->n_int64_data > 0) + (p->n_double_data > 0) + (p->n_uint64_data > 0) + (p->n_string_data > 0);
    if (typed_fields + raw + is_outside > 1)
        return *why = "its elements stand in several places", NULL;
    const void *from = is_outside ? outside : p->raw_data.data;
    size_t given = is_outside ? outside_bytes : p->raw_data.len;
    if ((raw || is_outside) && given != (uint64_t)bytes)
        return *why = arena_printf(arena, "it has %zu bytes of data, and %lld are needed for its shape", given, (long long)bytes), NULL;
    if (!raw && !is_outside && typed_fields == 0 && count > 0)
        return *why = arena_printf(arena, "it has no data, and %lld bytes are needed for its shape", (long long)bytes), NULL;
    if (!raw && !is_outside && count > (int64_t)(p->n_float_data + p->n_int32_data + p->n_int64_data + p->n_double_data + p->n_uint64_data))
        return *why = "it has fewer elements than its shape", NULL;
    Tensor *t = tensor_new(arena, dtype, (int)p->n_dims, p->dims);
    if ((raw || is_outside) && bytes > 0)
        memcpy(t->data, from, (size_t)bytes);
    else if (!raw && !is_outside && !typed(p, t, count))
        return *why = "the number of its elements does not fit its shape, or they stand in the field of another type", NULL;
    if (!bools_are_clean(t))
        return *why = "a bool is neither 0 nor 1", NULL;
    return t;
}

Tensor *onnx_tensor_read(Arena *arena, const char *bytes, size_t length, const char **name, const char **why)
{
    Wire wire;
    Onnx__Tensor *p = (Onnx__Tensor *)wire_unpack(arena, &onnx__tensor__descriptor, (const uint8_t *)bytes, length, &wire);
    if (p == NULL)
        return *why = arena_printf(arena, "%s", wire.why), NULL;
    if (p->data_location == 1)
        return *why = "its elements stand in another file", NULL;
    *name = p->name;
    return onnx_tensor(arena, p, NULL, 0, why);
}

// --- Writing -----------------------------------------------------------------------------------------------------------

static void put_varint(Text *out, uint64_t n)
{
    for (; n >= 128; n >>= 7)
        text_put(out, &(char){(char)(n | 128)}, 1);
    text_put(out, &(char){(char)n}, 1);
}

void onnx_tensor_write(Text *out, const Tensor *t, const char *name)
{
    size_t bytes = (size_t)tensor_count(t) * (size_t)type_def(t->dtype)->bytes;
    for (int i = 0; i < t->rank; i++) {
        put_varint(out, 1 << 3);
        put_varint(out, (uint64_t)t->dim[i]);
    }
    put_varint(out, 2 << 3);
    put_varint(out, (uint64_t)type_def(t->dtype)->onnx);
    if (name != NULL) {
        put_varint(out, 8 << 3 | 2);
        put_varint(out, strlen(name));
        text_put(out, name, strlen(name));
    }
    put_varint(out, 9 << 3 | 2);
    put_varint(out, bytes);
    text_put(out, t->data, bytes);
}
