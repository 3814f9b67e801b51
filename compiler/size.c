// size.c: sizes as polynomials in named sizes, kept in one normal form.
//
// A Size is a sum of terms, a term a whole number times a product of atoms, and an atom a named size or floor(polynomial / n).
// Terms are ordered by degree, then by their atoms, and atoms by the order in which their symbols were made, so the same size
// has the same form and the same text in every run. Floors are brought to one form too (size_floordiv says how), so
// floor((2 * H + 1) / 4) and floor(H / 2) are the same size.
//
// Arithmetic is checked. What does not fit into 64 bits, or grows past TERMS_MAX terms or ATOMS_MAX factors, becomes a Size of
// its own kind that is not valid (size_valid) and stays so; graph_call refuses a value whose type has one.
#include <string.h>

#include "mlc.h"

enum { TERMS_MAX = 256, ATOMS_MAX = 32 };

typedef struct Atom {
    const Symbol *symbol;               // a named size, or
    Size          of;                   // floor(of / by)
    int64_t       by;
} Atom;

typedef struct Term { int64_t times; int count; const Atom *atom; } Term;

struct SizeForm { bool invalid; int count; const Term *term; };

static const struct SizeForm invalid = {.invalid = true};

// --- Order -----------------------------------------------------------------------------------------------------------------

static int size_order(Size a, Size b);

static int number_order(int64_t a, int64_t b) { return (a > b) - (a < b); }

static int atom_order(const Atom *a, const Atom *b)
{
    if (a->symbol != NULL || b->symbol != NULL) {
        if (a->symbol == NULL || b->symbol == NULL)
            return a->symbol != NULL ? -1 : 1;
        return number_order(a->symbol->id, b->symbol->id);
    }
    return a->by != b->by ? number_order(a->by, b->by) : size_order(a->of, b->of);
}

// Higher degrees first, so that numbers stand last: N * T + 2 * T - 1.
static int term_order(const Term *a, const Term *b)
{
    if (a->count != b->count)
        return b->count - a->count;
    for (int i = 0; i < a->count; i++) {
        int order = atom_order(&a->atom[i], &b->atom[i]);
        if (order != 0)
            return order;
    }
    return 0;
}

static int size_order(Size a, Size b)
{
    if (a->count != b->count)
        return a->count - b->count;
    for (int i = 0; i < a->count; i++) {
        int order = term_order(&a->term[i], &b->term[i]);
        if (order == 0)
            order = number_order(a->term[i].times, b->term[i].times);
        if (order != 0)
            return order;
    }
    return 0;
}

bool size_valid(Size a) { return !a->invalid; }
bool size_equal(Size a, Size b) { return a == b || (!a->invalid && !b->invalid && size_order(a, b) == 0); }

// --- Making ------------------------------------------------------------------------------------------------------------------

static Size size_of_terms(Context *cx, const Term *term, int count)
{
    if (count > TERMS_MAX)
        return &invalid;
    struct SizeForm *size = NEW(cx->arena, struct SizeForm);
    size->count = count;
    size->term = count > 0 ? arena_copy(cx->arena, term, sizeof *term * (size_t)count) : NULL;
    return size;
}

static Size size_of_atom(Context *cx, Atom atom)
{
    Term term = {1, 1, arena_copy(cx->arena, &atom, sizeof atom)};
    return size_of_terms(cx, &term, 1);
}

Size size_const(Context *cx, int64_t n)
{
    Term term = {.times = n};
    return size_of_terms(cx, &term, n != 0);
}

Size size_symbol(Context *cx, const char *name, int64_t bound)
{
    Symbol *symbol = map_get(cx->symbols, name);
    if (symbol == NULL) {
        symbol = NEW(cx->arena, Symbol);
        *symbol = (Symbol){.name = name, .bound = bound, .id = map_count(cx->symbols)};
        map_set(cx->symbols, name, symbol);
    }
    if (symbol->bound == 0)
        symbol->bound = bound;
    return size_of_atom(cx, (Atom){.symbol = symbol});
}

// --- Sums and products ---------------------------------------------------------------------------------------------------------

// a + times * b, by merging two sorted lists.
static Size add_times(Context *cx, Size a, int64_t times, Size b)
{
    Term term[2 * TERMS_MAX];
    int count = 0;
    if (a->invalid || b->invalid)
        return &invalid;
    for (int i = 0, j = 0; i < a->count || j < b->count;) {
        int order = i == a->count ? 1 : j == b->count ? -1 : term_order(&a->term[i], &b->term[j]);
        Term next = order <= 0 ? a->term[i] : b->term[j];
        int64_t more = 0;
        if (order >= 0 && __builtin_mul_overflow(b->term[j].times, times, &more))
            return &invalid;
        if (order > 0)
            next.times = 0;
        if (__builtin_add_overflow(next.times, more, &next.times))
            return &invalid;
        i += order <= 0;
        j += order >= 0;
        if (next.times != 0)
            term[count++] = next;
    }
    return size_of_terms(cx, term, count);
}

