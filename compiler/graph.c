// graph.c: how a Graph is made, copied, pruned and changed.
//
// Values and nodes belong to the arena of the compilation. A value's id is its place in graph->values, for ever: passes keep
// what they know about values in arrays by id. The list of nodes is always a valid order of execution.
#include <string.h>

#include "mlc.h"
#include "ops/op.h"

Graph *graph_new(Context *cx, const char *name)
{
    Graph *g = NEW(cx->arena, Graph);
    g->cx = cx;
    g->name = name;
    g->of_param = pointer_map_new(cx->arena);
    return g;
}

static Value *value_new(Graph *g, ValueKind kind, const char *name, Type type)
{
    Value *value = NEW(g->cx->arena, Value);
    *value = (Value){.id = g->values.count, .kind = kind, .name = name, .type = type};
    LIST_ADD(g->cx->arena, g->values, value);
    return value;
}

Value *graph_input(Graph *g, const char *name, Type type, DiagPlace place)
{
    Value *value = value_new(g, VALUE_INPUT, name, type);
    value->index = g->inputs.count;
    value->place = place;
    LIST_ADD(g->cx->arena, g->inputs, value);
    return value;
}

Value *graph_param(Graph *g, Param *param)
{
    Value *value = pointer_map_get(g->of_param, param);
    if (value != NULL)
        return value;
    value = value_new(g, VALUE_PARAM, param->path, param->type);
    value->param = param;
    value->place = param->place;
    pointer_map_set(g->of_param, param, value);
    return value;
}

Value *graph_const(Graph *g, Type type, const void *data)
{
    Value *value = value_new(g, VALUE_CONST, NULL, type);
    value->data = data;
    return value;
}

Value *graph_scratch(Graph *g, const char *name, Type type) { return value_new(g, VALUE_RESULT, name, type); }

// --- Calls -----------------------------------------------------------------------------------------------------------------

// The kind that a row gives to an input, "float" of "x: float?", and whether an element type is of that kind. "like NAME" and
// "any" are left to the shape rule.
static const struct { const char *name; bool floats, ints, bools; } kinds[] = {
    {"float", true, false, false}, {"int", false, true, false}, {"index", false, true, false}, {"bool", false, false, true},
};

static bool kind_takes(const OpDef *op, int input, DType dtype, const char **wanted)
{
    const char *p = op->inputs;
    p += *p == '*';
    for (int i = 0; i < input && *p != 0; i++)
        p += strcspn(p, ","), p += strspn(p, ", ");
    p += strcspn(p, ":,");
    p += strspn(p, ": ");
    for (int i = 0; i < COUNT(kinds); i++) {
        size_t length = strlen(kinds[i].name);
        if (strncmp(p, kinds[i].name, length) != 0 || (p[length] != 0 && strchr(",?* ", p[length]) == NULL))
            continue;
        *wanted = kinds[i].name;
        TypeKind kind = type_def(dtype)->kind;
        return kind == KIND_FLOAT ? kinds[i].floats : kind == KIND_BOOL ? kinds[i].bools : kinds[i].ints;
    }
    return true;
}

static bool owned_by(const OpDef *op, const char *input)
{
    for (int i = 0; i < OWNED_MAX && op->owned[i].input != NULL; i++)
        if (strcmp(op->owned[i].input, input) == 0)
            return true;
    return false;
}

static bool call_fits(const OpCall *call)
{
    const char *names[INPUTS_MAX];
    bool optional[INPUTS_MAX], variadic;
    int count = op_inputs(call->op, names, optional, &variadic);
    Arena *arena = call->cx->arena;
    if (call->n_in > count && !variadic)
        return op_error(call, MESSAGE_E0210, call->op->name, arena_printf(arena, "%d input%s", count, count == 1 ? "" : "s"), call->n_in);
    for (int i = 0; i < (variadic ? call->n_in : count); i++) {
        const Value *in = i < call->n_in ? call->in[i] : NULL;
        const char *wanted, *name = variadic ? names[0] : names[i];
        if (in == NULL && (variadic || (!optional[i] && !owned_by(call->op, name))))
            return op_error(call, MESSAGE_E0209, call->op->name, name);
        if (in != NULL && !kind_takes(call->op, variadic ? 0 : i, in->type.dtype, &wanted))
            return op_error(call, MESSAGE_E0311, arena_printf(arena, "%s of %s", name, call->op->name), wanted, type_text(call->cx, &in->type));
    }
    return true;
}

