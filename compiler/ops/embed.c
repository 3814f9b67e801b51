// embed.c: indices and what they choose: gather, scatter, embedding, pick, one_hot, range. Rows just use them: generated code
// checks inputs of indices when they come in, and compares computed ones where they are used (codegen/bounds.c): outside of
// its axis a read gives NaN, which a trainer stops at, and a write does nothing. The interpreter names the index and stops.
//
// Gradients of gather and embedding add to the rows that were read, in the order of the indices: the same bits every time.
#include "op.h"

// --- gather ------------------------------------------------------------------------------------------------------------------------

#define GATHER_ATTRS {.name = "axis", .kind = ATTR_INT, .initial = "0", .brief = "which axis of x"}, \
                     {.name = "batch", .kind = ATTR_INT, .initial = "0", .least = 0, .most = RANK_MAX - 1, .onnx = "batch_dims", .brief = "so many first axes belong to x and index alike"}
#define OUTSIDE "A negative index counts from the end. One outside of the axis is never followed: where it was computed, its result is NaN (0 of integers)."

// x[… , index[…], …]: axis `axis` of x is replaced by the axes of the index behind the `batch` ones that both have.
static Shape gathered(const Shape *x, const Shape *index, int axis, int batch)
{
    Shape shape = {0};
    for (int i = 0; i < axis; i++)
        shape.dim[shape.rank++] = x->dim[i];
    for (int i = batch; i < index->rank; i++)
        shape.dim[shape.rank++] = index->dim[i];
    for (int i = axis + 1; i < x->rank; i++)
        shape.dim[shape.rank++] = x->dim[i];
    return shape;
}

// The place in x that element `at` of the result comes from.
static void gather_from(Context *cx, Value *index, const Shape *x, int axis, int batch, Expr *const *at, Expr **from)
{
    int rank = index->type.shape.rank - batch;
    Expr *of_index[RANK_MAX];
    for (int i = 0; i < index->type.shape.rank; i++)
        of_index[i] = i < batch ? at[i] : at[axis + i - batch];
    for (int i = 0; i < x->rank; i++)
        from[i] = i < axis ? at[i] : i == axis ? e_place(cx, index, of_index, x->dim[axis]) : at[i - 1 + rank];
}

static bool gather_fits(OpCall *call, int *axis, int *batch)
{
    const Type *x = &call->in[0]->type, *index = &call->in[1]->type;
    *batch = (int)call_attr(call, "batch")->i;
    if (!op_rank(call, 0, 1, RANK_MAX) || !op_axis(call, "axis", x->shape.rank, axis))
        return false;
    bool same = *batch <= index->shape.rank && *batch <= *axis;
    for (int i = 0; same && i < *batch; i++)
        same = size_equal(x->shape.dim[i], index->shape.dim[i]);
    if (!same)
        return op_error(call, MESSAGE_E0315, arena_printf(call->cx->arena, "%s with batch = %d", call->op->name, *batch), type_text(call->cx, x), type_text(call->cx, index));
    return x->shape.rank - 1 + index->shape.rank - *batch <= RANK_MAX ||
           op_error(call, MESSAGE_E0311, arena_printf(call->cx->arena, "the result of %s", call->op->name), "of rank 8 at most", "a larger one");
}

static bool gather_shape(OpCall *call)
{
    int axis, batch;
    return gather_fits(call, &axis, &batch) && op_one(call, (Type){call->in[0]->type.dtype, gathered(&call->in[0]->type.shape, &call->in[1]->type.shape, axis, batch)});
}

static void gather_body(Context *cx, Value *x, Value *index, int axis, int batch, const Shape *shape, Compute *out)
{
    Expr *at[RANK_MAX], *from[RANK_MAX];
    compute_over(out, shape);
    for (int i = 0; i < out->rank; i++)
        at[i] = e_axis(cx, i);
    gather_from(cx, index, &x->type.shape, axis, batch, at, from);
    out->body = e_load(cx, x, from);
}

static int batch_of(const Node *node) { return (int)node_attr(node, "batch")->i; }

static void gather_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    gather_body(cx, node->in[0], node->in[1], node_axis(node, "axis", node->in[0]->type.shape.rank), batch_of(node), &node->out[0]->type.shape, out);
}

