// size.c: sizes against plain arithmetic. Random polynomials are built by random operations; each must have the value that the
// same operations give on numbers, and two that are built in different orders must be equal.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../compiler/mlc.h"
#include "expect.h"

static Context context_new(void)
{
    Arena *arena = arena_new();
    return (Context){.arena = arena, .names = names_new(arena), .diag = diag_new(arena), .symbols = map_new(arena)};
}

static uint64_t state = 1;

static int below(int n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)(state >> 33) % n;
}

enum { SYMBOLS = 3 };
static const char *const names[SYMBOLS] = {"N", "H", "T"};
static const int64_t bounds[SYMBOLS] = {9, 31, 17};

static int64_t floor_of(int64_t a, int64_t b) { return a / b - (a % b < 0); }

// A random size, with its value for these symbols.
static Size grow(Context *cx, int depth, const int64_t *symbols, int64_t *value)
{
    int64_t a, b;
    int kind = depth > 0 ? below(6) : below(2);
    if (kind == 0) {
        *value = below(11) - 4;
        return size_const(cx, *value);
    }
    if (kind == 1) {
        int i = below(SYMBOLS);
        *value = symbols[i];
        return size_symbol(cx, names[i], bounds[i]);
    }
    Size x = grow(cx, depth - 1, symbols, &a);
    if (kind == 5) {
        int64_t by = 1 + below(6);
        *value = floor_of(a, by);
        return size_floordiv(cx, x, by);
    }
    Size y = grow(cx, depth - 1, symbols, &b);
    *value = kind == 2 ? a + b : kind == 3 ? a - b : a * b;
    return kind == 2 ? size_plus(cx, x, y) : kind == 3 ? size_minus(cx, x, y) : size_times(cx, x, y);
}

static void test_values(void)
{
    for (int trial = 0; trial < 3000; trial++) {
        Context cx = context_new();
        int64_t symbols[SYMBOLS], value, most;
        for (int i = 0; i < SYMBOLS; i++) {
            size_symbol(&cx, names[i], bounds[i]);
            symbols[i] = below((int)bounds[i] + 1);
        }
        Size size = grow(&cx, 4, symbols, &value);
        CHECK_EQUAL(size_at(size, symbols), value);
        if (size_upper(size, &most))
            CHECK_TRUE(most >= value);
        CHECK_TRUE(size_equal(size, size_plus(&cx, size_minus(&cx, size, size_const(&cx, 7)), size_const(&cx, 7))));
        Size both = size_times(&cx, size, size_plus(&cx, size_symbol(&cx, "N", 0), size_const(&cx, 3)));
        Size back = size_over(&cx, both, size_plus(&cx, size_const(&cx, 3), size_symbol(&cx, "N", 0)));
        CHECK_TRUE(back != NULL && size_equal(back, size));
        arena_free(cx.arena);
    }
}

static const char *text_of(Context *cx, Size size)
{
    Text text = {.arena = cx->arena};
    size_print(&text, size);
    return text.at;
}

static void test_forms(void)
{
    Context cx = context_new();
    Size n = size_symbol(&cx, "N", 0), h = size_symbol(&cx, "H", 0), one = size_const(&cx, 1), two = size_const(&cx, 2);
    CHECK_TEXT(text_of(&cx, size_times(&cx, size_const(&cx, 16), h)), "16 * H");
    CHECK_TEXT(text_of(&cx, size_floordiv(&cx, h, 4)), "floor(H / 4)");
    CHECK_TEXT(text_of(&cx, size_minus(&cx, h, one)), "H - 1");
    CHECK_TEXT(text_of(&cx, size_minus(&cx, one, h)), "-H + 1");
    CHECK_TEXT(text_of(&cx, size_plus(&cx, one, size_times(&cx, n, h))), "N * H + 1");
    CHECK_TEXT(text_of(&cx, size_minus(&cx, n, n)), "0");
    // (H + 2 * 1 - 3) / 2 + 1, the usual convolution, is ceil(H / 2).
    Size conv = size_plus(&cx, size_floordiv(&cx, size_minus(&cx, size_plus(&cx, h, two), size_const(&cx, 3)), 2), one);
    CHECK_TRUE(size_equal(conv, size_ceildiv(&cx, h, 2)));
    CHECK_TEXT(text_of(&cx, conv), "floor((H + 1) / 2)");
    // Pooling twice by 2 is pooling by 4; and (2 H + 1) / 4 is H / 2.
    CHECK_TRUE(size_equal(size_floordiv(&cx, size_floordiv(&cx, h, 2), 2), size_floordiv(&cx, h, 4)));
    CHECK_TRUE(size_equal(size_floordiv(&cx, size_plus(&cx, size_times(&cx, two, h), one), 4), size_floordiv(&cx, h, 2)));
    CHECK_TRUE(size_over(&cx, n, h) == NULL);
    CHECK_TRUE(size_over(&cx, n, size_const(&cx, 0)) == NULL);
    const Symbol *symbols[4];
    CHECK_EQUAL(size_symbols(size_times(&cx, n, size_floordiv(&cx, h, 3)), symbols, 4), 2);
    arena_free(cx.arena);
}

