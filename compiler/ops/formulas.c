// formulas.c: what the pull and push forms of rows are put together from.
#include <math.h>

#include "op.h"

// --- indices --------------------------------------------------------------------------------------------------------------------

static bool is_whole(const Expr *e, int64_t n)
{
    int64_t known;
    return (e->kind == EXPR_NUMBER && e->type == TYPE_i64 && e->whole == n) || (e->kind == EXPR_SIZE && size_known(e->size, &known) && known == n);
}

Expr *e_axis(Context *cx, int axis)  { return expr_index(cx, axis); }
Expr *e_whole(Context *cx, int64_t n) { return expr_whole(cx, n); }

Expr *e_size(Context *cx, Size size) { return expr_size(cx, size); }

Expr *e_prim(Context *cx, PrimId prim, Expr *a, Expr *b) { return expr_prim(cx, prim, a, b, NULL); }

Expr *e_add(Context *cx, Expr *a, Expr *b) { return is_whole(a, 0) ? b : is_whole(b, 0) ? a : e_prim(cx, PRIM_add, a, b); }
Expr *e_sub(Context *cx, Expr *a, Expr *b) { return is_whole(b, 0) ? a : e_prim(cx, PRIM_sub, a, b); }

Expr *e_mul(Context *cx, Expr *a, Expr *b)
{
    if (is_whole(a, 0) || is_whole(b, 1))
        return a;
    return is_whole(b, 0) || is_whole(a, 1) ? b : e_prim(cx, PRIM_mul, a, b);
}

Expr *e_div(Context *cx, Expr *a, int64_t b) { return b == 1 ? a : e_prim(cx, PRIM_floordiv, a, e_whole(cx, b)); }
Expr *e_mod(Context *cx, Expr *a, int64_t b) { return b == 1 ? e_whole(cx, 0) : e_prim(cx, PRIM_mod, a, e_whole(cx, b)); }

// --- values -----------------------------------------------------------------------------------------------------------------------

Expr *e_select(Context *cx, Expr *condition, Expr *a, Expr *b) { return expr_prim(cx, PRIM_select, condition, a, b); }
Expr *e_and(Context *cx, Expr *a, Expr *b) { return a == NULL ? b : b == NULL ? a : e_prim(cx, PRIM_and, a, b); }

Expr *e_value(Context *cx, DType type, double x)
{
    return type_is_float(type) ? expr_number(cx, type, x) : expr_cast(cx, type, expr_whole(cx, (int64_t)x));
}

Expr *e_zero(Context *cx, DType type) { return e_value(cx, type, 0); }

static double integer_bound(DType type, bool most)
{
    const TypeDef *def = type_def(type);
    if (def->kind == KIND_BOOL || def->kind == KIND_UINT)
        return most ? (def->kind == KIND_BOOL ? 1 : ldexp(1, 8 * def->bytes) - 1) : 0;
    return most ? ldexp(1, 8 * def->bytes - 1) - 1 : -ldexp(1, 8 * def->bytes - 1);
}

static Expr *bound(Context *cx, DType type, bool most)
{
    if (type_is_float(type))
        return expr_number(cx, type, most ? INFINITY : -INFINITY);
    if (type == TYPE_i64)
        return expr_whole(cx, most ? INT64_MAX : INT64_MIN);
    return e_value(cx, type, integer_bound(type, most));
}

Expr *e_least(Context *cx, DType type)    { return bound(cx, type, false); }
Expr *e_greatest(Context *cx, DType type) { return bound(cx, type, true); }

Expr *e_where(Context *cx, Expr *condition, Expr *a, double otherwise)
{
    return condition == NULL ? a : e_select(cx, condition, a, e_value(cx, a->type, otherwise));
}

Expr *e_load(Context *cx, Value *value, Expr *const *index) { return expr_load(cx, value, value->type.shape.rank, index); }

Expr *e_index(Context *cx, Value *value, Expr *const *index)
{
    Expr *e = e_load(cx, value, index);
    return e->type == TYPE_i64 ? e : expr_cast(cx, TYPE_i64, e);
}

Expr *e_place(Context *cx, Value *value, Expr *const *index, Size extent)
{
    Expr *at = e_index(cx, value, index);
    return type_def(value->type.dtype)->kind == KIND_UINT ? at : e_select(cx, e_prim(cx, PRIM_lt, at, e_whole(cx, 0)), e_add(cx, at, e_size(cx, extent)), at);
}

// --- computes -----------------------------------------------------------------------------------------------------------------------

void compute_over(Compute *out, const Shape *shape)
{
    *out = (Compute){.rank = shape->rank, .reduce = REDUCE_NONE};
    for (int i = 0; i < shape->rank; i++)
        out->extent[i] = shape->dim[i];
}

