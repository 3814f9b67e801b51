// expr.c: scalar formulas: how they are made, rewritten and differentiated. expr_text.c reads and prints them.
//
// A formula is immutable once made, so parts may be shared. Arithmetic on whole numbers is done when a formula is made (loop
// bounds and indices are mostly that); floating point is left alone, so that bits do not depend on where a number stood.
#include <math.h>
#include <string.h>

#include "mlc.h"

static const PrimDef prims[] = {
#define PRIM(name, operands, result, c, ...) {#name, operands, PRIM_##result, c, {__VA_ARGS__}},
#include "prims.def"
#undef PRIM
};

const PrimDef *prim_def(PrimId prim) { return &prims[prim]; }

// --- Making ----------------------------------------------------------------------------------------------------------------

static Expr *expr_new(Context *cx, ExprKind kind, DType type)
{
    Expr *e = NEW(cx->arena, Expr);
    e->kind = kind;
    e->type = type;
    return e;
}

Expr *expr_number(Context *cx, DType type, double number)
{
    Expr *e = expr_new(cx, EXPR_NUMBER, type);
    e->number = number;
    e->whole = number >= -0x1p63 && number < 0x1p63 ? (int64_t)number : 0;
    return e;
}

Expr *expr_whole(Context *cx, int64_t n)
{
    Expr *e = expr_new(cx, EXPR_NUMBER, TYPE_i64);
    e->whole = n;
    e->number = (double)n;
    return e;
}

Expr *expr_index(Context *cx, int var)
{
    Expr *e = expr_new(cx, EXPR_INDEX, TYPE_i64);
    e->var = var;
    return e;
}

Expr *expr_size(Context *cx, Size size)
{
    int64_t n;
    if (size_known(size, &n))
        return expr_whole(cx, n);
    Expr *e = expr_new(cx, EXPR_SIZE, TYPE_i64);
    e->size = size;
    return e;
}

Expr *expr_arg(Context *cx, DType type, int arg)
{
    Expr *e = expr_new(cx, EXPR_ARG, type);
    e->arg = arg;
    return e;
}

Expr *expr_local(Context *cx, DType type, int var)
{
    Expr *e = expr_new(cx, EXPR_LOCAL, type);
    e->var = var;
    return e;
}

Expr *expr_load(Context *cx, Value *value, int count, Expr *const *index)
{
    Expr *e = expr_new(cx, EXPR_LOAD, value->type.dtype);
    CHECK(count <= RANK_MAX);
    e->value = value;
    e->count = count;
    for (int i = 0; i < count; i++) {
        CHECK(index[i] != NULL);
        e->operand[i] = index[i];
    }
    return e;
}

// The primitives that index arithmetic is made of, where nothing overflows. Others stay as they are.
static bool fold_whole(PrimId prim, int64_t a, int64_t b, int64_t *n)
{
    switch (prim) {
    case PRIM_add: return !__builtin_add_overflow(a, b, n);
    case PRIM_sub: return !__builtin_sub_overflow(a, b, n);
    case PRIM_mul: return !__builtin_mul_overflow(a, b, n);
    case PRIM_min: *n = a < b ? a : b; return true;
    case PRIM_max: *n = a > b ? a : b; return true;
    case PRIM_floordiv: *n = b > 0 ? a / b - (a % b < 0) : 0; return b > 0;
    case PRIM_mod: *n = b > 0 ? a % b + (a % b < 0 ? b : 0) : 0; return b > 0;
    default: return false;
    }
}

static bool is_index_number(const Expr *e) { return e->kind == EXPR_NUMBER && e->type == TYPE_i64; }

static DType prim_type(PrimId prim, const Expr *a, const Expr *b)
{
    switch (prims[prim].result) {
    case PRIM_BOOL: return TYPE_bool;
    case PRIM_KEEP: return b->type;
    case PRIM_F32:  return TYPE_f32;
    default:        return a->type;
    }
}

Expr *expr_prim(Context *cx, PrimId prim, Expr *a, Expr *b, Expr *c)
{
    Expr *operand[] = {a, b, c};
    int64_t n;
    if (prims[prim].operands == 2 && is_index_number(a) && is_index_number(b) && fold_whole(prim, a->whole, b->whole, &n))
        return expr_whole(cx, n);
    Expr *e = expr_new(cx, EXPR_PRIM, prim_type(prim, a, b));
    e->prim = prim;
    e->count = prims[prim].operands;
    for (int i = 0; i < e->count; i++) {
        CHECK(operand[i] != NULL);
        e->operand[i] = operand[i];
    }
    return e;
}

Expr *expr_cast(Context *cx, DType type, Expr *a)
{
    if (a->type == type)
        return a;
    Expr *e = expr_new(cx, EXPR_CAST, type);
    e->count = 1;
    e->operand[0] = a;
    return e;
}

// --- Rewriting ---------------------------------------------------------------------------------------------------------------

