// builds.c: nodes made from C, where `build` of mlc.h is not enough: sizes that are not numbers, several outputs, formulas.
#include <stdlib.h>

#include "op.h"

// --- attributes -----------------------------------------------------------------------------------------------------------------

static void read_list(Context *cx, const AttrDef *def, const char *text, Attr *attr)
{
    for (const char *p = text + strspn(text, "[ "); *p != 0 && *p != ']'; p += strspn(p, ", ")) {
        char *end;
        int64_t n = strtoll(p, &end, 10);
        if (end == p || attr->count >= (def->kind == ATTR_SIZES ? COUNT(attr->sizes) : COUNT(attr->ints)))
            BUG("attribute %s: %s", def->name, text);
        if (def->kind == ATTR_SIZES)
            attr->sizes[attr->count++] = size_const(cx, n);
        else
            attr->ints[attr->count++] = n;
        p = end;
    }
}

void attr_read(Context *cx, const AttrDef *def, const char *text, Attr *attr)
{
    *attr = (Attr){.kind = def->kind};
    if (text[0] == 0)
        attr->kind = ATTR_NONE;
    else if (def->kind == ATTR_BOOL)
        attr->i = strcmp(text, "true") == 0;
    else if (def->kind == ATTR_TYPE && type_find(text) != TYPE_NONE)
        attr->type = type_find(text);
    else if (strchr("-0123456789[.", text[0]) == NULL) {
        attr->kind = ATTR_WORD;
        attr->word = name_intern(cx->names, text, strlen(text));
    } else if (def->kind == ATTR_INT)
        attr->i = strtoll(text, NULL, 10);
    else if (def->kind == ATTR_FLOAT)
        attr->f = strtod(text, NULL);
    else
        read_list(cx, def, text, attr);
}

OpCall call_new(Builder *b, const char *name, int n_in, Value *const *in)
{
    const OpDef *op = op_find(name);
    if (op == NULL)
        BUG("no op is called %s", name);
    OpCall call = {.cx = b->cx, .op = op, .place = b->place, .n_in = n_in, .training = b->training};
    for (int i = 0; i < n_in; i++)
        call.in[i] = in[i];
    for (int i = 0; i < ATTRS_MAX && op->attrs[i].name != NULL; i++)
        if (op->attrs[i].initial != NULL)
            attr_read(b->cx, &op->attrs[i], op->attrs[i].initial, &call.attr[i]);
    return call;
}

static Attr *attr_at(OpCall *call, const char *name)
{
    for (int i = 0; i < ATTRS_MAX && call->op->attrs[i].name != NULL; i++)
        if (strcmp(call->op->attrs[i].name, name) == 0)
            return &call->attr[i];
    BUG("%s has no attribute %s", call->op->name, name);
}

void call_int(OpCall *call, const char *attr, int64_t value)     { *attr_at(call, attr) = (Attr){.kind = ATTR_INT, .i = value}; }
void call_float(OpCall *call, const char *attr, double value)    { *attr_at(call, attr) = (Attr){.kind = ATTR_FLOAT, .f = value}; }
void call_type(OpCall *call, const char *attr, DType type)       { *attr_at(call, attr) = (Attr){.kind = ATTR_TYPE, .type = type}; }

void call_bool(OpCall *call, const char *attr, bool value) { *attr_at(call, attr) = (Attr){.kind = ATTR_BOOL, .i = value}; }

void call_word(OpCall *call, const char *attr, const char *word)
{
    *attr_at(call, attr) = (Attr){.kind = ATTR_WORD, .word = name_intern(call->cx->names, word, strlen(word))};
}

void call_ints(OpCall *call, const char *attr, int count, const int64_t *values)
{
    Attr *a = attr_at(call, attr);
    *a = (Attr){.kind = ATTR_INTS, .count = count};
    CHECK(count <= COUNT(a->ints));
    memcpy(a->ints, values, sizeof(int64_t) * (size_t)count);
}

void call_sizes(OpCall *call, const char *attr, int count, const Size *sizes)
{
    Attr *a = attr_at(call, attr);
    *a = (Attr){.kind = ATTR_SIZES, .count = count};
    for (int i = 0; i < count; i++)
        a->sizes[i] = sizes[i];
}

void call_same(OpCall *call, const Node *node)
{
    for (int i = 0; i < ATTRS_MAX && call->op->attrs[i].name != NULL; i++)
        for (int j = 0; j < ATTRS_MAX && node->op->attrs[j].name != NULL; j++)
            if (strcmp(call->op->attrs[i].name, node->op->attrs[j].name) == 0)
                call->attr[i] = node->attr[j];
}

void op_build_all(Builder *b, OpCall *call, Value **out)
{
    Value *made[OUTPUTS_MAX] = {NULL};
    if (!graph_call(b->graph, call, b->scope, made))
        BUG("%s cannot be called so", call->op->name);
    made[0]->node->phase = b->phase;
    for (int i = 0; i < made[0]->node->n_out; i++)
        out[i] = made[i];
}

Value *op_build(Builder *b, OpCall *call)
{
    Value *out[OUTPUTS_MAX];
    op_build_all(b, call, out);
    return out[0];
}

// --- what rows often need -----------------------------------------------------------------------------------------------------------

Value *build_cast(Builder *b, Value *x, DType type)
{
    if (x->type.dtype == type)
        return x;
    OpCall call = call_new(b, "cast", 1, &x);
    call_type(&call, "type", type);
    return op_build(b, &call);
}

Value *build_slice(Builder *b, Value *x, int axis, Size from, Size count, int64_t step)
{
    OpCall call = call_new(b, "slice", 1, &x);
    call_int(&call, "axis", axis);
    call_sizes(&call, "from", 1, &from);
    call_sizes(&call, "count", 1, &count);
    call_int(&call, "step", step);
    return op_build(b, &call);
}

Value *build_repeat_to(Builder *b, Value *x, const Shape *shape)
{
    if (shape_equal(&x->type.shape, shape))
        return x;
    OpCall call = call_new(b, "broadcast_to", 1, &x);
    call_sizes(&call, "shape", shape->rank, shape->dim);
    return op_build(b, &call);
}

Value *build_reduce(Builder *b, const char *op, Value *x, const bool *axes, bool keep)
{
    int64_t list[RANK_MAX];
    int count = 0;
    for (int i = 0; i < x->type.shape.rank; i++)
        if (axes[i])
            list[count++] = i;
    if (count == 0)
        return x;
    OpCall call = call_new(b, op, 1, &x);
    call_ints(&call, "axis", count, list);
    call_bool(&call, "keep", keep);
    return op_build(b, &call);
}

Value *build_per(Builder *b, Value *x, Size times, Size by)
{
    OpCall call = call_new(b, "per", 1, &x);
    call_sizes(&call, "times", 1, &times);
    call_sizes(&call, "by", 1, &by);
    return op_build(b, &call);
}

Value *build_keep_axes(Builder *b, Value *x, const Shape *whole, const bool *axes)
{
    Shape shape = shape_without(b->cx, whole, axes, true);
    return shape_equal(&shape, &x->type.shape) ? x : build_reshape(b, x, &shape);
}

Value *build_formula(Builder *b, Expr *formula, int n_in, Value *const *in)
{
    OpCall call = call_new(b, "map", n_in, in);
    *attr_at(&call, "formula") = (Attr){.kind = ATTR_FORMULA, .formula = formula};
    return op_build(b, &call);
}
