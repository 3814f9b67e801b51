// ctc.c: connectionist temporal classification (Graves et al. 2006): the loss of a sequence whose places in time are not
// known, its best reading, and how many characters that has wrong.
//
// The loss is a recursion over times and the 2 U + 1 states blank, l1, blank, l2, … blank; it keeps its table, and the
// gradient runs the other way. All in logarithms, where an impossible path is -inf.
#include "op.h"

#define BLANK  {.name = "blank", .kind = ATTR_INT, .initial = "0", .least = 0, .most = 2147483647, .brief = "the class that stands for no character"}

typedef struct Ctc {
    Context *cx;
    Nest   nest;
    int    vars;
    Value *logp, *truth, *lengths;
    int64_t blank;
    Loop  *sample;
    Expr  *n, *steps, *count, *states;  // sample; its times, its characters, 2 U + 1
    Expr  *least;
} Ctc;

static Value *input(const Node *node, int i) { return i < node->n_in ? node->in[i] : NULL; }

static Expr *loop_to(Ctc *s, Expr *to, AxisMark mark)
{
    Loop *loop = loop_for(s->cx, s->vars++, mark, e_whole(s->cx, 0), to);
    loop_add(s->cx, s->nest.at, loop);
    s->nest.at = loop;
    return e_axis(s->cx, loop->var);
}

// The characters of a row end at the first that is below 0.
static Expr *characters(Ctc *s)
{
    Context *cx = s->cx;
    Expr *count = nest_local(&s->nest, TYPE_i64, e_whole(cx, 0));
    Expr *k = loop_to(s, e_size(cx, s->truth->type.shape.dim[1]), AXIS_SERIAL), *at[] = {s->n, k};
    nest_if(&s->nest, e_prim(cx, PRIM_and, e_prim(cx, PRIM_eq, count, k), e_prim(cx, PRIM_ge, e_index(cx, s->truth, at), e_whole(cx, 0))));
    nest_update(&s->nest, count, REDUCE_NONE, e_add(cx, k, e_whole(cx, 1)));
    s->nest.at = s->sample;
    return count;
}

static Ctc ctc_open(Context *cx, const Node *node, Value *logp, Value *truth, Value *lengths)
{
    Ctc s = {.cx = cx, .nest = nest_new(cx), .logp = logp, .truth = truth, .lengths = lengths, .blank = node_attr(node, "blank")->i};
    s.n = nest_for(&s.nest, s.vars++, logp->type.shape.dim[0], AXIS_PARALLEL);
    s.sample = s.nest.at;
    s.least = e_least(cx, logp->type.dtype);
    s.steps = e_size(cx, logp->type.shape.dim[1]);
    if (lengths != NULL)
        s.steps = nest_let(&s.nest, e_prim(cx, PRIM_min, e_prim(cx, PRIM_max, e_index(cx, lengths, &s.n), e_whole(cx, 0)), s.steps));
    if (truth != NULL) {
        s.count = characters(&s);
        s.states = nest_let(&s.nest, e_add(cx, e_mul(cx, s.count, e_whole(cx, 2)), e_whole(cx, 1)));
    }
    return s;
}

static Expr *is_character(Ctc *s, Expr *state) { return e_prim(s->cx, PRIM_eq, e_mod(s->cx, state, 2), e_whole(s->cx, 1)); }
static Expr *character(Ctc *s, Expr *state)    { return e_index(s->cx, s->truth, (Expr *[]){s->n, e_div(s->cx, state, 2)}); }
static Expr *class_of(Ctc *s, Expr *state)     { return e_select(s->cx, is_character(s, state), character(s, state), e_whole(s->cx, s->blank)); }

static Expr *at3(Ctc *s, Value *v, Expr *a, Expr *b) { return e_load(s->cx, v, (Expr *[]){s->n, a, b}); }

