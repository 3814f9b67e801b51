// eval_loop.c: the interpreter of loop trees.
//
// A tree is first bound to the run: sizes become numbers, loads get the tensor and its strides, shared formulas stay shared.
// Then it is walked. What is pure arithmetic on loop variables (indices, whether a window is inside) is computed once in the
// loop that it belongs to, not where it is used: the interpreter is slow enough. Types that are narrower than f32 are computed as f32, as in C; with Eval.in_double every float is a
// double. An index outside of its tensor stops the run with a message, because data can cause it.
#include <math.h>
#include <string.h>

#include "eval.h"

typedef union Number { double f; int64_t i; } Number;

typedef enum CellKind {
    CELL_NUMBER, CELL_VAR, CELL_LOCAL, CELL_LOAD, CELL_CAST, CELL_PRIM,
    CELL_INDEX, CELL_FLOAT, CELL_COMPARE,               // common primitives, without a detour: + - * of i64 and f32; of i64
} CellKind;

typedef struct Cell {                   // an Expr, or the place of a store, bound to the run
    CellKind kind;
    DType    type;
    bool     floats;                    // the number is f, not i
    PrimId   prim;
    bool     pure;                      // of numbers and loop variables alone
    bool     kept, settled;             // to be computed by its loop, into number; it is
    int      level;                     // depth of the innermost loop that it needs
    int      var, count;
    Number   number;
    struct Cell *operand[RANK_MAX];
    Tensor  *tensor;
    const Value *value;
    bool     flat;                      // one index into all elements
    int64_t  stride[RANK_MAX], extent[RANK_MAX];
} Cell;

typedef struct Step {                   // a Loop, bound to the run
    LoopKind kind;
    int      var, count;
    Reduce   reduce;
    DType    type;
    Cell    *from, *to, *value, *place;
    struct Step **body, *other;
    Cell   **kept;                      // computed when an iteration begins
    int      n_kept;
} Step;

// The loops around what is being bound; 0 is the whole tree.
typedef struct Scope { int var; PointerMap *cells; LIST(Cell *) pure; } Scope;

enum { DEPTH_MAX = 64 };

typedef struct Walk {
    Eval   *eval;
    Arena  *arena;
    Scope   scope[DEPTH_MAX];
    int     depth;
    int     n_vars, n_locals;
    int64_t *var;
    Number *local;
    bool    failed;
} Walk;

// --- Binding ---------------------------------------------------------------------------------------------------------------

static bool is_float(DType type) { return type_is_float(type); }

static int larger(int a, int b) { return a > b ? a : b; }

static Cell *bind(Walk *w, const Expr *e);

static void bind_place(Walk *w, Cell *cell, const Value *value, int count, Expr *const *index)
{
    Tensor *t = w->eval->at[value->id];
    if (t == NULL)
        BUG("no tensor for %s_%d", value->name != NULL ? value->name : "c", value->id);
    cell->value = value;
    cell->tensor = t;
    cell->count = count;
    cell->flat = count != t->rank;
    if (cell->flat && count != 1)
        BUG("%d indices for %s_%d of rank %d", count, value->name != NULL ? value->name : "c", value->id, t->rank);
    int64_t stride = 1;
    for (int i = count; i-- > 0; stride *= cell->flat ? 1 : t->dim[i]) {
        cell->stride[i] = stride;
        cell->extent[i] = cell->flat ? tensor_count(t) : t->dim[i];
        cell->operand[i] = bind(w, index[i]);
    }
}

static CellKind prim_kind(const Walk *w, const Expr *e)
{
    bool simple = e->prim == PRIM_add || e->prim == PRIM_sub || e->prim == PRIM_mul;
    if (simple && e->type == TYPE_i64)
        return CELL_INDEX;
    if (simple && e->type == TYPE_f32 && !w->eval->in_double)
        return CELL_FLOAT;
    return prim_compares(e->prim) && e->operand[0]->type == TYPE_i64 ? CELL_COMPARE : CELL_PRIM;
}

