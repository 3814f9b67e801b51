// attention.c: scaled dot-product attention and rotary positions (transformers).
//
// attention is one row: heads, grouped keys, masks and causality belong together, and a kernel that never writes the
// probabilities down can take its place. Written out it is two batched products around attention_weights, whose gradient
// needs the probabilities alone.
#include <math.h>

#include "op.h"

#define CAUSAL {.name = "causal", .kind = ATTR_BOOL, .initial = "false", .onnx = "is_causal", .brief = "place i sees the places j <= i alone, both counted from the start"}

// --- attention_weights ------------------------------------------------------------------------------------------------------------

#define SCALE     {.name = "scale", .kind = ATTR_FLOAT, .initial = "1", .brief = "factor of the scores"}
#define MASKED_CASES CASES("x: f32[2,3,3]; causal = true; scale = 0.5", "x: f32[N,2,3]; mask: bool[3]; causal = true", "x: f32[N,1,2]; mask: f32[N,1,2]; scale = 2", "x: f32[2,3,5]; mask: bool[2,1,5]", "x: f32[2,2]")

static Value *mask_of(const Node *node) { return node->n_in > 1 ? node->in[1] : NULL; }
static bool is_bool(const Value *v)     { return v->type.dtype == TYPE_bool; }

static Expr *mask_load(Context *cx, Value *mask, int rank)
{
    const Shape *shape = &mask->type.shape;
    Expr *at[RANK_MAX];
    for (int i = 0; i < shape->rank; i++) {
        int64_t n;
        at[i] = size_known(shape->dim[i], &n) && n == 1 ? e_whole(cx, 0) : e_axis(cx, i + rank - shape->rank);
    }
    return e_load(cx, mask, at);
}

// Scores (…, i, j) times scale. A float mask is added; what a boolean one or causality forbids is -inf.
static void masked_scores_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Value *s = node->in[0], *mask = mask_of(node);
    Expr *at[RANK_MAX], *seen = NULL;
    compute_over(out, &s->type.shape);
    for (int i = 0; i < out->rank; i++)
        at[i] = e_axis(cx, i);
    out->body = e_load(cx, s, at);
    double scale = node_attr(node, "scale")->f;
    if (scale != 1)
        out->body = e_prim(cx, PRIM_mul, out->body, expr_number(cx, s->type.dtype, scale));
    if (node_flag(node, "causal"))
        seen = e_prim(cx, PRIM_le, at[out->rank - 1], at[out->rank - 2]);
    if (mask != NULL && is_bool(mask))
        seen = e_and(cx, seen, mask_load(cx, mask, out->rank));
    else if (mask != NULL)
        out->body = e_prim(cx, PRIM_add, out->body, mask_load(cx, mask, out->rank));
    if (seen != NULL)
        out->body = e_select(cx, seen, out->body, e_least(cx, s->type.dtype));
}

// What was not seen has no gradient.
static void masked_scores_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    Value *seen = build_map2(b, "select(x0 - x0 == 0, x1, 0)", node->out[0], dy[0]), *mask = mask_of(node);
    dx[0] = build_map1(b, arena_printf(b->cx->arena, "x0 * %.17g", node_attr(node, "scale")->f), seen);
    if (mask != NULL && !is_bool(mask))
        dx[1] = build_sum_to(b, seen, &mask->type.shape);
}

const OpDef op_masked_scores = {
    .name = "masked_scores", .brief = "scores times scale; -inf where a place may not be seen", .inputs = "x: float, mask: any?", .outputs = "y", .attrs = {CAUSAL, SCALE}, .traits = OP_INTERNAL, .shape = same_shape,
    .compute = masked_scores_compute, .grad = masked_scores_grad, .along = "mixes", .precision = "f32", .cases = CASES("x: f32[2,3,5]; mask: f32[2,1,5]", "x: f32[N,1,2]; mask: f32[N,1,2]; scale = 2", "x: f32[2,2]; scale = 0.5"),
};