// What no memory can hold is refused where it is made, so that nobody after has to ask.
static bool sizes_fit(const OpCall *call)
{
    for (int i = 0; i < call->n_out; i++) {
        const Type *type = &call->out[i];
        Size bytes = size_const(call->cx, type_def(type->dtype)->bytes);
        bytes = size_times(call->cx, bytes, shape_count(call->cx, &type->shape));
        int64_t most;
        if (!size_valid(bytes) || (size_known(bytes, &most) && most < 0))
            return op_error(call, MESSAGE_E0313, arena_printf(call->cx->arena, "the size of %s, %s,", call->op->name, type_text(call->cx, type)));
    }
    return true;
}

bool graph_call(Graph *g, OpCall *call, const char *scope, Value **out)
{
    call->n_out = 1;
    if (!call_fits(call) || !call->op->shape(call) || !sizes_fit(call))
        return false;
    Node *node = NEW(g->cx->arena, Node);
    *node = (Node){.id = g->n_made++, .op = call->op, .n_in = call->n_in, .n_out = call->n_out, .scope = scope, .place = call->place};
    node->salt = call->op->traits & OP_RANDOM ? ++g->draws : 0;
    memcpy(node->in, call->in, sizeof node->in);
    memcpy(node->attr, call->attr, sizeof node->attr);
    for (int i = 0; i < call->n_out; i++) {
        out[i] = node->out[i] = value_new(g, VALUE_RESULT, call->op->name, call->out[i]);
        out[i]->node = node;
        out[i]->index = i;
        out[i]->place = call->place;
    }
    LIST_ADD(g->cx->arena, g->nodes, node);
    return true;
}

// --- All values that a graph names ---------------------------------------------------------------------------------------------

void graph_map_wanted(Graph *g, Value *(*map)(void *context, Value *value), void *context)
{
    for (int i = 0; i < g->outputs.count; i++)
        g->outputs.at[i].value = map(context, g->outputs.at[i].value);
    for (int i = 0; i < g->metrics.count; i++)
        g->metrics.at[i].value = map(context, g->metrics.at[i].value);
    for (int i = 0; i < g->auxiliary.count; i++)
        g->auxiliary.at[i].value = map(context, g->auxiliary.at[i].value);
    for (int i = 0; i < g->updates.count; i++)
        g->updates.at[i].value = map(context, g->updates.at[i].value);
    for (int i = 0; i < g->gradients.count; i++)
        if (g->gradients.at[i].value != NULL)
            g->gradients.at[i].value = map(context, g->gradients.at[i].value);
    if (g->loss != NULL)
        g->loss = map(context, g->loss);
}

typedef struct Replacement { Value *from, *to; } Replacement;

static Value *replaced(void *context, Value *value)
{
    const Replacement *r = context;
    return value == r->from ? r->to : value;
}

void graph_replace(Graph *g, Value *from, Value *to)
{
    Replacement r = {from, to};
    for (int i = 0; i < g->nodes.count; i++)
        for (int k = 0; k < g->nodes.at[i]->n_in; k++)
            if (g->nodes.at[i]->in[k] == from)
                g->nodes.at[i]->in[k] = to;
    graph_map_wanted(g, replaced, &r);
}

// --- Copies --------------------------------------------------------------------------------------------------------------------

// A list that grows in the copy leaves the original as it was.
#define LIST_COPY(arena, list) \
    ((list).at = arena_copy((arena), (list).at, sizeof(*(list).at) * (size_t)(list).count), (list).room = (list).count)

