// order.c: what goes along an axis in order: the k largest, sorting, running sums and products.
#include "op.h"

static Size along_flops(Context *cx, const Node *node) { return shape_count(cx, &node->in[0]->type.shape); }

// Loops over all axes but one; index[axis] is left to the caller.
static void but_axis(Nest *nest, const Shape *shape, int axis, Expr **index)
{
    bool first = true;
    for (int i = 0; i < shape->rank; i++)
        if (i != axis) {
            index[i] = nest_for(nest, i, shape->dim[i], first ? AXIS_PARALLEL : AXIS_SERIAL);
            first = false;
        }
}

static bool axis_shape(OpCall *call)
{
    int axis;
    return op_rank(call, 0, 1, RANK_MAX) && op_axis(call, "axis", call->in[0]->type.shape.rank, &axis) && same_shape(call);
}

// --- topk, sort -------------------------------------------------------------------------------------------------------------------

#define ORDER_AXIS {.name = "axis", .kind = ATTR_INT, .initial = "-1", .brief = "along which axis"}

static bool topk_shape(OpCall *call)
{
    Type type = call->in[0]->type;
    Size k = call_attr(call, "k")->sizes[0];
    int64_t n, most;
    int axis;
    if (!op_rank(call, 0, 1, RANK_MAX) || !op_axis(call, "axis", type.shape.rank, &axis))
        return false;
    if (size_known(k, &n) && size_known(type.shape.dim[axis], &most) && (n < 0 || n > most))
        return op_error(call, MESSAGE_E0318, "k", call->op->name, "0", arena_printf(call->cx->arena, "%d", (int)most), arena_printf(call->cx->arena, "%d", (int)n));
    type.shape.dim[axis] = k;
    call->n_out = 2;
    call->out[0] = call->out[1] = type;
    call->out[1].dtype = TYPE_i32;
    return true;
}

// Whether a comes before b: it is better, or it is NaN and b is not.
static Expr *comes_before(Context *cx, PrimId better, Expr *a, Expr *b)
{
    Expr *wins = e_prim(cx, better, a, b);
    return type_is_float(a->type) ? e_prim(cx, PRIM_or, wins, e_prim(cx, PRIM_and, e_prim(cx, PRIM_ne, a, a), e_prim(cx, PRIM_eq, b, b))) : wins;
}

static Expr *not_after(Context *cx, PrimId better, Expr *a, Expr *b) { return expr_prim(cx, PRIM_not, comes_before(cx, better, b, a), NULL, NULL); }

// Turn r finds the best of what comes behind the one found before, ties by their places. k turns over n elements: for the few
// largest of many that is the least; sorting by it is quadratic.
static Loop *topk_lower(Context *cx, const Node *node)
{
    Value *x = node->in[0], *y = node->out[0], *places = node->out[1];
    const Shape *shape = &x->type.shape;
    int rank = shape->rank, axis = node_axis(node, "axis", rank);
    bool largest = node_flag(node, "largest");
    PrimId better = largest ? PRIM_gt : PRIM_lt;
    Expr *at[RANK_MAX], *from[RANK_MAX], *none = e_whole(cx, -1);
    Nest nest = nest_new(cx);
    but_axis(&nest, shape, axis, at);
    memcpy(from, at, sizeof at);
    Expr *start = largest ? e_greatest(cx, x->type.dtype) : e_least(cx, x->type.dtype);
    Expr *last = nest_local(&nest, x->type.dtype, start), *last_place = nest_local(&nest, TYPE_i64, none);
    at[axis] = nest_for(&nest, rank, y->type.shape.dim[axis], AXIS_SERIAL);
    Loop *turn = nest.at;
    Expr *best = nest_local(&nest, x->type.dtype, start), *place = nest_local(&nest, TYPE_i64, none);
    from[axis] = nest_for(&nest, rank + 1, shape->dim[axis], AXIS_SERIAL);
    Expr *next = nest_let(&nest, e_load(cx, x, from));
    Expr *tie = e_prim(cx, PRIM_and, not_after(cx, better, last, next), e_prim(cx, PRIM_gt, from[axis], last_place));
    Expr *behind = e_prim(cx, PRIM_or, e_prim(cx, PRIM_lt, last_place, e_whole(cx, 0)), e_prim(cx, PRIM_or, comes_before(cx, better, last, next), tie));
    nest_if(&nest, e_prim(cx, PRIM_and, behind, e_prim(cx, PRIM_or, e_prim(cx, PRIM_lt, place, e_whole(cx, 0)), comes_before(cx, better, next, best))));
    nest_update(&nest, best, REDUCE_NONE, next);
    nest_update(&nest, place, REDUCE_NONE, from[axis]);
    nest.at = turn;
    nest_store(&nest, y, at, best);
    nest_store(&nest, places, at, expr_cast(cx, TYPE_i32, place));
    nest_update(&nest, last, REDUCE_NONE, best);
    nest_update(&nest, last_place, REDUCE_NONE, place);
    return nest.root;
}

