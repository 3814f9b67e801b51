// reduce.c: ops that make one element of many: sums, extremes, and what is made from them; softmax.
#include "op.h"

#define REDUCE_ATTRS {.name = "axis", .kind = ATTR_INTS, .initial = "", .onnx = "axes", .brief = "along which axes; all if none are given"}, \
                     {.name = "keep", .kind = ATTR_BOOL, .initial = "false", .onnx = "keepdims", .brief = "reduced axes stay, with size 1"}
#define SUM_CASES    .cases = CASES("x: f32[2,3]", "x: f32[N,4,2]; axis = 1", "x: f32[2,3]; axis = [0, -1]; keep = true", "x: f32[]", "x: f32[0,3]; axis = 0", "x: f32[1]; axis = 0")
#define EXTREME_CASES .cases = CASES("x: f32[2,3]", "x: f32[N,4,2]; axis = 1", "x: f32[2,3]; axis = [0, -1]; keep = true", "x: f32[1]; axis = 0")
#define ALONG .along = "mixes"

static Size reduce_flops(Context *cx, const Node *node) { return shape_count(cx, &node->in[0]->type.shape); }

static Expr *first_value(Context *cx, const Node *node, Compute *out, Reduce reduce)
{
    const Shape *x = &node->in[0]->type.shape;
    bool axes[RANK_MAX], keep = node_flag(node, "keep");
    Expr *index[RANK_MAX];
    node_axes(node, "axis", x->rank, axes);
    compute_over(out, &node->out[0]->type.shape);
    for (int i = 0, at = 0; i < x->rank; i++) {
        index[i] = axes[i] ? e_axis(cx, compute_reduce(out, reduce, x->dim[i])) : e_axis(cx, at);
        at += keep || !axes[i];
    }
    return e_load(cx, node->in[0], index);
}

static void sum_compute(Context *cx, const Node *node, int output, Compute *out)  { (void)output; out->body = first_value(cx, node, out, REDUCE_SUM); }
static void prod_compute(Context *cx, const Node *node, int output, Compute *out) { (void)output; out->body = first_value(cx, node, out, REDUCE_PROD); }
static void max_compute(Context *cx, const Node *node, int output, Compute *out)  { (void)output; out->body = first_value(cx, node, out, REDUCE_MAX); }
static void min_compute(Context *cx, const Node *node, int output, Compute *out)  { (void)output; out->body = first_value(cx, node, out, REDUCE_MIN); }

// Something of the result's shape, with the reduced axes as size 1: it broadcasts against x.
static Value *beside_input(Builder *b, const Node *node, Value *v)
{
    const Shape *x = &node->in[0]->type.shape;
    bool axes[RANK_MAX];
    node_axes(node, "axis", x->rank, axes);
    return build_keep_axes(b, v, x, axes);
}

static void sum_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    dx[0] = build_repeat_to(b, beside_input(b, node, dy[0]), &node->in[0]->type.shape);
}

const OpDef op_sum = {
    .name = "sum", .brief = "the sum, over all elements or along axes",
    .doc = "Integers stay integers and wrap around. Floats are added in f32 at least, in an order that depends on shapes alone, so the bits do not depend on threads.", .inputs = "x: any", .outputs = "y", .example = "y = sum(x, axis = 1)", .attrs = {REDUCE_ATTRS},
    .shape = reduce_shape, .compute = sum_compute, .grad = sum_grad, .flops = reduce_flops, .traits = OP_DATA, ALONG, .precision = "f32", .onnx = {{"ReduceSum", 1, 0}}, SUM_CASES,
};

// --- mean, var, norm ------------------------------------------------------------------------------------------------------------

static Size reduced_count(Context *cx, const Node *node)
{
    const Shape *x = &node->in[0]->type.shape;
    bool axes[RANK_MAX];
    Size n = size_const(cx, 1);
    node_axes(node, "axis", x->rank, axes);
    for (int i = 0; i < x->rank; i++)
        n = axes[i] ? size_times(cx, n, x->dim[i]) : n;
    return n;
}

static Value *sum_like(Builder *b, const Node *node, Value *x)
{
    OpCall call = call_new(b, "sum", 1, &x);
    call_same(&call, node);
    return op_build(b, &call);
}

