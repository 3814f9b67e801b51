// build_generate.c: `generate { tokens = sample(logits, …) }`: the last position of an output gives the next element of an
// input, again and again. That is only sound if no position looks ahead along the input's bounded size, which is shown here
// by following it through the Graph for inference: every formula says which positions it loads (OpDef.compute), ops that
// are defined by others are written out on the side, and attention says by its attribute `causal`.
#include <string.h>

#include "build.h"

// --- nothing looks ahead ------------------------------------------------------------------------------------------------------

enum { AXIS_FREE = -1, AXIS_MIXED = -2 };       // does not depend on the input; a position depends on later ones

typedef struct Follow {
    Net *net;
    int *axis;                  // by Value id: which axis runs along, or AXIS_…
    const Node *culprit;        // the first that looks ahead
} Follow;

static void follow_graph(Follow *f, const Graph *g);

// The axis of the result that walks with axis `axis` of a load: its index is that variable, or lies behind it.
static int axis_of_index(const Expr *index, int rank)
{
    if (index->kind == EXPR_PRIM && (index->prim == PRIM_sub || index->prim == PRIM_add) && index->operand[1]->kind == EXPR_NUMBER) {
        bool back = index->prim == PRIM_sub ? index->operand[1]->whole >= 0 : index->operand[1]->whole <= 0;
        return back ? axis_of_index(index->operand[0], rank) : AXIS_MIXED;
    }
    return index->kind == EXPR_INDEX && index->var < rank ? index->var : AXIS_MIXED;
}

static int meet(int a, int b) { return a == AXIS_FREE ? b : b == AXIS_FREE || a == b ? a : AXIS_MIXED; }

static int follow_expr(const Follow *f, const Expr *e, int rank)
{
    int axis = AXIS_FREE;
    if (e->kind == EXPR_LOAD) {
        int along = f->axis[e->value->id];
        axis = along < 0 ? along : axis_of_index(e->operand[along], rank);
    }
    for (int i = 0; i < e->count && axis != AXIS_MIXED; i++)
        axis = meet(axis, follow_expr(f, e->operand[i], rank));
    return axis;
}

// A reshape keeps the axis if as many elements stand before it as did.
static int follow_reshape(Context *cx, const Shape *from, const Shape *to, int axis)
{
    Size before = size_const(cx, 1), count = size_const(cx, 1);
    for (int i = 0; i < axis; i++)
        before = size_times(cx, before, from->dim[i]);
    for (int i = 0; i < to->rank; i++) {
        if (size_equal(count, before) && size_equal(to->dim[i], from->dim[axis]))
            return i;
        count = size_times(cx, count, to->dim[i]);
    }
    return AXIS_MIXED;
}

// What the inputs are together: free, mixed if one is, or else an axis of some.
static int of_inputs(const Follow *f, const Node *node)
{
    int axis = AXIS_FREE;
    for (int i = 0; i < node->n_in && axis != AXIS_MIXED; i++)
        if (node->in[i] != NULL && f->axis[node->in[i]->id] != AXIS_FREE)
            axis = f->axis[node->in[i]->id];
    return axis;
}

static int attr_at(const OpDef *op, const char *name)
{
    for (int i = 0; i < ATTRS_MAX && op->attrs[i].name != NULL; i++)
        if (strcmp(op->attrs[i].name, name) == 0)
            return i;
    return -1;
}

static int follow_formula(const Follow *f, const Node *node)
{
    int axis = AXIS_FREE, rank = node->out[0]->type.shape.rank;
    for (int i = 0; i < node->n_in; i++) {
        int along = node->in[i] != NULL ? f->axis[node->in[i]->id] : AXIS_FREE;
        axis = meet(axis, along >= 0 ? along + rank - node->in[i]->type.shape.rank : along);
    }
    return axis;
}

// Attention that looks back: queries, keys and values have the same axis, and so has the result.
static int follow_causal(const Follow *f, const Node *node)
{
    int axis = f->axis[node->in[0]->id];
    for (int i = 1; i < node->n_in; i++)
        if (node->in[i] != NULL && f->axis[node->in[i]->id] == AXIS_MIXED)
            axis = AXIS_MIXED;
    return axis;
}

