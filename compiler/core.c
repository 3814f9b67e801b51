#include "../passes/passes.h"
#include "ops/op.h"
#include "../kernels/c/random.h"         // one text for the interpreter and for generated programs
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <ctype.h>
static const TypeDef types[] = {
    {0},
#define TYPE(name, bytes, kind, c, npy, st, onnx) {#name, bytes, kind, c, npy, st, onnx},
#include "types.def"
#undef TYPE
};
const TypeDef *type_def(DType t)
{
    return &types[t];
}
DType type_find(const char *n)
{
    for (int i = 1; i < TYPE_COUNT; i++)
        if (!strcmp(types[i].name, n))
            return i;
    return 0;
}
bool type_is_float(DType t)
{
    return types[t].kind == KIND_FLOAT && t;
}
static const PrimDef prims[] = {
#define PRIM(name, operands, result, c, ...) {#name, operands, PRIM_##result, c, {0}},
#include "prims.def"
#undef PRIM
};
const PrimDef *prim_def(PrimId p)
{
    return &prims[p];
}
// sizes
typedef struct Atom {
    const Symbol *sym;
    Size of;
    int64_t by;
} Atom;
typedef struct Mono {
    int64_t k;
    int n;
    Atom a[6];
} Mono;
struct SizeForm {
    int n;
    Mono m[8];
};
static int atom_cmp(const Atom *a, const Atom *b);
static int mono_cmp(const Mono *a, const Mono *b)
{
    if (a->n != b->n)
        return a->n - b->n;
    for (int i = 0; i < a->n; i++) {
        int c = atom_cmp(&a->a[i], &b->a[i]);
        if (c)
            return c;
    }
    return 0;
}
static int form_cmp(Size a, Size b)
{
    if (a->n != b->n)
        return a->n - b->n;
    for (int i = 0; i < a->n; i++) {
        int c = mono_cmp(&a->m[i], &b->m[i]);
        if (c)
            return c;
        if (a->m[i].k != b->m[i].k)
            return a->m[i].k < b->m[i].k ? -1 : 1;
    }
    return 0;
}
static int atom_cmp(const Atom *a, const Atom *b)
{
    if (a->sym != b->sym)
        return a->sym < b->sym ? -1 : 1;
    if (a->sym)
        return 0;
    if (a->by != b->by)
        return a->by < b->by ? -1 : 1;
    return form_cmp(a->of, b->of);
}
static void add_mono(struct SizeForm *f, Mono m)
{
    if (!m.k)
        return;
    for (int i = 0; i < f->n; i++)
        if (!mono_cmp(&f->m[i], &m)) {
            f->m[i].k += m.k;
            if (!f->m[i].k) {
                memmove(f->m + i, f->m + i + 1, sizeof(Mono) * (f->n - i - 1));
                f->n--;
            }
            return;
        }
    CHECK(f->n < 8);
    int i = f->n++;
    while (i > 0 && mono_cmp(&f->m[i - 1], &m) > 0) {
        f->m[i] = f->m[i - 1];
        i--;
    }
    f->m[i] = m;
}
static struct SizeForm *form(Context *cx)
{
    return NEW(cx->arena, struct SizeForm);
}
Size size_const(Context *cx, int64_t n)
{
    struct SizeForm *f = form(cx);
    add_mono(f, (Mono){.k = n});
    return f;
}
Size size_symbol(Context *cx, const char *name, int64_t bound)
{
    Symbol *s = map_get(cx->symbols, name);
    if (!s) {
        s = NEW(cx->arena, Symbol);
        *s = (Symbol){name, bound, false, map_count(cx->symbols)};
        map_set(cx->symbols, name, s);
    }
    struct SizeForm *f = form(cx);
    add_mono(f, (Mono){.k = 1, .n = 1, .a = {{.sym = s}}});
    return f;
}
static Size axpy(Context *cx, Size a, int64_t k, Size b)
{
    struct SizeForm *f = form(cx);
    *f = *a;
    for (int i = 0; i < b->n; i++) {
        Mono m = b->m[i];
        m.k *= k;
        add_mono(f, m);
    }
    return f;
}
Size size_plus(Context *cx, Size a, Size b)
{
    return axpy(cx, a, 1, b);
}
Size size_minus(Context *cx, Size a, Size b)
{
    return axpy(cx, a, -1, b);
}
Size size_times(Context *cx, Size a, Size b)
{
    struct SizeForm *f = form(cx);
    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < b->n; j++) {
            Mono m = a->m[i];
            m.k *= b->m[j].k;
            for (int q = 0; q < b->m[j].n; q++) {
                int at = m.n++;
                CHECK(at < 6);
                while (at > 0 && atom_cmp(&m.a[at - 1], &b->m[j].a[q]) > 0) {
                    m.a[at] = m.a[at - 1];
                    at--;
                }
                m.a[at] = b->m[j].a[q];
            }
            add_mono(f, m);
        }
    return f;
}
bool size_known(Size a, int64_t *n)
{
    *n = a->n ? a->m[0].k : 0;
    return a->n == 0 || (a->n == 1 && a->m[0].n == 0);
}
int64_t size_value(Size a)
{
    int64_t n;
    CHECK(size_known(a, &n));
    return n;
}
Size size_floordiv(Context *cx, Size a, int64_t b)
{
    struct SizeForm *f = form(cx);
    int64_t n;
    if (size_known(a, &n))
        return size_const(cx, n >= 0 ? n / b : -((-n + b - 1) / b));
    bool all = true;
    for (int i = 0; i < a->n; i++)
        all &= a->m[i].k % b == 0;
    if (all) {
        *f = *a;
        for (int i = 0; i < f->n; i++)
            f->m[i].k /= b;
        return f;
    }
    add_mono(f, (Mono){.k = 1, .n = 1, .a = {{.of = a, .by = b}}});
    return f;
}
Size size_ceildiv(Context *cx, Size a, int64_t b)
{
    return size_floordiv(cx, size_plus(cx, a, size_const(cx, b - 1)), b);
}
Size size_over(Context *cx, Size a, Size b)
{
    int64_t n;
    struct SizeForm *f = form(cx);
    if (b->n != 1)
        return NULL;
    Mono d = b->m[0];
    for (int i = 0; i < a->n; i++) {
        Mono m = a->m[i];
        if (m.k % d.k)
            return NULL;
        m.k /= d.k;
        for (int q = 0; q < d.n; q++) {
            int at = 0;
            while (at < m.n && atom_cmp(&m.a[at], &d.a[q]))
                at++;
            if (at == m.n)
                return NULL;
            memmove(m.a + at, m.a + at + 1, sizeof(Atom) * (m.n - at - 1));
            m.n--;
        }
        add_mono(f, m);
    }
    (void)n;
    return f;
}
bool size_equal(Size a, Size b)
{
    return form_cmp(a, b) == 0;
}
static int64_t evals(Size a, const int64_t *s, bool upper, bool *ok)
{
    int64_t t = 0;
    for (int i = 0; i < a->n; i++) {
        int64_t p = a->m[i].k;
        for (int j = 0; j < a->m[i].n; j++) {
            const Atom *x = &a->m[i].a[j];
            int64_t v;
            if (x->sym) {
                v = upper ? x->sym->bound : s[x->sym->id];
                if (upper && v <= 0)
                    *ok = false;
            } else
                v = evals(x->of, s, upper, ok) / x->by;
            p *= v;
        }
        t += p;
    }
    return t;
}
bool size_upper(Size a, int64_t *n)
{
    bool ok = true;
    *n = evals(a, NULL, true, &ok);
    return ok;
}
int64_t size_at(Size a, const int64_t *s)
{
    bool ok = true;
    return evals(a, s, false, &ok);
}
int size_symbols(Size a, const Symbol **out, int room)
{
    int n = 0;
    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < a->m[i].n; j++) {
            const Atom *x = &a->m[i].a[j];
            if (x->sym) {
                bool has = false;
                for (int k = 0; k < n; k++)
                    has |= out[k] == x->sym;
                if (!has && n < room)
                    out[n++] = x->sym;
            }
        }
    return n;
}
void size_print(Text *t, Size a)
{
    if (!a->n)
        text_add(t, "0");
    for (int i = 0; i < a->n; i++) {
        text_add(t, i ? " + " : "");
        bool number = a->m[i].k != 1 || !a->m[i].n;
        if (number)
            text_add(t, "%lld", (long long)a->m[i].k);
        for (int j = 0; j < a->m[i].n; j++) {
            if (number || j > 0)
                text_add(t, " * ");
            if (a->m[i].a[j].sym)
                text_add(t, "%s", a->m[i].a[j].sym->name);
            else {
                text_add(t, "floor(");
                size_print(t, a->m[i].a[j].of);
                text_add(t, " / %d)", (int)a->m[i].a[j].by);
            }
        }
    }
}
bool shape_equal(const Shape *a, const Shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (!size_equal(a->dim[i], b->dim[i]))
            return false;
    return true;
}
Size shape_count(Context *cx, const Shape *s)
{
    Size p = size_const(cx, 1);
    for (int i = 0; i < s->rank; i++)
        p = size_times(cx, p, s->dim[i]);
    return p;
}
static bool one(Size s)
{
    int64_t n;
    return size_known(s, &n) && n == 1;
}
bool shape_broadcast(Context *cx, const Shape *a, const Shape *b, Shape *o)
{
    (void)cx;
    o->rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 1; i <= o->rank; i++) {
        Size x = i <= a->rank ? a->dim[a->rank - i] : NULL, y = i <= b->rank ? b->dim[b->rank - i] : NULL;
        Size r = !x || (y && one(x)) ? y : !y || one(y) ? x : size_equal(x, y) ? x : NULL;
        if (!r)
            return false;
        o->dim[o->rank - i] = r;
    }
    return true;
}
Type type_of(DType d, int rank, const Size *dims)
{
    Type t = {d, {.rank = rank}};
    for (int i = 0; i < rank; i++)
        t.shape.dim[i] = dims[i];
    return t;
}
void type_print(Text *t, const Type *y)
{
    text_add(t, "%s", types[y->dtype].name);
    if (y->shape.rank == 0)
        return;
    text_add(t, "[");
    for (int i = 0; i < y->shape.rank; i++) {
        text_add(t, i ? ", " : "");
        size_print(t, y->shape.dim[i]);
    }
    text_add(t, "]");
}
const char *type_text(Context *cx, const Type *y)
{
    Text t = {.arena = cx->arena};
    type_print(&t, y);
    return t.at;
}
// expr
static Expr *ex(Context *cx, ExprKind k, DType t)
{
    Expr *e = NEW(cx->arena, Expr);
    e->kind = k;
    e->type = t;
    return e;
}
Expr *expr_number(Context *cx, DType t, double n)
{
    Expr *e = ex(cx, EXPR_NUMBER, t);
    e->number = n;
    e->whole = isfinite(n) ? (int64_t)n : 0;
    return e;
}
Expr *expr_whole(Context *cx, int64_t n)
{
    Expr *e = ex(cx, EXPR_NUMBER, TYPE_i64);
    e->whole = n;
    e->number = (double)n;
    return e;
}
Expr *expr_index(Context *cx, int v)
{
    Expr *e = ex(cx, EXPR_INDEX, TYPE_i64);
    e->var = v;
    return e;
}
Expr *expr_size(Context *cx, Size s)
{
    Expr *e = ex(cx, EXPR_SIZE, TYPE_i64);
    e->size = s;
    return e;
}
Expr *expr_local(Context *cx, DType t, int v)
{
    Expr *e = ex(cx, EXPR_LOCAL, t);
    e->var = v;
    return e;
}
Expr *expr_load(Context *cx, Value *v, int n, Expr *const *ix)
{
    Expr *e = ex(cx, EXPR_LOAD, v->type.dtype);
    e->value = v;
    e->count = n;
    for (int i = 0; i < n; i++) {
        CHECK(ix[i]);
        e->operand[i] = ix[i];
    }
    return e;
}
Expr *expr_prim(Context *cx, PrimId p, Expr *a, Expr *b, Expr *c)
{
    Expr *e = ex(cx, EXPR_PRIM,
                 prims[p].result == PRIM_BOOL   ? TYPE_bool
                 : prims[p].result == PRIM_KEEP ? b->type
                                                : a->type);
    e->prim = p;
    Expr *o[] = {a, b, c};
    e->count = prims[p].operands;
    for (int i = 0; i < e->count; i++) {
        CHECK(o[i]);
        e->operand[i] = o[i];
    }
    return e;
}
Expr *expr_cast(Context *cx, DType t, Expr *a)
{
    if (a->type == t)
        return a;
    Expr *e = ex(cx, EXPR_CAST, t);
    e->count = 1;
    e->operand[0] = a;
    return e;
}
typedef struct P {
    Context *cx;
    const char *s;
    const char *const *names;
    Expr *const *v;
    int n;
    DType t;
} P;
static Expr *cmp(P *p);
static void ws(P *p)
{
    while (*p->s == ' ')
        p->s++;
}
static Expr *unify(P *p, Expr *e, DType t)
{
    return e->kind == EXPR_NUMBER && e->type != t ? expr_number(p->cx, t, e->number) : e;
}
static Expr *bin(P *p, PrimId id, Expr *a, Expr *b)
{
    if (a->kind == EXPR_NUMBER)
        a = unify(p, a, b->type);
    else
        b = unify(p, b, a->type);
    return expr_prim(p->cx, id, a, b, NULL);
}
static Expr *prim(P *p)
{
    ws(p);
    if (*p->s == '(') {
        p->s++;
        Expr *e = cmp(p);
        ws(p);
        CHECK(*p->s++ == ')');
        return e;
    }
    if (*p->s == '-') {
        p->s++;
        Expr *e = prim(p);
        return e->kind == EXPR_NUMBER ? expr_number(p->cx, e->type, -e->number)
                                      : expr_prim(p->cx, PRIM_neg, e, NULL, NULL);
    }
    if (isdigit(*p->s)) {
        char *end;
        double d = strtod(p->s, &end);
        p->s = end;
        return expr_number(p->cx, p->t, d);
    }
    int n = 0;
    while (isalnum(p->s[n]) || p->s[n] == '_')
        n++;
    const char *w = arena_string(p->cx->arena, p->s, n);
    p->s += n;
    if (*p->s == '(') {
        int id = -1;
        for (int i = 0; i < PRIM_COUNT; i++)
            if (!strcmp(prims[i].name, w))
                id = i;
        if (id < 0)
            BUG("prim %s", w);
        Expr *a[3] = {0};
        int c = 0;
        while (*p->s == '(' || *p->s == ',') {
            p->s++;
            a[c++] = cmp(p);
            ws(p);
        }
        CHECK(*p->s++ == ')');
        int f = id == PRIM_select;
        if (c > f + 1) {
            if (a[f]->kind == EXPR_NUMBER)
                a[f] = unify(p, a[f], a[f + 1]->type);
            else
                a[f + 1] = unify(p, a[f + 1], a[f]->type);
        }
        return expr_prim(p->cx, id, a[0], a[1], a[2]);
    }
    for (int i = 0; i < p->n; i++)
        if (!strcmp(p->names[i], w))
            return p->v[i];
    BUG("name %s", w);
}
static Expr *mul(P *p)
{
    Expr *a = prim(p);
    for (;;) {
        ws(p);
        if (*p->s == '*')
            p->s++, a = bin(p, PRIM_mul, a, prim(p));
        else if (*p->s == '/')
            p->s++, a = bin(p, PRIM_div, a, prim(p));
        else
            return a;
    }
}
static Expr *sum(P *p)
{
    Expr *a = mul(p);
    for (;;) {
        ws(p);
        if (*p->s == '+')
            p->s++, a = bin(p, PRIM_add, a, mul(p));
        else if (*p->s == '-')
            p->s++, a = bin(p, PRIM_sub, a, mul(p));
        else
            return a;
    }
}
static Expr *cmp(P *p)
{
    Expr *a = sum(p);
    ws(p);
    PrimId id;
    if (p->s[0] == '<')
        id = p->s[1] == '=' ? PRIM_le : PRIM_lt;
    else if (p->s[0] == '>')
        id = p->s[1] == '=' ? PRIM_ge : PRIM_gt;
    else if (p->s[0] == '=')
        id = PRIM_eq;
    else if (p->s[0] == '!')
        id = PRIM_ne;
    else
        return a;
    p->s += p->s[1] == '=' ? 2 : 1;
    return bin(p, id, a, sum(p));
}
Expr *expr_parse(Context *cx, const char *f, const char *const *names, Expr *const *v, int n)
{
    P p = {cx, f, names, v, n, n ? v[0]->type : TYPE_f32};
    for (int i = n; i-- > 0;)
        if (v[i]->type != TYPE_bool)
            p.t = v[i]->type;
    return cmp(&p);
}
Expr *expr_substitute(Context *cx, Expr *e, Expr *(*leaf)(void *, Expr *), void *c)
{
    return expr_rewrite(cx, e, leaf, c);
}