// log(exp(a) + exp(b) + exp(c)) where all may be -inf.
static Expr *log_sum(Ctc *s, Expr *a, Expr *b, Expr *c)
{
    static const char *const names[] = {"a", "b", "c", "m"};
    Expr *value[] = {nest_let(&s->nest, a), nest_let(&s->nest, b), nest_let(&s->nest, c), NULL};
    value[3] = nest_let(&s->nest, expr_parse(s->cx, "max(a, max(b, c))", names, value, 3));
    return expr_parse(s->cx, "select(m - m == 0, m + log(exp(a - m) + exp(b - m) + exp(c - m)), m)", names, value, 4);
}

// --- the rows of the loss ---------------------------------------------------------------------------------------------------------

static Type table_type(Context *cx, const Type *logp, const Type *truth)
{
    Type type = *logp;
    type.shape.dim[2] = size_plus(cx, size_times(cx, truth->shape.dim[1], size_const(cx, 2)), size_const(cx, 1));
    return type;
}

static bool ctc_rows_shape(OpCall *call)
{
    const Type *logp = &call->in[0]->type;
    call->n_out = 2;
    call->out[0] = type_of(logp->dtype, 1, logp->shape.dim);
    call->out[1] = table_type(call->cx, logp, &call->in[1]->type);
    return true;
}

// Times and states that a row does not have stay impossible.
static void clear_table(Ctc *s, Value *table)
{
    Expr *t = loop_to(s, e_size(s->cx, table->type.shape.dim[1]), AXIS_SERIAL), *state = loop_to(s, e_size(s->cx, table->type.shape.dim[2]), AXIS_VECTOR);
    nest_store(&s->nest, table, (Expr *[]){s->n, t, state}, s->least);
    s->nest.at = s->sample;
}

// From state s - 1 or s - 2 one comes to s, or stays; over a blank only between different characters.
static Expr *skips(Ctc *s, Expr *state, Expr *least)
{
    Context *cx = s->cx;
    Expr *differ = e_prim(cx, PRIM_ne, character(s, state), character(s, e_sub(cx, state, e_whole(cx, 2))));
    return e_select(cx, e_prim(cx, PRIM_and, is_character(s, state), e_prim(cx, PRIM_ge, state, least)), differ, e_zero(cx, TYPE_bool));
}

static Loop *ctc_rows_lower(Context *cx, const Node *node)
{
    Value *logp = node->in[0], *loss = node->out[0], *alpha = node->out[1];
    Ctc s = ctc_open(cx, node, logp, node->in[1], input(node, 2));
    Expr *zero = e_whole(cx, 0), *one = e_whole(cx, 1), *two = e_whole(cx, 2);
    clear_table(&s, alpha);
    Expr *t = loop_to(&s, s.steps, AXIS_SERIAL), *state = loop_to(&s, s.states, AXIS_SERIAL), *before = e_sub(cx, t, one);
    Expr *first = e_prim(cx, PRIM_eq, t, zero), *begins = e_prim(cx, PRIM_lt, state, two);
    Expr *stay = e_select(cx, first, e_select(cx, begins, e_zero(cx, logp->type.dtype), s.least), at3(&s, alpha, before, state));
    Expr *not_first = e_prim(cx, PRIM_gt, t, zero);
    Expr *step = e_select(cx, e_prim(cx, PRIM_and, not_first, e_prim(cx, PRIM_ge, state, one)), at3(&s, alpha, before, e_sub(cx, state, one)), s.least);
    Expr *may = nest_let(&s.nest, skips(&s, state, two));
    Expr *skip = e_select(cx, e_prim(cx, PRIM_and, not_first, may), at3(&s, alpha, before, e_sub(cx, state, two)), s.least);
    nest_store(&s.nest, alpha, (Expr *[]){s.n, t, state}, e_prim(cx, PRIM_add, log_sum(&s, stay, step, skip), at3(&s, logp, t, class_of(&s, state))));
    s.nest.at = s.sample;
    Expr *last = e_sub(cx, s.steps, one), *any = e_prim(cx, PRIM_gt, s.steps, zero), *empty = e_prim(cx, PRIM_eq, s.count, zero);
    Expr *none = e_select(cx, empty, e_zero(cx, logp->type.dtype), s.least);
    Expr *ends = e_select(cx, any, at3(&s, alpha, last, e_sub(cx, s.states, one)), none);
    Expr *ends_too = e_select(cx, e_prim(cx, PRIM_and, any, e_prim(cx, PRIM_gt, s.count, zero)), at3(&s, alpha, last, e_sub(cx, s.states, two)), s.least);
    nest_store(&s.nest, loss, &s.n, expr_prim(cx, PRIM_neg, log_sum(&s, ends, ends_too, s.least), NULL, NULL));
    return s.nest.root;
}

