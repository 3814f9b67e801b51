// loops.c: loop trees and formulas as C: loops over named indices, arrays with their dimensions, few brackets.
//
// Formulas keep the order of their operations to the bit: brackets are left out only where C groups the same way. Integers
// that come from data wrap around (mlk_add_i32, …), since overflow has no meaning in C; indices are small and use C's
// operators. A sum over a loop marked for vectors is printed without the mark: how many partial sums a C compiler takes is
// its own affair, and the bits must not be.
#include "codegen.h"

#include <string.h>

// What binds how tightly in C, loosest first.
enum { BIND_ANY, BIND_SELECT, BIND_OR, BIND_AND, BIND_EQUAL, BIND_ORDER, BIND_SUM, BIND_PRODUCT, BIND_UNARY, BIND_POSTFIX };

static void print_bound(Printer *p, const Expr *e, int bind);

void print_expr(Printer *p, const Expr *e) { print_bound(p, e, BIND_ANY); }

// --- Lines -----------------------------------------------------------------------------------------------------------

void put_indent(Printer *p) { text_add(p->out, "%*s", 4 * p->indent, ""); }

void put_line(Printer *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put_indent(p);
    text_vadd(p->out, format, args);
    text_add(p->out, "\n");
    va_end(args);
}

// --- Names -----------------------------------------------------------------------------------------------------------

// A named size keeps its name where that is short and in capitals, as the paper has it: N, T, H2. No name of the printer
// begins with a capital. Other names get the number of the size.
const char *size_name(Context *cx, const Symbol *symbol)
{
    const char *word = identifier(cx, symbol->name);
    bool plain = strlen(word) <= 3 && word[0] >= 'A' && word[0] <= 'Z' && strcmp(word, symbol->name) == 0 &&
                 strcmp(word, "EOF") != 0 && strcmp(word, "NAN") != 0 && strcmp(word, "I") != 0 &&
                 strcmp(word, "Run") != 0;
    return plain ? word : arena_printf(cx->arena, "%s_s%d", word, symbol->id);
}

const Symbol *batch_symbol(Context *cx)
{
    for (int i = 0; i < map_count(cx->symbols); i++) {
        const Symbol *symbol = map_value(cx->symbols, i);
        if (symbol->batch)
            return symbol;
    }
    return NULL;
}

// Places 1, 2, … in the order of their numbers; place 0 is the batch.
int size_slot(const Program *program, const Symbol *symbol)
{
    int slot = 1;
    for (int i = 0; i < map_count(program->cx->symbols); i++) {
        const Symbol *other = map_value(program->cx->symbols, i);
        slot += !other->batch && other->id < symbol->id;
    }
    return symbol->batch ? 0 : slot;
}

static const char *local_name(Printer *p, int var)
{
    for (int i = 0; i < p->locals.count; i++)
        if (p->locals.at[i].var == var)
            return p->locals.at[i].name;
    BUG("local %d of kernel %s is used outside of its block", var, p->kernel ? p->kernel->name : "?");
}

static bool name_taken(const Printer *p, const char *name)
{
    for (int i = 0; i < p->loops.count; i++)
        if (strcmp(p->loops.at[i].name, name) == 0)
            return true;
    for (int i = 0; i < p->locals.count; i++)
        if (strcmp(p->locals.at[i].name, name) == 0)
            return true;
    return false;
}

static const char *loop_find(const Printer *p, int var)
{
    for (int i = 0; i < p->loops.count; i++)
        if (p->loops.at[i].var == var)
            return p->loops.at[i].name;
    return NULL;
}

static void name_loop(Printer *p, int var, const char *wish)
{
    static const char *const pool[] = {"i", "j", "k", "l", "p", "q", "r", "s", "u", "v"};
    if (loop_find(p, var) != NULL)
        return;
    const char *name = wish != NULL && !name_taken(p, wish) ? wish : NULL;
    for (int i = 0; name == NULL && i < COUNT(pool); i++)
        if (!name_taken(p, pool[i]))
            name = pool[i];
    if (name == NULL)
        name = arena_printf(p->cx->arena, "i%d", var);
    LocalName entry = {var, name};
    LIST_ADD(p->cx->arena, p->loops, entry);
}

static void name_local(Printer *p, int var, const char *wish)
{
    for (int i = 0; i < p->locals.count; i++)
        if (p->locals.at[i].var == var)
            return;
    const char *name = name_taken(p, wish) ? arena_printf(p->cx->arena, "%s%d", wish, var) : wish;
    LocalName entry = {var, name};
    LIST_ADD(p->cx->arena, p->locals, entry);
}

