// recurrent.c: lstm, gru and rnn, with PyTorch's gates and names.
//
// A layer in one direction is a product for all times at once (dense), and a scan: the only part that goes step by step. A
// scan is one loop tree, whatever the number of steps: a few samples outermost, for they are independent, then the steps,
// then the units, which lie side by side for vectors. The few samples share each row of the weights while it is near, and
// four of its rows are added at once, in their order, so the bits are those of the plain loops. Samples that have lengths
// of their own go one by one. It keeps its gates, and its gradient is a scan the other way; the gradient
// of the weights is one product again. Considered: writing the steps out (thousands of nodes), and a loop in the graph
// (a tape of bodies); both know less about the recurrence than these three rows do.
#include "op.h"

#define SCAN .traits = OP_INTERNAL | OP_MANY, .along = "back", .precision = "f32"
#define REVERSE {.name = "reverse", .kind = ATTR_BOOL, .initial = "false", .brief = "from the last step to the first"}

enum { TOGETHER = 4, ROWS = 4 };        // samples; rows of weights

// --- What scans have in common ----------------------------------------------------------------------------------------------------

typedef struct Scan {
    Context *cx;
    Nest  nest;
    int   vars;
    Size  steps, units;
    Loop *sample, *step;                // where to go on in these loops
    Expr *n, *length;                   // sample, and its number of steps
    Expr *from, *to;                    // the samples that go together; NULL: one by one
    Expr *first, *time, *before;        // whether this is the first step; its place on the axis, and that of the one before
} Scan;

static Value *input(const Node *node, int i) { return i < node->n_in ? node->in[i] : NULL; }

static Expr *unit_loop(Scan *s, Size extent, AxisMark mark) { return nest_for(&s->nest, s->vars++, extent, mark); }

static Expr *at2(Scan *s, Value *v, Expr *a, Expr *b)          { return e_load(s->cx, v, (Expr *[]){a, b}); }
static Expr *at3(Scan *s, Value *v, Expr *a, Expr *b, Expr *c) { return e_load(s->cx, v, (Expr *[]){a, b, c}); }

// Unit j of gate `gate`: gates lie one after the other.
static Expr *gate(Scan *s, int gate, Expr *j) { return e_add(s->cx, e_whole(s->cx, gate * size_value(s->units)), j); }

static void put3(Scan *s, Value *v, Expr *b, Expr *c, Expr *value) { nest_store(&s->nest, v, (Expr *[]){s->n, b, c}, value); }
static void put2(Scan *s, Value *v, Expr *b, Expr *value)          { nest_store(&s->nest, v, (Expr *[]){s->n, b}, value); }

// Results behind the end of a sample are zero.
static void clear_rest(Scan *s, const Node *node)
{
    for (int k = 0; k < node->n_out; k++) {
        const Shape *shape = &node->out[k]->type.shape;
        if (shape->rank != 3)
            continue;
        s->nest.at = s->sample;
        Loop *loop = loop_for(s->cx, s->vars++, AXIS_SERIAL, s->length, e_size(s->cx, s->steps));
        loop_add(s->cx, s->sample, loop);
        s->nest.at = loop;
        Expr *j = unit_loop(s, shape->dim[2], AXIS_VECTOR);
        put3(s, node->out[k], e_axis(s->cx, loop->var), j, e_zero(s->cx, node->out[k]->type.dtype));
    }
    s->nest.at = s->sample;
}

// The loop over samples. `of` is (samples, steps, …).
static Scan scan_open(Context *cx, const Node *node, const Shape *of, Size units, Value *lengths)
{
    Scan s = {.cx = cx, .nest = nest_new(cx), .steps = of->dim[1], .units = units};
    s.length = e_size(cx, s.steps);
    if (lengths == NULL) {
        Expr *first = e_mul(cx, unit_loop(&s, size_ceildiv(cx, of->dim[0], TOGETHER), AXIS_PARALLEL), e_whole(cx, TOGETHER));
        s.sample = s.nest.at;
        s.from = nest_let(&s.nest, first);
        s.to = nest_let(&s.nest, e_prim(cx, PRIM_min, e_add(cx, first, e_whole(cx, TOGETHER)), e_size(cx, of->dim[0])));
        return s;
    }
    s.n = unit_loop(&s, of->dim[0], AXIS_PARALLEL);
    s.sample = s.nest.at;
    Expr *given = e_prim(cx, PRIM_max, e_index(cx, lengths, &s.n), e_whole(cx, 0));
    s.length = nest_let(&s.nest, e_prim(cx, PRIM_min, given, s.length));
    clear_rest(&s, node);
    return s;
}

// Into the loop over steps. `backwards`: from the last one to the first, as gradients go.
static void scan_steps(Scan *s, bool reverse, bool backwards)
{
    Context *cx = s->cx;
    Expr *one = e_whole(cx, 1), *last = e_sub(cx, s->length, one);
    Loop *loop = loop_for(cx, s->vars++, AXIS_SERIAL, e_whole(cx, 0), s->length);
    loop_add(cx, s->sample, loop);
    s->step = s->nest.at = loop;
    Expr *turn = e_axis(cx, loop->var);
    s->time = reverse != backwards ? nest_let(&s->nest, e_sub(cx, last, turn)) : turn;
    s->before = reverse ? e_add(cx, s->time, one) : e_sub(cx, s->time, one);
    s->first = e_prim(cx, PRIM_eq, turn, backwards ? last : e_whole(cx, 0));
}

// Into a loop over the samples that go together.
static void each_sample(Scan *s)
{
    if (s->from == NULL)
        return;
    Loop *loop = loop_for(s->cx, s->vars++, AXIS_SERIAL, s->from, s->to);
    loop_add(s->cx, s->nest.at, loop);
    s->nest.at = loop;
    s->n = e_axis(s->cx, loop->var);
}

// The state before this step: of the step before, or what the scan begins with.
static Expr *state_before(Scan *s, Value *states, Value *start, Expr *j)
{
    Expr *begin = start != NULL ? at2(s, start, s->n, j) : e_zero(s->cx, states->type.dtype);
    return e_select(s->cx, s->first, begin, at3(s, states, s->n, s->before, j));
}

typedef Expr *(*Term)(Scan *s, Value *from, Value *start, Expr *k);

static Expr *state_term(Scan *s, Value *states, Value *start, Expr *k)
{
    return start == NULL ? at3(s, states, s->n, s->before, k) : state_before(s, states, start, k);
}

static Expr *part_term(Scan *s, Value *parts, Value *start, Expr *k)
{
    (void)start;
    return at3(s, parts, s->n, s->time, k);
}