static void bind_into(Walk *w, Cell *cell, const Expr *e)
{
    switch (e->kind) {
    case EXPR_NUMBER:
        cell->kind = CELL_NUMBER;
        if (cell->floats)
            cell->number.f = w->eval->in_double ? e->number : type_round(e->type, e->number);
        else
            cell->number.i = type_wrap(e->type, e->whole);
        break;
    case EXPR_SIZE:
        cell->kind = CELL_NUMBER;
        cell->number.i = size_at(e->size, w->eval->symbols);
        break;
    case EXPR_INDEX:
        cell->kind = CELL_VAR;
        cell->var = e->var;
        w->n_vars = larger(w->n_vars, e->var + 1);
        break;
    case EXPR_LOCAL:
        cell->kind = CELL_LOCAL;
        cell->var = e->var;
        w->n_locals = larger(w->n_locals, e->var + 1);
        break;
    case EXPR_LOAD:
        cell->kind = CELL_LOAD;
        bind_place(w, cell, e->value, e->count, e->operand);
        break;
    case EXPR_PRIM: case EXPR_CAST:
        cell->kind = e->kind == EXPR_PRIM ? prim_kind(w, e) : CELL_CAST;
        cell->prim = e->prim;
        cell->count = e->count;
        for (int i = 0; i < e->count; i++)
            cell->operand[i] = bind(w, e->operand[i]);
        break;
    case EXPR_ARG: case EXPR_HYPER:
        BUG("a formula with free names cannot be run");
    }
}

// Where a cell belongs: pure ones as far out as they can, others where they stand.
static void place(Walk *w, Cell *cell)
{
    cell->pure = cell->kind != CELL_LOAD && cell->kind != CELL_LOCAL && cell->prim != PRIM_random;
    for (int i = 0; i < cell->count; i++)
        cell->pure = cell->pure && cell->operand[i]->pure;
    if (!cell->pure) {
        cell->level = w->depth;
        for (int i = 0; i < cell->count; i++)
            cell->operand[i]->kept |= cell->operand[i]->level < w->depth;
        return;
    }
    for (int d = w->depth; cell->kind == CELL_VAR && d > 0 && cell->level == 0; d--)
        cell->level = w->scope[d].var == cell->var ? d : 0;
    for (int i = 0; i < cell->count; i++)
        cell->level = larger(cell->level, cell->operand[i]->level);
    for (int i = 0; i < cell->count; i++)
        cell->operand[i]->kept |= cell->operand[i]->level < cell->level;
}

static Cell *known(Walk *w, const Expr *e)
{
    for (int d = w->depth; d >= 0; d--) {
        Cell *cell = pointer_map_get(w->scope[d].cells, e);
        if (cell != NULL)
            return cell;
    }
    return NULL;
}

static Cell *bind(Walk *w, const Expr *e)
{
    Cell *cell = known(w, e);
    if (cell != NULL) {
        cell->kept = true;                              // used twice
        return cell;
    }
    cell = NEW(w->arena, Cell);
    cell->type = e->type;
    cell->floats = is_float(e->type);
    bind_into(w, cell, e);
    place(w, cell);
    Scope *scope = &w->scope[cell->level];
    pointer_map_set(scope->cells, e, cell);
    if (cell->pure && cell->kind >= CELL_CAST)
        LIST_ADD(w->arena, scope->pure, cell);
    return cell;
}

static Cell *bind_here(Walk *w, const Expr *e)
{
    Cell *cell = bind(w, e);
    cell->kept |= cell->level < w->depth;
    return cell;
}

static void enter(Walk *w, int var)
{
    if (++w->depth == DEPTH_MAX)
        BUG("a loop tree of more than %d loops inside each other", DEPTH_MAX);
    w->scope[w->depth] = (Scope){.var = var, .cells = pointer_map_new(w->arena)};
}

// The cells of this scope that are to be kept go to the step that begins it, children before parents.
static void settle(Walk *w, Step *step)
{
    Scope *scope = &w->scope[w->depth];
    step->kept = NEW_ARRAY(w->arena, Cell *, scope->pure.count);
    for (int i = 0; i < scope->pure.count; i++)
        if (scope->pure.at[i]->kept)
            scope->pure.at[i]->settled = true, step->kept[step->n_kept++] = scope->pure.at[i];
}

static Step *bind_loop(Walk *w, const Loop *loop)
{
    Step *step = NEW(w->arena, Step);
    *step = (Step){.kind = loop->kind, .var = loop->var, .reduce = loop->reduce, .type = loop->type, .count = loop->body.count};
    step->from = loop->from != NULL ? bind_here(w, loop->from) : NULL;
    step->to = loop->to != NULL ? bind_here(w, loop->to) : NULL;
    step->value = loop->value != NULL ? bind_here(w, loop->value) : NULL;
    if (loop->target != NULL) {
        step->place = NEW(w->arena, Cell);
        bind_place(w, step->place, loop->target, loop->count, loop->index);
        for (int i = 0; i < loop->count; i++)
            step->place->operand[i]->kept |= step->place->operand[i]->level < w->depth;
    }
    if (loop->kind == LOOP_FOR) {
        w->n_vars = larger(w->n_vars, loop->var + 1);
        enter(w, loop->var);
    } else
        w->n_locals = larger(w->n_locals, loop->var + 1);
    step->body = NEW_ARRAY(w->arena, Step *, loop->body.count);
    for (int i = 0; i < loop->body.count; i++)
        step->body[i] = bind_loop(w, loop->body.at[i]);
    if (loop->kind == LOOP_FOR) {
        settle(w, step);
        w->depth--;
    }
    step->other = loop->other != NULL ? bind_loop(w, loop->other) : NULL;
    return step;
}

