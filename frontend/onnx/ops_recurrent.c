// ops_recurrent.c: LSTM, GRU and RNN, written out step by step: every form of them, in ops that are there.
#include "import.h"

#include <stdlib.h>

enum { STEPS_MAX = 512 };

typedef struct Act { char name[32]; double alpha, beta; } Act;

typedef struct Cellular {
    OnnxCall *c;
    int64_t steps, batch, hidden, directions;
    Act     act[6];
    double  clip;
    DType   type;
} Cellular;

static bool read_activations(Cellular *r, int each, const char *const *usual)
{
    static const struct { const char *name; double alpha, beta; bool has_alpha, has_beta; } known[] = {
        {"Sigmoid", 0, 0, false, false}, {"Tanh", 0, 0, false, false}, {"Relu", 0, 0, false, false}, {"Affine", 1, 0, true, true}, {"LeakyRelu", 0.01, 0, true, false},
        {"ThresholdedRelu", 1, 0, true, false}, {"ScaledTanh", 1, 1, true, true}, {"HardSigmoid", 0.2, 0.5, true, true}, {"Elu", 1, 0, true, false}, {"Softsign", 0, 0, false, false},
        {"Softplus", 0, 0, false, false}};
    const Onnx__Attribute *names = attribute(r->c, "activations"), *alpha = attribute(r->c, "activation_alpha"), *beta = attribute(r->c, "activation_beta");
    size_t a = 0, b = 0;
    int n = each * (int)r->directions;
    if (names != NULL && names->n_strings != (size_t)n) {
        refuse_node(r->c, "it should have %d activations", n);
        return false;
    }
    for (int i = 0; i < n; i++) {
        const char *name = usual[i % each];
        size_t length = strlen(name);
        if (names != NULL)
            name = (const char *)names->strings[i].data, length = names->strings[i].len;
        int k = 0;
        while (k < COUNT(known) && (strlen(known[k].name) != length || strncasecmp(known[k].name, name, length) != 0))
            k++;
        if (k == COUNT(known)) {
            refuse_node(r->c, "an activation is not known");
            return false;
        }
        strcpy(r->act[i].name, known[k].name);
        r->act[i].alpha = known[k].has_alpha && alpha != NULL && a < alpha->n_floats ? (double)alpha->floats[a++] : known[k].alpha;
        r->act[i].beta = known[k].has_beta && beta != NULL && b < beta->n_floats ? (double)beta->floats[b++] : known[k].beta;
    }
    return true;
}

static Value *act(Cellular *r, const Act *a, Value *x)
{
    static const char *const formulas[] = {"Sigmoid", "sigmoid(x0)", "Tanh", "tanh(x0)", "Relu", "max(x0, 0)", "Affine", "x1 * x0 + x2", "LeakyRelu", "select(x0 >= 0, x0, x1 * x0)",
        "ThresholdedRelu", "select(x0 >= x1, x0, 0)", "ScaledTanh", "x1 * tanh(x2 * x0)", "HardSigmoid", "min(max(x1 * x0 + x2, 0), 1)", "Elu", "select(x0 >= 0, x0, x1 * expm1(x0))",
        "Softsign", "x0 / (1 + abs(x0))", "Softplus", "max(x0, 0) + log1p(exp(-abs(x0)))"};
    Import *m = r->c->m;
    if (r->clip > 0)
        x = formula2(m, "max(min(x0, x1), -x1)", x, number(m, r->type, r->clip));
    for (int i = 0; i < COUNT(formulas); i += 2)
        if (strcmp(formulas[i], a->name) == 0)
            return formula3(m, formulas[i + 1], x, number(m, r->type, a->alpha), number(m, r->type, a->beta));
    return NULL;
}

// One direction of a stacked input, without that axis.
static Value *one_of_directions(Import *m, Value *x, int64_t d)
{
    if (x == NULL)
        return NULL;
    x = sliced(m, x, 0, whole(m, d), whole(m, 1), 1);
    return x != NULL ? reshape_to(m, x, rank_of(x) - 1, x->type.shape.dim + 1) : NULL;
}

