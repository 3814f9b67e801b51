// embed.c: indices and what they choose: embedding, gather, pick, one_hot, range. Indices are checked where they are used
// (OP_INDEX): one outside of its axis is an error with the place, never a read elsewhere.
//
// Gradients of gather and embedding add to the rows that were read, in the order of the indices: the same bits every time.
#include "op.h"

// --- gather, embedding ----------------------------------------------------------------------------------------------------------

// x[… , index[…], …]: axis `axis` of x is replaced by the axes of the index.
static Shape gathered(const Shape *x, const Shape *index, int axis)
{
    Shape shape = {0};
    for (int i = 0; i < axis; i++)
        shape.dim[shape.rank++] = x->dim[i];
    for (int i = 0; i < index->rank; i++)
        shape.dim[shape.rank++] = index->dim[i];
    for (int i = axis + 1; i < x->rank; i++)
        shape.dim[shape.rank++] = x->dim[i];
    return shape;
}

// The place in x that element `at` of the result comes from.
static void gather_from(Context *cx, Value *index, int x_rank, int axis, Expr *const *at, Expr **from)
{
    int rank = index->type.shape.rank;
    for (int i = 0; i < x_rank; i++)
        from[i] = i < axis ? at[i] : i == axis ? e_index(cx, index, at + axis) : at[i - 1 + rank];
}

static bool gather_shape(OpCall *call)
{
    const Type *x = &call->in[0]->type, *index = &call->in[1]->type;
    int axis;
    if (!op_rank(call, 0, 1, RANK_MAX) || !op_axis(call, "axis", x->shape.rank, &axis))
        return false;
    if (x->shape.rank - 1 + index->shape.rank > RANK_MAX)
        return op_error(call, MESSAGE_E0311, "the result of gather", "of rank 8 at most", "a larger one");
    return op_one(call, (Type){x->dtype, gathered(&x->shape, &index->shape, axis)});
}

static void gather_body(Context *cx, Value *x, Value *index, int axis, const Shape *shape, Compute *out)
{
    Expr *at[RANK_MAX], *from[RANK_MAX];
    compute_over(out, shape);
    for (int i = 0; i < out->rank; i++)
        at[i] = e_axis(cx, i);
    gather_from(cx, index, x->type.shape.rank, axis, at, from);
    out->body = e_load(cx, x, from);
}

static void gather_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    gather_body(cx, node->in[0], node->in[1], node_axis(node, "axis", node->in[0]->type.shape.rank), &node->out[0]->type.shape, out);
}

static Value *build_gather_grad(Builder *b, Value *index, Value *dy, const Shape *shape, int axis)
{
    OpCall call = call_new(b, "gather_grad", 2, (Value *[]){index, dy});
    call_sizes(&call, "shape", shape->rank, shape->dim);
    call_int(&call, "axis", axis);
    return op_build(b, &call);
}

static void gather_op_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    const Shape *x = &node->in[0]->type.shape;
    dx[0] = build_gather_grad(b, node->in[1], dy[0], x, node_axis(node, "axis", x->rank));
}

const OpDef op_gather = {
    .name = "gather", .brief = "the slices of x that indices choose, along an axis", .inputs = "x: any, index: index", .outputs = "y", .example = "y = gather(x, index, axis = 1)",
    .doc = "The axis of x is replaced by the axes of the index. An index outside of the axis is an error when running.",
    .attrs = {{.name = "axis", .kind = ATTR_INT, .initial = "0", .brief = "which axis of x"}},
    .shape = gather_shape, .compute = gather_compute, .grad = gather_op_grad, .traits = OP_INDEX | OP_DATA, .along = "mixes", .precision = "any", .onnx = {{"Gather", 1, 0}},
    .cases = CASES("x: f32[4,3]; index: i32[5] in 0 3", "x: f32[N,4,2]; index: i32[2,2] in 0 3; axis = 1", "x: f32[5]; index: i64[] in 0 4", "x: f32[2,3]; index: i32[0]"),
};

