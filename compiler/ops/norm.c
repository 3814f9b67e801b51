// norm.c: normalisation: to mean 0 and variance 1 over some axes, then scaled and shifted by learned numbers.
//
// Two internal ops carry the gradients that the plain formulas would spread over a dozen passes: batchnorm_train (with its
// scale and shift) and standardized (without). The variance is the mean square distance from the mean, in a second pass:
// no digits cancel.
#include "op.h"

#define EPS {.name = "eps", .kind = ATTR_FLOAT, .initial = "1e-5", .least = 0, .most = 1, .onnx = "epsilon", .brief = "added to the variance"}

static Size count_of(Context *cx, const Shape *x, const bool *axes)
{
    Size n = size_const(cx, 1);
    for (int i = 0; i < x->rank; i++)
        n = axes[i] ? size_times(cx, n, x->dim[i]) : n;
    return n;
}

static Value *mean_over(Builder *b, Value *x, const bool *axes, bool keep)
{
    Value *sum = build_reduce(b, "sum", x, axes, keep);
    return build_per(b, sum, size_const(b->cx, 1), count_of(b->cx, &x->type.shape, axes));
}

static Value *variance_over(Builder *b, Value *x, Value *mean, const bool *axes)
{
    return mean_over(b, build_map2(b, "(x0 - x1) * (x0 - x1)", x, mean), axes, true);
}

static const char *with_eps(Builder *b, const Node *node, const char *format)
{
    return arena_printf(b->cx->arena, format, node_attr(node, "eps")->f);   // each caller's format has one %.17g
}

static Value *inverse_deviation(Builder *b, const Node *node, Value *variance)
{
    return build_map1(b, with_eps(b, node, "1 / sqrt(x0 + %.17g)"), variance);
}

// --- batchnorm --------------------------------------------------------------------------------------------------------------------

// All axes but that of the channels.
static void but_channels(int rank, bool *axes)
{
    for (int i = 0; i < RANK_MAX; i++)
        axes[i] = i < rank && i != 1;
}

static Value *per_channel(Builder *b, Value *v, const Shape *x)
{
    bool axes[RANK_MAX];
    but_channels(x->rank, axes);
    return build_keep_axes(b, v, x, axes);
}

static bool batchnorm_shape(OpCall *call)
{
    const Type *x = &call->in[0]->type;
    if (!op_rank(call, 0, 2, RANK_MAX))
        return false;
    Type channel = type_of(x->dtype, 1, &x->shape.dim[1]);
    return op_owned(call, "weight", channel) && op_owned(call, "bias", channel) && op_owned(call, "running_mean", channel) && op_owned(call, "running_var", channel) && same_shape(call);
}

// running = (1 - momentum) running + momentum now; of the variance PyTorch takes the one divided by n - 1.
static void update_running(Builder *b, const Node *node, Value *running, Value *now)
{
    double momentum = node_attr(node, "momentum")->f;
    Value *next = build_map2(b, arena_printf(b->cx->arena, "%.17g * x0 + %.17g * x1", 1 - momentum, momentum), running, now);
    LIST_ADD(b->cx->arena, b->graph->updates, ((Update){running->param, next}));
}

static void batchnorm_in_training(Builder *b, const Node *node, Value **out)
{
    const Shape *x = &node->in[0]->type.shape;
    Value *results[OUTPUTS_MAX];
    bool axes[RANK_MAX];
    but_channels(x->rank, axes);
    OpCall call = call_new(b, "batchnorm_train", 3, node->in);
    call_same(&call, node);
    op_build_all(b, &call, results);
    out[0] = results[0];
    Size n = count_of(b->cx, x, axes);
    if (node->in[3]->param != NULL)
        update_running(b, node, node->in[3], results[1]);
    if (node->in[4]->param != NULL)
        update_running(b, node, node->in[4], build_per(b, results[2], n, size_minus(b->cx, n, size_const(b->cx, 1))));
}

// A frozen layer uses and keeps its statistics.
static bool frozen(const Node *node) { return node->in[1]->param != NULL && !node->in[1]->param->trainable; }

static void batchnorm_expand(Builder *b, const Node *node, Value **out)
{
    Value *x = node->in[0];
    const Shape *shape = &x->type.shape;
    if (b->training && !frozen(node)) {
        batchnorm_in_training(b, node, out);
        return;
    }
    Value *scale = build_map2(b, with_eps(b, node, "x0 / sqrt(x1 + %.17g)"), node->in[1], node->in[4]);
    Value *in[] = {x, per_channel(b, node->in[3], shape), per_channel(b, scale, shape), per_channel(b, node->in[2], shape)};
    out[0] = build_map(b, "(x0 - x1) * x2 + x3", 4, in);
}

