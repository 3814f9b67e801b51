// movement.c: ops that move elements and compute nothing: shapes, slices, joins, indices. Each says where an element of the
// result comes from; gradients are moves the other way, and sums where an element went to several places.
#include "op.h"

#define MOVES .traits = OP_MOVES | OP_DATA, .precision = "any", .quantize = "int8"

static Value *gradient_reshaped(Builder *b, const Node *node, Value *dy) { return build_reshape(b, dy, &node->in[0]->type.shape); }

static void reshape_grad(Builder *b, const Node *node, Value *const *dy, Value **dx) { dx[0] = gradient_reshaped(b, node, dy[0]); }

// The element of x of the same row-major number.
static void reshape_compute(Context *cx, const Node *node, int output, Compute *out)
{
    const Shape *x = &node->in[0]->type.shape, *y = &node->out[output]->type.shape;
    Expr *at = e_whole(cx, 0), *index[RANK_MAX];
    compute_over(out, y);
    for (int i = 0; i < y->rank; i++)
        at = e_add(cx, e_mul(cx, at, e_size(cx, y->dim[i])), e_axis(cx, i));
    Size inner = size_const(cx, 1);
    for (int i = x->rank - 1; i >= 0; i--) {
        Expr *e = size_equal(inner, size_const(cx, 1)) ? at : e_prim(cx, PRIM_floordiv, at, e_size(cx, inner));
        index[i] = i == 0 ? e : e_prim(cx, PRIM_mod, e, e_size(cx, x->dim[i]));
        inner = size_times(cx, inner, x->dim[i]);
    }
    out->body = e_load(cx, node->in[0], index);
}

// --- reshape, flatten, expand, squeeze ------------------------------------------------------------------------------------------

static bool same_count(OpCall *call, const Shape *shape)
{
    Type type = {.dtype = call->in[0]->type.dtype, .shape = *shape};
    if (size_equal(shape_count(call->cx, &call->in[0]->type.shape), shape_count(call->cx, shape)))
        return op_one(call, type);
    Context *cx = call->cx;
    return op_error(call, MESSAGE_E0311, "the shape of reshape", arena_printf(cx->arena, "one with as many elements as %s", type_text(cx, &call->in[0]->type)),
                    type_text(cx, &type));
}

static bool reshape_shape(OpCall *call)
{
    const Attr *sizes = call_attr(call, "shape");
    Context *cx = call->cx;
    Shape shape = {.rank = sizes->count};
    Size given = size_const(cx, 1);
    int open = -1;
    for (int i = 0; i < shape.rank; i++) {
        int64_t n;
        bool minus = size_known(sizes->sizes[i], &n) && n == -1;
        if (minus && open >= 0)
            return op_error(call, MESSAGE_E0211, "-1 of reshape");
        if (minus)
            open = i;
        else
            given = size_times(cx, given, shape.dim[i] = sizes->sizes[i]);
    }
    if (open >= 0 && (shape.dim[open] = size_over(cx, shape_count(cx, &call->in[0]->type.shape), given)) == NULL) {
        Text by = {.arena = cx->arena};
        size_print(&by, given);
        return op_error(call, MESSAGE_E0306, "-1 of reshape", arena_printf(cx->arena, "%s, divided by %s", type_text(cx, &call->in[0]->type), by.at));
    }
    return same_count(call, &shape);
}

const OpDef op_reshape = {
    .name = "reshape", .brief = "the same elements, in the same order, in another shape", .inputs = "x: any", .outputs = "y", .example = "y = reshape(x, [x.batch, 4, -1])",
    .doc = "At most one size may be -1: it becomes what is left.",
    .attrs = {{.name = "shape", .kind = ATTR_SIZES, .positional = true, .brief = "the new sizes"}},
    .shape = reshape_shape, .compute = reshape_compute, .grad = reshape_grad, MOVES, .along = "mixes", .onnx = {{"Reshape", 5, 0}},
    .cases = CASES("x: f32[2,6]; shape = [3, 4]", "x: f32[N,2,3]; shape = [-1, 6]", "x: f32[6]; shape = [1, 6, 1]", "x: f32[0,4]; shape = [0]"),
};

static bool flatten_shape(OpCall *call)
{
    const Shape *x = &call->in[0]->type.shape;
    int64_t from = call_attr(call, "axis")->i;
    from += from < 0 ? x->rank : 0;
    if (from < 0 || from > x->rank)
        return op_error(call, MESSAGE_E0312, call_attr(call, "axis")->i, (int64_t)x->rank);
    Shape shape = {.rank = (int)from + 1};
    Size rest = size_const(call->cx, 1);
    for (int i = 0; i < x->rank; i++)
        if (i < from)
            shape.dim[i] = x->dim[i];
        else
            rest = size_times(call->cx, rest, x->dim[i]);
    shape.dim[from] = rest;
    return same_count(call, &shape);
}

const OpDef op_flatten = {
    .name = "flatten", .brief = "joins all axes from one on",
    .doc = "With axis = 1, the default, each sample becomes one row: (N, C, H, W) to (N, C H W). With axis = 0 all is one vector.", .inputs = "x: any", .outputs = "y", .example = "y = flatten(x)",
    .attrs = {{.name = "axis", .kind = ATTR_INT, .initial = "1", .brief = "the first axis that is joined"}},
    .shape = flatten_shape, .compute = reshape_compute, .grad = reshape_grad, MOVES, .along = "mixes", .onnx = {{"Flatten", 1, 0}},
    .cases = CASES("x: f32[N,2,3]", "x: f32[2,3]; axis = 0", "x: f32[2,3,4]; axis = -1", "x: f32[4]"),
};

static bool expand_shape(OpCall *call)
{
    const Attr *axes = call_attr(call, "axis");
    const Shape *x = &call->in[0]->type.shape;
    Shape shape = {.rank = x->rank + axes->count};
    bool new_axis[RANK_MAX] = {false};
    if (shape.rank > RANK_MAX || !op_axes(call, "axis", shape.rank, new_axis))
        return shape.rank <= RANK_MAX ? false : op_error(call, MESSAGE_E0311, "the result of expand", "of rank 8 at most", "a larger one");
    for (int i = 0, from = 0; i < shape.rank; i++)
        shape.dim[i] = new_axis[i] ? size_const(call->cx, 1) : x->dim[from++];
    return same_count(call, &shape);
}

