// loss.c: losses: how far predictions are from the truth, as one number. They compare like with like: no broadcasting, which
// would turn a wrong shape into a plausible number. Each is written so that neither large nor tiny numbers break it.
#include "op.h"

#define REDUCE {.name = "reduce", .kind = ATTR_WORD, .initial = "mean", .words = "mean sum none", .onnx = "reduction", .brief = "how the rows become one number"}
#define LOSS .traits = OP_LOSS, .along = "each", .precision = "f32", .mean_over = "rows"

// `each` has one loss for each row or element.
static Value *reduced(Builder *b, const Node *node, Value *each)
{
    const char *reduce = node_attr(node, "reduce")->word;
    bool all[RANK_MAX] = {true, true, true, true, true, true, true, true};
    if (strcmp(reduce, "none") == 0)
        return each;
    Value *sum = build_reduce(b, "sum", each, all, false);
    return strcmp(reduce, "sum") == 0 ? sum : build_per(b, sum, size_const(b->cx, 1), shape_count(b->cx, &each->type.shape));
}

static bool loss_type(OpCall *call, DType dtype, const Shape *each)
{
    bool none = strcmp(call_attr(call, "reduce")->word, "none") == 0;
    return op_one(call, (Type){dtype, none ? *each : (Shape){0}});
}

// --- of numbers -------------------------------------------------------------------------------------------------------------------

// A number as the truth stands for all elements.
static bool is_number(const Value *v, DType dtype) { return v->kind == VALUE_CONST && v->type.shape.rank == 0 && v->type.dtype == dtype; }

static bool pair_shape(OpCall *call)
{
    const Type *y = &call->in[0]->type;
    return (is_number(call->in[1], y->dtype) || op_like(call, 0, 1)) && loss_type(call, y->dtype, &y->shape);
}

#define PAIR_LOSS(id, text, example_, formula_, ...)                                                                    \
    static void id##_expand(Builder *b, const Node *node, Value **out) { out[0] = reduced(b, node, build_map2(b, formula_, node->in[0], node->in[1])); } \
    const OpDef op_##id = {.name = #id, .brief = text, .inputs = "y: float, t: float", .outputs = "loss", .example = example_, .attrs = {REDUCE}, .shape = pair_shape, .expand = id##_expand, LOSS, __VA_ARGS__}

PAIR_LOSS(mse, "the mean squared error", "loss = mse(y, t)", "(x0 - x1) * (x0 - x1)", .doc = "mean (y - t)^2 over all elements: errors of a row of k numbers are divided by k too.",
          .cases = CASES("y: f32[2,3]; t: f32[2,3]", "y: f32[N]; t: f32[N]; reduce = sum", "y: f32[2,3]; t: f32[2,3]; reduce = none", "y: f32[]; t: f32[]"));
PAIR_LOSS(l1, "the mean absolute error", "loss = l1(y, t)", "abs(x0 - x1)", .doc = "mean |y - t| over all elements. The gradient at 0 is 0.", .cases = CASES("y: f32[2,3] in 1 2; t: f32[2,3] in -2 0", "y: f32[N] in -2 0; t: f32[N] in 1 2; reduce = sum"));
PAIR_LOSS(bce_with_logits, "binary cross entropy of logits: the truth is 0 or 1, or a probability", "loss = bce_with_logits(logits, truth)", "max(x0, 0) - x0 * x1 + log1p(exp(-abs(x0)))",
          .doc = "max(y, 0) - y t + log(1 + exp(-|y|)), which is log-likelihood without overflow.",
          .cases = CASES("y: f32[2,3]; t: f32[2,3] in 0 1", "y: f32[N] in -4 4; t: f32[N] in 0 1; reduce = sum", "y: f32[3]; t: f32[3] in 0 1; reduce = none"));

// The logarithms end at -100, as in PyTorch, so that a wrong certainty costs much, not infinitely much.
PAIR_LOSS(bce, "binary cross entropy of probabilities", "loss = bce(sigmoid(x), truth)", "-(x1 * max(log(x0), -100) + (1 - x1) * max(log1p(-x0), -100))",
          .doc = "-(t log y + (1 - t) log(1 - y)), the logarithms not below -100. bce_with_logits keeps more digits.",
          .cases = CASES("y: f32[2,3] in 0.1 0.9; t: f32[2,3] in 0 1", "y: f32[N] in 0.1 0.9; t: f32[N] in 0 1; reduce = sum", "y: f32[1] in 0.1 0.9; t: f32[1] in 0 1; reduce = none"));

