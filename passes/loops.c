// loops.c: from a formula to loops.
//
// Axes that every load and the store see side by side become one (a bias over (n, c, h, w) leaves n, c and one loop over
// pixels), and elements are then reached by one flat index. Then one of four nests:
//   each      no reduction: the last axis for vectors, the first for parts
//   columns   a reduction whose loads run along an axis of the result: result[j] is joined in memory, j innermost, so that
//             vectors hold neighbouring results and each is still one chain in the order of the formula
//   lanes     a long reduction along memory: LANES partial results in a small array, joined one after the other at the end.
//             The number of lanes is fixed, so the bits do not depend on the target's vectors
//   plain     any other reduction: one local
// Parts are blocks of the first loop; their number follows from sizes alone.
#include "passes.h"

#include <math.h>

enum { LANES = 16, LANES_FROM = 32, BLOCK = 64, PARTS_MAX = 16, PART_OPERATIONS = 65536, FIRST_NEW_VAR = 2 * RANK_MAX };

typedef struct Axis { int var; Size extent; bool reduced; } Axis;

typedef struct Nest {
    Work   *work;
    Context *cx;
    Value  *out;
    Reduce  reduce;
    Expr   *body;
    int     count;                      // of axes: results first, then the reduction
    Axis    axis[2 * RANK_MAX];
    int     n_store;
    Expr   *store[RANK_MAX];            // index of the result
    int     next;                       // number of the next variable
    int     parts;
} Nest;

int parts_for(double operations)
{
    double parts = operations / PART_OPERATIONS;        // some microseconds: less than that is not worth waking a thread
    return operations < 4.0 * PART_OPERATIONS ? 1 : parts < PARTS_MAX ? (int)parts : PARTS_MAX;
}

static bool extent_is(Size size, int64_t n)
{
    int64_t known;
    return size_known(size, &known) && known == n;
}

// --- Joining axes -----------------------------------------------------------------------------------------------------------

static bool mentions(const Expr *e, int var)
{
    if (e->kind == EXPR_INDEX && e->var == var)
        return true;
    for (int i = 0; i < e->count; i++)
        if (mentions(e->operand[i], var))
            return true;
    return false;
}

static bool is_var(const Expr *e, int var) { return e->kind == EXPR_INDEX && e->var == var; }

// Where in the load the pair (a, b) stands, side by side and nowhere else; -1: neither is in it; -2: otherwise.
static int pair_at(const Expr *load, const Axis *a, const Axis *b)
{
    int at = -1, uses = 0;
    for (int i = 0; i < load->count; i++)
        uses += mentions(load->operand[i], a->var) + mentions(load->operand[i], b->var);
    if (uses == 0)
        return -1;
    for (int i = 0; i + 1 < load->count; i++)
        if (is_var(load->operand[i], a->var) && is_var(load->operand[i + 1], b->var))
            at = i;
    bool whole = at >= 0 && load->count == load->value->type.shape.rank && size_equal(load->value->type.shape.dim[at + 1], b->extent);
    return whole && uses == 2 ? at : -2;
}

static bool pair_joins(const Expr *e, const Axis *a, const Axis *b)
{
    if (e->kind == EXPR_LOAD)
        return pair_at(e, a, b) != -2;
    if (e->kind == EXPR_INDEX)
        return e->var != a->var && e->var != b->var;
    for (int i = 0; i < e->count; i++)
        if (!pair_joins(e->operand[i], a, b))
            return false;
    return true;
}

typedef struct Joint { Nest *nest; const int *joined; } Joint;      // joined[var]: the variable instead; -1: as it is