static Value *part(Import *m, Value *x, int axis, int64_t n, int64_t size) { return x == NULL ? NULL : sliced(m, x, axis, whole(m, n * size), whole(m, size), 1); }

static Value *plus(Import *m, Value *a, Value *b) { return a == NULL ? b : b == NULL ? a : op2(m, "add", a, b); }

static bool prepare(Cellular *r, int gates, Value **x, Value **w, Value **h, bool *by_batch)
{
    OnnxCall *c = r->c;
    Import *m = c->m;
    const char *direction = word_of(c, "direction", "forward");
    int64_t n;
    r->directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    r->clip = float_of(c, "clip", 0);
    r->type = c->in[0]->type.dtype;
    *by_batch = c->version >= 14 && int_of(c, "layout", 0) != 0;
    if (c->version < 7)
        int_of(c, "output_sequence", 0);
    *x = rank_of(c->in[0]) == 3 && *by_batch ? transposed(m, c->in[0], (int64_t[]){1, 0, 2}) : c->in[0];
    *w = c->in[1], *h = c->in[2];
    if (strcmp(direction, "forward") != 0 && strcmp(direction, "reverse") != 0 && r->directions == 1)
        refuse_node(c, "direction = %s is not known", direction);
    else if (rank_of(*x) != 3 || rank_of(*w) != 3 || rank_of(*h) != 3 || !size_known(dim_of(*x, 0), &r->steps) || !size_known(dim_of(*x, 1), &r->batch) ||
             !size_known(dim_of(*h, 2), &r->hidden) || !size_known(dim_of(*w, 1), &n) || n != gates * r->hidden || !size_known(dim_of(*w, 0), &n) || n != r->directions)
        refuse_node(c, "its sizes do not fit each other, or are known only when running");
    else if (r->steps > STEPS_MAX)
        refuse_node(c, "more than %d steps are not available in this version", STEPS_MAX);
    int64_t given = int_of(c, "hidden_size", r->hidden);
    if (!m->failed && given != r->hidden)
        refuse_node(c, "hidden_size is not the size of its weights");
    return !m->failed;
}

typedef struct Step { Value *h, *c; } Step;

typedef struct Layer {
    Cellular *r;
    const char *kind;
    const Act *act;
    Value *w, *hw, *wb, *hb, *peephole;
    bool joined_forget, reset_after;
} Layer;

static Step lstm_step(Layer *l, Value *x, Step s)
{
    Import *m = l->r->c->m;
    int64_t n = l->r->hidden;
    Value *gates = plus(m, x, op2(m, "matmul", s.h, l->hw));
    Value *i = part(m, gates, 1, 0, n), *o = part(m, gates, 1, 1, n), *f = part(m, gates, 1, 2, n), *g = part(m, gates, 1, 3, n);
    if (l->peephole != NULL) {
        i = plus(m, i, op2(m, "mul", part(m, l->peephole, 0, 0, n), s.c));
        f = plus(m, f, op2(m, "mul", part(m, l->peephole, 0, 2, n), s.c));
    }
    i = act(l->r, &l->act[0], i);
    f = l->joined_forget ? formula1(m, "1 - x0", i) : act(l->r, &l->act[0], f);
    g = act(l->r, &l->act[1], g);
    Value *cell = formula(m, "x0 * x1 + x2 * x3", 4, (Value *[]){f, s.c, i, g});
    if (l->peephole != NULL)
        o = plus(m, o, op2(m, "mul", part(m, l->peephole, 0, 1, n), cell));
    o = act(l->r, &l->act[0], o);
    return (Step){op2(m, "mul", o, act(l->r, &l->act[2], cell)), cell};
}

