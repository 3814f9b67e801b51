// expand.c: ops that are defined by other ops are written out, until only plain ones are left (graph_expand). An op that has a
// gradient rule besides stays whole until gradients are made.
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

bool pass_expand(Work *work) { return graph_expand(work->graph, false, NULL); }
