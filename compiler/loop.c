// loop.c: loop trees: how they are made and printed. The tree is neutral; codegen prints it as C.
#include <math.h>

#include "mlc.h"

Loop *loop_new(Context *cx, LoopKind kind)
{
    Loop *loop = NEW(cx->arena, Loop);
    loop->kind = kind;
    return loop;
}

Loop *loop_for(Context *cx, int var, AxisMark mark, Expr *from, Expr *to)
{
    Loop *loop = loop_new(cx, LOOP_FOR);
    loop->var = var;
    loop->mark = mark;
    loop->from = from;
    loop->to = to;
    return loop;
}

void loop_add(Context *cx, Loop *parent, Loop *child) { LIST_ADD(cx->arena, parent->body, child); }

static Loop *for_all(Context *cx, Loop *at, int var, Size extent)
{
    Loop *loop = loop_for(cx, var, AXIS_SERIAL, expr_whole(cx, 0), expr_size(cx, extent));
    loop_add(cx, at, loop);
    return loop;
}

// What a reduction starts from: the largest and the smallest of integers too.
static Expr *neutral(Context *cx, Reduce reduce, DType type)
{
    const TypeDef *def = type_def(type);
    if (reduce == REDUCE_SUM || reduce == REDUCE_PROD)
        return expr_number(cx, type, reduce == REDUCE_PROD);
    if (def->kind == KIND_FLOAT)
        return expr_number(cx, type, reduce == REDUCE_MAX ? -INFINITY : INFINITY);
    int bits = def->kind == KIND_BOOL ? 1 : 8 * def->bytes;
    bool negative = def->kind == KIND_INT;
    Expr *e = expr_whole(cx, reduce == REDUCE_MAX ? (negative ? -1 - (int64_t)((1ull << (bits - 1)) - 1) : 0)
                                                  : (int64_t)((1ull << (negative ? bits - 1 : bits)) - 1));
    e->type = type;
    return e;
}

Loop *loop_of_compute(Context *cx, const Compute *compute, Value *out)
{
    Loop *root = loop_new(cx, LOOP_BLOCK), *at = root, *store = loop_new(cx, LOOP_STORE);
    for (int i = 0; i < compute->rank; i++)
        at = for_all(cx, at, i, compute->extent[i]);
    store->target = out;
    store->count = compute->rank;
    store->value = compute->body;
    for (int i = 0; i < compute->rank; i++)
        store->index[i] = expr_index(cx, i);
    if (compute->reduce != REDUCE_NONE) {
        Loop *start = loop_new(cx, LOOP_ACCUMULATOR), *update = loop_new(cx, LOOP_UPDATE), *inner = at;
        start->type = update->type = compute->body->type;
        start->value = neutral(cx, compute->reduce, start->type);
        loop_add(cx, at, start);
        for (int i = 0; i < compute->reduced; i++)
            inner = for_all(cx, inner, compute->rank + i, compute->reduced_extent[i]);
        update->reduce = compute->reduce;
        update->value = compute->body;
        loop_add(cx, inner, update);
        store->value = expr_local(cx, start->type, 0);
    }
    loop_add(cx, at, store);
    return root;
}

// --- Text ------------------------------------------------------------------------------------------------------------------

static const char *const mark_names[] = {"", " parallel", " vector", " block", " thread"};
static const char *const reduce_signs[] = {"=", "+=", "*=", "max=", "min="};

static void print_body(Text *text, const Loop *loop, int depth)
{
    text_add(text, " {\n");
    for (int i = 0; i < loop->body.count; i++)
        loop_print(text, loop->body.at[i], depth + 1);
    text_add(text, "%*s}\n", 4 * depth, "");
}

static void print_assignment(Text *text, const Loop *loop)
{
    if (loop->target == NULL)
        text_add(text, "t%d", loop->var);
    else
        text_add(text, "%s_%d[", loop->target->name != NULL ? loop->target->name : "c", loop->target->id);
    for (int i = 0; i < loop->count; i++) {
        text_add(text, i > 0 ? ", " : "");
        expr_print(text, loop->index[i], NULL);
    }
    text_add(text, "%s %s ", loop->target != NULL ? "]" : "", loop->kind == LOOP_UPDATE ? reduce_signs[loop->reduce] : "=");
    expr_print(text, loop->value, NULL);
    text_add(text, "\n");
}

void loop_print(Text *text, const Loop *loop, int depth)
{
    if (loop == NULL)
        return;
    if (loop->kind == LOOP_BLOCK) {
        for (int i = 0; i < loop->body.count; i++)
            loop_print(text, loop->body.at[i], depth);
        return;
    }
    text_add(text, "%*s", 4 * depth, "");
    switch (loop->kind) {
    case LOOP_FOR:
        text_add(text, "for i%d in ", loop->var);
        expr_print(text, loop->from, NULL);
        text_add(text, " .. ");
        expr_print(text, loop->to, NULL);
        text_add(text, "%s", mark_names[loop->mark]);
        print_body(text, loop, depth);
        break;
    case LOOP_IF:
        text_add(text, "if ");
        expr_print(text, loop->value, NULL);
        print_body(text, loop, depth);
        if (loop->other != NULL) {
            text_add(text, "%*selse {\n", 4 * depth, "");
            loop_print(text, loop->other, depth + 1);
            text_add(text, "%*s}\n", 4 * depth, "");
        }
        break;
    case LOOP_LET: case LOOP_ACCUMULATOR:
        text_add(text, "%s %s ", loop->kind == LOOP_LET ? "let" : "var", type_def(loop->type)->name);
        print_assignment(text, loop);
        break;
    default: print_assignment(text, loop);
    }
}
