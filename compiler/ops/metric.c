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

// Of the rows that do not carry the label to be ignored.
static void accuracy_expand(Builder *b, const Node *node, Value **out)
{
    const Attr *ignore = node_attr(node, "ignore");
    bool all[RANK_MAX] = {true, true, true, true, true, true, true, true};
    Value *label = node->in[1], *counts = NULL;
    if (ignore->kind != ATTR_NONE) {
        Value *number = build_cast(b, build_number(b, TYPE_i64, (double)ignore->i), label->type.dtype);
        counts = build_cast(b, build_map2(b, "x0 != x1", label, number), node->out[0]->type.dtype);
        label = build_map2(b, "select(x0 == x1, x0 - x0, x0)", label, number);
    }
    OpCall call = call_new(b, "rank_of_label", 2, (Value *[]){node->in[0], label});
    call_same(&call, node);
    Value *right = build_map1(b, arena_printf(b->cx->arena, "select(x0 < %d, 1, 0)", (int)node_attr(node, "top")->i), op_build(b, &call));
    if (counts == NULL)
        out[0] = mean_of_all(b, right);
    else
        out[0] = build_map2(b, "x0 / max(x1, 1)", build_reduce(b, "sum", build_map2(b, "x0 * x1", right, counts), all, false), build_reduce(b, "sum", counts, all, false));
}

const OpDef op_accuracy = {
    .name = "accuracy", .brief = "the share of rows whose label has the largest logit", .inputs = "logits: float, label: index", .outputs = "y", .example = "metric accuracy(logits, label)",
    .doc = "With top = k, whose label is among the k largest. Of equal logits the first counts as larger; NaN is never right.",
    .attrs = {{.name = "top", .kind = ATTR_INT, .initial = "1", .least = 1, .most = 1e6, .brief = "how many may be named"}, CLASS_AXIS, {.name = "ignore", .kind = ATTR_INT, .initial = "", .brief = "rows with this label do not count"}}, .shape = accuracy_shape, .expand = accuracy_expand, .no_grad = COUNTS,
    .traits = OP_METRIC | OP_INDEX, .along = "each", .precision = "any", .metric = {METRIC_MEAN, 1, ""}, .cases = CASES("logits: f32[N,4]; label: i32[N] in 0 3", "logits: f32[2,3,4]; label: i32[2,4] in 0 2; axis = 1; top = 2", "logits: f32[7,3]; label: i32[7] in -1 2; ignore = -1", "logits: f32[2,2]; label: i32[2] in 1 1; ignore = 1"),
};

// --- confusion, f1 ----------------------------------------------------------------------------------------------------------------

static bool count_pairs_shape(OpCall *call)
{
    const Attr *rows = call_attr(call, "rows");
    Size classes = call_attr(call, "count")->sizes[0], dim[] = {rows->kind == ATTR_NONE ? classes : rows->sizes[0], classes};
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
    .name = "count_pairs", .brief = "how often each pair (a, b) occurs", .inputs = "a: index, b: index", .outputs = "y", .traits = OP_INTERNAL | OP_INDEX, .attrs = {{.name = "count", .kind = ATTR_SIZES, .brief = "a and b are below it"}, {.name = "rows", .kind = ATTR_SIZES, .initial = "", .brief = "a is below this, if it is another"}},
    .shape = count_pairs_shape, .lower = count_pairs_lower, .no_grad = COUNTS, .along = "mixes", .precision = "any", .cases = CASES("a: i32[N] in 0 2; b: i32[N] in 0 2; count = 3", "a: i32[5] in 0 1; b: i32[5] in 0 6; count = 7; rows = 2"),
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
    .name = "confusion", .brief = "the confusion matrix: how often class i (row) was taken for class j (column)",
    .doc = "Counts that add up over batches; of equal logits the first class is taken.", .inputs = "logits: float, label: index", .outputs = "y", .example = "metric confusion(logits, label)", .attrs = {CLASS_AXIS},
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
    .name = "mae", .brief = "the mean absolute error",
    .doc = "The mean over all elements of |y - t|.", .inputs = "y: float, t: float", .outputs = "error", .example = "metric mae(price, truth)", .shape = mae_shape, .expand = mae_expand, .traits = OP_METRIC,
    .along = "each", .precision = "f32", .metric = {METRIC_MEAN, -1, ""}, .cases = CASES("y: f32[2,3] in 1 2; t: f32[2,3] in -2 0"),
};