static Value *copy_of(void *context, Value *value)
{
    const Graph *copy = context;
    return value != NULL ? copy->values.at[value->id] : NULL;
}

Graph *graph_copy(const Graph *g)
{
    Arena *arena = g->cx->arena;
    Graph *copy = arena_copy(arena, g, sizeof *g);
    LIST_COPY(arena, copy->values);
    LIST_COPY(arena, copy->nodes);
    LIST_COPY(arena, copy->inputs);
    LIST_COPY(arena, copy->outputs);
    LIST_COPY(arena, copy->metrics);
    LIST_COPY(arena, copy->auxiliary);
    LIST_COPY(arena, copy->updates);
    LIST_COPY(arena, copy->gradients);
    copy->of_param = pointer_map_new(arena);
    for (int i = 0; i < copy->values.count; i++) {
        Value *value = copy->values.at[i] = arena_copy(arena, g->values.at[i], sizeof(Value));
        if (value->param != NULL)
            pointer_map_set(copy->of_param, value->param, value);
    }
    for (int i = 0; i < copy->nodes.count; i++) {
        Node *node = copy->nodes.at[i] = arena_copy(arena, g->nodes.at[i], sizeof(Node));
        for (int k = 0; k < node->n_in; k++)
            node->in[k] = copy_of(copy, node->in[k]);
        for (int k = 0; k < node->n_out; k++) {
            node->out[k] = copy_of(copy, node->out[k]);
            node->out[k]->node = node;
        }
    }
    for (int i = 0; i < copy->inputs.count; i++)
        copy->inputs.at[i] = copy_of(copy, copy->inputs.at[i]);
    graph_map_wanted(copy, copy_of, copy);
    return copy;
}

// --- Pruning -------------------------------------------------------------------------------------------------------------------

static Value *mark_wanted(void *context, Value *value)
{
    bool *wanted = context;
    wanted[value->id] = true;
    return value;
}

static bool node_wanted(const Node *node, const bool *wanted)
{
    for (int i = 0; i < node->n_out; i++)
        if (wanted[node->out[i]->id])
            return true;
    return false;
}

void graph_prune(Graph *g)
{
    bool *wanted = NEW_ARRAY(g->cx->arena, bool, g->values.count);
    int kept = 0;
    graph_map_wanted(g, mark_wanted, wanted);
    for (int i = g->nodes.count; i-- > 0;) {
        Node *node = g->nodes.at[i];
        bool keep = node_wanted(node, wanted);
        for (int k = 0; keep && k < node->n_in; k++)
            if (node->in[k] != NULL)
                wanted[node->in[k]->id] = true;
        if (!keep)
            g->nodes.at[i] = NULL;
    }
    for (int i = 0; i < g->nodes.count; i++)
        if (g->nodes.at[i] != NULL)
            g->nodes.at[kept++] = g->nodes.at[i];
    g->nodes.count = kept;
}

// --- Sizes that become known -----------------------------------------------------------------------------------------------------

typedef struct Binding { Context *cx; const int64_t *symbols; } Binding;

static Expr *bind_size(void *context, Expr *e)
{
    const Binding *binding = context;
    return e->kind == EXPR_SIZE ? expr_size(binding->cx, size_with(binding->cx, e->size, binding->symbols)) : e;
}

void graph_bind(Graph *g, const int64_t *symbols)
{
    Binding binding = {g->cx, symbols};
    for (int i = 0; i < g->values.count; i++) {
        Shape *shape = &g->values.at[i]->type.shape;
        for (int k = 0; k < shape->rank; k++)
            shape->dim[k] = size_with(g->cx, shape->dim[k], symbols);
    }
    for (int i = 0; i < g->nodes.count; i++)
        for (int k = 0; k < ATTRS_MAX; k++) {
            Attr *attr = &g->nodes.at[i]->attr[k];
            for (int d = 0; attr->kind == ATTR_SIZES && d < attr->count; d++)
                attr->sizes[d] = size_with(g->cx, attr->sizes[d], symbols);
            if (attr->kind == ATTR_FORMULA)
                attr->formula = expr_rewrite(g->cx, attr->formula, bind_size, &binding);
        }
}