const OpDef op_expand = {
    .name = "expand", .brief = "inserts axes of size 1",
    .doc = "The places are those in the result: (N) with axis = 1 is (N, 1), with axis = 0 (1, N). Such an axis grows with whatever it meets.", .inputs = "x: any", .outputs = "y", .example = "column = expand(t, axis = 1)",
    .attrs = {{.name = "axis", .kind = ATTR_INTS, .positional = true, .onnx = "axes", .brief = "where they are in the result"}},
    .shape = expand_shape, .compute = reshape_compute, .grad = reshape_grad, MOVES, .along = "each", .onnx = {{"Unsqueeze", 1, 0}},
    .cases = CASES("x: f32[N]; axis = 1", "x: f32[2,3]; axis = [0, -1]", "x: f32[]; axis = 0"),
};

static bool squeeze_shape(OpCall *call)
{
    const Shape *x = &call->in[0]->type.shape;
    bool axes[RANK_MAX], given = call_attr(call, "axis")->kind != ATTR_NONE;
    if (!op_axes(call, "axis", x->rank, axes))
        return false;
    for (int i = 0; i < x->rank; i++) {
        int64_t n;
        bool one = size_known(x->dim[i], &n) && n == 1;
        if (given && axes[i] && !one)
            return op_error(call, MESSAGE_E0311, arena_printf(call->cx->arena, "axis %d for squeeze", i), "of size 1", type_text(call->cx, &call->in[0]->type));
        axes[i] = axes[i] && one;
    }
    Shape shape = shape_without(call->cx, x, axes, false);
    return same_count(call, &shape);
}

const OpDef op_squeeze = {
    .name = "squeeze", .brief = "drops axes of size 1",
    .doc = "An axis that is named and is not of size 1 is an error. Without names a batch of one sample loses its axis too, so better name them.", .inputs = "x: any", .outputs = "y", .example = "y = squeeze(x, axis = 1)",
    .attrs = {{.name = "axis", .kind = ATTR_INTS, .initial = "", .positional = true, .onnx = "axes", .brief = "which; all of size 1 if none are given"}},
    .shape = squeeze_shape, .compute = reshape_compute, .grad = reshape_grad, MOVES, .along = "each", .onnx = {{"Squeeze", 1, 0}},
    .cases = CASES("x: f32[N,1]; axis = 1", "x: f32[1,3,1]", "x: f32[1]; axis = -1"),
};

// --- transpose --------------------------------------------------------------------------------------------------------------------

// Axis i of the result is axis order(i) of x. Without a list the last two change places.
static int order_at(const Attr *axes, int i, int rank)
{
    if (axes->kind == ATTR_NONE)
        return i == rank - 1 ? rank - 2 : i == rank - 2 ? rank - 1 : i;
    return (int)attr_axis(axes, i, rank);
}

static bool transpose_shape(OpCall *call)
{
    const Attr *axes = call_attr(call, "axes");
    Type type = call->in[0]->type;
    int rank = type.shape.rank;
    bool all[RANK_MAX];
    if (!op_axes(call, "axes", rank, all) || (axes->kind == ATTR_NONE && !op_rank(call, 0, 2, RANK_MAX)))
        return false;
    if (axes->kind != ATTR_NONE && axes->count != rank)
        return op_error(call, MESSAGE_E0311, "axes of transpose", "a list of all axes", arena_printf(call->cx->arena, "one of %d", axes->count));
    for (int i = 0; i < rank; i++)
        type.shape.dim[i] = call->in[0]->type.shape.dim[order_at(axes, i, rank)];
    return op_one(call, type);
}

static void transpose_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Expr *index[RANK_MAX];
    compute_over(out, &node->out[0]->type.shape);
    for (int i = 0; i < out->rank; i++)
        index[order_at(node_attr(node, "axes"), i, out->rank)] = e_axis(cx, i);
    out->body = e_load(cx, node->in[0], index);
}

static void transpose_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    int64_t back[RANK_MAX];
    int rank = node->out[0]->type.shape.rank;
    for (int i = 0; i < rank; i++)
        back[order_at(node_attr(node, "axes"), i, rank)] = i;
    OpCall call = call_new(b, "transpose", 1, dy);
    call_ints(&call, "axes", rank, back);
    dx[0] = op_build(b, &call);
}

const OpDef op_transpose = {
    .name = "transpose", .brief = "another order of the axes",
    .doc = "Axis i of the result is axis axes[i] of x. No element is copied where the reader can walk the other way.", .inputs = "x: any", .outputs = "y", .example = "y = transpose(x, [0, 2, 1])",
    .attrs = {{.name = "axes", .kind = ATTR_INTS, .initial = "", .positional = true, .onnx = "perm", .brief = "for each axis of the result, which of x it is; the last two change places if not given"}},
    .shape = transpose_shape, .compute = transpose_compute, .grad = transpose_grad, MOVES, .along = "mixes", .onnx = {{"Transpose", 1, 0}},
    .cases = CASES("x: f32[2,3]", "x: f32[N,2,4]; axes = [2, 0, 1]", "x: f32[2,3,4]", "x: f32[0,2]; axes = [1, 0]"),
};

// --- broadcast_to, tile -------------------------------------------------------------------------------------------------------------

static bool broadcast_to_shape(OpCall *call)
{
    const Attr *sizes = call_attr(call, "shape");
    Type type = {.dtype = call->in[0]->type.dtype, .shape = {.rank = sizes->count}};
    Shape both;
    for (int i = 0; i < sizes->count; i++)
        type.shape.dim[i] = sizes->sizes[i];
    if (!shape_broadcast(call->cx, &call->in[0]->type.shape, &type.shape, &both) || !shape_equal(&both, &type.shape))
        return op_error(call, MESSAGE_E0311, "the shape of broadcast_to", arena_printf(call->cx->arena, "what %s can grow to", type_text(call->cx, &call->in[0]->type)),
                        type_text(call->cx, &type));
    return op_one(call, type);
}