static bool gather_grad_shape(OpCall *call)
{
    const Attr *sizes = call_attr(call, "shape");
    Type type = {.dtype = call->in[1]->type.dtype, .shape = {.rank = sizes->count}};
    for (int i = 0; i < sizes->count; i++)
        type.shape.dim[i] = sizes->sizes[i];
    return op_one(call, type);
}

static Loop *gather_grad_lower(Context *cx, const Node *node)
{
    Value *index = node->in[0], *dy = node->in[1], *dx = node->out[0];
    int axis = node_axis(node, "axis", dx->type.shape.rank);
    Expr *at[RANK_MAX], *to[RANK_MAX];
    Nest nest = nest_new(cx);
    nest_fill(&nest, dx, e_zero(cx, dx->type.dtype));
    for (int i = 0; i < dy->type.shape.rank; i++)
        at[i] = nest_for(&nest, i, dy->type.shape.dim[i], AXIS_SERIAL);
    gather_from(cx, index, dx->type.shape.rank, axis, at, to);
    nest_scatter(&nest, dx, to, e_load(cx, dy, at));
    return nest.root;
}

static void gather_grad_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    OpCall call = call_new(b, "gather", 2, (Value *[]){dy[0], node->in[0]});
    call_int(&call, "axis", node_attr(node, "axis")->i);
    dx[1] = op_build(b, &call);
}

const OpDef op_gather_grad = {
    .name = "gather_grad", .brief = "zeros, to which dy is added where gather had read", .inputs = "index: index, dy: float", .outputs = "dx", .traits = OP_INTERNAL | OP_INDEX,
    .attrs = {{.name = "shape", .kind = ATTR_SIZES, .brief = "of x"}, {.name = "axis", .kind = ATTR_INT, .initial = "0", .brief = "which axis of x"}},
    .shape = gather_grad_shape, .lower = gather_grad_lower, .grad = gather_grad_grad, .along = "mixes", .precision = "f32", .cases = CASES("index: i32[5] in 0 3; dy: f32[5,3]; shape = [4, 3]"),
};

static bool embedding_shape(OpCall *call)
{
    const Shape *x = &call->in[0]->type.shape;
    Size dim[] = {size_const(call->cx, call_attr(call, "count")->i), size_const(call->cx, call_attr(call, "features")->i)};
    Value *weight = call->n_in > 1 ? call->in[1] : NULL;
    Type type = {.dtype = weight != NULL ? weight->type.dtype : TYPE_f32, .shape = *x};
    if (!op_rank(call, 0, 0, RANK_MAX - 1) || !op_owned(call, "weight", type_of(type.dtype, 2, dim)))
        return false;
    type.shape.dim[type.shape.rank++] = dim[1];
    return op_one(call, type);
}

static void embedding_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    gather_body(cx, node->in[1], node->in[0], 0, &node->out[0]->type.shape, out);
}

static void embedding_op_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    dx[1] = build_gather_grad(b, node->in[0], dy[0], &node->in[1]->type.shape, 0);
}

const OpDef op_embedding = {
    .name = "embedding", .brief = "a learned vector for each of `count` things", .inputs = "x: index, weight: float", .outputs = "y", .example = "x = embedding(tokens, vocab, width) @wte",
    .doc = "y[…] = weight[x[…]]. An index outside of 0 … count-1 is an error when running.",
    .attrs = {{.name = "count", .kind = ATTR_INT, .least = 1, .most = 2147483647, .positional = true, .brief = "how many things"},
              {.name = "features", .kind = ATTR_INT, .least = 1, .most = 2147483647, .positional = true, .brief = "numbers for each"}},
    .owned = {{"weight", ROLE_EMBEDDING, "normal", NULL}}, .shape = embedding_shape, .compute = embedding_compute, .grad = embedding_op_grad, .traits = OP_INDEX, .along = "each", .precision = "any",
    .cases = CASES("x: i32[5] in 0 3; weight: f32[4,3]; count = 4; features = 3", "x: i64[N,2] in 0 3; weight: f32[4,2]; count = 4; features = 2", "x: i32[] in 0 0; weight: f32[1,2]; count = 1; features = 2"),
};

