// metric.c: what evaluation reports besides the loss. Each gives a number, or counts that add up over batches; `metric` in the
// row says how they add up and which way is better.
#include "op.h"

bool classes_fit(OpCall *call, Shape *rows);            // loss.c

static Value *mean_of_all(Builder *b, Value *x)
{
    bool all[RANK_MAX] = {true, true, true, true, true, true, true, true};
    return build_per(b, build_reduce(b, "sum", x, all, false), size_const(b->cx, 1), shape_count(b->cx, &x->type.shape));
}

#define CLASS_AXIS {.name = "axis", .kind = ATTR_INT, .initial = "-1", .brief = "where the classes are"}
#define COUNTS "it counts"

// --- accuracy ---------------------------------------------------------------------------------------------------------------------

static bool rank_of_label_shape(OpCall *call)
{
    Shape rows;
    return classes_fit(call, &rows) && op_one(call, (Type){call->in[0]->type.dtype, rows});
}

// How many classes come before the label's. NaN comes before everything, so a net that has broken down is right nowhere.
static void rank_of_label_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Value *x = node->in[0];
    int rank = x->type.shape.rank, axis = node_axis(node, "axis", rank);
    Expr *at[RANK_MAX], *own[RANK_MAX], *other[RANK_MAX];
    compute_over(out, &node->out[0]->type.shape);
    for (int i = 0; i < out->rank; i++)
        at[i] = e_axis(cx, i);
    Expr *class = e_axis(cx, compute_reduce(out, REDUCE_SUM, x->type.shape.dim[axis])), *label = e_index(cx, node->in[1], at);
    for (int i = 0; i < rank; i++) {
        own[i] = i < axis ? at[i] : i == axis ? label : at[i - 1];
        other[i] = i == axis ? class : own[i];
    }
    Expr *a = e_load(cx, x, other), *b = e_load(cx, x, own);
    Expr *tie = e_prim(cx, PRIM_and, e_prim(cx, PRIM_eq, a, b), e_prim(cx, PRIM_ge, class, label));
    Expr *behind = e_prim(cx, PRIM_or, e_prim(cx, PRIM_lt, a, b), tie);
    out->body = e_select(cx, behind, e_zero(cx, x->type.dtype), e_value(cx, x->type.dtype, 1));
}

const OpDef op_rank_of_label = {
    .name = "rank_of_label", .brief = "how many classes are above the label's; of equal ones the first is above", .inputs = "logits: float, label: index", .outputs = "y", .traits = OP_INTERNAL | OP_INDEX, .attrs = {CLASS_AXIS},
    .shape = rank_of_label_shape, .compute = rank_of_label_compute, .no_grad = COUNTS, .along = "each", .precision = "any", .cases = CASES("logits: f32[N,4]; label: i32[N] in 0 3"),
};

static bool accuracy_shape(OpCall *call)
{
    Shape rows;
    return classes_fit(call, &rows) && op_one(call, (Type){.dtype = call->in[0]->type.dtype});
}

static void accuracy_expand(Builder *b, const Node *node, Value **out)
{
    OpCall call = call_new(b, "rank_of_label", 2, node->in);
    call_same(&call, node);
    const char *f = arena_printf(b->cx->arena, "select(x0 < %d, 1, 0)", (int)node_attr(node, "top")->i);
    out[0] = mean_of_all(b, build_map1(b, f, op_build(b, &call)));
}

const OpDef op_accuracy = {
    .name = "accuracy", .brief = "the share of rows whose label has the largest logit", .inputs = "logits: float, label: index", .outputs = "y", .example = "metric accuracy(logits, label)",
    .doc = "With top = k, whose label is among the k largest. Of equal logits the first counts as larger; NaN is never right.",
    .attrs = {{.name = "top", .kind = ATTR_INT, .initial = "1", .least = 1, .most = 1e6, .brief = "how many may be named"}, CLASS_AXIS}, .shape = accuracy_shape, .expand = accuracy_expand, .no_grad = COUNTS,
    .traits = OP_METRIC | OP_INDEX, .along = "each", .precision = "any", .metric = {METRIC_MEAN, 1, ""}, .cases = CASES("logits: f32[N,4]; label: i32[N] in 0 3", "logits: f32[2,3,4]; label: i32[2,4] in 0 2; axis = 1; top = 2"),
};

// --- confusion, f1 ----------------------------------------------------------------------------------------------------------------