static bool is_batch(const Printer *p, Size size)
{
    const Symbol *symbols[1], *batch = batch_symbol(p->cx);
    return size_symbols(size, symbols, 1) == 1 && symbols[0] == batch;
}

// The variables that index what is stored get the letters of its axes: n c h w for images, n i, i j k otherwise.
static void name_axes(Printer *p, const Loop *store)
{
    static const char *const image[] = {"n", "c", "h", "w"}, *const plain[] = {"i", "j", "k", "l", "p", "q", "r", "s"};
    const Shape *shape = &store->target->type.shape;
    bool full = store->count == shape->rank, batch = full && shape->rank > 0 && is_batch(p, shape->dim[0]);
    for (int i = 0; i < store->count; i++)
        if (store->index[i]->kind == EXPR_INDEX) {
            const char *wish = full && shape->rank == 4 ? image[i] : batch ? (i == 0 ? "n" : plain[i - 1]) : plain[i];
            name_loop(p, store->index[i]->var, wish);
        }
}

static const char *accumulator_wish(const Loop *loop, int var)
{
    static const char *const wish[] = {[REDUCE_NONE] = NULL,
                                       [REDUCE_SUM] = "sum",
                                       [REDUCE_PROD] = "product",
                                       [REDUCE_MAX] = "most",
                                       [REDUCE_MIN] = "least"};
    if (loop->kind == LOOP_UPDATE && loop->target == NULL && loop->var == var)
        return wish[loop->reduce];
    const char *found = NULL;
    for (int i = 0; i < loop->body.count && found == NULL; i++)
        found = accumulator_wish(loop->body.at[i], var);
    return found == NULL && loop->other != NULL ? accumulator_wish(loop->other, var) : found;
}

static void name_stores(Printer *p, const Loop *loop)
{
    if ((loop->kind == LOOP_STORE || loop->kind == LOOP_UPDATE) && loop->target != NULL)
        name_axes(p, loop);
    for (int i = 0; i < loop->body.count; i++)
        name_stores(p, loop->body.at[i]);
    if (loop->other != NULL)
        name_stores(p, loop->other);
}

static void name_rest(Printer *p, const Loop *loop, const Loop *whole)
{
    if (loop->kind == LOOP_FOR)
        name_loop(p, loop->var, NULL);
    if (loop->kind == LOOP_LET)
        name_local(p, loop->var, "t");
    if (loop->kind == LOOP_ACCUMULATOR) {
        const char *wish = accumulator_wish(whole, loop->var);
        name_local(p, loop->var, wish != NULL ? wish : type_is_float(loop->type) ? "best" : "place");
    }
    for (int i = 0; i < loop->body.count; i++)
        name_rest(p, loop->body.at[i], whole);
    if (loop->other != NULL)
        name_rest(p, loop->other, whole);
}

// --- Memory touched --------------------------------------------------------------------------------------------------

static bool value_listed(Value *const *at, int count, const Value *value)
{
    for (int i = 0; i < count; i++)
        if (at[i] == value)
            return true;
    return false;
}

#define VALUE_NOTE(p, list, value)                                                                                     \
    (value_listed((p)->list.at, (p)->list.count, (value)) ? (void)0                                                    \
                                                          : (void)LIST_ADD((p)->cx->arena, (p)->list, (value)))

static void note_element(Printer *p, Value *value, int count)
{
    VALUE_NOTE(p, touched, value);
    if (count == value->type.shape.rank)
        VALUE_NOTE(p, shaped, value);
    else
        VALUE_NOTE(p, flat, value);
}

static void note_expr(Printer *p, const Expr *e)
{
    if (e->kind == EXPR_LOAD)
        note_element(p, e->value, e->count);
    for (int i = 0; i < e->count; i++)
        note_expr(p, e->operand[i]);
}

static void note_loops(Printer *p, const Loop *loop)
{
    const Expr *const parts[] = {loop->from, loop->to, loop->value};
    for (int i = 0; i < COUNT(parts); i++)
        if (parts[i] != NULL)
            note_expr(p, parts[i]);
    if (loop->target != NULL) {
        note_element(p, loop->target, loop->count);
        VALUE_NOTE(p, written, loop->target);
        for (int i = 0; i < loop->count; i++)
            note_expr(p, loop->index[i]);
    }
    for (int i = 0; i < loop->body.count; i++)
        note_loops(p, loop->body.at[i]);
    if (loop->other != NULL)
        note_loops(p, loop->other);
}

void name_loops(Printer *p, const Loop *loop)
{
    name_stores(p, loop);
    name_rest(p, loop, loop);
    note_loops(p, loop);
}

// --- Sizes -----------------------------------------------------------------------------------------------------------

