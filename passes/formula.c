// formula.c: what passes do with formulas: take a node's pull form, write one formula into another, count what it costs.
//
// Substitution works on loads: a load of an inlined value becomes that value's formula at the load's indices. Each primitive
// stays as it was, so the bits stay as they were.
#include "passes.h"

#include <string.h>

#include "../compiler/ops/op.h"

// --- Substitution ----------------------------------------------------------------------------------------------------------

typedef struct Places { int count; Expr *const *index; } Places;

static Expr *place_index(void *context, Expr *e)
{
    const Places *places = context;
    return e->kind == EXPR_INDEX && e->var < places->count ? places->index[e->var] : e;
}

Expr *compute_at(Context *cx, const Compute *compute, Expr *const *index)
{
    Places places = {compute->rank, index};
    return expr_rewrite(cx, compute->body, place_index, &places);
}

// --- Indices ----------------------------------------------------------------------------------------------------------------

bool expr_is_whole(const Expr *e, int64_t whole)
{
    int64_t n;
    if (e->kind == EXPR_SIZE)
        return size_known(e->size, &n) && n == whole;
    return e->kind == EXPR_NUMBER && !type_is_float(e->type) && e->whole == whole;
}

Expr *index_plus(Context *cx, Expr *a, Expr *b)
{
    return expr_is_whole(a, 0) ? b : expr_is_whole(b, 0) ? a : expr_prim(cx, PRIM_add, a, b, NULL);
}

Expr *index_times(Context *cx, Expr *a, Size b)
{
    int64_t n;
    bool known = size_known(b, &n);
    if (expr_is_whole(a, 0) || (known && n == 1))
        return a;
    return expr_prim(cx, PRIM_mul, a, known ? expr_whole(cx, n) : expr_size(cx, b), NULL);
}

double size_largest(Size size)
{
    int64_t n;
    CHECK(size_upper(size, &n));
    return (double)n;
}

double compute_visits(const Compute *compute)
{
    double visits = 1;
    for (int i = 0; i < compute->rank; i++)
        visits *= size_largest(compute->extent[i]);
    for (int i = 0; i < compute->reduced; i++)
        visits *= size_largest(compute->reduced_extent[i]);
    return visits;
}

// --- Pull forms of nodes ------------------------------------------------------------------------------------------------------

bool op_reshapes(const OpDef *op)
{
    static const char *const names[] = {"reshape", "flatten", "expand", "squeeze"};
    for (int i = 0; i < COUNT(names); i++)
        if (strcmp(op->name, names[i]) == 0)
            return true;
    return false;
}