// --- perplexity, rmse ---------------------------------------------------------------------------------------------------------------

static bool perplexity_shape(OpCall *call)
{
    Shape rows;
    return classes_fit(call, &rows) && op_one(call, (Type){.dtype = call->in[0]->type.dtype});
}

static void perplexity_expand(Builder *b, const Node *node, Value **out)
{
    OpCall call = call_new(b, "cross_entropy", 2, node->in);
    call_same(&call, node);
    out[0] = op_build(b, &call);
}

const OpDef op_perplexity = {
    .name = "perplexity", .brief = "e to the mean cross entropy: between how many words a model still wavers", .inputs = "logits: float, label: index", .outputs = "y", .example = "metric perplexity(logits, next)",
    .doc = "This op gives the mean cross entropy of a batch; e to the power of the mean over all batches is taken at the end, which is not the mean of the batches' perplexities.",
    .attrs = {CLASS_AXIS, {.name = "ignore", .kind = ATTR_INT, .initial = "", .brief = "rows with this label do not count"}}, .shape = perplexity_shape, .expand = perplexity_expand, .traits = OP_METRIC | OP_INDEX, .along = "each", .precision = "f32",
    .metric = {METRIC_MEAN, -1, "exp"}, .cases = CASES("logits: f32[N,4]; label: i32[N] in 0 3", "logits: f32[2,3,4]; label: i32[2,4] in 0 2; axis = 1; ignore = 1"),
};

static void rmse_expand(Builder *b, const Node *node, Value **out) { out[0] = mean_of_all(b, build_map2(b, "(x0 - x1) * (x0 - x1)", node->in[0], node->in[1])); }

const OpDef op_rmse = {
    .name = "rmse", .brief = "the root of the mean squared error", .inputs = "y: float, t: float", .outputs = "error", .example = "metric rmse(price, truth)", .doc = "This op gives the mean square of a batch; the root of the mean over all batches is taken at the end.",
    .shape = mae_shape, .expand = rmse_expand, .traits = OP_METRIC, .along = "each", .precision = "f32", .metric = {METRIC_MEAN, -1, "sqrt"}, .cases = CASES("y: f32[2,3]; t: f32[2,3]", "y: f32[N]; t: f32[N]"),
};

// --- mean_iou ------------------------------------------------------------------------------------------------------------------------

static bool mean_iou_shape(OpCall *call)
{
    const Type *mask = &call->in[0]->type, *truth = &call->in[1]->type;
    Size classes = size_const(call->cx, call_attr(call, "classes")->i), dim[] = {classes, classes};
    if (!shape_equal(&mask->shape, &truth->shape))
        return op_error(call, MESSAGE_E0303, "mean_iou", op_input_name(call, 0), type_text(call->cx, mask), op_input_name(call, 1), type_text(call->cx, truth));
    return op_one(call, type_of(TYPE_f32, 2, dim));
}

// Rows that do not count go to a class of their own, which is cut off.
static void mean_iou_expand(Builder *b, const Node *node, Value **out)
{
    const Attr *ignore = node_attr(node, "ignore");
    int64_t classes = node_attr(node, "classes")->i;
    Value *mask = build_cast(b, node->in[0], TYPE_i64), *truth = build_cast(b, node->in[1], TYPE_i64);
    Size more = size_const(b->cx, classes + 1), all = size_const(b->cx, classes), zero = size_const(b->cx, 0);
    if (ignore->kind != ATTR_NONE)
        truth = build_map3(b, "select(x0 == x1, x2, x0)", truth, build_number(b, TYPE_i64, (double)ignore->i), build_number(b, TYPE_i64, (double)classes));
    OpCall pairs = call_new(b, "count_pairs", 2, (Value *[]){truth, mask});
    call_sizes(&pairs, "count", 1, &more);
    out[0] = build_slice(b, build_slice(b, op_build(b, &pairs), 0, zero, all, 1), 1, zero, all, 1);
}

