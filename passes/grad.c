// grad.c: reverse mode on the Graph. From the loss backwards, each node hands the gradient of its result on to its inputs,
// by nodes that are appended; in the end g->gradients has one value for every trainable parameter.
//
// What a node hands on, its row says: a rule (`grad`), or the derivative of its formula, as one map for each input. Formulas
// that hold a costly part already computed take it from the result (tanh' = 1 - y y). Values used several times collect
// their parts in the reverse order of the nodes: a fixed order, so the same bits every time. Gradients are built without
// care for sums of nothing and dead ends; simplify comes after.
#include "passes.h"

#include <string.h>

#include "../compiler/ops/op.h"

typedef struct Grad {
    Context *cx;
    Graph   *g;
    int      values;                    // of the forward graph; ids beyond it are gradients
    bool    *wanted;                    // by Value id: a trainable parameter is behind it
    Value  **of;                        // by Value id: the gradient collected so far, or NULL
} Grad;

// --- What needs a gradient --------------------------------------------------------------------------------------------------

static bool passes_on(const Node *node) { return node->op->no_grad == NULL; }

static void mark_wanted(Grad *s)
{
    for (int i = 0; i < s->values; i++) {
        const Value *v = s->g->values.at[i];
        s->wanted[i] = v->kind == VALUE_PARAM && v->param->trainable && type_is_float(v->type.dtype);
    }
    for (int i = 0; i < s->g->nodes.count; i++) {
        const Node *node = s->g->nodes.at[i];
        bool behind = false;
        for (int k = 0; k < node->n_in; k++)
            behind |= node->in[k] != NULL && s->wanted[node->in[k]->id];
        for (int k = 0; k < node->n_out; k++)
            s->wanted[node->out[k]->id] = behind && passes_on(node) && type_is_float(node->out[k]->type.dtype);
    }
}

// A maxpool that will be asked for its gradient remembers the places of its maxima.
static void remember_places(Grad *s)
{
    for (int i = 0; i < s->g->nodes.count; i++) {
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

static bool same_expr(const Expr *a, const Expr *b)
{
    if (a == b)
        return true;
    if (a->kind != b->kind || a->type != b->type || a->prim != b->prim || a->arg != b->arg || a->var != b->var || a->count != b->count || a->whole != b->whole)
        return false;
    if (a->kind != EXPR_ARG && a->kind != EXPR_PRIM && a->kind != EXPR_NUMBER && a->kind != EXPR_CAST)
        return false;
    if (a->kind == EXPR_NUMBER && memcmp(&a->number, &b->number, sizeof a->number) != 0)
        return false;
    for (int i = 0; i < a->count; i++)
        if (!same_expr(a->operand[i], b->operand[i]))
            return false;
    return true;
}

static Expr *argument(Context *cx, DType type, int arg)
{
    Expr *e = NEW(cx->arena, Expr);
    *e = (Expr){.kind = EXPR_ARG, .type = type, .arg = arg};
    return e;
}

typedef struct Known { const Expr *formula; Expr *result; } Known;

static Expr *take_known(void *context, Expr *e)
{
    const Known *known = context;
    return same_expr(e, known->formula) ? known->result : e;
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
    return argument(used->cx, e->type, at);
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
    Expr *d = expr_derivative(cx, formula, i), *g = argument(cx, dy->type.dtype, given);
    if (d == NULL)
        return NULL;
    Cost cost = {0};
    expr_cost(formula, &cost);
    if (cost.heavy > 0)
        d = expr_rewrite(cx, d, take_known, &(Known){formula, argument(cx, node->out[0]->type.dtype, result)});
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
    if (!reached || !asked)
        return;
    Builder b = {.cx = s->cx, .graph = s->g, .scope = node->scope, .place = node->place, .phase = PHASE_BACKWARD, .training = s->g->training};
    if (node->op->grad == NULL)
        formula_grad(s, &b, node, dy[0], dx);
    else if (dy[0] != NULL || node->op->traits & OP_MANY)       // of others, further results (statistics, places) carry none
        node->op->grad(&b, node, dy, dx);
    for (int i = 0; i < node->n_in; i++)
        if (dx[i] != NULL && node->in[i] != NULL && s->wanted[node->in[i]->id])
            collect(s, &b, node->in[i], dx[i]);
}

// A parameter that the loss does not depend on: zeros.
static Value *zeros(Graph *g, const Type *type)
{
    int64_t dim[RANK_MAX];
    for (int i = 0; i < type->shape.rank; i++)
        dim[i] = size_value(type->shape.dim[i]);
    return graph_const(g, *type, tensor_new(g->cx->arena, type->dtype, type->shape.rank, dim)->data);
}

bool pass_grad(Graph *g)
{
    Grad s = {.cx = g->cx, .g = g, .values = g->values.count};
    if (g->loss == NULL)
        return false;
    s.wanted = NEW_ARRAY(g->cx->arena, bool, s.values);
    s.of = NEW_ARRAY(g->cx->arena, Value *, s.values);
    mark_wanted(&s);
    remember_places(&s);
    Builder b = {.cx = g->cx, .graph = g, .scope = "loss", .place = g->loss->place, .phase = PHASE_BACKWARD, .training = g->training};
    s.of[g->loss->id] = build_number(&b, g->loss->type.dtype, 1);
    for (int i = g->nodes.count - 1; i >= 0; i--)
        go_back(&s, g->nodes.at[i]);
    for (int i = 0; i < s.values; i++) {
        Value *v = g->values.at[i];
        if (v->kind == VALUE_PARAM && s.wanted[i])
            LIST_ADD(g->cx->arena, g->gradients, ((Gradient){v->param, s.of[i] != NULL ? s.of[i] : zeros(g, &v->type)}));
    }
    return true;
}