// to[j] += term(k) weight[k, j] for `rows` rows from each of `turns`, beginning at `first`. `to` has the time in it or not.
static void add_rows(Scan *s, Value *to, Value *weight, Term term, Value *from, Value *start, int64_t first, int64_t turns, int64_t rows)
{
    Loop *outer = s->nest.at;
    Expr *k = unit_loop(s, size_const(s->cx, turns), AXIS_SERIAL), *row[ROWS], *value[ROWS];
    each_sample(s);
    for (int64_t i = 0; i < rows; i++) {
        row[i] = e_add(s->cx, e_mul(s->cx, k, e_whole(s->cx, rows)), e_whole(s->cx, first + i));
        value[i] = nest_let(&s->nest, term(s, from, start, row[i]));
    }
    Expr *j = unit_loop(s, weight->type.shape.dim[1], AXIS_VECTOR), *at[3] = {s->n, to->type.shape.rank == 3 ? s->time : j, j}, *sum = e_load(s->cx, to, at);
    for (int64_t i = 0; i < rows; i++)
        sum = e_prim(s->cx, PRIM_add, sum, e_prim(s->cx, PRIM_mul, value[i], at2(s, weight, row[i], j)));
    nest_store(&s->nest, to, at, sum);
    s->nest.at = outer;
}

static void add_all_rows(Scan *s, Value *to, Value *weight, Term term, Value *from, Value *start)
{
    int64_t rows = size_value(weight->type.shape.dim[0]), turns = rows / ROWS, rest = rows % ROWS;
    if (turns > 0)
        add_rows(s, to, weight, term, from, start, 0, turns, ROWS);
    if (rest > 0)
        add_rows(s, to, weight, term, from, start, turns * ROWS, rest, 1);
}

// sums[n, time, j] += sum over k of the state before, times weight[k, j].
static void add_product(Scan *s, Value *sums, Value *states, Value *start, Value *weight)
{
    Loop *outer = s->nest.at;
    if (start == NULL)
        nest_if(&s->nest, e_prim(s->cx, PRIM_ne, s->first->operand[0], s->first->operand[1]));
    add_all_rows(s, sums, weight, state_term, states, start);
    s->nest.at = outer;
}

// d[n, j] += sum over k of the gradients of this step, times weight[j, k]: `turned` is (k, j).
static void add_product_back(Scan *s, Value *d, Value *parts, Value *turned) { add_all_rows(s, d, turned, part_term, parts, NULL); }

static void clear_state(Scan *s, Value *d)
{
    s->nest.at = s->sample;
    each_sample(s);
    Expr *j = unit_loop(s, s->units, AXIS_VECTOR);
    put2(s, d, j, e_zero(s->cx, d->type.dtype));
    s->nest.at = s->sample;
}

// A formula over names, as a local.
typedef struct Names { int count; const char *name[16]; Expr *value[16]; } Names;

static Expr *formula(Scan *s, Names *names, const char *name, const char *text)
{
    Expr *e = nest_let(&s->nest, expr_parse(s->cx, text, names->name, names->value, names->count));
    if (name != NULL) {
        names->name[names->count] = name;
        names->value[names->count++] = e;
    }
    return e;
}

static void name(Names *names, const char *word, Expr *e)
{
    names->name[names->count] = word;
    names->value[names->count++] = e;
}

// --- Types ------------------------------------------------------------------------------------------------------------------------

static Type with_units(Context *cx, const Type *x, int64_t units)
{
    Type type = *x;
    type.shape.dim[2] = size_const(cx, units);
    return type;
}

static Type state_type(Context *cx, const Type *x, int64_t units)
{
    Size dim[] = {x->shape.dim[0], size_const(cx, units)};
    return type_of(x->dtype, 2, dim);
}

// Of x: (N, T, gates H).
static int64_t units_of(const Value *x, int gates) { return size_value(x->type.shape.dim[2]) / gates; }

// --- lstm: one layer, one direction -------------------------------------------------------------------------------------------------

static bool lstm_scan_shape(OpCall *call)
{
    const Type *x = &call->in[0]->type;
    int64_t units = units_of(call->in[0], 4);
    call->n_out = 3;
    call->out[0] = call->out[1] = with_units(call->cx, x, units);
    call->out[2] = *x;
    return true;
}

static Loop *lstm_scan_lower(Context *cx, const Node *node)
{
    Value *x = node->in[0], *weight = node->in[1], *start = input(node, 2), *cell = input(node, 3), *y = node->out[0], *c = node->out[1], *gates = node->out[2];
    Scan s = scan_open(cx, node, &x->type.shape, y->type.shape.dim[2], input(node, 4));
    scan_steps(&s, node_flag(node, "reverse"), false);
    each_sample(&s);
    Expr *j = unit_loop(&s, x->type.shape.dim[2], AXIS_VECTOR);
    put3(&s, gates, s.time, j, at3(&s, x, s.n, s.time, j));
    s.nest.at = s.step;
    add_product(&s, gates, y, start, weight);
    each_sample(&s);
    j = unit_loop(&s, s.units, AXIS_VECTOR);
    static const char *const word[] = {"i", "f", "g", "o"};
    Names names = {0};
    Expr *e[4];
    for (int k = 0; k < 4; k++) {
        Names one = {1, {"a"}, {at3(&s, gates, s.n, s.time, gate(&s, k, j))}};
        name(&names, word[k], e[k] = formula(&s, &one, NULL, k == 2 ? "tanh(a)" : "sigmoid(a)"));
    }
    name(&names, "before", state_before(&s, c, cell, j));
    Expr *state = formula(&s, &names, "c", "f * before + i * g");
    for (int k = 0; k < 4; k++)
        put3(&s, gates, s.time, gate(&s, k, j), e[k]);
    put3(&s, c, s.time, j, state);
    put3(&s, y, s.time, j, formula(&s, &names, NULL, "o * tanh(c)"));
    return s.nest.root;
}

static Value *build_turned(Builder *b, Value *x) { return build1(b, "transpose", x, ""); }

// The state that each step began with: (N, T, H).
static Value *build_states_before(Builder *b, const Node *node, Value *y, Value *start, Value *lengths)
{
    OpCall call = call_new(b, "states_before", 3, (Value *[]){y, start, lengths});
    call_same(&call, node);
    return op_build(b, &call);
}