static void size_use(Printer *p, const Symbol *symbol)
{
    for (int i = 0; i < p->sizes.count; i++)
        if (p->sizes.at[i] == symbol)
            return;
    LIST_ADD(p->cx->arena, p->sizes, symbol);
}

static const Symbol *symbol_named(Size size, const char *name, size_t length)
{
    const Symbol *symbols[16];
    int count = size_symbols(size, symbols, COUNT(symbols));
    for (int i = 0; i < count; i++)
        if (strlen(symbols[i]->name) == length && strncmp(symbols[i]->name, name, length) == 0)
            return symbols[i];
    return NULL;
}

// "-16 * (N / 16) + N" as one would write it: "N - 16 * (N / 16)".
static const char *positive_first(Context *cx, const char *text)
{
    int depth = 0;
    for (const char *at = text; *text == '-' && *at != 0; at++) {
        depth += (*at == '(') - (*at == ')');
        if (depth == 0 && strncmp(at, " + ", 3) == 0)
            return arena_printf(cx->arena, "%s - %.*s", at + 3, (int)(at - text) - 1, text + 1);
        if (depth == 0 && strncmp(at, " - ", 3) == 0)
            break;
    }
    return text;
}

// What size_print writes is C once floor( is (, for sizes are not negative and C's division of those rounds down.
void print_size(Printer *p, Text *out, Size size)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    Text text = {.arena = p->cx->arena};
    size_print(&text, size);
    for (const char *at = positive_first(p->cx, text.at); *at != 0;) {
        size_t length = strspn(at, letters);
        const Symbol *symbol = length > 0 ? symbol_named(size, at, length) : NULL;
        if (symbol != NULL) {
            size_use(p, symbol);
            text_add(out, "%s", size_name(p->cx, symbol));
        } else if (!(length == 5 && strncmp(at, "floor", 5) == 0))
            text_put(out, at, length > 0 ? length : 1);
        at += length > 0 ? length : 1;
    }
}

// --- Formulas --------------------------------------------------------------------------------------------------------

static bool is_integer(DType type) { return type != TYPE_bool && !type_is_float(type); }

static bool is_index_local(const Printer *p, int var)
{
    for (int i = 0; i < p->index_locals.count; i++)
        if (p->index_locals.at[i] == var)
            return true;
    return false;
}

// Nothing in it comes from memory: it is made of loop variables, sizes and numbers, which stay far from overflow.
static bool is_index(const Printer *p, const Expr *e)
{
    if (e->type != TYPE_i64)
        return false;
    if (e->kind == EXPR_LOCAL)
        return is_index_local(p, e->var);
    if (e->kind == EXPR_LOAD || e->kind == EXPR_HYPER || e->kind == EXPR_ARG || e->kind == EXPR_CAST)
        return false;
    for (int i = 0; i < e->count; i++)
        if (e->operand[i]->type == TYPE_i64 && !is_index(p, e->operand[i]))
            return false;
    return true;
}

// Known not to be below zero, so that C's / and % are floor division and its remainder.
static bool is_natural(const Expr *e)
{
    if (e->kind == EXPR_INDEX || e->kind == EXPR_SIZE)
        return true;
    if (e->kind == EXPR_NUMBER)
        return e->whole >= 0;
    if (e->kind != EXPR_PRIM ||
        (e->prim != PRIM_add && e->prim != PRIM_mul && e->prim != PRIM_floordiv && e->prim != PRIM_mod))
        return false;
    return is_natural(e->operand[0]) && is_natural(e->operand[1]);
}

static bool divides_plainly(const Expr *e)
{
    const Expr *by = e->count > 1 ? e->operand[1] : NULL;
    return (e->prim == PRIM_floordiv || e->prim == PRIM_mod) && is_natural(e->operand[0]) &&
           (by->kind == EXPR_SIZE || (by->kind == EXPR_NUMBER && by->whole > 0));
}

static int prim_bind(PrimId prim)
{
    switch (prim) {
    case PRIM_add:
    case PRIM_sub: return BIND_SUM;
    case PRIM_mul:
    case PRIM_div: return BIND_PRODUCT;
    case PRIM_neg:
    case PRIM_not: return BIND_UNARY;
    case PRIM_lt:
    case PRIM_le:
    case PRIM_gt:
    case PRIM_ge: return BIND_ORDER;
    case PRIM_eq:
    case PRIM_ne: return BIND_EQUAL;
    case PRIM_and: return BIND_AND;
    case PRIM_or: return BIND_OR;
    case PRIM_select: return BIND_SELECT;
    default: return BIND_POSTFIX;
    }
}