static Expr *expr_with(Context *cx, const Expr *e, Expr *const *operand)
{
    if (e->kind == EXPR_PRIM)
        return expr_prim(cx, e->prim, operand[0], operand[1], operand[2]);
    if (e->kind == EXPR_CAST)
        return expr_cast(cx, e->type, operand[0]);
    Expr *copy = arena_copy(cx->arena, e, sizeof *e);
    for (int i = 0; i < e->count; i++)
        copy->operand[i] = operand[i];
    return copy;
}

Expr *expr_rewrite(Context *cx, Expr *e, Expr *(*at)(void *context, Expr *e), void *context)
{
    Expr *operand[RANK_MAX] = {NULL};
    bool changed = false;
    for (int i = 0; i < e->count; i++) {
        operand[i] = expr_rewrite(cx, e->operand[i], at, context);
        changed |= operand[i] != e->operand[i];
    }
    return at(context, changed ? expr_with(cx, e, operand) : e);
}

bool expr_equal(const Expr *a, const Expr *b)
{
    if (a == b)
        return true;
    if (a->kind != b->kind || a->type != b->type || a->count != b->count || a->var != b->var || a->arg != b->arg ||
        a->prim != b->prim || a->value != b->value || a->whole != b->whole || memcmp(&a->number, &b->number, sizeof a->number) != 0)
        return false;
    if (a->kind == EXPR_SIZE && !size_equal(a->size, b->size))
        return false;
    if (a->kind == EXPR_HYPER && strcmp(a->name, b->name) != 0)
        return false;
    for (int i = 0; i < a->count; i++)
        if (!expr_equal(a->operand[i], b->operand[i]))
            return false;
    return true;
}

// --- Derivatives ---------------------------------------------------------------------------------------------------------------

static bool is_number(const Expr *e, double number) { return e->kind == EXPR_NUMBER && e->number == number; }

static Expr *product(Context *cx, Expr *a, Expr *b)
{
    if (is_number(a, 1))
        return b;
    if (is_number(b, 1))
        return a;
    if (is_number(a, -1))
        return expr_prim(cx, PRIM_neg, b, NULL, NULL);
    return expr_prim(cx, PRIM_mul, a, b, NULL);
}

static Expr *select_derivative(Context *cx, const Expr *e, int arg)
{
    Expr *yes = expr_derivative(cx, e->operand[1], arg), *no = expr_derivative(cx, e->operand[2], arg);
    Expr *zero = expr_number(cx, e->type, 0);
    if (yes == NULL && no == NULL)
        return NULL;
    return expr_prim(cx, PRIM_select, e->operand[0], yes != NULL ? yes : zero, no != NULL ? no : zero);
}

// The chain rule, with the derivatives of the primitives' rows: formulas over the operands a and b and the result y.
Expr *expr_derivative(Context *cx, Expr *e, int arg)
{
    static const char *const names[] = {"a", "y", "b"};
    if (e->kind == EXPR_ARG)
        return e->arg == arg ? expr_number(cx, e->type, 1) : NULL;
    if (e->kind == EXPR_CAST) {
        Expr *d = expr_derivative(cx, e->operand[0], arg);
        return d != NULL ? expr_cast(cx, e->type, d) : NULL;
    }
    if (e->kind != EXPR_PRIM)
        return NULL;
    if (e->prim == PRIM_select)
        return select_derivative(cx, e, arg);
    Expr *values[] = {e->operand[0], e, e->count > 1 ? e->operand[1] : NULL}, *sum = NULL;
    for (int i = 0; i < e->count && i < 2; i++) {
        const char *rule = prims[e->prim].d[i];
        Expr *inner = rule[0] != 0 ? expr_derivative(cx, e->operand[i], arg) : NULL;
        if (inner == NULL)
            continue;
        Expr *term = product(cx, expr_parse(cx, rule, names, values, e->count > 1 ? 3 : 2), inner);
        sum = sum != NULL ? expr_prim(cx, PRIM_add, sum, term, NULL) : term;
    }
    return sum;
}

// --- Costs ------------------------------------------------------------------------------------------------------------------

static bool is_heavy(PrimId prim)
{
    switch (prim) {
    case PRIM_add: case PRIM_sub: case PRIM_mul: case PRIM_neg: case PRIM_abs: case PRIM_min: case PRIM_max:
    case PRIM_lt: case PRIM_le: case PRIM_gt: case PRIM_ge: case PRIM_eq: case PRIM_ne:
    case PRIM_and: case PRIM_or: case PRIM_not: case PRIM_select: case PRIM_floor: case PRIM_ceil: case PRIM_round:
        return false;
    default:
        return true;
    }
}

static bool divides(PrimId prim) { return prim == PRIM_div || prim == PRIM_floordiv || prim == PRIM_mod; }

// Sums and products of indices are free (they leave the inner loop); a division of one is not.
void expr_cost(const Expr *e, Cost *cost)
{
    if (e->kind == EXPR_PRIM) {
        bool free = e->type == TYPE_i64 && !divides(e->prim);
        cost->heavy += !free && is_heavy(e->prim);
        cost->cheap += !free && !is_heavy(e->prim);
        cost->prims++;
    }
    cost->loads += e->kind == EXPR_LOAD;
    cost->cheap += e->kind == EXPR_CAST;
    for (int i = 0; i < e->count; i++)
        expr_cost(e->operand[i], cost);
}
