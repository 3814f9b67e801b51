// verify.c: what holds of a Graph at each stage. The runner of the passes checks it after every pass, so a pass that breaks
// something is named at once.
//
//   always            values know their ids, nodes use what comes before them, results know who makes them, all that is named
//                     is of this graph
//   up to DIFFERENTIATED   the types are what the row's shape rule says
//   from PLAIN        only plain ops, but for those that wait for gradients
//   DIFFERENTIATED    no composites; a gradient has its parameter's shape
#include <string.h>

#include "mlc.h"

typedef struct Check { const Graph *g; bool *made; Context *scratch; } Check;

#define NODE_BUG(node, ...) \
    BUG("%s (%s, node %d): %s", (node)->op->name, (node)->scope != NULL ? (node)->scope : "", (node)->id, \
        arena_printf(check->scratch->arena, __VA_ARGS__))

static bool is_here(const Graph *g, const Value *value)
{
    return value->id >= 0 && value->id < g->values.count && g->values.at[value->id] == value;
}

static const char *value_text(const Check *check, const Value *value)
{
    return arena_printf(check->scratch->arena, "%s_%d", value->name != NULL ? value->name : "const", value->id);
}

static void check_inputs(const Check *check, const Node *node)
{
    for (int i = 0; i < node->n_in; i++) {
        const Value *in = node->in[i];
        if (in == NULL)
            continue;
        if (!is_here(check->g, in))
            NODE_BUG(node, "input %d is of another graph", i);
        if (in->node != NULL && !check->made[in->id])
            NODE_BUG(node, "%s is used before it is made", value_text(check, in));
        if (in->kind == VALUE_RESULT && in->node == NULL && check->g->stage < STAGE_FUSED)
            NODE_BUG(node, "nobody makes %s", value_text(check, in));
    }
}

static void check_outputs(const Check *check, const Node *node)
{
    for (int i = 0; i < node->n_out; i++) {
        const Value *out = node->out[i];
        if (out == NULL || !is_here(check->g, out))
            NODE_BUG(node, "output %d is of another graph", i);
        if (out->node != node || out->index != i || out->kind != VALUE_RESULT)
            NODE_BUG(node, "%s does not know that this node makes it", value_text(check, out));
        if (check->made[out->id])
            NODE_BUG(node, "%s is made twice", value_text(check, out));
        check->made[out->id] = true;
    }
}

// The shape rule once more, with messages and memory of its own.
static void check_types(Check *check, const Node *node)
{
    OpCall call = {.cx = check->scratch, .op = node->op, .place = node->place, .n_in = node->n_in, .n_out = 1, .training = check->g->training};
    memcpy(call.in, node->in, sizeof call.in);
    memcpy(call.attr, node->attr, sizeof call.attr);
    if (!node->op->shape(&call))
        NODE_BUG(node, "its shape rule refuses it now");
    if (call.n_out != node->n_out)
        NODE_BUG(node, "it has %d outputs, its shape rule says %d", node->n_out, call.n_out);
    for (int i = 0; i < node->n_out; i++)
        if (!type_equal(&call.out[i], &node->out[i]->type))
            NODE_BUG(node, "%s is %s, its shape rule says %s", value_text(check, node->out[i]), type_text(check->scratch, &node->out[i]->type),
                     type_text(check->scratch, &call.out[i]));
}

static void check_plain(const Check *check, const Node *node)
{
    bool waits = node->op->grad != NULL && check->g->training && check->g->stage < STAGE_FUSED;     // expand2 comes after grad
    if (check->g->stage >= STAGE_PLAIN && node->op->expand != NULL && !waits)
        NODE_BUG(node, "it is not written out");
}

static Value *check_wanted(void *context, Value *value)
{
    const Check *check = context;
    if (!is_here(check->g, value) || (value->node != NULL && !check->made[value->id]))
        BUG("%s is named by the graph, and nothing makes it", value_text(check, value));
    return value;
}

static void check_gradients(const Check *check)
{
    for (int i = 0; i < check->g->gradients.count; i++) {
        const Gradient *gradient = &check->g->gradients.at[i];
        if (gradient->value != NULL && !type_equal(&gradient->value->type, &gradient->param->type))
            BUG("the gradient of %s is %s", gradient->param->path, type_text(check->scratch, &gradient->value->type));
    }
}

void graph_verify(const Graph *g)
{
    Arena *arena = arena_new();
    Context scratch = *g->cx;
    scratch.arena = arena;
    scratch.diag = diag_new(arena);
    Check check = {g, NEW_ARRAY(arena, bool, g->values.count), &scratch};
    for (int i = 0; i < g->values.count; i++)
        if (g->values.at[i]->id != i)
            BUG("value %d says that it is value %d", i, g->values.at[i]->id);
    for (int i = 0; i < g->nodes.count; i++) {
        const Node *node = g->nodes.at[i];
        check_inputs(&check, node);
        check_outputs(&check, node);
        check_plain(&check, node);
        if (g->stage <= STAGE_DIFFERENTIATED)
            check_types(&check, node);
    }
    graph_map_wanted((Graph *)(uintptr_t)g, check_wanted, &check);      // which changes nothing
    check_gradients(&check);
    arena_free(arena);
}
