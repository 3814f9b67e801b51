// vision.c: pictures and boxes: resize, grid_sample, pixel_shuffle, overlap of boxes, non-maximum suppression, RoI align.
//
// What samples a picture between its pixels comes down to places and weights: resize takes them from the sizes alone, so it
// is a pull form of a few taps for each axis; grid_sample and roi_align take them from data, and scatter their gradients.
#include <math.h>

#include "op.h"

// --- resize -----------------------------------------------------------------------------------------------------------------------

#define RESIZE_RULES {.name = "method", .kind = ATTR_WORD, .initial = "linear", .words = "nearest linear cubic", .onnx = "mode", .brief = "the pixel, or between two or four for each axis"}, \
                     {.name = "align", .kind = ATTR_WORD, .initial = "half_pixel", .words = "half_pixel corners asymmetric", .onnx = "coordinate_transformation_mode", .brief = "where pixel i of the result lies in x"}, \
                     {.name = "cubic_a", .kind = ATTR_FLOAT, .initial = "-0.75", .least = -1, .most = 0, .onnx = "cubic_coeff_a", .brief = "the curve of cubic: -0.75 in PyTorch and ONNX, -0.5 in TensorFlow and Pillow"}

static int64_t number_at(const Attr *attr, int i) { return attr->kind == ATTR_INT ? attr->i : attr->ints[attr->count == 1 ? 0 : i]; }

static bool resize_shape(OpCall *call)
{
    Context *cx = call->cx;
    const Attr *size = call_attr(call, "size"), *scale = call_attr(call, "scale");
    Type type = call->in[0]->type;
    int axes = (int)call_attr(call, "axes")->i, first = type.shape.rank - axes;
    bool nearest = strcmp(call_attr(call, "method")->word, "nearest") == 0;
    if (!op_rank(call, 0, axes, RANK_MAX))
        return false;
    if (!nearest && !type_is_float(type.dtype)) {
        op_error(call, MESSAGE_E0311, "x of resize", "of a float type, but for method = nearest", type_text(cx, &type));
        diag_help(cx->diag, "cast(…, f32)");
        return false;
    }
    if ((size->kind == ATTR_NONE) == (scale->kind == ATTR_NONE))
        return op_error(call, MESSAGE_E0308, "resize", "either size = … or scale = …");
    for (int i = first; i < type.shape.rank; i++) {
        int64_t n;
        if (size->kind != ATTR_NONE && size->count != 1 && size->count != axes)
            return op_error(call, MESSAGE_E0311, "size of resize", "one number, or one for each axis", arena_printf(cx->arena, "%d numbers", size->count));
        if (!size_known(type.shape.dim[i], &n) || n == 0)
            return op_error(call, MESSAGE_E0311, "the picture of resize", "known when compiling, and not empty", type_text(cx, &call->in[0]->type));
        int64_t to = size->kind != ATTR_NONE ? number_at(size, i - first) : (int64_t)floor((double)n * scale->f);
        if (to < 1)
            return op_error(call, MESSAGE_E0311, "scale of resize", "one that leaves a pixel", arena_printf(cx->arena, "%g", scale->f));
        type.shape.dim[i] = size_const(cx, to);
    }
    return op_one(call, type);
}

static bool is_word(const Node *node, const char *attr, const char *word) { return strcmp(node_attr(node, attr)->word, word) == 0; }

// How many pixels of x one of the result is apart. A scale that was given counts itself, not what rounding made of the size.
static double resize_ratio(const Node *node, int64_t in, int64_t out)
{
    const OpDef *op = node->op;
    if (is_word(node, "align", "corners"))
        return out > 1 ? (double)(in - 1) / (double)(out - 1) : 0;
    for (int i = 0; i < ATTRS_MAX && op->attrs[i].name != NULL; i++)
        if (strcmp(op->attrs[i].name, "scale") == 0 && node->attr[i].kind != ATTR_NONE)
            return 1 / node->attr[i].f;
    return (double)in / (double)out;
}

// The place in x, a double, that pixel o of the result lies at. nearest in PyTorch takes floor(o ratio), whatever the rule.
static double resize_place(const Node *node, int64_t o, int64_t in, int64_t out)
{
    double ratio = resize_ratio(node, in, out);
    bool half = is_word(node, "align", "half_pixel") && !is_word(node, "method", "nearest");
    return half ? ((double)o + 0.5) * ratio - 0.5 : (double)o * ratio;
}

static double cubic_weight(double distance, double a)
{
    double d = fabs(distance);
    if (d <= 1)
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? a * (((d - 5) * d + 8) * d - 4) : 0;
}

typedef struct Taps { int count; int64_t *at; double *weight; } Taps;        // of one axis: for each pixel of the result

