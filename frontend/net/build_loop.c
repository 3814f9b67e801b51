// build_loop.c: `loop t in 0..T-1 { … }`. Its meaning is that of a loop which runs: names bound before and rebound inside are
// carried and keep their types, the parameters of one turn are those of the next, and the counter is no number known when
// compiling. This version writes the turns out, one after the other, so the rest of mlc sees plain nodes and gradients
// need nothing new; a loop whose count is known only when running is checked by one turn and not compiled.
#include <string.h>

#include "build.h"

typedef struct Carried { const char *name; Binding *binding; Type type; } Carried;
typedef LIST(Carried) CarriedList;

// --- what is carried --------------------------------------------------------------------------------------------------------

static bool is_listed(const CarriedList *list, const char *name)
{
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->at[i].name, name) == 0)
            return true;
    return false;
}

// A name of the net that a loop in train rebinds gets a binding in train: assignments there do not reach the net.
static Binding *own_binding(Net *net, Scope *scope, const char *name)
{
    Binding *outer = scope_find(scope, name);
    if (outer == NULL || outer->ended)
        return NULL;
    for (Scope *s = scope; s != NULL; s = s->kind == SCOPE_BRANCH ? s->outer : NULL)
        if (map_get(s->names, name) == outer)
            return outer;
    Binding *own = NEW(net->arena, Binding);
    *own = (Binding){.val = outer->val, .ast = outer->ast};
    map_set(scope->names, name, own);
    return own;
}

static void carry(Net *net, Scope *scope, Ast *name, CarriedList *list)
{
    Binding *b = name->kind == AST_NAME && !is_listed(list, name->text) ? own_binding(net, scope, name->text) : NULL;
    if (b == NULL || b->fixed != NULL || b->val.kind == VAL_NONE)
        return;                                 // what may not be rebound is reported where it is
    Val *v = &b->val;
    if (v->kind != VAL_TENSOR && v->kind != VAL_NUMBER && v->kind != VAL_SIZE) {
        diag_report(net->cx->diag, name->place, MESSAGE_E0311, "what a loop carries", "a tensor or a number", val_kind(v));
        note_frames(net);
        return;
    }
    Value *t = as_tensor(net, scope, name, v, TYPE_f32);
    if (t == NULL)
        return;
    b->val = val_tensor(t);
    b->ast->read = true;                        // the first turn starts from it
    LIST_ADD(net->arena, *list, ((Carried){name->text, b, t->type}));
}

static void find_carried(Net *net, Scope *scope, const Ast *body, CarriedList *list)
{
    for (int i = 0; body != NULL && i < body->count; i++) {
        const Ast *s = body->items[i];
        for (int k = 0; s->kind == AST_ASSIGN && k < s->count; k++)
            carry(net, scope, s->items[k], list);
        find_carried(net, scope, s->body, list);
        find_carried(net, scope, s->otherwise, list);
    }
}

static bool carried_keep_types(Net *net, Scope *scope, const Ast *s, const CarriedList *list)
{
    bool good = true;
    for (int i = 0; i < list->count; i++) {
        const Carried *c = &list->at[i];
        Binding *b = scope_find(scope, c->name);
        Value *t = b->val.kind != VAL_NONE ? as_tensor(net, scope, s, &b->val, c->type.dtype) : NULL;
        if (t == NULL) {
            good = false;
            continue;
        }
        b->val = val_tensor(t);
        b->ast->read = true;                    // by the next turn
        if (t->type.dtype == c->type.dtype && shape_equal(&t->type.shape, &c->type.shape))
            continue;
        diag_report(net->cx->diag, b->ast->place, MESSAGE_E0415, c->name, type_text(net->cx, &c->type), type_text(net->cx, &t->type));
        note_frames(net);
        good = false;
    }
    return good;
}

// --- collect ------------------------------------------------------------------------------------------------------------------