static void topk_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    OpCall call = call_new(b, "scatter_elements", 3, (Value *[]){build_map1(b, "x0 - x0", node->in[0]), node->out[1], dy[0]});
    call_same(&call, node);
    call_word(&call, "reduce", "sum");
    dx[0] = op_build(b, &call);
}

const OpDef op_topk = {
    .name = "topk", .brief = "the k largest along an axis, in order, and where they are", .inputs = "x: any", .outputs = "y, index", .example = "best, where = topk(logits, 5)",
    .doc = "Of equal ones the one that stands first comes first. NaN counts as the largest. The first result alone, where one is wanted.",
    .attrs = {{.name = "k", .kind = ATTR_SIZES, .positional = true, .brief = "how many"}, ORDER_AXIS, {.name = "largest", .kind = ATTR_BOOL, .initial = "true", .brief = "false: the k smallest"}},
    .shape = topk_shape, .lower = topk_lower, .grad = topk_grad, .flops = along_flops, .traits = OP_DATA, .along = "mixes", .precision = "any", .onnx = {{"TopK", 1, 0}},
    .cases = CASES("x: f32[2,5]; k = 3", "x: f32[N,7,2]; k = 2; axis = 1; largest = false", "x: i32[5] in 0 2; k = 5", "x: f32[1]; k = 1", "x: f32[3]; k = 0"),
};

static bool sort_shape(OpCall *call)
{
    if (!axis_shape(call))
        return false;
    call->n_out = 2;
    call->out[1] = call->out[0];
    call->out[1].dtype = TYPE_i32;
    return true;
}

static void sort_expand(Builder *b, const Node *node, Value **out)
{
    const Shape *x = &node->in[0]->type.shape;
    OpCall call = call_new(b, "topk", 1, node->in);
    call_sizes(&call, "k", 1, &x->dim[node_axis(node, "axis", x->rank)]);
    call_int(&call, "axis", node_attr(node, "axis")->i);
    call_bool(&call, "largest", node_flag(node, "descending"));
    op_build_all(b, &call, out);
}

const OpDef op_sort = {
    .name = "sort", .brief = "all along an axis, in order, and where they were", .inputs = "x: any", .outputs = "y, index", .example = "sorted, order = sort(x, descending = true)",
    .doc = "Stable: equal ones keep their order. NaN counts as the largest. The time is quadratic in the length; for the few largest of many: topk.",
    .attrs = {ORDER_AXIS, {.name = "descending", .kind = ATTR_BOOL, .initial = "false", .brief = "the largest first"}}, .shape = sort_shape, .expand = sort_expand, .traits = OP_DATA, .along = "mixes", .precision = "any",
    .cases = CASES("x: f32[2,5]", "x: f32[N,3,2]; axis = 1; descending = true", "x: i32[7] in 0 3", "x: f32[1]", "x: f32[2,N]"),
};

// --- cumsum, cumprod ----------------------------------------------------------------------------------------------------------------

#define RUN_ATTRS {.name = "axis", .kind = ATTR_INT, .initial = "0", .positional = true, .brief = "along which axis"}, \
                  {.name = "exclusive", .kind = ATTR_BOOL, .initial = "false", .brief = "each place without its own element"}, {.name = "reverse", .kind = ATTR_BOOL, .initial = "false", .brief = "from the end to the beginning"}
#define RUN_CASES .cases = CASES("x: f32[2,5]; axis = 1", "x: f32[N,3]", "x: f32[4,2]; exclusive = true", "x: f32[3,2]; axis = -1; reverse = true", "x: f32[1,5]; axis = 1; exclusive = true; reverse = true", "x: f32[0]")

static Loop *run_lower(Context *cx, const Node *node, Reduce reduce)
{
    Value *x = node->in[0], *y = node->out[0];
    const Shape *shape = &x->type.shape;
    int axis = node_axis(node, "axis", shape->rank);
    bool exclusive = node_flag(node, "exclusive");
    Expr *at[RANK_MAX];
    Nest nest = nest_new(cx);
    but_axis(&nest, shape, axis, at);
    Expr *so_far = nest_local(&nest, x->type.dtype, e_value(cx, x->type.dtype, reduce == REDUCE_PROD));
    Expr *i = nest_for(&nest, axis, shape->dim[axis], AXIS_SERIAL);
    at[axis] = node_flag(node, "reverse") ? e_sub(cx, e_size(cx, size_minus(cx, shape->dim[axis], size_const(cx, 1))), i) : i;
    Expr *value = nest_let(&nest, e_load(cx, x, at));
    if (exclusive)
        nest_store(&nest, y, at, so_far);
    nest_update(&nest, so_far, reduce, value);
    if (!exclusive)
        nest_store(&nest, y, at, so_far);
    return nest.root;
}