static void ctc_rows_op_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    OpCall call = call_new(b, "ctc_rows_grad", 6, (Value *[]){node->in[0], node->in[1], input(node, 2), node->out[1], node->out[0], dy[0]});
    Value *out[OUTPUTS_MAX];
    call_same(&call, node);
    op_build_all(b, &call, out);
    dx[0] = out[0];
}

static Size ctc_flops(Context *cx, const Node *node)
{
    Type table = table_type(cx, &node->in[0]->type, &node->in[1]->type);
    return flops_of_count(cx, &table.shape, 12);
}

const OpDef op_ctc_rows = {
    .name = "ctc_rows", .brief = "minus the logarithm of each row's probability, of logarithms; the table of the recursion besides", .inputs = "logp: float, truth: int, lengths: int?", .outputs = "loss, alpha", .traits = OP_INTERNAL, .attrs = {BLANK},
    .shape = ctc_rows_shape, .lower = ctc_rows_lower, .grad = ctc_rows_op_grad, .flops = ctc_flops, .along = "mixes", .precision = "f32",
    .cases = CASES("logp: f32[N,5,4] in -3 0; truth: i32[N,2] in 1 3", "logp: f32[2,6,3] in -3 0; truth: i32[2,2] in -1 1; lengths: i32[2] in 5 6; blank = 2"),
};

static bool ctc_rows_grad_shape(OpCall *call)
{
    call->n_out = 2;
    call->out[0] = call->in[0]->type;
    call->out[1] = call->in[3]->type;
    return true;
}

// beta is alpha from the other end. The share of all paths that are at (t, s) is exp(alpha + beta - logp + loss).
static Loop *ctc_rows_grad_lower(Context *cx, const Node *node)
{
    Value *logp = node->in[0], *alpha = node->in[3], *loss = node->in[4], *dy = node->in[5], *dx = node->out[0], *beta = node->out[1];
    Ctc s = ctc_open(cx, node, logp, node->in[1], input(node, 2));
    DType type = logp->type.dtype;
    Expr *one = e_whole(cx, 1), *two = e_whole(cx, 2);
    clear_table(&s, beta);
    Expr *time = loop_to(&s, e_size(cx, logp->type.shape.dim[1]), AXIS_SERIAL), *class = loop_to(&s, e_size(cx, logp->type.shape.dim[2]), AXIS_VECTOR);
    nest_store(&s.nest, dx, (Expr *[]){s.n, time, class}, e_zero(cx, type));
    s.nest.at = s.sample;
    Expr *turn = loop_to(&s, s.steps, AXIS_SERIAL), *t = nest_let(&s.nest, e_sub(cx, e_sub(cx, s.steps, one), turn)), *after = e_add(cx, t, one);
    Expr *back = loop_to(&s, s.states, AXIS_SERIAL), *state = nest_let(&s.nest, e_sub(cx, e_sub(cx, s.states, one), back));
    Expr *first = e_prim(cx, PRIM_eq, turn, e_whole(cx, 0)), *behind = e_prim(cx, PRIM_gt, turn, e_whole(cx, 0));
    Expr *stay = e_select(cx, first, e_select(cx, e_prim(cx, PRIM_lt, back, two), e_zero(cx, type), s.least), at3(&s, beta, after, state));
    Expr *step = e_select(cx, e_prim(cx, PRIM_and, behind, e_prim(cx, PRIM_ge, back, one)), at3(&s, beta, after, e_add(cx, state, one)), s.least);
    Expr *there = e_prim(cx, PRIM_and, e_prim(cx, PRIM_and, behind, e_prim(cx, PRIM_ge, back, two)), is_character(&s, state));
    Expr *differ = e_prim(cx, PRIM_ne, character(&s, state), character(&s, e_add(cx, state, two)));
    Expr *may = nest_let(&s.nest, e_select(cx, there, differ, e_zero(cx, TYPE_bool)));
    Expr *skip = e_select(cx, may, at3(&s, beta, after, e_add(cx, state, two)), s.least);
    Expr *k = nest_let(&s.nest, class_of(&s, state)), *own = nest_let(&s.nest, at3(&s, logp, t, k));
    Expr *rest = nest_let(&s.nest, log_sum(&s, stay, step, skip));
    nest_store(&s.nest, beta, (Expr *[]){s.n, t, state}, e_prim(cx, PRIM_add, rest, own));
    Expr *total = e_load(cx, loss, &s.n), *share = expr_prim(cx, PRIM_exp, e_prim(cx, PRIM_add, e_prim(cx, PRIM_add, at3(&s, alpha, t, state), rest), total), NULL, NULL);
    nest_scatter(&s.nest, dx, (Expr *[]){s.n, t, k}, expr_prim(cx, PRIM_neg, e_prim(cx, PRIM_mul, share, e_load(cx, dy, &s.n)), NULL, NULL));
    return s.nest.root;
}

