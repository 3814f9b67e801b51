// pool.c: windows that are reduced to their maximum, mean or norm. (N, C, …) over one to three axes, by the Window of window.c;
// and windows over the whole picture, or to a given number of them.
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
    .no_grad = "it is a gradient itself", .once = true, .along = "mixes", .precision = "f32", .cases = CASES("place: u8[1,1,2,2] in 0 3; dy: f32[1,1,2,2]; shape = [1, 1, 4, 4]; kernel = 2"),
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

// --- over the whole picture, and to a given size ----------------------------------------------------------------------------------------

static bool global_shape(OpCall *call)
{
    Type type = call->in[0]->type;
    if (!op_rank(call, 0, 3, 5))
        return false;
    for (int i = 2; i < type.shape.rank; i++)
        type.shape.dim[i] = size_const(call->cx, 1);
    return op_one(call, type);
}

static Value *over_picture(Builder *b, const char *op, Value *x)
{
    bool axes[RANK_MAX] = {false};
    for (int i = 2; i < x->type.shape.rank; i++)
        axes[i] = true;
    return build_reduce(b, op, x, axes, true);
}

static void global_avgpool_expand(Builder *b, const Node *node, Value **out) { out[0] = over_picture(b, "mean", node->in[0]); }
static void global_maxpool_expand(Builder *b, const Node *node, Value **out) { out[0] = over_picture(b, "max", node->in[0]); }

#define GLOBAL_CASES .cases = CASES("x: f32[N,2,3,5]", "x: f32[2,1,4]", "x: f32[1,2,1,1]", "x: f32[1,2,2,3,2]")

const OpDef op_global_avgpool = {
    .name = "global_avgpool", .brief = "the mean over the whole picture, its axes kept with size 1 (Lin et al. 2014)", .inputs = "x: float", .outputs = "y", .example = "y = global_avgpool(x)",
    .doc = "(N, C, …) to (N, C, 1, …). Without those axes: mean(x, axis = [2, 3]).", .shape = global_shape, .expand = global_avgpool_expand, .traits = OP_DATA, .along = "mixes", .precision = "f32", .onnx = {{"GlobalAveragePool", 1, 0}}, GLOBAL_CASES,
};

const OpDef op_global_maxpool = {
    .name = "global_maxpool", .brief = "the largest of the whole picture, its axes kept with size 1", .inputs = "x: float", .outputs = "y", .example = "y = global_maxpool(x)",
    .doc = "(N, C, …) to (N, C, 1, …). Equal ones share the gradient. Without those axes: max(x, axis = [2, 3]).", .shape = global_shape, .expand = global_maxpool_expand, .traits = OP_DATA, .along = "mixes", .precision = "any",
    .onnx = {{"GlobalMaxPool", 1, 0}}, GLOBAL_CASES,
};

#define ADAPTIVE_SIZE {.name = "size", .kind = ATTR_INTS, .least = 1, .most = 1e6, .positional = true, .brief = "of the result: one number, or one for each axis"}

static int64_t adaptive_size(const Attr *size, int i) { return size->ints[size->count == 1 ? 0 : i]; }

static bool adaptive_shape(OpCall *call, bool divides)
{
    Context *cx = call->cx;
    const Attr *size = call_attr(call, "size");
    Type type = call->in[0]->type;
    if (!op_rank(call, 0, 3, 5))
        return false;
    if (size->count != 1 && size->count != type.shape.rank - 2)
        return op_error(call, MESSAGE_E0311, arena_printf(cx->arena, "size of %s", call->op->name), "one number, or one for each axis", arena_printf(cx->arena, "%d numbers", size->count));
    for (int i = 2; i < type.shape.rank; i++) {
        int64_t n, to = adaptive_size(size, i - 2);
        if (!size_known(type.shape.dim[i], &n) || n == 0)
            return op_error(call, MESSAGE_E0311, arena_printf(cx->arena, "the picture of %s", call->op->name), "known when compiling, and not empty", type_text(cx, &call->in[0]->type));
        if (divides && n % to != 0)
            return op_error(call, MESSAGE_E0306, "picture / size", arena_printf(cx->arena, "%d / %d", (int)n, (int)to));
        type.shape.dim[i] = size_const(cx, to);
    }
    return op_one(call, type);
}

static bool adaptive_avgpool_shape(OpCall *call) { return adaptive_shape(call, false); }
static bool adaptive_maxpool_shape(OpCall *call) { return adaptive_shape(call, true); }

// As windows of equal size, where the picture is a multiple of the result; NULL otherwise.
static Value *equal_windows(Builder *b, const Node *node, const char *op)
{
    const Shape *x = &node->in[0]->type.shape;
    int64_t kernel[3];
    for (int i = 2; i < x->rank; i++) {
        int64_t n = size_value(x->dim[i]), to = adaptive_size(node_attr(node, "size"), i - 2);
        if (n % to != 0)
            return NULL;
        kernel[i - 2] = n / to;
    }
    OpCall call = call_new(b, op, 1, node->in);
    call_ints(&call, "kernel", x->rank - 2, kernel);
    return op_build(b, &call);
}