static int64_t clamped(int64_t i, int64_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

static Taps resize_taps(Arena *arena, const Node *node, int64_t in, int64_t out)
{
    bool nearest = is_word(node, "method", "nearest"), cubic = is_word(node, "method", "cubic");
    Taps taps = {.count = nearest ? 1 : cubic ? 4 : 2};
    taps.at = NEW_ARRAY(arena, int64_t, out * taps.count);
    taps.weight = NEW_ARRAY(arena, double, out * taps.count);
    for (int64_t o = 0; o < out; o++) {
        double place = resize_place(node, o, in, out);
        if (!cubic && !nearest && place < 0)
            place = 0;
        int64_t low = (int64_t)floor(place);
        for (int k = 0; k < taps.count; k++) {
            int64_t i = cubic ? low - 1 + k : low + k;
            double distance = place - (double)i;
            taps.at[o * taps.count + k] = clamped(i, in);
            taps.weight[o * taps.count + k] = nearest ? 1 : cubic ? cubic_weight(distance, node_attr(node, "cubic_a")->f) : 1 - fabs(distance);
        }
    }
    return taps;
}

// Along one axis: (in) to (out) as a matrix with few entries, kept as constants: where the taps of each pixel are, and their
// weights.
static Value *resize_axis(Builder *b, const Node *node, Value *x, int axis, int64_t out)
{
    int64_t in = size_value(x->type.shape.dim[axis]);
    bool nearest = is_word(node, "method", "nearest");
    Taps taps = resize_taps(b->cx->arena, node, in, out);
    Size dim[] = {size_const(b->cx, out), size_const(b->cx, taps.count)};
    int64_t shape[] = {out, taps.count};
    Tensor *at = tensor_new(b->cx->arena, TYPE_i32, 2, shape), *weight = nearest ? NULL : tensor_new(b->cx->arena, x->type.dtype, 2, shape);
    for (int64_t i = 0; i < out * taps.count; i++) {
        tensor_set(at, i, (double)taps.at[i]);
        if (!nearest)
            tensor_set(weight, i, taps.weight[i]);
    }
    if (nearest) {
        OpCall call = call_new(b, "gather", 2, (Value *[]){x, graph_const(b->graph, type_of(TYPE_i32, 1, dim), at->data)});
        call_int(&call, "axis", axis);
        return op_build(b, &call);
    }
    Value *in_sampled[] = {x, graph_const(b->graph, type_of(TYPE_i32, 2, dim), at->data), graph_const(b->graph, type_of(x->type.dtype, 2, dim), weight->data)};
    OpCall call = call_new(b, "sample_axis", 3, in_sampled);
    call_int(&call, "axis", axis);
    return op_build(b, &call);
}

static void resize_expand(Builder *b, const Node *node, Value **out)
{
    Value *x = node->in[0];
    for (int i = x->type.shape.rank - (int)node_attr(node, "axes")->i; i < x->type.shape.rank; i++) {
        int64_t to = size_value(node->out[0]->type.shape.dim[i]);
        bool same = size_value(x->type.shape.dim[i]) == to && resize_ratio(node, to, to) == 1;
        x = same ? x : resize_axis(b, node, x, i, to);
    }
    out[0] = x;
}

const OpDef op_resize = {
    .name = "resize", .brief = "a picture in another size", .inputs = "x: any", .outputs = "y", .example = "y = resize(x, scale = 2, method = nearest)",
    .doc = "The last two axes are rows and columns, whatever stands before them; `axes` says otherwise. Pixel o of the result lies at (o + 0.5) in / out - 0.5 (half_pixel: pictures keep their edges), at o (in - 1) / (out - 1) (corners: pixels at the corners stay), or at o in / out (asymmetric); beyond the edge the outermost pixel counts. "
           "nearest takes pixel floor(o in / out), as PyTorch does; with corners floor(o (in - 1) / (out - 1)). linear and cubic weigh two or four pixels of each axis. Reduced pictures are not smoothed first: for that avgpool.",
    .attrs = {{.name = "size", .kind = ATTR_INTS, .initial = "", .least = 1, .most = 1e6, .onnx = "sizes", .brief = "of the result: one number, or one for each axis"}, {.name = "scale", .kind = ATTR_FLOAT, .initial = "", .least = 1e-6, .most = 1e6, .onnx = "scales", .brief = "or how much larger; sizes are rounded down"}, RESIZE_RULES,
              {.name = "axes", .kind = ATTR_INT, .initial = "2", .least = 1, .most = 3, .brief = "how many last axes: 1 for sequences, 3 for volumes"}},
    .shape = resize_shape, .expand = resize_expand, .traits = OP_DATA, .along = "mixes", .precision = "f32", .onnx = {{"Resize", 11, 0}, {"Upsample", 7, 9}},
    .cases = CASES("x: f32[N,2,3,4]; scale = 2; method = nearest", "x: f32[1,1,4,5]; size = [7, 3]", "x: f32[1,2,5,3]; size = [3, 7]; align = corners", "x: f32[1,1,4,4]; size = 7; method = cubic", "x: f32[1,1,5,4]; size = [2, 9]; method = cubic; align = corners",
                   "x: f32[2,1,5]; scale = 1.7; axes = 1", "x: f32[1,1,1,1]; size = 3", "x: f32[1,1,7,5]; size = [3, 2]; method = nearest", "x: f32[1,1,2,3,2]; size = [3, 2, 5]; axes = 3", "x: f32[3,4,5]; size = 2", "x: u8[2,3] in 0 9; size = 5; method = nearest", "x: f32[N,1,3]; size = 1; align = corners; axes = 1"),
};

static bool sample_axis_shape(OpCall *call)
{
    Type type = call->in[0]->type;
    type.shape.dim[call_attr(call, "axis")->i] = call->in[1]->type.shape.dim[0];
    return op_one(call, type);
}

// y[o] = sum over k of weight[o, k] x[at[o, k]]
static void sample_axis_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Value *x = node->in[0], *at = node->in[1], *weight = node->in[2];
    int axis = (int)node_attr(node, "axis")->i;
    Expr *from[RANK_MAX];
    compute_over(out, &node->out[0]->type.shape);
    for (int i = 0; i < out->rank; i++)
        from[i] = e_axis(cx, i);
    Expr *tap[] = {e_axis(cx, axis), e_axis(cx, compute_reduce(out, REDUCE_SUM, at->type.shape.dim[1]))};
    from[axis] = e_index(cx, at, tap);
    out->body = e_prim(cx, PRIM_mul, e_load(cx, weight, tap), e_load(cx, x, from));
}

static void sample_axis_grad_rule(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    OpCall call = call_new(b, "sample_axis_grad", 3, (Value *[]){dy[0], node->in[1], node->in[2]});
    int64_t axis = node_attr(node, "axis")->i;
    call_int(&call, "axis", axis);
    call_sizes(&call, "size", 1, &node->in[0]->type.shape.dim[axis]);
    dx[0] = op_build(b, &call);
}

const OpDef op_sample_axis = {
    .name = "sample_axis", .brief = "weighted elements along an axis, at given places", .inputs = "x: float, index: int, values: float", .outputs = "y", .traits = OP_INTERNAL, .attrs = {{.name = "axis", .kind = ATTR_INT, .brief = "which, from 0"}},
    .shape = sample_axis_shape, .compute = sample_axis_compute, .grad = sample_axis_grad_rule, .along = "mixes", .precision = "f32", .cases = CASES("x: f32[2,4]; index: i32[3,2] in 0 3; values: f32[3,2]; axis = 1"),
};

static bool sample_axis_grad_shape(OpCall *call)
{
    Type type = call->in[0]->type;
    type.shape.dim[call_attr(call, "axis")->i] = call_attr(call, "size")->sizes[0];
    return op_one(call, type);
}

static Loop *sample_axis_grad_lower(Context *cx, const Node *node)
{
    Value *dy = node->in[0], *at = node->in[1], *weight = node->in[2], *dx = node->out[0];
    int axis = (int)node_attr(node, "axis")->i, rank = dy->type.shape.rank;
    Expr *from[RANK_MAX], *to[RANK_MAX];
    Nest nest = nest_new(cx);
    nest_fill(&nest, dx, e_zero(cx, dx->type.dtype));
    for (int i = 0; i < rank; i++)
        from[i] = to[i] = nest_for(&nest, i, dy->type.shape.dim[i], AXIS_SERIAL);
    Expr *tap[] = {from[axis], nest_for(&nest, rank, at->type.shape.dim[1], AXIS_SERIAL)};
    to[axis] = e_index(cx, at, tap);
    nest_scatter(&nest, dx, to, e_prim(cx, PRIM_mul, e_load(cx, weight, tap), e_load(cx, dy, from)));
    return nest.root;
}

static void sample_axis_grad_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    OpCall call = call_new(b, "sample_axis", 3, (Value *[]){dy[0], node->in[1], node->in[2]});
    call_int(&call, "axis", node_attr(node, "axis")->i);
    dx[0] = op_build(b, &call);
}

const OpDef op_sample_axis_grad = {
    .name = "sample_axis_grad", .brief = "the gradient of sample_axis", .inputs = "dy: float, index: int, values: float", .outputs = "dx", .traits = OP_INTERNAL, .attrs = {{.name = "axis", .kind = ATTR_INT, .brief = "which, from 0"}, {.name = "size", .kind = ATTR_SIZES, .brief = "of x along it"}},
    .shape = sample_axis_grad_shape, .lower = sample_axis_grad_lower, .grad = sample_axis_grad_grad, .along = "mixes", .precision = "f32", .cases = CASES("dy: f32[2,3]; index: i32[3,2] in 0 3; values: f32[3,2]; axis = 1; size = 4"),
};

// --- pixel_shuffle ----------------------------------------------------------------------------------------------------------------

#define FACTOR {.name = "factor", .kind = ATTR_INT, .least = 1, .most = 1e6, .positional = true, .onnx = "blocksize", .brief = "how much larger or smaller each side becomes"}