const OpDef op_ctc_rows_grad = {
    .name = "ctc_rows_grad", .brief = "the gradient of ctc_rows; its table besides", .inputs = "logp: float, truth: int, lengths: int?, x: float, y: float, dy: float", .outputs = "dx, beta", .traits = OP_INTERNAL, .attrs = {BLANK},
    .shape = ctc_rows_grad_shape, .lower = ctc_rows_grad_lower, .no_grad = "it is a gradient itself", .along = "mixes", .precision = "f32",
    .cases = CASES("logp: f32[2,3,3] in -3 0; truth: i32[2,1] in 1 2; x: f32[2,3,3] in -9 -3; y: f32[2] in 3 4; dy: f32[2]"),
};

// --- ctc --------------------------------------------------------------------------------------------------------------------------

static bool lengths_fit(OpCall *call)
{
    int i = op_input_index(call->op, "lengths");
    Value *lengths = i < call->n_in ? call->in[i] : NULL;
    return lengths == NULL || op_matches(call, "lengths", type_of(lengths->type.dtype, 1, call->in[0]->type.shape.dim));
}

static bool blank_fits(OpCall *call)
{
    int64_t classes, blank = call_attr(call, "blank")->i;
    const Type *x = &call->in[0]->type;
    if (!op_rank(call, 0, 3, 3))
        return false;
    return !size_known(x->shape.dim[2], &classes) || blank < classes ||
           op_error(call, MESSAGE_E0318, "blank", call->op->name, "0", arena_printf(call->cx->arena, "%d, the last class", (int)classes - 1), arena_printf(call->cx->arena, "%d", (int)blank));
}

static bool ctc_shape(OpCall *call)
{
    if (!blank_fits(call) || !op_rank(call, 1, 2, 2))
        return false;
    const Type *x = &call->in[0]->type, *truth = &call->in[1]->type;
    if (!size_equal(x->shape.dim[0], truth->shape.dim[0]))
        return op_error(call, MESSAGE_E0315, "ctc", type_text(call->cx, x), type_text(call->cx, truth));
    bool none = strcmp(call_attr(call, "reduce")->word, "none") == 0;
    return lengths_fit(call) && op_one(call, type_of(x->dtype, none ? 1 : 0, x->shape.dim));
}