// Gradient of the weight (H, gates H): the states before, times the gradients of the sums, over samples and steps.
static Value *build_weight_grad(Builder *b, Value *states, Value *parts)
{
    Size rows = size_times(b->cx, states->type.shape.dim[0], states->type.shape.dim[1]);
    Shape left = {2, {rows, states->type.shape.dim[2]}}, right = {2, {rows, parts->type.shape.dim[2]}};
    return build2(b, "matmul", build_reshape(b, states, &left), build_reshape(b, parts, &right), "transpose_a = true");
}

static void lstm_scan_op_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    Value *start = input(node, 2), *cell = input(node, 3), *lengths = input(node, 4), *out[OUTPUTS_MAX];
    OpCall call = call_new(b, "lstm_scan_grad", 7, (Value *[]){build_turned(b, node->in[1]), node->out[2], node->out[1], cell, lengths, dy[0], dy[1]});
    call_same(&call, node);
    op_build_all(b, &call, out);
    dx[0] = out[0];
    dx[1] = build_weight_grad(b, build_states_before(b, node, node->out[0], start, lengths), out[0]);
    dx[2] = out[1];
    dx[3] = out[2];
}

static Size scan_flops(Context *cx, const Node *node)
{
    Value *x = node->in[0], *weight = node->in[1];
    return size_times(cx, flops_of_count(cx, &x->type.shape, 2), weight->type.shape.dim[0]);
}

#define LSTM_SCAN_CASES CASES("x: f32[N,4,8]; weight: f32[2,8]", "x: f32[2,3,4]; weight: f32[1,4]; start: f32[2,1]; cell: f32[2,1]; reverse = true", \
                              "x: f32[N,5,12]; weight: f32[3,12]; start: f32[N,3]; cell: f32[N,3]; lengths: i32[N] in 0 5; reverse = true", \
                              "x: f32[2,4,8]; weight: f32[2,8]; lengths: i32[2] in 1 4")

const OpDef op_lstm_scan = {
    .name = "lstm_scan", .brief = "the steps of an LSTM layer, of which x has the products with the inputs; cells and gates are results besides", .inputs = "x: float, weight: float, start: float?, cell: float?, lengths: int?",
    .outputs = "y, c, gates", .attrs = {REVERSE}, .shape = lstm_scan_shape, .lower = lstm_scan_lower, .grad = lstm_scan_op_grad, .flops = scan_flops, SCAN, .cases = LSTM_SCAN_CASES,
};

static bool lstm_scan_grad_shape(OpCall *call)
{
    const Type *gates = &call->in[1]->type;
    call->n_out = 3;
    call->out[0] = *gates;
    call->out[1] = call->out[2] = state_type(call->cx, gates, units_of(call->in[1], 4));
    return true;
}

// dh and dc are the gradients of the state behind the step at hand; the step makes of them those of the state before it.
static Loop *lstm_scan_grad_lower(Context *cx, const Node *node)
{
    Value *turned = node->in[0], *gates = node->in[1], *c = node->in[2], *cell = input(node, 3), *dy = input(node, 5), *dcell = input(node, 6);
    Value *dx = node->out[0], *dh = node->out[1], *dc = node->out[2];
    Scan s = scan_open(cx, node, &gates->type.shape, c->type.shape.dim[2], input(node, 4));
    clear_state(&s, dh);
    clear_state(&s, dc);
    scan_steps(&s, node_flag(node, "reverse"), true);
    each_sample(&s);
    Expr *j = unit_loop(&s, s.units, AXIS_VECTOR), *zero = e_zero(cx, c->type.dtype);
    static const char *const word[] = {"i", "f", "g", "o"}, *const back[] = {"q * g * i * (1 - i)", "q * before * f * (1 - f)", "q * i * (1 - g * g)", "p * t * o * (1 - o)"};
    Names names = {0};
    for (int k = 0; k < 4; k++)
        name(&names, word[k], nest_let(&s.nest, at3(&s, gates, s.n, s.time, gate(&s, k, j))));
    name(&names, "a", at3(&s, c, s.n, s.time, j));
    name(&names, "before", nest_let(&s.nest, state_before(&s, c, cell, j)));
    name(&names, "p", nest_let(&s.nest, dy == NULL ? at2(&s, dh, s.n, j) : e_prim(cx, PRIM_add, at2(&s, dh, s.n, j), at3(&s, dy, s.n, s.time, j))));
    name(&names, "r", dcell == NULL ? at2(&s, dc, s.n, j) : e_prim(cx, PRIM_add, at2(&s, dc, s.n, j), at3(&s, dcell, s.n, s.time, j)));
    formula(&s, &names, "t", "tanh(a)");
    formula(&s, &names, "q", "r + p * o * (1 - t * t)");
    for (int k = 0; k < 4; k++)
        put3(&s, dx, s.time, gate(&s, k, j), formula(&s, &names, NULL, back[k]));
    put2(&s, dc, j, formula(&s, &names, NULL, "q * f"));
    put2(&s, dh, j, zero);
    s.nest.at = s.step;
    add_product_back(&s, dh, dx, turned);
    return s.nest.root;
}

const OpDef op_lstm_scan_grad = {
    .name = "lstm_scan_grad", .brief = "the gradient of lstm_scan: of its sums, of its first state, of its first cell", .inputs = "turned: float, gates: float, c: float, cell: float?, lengths: int?, dy: float?, dcell: float?",
    .outputs = "dx, dstart, dcell", .attrs = {REVERSE}, .shape = lstm_scan_grad_shape, .lower = lstm_scan_grad_lower, .no_grad = "it is a gradient itself", .once = true, .traits = OP_INTERNAL, .along = "mixes", .precision = "f32",
    .cases = CASES("turned: f32[8,2]; gates: f32[N,4,8]; c: f32[N,4,2]; dy: f32[N,4,2]", "turned: f32[4,1]; gates: f32[2,3,4]; c: f32[2,3,1]; lengths: i32[2] in 0 3; dcell: f32[2,3,1]; reverse = true"),
};

// --- gru: one layer, one direction ----------------------------------------------------------------------------------------------------

static bool gru_scan_shape(OpCall *call)
{
    const Type *x = &call->in[0]->type;
    int64_t units = units_of(call->in[0], 3);
    call->n_out = 2;
    call->out[0] = with_units(call->cx, x, units);
    call->out[1] = with_units(call->cx, x, 4 * units);
    return true;
}