static Step gru_step(Layer *l, Value *x, Step s)
{
    Import *m = l->r->c->m;
    int64_t n = l->r->hidden;
    Value *own = op2(m, "matmul", s.h, l->hw), *r, *z, *h;
    Value *b = l->hb;
    z = act(l->r, &l->act[0], plus(m, plus(m, part(m, x, 1, 0, n), part(m, own, 1, 0, n)), part(m, b, 0, 0, n)));
    r = act(l->r, &l->act[0], plus(m, plus(m, part(m, x, 1, 1, n), part(m, own, 1, 1, n)), part(m, b, 0, 1, n)));
    if (l->reset_after)
        h = op2(m, "mul", r, plus(m, part(m, own, 1, 2, n), part(m, b, 0, 2, n)));
    else
        h = plus(m, op2(m, "matmul", op2(m, "mul", r, s.h), part(m, l->hw, 1, 2, n)), part(m, b, 0, 2, n));
    h = act(l->r, &l->act[1], plus(m, part(m, x, 1, 2, n), h));
    return (Step){formula3(m, "(1 - x0) * x1 + x0 * x2", z, h, s.h), NULL};
}

static Step rnn_step(Layer *l, Value *x, Step s)
{
    Import *m = l->r->c->m;
    return (Step){act(l->r, &l->act[0], plus(m, x, op2(m, "matmul", s.h, l->hw))), NULL};
}

static Value *held(Import *m, Value *active, Value *now, Value *before) { return active == NULL || now == NULL ? now : op3(m, "where", active, now, before); }

static void run_layer(Layer *l, Value *x, Value *lengths, bool backwards, Step s, Value **y, Step *last)
{
    Cellular *r = l->r;
    Import *m = r->c->m;
    bool gru = strcmp(l->kind, "GRU") == 0, lstm = strcmp(l->kind, "LSTM") == 0;
    Size one[2] = {whole(m, r->batch), NULL};
    Value *products = op2(m, "matmul", x, transposed(m, l->w, (int64_t[]){1, 0}));
    l->hw = transposed(m, l->hw, (int64_t[]){1, 0});
    products = plus(m, products, gru ? l->wb : plus(m, l->wb, l->hb));
    if (products == NULL)
        return;
    one[1] = dim_of(products, 2);
    for (int64_t k = 0; k < r->steps && !m->failed; k++) {
        int64_t t = backwards ? r->steps - 1 - k : k;
        Value *now = reshape_to(m, sliced(m, products, 0, whole(m, t), whole(m, 1), 1), 2, one), *active = NULL;
        Step next = lstm ? lstm_step(l, now, s) : gru ? gru_step(l, now, s) : rnn_step(l, now, s);
        if (lengths != NULL)
            active = reshape_to(m, formula2(m, "x0 > x1", lengths, number(m, lengths->type.dtype, (double)t)), 2, (Size[]){whole(m, r->batch), whole(m, 1)});
        y[t] = held(m, active, next.h, number(m, r->type, 0));
        s.h = held(m, active, next.h, s.h);
        s.c = lstm ? held(m, active, next.c, s.c) : NULL;
    }
    *last = s;
}

// (…): an axis of size 1 at a place.
static Value *with_axis(Import *m, Value *x, int axis)
{
    Size dims[RANK_MAX];
    if (x == NULL)
        return NULL;
    for (int i = 0; i <= rank_of(x); i++)
        dims[i] = i == axis ? whole(m, 1) : dim_of(x, i < axis ? i : i - 1);
    return reshape_to(m, x, rank_of(x) + 1, dims);
}

static Value *all_of(Import *m, int n, Value **parts, int axis)
{
    Value *whole_one = NULL, *group[INPUTS_MAX];
    for (int i = 0; i < n;) {                           // a concat takes so many at a time
        int k = 0;
        if (whole_one != NULL)
            group[k++] = whole_one;
        while (k < INPUTS_MAX && i < n)
            group[k++] = parts[i++];
        for (int j = 0; j < k; j++)
            if (group[j] == NULL)
                return NULL;
        whole_one = joined(m, k, group, axis);
    }
    return whole_one;
}

