// conv.c: convolution over one, two or three axes (N, C, …), and its two gradients as ops of their own, since each has a
// kernel. All three walk by the one Window (window.c).
#include "op.h"

#define CONV_ATTRS {.name = "stride", .kind = ATTR_INTS, .initial = "1", .least = 1, .most = 1e6, .onnx = "strides", .brief = "steps of the window: one number, or one for each axis"}, \
                   {.name = "pad", .kind = ATTR_INTS, .initial = "0", .words = "same", .least = 0, .most = 1e6, .onnx = "pads", .brief = "zeros around: a number, one for each axis, one for each side, or same: in / stride, rounded up"}, \
                   {.name = "dilation", .kind = ATTR_INTS, .initial = "1", .least = 1, .most = 1e6, .onnx = "dilations", .brief = "steps between the taps of the window"}, \
                   {.name = "groups", .kind = ATTR_INT, .initial = "1", .least = 1, .most = 1e6, .onnx = "group", .brief = "channels are divided into so many parts that do not mix"}

static bool kernel_of(OpCall *call, int axes, int64_t *kernel)
{
    const Attr *a = call_attr(call, "kernel");
    for (int i = 0; i < axes; i++)
        kernel[i] = a->ints[a->count == 1 ? 0 : i];
    return a->count == 1 || a->count == axes || op_error(call, MESSAGE_E0311, "kernel of conv", "one number, or one for each axis", arena_printf(call->cx->arena, "%d numbers", a->count));
}

static bool groups_fit(OpCall *call, int64_t in, int64_t out, int64_t groups)
{
    Arena *arena = call->cx->arena;
    if (in % groups != 0)
        return op_error(call, MESSAGE_E0306, "channels of x / groups", arena_printf(arena, "%d / %d", (int)in, (int)groups));
    return out % groups == 0 || op_error(call, MESSAGE_E0306, "channels / groups", arena_printf(arena, "%d / %d", (int)out, (int)groups));
}

static bool conv_shape(OpCall *call)
{
    Context *cx = call->cx;
    Type type = call->in[0]->type;
    int64_t in, kernel[3], out = call_attr(call, "channels")->i, groups = call_attr(call, "groups")->i;
    Window w;
    if (!op_rank(call, 0, 3, 5))
        return false;
    if (!size_known(type.shape.dim[1], &in))
        return op_error(call, MESSAGE_E0311, "the number of channels of conv", "known when compiling", type_text(cx, &type));
    if (!kernel_of(call, type.shape.rank - 2, kernel) || !groups_fit(call, in, out, groups) || !window_of(cx, call->op, call->attr, &type.shape, kernel, call, &w))
        return false;
    Size weight[5] = {size_const(cx, out), size_const(cx, in / groups)};
    type.shape.dim[1] = weight[0];
    for (int i = 0; i < w.axes; i++) {
        weight[2 + i] = size_const(cx, kernel[i]);
        type.shape.dim[2 + i] = w.out[i];
    }
    return op_owned(call, "weight", type_of(type.dtype, type.shape.rank, weight)) &&
           (!call_attr(call, "bias")->i || op_owned(call, "bias", type_of(type.dtype, 1, weight))) && op_one(call, type);
}

// The window of a conv, or of one of its gradients, whose weights have the shape `weight` and whose picture is `x`.
static Window conv_window(Context *cx, const Node *node, const Shape *x, const Shape *weight)
{
    int64_t kernel[3];
    Window w;
    for (int i = 0; i < x->rank - 2; i++)
        kernel[i] = size_value(weight->dim[2 + i]);
    window_of(cx, node->op, node->attr, x, kernel, NULL, &w);
    return w;
}

