// interpreter.c: the interpreter's scalars against the C texts that generated programs use (kernels/c/scalar.h): integers for
// all pairs of 8 bits and edges of the wider types, half precision for all bits. Then what runs wrong: an index outside, a
// tensor that is missing or has another shape.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../compiler/eval.h"
#include "../../kernels/c/scalar.h"
#include "expect.h"

// --- Integers --------------------------------------------------------------------------------------------------------------

#define SAME(t, prim, a, b, c) CHECK_EQUAL(type_wrap(TYPE_##t, prim_whole(PRIM_##prim, (a), (b))), (int64_t)(c))
#define ALL_OF(t, a, b)                                                                                                     \
    do {                                                                                                                    \
        SAME(t, add, a, b, mlk_add_##t((a), (b)));                                                                          \
        SAME(t, sub, a, b, mlk_sub_##t((a), (b)));                                                                          \
        SAME(t, mul, a, b, mlk_mul_##t((a), (b)));                                                                          \
        SAME(t, div, a, b, mlk_div_##t((a), (b)));                                                                          \
        SAME(t, mod, a, b, mlk_mod_##t((a), (b)));                                                                          \
        SAME(t, floordiv, a, b, mlk_floordiv_##t((a), (b)));                                                                \
        SAME(t, min, a, b, mlk_min2_##t((a), (b)));                                                                         \
        SAME(t, max, a, b, mlk_max2_##t((a), (b)));                                                                         \
        SAME(t, neg, a, 0, mlk_neg_##t(a));                                                                                 \
        SAME(t, abs, a, 0, mlk_abs_##t(a));                                                                                 \
    } while (0)

static void test_integers(void)
{
    for (int a = -128; a < 128; a++)
        for (int b = -128; b < 128; b++)
            ALL_OF(i8, (int8_t)a, (int8_t)b);
    for (int a = 0; a < 256; a++)
        for (int b = 0; b < 256; b++)
            ALL_OF(u8, (uint8_t)a, (uint8_t)b);
    static const int64_t edge[] = {0, 1, -1, 2, -2, 7, -7, INT16_MAX, INT16_MIN, INT32_MAX, INT32_MIN, INT32_MIN + 1, INT64_MAX, INT64_MIN, INT64_MIN + 1, (1ll << 53) + 1};
    for (int i = 0; i < COUNT(edge); i++)
        for (int j = 0; j < COUNT(edge); j++) {
            ALL_OF(i64, edge[i], edge[j]);
            ALL_OF(i32, (int32_t)edge[i], (int32_t)edge[j]);
            ALL_OF(i16, (int16_t)edge[i], (int16_t)edge[j]);
        }
}

static void test_whole(void)
{
    static const double x[] = {0, -0.5, 0.999, -1, 1.5, -1.5, 127, 128, -128, -129, 255, 256, 32767.5, 2147483647.0, 2147483648.0, -2147483649.0,
                               9.3e18, -9.3e18, 1e300, -1e300, INFINITY, -INFINITY, NAN, 0x1p53};
    for (int i = 0; i < COUNT(x); i++) {
        CHECK_EQUAL(type_whole(TYPE_i8, x[i]), (int64_t)mlk_whole_i8(x[i]));
        CHECK_EQUAL(type_whole(TYPE_u8, x[i]), (int64_t)mlk_whole_u8(x[i]));
        CHECK_EQUAL(type_whole(TYPE_i16, x[i]), (int64_t)mlk_whole_i16(x[i]));
        CHECK_EQUAL(type_whole(TYPE_i32, x[i]), (int64_t)mlk_whole_i32(x[i]));
        CHECK_EQUAL(type_whole(TYPE_i64, x[i]), (int64_t)mlk_whole_i64(x[i]));
    }
}

// --- Half precision ----------------------------------------------------------------------------------------------------------

static bool same(double a, double b) { return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b)); }

static void test_half(void)
{
    uint16_t bits;
    Tensor f16 = {.dtype = TYPE_f16, .data = &bits}, bf16 = {.dtype = TYPE_bf16, .data = &bits};
    for (int i = 0; i < 65536; i++) {
        bits = (uint16_t)i;
        float h = mlk_load_f16(bits), b = mlk_load_bf16(bits);
        CHECK_TRUE(same(tensor_get(&f16, 0), h) && same(tensor_get(&bf16, 0), b));
        float near[] = {h, nextafterf(h, INFINITY), nextafterf(h, -INFINITY), h * 1.0004882f, b, b * 1.0039062f, nextafterf(b, 0), b + 1e-8f, h + 0x1p-25f};
        for (int k = 0; k < COUNT(near); k++) {
            tensor_set(&f16, 0, near[k]);
            CHECK_TRUE(bits == mlk_store_f16(near[k]) || isnan(near[k]));
            CHECK_TRUE(same(type_round(TYPE_f16, near[k]), mlk_load_f16(mlk_store_f16(near[k]))));
            tensor_set(&bf16, 0, near[k]);
            CHECK_TRUE(bits == mlk_store_bf16(near[k]) || isnan(near[k]));
            CHECK_TRUE(same(type_round(TYPE_bf16, near[k]), mlk_load_bf16(mlk_store_bf16(near[k]))));
        }
    }
}

static void test_floats(void)
{
    static const float x[] = {0, -0.0f, 1, -1, 2.5f, -2.5f, 7, -7, 0.1f, 1e30f, -1e30f, 3.4e38f, 1e-40f, INFINITY, -INFINITY, NAN};
    for (int i = 0; i < COUNT(x); i++)
        for (int j = 0; j < COUNT(x); j++) {
            float a = x[i], b = x[j];
            CHECK_TRUE(same((float)prim_float(PRIM_min, TYPE_f32, a, b), mlk_min2(a, b)));
            CHECK_TRUE(same((float)prim_float(PRIM_max, TYPE_f32, a, b), mlk_max2(a, b)));
            CHECK_TRUE(same((float)prim_float(PRIM_mod, TYPE_f32, a, b), mlk_mod(a, b)));
            CHECK_TRUE(same((float)prim_float(PRIM_floordiv, TYPE_f32, a, b), mlk_floordiv(a, b)));
            CHECK_TRUE(same((float)prim_float(PRIM_add, TYPE_f32, a, b), a + b));
            CHECK_TRUE(same((float)prim_float(PRIM_div, TYPE_f32, a, b), a / b));
        }
}

// --- What runs wrong -----------------------------------------------------------------------------------------------------------

static Context context_new(void)
{
    Arena *arena = arena_new();
    return (Context){.arena = arena, .names = names_new(arena), .diag = diag_new(arena), .symbols = map_new(arena)};
}

static void test_errors(void)
{
    Context cx = context_new();
    Graph *g = graph_new(&cx, "wrong");
    Size dims[2] = {size_const(&cx, 5), size_const(&cx, 2)};
    Value *table = graph_input(g, "table", type_of(TYPE_f32, 2, dims), (DiagPlace){0}), *index = graph_input(g, "index", type_of(TYPE_i32, 1, &dims[1]), (DiagPlace){0});
    Builder b = {.cx = &cx, .graph = g, .scope = ""};
    Value *y = build2(&b, "gather", table, index, "");
    Eval eval = {.arena = cx.arena, .at = NEW_ARRAY(cx.arena, Tensor *, g->values.count), .symbols = NEW_ARRAY(cx.arena, int64_t, 1)};
    int64_t shape[2] = {5, 2}, two = 2;
    CHECK_TRUE(!eval_graph(g, &eval) && strstr(eval.error, "table is not given") != NULL);
    eval.at[table->id] = tensor_new(cx.arena, TYPE_f32, 1, &two);
    CHECK_TRUE(!eval_graph(g, &eval) && strstr(eval.error, "table has another type or shape") != NULL);
    eval.at[table->id] = tensor_new(cx.arena, TYPE_f32, 2, shape);
    eval.at[index->id] = tensor_new(cx.arena, TYPE_i32, 1, &two);
    CHECK_TRUE(eval_graph(g, &eval) && eval.at[y->id] != NULL);
    tensor_set(eval.at[index->id], 1, 5);
    CHECK_TRUE(!eval_graph(g, &eval) && strstr(eval.error, "index 5 is outside of axis 0 of table, which has 5 elements") != NULL);
    arena_free(cx.arena);
}

// 2^53 + 1 is not a double: integers stay integers all the way.
static void test_exact(void)
{
    Context cx = context_new();
    Graph *g = graph_new(&cx, "exact");
    Size one = size_const(&cx, 1);
    Value *x = graph_input(g, "x", type_of(TYPE_i64, 1, &one), (DiagPlace){0});
    Builder b = {.cx = &cx, .graph = g, .scope = ""};
    Value *y = build2(&b, "add", x, x, "");
    int64_t dim = 1;
    Eval eval = {.arena = cx.arena, .at = NEW_ARRAY(cx.arena, Tensor *, g->values.count), .symbols = NEW_ARRAY(cx.arena, int64_t, 1)};
    eval.at[x->id] = tensor_new(cx.arena, TYPE_i64, 1, &dim);
    tensor_set_whole(eval.at[x->id], 0, (1ll << 60) + 1);
    CHECK_TRUE(eval_graph(g, &eval));
    CHECK_EQUAL(tensor_get_whole(eval.at[y->id], 0), (1ll << 61) + 2);
    arena_free(cx.arena);
}

int main(void)
{
    test_integers();
    test_whole();
    test_half();
    test_floats();
    test_errors();
    test_exact();
    return check_end();
}
