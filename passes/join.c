// join.c: small kernels one after the other over the same rows become one: softmax over a few classes is one loop over rows.
//
// Row r of the second kernel may read what the first one wrote only at row r. Each row then goes through all of its steps
// at once. This is for small kernels alone (one part): large ones are better apart, each over memory of its own in place.
#include "passes.h"

#include <string.h>

enum { EQUATION_MAX = 96 };

static const Buffer *home_of(const Program *p, const Value *value)
{
    const Buffer *buffer = p->buffer[value->id];
    while (buffer != NULL && buffer->alias != NULL)
        buffer = buffer->alias;
    return buffer;
}

// --- Whether ------------------------------------------------------------------------------------------------------------------

static bool is_whole_range(const Loop *root)
{
    return root != NULL && root->kind == LOOP_FOR && expr_is_whole(root->from, 0) && root->to->kind == EXPR_SIZE;
}

// The element lies in row `var` of its value.
static bool in_row(const Value *value, int count, Expr *const *index, const Loop *root)
{
    const Shape *shape = &value->type.shape;
    return count == shape->rank && count > 0 && index[0]->kind == EXPR_INDEX && index[0]->var == root->var &&
           size_equal(shape->dim[0], root->to->size);
}

// All loads of memory that `first` writes are of the row.
static bool expr_in_row(const Program *p, const Expr *e, const Kernel *first, const Loop *root)
{
    for (int i = 0; e->kind == EXPR_LOAD && i < first->writes.count; i++)
        if (home_of(p, e->value) == home_of(p, first->writes.at[i]) &&
            (e->value != first->writes.at[i] || !in_row(e->value, e->count, e->operand, root)))
            return false;
    for (int i = 0; i < e->count; i++)
        if (!expr_in_row(p, e->operand[i], first, root))
            return false;
    return true;
}

static bool loops_in_row(const Program *p, const Loop *loop, const Kernel *first, const Loop *root)
{
    const Expr *const parts[] = {loop->from, loop->to, loop->value};
    for (int i = 0; i < COUNT(parts); i++)
        if (parts[i] != NULL && !expr_in_row(p, parts[i], first, root))
            return false;
    for (int i = 0; loop->target != NULL && i < first->writes.count; i++)
        if (loop->target == first->writes.at[i] && !in_row(loop->target, loop->count, loop->index, root))
            return false;
    for (int i = 0; i < loop->body.count; i++)
        if (!loops_in_row(p, loop->body.at[i], first, root))
            return false;
    return loop->other == NULL || loops_in_row(p, loop->other, first, root);
}

static bool may_join(const Program *p, const Kernel *a, const Kernel *b)
{
    if (a->parts > 1 || b->parts > 1 || a->phase != b->phase || !is_whole_range(a->loops) || !is_whole_range(b->loops))
        return false;
    return size_equal(a->loops->to->size, b->loops->to->size) && loops_in_row(p, a->loops, a, a->loops) &&
           loops_in_row(p, b->loops, a, b->loops);
}

// --- How ------------------------------------------------------------------------------------------------------------------------

// Loop variables and locals get other numbers: map[old] is the new one.
typedef struct Renumber { Context *cx; int *map; } Renumber;

static Expr *renumber_expr(void *context, Expr *e)
{
    const Renumber *r = context;
    if (e->kind != EXPR_INDEX && e->kind != EXPR_LOCAL)
        return e;
    Expr *copy = arena_copy(r->cx->arena, e, sizeof *e);
    copy->var = r->map[e->var];
    return copy;
}

static Expr *renumber(Renumber *r, Expr *e) { return e != NULL ? expr_rewrite(r->cx, e, renumber_expr, r) : NULL; }

static bool has_var(const Loop *loop)
{
    bool local = loop->kind == LOOP_LET || loop->kind == LOOP_ACCUMULATOR;
    return loop->kind == LOOP_FOR || local || (loop->kind == LOOP_UPDATE && loop->target == NULL);
}

static Loop *renumber_loops(Renumber *r, const Loop *loop)
{
    Loop *copy = arena_copy(r->cx->arena, loop, sizeof *loop);
    copy->var = has_var(loop) ? r->map[loop->var] : 0;
    copy->from = renumber(r, loop->from);
    copy->to = renumber(r, loop->to);
    copy->value = renumber(r, loop->value);
    for (int i = 0; i < loop->count; i++)
        copy->index[i] = renumber(r, loop->index[i]);
    memset(&copy->body, 0, sizeof copy->body);
    for (int i = 0; i < loop->body.count; i++)
        loop_add(r->cx, copy, renumber_loops(r, loop->body.at[i]));
    copy->other = loop->other != NULL ? renumber_loops(r, loop->other) : NULL;
    return copy;
}