// `gates` keeps r, z, n and s, the sum that r scales in n = tanh(x + r s).
static Loop *gru_scan_lower(Context *cx, const Node *node)
{
    Value *x = node->in[0], *weight = node->in[1], *bias = input(node, 2), *start = input(node, 3), *y = node->out[0], *gates = node->out[1];
    Scan s = scan_open(cx, node, &x->type.shape, y->type.shape.dim[2], input(node, 4));
    scan_steps(&s, node_flag(node, "reverse"), false);
    each_sample(&s);
    Expr *j = unit_loop(&s, x->type.shape.dim[2], AXIS_VECTOR), *zero = e_zero(cx, x->type.dtype);
    put3(&s, gates, s.time, j, bias != NULL ? e_load(cx, bias, &j) : zero);
    s.nest.at = s.step;
    add_product(&s, gates, y, start, weight);
    each_sample(&s);
    j = unit_loop(&s, s.units, AXIS_VECTOR);
    Names names = {0};
    static const char *const sums[] = {"rs", "zs", "s"}, *const given[] = {"rx", "zx", "nx"};
    for (int k = 0; k < 3; k++) {
        name(&names, sums[k], nest_let(&s.nest, at3(&s, gates, s.n, s.time, gate(&s, k, j))));
        name(&names, given[k], at3(&s, x, s.n, s.time, gate(&s, k, j)));
    }
    name(&names, "before", nest_let(&s.nest, state_before(&s, y, start, j)));
    Expr *r = formula(&s, &names, "r", "sigmoid(rx + rs)"), *z = formula(&s, &names, "z", "sigmoid(zx + zs)"), *n = formula(&s, &names, "n", "tanh(nx + r * s)");
    Expr *kept[] = {r, z, n, names.value[4]};
    for (int k = 0; k < 4; k++)
        put3(&s, gates, s.time, gate(&s, k, j), kept[k]);
    put3(&s, y, s.time, j, formula(&s, &names, NULL, "(1 - z) * n + z * before"));
    return s.nest.root;
}

static void gru_scan_op_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    Value *bias = input(node, 2), *start = input(node, 3), *lengths = input(node, 4), *out[OUTPUTS_MAX];
    OpCall call = call_new(b, "gru_scan_grad", 6, (Value *[]){build_turned(b, node->in[1]), node->out[1], node->out[0], start, lengths, dy[0]});
    call_same(&call, node);
    op_build_all(b, &call, out);
    dx[0] = out[0];
    dx[1] = build_weight_grad(b, build_states_before(b, node, node->out[0], start, lengths), out[1]);
    if (bias != NULL)
        dx[2] = build_reduce(b, "sum", out[1], (bool[RANK_MAX]){true, true}, false);
    dx[3] = out[2];
}

const OpDef op_gru_scan = {
    .name = "gru_scan", .brief = "the steps of a GRU layer, of which x has the products with the inputs; the gates are a result besides", .inputs = "x: float, weight: float, bias: float?, start: float?, lengths: int?",
    .outputs = "y, gates", .attrs = {REVERSE}, .shape = gru_scan_shape, .lower = gru_scan_lower, .grad = gru_scan_op_grad, .flops = scan_flops, .traits = OP_INTERNAL, .along = "back", .precision = "f32",
    .cases = CASES("x: f32[N,4,6]; weight: f32[2,6]; bias: f32[6]", "x: f32[2,3,3]; weight: f32[1,3]; start: f32[2,1]; reverse = true", "x: f32[N,5,9]; weight: f32[3,9]; bias: f32[9]; start: f32[N,3]; lengths: i32[N] in 0 5; reverse = true"),
};

static bool gru_scan_grad_shape(OpCall *call)
{
    const Type *gates = &call->in[1]->type;
    int64_t units = units_of(call->in[1], 4);
    call->n_out = 3;
    call->out[0] = call->out[1] = with_units(call->cx, gates, 3 * units);
    call->out[2] = state_type(call->cx, gates, units);
    return true;
}

static Loop *gru_scan_grad_lower(Context *cx, const Node *node)
{
    Value *turned = node->in[0], *gates = node->in[1], *y = node->in[2], *start = input(node, 3), *dy = node->in[5], *dx = node->out[0], *ds = node->out[1], *dh = node->out[2];
    Scan s = scan_open(cx, node, &gates->type.shape, y->type.shape.dim[2], input(node, 4));
    clear_state(&s, dh);
    scan_steps(&s, node_flag(node, "reverse"), true);
    each_sample(&s);
    Expr *j = unit_loop(&s, s.units, AXIS_VECTOR);
    static const char *const word[] = {"r", "z", "n", "s"};
    Names names = {0};
    for (int k = 0; k < 4; k++)
        name(&names, word[k], nest_let(&s.nest, at3(&s, gates, s.n, s.time, gate(&s, k, j))));
    name(&names, "before", state_before(&s, y, start, j));
    name(&names, "p", nest_let(&s.nest, e_prim(cx, PRIM_add, at2(&s, dh, s.n, j), at3(&s, dy, s.n, s.time, j))));
    Expr *dn = formula(&s, &names, "q", "p * (1 - z) * (1 - n * n)"), *dr = formula(&s, &names, NULL, "q * s * r * (1 - r)");
    Expr *dz = formula(&s, &names, NULL, "p * (before - n) * z * (1 - z)"), *parts[] = {dr, dz, dn};
    for (int k = 0; k < 3; k++) {
        put3(&s, dx, s.time, gate(&s, k, j), parts[k]);
        put3(&s, ds, s.time, gate(&s, k, j), k < 2 ? parts[k] : formula(&s, &names, NULL, "q * r"));
    }
    put2(&s, dh, j, formula(&s, &names, NULL, "p * z"));
    s.nest.at = s.step;
    add_product_back(&s, dh, ds, turned);
    return s.nest.root;
}

const OpDef op_gru_scan_grad = {
    .name = "gru_scan_grad", .brief = "the gradient of gru_scan: of x, of the sums over the state, of the first state", .inputs = "turned: float, gates: float, x: float, start: float?, lengths: int?, dy: float",
    .outputs = "dx, ds, dstart", .attrs = {REVERSE}, .shape = gru_scan_grad_shape, .lower = gru_scan_grad_lower, .no_grad = "it is a gradient itself", .once = true, .traits = OP_INTERNAL, .along = "mixes", .precision = "f32",
    .cases = CASES("turned: f32[6,2]; gates: f32[N,4,8]; x: f32[N,4,2]; dy: f32[N,4,2]", "turned: f32[3,1]; gates: f32[2,3,4]; x: f32[2,3,1]; lengths: i32[2] in 0 3; dy: f32[2,3,1]; reverse = true"),
};

// --- rnn: one layer, one direction ----------------------------------------------------------------------------------------------------

#define ACTIVATION_ATTR {.name = "activation", .kind = ATTR_WORD, .initial = "tanh", .words = "tanh relu", .onnx = "activations", .brief = "of the new state"}