// One index over all elements: index[0] * dim[1] … + index[n-1], where runs of joined axes count as one.
static int flat_index(const Joint *j, int count, Expr *const *index, const Shape *shape, Expr **flat)
{
    Context *cx = j->nest->cx;
    *flat = expr_whole(cx, 0);
    int runs = 0;
    for (int i = 0; i < count; i++) {
        int joined = index[i]->kind == EXPR_INDEX ? j->joined[index[i]->var] : -1;
        Size stride = shape->dim[i];
        while (joined >= 0 && i + 1 < count && index[i + 1]->kind == EXPR_INDEX && j->joined[index[i + 1]->var] == joined)
            stride = size_times(cx, stride, shape->dim[++i]), runs++;
        Expr *at = joined >= 0 ? expr_index(cx, joined) : index[i];
        *flat = index_plus(cx, index_times(cx, *flat, stride), at);
    }
    return runs;
}

static Expr *join_load(void *context, Expr *e)
{
    Joint *j = context;
    Expr *flat;
    if (e->kind != EXPR_LOAD || e->count < 2 || flat_index(j, e->count, e->operand, &e->value->type.shape, &flat) == 0)
        return e;
    return expr_load(j->nest->cx, e->value, 1, &flat);
}

// Joins what pairs[i] says: axis i with axis i + 1.
static void join_axes(Nest *n, const bool *pairs)
{
    int joined[FIRST_NEW_VAR + 2 * RANK_MAX], count = 0;
    Axis axis[2 * RANK_MAX];
    for (int i = 0; i < COUNT(joined); i++)
        joined[i] = -1;
    for (int i = 0; i < n->count; i++) {
        axis[count] = n->axis[i];
        if (pairs[i])
            axis[count].var = n->next++;
        for (; pairs[i]; i++) {
            joined[n->axis[i].var] = joined[n->axis[i + 1].var] = axis[count].var;
            axis[count].extent = size_times(n->cx, axis[count].extent, n->axis[i + 1].extent);
        }
        count++;
    }
    Joint j = {n, joined};
    Expr *flat;
    n->body = expr_rewrite(n->cx, n->body, join_load, &j);
    if (flat_index(&j, n->n_store, n->store, &n->out->type.shape, &flat) > 0)
        n->store[0] = flat, n->n_store = 1;
    for (int i = 0; i < count; i++)
        n->axis[i] = axis[i];
    n->count = count;
}

static void join_what_can(Nest *n)
{
    bool pairs[2 * RANK_MAX] = {false}, any = false;
    for (int i = 0; i + 1 < n->count; i++) {
        bool adjacent = n->axis[i].reduced == n->axis[i + 1].reduced;
        Expr store = {.kind = EXPR_LOAD, .value = n->out, .count = n->n_store};
        for (int k = 0; k < n->n_store; k++)
            store.operand[k] = n->store[k];
        pairs[i] = adjacent && pair_joins(n->body, &n->axis[i], &n->axis[i + 1]) && pair_joins(&store, &n->axis[i], &n->axis[i + 1]);
        any |= pairs[i];
    }
    if (any)
        join_axes(n, pairs);
}

// --- Beginning: axes of one element go away -------------------------------------------------------------------------------------

static Expr *drop_one(void *context, Expr *e)
{
    const Nest *n = context;
    for (int i = 0; e->kind == EXPR_INDEX && i < n->count; i++)
        if (n->axis[i].var == e->var)
            return e;
    return e->kind == EXPR_INDEX ? expr_whole(n->cx, 0) : e;
}

static Nest nest_new(Work *work, const Compute *c, Value *out)
{
    Nest n = {.work = work, .cx = work->cx, .out = out, .reduce = c->reduce, .next = FIRST_NEW_VAR, .parts = 1};
    for (int i = 0; i < c->rank + c->reduced; i++) {
        Size extent = i < c->rank ? c->extent[i] : c->reduced_extent[i - c->rank];
        if (!extent_is(extent, 1))
            n.axis[n.count++] = (Axis){i, extent, i >= c->rank};
    }
    n.body = expr_rewrite(work->cx, c->body, drop_one, &n);
    n.n_store = c->rank;
    for (int i = 0; i < c->rank; i++)
        n.store[i] = drop_one(&n, expr_index(work->cx, i));
    join_what_can(&n);
    return n;
}

