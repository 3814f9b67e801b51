// grad.c: reverse mode on the Graph. From the loss backwards, each node hands the gradient of its result on to its inputs,
// by nodes that are appended; in the end g->gradients has one value for every trainable parameter.
//
// What a node hands on, its row says: a rule (`grad`), or the derivative of its formula, as one map for each input. Formulas
// that hold a costly part already computed take it from the result (tanh' = 1 - y y). Values used several times collect
// their parts in the reverse order of the nodes: a fixed order, so the same bits every time. Gradients are built without
// care for sums of nothing and dead ends; simplify comes after.
//
// The op `gradient` uses the same sweep in the middle of a graph; gradients are nodes like others, so it can be used again.
#include <string.h>

#include "mlc.h"
#include "ops/op.h"

typedef struct Grad {
    Context *cx;
    Graph   *g;
    int      values;                    // of the forward graph; ids beyond it are gradients
    int      nodes;                     // of the forward graph
    Phase    phase;                     // of the nodes that are made
    bool    *wanted;                    // by Value id: what gradients are asked for is behind it
    Value  **of;                        // by Value id: the gradient collected so far, or NULL
} Grad;

// --- What needs a gradient --------------------------------------------------------------------------------------------------

static Grad grad_new(Graph *g, Phase phase)
{
    Grad s = {.cx = g->cx, .g = g, .values = g->values.count, .nodes = g->nodes.count, .phase = phase};
    s.wanted = NEW_ARRAY(g->cx->arena, bool, s.values);
    s.of = NEW_ARRAY(g->cx->arena, Value *, s.values);
    return s;
}

static bool is_behind(const Grad *s, const Node *node)
{
    for (int k = 0; k < node->n_in; k++)
        if (node->in[k] != NULL && s->wanted[node->in[k]->id])
            return true;
    return false;
}

// Goes from the values that are wanted already to what is made from them.
static void spread_wanted(Grad *s)
{
    for (int i = 0; i < s->nodes; i++) {
        const Node *node = s->g->nodes.at[i];
        bool passes = is_behind(s, node) && (node->op->no_grad == NULL || node->op->once);
        for (int k = 0; k < node->n_out; k++)
            s->wanted[node->out[k]->id] |= passes && type_is_float(node->out[k]->type.dtype);
    }
}

// A maxpool that will be asked for its gradient remembers the places of its maxima.
static void remember_places(Grad *s)
{
    for (int i = 0; i < s->nodes; i++) {
        Node *node = s->g->nodes.at[i];
        if (strcmp(node->op->name, "maxpool") != 0 || !s->wanted[node->out[0]->id])
            continue;
        OpCall call = {.cx = s->cx, .op = op_find("maxpool_places"), .n_in = node->n_in, .place = node->place};
        memcpy(call.in, node->in, sizeof call.in);
        memcpy(call.attr, node->attr, sizeof call.attr);
        CHECK(call.op->shape(&call) && call.n_out == 2);
        Value *places = NEW(s->cx->arena, Value);
        *places = (Value){.id = s->g->values.count, .kind = VALUE_RESULT, .name = "place", .type = call.out[1], .node = node, .index = 1, .place = node->place};
        LIST_ADD(s->cx->arena, s->g->values, places);
        node->op = call.op;
        node->out[node->n_out++] = places;
    }
}

// --- Formulas ---------------------------------------------------------------------------------------------------------------

typedef struct Known { const Expr *formula; Expr *result; } Known;

static Expr *take_known(void *context, Expr *e)
{
    const Known *known = context;
    return expr_equal(e, known->formula) ? known->result : e;
}

static bool is_number(const Expr *e, double x) { return e->kind == EXPR_NUMBER && e->number == x; }

// g times d, taken into the branches of a select, so that an infinite g does not meet a 0. NULL: zero.
static Expr *scaled(Context *cx, Expr *g, Expr *d)
{
    if (is_number(d, 0) || is_number(d, 1) || is_number(d, -1))
        return is_number(d, 0) ? NULL : is_number(d, 1) ? g : expr_prim(cx, PRIM_neg, g, NULL, NULL);
    if (d->kind != EXPR_PRIM || d->prim != PRIM_select)
        return expr_prim(cx, PRIM_mul, g, d, NULL);
    Expr *yes = scaled(cx, g, d->operand[1]), *no = scaled(cx, g, d->operand[2]), *zero = expr_number(cx, g->type, 0);
    if (yes == NULL && no == NULL)
        return NULL;
    return expr_prim(cx, PRIM_select, d->operand[0], yes != NULL ? yes : zero, no != NULL ? no : zero);
}

// The arguments that a formula really uses, renumbered: a map may have only so many.
typedef struct Used { Context *cx; int count, place[INPUTS_MAX + 2]; Value *const *from; Value *in[INPUTS_MAX + 2]; } Used;

static Expr *renumber(void *context, Expr *e)
{
    Used *used = context;
    if (e->kind != EXPR_ARG)
        return e;
    int at = 0;
    while (at < used->count && used->place[at] != e->arg)
        at++;
    if (at == used->count) {
        used->place[at] = e->arg;
        used->in[used->count++] = used->from[e->arg];
    }
    return expr_arg(used->cx, e->type, at);
}

static Value *map_of(Builder *b, Expr *formula, Value *const *from)
{
    if (formula->kind == EXPR_ARG)
        return from[formula->arg];
    Used used = {.cx = b->cx, .from = from};
    formula = expr_rewrite(b->cx, formula, renumber, &used);
    return used.count <= INPUTS_MAX ? build_formula(b, formula, used.count, used.in) : NULL;
}