// y[n, o, p] = bias[o] + sum over c, k of x[n, group of o + c, p stride - pad + k dilation] weight[o, c, k]
static void conv_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Value *x = node->in[0], *weight = node->in[1], *bias = node->n_in > 2 ? node->in[2] : NULL;
    const Shape *ws = &weight->type.shape;
    Window w = conv_window(cx, node, &x->type.shape, ws);
    int64_t groups = node_attr(node, "groups")->i, outs = size_value(ws->dim[0]) / groups, ins = size_value(ws->dim[1]);
    compute_over(out, &node->out[0]->type.shape);
    Expr *o = e_axis(cx, 1), *c = e_axis(cx, compute_reduce(out, REDUCE_SUM, ws->dim[1])), *inside = NULL, *first = e_prim(cx, PRIM_eq, c, e_whole(cx, 0));
    Expr *group = groups == 1 ? e_whole(cx, 0) : e_div(cx, o, outs);
    Expr *from[5] = {e_axis(cx, 0), e_add(cx, e_mul(cx, group, e_whole(cx, ins)), c)}, *tap[5] = {o, c};
    for (int i = 0; i < w.axes; i++) {
        tap[2 + i] = e_axis(cx, compute_reduce(out, REDUCE_SUM, ws->dim[2 + i]));
        from[2 + i] = window_at(cx, &w, i, e_axis(cx, 2 + i), tap[2 + i]);
        inside = e_and(cx, inside, window_inside(cx, &w, i, from[2 + i]));
        first = e_and(cx, first, e_prim(cx, PRIM_eq, tap[2 + i], e_whole(cx, 0)));
    }
    out->body = e_where(cx, inside, e_prim(cx, PRIM_mul, e_load(cx, x, from), e_load(cx, weight, tap)), 0);
    if (bias != NULL)
        out->body = e_prim(cx, PRIM_add, out->body, e_select(cx, first, e_load(cx, bias, &o), e_zero(cx, bias->type.dtype)));
}

static void conv_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    Value *x = node->in[0], *weight = node->in[1];
    OpCall input = call_new(b, "conv_grad_input", 2, (Value *[]){dy[0], weight}), weights = call_new(b, "conv_grad_weight", 2, (Value *[]){x, dy[0]});
    call_same(&input, node);
    call_sizes(&input, "shape", x->type.shape.rank, x->type.shape.dim);
    call_same(&weights, node);
    call_sizes(&weights, "shape", weight->type.shape.rank, weight->type.shape.dim);
    dx[0] = op_build(b, &input);
    dx[1] = op_build(b, &weights);
    if (node->n_in > 2 && node->in[2] != NULL)
        dx[2] = build_reduce(b, "sum", dy[0], (bool[RANK_MAX]){true, false, true, true, true}, false);
}

// Two operations for each tap of each result.
static Size conv_cost(Context *cx, const Shape *y, const Shape *weight)
{
    Size taps = size_const(cx, 2);
    for (int i = 1; i < weight->rank; i++)
        taps = size_times(cx, taps, weight->dim[i]);
    return size_times(cx, shape_count(cx, y), taps);
}

static Size conv_flops(Context *cx, const Node *node)        { return conv_cost(cx, &node->out[0]->type.shape, &node->in[1]->type.shape); }
static Size conv_input_flops(Context *cx, const Node *node)  { return conv_cost(cx, &node->in[0]->type.shape, &node->in[1]->type.shape); }
static Size conv_weight_flops(Context *cx, const Node *node) { return conv_cost(cx, &node->in[1]->type.shape, &node->out[0]->type.shape); }

