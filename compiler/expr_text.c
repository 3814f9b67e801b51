// expr_text.c: formulas as text, read and printed by the same grammar, that of the rows of ops:
//
//   formula = sum [(< | <= | > | >= | == | !=) sum]         sum = product {(+ | -) product}
//   product = factor {(* | /) factor}                        factor = number | name | prim(formula, …) | type(formula) | (formula) | -factor
//
// A number takes the type of what it meets. Formulas are written by us, so an error in one is a bug that names it.
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mlc.h"

// --- Reading ---------------------------------------------------------------------------------------------------------------

typedef struct Reader {
    Context *cx;
    const char *text, *at;
    const char *const *names;
    Expr *const *values;
    int count;
    DType type;                         // of a number that meets nothing
} Reader;

static Expr *read_formula(Reader *r);

static bool take(Reader *r, const char *sign)
{
    size_t length = strlen(sign);
    r->at += strspn(r->at, " \n");
    if (strncmp(r->at, sign, length) != 0)
        return false;
    r->at += length;
    return true;
}

static void need(Reader *r, const char *sign)
{
    if (!take(r, sign))
        BUG("formula %s: %s expected before \"%s\"", r->text, sign, r->at);
}

static Expr *number_as(Reader *r, Expr *e, DType type)
{
    if (e->kind != EXPR_NUMBER || e->type == type)
        return e;
    return type == TYPE_i64 ? expr_whole(r->cx, (int64_t)e->number) : expr_number(r->cx, type, e->number);
}

static Expr *meet(Reader *r, PrimId prim, Expr *a, Expr *b)
{
    if (a->kind == EXPR_NUMBER)
        a = number_as(r, a, b->type);
    else
        b = number_as(r, b, a->type);
    return expr_prim(r->cx, prim, a, b, NULL);
}

static int prim_find(const char *name, size_t length)
{
    for (int i = 0; i < PRIM_COUNT; i++) {
        const char *known = prim_def((PrimId)i)->name;
        if (strlen(known) == length && memcmp(known, name, length) == 0)
            return i;
    }
    return -1;
}

static Expr *read_call(Reader *r, const char *name, size_t length)
{
    Expr *operand[3] = {NULL};
    int count = 0, prim = prim_find(name, length);
    do {
        if (count == COUNT(operand))
            BUG("formula %s: too many operands", r->text);
        operand[count++] = read_formula(r);
    } while (take(r, ","));
    need(r, ")");
    if (prim < 0) {
        DType type = type_find(arena_string(r->cx->arena, name, length));
        if (type == TYPE_NONE || count != 1)
            BUG("formula %s: no primitive is called %.*s", r->text, (int)length, name);
        return expr_cast(r->cx, type, operand[0]);
    }
    if (count != prim_def((PrimId)prim)->operands)
        BUG("formula %s: %.*s takes %d operands", r->text, (int)length, name, prim_def((PrimId)prim)->operands);
    int first = prim == PRIM_select;                    // the operands of one type
    if (count > first + 1 && operand[first]->kind == EXPR_NUMBER)
        operand[first] = number_as(r, operand[first], operand[first + 1]->type);
    else if (count > first + 1)
        operand[first + 1] = number_as(r, operand[first + 1], operand[first]->type);
    return expr_prim(r->cx, (PrimId)prim, operand[0], operand[1], operand[2]);
}

static Expr *read_number(Reader *r)
{
    char *end;
    double number = strtod(r->at, &end);
    r->at = end;
    return expr_number(r->cx, r->type, number);
}

static Expr *read_name(Reader *r)
{
    const char *name = r->at;
    size_t length = 0;
    while (isalnum((unsigned char)name[length]) || name[length] == '_')
        length++;
    r->at += length;
    if (length > 0 && take(r, "("))
        return read_call(r, name, length);
    for (int i = 0; i < r->count; i++)
        if (strlen(r->names[i]) == length && memcmp(r->names[i], name, length) == 0)
            return r->values[i];
    if (length == 3 && memcmp(name, "inf", 3) == 0)
        return expr_number(r->cx, r->type, INFINITY);
    if (length == 3 && memcmp(name, "nan", 3) == 0)
        return expr_number(r->cx, r->type, NAN);
    BUG("formula %s: unknown name at \"%s\"", r->text, name);
}

static Expr *read_factor(Reader *r)
{
    if (take(r, "(")) {
        Expr *e = read_formula(r);
        need(r, ")");
        return e;
    }
    if (take(r, "-")) {
        Expr *e = read_factor(r);
        return e->kind == EXPR_NUMBER ? number_as(r, expr_number(r->cx, TYPE_f64, -e->number), e->type) : expr_prim(r->cx, PRIM_neg, e, NULL, NULL);
    }
    return isdigit((unsigned char)*r->at) ? read_number(r) : read_name(r);
}

static Expr *read_product(Reader *r)
{
    Expr *a = read_factor(r);
    for (;;) {
        if (take(r, "*"))
            a = meet(r, PRIM_mul, a, read_factor(r));
        else if (take(r, "/"))
            a = meet(r, PRIM_div, a, read_factor(r));
        else
            return a;
    }
}

static Expr *read_sum(Reader *r)
{
    Expr *a = read_product(r);
    for (;;) {
        if (take(r, "+"))
            a = meet(r, PRIM_add, a, read_product(r));
        else if (take(r, "-"))
            a = meet(r, PRIM_sub, a, read_product(r));
        else
            return a;
    }
}