// Writes one node out in a Graph of its own and follows that.
static void follow_expanded(Follow *f, const Node *node)
{
    Context *cx = f->net->cx;
    Graph *g = graph_new(cx, "side");
    Node copy = *node;
    Value *out[OUTPUTS_MAX] = {NULL};
    int axis[INPUTS_MAX];
    for (int i = 0; i < node->n_in; i++) {
        copy.in[i] = node->in[i] != NULL ? graph_input(g, node->in[i]->name, node->in[i]->type, node->place) : NULL;
        axis[i] = node->in[i] != NULL ? f->axis[node->in[i]->id] : AXIS_FREE;
        if (copy.in[i] != NULL)
            copy.in[i]->param = node->in[i]->param;
    }
    Builder b = {.cx = cx, .graph = g, .scope = node->scope, .place = node->place};
    node->op->expand(&b, &copy, out);
    Follow inner = {.net = f->net, .axis = NEW_ARRAY(f->net->arena, int, g->values.count + 1)};
    for (int i = 0; i < g->values.count; i++)
        inner.axis[i] = AXIS_FREE;
    for (int i = 0; i < node->n_in; i++)
        if (copy.in[i] != NULL)
            inner.axis[copy.in[i]->id] = axis[i];
    follow_graph(&inner, g);
    for (int i = 0; i < node->n_out; i++)
        f->axis[node->out[i]->id] = out[i] != NULL ? inner.axis[out[i]->id] : AXIS_MIXED;
}

static int follow_computed(const Follow *f, const Node *node, int output)
{
    Compute c = {0};
    static const char *const moves[] = {"reshape", "flatten", "expand", "squeeze"};
    for (int i = 0; i < COUNT(moves); i++)
        if (strcmp(node->op->name, moves[i]) == 0)
            return follow_reshape(f->net->cx, &node->in[0]->type.shape, &node->out[0]->type.shape, f->axis[node->in[0]->id]);
    node->op->compute(f->net->cx, node, output, &c);
    return follow_expr(f, c.body, c.rank);
}

static void follow_node(Follow *f, const Node *node)
{
    const OpDef *op = node->op;
    int causal = attr_at(op, "causal"), inputs = of_inputs(f, node);
    for (int i = 0; i < node->n_out; i++)
        f->axis[node->out[i]->id] = inputs;
    if (inputs < 0)
        return;
    if (causal >= 0 && node->attr[causal].i != 0)
        f->axis[node->out[0]->id] = follow_causal(f, node);
    else if (causal < 0 && (op->formula != NULL || attr_at(op, "formula") >= 0))
        f->axis[node->out[0]->id] = follow_formula(f, node);
    else if (causal < 0 && op->expand != NULL)
        follow_expanded(f, node);
    else
        for (int i = 0; i < node->n_out; i++)
            f->axis[node->out[i]->id] = causal < 0 && op->compute != NULL ? follow_computed(f, node, i) : AXIS_MIXED;
    for (int i = 0; i < node->n_out && f->culprit == NULL; i++)
        if (f->axis[node->out[i]->id] == AXIS_MIXED)
            f->culprit = node;
}

static void follow_graph(Follow *f, const Graph *g)
{
    for (int i = 0; i < g->nodes.count; i++)
        follow_node(f, g->nodes.at[i]);
}

// Only what the logits are made of counts: another output may look where it likes.
static void mark_used(const Graph *g, const Value *v, bool *used)
{
    used[v->id] = true;
    for (int i = g->nodes.count - 1; i >= 0; i--) {
        const Node *node = g->nodes.at[i];
        bool wanted = false;
        for (int k = 0; k < node->n_out; k++)
            wanted |= used[node->out[k]->id];
        for (int k = 0; wanted && k < node->n_in; k++)
            if (node->in[k] != NULL)
                used[node->in[k]->id] = true;
    }
}

