// random.c: chance. Every number is a function of (seed, step, which op, which element), so it does not depend on threads, on
// order, or on whether a run was resumed.
#include "op.h"

#define RANDOM_ATTRS {.name = "shape", .kind = ATTR_SIZES, .positional = true, .brief = "of the result"}

static bool random_shape(OpCall *call)
{
    const Attr *sizes = call_attr(call, "shape");
    Type type = {.dtype = TYPE_f32, .shape = {.rank = sizes->count}};
    for (int i = 0; i < sizes->count; i++)
        type.shape.dim[i] = sizes->sizes[i];
    return op_one(call, type);
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
    double low = node_attr(node, "low")->f, high = node_attr(node, "high")->f;
    compute_over(out, &node->out[0]->type.shape);
    Expr *u = drawn(cx, node, element_number(cx, out));
    if (low == 0 && high == 1) {
        out->body = u;
        return;
    }
    u = e_prim(cx, PRIM_mul, u, expr_number(cx, TYPE_f32, high - low));
    out->body = low == 0 ? u : e_prim(cx, PRIM_add, u, expr_number(cx, TYPE_f32, low));
}

const OpDef op_random_uniform = {
    .name = "random_uniform", .brief = "uniform in low … high", .inputs = "", .outputs = "y", .example = "z = random_uniform([N, 10])",
    .attrs = {RANDOM_ATTRS, {.name = "low", .kind = ATTR_FLOAT, .initial = "0", .brief = "included"}, {.name = "high", .kind = ATTR_FLOAT, .initial = "1", .brief = "not included"}},
    .shape = random_shape, .compute = random_uniform_compute, .no_grad = "it has no input", .traits = OP_RANDOM | OP_DATA, .along = "each", .precision = "any", .onnx = {{"RandomUniform", 1, 0}},
    .cases = CASES("shape = [2, 3]", "shape = [3]; low = -1; high = 2"),
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
    out->body = mean == 0 ? x : e_prim(cx, PRIM_add, x, expr_number(cx, TYPE_f32, mean));
}

const OpDef op_random_normal = {
    .name = "random_normal", .brief = "normally distributed numbers", .inputs = "", .outputs = "y", .example = "z = random_normal([N, 10])",
    .attrs = {RANDOM_ATTRS, {.name = "std", .kind = ATTR_FLOAT, .initial = "1", .least = 0, .most = 1e30, .onnx = "scale", .brief = "the standard deviation"}, {.name = "mean", .kind = ATTR_FLOAT, .initial = "0", .brief = "the mean"}},
    .shape = random_shape, .compute = random_normal_compute, .no_grad = "it has no input", .traits = OP_RANDOM | OP_DATA, .along = "each", .precision = "any", .onnx = {{"RandomNormal", 1, 0}},
    .cases = CASES("shape = [2, 3]", "shape = [4]; std = 2; mean = 1"),
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
    .name = "dropout", .brief = "in training each element becomes 0 with a probability; the others grow to keep the mean (Srivastava et al. 2014)", .inputs = "x: float", .outputs = "y", .example = "y = dropout(x, 0.5)",
    .attrs = {{.name = "rate", .kind = ATTR_FLOAT, .initial = "0.5", .least = 0, .most = 1, .positional = true, .onnx = "ratio", .brief = "the probability"}},
    .shape = same_shape, .expand = dropout_expand, .traits = OP_RANDOM | OP_MODE, .along = "each", .precision = "any", .onnx = {{"Dropout", 7, 0}},
    .cases = CASES("x: f32[2,3]; rate = 0.5", "x: f32[N,4]; rate = 0", "x: f32[3]; rate = 0.25"),
};
