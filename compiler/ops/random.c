// random.c: chance. Every number is a function of (seed, step, which op, which element), so it does not depend on threads, on
// order, or on whether a run was resumed.
#include "op.h"

#define RANDOM_ATTRS {.name = "shape", .kind = ATTR_SIZES, .initial = "", .positional = true, .brief = "of the result; or `like` gives it"}
#define RANDOM_TYPE  {.name = "type", .kind = ATTR_TYPE, .initial = "", .onnx = "dtype", .brief = "of the result; that of a float `like`, or f32"}

static bool random_shape(OpCall *call)
{
    Type type = type_like(call, TYPE_f32);
    if (type.shape.rank >= 0 && !type_is_float(type.dtype))
        return op_error(call, MESSAGE_E0311, arena_printf(call->cx->arena, "type of %s", call->op->name), "a float type", type_def(type.dtype)->name);
    return type.shape.rank >= 0 && op_one(call, type);
}

static bool random_int_shape(OpCall *call)
{
    Type type = type_like(call, TYPE_i32);
    if (call_attr(call, "below")->i <= call_attr(call, "from")->i)
        return op_error(call, MESSAGE_E0311, "below of random_int", "above from", arena_printf(call->cx->arena, "%d", (int)call_attr(call, "below")->i));
    return type.shape.rank >= 0 && op_one(call, type);
}

static Expr *element_number(Context *cx, const Compute *out)
{
    Expr *at = e_whole(cx, 0);
    for (int i = 0; i < out->rank; i++)
        at = e_add(cx, e_mul(cx, at, e_size(cx, out->extent[i])), e_axis(cx, i));
    return at;
}

// Uniform in [0, 1): number `place` of this node in this step.
static Expr *drawn(Context *cx, const Node *node, Expr *place)
{
    Expr *e = expr_prim(cx, PRIM_random, e_whole(cx, node->salt), place, NULL);
    e->type = TYPE_f32;
    return e;
}

static void random_uniform_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    double from = node_attr(node, "from")->f, to = node_attr(node, "to")->f;
    compute_over(out, &node->out[0]->type.shape);
    Expr *u = drawn(cx, node, element_number(cx, out));
    if (to - from != 1)
        u = e_prim(cx, PRIM_mul, u, expr_number(cx, TYPE_f32, to - from));
    if (from != 0)
        u = e_prim(cx, PRIM_add, u, expr_number(cx, TYPE_f32, from));
    out->body = expr_cast(cx, node->out[0]->type.dtype, u);
}

const OpDef op_random_uniform = {
    .name = "random_uniform", .brief = "uniform numbers in from … to", .inputs = "like: any?", .outputs = "y", .example = "z = random_uniform([N, 10], from = -1)",
    .doc = "Multiples of 2^-24 before they are scaled. `like` gives the shape, and nothing depends on its elements.",
    .attrs = {RANDOM_ATTRS, {.name = "from", .kind = ATTR_FLOAT, .initial = "0", .onnx = "low", .brief = "included"}, {.name = "to", .kind = ATTR_FLOAT, .initial = "1", .onnx = "high", .brief = "not included"}, RANDOM_TYPE},
    .shape = random_shape, .compute = random_uniform_compute, .no_grad = "it has no input", .traits = OP_RANDOM | OP_DATA, .along = "each", .precision = "any", .onnx = {{"RandomUniform", 1, 0}},
    .cases = CASES("shape = [2, 3]", "shape = [3]; from = -1; to = 2", "like: i32[N,5]"),
};

