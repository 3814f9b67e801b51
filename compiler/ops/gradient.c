// gradient.c: gradients as values of the model: for equations with derivatives in them, forces, penalties on gradients.
#include "op.h"

// Whether y is made from x, by values that carry gradients.
static bool depends(Context *cx, PointerMap *seen, const Value *y, const Value *x)
{
    if (y == x)
        return true;
    if (y == NULL || y->node == NULL || pointer_map_get(seen, y) != NULL || (y->node->op->no_grad != NULL && !y->node->op->once))
        return false;
    pointer_map_set(seen, y, cx);
    for (int i = 0; i < y->node->n_in; i++)
        if (depends(cx, seen, y->node->in[i], x))
            return true;
    return false;
}

static bool gradient_shape(OpCall *call)
{
    Context *cx = call->cx;
    if (!depends(cx, pointer_map_new(cx->arena), call->in[0], call->in[1]))
        return op_error(call, MESSAGE_E0322, op_input_name(call, 0), op_input_name(call, 1));
    return op_one(call, call->in[1]->type);
}

static void gradient_expand(Builder *b, const Node *node, Value **out)
{
    out[0] = build_gradient(b, node->in[0], node->in[1]);
    if (out[0] == NULL)                                 // after a diagnostic; the value is never used
        out[0] = build_repeat_to(b, build_number(b, node->in[1]->type.dtype, 0), &node->in[1]->type.shape);
}

const OpDef op_gradient = {
    .name = "gradient", .brief = "the derivative of the sum of y by x, of the shape of x", .inputs = "y: float, x: float", .outputs = "dx",
    .doc = "Reverse mode (Linnainmaa 1970) on the graph: the result is a value like others and can be differentiated again, also by the\n"
           "training itself, as far as the ops on the way have second derivatives. x is an input, a parameter or any value that y is made\n"
           "from. For each row of a batch on its own, let rows of y depend on their own rows of x only: then the sum's derivative is each row's.",
    .example = "u = tanh(dense(x, 16))\nu_x = gradient(sum(u), x)", .shape = gradient_shape, .expand = gradient_expand, .along = "mixes", .precision = "any",
};