static bool mean_shape(OpCall *call)
{
    Shape both;
    if (call->n_in > 1 && call->in[1] != NULL &&
        (!shape_broadcast(call->cx, &call->in[0]->type.shape, &call->in[1]->type.shape, &both) || !shape_equal(&both, &call->in[0]->type.shape)))
        return op_error(call, MESSAGE_E0303, "mean", op_input_name(call, 0), type_text(call->cx, &call->in[0]->type), "where", type_text(call->cx, &call->in[1]->type));
    return reduce_shape(call);
}

static void mean_expand(Builder *b, const Node *node, Value **out)
{
    Value *x = node->in[0], *where = node->n_in > 1 ? node->in[1] : NULL;
    if (where == NULL) {
        out[0] = build_per(b, sum_like(b, node, x), size_const(b->cx, 1), reduced_count(b->cx, node));
        return;
    }
    where = build_repeat_to(b, where, &x->type.shape);
    Value *sum = sum_like(b, node, build_map2(b, "select(x0, x1, 0)", where, x));
    Value *count = sum_like(b, node, build_cast(b, where, x->type.dtype));
    out[0] = build_map2(b, "x0 / x1", sum, count);
}

const OpDef op_mean = {
    .name = "mean", .brief = "the mean, over all elements or along axes", .inputs = "x: float, where: bool?", .outputs = "y", .example = "y = mean(x, axis = [2, 3])",
    .doc = "With `where`, only the elements that it marks count; where it marks none, the result is NaN.", .attrs = {REDUCE_ATTRS},
    .shape = mean_shape, .expand = mean_expand, .flops = reduce_flops, .traits = OP_DATA, ALONG, .precision = "f32", .mean_over = "rows", .onnx = {{"ReduceMean", 1, 0}},
    .cases = CASES("x: f32[2,3]", "x: f32[N,4,2]; axis = 1", "x: f32[2,3]; axis = [0, -1]; keep = true", "x: f32[]", "x: f32[N,3,2,2]; axis = [2, 3]", "x: f32[2,8]; where: bool[2,8]"),
};

static bool per_shape(OpCall *call) { return same_shape(call); }

static void per_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Expr *index[RANK_MAX];
    Size times = node_attr(node, "times")->sizes[0], by = node_attr(node, "by")->sizes[0], one = size_const(cx, 1);
    DType type = node->out[0]->type.dtype;
    int64_t n;
    compute_over(out, &node->out[0]->type.shape);
    for (int i = 0; i < out->rank; i++)
        index[i] = e_axis(cx, i);
    out->body = e_load(cx, node->in[0], index);
    if (!size_equal(times, one))
        out->body = e_prim(cx, PRIM_mul, out->body, size_known(times, &n) ? expr_number(cx, type, (double)n) : expr_cast(cx, type, e_size(cx, times)));
    if (!size_equal(by, one))
        out->body = e_prim(cx, PRIM_div, out->body, size_known(by, &n) ? expr_number(cx, type, (double)n) : expr_cast(cx, type, e_size(cx, by)));
}

static void per_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    dx[0] = build_per(b, dy[0], node_attr(node, "times")->sizes[0], node_attr(node, "by")->sizes[0]);
}

const OpDef op_per = {
    .name = "per", .brief = "x times / by, for sizes that may be known only when running", .inputs = "x: float", .outputs = "y", .traits = OP_INTERNAL,
    .attrs = {{.name = "times", .kind = ATTR_SIZES, .initial = "1", .brief = "a size"}, {.name = "by", .kind = ATTR_SIZES, .initial = "1", .brief = "a size"}},
    .shape = per_shape, .compute = per_compute, .grad = per_grad, .along = "each", .precision = "any", .cases = CASES("x: f32[2,3]; by = 4", "x: f32[]; times = 3; by = 7"),
};

static void var_expand(Builder *b, const Node *node, Value **out)
{
    const Shape *x = &node->in[0]->type.shape;
    bool axes[RANK_MAX];
    node_axes(node, "axis", x->rank, axes);
    Size n = reduced_count(b->cx, node), less = size_minus(b->cx, n, size_const(b->cx, node_attr(node, "correction")->i));
    Value *mean = build_per(b, build_reduce(b, "sum", node->in[0], axes, true), size_const(b->cx, 1), n);
    Value *square = build_map2(b, "(x0 - x1) * (x0 - x1)", node->in[0], mean);
    out[0] = build_per(b, sum_like(b, node, square), size_const(b->cx, 1), less);
}