static Value *characters_of(Builder *b, Value *truth, DType type)
{
    Value *is = build_cast(b, build_map2(b, "x0 >= x1", truth, build_cast(b, build_number(b, TYPE_i64, 0), truth->type.dtype)), type);
    return build_reduce(b, "sum", is, (bool[RANK_MAX]){false, true}, false);
}

static void ctc_expand(Builder *b, const Node *node, Value **out)
{
    const char *reduce = node_attr(node, "reduce")->word;
    Value *truth = node->in[1], *logp = build1(b, "log_softmax", node->in[0], ""), *rows[OUTPUTS_MAX];
    OpCall call = call_new(b, "ctc_rows", 3, (Value *[]){logp, truth, input(node, 2)});
    call_same(&call, node);
    op_build_all(b, &call, rows);
    out[0] = rows[0];
    if (strcmp(reduce, "none") == 0)
        return;
    if (strcmp(reduce, "mean") == 0)
        out[0] = build_map2(b, "x0 / max(x1, 1)", out[0], characters_of(b, truth, logp->type.dtype));
    out[0] = build_reduce(b, "sum", out[0], (bool[RANK_MAX]){true}, false);
    if (strcmp(reduce, "mean") == 0)
        out[0] = build_per(b, out[0], size_const(b->cx, 1), truth->type.shape.dim[0]);
}

const OpDef op_ctc = {
    .name = "ctc", .brief = "minus the logarithm of the probability of a text, over all ways to lay it along time (Graves et al. 2006)", .inputs = "logits: float, truth: int, lengths: int?", .outputs = "loss",
    .example = "loss = ctc(logits, truth, lengths = frames, blank = 0)",
    .doc = "logits is (N, T, classes), not yet a softmax (PyTorch's ctc_loss takes logarithms, time first). truth is (N, L): the characters of each row, ended by a number below 0 or by L. lengths, (N), says how many times of each sample are real. "
           "A text of U characters, R of them equal to the one before, needs U + R times; with less the loss is infinite. With reduce = mean each row is divided by its number of characters first, as in PyTorch.",
    .attrs = {BLANK, {.name = "reduce", .kind = ATTR_WORD, .initial = "mean", .words = "mean sum none", .brief = "how the rows become one number"}}, .shape = ctc_shape, .expand = ctc_expand, .flops = ctc_flops, .traits = OP_LOSS, .along = "mixes", .precision = "f32", .mean_over = "rows",
    .cases = CASES("logits: f32[N,6,4]; truth: i32[N,2] in 1 3", "logits: f32[2,7,3]; truth: i32[2,3] in -1 1; lengths: i32[2] in 6 7; blank = 2; reduce = none", "logits: f32[N,5,2]; truth: i64[N,1] in 1 1; reduce = sum", "logits: f32[1,1,3]; truth: i32[1,1] in 2 2"),
};

// --- reading -----------------------------------------------------------------------------------------------------------------------

static bool ctc_decode_shape(OpCall *call)
{
    return blank_fits(call) && lengths_fit(call) && op_one(call, type_of(TYPE_i32, 2, call->in[0]->type.shape.dim));
}

static Loop *ctc_decode_lower(Context *cx, const Node *node)
{
    Value *x = node->in[0], *y = node->out[0];
    Ctc s = ctc_open(cx, node, x, NULL, input(node, 1));
    Expr *none = e_whole(cx, -1), *one = e_whole(cx, 1), *zero = e_whole(cx, 0);
    Expr *all = loop_to(&s, e_size(cx, x->type.shape.dim[1]), AXIS_VECTOR);
    nest_store(&s.nest, y, (Expr *[]){s.n, all}, expr_cast(cx, TYPE_i32, none));
    s.nest.at = s.sample;
    Expr *count = nest_local(&s.nest, TYPE_i64, zero), *before = nest_local(&s.nest, TYPE_i64, none);
    Expr *t = loop_to(&s, s.steps, AXIS_SERIAL);
    Loop *step = s.nest.at;
    Expr *best = nest_local(&s.nest, x->type.dtype, at3(&s, x, t, zero)), *place = nest_local(&s.nest, TYPE_i64, zero);
    Expr *k = loop_to(&s, e_size(cx, x->type.shape.dim[2]), AXIS_SERIAL);
    nest_if(&s.nest, e_prim(cx, PRIM_gt, at3(&s, x, t, k), best));
    nest_update(&s.nest, best, REDUCE_NONE, at3(&s, x, t, k));
    nest_update(&s.nest, place, REDUCE_NONE, k);
    s.nest.at = step;
    nest_if(&s.nest, e_prim(cx, PRIM_and, e_prim(cx, PRIM_ne, place, e_whole(cx, s.blank)), e_prim(cx, PRIM_ne, place, before)));
    nest_store(&s.nest, y, (Expr *[]){s.n, count}, expr_cast(cx, TYPE_i32, place));
    nest_update(&s.nest, count, REDUCE_NONE, e_add(cx, count, one));
    s.nest.at = step;
    nest_update(&s.nest, before, REDUCE_NONE, place);
    return s.nest.root;
}