// Box and Muller 1958: two uniform numbers give one normal.
static void random_normal_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    double mean = node_attr(node, "mean")->f, std = node_attr(node, "std")->f;
    compute_over(out, &node->out[0]->type.shape);
    Expr *first = e_mul(cx, element_number(cx, out), e_whole(cx, 2)), *one = expr_number(cx, TYPE_f32, 1);
    Expr *u = e_prim(cx, PRIM_sub, one, drawn(cx, node, first)), *v = drawn(cx, node, e_add(cx, first, e_whole(cx, 1)));
    Expr *length = expr_prim(cx, PRIM_sqrt, e_prim(cx, PRIM_mul, expr_number(cx, TYPE_f32, -2), expr_prim(cx, PRIM_log, u, NULL, NULL)), NULL, NULL);
    Expr *x = e_prim(cx, PRIM_mul, length, expr_prim(cx, PRIM_cos, e_prim(cx, PRIM_mul, expr_number(cx, TYPE_f32, 6.283185307179586), v), NULL, NULL));
    if (std != 1)
        x = e_prim(cx, PRIM_mul, x, expr_number(cx, TYPE_f32, std));
    x = mean == 0 ? x : e_prim(cx, PRIM_add, x, expr_number(cx, TYPE_f32, mean));
    out->body = expr_cast(cx, node->out[0]->type.dtype, x);
}

const OpDef op_random_normal = {
    .name = "random_normal", .brief = "normally distributed numbers", .doc = "By Box and Muller (1958). `like` gives the shape, and nothing depends on its elements.", .inputs = "like: any?", .outputs = "y", .example = "z = random_normal([N, 10])",
    .attrs = {RANDOM_ATTRS, {.name = "std", .kind = ATTR_FLOAT, .initial = "1", .least = 0, .most = 1e30, .onnx = "scale", .brief = "the standard deviation"}, {.name = "mean", .kind = ATTR_FLOAT, .initial = "0", .brief = "the mean"}, RANDOM_TYPE},
    .shape = random_shape, .compute = random_normal_compute, .no_grad = "it has no input", .traits = OP_RANDOM | OP_DATA, .along = "each", .precision = "any", .onnx = {{"RandomNormal", 1, 0}},
    .cases = CASES("shape = [2, 3]", "shape = [4]; std = 2; mean = 1", "like: f32[N,1]"),
};

// --- one number everywhere ----------------------------------------------------------------------------------------------------------

#define FILL_ATTRS {.name = "shape", .kind = ATTR_SIZES, .initial = "", .positional = true, .brief = "of the result; or `like` gives it"}, \
                   {.name = "type", .kind = ATTR_TYPE, .initial = "", .brief = "of the result; that of `like`, or f32"}
#define FILL .no_grad = "it has no input", .traits = OP_DATA, .along = "each", .precision = "any"

static bool fill_shape(OpCall *call)
{
    Type type = type_like(call, TYPE_NONE);
    return type.shape.rank >= 0 && op_one(call, type);
}

static void fill_with(Context *cx, const Node *node, double x, Compute *out)
{
    compute_over(out, &node->out[0]->type.shape);
    out->body = e_value(cx, node->out[0]->type.dtype, x);
}

static void zeros_compute(Context *cx, const Node *node, int output, Compute *out) { (void)output; fill_with(cx, node, 0, out); }
static void ones_compute(Context *cx, const Node *node, int output, Compute *out)  { (void)output; fill_with(cx, node, 1, out); }
static void full_compute(Context *cx, const Node *node, int output, Compute *out)  { (void)output; fill_with(cx, node, node_attr(node, "value")->f, out); }

static void random_int_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    int64_t from = node_attr(node, "from")->i, below = node_attr(node, "below")->i;
    compute_over(out, &node->out[0]->type.shape);
    Expr *u = e_prim(cx, PRIM_mul, drawn(cx, node, element_number(cx, out)), expr_number(cx, TYPE_f32, (double)(below - from)));
    out->body = e_add(cx, expr_cast(cx, TYPE_i64, u), e_whole(cx, from));
    out->body = expr_cast(cx, node->out[0]->type.dtype, out->body);
}

