// ops_math.c: element by element, comparisons, casts, reductions, softmax, matrix products.
#include "import.h"

#include <math.h>

static bool is_float(OnnxCall *c, const Value *v)
{
    if (v != NULL && !type_is_float(v->type.dtype))
        refuse_node(c, "elements of type %s are not available in this version", type_def(v->type.dtype)->name);
    return !c->m->failed;
}

void onnx_unary(OnnxCall *c)
{
    int64_t unused[8];
    if (c->version < 6)
        ints_of(c, "consumed_inputs", unused, 8);
    c->out[0] = op1(c->m, c->detail, c->in[0]);
}

void onnx_formula(OnnxCall *c)
{
    if (is_float(c, c->in[0]))
        c->out[0] = formula1(c->m, c->detail, c->in[0]);
}

// Approximated by polynomials that are exact to f32.
void onnx_arc(OnnxCall *c)
{
    static const char *const before[] = {"asin", "x0 / sqrt((1 - x0) * (1 + x0))", "acos", "sqrt((1 - x0) / (1 + x0))", "atan", "x0"};
    Value *x = c->in[0];
    if (!is_float(c, x))
        return;
    if (x->type.dtype == TYPE_f64) {
        refuse_node(c, "elements of type f64 are not available in this version");
        return;
    }
    for (int i = 0; i < 6; i += 2)
        if (strcmp(before[i], c->detail) == 0)
            x = formula1(c->m, before[i + 1], cast_to(c->m, x, TYPE_f32));
    // In three pieces around 0, 1 and infinity: t there, and what is added back.
    Value *size = op1(c->m, "abs", x);
    Value *t = formula1(c->m, "select(x0 > 2.414213562373095, -1 / x0, select(x0 > 0.4142135623730951, (x0 - 1) / (x0 + 1), x0))", size);
    Value *more = formula1(c->m, "select(x0 > 2.414213562373095, 1.5707963267948966, select(x0 > 0.4142135623730951, 0.7853981633974483, 0))", size);
    Value *z = op1(c->m, "square", t);
    Value *arc = formula3(c->m, "x2 + ((((0.0805374449538 * x0 - 0.138776856032) * x0 + 0.199777106478) * x0 - 0.333329491539) * x0 * x1 + x1)", z, t, more);
    arc = formula2(c->m, "select(x0 < 0, -x1, x1)", x, arc);
    if (strcmp(c->detail, "acos") == 0)
        arc = formula1(c->m, "2 * x0", arc);
    c->out[0] = cast_to(c->m, arc, c->in[0]->type.dtype);
}

// Attributes stand for a, b in the formula.
static void with_numbers(OnnxCall *c, const char *text, double a, double b)
{
    Value *x = c->in[0];
    if (!is_float(c, x))
        return;
    c->out[0] = formula3(c->m, text, x, number(c->m, x->type.dtype, a), number(c->m, x->type.dtype, b));
}

void onnx_leaky_relu(OnnxCall *c)       { with_numbers(c, "select(x0 >= 0, x0, x1 * x0)", float_of(c, "alpha", (double)0.01f), 0); }
void onnx_elu(OnnxCall *c)              { with_numbers(c, "select(x0 > 0, x0, x1 * expm1(x0))", float_of(c, "alpha", 1), 0); }
void onnx_celu(OnnxCall *c)             { with_numbers(c, "max(x0, 0) + min(x1 * expm1(x0 / x1), 0)", float_of(c, "alpha", 1), 0); }
void onnx_hard_sigmoid(OnnxCall *c)     { double a = float_of(c, "alpha", (double)0.2f); with_numbers(c, "max(0, min(1, x1 * x0 + x2))", a, float_of(c, "beta", 0.5)); }
void onnx_thresholded_relu(OnnxCall *c) { with_numbers(c, "select(x0 > x1, x0, 0)", float_of(c, "alpha", 1), 0); }
void onnx_swish(OnnxCall *c)            { with_numbers(c, "x0 * sigmoid(x1 * x0)", float_of(c, "alpha", 1), 0); }

void onnx_selu(OnnxCall *c)
{
    double a = float_of(c, "alpha", 1.67326319217681884765625), gamma = float_of(c, "gamma", 1.05070102214813232421875);
    with_numbers(c, "x2 * select(x0 > 0, x0, x1 * expm1(x0))", a, gamma);
}