static void check_no_look_ahead(Net *net, const Ast *at, const Value *input, int along, const Value *logits, const char *size)
{
    const Graph *g = net->model->infer;
    Follow f = {.net = net, .axis = NEW_ARRAY(net->arena, int, g->values.count + 1)};
    bool *used = NEW_ARRAY(net->arena, bool, g->values.count + 1);
    for (int i = 0; i < g->values.count; i++)
        f.axis[i] = AXIS_FREE;
    f.axis[input->id] = along;
    mark_used(g, logits, used);
    for (int i = 0; i < g->nodes.count; i++)
        if (used[g->nodes.at[i]->out[0]->id])
            follow_node(&f, g->nodes.at[i]);
    if (f.axis[logits->id] >= 0)
        return;
    const Node *culprit = f.culprit;
    if (culprit == NULL) {
        diag_report(net->cx->diag, at->place, MESSAGE_E0311, "what generate draws from", "made from the input it appends to", logits->name);
        return;
    }
    diag_report(net->cx->diag, at->place, MESSAGE_E0505, size, culprit->op->name, diag_line(net->cx->diag, culprit->place));
    if (attr_at(culprit->op, "causal") >= 0)
        diag_help(net->cx->diag, "causal = true");
}

// --- keys ---------------------------------------------------------------------------------------------------------------------

static void wrong(Net *net, const Ast *at, const char *what, const char *wanted, const char *got)
{
    diag_report(net->cx->diag, at->place, MESSAGE_E0311, what, wanted, got);
}

static bool number(Net *net, Scope *scope, Ast *ast, const char *what, double least, double most, bool whole, double *out)
{
    Val v = eval(net, scope, ast);
    int64_t n;
    if (v.kind == VAL_NONE)
        return false;
    if (v.kind != VAL_NUMBER || (whole && !val_is_whole(&v, &n)) || v.number.real < least || v.number.real > most) {
        wrong(net, ast, what, arena_printf(net->arena, "a %snumber from %g to %g", whole ? "whole " : "", least, most), val_text(net, &v));
        return false;
    }
    *out = v.number.real;
    return true;
}

typedef struct SampleArg { const char *name; double least, most, initial; bool whole; } SampleArg;

static const SampleArg sample_args[] = {
    {"temperature", 0, 1e6, 1, false}, {"top_k", 0, 1e9, 0, true}, {"top_p", 0, 1, 1, false},
};

static void read_sampling(Net *net, Scope *scope, const Ast *call, Generate *g)
{
    double value[COUNT(sample_args)];
    for (int i = 0; i < COUNT(sample_args); i++)
        value[i] = sample_args[i].initial;
    for (int i = 1; i < call->count; i++) {
        const Ast *arg = call->items[i];
        const char *names[COUNT(sample_args)];
        int at = -1;
        for (int k = 0; k < COUNT(sample_args); k++) {
            names[k] = sample_args[k].name;
            if (arg->kind == AST_ARGUMENT && strcmp(arg->text, sample_args[k].name) == 0)
                at = k;
        }
        if (at < 0) {
            diag_report(net->cx->diag, arg->place, MESSAGE_E0202, "sample", arg->kind == AST_ARGUMENT ? arg->text : "there");
            if (arg->kind == AST_ARGUMENT)
                diag_help_nearest(net->cx->diag, arg->text, names, COUNT(names));
            continue;
        }
        number(net, scope, arg->a, arg->text, sample_args[at].least, sample_args[at].most, sample_args[at].whole, &value[at]);
    }
    g->temperature = value[0];
    g->top_k = (int64_t)value[1];
    g->top_p = value[2];
}

static const Value *named_value(const NamedValue *list, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return list[i].value;
    return NULL;
}

static const Value *input_named(const Graph *g, const char *name)
{
    for (int i = 0; i < g->inputs.count; i++)
        if (strcmp(g->inputs.at[i]->name, name) == 0)
            return g->inputs.at[i];
    return NULL;
}

// The axis of the input whose size is a bounded name.
static int bounded_axis(const Value *input, const Symbol **symbol)
{
    for (int i = 1; i < input->type.shape.rank; i++) {
        int64_t most;
        if (size_symbols(input->type.shape.dim[i], symbol, 1) == 1 && size_upper(input->type.shape.dim[i], &most))
            return i;
    }
    return -1;
}