static void broadcast_to_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    const Shape *x = &node->in[0]->type.shape;
    Expr *index[RANK_MAX];
    compute_over(out, &node->out[0]->type.shape);
    for (int i = 0; i < x->rank; i++) {
        int axis = out->rank - x->rank + i;
        index[i] = size_equal(x->dim[i], out->extent[axis]) ? e_axis(cx, axis) : e_whole(cx, 0);
    }
    out->body = e_load(cx, node->in[0], index);
}

static void broadcast_to_grad(Builder *b, const Node *node, Value *const *dy, Value **dx) { dx[0] = build_sum_to(b, dy[0], &node->in[0]->type.shape); }

const OpDef op_broadcast_to = {
    .name = "broadcast_to", .brief = "repeats axes of size 1, and new ones in front",
    .doc = "As numpy broadcasts: sizes are compared from the last axis; an axis of size 1 is repeated. The gradient sums what was repeated.", .inputs = "x: any", .outputs = "y", .example = "y = broadcast_to(x, [N, 3, 4])",
    .attrs = {{.name = "shape", .kind = ATTR_SIZES, .positional = true, .brief = "the sizes of the result"}},
    .shape = broadcast_to_shape, .compute = broadcast_to_compute, .grad = broadcast_to_grad, MOVES, .along = "each", .onnx = {{"Expand", 8, 0}},
    .cases = CASES("x: f32[3,1]; shape = [2, 3, 4]", "x: f32[]; shape = [2, 3]", "x: f32[1,4]; shape = [1, 4]"),
};

static bool tile_shape(OpCall *call)
{
    const Attr *repeats = call_attr(call, "repeats");
    Type type = call->in[0]->type;
    if (repeats->count != type.shape.rank)
        return op_error(call, MESSAGE_E0311, "repeats of tile", "one number for each axis", arena_printf(call->cx->arena, "%d of them", repeats->count));
    for (int i = 0; i < type.shape.rank; i++)
        type.shape.dim[i] = size_times(call->cx, type.shape.dim[i], size_const(call->cx, repeats->ints[i]));
    return op_one(call, type);
}

static void tile_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Expr *index[RANK_MAX];
    const Attr *repeats = node_attr(node, "repeats");
    compute_over(out, &node->out[0]->type.shape);
    for (int i = 0; i < out->rank; i++)
        index[i] = repeats->ints[i] == 1 ? e_axis(cx, i) : e_prim(cx, PRIM_mod, e_axis(cx, i), e_size(cx, node->in[0]->type.shape.dim[i]));
    out->body = e_load(cx, node->in[0], index);
}

static void tile_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    OpCall call = call_new(b, "tile_grad", 1, dy);
    call_same(&call, node);
    dx[0] = op_build(b, &call);
}

#define TILE_REPEATS {.name = "repeats", .kind = ATTR_INTS, .positional = true, .least = 1, .most = 1e9, .brief = "how often, for each axis"}

const OpDef op_tile = {
    .name = "tile", .brief = "the whole tensor several times along each axis",
    .doc = "y[i] = x[i mod n] along each axis. The gradient sums all copies.", .inputs = "x: any", .outputs = "y", .example = "y = tile(x, [1, 2])",
    .attrs = {TILE_REPEATS}, .shape = tile_shape, .compute = tile_compute, .grad = tile_grad, MOVES, .along = "mixes", .onnx = {{"Tile", 6, 0}},
    .cases = CASES("x: f32[2,3]; repeats = [2, 1]", "x: f32[N,2]; repeats = [3, 2]", "x: f32[4]; repeats = 1"),
};

static bool tile_grad_shape(OpCall *call)
{
    Type type = call->in[0]->type;
    for (int i = 0; i < type.shape.rank; i++)
        type.shape.dim[i] = size_over(call->cx, type.shape.dim[i], size_const(call->cx, call_attr(call, "repeats")->ints[i]));
    return op_one(call, type);
}

static void tile_grad_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Expr *index[RANK_MAX];
    const Attr *repeats = node_attr(node, "repeats");
    compute_over(out, &node->out[0]->type.shape);
    for (int i = 0; i < out->rank; i++) {
        index[i] = e_axis(cx, i);
        if (repeats->ints[i] > 1) {
            int copy = compute_reduce(out, REDUCE_SUM, size_const(cx, repeats->ints[i]));
            index[i] = e_add(cx, e_mul(cx, e_axis(cx, copy), e_size(cx, out->extent[i])), index[i]);
        }
    }
    out->body = e_load(cx, node->in[0], index);
}

const OpDef op_tile_grad = {
    .name = "tile_grad", .brief = "sums what tile has repeated", .inputs = "dy: float", .outputs = "dx", .traits = OP_INTERNAL, .attrs = {TILE_REPEATS},
    .shape = tile_grad_shape, .compute = tile_grad_compute, .no_grad = "it is a gradient itself", .once = true, .along = "mixes", .precision = "f32", .cases = CASES("dy: f32[4,3]; repeats = [2, 1]"),
};

// --- slice, unslice, flip -----------------------------------------------------------------------------------------------------------

// A negative number counts from the end; a size that is not known when compiling counts from the start.
static Size slice_from(Context *cx, const Attr *from, Size length)
{
    int64_t n;
    return size_known(from->sizes[0], &n) && n < 0 ? size_plus(cx, length, from->sizes[0]) : from->sizes[0];
}

static bool slice_fits(OpCall *call, Size from, Size count, int64_t step, Size length)
{
    int64_t a, n, all;
    if (step == 0)
        return op_error(call, MESSAGE_E0311, "step of slice", "a whole number but 0", "0");
    bool known = size_known(from, &a) && size_known(count, &n) && size_known(length, &all);
    if (!known || n == 0)
        return true;
    int64_t last = a + (n - 1) * step;
    if (n < 0 || a < 0 || a >= all || last < 0 || last >= all)
        return op_error(call, MESSAGE_E0312, n < 0 || a < 0 || a >= all ? a : last, all);
    return true;
}