// --- Pieces of nests --------------------------------------------------------------------------------------------------------------

static Loop *loop_range(Nest *n, const Axis *axis, AxisMark mark)
{
    return loop_for(n->cx, axis->var, mark, expr_whole(n->cx, 0), expr_size(n->cx, axis->extent));
}

// Puts a loop into another and returns it.
static Loop *loop_into(Nest *n, Loop *outer, Loop *inner)
{
    loop_add(n->cx, outer, inner);
    return inner;
}

static Loop *loop_store(Nest *n, Value *target, int count, Expr *const *index, Expr *value)
{
    Loop *store = loop_new(n->cx, LOOP_STORE);
    store->target = target;
    store->count = count;
    for (int i = 0; i < count; i++)
        store->index[i] = index[i];
    store->value = value->type == target->type.dtype ? value : expr_cast(n->cx, target->type.dtype, value);
    return store;
}

static Expr *reduce_start(Context *cx, Reduce reduce, DType type)
{
    bool large = reduce == REDUCE_MAX || reduce == REDUCE_MIN;
    double number = reduce == REDUCE_PROD ? 1 : reduce == REDUCE_MAX ? -INFINITY : reduce == REDUCE_MIN ? INFINITY : 0;
    if (type_is_float(type) || !large)
        return expr_number(cx, type, number);
    const TypeDef *def = type_def(type);
    int bits = 8 * def->bytes - (def->kind == KIND_INT);
    int64_t most = def->kind == KIND_BOOL ? 1 : bits >= 63 ? INT64_MAX : ((int64_t)1 << bits) - 1;
    Expr *start = expr_number(cx, type, 0);
    start->whole = reduce == REDUCE_MIN ? most : def->kind == KIND_INT ? -most - 1 : 0;
    start->number = (double)start->whole;
    return start;
}

static Expr *reduce_join(Context *cx, Reduce reduce, Expr *a, Expr *b)
{
    static const PrimId prim[] = {[REDUCE_NONE] = PRIM_add, [REDUCE_SUM] = PRIM_add, [REDUCE_PROD] = PRIM_mul,
                                  [REDUCE_MAX] = PRIM_max, [REDUCE_MIN] = PRIM_min};
    return expr_prim(cx, prim[reduce], a, b, NULL);
}

// The share p of `parts` of an axis: from p * extent / parts.
static Expr *share_bound(Nest *n, Expr *p, Size extent)
{
    int64_t known;
    if (size_known(extent, &known) && known % n->parts == 0)
        return index_times(n->cx, p, size_const(n->cx, known / n->parts));
    return expr_prim(n->cx, PRIM_floordiv, index_times(n->cx, p, extent), expr_whole(n->cx, n->parts), NULL);
}

// Loops over the axes that `which` takes, from `outer` inwards; the first is cut into parts if `cut` is not NULL, which gets
// the variable of the part. Returns the innermost.
typedef struct Cut { Expr *part; } Cut;

static Loop *cut_axis(Nest *n, Loop *outer, const Axis *axis, AxisMark mark, Cut *cut)
{
    Context *cx = n->cx;
    int var = n->next++;
    Expr *p = cut->part = expr_index(cx, var), *after = expr_prim(cx, PRIM_add, p, expr_whole(cx, 1), NULL);
    Loop *blocks = loop_into(n, outer, loop_for(cx, var, AXIS_PARALLEL, expr_whole(cx, 0), expr_whole(cx, n->parts)));
    return loop_into(n, blocks, loop_for(cx, axis->var, mark, share_bound(n, p, axis->extent), share_bound(n, after, axis->extent)));
}

static int limit_parts(int parts, Size extent)
{
    double most = size_largest(extent);
    return most < parts ? (most < 1 ? 1 : (int)most) : parts;
}

static int results_count(const Nest *n)
{
    int count = 0;
    while (count < n->count && !n->axis[count].reduced)
        count++;
    return count;
}

