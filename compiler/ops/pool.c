// pool.c: windows that are reduced to their maximum or mean. (N, C, …) over one to three axes, by the Window of window.c.
#include "op.h"

#define POOL_ATTRS {.name = "kernel", .kind = ATTR_INTS, .least = 1, .most = 1e6, .onnx = "kernel_shape", .brief = "size of the window: one number, or one for each axis"}, \
                   {.name = "stride", .kind = ATTR_INTS, .initial = "", .least = 1, .most = 1e6, .onnx = "strides", .brief = "steps of the window; its size if not given"}, \
                   {.name = "pad", .kind = ATTR_INTS, .initial = "0", .words = "same", .least = 0, .most = 1e6, .onnx = "pads", .brief = "as in conv"}, \
                   {.name = "ceil", .kind = ATTR_BOOL, .initial = "false", .onnx = "ceil_mode", .brief = "a last window that hangs over counts"}
#define DILATION_ATTR {.name = "dilation", .kind = ATTR_INTS, .initial = "1", .least = 1, .most = 1e6, .onnx = "dilations", .brief = "steps between the taps"}

static bool pool_shape(OpCall *call)
{
    Type type = call->in[0]->type;
    Window w;
    if (!op_rank(call, 0, 3, 5) || !window_of(call->cx, call->op, call->attr, &type.shape, NULL, call, &w))
        return false;
    for (int i = 0; i < w.axes; i++)
        type.shape.dim[2 + i] = w.out[i];
    return op_one(call, type);
}

static Window pool_window(Context *cx, const Node *node, const Shape *x)
{
    Window w;
    window_of(cx, node->op, node->attr, x, NULL, NULL, &w);
    return w;
}

static Size pool_flops(Context *cx, const Node *node)
{
    Window w = pool_window(cx, node, &node->in[0]->type.shape);
    int64_t taps = 1;
    for (int i = 0; i < w.axes; i++)
        taps *= w.kernel[i];
    return flops_of_count(cx, &node->out[0]->type.shape, taps);
}

// The element that a tap of the window sees, as a reduction over the taps; `taps` gets their variables.
static Expr *seen(Context *cx, const Node *node, const Window *w, Reduce reduce, Compute *out, Expr **inside)
{
    Expr *from[5] = {e_axis(cx, 0), e_axis(cx, 1)};
    compute_over(out, &node->out[0]->type.shape);
    *inside = NULL;
    for (int i = 0; i < w->axes; i++) {
        Expr *tap = e_axis(cx, compute_reduce(out, reduce, size_const(cx, w->kernel[i])));
        from[2 + i] = window_at(cx, w, i, e_axis(cx, 2 + i), tap);
        *inside = e_and(cx, *inside, window_inside(cx, w, i, from[2 + i]));
    }
    return e_load(cx, node->in[0], from);
}

// --- maxpool --------------------------------------------------------------------------------------------------------------------

static void maxpool_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Expr *inside;
    Window w = pool_window(cx, node, &node->in[0]->type.shape);
    Expr *value = seen(cx, node, &w, REDUCE_MAX, out, &inside);
    out->body = inside == NULL ? value : e_select(cx, inside, value, e_least(cx, value->type));
}

// Used where a maxpool was not made to remember its places (grad.c does that): they are found again.
static void maxpool_grad_rule(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    Value *both[OUTPUTS_MAX];
    if (node->n_out == 1) {
        OpCall again = call_new(b, "maxpool_places", 1, node->in);
        call_same(&again, node);
        op_build_all(b, &again, both);
    }
    OpCall call = call_new(b, "maxpool_grad", 2, (Value *[]){node->n_out == 1 ? both[1] : node->out[1], dy[0]});
    call_same(&call, node);
    call_sizes(&call, "shape", node->in[0]->type.shape.rank, node->in[0]->type.shape.dim);
    dx[0] = op_build(b, &call);
}