static bool slice_shape(OpCall *call)
{
    Context *cx = call->cx;
    Type type = call->in[0]->type;
    const Attr *count = call_attr(call, "count");
    int64_t step = call_attr(call, "step")->i;
    int axis;
    if (!op_rank(call, 0, 1, RANK_MAX) || !op_axis(call, "axis", type.shape.rank, &axis))
        return false;
    Size length = type.shape.dim[axis], from = slice_from(cx, call_attr(call, "from"), length), n;
    if (count->kind != ATTR_NONE)
        n = count->sizes[0];
    else
        n = step > 0 ? size_ceildiv(cx, size_minus(cx, length, from), step) : step < 0 ? size_plus(cx, size_floordiv(cx, from, -step), size_const(cx, 1)) : from;
    type.shape.dim[axis] = n;
    return slice_fits(call, from, n, step, length) && op_one(call, type);
}

static void slice_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    const Shape *x = &node->in[0]->type.shape;
    int axis = node_axis(node, "axis", x->rank);
    Expr *index[RANK_MAX];
    compute_over(out, &node->out[0]->type.shape);
    for (int i = 0; i < out->rank; i++)
        index[i] = e_axis(cx, i);
    index[axis] = e_add(cx, e_size(cx, slice_from(cx, node_attr(node, "from"), x->dim[axis])), e_mul(cx, index[axis], e_whole(cx, node_attr(node, "step")->i)));
    out->body = e_load(cx, node->in[0], index);
}

static Value *build_unslice(Builder *b, Value *dy, const Shape *shape, int axis, Size from, int64_t step)
{
    OpCall call = call_new(b, "unslice", 1, &dy);
    call_sizes(&call, "shape", shape->rank, shape->dim);
    call_int(&call, "axis", axis);
    call_sizes(&call, "from", 1, &from);
    call_int(&call, "step", step);
    return op_build(b, &call);
}

static void slice_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    const Shape *x = &node->in[0]->type.shape;
    int axis = node_axis(node, "axis", x->rank);
    dx[0] = build_unslice(b, dy[0], x, axis, slice_from(b->cx, node_attr(node, "from"), x->dim[axis]), node_attr(node, "step")->i);
}

const OpDef op_slice = {
    .name = "slice", .brief = "elements from a place on, along one axis", .inputs = "x: any", .outputs = "y", .example = "y = x[.., 1..3]",
    .doc = "y[i] = x[from + i step]. A negative step walks backwards; then `from` is the last element to be taken from.",
    .attrs = {{.name = "axis", .kind = ATTR_INT, .initial = "0", .brief = "which axis"}, {.name = "from", .kind = ATTR_SIZES, .initial = "0", .brief = "the first element; negative counts from the end"},
              {.name = "count", .kind = ATTR_SIZES, .initial = "", .brief = "how many; all that are left if not given"}, {.name = "step", .kind = ATTR_INT, .initial = "1", .brief = "from one to the next, not 0"}},
    .shape = slice_shape, .compute = slice_compute, .grad = slice_grad, MOVES, .along = "mixes", .onnx = {{"Slice", 1, 0}},
    .cases = CASES("x: f32[5]; from = 1; count = 3", "x: f32[N,6]; axis = 1; from = 1; step = 2", "x: f32[2,5]; axis = -1; from = -1; step = -2", "x: f32[4]; from = 2; count = 0",
                   "x: f32[3,1]; from = -1; count = 1"),
};

static bool unslice_shape(OpCall *call)
{
    const Attr *sizes = call_attr(call, "shape");
    Type type = {.dtype = call->in[0]->type.dtype, .shape = {.rank = sizes->count}};
    for (int i = 0; i < sizes->count; i++)
        type.shape.dim[i] = sizes->sizes[i];
    return op_one(call, type);
}

static void unslice_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    int axis = node_axis(node, "axis", node->out[0]->type.shape.rank);
    int64_t step = node_attr(node, "step")->i;
    Size from = node_attr(node, "from")->sizes[0], count = node->in[0]->type.shape.dim[axis];
    Expr *index[RANK_MAX], *inside;
    compute_over(out, &node->out[0]->type.shape);
    for (int i = 0; i < out->rank; i++)
        index[i] = e_axis(cx, i);
    Expr *way = step > 0 ? e_sub(cx, index[axis], e_size(cx, from)) : e_sub(cx, e_size(cx, from), index[axis]);
    int64_t by = step > 0 ? step : -step;
    index[axis] = e_div(cx, way, by);
    inside = e_and(cx, e_prim(cx, PRIM_ge, way, e_whole(cx, 0)), e_prim(cx, PRIM_lt, index[axis], e_size(cx, count)));
    if (by > 1)
        inside = e_and(cx, inside, e_prim(cx, PRIM_eq, e_mod(cx, way, by), e_whole(cx, 0)));
    out->body = e_where(cx, inside, e_load(cx, node->in[0], index), 0);
}

static void unslice_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    int axis = node_axis(node, "axis", node->out[0]->type.shape.rank);
    dx[0] = build_slice(b, dy[0], axis, node_attr(node, "from")->sizes[0], node->in[0]->type.shape.dim[axis], node_attr(node, "step")->i);
}

const OpDef op_unslice = {
    .name = "unslice", .brief = "zeros, and x where slice would have taken it from", .inputs = "x: any", .outputs = "y", .traits = OP_INTERNAL | OP_MOVES,
    .attrs = {{.name = "shape", .kind = ATTR_SIZES, .brief = "of the result"}, {.name = "axis", .kind = ATTR_INT, .initial = "0", .brief = "which axis"},
              {.name = "from", .kind = ATTR_SIZES, .initial = "0", .brief = "where the first element goes"}, {.name = "step", .kind = ATTR_INT, .initial = "1", .brief = "from one to the next"}},
    .shape = unslice_shape, .compute = unslice_compute, .grad = unslice_grad, .along = "mixes", .precision = "any",
    .cases = CASES("x: f32[2,3]; shape = [2, 5]; axis = 1; from = 1", "x: f32[2]; shape = 5; from = 4; step = -3"),
};

static void flip_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Expr *index[RANK_MAX];
    bool axes[RANK_MAX];
    compute_over(out, &node->out[0]->type.shape);
    node_axes(node, "axis", out->rank, axes);
    for (int i = 0; i < out->rank; i++)
        index[i] = !axes[i] ? e_axis(cx, i) : e_sub(cx, e_size(cx, size_minus(cx, out->extent[i], size_const(cx, 1))), e_axis(cx, i));
    out->body = e_load(cx, node->in[0], index);
}