void run_collect(Net *net, Scope *scope, Ast *s)
{
    LoopRun *loop = net->loop;
    Val v = eval(net, scope, s->a);
    Value *t = v.kind != VAL_NONE ? as_tensor(net, scope, s->a, &v, TYPE_f32) : NULL;
    if (t == NULL || loop == NULL)
        return;
    int at = 0;
    while (at < loop->collected.count && strcmp(loop->collected.at[at].name, s->text) != 0)
        at++;
    if (at == loop->collected.count)
        LIST_ADD(net->arena, loop->collected, ((Collected){.name = s->text, .ast = s}));
    Collected *c = &loop->collected.at[at];
    const Value *first = c->values.count > 0 ? c->values.at[0] : t;
    if (t->type.dtype != first->type.dtype || !shape_equal(&t->type.shape, &first->type.shape)) {
        diag_report(net->cx->diag, s->a->place, MESSAGE_E0415, s->text, type_text(net->cx, &first->type), type_text(net->cx, &t->type));
        note_frames(net);
        return;
    }
    LIST_ADD(net->arena, c->values, t);
}

// Joins neighbours until one is left; concat takes a few at a time.
static Val join(Net *net, Scope *scope, const Ast *s, Val *parts, int count, int axis)
{
    const char *attrs = arena_printf(net->arena, "axis = %d", axis);
    while (count > 1) {
        int made = 0;
        for (int i = 0; i < count; i += INPUTS_MAX) {
            int n = count - i < INPUTS_MAX ? count - i : INPUTS_MAX;
            parts[made] = n == 1 ? parts[i] : call_simple(net, scope, s, "concat", parts + i, n, attrs);
            if (parts[made++].kind == VAL_NONE)
                return (Val){0};
        }
        count = made;
    }
    return parts[0];
}

static Val gathered(Net *net, Scope *scope, const Collected *c, Size turns)
{
    int count = c->values.count, axis = c->values.at[0]->type.shape.rank > 0;
    int64_t n;
    Val *parts = NEW_ARRAY(net->arena, Val, count);
    for (int i = 0; i < count; i++) {
        Val v = val_tensor(c->values.at[i]);
        parts[i] = call_simple(net, scope, c->ast, "expand", &v, 1, arena_printf(net->arena, "axis = %d", axis));
        if (parts[i].kind == VAL_NONE)
            return (Val){0};
    }
    if (size_known(turns, &n))
        return join(net, scope, c->ast, parts, count, axis);
    // Known when running only: of the right type, and not compiled.
    Shape shape = parts[0].tensor->type.shape;
    shape.dim[axis] = turns;
    return call_sized(net, scope, c->ast, "broadcast_to", &parts[0], "shape", shape.dim, shape.rank);
}

static void bind_collected(Net *net, Scope *scope, LoopRun *loop, int64_t turns, Size count)
{
    for (int i = 0; i < loop->collected.count; i++) {
        const Collected *c = &loop->collected.at[i];
        Binding *b = map_get(scope->names, c->name);
        Val v = {0};
        if (c->values.count != turns) {
            diag_report(net->cx->diag, c->ast->place, MESSAGE_E0416);
            note_frames(net);
        } else if (b != NULL && !b->ended) {
            diag_report(net->cx->diag, c->ast->name, MESSAGE_E0207, c->name, diag_line(net->cx->diag, b->ast->place));
            continue;
        } else {
            v = gathered(net, scope, c, count);
        }
        if (v.kind == VAL_TENSOR && v.tensor->kind == VALUE_RESULT)
            v.tensor->name = c->name;
        scope_bind(net, scope, (Ast *)c->ast, c->name, v, NULL);
    }
}

// After an error: what the loop would collect is known by name, and whatever uses it stays silent.
static void bind_nothing(Net *net, Scope *scope, Ast *body)
{
    for (int i = 0; body != NULL && i < body->count; i++) {
        Ast *s = body->items[i];
        if (s->kind == AST_COLLECT && map_get(scope->names, s->text) == NULL)
            scope_bind(net, scope, s, s->text, (Val){0}, NULL);
        bind_nothing(net, scope, s->body);
        bind_nothing(net, scope, s->otherwise);
    }
}

// --- turns --------------------------------------------------------------------------------------------------------------------