static Loop *cumsum_lower(Context *cx, const Node *node)  { return run_lower(cx, node, REDUCE_SUM); }
static Loop *cumprod_lower(Context *cx, const Node *node) { return run_lower(cx, node, REDUCE_PROD); }

static void cumsum_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    OpCall call = call_new(b, "cumsum", 1, dy);
    call_same(&call, node);
    call_bool(&call, "reverse", !node_flag(node, "reverse"));
    dx[0] = op_build(b, &call);
}

const OpDef op_cumsum = {
    .name = "cumsum", .brief = "running sums along an axis", .inputs = "x: any", .outputs = "y", .example = "position = cumsum(mask, axis = 1)", .attrs = {RUN_ATTRS}, .shape = axis_shape, .lower = cumsum_lower, .grad = cumsum_grad,
    .doc = "y[i] = x[0] + … + x[i]; exclusive: without x[i]; reverse: from the end.", .flops = along_flops, .traits = OP_DATA, .along = "back", .precision = "f32", .onnx = {{"CumSum", 11, 0}}, RUN_CASES,
};

static void cumprod_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    OpCall call = call_new(b, "cumprod_grad", 2, (Value *[]){node->in[0], dy[0]});
    call_same(&call, node);
    dx[0] = op_build(b, &call);
}

const OpDef op_cumprod = {
    .name = "cumprod", .brief = "running products along an axis", .inputs = "x: any", .outputs = "y", .example = "left = cumprod(1 - alpha, axis = 1, exclusive = true)", .attrs = {RUN_ATTRS}, .shape = axis_shape, .lower = cumprod_lower,
    .doc = "y[i] = x[0] … x[i]; exclusive: without x[i]; reverse: from the end. The gradient is right also where elements are 0, and quadratic in the length.", .grad = cumprod_grad, .flops = along_flops, .traits = OP_DATA, .along = "back",
    .precision = "f32", .onnx = {{"CumProd", 26, 0}}, RUN_CASES,
};

// dx[i] = sum over k from i on of dy[k] times the product of all x[j], j <= k, but x[i]. Exclusive: k from i + 1 on, j < k.
static Loop *cumprod_grad_lower(Context *cx, const Node *node)
{
    Value *x = node->in[0], *dy = node->in[1], *dx = node->out[0];
    const Shape *shape = &x->type.shape;
    int rank = shape->rank, axis = node_axis(node, "axis", rank);
    bool exclusive = node_flag(node, "exclusive"), reverse = node_flag(node, "reverse");
    Expr *at[RANK_MAX], *of[RANK_MAX], *last = e_size(cx, size_minus(cx, shape->dim[axis], size_const(cx, 1)));
    DType type = x->type.dtype;
    Nest nest = nest_new(cx);
    but_axis(&nest, shape, axis, at);
    memcpy(of, at, sizeof at);
    Expr *i = nest_for(&nest, axis, shape->dim[axis], AXIS_SERIAL);
    at[axis] = reverse ? e_sub(cx, last, i) : i;
    Loop *outer = nest.at;
    Expr *product = nest_local(&nest, type, e_value(cx, type, 1)), *sum = nest_local(&nest, type, e_zero(cx, type));
    Expr *k = nest_for(&nest, rank, shape->dim[axis], AXIS_SERIAL);
    of[axis] = reverse ? e_sub(cx, last, k) : k;
    Expr *others = e_select(cx, e_prim(cx, PRIM_eq, k, i), e_value(cx, type, 1), e_load(cx, x, of));
    Expr *part = e_select(cx, e_prim(cx, exclusive ? PRIM_gt : PRIM_ge, k, i), e_prim(cx, PRIM_mul, e_load(cx, dy, of), product), e_zero(cx, type));
    if (!exclusive)
        nest_update(&nest, product, REDUCE_PROD, others);
    nest_update(&nest, sum, REDUCE_SUM, part);
    if (exclusive)
        nest_update(&nest, product, REDUCE_PROD, others);
    nest.at = outer;
    nest_store(&nest, dx, at, sum);
    return nest.root;
}

const OpDef op_cumprod_grad = {
    .name = "cumprod_grad", .brief = "the gradient of cumprod", .inputs = "x: float, dy: float", .outputs = "dx", .traits = OP_INTERNAL, .attrs = {RUN_ATTRS}, .shape = same_shape, .lower = cumprod_grad_lower, .no_grad = "it is a gradient itself",
    .along = "mixes", .precision = "f32", .cases = CASES("x: f32[2,4]; dy: f32[2,4]; axis = 1", "x: f32[N]; dy: f32[N]; exclusive = true; reverse = true"),
};