const OpDef op_mean_iou = {
    .name = "mean_iou", .brief = "intersection over union of each class, the mean over the classes", .inputs = "x: index, truth: index", .outputs = "y", .example = "metric mean_iou(mask, truth, classes = 2, ignore = 255)",
    .doc = "TP / (TP + FP + FN) of each class that occurs, from the confusion matrix of all batches, which is what this op gives.",
    .attrs = {{.name = "classes", .kind = ATTR_INT, .least = 1, .most = 65536, .brief = "how many there are"}, {.name = "ignore", .kind = ATTR_INT, .initial = "", .brief = "places with this truth do not count"}}, .shape = mean_iou_shape, .expand = mean_iou_expand, .no_grad = COUNTS,
    .traits = OP_METRIC, .along = "each", .precision = "any", .metric = {METRIC_SUM, 1, "iou"}, .cases = CASES("x: i32[N,5] in 0 2; truth: i32[N,5] in 0 2; classes = 3", "x: i32[2,3,3] in 0 1; truth: u8[2,3,3] in 0 2; classes = 2; ignore = 2"),
};

// --- auc -----------------------------------------------------------------------------------------------------------------------------

enum { AUC_BINS = 1024 };

static bool auc_shape(OpCall *call)
{
    Shape rows;
    const Type *x = &call->in[0]->type;
    int64_t two;
    Size dim[] = {size_const(call->cx, 2), size_const(call->cx, AUC_BINS)};
    if (!classes_fit(call, &rows))
        return false;
    int axis = (int)attr_axis(call_attr(call, "axis"), 0, x->shape.rank);
    if (!size_known(x->shape.dim[axis], &two) || two != 2)
        return op_error(call, MESSAGE_E0311, "logits of auc", "of two classes", type_text(call->cx, x));
    return op_one(call, type_of(TYPE_f32, 2, dim));
}

// The probability of class 1 in so many steps: how often each occurs, among rows of class 0 and of class 1.
static void auc_expand(Builder *b, const Node *node, Value **out)
{
    OpCall softmax = call_new(b, "softmax", 1, node->in);
    call_same(&softmax, node);
    int axis = node_axis(node, "axis", node->in[0]->type.shape.rank);
    Value *p = build_slice(b, op_build(b, &softmax), axis, size_const(b->cx, 1), size_const(b->cx, 1), 1), *label = build_cast(b, node->in[1], TYPE_i64);
    Value *bin = build_cast(b, build_map1(b, arena_printf(b->cx->arena, "min(max(floor(x0 * %d), 0), %d)", AUC_BINS, AUC_BINS - 1), build_reshape(b, p, &label->type.shape)), TYPE_i64);
    Size bins = size_const(b->cx, AUC_BINS);
    OpCall pairs = call_new(b, "count_pairs", 2, (Value *[]){label, bin});
    call_sizes(&pairs, "count", 1, &bins);
    call_sizes(&pairs, "rows", 1, &node->out[0]->type.shape.dim[0]);
    out[0] = op_build(b, &pairs);
}

const OpDef op_auc = {
    .name = "auc", .brief = "the area under the ROC curve: how often a row of class 1 has a larger probability than one of class 0", .inputs = "logits: float, label: index", .outputs = "y", .example = "metric auc(quick, truth)",
    .doc = "Of two classes. This op counts probabilities in 1024 steps, which add up over batches; equal steps count half. So the area is right to about 1/1000.", .attrs = {CLASS_AXIS}, .shape = auc_shape, .expand = auc_expand, .no_grad = COUNTS,
    .traits = OP_METRIC | OP_INDEX, .along = "each", .precision = "any", .metric = {METRIC_SUM, 1, "auc"}, .cases = CASES("logits: f32[N,2]; label: i32[N] in 0 1"),
};

// --- mean_average_precision -------------------------------------------------------------------------------------------------------------

enum { MAP_STEPS = 256 };