// The ends of a range; false after a report. *known: both are numbers.
static bool loop_ends(Net *net, Scope *scope, Ast *range, Val *from, Size *count, bool *known)
{
    Context *cx = net->cx;
    while (range->kind == AST_PAREN)
        range = range->a;
    if (range->kind != AST_BINARY || strcmp(range->text, "..") != 0) {
        Val v = eval(net, scope, range);
        if (v.kind != VAL_NONE)
            diag_report(cx->diag, range->place, MESSAGE_E0311, "what loop goes through", "a range such as 0..T-1", val_text(net, &v));
        note_frames(net);
        return false;
    }
    Val a = eval(net, scope, range->a), b = eval(net, scope, range->b);
    int64_t first, last;
    if (a.kind == VAL_NONE || b.kind == VAL_NONE)
        return false;
    bool whole = val_is_whole(&a, &first), to_whole = val_is_whole(&b, &last);
    if ((!whole && a.kind != VAL_SIZE) || (!to_whole && b.kind != VAL_SIZE)) {
        diag_report(cx->diag, range->place, MESSAGE_E0315, "..", val_text(net, &a), val_text(net, &b));
        note_frames(net);
        return false;
    }
    *from = whole ? a : val_int(0);
    *known = whole && to_whole;
    if (*known && (a.running || b.running)) {
        diag_report(cx->diag, range->place, MESSAGE_E0307, "the count of a loop", "the counter of another");
        note_frames(net);
        return false;
    }
    if (*known && last >= first && (last - first < 0 || last - first >= diag_limit(cx->diag, LIMIT_net_list_length))) {
        diag_report_limit(cx->diag, range->place, LIMIT_net_list_length, "this loop");
        return false;
    }
    Size one = size_const(cx, 1);
    *count = *known ? size_const(cx, last < first ? 0 : last - first + 1)
                    : size_plus(cx, size_minus(cx, to_whole ? size_const(cx, last) : b.size, whole ? size_const(cx, first) : a.size), one);
    return true;
}

// Unnamed calls have the same numbers in every turn.
static void counts_reset(const Layer *layer, const Map *before)
{
    for (int i = 0; i < map_count(layer->counts); i++) {
        const int *old = map_get(before, map_key(layer->counts, i));
        *(int *)map_value(layer->counts, i) = old != NULL ? *old : 0;
    }
}

static Map *counts_copy(Net *net, const Layer *layer)
{
    Map *copy = map_new(net->arena);
    for (int i = 0; i < map_count(layer->counts); i++)
        map_set(copy, map_key(layer->counts, i), arena_copy(net->arena, map_value(layer->counts, i), sizeof(int)));
    return copy;
}

static bool run_turn(Net *net, Scope *scope, Ast *s, Val counter, const CarriedList *carried)
{
    int line = diag_line(net->cx->diag, s->place), errors = net->cx->diag->errors;
    Scope *turn = scope_new(net, SCOPE_BRANCH, scope, scope->file, scope->layer);
    Binding *b = NEW(net->arena, Binding);
    counter.running = true;
    *b = (Binding){.val = counter, .ast = s->items[0]};
    s->items[0]->read = true;                   // counters need not be read
    map_set(turn->names, s->items[0]->text, b);
    run_body(net, turn, s->body);
    end_branch(net, scope, turn, NULL, "loop", line);
    return net->cx->diag->errors == errors && carried_keep_types(net, scope, s, carried);
}

void run_loop(Net *net, Scope *scope, Ast *s)
{
    Val from;
    Size count;
    bool known;
    if (!loop_ends(net, scope, s->a, &from, &count, &known)) {
        mark_read(scope, s);
        bind_nothing(net, scope, s->body);
        return;
    }
    if (!known)
        later(net, s, "a loop whose count is known only when running", "a count known when compiling");
    int64_t turns = known ? size_value(count) : 1;
    if (turns == 0) {
        diag_report(net->cx->diag, s->a->place, MESSAGE_E0311, "the range of a loop", "one turn or more", "empty");
        note_frames(net);
        bind_nothing(net, scope, s->body);
        return;
    }
    CarriedList carried = {0};
    find_carried(net, scope, s->body, &carried);
    Map *before = counts_copy(net, scope->layer);
    LoopRun loop = {.outer = net->loop, .first_turn = net->turns + 1};
    net->loop = &loop;
    bool good = true;
    for (int64_t i = 0; good && i < turns && count_statement(net, s); i++) {
        loop.turn = ++net->turns;
        counts_reset(scope->layer, before);
        good = run_turn(net, scope, s, val_int(from.number.num + i), &carried);
    }
    net->loop = loop.outer;
    if (good && net->cx->diag->errors == 0)
        bind_collected(net, scope, &loop, turns, count);
    else
        bind_nothing(net, scope, s->body);
}
