// expand.c: ops that are defined by other ops are written out, until only plain ones are left. The new nodes stand where the
// old one stood, and its results go on under their names.
//
// An op that has a gradient rule besides stays whole until gradients are made: its rule is better than what would come out
// of its parts.
#include "passes.h"

#include <string.h>

// The nodes from `first` on, which were appended, go to position `at`.
void nodes_place(Graph *g, int first, int at)
{
    int made = g->nodes.count - first;
    Node **fresh = arena_copy(g->cx->arena, g->nodes.at + first, sizeof(Node *) * (size_t)made);
    memmove(g->nodes.at + at + made, g->nodes.at + at, sizeof(Node *) * (size_t)(first - at));
    memcpy(g->nodes.at + at, fresh, sizeof(Node *) * (size_t)made);
}

static bool is_composite(const Graph *g, const Node *node)
{
    bool waits = node->op->grad != NULL && g->training && g->stage < STAGE_DIFFERENTIATED;
    return node->op->expand != NULL && !waits;
}

static void write_out(Graph *g, int at)
{
    Node *node = g->nodes.at[at];
    Value *out[OUTPUTS_MAX] = {NULL};
    Builder b = {.cx = g->cx, .graph = g, .scope = node->scope, .place = node->place, .phase = node->phase, .training = g->training};
    int before = g->nodes.count;
    node->op->expand(&b, node, out);
    for (int i = 0; i < node->n_out; i++) {
        if (out[i] == NULL)
            continue;
        if (out[i]->node != NULL && out[i]->node->id >= node->id && node->out[i]->name != NULL)
            out[i]->name = node->out[i]->name;
        graph_replace(g, node->out[i], out[i]);
    }
    int made = g->nodes.count - before;
    nodes_place(g, before, at);
    memmove(g->nodes.at + at + made, g->nodes.at + at + made + 1, sizeof(Node *) * (size_t)(g->nodes.count - at - made - 1));
    g->nodes.count--;
}

bool pass_expand(Work *work)
{
    bool changed = false;
    for (int i = 0; i < work->graph->nodes.count;) {
        if (is_composite(work->graph, work->graph->nodes.at[i])) {
            write_out(work->graph, i);
            changed = true;
        } else
            i++;
    }
    return changed;
}