static bool is_relu(const Node *node) { return strcmp(node_attr(node, "activation")->word, "relu") == 0; }

static Loop *rnn_scan_lower(Context *cx, const Node *node)
{
    Value *x = node->in[0], *weight = node->in[1], *start = input(node, 2), *y = node->out[0];
    Scan s = scan_open(cx, node, &x->type.shape, x->type.shape.dim[2], input(node, 3));
    scan_steps(&s, node_flag(node, "reverse"), false);
    each_sample(&s);
    Expr *j = unit_loop(&s, s.units, AXIS_VECTOR);
    put3(&s, y, s.time, j, at3(&s, x, s.n, s.time, j));
    s.nest.at = s.step;
    add_product(&s, y, y, start, weight);
    each_sample(&s);
    j = unit_loop(&s, s.units, AXIS_VECTOR);
    Names names = {1, {"a"}, {at3(&s, y, s.n, s.time, j)}};
    put3(&s, y, s.time, j, formula(&s, &names, NULL, is_relu(node) ? "max(a, 0)" : "tanh(a)"));
    return s.nest.root;
}

static void rnn_scan_op_grad(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    Value *start = input(node, 2), *lengths = input(node, 3), *out[OUTPUTS_MAX];
    OpCall call = call_new(b, "rnn_scan_grad", 4, (Value *[]){build_turned(b, node->in[1]), node->out[0], lengths, dy[0]});
    call_same(&call, node);
    op_build_all(b, &call, out);
    dx[0] = out[0];
    dx[1] = build_weight_grad(b, build_states_before(b, node, node->out[0], start, lengths), out[0]);
    dx[2] = out[1];
}

const OpDef op_rnn_scan = {
    .name = "rnn_scan", .brief = "the steps of a simple recurrent layer, of which x has the products with the inputs", .inputs = "x: float, weight: float, start: float?, lengths: int?", .outputs = "y", .attrs = {REVERSE, ACTIVATION_ATTR},
    .shape = same_shape, .lower = rnn_scan_lower, .grad = rnn_scan_op_grad, .flops = scan_flops, .traits = OP_INTERNAL, .along = "back", .precision = "f32",
    .cases = CASES("x: f32[N,4,2]; weight: f32[2,2]", "x: f32[2,3,1]; weight: f32[1,1]; start: f32[2,1]; reverse = true; activation = relu", "x: f32[N,5,3]; weight: f32[3,3]; start: f32[N,3]; lengths: i32[N] in 0 5; reverse = true"),
};

static bool rnn_scan_grad_shape(OpCall *call)
{
    const Type *y = &call->in[1]->type;
    call->n_out = 2;
    call->out[0] = *y;
    call->out[1] = state_type(call->cx, y, units_of(call->in[1], 1));
    return true;
}

static Loop *rnn_scan_grad_lower(Context *cx, const Node *node)
{
    Value *turned = node->in[0], *y = node->in[1], *dy = node->in[3], *dx = node->out[0], *dh = node->out[1];
    Scan s = scan_open(cx, node, &y->type.shape, y->type.shape.dim[2], input(node, 2));
    clear_state(&s, dh);
    scan_steps(&s, node_flag(node, "reverse"), true);
    each_sample(&s);
    Expr *j = unit_loop(&s, s.units, AXIS_VECTOR);
    Names names = {2, {"y", "p"}, {at3(&s, y, s.n, s.time, j), e_prim(cx, PRIM_add, at2(&s, dh, s.n, j), at3(&s, dy, s.n, s.time, j))}};
    put3(&s, dx, s.time, j, formula(&s, &names, NULL, is_relu(node) ? "select(y > 0, p, 0)" : "p * (1 - y * y)"));
    put2(&s, dh, j, e_zero(cx, y->type.dtype));
    s.nest.at = s.step;
    add_product_back(&s, dh, dx, turned);
    return s.nest.root;
}

const OpDef op_rnn_scan_grad = {
    .name = "rnn_scan_grad", .brief = "the gradient of rnn_scan: of its sums and of its first state", .inputs = "turned: float, y: float, lengths: int?, dy: float", .outputs = "dx, dstart", .attrs = {REVERSE, ACTIVATION_ATTR},
    .shape = rnn_scan_grad_shape, .lower = rnn_scan_grad_lower, .no_grad = "it is a gradient itself", .once = true, .traits = OP_INTERNAL, .along = "mixes", .precision = "f32",
    .cases = CASES("turned: f32[2,2]; y: f32[N,4,2]; dy: f32[N,4,2]", "turned: f32[1,1]; y: f32[2,3,1]; lengths: i32[2] in 0 3; dy: f32[2,3,1]; reverse = true; activation = relu"),
};

// --- states ---------------------------------------------------------------------------------------------------------------------------

static Expr *length_of(Context *cx, Value *lengths, Size steps, Expr *n)
{
    Expr *most = e_size(cx, steps);
    if (lengths == NULL)
        return most;
    return e_prim(cx, PRIM_min, e_prim(cx, PRIM_max, e_index(cx, lengths, &n), e_whole(cx, 0)), most);
}

static void states_before_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Value *y = node->in[0], *start = input(node, 1);
    bool reverse = node_flag(node, "reverse");
    compute_over(out, &y->type.shape);
    Expr *n = e_axis(cx, 0), *t = e_axis(cx, 1), *j = e_axis(cx, 2), *one = e_whole(cx, 1), *zero = e_zero(cx, y->type.dtype);
    Expr *last = e_sub(cx, length_of(cx, input(node, 2), y->type.shape.dim[1], n), one);
    Expr *from = e_load(cx, y, (Expr *[]){n, reverse ? e_add(cx, t, one) : e_sub(cx, t, one), j});
    Expr *begin = start != NULL ? e_load(cx, start, (Expr *[]){n, j}) : zero;
    out->body = e_select(cx, e_prim(cx, PRIM_eq, t, reverse ? last : e_whole(cx, 0)), begin, reverse ? e_select(cx, e_prim(cx, PRIM_lt, t, last), from, zero) : from);
}

const OpDef op_states_before = {
    .name = "states_before", .brief = "the state that each step of a scan begins with", .inputs = "x: float, start: float?, lengths: int?", .outputs = "y", .attrs = {REVERSE}, .shape = same_shape, .compute = states_before_compute,
    .no_grad = "it is used in gradients", .traits = OP_INTERNAL, .along = "back", .precision = "any", .cases = CASES("x: f32[N,4,2]", "x: f32[2,3,1]; start: f32[2,1]; lengths: i32[2] in 0 3; reverse = true", "x: f32[N,3,2]; start: f32[N,2]"),
};

