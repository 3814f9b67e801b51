// memory.c: the lives of values, in steps, and their places in the arena.
//
// A value lives from the step that writes it to the last step that reads it; a result that the caller takes, or that an
// update takes, lives to the end. Places are found greedily: the lives in some order (by size, by size times length, by
// length, by beginning), each in the smallest gap that its neighbours in time leave, at multiples of 64 bytes; the best of
// the orders is kept. An element by element kernel whose input dies in it writes over that input.
// Considered: exact packing (integer programs): slow, and greedy plans of training graphs are within a few per cent of the
// bound, which a test and `mlc plan` show.
#include "passes.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };

static int64_t align_up(int64_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

// --- Placing lives ----------------------------------------------------------------------------------------------------------

typedef struct Placed { Life *life; double key; int number; } Placed;

static int by_key(const void *a, const void *b)
{
    const Placed *x = a, *y = b;
    return x->key > y->key ? -1 : x->key < y->key ? 1 : x->number - y->number;
}

static int by_offset(const void *a, const void *b)
{
    const Life *x = *(Life *const *)a, *y = *(Life *const *)b;
    return x->offset < y->offset ? -1 : x->offset > y->offset ? 1 : x < y ? -1 : x > y;
}

static bool meet(const Life *a, const Life *b) { return a->first <= b->last && b->first <= a->last; }

// The smallest gap between those that live at the same time; `near` has room for them.
static int64_t best_gap(const Life *life, Life **near, int count)
{
    int64_t end = 0, best = -1, best_room = INT64_MAX, bytes = align_up(life->bytes);
    qsort(near, (size_t)count, sizeof *near, by_offset);
    for (int i = 0; i < count; i++) {
        int64_t room = near[i]->offset - end, after = near[i]->offset + align_up(near[i]->bytes);
        if (room >= bytes && room < best_room)
            best = end, best_room = room;
        if (after > end)
            end = after;
    }
    return best >= 0 ? best : end;
}

static int64_t place_in_order(const Placed *order, int count, Life **near)
{
    int64_t total = 0;
    for (int i = 0; i < count; i++) {
        Life *life = order[i].life;
        int n = 0;
        for (int k = 0; k < i; k++)
            if (meet(life, order[k].life) && order[k].life->bytes > 0)
                near[n++] = order[k].life;
        life->offset = best_gap(life, near, n);
        if (life->bytes > 0 && life->offset + align_up(life->bytes) > total)
            total = life->offset + align_up(life->bytes);
    }
    return total;
}

enum { ORDER_SIZE, ORDER_AREA, ORDER_LENGTH, ORDER_BEGIN, ORDER_END, ORDER_COUNT };

static double order_key(const Life *life, int order)
{
    double bytes = (double)life->bytes, length = life->last - life->first + 1;
    switch (order) {
    case ORDER_SIZE:   return bytes;
    case ORDER_AREA:   return bytes * length;
    case ORDER_LENGTH: return length;
    case ORDER_BEGIN:  return -life->first;
    default:           return life->last;
    }
}

int64_t lives_place(Arena *arena, Life *lives, int count)
{
    Placed *order = NEW_ARRAY(arena, Placed, count);
    Life **near = NEW_ARRAY(arena, Life *, count);
    int64_t *best = NEW_ARRAY(arena, int64_t, count), best_total = INT64_MAX, bound = lives_bound(lives, count);
    for (int k = 0; k < ORDER_COUNT && best_total > bound; k++) {
        for (int i = 0; i < count; i++)
            order[i] = (Placed){&lives[i], order_key(&lives[i], k), i};
        qsort(order, (size_t)count, sizeof *order, by_key);
        int64_t total = place_in_order(order, count, near);
        for (int i = 0; total < best_total && i < count; i++)
            best[i] = lives[i].offset;
        best_total = total < best_total ? total : best_total;
    }
    for (int i = 0; i < count; i++)
        lives[i].offset = best[i];
    return count > 0 ? best_total : 0;
}

int64_t lives_bound(const Life *lives, int count)
{
    int64_t most = 0;
    for (int i = 0; i < count; i++) {           // the sum only grows where a life begins
        int64_t sum = 0;
        for (int k = 0; k < count; k++)
            if (lives[k].first <= lives[i].first && lives[i].first <= lives[k].last)
                sum += align_up(lives[k].bytes);
        most = sum > most ? sum : most;
    }
    return most;
}

// --- Lives of buffers ---------------------------------------------------------------------------------------------------------

static Buffer *home_of(const Program *p, const Value *value)
{
    Buffer *buffer = p->buffer[value->id];
    while (buffer != NULL && buffer->alias != NULL)
        buffer = buffer->alias;
    return buffer;
}

static void live(const Program *p, const Value *value, int step)
{
    Buffer *buffer = value != NULL ? home_of(p, value) : NULL;
    if (buffer == NULL)
        return;
    buffer->first = step < buffer->first ? step : buffer->first;
    buffer->last = step > buffer->last ? step : buffer->last;
}

static void live_to_end(const Program *p)
{
    const Graph *g = p->graph;
    int end = p->steps.count;
    live(p, g->loss, end);
    for (int i = 0; i < g->outputs.count; i++)
        live(p, g->outputs.at[i].value, end);
    for (int i = 0; i < g->metrics.count; i++)
        live(p, g->metrics.at[i].value, end);
    for (int i = 0; i < g->auxiliary.count; i++)
        live(p, g->auxiliary.at[i].value, end);
    for (int i = 0; i < p->updates.count; i++)
        for (int k = 0; k < p->updates.at[i]->reads.count; k++)
            live(p, p->updates.at[i]->reads.at[k], end);
}

static void count_lives(const Program *p)
{
    for (int i = 0; i < p->graph->values.count; i++)
        if (p->buffer[i] != NULL)
            p->buffer[i]->first = INT32_MAX, p->buffer[i]->last = -1;
    for (int s = 0; s < p->steps.count; s++) {
        const Kernel *kernel = p->steps.at[s];
        for (int i = 0; i < kernel->reads.count; i++)
            live(p, kernel->reads.at[i], s);
        for (int i = 0; i < kernel->writes.count; i++)
            live(p, kernel->writes.at[i], s);
    }
    live_to_end(p);
}

// --- In place -------------------------------------------------------------------------------------------------------------------

static bool same_index(const Expr *a, const Expr *b)
{
    if (a->kind != b->kind || a->count != b->count)
        return false;
    for (int i = 0; i < a->count; i++)
        if (!same_index(a->operand[i], b->operand[i]))
            return false;
    switch (a->kind) {
    case EXPR_NUMBER: return a->whole == b->whole;
    case EXPR_INDEX:  return a->var == b->var;
    case EXPR_SIZE:   return size_equal(a->size, b->size);
    case EXPR_PRIM:   return a->prim == b->prim;
    default:          return false;
    }
}

// Every load of the memory is at the very index of the store.
static bool loads_same(const Program *p, const Expr *e, const Buffer *home, const Loop *store)
{
    if (e->kind == EXPR_LOAD && home_of(p, e->value) == home) {
        bool same = e->count == store->count && (e->count < 2 || shape_equal(&e->value->type.shape, &store->target->type.shape));
        for (int i = 0; same && i < e->count; i++)
            same = same_index(e->operand[i], store->index[i]);
        return same;
    }
    for (int i = 0; i < e->count; i++)
        if (!loads_same(p, e->operand[i], home, store))
            return false;
    return true;
}

// The one store of a nest without reductions; NULL: it is another kind of nest.
static const Loop *single_store(const Loop *loop)
{
    while (loop != NULL && (loop->kind == LOOP_FOR || loop->kind == LOOP_BLOCK))
        loop = loop->body.count == 1 ? loop->body.at[0] : NULL;
    return loop != NULL && loop->kind == LOOP_STORE ? loop : NULL;
}

static bool may_overwrite(const Program *p, const Kernel *kernel, int step, const Buffer *from, const Buffer *to)
{
    const Loop *store = kernel->loops != NULL ? single_store(kernel->loops) : NULL;
    return store != NULL && from != to && from->space == SPACE_ARENA && to->space == SPACE_ARENA && from->last == step &&
           to->first == step && from->bytes == to->bytes && loads_same(p, store->value, from, store);
}

static void write_in_place(const Program *p, int step)
{
    const Kernel *kernel = p->steps.at[step];
    Buffer *to = kernel->writes.count == 1 ? home_of(p, kernel->writes.at[0]) : NULL;
    for (int i = 0; to != NULL && i < kernel->reads.count; i++) {
        Buffer *from = home_of(p, kernel->reads.at[i]);
        if (from == NULL || !may_overwrite(p, kernel, step, from, to))
            continue;
        from->last = to->last;
        to->alias = from;
        return;
    }
}

// --- The pass -------------------------------------------------------------------------------------------------------------------

typedef LIST(Buffer *) BufferList;

static void list_homes(const Program *p, BufferList *list)
{
    for (int i = 0; i < p->graph->values.count; i++) {
        Buffer *buffer = p->buffer[i];
        if (buffer != NULL && buffer->alias == NULL && buffer->space == SPACE_ARENA && buffer->last >= 0)
            LIST_ADD(p->cx->arena, *list, buffer);
    }
}

// What shares memory shows the life and place of what it shares.
static void follow_aliases(const Program *p)
{
    for (int i = 0; i < p->graph->values.count; i++) {
        Buffer *buffer = p->buffer[i], *home = buffer != NULL ? home_of(p, buffer->value) : NULL;
        if (home != buffer && home != NULL) {
            buffer->offset = home->offset;
            buffer->space = home->space;
            buffer->index = home->index;
            buffer->first = buffer->first == INT32_MAX ? home->first : buffer->first;
            buffer->last = buffer->last < 0 ? home->last : buffer->last;
        }
    }
}

bool pass_memory(Work *work)
{
    Program *p = work->program;
    BufferList homes = {0};
    count_lives(p);
    for (int s = 0; s < p->steps.count; s++)
        write_in_place(p, s);
    list_homes(p, &homes);
    Life *lives = NEW_ARRAY(p->cx->arena, Life, homes.count);
    for (int i = 0; i < homes.count; i++)
        lives[i] = (Life){homes.at[i]->bytes, 0, homes.at[i]->first, homes.at[i]->last};
    p->arena_bytes = lives_place(p->cx->arena, lives, homes.count);
    p->lower_bound = lives_bound(lives, homes.count);
    for (int i = 0; i < homes.count; i++)
        homes.at[i]->offset = lives[i].offset;
    follow_aliases(p);
    for (int i = 0; i < p->steps.count; i++)
        if (p->steps.at[i]->scratch > p->scratch_bytes)
            p->scratch_bytes = p->steps.at[i]->scratch;
    return true;
}