const OpDef op_ctc_decode = {
    .name = "ctc_decode", .brief = "the text along the best classes: repetitions joined, blanks left out", .inputs = "x: float, lengths: int?", .outputs = "text", .example = "output text = ctc_decode(logits, lengths = frames, blank = 0)",
    .doc = "x is (N, T, classes), the result (N, T) of i32, filled up with -1. This is the best path, not the best text, which would need a search over prefixes.", .attrs = {BLANK}, .shape = ctc_decode_shape, .lower = ctc_decode_lower,
    .no_grad = "the result is a text", .along = "mixes", .precision = "any", .cases = CASES("x: f32[N,7,3]", "x: f32[2,5,4]; lengths: i32[2] in 0 5; blank = 3", "x: f32[1,1,1]"),
};

// --- edit distance -------------------------------------------------------------------------------------------------------------------

static bool edits_shape(OpCall *call)
{
    const Type *a = &call->in[0]->type, *b = &call->in[1]->type;
    Size row[] = {a->shape.dim[0], size_plus(call->cx, b->shape.dim[1], size_const(call->cx, 1))};
    call->n_out = 2;
    call->out[0] = type_of(TYPE_f32, 1, row);
    call->out[1] = type_of(TYPE_f32, 2, row);
    return true;
}

// Levenshtein 1966, with one row of the table: after character i of a, row[j] is the distance of its first i to b's first j.
static Loop *edits_lower(Context *cx, const Node *node)
{
    Value *a = node->in[0], *truth = node->in[1], *distance = node->out[0], *row = node->out[1];
    Nest nest = nest_new(cx);
    Expr *zero = e_whole(cx, 0), *one = e_whole(cx, 1), *f_one = expr_number(cx, TYPE_f32, 1);
    Expr *n = nest_for(&nest, 0, distance->type.shape.dim[0], AXIS_PARALLEL);
    Loop *sample = nest.at;
    Expr *count = nest_local(&nest, TYPE_i64, zero);
    Expr *j = nest_for(&nest, 1, truth->type.shape.dim[1], AXIS_SERIAL), *at[] = {n, j};
    nest_if(&nest, e_prim(cx, PRIM_and, e_prim(cx, PRIM_eq, count, j), e_prim(cx, PRIM_ge, e_index(cx, truth, at), zero)));
    nest_update(&nest, count, REDUCE_NONE, e_add(cx, j, one));
    nest.at = sample;
    Expr *k = nest_for(&nest, 2, row->type.shape.dim[1], AXIS_SERIAL);
    nest_store(&nest, row, (Expr *[]){n, k}, expr_cast(cx, TYPE_f32, k));
    nest.at = sample;
    Expr *open = nest_local(&nest, TYPE_i64, one);
    Expr *i = nest_for(&nest, 3, a->type.shape.dim[1], AXIS_SERIAL), *in_a[] = {n, i};
    Loop *each = nest.at;
    Expr *own = nest_let(&nest, e_index(cx, a, in_a));
    nest_if(&nest, e_prim(cx, PRIM_lt, own, zero));
    nest_update(&nest, open, REDUCE_NONE, zero);
    nest.at = each;
    nest_if(&nest, e_prim(cx, PRIM_eq, open, one));
    Expr *corner = nest_local(&nest, TYPE_f32, e_load(cx, row, (Expr *[]){n, zero}));
    nest_store(&nest, row, (Expr *[]){n, zero}, e_prim(cx, PRIM_add, corner, f_one));
    Loop *inner = loop_for(cx, 4, AXIS_SERIAL, zero, count);
    loop_add(cx, nest.at, inner);
    nest.at = inner;
    Expr *m = e_axis(cx, 4), *next = e_add(cx, m, one), *in_b[] = {n, m};
    Expr *above = nest_let(&nest, e_load(cx, row, (Expr *[]){n, next})), *same = e_prim(cx, PRIM_eq, own, e_index(cx, truth, in_b));
    Expr *change = e_prim(cx, PRIM_add, corner, e_select(cx, same, expr_number(cx, TYPE_f32, 0), f_one));
    Expr *insert = e_prim(cx, PRIM_add, e_prim(cx, PRIM_min, above, e_load(cx, row, in_b)), f_one);
    nest_store(&nest, row, (Expr *[]){n, next}, e_prim(cx, PRIM_min, change, insert));
    nest_update(&nest, corner, REDUCE_NONE, above);
    nest.at = sample;
    nest_store(&nest, distance, &n, e_load(cx, row, (Expr *[]){n, count}));
    return nest.root;
}