static bool flip_shape(OpCall *call)
{
    bool axes[RANK_MAX];
    return op_axes(call, "axis", call->in[0]->type.shape.rank, axes) && same_shape(call);
}

static void flip_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    OpCall call = call_new(b, "flip", 1, dy);
    call_same(&call, node);
    dx[0] = op_build(b, &call);
}

const OpDef op_flip = {
    .name = "flip", .brief = "the last element first, along some axes",
    .doc = "y[i] = x[n - 1 - i] along each of the axes.", .inputs = "x: any", .outputs = "y", .example = "y = flip(x, axis = -1)",
    .attrs = {{.name = "axis", .kind = ATTR_INTS, .initial = "", .positional = true, .brief = "which axes; all if none are given"}},
    .shape = flip_shape, .compute = flip_compute, .grad = flip_grad, MOVES, .along = "mixes", .cases = CASES("x: f32[2,3]; axis = 1", "x: f32[N,2,4]; axis = [0, -1]", "x: f32[3]"),
};

// --- roll, meshgrid -----------------------------------------------------------------------------------------------------------------

static int64_t shift_at(const Attr *shift, int i) { return shift->kind == ATTR_INT ? shift->i : shift->ints[shift->count == 1 ? 0 : i]; }

static bool roll_shape(OpCall *call)
{
    const Attr *axis = call_attr(call, "axis"), *shift = call_attr(call, "shift");
    bool axes[RANK_MAX];
    if (!op_rank(call, 0, 1, RANK_MAX) || !op_axes(call, "axis", call->in[0]->type.shape.rank, axes))
        return false;
    if (shift->count > 1 && shift->count != axis->count)
        return op_error(call, MESSAGE_E0311, "shift of roll", "one number, or one for each axis", arena_printf(call->cx->arena, "%d numbers", shift->count));
    return same_shape(call);
}

static void roll_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    const Attr *axis = node_attr(node, "axis");
    Expr *index[RANK_MAX];
    compute_over(out, &node->out[0]->type.shape);
    for (int i = 0; i < out->rank; i++)
        index[i] = e_axis(cx, i);
    for (int k = 0; k < axis->count; k++) {
        int i = (int)attr_axis(axis, k, out->rank);
        index[i] = e_prim(cx, PRIM_mod, e_sub(cx, index[i], e_whole(cx, shift_at(node_attr(node, "shift"), k))), e_size(cx, out->extent[i]));
    }
    out->body = e_load(cx, node->in[0], index);
}

static void roll_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    const Attr *axis = node_attr(node, "axis");
    int64_t back[RANK_MAX];
    OpCall call = call_new(b, "roll", 1, dy);
    call_same(&call, node);
    for (int k = 0; k < axis->count; k++)
        back[k] = -shift_at(node_attr(node, "shift"), k);
    call_ints(&call, "shift", axis->count, back);
    dx[0] = op_build(b, &call);
}

const OpDef op_roll = {
    .name = "roll", .brief = "shifts along axes; what leaves at one end comes in at the other", .inputs = "x: any", .outputs = "y", .example = "y = roll(x, [-3, -3], axis = [1, 2])", .doc = "y[i + shift] = x[i].",
    .attrs = {{.name = "shift", .kind = ATTR_INTS, .positional = true, .brief = "how far, towards the end; negative towards the beginning"}, {.name = "axis", .kind = ATTR_INTS, .initial = "[-1]", .brief = "along which axes"}},
    .shape = roll_shape, .compute = roll_compute, .grad = roll_grad, MOVES, .along = "mixes", .cases = CASES("x: f32[2,5]; shift = 2", "x: f32[N,3]; shift = -1; axis = 0", "x: f32[2,3,4]; shift = [1, -2]; axis = [0, 2]", "x: f32[1]; shift = 7"),
};

static bool is_ij(const Attr *order) { return strcmp(order->word, "ij") == 0; }

// Which axis of the results input k runs along.
static int grid_axis(const Attr *order, int k, int count) { return !is_ij(order) && count > 1 && k < 2 ? 1 - k : k; }

static bool meshgrid_shape(OpCall *call)
{
    const Attr *order = call_attr(call, "order");
    Type type = {.dtype = call->n_in > 0 ? call->in[0]->type.dtype : TYPE_f32, .shape = {.rank = call->n_in}};
    if (call->n_in == 0 || call->n_in > RANK_MAX)
        return op_error(call, MESSAGE_E0308, "meshgrid", "one to eight values");
    for (int k = 0; k < call->n_in; k++) {
        if (!op_rank(call, k, 1, 1))
            return false;
        type.shape.dim[grid_axis(order, k, call->n_in)] = call->in[k]->type.shape.dim[0];
    }
    call->n_out = call->n_in;
    for (int k = 0; k < call->n_out; k++) {
        call->out[k] = type;
        call->out[k].dtype = call->in[k]->type.dtype;
    }
    return true;
}

static void meshgrid_expand(Builder *b, const Node *node, Value **out)
{
    for (int k = 0; k < node->n_in; k++) {
        const Shape *whole = &node->out[k]->type.shape;
        Shape own = {.rank = whole->rank};
        int axis = grid_axis(node_attr(node, "order"), k, node->n_in);
        for (int i = 0; i < own.rank; i++)
            own.dim[i] = i == axis ? whole->dim[i] : size_const(b->cx, 1);
        out[k] = build_repeat_to(b, build_reshape(b, node->in[k], &own), whole);
    }
}

const OpDef op_meshgrid = {
    .name = "meshgrid", .brief = "the coordinates of all points of a grid, from those along its axes", .inputs = "*x: any", .outputs = "y, …", .example = "column, row = meshgrid(range(W), range(H))",
    .doc = "Order xy: the first runs along axis 1 and the second along axis 0, as x and y do in a picture (numpy's default). Order ij: input k runs along axis k (PyTorch's default).",
    .attrs = {{.name = "order", .kind = ATTR_WORD, .initial = "xy", .words = "xy ij", .brief = "which axis belongs to which"}}, .shape = meshgrid_shape, .expand = meshgrid_expand, MOVES, .along = "mixes",
    .cases = CASES("x0: f32[2]; x1: f32[3]", "x0: f32[N]; x1: i32[1]; order = ij", "x0: f32[2]; x1: f32[3]; x2: f32[1]", "x0: f32[5]"),
};