static Value *build_gather_grad(Builder *b, Value *index, Value *dy, const Shape *shape, int axis, int batch)
{
    OpCall call = call_new(b, "gather_grad", 2, (Value *[]){index, dy});
    call_sizes(&call, "shape", shape->rank, shape->dim);
    call_int(&call, "axis", axis);
    call_int(&call, "batch", batch);
    return op_build(b, &call);
}

static Value *build_gather(Builder *b, const Node *node, Value *x, Value *index)
{
    OpCall call = call_new(b, "gather", 2, (Value *[]){x, index});
    call_same(&call, node);
    return op_build(b, &call);
}

static void gather_op_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    const Shape *x = &node->in[0]->type.shape;
    dx[0] = build_gather_grad(b, node->in[1], dy[0], x, node_axis(node, "axis", x->rank), batch_of(node));
}

const OpDef op_gather = {
    .name = "gather", .brief = "the slices of x that indices choose, along an axis", .inputs = "x: any, index: index", .outputs = "y", .example = "y = gather(x, index, axis = 1)",
    .doc = "y[…, k …, …] = x[…, index[k …], …]: the axis of x is replaced by the axes of the index. With batch = b the first b axes of both are the same, and each has its own indices: gather(boxes, best, axis = 1, batch = 1). " OUTSIDE
           " (torch.gather, where the index has all axes of x: gather_elements.)",
    .attrs = {GATHER_ATTRS}, .shape = gather_shape, .compute = gather_compute, .grad = gather_op_grad, .traits = OP_INDEX | OP_DATA, .along = "mixes", .precision = "any", .onnx = {{"Gather", 1, 0}},
    .cases = CASES("x: f32[4,3]; index: i32[5] in -4 3", "x: f32[N,4,2]; index: i32[2,2] in 0 3; axis = 1", "x: f32[5]; index: i64[] in 0 4", "x: f32[2,3]; index: i32[0]", "x: f32[N,4,2]; index: i32[N,3] in -4 3; axis = 1; batch = 1",
                   "x: f32[2,3,5]; index: u8[2,3] in 0 4; axis = -1; batch = 2", "x: i32[1,7] in 0 9; index: i64[1,1] in -7 6; axis = 1"),
};

static bool gather_grad_shape(OpCall *call)
{
    const Attr *sizes = call_attr(call, "shape");
    Type type = {.dtype = call->in[1]->type.dtype, .shape = {.rank = sizes->count}};
    for (int i = 0; i < sizes->count; i++)
        type.shape.dim[i] = sizes->sizes[i];
    return op_one(call, type);
}

// Loops over all elements of `values`; `to` is where each goes.
static void scatter_loops(Nest *nest, Value *index, const Shape *values, const Shape *target, int axis, int batch, Expr **at, Expr **to)
{
    for (int i = 0; i < values->rank; i++)
        at[i] = nest_for(nest, i, values->dim[i], AXIS_SERIAL);
    gather_from(nest->cx, index, target, axis, batch, at, to);
}

static Loop *gather_grad_lower(Context *cx, const Node *node)
{
    Value *index = node->in[0], *dy = node->in[1], *dx = node->out[0];
    Expr *at[RANK_MAX], *to[RANK_MAX];
    Nest nest = nest_new(cx);
    nest_fill(&nest, dx, e_zero(cx, dx->type.dtype));
    scatter_loops(&nest, index, &dy->type.shape, &dx->type.shape, node_axis(node, "axis", dx->type.shape.rank), batch_of(node), at, to);
    nest_scatter(&nest, dx, to, e_load(cx, dy, at));
    return nest.root;
}

static void gather_grad_grad(Builder *b, const Node *node, Value *const *dy, Value **dx) { dx[1] = build_gather(b, node, dy[0], node->in[0]); }