// --- Nests -----------------------------------------------------------------------------------------------------------------------

static Loop *block_new(Nest *n) { return loop_new(n->cx, LOOP_BLOCK); }

// Result axes 0 … count-1 but `skip`, the first for parts.
static Loop *loops_over_results(Nest *n, Loop *outer, int count, int skip, bool last_vector)
{
    bool first = true;
    for (int i = 0; i < count; i++) {
        if (i == skip)
            continue;
        AxisMark mark = last_vector && i == count - 1 ? AXIS_VECTOR : AXIS_SERIAL;
        if (first && n->parts > 1)
            mark = AXIS_PARALLEL;
        outer = loop_into(n, outer, loop_range(n, &n->axis[i], mark));
        first = false;
    }
    return outer;
}

static Loop *nest_each(Nest *n)
{
    Loop *all = block_new(n), *inner = all;
    if (n->count > 0)
        n->parts = limit_parts(n->parts, n->axis[0].extent);
    if (n->count == 1 && n->parts > 1) {
        Cut cut;
        inner = cut_axis(n, all, &n->axis[0], AXIS_VECTOR, &cut);
    } else
        inner = loops_over_results(n, all, n->count, -1, true);
    loop_add(n->cx, inner, loop_store(n, n->out, n->n_store, n->store, n->body));
    return all;
}

static Loop *nest_plain(Nest *n)
{
    Loop *all = block_new(n);
    int results = results_count(n), local = n->next++;
    double reduced = 1;
    for (int i = results; i < n->count; i++)
        reduced *= size_largest(n->axis[i].extent);
    n->parts = results > 0 ? limit_parts(n->parts, n->axis[0].extent) : 1;
    Loop *outer = loops_over_results(n, all, results, -1, reduced <= 64 && n->count > results), *inner = outer;
    Loop *start = loop_new(n->cx, LOOP_ACCUMULATOR), *update = loop_new(n->cx, LOOP_UPDATE);
    start->var = update->var = local;
    start->type = n->body->type;
    start->value = reduce_start(n->cx, n->reduce, n->body->type);
    update->reduce = n->reduce;
    update->value = n->body;
    loop_add(n->cx, outer, start);
    for (int i = results; i < n->count; i++)
        inner = loop_into(n, inner, loop_range(n, &n->axis[i], AXIS_SERIAL));
    loop_add(n->cx, inner, update);
    loop_add(n->cx, outer, loop_store(n, n->out, n->n_store, n->store, expr_local(n->cx, n->body->type, local)));
    return all;
}

// One loop over axis `j`, whole or the block of it that starts at `from`.
static Loop *loop_columns(Nest *n, Loop *outer, int j, Expr *from)
{
    Context *cx = n->cx;
    const Axis *axis = &n->axis[j];
    if (from == NULL)
        return loop_into(n, outer, loop_range(n, axis, AXIS_VECTOR));
    Expr *end = expr_prim(cx, PRIM_min, expr_prim(cx, PRIM_add, from, expr_whole(cx, BLOCK), NULL), expr_size(cx, axis->extent), NULL);
    return loop_into(n, outer, loop_for(cx, axis->var, AXIS_VECTOR, from, end));
}

