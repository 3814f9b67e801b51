// einsum.c: products and sums said by letters (Einstein's convention).
//
// Two operands come down to one batched matmul: letters in both and in the result are the batch, letters in both alone are
// summed, the rest are rows and columns. More operands are taken two by two, from the left.
#include "op.h"

enum { LETTERS_MAX = RANK_MAX };

typedef struct Term { int count; char letter[LETTERS_MAX]; } Term;     // the letters of one operand, or of the result
typedef struct Equation { int count; Term in[INPUTS_MAX], out; } Equation;

static int letter_at(const Term *term, char letter)
{
    for (int i = 0; i < term->count; i++)
        if (term->letter[i] == letter)
            return i;
    return -1;
}

static bool in_term(const Term *term, char letter) { return letter_at(term, letter) >= 0; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// "ij,jk->ik" with blanks anywhere. NULL, or what is wrong with it.
static const char *read_equation(const char *text, Equation *e)
{
    *e = (Equation){.count = 1};
    Term *term = &e->in[0];
    for (const char *p = text; *p != 0; p++) {
        if (*p == ' ')
            continue;
        if (p[0] == '-' && p[1] == '>' && term != &e->out) {
            term = &e->out;
            p++;
        } else if (*p == ',' && term != &e->out && e->count < INPUTS_MAX)
            term = &e->in[e->count++];
        else if (*p == '.')
            return "one without ..., which is not there";
        else if (!is_letter(*p))
            return "letters, commas and one ->";
        else if (in_term(term, *p))
            return "one whose letters stand once in a term (diagonals are not there)";
        else if (term->count == LETTERS_MAX)
            return "one of at most eight letters a term";
        else
            term->letter[term->count++] = *p;
    }
    return term == &e->out ? NULL : "one with a result, behind ->";
}

static Size letter_size(OpCall *call, const Equation *e, char letter)
{
    for (int k = 0; k < e->count; k++) {
        int i = letter_at(&e->in[k], letter);
        if (i >= 0)
            return call->in[k]->type.shape.dim[i];
    }
    return NULL;
}

static bool wrong_equation(OpCall *call, const char *wanted) { return op_error(call, MESSAGE_E0311, "equation of einsum", wanted, arena_printf(call->cx->arena, "\"%s\"", call_attr(call, "equation")->word)); }

static bool einsum_shape(OpCall *call)
{
    Context *cx = call->cx;
    Equation e;
    const char *wrong = read_equation(call_attr(call, "equation")->word, &e);
    if (wrong != NULL)
        return wrong_equation(call, wrong);
    if (e.count != call->n_in)
        return wrong_equation(call, arena_printf(cx->arena, "one of %d terms, as many as there are values", call->n_in));
    for (int k = 0; k < e.count; k++) {
        const Type *t = &call->in[k]->type;
        if (t->shape.rank != e.in[k].count)
            return op_error(call, MESSAGE_E0311, arena_printf(cx->arena, "value %d of einsum", k + 1), arena_printf(cx->arena, "of rank %d", e.in[k].count), type_text(cx, t));
        for (int i = 0; i < t->shape.rank; i++)
            if (!size_equal(t->shape.dim[i], letter_size(call, &e, e.in[k].letter[i])) || t->dtype != call->in[0]->type.dtype)
                return op_error(call, MESSAGE_E0315, arena_printf(cx->arena, "einsum, letter %c,", e.in[k].letter[i]), type_text(cx, &call->in[0]->type), type_text(cx, t));
    }
    Type type = {.dtype = call->in[0]->type.dtype, .shape = {.rank = e.out.count}};
    for (int i = 0; i < e.out.count; i++)
        if ((type.shape.dim[i] = letter_size(call, &e, e.out.letter[i])) == NULL)
            return wrong_equation(call, arena_printf(cx->arena, "one whose result has no letter but the terms' (%c)", e.out.letter[i]));
    return op_one(call, type);
}

typedef struct Factor { Value *value; Term term; } Factor;

static bool needed_later(const Equation *e, int from, char letter)
{
    bool needed = in_term(&e->out, letter);
    for (int k = from; k < e->count; k++)
        needed |= in_term(&e->in[k], letter);
    return needed;
}

// Sums over the letters that nothing else has.
static Factor summed(Builder *b, Factor f, const Equation *e, int from, const Term *other)
{
    bool axes[RANK_MAX] = {false}, any = false;
    Term left = {0};
    for (int i = 0; i < f.term.count; i++) {
        char letter = f.term.letter[i];
        axes[i] = !needed_later(e, from, letter) && !(other != NULL && in_term(other, letter));
        any |= axes[i];
        if (!axes[i])
            left.letter[left.count++] = letter;
    }
    return any ? (Factor){build_reduce(b, "sum", f.value, axes, false), left} : f;
}

static void append(Term *to, const Term *from, const Term *other, bool in_other, const Equation *e, int later, bool kept)
{
    for (int i = 0; i < from->count; i++)
        if (in_term(other, from->letter[i]) == in_other && needed_later(e, later, from->letter[i]) == kept)
            to->letter[to->count++] = from->letter[i];
}

static Value *in_order(Builder *b, Factor f, const Term *order)
{
    int64_t axes[RANK_MAX];
    bool same = true;
    for (int i = 0; i < order->count; i++) {
        axes[i] = letter_at(&f.term, order->letter[i]);
        same &= axes[i] == i;
    }
    OpCall call = call_new(b, "transpose", 1, &f.value);
    call_ints(&call, "axes", order->count, axes);
    return same ? f.value : op_build(b, &call);
}

// The axes of three groups, each joined to one.
static Value *as_matrices(Builder *b, Factor f, const Term *batch, const Term *rows, const Term *columns)
{
    const Term *group[] = {batch, rows, columns};
    Term order = {0};
    Shape shape = {.rank = 3};
    for (int g = 0; g < 3; g++) {
        shape.dim[g] = size_const(b->cx, 1);
        for (int i = 0; i < group[g]->count; i++) {
            order.letter[order.count++] = group[g]->letter[i];
            shape.dim[g] = size_times(b->cx, shape.dim[g], f.value->type.shape.dim[letter_at(&f.term, group[g]->letter[i])]);
        }
    }
    return build_reshape(b, in_order(b, f, &order), &shape);
}

static Factor product(Builder *b, Factor p, Factor q, const Equation *e, int later)
{
    p = summed(b, p, e, later, &q.term);
    q = summed(b, q, e, later, &p.term);
    Term batch = {0}, along = {0}, rows = {0}, columns = {0}, all = {0};
    append(&batch, &p.term, &q.term, true, e, later, true);
    append(&along, &p.term, &q.term, true, e, later, false);
    append(&rows, &p.term, &q.term, false, e, later, true);
    append(&columns, &q.term, &p.term, false, e, later, true);
    Value *y = build2(b, "matmul", as_matrices(b, p, &batch, &rows, &along), as_matrices(b, q, &batch, &columns, &along), "transpose_b = true");
    Shape shape = {0};
    const Term *group[] = {&batch, &rows, &columns};
    for (int g = 0; g < 3; g++)
        for (int i = 0; i < group[g]->count; i++) {
            char letter = group[g]->letter[i];
            const Factor *from = g == 2 ? &q : &p;
            all.letter[all.count++] = letter;
            shape.dim[shape.rank++] = from->value->type.shape.dim[letter_at(&from->term, letter)];
        }
    return (Factor){build_reshape(b, y, &shape), all};
}

static void einsum_expand(Builder *b, const Node *node, Value **out)
{
    Equation e;
    CHECK(read_equation(node_attr(node, "equation")->word, &e) == NULL);
    Factor f = {node->in[0], e.in[0]};
    for (int k = 1; k < e.count; k++)
        f = product(b, f, (Factor){node->in[k], e.in[k]}, &e, k + 1);
    out[0] = in_order(b, summed(b, f, &e, e.count, NULL), &e.out);
}

const OpDef op_einsum = {
    .name = "einsum", .brief = "products and sums said by letters", .inputs = "*x: float", .outputs = "y", .example = "score = einsum(q, k, \"nqhd,nkhd->nhqk\")",
    .doc = "Each term has a letter for each axis of a value. Letters that the result lacks are summed over: \"ij,jk->ik\" is a matrix product, \"ij->j\" a sum, \"i,j->ij\" all products. Two values become one batched matmul; more are taken two by two, from the left.",
    .attrs = {{.name = "equation", .kind = ATTR_TEXT, .positional = true, .brief = "terms with commas between them, ->, and the result's letters"}}, .shape = einsum_shape, .expand = einsum_expand, .along = "mixes", .precision = "f32", .onnx = {{"Einsum", 12, 0}},
    .cases = CASES("x0: f32[2,3]; x1: f32[3,4]; equation = ij,jk->ik", "x0: f32[N,2,3,4]; x1: f32[N,5,3,4]; equation = nqhd,nkhd->nhqk", "x0: f32[2,3]; equation = ij->j", "x0: f32[3]; x1: f32[N]; equation = i,j->ij", "x0: f32[2,3]; x1: f32[2,3]; equation = ij,ij->",
                   "x0: f32[2,3,5]; x1: f32[3]; x2: f32[5,N]; equation = abc,b,cd->da", "x0: f32[2,3]; equation = ij->ji", "x0: f32[1,7]; x1: f32[7,1]; equation = ab,bc->c"),
};