// What an operand must bind by to stand without brackets. Compilers warn of comparisons and sums inside & | and of chained
// comparisons, and readers should not have to know that table either.
static int operand_bind(PrimId prim, int i)
{
    switch (prim_bind(prim)) {
    case BIND_SUM: return i == 0 ? BIND_SUM : BIND_PRODUCT;
    case BIND_PRODUCT: return i == 0 ? BIND_PRODUCT : BIND_UNARY;
    case BIND_UNARY: return BIND_POSTFIX;
    case BIND_ORDER:
    case BIND_EQUAL: return BIND_SUM;
    case BIND_AND:
    case BIND_OR: return BIND_UNARY;
    case BIND_SELECT: return i == 0 ? BIND_EQUAL : i == 1 ? BIND_OR : BIND_SELECT;
    default: return BIND_ANY;
    }
}

// Writes the row's C text with its operands in place.
static void print_template(Printer *p, const Expr *e)
{
    const DType type = e->operand[e->prim == PRIM_select ? 1 : 0]->type;
    bool single = type_is_float(type) && type != TYPE_f64;
    bool exact_sum = e->prim == PRIM_add && is_integer(type);  // of indices: how it is grouped makes no difference
    for (const char *at = prim_def(e->prim)->c; *at != 0; at++)
        if (*at != '$')
            text_put(p->out, at, 1);
        else if (*++at == 'f')
            text_add(p->out, "%s", single ? "f" : "");
        else if (*at == 't')
            text_add(p->out, "%s%s", single ? "" : "_", single ? "" : type_def(type)->name);
        else
            print_bound(p, e->operand[*at - '0'], exact_sum ? BIND_SUM : operand_bind(e->prim, *at - '0'));
}

static void print_call(Printer *p, const char *name, const Expr *e)
{
    text_add(p->out, "%s_%s(", name, type_def(e->type)->name);
    for (int i = 0; i < e->count; i++) {
        text_add(p->out, i > 0 ? ", " : "");
        print_expr(p, e->operand[i]);
    }
    text_add(p->out, ")");
}

static void print_operator(Printer *p, const Expr *e, const char *sign, int bind)
{
    bool bracket = bind > BIND_PRODUCT;
    text_add(p->out, bracket ? "(" : "");
    print_bound(p, e->operand[0], BIND_PRODUCT);
    text_add(p->out, " %s ", sign);
    print_bound(p, e->operand[1], BIND_UNARY);
    text_add(p->out, bracket ? ")" : "");
}

static void print_prim(Printer *p, const Expr *e, int bind)
{
    static const char *const wrapping[PRIM_COUNT] = {[PRIM_add] = "mlk_add",
                                                     [PRIM_sub] = "mlk_sub",
                                                     [PRIM_mul] = "mlk_mul",
                                                     [PRIM_div] = "mlk_div",
                                                     [PRIM_neg] = "mlk_neg"};
    bool data = is_integer(e->type) && !(e->prim != PRIM_div && (p->of_index || is_index(p, e)));
    if (data && wrapping[e->prim] != NULL)
        print_call(p, wrapping[e->prim], e);
    else if (divides_plainly(e))
        print_operator(p, e, e->prim == PRIM_mod ? "%" : "/", bind);
    else {
        bool bracket = prim_bind(e->prim) < bind;
        text_add(p->out, bracket ? "(" : "");
        print_template(p, e);
        text_add(p->out, bracket ? ")" : "");
    }
}

static void print_cast(Printer *p, const Expr *e, int bind)
{
    const Expr *from = e->operand[0];
    const char *half = e->type == TYPE_f16 ? "f16" : e->type == TYPE_bf16 ? "bf16" : NULL;
    if (from->type == e->type)
        print_bound(p, from, bind);
    else if (half != NULL) {  // rounded to 16 bits, and computed with as a float again
        text_add(p->out, "mlk_load_%s(mlk_store_%s(%s", half, half, from->type == TYPE_f32 ? "" : "(float)");
        print_bound(p, from, from->type == TYPE_f32 ? BIND_ANY : BIND_UNARY);
        text_add(p->out, "))");
    } else if (e->type == TYPE_bool) {
        text_add(p->out, "(");
        print_bound(p, from, BIND_SUM);
        text_add(p->out, " != 0)");
    } else if (type_is_float(from->type) && !type_is_float(e->type)) {
        text_add(p->out, "mlk_whole_%s(", type_def(e->type)->name);
        print_expr(p, from);
        text_add(p->out, ")");
    } else if (e->type == TYPE_f32 && type_is_float(from->type) && from->type != TYPE_f64)
        print_bound(p, from, bind);  // half precision is a float already
    else {
        bool bracket = bind > BIND_UNARY;
        text_add(p->out, "%s(%s)", bracket ? "(" : "", type_def(e->type)->c);
        print_bound(p, from, BIND_UNARY);
        text_add(p->out, bracket ? ")" : "");
    }
}