// p_t is the probability of what is true: focal = alpha_t (1 - p_t)^gamma bce.
static void focal_expand(Builder *b, const Node *node, Value **out)
{
    double alpha = node_attr(node, "alpha")->f, gamma = node_attr(node, "gamma")->f;
    Arena *arena = b->cx->arena;
    const char *wrong = "sigmoid(x0) * (1 - x1) + (1 - sigmoid(x0)) * x1", *bce = "(max(x0, 0) - x0 * x1 + log1p(exp(-abs(x0))))";
    const char *power = gamma == 0 ? "" : gamma == 1 ? "x2 * " : gamma == 2 ? "x2 * x2 * " : arena_printf(arena, "pow(x2, %.17g) * ", gamma);
    const char *share = alpha < 0 ? "" : arena_printf(arena, "(%.17g * x1 + %.17g * (1 - x1)) * ", alpha, 1 - alpha);
    Value *miss = build_map2(b, wrong, node->in[0], node->in[1]);
    out[0] = reduced(b, node, build_map3(b, arena_printf(arena, "%s%s%s", share, power, bce), node->in[0], node->in[1], miss));
}

const OpDef op_focal = {
    .name = "focal", .brief = "binary cross entropy of logits that counts easy elements less (Lin et al. 2017)", .inputs = "y: float, t: float", .outputs = "loss", .example = "loss = focal(logits, truth, gamma = 2)",
    .doc = "alpha_t (1 - p)^gamma times bce_with_logits(y, t), p being the probability given to what is true, alpha_t alpha where t is 1 and 1 - alpha where it is 0.",
    .attrs = {{.name = "alpha", .kind = ATTR_FLOAT, .initial = "0.25", .least = -1, .most = 1, .brief = "share of what is 1; -1: none"}, {.name = "gamma", .kind = ATTR_FLOAT, .initial = "2", .least = 0, .most = 100, .brief = "how much less easy ones count"}, REDUCE},
    .shape = pair_shape, .expand = focal_expand, LOSS, .cases = CASES("y: f32[2,3]; t: f32[2,3] in 0 1", "y: f32[N] in -4 4; t: f32[N] in 0 1; alpha = -1; gamma = 1; reduce = sum", "y: f32[5]; t: f32[5] in 0 1; gamma = 1.5; reduce = none"),
};

static void huber_expand(Builder *b, const Node *node, Value **out)
{
    double d = node_attr(node, "delta")->f;
    const char *f = arena_printf(b->cx->arena, "select(abs(x0 - x1) <= %.17g, 0.5 * (x0 - x1) * (x0 - x1), %.17g * (abs(x0 - x1) - %.17g))", d, d, 0.5 * d);
    out[0] = reduced(b, node, build_map2(b, f, node->in[0], node->in[1]));
}

const OpDef op_huber = {
    .name = "huber", .brief = "squares near 0, absolute values beyond delta (Huber 1964)", .inputs = "y: float, t: float", .outputs = "loss", .example = "loss = huber(y, t, delta = 0.5)",
    .doc = "With e = |y - t|: e^2 / 2 up to delta, delta (e - delta / 2) beyond.", .attrs = {{.name = "delta", .kind = ATTR_FLOAT, .initial = "1", .least = 1e-30, .most = 1e30, .brief = "where the line begins"}, REDUCE},
    .shape = pair_shape, .expand = huber_expand, LOSS, .cases = CASES("y: f32[2,3]; t: f32[2,3]; delta = 5", "y: f32[N] in 2 3; t: f32[N] in -1 0; reduce = sum"),
};

// --- of classes ---------------------------------------------------------------------------------------------------------------------

static Shape rows_shape(Context *cx, const Shape *x, int axis)
{
    bool axes[RANK_MAX] = {false};
    axes[axis] = true;
    return shape_without(cx, x, axes, false);
}

static Value *weight_of(const Node *node) { return node->n_in > 2 ? node->in[2] : NULL; }

// Each row's weight: that of its label.
static Value *row_weights(Builder *b, const Node *node, Value *label)
{
    return weight_of(node) != NULL ? build2(b, "gather", weight_of(node), label, "") : NULL;
}