// --- concat, stack, split -----------------------------------------------------------------------------------------------------------

static bool concat_shape(OpCall *call)
{
    Context *cx = call->cx;
    if (call->n_in == 0)
        return op_error(call, MESSAGE_E0308, "concat", "at least one value");
    Type type = call->in[0]->type;
    int axis;
    if (!op_rank(call, 0, 1, RANK_MAX) || !op_axis(call, "axis", type.shape.rank, &axis))
        return false;
    for (int i = 1; i < call->n_in; i++) {
        Type next = call->in[i]->type;
        Size length = next.shape.rank == type.shape.rank ? next.shape.dim[axis] : NULL;
        if (length != NULL)
            next.shape.dim[axis] = type.shape.dim[axis];
        if (length == NULL || next.dtype != type.dtype || !shape_equal(&next.shape, &type.shape))
            return op_error(call, MESSAGE_E0303, "concat", op_input_name(call, 0), type_text(cx, &call->in[0]->type), "another", type_text(cx, &call->in[i]->type));
        type.shape.dim[axis] = size_plus(cx, type.shape.dim[axis], length);
    }
    return op_one(call, type);
}

// select(i < end of the first, first[i], select(i < end of the second, …))
static void concat_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Expr *index[RANK_MAX], *from[INPUTS_MAX] = {NULL};
    compute_over(out, &node->out[0]->type.shape);
    int axis = node_axis(node, "axis", out->rank);
    Size end[INPUTS_MAX], start = size_const(cx, 0);
    for (int i = 0; i < out->rank; i++)
        index[i] = e_axis(cx, i);
    for (int k = 0; k < node->n_in; k++) {
        index[axis] = e_sub(cx, e_axis(cx, axis), e_size(cx, start));
        from[k] = e_load(cx, node->in[k], index);
        end[k] = start = size_plus(cx, start, node->in[k]->type.shape.dim[axis]);
    }
    out->body = from[node->n_in - 1];
    for (int k = node->n_in - 2; k >= 0; k--)
        out->body = e_select(cx, e_prim(cx, PRIM_lt, e_axis(cx, axis), e_size(cx, end[k])), from[k], out->body);
}

static void concat_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    int axis = node_axis(node, "axis", node->out[0]->type.shape.rank);
    Size from = size_const(b->cx, 0);
    for (int k = 0; k < node->n_in; k++) {
        Size count = node->in[k]->type.shape.dim[axis];
        dx[k] = build_slice(b, dy[0], axis, from, count, 1);
        from = size_plus(b->cx, from, count);
    }
}

const OpDef op_concat = {
    .name = "concat", .brief = "tensors one after the other along an axis",
    .doc = "All axes but one must agree. A list of values is taken apart: concat([a, b]).", .inputs = "*x: any", .outputs = "y", .example = "y = concat(a, b, axis = 1)",
    .attrs = {{.name = "axis", .kind = ATTR_INT, .initial = "-1", .brief = "along which axis"}},
    .shape = concat_shape, .compute = concat_compute, .grad = concat_grad, MOVES, .along = "mixes", .onnx = {{"Concat", 4, 0}},
    .cases = CASES("x0: f32[2,3]; x1: f32[2,1]", "x0: f32[N,2]; x1: f32[1,2]; x2: f32[N,2]; axis = 0", "x0: f32[2]; x1: f32[0]", "x0: f32[4]"),
};

static bool stack_shape(OpCall *call)
{
    Type type = call->n_in > 0 ? call->in[0]->type : (Type){0};
    if (call->n_in == 0)
        return op_error(call, MESSAGE_E0308, "stack", "at least one value");
    for (int i = 1; i < call->n_in; i++)
        if (!op_like(call, 0, i))
            return false;
    int axis;
    if (!op_rank(call, 0, 0, RANK_MAX - 1) || !op_axis(call, "axis", type.shape.rank + 1, &axis))
        return false;
    for (int i = type.shape.rank++; i > axis; i--)
        type.shape.dim[i] = type.shape.dim[i - 1];
    type.shape.dim[axis] = size_const(call->cx, call->n_in);
    return op_one(call, type);
}

static void stack_expand(Builder *b, const Node *node, Value **out)
{
    Shape shape = node->out[0]->type.shape;
    int axis = node_axis(node, "axis", shape.rank);
    Value *parts[INPUTS_MAX];
    shape.dim[axis] = size_const(b->cx, 1);
    for (int i = 0; i < node->n_in; i++)
        parts[i] = build_reshape(b, node->in[i], &shape);
    OpCall call = call_new(b, "concat", node->n_in, parts);
    call_int(&call, "axis", axis);
    out[0] = op_build(b, &call);
}

const OpDef op_stack = {
    .name = "stack", .brief = "tensors of one shape side by side, along a new axis",
    .doc = "The values have one shape, and the result has one axis more, of as many as there are values.", .inputs = "*x: any", .outputs = "y", .example = "y = stack(a, b, axis = 0)",
    .attrs = {{.name = "axis", .kind = ATTR_INT, .initial = "0", .brief = "where the new axis is in the result"}},
    .shape = stack_shape, .expand = stack_expand, MOVES, .along = "mixes", .cases = CASES("x0: f32[2,3]; x1: f32[2,3]", "x0: f32[N]; x1: f32[N]; x2: f32[N]; axis = -1", "x0: f32[]; x1: f32[]"),
};

// A list of sizes: as many parts as it has, which must use up the axis.
static bool split_sizes(OpCall *call, const Attr *parts, int axis)
{
    Context *cx = call->cx;
    Type type = call->in[0]->type;
    Size all = size_const(cx, 0);
    call->n_out = parts->count;
    for (int i = 0; i < parts->count; i++) {
        all = size_plus(cx, all, size_const(cx, parts->ints[i]));
        call->out[i] = type;
        call->out[i].shape.dim[axis] = size_const(cx, parts->ints[i]);
    }
    if (size_equal(all, type.shape.dim[axis]))
        return true;
    Text sum = {.arena = cx->arena}, has = {.arena = cx->arena};
    size_print(&sum, all);
    size_print(&has, type.shape.dim[axis]);
    return op_error(call, MESSAGE_E0311, "the sum of the parts of split", arena_printf(cx->arena, "%s, the size of axis %d", has.at, axis), sum.at);
}