const OpDef op_batchnorm = {
    .name = "batchnorm", .brief = "each channel to mean 0 and variance 1 over the batch, scaled and shifted (Ioffe and Szegedy 2015)",
    .doc = "y = (x - mean) / sqrt(var + eps) weight + bias. In training, mean and variance are those of the batch, and the running ones follow: running = (1 - momentum) running + momentum now, "
           "with the variance divided by n - 1. In evaluation, and where the weight is frozen, the running ones are used.",
    .inputs = "x: float, weight: float, bias: float, running_mean: float, running_var: float", .outputs = "y", .example = "y = batchnorm(conv(x, 64, kernel = 3, bias = false) @conv1) @bn1",
    .attrs = {{.name = "momentum", .kind = ATTR_FLOAT, .initial = "0.1", .least = 0, .most = 1, .brief = "share of the batch in the running statistics (ONNX counts the other share)"}, EPS},
    .owned = {{"weight", ROLE_NORM, "ones", NULL}, {"bias", ROLE_NORM, "zeros", NULL}, {"running_mean", ROLE_BUFFER, "zeros", NULL}, {"running_var", ROLE_BUFFER, "ones", NULL}},
    .shape = batchnorm_shape, .expand = batchnorm_expand, .traits = OP_MODE, .along = "mixes", .precision = "f32", .onnx = {{"BatchNormalization", 9, 0}},
    .cases = CASES("x: f32[5,3]; weight: f32[3]; bias: f32[3]; running_mean: f32[3]; running_var: f32[3] in 0.5 2", "x: f32[N,2,3,2]; weight: f32[2]; bias: f32[2]; running_mean: f32[2]; running_var: f32[2] in 0.5 2"),
};

static bool batchnorm_train_shape(OpCall *call)
{
    const Type *x = &call->in[0]->type;
    if (!op_rank(call, 0, 2, RANK_MAX))
        return false;
    call->n_out = 3;
    call->out[0] = *x;
    call->out[1] = call->out[2] = type_of(x->dtype, 1, &x->shape.dim[1]);
    return true;
}

static void batchnorm_train_expand(Builder *b, const Node *node, Value **out)
{
    Value *x = node->in[0];
    const Shape *shape = &x->type.shape, *channel = &node->out[1]->type.shape;
    bool axes[RANK_MAX];
    but_channels(shape->rank, axes);
    Value *mean = mean_over(b, x, axes, true), *variance = variance_over(b, x, mean, axes);
    Value *scale = build_map2(b, with_eps(b, node, "x1 / sqrt(x0 + %.17g)"), variance, per_channel(b, node->in[1], shape));
    Value *in[] = {x, mean, scale, per_channel(b, node->in[2], shape)};
    out[0] = build_map(b, "(x0 - x1) * x2 + x3", 4, in);
    out[1] = build_reshape(b, mean, channel);
    out[2] = build_reshape(b, variance, channel);
}

// With h = (x - mean) / deviation: dbias = sum dy, dweight = sum dy h, dx = weight / deviation (dy - dbias / n - h dweight / n).
// Mean and variance are results besides, for the running statistics, which have no gradient.
static void batchnorm_train_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    Value *x = node->in[0];
    const Shape *shape = &x->type.shape;
    bool axes[RANK_MAX];
    but_channels(shape->rank, axes);
    Size n = count_of(b->cx, shape, axes), one = size_const(b->cx, 1);
    Value *mean = per_channel(b, node->out[1], shape), *inverse = inverse_deviation(b, node, per_channel(b, node->out[2], shape));
    Value *parts[] = {x, mean, inverse, dy[0]};
    Value *bias = build_reduce(b, "sum", dy[0], axes, true), *weight = build_reduce(b, "sum", build_map(b, "(x0 - x1) * x2 * x3", 4, parts), axes, true);
    Value *in[] = {x, mean, inverse, dy[0], per_channel(b, node->in[1], shape), build_per(b, bias, one, n), build_per(b, weight, one, n)};
    dx[0] = build_map(b, "x4 * x2 * (x3 - x5 - (x0 - x1) * x2 * x6)", 7, in);
    dx[1] = build_reshape(b, weight, &node->in[1]->type.shape);
    dx[2] = build_reshape(b, bias, &node->in[2]->type.shape);
}