static bool pixel_shuffle_shape(OpCall *call)
{
    Context *cx = call->cx;
    Type type = call->in[0]->type;
    Size factor = size_const(cx, call_attr(call, "factor")->i);
    if (!op_rank(call, 0, 4, 4))
        return false;
    Size channels = size_over(cx, type.shape.dim[1], size_times(cx, factor, factor));
    if (channels == NULL)
        return op_error(call, MESSAGE_E0306, "channels / factor^2", arena_printf(cx->arena, "%s, divided by %d", type_text(cx, &type), (int)(call_attr(call, "factor")->i * call_attr(call, "factor")->i)));
    type.shape = (Shape){4, {type.shape.dim[0], channels, size_times(cx, type.shape.dim[2], factor), size_times(cx, type.shape.dim[3], factor)}};
    return op_one(call, type);
}

static Value *turned(Builder *b, Value *x, const Shape *as, const int64_t *axes, const Shape *to)
{
    Value *apart = build_reshape(b, x, as);
    OpCall call = call_new(b, "transpose", 1, &apart);
    call_ints(&call, "axes", 6, axes);
    return build_reshape(b, op_build(b, &call), to);
}

static void pixel_shuffle_expand(Builder *b, const Node *node, Value **out)
{
    const Shape *x = &node->in[0]->type.shape, *y = &node->out[0]->type.shape;
    Size f = size_const(b->cx, node_attr(node, "factor")->i);
    bool depth_last = is_word(node, "order", "dcr");
    Shape as = {6, {x->dim[0], depth_last ? f : y->dim[1], f, depth_last ? y->dim[1] : f, x->dim[2], x->dim[3]}};
    out[0] = turned(b, node->in[0], &as, depth_last ? (int64_t[]){0, 3, 4, 1, 5, 2} : (int64_t[]){0, 1, 4, 2, 5, 3}, y);
}

const OpDef op_pixel_shuffle = {
    .name = "pixel_shuffle", .brief = "channels become pixels: (N, C f f, H, W) to (N, C, H f, W f) (Shi et al. 2016)", .inputs = "x: any", .outputs = "y", .example = "y = pixel_shuffle(x, 2)",
    .doc = "y[n, c, h f + i, w f + j] = x[n, (c f + i) f + j, h, w], order crd (PyTorch). With order dcr, ONNX's default, channel (i f + j) C + c.",
    .attrs = {FACTOR, {.name = "order", .kind = ATTR_WORD, .initial = "crd", .words = "crd dcr", .onnx = "mode", .brief = "how channel, row and column make the number of a channel"}},
    .shape = pixel_shuffle_shape, .expand = pixel_shuffle_expand, .traits = OP_MOVES | OP_DATA, .along = "mixes", .precision = "any", .onnx = {{"DepthToSpace", 1, 0}}, .cases = CASES("x: f32[N,8,2,3]; factor = 2", "x: f32[1,9,1,2]; factor = 3; order = dcr", "x: f32[2,3,2,2]; factor = 1"),
};

static bool pixel_unshuffle_shape(OpCall *call)
{
    Context *cx = call->cx;
    Type type = call->in[0]->type;
    Size factor = size_const(cx, call_attr(call, "factor")->i);
    if (!op_rank(call, 0, 4, 4))
        return false;
    Size height = size_over(cx, type.shape.dim[2], factor), width = size_over(cx, type.shape.dim[3], factor);
    if (height == NULL || width == NULL)
        return op_error(call, MESSAGE_E0306, "a side / factor", arena_printf(cx->arena, "%s, divided by %d", type_text(cx, &type), (int)call_attr(call, "factor")->i));
    type.shape = (Shape){4, {type.shape.dim[0], size_times(cx, type.shape.dim[1], size_times(cx, factor, factor)), height, width}};
    return op_one(call, type);
}

static void pixel_unshuffle_expand(Builder *b, const Node *node, Value **out)
{
    const Shape *x = &node->in[0]->type.shape, *y = &node->out[0]->type.shape;
    Size f = size_const(b->cx, node_attr(node, "factor")->i);
    Shape as = {6, {x->dim[0], x->dim[1], y->dim[2], f, y->dim[3], f}};
    out[0] = turned(b, node->in[0], &as, is_word(node, "order", "dcr") ? (int64_t[]){0, 3, 5, 1, 2, 4} : (int64_t[]){0, 1, 3, 5, 2, 4}, y);
}

const OpDef op_pixel_unshuffle = {
    .name = "pixel_unshuffle", .brief = "pixels become channels: (N, C, H f, W f) to (N, C f f, H, W)", .inputs = "x: any", .outputs = "y", .example = "y = pixel_unshuffle(x, 2)", .doc = "The inverse of pixel_shuffle. ONNX's SpaceToDepth has order dcr.",
    .attrs = {FACTOR, {.name = "order", .kind = ATTR_WORD, .initial = "crd", .words = "crd dcr", .brief = "how channel, row and column make the number of a channel"}}, .shape = pixel_unshuffle_shape, .expand = pixel_unshuffle_expand,
    .traits = OP_MOVES | OP_DATA, .along = "mixes", .precision = "any", .onnx = {{"SpaceToDepth", 1, 0}}, .cases = CASES("x: f32[N,2,4,6]; factor = 2", "x: f32[1,1,3,3]; factor = 3; order = dcr"),
};

// --- boxes ------------------------------------------------------------------------------------------------------------------------

// Boxes are (…, 4): x0, y0, x1, y1.
static bool boxes_rank(OpCall *call, int input)
{
    const Type *t = &call->in[input]->type;
    int64_t four;
    if (!op_rank(call, input, 1, RANK_MAX))
        return false;
    bool fits = size_known(t->shape.dim[t->shape.rank - 1], &four) && four == 4;
    return fits || op_error(call, MESSAGE_E0311, arena_printf(call->cx->arena, "%s of %s", op_input_name(call, input), call->op->name), "of size 4 along the last axis: x0, y0, x1, y1", type_text(call->cx, t));
}

static bool box_iou_shape(OpCall *call)
{
    Context *cx = call->cx;
    const Type *a = &call->in[0]->type, *b = &call->in[1]->type;
    if (!boxes_rank(call, 0) || !boxes_rank(call, 1) || !op_rank(call, 0, 2, RANK_MAX - 1) || !op_rank(call, 1, 2, RANK_MAX - 1))
        return false;
    int rank = a->shape.rank;
    Type type = *a;
    bool same = rank == b->shape.rank && a->dtype == b->dtype;
    for (int i = 0; same && i < rank - 2; i++)
        same = size_equal(a->shape.dim[i], b->shape.dim[i]);
    type.shape.dim[rank - 1] = same ? b->shape.dim[rank - 2] : NULL;
    return same ? op_one(call, type) : op_error(call, MESSAGE_E0315, "box_iou", type_text(cx, a), type_text(cx, b));
}

// Coordinate k of boxes (…, M, 4), with an axis of size 1 before or behind M.
static Value *coordinate(Builder *b, Value *boxes, int k, bool before, bool pairs)
{
    int last = boxes->type.shape.rank - 1;
    Shape shape = boxes->type.shape;
    Value *one = build_slice(b, boxes, last, size_const(b->cx, k), size_const(b->cx, 1), 1);
    shape.rank = last + pairs;
    if (pairs && before) {
        shape.dim[last] = shape.dim[last - 1];
        shape.dim[last - 1] = size_const(b->cx, 1);
    } else if (pairs)
        shape.dim[last] = size_const(b->cx, 1);
    return build_reshape(b, one, &shape);
}

