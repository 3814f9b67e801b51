// ops_quant.c: whole numbers for floats, and back. Ties go to the even number, what does not fit stays at the end of the range.
#include "import.h"

// A scale or zero point along `axis` of x, or in blocks of it, in a shape that broadcasts.
static Value *along(OnnxCall *c, Value *list, Value *x, int64_t axis, int64_t block)
{
    Import *m = c->m;
    Size dims[RANK_MAX];
    if (list == NULL || rank_of(list) == 0)
        return list;
    int64_t n;
    if (rank_of(list) == 1 && block == 0) {
        if (size_known(dim_of(list, 0), &n) && n == 1)
            return reshape_to(m, list, 0, NULL);
        axis = axis_of(c, axis, rank_of(x));
        for (int i = 0; i < rank_of(x); i++)
            dims[i] = i == axis ? dim_of(list, 0) : whole(m, 1);
        return m->failed ? NULL : reshape_to(m, list, rank_of(x), dims);
    }
    axis = axis_of(c, axis, rank_of(x));
    if (m->failed || rank_of(list) != rank_of(x) || block < 1 || rank_of(x) == RANK_MAX) {
        refuse_node(c, "its scale has %d axes for %d", rank_of(list), rank_of(x));
        return NULL;
    }
    int rank = rank_of(x);                              // each element so many times
    for (int i = 0; i <= rank; i++)
        dims[i] = i == axis + 1 ? whole(m, 1) : dim_of(list, i <= axis ? i : i - 1);
    list = reshape_to(m, list, rank + 1, dims);
    dims[axis + 1] = whole(m, block);
    list = broadcast_as(m, list, rank + 1, dims);
    Size blocks = dims[axis];
    for (int i = 0; i < rank; i++)
        dims[i] = i == axis ? size_times(m->cx, blocks, whole(m, block)) : dim_of(x, i);
    list = reshape_to(m, list, rank, dims);
    return list == NULL || size_equal(dim_of(list, (int)axis), dim_of(x, (int)axis)) ? list : sliced(m, list, (int)axis, whole(m, 0), dim_of(x, (int)axis), 1);
}

static bool is_narrow(DType type) { return type == TYPE_u8 || type == TYPE_i8 || type == TYPE_u16 || type == TYPE_i16; }

// round(x) + zero, kept in the range; x in f32 or f64.
static Value *to_whole(Import *m, Value *x, Value *zero, DType type)
{
    int bits = 8 * type_def(type)->bytes;
    bool natural = type_def(type)->kind == KIND_UINT;
    double least = natural ? 0 : -(double)(1 << (bits - 1)), most = (natural ? (double)(1 << bits) : (double)(1 << (bits - 1))) - 1;
    x = op1(m, "round", x);
    if (x == NULL)
        return NULL;
    if (zero != NULL)
        x = op2(m, "add", x, cast_to(m, zero, x->type.dtype));
    return cast_to(m, formula3(m, "min(max(x0, x1), x2)", x, number(m, x != NULL ? x->type.dtype : TYPE_f32, least), number(m, x != NULL ? x->type.dtype : TYPE_f32, most)), type);
}

void onnx_quantize(OnnxCall *c)
{
    Import *m = c->m;
    Value *x = c->in[0], *scale = c->in[1], *zero = input_of(c, 2);
    int64_t axis = c->version >= 13 ? int_of(c, "axis", 1) : 1, block = int_of(c, "block_size", 0), to = int_of(c, "output_dtype", 0), precision = int_of(c, "precision", 0);
    int_of(c, "saturate", 1);
    DType type = zero != NULL ? zero->type.dtype : to != 0 ? dtype_of(c, (int)to) : TYPE_u8;
    DType inner = precision != 0 ? dtype_of(c, (int)precision) : TYPE_f32;
    if (m->failed)
        return;
    if (!is_narrow(type) || (inner != TYPE_f32 && inner != TYPE_f64)) {
        refuse_node(c, "a result of type %s, or that precision, is not available in this version", type_def(type)->name);
        return;
    }
    scale = along(c, scale, x, axis, block), zero = along(c, zero, x, axis, block);
    if (scale != NULL)
        c->out[0] = to_whole(m, op2(m, "div", cast_to(m, x, inner), cast_to(m, scale, inner)), zero, type);
}