static void print_leaf_number(Printer *p, const Expr *e, int bind)
{
    Text number = {.arena = p->cx->arena};
    if (type_is_float(e->type))
        put_number(&number, e->number, e->type);
    else if (e->whole == INT64_MIN)
        text_add(&number, "INT64_MIN");
    else
        text_add(&number, "%lld", (long long)e->whole);
    bool bracket = number.at[0] == '-' && bind > BIND_UNARY;
    text_add(p->out, bracket ? "(%s)" : "%s", number.at);
}

// --- Memory ----------------------------------------------------------------------------------------------------------

// One index over all elements of a value that has more axes.
static bool is_flat(const Value *value, int count) { return count == 1 && value->type.shape.rank > 1; }

// image_3[n][c][h][w]; image_3[i] over all elements (image_3_flat where a kernel does both); one number is loss_9[0].
static void print_element(Printer *p, Value *value, int count, Expr *const *index)
{
    bool both = value_listed(p->flat.at, p->flat.count, value) && value_listed(p->shaped.at, p->shaped.count, value);
    bool before = p->of_index;
    text_add(p->out, "%s%s", value_name(p->cx, value), both && is_flat(value, count) ? "_flat" : "");
    p->of_index = true;
    for (int i = 0; i < count; i++) {
        const Expr *e = index[i];
        bool widened = e->kind == EXPR_CAST && !type_is_float(e->operand[0]->type);  // C widens an index by itself
        text_add(p->out, "[");
        print_expr(p, widened ? e->operand[0] : e);
        text_add(p->out, "]");
    }
    text_add(p->out, count == 0 ? "[0]" : "");
    p->of_index = before;
}

static bool comes_from_data(const Printer *p, const Expr *e)
{
    if (e->kind == EXPR_LOAD || (e->kind == EXPR_LOCAL && !is_index_local(p, e->var)))
        return true;
    for (int i = 0; i < e->count; i++)
        if (comes_from_data(p, e->operand[i]))
            return true;
    return false;
}

// The comparisons that an element needs since its place comes from data: mlk_in_range(i, 10). Returns whether there are any.
static bool print_guard(Printer *p, const Value *value, int count, Expr *const *index)
{
    bool before = p->of_index, any = false;
    p->of_index = true;
    for (int i = 0; i < count; i++) {
        if (!comes_from_data(p, index[i]) || index_is_checked(p->program, value, count, index, i))
            continue;
        text_add(p->out, any ? " & mlk_in_range(" : "mlk_in_range(");
        print_expr(p, index[i]);
        text_add(p->out, ", ");
        print_size(p, p->out, is_flat(value, count) ? shape_count(p->cx, &value->type.shape) : value->type.shape.dim[i]);
        text_add(p->out, ")");
        any = true;
    }
    p->of_index = before;
    return any;
}

static void print_load(Printer *p, const Expr *e)
{
    bool half = e->value->type.dtype == TYPE_f16 || e->value->type.dtype == TYPE_bf16;
    Text guard = {.arena = p->cx->arena}, *out = p->out;
    p->out = &guard;
    bool guarded = print_guard(p, e->value, e->count, e->operand);
    p->out = out;
    if (guarded)
        text_add(p->out, "(%s ? ", guard.at);
    if (half)
        text_add(p->out, "mlk_load_%s(", type_def(e->value->type.dtype)->name);
    print_element(p, e->value, e->count, e->operand);
    text_add(p->out, half ? ")" : "");
    if (guarded)
        text_add(p->out, type_is_float(e->value->type.dtype) ? " : NAN)" : " : 0)");
}

// How tightly the text of a size binds: 8 * N, N - 1, (N + 1) / 2.
static int size_bind(const char *text)
{
    int depth = 0, bind = BIND_POSTFIX;
    for (const char *at = text; *at != 0; at++) {
        depth += (*at == '(') - (*at == ')');
        if (depth == 0 && strchr("+-", *at) != NULL)
            return BIND_SUM;
        if (depth == 0 && strchr("*/", *at) != NULL)
            bind = BIND_PRODUCT;
    }
    return bind;
}

// (N / 16) without its brackets, where nothing else is in them.
static const char *without_brackets(Context *cx, const char *text)
{
    int depth = 0;
    for (const char *at = text; *text == '(' && *at != 0; at++) {
        depth += (*at == '(') - (*at == ')');
        if (depth == 0)
            return at[1] == 0 ? arena_string(cx->arena, text + 1, (size_t)(at - text) - 1) : text;
    }
    return text;
}