static Loop *nest_columns(Nest *n, int j)
{
    Context *cx = n->cx;
    int results = results_count(n), first = j == 0 ? 1 : 0;
    Loop *all = block_new(n), *outer = all;
    Expr *from = NULL;
    if (results == 1) {
        Size blocks = size_ceildiv(cx, n->axis[j].extent, BLOCK);
        int var = n->next++;
        n->parts = limit_parts(n->parts, blocks);
        from = n->parts > 1 ? index_times(cx, expr_index(cx, var), size_const(cx, BLOCK)) : NULL;
        if (from != NULL)
            outer = loop_into(n, all, loop_for(cx, var, AXIS_PARALLEL, expr_whole(cx, 0), expr_size(cx, blocks)));
    } else {
        n->parts = limit_parts(n->parts, n->axis[first].extent);
        outer = loops_over_results(n, all, results, j, false);
    }
    Loop *clear = loop_columns(n, outer, j, from), *inner = outer;
    loop_add(cx, clear, loop_store(n, n->out, n->n_store, n->store, reduce_start(cx, n->reduce, n->body->type)));
    for (int i = results; i < n->count; i++)
        inner = loop_into(n, inner, loop_range(n, &n->axis[i], AXIS_SERIAL));
    inner = loop_columns(n, inner, j, from);
    Expr *there = expr_load(cx, n->out, n->n_store, n->store);
    loop_add(cx, inner, loop_store(n, n->out, n->n_store, n->store, reduce_join(cx, n->reduce, there, n->body)));
    return all;
}

typedef struct Shift { int var; Expr *to; } Shift;

static Expr *shift_var(void *context, Expr *e)
{
    const Shift *shift = context;
    return e->kind == EXPR_INDEX && e->var == shift->var ? shift->to : e;
}

typedef struct LaneArray { Value *value; Expr *part; } LaneArray;

static Loop *lane_store(Nest *n, const LaneArray *lanes, Expr *lane, Expr *value)
{
    Expr *index[] = {lanes->part, lane};
    Expr *joined = value;
    if (value->kind != EXPR_NUMBER)
        joined = reduce_join(n->cx, n->reduce, expr_load(n->cx, lanes->value, 2, index), value);
    return loop_store(n, lanes->value, 2, index, joined);
}

// for (c …) for (lane …) lanes[lane] += body(c * LANES + lane); then what is left over.
static void add_lanes(Nest *n, Loop *outer, const Axis *axis, const LaneArray *lanes)
{
    Context *cx = n->cx;
    int chunk_var = n->next++, lane_var = n->next++, rest_var = n->next++;
    Size chunks = size_floordiv(cx, axis->extent, LANES), rest = size_minus(cx, axis->extent, size_times(cx, chunks, size_const(cx, LANES)));
    Expr *lane = expr_index(cx, lane_var), *left = expr_index(cx, rest_var);
    Shift in_chunk = {axis->var, index_plus(cx, index_times(cx, expr_index(cx, chunk_var), size_const(cx, LANES)), lane)};
    Loop *chunk = loop_into(n, outer, loop_for(cx, chunk_var, AXIS_SERIAL, expr_whole(cx, 0), expr_size(cx, chunks)));
    chunk = loop_into(n, chunk, loop_for(cx, lane_var, AXIS_VECTOR, expr_whole(cx, 0), expr_whole(cx, LANES)));
    loop_add(cx, chunk, lane_store(n, lanes, lane, expr_rewrite(cx, n->body, shift_var, &in_chunk)));
    if (extent_is(rest, 0))
        return;
    Shift in_rest = {axis->var, index_plus(cx, expr_size(cx, size_times(cx, chunks, size_const(cx, LANES))), left)};
    Loop *tail = loop_into(n, outer, loop_for(cx, rest_var, AXIS_VECTOR, expr_whole(cx, 0), expr_size(cx, rest)));
    loop_add(cx, tail, lane_store(n, lanes, left, expr_rewrite(cx, n->body, shift_var, &in_rest)));
}

static void join_lanes(Nest *n, Loop *outer, const LaneArray *lanes)
{
    Context *cx = n->cx;
    int local = n->next++, lane_var = n->next++;
    Expr *first[] = {lanes->part, expr_whole(cx, 0)}, *each[] = {lanes->part, expr_index(cx, lane_var)};
    Loop *start = loop_new(cx, LOOP_ACCUMULATOR), *update = loop_new(cx, LOOP_UPDATE);
    start->var = update->var = local;
    start->type = n->body->type;
    start->value = expr_load(cx, lanes->value, 2, first);
    update->reduce = n->reduce;
    update->value = expr_load(cx, lanes->value, 2, each);
    loop_add(cx, outer, start);
    loop_add(cx, loop_into(n, outer, loop_for(cx, lane_var, AXIS_SERIAL, expr_whole(cx, 1), expr_whole(cx, LANES))), update);
    loop_add(cx, outer, loop_store(n, n->out, n->n_store, n->store, expr_local(cx, n->body->type, local)));
}