Size size_plus(Context *cx, Size a, Size b)  { return add_times(cx, a, 1, b); }
Size size_minus(Context *cx, Size a, Size b) { return add_times(cx, a, -1, b); }

// One term times a size. Multiplying all terms by the same one keeps their order.
static Size times_term(Context *cx, Size a, const Term *by)
{
    Term term[TERMS_MAX];
    if (a->invalid)
        return &invalid;
    for (int i = 0; i < a->count; i++) {
        const Term *t = &a->term[i];
        Atom atom[2 * ATOMS_MAX];
        int p = 0, q = 0, count = 0;
        if (t->count + by->count > ATOMS_MAX || __builtin_mul_overflow(t->times, by->times, &term[i].times))
            return &invalid;
        while (p < t->count || q < by->count) {
            bool first = q == by->count || (p < t->count && atom_order(&t->atom[p], &by->atom[q]) <= 0);
            atom[count++] = first ? t->atom[p++] : by->atom[q++];
        }
        term[i].count = count;
        term[i].atom = count > 0 ? arena_copy(cx->arena, atom, sizeof *atom * (size_t)count) : NULL;
    }
    return size_of_terms(cx, term, a->count);
}

Size size_times(Context *cx, Size a, Size b)
{
    if (a->invalid || b->invalid)
        return &invalid;
    Size sum = size_const(cx, 0);
    for (int i = 0; i < b->count; i++)
        sum = size_plus(cx, sum, times_term(cx, a, &b->term[i]));
    return sum;
}

// --- Quotients -----------------------------------------------------------------------------------------------------------------