#define MAXPOOL_CASES \
    CASES("x: f32[N,2,4,6]; kernel = 2", "x: f32[1,1,7,7]; kernel = 3; stride = 2; pad = 1", "x: f32[1,2,5,5]; kernel = 2; ceil = true", "x: f32[1,1,6,5]; kernel = [3, 2]; stride = 1; pad = same", \
          "x: f32[N,2,6]; kernel = 3; stride = 2; dilation = 2; pad = 1", "x: f32[2,1,1,1]; kernel = 1")

const OpDef op_maxpool = {
    .name = "maxpool", .brief = "the largest element of each window", .inputs = "x: float", .outputs = "y", .example = "y = maxpool(x, kernel = 2)",
    .doc = "What lies outside of the picture does not count. Of equal ones the first gets the gradient.", .attrs = {POOL_ATTRS, DILATION_ATTR},
    .shape = pool_shape, .compute = maxpool_compute, .grad = maxpool_grad_rule, .flops = pool_flops, .traits = OP_DATA, .along = "mixes", .precision = "any", .quantize = "int8", .onnx = {{"MaxPool", 1, 0}},
    .cases = MAXPOOL_CASES,
};

static bool maxpool_places_shape(OpCall *call)
{
    if (!pool_shape(call))
        return false;
    Window w;
    int64_t taps = 1;
    window_of(call->cx, call->op, call->attr, &call->in[0]->type.shape, NULL, call, &w);
    for (int i = 0; i < w.axes; i++)
        taps *= w.kernel[i];
    call->n_out = 2;
    call->out[1] = call->out[0];
    call->out[1].dtype = taps <= 255 ? TYPE_u8 : TYPE_i32;
    return true;
}

// The tap as one number: row-major over the window.
static Expr *tap_number(Context *cx, const Window *w, Expr *const *tap)
{
    Expr *number = e_whole(cx, 0);
    for (int i = 0; i < w->axes; i++)
        number = e_add(cx, e_mul(cx, number, e_whole(cx, w->kernel[i])), tap[i]);
    return number;
}

// NaN, once met, is the largest. A window without a pixel has the place 255 (of bytes) or -1.
static Loop *maxpool_places_lower(Context *cx, const Node *node)
{
    Value *x = node->in[0], *y = node->out[0], *places = node->out[1];
    Window w = pool_window(cx, node, &x->type.shape);
    Nest nest = nest_new(cx);
    Expr *at[5], *from[5], *tap[3], *inside = NULL;
    int rank = y->type.shape.rank;
    for (int i = 0; i < rank; i++)
        from[i] = at[i] = nest_for(&nest, i, y->type.shape.dim[i], i == 0 ? AXIS_PARALLEL : AXIS_SERIAL);
    Loop *outer = nest.at;
    Expr *best = nest_local(&nest, x->type.dtype, e_least(cx, x->type.dtype)), *place = nest_local(&nest, TYPE_i64, e_whole(cx, places->type.dtype == TYPE_u8 ? 255 : -1));
    for (int i = 0; i < w.axes; i++) {
        tap[i] = nest_for(&nest, rank + i, size_const(cx, w.kernel[i]), AXIS_SERIAL);
        from[2 + i] = window_at(cx, &w, i, at[2 + i], tap[i]);
        inside = e_and(cx, inside, window_inside(cx, &w, i, from[2 + i]));
    }
    nest_if(&nest, inside);
    Expr *next = nest_let(&nest, e_load(cx, x, from));
    Expr *nan = e_and(cx, e_prim(cx, PRIM_ne, next, next), e_prim(cx, PRIM_eq, best, best));
    Expr *none = e_prim(cx, PRIM_eq, place, e_whole(cx, places->type.dtype == TYPE_u8 ? 255 : -1));
    nest_if(&nest, e_prim(cx, PRIM_or, e_prim(cx, PRIM_or, e_prim(cx, PRIM_gt, next, best), nan), none));
    nest_update(&nest, best, REDUCE_NONE, next);
    nest_update(&nest, place, REDUCE_NONE, tap_number(cx, &w, tap));
    nest.at = outer;
    nest_store(&nest, y, at, best);
    nest_store(&nest, places, at, expr_cast(cx, places->type.dtype, place));
    return nest.root;
}