static bool last_state_shape(OpCall *call)
{
    const Type *x = &call->in[0]->type;
    return op_one(call, state_type(call->cx, x, units_of(call->in[0], 1)));
}

// The place of the last step that was made; of a sample without steps the first, which is zero.
static Expr *last_place(Context *cx, const Node *node, Size steps, Expr *n)
{
    Expr *last = e_sub(cx, length_of(cx, input(node, 1), steps, n), e_whole(cx, 1));
    return node_flag(node, "reverse") ? e_whole(cx, 0) : e_prim(cx, PRIM_max, last, e_whole(cx, 0));
}

static void last_state_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    Value *x = node->in[0];
    compute_over(out, &node->out[0]->type.shape);
    Expr *n = e_axis(cx, 0);
    out->body = e_load(cx, x, (Expr *[]){n, last_place(cx, node, x->type.shape.dim[1], n), e_axis(cx, 1)});
}

static void last_state_grad_rule(Builder *b, const Node *node, Value *const *dy, Value **dx)
{
    OpCall call = call_new(b, "last_state_grad", 2, (Value *[]){dy[0], input(node, 1)});
    call_same(&call, node);
    call_sizes(&call, "steps", 1, &node->in[0]->type.shape.dim[1]);
    dx[0] = op_build(b, &call);
}

const OpDef op_last_state = {
    .name = "last_state", .brief = "the state of each sample's last step", .inputs = "x: float, lengths: int?", .outputs = "y", .attrs = {REVERSE}, .shape = last_state_shape, .compute = last_state_compute, .grad = last_state_grad_rule,
    .traits = OP_INTERNAL, .along = "mixes", .precision = "any", .cases = CASES("x: f32[N,4,2]", "x: f32[3,3,1]; lengths: i32[3] in 0 3", "x: f32[2,3,2]; lengths: i32[2] in 0 3; reverse = true"),
};

static bool last_state_grad_shape(OpCall *call)
{
    Type type = call->in[0]->type;
    type.shape = (Shape){3, {type.shape.dim[0], call_attr(call, "steps")->sizes[0], type.shape.dim[1]}};
    return op_one(call, type);
}

static void last_state_grad_compute(Context *cx, const Node *node, int output, Compute *out)
{
    (void)output;
    compute_over(out, &node->out[0]->type.shape);
    Expr *n = e_axis(cx, 0), *place = last_place(cx, node, out->extent[1], n);
    out->body = e_where(cx, e_prim(cx, PRIM_eq, e_axis(cx, 1), place), e_load(cx, node->in[0], (Expr *[]){n, e_axis(cx, 2)}), 0);
}

const OpDef op_last_state_grad = {
    .name = "last_state_grad", .brief = "zeros, and dy at each sample's last step", .inputs = "dy: float, lengths: int?", .outputs = "dx", .attrs = {{.name = "steps", .kind = ATTR_SIZES, .brief = "how many there are"}, REVERSE},
    .shape = last_state_grad_shape, .compute = last_state_grad_compute, .no_grad = "it is a gradient itself", .once = true, .traits = OP_INTERNAL, .along = "mixes", .precision = "any", .cases = CASES("dy: f32[2,3]; lengths: i32[2] in 0 4; steps = 4"),
};

// --- whole nets -------------------------------------------------------------------------------------------------------------------------

enum { LAYERS_MAX = 4, OWN = 4 };       // of a call; parameters of one layer in one direction

typedef struct Kind { const char *scan; int gates, first; bool cell; } Kind;   // first: input that is the first owned one

static int64_t attr_of(const OpCall *call, const char *attr) { return call_attr(call, attr)->i; }

static bool state_fits(OpCall *call, const char *input, int64_t states, int64_t units)
{
    Size dim[] = {size_const(call->cx, states), call->in[0]->type.shape.dim[0], size_const(call->cx, units)};
    return op_matches(call, input, type_of(call->in[0]->type.dtype, 3, dim));
}

// Owned: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, the same with _reverse, and so on for each layer.
static void layer_types(OpCall *call, const Kind *kind, int layer, int direction, Size in)
{
    Context *cx = call->cx;
    DType dtype = call->in[0]->type.dtype;
    int64_t units = attr_of(call, "hidden");
    Size rows = size_const(cx, kind->gates * units), of_x[] = {rows, in}, of_h[] = {rows, size_const(cx, units)};
    Type *owned = call->owned + kind->first + OWN * (2 * layer + direction);
    owned[0] = type_of(dtype, 2, of_x);
    owned[1] = type_of(dtype, 2, of_h);
    if (attr_of(call, "bias"))
        owned[2] = owned[3] = type_of(dtype, 1, &rows);
}

static bool given_fit(OpCall *call, const Kind *kind)
{
    const char *names[INPUTS_MAX];
    bool optional[INPUTS_MAX], variadic;
    int count = op_inputs(call->op, names, optional, &variadic);
    for (int i = kind->first; i < count; i++)
        if (call->owned[i].dtype != TYPE_NONE && !op_matches(call, names[i], call->owned[i]))
            return false;
    return true;
}

static bool net_shape(OpCall *call, const Kind *kind)
{
    Context *cx = call->cx;
    int64_t units = attr_of(call, "hidden"), layers = attr_of(call, "layers"), ways = attr_of(call, "bidirectional") ? 2 : 1;
    if (!op_rank(call, 0, 3, 3))
        return false;
    const Type *x = &call->in[0]->type;
    for (int k = 0; k < INPUTS_MAX; k++)
        call->owned[k] = (Type){0};
    for (int layer = 0; layer < layers; layer++)
        for (int way = 0; way < ways; way++)
            layer_types(call, kind, layer, way, layer == 0 ? x->shape.dim[2] : size_const(cx, ways * units));
    Value *lengths = call->n_in > 1 ? call->in[1] : NULL;
    Type wanted = type_of(lengths != NULL ? lengths->type.dtype : TYPE_i32, 1, &x->shape.dim[0]);
    if (!op_matches(call, "lengths", wanted) || !state_fits(call, "start", layers * ways, units) || (kind->cell && !state_fits(call, "cell", layers * ways, units)) || !given_fit(call, kind))
        return false;
    Size states[] = {size_const(cx, layers * ways), x->shape.dim[0], size_const(cx, units)};
    call->n_out = kind->cell ? 3 : 2;
    call->out[0] = with_units(cx, x, ways * units);
    call->out[1] = call->out[2] = type_of(x->dtype, 3, states);
    return true;
}