const OpDef op_gather_grad = {
    .name = "gather_grad", .brief = "zeros, to which dy is added where gather had read", .inputs = "index: index, dy: float", .outputs = "dx", .traits = OP_INTERNAL | OP_INDEX,
    .attrs = {{.name = "shape", .kind = ATTR_SIZES, .brief = "of x"}, GATHER_ATTRS},
    .shape = gather_grad_shape, .lower = gather_grad_lower, .grad = gather_grad_grad, .along = "mixes", .precision = "f32", .cases = CASES("index: i32[5] in -4 3; dy: f32[5,3]; shape = [4, 3]", "index: i32[2,3] in 0 4; dy: f32[2,3,2]; shape = [2, 5, 2]; axis = 1; batch = 1"),
};

// --- scatter ----------------------------------------------------------------------------------------------------------------------

#define SCATTER_REDUCE {.name = "reduce", .kind = ATTR_WORD, .initial = "none", .words = "none sum max min", .onnx = "reduction", .brief = "what becomes of several at one place: the last one, their sum, the largest, the smallest; with x besides"}

static Reduce reduce_of(const Node *node)
{
    const char *word = node_attr(node, "reduce")->word;
    return strcmp(word, "sum") == 0 ? REDUCE_SUM : strcmp(word, "max") == 0 ? REDUCE_MAX : strcmp(word, "min") == 0 ? REDUCE_MIN : REDUCE_NONE;
}

static bool scatter_shape(OpCall *call)
{
    int axis, batch;
    if (!gather_fits(call, &axis, &batch))
        return false;
    Type wanted = {call->in[0]->type.dtype, gathered(&call->in[0]->type.shape, &call->in[1]->type.shape, axis, batch)};
    return op_matches(call, "values", wanted) && same_shape(call);
}

static void copy_loops(Nest *nest, Value *from, Value *to)
{
    Expr *at[RANK_MAX];
    for (int i = 0; i < to->type.shape.rank; i++)
        at[i] = nest_for(nest, i, to->type.shape.dim[i], AXIS_SERIAL);
    nest_store(nest, to, at, e_load(nest->cx, from, at));
    nest->at = nest->root;
}

static Loop *scatter_lower(Context *cx, const Node *node)
{
    Value *x = node->in[0], *index = node->in[1], *values = node->in[2], *y = node->out[0];
    Expr *at[RANK_MAX], *to[RANK_MAX];
    Nest nest = nest_new(cx);
    copy_loops(&nest, x, y);
    scatter_loops(&nest, index, &values->type.shape, &y->type.shape, node_axis(node, "axis", y->type.shape.rank), batch_of(node), at, to);
    nest_join(&nest, y, to, reduce_of(node), e_load(cx, values, at));
    return nest.root;
}

typedef Value *(*Taking)(Builder *b, const Node *node, Value *x, Value *index);
typedef Value *(*Putting)(Builder *b, const Node *node, Value *x, Value *index, Value *values, const char *reduce);

// Of sums both get dy. Of replaced ones x gets none; the last and the ones it replaced get the same (as in PyTorch, whose
// indices are to be distinct). Of extremes those that won share it.
static void scatter_grads(Builder *b, const Node *node, Value *dy, Value **dx, Taking take, Putting put)
{
    Value *x = node->in[0], *index = node->in[1], *values = node->in[2], *y = node->out[0];
    Reduce reduce = reduce_of(node);
    if (reduce == REDUCE_SUM || reduce == REDUCE_NONE) {
        Value *zeros = build_map1(b, "x0 - x0", values);
        dx[0] = reduce == REDUCE_SUM ? dy : put(b, node, dy, index, zeros, "none");
        dx[2] = take(b, node, dy, index);
        return;
    }
    Value *mine = build_map2(b, "select(x0 == x1, x0 - x0 + 1, x0 - x0)", x, y), *theirs = build_map2(b, "select(x0 == x1, x0 - x0 + 1, x0 - x0)", values, take(b, node, y, index));
    Value *share = build_map2(b, "x0 / max(x1, 1)", dy, put(b, node, mine, index, theirs, "sum"));
    dx[0] = build_map2(b, "x0 * x1", share, mine);
    dx[2] = build_map2(b, "x0 * x1", take(b, node, share, index), theirs);
}

static Value *build_scatter(Builder *b, const Node *node, Value *x, Value *index, Value *values, const char *reduce)
{
    OpCall call = call_new(b, "scatter", 3, (Value *[]){x, index, values});
    call_same(&call, node);
    call_word(&call, "reduce", reduce);
    return op_build(b, &call);
}