// --- pick -------------------------------------------------------------------------------------------------------------------------

static Type without_axis(Context *cx, const Type *x, int axis)
{
    bool axes[RANK_MAX] = {false};
    axes[axis] = true;
    return (Type){x->dtype, shape_without(cx, &x->shape, axes, false)};
}

static bool pick_shape(OpCall *call)
{
    const Type *x = &call->in[0]->type, *index = &call->in[1]->type;
    int axis;
    if (!op_rank(call, 0, 1, RANK_MAX) || !op_axis(call, "axis", x->shape.rank, &axis))
        return false;
    Type type = without_axis(call->cx, x, axis), wanted = type;
    wanted.dtype = index->dtype;
    return op_matches(call, "index", wanted) && op_one(call, type);
}

static void pick_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Expr *at[RANK_MAX], *from[RANK_MAX];
    int rank = node->in[0]->type.shape.rank, axis = node_axis(node, "axis", rank);
    compute_over(out, &node->out[0]->type.shape);
    for (int i = 0; i < out->rank; i++)
        at[i] = e_axis(cx, i);
    for (int i = 0; i < rank; i++)
        from[i] = i < axis ? at[i] : i == axis ? e_index(cx, node->in[1], at) : at[i - 1];
    out->body = e_load(cx, node->in[0], from);
}

static void pick_op_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    int axis = node_axis(node, "axis", node->in[0]->type.shape.rank);
    OpCall call = call_new(b, "pick_grad", 2, (Value *[]){node->in[1], dy[0]});
    call_sizes(&call, "count", 1, &node->in[0]->type.shape.dim[axis]);
    call_int(&call, "axis", axis);
    dx[0] = op_build(b, &call);
}

const OpDef op_pick = {
    .name = "pick", .brief = "one element along an axis, chosen for each place", .inputs = "x: any, index: index", .outputs = "y", .example = "p = pick(probability, label)",
    .doc = "y[…] = x[…, index[…]]. An index outside of the axis is an error when running.", .attrs = {{.name = "axis", .kind = ATTR_INT, .initial = "-1", .brief = "which axis of x"}},
    .shape = pick_shape, .compute = pick_compute, .grad = pick_op_grad, .traits = OP_INDEX | OP_DATA, .along = "mixes", .precision = "any",
    .cases = CASES("x: f32[3,4]; index: i32[3] in 0 3", "x: f32[N,3,2]; index: i64[N,2] in 0 2; axis = 1", "x: f32[5]; index: i32[] in 0 4"),
};

static bool pick_grad_shape(OpCall *call)
{
    Type type = {.dtype = call->in[1]->type.dtype};
    const Shape *dy = &call->in[1]->type.shape;
    int axis = (int)call_attr(call, "axis")->i;
    for (int i = 0; i <= dy->rank; i++)
        type.shape.dim[i] = i == axis ? call_attr(call, "count")->sizes[0] : dy->dim[i < axis ? i : i - 1];
    type.shape.rank = dy->rank + 1;
    return op_one(call, type);
}

static void pick_grad_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Expr *at[RANK_MAX];
    int axis = (int)node_attr(node, "axis")->i;
    compute_over(out, &node->out[0]->type.shape);
    for (int i = 0; i < out->rank - 1; i++)
        at[i] = e_axis(cx, i < axis ? i : i + 1);
    Expr *chosen = e_prim(cx, PRIM_eq, e_index(cx, node->in[0], at), e_axis(cx, axis));
    out->body = e_where(cx, chosen, e_load(cx, node->in[1], at), 0);
}