// A row that may see nothing is zero.
static void attention_weights_expand(Builder *b, const Node *node, Value **out)
{
    OpCall call = call_new(b, "masked_scores", 2, (Value *[]){node->in[0], mask_of(node)});
    call_same(&call, node);
    Value *z = op_build(b, &call);
    bool last[RANK_MAX] = {false};
    last[z->type.shape.rank - 1] = true;
    Value *most = build_map1(b, "select(x0 - x0 == 0, x0, 0)", build1(b, "stop_gradient", build_reduce(b, "max", z, last, true), ""));
    Value *e = build_map2(b, "exp(x0 - x1)", z, most);
    out[0] = build_map2(b, "select(x1 > 0, x0 / x1, 0)", e, build_reduce(b, "sum", e, last, true));
}

// As of softmax: p (dp - sum(p dp)); where nothing may be seen p is 0.
static void attention_weights_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    Value *p = node->out[0], *mask = mask_of(node);
    bool last[RANK_MAX] = {false};
    last[p->type.shape.rank - 1] = true;
    Value *sum = build_reduce(b, "sum", build_map2(b, "x0 * x1", p, dy[0]), last, true);
    dx[0] = build_map3(b, arena_printf(b->cx->arena, "x0 * (x1 - x2) * %.17g", node_attr(node, "scale")->f), p, dy[0], sum);
    if (mask != NULL && !is_bool(mask))
        dx[1] = build_sum_to(b, build_map3(b, "x0 * (x1 - x2)", p, dy[0], sum), &mask->type.shape);
}

const OpDef op_attention_weights = {
    .name = "attention_weights", .brief = "softmax of masked scores along the last axis; rows that see nothing are zero", .inputs = "x: float, mask: any?", .outputs = "p", .attrs = {CAUSAL, SCALE}, .traits = OP_INTERNAL,
    .shape = same_shape, .expand = attention_weights_expand, .grad = attention_weights_grad, .along = "mixes", .precision = "f32", .cases = MASKED_CASES,
};

// --- attention --------------------------------------------------------------------------------------------------------------------

static int64_t heads_of(const Attr *attr, int64_t heads) { return attr->kind == ATTR_NONE ? heads : attr->i; }

static bool head_size(OpCall *call, int input, int64_t heads)
{
    const Type *t = &call->in[input]->type;
    if (size_over(call->cx, t->shape.dim[2], size_const(call->cx, heads)) != NULL)
        return true;
    return op_error(call, MESSAGE_E0306, arena_printf(call->cx->arena, "features / heads of %s", op_input_name(call, input)),
                    arena_printf(call->cx->arena, "%s, divided by %d", type_text(call->cx, t), (int)heads));
}

// (N, 1, 1, Tk) of (N, Tk); (1, 1, Tq, Tk) of (Tq, Tk); (N, 1, Tq, Tk) of (N, Tq, Tk). Rank 0: it fits none.
static Shape mask_shape(Context *cx, const Shape *mask, const Shape *q, const Shape *k)
{
    Size one = size_const(cx, 1);
    if (mask->rank == 4)
        return *mask;
    if (mask->rank == 3)
        return (Shape){4, {mask->dim[0], one, mask->dim[1], mask->dim[2]}};
    if (mask->rank == 2 && size_equal(mask->dim[0], q->dim[0]) && size_equal(mask->dim[1], k->dim[1]))
        return (Shape){4, {mask->dim[0], one, one, mask->dim[1]}};
    return mask->rank == 2 ? (Shape){4, {one, one, mask->dim[0], mask->dim[1]}} : (Shape){0};
}

