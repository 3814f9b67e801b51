// fold.c: what depends on constants alone is computed when compiling, by the interpreter, so that it is what the program
// would have computed. Results larger than what they come from stay formulas: a constant is text in the generated program.
#include "passes.h"

enum { SMALL = 4096, LARGEST = 64 << 20 };

static bool bytes_of(const Value *value, int64_t *bytes)
{
    *bytes = type_def(value->type.dtype)->bytes;
    for (int i = 0; i < value->type.shape.rank; i++) {
        int64_t n;
        if (!size_known(value->type.shape.dim[i], &n) || !size_mul(*bytes, n, bytes))
            return false;
    }
    return true;
}

static bool folds(const Node *node)
{
    int64_t taken = SMALL, bytes;
    if ((node->op->traits & (OP_RANDOM | OP_FITTED)) || node->n_in == 0 || op_reshapes(node->op))
        return false;
    for (int i = 0; i < node->n_in; i++) {
        const Value *in = node->in[i];
        if (in != NULL && (in->kind != VALUE_CONST || !bytes_of(in, &bytes)))
            return false;
        taken += in != NULL ? bytes : 0;
    }
    for (int i = 0; i < node->n_out; i++)
        if (!bytes_of(node->out[i], &bytes) || bytes > taken || bytes > LARGEST)
            return false;
    return true;
}

// A named size is a number only while the program runs: 1 / N is no constant.
static bool names_size(const Expr *e)
{
    int64_t n;
    if (e == NULL || (e->kind == EXPR_SIZE && !size_known(e->size, &n)))
        return e != NULL;
    for (int i = 0; i < e->count; i++)
        if (names_size(e->operand[i]))
            return true;
    return false;
}

static bool needs_sizes(Work *work, const Node *node)
{
    int64_t n;
    for (int i = 0; i < ATTRS_MAX && node->op->attrs[i].name != NULL; i++)
        for (int k = 0; node->attr[i].kind == ATTR_SIZES && k < node->attr[i].count; k++)
            if (!size_known(node->attr[i].sizes[k], &n))
                return true;
    for (int k = 0; k < node->n_out; k++) {
        Compute compute = {0};
        if (!node_compute(work->cx, node, k, &compute))
            return true;                                // a row without a pull form is not looked into
        if (names_size(compute.body))
            return true;
        for (int i = 0; i < compute.reduced; i++)
            if (!size_known(compute.reduced_extent[i], &n))
                return true;
    }
    return false;
}

// The graph of this node alone.
static bool compute(Work *work, Node *node, Eval *eval)
{
    Graph one = *work->graph;
    one.nodes.at = &node;
    one.nodes.count = one.nodes.room = 1;
    one.inputs.count = 0;
    *eval = (Eval){.arena = work->cx->arena, .at = NEW_ARRAY(work->cx->arena, Tensor *, work->graph->values.count),
                   .symbols = NEW_ARRAY(work->cx->arena, int64_t, map_count(work->cx->symbols) + 1)};
    return eval_graph(&one, eval);
}

bool pass_fold(Work *work)
{
    Graph *g = work->graph;
    bool changed = false;
    for (int i = 0; i < g->nodes.count; i++) {
        Node *node = g->nodes.at[i];
        Eval eval;
        if (!folds(node) || needs_sizes(work, node) || !compute(work, node, &eval))
            continue;
        for (int k = 0; k < node->n_out; k++)
            graph_replace(g, node->out[k], graph_const(g, node->out[k]->type, eval.at[node->out[k]->id]->data));
        changed = true;
    }
    graph_prune(g);
    return changed;
}