// logits (…, C, …) go with labels (…, …): the axis of the classes is missing.
bool classes_fit(OpCall *call, Shape *rows)
{
    Context *cx = call->cx;
    const Type *x = &call->in[0]->type, *label = &call->in[1]->type;
    int axis;
    if (!op_rank(call, 0, 1, RANK_MAX) || !op_axis(call, "axis", x->shape.rank, &axis))
        return false;
    *rows = rows_shape(cx, &x->shape, axis);
    if (shape_equal(rows, &label->shape))
        return true;
    Type wanted = {label->dtype, *rows};
    op_error(call, MESSAGE_E0304, op_input_name(call, 0), type_text(cx, x), (int)call_attr(call, "axis")->i, op_input_name(call, 1), type_text(cx, &wanted), type_text(cx, label));
    for (int i = 0; i < x->shape.rank; i++) {
        Shape other = rows_shape(cx, &x->shape, i);
        if (i != axis && shape_equal(&other, &label->shape)) {
            diag_help(cx->diag, "if the classes are on axis %d: axis = %d", i, i);
            break;
        }
    }
    return false;
}

static bool class_loss_shape(OpCall *call)
{
    Shape rows;
    int axis;
    const Type *x = &call->in[0]->type;
    if (op_rank(call, 0, 1, RANK_MAX) && op_axis(call, "axis", x->shape.rank, &axis) && !op_matches(call, "weight", type_of(x->dtype, 1, &x->shape.dim[axis])))
        return false;
    return classes_fit(call, &rows) && loss_type(call, call->in[0]->type.dtype, &rows);
}

// The rows that count: 1 or 0, and labels that are safe to pick with. Without ignore all count: NULL.
static Value *counted(Builder *b, const Node *node, Value **label, DType dtype)
{
    const Attr *ignore = node_attr(node, "ignore");
    if (ignore->kind == ATTR_NONE)
        return NULL;
    Value *given = *label, *number = build_cast(b, build_number(b, TYPE_i64, (double)ignore->i), given->type.dtype);
    *label = build_map2(b, "select(x0 == x1, x0 - x0, x0)", given, number);
    return build_cast(b, build_map2(b, "x0 != x1", given, number), dtype);
}

// Of the rows that count; a mean divides by the sum of their weights.
static Value *reduced_counted(Builder *b, const Node *node, Value *each, Value *count, Value *weight)
{
    bool all[RANK_MAX] = {true, true, true, true, true, true, true, true};
    if (count == NULL && weight == NULL)
        return reduced(b, node, each);
    if (count != NULL)
        each = build_map2(b, "select(x1 > 0, x0, 0)", each, count);
    if (strcmp(node_attr(node, "reduce")->word, "mean") != 0)
        return reduced(b, node, each);
    Value *by = weight == NULL ? count : count == NULL ? weight : build_map2(b, "x0 * x1", count, weight);
    return build_map2(b, "x0 / x1", build_reduce(b, "sum", each, all, false), build_reduce(b, "sum", by, all, false));
}

static Value *picked(Builder *b, Value *x, Value *label, int axis)
{
    OpCall call = call_new(b, "pick", 2, (Value *[]){x, label});
    call_int(&call, "axis", axis);
    return op_build(b, &call);
}

// s / C times the sum over classes of w (log(sum) - z).
static Value *smoothed(Builder *b, const Node *node, Value *z, Value *sum, int axis, double smoothing)
{
    bool axes[RANK_MAX] = {false};
    axes[axis] = true;
    Size classes = z->type.shape.dim[axis];
    Value *minus = build_map2(b, "log(x0) - x1", build_keep_axes(b, sum, &z->type.shape, axes), z), *weight = weight_of(node);
    Shape column = shape_without(b->cx, &z->type.shape, (bool[RANK_MAX]){true, true, true, true, true, true, true, true}, true);
    column.dim[axis] = classes;
    if (weight != NULL)
        minus = build_map2(b, "x0 * x1", minus, build_reshape(b, weight, &column));
    return build_map1(b, arena_printf(b->cx->arena, "%.17g * x0", smoothing), build_per(b, build_reduce(b, "sum", minus, axes, false), size_const(b->cx, 1), classes));
}