const OpDef op_edits = {
    .name = "edits", .brief = "how many insertions, deletions and changes make one text of the other", .inputs = "x: int, truth: int", .outputs = "distance, row", .traits = OP_INTERNAL, .shape = edits_shape, .lower = edits_lower, .no_grad = "it counts",
    .along = "mixes", .precision = "any", .cases = CASES("x: i32[N,4] in -1 2; truth: i32[N,3] in -1 2", "x: i32[2,1] in 0 1; truth: i32[2,5] in 0 1"),
};

static bool character_error_shape(OpCall *call)
{
    const Type *x = &call->in[0]->type, *truth = &call->in[1]->type;
    if (!op_rank(call, 0, 2, 2) || !op_rank(call, 1, 2, 2))
        return false;
    if (!size_equal(x->shape.dim[0], truth->shape.dim[0]))
        return op_error(call, MESSAGE_E0315, "character_error", type_text(call->cx, x), type_text(call->cx, truth));
    return op_one(call, type_of(TYPE_f32, 0, NULL));
}

static void character_error_expand(Builder *b, const Node *node, Value **out)
{
    Value *rows[OUTPUTS_MAX];
    OpCall call = call_new(b, "edits", 2, node->in);
    op_build_all(b, &call, rows);
    Value *each = build_map2(b, "x0 / max(x1, 1)", rows[0], characters_of(b, node->in[1], TYPE_f32));
    out[0] = build_per(b, build_reduce(b, "sum", each, (bool[RANK_MAX]){true}, false), size_const(b->cx, 1), each->type.shape.dim[0]);
}

const OpDef op_character_error = {
    .name = "character_error", .brief = "insertions, deletions and changes per character of the truth (Levenshtein 1966), the mean over rows", .inputs = "x: int, truth: int", .outputs = "y", .example = "metric character_error(text, truth)",
    .doc = "Both are (N, L), each text ended by a number below 0 or by L; a truth without characters counts as one.", .shape = character_error_shape, .expand = character_error_expand, .no_grad = "it counts", .traits = OP_METRIC, .along = "mixes",
    .precision = "any", .metric = {METRIC_MEAN, -1, ""}, .cases = CASES("x: i32[N,5] in -1 2; truth: i32[N,4] in 0 2", "x: i32[2,3] in 0 1; truth: i64[2,2] in -1 1", "x: i32[1,1] in 0 0; truth: i32[1,7] in 0 3"),
};