static void scatter_grad(Builder *b, const Node *node, Value *const *dy, Value **dx) { scatter_grads(b, node, dy[0], dx, build_gather, build_scatter); }

const OpDef op_scatter = {
    .name = "scatter", .brief = "x, with values put to where indices say, along an axis", .inputs = "x: any, index: index, values: like x", .outputs = "y", .example = "hit = scatter(zeros(like = thing), mine, found, axis = 1, batch = 1, reduce = max)",
    .doc = "The counterpart of gather: values has the shape that gather(x, index) has, and y[…, index[k …], …] becomes values[…, k …, …], joined as `reduce` says with what is there. A negative index counts from the end; one outside of the axis goes nowhere. "
           "Values come in their order, so of several at one place the last one stays, and sums have the same bits every time.",
    .attrs = {GATHER_ATTRS, SCATTER_REDUCE}, .shape = scatter_shape, .lower = scatter_lower, .grad = scatter_grad, .traits = OP_INDEX, .along = "mixes", .precision = "f32",
    .cases = CASES("x: f32[4,3]; index: i32[2] in 0 3; values: f32[2,3]; reduce = sum", "x: f32[N,5]; index: i32[N,3] in -5 4; values: f32[N,3]; axis = 1; batch = 1; reduce = max", "x: f32[5]; index: i64[] in 0 4; values: f32[]",
                   "x: f32[2,3,2]; index: i32[3] in 0 2; values: f32[2,3,2]; axis = 1; reduce = min", "x: f32[7]; index: i32[0]; values: f32[0]", "x: i32[3,1] in 0 9; index: u8[2] in 0 2; values: i32[2,1] in 0 9; reduce = sum"),
};

// --- gather_elements, scatter_elements ----------------------------------------------------------------------------------------------

#define ELEMENT_AXIS {.name = "axis", .kind = ATTR_INT, .initial = "0", .brief = "which axis of x"}

// The index has as many axes as x, none but `axis` longer.
static bool elements_fit(OpCall *call, int *axis)
{
    const Type *x = &call->in[0]->type, *index = &call->in[1]->type;
    if (!op_rank(call, 0, 1, RANK_MAX) || !op_axis(call, "axis", x->shape.rank, axis))
        return false;
    bool fits = x->shape.rank == index->shape.rank;
    for (int i = 0; fits && i < x->shape.rank; i++) {
        int64_t a, n;
        bool known = size_known(x->shape.dim[i], &n) && size_known(index->shape.dim[i], &a);
        fits = i == *axis || size_equal(x->shape.dim[i], index->shape.dim[i]) || (known && a <= n);
    }
    return fits || op_error(call, MESSAGE_E0315, call->op->name, type_text(call->cx, x), type_text(call->cx, index));
}

static bool gather_elements_shape(OpCall *call)
{
    int axis;
    return elements_fit(call, &axis) && op_one(call, (Type){call->in[0]->type.dtype, call->in[1]->type.shape});
}

static void element_from(Context *cx, Value *index, const Shape *x, int axis, Expr *const *at, Expr **from)
{
    for (int i = 0; i < x->rank; i++)
        from[i] = at[i];
    from[axis] = e_place(cx, index, at, x->dim[axis]);
}

static void gather_elements_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Value *x = node->in[0];
    Expr *at[RANK_MAX], *from[RANK_MAX];
    compute_over(out, &node->out[0]->type.shape);
    for (int i = 0; i < out->rank; i++)
        at[i] = e_axis(cx, i);
    element_from(cx, node->in[1], &x->type.shape, node_axis(node, "axis", out->rank), at, from);
    out->body = e_load(cx, x, from);
}

static Value *build_gather_elements(Builder *b, const Node *node, Value *x, Value *index)
{
    OpCall call = call_new(b, "gather_elements", 2, (Value *[]){x, index});
    call_same(&call, node);
    return op_build(b, &call);
}

static Value *build_scatter_elements(Builder *b, const Node *node, Value *x, Value *index, Value *values, const char *reduce)
{
    OpCall call = call_new(b, "scatter_elements", 3, (Value *[]){x, index, values});
    call_same(&call, node);
    call_word(&call, "reduce", reduce);
    return op_build(b, &call);
}

