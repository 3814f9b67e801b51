// builder.c: nodes made from C, in gradients, expansions and passes. ops/builds.c has what rows need besides.
#include <string.h>

#include "mlc.h"
#include "ops/op.h"

// "axis = 1, keep = true, shape = [2, 3]"
static void read_attrs(Builder *b, OpCall *call, const char *attrs)
{
    for (const char *p = attrs + strspn(attrs, " ,"); *p != 0; p += strspn(p, " ,")) {
        const char *name = arena_string(b->cx->arena, p, strcspn(p, " ="));
        p += strlen(name);
        p += strspn(p, " =");
        size_t length = *p == '[' ? strcspn(p, "]") + 1 : strcspn(p, ",");
        const char *value = arena_string(b->cx->arena, p, length);
        p += length;
        int at = 0;
        while (at < ATTRS_MAX && call->op->attrs[at].name != NULL && strcmp(call->op->attrs[at].name, name) != 0)
            at++;
        if (at == ATTRS_MAX || call->op->attrs[at].name == NULL)
            BUG("%s has no attribute %s", call->op->name, name);
        attr_read(b->cx, &call->op->attrs[at], value, &call->attr[at]);
    }
}

Value *build(Builder *b, const char *op, int n_in, Value *const *in, const char *attrs)
{
    OpCall call = call_new(b, op, n_in, in);
    read_attrs(b, &call, attrs);
    return op_build(b, &call);
}

Value *build1(Builder *b, const char *op, Value *x, const char *attrs) { return build(b, op, 1, &x, attrs); }

Value *build2(Builder *b, const char *op, Value *x, Value *y, const char *attrs) { return build(b, op, 2, (Value *[]){x, y}, attrs); }

Value *build_map(Builder *b, const char *formula, int n_in, Value *const *in)
{
    static const char *const names[INPUTS_MAX] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"};
    Expr *arg[INPUTS_MAX];
    for (int i = 0; i < n_in; i++)
        arg[i] = expr_arg(b->cx, in[i]->type.dtype, i);
    return build_formula(b, expr_parse(b->cx, formula, names, arg, n_in), n_in, in);
}

Value *build_number(Builder *b, DType type, double number)
{
    Tensor *tensor = tensor_new(b->cx->arena, type, 0, NULL);
    tensor_set(tensor, 0, number);
    return graph_const(b->graph, type_of(type, 0, NULL), tensor->data);
}

Value *build_sum_to(Builder *b, Value *x, const Shape *shape)
{
    bool axes[RANK_MAX] = {false}, any = false;
    int more = x->type.shape.rank - shape->rank;
    for (int i = 0; i < x->type.shape.rank; i++) {
        axes[i] = i < more || (size_is(shape->dim[i - more], 1) && !size_is(x->type.shape.dim[i], 1));
        any |= axes[i];
    }
    if (!any)
        return x;
    Value *sum = build_reduce(b, "sum", x, axes, false);
    return shape_equal(&sum->type.shape, shape) ? sum : build_reshape(b, sum, shape);
}

Value *build_reshape(Builder *b, Value *x, const Shape *shape)
{
    OpCall call = call_new(b, "reshape", 1, &x);
    call_sizes(&call, "shape", shape->rank, shape->dim);
    return op_build(b, &call);
}