void onnx_shrink(OnnxCall *c)
{
    double bias = float_of(c, "bias", 0), lambd = float_of(c, "lambd", 0.5);
    with_numbers(c, "select(x0 < -x2, x0 + x1, select(x0 > x2, x0 - x1, 0))", bias, lambd);
}

void onnx_gelu(OnnxCall *c)
{
    const char *how = word_of(c, "approximate", "none");
    if (strcmp(how, "none") != 0 && strcmp(how, "tanh") != 0) {
        refuse_node(c, "approximate = %s is not known", how);
        return;
    }
    OpCall call = call1(c->m, "gelu", c->in[0]);
    call_word(&call, "approximate", how);
    c->out[0] = emit(c->m, &call);
}

void onnx_prelu(OnnxCall *c)
{
    Value *slope = c->in[1];
    if (c->version < 7 && rank_of(slope) == 1 && rank_of(c->in[0]) > 2) {           // one a channel
        Size dims[RANK_MAX];
        for (int i = 0; i < rank_of(c->in[0]) - 1; i++)
            dims[i] = i == 0 ? dim_of(slope, 0) : whole(c->m, 1);
        slope = reshape_to(c->m, slope, rank_of(c->in[0]) - 1, dims);
    }
    c->out[0] = formula2(c->m, "select(x0 < 0, x0 * x1, x0)", c->in[0], slope);
}

// Before opset 7 broadcasting had to be asked for, and could begin at an axis.
static Value *old_broadcast(OnnxCall *c)
{
    Value *x = c->in[0], *y = c->in[1];
    int64_t unused[8], rank = rank_of(x);
    if (c->version >= 7)
        return y;
    if (c->version < 6)
        ints_of(c, "consumed_inputs", unused, 8);
    int64_t broadcast = int_of(c, "broadcast", 0), axis = int_of(c, "axis", rank - rank_of(y));
    if (broadcast == 0 || rank_of(y) == rank || rank_of(y) == 0)
        return y;
    axis = axis_of(c, axis, (int)rank);
    Size dims[RANK_MAX];
    if (axis + rank_of(y) > rank) {
        refuse_node(c, "its second input does not fit at axis %d", (int)axis);
        return NULL;
    }
    for (int i = 0; i < rank - axis; i++)
        dims[i] = i < rank_of(y) ? dim_of(y, i) : whole(c->m, 1);
    return reshape_to(c->m, y, (int)(rank - axis), dims);
}

void onnx_binary(OnnxCall *c) { c->out[0] = op2(c->m, c->detail, c->in[0], old_broadcast(c)); }

void onnx_div(OnnxCall *c)
{
    c->out[0] = op2(c->m, type_is_float(c->in[0]->type.dtype) ? "div" : "quotient", c->in[0], old_broadcast(c));
}

void onnx_mod(OnnxCall *c)
{
    Value *x = c->in[0], *y = c->in[1];
    bool fmod = int_of(c, "fmod", 0) != 0;
    if (!fmod && type_is_float(x->type.dtype) && c->version < 28)
        refuse_node(c, "Mod of floats needs fmod = 1");
    else if (!fmod)
        c->out[0] = op2(c->m, "mod", x, y);
    else if (type_is_float(x->type.dtype))
        c->out[0] = formula2(c->m, "select(x0 < 0, -mod(abs(x0), abs(x1)), mod(abs(x0), abs(x1)))", x, y);
    else
        c->out[0] = op2(c->m, "sub", x, op2(c->m, "mul", op2(c->m, "quotient", x, y), y));
}

// Whole numbers to whole powers, by squaring: exact where the result fits.
static Value *whole_power(Import *m, Value *x, Value *y)
{
    Value *result = number(m, x->type.dtype, 1), *base = x, *rest = cast_to(m, y, TYPE_i64);
    for (int i = 0; i < 6; i++) {
        Value *half = formula1(m, "floordiv(x0, 2)", rest);
        result = formula3(m, "select(x0 != 0, x1 * x2, x1)", formula2(m, "x0 - 2 * x1", rest, half), result, base);
        base = op1(m, "square", base);
        rest = half;
    }
    Value *one = number(m, x->type.dtype, 1), *zero = number(m, x->type.dtype, 0);
    Value *least = type_def(x->type.dtype)->kind == KIND_INT ? number(m, x->type.dtype, -1) : one;
    Value *parity = formula1(m, "mod(x0, 2)", cast_to(m, y, TYPE_i64));
    Value *edge = formula(m, "select(x0 == x1, x1, select(x0 == x2, select(x3 != 0, x2, x1), x4))", 5, (Value *[]){x, one, least, parity, zero});
    return formula3(m, "select(x0 != 0, x1, x2)", rest, edge, result);
}