static void print_size_bound(Printer *p, Size size, int bind)
{
    int64_t n;
    Text text = {.arena = p->cx->arena};
    print_size(p, &text, size);
    const char *bare = without_brackets(p->cx, text.at);
    bool bracket = bind > size_bind(bare) && !size_known(size, &n);
    text_add(p->out, bracket ? "(%s)" : "%s", bare);
}

// A number of the recipe: its place in the run, or, in the sweep of the optimiser, a local of that name.
static void print_hyper(Printer *p, const Expr *e)
{
    const Recipe *recipe = p->program != NULL ? p->program->model->recipe : NULL;
    for (int i = 0; p->kernel != NULL && recipe != NULL && i < recipe->optimizer->n_args; i++)
        if (strcmp(recipe->optimizer->arg[i].name, e->name) == 0) {
            text_add(p->out, "(%s)run->hyper[%d]", type_def(e->type)->c, i);
            return;
        }
    CHECK(p->kernel == NULL);
    text_add(p->out, "%s", e->name);
}

static void print_bound(Printer *p, const Expr *e, int bind)
{
    switch (e->kind) {
    case EXPR_NUMBER: print_leaf_number(p, e, bind); break;
    case EXPR_INDEX: text_add(p->out, "%s", loop_find(p, e->var)); break;
    case EXPR_SIZE: print_size_bound(p, e->size, bind); break;
    case EXPR_LOAD: print_load(p, e); break;
    case EXPR_LOCAL: text_add(p->out, "%s", local_name(p, e->var)); break;
    case EXPR_HYPER: print_hyper(p, e); break;
    case EXPR_PRIM: print_prim(p, e, bind); break;
    case EXPR_CAST: print_cast(p, e, bind); break;
    case EXPR_ARG: BUG("operand %d of a formula was never given", e->arg);
    }
}

// --- Statements ------------------------------------------------------------------------------------------------------

static const char *local_type(DType type)
{
    return type == TYPE_f16 || type == TYPE_bf16 ? "float" : type_def(type)->c;
}

static bool same_expr(const Expr *a, const Expr *b)
{
    bool same = a->kind == b->kind && a->type == b->type && a->var == b->var && a->count == b->count &&
                a->whole == b->whole && a->number == b->number && a->value == b->value &&
                (a->kind != EXPR_PRIM || a->prim == b->prim) && (a->kind != EXPR_SIZE || size_equal(a->size, b->size)) &&
                a->kind != EXPR_HYPER && a->kind != EXPR_ARG;
    for (int i = 0; same && i < a->count; i++)
        same = same_expr(a->operand[i], b->operand[i]);
    return same;
}

static bool declares(const Loop *loop, int var)
{
    if ((loop->kind == LOOP_ACCUMULATOR || loop->kind == LOOP_LET) && loop->var == var)
        return true;
    for (int i = 0; i < loop->body.count; i++)
        if (declares(loop->body.at[i], var))
            return true;
    return loop->other != NULL && declares(loop->other, var);
}

// Whether something from outside of `whole` gathers what its steps give: memory, or a local.
static bool gathers(const Loop *loop, const Loop *whole)
{
    if (loop->kind == LOOP_UPDATE && (loop->target != NULL || !declares(whole, loop->var)))
        return true;
    for (int i = 0; i < loop->body.count; i++)
        if (gathers(loop->body.at[i], whole))
            return true;
    return loop->other != NULL && gathers(loop->other, whole);
}

static void print_body(Printer *p, const Loop *loop);

static void print_range(Printer *p, const Loop *loop, const char *name)
{
    text_add(p->out, "for (int64_t %s = ", name);
    print_expr(p, loop->from);
    text_add(p->out, "; %s < ", name);
    print_bound(p, loop->to, BIND_SUM);
    text_add(p->out, "; %s++)", name);
}

// The share of this part: the extent is cut evenly, whatever the number of threads.
static void print_share(Printer *p, const Loop *loop, const char *name)
{
    Text extent = {.arena = p->cx->arena}, *out = p->out;
    p->out = &extent;
    bool from_zero = loop->from->kind == EXPR_NUMBER && loop->from->whole == 0;
    print_bound(p, loop->to, from_zero ? BIND_ANY : BIND_SUM);
    if (!from_zero) {
        text_add(&extent, " - ");
        print_bound(p, loop->from, BIND_PRODUCT);
    }
    Text from = {.arena = p->cx->arena};
    p->out = &from;
    if (!from_zero) {
        print_bound(p, loop->from, BIND_SUM);
        text_add(&from, " + ");
    }
    p->out = out;
    const char *plus = from.at != NULL ? from.at : "";
    text_add(out, "for (int64_t %s = %s", name, plus);
    text_add(out, "mlk_share(%s, part, %d), %s_end = %s", extent.at, p->kernel->parts, name, plus);
    text_add(out, "mlk_share(%s, part + 1, %d); %s < %s_end; %s++)", extent.at, p->kernel->parts, name, name, name);
    p->part_used = true;
}