const OpDef op_var = {
    .name = "var", .brief = "the variance: the mean square distance from the mean", .inputs = "x: float", .outputs = "y", .example = "y = var(x, axis = 0)",
    .doc = "The sum of squares is divided by the number of elements less the correction. The mean is taken first: no digits cancel.",
    .attrs = {REDUCE_ATTRS, {.name = "correction", .kind = ATTR_INT, .initial = "1", .least = 0, .most = 1e9, .brief = "1 for a sample, 0 for all there is"}},
    .shape = reduce_shape, .expand = var_expand, .flops = reduce_flops, .traits = OP_DATA, ALONG, .precision = "f32", .cases = CASES("x: f32[2,3]", "x: f32[N,4,2]; axis = 1; correction = 0", "x: f32[3,2]; axis = 0; keep = true"),
};

static void std_expand(Builder *b, const Node *node, Value **out)
{
    OpCall call = call_new(b, "var", 1, node->in);
    call_same(&call, node);
    out[0] = build_map1(b, "select(x0 > 0, sqrt(x0), x0)", op_build(b, &call));
}

const OpDef op_std = {
    .name = "std", .brief = "the standard deviation: the square root of the variance", .inputs = "x: float", .outputs = "y", .example = "y = std(x, axis = 0)", .doc = "The gradient of equal elements is finite.",
    .attrs = {REDUCE_ATTRS, {.name = "correction", .kind = ATTR_INT, .initial = "1", .least = 0, .most = 1e9, .brief = "1 for a sample, 0 for all there is"}},
    .shape = reduce_shape, .expand = std_expand, .flops = reduce_flops, .traits = OP_DATA, ALONG, .precision = "f32", .cases = CASES("x: f32[2,3]", "x: f32[N,4,2]; axis = 1; correction = 0", "x: f32[3,2]; axis = 0; keep = true"),
};

static void norm_expand(Builder *b, const Node *node, Value **out)
{
    Value *sum = sum_like(b, node, build_map1(b, "x0 * x0", node->in[0]));
    out[0] = build_map1(b, "select(x0 > 0, sqrt(x0), x0)", sum);
}

const OpDef op_norm = {
    .name = "norm", .brief = "the length: the square root of the sum of squares", .inputs = "x: float", .outputs = "y", .example = "y = norm(x, axis = -1)", .attrs = {REDUCE_ATTRS},
    .doc = "The gradient of a vector of zeros is finite.", .shape = reduce_shape, .expand = norm_expand, .flops = reduce_flops, .traits = OP_DATA, ALONG, .precision = "f32",
    .onnx = {{"ReduceL2", 1, 0}}, .cases = CASES("x: f32[2,3]", "x: f32[N,4,2]; axis = 1", "x: f32[2,3]; axis = 0; keep = true"),
};

// --- prod -------------------------------------------------------------------------------------------------------------------------

// d prod / dx is the product of the others, also where one of them is 0.
static void prod_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    OpCall call = call_new(b, "prod_others", 1, node->in);
    call_same(&call, node);
    dx[0] = build_map2(b, "x0 * x1", op_build(b, &call), beside_input(b, node, dy[0]));
}

const OpDef op_product = {
    .name = "product", .brief = "the product, over all elements or along axes",
    .doc = "The gradient is the product of the others, right also where one of them is 0.", .inputs = "x: any", .outputs = "y", .example = "y = product(x, axis = 1)", .attrs = {REDUCE_ATTRS},
    .shape = reduce_shape, .compute = prod_compute, .grad = prod_grad, .flops = reduce_flops, .traits = OP_DATA, ALONG, .precision = "f32", .onnx = {{"ReduceProd", 1, 0}}, SUM_CASES,
};

static void prod_others_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    const Shape *x = &node->in[0]->type.shape;
    bool axes[RANK_MAX];
    Expr *index[RANK_MAX], *itself = NULL;
    node_axes(node, "axis", x->rank, axes);
    compute_over(out, x);
    for (int i = 0; i < x->rank; i++) {
        index[i] = e_axis(cx, i);
        if (!axes[i])
            continue;
        index[i] = e_axis(cx, compute_reduce(out, REDUCE_PROD, x->dim[i]));
        itself = e_and(cx, itself, e_prim(cx, PRIM_eq, index[i], e_axis(cx, i)));
    }
    Expr *value = e_load(cx, node->in[0], index), *one = e_value(cx, value->type, 1);
    out->body = itself == NULL ? one : e_select(cx, itself, one, value);
}