#define CONV_CASES \
    CASES("x: f32[N,2,5,4]; weight: f32[3,2,3,3]; bias: f32[3]; channels = 3; kernel = 3", "x: f32[N,2,5,6]; weight: f32[3,2,3,3]; bias: f32[3]; channels = 3; kernel = 3; pad = 1; stride = 2", \
          "x: f32[1,2,5,4]; weight: f32[2,2,3,2]; channels = 2; kernel = [3, 2]; pad = same; bias = false", "x: f32[1,2,5,6]; weight: f32[2,2,4,3]; channels = 2; kernel = [4, 3]; pad = same; stride = 2; bias = false", \
          "x: f32[1,4,5,5]; weight: f32[6,2,3,3]; bias: f32[6]; channels = 6; kernel = 3; groups = 2; pad = [0, 1, 2, 1]", "x: f32[1,1,7,7]; weight: f32[2,1,3,3]; bias: f32[2]; channels = 2; kernel = 3; dilation = 2; pad = 2", \
          "x: f32[N,2,6]; weight: f32[3,2,3]; bias: f32[3]; channels = 3; kernel = 3; pad = 1", "x: f32[1,1,3,4,3]; weight: f32[2,1,2,2,2]; bias: f32[2]; channels = 2; kernel = 2", \
          "x: f32[2,3,4,4]; weight: f32[3,1,1,1]; channels = 3; kernel = 1; groups = 3; stride = 3; bias = false", "x: f32[2,3,1,1]; weight: f32[4,3,1,1]; bias: f32[4]; channels = 4; kernel = 1")

const OpDef op_conv = {
    .name = "conv", .brief = "convolution of (N, C, …) over one to three axes", .inputs = "x: float, weight: like x, bias: like x?", .outputs = "y", .example = "y = conv(x, 64, kernel = 3, pad = 1) @conv1",
    .doc = "y[n, o, p] = bias[o] + sum over c, k of x[n, c, p stride - pad + k dilation] weight[o, c, k], x being 0 outside. As everywhere in learning, the kernel is not mirrored.",
    .attrs = {{.name = "channels", .kind = ATTR_INT, .least = 1, .most = 2147483647, .positional = true, .brief = "of the result"},
              {.name = "kernel", .kind = ATTR_INTS, .least = 1, .most = 1e6, .onnx = "kernel_shape", .brief = "size of the window: one number, or one for each axis"}, CONV_ATTRS,
              {.name = "bias", .kind = ATTR_BOOL, .initial = "true", .brief = "whether there is one"}},
    .owned = {{"weight", ROLE_WEIGHT, "kaiming_uniform(a = 2.2360679774997896)", NULL}, {"bias", ROLE_BIAS, "uniform_fan", "bias"}},
    .shape = conv_shape, .compute = conv_compute, .grad = conv_grad, .flops = conv_flops, .along = "mixes", .precision = "f32", .quantize = "int8", .onnx = {{"Conv", 1, 0}}, .cases = CONV_CASES,
};

// --- gradients ----------------------------------------------------------------------------------------------------------------------

static bool shape_given(OpCall *call)
{
    const Attr *sizes = call_attr(call, "shape");
    Type type = {.dtype = call->in[0]->type.dtype, .shape = {.rank = sizes->count}};
    for (int i = 0; i < sizes->count; i++)
        type.shape.dim[i] = sizes->sizes[i];
    return op_one(call, type);
}

// dx[n, c, i] = sum over o of c's group, and taps k that bring a window p over i, of dy[n, o, p] weight[o, c, k]
static void conv_grad_input_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Value *dy = node->in[0], *weight = node->in[1];
    const Shape *ws = &weight->type.shape;
    Window w = conv_window(cx, node, &node->out[0]->type.shape, ws);
    int64_t groups = node_attr(node, "groups")->i, outs = size_value(ws->dim[0]) / groups, ins = size_value(ws->dim[1]);
    compute_over(out, &node->out[0]->type.shape);
    Expr *c = e_axis(cx, 1), *o = e_axis(cx, compute_reduce(out, REDUCE_SUM, size_const(cx, outs))), *inside = NULL;
    if (groups > 1) {
        o = e_add(cx, e_mul(cx, e_div(cx, c, ins), e_whole(cx, outs)), o);
        c = e_mod(cx, c, ins);
    }
    Expr *from[5] = {e_axis(cx, 0), o}, *tap[5] = {o, c};
    for (int i = 0; i < w.axes; i++) {
        Expr *exists;
        tap[2 + i] = e_axis(cx, compute_reduce(out, REDUCE_SUM, ws->dim[2 + i]));
        from[2 + i] = window_back(cx, &w, i, e_axis(cx, 2 + i), tap[2 + i], &exists);
        inside = e_and(cx, inside, exists);
    }
    out->body = e_where(cx, inside, e_prim(cx, PRIM_mul, e_load(cx, dy, from), e_load(cx, weight, tap)), 0);
}