static void pick_grad_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    OpCall call = call_new(b, "pick", 2, (Value *[]){dy[0], node->in[0]});
    call_int(&call, "axis", node_attr(node, "axis")->i);
    dx[1] = op_build(b, &call);
}

const OpDef op_pick_grad = {
    .name = "pick_grad", .brief = "zeros, and dy at the chosen places", .inputs = "index: int, dy: float", .outputs = "dx", .traits = OP_INTERNAL,
    .attrs = {{.name = "count", .kind = ATTR_SIZES, .brief = "size of the axis"}, {.name = "axis", .kind = ATTR_INT, .brief = "which axis of the result, from 0"}},
    .shape = pick_grad_shape, .compute = pick_grad_compute, .grad = pick_grad_grad, .along = "mixes", .precision = "any", .cases = CASES("index: i32[3] in 0 3; dy: f32[3]; count = 4; axis = 1"),
};

// --- one_hot, range ----------------------------------------------------------------------------------------------------------------------

static bool one_hot_shape(OpCall *call)
{
    Type type = {.dtype = call_attr(call, "type")->type, .shape = call->in[0]->type.shape};
    if (!op_rank(call, 0, 0, RANK_MAX - 1))
        return false;
    type.shape.dim[type.shape.rank++] = call_attr(call, "count")->sizes[0];
    return op_one(call, type);
}

static void one_hot_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Expr *at[RANK_MAX];
    DType type = node->out[0]->type.dtype;
    compute_over(out, &node->out[0]->type.shape);
    for (int i = 0; i < out->rank - 1; i++)
        at[i] = e_axis(cx, i);
    Expr *chosen = e_prim(cx, PRIM_eq, e_index(cx, node->in[0], at), e_axis(cx, out->rank - 1));
    out->body = e_select(cx, chosen, e_value(cx, type, 1), e_value(cx, type, 0));
}

const OpDef op_one_hot = {
    .name = "one_hot", .brief = "1 at the index, 0 elsewhere, along a new last axis", .inputs = "x: int", .outputs = "y", .example = "y = one_hot(label, 10)", .doc = "An index outside of 0 … count-1 gives zeros.",
    .attrs = {{.name = "count", .kind = ATTR_SIZES, .positional = true, .brief = "size of the new axis"}, {.name = "type", .kind = ATTR_TYPE, .initial = "f32", .brief = "of the result"}},
    .shape = one_hot_shape, .compute = one_hot_compute, .no_grad = "an index is no float", .traits = OP_DATA, .along = "each", .precision = "any", .onnx = {{"OneHot", 9, 0}},
    .cases = CASES("x: i32[3] in -1 4; count = 4", "x: i64[N,2] in 0 2; count = 3; type = i32", "x: i32[]; count = 1"),
};

static bool range_shape(OpCall *call)
{
    Type type = {.dtype = call_attr(call, "type")->type, .shape = {.rank = 1, .dim = {call_attr(call, "count")->sizes[0]}}};
    return op_one(call, type);
}

static void range_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    compute_over(out, &node->out[0]->type.shape);
    out->body = e_axis(cx, 0);
    if (node->out[0]->type.dtype != TYPE_i64)
        out->body = expr_cast(cx, node->out[0]->type.dtype, out->body);
}

const OpDef op_range = {
    .name = "range", .brief = "0, 1, … count-1", .inputs = "", .outputs = "y", .example = "position = range(T)",
    .attrs = {{.name = "count", .kind = ATTR_SIZES, .positional = true, .brief = "how many"}, {.name = "type", .kind = ATTR_TYPE, .initial = "i32", .brief = "of the result"}},
    .shape = range_shape, .compute = range_compute, .no_grad = "it has no input", .traits = OP_DATA, .along = "each", .precision = "any", .cases = CASES("count = 5", "count = 3; type = f32", "count = 0"),
};