static bool detections_shape(OpCall *call)
{
    Context *cx = call->cx;
    const Type *found = &call->in[0]->type, *goal = &call->in[4]->type;
    Size n = found->shape.rank > 0 ? found->shape.dim[0] : NULL;
    if (!op_rank(call, 0, 3, 3) || !op_rank(call, 4, 3, 3))
        return false;
    Size four = size_const(cx, 4), found_dim[] = {n, found->shape.dim[1], four}, goal_dim[] = {n, goal->shape.dim[1], four};
    Value *class = call->in[2], *count = call->in[3], *label = call->in[5];
    if (!op_matches(call, "found", type_of(found->dtype, 3, found_dim)) || !op_matches(call, "confidence", type_of(found->dtype, 2, found_dim)) || !op_matches(call, "class", type_of(class->type.dtype, 2, found_dim)) ||
        !op_matches(call, "count", type_of(count->type.dtype, 1, found_dim)) || !op_matches(call, "truth", type_of(found->dtype, 3, goal_dim)) || !op_matches(call, "label", type_of(label->type.dtype, 2, goal_dim)))
        return false;
    Size table[] = {size_const(cx, call_attr(call, "classes")->i), size_const(cx, MAP_STEPS + 1), size_const(cx, 2)}, taken[] = {n, goal->shape.dim[1]};
    call->n_out = 2;
    call->out[0] = type_of(TYPE_f32, 3, table);
    call->out[1] = type_of(TYPE_u8, 2, taken);
    return true;
}

// Of a class c: [c, 0, 0] objects; [c, 1 + step, 0] found rightly, [c, 1 + step, 1] wrongly, with a confidence of that step.
// Boxes come best first. Each is compared with the object of its class that it overlaps most; an object is found once.
static Loop *detections_lower(Context *cx, const Node *node)
{
    Value *found = node->in[0], *confidence = node->in[1], *class = node->in[2], *count = node->in[3], *goal = node->in[4], *label = node->in[5], *table = node->out[0], *taken = node->out[1];
    DType type = found->type.dtype;
    Nest nest = nest_new(cx);
    Expr *zero = e_whole(cx, 0), *one = e_whole(cx, 1), *f_one = expr_number(cx, TYPE_f32, 1);
    nest_fill(&nest, table, e_zero(cx, TYPE_f32));
    Expr *n = nest_for(&nest, 3, found->type.shape.dim[0], AXIS_SERIAL);
    Loop *sample = nest.at;
    Expr *m = nest_for(&nest, 4, goal->type.shape.dim[1], AXIS_SERIAL), *at[] = {n, m};
    nest_store(&nest, taken, at, e_zero(cx, TYPE_u8));
    Expr *own = nest_let(&nest, e_index(cx, label, at));
    nest_if(&nest, e_prim(cx, PRIM_ge, own, zero));
    nest_scatter(&nest, table, (Expr *[]){own, zero, zero}, f_one);
    nest.at = sample;
    Expr *k = nest_for(&nest, 5, found->type.shape.dim[1], AXIS_SERIAL), *of[] = {n, k};
    nest_if(&nest, e_prim(cx, PRIM_lt, k, e_index(cx, count, &n)));
    Loop *each = nest.at;
    Expr *kind = nest_let(&nest, e_index(cx, class, of)), *best = nest_local(&nest, type, e_zero(cx, type)), *place = nest_local(&nest, TYPE_i64, e_whole(cx, -1)), *value[9];
    Expr *scaled = e_prim(cx, PRIM_mul, e_load(cx, confidence, of), expr_number(cx, type, MAP_STEPS));
    Expr *step = nest_let(&nest, e_add(cx, e_prim(cx, PRIM_min, e_prim(cx, PRIM_max, expr_cast(cx, TYPE_i64, scaled), zero), e_whole(cx, MAP_STEPS - 1)), one));
    for (int i = 0; i < 4; i++)
        value[i] = nest_let(&nest, e_load(cx, found, (Expr *[]){n, k, e_whole(cx, i)}));
    Expr *j = nest_for(&nest, 6, goal->type.shape.dim[1], AXIS_SERIAL), *in_goal[] = {n, j};
    nest_if(&nest, e_prim(cx, PRIM_eq, e_index(cx, label, in_goal), kind));
    static const char *const names[] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "common"};
    for (int i = 0; i < 4; i++)
        value[4 + i] = nest_let(&nest, e_load(cx, goal, (Expr *[]){n, j, e_whole(cx, i)}));
    value[8] = nest_let(&nest, expr_parse(cx, "max(min(x2, x6) - max(x0, x4), 0) * max(min(x3, x7) - max(x1, x5), 0)", names, value, 8));
    Expr *share = nest_let(&nest, expr_parse(cx, "common / ((x2 - x0) * (x3 - x1) + (x6 - x4) * (x7 - x5) - common)", names, value, 9));
    nest_if(&nest, e_prim(cx, PRIM_gt, share, best));
    nest_update(&nest, best, REDUCE_NONE, share);
    nest_update(&nest, place, REDUCE_NONE, j);
    nest.at = each;
    Expr *hit = nest_local(&nest, TYPE_i64, zero);
    nest_if(&nest, e_prim(cx, PRIM_and, e_prim(cx, PRIM_ge, place, zero), e_prim(cx, PRIM_ge, best, expr_number(cx, type, node_attr(node, "iou")->f))));
    Expr *in_taken[] = {n, place};
    nest_if(&nest, e_prim(cx, PRIM_eq, e_load(cx, taken, in_taken), e_zero(cx, TYPE_u8)));
    nest_update(&nest, hit, REDUCE_NONE, one);
    nest_store(&nest, taken, in_taken, e_value(cx, TYPE_u8, 1));
    nest.at = each;
    nest_scatter(&nest, table, (Expr *[]){kind, step, e_sub(cx, one, hit)}, f_one);
    return nest.root;
}