// --- Formulas --------------------------------------------------------------------------------------------------------------

static Number run_cell(Walk *w, const Cell *cell);

static void outside(Walk *w, const Cell *cell, int axis, int64_t index)
{
    if (!w->failed)
        w->eval->error = arena_printf(w->eval->arena, "index %lld is outside of axis %d of %s, which has %lld elements", (long long)index, axis,
                                      cell->value->name != NULL ? cell->value->name : "a constant",
                                      (long long)cell->extent[axis]);
    w->failed = true;
}

// The element that indices stand for; -1 if there is none.
static int64_t element_at(Walk *w, const Cell *cell)
{
    int64_t at = 0;
    for (int i = 0; i < cell->count; i++) {
        int64_t index = run_cell(w, cell->operand[i]).i;
        if (index < 0 || index >= cell->extent[i]) {
            outside(w, cell, i, index);
            return -1;
        }
        at += index * cell->stride[i];
    }
    return at;
}

static Number load(const Tensor *t, int64_t i, bool floats)
{
    if (t->dtype == TYPE_f32)
        return (Number){.f = ((const float *)t->data)[i]};
    return floats ? (Number){.f = tensor_get(t, i)} : (Number){.i = tensor_get_whole(t, i)};
}

// To the type that C computes in.
static double rounded(const Walk *w, DType type, double x)
{
    return w->eval->in_double || type == TYPE_f64 ? x : (float)x;
}

static Number run_cast(Walk *w, const Cell *cell)
{
    const Cell *from = cell->operand[0];
    Number x = run_cell(w, from);
    if (cell->floats) {
        bool wide = cell->type == TYPE_f64 || w->eval->in_double;
        double whole = from->type == TYPE_u64 ? (wide ? (double)(uint64_t)x.i : (double)(float)(uint64_t)x.i) : wide ? (double)x.i : (double)(float)x.i;
        double y = !from->floats ? whole : x.f;
        return (Number){.f = w->eval->in_double ? y : type_round(cell->type, y)};
    }
    return (Number){.i = from->floats ? type_whole(cell->type, x.f) : type_wrap(cell->type, x.i)};
}

static Number run_prim(Walk *w, const Cell *cell)
{
    const Cell *first = cell->operand[0];
    if (cell->prim == PRIM_select)
        return run_cell(w, cell->operand[run_cell(w, first).i != 0 ? 1 : 2]);
    Number a = run_cell(w, first), b = {0};
    if (cell->type == TYPE_bool && cell->prim == PRIM_and && a.i == 0)
        return a;                                       // what comes after may lie outside
    if (cell->count > 1)
        b = run_cell(w, cell->operand[1]);
    if (prim_compares(cell->prim))
        return (Number){.i = first->floats ? prim_compare_float(cell->prim, a.f, b.f)
                              : first->type == TYPE_u64 ? prim_compare_natural(cell->prim, a.i, b.i) : prim_compare_whole(cell->prim, a.i, b.i)};
    if (cell->prim == PRIM_random)
        return (Number){.f = prim_random(w->eval->seed, w->eval->step, a.i, b.i)};
    if (!cell->floats)
        return (Number){.i = type_wrap(cell->type, cell->type == TYPE_u64 ? prim_natural(cell->prim, a.i, b.i) : prim_whole(cell->prim, a.i, b.i))};
    return (Number){.f = rounded(w, cell->type, prim_float(cell->prim, w->eval->in_double ? TYPE_f64 : cell->type, a.f, b.f))};
}

static Number run_index(PrimId prim, int64_t a, int64_t b)
{
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    return (Number){.i = (int64_t)(prim == PRIM_add ? x + y : prim == PRIM_sub ? x - y : x * y)};
}

static Number run_float(PrimId prim, double a, double b) { return (Number){.f = (float)(prim == PRIM_add ? a + b : prim == PRIM_sub ? a - b : a * b)}; }