void onnx_pow(OnnxCall *c)
{
    Value *x = c->in[0], *y = old_broadcast(c);
    if (y == NULL)
        return;
    bool floats = type_is_float(x->type.dtype), by_floats = type_is_float(y->type.dtype);
    if (floats)
        c->out[0] = op2(c->m, "pow", x, cast_to(c->m, y, x->type.dtype));
    else if (by_floats)
        c->out[0] = cast_to(c->m, op2(c->m, "pow", cast_to(c->m, x, TYPE_f64), cast_to(c->m, y, TYPE_f64)), x->type.dtype);
    else
        c->out[0] = whole_power(c->m, x, y);
}

void onnx_many(OnnxCall *c)
{
    int64_t unused[8];
    Value *y = c->in[0];
    if (c->version < 6)
        ints_of(c, "consumed_inputs", unused, 8);
    for (int i = 1; i < c->n_in; i++)
        y = op2(c->m, c->detail, y, c->in[i]);
    c->out[0] = y;
}

void onnx_mean(OnnxCall *c)
{
    Value *y = c->in[0];
    for (int i = 1; i < c->n_in; i++)
        y = op2(c->m, "add", y, c->in[i]);
    if (y != NULL)
        c->out[0] = op2(c->m, "div", y, number(c->m, y->type.dtype, c->n_in));
}

void onnx_compare(OnnxCall *c)
{
    Value *y = old_broadcast(c);
    if (strcmp(c->detail, "equal") != 0 && c->in[0]->type.dtype == TYPE_bool)
        refuse_node(c, "booleans have no order");
    c->out[0] = op2(c->m, c->detail, c->in[0], y);
}

void onnx_where(OnnxCall *c) { c->out[0] = op3(c->m, "where", c->in[0], c->in[1], c->in[2]); }

void onnx_isinf(OnnxCall *c)
{
    bool up = int_of(c, "detect_positive", 1) != 0, down = int_of(c, "detect_negative", 1) != 0;
    Value *x = c->in[0];
    if (!is_float(c, x))
        return;
    Value *is = op1(c->m, "isinf", x), *none = number(c->m, TYPE_bool, 0);
    if (!up)
        is = op3(c->m, "where", formula1(c->m, "x0 > 0", x), none, is);
    if (!down)
        is = op3(c->m, "where", formula1(c->m, "x0 < 0", x), none, is);
    c->out[0] = is;
}

void onnx_clip(OnnxCall *c)
{
    Value *x = c->in[0], *least = input_of(c, 1), *most = input_of(c, 2);
    int64_t unused[8];
    if (c->version < 6)
        ints_of(c, "consumed_inputs", unused, 8);
    if (c->version < 11) {
        const Onnx__Attribute *a = attribute(c, "min"), *b = attribute(c, "max");
        least = a != NULL ? number(c->m, x->type.dtype, (double)a->f) : NULL;
        most = b != NULL ? number(c->m, x->type.dtype, (double)b->f) : NULL;
    }
    x = least != NULL ? op2(c->m, "maximum", x, least) : x;
    c->out[0] = most != NULL ? op2(c->m, "minimum", x, most) : x;
}

void onnx_cast(OnnxCall *c)
{
    int64_t to = int_of(c, "to", 0);
    const char *word = c->version < 6 ? word_of(c, "to", "") : "";
    int_of(c, "saturate", 1);
    word_of(c, "round_mode", "up");
    if (*word) {
        refuse_node(c, "a type given as a word is not available in this version");
        return;
    }
    DType type = dtype_of(c, (int)to);
    c->out[0] = cast_to(c->m, c->in[0], type);
}

void onnx_cast_like(OnnxCall *c)
{
    int_of(c, "saturate", 1);
    word_of(c, "round_mode", "up");
    c->out[0] = cast_to(c->m, c->in[0], c->in[1]->type.dtype);
}

// --- Reductions --------------------------------------------------------------------------------------------------------