static bool mask_fits(OpCall *call, int64_t heads)
{
    Context *cx = call->cx;
    Value *mask = call->n_in > 3 ? call->in[3] : NULL;
    const Shape *q = &call->in[0]->type.shape, *k = &call->in[1]->type.shape;
    if (mask == NULL)
        return true;
    Shape scores = {4, {q->dim[0], size_const(cx, heads), q->dim[1], k->dim[1]}}, shape = mask_shape(cx, &mask->type.shape, q, k), both;
    bool fits = shape.rank == 4 && shape_broadcast(cx, &shape, &scores, &both) && shape_equal(&both, &scores);
    if (fits && (is_bool(mask) || mask->type.dtype == call->in[0]->type.dtype))
        return true;
    Type wanted = {TYPE_bool, scores}, of_keys = {TYPE_bool, {2, {q->dim[0], k->dim[1]}}};
    op_error(call, MESSAGE_E0311, "mask of attention", arena_printf(cx->arena, "%s or %s", type_text(cx, &of_keys), type_text(cx, &wanted)), type_text(cx, &mask->type));
    diag_help(cx->diag, "true marks what may be seen; a float mask is added to the scores");
    return false;
}

static bool attention_shape(OpCall *call)
{
    Context *cx = call->cx;
    int64_t heads = call_attr(call, "heads")->i, kept = heads_of(call_attr(call, "kv_heads"), heads);
    for (int i = 0; i < 3; i++)
        if (!op_rank(call, i, 3, 3) || !head_size(call, i, i == 0 ? heads : kept))
            return false;
    const Type *q = &call->in[0]->type, *k = &call->in[1]->type, *v = &call->in[2]->type;
    if (heads % kept != 0)
        return op_error(call, MESSAGE_E0306, "heads / kv_heads", arena_printf(cx->arena, "%d / %d", (int)heads, (int)kept));
    Size of_q = size_over(cx, q->shape.dim[2], size_const(cx, heads)), of_k = size_over(cx, k->shape.dim[2], size_const(cx, kept)), of_v = size_over(cx, v->shape.dim[2], size_const(cx, kept));
    bool batch = size_equal(q->shape.dim[0], k->shape.dim[0]) && size_equal(k->shape.dim[0], v->shape.dim[0]);
    if (!batch || !size_equal(of_q, of_k) || k->dtype != q->dtype)
        return op_error(call, MESSAGE_E0315, "attention", type_text(cx, q), type_text(cx, k));
    if (!size_equal(k->shape.dim[1], v->shape.dim[1]) || v->dtype != q->dtype)
        return op_error(call, MESSAGE_E0315, "attention", type_text(cx, k), type_text(cx, v));
    Type type = *q;
    type.shape.dim[2] = size_times(cx, size_const(cx, heads), of_v);
    return mask_fits(call, heads) && op_one(call, type);
}

static Value *turned(Builder *b, Value *x, int rank, const int64_t *axes)
{
    OpCall call = call_new(b, "transpose", 1, &x);
    call_ints(&call, "axes", rank, axes);
    return op_build(b, &call);
}

// (N, T, heads d) to (N, heads, T, d); with groups of queries for one key to (N, keys, groups T, d).
static Value *by_heads(Builder *b, Value *x, int64_t heads, int64_t groups)
{
    Context *cx = b->cx;
    const Shape *s = &x->type.shape;
    Size keys = size_const(cx, heads / groups), group = size_const(cx, groups), d = size_over(cx, s->dim[2], size_const(cx, heads));
    if (groups == 1)
        return turned(b, build_reshape(b, x, &(Shape){4, {s->dim[0], s->dim[1], keys, d}}), 4, (int64_t[]){0, 2, 1, 3});
    Value *apart = turned(b, build_reshape(b, x, &(Shape){5, {s->dim[0], s->dim[1], keys, group, d}}), 5, (int64_t[]){0, 2, 3, 1, 4});
    return build_reshape(b, apart, &(Shape){4, {s->dim[0], keys, size_times(cx, group, s->dim[1]), d}});
}