static bool count_pairs_shape(OpCall *call)
{
    Size classes = call_attr(call, "count")->sizes[0], dim[] = {classes, classes};
    return op_one(call, type_of(TYPE_f32, 2, dim));
}

static Loop *count_pairs_lower(Context *cx, const Node *node)
{
    const Shape *rows = &node->in[0]->type.shape;
    Nest nest = nest_new(cx);
    Expr *at[RANK_MAX], *one = expr_number(cx, TYPE_f32, 1);
    nest_fill(&nest, node->out[0], e_zero(cx, TYPE_f32));
    for (int i = 0; i < rows->rank; i++)
        at[i] = nest_for(&nest, i, rows->dim[i], AXIS_SERIAL);
    Expr *pair[] = {e_index(cx, node->in[0], at), e_index(cx, node->in[1], at)};
    nest_scatter(&nest, node->out[0], pair, one);
    return nest.root;
}

const OpDef op_count_pairs = {
    .name = "count_pairs", .brief = "how often each pair (a, b) occurs", .inputs = "a: index, b: index", .outputs = "y", .traits = OP_INTERNAL | OP_INDEX, .attrs = {{.name = "count", .kind = ATTR_SIZES, .brief = "a and b are below it"}},
    .shape = count_pairs_shape, .lower = count_pairs_lower, .no_grad = COUNTS, .along = "mixes", .precision = "any", .cases = CASES("a: i32[N] in 0 2; b: i32[N] in 0 2; count = 3"),
};

static bool confusion_shape(OpCall *call)
{
    Shape rows;
    int axis;
    if (!classes_fit(call, &rows) || !op_axis(call, "axis", call->in[0]->type.shape.rank, &axis))
        return false;
    Size classes = call->in[0]->type.shape.dim[axis], dim[] = {classes, classes};
    return op_one(call, type_of(TYPE_f32, 2, dim));
}

static void confusion_expand(Builder *b, const Node *node, Value **out)
{
    OpCall best = call_new(b, "argmax", 1, node->in);
    call_same(&best, node);
    OpCall pairs = call_new(b, "count_pairs", 2, (Value *[]){node->in[1], op_build(b, &best)});
    call_sizes(&pairs, "count", 1, &node->out[0]->type.shape.dim[0]);
    out[0] = op_build(b, &pairs);
}

const OpDef op_confusion = {
    .name = "confusion", .brief = "the confusion matrix: how often class i (row) was taken for class j (column)", .inputs = "logits: float, label: index", .outputs = "y", .example = "metric confusion(logits, label)", .attrs = {CLASS_AXIS},
    .shape = confusion_shape, .expand = confusion_expand, .no_grad = COUNTS, .traits = OP_METRIC | OP_INDEX, .along = "each", .precision = "any", .metric = {METRIC_SUM, 0, "confusion"},
    .cases = CASES("logits: f32[N,3]; label: i32[N] in 0 2", "logits: f32[2,3,4]; label: i32[2,4] in 0 2; axis = 1"),
};

const OpDef op_f1 = {
    .name = "f1", .brief = "the F1 score, the mean over the classes", .inputs = "logits: float, label: index", .outputs = "y", .example = "metric f1(logits, label)", .attrs = {CLASS_AXIS},
    .doc = "2 TP / (2 TP + FP + FN) of each class that occurs, from the confusion matrix of all batches, which is what this op gives.",
    .shape = confusion_shape, .expand = confusion_expand, .no_grad = COUNTS, .traits = OP_METRIC | OP_INDEX, .along = "each", .precision = "any", .metric = {METRIC_SUM, 1, "f1"}, .cases = CASES("logits: f32[N,3]; label: i32[N] in 0 2"),
};

// --- mae --------------------------------------------------------------------------------------------------------------------------

static bool mae_shape(OpCall *call) { return op_like(call, 0, 1) && op_one(call, (Type){.dtype = call->in[0]->type.dtype}); }
static void mae_expand(Builder *b, const Node *node, Value **out) { out[0] = mean_of_all(b, build_map2(b, "abs(x0 - x1)", node->in[0], node->in[1])); }

const OpDef op_mae = {
    .name = "mae", .brief = "the mean absolute error", .inputs = "y: float, t: float", .outputs = "error", .example = "metric mae(price, truth)", .shape = mae_shape, .expand = mae_expand, .traits = OP_METRIC,
    .along = "each", .precision = "f32", .metric = {METRIC_MEAN, -1, ""}, .cases = CASES("y: f32[2,3] in 1 2; t: f32[2,3] in -2 0"),
};