// tokens = sample(logits, …)
static void read_drawing(Net *net, Scope *scope, Ast *s, Generate *g)
{
    const Graph *graph = net->model->infer;
    const char *name = s->items[0]->text;
    const Value *input = input_named(graph, name);
    const Ast *call = s->b;
    bool good = call->kind == AST_CALL && call->a->kind == AST_NAME && strcmp(call->a->text, "sample") == 0 && call->count > 0 &&
                call->items[0]->kind == AST_NAME;
    if (!good) {
        wrong(net, call, name, "drawn from an output: sample(logits)", "this");
        return;
    }
    const Value *logits = named_value(graph->outputs.at, graph->outputs.count, call->items[0]->text);
    int axis = bounded_axis(input, &g->along);
    if (logits == NULL)
        wrong(net, call->items[0], "what generate draws from", "an output of the net", call->items[0]->text);
    else if (axis < 0 || type_is_float(input->type.dtype))
        wrong(net, s->items[0], "what generate appends to", "an integer input with a bounded size, as i32[N, T <= 1024]", type_text(net->cx, &input->type));
    else
        check_no_look_ahead(net, s, input, axis, logits, g->along->name);
    g->input = name;
    g->logits = call->items[0]->text;
    read_sampling(net, scope, call, g);
}

static void read_text(Net *net, Scope *scope, const Ast *value, Generate *g)
{
    bool call = value->kind == AST_CALL && value->a->kind == AST_NAME && value->count == 1;
    bool bytes = value->kind == AST_NAME && strcmp(value->text, "bytes") == 0;
    Val v = call ? eval(net, scope, value->items[0]) : (Val){0};
    if (bytes) {
        g->text = "bytes";
    } else if (call && v.kind == VAL_STRING && (strcmp(value->a->text, "bpe") == 0 || strcmp(value->a->text, "wordpiece") == 0 ||
                                                strcmp(value->a->text, "characters") == 0)) {
        g->text = value->a->text;
        g->text_from = v.text;
    } else {
        wrong(net, value, "text", "bytes, bpe(\"tokenizer.json\"), wordpiece(\"vocab.txt\") or characters(\"abc\")", "this");
    }
}

static void read_key(Net *net, Scope *scope, Ast *s, Generate *g)
{
    static const char *const keys[] = {"end", "limit", "text"};
    const char *name = s->count == 1 && s->items[0]->kind == AST_NAME ? s->items[0]->text : "";
    double x;
    if (input_named(net->model->infer, name) != NULL) {
        if (g->input != NULL)
            diag_report(net->cx->diag, s->place, MESSAGE_E0512, "what generate draws");
        else
            read_drawing(net, scope, s, g);
    } else if (strcmp(name, "end") == 0) {
        if (number(net, scope, s->b, "end", 0, 2147483647, true, &x))
            g->end = (int64_t)x;
    } else if (strcmp(name, "limit") == 0) {
        if (number(net, scope, s->b, "limit", 1, 2147483647, true, &x))
            g->limit = (int64_t)x;
    } else if (strcmp(name, "text") == 0) {
        read_text(net, scope, s->b, g);
    } else {
        diag_report(net->cx->diag, s->items[0]->place, MESSAGE_E0206, "generate", name);
        diag_help_nearest(net->cx->diag, name, keys, COUNT(keys));
    }
}

void run_generate(Net *net, Scope *scope, Ast *ast)
{
    if (net->model->generate != NULL) {
        diag_report(net->cx->diag, ast->place, MESSAGE_E0512, "generate");
        return;
    }
    Generate *g = NEW(net->arena, Generate);
    *g = (Generate){.end = -1, .limit = 256, .place = ast->place};
    net->model->generate = g;
    for (int i = 0; i < ast->body->count; i++)
        if (ast->body->items[i]->kind == AST_ASSIGN)
            read_key(net, scope, ast->body->items[i], g);
    if (g->input == NULL && net->cx->diag->errors == 0)
        diag_report(net->cx->diag, ast->place, MESSAGE_E0209, "generate", "an input: tokens = sample(logits)");
    later(net, ast, "`generate`", "leave the section out");
}