// The axes of a reduction; false where nothing is reduced (or after a failure).
static bool axes_of(OnnxCall *c, int since, int64_t *axes, int *n)
{
    int rank = rank_of(c->in[0]);
    bool nothing = c->version >= since && int_of(c, "noop_with_empty_axes", 0) != 0;
    if (c->version >= since)
        *n = input_of(c, 1) != NULL ? known_ints(c, c->in[1], "the axes", axes, RANK_MAX) : 0;
    else
        *n = ints_of(c, "axes", axes, RANK_MAX);
    if (c->m->failed)
        return false;
    if (*n <= 0 && nothing)
        return false;
    if (*n <= 0) {
        *n = rank;
        for (int i = 0; i < rank; i++)
            axes[i] = i;
    }
    for (int i = 0; i < *n; i++)
        axes[i] = axis_of(c, axes[i], rank);
    return !c->m->failed;
}

static Value *before_reduce(OnnxCall *c, Value *x, const char *how)
{
    return strcmp(how, "l1") == 0 ? op1(c->m, "abs", x) : strcmp(how, "l2") == 0 || strcmp(how, "square") == 0 ? op1(c->m, "square", x) : x;
}

static Value *after_reduce(OnnxCall *c, Value *x, const char *how)
{
    return strcmp(how, "l2") == 0 ? op1(c->m, "sqrt", x) : strcmp(how, "log") == 0 ? op1(c->m, "log", x) : x;
}

void onnx_reduce(OnnxCall *c)
{
    static const char *const ops[] = {"sum", "sum", "mean", "mean", "max", "max", "min", "min", "product", "product", "l1", "sum", "l2", "sum", "square", "sum", "log", "sum", "logsumexp", "logsumexp"};
    int64_t axes[RANK_MAX];
    int n = 0, since = strcmp(c->detail, "sum") == 0 ? 13 : 18;
    bool keep = int_of(c, "keepdims", 1) != 0, floats = type_is_float(c->in[0]->type.dtype);
    Value *x = c->in[0];
    const char *op = NULL;
    for (int i = 0; i < COUNT(ops); i += 2)
        op = strcmp(ops[i], c->detail) == 0 ? ops[i + 1] : op;
    bool must_float = strcmp(c->detail, "mean") == 0 || strcmp(c->detail, "l2") == 0 || strncmp(c->detail, "log", 3) == 0;
    if (!floats && must_float) {
        refuse_node(c, "whole numbers are not available in this version");
        return;
    }
    bool some = axes_of(c, since, axes, &n);
    if (c->m->failed)
        return;
    x = before_reduce(c, x, c->detail);
    if (some && n > 0) {
        if (x != NULL && x->type.dtype == TYPE_bool)
            op = strcmp(op, "max") == 0 ? "any" : strcmp(op, "min") == 0 ? "all" : op;
        x = reduced(c->m, op, x, n, axes, keep);
    } else if (!some && strcmp(c->detail, "logsumexp") == 0)
        x = c->in[0];
    c->out[0] = after_reduce(c, x, c->detail);
}

void onnx_arg(OnnxCall *c)
{
    Value *x = c->in[0];
    int64_t axis = axis_of(c, int_of(c, "axis", 0), rank_of(x)), n;
    bool keep = int_of(c, "keepdims", 1) != 0, last = int_of(c, "select_last_index", 0) != 0;
    if (c->m->failed)
        return;
    if (last) {
        OpCall flip = call1(c->m, "flip", x);
        call_ints(&flip, "axis", 1, &axis);
        x = emit(c->m, &flip);
    }
    OpCall call = call1(c->m, c->detail, x);
    call_int(&call, "axis", axis);
    call_bool(&call, "keep", keep);
    Value *at = cast_to(c->m, emit(c->m, &call), TYPE_i64);
    if (last && size_known(dim_of(c->in[0], (int)axis), &n))
        at = op2(c->m, "sub", number(c->m, TYPE_i64, (double)(n - 1)), at);
    else if (last)
        refuse_node(c, "select_last_index over an axis whose size is known only when running is not available in this version");
    c->out[0] = at;
}

// Before opset 13 all axes from one on are taken together.
static Value *as_rows(OnnxCall *c, int64_t *axis)
{
    Value *x = c->in[0];
    int rank = rank_of(x);
    *axis = int_of(c, "axis", c->version < 13 ? 1 : -1);
    if (c->version >= 13 || (*axis == rank - 1 && rank > 0) || (*axis == -1 && rank > 0)) {
        *axis = axis_of(c, *axis, rank);
        return x;
    }
    if (*axis < -rank || *axis > rank) {
        refuse_node(c, "axis %d is outside of %d axes", (int)*axis, rank);
        return NULL;
    }
    *axis += *axis < 0 ? rank : 0;
    Size rows[2] = {whole(c->m, 1), whole(c->m, 1)};
    for (int i = 0; i < rank; i++)
        rows[i >= *axis] = size_times(c->m->cx, rows[i >= *axis], dim_of(x, i));
    *axis = 1;
    return reshape_to(c->m, x, 2, rows);
}