static void print_for(Printer *p, const Loop *loop)
{
    const char *name = loop_find(p, loop->var);
    bool before = p->of_index;
    if (loop->mark == AXIS_VECTOR && p->dialect->simd != NULL && !gathers(loop, loop))
        put_line(p, "%s", p->dialect->simd);
    put_indent(p);
    p->of_index = true;
    if (loop->mark == AXIS_PARALLEL && p->kernel->parts > 1)
        print_share(p, loop, name);
    else
        print_range(p, loop, name);
    p->of_index = before;
    print_body(p, loop);
}

// An element or local as the place where something goes, and as an operand.
static void print_target(Printer *p, const Loop *loop)
{
    if (loop->target == NULL) {
        text_add(p->out, "%s", local_name(p, loop->var));
        return;
    }
    print_element(p, loop->target, loop->count, loop->index);
}

// The join of what is there and what comes: sum, product, maximum, minimum.
static void print_join(Printer *p, const Loop *loop, DType type, const char *half)
{
    static const char *const word[] = {[REDUCE_NONE] = "",
                                       [REDUCE_SUM] = "mlk_add",
                                       [REDUCE_PROD] = "mlk_mul",
                                       [REDUCE_MAX] = "mlk_max2",
                                       [REDUCE_MIN] = "mlk_min2"};
    bool single = type_is_float(type) && type != TYPE_f64;
    bool call = !type_is_float(type) || loop->reduce == REDUCE_MAX || loop->reduce == REDUCE_MIN;
    if (call)
        text_add(p->out, "%s%s%s(", word[loop->reduce], single ? "" : "_", single ? "" : type_def(type)->name);
    if (half != NULL)
        text_add(p->out, "mlk_load_%s(", half);
    print_target(p, loop);
    text_add(p->out, half != NULL ? ")" : "");
    text_add(p->out, call ? ", " : loop->reduce == REDUCE_SUM ? " + " : " * ");
    print_bound(p, loop->value, call ? BIND_ANY : loop->reduce == REDUCE_SUM ? BIND_PRODUCT : BIND_UNARY);
    text_add(p->out, call ? ")" : "");
}

// How deep in brackets, and whether a line may be broken behind the blank at `at`: after a comma, before an operator.
static bool may_break(const char *line, size_t at)
{
    return line[at] == ' ' &&
           (line[at - 1] == ',' || (strchr("+-*/?:=|&", line[at + 1]) != NULL && line[at + 2] == ' '));
}

// How loosely what follows a blank binds: a line is rather broken before + than before *.
static int looseness(char sign) { return strchr("*/", sign) != NULL ? 3 : strchr("+-", sign) != NULL ? 2 : strchr("|&", sign) != NULL ? 1 : 0; }

// The best place to break a line that is too long: in its last two thirds, as far out of all brackets as can be, before the
// operator that binds least, late.
static size_t break_place(const char *line, size_t length)
{
    int depth = 0, least = 1 << 30;
    size_t best = 0;
    for (size_t i = 1; i < length; i++) {
        depth += (line[i] == '(') - (line[i] == ')');
        int cost = 4 * depth + looseness(line[i + 1]);
        if (i >= length / 3 && may_break(line, i) && cost <= least) {
            least = cost;
            best = i;
        }
    }
    return best;
}

// A statement, on as many lines as it needs.
static void put_statement(Printer *p, const char *line)
{
    size_t room = LINE_WIDTH - 4 * (size_t)p->indent;
    put_indent(p);
    for (bool first = true; strlen(line) > room; first = false) {
        size_t at = break_place(line, room);
        if (at == 0)
            break;
        text_add(p->out, "%.*s\n%*s", (int)at, line, 4 * p->indent + 4, "");
        line += at + 1;
        room -= first ? 4 : 0;
    }
    text_add(p->out, "%s\n", line);
}

// y = y + e is y += e: the same operation, the same bits.
static bool adds_to_itself(const Loop *loop)
{
    const Expr *e = loop->value, *own = e->kind == EXPR_PRIM && e->prim == PRIM_add ? e->operand[0] : NULL;
    if (loop->kind != LOOP_STORE || loop->target == NULL || own == NULL || own->kind != EXPR_LOAD ||
        own->value != loop->target || own->count != loop->count || loop->target->type.dtype != TYPE_f32)
        return false;
    for (int i = 0; i < loop->count; i++)
        if (!same_expr(own->operand[i], loop->index[i]))
            return false;
    return true;
}