static bool split_shape(OpCall *call)
{
    Context *cx = call->cx;
    const Attr *list = call_attr(call, "parts");
    int64_t parts = list->kind == ATTR_INT ? list->i : list->ints[0];
    Type type = call->in[0]->type;
    int axis;
    if (!op_rank(call, 0, 1, RANK_MAX) || !op_axis(call, "axis", type.shape.rank, &axis))
        return false;
    int64_t count = list->kind != ATTR_INT && list->count > 1 ? list->count : parts;
    if (count > OUTPUTS_MAX)
        return op_error(call, MESSAGE_E0318, "parts", "split", "1", arena_printf(cx->arena, "%d", OUTPUTS_MAX), arena_printf(cx->arena, "%d", (int)count));
    if (list->kind != ATTR_INT && list->count > 1)
        return split_sizes(call, list, axis);
    Size each = size_over(cx, type.shape.dim[axis], size_const(cx, parts));
    if (each == NULL)
        return op_error(call, MESSAGE_E0306, "a part of split", arena_printf(cx->arena, "axis %d of %s, divided by %d", axis, type_text(cx, &type), (int)parts));
    type.shape.dim[axis] = each;
    call->n_out = (int)parts;
    for (int i = 0; i < call->n_out; i++)
        call->out[i] = type;
    return true;
}

static void split_expand(Builder *b, const Node *node, Value **out)
{
    int axis = node_axis(node, "axis", node->in[0]->type.shape.rank);
    Size from = size_const(b->cx, 0);
    for (int i = 0; i < node->n_out; i++) {
        Size count = node->out[i]->type.shape.dim[axis];
        out[i] = build_slice(b, node->in[0], axis, from, count, 1);
        from = size_plus(b->cx, from, count);
    }
}

const OpDef op_split = {
    .name = "split", .brief = "parts along an axis",
    .doc = "A number gives equal parts, and must divide the axis; a list gives the sizes, which must use it up.", .inputs = "x: any", .outputs = "y, …", .example = "q, k, v = split(x, 3, axis = -1)",
    .attrs = {{.name = "parts", .kind = ATTR_INTS, .least = 0, .most = 1e9, .positional = true, .onnx = "split", .brief = "how many equal parts, up to 16; or a list of sizes"}, {.name = "axis", .kind = ATTR_INT, .initial = "-1", .brief = "along which axis"}},
    .shape = split_shape, .expand = split_expand, MOVES, .along = "mixes", .onnx = {{"Split", 2, 0}},
    .cases = CASES("x: f32[2,6]; parts = 3", "x: f32[4,N]; parts = 2; axis = 0", "x: f32[2]; parts = 1", "x: f32[2,6]; parts = [2, 3, 1]", "x: f32[7,N]; parts = [0, 7]; axis = 0"),
};

// --- pad ------------------------------------------------------------------------------------------------------------------------------

#define PAD_ATTRS {.name = "pads", .kind = ATTR_INTS, .positional = true, .least = 0, .most = 1e9, .brief = "before each axis, then after each axis"}, \
                  {.name = "mode", .kind = ATTR_WORD, .initial = "constant", .words = "constant reflect edge wrap", .brief = "one number; mirrored without the outermost; the outermost again; what is at the other end"}

static int64_t pad_before(const Attr *pads, int i)           { return pads->ints[i]; }
static int64_t pad_after(const Attr *pads, int i)            { return pads->ints[pads->count / 2 + i]; }
static bool    pad_mode(const Node *node, const char *word)  { return strcmp(node_attr(node, "mode")->word, word) == 0; }

static bool pad_shape(OpCall *call)
{
    const Attr *pads = call_attr(call, "pads");
    Type type = call->in[0]->type;
    bool reflect = strcmp(call_attr(call, "mode")->word, "reflect") == 0;
    if (pads->count != 2 * type.shape.rank)
        return op_error(call, MESSAGE_E0311, "pads of pad", "two numbers for each axis", arena_printf(call->cx->arena, "%d in all", pads->count));
    for (int i = 0; i < type.shape.rank; i++) {
        int64_t n, before = pad_before(pads, i), after = pad_after(pads, i);
        if (reflect && size_known(type.shape.dim[i], &n) && (before >= n || after >= n) && before + after > 0)
            return op_error(call, MESSAGE_E0312, before > after ? before : after, n);
        type.shape.dim[i] = size_plus(call->cx, type.shape.dim[i], size_const(call->cx, before + after));
    }
    return op_one(call, type);
}

// Where element `at` of the padded axis comes from; *inside is NULL if it always comes from somewhere.
static Expr *pad_source(Context *cx, const Node *node, int axis, Size length, Expr *at, Expr **inside)
{
    const Attr *pads = node_attr(node, "pads");
    int64_t before = pad_before(pads, axis), after = pad_after(pads, axis);
    Expr *last = e_size(cx, size_minus(cx, length, size_const(cx, 1)));
    at = e_sub(cx, at, e_whole(cx, before));
    if (pad_mode(node, "constant")) {
        Expr *above = before > 0 ? e_prim(cx, PRIM_ge, at, e_whole(cx, 0)) : NULL;
        *inside = e_and(cx, *inside, above);
        if (after > 0)
            *inside = e_and(cx, *inside, e_prim(cx, PRIM_lt, at, e_size(cx, length)));
    } else if (pad_mode(node, "edge")) {
        at = before > 0 ? e_prim(cx, PRIM_max, at, e_whole(cx, 0)) : at;
        at = after > 0 ? e_prim(cx, PRIM_min, at, last) : at;
    } else if (pad_mode(node, "wrap")) {
        at = e_prim(cx, PRIM_mod, at, e_size(cx, length));
    } else {
        at = before > 0 ? expr_prim(cx, PRIM_abs, at, NULL, NULL) : at;
        at = after > 0 ? e_sub(cx, last, expr_prim(cx, PRIM_abs, e_sub(cx, last, at), NULL, NULL)) : at;
    }
    return at;
}