// A conv without bias with the attributes of one of its gradients.
static Value *build_conv(Builder *b, const Node *node, Value *x, Value *weight)
{
    const Shape *ws = &weight->type.shape;
    OpCall call = call_new(b, "conv", 2, (Value *[]){x, weight});
    int64_t kernel[3];
    for (int i = 2; i < ws->rank; i++)
        kernel[i - 2] = size_value(ws->dim[i]);
    call_same(&call, node);
    call_int(&call, "channels", size_value(ws->dim[0]));
    call_ints(&call, "kernel", ws->rank - 2, kernel);
    call_bool(&call, "bias", false);
    return op_build(b, &call);
}

static Value *build_conv_part(Builder *b, const char *op, const Node *node, Value *x, Value *y, const Shape *shape)
{
    OpCall call = call_new(b, op, 2, (Value *[]){x, y});
    call_same(&call, node);
    call_sizes(&call, "shape", shape->rank, shape->dim);
    return op_build(b, &call);
}

// It is linear in dy and in the weights: the other two of the three.
static void conv_grad_input_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    dx[0] = build_conv(b, node, dy[0], node->in[1]);
    dx[1] = build_conv_part(b, "conv_grad_weight", node, dy[0], node->in[0], &node->in[1]->type.shape);
}

static void conv_grad_weight_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    dx[0] = build_conv_part(b, "conv_grad_input", node, node->in[1], dy[0], &node->in[0]->type.shape);
    dx[1] = build_conv(b, node, node->in[0], dy[0]);
}

const OpDef op_conv_grad_input = {
    .name = "conv_grad_input", .brief = "the gradient of conv by its input", .inputs = "dy: float, weight: float", .outputs = "dx", .traits = OP_INTERNAL,
    .attrs = {{.name = "shape", .kind = ATTR_SIZES, .brief = "of x"}, CONV_ATTRS}, .shape = shape_given, .compute = conv_grad_input_compute, .flops = conv_input_flops,
    .grad = conv_grad_input_grad, .along = "mixes", .precision = "f32",
    .cases = CASES("dy: f32[1,3,3,2]; weight: f32[3,2,3,3]; shape = [1, 2, 5, 4]", "dy: f32[1,4,3,3]; weight: f32[4,1,3,3]; shape = [1, 2, 5, 5]; groups = 2; stride = 2; pad = 1"),
};

// dweight[o, c, k] = sum over n, p of dy[n, o, p] x[n, group of o + c, p stride - pad + k dilation]
static void conv_grad_weight_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Value *x = node->in[0], *dy = node->in[1];
    const Shape *ws = &node->out[0]->type.shape;
    Window w = conv_window(cx, node, &x->type.shape, ws);
    int64_t groups = node_attr(node, "groups")->i, outs = size_value(ws->dim[0]) / groups, ins = size_value(ws->dim[1]);
    compute_over(out, ws);
    Expr *o = e_axis(cx, 0), *n = e_axis(cx, compute_reduce(out, REDUCE_SUM, x->type.shape.dim[0])), *inside = NULL;
    Expr *group = groups == 1 ? e_whole(cx, 0) : e_div(cx, o, outs);
    Expr *from[5] = {n, e_add(cx, e_mul(cx, group, e_whole(cx, ins)), e_axis(cx, 1))}, *at[5] = {n, o};
    for (int i = 0; i < w.axes; i++) {
        at[2 + i] = e_axis(cx, compute_reduce(out, REDUCE_SUM, w.out[i]));
        from[2 + i] = window_at(cx, &w, i, at[2 + i], e_axis(cx, 2 + i));
        inside = e_and(cx, inside, window_inside(cx, &w, i, from[2 + i]));
    }
    out->body = e_where(cx, inside, e_prim(cx, PRIM_mul, e_load(cx, x, from), e_load(cx, dy, at)), 0);
}

