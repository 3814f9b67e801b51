// bounds.c: integers from data that say where to read or write. None may reach memory that is not the value's own.
//
// An index that is an element of an input, as it stands, bounds that input: the smallest axis that it indexes is noted as
// Value.below, and whoever brings the input checks all of it before a step runs (the trainer when it loads data, an object
// when it is called). Any other index that comes from memory is compared where it is used: outside of its axis, a read gives
// NaN (0 for integers), so that training stops there, and a write does nothing.
#include "codegen.h"

// The input whose elements `e` takes as they are, widened at most; NULL: none.
static Value *index_input(const Program *program, const Expr *e)
{
    while (e->kind == EXPR_CAST && !type_is_float(e->operand[0]->type) &&
           type_def(e->type)->bytes >= type_def(e->operand[0]->type)->bytes)
        e = e->operand[0];
    const Buffer *home = e->kind == EXPR_LOAD ? buffer_home(program, e->value) : NULL;
    bool whole = home != NULL && home->space == SPACE_INPUT && home->value->type.dtype == e->value->type.dtype;
    return whole && type_def(e->type)->kind != KIND_BOOL ? home->value : NULL;
}

static bool axis_of(const Value *value, int count, int i, int64_t *extent)
{
    return count == value->type.shape.rank && size_known(value->type.shape.dim[i], extent);
}

static void bound_index(const Program *program, const Value *value, int count, Expr *const *index)
{
    int64_t extent;
    for (int i = 0; i < count; i++) {
        Value *input = index_input(program, index[i]);
        if (input != NULL && axis_of(value, count, i, &extent) && extent > 0 &&
            (input->below == 0 || extent < input->below))
            input->below = extent;
    }
}

static void bound_expr(const Program *program, const Expr *e)
{
    if (e->kind == EXPR_LOAD)
        bound_index(program, e->value, e->count, e->operand);
    for (int i = 0; i < e->count; i++)
        bound_expr(program, e->operand[i]);
}

static void bound_loop(const Program *program, const Loop *loop)
{
    const Expr *const parts[] = {loop->from, loop->to, loop->value};
    for (int i = 0; i < COUNT(parts); i++)
        if (parts[i] != NULL)
            bound_expr(program, parts[i]);
    if (loop->target != NULL)
        bound_index(program, loop->target, loop->count, loop->index);
    for (int i = 0; loop->target != NULL && i < loop->count; i++)
        bound_expr(program, loop->index[i]);
    for (int i = 0; i < loop->body.count; i++)
        bound_loop(program, loop->body.at[i]);
    if (loop->other != NULL)
        bound_loop(program, loop->other);
}

void index_bounds(const Program *program)
{
    for (int i = 0; i < program->steps.count; i++)
        if (program->steps.at[i]->loops != NULL)
            bound_loop(program, program->steps.at[i]->loops);
}

bool index_is_checked(const Program *program, const Value *value, int count, Expr *const *index, int i)
{
    int64_t extent;
    const Value *input = index_input(program, index[i]);
    return input != NULL && input->below > 0 && axis_of(value, count, i, &extent) && input->below <= extent;
}