// Longer signs first.
static const struct { const char *sign; PrimId prim; } comparisons[] = {
    {"<=", PRIM_le}, {">=", PRIM_ge}, {"==", PRIM_eq}, {"!=", PRIM_ne}, {"<", PRIM_lt}, {">", PRIM_gt},
};

static Expr *read_formula(Reader *r)
{
    Expr *a = read_sum(r);
    for (int i = 0; i < COUNT(comparisons); i++)
        if (take(r, comparisons[i].sign))
            return meet(r, comparisons[i].prim, a, read_sum(r));
    return a;
}

Expr *expr_parse(Context *cx, const char *formula, const char *const *names, Expr *const *values, int count)
{
    Reader r = {cx, formula, formula, names, values, count, TYPE_f32};
    for (int i = count; i-- > 0;)                       // the first that is no truth value
        if (values[i]->type != TYPE_bool)
            r.type = values[i]->type;
    Expr *e = read_formula(&r);
    if (!take(&r, "") || *r.at != 0)
        BUG("formula %s: \"%s\" is left over", formula, r.at);
    return e;
}

// --- Printing --------------------------------------------------------------------------------------------------------------

enum { LEVEL_COMPARE, LEVEL_SUM, LEVEL_PRODUCT, LEVEL_FACTOR };

static const struct { PrimId prim; const char *sign; int level; } infix[] = {
    {PRIM_add, " + ", LEVEL_SUM}, {PRIM_sub, " - ", LEVEL_SUM}, {PRIM_mul, " * ", LEVEL_PRODUCT}, {PRIM_div, " / ", LEVEL_PRODUCT},
    {PRIM_lt, " < ", LEVEL_COMPARE}, {PRIM_le, " <= ", LEVEL_COMPARE}, {PRIM_gt, " > ", LEVEL_COMPARE}, {PRIM_ge, " >= ", LEVEL_COMPARE},
    {PRIM_eq, " == ", LEVEL_COMPARE}, {PRIM_ne, " != ", LEVEL_COMPARE},
};

void number_print(Text *text, DType type, double number)
{
    char digits[32];
    bool narrow = type != TYPE_f64;
    if (isnan(number) || isinf(number)) {
        text_add(text, isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
        return;
    }
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, number);
        double back = strtod(digits, NULL);
        if (back == number || (narrow && (float)back == (float)number && number == (float)number))
            break;
    }
    text_add(text, "%s", digits);
}

static void print_at(Text *text, const Expr *e, const char *const *args, int level);

static void print_list(Text *text, const Expr *e, const char *const *args)
{
    for (int i = 0; i < e->count; i++) {
        text_add(text, i > 0 ? ", " : "");
        print_at(text, e->operand[i], args, LEVEL_COMPARE);
    }
}

static void print_prim(Text *text, const Expr *e, const char *const *args, int level)
{
    for (int i = 0; i < COUNT(infix); i++) {
        if (infix[i].prim != e->prim)
            continue;
        int own = infix[i].level, left = own == LEVEL_COMPARE ? LEVEL_SUM : own;
        text_add(text, own < level ? "(" : "");
        print_at(text, e->operand[0], args, left);
        text_add(text, "%s", infix[i].sign);
        print_at(text, e->operand[1], args, own + 1);
        text_add(text, own < level ? ")" : "");
        return;
    }
    if (e->prim == PRIM_neg) {
        text_add(text, "-");
        bool bare = e->operand[0]->kind != EXPR_NUMBER;
        text_add(text, bare ? "" : "(");
        print_at(text, e->operand[0], args, LEVEL_FACTOR);
        text_add(text, bare ? "" : ")");
        return;
    }
    text_add(text, "%s(", prim_def(e->prim)->name);
    print_list(text, e, args);
    text_add(text, ")");
}

static void print_at(Text *text, const Expr *e, const char *const *args, int level)
{
    switch (e->kind) {
    case EXPR_NUMBER:
        if (type_is_float(e->type))
            number_print(text, e->type, e->number);
        else
            text_add(text, "%lld", (long long)e->whole);
        break;
    case EXPR_INDEX: text_add(text, "i%d", e->var); break;
    case EXPR_LOCAL: text_add(text, "t%d", e->var); break;
    case EXPR_HYPER: text_add(text, "%s", e->name); break;
    case EXPR_SIZE:
        text_add(text, "{");
        size_print(text, e->size);
        text_add(text, "}");
        break;
    case EXPR_ARG:
        if (args != NULL)
            text_add(text, "%s", args[e->arg]);
        else
            text_add(text, "x%d", e->arg);
        break;
    case EXPR_LOAD:
        text_add(text, "%s_%d[", e->value->name != NULL ? e->value->name : "c", e->value->id);
        print_list(text, e, args);
        text_add(text, "]");
        break;
    case EXPR_CAST:
        text_add(text, "%s(", type_def(e->type)->name);
        print_list(text, e, args);
        text_add(text, ")");
        break;
    case EXPR_PRIM: print_prim(text, e, args, level); break;
    }
}

void expr_print(Text *text, const Expr *e, const char *const *args) { print_at(text, e, args, LEVEL_COMPARE); }