const OpDef op_prod_others = {
    .name = "prod_others", .brief = "for each element, the product of the others along axes", .inputs = "x: any", .outputs = "y", .traits = OP_INTERNAL, .attrs = {REDUCE_ATTRS},
    .shape = same_shape, .compute = prod_others_compute, .no_grad = "it is a gradient itself", .once = true, ALONG, .precision = "f32", .cases = CASES("x: f32[2,3]; axis = 1", "x: f32[4]"),
};

// --- max, min -----------------------------------------------------------------------------------------------------------------------

// Equal extremes share the gradient.
static void extreme_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    const Shape *x = &node->in[0]->type.shape;
    bool axes[RANK_MAX];
    node_axes(node, "axis", x->rank, axes);
    Value *y = beside_input(b, node, node->out[0]);
    Value *mark = build_map2(b, "select(x0 == x1, x0 - x0 + 1, x0 - x0)", node->in[0], y);
    Value *share = build_map2(b, "x0 / x1", beside_input(b, node, dy[0]), build_reduce(b, "sum", mark, axes, true));
    dx[0] = build_map3(b, "select(x0 == x1, x2, 0)", node->in[0], y, share);
}

const OpDef op_max = {
    .name = "max", .brief = "the largest, of all elements or along axes", .inputs = "x: any", .outputs = "y", .example = "y = max(x, axis = 1)", .attrs = {REDUCE_ATTRS},
    .doc = "NaN wins. Equal ones share the gradient. The larger of two values: maximum.",
    .shape = reduce_shape, .compute = max_compute, .grad = extreme_grad, .flops = reduce_flops, .traits = OP_DATA, ALONG, .precision = "any", .onnx = {{"ReduceMax", 1, 0}}, EXTREME_CASES,
};

const OpDef op_min = {
    .name = "min", .brief = "the smallest, of all elements or along axes", .inputs = "x: any", .outputs = "y", .example = "y = min(x, axis = 1)", .attrs = {REDUCE_ATTRS},
    .doc = "NaN wins. Equal ones share the gradient. The smaller of two values: minimum.",
    .shape = reduce_shape, .compute = min_compute, .grad = extreme_grad, .flops = reduce_flops, .traits = OP_DATA, ALONG, .precision = "any", .onnx = {{"ReduceMin", 1, 0}}, EXTREME_CASES,
};

// --- all, any -------------------------------------------------------------------------------------------------------------------------

static void truth_expand(Builder *b, const Node *node, const char *reduce, Value **out)
{
    OpCall call = call_new(b, reduce, 1, (Value *[]){build_cast(b, node->in[0], TYPE_i32)});
    call_same(&call, node);
    out[0] = build_map1(b, "x0 > 0", op_build(b, &call));      // of none: the largest is below 0, the smallest above
}

static void all_expand(Builder *b, const Node *node, Value **out) { truth_expand(b, node, "min", out); }
static void any_expand(Builder *b, const Node *node, Value **out) { truth_expand(b, node, "max", out); }

const OpDef op_all = {
    .name = "all", .brief = "whether all are true",
    .doc = "Of no elements: true.", .inputs = "x: bool", .outputs = "y", .example = "y = all(x > 0)", .attrs = {REDUCE_ATTRS}, .shape = reduce_shape, .expand = all_expand,
    .no_grad = "the result is true or false", .traits = OP_DATA, ALONG, .precision = "any", .cases = CASES("x: bool[2,3]", "x: bool[N,4]; axis = 1"),
};

const OpDef op_any = {
    .name = "any", .brief = "whether one is true",
    .doc = "Of no elements: false.", .inputs = "x: bool", .outputs = "y", .example = "y = any(isnan(x))", .attrs = {REDUCE_ATTRS}, .shape = reduce_shape, .expand = any_expand,
    .no_grad = "the result is true or false", .traits = OP_DATA, ALONG, .precision = "any", .cases = CASES("x: bool[2,3]", "x: bool[N,4]; axis = 1; keep = true"),
};

// --- argmax, argmin -------------------------------------------------------------------------------------------------------------------

#define ARG_ATTRS {.name = "axis", .kind = ATTR_INT, .initial = "-1", .brief = "along which axis"}, {.name = "keep", .kind = ATTR_BOOL, .initial = "false", .onnx = "keepdims", .brief = "the axis stays, with size 1"}

static bool arg_shape(OpCall *call)
{
    int axis;
    Type type = {.dtype = TYPE_i32};
    bool axes[RANK_MAX] = {false};
    const Shape *x = &call->in[0]->type.shape;
    if (!op_rank(call, 0, 1, RANK_MAX) || !op_axis(call, "axis", x->rank, &axis))
        return false;
    axes[axis] = true;
    type.shape = shape_without(call->cx, x, axes, call_attr(call, "keep")->i != 0);
    return op_one(call, type);
}

