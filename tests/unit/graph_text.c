// graph_text.c: Graph text. The graphs of whole nets are printed, read and printed again at every stage on the way to a program:
// the text must be the same, and what is read must compute the same. Then mistakes in the text: a message with its line.
//   graph_text NET…
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../frontend/net/net.h"
#include "../../passes/passes.h"
#include "expect.h"

static Context context_new(void)
{
    Arena *arena = arena_new();
    return (Context){.arena = arena, .names = names_new(arena), .diag = diag_new(arena), .symbols = map_new(arena)};
}

static bool load(void *user, const char *path, const char **bytes, int *length, const char **why)
{
    Context *cx = user;
    FILE *file = fopen(path, "rb");
    *why = "it cannot be opened";
    if (file == NULL)
        return false;
    char *text = arena_alloc(cx->arena, 1 << 20);
    *length = (int)fread(text, 1, 1 << 20, file);
    *bytes = text;
    fclose(file);
    return true;
}

// --- The same text, the same numbers -------------------------------------------------------------------------------------------

static const char *text_of(const Graph *g)
{
    Text text = {.arena = g->cx->arena};
    graph_print(&text, g);
    return text.at;
}

static void fill(Tensor *t, uint64_t state)
{
    for (int64_t i = 0; i < tensor_count(t); i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        if (type_is_float(t->dtype))
            tensor_set(t, i, (double)(state >> 40) / (1 << 24) + 0.1);
        else
            tensor_set_whole(t, i, (int64_t)(state >> 33) % 3);
    }
}

// What a graph computes from made-up inputs and parameters, by the values it names.
static Eval evaluate(const Graph *g)
{
    Context *cx = g->cx;
    Eval eval = {.arena = cx->arena, .at = NEW_ARRAY(cx->arena, Tensor *, g->values.count), .symbols = NEW_ARRAY(cx->arena, int64_t, map_count(cx->symbols) + 1), .seed = 5, .step = 2};
    for (int i = 0; i < map_count(cx->symbols); i++)
        eval.symbols[i] = 2;
    for (int i = 0; i < g->values.count; i++) {
        const Value *value = g->values.at[i];
        int64_t dim[RANK_MAX];
        if (value->kind != VALUE_INPUT && value->kind != VALUE_PARAM)
            continue;
        for (int k = 0; k < value->type.shape.rank; k++)
            dim[k] = size_at(value->type.shape.dim[k], eval.symbols);
        eval.at[i] = tensor_new(cx->arena, value->type.dtype, value->type.shape.rank, dim);
        fill(eval.at[i], (uint64_t)i);
    }
    bool ran = eval_graph(g, &eval);
    CHECK_TRUE(ran);
    if (!ran)
        printf("    %s\n", eval.error);
    return eval;
}

static void compare(const Graph *a, const Graph *b)
{
    Eval x = evaluate(a), y = evaluate(b);
    CHECK_EQUAL(a->outputs.count, b->outputs.count);
    for (int i = 0; i < a->outputs.count && i < b->outputs.count; i++) {
        const Tensor *p = x.at[a->outputs.at[i].value->id], *q = y.at[b->outputs.at[i].value->id];
        CHECK_TRUE(p != NULL && q != NULL && tensor_count(p) == tensor_count(q) &&
                   memcmp(p->data, q->data, (size_t)tensor_count(p) * (size_t)type_def(p->dtype)->bytes) == 0);
    }
    if (a->loss != NULL && b->loss != NULL) {
        double p = tensor_get(x.at[a->loss->id], 0), q = tensor_get(y.at[b->loss->id], 0);
        CHECK_TRUE(p == q && isfinite(p));
    }
}

static void round_trip(const Graph *g, bool runs)
{
    Context cx = context_new();
    const char *error = NULL, *text = text_of(g);
    Graph *back = graph_read(&cx, text, &error);
    CHECK_TRUE(back != NULL);
    if (back == NULL) {
        printf("    %s\n%s", error, text);
        diag_print(cx.diag, stdout);
        return;
    }
    CHECK_TEXT(text_of(back), text);
    graph_verify(back);
    if (runs)
        compare(g, back);
    arena_free(cx.arena);
}