#define MAP_ATTRS {.name = "iou", .kind = ATTR_FLOAT, .initial = "0.5", .least = 0, .most = 1, .brief = "an object is found by a box that overlaps it so much"}, {.name = "classes", .kind = ATTR_INT, .initial = "256", .least = 1, .most = 65536, .brief = "class numbers are below it; others are left out"}
#define MAP_CASES .cases = CASES("found: f32[N,4,4] in 0 2; confidence: f32[N,4] in 0 1; class: i32[N,4] in 0 1; count: i32[N] in 2 4; truth: f32[N,2,4] in 0 2; label: i32[N,2] in -1 1; iou = 0.1; classes = 2", \
                                 "found: f32[1,1,4]; confidence: f32[1,1] in 0 1; class: i32[1,1]; count: i32[1] in 0 1; truth: f32[1,1,4]; label: i32[1,1] in 0 1; classes = 3")

const OpDef op_detections = {
    .name = "detections", .brief = "objects, and boxes that are right or wrong, by class and confidence; which objects were found besides", .inputs = "found: float, confidence: float, class: int, count: int, truth: float, label: int", .outputs = "y, taken", .traits = OP_INTERNAL, .attrs = {MAP_ATTRS},
    .shape = detections_shape, .lower = detections_lower, .no_grad = COUNTS, .along = "mixes", .precision = "any", MAP_CASES,
};

static bool map_metric_shape(OpCall *call)
{
    bool fits = detections_shape(call);
    call->n_out = 1;
    return fits;
}

static void map_metric_expand(Builder *b, const Node *node, Value **out)
{
    Value *all[OUTPUTS_MAX];
    OpCall call = call_new(b, "detections", 6, node->in);
    call_same(&call, node);
    op_build_all(b, &call, all);
    out[0] = all[0];
}

const OpDef op_mean_average_precision = {
    .name = "mean_average_precision", .brief = "the area under precision over recall, the mean over the classes (Everingham et al. 2010)", .inputs = "found: float, confidence: float, class: int, count: int, truth: float, label: int", .outputs = "y",
    .example = "metric mean_average_precision(found, confidence, class, count, goal, label, iou = 0.5)",
    .doc = "The first four as nms gives them, then the true boxes (N, M, 4) and what they are (N, M; below 0: no more). A box is right if, of the objects of its class, the one that it overlaps most is overlapped by at least iou and was not found before; boxes come best first. "
           "This op counts by class and confidence, which adds up over batches; confidences are kept in 256 steps. At the end each class that occurs has the area under its curve, precision made falling from the right (all points, as VOC since 2010).",
    .attrs = {MAP_ATTRS}, .shape = map_metric_shape, .expand = map_metric_expand, .no_grad = COUNTS, .traits = OP_METRIC, .along = "mixes", .precision = "any", .metric = {METRIC_SUM, 1, "map"}, MAP_CASES,
};