static int64_t floor_of(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

// floor(a / b) in its one form. For whole numbers p, q, c and g > 0:
//   floor((b q + p) / b) = q + floor(p / b)              so that coefficients lie in 0 … b - 1
//   floor((g p + c) / (g b)) = floor((p + floor(c / g)) / b)
//   floor(floor(p / c) / b) = floor(p / (c b))
Size size_floordiv(Context *cx, Size a, int64_t b)
{
    CHECK(b > 0);
    if (a->invalid || b == 1)
        return a;
    Term whole[TERMS_MAX], rest[TERMS_MAX];
    int wholes = 0, rests = 0;
    int64_t divisor = b;
    for (int i = 0; i < a->count; i++) {
        Term t = a->term[i];
        int64_t quotient = floor_of(t.times, b), left = t.times - quotient * b;
        if (quotient != 0)
            whole[wholes++] = (Term){quotient, t.count, t.atom};
        if (left != 0)
            rest[rests++] = (Term){left, t.count, t.atom};
        if (left != 0 && t.count > 0)
            divisor = common_divisor(divisor, left);
    }
    Size out = size_of_terms(cx, whole, wholes);
    if (rests == 0 || (rests == 1 && rest[0].count == 0))
        return out;
    int kept = 0;
    for (int i = 0; i < rests; i++) {
        rest[i].times = floor_of(rest[i].times, divisor);
        if (rest[i].times != 0)
            rest[kept++] = rest[i];
    }
    b /= divisor;
    Size p = size_of_terms(cx, rest, kept);
    bool floor_alone = kept == 1 && rest[0].count == 1 && rest[0].times == 1 && rest[0].atom[0].symbol == NULL;
    int64_t both;
    if (b == 1)
        return size_plus(cx, out, p);
    if (floor_alone && !__builtin_mul_overflow(rest[0].atom[0].by, b, &both))
        return size_plus(cx, out, size_floordiv(cx, rest[0].atom[0].of, both));
    return size_plus(cx, out, size_of_atom(cx, (Atom){.of = p, .by = b}));
}

Size size_ceildiv(Context *cx, Size a, int64_t b) { return size_floordiv(cx, size_plus(cx, a, size_const(cx, b - 1)), b); }

// a / b of two terms, exactly.
static bool term_over(Context *cx, const Term *a, const Term *b, Term *out)
{
    Atom left[ATOMS_MAX];
    int count = 0, q = 0;
    if (a->times % b->times != 0 || (a->times == INT64_MIN && b->times == -1))
        return false;
    for (int p = 0; p < a->count; p++) {
        if (q < b->count && atom_order(&a->atom[p], &b->atom[q]) == 0)
            q++;
        else
            left[count++] = a->atom[p];
    }
    *out = (Term){a->times / b->times, count, count > 0 ? arena_copy(cx->arena, left, sizeof *left * (size_t)count) : NULL};
    return q == b->count;
}

// Division of polynomials by their leading terms; it is exact, or it stops at a term that does not divide.
Size size_over(Context *cx, Size a, Size b)
{
    Size out = size_const(cx, 0);
    if (a->invalid || b->invalid || b->count == 0)
        return NULL;
    for (int turn = 0; a->count > 0; turn++) {
        Term t;
        if (turn > TERMS_MAX || !term_over(cx, &a->term[0], &b->term[0], &t))
            return NULL;
        out = size_plus(cx, out, size_of_terms(cx, &t, 1));
        a = size_minus(cx, a, times_term(cx, b, &t));
        if (a->invalid || out->invalid)
            return NULL;
    }
    return out;
}

// --- Values ----------------------------------------------------------------------------------------------------------------------

bool size_known(Size a, int64_t *n)
{
    if (a->invalid || a->count > 1 || (a->count == 1 && a->term[0].count > 0))
        return false;
    *n = a->count > 0 ? a->term[0].times : 0;
    return true;
}

bool size_is(Size a, int64_t n)
{
    int64_t known;
    return size_known(a, &known) && known == n;
}

int64_t size_value(Size a)
{
    int64_t n = 0;
    CHECK(size_known(a, &n));
    return n;
}

// The least and the largest value, for symbols between 0 and their bounds. Exact where no term is negative; otherwise it may
// lie outside of what can happen, never inside. False if a symbol has no bound or a number does not fit.
static bool size_range(Size a, int64_t *least, int64_t *most);

static bool atom_range(const Atom *atom, int64_t *least, int64_t *most)
{
    if (atom->symbol != NULL) {
        *least = 0;
        *most = atom->symbol->bound;
        return atom->symbol->bound > 0;
    }
    bool known = size_range(atom->of, least, most);
    *least = floor_of(*least, atom->by);
    *most = floor_of(*most, atom->by);
    return known;
}

static bool range_times(int64_t *least, int64_t *most, int64_t low, int64_t high)
{
    int64_t corner[4];
    bool over = __builtin_mul_overflow(*least, low, &corner[0]) || __builtin_mul_overflow(*least, high, &corner[1]) ||
                __builtin_mul_overflow(*most, low, &corner[2]) || __builtin_mul_overflow(*most, high, &corner[3]);
    if (over)
        return false;
    *least = *most = corner[0];
    for (int i = 1; i < 4; i++) {
        *least = corner[i] < *least ? corner[i] : *least;
        *most = corner[i] > *most ? corner[i] : *most;
    }
    return true;
}

static bool size_range(Size a, int64_t *least, int64_t *most)
{
    *least = *most = 0;
    if (a->invalid)
        return false;
    for (int i = 0; i < a->count; i++) {
        int64_t low = a->term[i].times, high = low, p, q;
        for (int k = 0; k < a->term[i].count; k++)
            if (!atom_range(&a->term[i].atom[k], &p, &q) || !range_times(&low, &high, p, q))
                return false;
        if (__builtin_add_overflow(*least, low, least) || __builtin_add_overflow(*most, high, most))
            return false;
    }
    return true;
}

// Without floors and squares a size is linear in each symbol alone, so its largest value stands at a corner of the box.
static bool is_multilinear(Size a)
{
    for (int i = 0; i < a->count; i++)
        for (int k = 0; k < a->term[i].count; k++) {
            const Atom *atom = a->term[i].atom;
            if (atom[k].symbol == NULL || (k > 0 && atom[k].symbol == atom[k - 1].symbol))
                return false;
        }
    return true;
}

static bool term_at(const Term *term, const int64_t *symbols, int64_t *value);

// The value for these symbols (by id); false if it does not fit.
static bool evaluate(Size a, const int64_t *symbols, int64_t *value)
{
    *value = 0;
    for (int i = 0; i < a->count; i++) {
        int64_t term;
        if (!term_at(&a->term[i], symbols, &term) || __builtin_add_overflow(*value, term, value))
            return false;
    }
    return !a->invalid;
}

static bool term_at(const Term *term, const int64_t *symbols, int64_t *value)
{
    *value = term->times;
    for (int k = 0; k < term->count; k++) {
        const Atom *atom = &term->atom[k];
        int64_t factor;
        if (atom->symbol != NULL)
            factor = symbols[atom->symbol->id];
        else if (!evaluate(atom->of, symbols, &factor))
            return false;
        if (atom->symbol == NULL)
            factor = floor_of(factor, atom->by);
        if (__builtin_mul_overflow(*value, factor, value))
            return false;
    }
    return true;
}

enum { CORNERS_MAX = 6 };

static bool corners_upper(Size a, const Symbol *const *symbols, int count, int64_t *n)
{
    int64_t value[64] = {0}, at;
    bool any = false;
    for (int i = 0; i < count; i++)
        if (symbols[i]->id >= COUNT(value) || symbols[i]->bound <= 0)
            return false;
    for (int corner = 0; corner < 1 << count; corner++) {
        for (int i = 0; i < count; i++)
            value[symbols[i]->id] = corner >> i & 1 ? symbols[i]->bound : 0;
        if (!evaluate(a, value, &at))
            return false;
        if (!any || at > *n)
            *n = at;
        any = true;
    }
    return true;
}

bool size_upper(Size a, int64_t *n)
{
    const Symbol *symbols[CORNERS_MAX + 1];
    int64_t least;
    int count = size_symbols(a, symbols, COUNT(symbols));
    if (count <= CORNERS_MAX && is_multilinear(a) && corners_upper(a, symbols, count, n))
        return true;
    return size_range(a, &least, n);
}

int64_t size_at(Size a, const int64_t *symbols)
{
    int64_t n;
    return evaluate(a, symbols, &n) ? n : INT64_MAX;
}

Size size_with(Context *cx, Size a, const int64_t *symbols)
{
    Size sum = size_const(cx, 0);
    if (a->invalid)
        return a;
    for (int i = 0; i < a->count; i++) {
        Size product = size_const(cx, a->term[i].times);
        for (int k = 0; k < a->term[i].count; k++) {
            const Atom *atom = &a->term[i].atom[k];
            Size factor = atom->symbol == NULL              ? size_floordiv(cx, size_with(cx, atom->of, symbols), atom->by)
                          : symbols[atom->symbol->id] >= 0 ? size_const(cx, symbols[atom->symbol->id])
                                                           : size_of_atom(cx, *atom);
            product = size_times(cx, product, factor);
        }
        sum = size_plus(cx, sum, product);
    }
    return sum;
}

static int symbol_add(const Symbol **symbols, int count, int room, const Symbol *symbol)
{
    for (int i = 0; i < count; i++)
        if (symbols[i] == symbol)
            return count;
    if (count < room)
        symbols[count++] = symbol;
    return count;
}

static int symbols_in(Size a, const Symbol **symbols, int count, int room)
{
    for (int i = 0; i < a->count; i++)
        for (int k = 0; k < a->term[i].count; k++) {
            const Atom *atom = &a->term[i].atom[k];
            count = atom->symbol != NULL ? symbol_add(symbols, count, room, atom->symbol) : symbols_in(atom->of, symbols, count, room);
        }
    return count;
}

int size_symbols(Size a, const Symbol **symbols, int room) { return symbols_in(a, symbols, 0, room); }

// --- Text --------------------------------------------------------------------------------------------------------------------------

static void term_print(Text *text, const Term *term, uint64_t times)
{
    bool number = times != 1 || term->count == 0;
    if (number)
        text_add(text, "%llu", (unsigned long long)times);
    for (int k = 0; k < term->count; k++) {
        const Atom *atom = &term->atom[k];
        text_add(text, number || k > 0 ? " * " : "");
        if (atom->symbol != NULL) {
            text_add(text, "%s", atom->symbol->name);
            continue;
        }
        text_add(text, atom->of->count > 1 ? "floor((" : "floor(");
        size_print(text, atom->of);
        text_add(text, atom->of->count > 1 ? ") / %lld)" : " / %lld)", (long long)atom->by);
    }
}

void size_print(Text *text, Size a)
{
    if (a->invalid || a->count == 0)
        text_add(text, a->invalid ? "?" : "0");
    for (int i = 0; i < a->count; i++) {
        int64_t times = a->term[i].times;
        text_add(text, times < 0 ? (i > 0 ? " - " : "-") : i > 0 ? " + " : "");
        term_print(text, &a->term[i], times < 0 ? 0 - (uint64_t)times : (uint64_t)times);
    }
}

// --- Shapes ------------------------------------------------------------------------------------------------------------------------

bool shape_equal(const Shape *a, const Shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (!size_equal(a->dim[i], b->dim[i]))
            return false;
    return true;
}

Size shape_count(Context *cx, const Shape *shape)
{
    Size count = size_const(cx, 1);
    for (int i = 0; i < shape->rank; i++)
        count = size_times(cx, count, shape->dim[i]);
    return count;
}

bool shape_broadcast(Context *cx, const Shape *a, const Shape *b, Shape *out)
{
    (void)cx;
    out->rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 1; i <= out->rank; i++) {
        Size x = i <= a->rank ? a->dim[a->rank - i] : NULL, y = i <= b->rank ? b->dim[b->rank - i] : NULL;
        Size both = x == NULL || (y != NULL && size_is(x, 1)) ? y : y == NULL || size_is(y, 1) || size_equal(x, y) ? x : NULL;
        if (both == NULL)
            return false;
        out->dim[out->rank - i] = both;
    }
    return true;
}