typedef struct Overlap { Value *common, *all, *hull; } Overlap;     // areas: of both, of either, of the smallest box around

static Overlap overlap(Builder *b, Value *p, Value *q, bool pairs)
{
    Value *a[4], *c[4];
    for (int k = 0; k < 4; k++) {
        a[k] = coordinate(b, p, k, false, pairs);
        c[k] = coordinate(b, q, k, true, pairs);
    }
    Value *all[] = {a[0], a[1], a[2], a[3], c[0], c[1], c[2], c[3]};
    Value *common = build_map(b, "max(min(x2, x6) - max(x0, x4), 0) * max(min(x3, x7) - max(x1, x5), 0)", 8, all);
    Value *of_p = build_map(b, "(x2 - x0) * (x3 - x1)", 4, a), *of_q = build_map(b, "(x2 - x0) * (x3 - x1)", 4, c);
    return (Overlap){common, build_map3(b, "x0 + x1 - x2", of_p, of_q, common), build_map(b, "(max(x2, x6) - min(x0, x4)) * (max(x3, x7) - min(x1, x5))", 8, all)};
}

static void box_iou_expand(Builder *b, const Node *node, Value **out)
{
    Overlap o = overlap(b, node->in[0], node->in[1], true);
    out[0] = build_map2(b, "select(x1 > 0, x0 / x1, 0)", o.common, o.all);
}

const OpDef op_box_iou = {
    .name = "box_iou", .brief = "how much each box of one list overlaps each of another: common area / area of both together", .inputs = "x: float, y: float", .outputs = "z", .example = "overlap = max(box_iou(boxes, goal), axis = -1)",
    .doc = "(…, M, 4) and (…, K, 4) give (…, M, K). A box is x0, y0, x1, y1 with x0 <= x1 and y0 <= y1. Two boxes without any area have 0.", .shape = box_iou_shape, .expand = box_iou_expand, .traits = OP_DATA, .along = "mixes", .precision = "f32",
    .cases = CASES("x: f32[3,4] in 0 2; y: f32[5,4] in 0 2", "x: f32[N,2,4] in 0 2; y: f32[N,1,4] in 0 2"),
};

static bool giou_loss_shape(OpCall *call)
{
    Type type = call->in[0]->type;
    if (!op_like(call, 0, 1) || !boxes_rank(call, 0))
        return false;
    type.shape.rank = strcmp(call_attr(call, "reduce")->word, "none") == 0 ? type.shape.rank - 1 : 0;
    return op_one(call, type);
}

static void giou_loss_expand(Builder *b, const Node *node, Value **out)
{
    const char *reduce = node_attr(node, "reduce")->word;
    bool all[RANK_MAX] = {true, true, true, true, true, true, true, true};
    Overlap o = overlap(b, node->in[0], node->in[1], false);
    out[0] = build_map3(b, "1 - x0 / (x1 + 1e-7) + (x2 - x1) / (x2 + 1e-7)", o.common, o.all, o.hull);
    if (strcmp(reduce, "none") == 0)
        return;
    Size rows = shape_count(b->cx, &out[0]->type.shape);
    out[0] = build_reduce(b, "sum", out[0], all, false);
    if (strcmp(reduce, "mean") == 0)
        out[0] = build_per(b, out[0], size_const(b->cx, 1), rows);
}

const OpDef op_giou_loss = {
    .name = "giou_loss", .brief = "1 - overlap, and more the farther two boxes are apart (Rezatofighi et al. 2019)", .inputs = "y: float, t: float", .outputs = "loss", .example = "loss = mean(giou_loss(boxes, goal), where = there)",
    .doc = "1 - common / both + (hull - both) / hull for boxes (…, 4) as x0, y0, x1, y1; hull is the smallest box around both. Unlike the overlap it has a gradient where boxes do not touch. One number for each box unless `reduce` says otherwise.",
    .attrs = {{.name = "reduce", .kind = ATTR_WORD, .initial = "none", .words = "none mean sum", .brief = "how the boxes become one number"}}, .shape = giou_loss_shape, .expand = giou_loss_expand, .along = "each", .precision = "f32",
    .cases = CASES("y: f32[5,4] in 0 2; t: f32[5,4] in 0 2", "y: f32[N,2,4] in 0 2; t: f32[N,2,4] in 0 2; reduce = mean", "y: f32[4] in 0 2; t: f32[4] in 0 2"),
};

// --- nms --------------------------------------------------------------------------------------------------------------------------

static bool nms_shape(OpCall *call)
{
    Context *cx = call->cx;
    const Type *boxes = &call->in[0]->type, *score = &call->in[1]->type;
    if (!op_rank(call, 0, 3, 3) || !boxes_rank(call, 0) || !op_rank(call, 1, 3, 3))
        return false;
    if (!size_equal(boxes->shape.dim[0], score->shape.dim[0]) || !size_equal(boxes->shape.dim[1], score->shape.dim[1]) || boxes->dtype != score->dtype)
        return op_error(call, MESSAGE_E0315, "nms", type_text(cx, boxes), type_text(cx, score));
    Size list[] = {boxes->shape.dim[0], size_const(cx, call_attr(call, "limit")->i), size_const(cx, 4)};
    call->n_out = 5;
    call->out[0] = type_of(boxes->dtype, 3, list);
    call->out[1] = type_of(boxes->dtype, 2, list);
    call->out[2] = type_of(TYPE_i32, 2, list);
    call->out[3] = type_of(TYPE_i32, 1, list);
    call->out[4] = *score;
    return true;
}