const OpDef op_maxpool_places = {
    .name = "maxpool_places", .brief = "maxpool that remembers which tap of its window was the largest", .inputs = "x: float", .outputs = "y, place", .traits = OP_INTERNAL,
    .doc = "What maxpool becomes where its gradient is wanted. The place is the number of the tap, row-major.", .attrs = {POOL_ATTRS, DILATION_ATTR},
    .shape = maxpool_places_shape, .lower = maxpool_places_lower, .grad = maxpool_grad_rule, .flops = pool_flops, .along = "mixes", .precision = "any", .cases = MAXPOOL_CASES,
};

static bool pool_grad_shape(OpCall *call)
{
    const Attr *sizes = call_attr(call, "shape");
    Type type = {.dtype = call->in[call->n_in - 1]->type.dtype, .shape = {.rank = sizes->count}};
    for (int i = 0; i < sizes->count; i++)
        type.shape.dim[i] = sizes->sizes[i];
    return op_one(call, type);
}

// The windows over a pixel, as a reduction over taps: indices into dy, taps, and whether there is such a window.
static void over_pixel(Context *cx, const Node *node, const Window *w, Compute *out, Expr **at, Expr **tap, Expr **exists)
{
    compute_over(out, &node->out[0]->type.shape);
    at[0] = e_axis(cx, 0);
    at[1] = e_axis(cx, 1);
    *exists = NULL;
    for (int i = 0; i < w->axes; i++) {
        Expr *one;
        tap[i] = e_axis(cx, compute_reduce(out, REDUCE_SUM, size_const(cx, w->kernel[i])));
        at[2 + i] = window_back(cx, w, i, e_axis(cx, 2 + i), tap[i], &one);
        *exists = e_and(cx, *exists, one);
    }
}

static void maxpool_grad_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Expr *at[5], *tap[3], *exists;
    Window w = pool_window(cx, node, &node->out[0]->type.shape);
    over_pixel(cx, node, &w, out, at, tap, &exists);
    Expr *here = e_prim(cx, PRIM_eq, e_index(cx, node->in[0], at), tap_number(cx, &w, tap));
    out->body = e_where(cx, exists, e_where(cx, here, e_load(cx, node->in[1], at), 0), 0);
}

const OpDef op_maxpool_grad = {
    .name = "maxpool_grad", .brief = "puts dy back to where the maxima were", .inputs = "place: int, dy: float", .outputs = "dx", .traits = OP_INTERNAL,
    .attrs = {{.name = "shape", .kind = ATTR_SIZES, .brief = "of x"}, POOL_ATTRS, DILATION_ATTR}, .shape = pool_grad_shape, .compute = maxpool_grad_compute,
    .no_grad = "it is a gradient itself", .along = "mixes", .precision = "f32", .cases = CASES("place: u8[1,1,2,2] in 0 3; dy: f32[1,1,2,2]; shape = [1, 1, 4, 4]; kernel = 2"),
};

// --- avgpool --------------------------------------------------------------------------------------------------------------------

// How many elements window `at` divides by along an axis: those inside of the picture, or of picture and padding. What
// hangs over in ceil mode never counts.
static Expr *covered(Context *cx, const Window *w, int axis, Expr *at, bool pads)
{
    int64_t n, out;
    Expr *from = e_sub(cx, e_mul(cx, at, e_whole(cx, w->stride[axis])), e_whole(cx, w->before[axis]));
    Expr *to = e_add(cx, from, e_whole(cx, w->kernel[axis]));
    int64_t extra = pads ? w->after[axis] : 0;
    bool known = size_known(w->in[axis], &n) && size_known(w->out[axis], &out);
    bool fits = known ? (out - 1) * w->stride[axis] - w->before[axis] + w->kernel[axis] <= n + extra : w->after[axis] == 0 || pads;
    if (fits && (pads || w->before[axis] == 0))
        return e_whole(cx, w->kernel[axis]);
    if (!fits)
        to = e_prim(cx, PRIM_min, to, e_size(cx, size_plus(cx, w->in[axis], size_const(cx, extra))));
    if (!pads && w->before[axis] > 0)
        from = e_prim(cx, PRIM_max, from, e_whole(cx, 0));
    return e_sub(cx, to, from);
}