// --- Expansion -------------------------------------------------------------------------------------------------------------------

typedef struct Expansion { Graph *g; bool all, twice, changed; int count; Value **now; } Expansion;     // now: by id; NULL: itself

static Value *value_now(void *context, Value *value)
{
    const Expansion *x = context;
    while (value != NULL && value->id < x->count && x->now[value->id] != NULL)
        value = x->now[value->id];
    return value;
}

static void value_becomes(Expansion *x, Value *from, Value *to)
{
    if (from->id >= x->count) {
        int count = 2 * x->g->values.count;
        Value **now = NEW_ARRAY(x->g->cx->arena, Value *, count);
        memcpy(now, x->now, sizeof(Value *) * (size_t)x->count);
        x->now = now;
        x->count = count;
    }
    x->now[from->id] = to;
}

// An op that has a gradient rule besides stays whole until gradients are made: its rule is better than what would come out of
// its parts. Not where a gradient in the net may be differentiated again: the rules take statistics of the op as given.
static bool is_composite(const Expansion *x, const Node *node)
{
    bool waits = node->op->grad != NULL && x->g->training && x->g->stage < STAGE_DIFFERENTIATED && !x->twice;
    return node->op->expand != NULL && (x->all || !waits);
}

static void emit(Expansion *x, Node *node)
{
    Graph *g = x->g;
    for (int i = 0; i < node->n_in; i++)
        node->in[i] = value_now(x, node->in[i]);
    if (!is_composite(x, node)) {
        LIST_ADD(g->cx->arena, g->nodes, node);
        return;
    }
    Value *out[OUTPUTS_MAX] = {NULL};
    Builder b = {.cx = g->cx, .graph = g, .scope = node->scope, .place = node->place, .phase = node->phase, .training = g->training};
    int first = g->nodes.count, values = g->values.count;
    uint32_t draws = g->draws;
    node->op->expand(&b, node, out);
    // The parts that draw number their draws from the whole's: copies of a graph draw alike, expanded or not.
    int made = g->nodes.count - first;
    Node **parts = arena_copy(g->cx->arena, g->nodes.at + first, sizeof(Node *) * (size_t)made);
    if (node->op->traits & OP_RANDOM && g->draws == draws + 1) {
        for (int i = 0; i < made; i++)
            if (parts[i]->salt != 0)
                parts[i]->salt = node->salt;
        g->draws = draws;
    }
    g->nodes.count = first;
    for (int i = 0; i < made; i++)
        emit(x, parts[i]);
    for (int i = 0; i < node->n_out; i++) {
        Value *now = value_now(x, out[i]);
        if (now == NULL)
            continue;
        if (now->id >= values && node->out[i]->name != NULL)
            now->name = node->out[i]->name;
        value_becomes(x, node->out[i], now);
    }
    x->changed = true;
}

bool graph_expand(Graph *g, bool all, Value ***now)
{
    Expansion x = {.g = g, .all = all, .count = g->values.count};
    x.now = NEW_ARRAY(g->cx->arena, Value *, x.count);
    int count = g->nodes.count;
    for (int i = 0; i < count; i++)
        x.twice |= g->nodes.at[i]->op == op_find("gradient");
    Node **nodes = arena_copy(g->cx->arena, g->nodes.at, sizeof(Node *) * (size_t)count);
    g->nodes.count = 0;
    for (int i = 0; i < count; i++)
        emit(&x, nodes[i]);
    graph_map_wanted(g, value_now, &x);
    if (now != NULL) {
        *now = NEW_ARRAY(g->cx->arena, Value *, g->values.count);
        for (int i = 0; i < g->values.count; i++)
            (*now)[i] = value_now(&x, g->values.at[i]);
    }
    return x.changed;
}