// Walks along the axis and remembers the first best place; NaN, once met, is the best.
static Loop *arg_lower(Context *cx, const Node *node, PrimId better)
{
    Value *x = node->in[0], *y = node->out[0];
    int axis = node_axis(node, "axis", x->type.shape.rank), rank = y->type.shape.rank;
    bool keep = node_flag(node, "keep");
    Expr *at[RANK_MAX], *index[RANK_MAX];
    Nest nest = nest_new(cx);
    for (int i = 0; i < rank; i++)
        at[i] = nest_for(&nest, i, y->type.shape.dim[i], i == 0 ? AXIS_PARALLEL : AXIS_SERIAL);
    for (int i = 0, from = 0; i < x->type.shape.rank; i++) {
        index[i] = i == axis ? e_whole(cx, 0) : at[from];
        from += keep || i != axis;
    }
    Loop *outer = nest.at;
    Expr *best = nest_local(&nest, x->type.dtype, e_load(cx, x, index)), *place = nest_local(&nest, TYPE_i64, e_whole(cx, 0));
    index[axis] = nest_for(&nest, rank, x->type.shape.dim[axis], AXIS_SERIAL);
    Expr *next = nest_let(&nest, e_load(cx, x, index)), *wins = e_prim(cx, better, next, best);
    if (type_is_float(x->type.dtype))
        wins = e_prim(cx, PRIM_or, wins, e_and(cx, e_prim(cx, PRIM_ne, next, next), e_prim(cx, PRIM_eq, best, best)));
    nest_if(&nest, wins);
    nest_update(&nest, best, REDUCE_NONE, next);
    nest_update(&nest, place, REDUCE_NONE, index[axis]);
    nest.at = outer;
    nest_store(&nest, y, at, expr_cast(cx, TYPE_i32, place));
    return nest.root;
}

static Loop *argmax_lower(Context *cx, const Node *node) { return arg_lower(cx, node, PRIM_gt); }
static Loop *argmin_lower(Context *cx, const Node *node) { return arg_lower(cx, node, PRIM_lt); }

const OpDef op_argmax = {
    .name = "argmax", .brief = "where the largest is, along an axis", .inputs = "x: any", .outputs = "y", .example = "class = argmax(logits)", .doc = "Of equal ones the first. NaN counts as the largest.",
    .attrs = {ARG_ATTRS}, .shape = arg_shape, .lower = argmax_lower, .flops = reduce_flops, .no_grad = "the result is a place, not a value", .traits = OP_DATA, ALONG, .precision = "any", .onnx = {{"ArgMax", 1, 0}},
    .cases = CASES("x: f32[2,3]", "x: f32[N,4,2]; axis = 1", "x: f32[3]; keep = true", "x: f32[2,1]"),
};

const OpDef op_argmin = {
    .name = "argmin", .brief = "where the smallest is, along an axis", .inputs = "x: any", .outputs = "y", .example = "nearest = argmin(distance)", .doc = "Of equal ones the first. NaN counts as the smallest.",
    .attrs = {ARG_ATTRS}, .shape = arg_shape, .lower = argmin_lower, .flops = reduce_flops, .no_grad = "the result is a place, not a value", .traits = OP_DATA, ALONG, .precision = "any", .onnx = {{"ArgMin", 1, 0}},
    .cases = CASES("x: f32[2,3]", "x: f32[N,4,2]; axis = 1", "x: f32[3]; keep = true"),
};

// --- logsumexp, softmax, log_softmax ------------------------------------------------------------------------------------------------------

// The largest, as something to be subtracted: no gradient goes through it, and where it is infinite it is 0.
static Value *largest(Builder *b, Value *x, const bool *axes)
{
    Value *most = build1(b, "stop_gradient", build_reduce(b, "max", x, axes, true), "");
    return build_map1(b, "select(x0 - x0 == 0, x0, 0)", most);
}

static void logsumexp_expand(Builder *b, const Node *node, Value **out)
{
    const Shape *x = &node->in[0]->type.shape;
    bool axes[RANK_MAX];
    node_axes(node, "axis", x->rank, axes);
    Value *most = largest(b, node->in[0], axes);
    Value *sum = build_reduce(b, "sum", build_map2(b, "exp(x0 - x1)", node->in[0], most), axes, true);
    Value *log = build_map2(b, "x1 + log(x0)", sum, most);
    out[0] = build_reshape(b, log, &node->out[0]->type.shape);
}