void onnx_dequantize(OnnxCall *c)
{
    Import *m = c->m;
    Value *x = c->in[0], *scale = c->in[1], *zero = input_of(c, 2);
    int64_t axis = c->version >= 13 ? int_of(c, "axis", 1) : 1, block = int_of(c, "block_size", 0), to = int_of(c, "output_dtype", 0);
    DType type = to != 0 ? dtype_of(c, (int)to) : scale->type.dtype;
    if (m->failed)
        return;
    if (type_is_float(x->type.dtype)) {
        refuse_node(c, "an input of type %s is not available in this version", type_def(x->type.dtype)->name);
        return;
    }
    scale = along(c, scale, x, axis, block), zero = along(c, zero, x, axis, block);
    Value *wide = cast_to(m, x, TYPE_i32);
    if (zero != NULL)
        wide = op2(m, "sub", wide, cast_to(m, zero, TYPE_i32));
    c->out[0] = cast_to(m, op2(m, "mul", cast_to(m, wide, TYPE_f32), cast_to(m, scale, TYPE_f32)), type);
}

void onnx_dynamic_quantize(OnnxCall *c)
{
    Import *m = c->m;
    Value *x = c->in[0], *zero = number(m, TYPE_f32, 0);
    Value *most = op2(m, "maximum", op1(m, "max", x), zero), *least = op2(m, "minimum", op1(m, "min", x), zero);
    Value *scale = formula2(m, "(x0 - x1) / 255", most, least);
    Value *point = cast_to(m, formula2(m, "min(max(round(select(x1 == 0, 0, (0 - x0) / x1)), 0), 255)", least, scale), TYPE_u8);
    c->out[0] = to_whole(m, formula2(m, "select(x1 == 0, 0, x0 / x1)", x, scale), point, TYPE_u8);
    c->out[1] = scale;
    c->out[2] = point;
}

// x less its zero point, in f64, in which sums of such products are exact.
static Value *exact(OnnxCall *c, Value *x, Value *zero, int64_t axis)
{
    Import *m = c->m;
    Value *wide = cast_to(m, x, TYPE_f64);
    zero = along(c, zero, x, axis, 0);
    return zero != NULL ? op2(m, "sub", wide, cast_to(m, zero, TYPE_f64)) : wide;
}

void onnx_qlinear_matmul(OnnxCall *c)
{
    Import *m = c->m;
    Value *a = c->in[0], *b = c->in[3], *y_zero = c->in[7];
    int ra = rank_of(a), rb = rank_of(b);
    if (ra < 2 || rb < 2 || !is_narrow(y_zero->type.dtype)) {
        refuse_node(c, "it multiplies matrices of bytes");
        return;
    }
    Value *sum = op2(m, "matmul", exact(c, a, c->in[2], ra - 2), exact(c, b, c->in[5], rb - 1));
    if (sum == NULL)
        return;
    Value *sa = along(c, c->in[1], sum, rank_of(sum) - 2, 0), *sb = along(c, c->in[4], sum, rank_of(sum) - 1, 0), *sy = along(c, c->in[6], sum, rank_of(sum) - 2, 0);
    Value *factor = op2(m, "div", op2(m, "mul", cast_to(m, sa, TYPE_f32), cast_to(m, sb, TYPE_f32)), cast_to(m, sy, TYPE_f32));
    c->out[0] = to_whole(m, op2(m, "mul", cast_to(m, sum, TYPE_f32), factor), along(c, y_zero, sum, rank_of(sum) - 2, 0), y_zero->type.dtype);
}

void onnx_conv_integer(OnnxCall *c)
{
    Value *y = conv_of(c, exact(c, c->in[0], input_of(c, 2), 1), exact(c, c->in[1], input_of(c, 3), 0), NULL);
    c->out[0] = cast_to(c->m, y, TYPE_i32);
}

void onnx_qlinear_conv(OnnxCall *c)
{
    Import *m = c->m;
    Value *x = c->in[0], *w = c->in[3], *y_zero = c->in[7], *bias = input_of(c, 8);
    if (!is_narrow(y_zero->type.dtype)) {
        refuse_node(c, "a result of type %s is not available in this version", type_def(y_zero->type.dtype)->name);
        return;
    }
    Value *sum = conv_of(c, exact(c, x, c->in[2], 1), exact(c, w, c->in[5], 0), bias != NULL ? cast_to(m, bias, TYPE_f64) : NULL);
    if (sum == NULL)
        return;
    Value *factor = op2(m, "div", op2(m, "mul", along(c, c->in[1], sum, 1, 0), along(c, c->in[4], sum, 1, 0)), along(c, c->in[6], sum, 1, 0));
    c->out[0] = to_whole(m, op2(m, "mul", cast_to(m, sum, TYPE_f32), factor), along(c, y_zero, sum, 1, 0), y_zero->type.dtype);
}