// left[n, m, c] is the score of what is still in question, -1 of what is not. Each turn takes the best and strikes out what
// overlaps it and has its class.
static Loop *nms_lower(Context *cx, const Node *node)
{
    Value *boxes = node->in[0], *score = node->in[1], *found = node->out[0], *confidence = node->out[1], *class = node->out[2], *count = node->out[3], *left = node->out[4];
    DType type = boxes->type.dtype;
    const Shape *s = &score->type.shape;
    Nest nest = nest_new(cx);
    Expr *zero = e_whole(cx, 0), *none = expr_number(cx, type, -1), *least = expr_number(cx, type, node_attr(node, "score")->f);
    Expr *n = nest_for(&nest, 0, s->dim[0], AXIS_PARALLEL);
    Loop *sample = nest.at;
    Expr *m = nest_for(&nest, 1, s->dim[1], AXIS_SERIAL), *c = nest_for(&nest, 2, s->dim[2], AXIS_SERIAL), *at[] = {n, m, c};
    Expr *own = nest_let(&nest, e_load(cx, score, at));
    nest_store(&nest, left, at, e_select(cx, e_prim(cx, PRIM_gt, own, least), own, none));
    nest.at = sample;
    Expr *taken = nest_local(&nest, TYPE_i64, zero);
    Expr *turn = nest_for(&nest, 3, size_const(cx, node_attr(node, "limit")->i), AXIS_SERIAL);
    Loop *one_turn = nest.at;
    Expr *best = nest_local(&nest, type, none), *box = nest_local(&nest, TYPE_i64, zero), *kind = nest_local(&nest, TYPE_i64, zero);
    Expr *i = nest_for(&nest, 4, s->dim[1], AXIS_SERIAL), *k = nest_for(&nest, 5, s->dim[2], AXIS_SERIAL), *of[] = {n, i, k};
    nest_if(&nest, e_prim(cx, PRIM_gt, e_load(cx, left, of), best));
    nest_update(&nest, best, REDUCE_NONE, e_load(cx, left, of));
    nest_update(&nest, box, REDUCE_NONE, i);
    nest_update(&nest, kind, REDUCE_NONE, k);
    nest.at = one_turn;
    Expr *any = nest_let(&nest, e_prim(cx, PRIM_gt, best, none)), *side[4];
    for (int j = 0; j < 4; j++) {
        side[j] = nest_let(&nest, e_load(cx, boxes, (Expr *[]){n, box, e_whole(cx, j)}));
        nest_store(&nest, found, (Expr *[]){n, turn, e_whole(cx, j)}, e_select(cx, any, side[j], e_zero(cx, type)));
    }
    nest_store(&nest, confidence, (Expr *[]){n, turn}, e_select(cx, any, best, e_zero(cx, type)));
    nest_store(&nest, class, (Expr *[]){n, turn}, expr_cast(cx, TYPE_i32, e_select(cx, any, kind, e_whole(cx, -1))));
    nest_if(&nest, any);
    nest_update(&nest, taken, REDUCE_NONE, e_add(cx, turn, e_whole(cx, 1)));
    Expr *other = nest_for(&nest, 6, s->dim[1], AXIS_SERIAL), *value[9];
    static const char *const names[] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "common"};
    for (int j = 0; j < 4; j++) {
        value[j] = side[j];
        value[4 + j] = nest_let(&nest, e_load(cx, boxes, (Expr *[]){n, other, e_whole(cx, j)}));
    }
    value[8] = nest_let(&nest, expr_parse(cx, "max(min(x2, x6) - max(x0, x4), 0) * max(min(x3, x7) - max(x1, x5), 0)", names, value, 8));
    Expr *all = expr_parse(cx, "(x2 - x0) * (x3 - x1) + (x6 - x4) * (x7 - x5) - common", names, value, 9);
    Expr *covers = e_prim(cx, PRIM_gt, value[8], e_prim(cx, PRIM_mul, expr_number(cx, type, node_attr(node, "iou")->f), all));
    nest_if(&nest, e_prim(cx, PRIM_or, covers, e_prim(cx, PRIM_eq, other, box)));
    nest_store(&nest, left, (Expr *[]){n, other, kind}, none);
    nest.at = sample;
    nest_store(&nest, count, &n, expr_cast(cx, TYPE_i32, taken));
    return nest.root;
}

static void nms_expand(Builder *b, const Node *node, Value **out)
{
    Value *all[OUTPUTS_MAX];
    OpCall call = call_new(b, "nms_lists", 2, node->in);
    call_same(&call, node);
    op_build_all(b, &call, all);
    for (int k = 0; k < 4; k++)
        out[k] = all[k];
}

static bool nms_public_shape(OpCall *call)
{
    bool fits = nms_shape(call);
    call->n_out = 4;
    return fits;
}

#define NMS_IOU   {.name = "iou", .kind = ATTR_FLOAT, .initial = "0.5", .least = 0, .most = 1, .onnx = "iou_threshold", .brief = "two boxes of a class that overlap more are the same thing"}
#define NMS_LIMIT {.name = "limit", .kind = ATTR_INT, .initial = "100", .least = 1, .most = 1e6, .onnx = "max_output_boxes_per_class", .brief = "boxes given at most, of all classes together"}

const OpDef op_nms = {
    .name = "nms", .brief = "non-maximum suppression: of boxes that overlap the one with the best score", .inputs = "boxes: float, score: float", .outputs = "found, confidence, class, count", .example = "output found, confidence, class, count = nms(boxes, score, iou = 0.45, score = 0.25)",
    .doc = "boxes is (N, M, 4) as x0, y0, x1, y1, score (N, M, classes). Again and again the best score is taken, and the boxes that overlap its box by more than iou lose that class; classes do not disturb each other. The results have room for `limit` boxes, best first: "
           "found (N, limit, 4), confidence (N, limit), class (N, limit; -1: no more), count (N). Equal scores: the first box, then the first class.",
    .attrs = {NMS_IOU, {.name = "score", .kind = ATTR_FLOAT, .initial = "0", .least = 0, .most = 1e30, .onnx = "score_threshold", .brief = "only scores above it count"}, NMS_LIMIT},
    .shape = nms_public_shape, .expand = nms_expand, .no_grad = "which boxes stay is a choice", .along = "mixes", .precision = "any", .onnx = {{"NonMaxSuppression", 10, 0}},
    .cases = CASES("boxes: f32[N,7,4] in 0 2; score: f32[N,7,2] in 0 1; limit = 5", "boxes: f32[1,5,4] in 0 2; score: f32[1,5,1] in 0 1; iou = 0.2; score = 0.4; limit = 3", "boxes: f32[2,1,4] in 0 1; score: f32[2,1,1] in 0 1; limit = 2"),
};

const OpDef op_nms_lists = {
    .name = "nms_lists", .brief = "nms, with what it struck out besides", .inputs = "boxes: float, score: float", .outputs = "found, confidence, class, count, left", .traits = OP_INTERNAL, .attrs = {NMS_IOU, {.name = "score", .kind = ATTR_FLOAT, .initial = "0", .brief = "only scores above it count"}, NMS_LIMIT},
    .shape = nms_shape, .lower = nms_lower, .no_grad = "which boxes stay is a choice", .along = "mixes", .precision = "any", .cases = CASES("boxes: f32[N,7,4] in 0 2; score: f32[N,7,2] in 0 1; limit = 5"),
};

// --- grid_sample ------------------------------------------------------------------------------------------------------------------

#define GRID_ATTRS {.name = "method", .kind = ATTR_WORD, .initial = "linear", .words = "linear nearest", .onnx = "mode", .brief = "between four pixels, or the nearest"}, \
                   {.name = "outside", .kind = ATTR_WORD, .initial = "zeros", .words = "zeros border", .onnx = "padding_mode", .brief = "what lies outside: zeros, or the outermost pixels"}, \
                   {.name = "corners", .kind = ATTR_BOOL, .initial = "false", .onnx = "align_corners", .brief = "-1 and 1 are the centres of the outermost pixels, not their edges"}

static bool grid_sample_shape(OpCall *call)
{
    const Type *x = &call->in[0]->type, *grid = &call->in[1]->type;
    int64_t two;
    if (!op_rank(call, 0, 4, 4) || !op_rank(call, 1, 4, 4))
        return false;
    if (!size_known(grid->shape.dim[3], &two) || two != 2 || !size_equal(grid->shape.dim[0], x->shape.dim[0]) || grid->dtype != x->dtype)
        return op_error(call, MESSAGE_E0311, "grid of grid_sample", "(N, rows, columns, 2), N and type those of x", type_text(call->cx, grid));
    Type type = *x;
    type.shape.dim[2] = grid->shape.dim[1];
    type.shape.dim[3] = grid->shape.dim[2];
    return op_one(call, type);
}

typedef struct Sample { Expr *low, *part, *inside[2], *moves; } Sample;     // of one axis: the pixel below, how far beyond it, whether both are there