const OpDef op_logsumexp = {
    .name = "logsumexp", .brief = "log(sum(exp(x))), without overflow", .inputs = "x: float", .outputs = "y", .example = "y = logsumexp(x, axis = 1)", .attrs = {REDUCE_ATTRS},
    .doc = "m + log(sum(exp(x - m))), m the largest element.", .shape = reduce_shape, .expand = logsumexp_expand, .flops = reduce_flops, .traits = OP_DATA, ALONG, .precision = "f32",
    .onnx = {{"ReduceLogSumExp", 1, 0}}, .cases = CASES("x: f32[2,3]", "x: f32[N,4,2]; axis = 1", "x: f32[2,3]; axis = 0; keep = true", "x: f32[1]"),
};

#define SOFTMAX_ATTRS {.name = "axis", .kind = ATTR_INT, .initial = "-1", .brief = "along which axis"}

static bool softmax_shape(OpCall *call)
{
    int axis;
    return op_rank(call, 0, 1, RANK_MAX) && op_axis(call, "axis", call->in[0]->type.shape.rank, &axis) && same_shape(call);
}

static Value *shifted(Builder *b, const Node *node, bool *axes)
{
    Value *x = node->in[0];
    memset(axes, 0, RANK_MAX * sizeof *axes);
    axes[node_axis(node, "axis", x->type.shape.rank)] = true;
    return build_map2(b, "x0 - x1", x, largest(b, x, axes));
}

static void softmax_expand(Builder *b, const Node *node, Value **out)
{
    bool axes[RANK_MAX];
    Value *e = build_map1(b, "exp(x0)", shifted(b, node, axes));
    out[0] = build_map2(b, "x0 / x1", e, build_reduce(b, "sum", e, axes, true));
}

static void softmax_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    bool axes[RANK_MAX] = {false};
    Value *y = node->out[0];
    axes[node_axis(node, "axis", y->type.shape.rank)] = true;
    Value *sum = build_reduce(b, "sum", build_map2(b, "x0 * x1", y, dy[0]), axes, true);
    dx[0] = build_map3(b, "x0 * (x1 - x2)", y, dy[0], sum);
}

const OpDef op_softmax = {
    .name = "softmax", .brief = "exp(x) / sum(exp(x)) along an axis: numbers to probabilities", .inputs = "x: float", .outputs = "y", .example = "output probability = softmax(logits)",
    .doc = "The largest is subtracted first, so nothing overflows. The gradient is y (dy - sum(y dy)).", .attrs = {SOFTMAX_ATTRS}, .shape = softmax_shape, .expand = softmax_expand, .grad = softmax_grad,
    .traits = OP_DATA, ALONG, .precision = "f32", .onnx = {{"Softmax", 13, 0}}, .cases = CASES("x: f32[2,3]", "x: f32[N,4,2]; axis = 1", "x: f32[3]", "x: f32[2,1]", "x: f32[0,3]"),
};

static void log_softmax_expand(Builder *b, const Node *node, Value **out)
{
    bool axes[RANK_MAX];
    Value *z = shifted(b, node, axes);
    Value *sum = build_reduce(b, "sum", build_map1(b, "exp(x0)", z), axes, true);
    out[0] = build_map2(b, "x0 - log(x1)", z, sum);
}

static void log_softmax_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    bool axes[RANK_MAX] = {false};
    Value *y = node->out[0];
    axes[node_axis(node, "axis", y->type.shape.rank)] = true;
    dx[0] = build_map3(b, "x1 - exp(x0) * x2", y, dy[0], build_reduce(b, "sum", dy[0], axes, true));
}

const OpDef op_log_softmax = {
    .name = "log_softmax", .brief = "the logarithm of softmax, without its loss of digits", .inputs = "x: float", .outputs = "y", .example = "y = log_softmax(logits)", .attrs = {SOFTMAX_ATTRS},
    .doc = "x - m - log(sum(exp(x - m))), m the largest element.", .shape = softmax_shape, .expand = log_softmax_expand, .grad = log_softmax_grad, .traits = OP_DATA, ALONG, .precision = "f32",
    .onnx = {{"LogSoftmax", 13, 0}}, .cases = CASES("x: f32[2,3]", "x: f32[N,4,2]; axis = 1", "x: f32[3]", "x: f32[2,1]"),
};