int compute_reduce(Compute *out, Reduce reduce, Size extent)
{
    out->reduce = reduce;
    CHECK(out->reduced < RANK_MAX);
    out->reduced_extent[out->reduced] = extent;
    return out->rank + out->reduced++;
}

static Expr *number_of(Context *cx, DType type, const Attr *attr)
{
    if (attr->kind == ATTR_FLOAT)
        return expr_number(cx, type_is_float(type) ? type : TYPE_f32, attr->f);
    return attr->kind == ATTR_INT || attr->kind == ATTR_BOOL ? e_value(cx, type, (double)attr->i) : NULL;
}

Expr *op_formula(Context *cx, const Node *node)
{
    const char *names[INPUTS_MAX + ATTRS_MAX];
    Expr *values[INPUTS_MAX + ATTRS_MAX];
    bool optional[INPUTS_MAX], variadic;
    const OpDef *op = node->op;
    if (strcmp(op->name, "map") == 0)
        return node_attr(node, "formula")->formula;
    if (op->formula == NULL)
        return NULL;
    int count = op_inputs(op, names, optional, &variadic);
    for (int i = 0; i < count; i++)
        values[i] = expr_arg(cx, node->in[i]->type.dtype, i);
    DType type = node->out[0]->type.dtype;
    for (int i = 0; i < ATTRS_MAX && op->attrs[i].name != NULL; i++) {
        Expr *number = number_of(cx, type, &node->attr[i]);
        names[count] = op->attrs[i].name;
        values[count] = number;
        count += number != NULL;
    }
    return expr_parse(cx, op->formula, names, values, count);
}

// --- loop trees -----------------------------------------------------------------------------------------------------------------------

Nest nest_new(Context *cx)
{
    Loop *root = loop_new(cx, LOOP_BLOCK);
    return (Nest){.cx = cx, .root = root, .at = root};
}

Expr *nest_for(Nest *nest, int var, Size extent, AxisMark mark)
{
    Loop *loop = loop_for(nest->cx, var, mark, e_whole(nest->cx, 0), e_size(nest->cx, extent));
    loop_add(nest->cx, nest->at, loop);
    nest->at = loop;
    return e_axis(nest->cx, var);
}

static Expr *add_local(Nest *nest, LoopKind kind, DType type, Expr *value)
{
    Loop *loop = loop_new(nest->cx, kind);
    loop->var = nest->locals++;
    loop->type = type;
    loop->value = value;
    loop_add(nest->cx, nest->at, loop);
    return expr_local(nest->cx, type, loop->var);
}

Expr *nest_local(Nest *nest, DType type, Expr *start) { return add_local(nest, LOOP_ACCUMULATOR, type, start); }
Expr *nest_let(Nest *nest, Expr *value)               { return add_local(nest, LOOP_LET, value->type, value); }

void nest_if(Nest *nest, Expr *condition)
{
    if (condition == NULL)
        return;
    Loop *loop = loop_new(nest->cx, LOOP_IF);
    loop->value = condition;
    loop_add(nest->cx, nest->at, loop);
    nest->at = loop;
}

void nest_update(Nest *nest, Expr *local, Reduce reduce, Expr *value)
{
    Loop *loop = loop_new(nest->cx, LOOP_UPDATE);
    loop->var = local->var;
    loop->type = local->type;
    loop->reduce = reduce;
    loop->value = value;
    loop_add(nest->cx, nest->at, loop);
}

static void store(Nest *nest, LoopKind kind, Value *target, Expr *const *index, Reduce reduce, Expr *value)
{
    Loop *loop = loop_new(nest->cx, kind);
    loop->target = target;
    loop->count = target->type.shape.rank;
    for (int i = 0; i < loop->count; i++)
        loop->index[i] = index[i];
    loop->value = value;
    loop->reduce = reduce;
    loop_add(nest->cx, nest->at, loop);
}

void nest_store(Nest *nest, Value *target, Expr *const *index, Expr *value)   { store(nest, LOOP_STORE, target, index, REDUCE_NONE, value); }
void nest_scatter(Nest *nest, Value *target, Expr *const *index, Expr *value) { store(nest, LOOP_UPDATE, target, index, REDUCE_SUM, value); }

void nest_join(Nest *nest, Value *target, Expr *const *index, Reduce reduce, Expr *value)
{
    store(nest, reduce == REDUCE_NONE ? LOOP_STORE : LOOP_UPDATE, target, index, reduce, value);
}

void nest_fill(Nest *nest, Value *target, Expr *value)
{
    Loop *at = nest->at;
    Expr *index[RANK_MAX];
    for (int i = 0; i < target->type.shape.rank; i++)
        index[i] = nest_for(nest, i, target->type.shape.dim[i], AXIS_SERIAL);
    nest_store(nest, target, index, value);
    nest->at = at;
}