static Value *state_at(Builder *b, Value *states, int i)
{
    if (states == NULL)
        return NULL;
    Value *one = build_slice(b, states, 0, size_const(b->cx, i), size_const(b->cx, 1), 1);
    return build_reshape(b, one, &(Shape){2, {states->type.shape.dim[1], states->type.shape.dim[2]}});
}

// x w' + bias for all steps at once.
static Value *products(Builder *b, Value *x, Value *weight, Value *bias)
{
    OpCall call = call_new(b, "dense", bias != NULL ? 3 : 2, (Value *[]){x, weight, bias});
    call_int(&call, "features", size_value(weight->type.shape.dim[0]));
    call_bool(&call, "bias", bias != NULL);
    return op_build(b, &call);
}

static Value *last_state(Builder *b, Value *states, Value *lengths, bool reverse)
{
    OpCall call = call_new(b, "last_state", 2, (Value *[]){states, lengths});
    call_bool(&call, "reverse", reverse);
    return build_reshape(b, op_build(b, &call), &(Shape){3, {size_const(b->cx, 1), states->type.shape.dim[0], states->type.shape.dim[2]}});
}

// One layer in one direction: out[0] its results, out[1] its cells. The two biases of an LSTM are one sum.
static void build_scan(Builder *b, const Node *node, const Kind *kind, Value *x, int i, int way, Value **out)
{
    Value *const *own = node->in + kind->first + OWN * i, *lengths = input(node, 1);
    int states = node_flag(node, "bidirectional") ? i : i / 2;
    Value *start = state_at(b, input(node, 2), states), *bias = own[2], *turned = build_turned(b, own[1]);
    bool apart = strcmp(kind->scan, "gru_scan") == 0;
    if (bias != NULL && !apart)
        bias = build_map2(b, "x0 + x1", own[2], own[3]);
    Value *sums = products(b, x, own[0], bias);
    Value *in_lstm[] = {sums, turned, start, kind->cell ? state_at(b, input(node, 3), states) : NULL, lengths}, *in_gru[] = {sums, turned, own[3], start, lengths}, *in_rnn[] = {sums, turned, start, lengths};
    OpCall call = call_new(b, kind->scan, kind->cell || apart ? 5 : 4, kind->cell ? in_lstm : apart ? in_gru : in_rnn);
    call_same(&call, node);
    call_bool(&call, "reverse", way == 1);
    op_build_all(b, &call, out);
}

static Value *joined(Builder *b, Value **parts, int count, int axis)
{
    if (count == 1)
        return parts[0];
    OpCall call = call_new(b, "concat", count, parts);
    call_int(&call, "axis", axis);
    return op_build(b, &call);
}

static Value *between_layers(Builder *b, const Node *node, Value *x)
{
    OpCall call = call_new(b, "dropout", 1, &x);
    double rate = node_attr(node, "dropout")->f;
    call_float(&call, "rate", rate);
    return rate > 0 ? op_build(b, &call) : x;
}

static void net_expand(Builder *b, const Node *node, const Kind *kind, Value **out)
{
    int ways = node_flag(node, "bidirectional") ? 2 : 1, layers = (int)node_attr(node, "layers")->i, count = 0;
    Value *x = node->in[0], *states[2 * LAYERS_MAX], *cells[2 * LAYERS_MAX];
    for (int layer = 0; layer < layers; layer++) {
        Value *results[2];
        for (int way = 0; way < ways; way++, count++) {
            Value *made[OUTPUTS_MAX];
            build_scan(b, node, kind, x, 2 * layer + way, way, made);
            results[way] = made[0];
            states[count] = last_state(b, made[0], input(node, 1), way == 1);
            cells[count] = kind->cell ? last_state(b, made[1], input(node, 1), way == 1) : NULL;
        }
        x = joined(b, results, ways, 2);
        x = layer < layers - 1 ? between_layers(b, node, x) : x;
    }
    out[0] = x;
    out[1] = joined(b, states, count, 0);
    if (kind->cell)
        out[2] = joined(b, cells, count, 0);
}

#define INPUTS_OF(suffix)  "weight_ih_l" suffix ": float?, weight_hh_l" suffix ": float?, bias_ih_l" suffix ": float?, bias_hh_l" suffix ": float?"
#define INPUTS_BOTH(layer) INPUTS_OF(layer) ", " INPUTS_OF(layer "_reverse")
#define ALL_OWNED          INPUTS_BOTH("0") ", " INPUTS_BOTH("1") ", " INPUTS_BOTH("2") ", " INPUTS_BOTH("3")
#define OWNED_OF(suffix, start)  {"weight_ih_l" suffix, ROLE_WEIGHT, start, NULL}, {"weight_hh_l" suffix, ROLE_WEIGHT, start, NULL}, {"bias_ih_l" suffix, ROLE_BIAS, start, "bias"}, {"bias_hh_l" suffix, ROLE_BIAS, start, "bias"}
#define OWNED_BOTH(layer, start) OWNED_OF(layer, start), OWNED_OF(layer "_reverse", start)
#define OWNED(start)             {OWNED_BOTH("0", start), OWNED_BOTH("1", start), OWNED_BOTH("2", start), OWNED_BOTH("3", start)}
#define NET_ATTRS(...) {{.name = "hidden", .kind = ATTR_INT, .least = 1, .most = 1e6, .positional = true, .onnx = "hidden_size", .brief = "units of a layer in one direction"}, \
                       {.name = "layers", .kind = ATTR_INT, .initial = "1", .least = 1, .most = LAYERS_MAX, .brief = "how many, one on the other; more: several calls"}, \
                       {.name = "bidirectional", .kind = ATTR_BOOL, .initial = "false", .onnx = "direction", .brief = "a second scan from the end to the beginning; both results side by side"}, \
                       {.name = "dropout", .kind = ATTR_FLOAT, .initial = "0", .least = 0, .most = 1, .brief = "between layers, in training"}, \
                       {.name = "bias", .kind = ATTR_BOOL, .initial = "true", .brief = "whether there are any"}, __VA_ARGS__}
#define NET_DOC "x is (N, T, features), the result (N, T, hidden), twice as wide with both directions. Further results: the last state of each layer and direction, (layers, N, hidden), forward before reverse"
#define LENGTHS_DOC " `lengths` gives the steps of each sample (0 to T): what lies behind is not read, results there are 0, and the reverse direction begins at the last real step. `start` gives the first states, as (layers, N, hidden)."