// Where a coordinate in -1 … 1 lies on an axis of `size` pixels. `moves`, for gradients: whether the border lets it move.
static Sample sample_place(Nest *nest, const Node *node, Expr *coordinate, Size size, bool backwards)
{
    Context *cx = nest->cx;
    DType type = coordinate->type;
    bool corners = node_flag(node, "corners"), border = is_word(node, "outside", "border");
    Expr *n = expr_cast(cx, type, e_size(cx, size)), *last = expr_cast(cx, type, e_size(cx, size_minus(cx, size, size_const(cx, 1)))), *place;
    static const char *const names[] = {"u", "n", "last"};
    place = nest_let(nest, expr_parse(cx, corners ? "(u + 1) / 2 * last" : "((u + 1) * n - 1) / 2", names, (Expr *[]){coordinate, n, last}, 3));
    Sample s = {.moves = NULL};
    if (border && backwards)
        s.moves = nest_let(nest, e_prim(cx, PRIM_and, e_prim(cx, PRIM_gt, place, e_zero(cx, type)), e_prim(cx, PRIM_lt, place, last)));
    if (border)
        place = nest_let(nest, e_prim(cx, PRIM_min, e_prim(cx, PRIM_max, place, e_zero(cx, type)), last));
    bool nearest = is_word(node, "method", "nearest");
    Expr *below = nest_let(nest, expr_prim(cx, nearest ? PRIM_round : PRIM_floor, place, NULL, NULL));
    s.low = nest_let(nest, expr_cast(cx, TYPE_i64, below));
    if (!nearest)
        s.part = nest_let(nest, e_prim(cx, PRIM_sub, place, below));
    for (int k = 0; k < (nearest ? 1 : 2); k++) {
        Expr *at = e_add(cx, s.low, e_whole(cx, k));
        s.inside[k] = nest_let(nest, e_prim(cx, PRIM_and, e_prim(cx, PRIM_ge, at, e_whole(cx, 0)), e_prim(cx, PRIM_lt, at, e_size(cx, size))));
    }
    return s;
}

static Expr *tap_at(Context *cx, const Sample *s, int k) { return e_add(cx, s->low, e_whole(cx, k)); }

static Expr *tap_weight(Context *cx, const Sample *s, int k) { return k == 1 ? s->part : e_prim(cx, PRIM_sub, e_value(cx, s->part->type, 1), s->part); }

static Loop *grid_sample_lower(Context *cx, const Node *node)
{
    Value *x = node->in[0], *grid = node->in[1], *y = node->out[0];
    const Shape *xs = &x->type.shape, *ys = &y->type.shape;
    Nest nest = nest_new(cx);
    Expr *n = nest_for(&nest, 0, ys->dim[0], AXIS_PARALLEL), *h = nest_for(&nest, 1, ys->dim[2], AXIS_SERIAL), *w = nest_for(&nest, 2, ys->dim[3], AXIS_SERIAL);
    Sample across = sample_place(&nest, node, e_load(cx, grid, (Expr *[]){n, h, w, e_whole(cx, 0)}), xs->dim[3], false), down = sample_place(&nest, node, e_load(cx, grid, (Expr *[]){n, h, w, e_whole(cx, 1)}), xs->dim[2], false);
    Expr *c = nest_for(&nest, 3, ys->dim[1], AXIS_SERIAL), *sum = NULL;
    int taps = is_word(node, "method", "nearest") ? 1 : 2;
    for (int i = 0; i < taps; i++)
        for (int j = 0; j < taps; j++) {
            Expr *value = e_load(cx, x, (Expr *[]){n, c, tap_at(cx, &down, i), tap_at(cx, &across, j)});
            Expr *part = taps == 1 ? value : e_prim(cx, PRIM_mul, e_prim(cx, PRIM_mul, tap_weight(cx, &down, i), tap_weight(cx, &across, j)), value);
            part = e_select(cx, e_prim(cx, PRIM_and, down.inside[i], across.inside[j]), part, e_zero(cx, value->type));
            sum = sum == NULL ? part : e_prim(cx, PRIM_add, sum, part);
        }
    nest_store(&nest, y, (Expr *[]){n, c, h, w}, sum);
    return nest.root;
}

static void grid_sample_grad_rule(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    Value *out[OUTPUTS_MAX];
    OpCall call = call_new(b, "grid_sample_grad", 3, (Value *[]){node->in[0], node->in[1], dy[0]});
    call_same(&call, node);
    op_build_all(b, &call, out);
    dx[0] = out[0];
    dx[1] = out[1];
}

const OpDef op_grid_sample = {
    .name = "grid_sample", .brief = "a picture at given places (Jaderberg et al. 2015)", .inputs = "x: float, grid: float", .outputs = "y", .example = "y = grid_sample(x, grid)",
    .doc = "x is (N, C, H, W), grid (N, rows, columns, 2): across, then down, from -1 to 1 over the picture. The gradient reaches both; by the grid it is 0 for nearest, and where `border` holds a place back. nearest rounds halves to even.",
    .attrs = {GRID_ATTRS}, .shape = grid_sample_shape, .lower = grid_sample_lower, .grad = grid_sample_grad_rule, .along = "mixes", .precision = "f32", .onnx = {{"GridSample", 16, 0}},
    .cases = CASES("x: f32[N,2,4,5]; grid: f32[N,2,3,2] in -1.3 1.3", "x: f32[1,1,3,3]; grid: f32[1,2,2,2] in -2 2; outside = border; corners = true", "x: f32[2,1,3,2]; grid: f32[2,1,4,2] in -1.2 1.2; method = nearest", "x: f32[1,1,1,1]; grid: f32[1,1,1,2] in -0.5 0.5"),
};

static bool grid_sample_grad_shape(OpCall *call)
{
    call->n_out = 2;
    call->out[0] = call->in[0]->type;
    call->out[1] = call->in[1]->type;
    return true;
}