const OpDef op_batchnorm_train = {
    .name = "batchnorm_train", .brief = "batchnorm over this batch; mean and variance are results besides", .inputs = "x: float, weight: float, bias: float", .outputs = "y, mean, variance", .traits = OP_INTERNAL,
    .attrs = {EPS}, .shape = batchnorm_train_shape, .expand = batchnorm_train_expand, .grad = batchnorm_train_grad, .along = "mixes", .precision = "f32",
    .cases = CASES("x: f32[5,3]; weight: f32[3]; bias: f32[3]", "x: f32[N,2,3,2]; weight: f32[2]; bias: f32[2]"),
};

// --- standardized -----------------------------------------------------------------------------------------------------------------

#define AXES {.name = "axis", .kind = ATTR_INTS, .brief = "over which axes"}

static bool standardized_shape(OpCall *call)
{
    Type type = call->in[0]->type;
    bool axes[RANK_MAX];
    if (!op_axes(call, "axis", type.shape.rank, axes))
        return false;
    call->n_out = 3;
    call->out[0] = type;
    type.shape = shape_without(call->cx, &type.shape, axes, true);
    call->out[1] = call->out[2] = type;
    return true;
}

static void standardized_expand(Builder *b, const Node *node, Value **out)
{
    Value *x = node->in[0];
    bool axes[RANK_MAX];
    node_axes(node, "axis", x->type.shape.rank, axes);
    out[1] = mean_over(b, x, axes, true);
    out[2] = inverse_deviation(b, node, variance_over(b, x, out[1], axes));
    out[0] = build_map3(b, "(x0 - x1) * x2", x, out[1], out[2]);
}

// dx = (dy - mean(dy) - y mean(dy y)) / deviation
static void standardized_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    bool axes[RANK_MAX];
    node_axes(node, "axis", node->in[0]->type.shape.rank, axes);
    Value *y = build_map3(b, "(x0 - x1) * x2", node->in[0], node->out[1], node->out[2]);
    Value *in[] = {dy[0], mean_over(b, dy[0], axes, true), y, mean_over(b, build_map2(b, "x0 * x1", dy[0], y), axes, true), node->out[2]};
    dx[0] = build_map(b, "x4 * (x0 - x1 - x2 * x3)", 5, in);
}

const OpDef op_standardized = {
    .name = "standardized", .brief = "to mean 0 and variance 1 over axes; mean and 1 / deviation are results besides", .inputs = "x: float", .outputs = "y, mean, inverse", .traits = OP_INTERNAL, .attrs = {AXES, EPS},
    .shape = standardized_shape, .expand = standardized_expand, .grad = standardized_grad, .along = "mixes", .precision = "f32", .cases = CASES("x: f32[2,5]; axis = 1", "x: f32[N,2,3,2]; axis = [1, 2, 3]"),
};

static Value *standardized(Builder *b, const Node *node, Value *x, int first)
{
    int64_t list[RANK_MAX];
    int count = 0;
    for (int i = first; i < x->type.shape.rank; i++)
        list[count++] = i;
    OpCall call = call_new(b, "standardized", 1, &x);
    call_ints(&call, "axis", count, list);
    call_float(&call, "eps", node_attr(node, "eps")->f);
    return op_build(b, &call);
}

// --- layernorm, rmsnorm -------------------------------------------------------------------------------------------------------------

#define FROM_AXIS {.name = "axis", .kind = ATTR_INT, .initial = "-1", .brief = "the first of the axes that are normalised; all behind it are too"}

// The type of scale and shift: the axes from `axis` on.
static bool tail_type(OpCall *call, Type *tail)
{
    const Type *x = &call->in[0]->type;
    int axis;
    if (!op_rank(call, 0, 1, RANK_MAX) || !op_axis(call, "axis", x->shape.rank, &axis))
        return false;
    *tail = type_of(x->dtype, x->shape.rank - axis, x->shape.dim + axis);
    return true;
}

static bool layernorm_shape(OpCall *call)
{
    Type tail;
    return tail_type(call, &tail) && op_owned(call, "weight", tail) && (!call_attr(call, "bias")->i || op_owned(call, "bias", tail)) && same_shape(call);
}