// The largest value of a size stands where memory is laid out: too small would be a fault, too large a waste.
static void test_bounds(void)
{
    Context cx = context_new();
    Size n = size_symbol(&cx, "N", 8), h = size_symbol(&cx, "H", 32), free_size = size_symbol(&cx, "S", 0);
    int64_t most;
    CHECK_TRUE(size_upper(size_times(&cx, n, size_minus(&cx, h, size_const(&cx, 2))), &most));
    CHECK_EQUAL(most, 8 * 30);
    CHECK_TRUE(size_upper(size_minus(&cx, h, size_floordiv(&cx, h, 2)), &most));
    CHECK_TRUE(most >= 16);
    CHECK_TRUE(!size_upper(free_size, &most));
    CHECK_TRUE(!size_upper(size_times(&cx, n, size_const(&cx, INT64_MAX / 4)), &most));
    arena_free(cx.arena);
}

// Sizes that become known: what is left is in one form still.
static void test_with(void)
{
    for (int trial = 0; trial < 500; trial++) {
        Context cx = context_new();
        int64_t symbols[SYMBOLS], some[SYMBOLS], value;
        for (int i = 0; i < SYMBOLS; i++) {
            size_symbol(&cx, names[i], bounds[i]);
            symbols[i] = below((int)bounds[i] + 1);
            some[i] = below(2) ? symbols[i] : -1;
        }
        Size size = grow(&cx, 4, symbols, &value), part = size_with(&cx, size, some), whole = size_with(&cx, part, symbols);
        CHECK_EQUAL(size_at(part, symbols), value);
        CHECK_EQUAL(size_value(whole), value);
        arena_free(cx.arena);
    }
}

static void test_overflow(void)
{
    Context cx = context_new();
    Size large = size_const(&cx, INT64_MAX / 2 + 1), n = size_symbol(&cx, "N", 4);
    Size bad = size_times(&cx, large, size_const(&cx, 2));
    int64_t number;
    CHECK_TRUE(!size_valid(bad) && size_valid(large));
    CHECK_TRUE(!size_known(bad, &number) && !size_upper(bad, &number) && !size_equal(bad, bad) == false);
    CHECK_TRUE(!size_valid(size_plus(&cx, bad, n)) && !size_valid(size_floordiv(&cx, bad, 3)) && size_over(&cx, bad, n) == NULL);
    CHECK_TRUE(!size_valid(size_plus(&cx, large, large)));
    Size product = n;                                   // too many factors, and too many terms
    for (int i = 0; i < 40; i++)
        product = size_times(&cx, product, n);
    CHECK_TRUE(!size_valid(product));
    Size sum = size_const(&cx, 1);
    for (int i = 0; i < 12; i++)
        sum = size_times(&cx, sum, size_plus(&cx, size_symbol(&cx, arena_printf(cx.arena, "s%d", i), 4), size_const(&cx, 1)));
    CHECK_TRUE(!size_valid(sum));
    int64_t symbols[16] = {INT64_MAX / 2};
    CHECK_EQUAL(size_at(size_times(&cx, n, size_const(&cx, 4)), symbols), INT64_MAX);
    // A graph refuses a value of such a size, at the call.
    Graph *g = graph_new(&cx, "large");
    Size dims[3] = {size_const(&cx, INT64_MAX / 3), n, n};
    Value *x = graph_input(g, "x", type_of(TYPE_f32, 3, dims), (DiagPlace){0});
    OpCall call = {.cx = &cx, .op = op_find("relu"), .n_in = 1, .in = {x}};
    Value *out[OUTPUTS_MAX];
    CHECK_TRUE(!graph_call(g, &call, "", out));
    CHECK_EQUAL(cx.diag->errors, 1);
    arena_free(cx.arena);
}

int main(void)
{
    test_values();
    test_forms();
    test_bounds();
    test_with();
    test_overflow();
    return check_end();
}