// The gradient of input i: one map of the inputs, the result and dy, or two if it has too many arguments.
static Value *formula_part(Builder *b, const Node *node, Expr *formula, int i, Value *dy)
{
    Context *cx = b->cx;
    Value *from[INPUTS_MAX + 2];
    int result = node->n_in, given = node->n_in + 1;
    memcpy(from, node->in, sizeof(Value *) * (size_t)node->n_in);
    from[result] = node->out[0];
    from[given] = dy;
    Expr *d = expr_derivative(cx, formula, i), *g = expr_arg(cx, dy->type.dtype, given);
    if (d == NULL)
        return NULL;
    Cost cost = {0};
    expr_cost(formula, &cost);
    if (cost.heavy > 0)
        d = expr_rewrite(cx, d, take_known, &(Known){formula, expr_arg(cx, node->out[0]->type.dtype, result)});
    Expr *part = scaled(cx, g, d);
    if (part == NULL)
        return NULL;
    Value *v = map_of(b, part, from);
    return v != NULL ? v : build_map(b, "x0 * x1", 2, (Value *[]){dy, map_of(b, d, from)});
}

static void formula_grad(Grad *s, Builder *b, const Node *node, Value *dy, Value **dx)
{
    Expr *formula = op_formula(s->cx, node);
    if (formula == NULL)
        BUG("%s at %s has neither a gradient nor a reason why it has none", node->op->name, node->scope);
    for (int i = 0; i < node->n_in; i++) {
        if (node->in[i] == NULL || !s->wanted[node->in[i]->id])
            continue;
        Value *part = formula_part(b, node, formula, i, dy);
        dx[i] = part != NULL ? build_sum_to(b, part, &node->in[i]->type.shape) : NULL;
    }
}

// --- Backwards --------------------------------------------------------------------------------------------------------------

static void collect(Grad *s, Builder *b, const Value *v, Value *part)
{
    if (part->type.dtype != v->type.dtype || !shape_equal(&part->type.shape, &v->type.shape))
        BUG("the gradient of %s, %s, is %s", v->name != NULL ? v->name : "a value", type_text(s->cx, &v->type), type_text(s->cx, &part->type));
    Value *before = s->of[v->id];
    s->of[v->id] = before == NULL ? part : build_map(b, "x0 + x1", 2, (Value *[]){before, part});
}

static void go_back(Grad *s, const Node *node)
{
    Value *dy[OUTPUTS_MAX] = {NULL}, *dx[INPUTS_MAX] = {NULL};
    bool reached = false, asked = false;
    for (int i = 0; i < node->n_out; i++) {
        dy[i] = node->out[i]->id < s->values ? s->of[node->out[i]->id] : NULL;
        reached |= dy[i] != NULL;
        asked |= node->out[i]->id < s->values && s->wanted[node->out[i]->id];
    }
    if (!reached || !asked || !is_behind(s, node))      // what makes x itself hands nothing on
        return;
    if (node->op->once) {
        diag_report(s->cx->diag, node->place, MESSAGE_E0321, node->op->name, node->op->no_grad);
        return;
    }
    Builder b = {.cx = s->cx, .graph = s->g, .scope = node->scope, .place = node->place, .phase = s->phase, .training = s->g->training};
    if (node->op->grad == NULL)
        formula_grad(s, &b, node, dy[0], dx);
    else if (dy[0] != NULL || node->op->traits & OP_MANY)       // of others, further results (statistics, places) carry none
        node->op->grad(&b, node, dy, dx);
    for (int i = 0; i < node->n_in; i++)
        if (dx[i] != NULL && node->in[i] != NULL && s->wanted[node->in[i]->id])
            collect(s, &b, node->in[i], dx[i]);
}

// A parameter that the loss does not depend on: zeros.
static Value *zeros(Builder *b, const Type *type)
{
    OpCall call = call_new(b, "zeros", 0, NULL);
    call_sizes(&call, "shape", type->shape.rank, type->shape.dim);
    call_type(&call, "type", type->dtype);
    return op_build(b, &call);
}

// From the last node back, with what `of` holds already.
static void sweep(Grad *s)
{
    remember_places(s);
    for (int i = s->nodes; i-- > 0;)
        go_back(s, s->g->nodes.at[i]);
}

bool graph_grad(Graph *g)
{
    if (g->loss == NULL)
        return false;
    Grad s = grad_new(g, PHASE_BACKWARD);
    int errors = g->cx->diag->errors;
    for (int i = 0; i < s.values; i++) {
        const Value *v = g->values.at[i];
        s.wanted[i] = v->kind == VALUE_PARAM && v->param->trainable && type_is_float(v->type.dtype);
    }
    spread_wanted(&s);
    Builder b = {.cx = g->cx, .graph = g, .scope = "loss", .place = g->loss->place, .phase = PHASE_BACKWARD, .training = g->training};
    s.of[g->loss->id] = build_number(&b, g->loss->type.dtype, 1);
    sweep(&s);
    for (int i = 0; i < s.values; i++) {
        Value *v = g->values.at[i];
        if (v->kind == VALUE_PARAM && s.wanted[i])
            LIST_ADD(g->cx->arena, g->gradients, ((Gradient){v->param, s.of[i] != NULL ? s.of[i] : zeros(&b, &v->type)}));
    }
    return g->cx->diag->errors == errors;
}

Value *build_gradient(Builder *b, Value *y, Value *x)
{
    Grad s = grad_new(b->graph, b->phase);
    s.wanted[x->id] = true;
    spread_wanted(&s);
    if (!s.wanted[y->id])
        return NULL;
    s.of[y->id] = build_repeat_to(b, build_number(b, y->type.dtype, 1), &y->type.shape);
    sweep(&s);
    return s.of[x->id];
}