static Loop *nest_lanes(Nest *n, int inner)
{
    Context *cx = n->cx;
    int results = results_count(n), lane_var = n->next++;
    Loop *all = block_new(n), *outer = all;
    Cut cut = {expr_whole(cx, 0)};
    n->parts = results > 0 ? limit_parts(n->parts, n->axis[0].extent) : 1;
    if (n->parts > 1)
        outer = cut_axis(n, all, &n->axis[0], AXIS_SERIAL, &cut);
    for (int i = n->parts > 1; i < results; i++)
        outer = loop_into(n, outer, loop_range(n, &n->axis[i], AXIS_SERIAL));
    Size dims[] = {size_const(cx, n->parts), size_const(cx, LANES)};
    LaneArray lanes = {graph_scratch(n->work->graph, "lanes", type_of(n->body->type, 2, dims)), cut.part};
    Loop *clear = loop_into(n, outer, loop_for(cx, lane_var, AXIS_VECTOR, expr_whole(cx, 0), expr_whole(cx, LANES)));
    loop_add(cx, clear, lane_store(n, &lanes, expr_index(cx, lane_var), reduce_start(cx, n->reduce, n->body->type)));
    Loop *around = outer;
    for (int i = results; i < n->count; i++)
        if (i != inner)
            around = loop_into(n, around, loop_range(n, &n->axis[i], AXIS_SERIAL));
    add_lanes(n, around, &n->axis[inner], &lanes);
    join_lanes(n, outer, &lanes);
    return all;
}

// --- Which nest ---------------------------------------------------------------------------------------------------------------------

static bool ends_in(const Expr *index, int var)
{
    if (index->kind == EXPR_PRIM && index->prim == PRIM_add)
        return ends_in(index->operand[0], var) || ends_in(index->operand[1], var);
    return is_var(index, var);
}

// How many loads run along memory when the variable does.
static int loads_along(const Expr *e, int var)
{
    int count = e->kind == EXPR_LOAD && e->count > 0 && ends_in(e->operand[e->count - 1], var);
    for (int i = 0; i < e->count; i++)
        count += loads_along(e->operand[i], var);
    return count;
}

static int axis_along(const Nest *n)
{
    int best = -1, most = 0;
    for (int i = n->count - 1; i >= 0; i--) {
        int loads = loads_along(n->body, n->axis[i].var);
        if (loads > most)
            best = i, most = loads;
    }
    return best;
}

static bool joins_in_memory(const Nest *n)
{
    DType type = n->body->type;
    return type == n->out->type.dtype && (type == TYPE_f32 || type == TYPE_f64);
}

Loop *loops_of_compute(Work *work, const Compute *compute, Value *out, int *parts)
{
    Nest n = nest_new(work, compute, out);
    Cost cost = {0};
    expr_cost(n.body, &cost);
    n.parts = parts_for(compute_visits(compute) * (1 + cost.cheap + 8 * cost.heavy));
    int along = axis_along(&n);
    Loop *loops;
    if (compute->reduce == REDUCE_NONE || results_count(&n) == n.count)
        loops = nest_each(&n);
    else if (along >= 0 && !n.axis[along].reduced && joins_in_memory(&n) && size_largest(n.axis[along].extent) >= 8)
        loops = nest_columns(&n, along);
    else if (along >= 0 && n.axis[along].reduced && joins_in_memory(&n) && size_largest(n.axis[along].extent) >= LANES_FROM)
        loops = nest_lanes(&n, along);
    else
        loops = nest_plain(&n);
    *parts = n.parts;
    return loops->body.count == 1 ? loops->body.at[0] : loops;
}