static void gather_elements_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    dx[0] = build_scatter_elements(b, node, build_map1(b, "x0 - x0", node->in[0]), node->in[1], dy[0], "sum");
}

const OpDef op_gather_elements = {
    .name = "gather_elements", .brief = "an element of x for each index, along an axis", .inputs = "x: any, index: index", .outputs = "y", .example = "y = gather_elements(x, order, axis = 1)",
    .doc = "y[i, j] = x[index[i, j], j] for axis 0, and so on: torch.gather. The index has as many axes as x and none longer than x but the one chosen along. " OUTSIDE, .attrs = {ELEMENT_AXIS}, .shape = gather_elements_shape,
    .compute = gather_elements_compute, .grad = gather_elements_grad, .traits = OP_INDEX | OP_DATA, .along = "mixes", .precision = "any", .onnx = {{"GatherElements", 11, 0}},
    .cases = CASES("x: f32[4,3]; index: i32[2,3] in -4 3", "x: f32[N,5]; index: i64[N,2] in 0 4; axis = 1", "x: f32[3]; index: i32[7] in 0 2", "x: f32[2,3,2]; index: i32[2,1,2] in 0 2; axis = -2", "x: f32[3,4]; index: i32[2,3] in 0 3; axis = 1"),
};

static bool scatter_elements_shape(OpCall *call)
{
    int axis;
    return elements_fit(call, &axis) && op_matches(call, "values", (Type){call->in[0]->type.dtype, call->in[1]->type.shape}) && same_shape(call);
}

static Loop *scatter_elements_lower(Context *cx, const Node *node)
{
    Value *x = node->in[0], *index = node->in[1], *values = node->in[2], *y = node->out[0];
    const Shape *shape = &values->type.shape;
    Expr *at[RANK_MAX], *to[RANK_MAX];
    Nest nest = nest_new(cx);
    copy_loops(&nest, x, y);
    for (int i = 0; i < shape->rank; i++)
        at[i] = nest_for(&nest, i, shape->dim[i], AXIS_SERIAL);
    element_from(cx, index, &y->type.shape, node_axis(node, "axis", shape->rank), at, to);
    nest_join(&nest, y, to, reduce_of(node), e_load(cx, values, at));
    return nest.root;
}

static void scatter_elements_grad(Builder *b, const Node *node, Value *const *dy, Value **dx) { scatter_grads(b, node, dy[0], dx, build_gather_elements, build_scatter_elements); }

const OpDef op_scatter_elements = {
    .name = "scatter_elements", .brief = "x, with each value put to where its index says, along an axis", .inputs = "x: any, index: index, values: like x", .outputs = "y", .example = "y = scatter_elements(x, index, values, axis = 1, reduce = sum)",
    .doc = "y[index[i, j], j] becomes values[i, j] for axis 0, and so on: torch.scatter. A negative index counts from the end; one outside of the axis goes nowhere. Values come in their order.", .attrs = {ELEMENT_AXIS, SCATTER_REDUCE},
    .shape = scatter_elements_shape, .lower = scatter_elements_lower, .grad = scatter_elements_grad, .traits = OP_INDEX, .along = "mixes", .precision = "f32", .onnx = {{"ScatterElements", 11, 0}},
    .cases = CASES("x: f32[4,3]; index: i32[2,3] in -4 3; values: f32[2,3]; reduce = sum", "x: f32[N,5]; index: i64[N,1] in 0 4; values: f32[N,1]; axis = 1", "x: f32[3]; index: i32[4] in 0 2; values: f32[4]; reduce = max", "x: f32[2,3]; index: i32[1,2] in 0 1; values: f32[1,2]; reduce = min"),
};

// --- embedding ----------------------------------------------------------------------------------------------------------------------

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
    Expr *at[RANK_MAX], *from[2];
    compute_over(out, &node->out[0]->type.shape);
    for (int i = 0; i < out->rank; i++)
        at[i] = e_axis(cx, i);
    from[0] = e_index(cx, node->in[0], at);             // as it stands: what comes in is checked as a whole
    from[1] = at[out->rank - 1];
    out->body = e_load(cx, node->in[1], from);
}