// y = e;  y += e;  y = mlk_max2(y, e);  y = mlk_store_f16(e);
static void print_assignment(Printer *p, const Loop *loop)
{
    DType type = loop->target != NULL ? loop->target->type.dtype : loop->value->type;
    bool in_memory = loop->target != NULL, joins = loop->kind == LOOP_UPDATE && loop->reduce != REDUCE_NONE;
    const char *half = in_memory && (type == TYPE_f16 || type == TYPE_bf16) ? type_def(type)->name : NULL;
    bool short_form =
        joins && half == NULL && type_is_float(type) && (loop->reduce == REDUCE_SUM || loop->reduce == REDUCE_PROD);
    Text line = {.arena = p->cx->arena}, *out = p->out;
    p->out = &line;
    bool itself = adds_to_itself(loop);
    print_target(p, loop);
    text_add(p->out, itself ? " += " : !short_form ? " = " : loop->reduce == REDUCE_SUM ? " += " : " *= ");
    if (half != NULL)
        text_add(p->out, "mlk_store_%s(", half);
    if (joins && !short_form)
        print_join(p, loop, type, half);
    else
        print_expr(p, itself ? loop->value->operand[1] : loop->value);
    text_add(p->out, half != NULL ? ");" : ";");
    Text guard = {.arena = p->cx->arena};
    p->out = &guard;
    bool guarded = in_memory && print_guard(p, loop->target, loop->count, loop->index);
    p->out = out;
    if (guarded)
        put_line(p, "if (%s)", guard.at);
    p->indent += guarded;
    put_statement(p, line.at);
    p->indent -= guarded;
}

static void print_local(Printer *p, const Loop *loop)
{
    Text line = {.arena = p->cx->arena}, *out = p->out;
    if (loop->kind == LOOP_LET && is_index(p, loop->value))
        LIST_ADD(p->cx->arena, p->index_locals, loop->var);
    p->out = &line;
    text_add(p->out, "%s%s %s = ", loop->kind == LOOP_LET ? "const " : "", local_type(loop->type),
             local_name(p, loop->var));
    print_expr(p, loop->value);
    text_add(p->out, ";");
    p->out = out;
    put_statement(p, line.at);
}

static void print_if(Printer *p, const Loop *loop)
{
    put_indent(p);
    text_add(p->out, "if (");
    print_expr(p, loop->value);
    text_add(p->out, ")");
    print_body(p, loop);
    if (loop->other == NULL)
        return;
    bool braces = p->out->at[p->out->length - 2] == '}';
    if (braces)
        p->out->length--;  // } else {
    else
        put_indent(p);
    text_add(p->out, braces ? " else" : "else");
    if (loop->other->kind == LOOP_BLOCK)
        print_body(p, loop->other);
    else {
        text_add(p->out, "\n");
        p->indent++;
        print_loops(p, loop->other);
        p->indent--;
    }
}

// What stands behind for (…) or if (…): in braces unless it is one loop or one statement.
static void print_body(Printer *p, const Loop *loop)
{
    const Loop *only = loop->body.count == 1 ? loop->body.at[0] : NULL;
    bool braces = only == NULL || only->kind == LOOP_BLOCK || only->kind == LOOP_LET ||
                  only->kind == LOOP_ACCUMULATOR || (only->kind == LOOP_IF && loop->kind == LOOP_IF);
    text_add(p->out, braces ? " {\n" : "\n");
    p->indent++;
    for (int i = 0; i < loop->body.count; i++)
        print_loops(p, loop->body.at[i]);
    p->indent--;
    if (braces)
        put_line(p, "}");
}

// A block with locals of its own gets braces, unless it is the whole function.
static void print_block(Printer *p, const Loop *loop)
{
    bool braces = false;
    for (int i = 0; i < loop->body.count && p->indent > 1; i++)
        braces |= loop->body.at[i]->kind == LOOP_LET || loop->body.at[i]->kind == LOOP_ACCUMULATOR;
    if (braces)
        put_line(p, "{");
    p->indent += braces;
    for (int i = 0; i < loop->body.count; i++)
        print_loops(p, loop->body.at[i]);
    p->indent -= braces;
    if (braces)
        put_line(p, "}");
}

void print_loops(Printer *p, const Loop *loop)
{
    switch (loop->kind) {
    case LOOP_BLOCK: print_block(p, loop); break;
    case LOOP_FOR: print_for(p, loop); break;
    case LOOP_LET:
    case LOOP_ACCUMULATOR: print_local(p, loop); break;
    case LOOP_STORE:
    case LOOP_UPDATE: print_assignment(p, loop); break;
    case LOOP_IF: print_if(p, loop); break;
    }
}