static void layernorm_expand(Builder *b, const Node *node, Value **out)
{
    Value *y = standardized(b, node, node->in[0], node_axis(node, "axis", node->in[0]->type.shape.rank)), *bias = node->n_in > 2 ? node->in[2] : NULL;
    out[0] = bias == NULL ? build_map2(b, "x0 * x1", y, node->in[1]) : build_map3(b, "x0 * x1 + x2", y, node->in[1], bias);
}

const OpDef op_layernorm = {
    .name = "layernorm", .brief = "each sample to mean 0 and variance 1 over its last axes, scaled and shifted (Ba et al. 2016)", .inputs = "x: float, weight: float, bias: float?", .outputs = "y", .example = "h = layernorm(x) @ln_1",
    .doc = "y = (x - mean) / sqrt(var + eps) weight + bias.", .attrs = {FROM_AXIS, EPS, {.name = "bias", .kind = ATTR_BOOL, .initial = "true", .brief = "whether there is one"}},
    .owned = {{"weight", ROLE_NORM, "ones", NULL}, {"bias", ROLE_NORM, "zeros", "bias"}}, .shape = layernorm_shape, .expand = layernorm_expand, .along = "each", .precision = "f32", .onnx = {{"LayerNormalization", 17, 0}},
    .cases = CASES("x: f32[2,5]; weight: f32[5]; bias: f32[5]", "x: f32[N,2,4]; weight: f32[2,4]; bias: f32[2,4]; axis = 1", "x: f32[3,4]; weight: f32[4]; bias = false"),
};

static bool rmsnorm_shape(OpCall *call)
{
    Type tail;
    return tail_type(call, &tail) && op_owned(call, "weight", tail) && same_shape(call);
}

static void rmsnorm_expand(Builder *b, const Node *node, Value **out)
{
    Value *x = node->in[0];
    bool axes[RANK_MAX] = {false};
    for (int i = node_axis(node, "axis", x->type.shape.rank); i < x->type.shape.rank; i++)
        axes[i] = true;
    Value *inverse = inverse_deviation(b, node, mean_over(b, build_map1(b, "x0 * x0", x), axes, true));
    out[0] = build_map3(b, "x0 * x1 * x2", x, inverse, node->in[1]);
}

const OpDef op_rmsnorm = {
    .name = "rmsnorm", .brief = "each sample to mean square 1 over its last axes, scaled (Zhang and Sennrich 2019)", .inputs = "x: float, weight: float", .outputs = "y", .example = "h = rmsnorm(x) @norm",
    .doc = "y = x / sqrt(mean(x^2) + eps) weight.", .attrs = {FROM_AXIS, EPS}, .owned = {{"weight", ROLE_NORM, "ones", NULL}}, .shape = rmsnorm_shape, .expand = rmsnorm_expand, .along = "each", .precision = "f32",
    .onnx = {{"RMSNormalization", 23, 0}}, .cases = CASES("x: f32[2,5]; weight: f32[5]", "x: f32[N,2,4]; weight: f32[2,4]; axis = 1"),
};

// --- groupnorm, instancenorm ----------------------------------------------------------------------------------------------------------

static bool groupnorm_shape(OpCall *call)
{
    const Type *x = &call->in[0]->type;
    int64_t groups = call_attr(call, "groups")->i, channels;
    if (!op_rank(call, 0, 2, RANK_MAX - 1))
        return false;
    if (!size_known(x->shape.dim[1], &channels) || channels % groups != 0)
        return op_error(call, MESSAGE_E0306, "channels / groups of groupnorm", arena_printf(call->cx->arena, "%s / %d", type_text(call->cx, x), (int)groups));
    Type channel = type_of(x->dtype, 1, &x->shape.dim[1]);
    return op_owned(call, "weight", channel) && op_owned(call, "bias", channel) && same_shape(call);
}

static void scale_and_shift(Builder *b, const Node *node, Value *y, Value **out)
{
    const Shape *x = &node->in[0]->type.shape;
    out[0] = build_map3(b, "x0 * x1 + x2", y, per_channel(b, node->in[1], x), per_channel(b, node->in[2], x));
}

static void groupnorm_expand(Builder *b, const Node *node, Value **out)
{
    const Shape *x = &node->in[0]->type.shape;
    int64_t groups = node_attr(node, "groups")->i;
    Shape split = {.rank = x->rank + 1, .dim = {x->dim[0], size_const(b->cx, groups), size_const(b->cx, size_value(x->dim[1]) / groups)}};
    for (int i = 2; i < x->rank; i++)
        split.dim[i + 1] = x->dim[i];
    scale_and_shift(b, node, build_reshape(b, standardized(b, node, build_reshape(b, node->in[0], &split), 2), x), out);
}