void onnx_softmax(OnnxCall *c)
{
    int64_t axis;
    Value *x = as_rows(c, &axis);
    OpCall call = call1(c->m, c->detail, x);
    call_int(&call, "axis", axis);
    c->out[0] = reshape_to(c->m, emit(c->m, &call), rank_of(c->in[0]), c->in[0]->type.shape.dim);
}

// 0, 1, … along an axis, to be compared with.
static Value *places(Import *m, Value *like, int axis, DType type)
{
    Size dims[RANK_MAX];
    OpCall call = call_new(&m->b, "range", 0, NULL);
    call_sizes(&call, "count", 1, &like->type.shape.dim[axis]);
    call_type(&call, "type", type);
    for (int i = 0; i < rank_of(like); i++)
        dims[i] = i == axis ? dim_of(like, axis) : whole(m, 1);
    return reshape_to(m, emit(m, &call), rank_of(like), dims);
}

void onnx_hardmax(OnnxCall *c)
{
    int64_t axis;
    Value *x = as_rows(c, &axis);
    OpCall call = call1(c->m, "argmax", x);
    call_int(&call, "axis", axis);
    call_bool(&call, "keep", true);
    Value *best = emit(c->m, &call);
    if (best == NULL)
        return;
    Value *is = op2(c->m, "equal", places(c->m, x, (int)axis, TYPE_i32), best);
    c->out[0] = reshape_to(c->m, cast_to(c->m, is, x->type.dtype), rank_of(c->in[0]), c->in[0]->type.shape.dim);
}

// Sums along an axis: of what stands before (or behind) each element.
void onnx_cumulate(OnnxCall *c)
{
    Value *x = c->in[0];
    int64_t at, n;
    bool exclusive = int_of(c, "exclusive", 0) != 0, reverse = int_of(c, "reverse", 0) != 0;
    if (known_ints(c, c->in[1], "the axis", &at, 1) != 1)
        return;
    int axis = (int)axis_of(c, at, rank_of(x)), rank = rank_of(x);
    if (c->m->failed)
        return;
    if (!size_known(dim_of(x, axis), &n) || n > 4096 || rank == RANK_MAX) {
        refuse_node(c, "an axis of more than 4096 elements, or one whose size is known only when running, is not available in this version");
        return;
    }
    // x with a new axis behind `axis`, which is what the sum is over.
    Tensor *mask = tensor_new(c->m->cx->arena, TYPE_bool, 2, (int64_t[]){n, n});
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < n; k++)
            ((uint8_t *)mask->data)[i * n + k] = reverse ? (exclusive ? k > i : k >= i) : (exclusive ? k < i : k <= i);
    Size wide[RANK_MAX], of_mask[RANK_MAX];
    for (int i = 0; i <= rank; i++) {
        wide[i] = i == axis ? whole(c->m, 1) : dim_of(x, i < axis ? i : i - 1);
        of_mask[i] = i == axis || i == axis + 1 ? whole(c->m, n) : whole(c->m, 1);
    }
    Value *some = op3(c->m, "where", reshape_to(c->m, constant(c->m, mask), rank + 1, of_mask), reshape_to(c->m, x, rank + 1, wide),
                      number(c->m, x->type.dtype, strcmp(c->detail, "product") == 0));
    c->out[0] = reduced(c->m, c->detail, some, 1, (int64_t[]){axis + 1}, false);
}

// --- Matrix products ---------------------------------------------------------------------------------------------------

