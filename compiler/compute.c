// compute.c: the pull form of a node: one element of an output as a formula over loads of the inputs.
//
// A row says it directly (`compute`), or by a formula of its elements; then each input is loaded at the element's place, with
// numpy's broadcasting.
#include "mlc.h"
#include "ops/op.h"

static Expr *load_broadcast(Context *cx, Value *value, int rank)
{
    const Shape *shape = &value->type.shape;
    Expr *index[RANK_MAX];
    for (int i = 0; i < shape->rank; i++) {
        index[i] = size_is(shape->dim[i], 1) ? expr_whole(cx, 0) : expr_index(cx, i + rank - shape->rank);
    }
    return expr_load(cx, value, shape->rank, index);
}

typedef struct Arguments { Context *cx; const Node *node; int rank; } Arguments;

static Expr *take_argument(void *context, Expr *e)
{
    const Arguments *arguments = context;
    return e->kind == EXPR_ARG ? load_broadcast(arguments->cx, arguments->node->in[e->arg], arguments->rank) : e;
}

bool node_compute(Context *cx, const Node *node, int output, Compute *out)
{
    *out = (Compute){.rank = node->out[output]->type.shape.rank};
    for (int i = 0; i < out->rank; i++)
        out->extent[i] = node->out[output]->type.shape.dim[i];
    if (node->op->compute != NULL) {
        node->op->compute(cx, node, output, out);
        return out->body != NULL;
    }
    Arguments arguments = {cx, node, out->rank};
    Expr *formula = op_formula(cx, node);
    if (formula != NULL)
        out->body = expr_rewrite(cx, formula, take_argument, &arguments);
    return out->body != NULL;
}