static Value *heads_joined(Builder *b, Value *x, const Shape *to, int64_t heads, int64_t groups)
{
    Context *cx = b->cx;
    Size d = x->type.shape.dim[3];
    if (groups > 1) {
        Shape apart = {5, {to->dim[0], size_const(cx, heads / groups), size_const(cx, groups), to->dim[1], d}};
        x = turned(b, build_reshape(b, x, &apart), 5, (int64_t[]){0, 3, 1, 2, 4});
    } else
        x = turned(b, x, 4, (int64_t[]){0, 2, 1, 3});
    return build_reshape(b, x, to);
}

static Value *weights_dropped(Builder *b, const Node *node, Value *p)
{
    OpCall call = call_new(b, "dropout", 1, &p);
    double rate = node_attr(node, "dropout")->f;
    call_float(&call, "rate", rate);
    return rate > 0 ? op_build(b, &call) : p;
}

static double scale_of(const Node *node, int64_t heads)
{
    const Attr *scale = node_attr(node, "scale");
    const Shape *q = &node->in[0]->type.shape;
    return scale->kind != ATTR_NONE ? scale->f : 1 / sqrt((double)size_value(q->dim[2]) / (double)heads);
}

static void attention_expand(Builder *b, const Node *node, Value **out)
{
    Context *cx = b->cx;
    Value *mask = node->n_in > 3 ? node->in[3] : NULL;
    int64_t heads = node_attr(node, "heads")->i, kept = heads_of(node_attr(node, "kv_heads"), heads), groups = heads / kept;
    Value *q = by_heads(b, node->in[0], heads, groups), *k = by_heads(b, node->in[1], kept, 1), *v = by_heads(b, node->in[2], kept, 1);
    Value *scores = build2(b, "matmul", q, k, "transpose_b = true");
    const Shape *sq = &node->in[0]->type.shape, *sk = &node->in[1]->type.shape;
    Shape product = scores->type.shape, whole = {4, {sq->dim[0], size_const(cx, heads), sq->dim[1], sk->dim[1]}};
    if (mask != NULL) {
        Shape shape = mask_shape(cx, &mask->type.shape, sq, sk);
        mask = build_reshape(b, mask, &shape);
    }
    OpCall call = call_new(b, "attention_weights", 2, (Value *[]){groups > 1 ? build_reshape(b, scores, &whole) : scores, mask});
    call_bool(&call, "causal", node_flag(node, "causal"));
    call_float(&call, "scale", scale_of(node, heads));
    Value *p = weights_dropped(b, node, op_build(b, &call));
    out[0] = heads_joined(b, build2(b, "matmul", groups > 1 ? build_reshape(b, p, &product) : p, v, ""), &node->out[0]->type.shape, heads, groups);
}

static Size attention_flops(Context *cx, const Node *node)
{
    Size both = size_plus(cx, shape_count(cx, &node->in[0]->type.shape), shape_count(cx, &node->out[0]->type.shape));
    return size_times(cx, size_times(cx, both, node->in[1]->type.shape.dim[1]), size_const(cx, 2));
}