static void test_net(const char *path)
{
    static const Stage stages[] = {STAGE_READ, STAGE_PLAIN, STAGE_DIFFERENTIATED};
    for (int s = 0; s < COUNT(stages); s++) {
        Context cx = context_new();
        NetOptions options = {.load = load, .user = &cx};
        Model *model = net_read(&cx, path, &options);
        CHECK_TRUE(model != NULL);
        if (model == NULL) {
            diag_print(cx.diag, stdout);
            continue;
        }
        Graph *graphs[] = {model->train, model->eval, model->infer};
        for (int i = 0; i < COUNT(graphs); i++) {
            if (graphs[i] == NULL)
                continue;
            Work work = {.cx = &cx, .model = model, .graph = graphs[i], .batch = 4};
            CHECK_TRUE(passes_run(&work, stages[s]));
            round_trip(graphs[i], true);
        }
        arena_free(cx.arena);
    }
}

// --- Mistakes --------------------------------------------------------------------------------------------------------------------

static const char good[] = "graph g (training, plain) {\n    size N <= 64 batch\n    size H\n"
                           "    param w_0: f32[3] weight\n    param old_7 \"old mean\": f32[3] buffer frozen\n"
                           "    input x_1: f32[N, 2 * H - 1, floor((H + 1) / 2), 3]\n    target label_2: i32[N] < 10\n"
                           "    const const_3: i8[2, 2] = [1, -2, 127, -128]\n    const half_4: f16[2] = [0.1, inf]\n"
                           "    mul_5: f32[N, 2 * H - 1, floor((H + 1) / 2), 3] = mul(x_1, w_0) @fc\n"
                           "    map_9: f32[N, 2 * H - 1, floor((H + 1) / 2), 3] = map(mul_5, formula = \"max(x0, 0) * 0.5\") @fc backward\n"
                           "    output \"a b\" = map_9\n}\n";

static void expect_error(const char *from, const char *to, const char *message)
{
    Context cx = context_new();
    const char *at = strstr(good, from), *error = "";
    char *text = arena_printf(cx.arena, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
    CHECK_TRUE(graph_read(&cx, text, &error) == NULL);
    CHECK_TEXT(error, message);
    arena_free(cx.arena);
}

static void test_mistakes(void)
{
    Context cx = context_new();
    const char *error = NULL;
    Graph *g = graph_read(&cx, good, &error);
    CHECK_TRUE(g != NULL);
    if (g == NULL) {
        printf("    %s\n", error);
        return;
    }
    graph_verify(g);
    CHECK_EQUAL(g->values.count, 10);
    CHECK_EQUAL(g->n_targets, 1);
    round_trip(g, false);
    expect_error("mul(x_1, w_0)", "mul(x_1, w_8)", "line 10: no value is called w_8");
    expect_error("mul(x_1, w_0)", "mull(x_1, w_0)", "line 10: no op is called mull");
    expect_error("mul(x_1, w_0)", "mul(x_1)", "line 10: mul cannot be called so");
    expect_error("mul(x_1, w_0)", "mul(x_1, label_2)", "line 10: mul cannot be called so");
    expect_error("mul_5: f32[N,", "mul_5: f32[H,", "line 10: mul_5 is f32[N, 2 * H - 1, floor((H + 1) / 2), 3]");
    expect_error("floor((H + 1) / 2)", "floor((H + 1) / 0)", "line 6: a division by 0");
    expect_error("[N] < 10", "[M] < 10", "line 7: no size is called M");
    expect_error("label_2", "label", "line 7: label does not end in _ and an id");
    expect_error("half_4", "half_3", "line 13: two values have the id 3");
    expect_error("formula =", "formular =", "line 11: map has no attribute formular");
    expect_error("127, -128]", "127]", "line 8: , expected");
    expect_error("f16[2]", "f17[2]", "line 9: f17 is no element type");
    expect_error("\n}\n", "\n", "line 13: a name expected");
    arena_free(cx.arena);
}

// Any prefix of a text is refused, or it is the whole.
static void test_truncated(void)
{
    for (size_t length = 0; length + 2 < sizeof good; length++) {
        Context cx = context_new();
        const char *error = NULL;
        CHECK_TRUE(graph_read(&cx, arena_string(cx.arena, good, length), &error) == NULL && error != NULL);
        arena_free(cx.arena);
    }
}

int main(int count, char **paths)
{
    for (int i = 1; i < count; i++)
        test_net(paths[i]);
    test_mistakes();
    test_truncated();
    return check_end();
}