const OpDef op_groupnorm = {
    .name = "groupnorm", .brief = "groups of channels of each sample to mean 0 and variance 1, scaled and shifted (Wu and He 2018)",
    .doc = "Channels are divided into groups; mean and variance are those of a group in one sample. With one group it is layernorm over (C, H, W), with as many as channels instancenorm. Batches do not matter, so training and evaluation are the same.", .inputs = "x: float, weight: float, bias: float", .outputs = "y", .example = "y = groupnorm(x, 8) @norm",
    .attrs = {{.name = "groups", .kind = ATTR_INT, .least = 1, .most = 1e6, .positional = true, .onnx = "num_groups", .brief = "how many"}, EPS},
    .owned = {{"weight", ROLE_NORM, "ones", NULL}, {"bias", ROLE_NORM, "zeros", NULL}}, .shape = groupnorm_shape, .expand = groupnorm_expand, .along = "mixes", .precision = "f32", .onnx = {{"GroupNormalization", 21, 0}},
    .cases = CASES("x: f32[N,4,3]; weight: f32[4]; bias: f32[4]; groups = 2", "x: f32[2,2,2,2]; weight: f32[2]; bias: f32[2]; groups = 1"),
};

static bool instancenorm_shape(OpCall *call)
{
    const Type *x = &call->in[0]->type;
    if (!op_rank(call, 0, 3, RANK_MAX))
        return false;
    Type channel = type_of(x->dtype, 1, &x->shape.dim[1]);
    return op_owned(call, "weight", channel) && op_owned(call, "bias", channel) && same_shape(call);
}

static void instancenorm_expand(Builder *b, const Node *node, Value **out) { scale_and_shift(b, node, standardized(b, node, node->in[0], 2), out); }

const OpDef op_instancenorm = {
    .name = "instancenorm", .brief = "each channel of each sample to mean 0 and variance 1, scaled and shifted (Ulyanov et al. 2016)",
    .doc = "Mean and variance are those of one channel in one sample. PyTorch's InstanceNorm has no weight and bias unless affine = True; here they are there and start as 1 and 0.", .inputs = "x: float, weight: float, bias: float", .outputs = "y", .example = "y = instancenorm(x) @norm",
    .attrs = {EPS}, .owned = {{"weight", ROLE_NORM, "ones", NULL}, {"bias", ROLE_NORM, "zeros", NULL}}, .shape = instancenorm_shape, .expand = instancenorm_expand, .along = "mixes", .precision = "f32",
    .onnx = {{"InstanceNormalization", 6, 0}}, .cases = CASES("x: f32[N,2,5]; weight: f32[2]; bias: f32[2]"),
};

// --- by given numbers -----------------------------------------------------------------------------------------------------------------

static bool normalize_shape(OpCall *call)
{
    const Type *x = &call->in[0]->type;
    int axis;
    if (!op_rank(call, 0, 1, RANK_MAX) || !op_axis(call, "axis", x->shape.rank, &axis))
        return false;
    Type wanted = type_of(x->dtype, 1, &x->shape.dim[axis]);
    return op_matches(call, "mean", wanted) && op_matches(call, "std", wanted) && same_shape(call);
}

static void normalize_expand(Builder *b, const Node *node, Value **out)
{
    const Shape *x = &node->in[0]->type.shape;
    Shape column = {.rank = x->rank};
    int axis = node_axis(node, "axis", x->rank);
    for (int i = 0; i < x->rank; i++)
        column.dim[i] = i == axis ? x->dim[i] : size_const(b->cx, 1);
    out[0] = build_map3(b, "(x0 - x1) / x2", node->in[0], build_reshape(b, node->in[1], &column), build_reshape(b, node->in[2], &column));
}

const OpDef op_normalize = {
    .name = "normalize", .brief = "takes off a mean and divides by a deviation, of each channel", .inputs = "x: float, mean: float, std: float", .outputs = "y", .example = "image = normalize(image / 255, mean = [0.485, 0.456, 0.406], std = [0.229, 0.224, 0.225])",
    .doc = "(x - mean) / std with the numbers that are given, as public models of pictures want their inputs. Numbers found in the data: standardize.", .attrs = {{.name = "axis", .kind = ATTR_INT, .initial = "-3", .brief = "where the channels are; -3 is right for (C, H, W) and (N, C, H, W)"}},
    .shape = normalize_shape, .expand = normalize_expand, .traits = OP_DATA, .along = "each", .precision = "any", .cases = CASES("x: f32[N,3,2,2]; mean: f32[3]; std: f32[3] in 0.5 2", "x: f32[1,5,7]; mean: f32[1]; std: f32[1] in 0.5 2", "x: f32[2,3]; mean: f32[3]; std: f32[3] in 0.5 2; axis = 1"),
};