const OpDef op_attention = {
    .name = "attention", .brief = "scaled dot-product attention of several heads (Vaswani et al. 2017)", .inputs = "q: float, k: float, v: float, mask: any?", .outputs = "y",
    .example = "a = attention(q, k, v, heads = 12, causal = true, dropout = 0.1)",
    .doc = "q is (N, Tq, heads d), k (N, Tk, kv_heads d), v (N, Tk, kv_heads e): the heads lie side by side, as a dense layer leaves them, and so they do in the result, (N, Tq, heads e). "
           "For each head softmax(scale q k' + mask) v. With fewer kv_heads several queries share a key and a value (Ainslie et al. 2023): query head h takes head floor(h kv_heads / heads). "
           "A boolean mask marks what may be seen: (N, Tk) the keys of a sample (not padding), (Tq, Tk), (N, Tq, Tk) or (N, heads, Tq, Tk) each pair; a float mask is added to the scores. A mask of two axes that could be both is taken as (N, Tk). "
           "A place that may see nothing gives 0, not NaN. The projections before and behind are dense layers of one's own.",
    .attrs = {{.name = "heads", .kind = ATTR_INT, .initial = "1", .least = 1, .most = 1e6, .onnx = "q_num_heads", .brief = "heads of the queries"}, {.name = "kv_heads", .kind = ATTR_INT, .initial = "", .least = 1, .most = 1e6, .onnx = "kv_num_heads", .brief = "heads of keys and values; as many as of the queries if not given"}, CAUSAL,
              {.name = "scale", .kind = ATTR_FLOAT, .initial = "", .brief = "factor of the scores; 1 / sqrt(d) if not given"}, {.name = "dropout", .kind = ATTR_FLOAT, .initial = "0", .least = 0, .most = 1, .brief = "of the weights, in training"}},
    .shape = attention_shape, .expand = attention_expand, .flops = attention_flops, .traits = OP_MODE, .along = "mixes", .precision = "f32", .onnx = {{"Attention", 23, 0}},
    .cases = CASES("q: f32[N,4,6]; k: f32[N,4,6]; v: f32[N,4,6]; heads = 2; causal = true", "q: f32[2,3,4]; k: f32[2,5,4]; v: f32[2,5,2]; mask: bool[2,5]; heads = 2", "q: f32[N,2,8]; k: f32[N,3,4]; v: f32[N,3,6]; heads = 4; kv_heads = 2; scale = 0.3",
                   "q: f32[2,1,3]; k: f32[2,1,3]; v: f32[2,1,3]", "q: f32[1,3,4]; k: f32[1,2,4]; v: f32[1,2,4]; mask: f32[1,2,3,2]; heads = 2", "q: f32[2,3,4]; k: f32[2,3,2]; v: f32[2,3,2]; mask: bool[2,3,3]; heads = 2; kv_heads = 1; causal = true",
                   "q: f32[N,7,2]; k: f32[N,7,2]; v: f32[N,7,2]; mask: bool[7,7]"),
};

// --- rotary -----------------------------------------------------------------------------------------------------------------------

static bool rotary_shape(OpCall *call)
{
    Context *cx = call->cx;
    const Type *x = &call->in[0]->type;
    int64_t heads = call_attr(call, "heads")->i, width;
    if (!op_rank(call, 0, 2, RANK_MAX))
        return false;
    if (!size_known(x->shape.dim[x->shape.rank - 1], &width) || width % (2 * heads) != 0)
        return op_error(call, MESSAGE_E0306, "features / (2 heads) of rotary", arena_printf(cx->arena, "%s, divided by %d", type_text(cx, x), (int)(2 * heads)));
    Value *position = call->n_in > 1 ? call->in[1] : NULL;
    Type all = {position != NULL ? position->type.dtype : TYPE_i32, {x->shape.rank - 1, {0}}}, steps = {all.dtype, {1, {x->shape.dim[x->shape.rank - 2]}}};
    for (int i = 0; i < all.shape.rank; i++)
        all.shape.dim[i] = x->shape.dim[i];
    if (position != NULL && position->type.shape.rank == 1 && all.shape.rank != 1)
        all = steps;
    return op_matches(call, "position", all) && same_shape(call);
}