static Number compute_cell(Walk *w, const Cell *cell)
{
    int64_t at;
    switch (cell->kind) {
    case CELL_NUMBER: return cell->number;
    case CELL_VAR:    return (Number){.i = w->var[cell->var]};
    case CELL_LOCAL:  return w->local[cell->var];
    case CELL_CAST:   return run_cast(w, cell);
    case CELL_PRIM:   return run_prim(w, cell);
    case CELL_INDEX:  return run_index(cell->prim, run_cell(w, cell->operand[0]).i, run_cell(w, cell->operand[1]).i);
    case CELL_FLOAT:  return run_float(cell->prim, run_cell(w, cell->operand[0]).f, run_cell(w, cell->operand[1]).f);
    case CELL_COMPARE:
        return (Number){.i = prim_compare_whole(cell->prim, run_cell(w, cell->operand[0]).i, run_cell(w, cell->operand[1]).i)};
    case CELL_LOAD:
        at = element_at(w, cell);
        return at >= 0 ? load(cell->tensor, at, cell->floats) : (Number){0};
    }
    return (Number){0};
}

static Number run_cell(Walk *w, const Cell *cell)
{
    if (cell->settled)
        return cell->number;
    return cell->kind == CELL_VAR ? (Number){.i = w->var[cell->var]} : compute_cell(w, cell);
}

static void compute_kept(Walk *w, const Step *step)
{
    for (int i = 0; i < step->n_kept; i++)
        step->kept[i]->number = compute_cell(w, step->kept[i]);
}

// --- Loops -----------------------------------------------------------------------------------------------------------------

static Number joined(Walk *w, Reduce reduce, DType type, Number a, Number b)
{
    static const PrimId prims[] = {[REDUCE_SUM] = PRIM_add, [REDUCE_PROD] = PRIM_mul, [REDUCE_MAX] = PRIM_max, [REDUCE_MIN] = PRIM_min};
    if (reduce == REDUCE_NONE)
        return b;
    if (reduce == REDUCE_SUM && type == TYPE_f32)
        return (Number){.f = rounded(w, type, a.f + b.f)};
    if (is_float(type))
        return (Number){.f = rounded(w, type, prim_float(prims[reduce], type, a.f, b.f))};
    return (Number){.i = type_wrap(type, type == TYPE_u64 ? prim_natural(prims[reduce], a.i, b.i) : prim_whole(prims[reduce], a.i, b.i))};
}

static void store(Tensor *t, int64_t i, Number x)
{
    if (is_float(t->dtype))
        tensor_set(t, i, x.f);
    else
        tensor_set_whole(t, i, x.i);
}

static void run_assignment(Walk *w, const Step *step)
{
    Number x = run_cell(w, step->value);
    Reduce reduce = step->kind == LOOP_UPDATE ? step->reduce : REDUCE_NONE;
    if (step->place == NULL) {
        w->local[step->var] = joined(w, reduce, step->value->type, w->local[step->var], x);
        return;
    }
    Tensor *t = step->place->tensor;
    int64_t at = element_at(w, step->place);
    if (at >= 0)
        store(t, at, joined(w, reduce, step->value->type, load(t, at, is_float(t->dtype)), x));
}

static void run_step(Walk *w, const Step *step);

static void run_body(Walk *w, const Step *step)
{
    for (int i = 0; i < step->count && !w->failed; i++)
        run_step(w, step->body[i]);
}

static void run_step(Walk *w, const Step *step)
{
    switch (step->kind) {
    case LOOP_BLOCK:
        run_body(w, step);
        break;
    case LOOP_FOR:
        for (int64_t i = run_cell(w, step->from).i, end = run_cell(w, step->to).i; i < end && !w->failed; i++) {
            w->var[step->var] = i;
            compute_kept(w, step);
            run_body(w, step);
        }
        break;
    case LOOP_IF:
        if (run_cell(w, step->value).i != 0)
            run_body(w, step);
        else if (step->other != NULL)
            run_step(w, step->other);
        break;
    case LOOP_LET: case LOOP_ACCUMULATOR:
        w->local[step->var] = run_cell(w, step->value);
        break;
    case LOOP_STORE: case LOOP_UPDATE:
        run_assignment(w, step);
        break;
    }
}

bool loop_run(const Loop *loop, Eval *eval)
{
    Walk w = {.eval = eval, .arena = arena_new()};
    Step whole = {.kind = LOOP_BLOCK};
    w.scope[0] = (Scope){.var = -1, .cells = pointer_map_new(w.arena)};
    Step *step = bind_loop(&w, loop);
    settle(&w, &whole);
    w.var = NEW_ARRAY(w.arena, int64_t, w.n_vars);
    w.local = NEW_ARRAY(w.arena, Number, w.n_locals);
    compute_kept(&w, &whole);
    run_step(&w, step);
    arena_free(w.arena);
    return !w.failed;
}