static Loop *grid_sample_grad_lower(Context *cx, const Node *node)
{
    Value *x = node->in[0], *grid = node->in[1], *dy = node->in[2], *dx = node->out[0], *dgrid = node->out[1];
    const Shape *xs = &x->type.shape, *ys = &dy->type.shape;
    DType type = x->type.dtype;
    bool nearest = is_word(node, "method", "nearest");
    Nest nest = nest_new(cx);
    Expr *n = nest_for(&nest, 0, ys->dim[0], AXIS_PARALLEL), *zero = e_zero(cx, type);
    Loop *sample = nest.at;
    Expr *all[] = {n, nest_for(&nest, 1, xs->dim[1], AXIS_SERIAL), nest_for(&nest, 2, xs->dim[2], AXIS_SERIAL), nest_for(&nest, 3, xs->dim[3], AXIS_VECTOR)};
    nest_store(&nest, dx, all, zero);
    nest.at = sample;
    Expr *h = nest_for(&nest, 4, ys->dim[2], AXIS_SERIAL), *w = nest_for(&nest, 5, ys->dim[3], AXIS_SERIAL);
    Loop *place = nest.at;
    Sample across = sample_place(&nest, node, e_load(cx, grid, (Expr *[]){n, h, w, e_whole(cx, 0)}), xs->dim[3], true), down = sample_place(&nest, node, e_load(cx, grid, (Expr *[]){n, h, w, e_whole(cx, 1)}), xs->dim[2], true);
    Expr *by_across = nest_local(&nest, type, zero), *by_down = nest_local(&nest, type, zero);
    Expr *c = nest_for(&nest, 6, ys->dim[1], AXIS_SERIAL), *g = nest_let(&nest, e_load(cx, dy, (Expr *[]){n, c, h, w}));
    Loop *channel = nest.at;
    for (int i = 0; i < (nearest ? 1 : 2); i++)
        for (int j = 0; j < (nearest ? 1 : 2); j++) {
            nest.at = channel;
            nest_if(&nest, e_prim(cx, PRIM_and, down.inside[i], across.inside[j]));
            Expr *at[] = {n, c, tap_at(cx, &down, i), tap_at(cx, &across, j)};
            Expr *wi = nearest ? NULL : tap_weight(cx, &down, i), *wj = nearest ? NULL : tap_weight(cx, &across, j);
            nest_scatter(&nest, dx, at, nearest ? g : e_prim(cx, PRIM_mul, e_prim(cx, PRIM_mul, wi, wj), g));
            if (nearest)
                continue;
            Expr *value = nest_let(&nest, e_prim(cx, PRIM_mul, g, e_load(cx, x, at)));
            nest_update(&nest, by_across, REDUCE_SUM, e_prim(cx, PRIM_mul, value, j == 1 ? wi : expr_prim(cx, PRIM_neg, wi, NULL, NULL)));
            nest_update(&nest, by_down, REDUCE_SUM, e_prim(cx, PRIM_mul, value, i == 1 ? wj : expr_prim(cx, PRIM_neg, wj, NULL, NULL)));
        }
    nest.at = place;
    for (int k = 0; k < 2; k++) {
        const Sample *s = k == 0 ? &across : &down;
        Size size = xs->dim[k == 0 ? 3 : 2];
        Expr *half = e_prim(cx, PRIM_div, expr_cast(cx, type, e_size(cx, node_flag(node, "corners") ? size_minus(cx, size, size_const(cx, 1)) : size)), e_value(cx, type, 2));
        Expr *d = e_prim(cx, PRIM_mul, k == 0 ? by_across : by_down, half);
        nest_store(&nest, dgrid, (Expr *[]){n, h, w, e_whole(cx, k)}, s->moves != NULL ? e_select(cx, s->moves, d, zero) : d);
    }
    return nest.root;
}

const OpDef op_grid_sample_grad = {
    .name = "grid_sample_grad", .brief = "the gradient of grid_sample by picture and grid", .inputs = "x: float, grid: float, dy: float", .outputs = "dx, dgrid", .traits = OP_INTERNAL, .attrs = {GRID_ATTRS}, .shape = grid_sample_grad_shape,
    .lower = grid_sample_grad_lower, .no_grad = "it is a gradient itself", .along = "mixes", .precision = "f32", .cases = CASES("x: f32[1,2,3,3]; grid: f32[1,2,2,2] in -1.3 1.3; dy: f32[1,2,2,2]", "x: f32[N,1,2,3]; grid: f32[N,1,3,2] in -2 2; dy: f32[N,1,1,3]; outside = border"),
};

// --- roi_align --------------------------------------------------------------------------------------------------------------------

#define ROI_ATTRS {.name = "size", .kind = ATTR_INTS, .least = 1, .most = 1e4, .positional = true, .brief = "of each result: one number, or rows and columns"}, \
                  {.name = "scale", .kind = ATTR_FLOAT, .initial = "1", .least = 1e-9, .most = 1e9, .onnx = "spatial_scale", .brief = "of x to the picture that the boxes are in: 1 / 16 if x is so much smaller"}, \
                  {.name = "samples", .kind = ATTR_INT, .initial = "2", .least = 1, .most = 64, .onnx = "sampling_ratio", .brief = "places along each side of a part that are averaged"}, \
                  {.name = "aligned", .kind = ATTR_BOOL, .initial = "false", .onnx = "coordinate_transformation_mode", .brief = "boxes are moved by half a pixel, as the pixels' centres are (Detectron2)"}

static bool roi_align_shape(OpCall *call)
{
    Context *cx = call->cx;
    const Type *x = &call->in[0]->type, *boxes = &call->in[1]->type;
    const Attr *size = call_attr(call, "size");
    if (!op_rank(call, 0, 4, 4) || !op_rank(call, 1, 3, 3) || !boxes_rank(call, 1))
        return false;
    if (!size_equal(x->shape.dim[0], boxes->shape.dim[0]) || x->dtype != boxes->dtype)
        return op_error(call, MESSAGE_E0315, "roi_align", type_text(cx, x), type_text(cx, boxes));
    if (size->count != 1 && size->count != 2)
        return op_error(call, MESSAGE_E0311, "size of roi_align", "one number, or two", arena_printf(cx->arena, "%d numbers", size->count));
    Size dim[] = {x->shape.dim[0], boxes->shape.dim[1], x->shape.dim[1], size_const(cx, number_at(size, 0)), size_const(cx, number_at(size, 1))};
    return op_one(call, type_of(x->dtype, 5, dim));
}

// One axis of a box: the place of sample `s` of part `p` is begin + (p + (s + 0.5) / samples) step. Outside of -1 … n nothing
// is there; before the first and behind the last pixel those count.
static Sample roi_place(Nest *nest, const Node *node, Value *boxes, Expr *n, Expr *m, int axis, Expr *p, Expr *s, int64_t parts, Size size)
{
    Context *cx = nest->cx;
    DType type = boxes->type.dtype;
    double scale = node_attr(node, "scale")->f, samples = (double)node_attr(node, "samples")->i, half = node_flag(node, "aligned") ? 0.5 : 0;
    static const char *const names[] = {"from", "to", "p", "s", "last", "place"};
    Expr *value[6] = {e_load(cx, boxes, (Expr *[]){n, m, e_whole(cx, axis)}), e_load(cx, boxes, (Expr *[]){n, m, e_whole(cx, axis + 2)}), expr_cast(cx, type, p), expr_cast(cx, type, s),
                      expr_cast(cx, type, e_size(cx, size_minus(cx, size, size_const(cx, 1))))};
    value[0] = nest_let(nest, expr_parse(cx, arena_printf(cx->arena, "from * %.17g - %.17g", scale, half), names, value, 1));
    value[1] = expr_parse(cx, arena_printf(cx->arena, "to * %.17g - %.17g - from", scale, half), names, value, 2);
    value[1] = nest_let(nest, half > 0 ? value[1] : e_prim(cx, PRIM_max, value[1], e_value(cx, type, 1)));
    value[5] = nest_let(nest, expr_parse(cx, arena_printf(cx->arena, "from + (p + (s + 0.5) / %.17g) * to / %.17g", samples, (double)parts), names, value, 4));
    Expr *inside = nest_let(nest, e_prim(cx, PRIM_and, e_prim(cx, PRIM_ge, value[5], e_value(cx, type, -1)), e_prim(cx, PRIM_le, value[5], e_prim(cx, PRIM_add, value[4], e_value(cx, type, 1)))));
    Expr *place = nest_let(nest, expr_parse(cx, "min(max(place, 0), last)", names, value, 6)), *below = nest_let(nest, expr_prim(cx, PRIM_floor, place, NULL, NULL));
    Expr *low = nest_let(nest, expr_cast(cx, TYPE_i64, below)), *part = nest_let(nest, e_prim(cx, PRIM_sub, place, below));
    Expr *more = e_prim(cx, PRIM_lt, low, e_size(cx, size_minus(cx, size, size_const(cx, 1))));
    return (Sample){.low = low, .part = part, .inside = {inside, nest_let(nest, e_prim(cx, PRIM_and, inside, more))}};
}

