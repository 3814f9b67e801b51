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

static bool pair_shape(OpCall *call) { return op_like(call, 0, 1) && loss_type(call, call->in[0]->type.dtype, &call->in[0]->type.shape); }

#define PAIR_LOSS(id, text, example_, formula_, ...)                                                                    \
    static void id##_expand(Builder *b, const Node *node, Value **out) { out[0] = reduced(b, node, build_map2(b, formula_, node->in[0], node->in[1])); } \
    const OpDef op_##id = {.name = #id, .brief = text, .inputs = "y: float, t: float", .outputs = "loss", .example = example_, .attrs = {REDUCE}, .shape = pair_shape, .expand = id##_expand, LOSS, __VA_ARGS__}

PAIR_LOSS(mse, "the mean squared error", "loss = mse(y, t)", "(x0 - x1) * (x0 - x1)",
          .cases = CASES("y: f32[2,3]; t: f32[2,3]", "y: f32[N]; t: f32[N]; reduce = sum", "y: f32[2,3]; t: f32[2,3]; reduce = none", "y: f32[]; t: f32[]"));
PAIR_LOSS(l1, "the mean absolute error", "loss = l1(y, t)", "abs(x0 - x1)", .cases = CASES("y: f32[2,3] in 1 2; t: f32[2,3] in -2 0", "y: f32[N] in -2 0; t: f32[N] in 1 2; reduce = sum"));
PAIR_LOSS(bce_with_logits, "binary cross entropy of logits: the truth is 0 or 1, or a probability", "loss = bce_with_logits(logits, truth)", "max(x0, 0) - x0 * x1 + log1p(exp(-abs(x0)))",
          .doc = "max(y, 0) - y t + log(1 + exp(-|y|)), which is log-likelihood without overflow.",
          .cases = CASES("y: f32[2,3]; t: f32[2,3] in 0 1", "y: f32[N] in -4 4; t: f32[N] in 0 1; reduce = sum", "y: f32[3]; t: f32[3] in 0 1; reduce = none"));

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

static Value *reduced_counted(Builder *b, const Node *node, Value *each, Value *count)
{
    bool all[RANK_MAX] = {true, true, true, true, true, true, true, true};
    if (count == NULL)
        return reduced(b, node, each);
    each = build_map2(b, "select(x1 > 0, x0, 0)", each, count);
    if (strcmp(node_attr(node, "reduce")->word, "mean") != 0)
        return reduced(b, node, each);
    return build_map2(b, "x0 / x1", build_reduce(b, "sum", each, all, false), build_reduce(b, "sum", count, all, false));
}

static Value *picked(Builder *b, Value *x, Value *label, int axis)
{
    OpCall call = call_new(b, "pick", 2, (Value *[]){x, label});
    call_int(&call, "axis", axis);
    return op_build(b, &call);
}

// z = x - max; loss = log(sum(exp(z))) - z[label]. Smoothing gives each class a share of the truth: then z[label] becomes
// (1 - s) z[label] + s mean(z).
static void cross_entropy_expand(Builder *b, const Node *node, Value **out)
{
    Value *x = node->in[0], *label = node->in[1];
    const Shape *shape = &x->type.shape;
    int axis = node_axis(node, "axis", shape->rank);
    double smoothing = node_attr(node, "smoothing")->f;
    bool axes[RANK_MAX] = {false};
    axes[axis] = true;
    Value *count = counted(b, node, &label, x->type.dtype);
    Value *most = build1(b, "stop_gradient", build_reduce(b, "max", x, axes, true), "");
    Value *z = build_map2(b, "x0 - x1", x, most);
    Value *sum = build_reduce(b, "sum", build_map1(b, "exp(x0)", z), axes, false), *truth = picked(b, z, label, axis), *each;
    if (smoothing == 0)
        each = build_map2(b, "log(x0) - x1", sum, truth);
    else
        each = build_map3(b, arena_printf(b->cx->arena, "log(x0) - %.17g * x1 - %.17g * x2", 1 - smoothing, smoothing), sum, truth,
                          build_per(b, build_reduce(b, "sum", z, axes, false), size_const(b->cx, 1), shape->dim[axis]));
    out[0] = reduced_counted(b, node, each, count);
}

#define CLASS_ATTRS {.name = "axis", .kind = ATTR_INT, .initial = "-1", .brief = "where the classes are"}, \
                    {.name = "ignore", .kind = ATTR_INT, .initial = "", .onnx = "ignore_index", .brief = "rows with this label do not count; it may lie outside of the classes"}, REDUCE

const OpDef op_cross_entropy = {
    .name = "cross_entropy", .brief = "minus the logarithm of the probability that softmax(logits) gives to the label", .inputs = "logits: float, label: index", .outputs = "loss", .example = "loss = cross_entropy(logits, label)",
    .doc = "log(sum(exp(x))) - x[label], with the largest subtracted first. With smoothing s the truth is 1 - s for the label and s / C for each class besides (Szegedy et al. 2016). A label outside of the classes is an error when running.",
    .attrs = {{.name = "smoothing", .kind = ATTR_FLOAT, .initial = "0", .least = 0, .most = 1, .brief = "share of the truth that all classes get"}, CLASS_ATTRS},
    .shape = class_loss_shape, .expand = cross_entropy_expand, .traits = OP_LOSS | OP_INDEX, .along = "each", .precision = "f32", .mean_over = "where", .onnx = {{"SoftmaxCrossEntropyLoss", 12, 0}},
    .cases = CASES("logits: f32[N,4]; label: i32[N] in 0 3", "logits: f32[2,3,4]; label: i64[2,4] in 0 2; axis = 1; reduce = sum", "logits: f32[N,4]; label: i32[N] in 0 3; smoothing = 0.1",
                   "logits: f32[5,3]; label: i32[5] in 0 2; ignore = 1", "logits: f32[3,4]; label: i32[3] in 0 3; reduce = none", "logits: f32[3]; label: i32[] in 0 2", "logits: f32[2,1]; label: i32[2] in 0 0"),
};

static void nll_expand(Builder *b, const Node *node, Value **out)
{
    Value *x = node->in[0], *label = node->in[1];
    Value *count = counted(b, node, &label, x->type.dtype);
    Value *each = build_map1(b, "-x0", picked(b, x, label, node_axis(node, "axis", x->type.shape.rank)));
    out[0] = reduced_counted(b, node, each, count);
}

const OpDef op_nll = {
    .name = "nll", .brief = "minus the logarithm of the label's probability, of logarithms", .inputs = "logp: float, label: index", .outputs = "loss", .example = "loss = nll(log_softmax(logits), label)",
    .attrs = {CLASS_ATTRS}, .shape = class_loss_shape, .expand = nll_expand, .traits = OP_LOSS | OP_INDEX, .along = "each", .precision = "f32", .mean_over = "where", .onnx = {{"NegativeLogLikelihoodLoss", 12, 0}},
    .cases = CASES("logp: f32[N,4]; label: i32[N] in 0 3", "logp: f32[2,3,4]; label: i64[2,4] in 0 2; axis = 1; ignore = 0; reduce = sum"),
};