// --- local response -----------------------------------------------------------------------------------------------------------------

#define NEIGHBOURS {.name = "size", .kind = ATTR_INT, .least = 1, .most = 1e6, .positional = true, .brief = "how many neighbouring channels"}

// The sum over `size` channels around each: size / 2 before it, the rest behind; with `mirror` the other way round.
static void channel_sums_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Value *x = node->in[0];
    int64_t size = node_attr(node, "size")->i, before = node_flag(node, "mirror") ? (size - 1) / 2 : size / 2;
    Expr *at[RANK_MAX];
    compute_over(out, &x->type.shape);
    for (int i = 0; i < out->rank; i++)
        at[i] = e_axis(cx, i);
    at[1] = e_sub(cx, e_add(cx, at[1], e_axis(cx, compute_reduce(out, REDUCE_SUM, size_const(cx, size)))), e_whole(cx, before));
    Expr *inside = e_prim(cx, PRIM_and, e_prim(cx, PRIM_ge, at[1], e_whole(cx, 0)), e_prim(cx, PRIM_lt, at[1], e_size(cx, out->extent[1])));
    out->body = e_where(cx, inside, e_load(cx, x, at), 0);
}

static void channel_sums_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    OpCall call = call_new(b, "channel_sums", 1, dy);
    call_same(&call, node);
    call_bool(&call, "mirror", !node_flag(node, "mirror"));
    dx[0] = op_build(b, &call);
}

const OpDef op_channel_sums = {
    .name = "channel_sums", .brief = "sums over neighbouring channels", .inputs = "x: float", .outputs = "y", .traits = OP_INTERNAL, .attrs = {NEIGHBOURS, {.name = "mirror", .kind = ATTR_BOOL, .initial = "false", .brief = "of an even size, which side has more"}},
    .shape = same_shape, .compute = channel_sums_compute, .grad = channel_sums_grad, .along = "mixes", .precision = "f32", .cases = CASES("x: f32[N,5,2]; size = 3", "x: f32[2,4]; size = 4; mirror = true"),
};

static bool local_response_shape(OpCall *call) { return op_rank(call, 0, 3, RANK_MAX) && same_shape(call); }

static void local_response_expand(Builder *b, const Node *node, Value **out)
{
    int64_t size = node_attr(node, "size")->i;
    OpCall call = call_new(b, "channel_sums", 1, (Value *[]){build_map1(b, "x0 * x0", node->in[0])});
    call_int(&call, "size", size);
    const char *f = arena_printf(b->cx->arena, "x0 * pow(%.17g + %.17g * x1, %.17g)", node_attr(node, "k")->f, node_attr(node, "alpha")->f / (double)size, -node_attr(node, "beta")->f);
    out[0] = build_map2(b, f, node->in[0], op_build(b, &call));
}

const OpDef op_local_response = {
    .name = "local_response", .brief = "divides by the size of neighbouring channels (Krizhevsky et al. 2012)", .inputs = "x: float", .outputs = "y", .example = "y = local_response(x, 5)",
    .doc = "y[c] = x[c] / (k + alpha / size sum over size neighbours of x^2)^beta. Of an even size PyTorch, and so this op, has one neighbour more before; ONNX's LRN has it behind.",
    .attrs = {NEIGHBOURS, {.name = "alpha", .kind = ATTR_FLOAT, .initial = "1e-4", .brief = "share of the neighbours"}, {.name = "beta", .kind = ATTR_FLOAT, .initial = "0.75", .brief = "the power"}, {.name = "k", .kind = ATTR_FLOAT, .initial = "1", .onnx = "bias", .brief = "added to the sum"}},
    .shape = local_response_shape, .expand = local_response_expand, .along = "mixes", .precision = "f32", .onnx = {{"LRN", 1, 0}}, .cases = CASES("x: f32[N,5,2]; size = 3; alpha = 0.5", "x: f32[2,3,2,2]; size = 2; k = 2; alpha = 1; beta = 0.5", "x: f32[1,1,1]; size = 5; alpha = 1"),
};