typedef struct Roi { Nest nest; Expr *n, *m, *c, *p, *q; Loop *part; Sample down, across; double share; } Roi;

// Loops over images, boxes, parts and samples. `c` is given a loop inside of the parts by the caller, for the loops over
// samples must be the innermost where results are summed up.
static Roi roi_open(Context *cx, const Node *node, const Shape *y)
{
    Roi r = {.nest = nest_new(cx)};
    int64_t samples = node_attr(node, "samples")->i;
    r.share = 1 / (double)(samples * samples);
    r.n = nest_for(&r.nest, 0, y->dim[0], AXIS_PARALLEL);
    return r;
}

static void roi_parts(Roi *r, const Shape *y)
{
    r->m = nest_for(&r->nest, 1, y->dim[1], AXIS_SERIAL);
    r->c = nest_for(&r->nest, 2, y->dim[2], AXIS_SERIAL);
    r->p = nest_for(&r->nest, 3, y->dim[3], AXIS_SERIAL);
    r->q = nest_for(&r->nest, 4, y->dim[4], AXIS_SERIAL);
    r->part = r->nest.at;
}

static void roi_samples(Roi *r, Context *cx, const Node *node, Value *boxes, const Shape *x, const Shape *y)
{
    Size samples = size_const(cx, node_attr(node, "samples")->i);
    Expr *s = nest_for(&r->nest, 5, samples, AXIS_SERIAL);
    r->down = roi_place(&r->nest, node, boxes, r->n, r->m, 1, r->p, s, size_value(y->dim[3]), x->dim[2]);
    Expr *t = nest_for(&r->nest, 6, samples, AXIS_SERIAL);
    r->across = roi_place(&r->nest, node, boxes, r->n, r->m, 0, r->q, t, size_value(y->dim[4]), x->dim[3]);
}

static Loop *roi_align_lower(Context *cx, const Node *node)
{
    Value *x = node->in[0], *y = node->out[0];
    DType type = x->type.dtype;
    Roi r = roi_open(cx, node, &y->type.shape);
    roi_parts(&r, &y->type.shape);
    Expr *sum = nest_local(&r.nest, type, e_zero(cx, type));
    roi_samples(&r, cx, node, node->in[1], &x->type.shape, &y->type.shape);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            Expr *weight = e_prim(cx, PRIM_mul, tap_weight(cx, &r.down, i), tap_weight(cx, &r.across, j));
            Expr *value = e_load(cx, x, (Expr *[]){r.n, r.c, tap_at(cx, &r.down, i), tap_at(cx, &r.across, j)});
            nest_update(&r.nest, sum, REDUCE_SUM, e_select(cx, e_prim(cx, PRIM_and, r.down.inside[i], r.across.inside[j]), e_prim(cx, PRIM_mul, weight, value), e_zero(cx, type)));
        }
    r.nest.at = r.part;
    nest_store(&r.nest, y, (Expr *[]){r.n, r.m, r.c, r.p, r.q}, e_prim(cx, PRIM_mul, sum, expr_number(cx, type, r.share)));
    return r.nest.root;
}

static void roi_align_grad_rule(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    OpCall call = call_new(b, "roi_align_grad", 2, (Value *[]){node->in[1], dy[0]});
    call_same(&call, node);
    call_sizes(&call, "shape", 4, node->in[0]->type.shape.dim);
    dx[0] = op_build(b, &call);
    dx[1] = build_map1(b, "x0 - x0", node->in[1]);
}

const OpDef op_roi_align = {
    .name = "roi_align", .brief = "parts of a picture, cut out by boxes and brought to one size (He et al. 2017)", .inputs = "x: float, boxes: float", .outputs = "y", .example = "part = roi_align(features, stop_gradient(boxes), 7, scale = 1 / 16)",
    .doc = "x is (N, C, H, W), boxes (N, M, 4) as x0, y0, x1, y1; the result is (N, M, C, rows, columns). Each box is divided into rows x columns parts; of each part samples x samples places are read, between pixels, and averaged. "
           "Boxes belong to the image of the same number (torchvision and ONNX have one list with numbers of images). Not aligned, a box is at least one pixel wide. The gradient reaches the picture; to boxes it passes nothing.",
    .attrs = {ROI_ATTRS}, .shape = roi_align_shape, .lower = roi_align_lower, .grad = roi_align_grad_rule, .along = "mixes", .precision = "f32", .onnx = {{"RoiAlign", 10, 0}},
    .cases = CASES("x: f32[N,2,6,5]; boxes: f32[N,3,4] in 0 4; size = 2", "x: f32[1,1,7,7]; boxes: f32[1,2,4] in -1 12; size = [3, 1]; scale = 0.5; samples = 3; aligned = true", "x: f32[1,1,1,1]; boxes: f32[1,1,4] in 0 1; size = 1; samples = 1"),
};

static bool roi_align_grad_shape(OpCall *call)
{
    const Attr *sizes = call_attr(call, "shape");
    return op_one(call, type_of(call->in[1]->type.dtype, 4, sizes->sizes));
}

static Loop *roi_align_grad_lower(Context *cx, const Node *node)
{
    Value *boxes = node->in[0], *dy = node->in[1], *dx = node->out[0];
    const Shape *xs = &dx->type.shape, *ys = &dy->type.shape;
    DType type = dx->type.dtype;
    Roi r = roi_open(cx, node, ys);
    Loop *sample = r.nest.at;
    Expr *all[] = {r.n, nest_for(&r.nest, 7, xs->dim[1], AXIS_SERIAL), nest_for(&r.nest, 8, xs->dim[2], AXIS_SERIAL), nest_for(&r.nest, 9, xs->dim[3], AXIS_VECTOR)};
    nest_store(&r.nest, dx, all, e_zero(cx, type));
    r.nest.at = sample;
    roi_parts(&r, ys);
    Expr *g = nest_let(&r.nest, e_prim(cx, PRIM_mul, e_load(cx, dy, (Expr *[]){r.n, r.m, r.c, r.p, r.q}), expr_number(cx, type, r.share)));
    roi_samples(&r, cx, node, boxes, xs, ys);
    Loop *inner = r.nest.at;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            r.nest.at = inner;
            nest_if(&r.nest, e_prim(cx, PRIM_and, r.down.inside[i], r.across.inside[j]));
            Expr *weight = e_prim(cx, PRIM_mul, tap_weight(cx, &r.down, i), tap_weight(cx, &r.across, j));
            nest_scatter(&r.nest, dx, (Expr *[]){r.n, r.c, tap_at(cx, &r.down, i), tap_at(cx, &r.across, j)}, e_prim(cx, PRIM_mul, weight, g));
        }
    return r.nest.root;
}

const OpDef op_roi_align_grad = {
    .name = "roi_align_grad", .brief = "the gradient of roi_align by the picture", .inputs = "boxes: float, dy: float", .outputs = "dx", .traits = OP_INTERNAL, .attrs = {{.name = "shape", .kind = ATTR_SIZES, .brief = "of x"}, ROI_ATTRS}, .shape = roi_align_grad_shape,
    .lower = roi_align_grad_lower, .no_grad = "it is a gradient itself", .along = "mixes", .precision = "f32", .cases = CASES("boxes: f32[1,2,4] in 0 4; dy: f32[1,2,1,2,2]; shape = [1, 1, 5, 5]; size = 2"),
};
