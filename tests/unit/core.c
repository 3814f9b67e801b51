// core.c: what the core promises and other tests do not see: draws that differ, the element types of tensors, pruning that
// keeps all that is wanted, folding that leaves named sizes alone.
#include "../../compiler/mlc.h"
#include "../../kernels/c/random.h"
#include "../../passes/passes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int passed, failed;

static void expect(bool holds, const char *what)
{
    passed += holds;
    failed += !holds;
    if (!holds)
        printf("FAIL %s\n", what);
}

static Context context_new(void)
{
    Arena *arena = arena_new();
    return (Context){.arena = arena, .names = names_new(arena), .diag = diag_new(arena), .symbols = map_new(arena)};
}

// Random123's known answer for counter 0, key 0: 6627e8d5 e169c58d bc57ac4c 9b00dbd8.
static void test_known_draw(void) { expect(mlk_random(0, 0, 0, 0) == (float)(0x6627e8d5 >> 8) * 0x1p-24f, "Philox of zeros"); }

static void test_draws(void)
{
    Context cx = context_new();
    Graph *g = graph_new(&cx, "draws");
    Builder b = {.cx = &cx, .graph = g, .scope = ""};
    Value *one = build(&b, "random_uniform", 0, NULL, "shape = [4]"), *two = build(&b, "random_uniform", 0, NULL, "shape = [4]");
    expect(one->node->salt != two->node->salt && one->node->salt != 0, "each random node has a salt of its own");
    float kept[2][4];
    for (int step = 1; step <= 2; step++) {
        Eval eval = {.arena = cx.arena, .at = NEW_ARRAY(cx.arena, Tensor *, 2 * g->values.count),
                     .symbols = NEW_ARRAY(cx.arena, int64_t, 1), .seed = 7, .step = (uint64_t)step};
        expect(eval_graph(g, &eval), "a graph of draws runs");
        memcpy(kept[step - 1], eval.at[one->id]->data, sizeof kept[0]);
        expect(memcmp(eval.at[one->id]->data, eval.at[two->id]->data, sizeof kept[0]) != 0, "two nodes draw different numbers");
        for (int i = 0; i < 4; i++)
            expect(kept[step - 1][i] == mlk_random(7, (uint64_t)step, one->node->salt, i), "the interpreter draws what C draws");
    }
    expect(memcmp(kept[0], kept[1], sizeof kept[0]) != 0, "two steps draw different numbers");
    arena_free(cx.arena);
}

static void test_types(void)
{
    Context cx = context_new();
    static const DType types[] = {TYPE_i8, TYPE_i16, TYPE_i32, TYPE_i64, TYPE_f32, TYPE_f64};
    int64_t dim = 3;
    for (int k = 0; k < COUNT(types); k++) {
        Tensor *t = tensor_new(cx.arena, types[k], 1, &dim);
        for (int i = 0; i < 3; i++)
            tensor_set(t, i, 40 * i - 50);
        for (int i = 0; i < 3; i++)
            expect(tensor_get(t, i) == 40 * i - 50, type_def(types[k])->name);
    }
    arena_free(cx.arena);
}

static void test_prune(void)
{
    Context cx = context_new();
    Graph *g = graph_new(&cx, "prune");
    Size dim = size_const(&cx, 3);
    Param param = {.path = "w", .type = type_of(TYPE_f32, 1, &dim), .trainable = true};
    Builder b = {.cx = &cx, .graph = g, .scope = ""};
    Value *w = graph_param(g, &param);
    Value *wanted[4];
    static const char *const ops[] = {"exp", "log1p", "square", "tanh"};
    for (int i = 0; i < 4; i++)
        wanted[i] = build1(&b, ops[i], w, "");
    build1(&b, "sin", w, "");                       // nothing wants this one
    LIST_ADD(cx.arena, g->gradients, ((Gradient){&param, wanted[0]}));
    LIST_ADD(cx.arena, g->updates, ((Update){&param, wanted[1]}));
    LIST_ADD(cx.arena, g->metrics, ((NamedValue){.name = "m", .value = wanted[2]}));
    LIST_ADD(cx.arena, g->auxiliary, ((NamedValue){.name = "a", .value = wanted[3]}));
    graph_prune(g);
    expect(g->nodes.count == 4, "pruning keeps gradients, updates, metrics and auxiliary losses, and nothing else");
    for (int i = 0; i < 4 && i < g->nodes.count; i++)
        expect(g->nodes.at[i] == wanted[i]->node, ops[i]);
    arena_free(cx.arena);
}

// The gradient of a mean over N rows holds 1 / N of a constant. N is not known when compiling, so that must stay a node.
static void test_fold_sizes(void)
{
    Context cx = context_new();
    Graph *g = graph_new(&cx, "fold");
    Size rows = size_symbol(&cx, "N", 4), one = size_const(&cx, 1);
    Param param = {.path = "w", .type = type_of(TYPE_f32, 1, &one), .trainable = true};
    Builder b = {.cx = &cx, .graph = g, .scope = ""};
    Value *x = graph_input(g, "x", type_of(TYPE_f32, 1, &rows), (DiagPlace){0});
    g->loss = build1(&b, "mean", build2(&b, "mul", x, graph_param(g, &param), ""), "");
    Work work = {.cx = &cx, .graph = g};
    pass_expand(&work);
    expect(graph_grad(g) && g->gradients.count == 1, "the mean has a gradient");
    pass_expand(&work);
    pass_fold(&work);
    int constants = 0;
    for (int i = 0; i < g->values.count; i++) {
        const Value *v = g->values.at[i];
        if (v->kind != VALUE_CONST || v->type.dtype != TYPE_f32)
            continue;
        expect(isfinite(*(const float *)v->data), "no constant is made from a size that is not known");
        constants++;
    }
    expect(constants > 0, "there are constants to look at");
    arena_free(cx.arena);
}

int main(void)
{
    test_known_draw();
    test_draws();
    test_types();
    test_prune();
    test_fold_sizes();
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