// z = x - max; loss = log(sum(exp(z))) - z[label], times the label's weight. Smoothing gives each class a share of the truth.
static void cross_entropy_expand(Builder *b, const Node *node, Value **out)
{
    Value *x = node->in[0], *label = node->in[1];
    int axis = node_axis(node, "axis", x->type.shape.rank);
    double smoothing = node_attr(node, "smoothing")->f;
    bool axes[RANK_MAX] = {false};
    axes[axis] = true;
    Value *count = counted(b, node, &label, x->type.dtype), *weight = row_weights(b, node, label);
    Value *most = build1(b, "stop_gradient", build_reduce(b, "max", x, axes, true), "");
    Value *z = build_map2(b, "x0 - x1", x, most);
    Value *sum = build_reduce(b, "sum", build_map1(b, "exp(x0)", z), axes, false), *truth = picked(b, z, label, axis);
    Value *each = weight == NULL ? build_map2(b, "log(x0) - x1", sum, truth) : build_map3(b, "(log(x0) - x1) * x2", sum, truth, weight);
    if (smoothing > 0)
        each = build_map2(b, arena_printf(b->cx->arena, "%.17g * x0 + x1", 1 - smoothing), each, smoothed(b, node, z, sum, axis, smoothing));
    out[0] = reduced_counted(b, node, each, count, weight);
}

#define CLASS_ATTRS {.name = "axis", .kind = ATTR_INT, .initial = "-1", .brief = "where the classes are"}, \
                    {.name = "ignore", .kind = ATTR_INT, .initial = "", .onnx = "ignore_index", .brief = "rows with this label do not count; it may lie outside of the classes"}, REDUCE

const OpDef op_cross_entropy = {
    .name = "cross_entropy", .brief = "minus the logarithm of the probability that softmax(logits) gives to the label", .inputs = "logits: float, label: index, weight: float?", .outputs = "loss", .example = "loss = cross_entropy(logits, label)",
    .doc = "log(sum(exp(x))) - x[label], with the largest subtracted first. With smoothing s the truth is 1 - s for the label and s / C for each class besides (Szegedy et al. 2016). `weight`, (C), scales the rows of each label; a mean divides by the sum of the weights of its rows. A label outside of the classes is an error when running.",
    .attrs = {{.name = "smoothing", .kind = ATTR_FLOAT, .initial = "0", .least = 0, .most = 1, .brief = "share of the truth that all classes get"}, CLASS_ATTRS},
    .shape = class_loss_shape, .expand = cross_entropy_expand, .traits = OP_LOSS | OP_INDEX, .along = "each", .precision = "f32", .mean_over = "where", .onnx = {{"SoftmaxCrossEntropyLoss", 12, 0}},
    .cases = CASES("logits: f32[N,4]; label: i32[N] in 0 3", "logits: f32[2,3,4]; label: i64[2,4] in 0 2; axis = 1; reduce = sum", "logits: f32[N,4]; label: i32[N] in 0 3; smoothing = 0.1",
                   "logits: f32[5,3]; label: i32[5] in 0 2; ignore = 1", "logits: f32[3,4]; label: i32[3] in 0 3; reduce = none", "logits: f32[3]; label: i32[] in 0 2", "logits: f32[2,1]; label: i32[2] in 0 0",
                   "logits: f32[N,4]; label: i32[N] in 0 3; weight: f32[4] in 0.1 2", "logits: f32[2,5,3]; label: i32[2,3] in 0 4; weight: f32[5] in 0.1 2; axis = 1; smoothing = 0.2; ignore = 2", "logits: f32[7,3]; label: i32[7] in 0 2; weight: f32[3] in 0.1 2; smoothing = 0.3; reduce = sum"),
};

static void nll_expand(Builder *b, const Node *node, Value **out)
{
    Value *x = node->in[0], *label = node->in[1];
    Value *count = counted(b, node, &label, x->type.dtype), *weight = row_weights(b, node, label);
    Value *each = build_map1(b, "-x0", picked(b, x, label, node_axis(node, "axis", x->type.shape.rank)));
    if (weight != NULL)
        each = build_map2(b, "x0 * x1", each, weight);
    out[0] = reduced_counted(b, node, each, count, weight);
}