static Value *unequal_windows(Builder *b, const char *op, Value *x, const Shape *shape)
{
    OpCall call = call_new(b, op, 1, &x);
    call_sizes(&call, "shape", shape->rank, shape->dim);
    return op_build(b, &call);
}

static void adaptive_avgpool_expand(Builder *b, const Node *node, Value **out)
{
    Value *equal = equal_windows(b, node, "avgpool");
    out[0] = equal != NULL ? equal : unequal_windows(b, "unequal_avgpool", node->in[0], &node->out[0]->type.shape);
}

static void adaptive_maxpool_expand(Builder *b, const Node *node, Value **out) { out[0] = equal_windows(b, node, "maxpool"); }

const OpDef op_adaptive_avgpool = {
    .name = "adaptive_avgpool", .brief = "means of windows that divide the picture into a given number", .inputs = "x: float", .outputs = "y", .example = "y = adaptive_avgpool(x, 7)",
    .doc = "Window i goes from floor(i in / out) to ceil((i + 1) in / out): where in is no multiple of out, windows differ in size and overlap.", .attrs = {ADAPTIVE_SIZE},
    .shape = adaptive_avgpool_shape, .expand = adaptive_avgpool_expand, .traits = OP_DATA, .along = "mixes", .precision = "f32", .cases = CASES("x: f32[N,2,6,4]; size = [3, 2]", "x: f32[1,2,5,7]; size = [3, 4]", "x: f32[2,1,5]; size = 1", "x: f32[1,1,2,3]; size = [5, 3]"),
};

const OpDef op_adaptive_maxpool = {
    .name = "adaptive_maxpool", .brief = "the largest of windows that divide the picture into a given number", .inputs = "x: float", .outputs = "y", .example = "y = adaptive_maxpool(x, 7)",
    .doc = "The picture must be a multiple of the size; windows of different sizes are not there for maxima.", .attrs = {ADAPTIVE_SIZE}, .shape = adaptive_maxpool_shape, .expand = adaptive_maxpool_expand, .traits = OP_DATA, .along = "mixes", .precision = "any",
    .cases = CASES("x: f32[N,2,6,4]; size = [3, 2]", "x: f32[2,1,5]; size = 1", "x: f32[2,1,3]; size = 3"),
};

static bool shape_attr(OpCall *call)
{
    const Attr *sizes = call_attr(call, "shape");
    Type type = {.dtype = call->in[0]->type.dtype, .shape = {.rank = sizes->count}};
    for (int i = 0; i < sizes->count; i++)
        type.shape.dim[i] = sizes->sizes[i];
    return op_one(call, type);
}

// Where window i of an axis begins and ends: floor(i in / out), ceil((i + 1) in / out).
static Expr *unequal_from(Context *cx, Expr *i, int64_t in, int64_t out) { return e_div(cx, e_mul(cx, i, e_whole(cx, in)), out); }

static Expr *unequal_to(Context *cx, Expr *i, int64_t in, int64_t out)
{
    return e_div(cx, e_add(cx, e_mul(cx, e_add(cx, i, e_whole(cx, 1)), e_whole(cx, in)), e_whole(cx, out - 1)), out);
}

static Expr *times_count(Context *cx, Expr *count, Expr *from, Expr *to) { return e_mul(cx, count, e_sub(cx, to, from)); }

static void unequal_avgpool_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    const Shape *x = &node->in[0]->type.shape;
    Expr *at[5] = {e_axis(cx, 0), e_axis(cx, 1)}, *inside = NULL, *count = e_whole(cx, 1);
    compute_over(out, &node->out[0]->type.shape);
    for (int i = 2; i < x->rank; i++) {
        int64_t in = size_value(x->dim[i]), to = size_value(out->extent[i]), widest = (in + to - 1) / to + (in % to != 0);
        Expr *from = unequal_from(cx, e_axis(cx, i), in, to), *end = unequal_to(cx, e_axis(cx, i), in, to);
        at[i] = e_add(cx, from, e_axis(cx, compute_reduce(out, REDUCE_SUM, size_const(cx, widest < in ? widest : in))));
        inside = e_and(cx, inside, e_prim(cx, PRIM_lt, at[i], end));
        count = times_count(cx, count, from, end);
    }
    Expr *value = e_load(cx, node->in[0], at);
    out->body = e_where(cx, inside, e_prim(cx, PRIM_div, value, expr_cast(cx, value->type, count)), 0);
}