static Expr *divisor(Context *cx, const Node *node, const Window *w, DType type, Expr *const *at)
{
    Expr *count = e_whole(cx, 1);
    for (int i = 0; i < w->axes; i++)
        count = e_mul(cx, count, covered(cx, w, i, at[i], node_flag(node, "count_pad")));
    return count->kind == EXPR_NUMBER ? expr_number(cx, type, (double)count->whole) : expr_cast(cx, type, count);
}

static void avgpool_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Expr *inside;
    Window w = pool_window(cx, node, &node->in[0]->type.shape);
    Expr *value = seen(cx, node, &w, REDUCE_SUM, out, &inside), *at[3];
    for (int i = 0; i < w.axes; i++)
        at[i] = e_axis(cx, 2 + i);
    out->body = e_where(cx, inside, e_prim(cx, PRIM_div, value, divisor(cx, node, &w, value->type, at)), 0);
}

static void avgpool_grad_rule(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    OpCall call = call_new(b, "avgpool_grad", 1, dy);
    call_same(&call, node);
    call_sizes(&call, "shape", node->in[0]->type.shape.rank, node->in[0]->type.shape.dim);
    dx[0] = op_build(b, &call);
}

#define COUNT_PAD {.name = "count_pad", .kind = ATTR_BOOL, .initial = "true", .onnx = "count_include_pad", .brief = "zeros of the padding count (PyTorch's default; ONNX's is false)"}

const OpDef op_avgpool = {
    .name = "avgpool", .brief = "the mean of each window", .inputs = "x: float", .outputs = "y", .example = "y = avgpool(x, kernel = 2)", .attrs = {POOL_ATTRS, COUNT_PAD},
    .doc = "What hangs over the padding in ceil mode does not count. Over the whole picture: mean(x, axis = [2, 3]).",
    .shape = pool_shape, .compute = avgpool_compute, .grad = avgpool_grad_rule, .flops = pool_flops, .traits = OP_DATA, .along = "mixes", .precision = "f32", .quantize = "int8", .onnx = {{"AveragePool", 1, 0}},
    .cases = CASES("x: f32[N,2,4,6]; kernel = 2", "x: f32[1,1,7,7]; kernel = 3; stride = 2; pad = 1", "x: f32[1,1,7,7]; kernel = 3; stride = 2; pad = 1; count_pad = false", "x: f32[1,2,5,5]; kernel = 2; ceil = true",
                   "x: f32[1,1,5,5]; kernel = 3; stride = 2; pad = [0, 0, 1, 1]; ceil = true", "x: f32[N,2,6]; kernel = 3; stride = 1; pad = same; count_pad = false", "x: f32[2,1,1,1]; kernel = 1"),
};

static void avgpool_grad_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Expr *at[5], *tap[3], *exists;
    Window w = pool_window(cx, node, &node->out[0]->type.shape);
    over_pixel(cx, node, &w, out, at, tap, &exists);
    Expr *dy = e_load(cx, node->in[0], at);
    out->body = e_where(cx, exists, e_prim(cx, PRIM_div, dy, divisor(cx, node, &w, dy->type, at + 2)), 0);
}

static void avgpool_grad_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    OpCall call = call_new(b, "avgpool", 1, dy);
    call_same(&call, node);
    dx[0] = op_build(b, &call);
}

const OpDef op_avgpool_grad = {
    .name = "avgpool_grad", .brief = "the gradient of avgpool", .inputs = "dy: float", .outputs = "dx", .traits = OP_INTERNAL, .attrs = {{.name = "shape", .kind = ATTR_SIZES, .brief = "of x"}, POOL_ATTRS, COUNT_PAD},
    .shape = pool_grad_shape, .compute = avgpool_grad_compute, .grad = avgpool_grad_grad, .along = "mixes", .precision = "f32", .cases = CASES("dy: f32[1,1,2,2]; shape = [1, 1, 4, 4]; kernel = 2"),
};