static void embedding_op_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    dx[1] = build_gather_grad(b, node->in[0], dy[0], &node->in[1]->type.shape, 0, 0);
}

const OpDef op_embedding = {
    .name = "embedding", .brief = "a learned vector for each of `count` things", .inputs = "x: index, weight: float", .outputs = "y", .example = "x = embedding(tokens, vocab, width) @wte",
    .doc = "y[…] = weight[x[…]]. An index outside of 0 … count-1 is an error when running; where it was computed, its result is NaN.",
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
    Value *x = node->in[0];
    Expr *at[RANK_MAX], *from[RANK_MAX];
    int rank = x->type.shape.rank, axis = node_axis(node, "axis", rank);
    compute_over(out, &node->out[0]->type.shape);
    for (int i = 0; i < out->rank; i++)
        at[i] = e_axis(cx, i);
    for (int i = 0; i < rank; i++)
        from[i] = i < axis ? at[i] : i == axis ? e_index(cx, node->in[1], at) : at[i - 1];
    out->body = e_load(cx, x, from);
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
    .doc = "y[…] = x[…, index[…]]. An index outside of 0 … n-1 is never followed: where it was computed, its result is NaN (0 of integers).", .attrs = {{.name = "axis", .kind = ATTR_INT, .initial = "-1", .brief = "which axis of x"}},
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
    int axis;
    if (!op_rank(call, 0, 0, RANK_MAX - 1) || !op_axis(call, "axis", type.shape.rank + 1, &axis))
        return false;
    for (int i = type.shape.rank++; i > axis; i--)
        type.shape.dim[i] = type.shape.dim[i - 1];
    type.shape.dim[axis] = call_attr(call, "count")->sizes[0];
    return op_one(call, type);
}

static void one_hot_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Expr *at[RANK_MAX];
    DType type = node->out[0]->type.dtype;
    compute_over(out, &node->out[0]->type.shape);
    int axis = node_axis(node, "axis", out->rank);
    for (int i = 0; i < out->rank - 1; i++)
        at[i] = e_axis(cx, i < axis ? i : i + 1);
    Expr *chosen = e_prim(cx, PRIM_eq, e_index(cx, node->in[0], at), e_axis(cx, axis));
    out->body = e_select(cx, chosen, e_value(cx, type, 1), e_value(cx, type, 0));
}

const OpDef op_one_hot = {
    .name = "one_hot", .brief = "1 at the index, 0 elsewhere, along a new axis", .inputs = "x: int", .outputs = "y", .example = "y = one_hot(label, 10)", .doc = "An index outside of 0 … count-1 gives zeros.",
    .attrs = {{.name = "count", .kind = ATTR_SIZES, .positional = true, .brief = "size of the new axis"}, {.name = "type", .kind = ATTR_TYPE, .initial = "f32", .brief = "of the result"},
              {.name = "axis", .kind = ATTR_INT, .initial = "-1", .brief = "where the new axis is in the result"}},
    .shape = one_hot_shape, .compute = one_hot_compute, .no_grad = "an index is no float", .traits = OP_DATA, .along = "each", .precision = "any", .onnx = {{"OneHot", 9, 0}},
    .cases = CASES("x: i32[3] in -1 4; count = 4", "x: i64[N,2] in 0 2; count = 3; type = i32", "x: i32[]; count = 1", "x: i32[2,3] in 0 4; count = 5; axis = 1", "x: i32[N] in 0 6; count = 7; axis = 0"),
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
    .name = "range", .brief = "0, 1, … count-1",
    .doc = "A size may be given: range(T). Of floats the numbers are exact to 2^24.", .inputs = "", .outputs = "y", .example = "position = range(T)",
    .attrs = {{.name = "count", .kind = ATTR_SIZES, .positional = true, .brief = "how many"}, {.name = "type", .kind = ATTR_TYPE, .initial = "i32", .brief = "of the result"}},
    .shape = range_shape, .compute = range_compute, .no_grad = "it has no input", .traits = OP_DATA, .along = "each", .precision = "any", .cases = CASES("count = 5", "count = 3; type = f32", "count = 0"),
};