static void unequal_avgpool_grad_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    const Shape *dy = &node->in[0]->type.shape;
    Expr *at[5] = {e_axis(cx, 0), e_axis(cx, 1)}, *inside = NULL, *count = e_whole(cx, 1);
    compute_over(out, &node->out[0]->type.shape);
    for (int i = 2; i < dy->rank; i++) {
        int64_t in = size_value(out->extent[i]), to = size_value(dy->dim[i]), most = (to + in - 1) / in + 1;
        Expr *last = e_div(cx, e_sub(cx, e_mul(cx, e_add(cx, e_axis(cx, i), e_whole(cx, 1)), e_whole(cx, to)), e_whole(cx, 1)), in);
        at[i] = e_sub(cx, last, e_axis(cx, compute_reduce(out, REDUCE_SUM, size_const(cx, most < to ? most : to))));
        Expr *from = unequal_from(cx, at[i], in, to), *end = unequal_to(cx, at[i], in, to);
        inside = e_and(cx, inside, e_prim(cx, PRIM_ge, at[i], e_whole(cx, 0)));
        inside = e_and(cx, inside, e_prim(cx, PRIM_and, e_prim(cx, PRIM_le, from, e_axis(cx, i)), e_prim(cx, PRIM_lt, e_axis(cx, i), end)));
        count = times_count(cx, count, from, end);
    }
    Expr *value = e_load(cx, node->in[0], at);
    out->body = e_where(cx, inside, e_prim(cx, PRIM_div, value, expr_cast(cx, value->type, count)), 0);
}

static void unequal_avgpool_grad_rule(Builder *b, const Node *node, Value *const *dy, Value **dx) { dx[0] = unequal_windows(b, "unequal_avgpool_grad", dy[0], &node->in[0]->type.shape); }
static void unequal_avgpool_grad_grad(Builder *b, const Node *node, Value *const *dy, Value **dx) { dx[0] = unequal_windows(b, "unequal_avgpool", dy[0], &node->in[0]->type.shape); }

const OpDef op_unequal_avgpool = {
    .name = "unequal_avgpool", .brief = "means of windows that differ in size", .inputs = "x: float", .outputs = "y", .traits = OP_INTERNAL, .attrs = {{.name = "shape", .kind = ATTR_SIZES, .brief = "of the result"}}, .shape = shape_attr,
    .compute = unequal_avgpool_compute, .grad = unequal_avgpool_grad_rule, .along = "mixes", .precision = "f32", .cases = CASES("x: f32[1,2,5,7]; shape = [1, 2, 3, 4]"),
};

const OpDef op_unequal_avgpool_grad = {
    .name = "unequal_avgpool_grad", .brief = "the gradient of unequal_avgpool", .inputs = "dy: float", .outputs = "dx", .traits = OP_INTERNAL, .attrs = {{.name = "shape", .kind = ATTR_SIZES, .brief = "of x"}}, .shape = shape_attr,
    .compute = unequal_avgpool_grad_compute, .grad = unequal_avgpool_grad_grad, .along = "mixes", .precision = "f32", .cases = CASES("dy: f32[1,2,3,4]; shape = [1, 2, 5, 7]", "dy: f32[1,1,5]; shape = [1, 1, 2]"),
};

// --- lppool -----------------------------------------------------------------------------------------------------------------------------

static void lppool_expand(Builder *b, const Node *node, Value **out)
{
    double p = (double)node_attr(node, "p")->i;
    Window w = pool_window(b->cx, node, &node->in[0]->type.shape);
    int64_t taps = 1;
    for (int i = 0; i < w.axes; i++)
        taps *= w.kernel[i];
    const char *power = p == 1 ? "abs(x0)" : p == 2 ? "x0 * x0" : arena_printf(b->cx->arena, "pow(abs(x0), %.17g)", p);
    Value *each = build_map1(b, power, node->in[0]);
    OpCall call = call_new(b, "avgpool", 1, &each);
    call_same(&call, node);
    Value *mean = op_build(b, &call);
    const char *root = p == 1 ? "x0 * %.17g" : p == 2 ? "select(x0 > 0, sqrt(x0 * %.17g), 0)" : "select(x0 > 0, pow(x0 * %.17g, %.17g), 0)";
    out[0] = build_map1(b, arena_printf(b->cx->arena, root, (double)taps, 1 / p), mean);
}

const OpDef op_lppool = {
    .name = "lppool", .brief = "the p-norm of each window", .inputs = "x: float", .outputs = "y", .example = "y = lppool(x, kernel = 2, p = 2)", .doc = "(sum |x|^p)^(1/p). What lies outside of the picture is 0. The gradient of a window of zeros is 0.",
    .attrs = {{.name = "p", .kind = ATTR_INT, .initial = "2", .least = 1, .most = 64, .brief = "which norm"}, {.name = "kernel", .kind = ATTR_INTS, .least = 1, .most = 1e6, .onnx = "kernel_shape", .brief = "size of the window: one number, or one for each axis"},
              {.name = "stride", .kind = ATTR_INTS, .initial = "", .least = 1, .most = 1e6, .onnx = "strides", .brief = "steps of the window; its size if not given"},
              {.name = "pad", .kind = ATTR_INTS, .initial = "0", .words = "same", .least = 0, .most = 1e6, .onnx = "pads", .brief = "as in conv"}},
    .shape = pool_shape, .expand = lppool_expand, .flops = pool_flops, .traits = OP_DATA, .along = "mixes", .precision = "f32", .onnx = {{"LpPool", 1, 0}},
    .cases = CASES("x: f32[N,2,4,6]; kernel = 2", "x: f32[1,1,5,5] in 0.1 2; kernel = 3; stride = 2; p = 3", "x: f32[2,1,6] in 0.1 2; kernel = 2; p = 1", "x: f32[1,1,3,3]; kernel = 2; stride = 1; pad = 1"),
};