const OpDef op_nll = {
    .name = "nll", .brief = "minus the logarithm of the label's probability, of logarithms",
    .doc = "-logp[label]. Of logits: cross_entropy, which does both at once and keeps its digits.", .inputs = "logp: float, label: index, weight: float?", .outputs = "loss", .example = "loss = nll(log_softmax(logits), label)",
    .attrs = {CLASS_ATTRS}, .shape = class_loss_shape, .expand = nll_expand, .traits = OP_LOSS | OP_INDEX, .along = "each", .precision = "f32", .mean_over = "where", .onnx = {{"NegativeLogLikelihoodLoss", 12, 0}},
    .cases = CASES("logp: f32[N,4]; label: i32[N] in 0 3", "logp: f32[2,3,4]; label: i64[2,4] in 0 2; axis = 1; ignore = 0; reduce = sum", "logp: f32[N,4]; label: i32[N] in 0 3; weight: f32[4] in 0.1 2; ignore = 1"),
};

// --- of distributions and vectors -----------------------------------------------------------------------------------------------------

#define ROW_AXIS {.name = "axis", .kind = ATTR_INT, .initial = "-1", .brief = "along which a row lies"}

// All inputs from `first` to `last` are alike; one loss for each row.
static bool row_loss_shape(OpCall *call, int last)
{
    const Type *x = &call->in[0]->type;
    int axis;
    for (int i = 1; i <= last; i++)
        if (!op_like(call, 0, i))
            return false;
    if (!op_rank(call, 0, 1, RANK_MAX) || !op_axis(call, "axis", x->shape.rank, &axis))
        return false;
    Shape rows = rows_shape(call->cx, &x->shape, axis);
    return loss_type(call, x->dtype, &rows);
}

static Value *row_sum(Builder *b, const Node *node, Value *x)
{
    bool axes[RANK_MAX] = {false};
    axes[node_axis(node, "axis", x->type.shape.rank)] = true;
    return build_reduce(b, "sum", x, axes, false);
}

static bool kl_divergence_shape(OpCall *call) { return row_loss_shape(call, 1); }

static void kl_divergence_expand(Builder *b, const Node *node, Value **out)
{
    out[0] = reduced(b, node, row_sum(b, node, build_map2(b, "select(x1 > 0, x1 * (log(x1) - x0), 0)", node->in[0], node->in[1])));
}

const OpDef op_kl_divergence = {
    .name = "kl_divergence", .brief = "how far a distribution t is from one given by its logarithms (Kullback and Leibler 1951)", .inputs = "logp: float, t: float", .outputs = "loss", .example = "loss = kl_divergence(log_softmax(logits), softmax(teacher))",
    .doc = "sum over the axis of t (log t - logp), 0 where t is 0. reduce = mean is the mean over rows: PyTorch's batchmean, for its mean divides by the number of classes too.",
    .attrs = {ROW_AXIS, REDUCE}, .shape = kl_divergence_shape, .expand = kl_divergence_expand, LOSS, .cases = CASES("logp: f32[N,4] in -3 -1; t: f32[N,4] in 0.1 1", "logp: f32[2,3,2] in -3 -1; t: f32[2,3,2] in 0.1 1; axis = 1; reduce = sum", "logp: f32[1,1] in -3 -1; t: f32[1,1] in 0.1 1; reduce = none"),
};

static bool cosine_shape(OpCall *call)
{
    const Type *x = &call->in[0]->type;
    int axis;
    return op_like(call, 0, 1) && op_rank(call, 0, 1, RANK_MAX) && op_axis(call, "axis", x->shape.rank, &axis) && op_one(call, (Type){x->dtype, rows_shape(call->cx, &x->shape, axis)});
}

// x y / max(|x| |y|, eps)
static Value *cosine_of(Builder *b, const Node *node, double eps)
{
    Value *x = node->in[0], *y = node->in[1];
    Value *product = row_sum(b, node, build_map2(b, "x0 * x1", x, y)), *xx = row_sum(b, node, build_map1(b, "x0 * x0", x)), *yy = row_sum(b, node, build_map1(b, "x0 * x0", y));
    const char *f = arena_printf(b->cx->arena, "x0 / (max(sqrt(x1), %.17g) * max(sqrt(x2), %.17g))", eps, eps);
    return build_map3(b, f, product, xx, yy);
}

static void cosine_similarity_expand(Builder *b, const Node *node, Value **out) { out[0] = cosine_of(b, node, node_attr(node, "eps")->f); }