// Feature i of a head of d: its pair, its angle position * base^(-2 p / d) of pair p, and which of the two it is.
static void rotary_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Value *x = node->in[0], *position = node->n_in > 1 ? node->in[1] : NULL;
    DType type = x->type.dtype;
    compute_over(out, &x->type.shape);
    int rank = out->rank, last = rank - 1;
    int64_t d = size_value(out->extent[last]) / node_attr(node, "heads")->i;
    bool pairs = strcmp(node_attr(node, "style")->word, "pairs") == 0;
    Expr *at[RANK_MAX], *other[RANK_MAX];
    for (int i = 0; i < rank; i++)
        at[i] = other[i] = e_axis(cx, i);
    Expr *i = e_mod(cx, at[last], d), *first, *pair;
    if (pairs) {
        pair = e_div(cx, i, 2);
        first = e_prim(cx, PRIM_eq, e_mod(cx, i, 2), e_whole(cx, 0));
    } else {
        pair = e_mod(cx, i, d / 2);
        first = e_prim(cx, PRIM_lt, i, e_whole(cx, d / 2));
    }
    Expr *way = e_whole(cx, pairs ? 1 : d / 2);
    other[last] = e_select(cx, first, e_add(cx, at[last], way), e_sub(cx, at[last], way));
    Expr *place = position == NULL ? at[rank - 2] : position->type.shape.rank == 1 ? e_index(cx, position, &at[rank - 2]) : e_index(cx, position, at);
    double slope = -2 * log(node_attr(node, "base")->f) / (double)d;
    Expr *frequency = expr_prim(cx, PRIM_exp, e_prim(cx, PRIM_mul, expr_cast(cx, type, pair), expr_number(cx, type, slope)), NULL, NULL);
    Expr *angle = e_prim(cx, PRIM_mul, expr_cast(cx, type, place), frequency);
    bool back = node_flag(node, "inverse");
    Expr *cosine = expr_prim(cx, PRIM_cos, angle, NULL, NULL), *sine = expr_prim(cx, PRIM_sin, angle, NULL, NULL), *minus = expr_prim(cx, PRIM_neg, sine, NULL, NULL);
    Expr *sign = back ? e_select(cx, first, sine, minus) : e_select(cx, first, minus, sine);
    out->body = e_prim(cx, PRIM_add, e_prim(cx, PRIM_mul, e_load(cx, x, at), cosine), e_prim(cx, PRIM_mul, e_load(cx, x, other), sign));
}

// A rotation's gradient is the rotation back.
static void rotary_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    OpCall call = call_new(b, "rotary", node->n_in, (Value *[]){dy[0], node->n_in > 1 ? node->in[1] : NULL});
    call_same(&call, node);
    call_bool(&call, "inverse", !node_flag(node, "inverse"));
    dx[0] = op_build(b, &call);
}

const OpDef op_rotary = {
    .name = "rotary", .brief = "turns pairs of features by an angle that grows with the position (Su et al. 2021)", .inputs = "x: float, position: int?", .outputs = "y", .example = "q = rotary(q, heads = 12)",
    .doc = "x is (…, T, heads d). Pair p of a head is turned by position base^(-2 p / d). Style halves pairs feature p with p + d / 2 (Llama, GPT-NeoX; ONNX interleaved = 0), style pairs feature 2 p with 2 p + 1 (the paper's, GPT-J). "
           "Weights trained with one style are wrong in the other. `position`, (T) or (…, T), is 0, 1, … if not given.",
    .attrs = {{.name = "heads", .kind = ATTR_INT, .initial = "1", .least = 1, .most = 1e6, .onnx = "num_heads", .brief = "how many lie side by side"}, {.name = "base", .kind = ATTR_FLOAT, .initial = "10000", .least = 1, .most = 1e12, .brief = "how fast the frequencies fall"},
              {.name = "style", .kind = ATTR_WORD, .initial = "halves", .words = "halves pairs", .onnx = "interleaved", .brief = "which features are a pair"}, {.name = "inverse", .kind = ATTR_BOOL, .initial = "false", .brief = "turns back"}},
    .shape = rotary_shape, .compute = rotary_compute, .grad = rotary_grad, .along = "each", .precision = "f32", .onnx = {{"RotaryEmbedding", 23, 0}},
    .cases = CASES("x: f32[N,5,8]; heads = 2", "x: f32[2,3,4]; style = pairs; base = 100", "x: f32[N,3,4]; position: i32[N,3] in 0 9", "x: f32[3,2]; position: i32[3] in 0 9; inverse = true", "x: f32[1,1,2]"),
};