static int largest_var(const Loop *loop)
{
    int most = has_var(loop) ? loop->var : 0;
    for (int i = 0; i < loop->body.count; i++)
        most = largest_var(loop->body.at[i]) > most ? largest_var(loop->body.at[i]) : most;
    int other = loop->other != NULL ? largest_var(loop->other) : 0;
    return other > most ? other : most;
}

// Numbers from 0 in the order in which variables are declared, `next` on.
static int number_vars(const Loop *loop, int *map, int next)
{
    if (has_var(loop) && map[loop->var] < 0)
        map[loop->var] = next++;
    for (int i = 0; i < loop->body.count; i++)
        next = number_vars(loop->body.at[i], map, next);
    return loop->other != NULL ? number_vars(loop->other, map, next) : next;
}

static Loop *number_from_zero(Context *cx, const Loop *loop)
{
    int count = largest_var(loop) + 1;
    Renumber r = {cx, NEW_ARRAY(cx->arena, int, count)};
    for (int i = 0; i < count; i++)
        r.map[i] = -1;
    number_vars(loop, r.map, 0);
    return renumber_loops(&r, loop);
}

// The loops of b with a's variable for the rows, and numbers of their own for all others.
static Loop *number_behind(Context *cx, const Loop *b, const Loop *a)
{
    int count = largest_var(b) + 1, shift = largest_var(a) + 1;
    Renumber r = {cx, NEW_ARRAY(cx->arena, int, count)};
    for (int i = 0; i < count; i++)
        r.map[i] = i == b->var ? a->var : i + shift;
    return renumber_loops(&r, b);
}

#define ADD_MISSING(arena, list, value) do {                    \
        bool there = false;                                     \
        for (int k = 0; k < (list).count; k++)                  \
            there |= (list).at[k] == (value);                   \
        if (!there)                                             \
            LIST_ADD((arena), (list), (value));                 \
    } while (0)

// b goes to the end of each row of a; the whole has b's name.
static void join(Context *cx, Kernel *a, const Kernel *b)
{
    Loop *more = number_behind(cx, b->loops, a->loops);
    bool simple = a->loops->mark == AXIS_VECTOR && b->loops->mark == AXIS_VECTOR;
    a->loops->mark = simple ? AXIS_VECTOR : AXIS_SERIAL;
    for (int i = 0; i < more->body.count; i++)
        loop_add(cx, a->loops, more->body.at[i]);
    a->loops = number_from_zero(cx, a->loops);
    for (int i = 0; i < b->nodes.count; i++)
        ADD_MISSING(cx->arena, a->nodes, b->nodes.at[i]);
    for (int i = 0; i < b->reads.count; i++)
        ADD_MISSING(cx->arena, a->reads, b->reads.at[i]);
    for (int i = 0; i < b->writes.count; i++)
        ADD_MISSING(cx->arena, a->writes, b->writes.at[i]);
    a->name = b->name, a->scope = b->scope, a->op = b->op, a->place = b->place;
    if (a->equation != NULL && b->equation != NULL && strlen(a->equation) + strlen(b->equation) < EQUATION_MAX)
        a->equation = arena_printf(cx->arena, "%s; %s", a->equation, b->equation);
    a->flops = size_plus(cx, a->flops, b->flops);
}

bool pass_join(Work *work)
{
    Program *p = work->program;
    int count = 0, before = p->steps.count;
    for (int i = 0; i < p->steps.count; i++) {
        Kernel *kernel = p->steps.at[i];
        if (kernel->loops != NULL)
            kernel->loops = number_from_zero(work->cx, kernel->loops);
        if (count > 0 && may_join(p, p->steps.at[count - 1], kernel)) {
            join(work->cx, p->steps.at[count - 1], kernel);
            continue;
        }
        kernel->id = count;
        p->steps.at[count++] = kernel;
    }
    p->steps.count = count;
    for (int i = 0; i < p->updates.count; i++)
        p->updates.at[i]->id = count + i;
    return count < before;
}