const OpDef op_cosine_similarity = {
    .name = "cosine_similarity", .brief = "the cosine of the angle between vectors", .inputs = "x: float, y: float", .outputs = "z", .example = "alike = cosine_similarity(a, b)", .doc = "x y / (max(|x|, eps) max(|y|, eps)) along the axis.",
    .attrs = {ROW_AXIS, {.name = "eps", .kind = ATTR_FLOAT, .initial = "1e-8", .least = 1e-30, .most = 1, .brief = "the least length"}}, .shape = cosine_shape, .expand = cosine_similarity_expand, .traits = OP_DATA, .along = "each", .precision = "f32",
    .cases = CASES("x: f32[N,4]; y: f32[N,4]", "x: f32[2,3,2]; y: f32[2,3,2]; axis = 1", "x: f32[5]; y: f32[5]"),
};

static bool cosine_embedding_shape(OpCall *call)
{
    const Type *x = &call->in[0]->type;
    int axis;
    if (!op_like(call, 0, 1) || !op_rank(call, 0, 1, RANK_MAX) || !op_axis(call, "axis", x->shape.rank, &axis))
        return false;
    Shape rows = rows_shape(call->cx, &x->shape, axis);
    return op_matches(call, "t", (Type){x->dtype, rows}) && loss_type(call, x->dtype, &rows);
}

static void cosine_embedding_expand(Builder *b, const Node *node, Value **out)
{
    const char *f = arena_printf(b->cx->arena, "select(x1 > 0, 1 - x0, max(x0 - %.17g, 0))", node_attr(node, "margin")->f);
    out[0] = reduced(b, node, build_map2(b, f, cosine_of(b, node, 1e-8), node->in[2]));
}

const OpDef op_cosine_embedding = {
    .name = "cosine_embedding", .brief = "brings vectors of a pair into one direction, or apart", .inputs = "x: float, y: float, t: float", .outputs = "loss", .example = "loss = cosine_embedding(a, b, same, margin = 0.2)",
    .doc = "With c the cosine of the angle: 1 - c where t is positive (a pair), max(c - margin, 0) where it is not.", .attrs = {ROW_AXIS, {.name = "margin", .kind = ATTR_FLOAT, .initial = "0", .least = -1, .most = 1, .brief = "the largest cosine of what is no pair"}, REDUCE},
    .shape = cosine_embedding_shape, .expand = cosine_embedding_expand, LOSS, .cases = CASES("x: f32[N,4]; y: f32[N,4]; t: f32[N] in -1 1", "x: f32[2,3,2]; y: f32[2,3,2]; t: f32[2,2] in -1 1; axis = 1; margin = -0.5; reduce = sum", "x: f32[1,1]; y: f32[1,1]; t: f32[1] in 0.5 1; reduce = none"),
};

static bool triplet_shape(OpCall *call) { return row_loss_shape(call, 2); }

// The length of x - y + 1e-6, which has a gradient also where both are the same (as PyTorch's).
static Value *distance(Builder *b, const Node *node, Value *x, Value *y) { return build_map1(b, "sqrt(x0)", row_sum(b, node, build_map2(b, "(x0 - x1 + 1e-6) * (x0 - x1 + 1e-6)", x, y))); }

static void triplet_expand(Builder *b, const Node *node, Value **out)
{
    const char *f = arena_printf(b->cx->arena, "max(x0 - x1 + %.17g, 0)", node_attr(node, "margin")->f);
    out[0] = reduced(b, node, build_map2(b, f, distance(b, node, node->in[0], node->in[1]), distance(b, node, node->in[0], node->in[2])));
}

const OpDef op_triplet = {
    .name = "triplet", .brief = "an anchor is to be nearer to its like than to another (Schroff et al. 2015)", .inputs = "x: float, positive: float, negative: float", .outputs = "loss", .example = "loss = triplet(anchor, same, other, margin = 0.2)",
    .doc = "max(|x - positive| - |x - negative| + margin, 0), with Euclidean lengths along the axis.", .attrs = {ROW_AXIS, {.name = "margin", .kind = ATTR_FLOAT, .initial = "1", .least = 0, .most = 1e30, .brief = "by how much nearer"}, REDUCE},
    .shape = triplet_shape, .expand = triplet_expand, LOSS, .cases = CASES("x: f32[N,4]; positive: f32[N,4]; negative: f32[N,4]; margin = 9", "x: f32[2,3,2]; positive: f32[2,3,2]; negative: f32[2,3,2]; axis = 1; margin = 20; reduce = sum", "x: f32[5,1]; positive: f32[5,1]; negative: f32[5,1]; margin = 7; reduce = none"),
};