static const char *const dtab[][2] = {
#define PRIM(name, operands, result, c, da, db) {da, db},
#include "prims.def"
#undef PRIM
};
static Expr *isn(Expr *e, double x)
{
    return e && e->kind == EXPR_NUMBER && e->number == x ? e : NULL;
}
static Expr *smul(Context *cx, Expr *a, Expr *b)
{
    if (isn(a, 1))
        return b;
    if (isn(b, 1))
        return a;
    return expr_prim(cx, PRIM_mul, a, b, NULL);
}
Expr *expr_derivative(Context *cx, Expr *f, int a)
{
    if (f->kind == EXPR_ARG)
        return f->arg == a ? expr_number(cx, f->type, 1) : NULL;
    if (f->kind == EXPR_CAST) {
        Expr *d = expr_derivative(cx, f->operand[0], a);
        return d ? expr_cast(cx, f->type, d) : NULL;
    }
    if (f->kind != EXPR_PRIM)
        return NULL;
    if (f->prim == PRIM_select) {
        Expr *x = expr_derivative(cx, f->operand[1], a), *y = expr_derivative(cx, f->operand[2], a);
        if (!x && !y)
            return NULL;
        Expr *z = expr_number(cx, f->type, 0);
        return expr_prim(cx, PRIM_select, f->operand[0], x ? x : z, y ? y : z);
    }
    static const char *const nm[] = {"a", "y", "b"};
    Expr *v[] = {f->operand[0], f, f->count > 1 ? f->operand[1] : NULL};
    Expr *t = NULL;
    for (int i = 0; i < f->count && i < 2; i++) {
        Expr *d = dtab[f->prim][i][0] ? expr_derivative(cx, f->operand[i], a) : NULL;
        if (!d)
            continue;
        Expr *k = expr_parse(cx, dtab[f->prim][i], nm, v, f->count > 1 ? 3 : 2);
        Expr *m = smul(cx, k, d);
        t = t ? expr_prim(cx, PRIM_add, t, m, NULL) : m;
    }
    return t;
}
void expr_print(Text *t, const Expr *e, const char *const *a)
{
    (void)a;
    text_add(t, "e%d", e->kind);
}
static void px(Text *t, const Expr *e)
{
    switch (e->kind) {
    case EXPR_NUMBER:
        text_add(t, "%g", e->number);
        return;
    case EXPR_INDEX:
        text_add(t, "i%d", e->var);
        return;
    case EXPR_SIZE:
        size_print(t, e->size);
        return;
    case EXPR_LOCAL:
        text_add(t, "l%d", e->var);
        return;
    case EXPR_LOAD:
        text_add(t, "%s_%d[", e->value->name ? e->value->name : "c", e->value->id);
        break;
    case EXPR_PRIM:
        text_add(t, "%s(", prims[e->prim].name);
        break;
    default:
        text_add(t, "?%d(", e->kind);
    }
    for (int i = 0; i < e->count; i++) {
        text_add(t, i ? ", " : "");
        px(t, e->operand[i]);
    }
    text_add(t, e->kind == EXPR_LOAD ? "]" : ")");
}
// graph
Graph *graph_new(Context *cx, const char *name)
{
    Graph *g = NEW(cx->arena, Graph);
    g->cx = cx;
    g->name = name;
    return g;
}
static Value *val(Graph *g, ValueKind k, const char *name, Type t)
{
    Value *v = NEW(g->cx->arena, Value);
    *v = (Value){.id = g->values.count, .kind = k, .name = name, .type = t};
    LIST_ADD(g->cx->arena, g->values, v);
    return v;
}
Value *graph_input(Graph *g, const char *name, Type t, DiagPlace p)
{
    Value *v = val(g, VALUE_INPUT, name, t);
    v->index = g->inputs.count;
    v->place = p;
    LIST_ADD(g->cx->arena, g->inputs, v);
    return v;
}
Value *graph_param(Graph *g, Param *p)
{
    for (int i = 0; i < g->values.count; i++)
        if (g->values.at[i]->param == p)
            return g->values.at[i];
    Value *v = val(g, VALUE_PARAM, p->path, p->type);
    v->param = p;
    return v;
}
Value *graph_const(Graph *g, Type t, const void *d)
{
    Value *v = val(g, VALUE_CONST, NULL, t);
    v->data = d;
    return v;
}
bool graph_call(Graph *g, OpCall *c, const char *scope, Value **out)
{
    c->n_out = 1;
    if (!c->op->shape(c))
        return false;
    Node *n = NEW(g->cx->arena, Node);
    n->id = g->nodes.count;
    n->salt = c->op->traits & OP_RANDOM ? ++g->draws : 0;
    n->op = c->op;
    n->n_in = c->n_in;
    n->n_out = c->n_out;
    memcpy(n->in, c->in, sizeof n->in);
    memcpy(n->attr, c->attr, sizeof n->attr);
    n->scope = scope;
    n->place = c->place;
    for (int i = 0; i < c->n_out; i++) {
        out[i] = n->out[i] = val(g, VALUE_RESULT, c->op->name, c->out[i]);
        out[i]->node = n;
        out[i]->index = i;
    }
    LIST_ADD(g->cx->arena, g->nodes, n);
    return true;
}
void graph_print(Text *t, const Graph *g)
{
    for (int i = 0; i < g->nodes.count; i++)
        text_add(t, "%s\n", g->nodes.at[i]->op->name);
}
void graph_verify(const Graph *g)
{
    for (int i = 0; i < g->nodes.count; i++)
        for (int k = 0; k < g->nodes.at[i]->n_in; k++) {
            Value *v = g->nodes.at[i]->in[k];
            if (!v || !v->node)
                continue;
            bool before = false;
            for (int j = 0; j < i; j++)
                before |= g->nodes.at[j] == v->node;
            if (!before)
                BUG("%s uses %s too early", g->nodes.at[i]->op->name, v->node->op->name);
        }
    for (int i = 0; i < g->values.count; i++)
        CHECK(g->values.at[i]->id == i);
}
Graph *graph_copy(const Graph *g)
{
    Graph *c = NEW(g->cx->arena, Graph);
    *c = *g;
    c->values.at = arena_copy(g->cx->arena, g->values.at, sizeof(Value *) * (g->values.count + 1));
    c->nodes.at = arena_copy(g->cx->arena, g->nodes.at, sizeof(Node *) * (g->nodes.count + 1));
    c->values.room = c->values.count;
    c->nodes.room = c->nodes.count;
    for (int i = 0; i < c->values.count; i++)
        c->values.at[i] = arena_copy(g->cx->arena, c->values.at[i], sizeof(Value));
#define MAPV(v)                                                                                                        \
    if (v)                                                                                                             \
    v = c->values.at[(v)->id]
    for (int i = 0; i < c->nodes.count; i++) {
        Node *n = c->nodes.at[i] = arena_copy(g->cx->arena, c->nodes.at[i], sizeof(Node));
        for (int k = 0; k < n->n_in; k++)
            MAPV(n->in[k]);
        for (int k = 0; k < n->n_out; k++) {
            MAPV(n->out[k]);
            n->out[k]->node = n;
        }
    }
    c->outputs.at = arena_copy(g->cx->arena, g->outputs.at, sizeof(NamedValue) * (g->outputs.count + 1));
    c->outputs.room = c->outputs.count;
    for (int i = 0; i < c->outputs.count; i++)
        MAPV(c->outputs.at[i].value);
    c->inputs.at = arena_copy(g->cx->arena, g->inputs.at, sizeof(Value *) * (g->inputs.count + 1));
    for (int i = 0; i < c->inputs.count; i++)
        MAPV(c->inputs.at[i]);
    MAPV(c->loss);
    return c;
}
void graph_prune(Graph *g)
{
    bool *u = NEW_ARRAY(g->cx->arena, bool, g->values.count);
    for (int i = 0; i < g->outputs.count; i++)
        u[g->outputs.at[i].value->id] = true;
    for (int i = 0; i < g->metrics.count; i++)
        u[g->metrics.at[i].value->id] = true;
    for (int i = 0; i < g->auxiliary.count; i++)
        u[g->auxiliary.at[i].value->id] = true;
    for (int i = 0; i < g->updates.count; i++)
        u[g->updates.at[i].value->id] = true;
    for (int i = 0; i < g->gradients.count; i++)
        if (g->gradients.at[i].value != NULL)
            u[g->gradients.at[i].value->id] = true;
    if (g->loss)
        u[g->loss->id] = true;
    for (int i = g->nodes.count - 1; i >= 0; i--) {
        Node *n = g->nodes.at[i];
        bool w = false;
        for (int k = 0; k < n->n_out; k++)
            w |= u[n->out[k]->id];
        if (w)
            for (int k = 0; k < n->n_in; k++) {
                if (n->in[k])
                    u[n->in[k]->id] = true;
            }
        else
            g->nodes.at[i] = NULL;
    }
    int c = 0;
    for (int i = 0; i < g->nodes.count; i++)
        if (g->nodes.at[i])
            g->nodes.at[c++] = g->nodes.at[i];
    g->nodes.count = c;
}
Value *build(Builder *b, const char *op, int n, Value *const *in, const char *attrs)
{
    OpCall c = call_new(b, op, n, in);
    for (const char *s = attrs; *s;) {
        s += strspn(s, " ,");
        size_t l = strcspn(s, " =");
        const char *w = arena_string(b->cx->arena, s, l);
        s += l;
        s += strspn(s, " =");
        size_t e = *s == '[' ? strcspn(s, "]") + 1 : strcspn(s, ",");
        const char *v = arena_string(b->cx->arena, s, e);
        s += e;
        for (int i = 0; i < ATTRS_MAX && c.op->attrs[i].name; i++)
            if (!strcmp(c.op->attrs[i].name, w))
                attr_read(b->cx, &c.op->attrs[i], v, &c.attr[i]);
    }
    return op_build(b, &c);
}
Value *build1(Builder *b, const char *op, Value *x, const char *a)
{
    return build(b, op, 1, &x, a);
}
Value *build2(Builder *b, const char *op, Value *x, Value *y, const char *a)
{
    return build(b, op, 2, (Value *[]){x, y}, a);
}
Value *build_map(Builder *b, const char *f, int n, Value *const *in)
{
    static const char *nm[] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"};
    Expr *v[8];
    for (int i = 0; i < n; i++) {
        v[i] = ex(b->cx, EXPR_ARG, in[i]->type.dtype);
        v[i]->arg = i;
    }
    return build_formula(b, expr_parse(b->cx, f, nm, v, n), n, in);
}
Value *build_number(Builder *b, DType t, double x)
{
    Tensor *q = tensor_new(b->cx->arena, t, 0, NULL);
    tensor_set(q, 0, x);
    return graph_const(b->graph, type_of(t, 0, NULL), q->data);
}
Value *build_sum_to(Builder *b, Value *x, const Shape *s)
{
    bool ax[RANK_MAX] = {0};
    int by = x->type.shape.rank - s->rank;
    bool any = false;
    for (int i = 0; i < x->type.shape.rank; i++) {
        ax[i] = i < by || (one(s->dim[i - by]) && !one(x->type.shape.dim[i]));
        any |= ax[i];
    }
    if (!any)
        return x;
    Value *r = build_reduce(b, "sum", x, ax, false);
    return shape_equal(&r->type.shape, s) ? r : build_reshape(b, r, s);
}
Value *build_reshape(Builder *b, Value *x, const Shape *s)
{
    OpCall c = call_new(b, "reshape", 1, &x);
    call_sizes(&c, "shape", s->rank, s->dim);
    return op_build(b, &c);
}
// tensors, eval
Tensor *tensor_new(Arena *a, DType t, int r, const int64_t *d)
{
    Tensor *x = NEW(a, Tensor);
    x->dtype = t;
    x->rank = r;
    for (int i = 0; i < r; i++)
        x->dim[i] = d[i];
    x->data = arena_alloc(a, tensor_count(x) * types[t].bytes + 16);
    return x;
}
int64_t tensor_count(const Tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->dim[i];
    return n;
}
double tensor_get(const Tensor *t, int64_t i)
{
    switch (t->dtype) {
    case TYPE_f32:
        return ((float *)t->data)[i];
    case TYPE_f64:
        return ((double *)t->data)[i];
    case TYPE_i32:
        return ((int32_t *)t->data)[i];
    case TYPE_i64:
        return ((int64_t *)t->data)[i];
    case TYPE_i8:
        return ((int8_t *)t->data)[i];
    case TYPE_i16:
        return ((int16_t *)t->data)[i];
    case TYPE_bool:
    case TYPE_u8:
        return ((uint8_t *)t->data)[i];
    default:
        BUG("the interpreter does not know %s", types[t->dtype].name);
    }
}
void tensor_set(Tensor *t, int64_t i, double x)
{
    switch (t->dtype) {
    case TYPE_f32:
        ((float *)t->data)[i] = x;
        break;
    case TYPE_f64:
        ((double *)t->data)[i] = x;
        break;
    case TYPE_i32:
        ((int32_t *)t->data)[i] = x;
        break;
    case TYPE_i64:
        ((int64_t *)t->data)[i] = x;
        break;
    case TYPE_i8:
        ((int8_t *)t->data)[i] = x;
        break;
    case TYPE_i16:
        ((int16_t *)t->data)[i] = x;
        break;
    case TYPE_bool:
    case TYPE_u8:
        ((uint8_t *)t->data)[i] = x;
        break;
    default:
        BUG("the interpreter does not know %s", types[t->dtype].name);
    }
}
typedef struct R {
    Eval *e;
    int64_t var[256];
    double local[256];
} R;
static bool dbl;
static double rnd(DType t, double x)
{
    return t == TYPE_f32 && !dbl ? (float)x : type_is_float(t) ? x : trunc(x);
}
static double evx(R *r, const Expr *e);
static int64_t at(R *r, const Value *v, int n, Expr *const *ix)
{
    Tensor *t = r->e->at[v->id];
    if (!t)
        BUG("no tensor for %s_%d", v->name, v->id);
    if (n != t->rank)
        CHECK(n == 1);
    int64_t k = 0;
    for (int i = 0; i < n; i++) {
        int64_t q = evx(r, ix[i]);
        if (n == t->rank && (q < 0 || q >= t->dim[i]))
            BUG("index %d of axis %d (%d) of %s_%d", (int)q, i, (int)t->dim[i], v->name, v->id);
        k = n == t->rank ? k * t->dim[i] + q : q;
    }
    if (k < 0 || k >= tensor_count(t))
        BUG("flat index");
    return k;
}
static double evx(R *r, const Expr *e)
{
    switch (e->kind) {
    case EXPR_NUMBER:
        return e->type == TYPE_i64 ? (double)e->whole : rnd(e->type, e->number);
    case EXPR_INDEX:
        return r->var[e->var];
    case EXPR_SIZE:
        return size_at(e->size, r->e->symbols);
    case EXPR_LOCAL:
        return r->local[e->var];
    case EXPR_LOAD:
        return tensor_get(r->e->at[e->value->id], at(r, e->value, e->count, e->operand));
    case EXPR_CAST:
        return rnd(e->type, evx(r, e->operand[0]));
    case EXPR_PRIM:
        break;
    default:
        BUG("expr %d", e->kind);
    }
    if (e->prim == PRIM_select)
        return evx(r, evx(r, e->operand[0]) ? e->operand[1] : e->operand[2]);
    double a = evx(r, e->operand[0]);
    if (e->prim == PRIM_and && e->type == TYPE_bool)
        return a && evx(r, e->operand[1]);
    double b = e->count > 1 ? evx(r, e->operand[1]) : 0, y;
    switch (e->prim) {
    case PRIM_add:
        y = a + b;
        break;
    case PRIM_sub:
        y = a - b;
        break;
    case PRIM_mul:
        y = a * b;
        break;
    case PRIM_div:
        y = a / b;
        break;
    case PRIM_floordiv:
        y = floor(a / b);
        break;
    case PRIM_mod:
        y = a - b * floor(a / b);
        break;
    case PRIM_neg:
        y = -a;
        break;
    case PRIM_abs:
        y = fabs(a);
        break;
    case PRIM_min:
        y = isnan(a) || isnan(b) ? NAN : a < b ? a : b;
        break;
    case PRIM_max:
        y = isnan(a) || isnan(b) ? NAN : a > b ? a : b;
        break;
    case PRIM_sqrt:
        y = sqrt(a);
        break;
    case PRIM_exp:
        y = exp(a);
        break;
    case PRIM_expm1:
        y = expm1(a);
        break;
    case PRIM_log1p:
        y = log1p(a);
        break;
    case PRIM_sin:
        y = sin(a);
        break;
    case PRIM_cos:
        y = cos(a);
        break;
    case PRIM_sigmoid:
        y = 1 / (1 + exp(-a));
        break;
    case PRIM_erf:
        y = erf(a);
        break;
    case PRIM_floor:
        y = floor(a);
        break;
    case PRIM_ceil:
        y = ceil(a);
        break;
    case PRIM_round:
        y = rint(a);
        break;
    case PRIM_log:
        y = log(a);
        break;
    case PRIM_tanh:
        y = tanh(a);
        break;
    case PRIM_pow:
        y = pow(a, b);
        break;
    case PRIM_lt:
        y = a < b;
        break;
    case PRIM_le:
        y = a <= b;
        break;
    case PRIM_gt:
        y = a > b;
        break;
    case PRIM_ge:
        y = a >= b;
        break;
    case PRIM_eq:
        y = a == b;
        break;
    case PRIM_ne:
        y = a != b;
        break;
    case PRIM_or:
        y = a || b;
        break;
    case PRIM_and:
        y = a && b;
        break;
    case PRIM_not:
        y = !a;
        break;
    case PRIM_random:
        y = mlk_random(r->e->seed, r->e->step, (int64_t)a, (int64_t)b);
        break;
    default:
        BUG("prim %s", prims[e->prim].name);
    }
    return rnd(e->type, y);
}
static double joinr(Reduce k, DType t, double a, double b)
{
    switch (k) {
    case REDUCE_SUM:
        return rnd(t, a + b);
    case REDUCE_PROD:
        return rnd(t, a * b);
    case REDUCE_MAX:
        return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
    case REDUCE_MIN:
        return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
    default:
        return b;
    }
}
static void runl(R *r, const Loop *l)
{
    switch (l->kind) {
    case LOOP_BLOCK:
        for (int i = 0; i < l->body.count; i++)
            runl(r, l->body.at[i]);
        break;
    case LOOP_FOR:
        for (int64_t i = evx(r, l->from), e = evx(r, l->to); i < e; i++) {
            r->var[l->var] = i;
            for (int k = 0; k < l->body.count; k++)
                runl(r, l->body.at[k]);
        }
        break;
    case LOOP_LET:
    case LOOP_ACCUMULATOR:
        r->local[l->var] = rnd(l->type, evx(r, l->value));
        break;
    case LOOP_IF:
        if (evx(r, l->value))
            for (int k = 0; k < l->body.count; k++)
                runl(r, l->body.at[k]);
        else if (l->other)
            runl(r, l->other);
        break;
    default: {
        double v = evx(r, l->value);
        if (!l->target) {
            r->local[l->var] = joinr(l->reduce, l->value->type, r->local[l->var], v);
            break;
        }
        Tensor *t = r->e->at[l->target->id];
        int64_t k = at(r, l->target, l->count, l->index);
        tensor_set(t, k, l->kind == LOOP_UPDATE ? joinr(l->reduce, t->dtype, tensor_get(t, k), v) : v);
    }
    }
}
bool loop_run(const Loop *l, Eval *e)
{
    R r = {.e = e};
    runl(&r, l);
    return true;
}
Loop *loop_new(Context *cx, LoopKind k)
{
    Loop *l = NEW(cx->arena, Loop);
    l->kind = k;
    return l;
}
Loop *loop_for(Context *cx, int v, AxisMark m, Expr *f, Expr *t)
{
    Loop *l = loop_new(cx, LOOP_FOR);
    l->var = v;
    l->mark = m;
    l->from = f;
    l->to = t;
    return l;
}
void loop_add(Context *cx, Loop *p, Loop *c)
{
    LIST_ADD(cx->arena, p->body, c);
}
void loop_print(Text *t, const Loop *l, int d)
{
    if (!l) {
        text_add(t, "%*sfile\n", 2 * d, "");
        return;
    }
    static const char *n[] = {"block", "for", "let", "acc", "store", "update", "if"};
    text_add(t, "%*s%s ", 2 * d, "", n[l->kind]);
    if (l->kind == LOOP_FOR) {
        text_add(t, "i%d m%d ", l->var, l->mark);
        px(t, l->from);
        text_add(t, "...");
        px(t, l->to);
    }
    if (l->target) {
        text_add(t, "%s_%d[", l->target->name, l->target->id);
        for (int i = 0; i < l->count; i++) {
            px(t, l->index[i]);
            text_add(t, " ");
        }
        text_add(t, "] = ");
    } else if (l->kind != LOOP_FOR && l->kind)
        text_add(t, "l%d = ", l->var);
    if (l->value)
        px(t, l->value);
    text_add(t, "\n");
    for (int i = 0; i < l->body.count; i++)
        loop_print(t, l->body.at[i], d + 1);
}
Loop *loop_of_compute(Context *cx, const Compute *c, Value *out)
{
    Loop *root = loop_new(cx, LOOP_BLOCK), *in = root;
    for (int i = 0; i < c->rank; i++) {
        Loop *f = loop_for(cx, i, 0, expr_whole(cx, 0), expr_size(cx, c->extent[i]));
        loop_add(cx, in, f);
        in = f;
    }
    Loop *st = loop_new(cx, LOOP_STORE);
    st->target = out;
    st->count = c->rank;
    for (int i = 0; i < c->rank; i++)
        st->index[i] = expr_index(cx, i);
    st->value = c->body;
    if (c->reduce) {
        Loop *a = loop_new(cx, LOOP_ACCUMULATOR), *u = loop_new(cx, LOOP_UPDATE);
        a->var = u->var = 100;
        a->type = c->body->type;
        a->value = expr_number(cx, a->type,
                               c->reduce == REDUCE_SUM    ? 0
                               : c->reduce == REDUCE_PROD ? 1
                               : c->reduce == REDUCE_MAX  ? -INFINITY
                                                          : INFINITY);
        u->reduce = c->reduce;
        u->value = c->body;
        loop_add(cx, in, a);
        Loop *k = in;
        for (int i = 0; i < c->reduced; i++) {
            Loop *f = loop_for(cx, c->rank + i, 0, expr_whole(cx, 0), expr_size(cx, c->reduced_extent[i]));
            loop_add(cx, k, f);
            k = f;
        }
        loop_add(cx, k, u);
        st->value = expr_local(cx, a->type, 100);
    }
    loop_add(cx, in, st);
    return root;
}
bool eval_graph(const Graph *g0, Eval *e)
{
    dbl = e->in_double;
    Graph *g = (Graph *)g0;
    Context *cx = g->cx;
    bool comp = false;
    for (int i = 0; i < g->nodes.count; i++)
        comp |= g->nodes.at[i]->op->expand != NULL;
    Eval e2 = *e;
    if (comp) {
        g = graph_copy(g);
        Work w = {.cx = cx, .graph = g};
        g->stage = STAGE_DIFFERENTIATED;
        pass_expand(&w);
        e2.at = NEW_ARRAY(cx->arena, Tensor *, g->values.count);
        memcpy(e2.at, e->at, sizeof(Tensor *) * g0->values.count);
    }
    for (int i = 0; i < g->values.count; i++) {
        Value *v = g->values.at[i];
        if (v->kind == VALUE_CONST) {
            int64_t d[8];
            for (int k = 0; k < v->type.shape.rank; k++)
                d[k] = size_at(v->type.shape.dim[k], e->symbols);
            Tensor src = {v->type.dtype, v->type.shape.rank, {0}, (void *)v->data};
            e2.at[i] = tensor_new(e->arena, dbl && type_is_float(v->type.dtype) ? TYPE_f64 : v->type.dtype,
                                  v->type.shape.rank, d);
            for (int64_t q = 0; q < tensor_count(e2.at[i]); q++)
                tensor_set(e2.at[i], q, tensor_get(&src, q));
        }
    }
    for (int i = 0; i < g->nodes.count; i++) {
        Node *n = g->nodes.at[i];
        for (int k = 0; k < n->n_out; k++) {
            int64_t d[8];
            Value *v = n->out[k];
            for (int q = 0; q < v->type.shape.rank; q++)
                d[q] = size_at(v->type.shape.dim[q], e->symbols);
            e2.at[v->id] = tensor_new(e->arena, dbl && type_is_float(v->type.dtype) ? TYPE_f64 : v->type.dtype,
                                      v->type.shape.rank, d);
        }
        if (n->op->lower) {
            loop_run(n->op->lower(cx, n), &e2);
            continue;
        }
        for (int k = 0; k < n->n_out; k++) {
            Compute c;
            CHECK(node_compute(cx, n, k, &c));
            loop_run(loop_of_compute(cx, &c, n->out[k]), &e2);
        }
    }
    if (comp)
        for (int i = 0; i < g0->outputs.count; i++)
            e->at[g0->outputs.at[i].value->id] = e2.at[g->outputs.at[i].value->id];
    return true;
}