const OpDef op_conv_grad_weight = {
    .name = "conv_grad_weight", .brief = "the gradient of conv by its weights", .inputs = "x: float, dy: float", .outputs = "dweight", .traits = OP_INTERNAL,
    .attrs = {{.name = "shape", .kind = ATTR_SIZES, .brief = "of the weights"}, CONV_ATTRS}, .shape = shape_given, .compute = conv_grad_weight_compute, .flops = conv_weight_flops,
    .grad = conv_grad_weight_grad, .along = "mixes", .precision = "f32",
    .cases = CASES("x: f32[N,2,5,4]; dy: f32[N,3,3,2]; shape = [3, 2, 3, 3]", "x: f32[1,2,5,5]; dy: f32[1,4,3,3]; shape = [4, 1, 3, 3]; groups = 2; stride = 2; pad = 1"),
};

// --- transposed convolution -----------------------------------------------------------------------------------------------------------

// The picture whose windows are the elements of x: (in - 1) stride + reach - pads + output_pad; with same, in stride.
static bool transposed_picture(OpCall *call, const int64_t *kernel, Shape *picture)
{
    Context *cx = call->cx;
    const Shape *x = &call->in[0]->type.shape;
    Window w;
    if (!window_read(call->op, call->attr, x, kernel, call, &w))
        return false;
    const Attr *more = call_attr(call, "output_pad");
    bool same = call_attr(call, "pad")->kind == ATTR_WORD;
    for (int i = 0; i < w.axes; i++) {
        int64_t extra = more->kind == ATTR_INT ? more->i : more->ints[more->count == 1 ? 0 : i], reach = (w.kernel[i] - 1) * w.dilation[i] + 1, n;
        if (extra >= w.stride[i] && extra > 0)
            return op_error(call, MESSAGE_E0311, "output_pad of conv_transpose", "less than the stride", arena_printf(cx->arena, "%d with stride %d", (int)extra, (int)w.stride[i]));
        Size out = size_times(cx, x->dim[2 + i], size_const(cx, w.stride[i]));
        if (!same)
            out = size_plus(cx, out, size_const(cx, reach - w.stride[i] - w.before[i] - w.after[i] + extra));
        if (size_known(out, &n) && n < 1)
            return op_error(call, MESSAGE_E0311, "pad of conv_transpose", "one that leaves something", "a larger one");
        picture->dim[2 + i] = out;
    }
    return true;
}

static bool conv_transpose_shape(OpCall *call)
{
    Context *cx = call->cx;
    Type type = call->in[0]->type;
    int64_t in, kernel[3], out = call_attr(call, "channels")->i, groups = call_attr(call, "groups")->i;
    Window w;
    if (!op_rank(call, 0, 3, 5))
        return false;
    if (!size_known(type.shape.dim[1], &in))
        return op_error(call, MESSAGE_E0311, "the number of channels of conv_transpose", "known when compiling", type_text(cx, &type));
    if (!kernel_of(call, type.shape.rank - 2, kernel) || !groups_fit(call, in, out, groups) || !transposed_picture(call, kernel, &type.shape))
        return false;
    Size weight[5] = {size_const(cx, in), size_const(cx, out / groups)}, channels = size_const(cx, out);
    type.shape.dim[1] = channels;
    for (int i = 2; i < type.shape.rank; i++)
        weight[i] = size_const(cx, kernel[i - 2]);
    if (!window_of(cx, call->op, call->attr, &type.shape, kernel, call, &w))
        return false;
    for (int i = 0; i < w.axes; i++)
        if (!size_equal(w.out[i], call->in[0]->type.shape.dim[2 + i]))
            return op_error(call, MESSAGE_E0311, "the size of the picture of conv_transpose", "known when compiling, or a multiple of a named size", type_text(cx, &call->in[0]->type));
    return op_owned(call, "weight", type_of(type.dtype, type.shape.rank, weight)) &&
           (!call_attr(call, "bias")->i || op_owned(call, "bias", type_of(type.dtype, 1, &channels))) && op_one(call, type);
}