// Whole numbers: products, then sums, which wrap.
static Value *whole_matmul(Import *m, Value *a, Value *b)
{
    bool row = rank_of(a) == 1, column = rank_of(b) == 1;
    Size dims[RANK_MAX];
    if (rank_of(a) == 0 || rank_of(b) == 0 || rank_of(a) >= RANK_MAX || rank_of(b) >= RANK_MAX) {
        m->failed = true;
        return NULL;
    }
    if (row)
        a = reshape_to(m, a, 2, (Size[]){whole(m, 1), dim_of(a, 0)});
    if (column)
        b = reshape_to(m, b, 2, (Size[]){dim_of(b, 0), whole(m, 1)});
    int ra = rank_of(a), rb = rank_of(b);
    for (int i = 0; i < ra; i++)
        dims[i] = dim_of(a, i);
    dims[ra] = whole(m, 1);
    a = reshape_to(m, a, ra + 1, dims);
    for (int i = 0; i < rb - 2; i++)
        dims[i] = dim_of(b, i);
    dims[rb - 2] = whole(m, 1), dims[rb - 1] = dim_of(b, rb - 2), dims[rb] = dim_of(b, rb - 1);
    b = reshape_to(m, b, rb + 1, dims);
    Value *y = op2(m, "mul", a, b);
    if (y == NULL)
        return NULL;
    int rank = rank_of(y);
    y = reduced(m, "sum", y, 1, (int64_t[]){rank - 2}, false);
    int n = 0;
    for (int i = 0; y != NULL && i < rank - 1; i++)
        if (!(i == rank - 3 && row) && !(i == rank - 2 && column))
            dims[n++] = dim_of(y, i);
    return reshape_to(m, y, n, dims);
}

static Value *product_of(Import *m, Value *a, Value *b)
{
    return a != NULL && type_is_float(a->type.dtype) ? op2(m, "matmul", a, b) : whole_matmul(m, a, b);
}

void onnx_matmul(OnnxCall *c) { c->out[0] = product_of(c->m, c->in[0], c->in[1]); }

void onnx_gemm(OnnxCall *c)
{
    Value *a = c->in[0], *b = c->in[1], *bias = input_of(c, 2);
    double alpha = float_of(c, "alpha", 1), beta = float_of(c, "beta", 1);
    bool turn_a = int_of(c, "transA", 0) != 0, turn_b = int_of(c, "transB", 0) != 0;
    int64_t features;
    if (c->version < 7)
        int_of(c, "broadcast", 0);
    if (rank_of(a) != 2 || rank_of(b) != 2 || (bias != NULL && rank_of(bias) > 2)) {
        refuse_node(c, "it multiplies matrices");
        return;
    }
    bool plain = alpha == 1 && (beta == 1 || bias == NULL) && !turn_a && b->kind == VALUE_PARAM && size_known(dim_of(b, turn_b ? 0 : 1), &features);
    if (plain && type_is_float(a->type.dtype) && (bias == NULL || (rank_of(bias) == 1 && size_equal(dim_of(bias, 0), dim_of(b, turn_b ? 0 : 1))))) {
        OpCall call = call_new(&c->m->b, "dense", bias != NULL ? 3 : 2, (Value *[]){a, b, bias});
        call_int(&call, "features", features);
        call_bool(&call, "bias", bias != NULL);
        call_word(&call, "layout", turn_b ? "out_in" : "in_out");
        c->out[0] = emit(c->m, &call);
        return;
    }
    a = turn_a ? transposed(c->m, a, (int64_t[]){1, 0}) : a;
    b = turn_b ? transposed(c->m, b, (int64_t[]){1, 0}) : b;
    Value *y = product_of(c->m, a, b);
    if (y == NULL)
        return;
    if (alpha != 1)
        y = op2(c->m, "mul", y, number(c->m, y->type.dtype, alpha));
    if (bias != NULL && beta != 0)
        y = op2(c->m, "add", y, beta == 1 ? bias : op2(c->m, "mul", bias, number(c->m, bias->type.dtype, beta)));
    c->out[0] = y;
}

// a, b less their zero points, as i32.
static Value *less_zero(OnnxCall *c, Value *x, Value *zero, bool rows)
{
    x = cast_to(c->m, x, TYPE_i32);
    zero = cast_to(c->m, zero, TYPE_i32);
    if (zero == NULL)
        return x;
    if (rows && rank_of(zero) == 1 && rank_of(x) > 1)
        zero = reshape_to(c->m, zero, 2, (Size[]){dim_of(zero, 0), whole(c->m, 1)});
    return op2(c->m, "sub", x, zero);
}

void onnx_matmul_integer(OnnxCall *c)
{
    c->out[0] = whole_matmul(c->m, less_zero(c, c->in[0], input_of(c, 2), true), less_zero(c, c->in[1], input_of(c, 3), false));
}

void onnx_formula_any(OnnxCall *c)
{
    int64_t unused[8];
    if (c->version < 6)
        ints_of(c, "consumed_inputs", unused, 8);
    c->out[0] = formula1(c->m, c->detail, c->in[0]);
}