void onnx_recurrent(OnnxCall *c)
{
    static const char *const usual[3][3] = {{"Sigmoid", "Tanh", "Tanh"}, {"Sigmoid", "Tanh", ""}, {"Tanh", "", ""}};
    Cellular r = {.c = c};
    Import *m = c->m;
    int kind = strcmp(c->op, "LSTM") == 0 ? 0 : strcmp(c->op, "GRU") == 0 ? 1 : 2, gates = kind == 0 ? 4 : kind == 1 ? 3 : 1;
    Value *x, *w, *hw, *lengths = input_of(c, 4), *h[2], *cell[2], *per_direction[2];
    bool by_batch, reverse = strcmp(word_of(c, "direction", "forward"), "reverse") == 0;
    bool joined_forget = kind == 0 && int_of(c, "input_forget", 0) != 0, reset_after = kind == 1 && int_of(c, "linear_before_reset", 0) != 0;
    if (!prepare(&r, gates, &x, &w, &hw, &by_batch) || !read_activations(&r, kind == 0 ? 3 : kind == 1 ? 2 : 1, usual[kind]))
        return;
    int64_t n = r.hidden;
    Value *zero = broadcast_as(m, number(m, r.type, 0), 2, (Size[]){whole(m, r.batch), whole(m, n)});
    Value *h0 = input_of(c, 5), *c0 = kind == 0 ? input_of(c, 6) : NULL, *peephole = kind == 0 ? input_of(c, 7) : NULL;
    if (by_batch && h0 != NULL)
        h0 = transposed(m, h0, (int64_t[]){1, 0, 2});
    if (by_batch && c0 != NULL)
        c0 = transposed(m, c0, (int64_t[]){1, 0, 2});
    for (int64_t d = 0; d < r.directions && !m->failed; d++) {
        Value *bias = one_of_directions(m, input_of(c, 3), d), **y = NEW_ARRAY(m->cx->arena, Value *, r.steps + 1);
        Layer l = {.r = &r, .kind = c->op, .act = &r.act[d * (kind == 0 ? 3 : kind == 1 ? 2 : 1)], .w = one_of_directions(m, w, d), .hw = one_of_directions(m, hw, d),
                   .wb = part(m, bias, 0, 0, gates * n), .hb = part(m, bias, 0, 1, gates * n), .peephole = one_of_directions(m, peephole, d),
                   .joined_forget = joined_forget, .reset_after = reset_after};
        Step s = {h0 != NULL ? one_of_directions(m, h0, d) : zero, kind == 0 ? (c0 != NULL ? one_of_directions(m, c0, d) : zero) : NULL};
        run_layer(&l, x, lengths, reverse || d == 1, s, y, &s);
        for (int64_t t = 0; t < r.steps; t++)
            y[t] = with_axis(m, y[t], 0);
        per_direction[d] = with_axis(m, all_of(m, (int)r.steps, y, 0), 1);
        h[d] = with_axis(m, s.h, 0), cell[d] = with_axis(m, s.c, 0);
    }
    if (m->failed || r.steps == 0) {
        if (!m->failed)
            refuse_node(c, "no steps are not available in this version");
        return;
    }
    c->out[0] = all_of(m, (int)r.directions, per_direction, 1);     // (T, directions, N, hidden)
    c->out[1] = all_of(m, (int)r.directions, h, 0);
    if (kind == 0)
        c->out[2] = all_of(m, (int)r.directions, cell, 0);
    if (by_batch) {
        c->out[0] = transposed(m, c->out[0], (int64_t[]){2, 0, 1, 3});
        c->out[1] = transposed(m, c->out[1], (int64_t[]){1, 0, 2});
        c->out[2] = kind == 0 ? transposed(m, c->out[2], (int64_t[]){1, 0, 2}) : NULL;
    }
}