static void pad_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Expr *index[RANK_MAX], *inside = NULL;
    compute_over(out, &node->out[0]->type.shape);
    for (int i = 0; i < out->rank; i++)
        index[i] = pad_source(cx, node, i, node->in[0]->type.shape.dim[i], e_axis(cx, i), &inside);
    out->body = e_where(cx, inside, e_load(cx, node->in[0], index), node_attr(node, "value")->f);
}

static void pad_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    const Shape *x = &node->in[0]->type.shape;
    if (!pad_mode(node, "constant")) {
        OpCall call = call_new(b, "pad_grad", 1, dy);
        call_same(&call, node);
        dx[0] = op_build(b, &call);
        return;
    }
    dx[0] = dy[0];
    for (int i = 0; i < x->rank; i++)
        if (!size_equal(x->dim[i], dx[0]->type.shape.dim[i]))
            dx[0] = build_slice(b, dx[0], i, size_const(b->cx, pad_before(node_attr(node, "pads"), i)), x->dim[i], 1);
}

const OpDef op_pad = {
    .name = "pad", .brief = "adds elements before and after the axes",
    .doc = "The numbers come for all axes before, then for all axes behind: of (H, W) [top, left, bottom, right]. Mirrored padding is less than the axis is long. The gradient of repeated elements is summed.", .inputs = "x: any", .outputs = "y", .example = "y = pad(x, [0, 0, 1, 1, 0, 0, 1, 1], mode = reflect)",
    .attrs = {PAD_ATTRS, {.name = "value", .kind = ATTR_FLOAT, .initial = "0", .brief = "the number, for mode constant"}},
    .shape = pad_shape, .compute = pad_compute, .grad = pad_grad, MOVES, .along = "mixes", .onnx = {{"Pad", 2, 0}},
    .cases = CASES("x: f32[2,3]; pads = [0, 1, 1, 2]", "x: f32[N,4]; pads = [0, 2, 0, 3]; mode = reflect", "x: f32[2,3]; pads = [1, 0, 2, 2]; mode = edge", "x: f32[3]; pads = [1, 1]; value = 7",
                   "x: f32[1,2]; pads = [0, 1, 0, 1]; mode = reflect", "x: f32[2,3]; pads = [1, 2, 0, 4]; mode = wrap", "x: f32[N,5]; pads = [0, 2, 0, 1]; mode = edge"),
};

static bool pad_grad_shape(OpCall *call)
{
    const Attr *pads = call_attr(call, "pads");
    Type type = call->in[0]->type;
    for (int i = 0; i < type.shape.rank; i++)
        type.shape.dim[i] = size_minus(call->cx, type.shape.dim[i], size_const(call->cx, pad_before(pads, i) + pad_after(pads, i)));
    return op_one(call, type);
}

static Loop *pad_grad_lower(Context *cx, const Node *node)
{
    const Shape *dy = &node->in[0]->type.shape, *dx = &node->out[0]->type.shape;
    Nest nest = nest_new(cx);
    Expr *at[RANK_MAX], *to[RANK_MAX], *inside = NULL;
    nest_fill(&nest, node->out[0], e_zero(cx, node->out[0]->type.dtype));
    for (int i = 0; i < dy->rank; i++)
        at[i] = nest_for(&nest, i, dy->dim[i], AXIS_SERIAL);
    for (int i = 0; i < dy->rank; i++)
        to[i] = pad_source(cx, node, i, dx->dim[i], at[i], &inside);
    nest_scatter(&nest, node->out[0], to, e_load(cx, node->in[0], at));
    return nest.root;
}

const OpDef op_pad_grad = {
    .name = "pad_grad", .brief = "sums what pad has repeated", .inputs = "dy: float", .outputs = "dx", .traits = OP_INTERNAL, .attrs = {PAD_ATTRS}, .shape = pad_grad_shape, .lower = pad_grad_lower,
    .no_grad = "it is a gradient itself", .once = true, .along = "mixes", .precision = "f32", .cases = CASES("dy: f32[2,6]; pads = [0, 1, 0, 2]; mode = edge"),
};

// --- triangular -------------------------------------------------------------------------------------------------------------------------

static bool triangular_shape(OpCall *call) { return op_rank(call, 0, 2, RANK_MAX) && same_shape(call); }

static void triangular_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Expr *index[RANK_MAX];
    compute_over(out, &node->out[0]->type.shape);
    for (int i = 0; i < out->rank; i++)
        index[i] = e_axis(cx, i);
    Expr *diagonal = e_add(cx, index[out->rank - 2], e_whole(cx, node_attr(node, "diagonal")->i));
    PrimId keeps = node_flag(node, "upper") ? PRIM_ge : PRIM_le;
    out->body = e_where(cx, e_prim(cx, keeps, index[out->rank - 1], diagonal), e_load(cx, node->in[0], index), 0);
}

static void triangular_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    OpCall call = call_new(b, "triangular", 1, dy);
    call_same(&call, node);
    dx[0] = op_build(b, &call);
}

const OpDef op_triangular = {
    .name = "triangular", .brief = "zeros above the diagonal of the last two axes, or below it",
    .doc = "Keeps j <= i + diagonal of the last two axes, or with upper j >= i + diagonal (tril and triu of PyTorch).", .inputs = "x: any", .outputs = "y", .example = "y = triangular(x)",
    .attrs = {{.name = "upper", .kind = ATTR_BOOL, .initial = "false", .brief = "keep what is above"}, {.name = "diagonal", .kind = ATTR_INT, .initial = "0", .onnx = "k", .brief = "which: 1 is the one above the main"}},
    .shape = triangular_shape, .compute = triangular_compute, .grad = triangular_grad, .traits = OP_DATA, .along = "mixes", .precision = "any", .onnx = {{"Trilu", 14, 0}},
    .cases = CASES("x: f32[3,3]", "x: f32[N,2,4]; upper = true", "x: f32[3,4]; diagonal = -1"),
};