const OpDef op_random_int = {
    .name = "random_int", .brief = "whole numbers in from … below - 1, each as likely", .inputs = "like: any?", .outputs = "y", .example = "word = random_int(like = tokens, below = vocab)",
    .doc = "Of 2^24 steps, so a range of n numbers is even to n / 2^24. `like` gives the shape, and nothing depends on its elements.",
    .attrs = {RANDOM_ATTRS, {.name = "below", .kind = ATTR_INT, .least = -8388608, .most = 8388608, .brief = "one more than the largest"}, {.name = "from", .kind = ATTR_INT, .initial = "0", .least = -8388608, .most = 8388608, .brief = "the smallest"},
              {.name = "type", .kind = ATTR_TYPE, .initial = "", .brief = "of the result; that of an integer `like`, or i32"}},
    .shape = random_int_shape, .compute = random_int_compute, .no_grad = "it has no input", .traits = OP_RANDOM | OP_DATA, .along = "each", .precision = "any", .cases = CASES("shape = [2, 3]; below = 5", "like: i64[N]; below = 3; from = -2", "like: f32[7]; below = 2"),
};

const OpDef op_zeros = {
    .name = "zeros", .brief = "zeros of a given shape", .inputs = "like: any?", .outputs = "y", .example = "segments = zeros(like = tokens)", .attrs = {FILL_ATTRS}, .shape = fill_shape, .compute = zeros_compute, FILL, .onnx = {{"ConstantOfShape", 9, 0}},
    .doc = "`like` gives shape and element type, and nothing depends on its elements.", .cases = CASES("shape = [2, 3]", "like: i32[N,5]", "like: f32[3]; type = i64", "shape = []"),
};

const OpDef op_ones = {
    .name = "ones", .brief = "ones of a given shape", .inputs = "like: any?", .outputs = "y", .example = "x = ones([N, 1])", .attrs = {FILL_ATTRS}, .shape = fill_shape, .compute = ones_compute, FILL, .doc = "`like` gives shape and element type, and nothing depends on its elements.",
    .cases = CASES("shape = [2, 3]", "like: bool[N,5]", "shape = 7; type = u8"),
};

const OpDef op_full = {
    .name = "full", .brief = "one number, of a given shape", .inputs = "like: any?", .outputs = "y", .example = "x = full([2, 3], value = 0.5)", .attrs = {FILL_ATTRS, {.name = "value", .kind = ATTR_FLOAT, .brief = "the number; of integers without its fraction"}}, .shape = fill_shape,
    .compute = full_compute, FILL, .doc = "`like` gives shape and element type, and nothing depends on its elements.", .onnx = {{"ConstantOfShape", 9, 0}}, .cases = CASES("shape = [2, 3]; value = -0.5", "like: i32[N]; value = 7", "shape = [0]; value = 1"),
};

// --- dropout ------------------------------------------------------------------------------------------------------------------------

static void dropout_expand(Builder *b, const Node *node, Value **out)
{
    Value *x = node->in[0];
    double rate = node_attr(node, "rate")->f;
    if (!b->training || rate == 0) {
        out[0] = x;
        return;
    }
    OpCall call = call_new(b, "random_uniform", 0, NULL);
    call_sizes(&call, "shape", x->type.shape.rank, x->type.shape.dim);
    Value *chance = build_cast(b, op_build(b, &call), x->type.dtype);
    out[0] = build_map2(b, arena_printf(b->cx->arena, "select(x1 < %.17g, 0, x0 * %.17g)", rate, rate < 1 ? 1 / (1 - rate) : 0), x, chance);
}

const OpDef op_dropout = {
    .name = "dropout", .brief = "in training each element becomes 0 with a probability; the others grow to keep the mean (Srivastava et al. 2014)",
    .doc = "y = x / (1 - rate) with probability 1 - rate, else 0; in evaluation and in what is deployed y = x.", .inputs = "x: float", .outputs = "y", .example = "y = dropout(x, 0.5)",
    .attrs = {{.name = "rate", .kind = ATTR_FLOAT, .initial = "0.5", .least = 0, .most = 1, .positional = true, .onnx = "ratio", .brief = "the probability"}},
    .shape = same_shape, .expand = dropout_expand, .traits = OP_RANDOM | OP_MODE, .along = "each", .precision = "any", .onnx = {{"Dropout", 7, 0}},
    .cases = CASES("x: f32[2,3]; rate = 0.5", "x: f32[N,4]; rate = 0", "x: f32[3]; rate = 0.25"),
};