static const Kind lstm_kind = {"lstm_scan", 4, 4, true}, gru_kind = {"gru_scan", 3, 3, false}, rnn_kind = {"rnn_scan", 1, 3, false};

static bool lstm_shape(OpCall *call)                                        { return net_shape(call, &lstm_kind); }
static void lstm_expand(Builder *b, const Node *node, Value **out)          { net_expand(b, node, &lstm_kind, out); }
static bool gru_shape(OpCall *call)                                         { return net_shape(call, &gru_kind); }
static void gru_expand(Builder *b, const Node *node, Value **out)           { net_expand(b, node, &gru_kind, out); }
static bool rnn_shape(OpCall *call)                                         { return net_shape(call, &rnn_kind); }
static void rnn_expand(Builder *b, const Node *node, Value **out)           { net_expand(b, node, &rnn_kind, out); }

const OpDef op_lstm = {
    .name = "lstm", .brief = "long short-term memory (Hochreiter and Schmidhuber 1997; forget gate of Gers et al. 2000)", .inputs = "x: float, lengths: int?, start: float?, cell: float?, " ALL_OWNED, .outputs = "y, h, c",
    .example = "h = lstm(x, 256, layers = 2, bidirectional = true, lengths = frames) @lstm",
    .doc = "With gates i, f, g, o one after the other in the weights: i, f, o = sigmoid(W x + U h + b), g = tanh(W x + U h + b), c = f c + i g, h = o tanh(c). W is weight_ih_l0, U weight_hh_l0, b the sum of bias_ih_l0 and bias_hh_l0 (two, as in cuDNN). " NET_DOC
           ", and the last cells." LENGTHS_DOC " `cell` gives the first cells.",
    .attrs = NET_ATTRS(), .owned = OWNED("uniform_out(2)"), .shape = lstm_shape, .expand = lstm_expand, .traits = OP_MODE, .along = "mixes", .precision = "f32", .onnx = {{"LSTM", 7, 0}},
    .cases = CASES("x: f32[N,4,3]; weight_ih_l0: f32[8,3]; weight_hh_l0: f32[8,2]; bias_ih_l0: f32[8]; bias_hh_l0: f32[8]; hidden = 2",
                   "x: f32[N,3,2]; lengths: i32[N] in 1 3; weight_ih_l0: f32[4,2]; weight_hh_l0: f32[4,1]; weight_ih_l0_reverse: f32[4,2]; weight_hh_l0_reverse: f32[4,1]; weight_ih_l1: f32[4,2]; weight_hh_l1: f32[4,1]; weight_ih_l1_reverse: f32[4,2]; weight_hh_l1_reverse: f32[4,1]; "
                   "hidden = 1; layers = 2; bidirectional = true; bias = false",
                   "x: f32[2,1,1]; start: f32[2,2,3]; cell: f32[2,2,3]; weight_ih_l0: f32[12,1]; weight_hh_l0: f32[12,3]; bias_ih_l0: f32[12]; bias_hh_l0: f32[12]; weight_ih_l0_reverse: f32[12,1]; weight_hh_l0_reverse: f32[12,3]; "
                   "bias_ih_l0_reverse: f32[12]; bias_hh_l0_reverse: f32[12]; hidden = 3; bidirectional = true"),
};

const OpDef op_gru = {
    .name = "gru", .brief = "gated recurrent unit (Cho et al. 2014), its reset gate behind the product, as in cuDNN", .inputs = "x: float, lengths: int?, start: float?, " ALL_OWNED, .outputs = "y, h", .example = "h = gru(x, 128) @gru",
    .doc = "With gates r, z, n one after the other in the weights: r, z = sigmoid(W x + b + U h + d), n = tanh(W x + b + r (U h + d)), h = (1 - z) n + z h. W is weight_ih_l0, U weight_hh_l0, b bias_ih_l0, d bias_hh_l0. "
           "This is PyTorch's form, in ONNX linear_before_reset = 1; ONNX's default, which multiplies h by r first, is another net. " NET_DOC "." LENGTHS_DOC,
    .attrs = NET_ATTRS(), .owned = OWNED("uniform_out(1.7320508075688772)"), .shape = gru_shape, .expand = gru_expand, .traits = OP_MODE, .along = "mixes", .precision = "f32", .onnx = {{"GRU", 7, 0}},
    .cases = CASES("x: f32[N,4,3]; weight_ih_l0: f32[6,3]; weight_hh_l0: f32[6,2]; bias_ih_l0: f32[6]; bias_hh_l0: f32[6]; hidden = 2",
                   "x: f32[N,3,2]; lengths: i32[N] in 1 3; start: f32[2,N,1]; weight_ih_l0: f32[3,2]; weight_hh_l0: f32[3,1]; weight_ih_l0_reverse: f32[3,2]; weight_hh_l0_reverse: f32[3,1]; hidden = 1; bidirectional = true; bias = false",
                   "x: f32[2,2,1]; weight_ih_l0: f32[3,1]; weight_hh_l0: f32[3,1]; bias_ih_l0: f32[3]; bias_hh_l0: f32[3]; weight_ih_l1: f32[3,1]; weight_hh_l1: f32[3,1]; bias_ih_l1: f32[3]; bias_hh_l1: f32[3]; hidden = 1; layers = 2"),
};

const OpDef op_rnn = {
    .name = "rnn", .brief = "a simple recurrent net (Elman 1990)", .inputs = "x: float, lengths: int?, start: float?, " ALL_OWNED, .outputs = "y, h", .example = "h = rnn(x, 64) @rnn",
    .doc = "h = tanh(W x + U h + b). W is weight_ih_l0, U weight_hh_l0, b the sum of bias_ih_l0 and bias_hh_l0. " NET_DOC "." LENGTHS_DOC, .attrs = NET_ATTRS(ACTIVATION_ATTR), .owned = OWNED("uniform_out(1)"), .shape = rnn_shape,
    .expand = rnn_expand, .traits = OP_MODE, .along = "mixes", .precision = "f32", .onnx = {{"RNN", 7, 0}},
    .cases = CASES("x: f32[N,4,3]; weight_ih_l0: f32[2,3]; weight_hh_l0: f32[2,2]; bias_ih_l0: f32[2]; bias_hh_l0: f32[2]; hidden = 2",
                   "x: f32[N,3,2]; lengths: i32[N] in 1 3; start: f32[2,N,1]; weight_ih_l0: f32[1,2]; weight_hh_l0: f32[1,1]; weight_ih_l0_reverse: f32[1,2]; weight_hh_l0_reverse: f32[1,1]; hidden = 1; bidirectional = true; bias = false; activation = relu"),
};
