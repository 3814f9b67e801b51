// case.h: the test cases of the rows, read and made into graphs. A case is a line such as "x: f32[N,4] in 0.2 3; axis = 1":
// inputs with their types (N is 3) and the range of their random numbers, then attributes. The numbers come from a small
// generator that record.py has too, so that an outside oracle sees the same inputs.
#ifndef OPS_CASE_H
#define OPS_CASE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../compiler/ops/op.h"
#include "../../passes/passes.h"

enum { N = 3 };

static int failures;
static uint64_t state;

static void fail(const char *op, const char *text, const char *what)
{
    fprintf(stderr, "ops: %s: %s: %s\n", op, text, what);
    failures++;
}

static double draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) / 9007199254740992.0;
}

static inline void case_seed(int number) { state = 1000 + (uint64_t)number; }

// --- A case --------------------------------------------------------------------------------------------------------------------

typedef struct Case {
    const char *text;
    Arena  *arena;
    Context *cx;
    Graph  *g;
    OpCall  call;
    Value  *out[OUTPUTS_MAX], *weight;  // weight: what out[0] is multiplied by
    double  least[INPUTS_MAX], most[INPUTS_MAX];
    Tensor *value[INPUTS_MAX];          // in double
    Tensor *factors;
} Case;

static Context *context_new(Arena *arena)
{
    Context *cx = NEW(arena, Context);
    *cx = (Context){.arena = arena, .names = names_new(arena), .diag = diag_new(arena), .symbols = map_new(arena)};
    return cx;
}

static const char *skip(const char *p) { return p + strspn(p, " "); }

// "f32[N,4]"
static Type read_type(Case *c, const char *p, const char **end)
{
    size_t n = strcspn(p, "[");
    Type type = {.dtype = type_find(arena_string(c->arena, p, n))};
    CHECK(type.dtype != TYPE_NONE);
    for (p += n + 1; *p != ']'; p += strspn(p, ", "))
        if (*p == 'N') {
            type.shape.dim[type.shape.rank++] = size_symbol(c->cx, "N", 8);
            p++;
        } else {
            char *after;
            type.shape.dim[type.shape.rank++] = size_const(c->cx, strtoll(p, &after, 10));
            p = after;
        }
    *end = p + 1;
    return type;
}

static void add_input(Case *c, const char *name, const char *text)
{
    const char *end;
    int variadic_place = name[0] == 'x' && name[1] >= '0' && name[1] <= '9' ? name[1] - '0' : -1;
    int i = variadic_place >= 0 ? variadic_place : op_input_index(c->call.op, name);
    CHECK(i >= 0);
    Type type = read_type(c, text, &end);
    c->least[i] = type_is_float(type.dtype) ? -2 : 0;
    c->most[i] = type_is_float(type.dtype) ? 2 : 1;
    end = skip(end);
    if (strncmp(end, "in ", 3) == 0) {
        char *after;
        c->least[i] = strtod(end + 3, &after);
        c->most[i] = strtod(after, NULL);
    }
    if (type_is_float(type.dtype)) {
        Param *param = NEW(c->arena, Param);
        *param = (Param){.path = arena_printf(c->arena, "gradient by %s of %s", name, c->text), .type = type, .op = c->call.op, .trainable = true};
        c->call.in[i] = graph_param(c->g, param);
    } else {
        c->call.in[i] = graph_input(c->g, name, type, (DiagPlace){0});
    }
    if (c->call.n_in < i + 1)
        c->call.n_in = i + 1;
}

static Expr *read_formula(Case *c, const char *text)
{
    static const char *const names[] = {"x0", "x1", "x2", "x3"};
    Expr *values[4];
    for (int i = 0; i < c->call.n_in; i++) {
        values[i] = NEW(c->arena, Expr);
        *values[i] = (Expr){.kind = EXPR_ARG, .type = c->call.in[i]->type.dtype, .arg = i};
    }
    return expr_parse(c->cx, text, names, values, c->call.n_in);
}

static void add_attr(Case *c, const char *name, const char *text)
{
    const OpDef *op = c->call.op;
    for (int i = 0; i < ATTRS_MAX && op->attrs[i].name != NULL; i++)
        if (strcmp(op->attrs[i].name, name) == 0) {
            if (op->attrs[i].kind == ATTR_FORMULA)
                c->call.attr[i] = (Attr){.kind = ATTR_FORMULA, .formula = read_formula(c, text)};
            else
                attr_read(c->cx, &op->attrs[i], text, &c->call.attr[i]);
            return;
        }
    BUG("%s has no attribute %s", op->name, name);
}

static void read_items(Case *c)
{
    for (const char *p = skip(c->text); *p != 0; p = skip(p + (*p == ';'))) {
        size_t name = strcspn(p, ":= "), length = strcspn(p, ";");
        const char *rest = skip(p + name);
        bool input = *rest == ':';
        const char *value = skip(rest + 1), *word = arena_string(c->arena, p, name);
        const char *text = arena_string(c->arena, value, (size_t)(p + length - value));
        if (input)
            add_input(c, word, text);
        else
            add_attr(c, word, text);
        p += length;
    }
}

static Tensor *tensor_at(Case *c, const Type *type, DType dtype)
{
    int64_t dim[RANK_MAX], symbols[] = {N, N, N, N};
    for (int i = 0; i < type->shape.rank; i++)
        dim[i] = size_at(type->shape.dim[i], symbols);
    return tensor_new(c->arena, dtype, type->shape.rank, dim);
}

static void draw_values(Case *c)
{
    for (int k = 0; k < c->call.n_in; k++) {
        const Value *v = c->call.in[k];
        if (v == NULL)
            continue;
        bool real = type_is_float(v->type.dtype);
        c->value[k] = tensor_at(c, &v->type, real ? TYPE_f64 : v->type.dtype);
        for (int64_t i = 0; i < tensor_count(c->value[k]); i++) {
            double u = draw(), span = c->most[k] - c->least[k];
            double x = real ? c->least[k] + u * span : c->least[k] + floor(u * (span + 1));
            tensor_set(c->value[k], i, real ? (float)x : x);        // the same numbers in f32
        }
    }
}

// Adds the call to a graph that is there.
static bool case_into(Case *c, Arena *arena, Context *cx, Graph *g, const OpDef *op, const char *text)
{
    *c = (Case){.text = text, .arena = arena, .cx = cx, .g = g};
    Builder b = {.cx = cx, .graph = g, .scope = "", .training = g->training};
    c->call = call_new(&b, op->name, 0, NULL);
    read_items(c);
    draw_values(c);
    if (graph_call(g, &c->call, "case", c->out))
        return true;
    diag_print(cx->diag, stderr);
    fail(op->name, text, "the call is refused");
    return false;
}

static inline bool case_open(Case *c, const OpDef *op, const char *text, bool training)
{
    Arena *arena = arena_new();
    Context *cx = context_new(arena);
    Graph *g = graph_new(cx, op->name);
    g->training = training;
    g->stage = STAGE_TYPED;
    return case_into(c, arena, cx, g, op, text);
}

// Each row's cases with training on, and where the op follows it, off: `each` is called with their seed set.
static inline void each_case(const OpDef *op, void (*each)(void *context, const OpDef *op, const char *text, bool training), void *context)
{
    for (int i = 0; op->cases != NULL && op->cases[i] != NULL; i++)
        for (int training = 1; training >= (op->traits & OP_MODE ? 0 : 1); training--) {
            case_seed(i);
            each(context, op, op->cases[i], training != 0);
        }
}

#endif