static void conv_transpose_expand(Builder *b, const Node *node, Value **out)
{
    Value *bias = node->n_in > 2 ? node->in[2] : NULL;
    const Shape *y = &node->out[0]->type.shape;
    out[0] = build_conv_part(b, "conv_grad_input", node, node->in[0], node->in[1], y);
    if (bias == NULL)
        return;
    Shape column = {y->rank, {size_const(b->cx, 1), bias->type.shape.dim[0]}};
    for (int i = 2; i < y->rank; i++)
        column.dim[i] = size_const(b->cx, 1);
    out[0] = build_map2(b, "x0 + x1", out[0], build_reshape(b, bias, &column));
}

static Size conv_transpose_flops(Context *cx, const Node *node) { return conv_cost(cx, &node->in[0]->type.shape, &node->in[1]->type.shape); }

const OpDef op_conv_transpose = {
    .name = "conv_transpose", .brief = "transposed convolution: the gradient of conv by its input, as a layer; enlarges pictures (Zeiler et al. 2010)", .inputs = "x: float, weight: like x, bias: like x?", .outputs = "y",
    .example = "y = conv_transpose(x, 64, kernel = 2, stride = 2) @up",
    .doc = "Each element of x adds its window, scaled, to the result: y[n, o, p stride - pad + k dilation] += x[n, c, p] weight[c, o, k]. Sizes are (in - 1) stride + (kernel - 1) dilation + 1 - 2 pad + output_pad, with pad = same in stride. "
           "Where the kernel is no multiple of the stride, neighbours of the result get different numbers of terms (checkerboards; Odena et al. 2016). Note the weight: (in, out / groups, kernel).",
    .attrs = {{.name = "channels", .kind = ATTR_INT, .least = 1, .most = 2147483647, .positional = true, .brief = "of the result"},
              {.name = "kernel", .kind = ATTR_INTS, .least = 1, .most = 1e6, .onnx = "kernel_shape", .brief = "size of the window: one number, or one for each axis"}, CONV_ATTRS,
              {.name = "output_pad", .kind = ATTR_INTS, .initial = "0", .least = 0, .most = 1e6, .onnx = "output_padding", .brief = "rows that the result has more at its end, less than the stride"},
              {.name = "bias", .kind = ATTR_BOOL, .initial = "true", .brief = "whether there is one"}},
    .owned = {{"weight", ROLE_WEIGHT, "kaiming_uniform(a = 2.2360679774997896)", NULL}, {"bias", ROLE_BIAS, "uniform_fan", "bias"}},
    .shape = conv_transpose_shape, .expand = conv_transpose_expand, .flops = conv_transpose_flops, .along = "mixes", .precision = "f32", .onnx = {{"ConvTranspose", 1, 0}},
    .cases = CASES("x: f32[N,2,3,4]; weight: f32[2,3,2,2]; bias: f32[3]; channels = 3; kernel = 2; stride = 2", "x: f32[1,2,3,3]; weight: f32[2,1,3,3]; channels = 1; kernel = 3; bias = false",
                   "x: f32[N,4,2,3]; weight: f32[4,1,4,3]; bias: f32[2]; channels = 2; kernel = [4, 3]; stride = [2, 1]; pad = 1; groups = 2", "x: f32[2,1,4]; weight: f32[1,2,3]; bias: f32[2]; channels = 2; kernel = 3; stride = 3; output_pad = 2; dilation = 2; pad = 1",
                   "x: f32[1,1,2,2,2]; weight: f32[1,1,2,2,2]; channels = 1; kernel = 2; stride = 2; bias = false", "x: f32[1,1,3,3]; weight: f32[1,1,3,3]; channels = 1; kernel = 3; stride = 2; pad = same; bias = false",
                   "x: f32[2,3,1,1]; weight: f32[3,2,4,4]; channels = 2; kernel = 4; bias = false", "x: f32[2,1,N,5]; weight: f32[1,1,2,2]; bias: f32[1]; channels = 1; kernel = 2; stride = 2"),
};
