// gradient_twice.c: gradients in a net (once, twice, under the training loss, through norms and convolutions) against central differences in double.
#include <math.h>
#include <string.h>

#include "../../frontend/net/net.h"
#include "../../passes/passes.h"

static const char *const text =
    "net force\n"
    "input x: f32[N, 2]\n"
    "input z: f32[N, 1, 4, 4]\n"
    "h = tanh(dense(x, 5) @fc1)\n"
    "h = layernorm(h) @norm\n"
    "e = dense(tanh(dense(h, 5) @fc2), 1) @fc3\n"
    "f = gradient(e, x)\n"
    "output energy = sum(e)\n"
    "output force = f\n"
    "output first = sum(f[.., 0])\n"
    "output second = gradient(f[.., 0], x)\n"
    "c = sum(tanh(conv(z, 2, kernel = 3, pad = 1) @conv)^2)\n"
    "output picture = c\n"
    "output slope = gradient(c, z)\n"
    "train {\n"
    "    target t: f32[N, 2]\n"
    "    r = random_uniform([N, 2])\n"
    "    loss = mse(f, t) + mean(gradient(f[.., 1]^2, x)^2) + mean(gradient(c, z)^2) + mean(gradient(dense(tanh(r), 1) @random, r)^2)\n"
    "    data npy(x = \"x.npy\", t = \"t.npy\", z = \"z.npy\")\n"
    "    batch = 3\n"
    "    epochs = 1\n"
    "    optimizer = sgd(lr = 0.1)\n"
    "}\n";

static int passed, failed;

static bool load(void *user, const char *path, const char **bytes, int *length, const char **why)
{
    (void)user, (void)path;
    *why = "";
    *bytes = text;
    *length = (int)strlen(text);
    return true;
}

static void expect(const char *what, double got, double wanted)
{
    if (fabs(got - wanted) <= 1e-6 * (1 + fabs(wanted))) {
        passed++;
    } else {
        failed++;
        printf("FAIL %s: %.12g, by differences %.12g\n", what, got, wanted);
    }
}

// --- values -------------------------------------------------------------------------------------------------------------------

typedef struct Values { Context *cx; const Graph *g; Tensor **at; int64_t *symbols; } Values;

static Tensor *drawn(Context *cx, const Type *type, const int64_t *symbols, uint64_t *state)
{
    int64_t dim[RANK_MAX];
    for (int i = 0; i < type->shape.rank; i++)
        dim[i] = size_at(type->shape.dim[i], symbols);
    Tensor *t = tensor_new(cx->arena, TYPE_f64, type->shape.rank, dim);
    for (int64_t i = 0; i < tensor_count(t); i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        tensor_set(t, i, (double)(*state >> 40) / (1 << 24) - 0.5);
    }
    return t;
}

static Values values_new(Context *cx, const Graph *g)
{
    Values v = {cx, g, NEW_ARRAY(cx->arena, Tensor *, g->values.count + 1), NEW_ARRAY(cx->arena, int64_t, map_count(cx->symbols) + 1)};
    uint64_t state = 7;
    for (int i = 0; i < map_count(cx->symbols); i++)
        v.symbols[i] = 3;
    for (int i = 0; i < g->values.count; i++)
        if (g->values.at[i]->kind == VALUE_INPUT || g->values.at[i]->kind == VALUE_PARAM)
            v.at[i] = drawn(cx, &g->values.at[i]->type, v.symbols, &state);
    return v;
}

static Eval evaluated(const Values *v)
{
    Eval eval = {.arena = v->cx->arena, .at = NEW_ARRAY(v->cx->arena, Tensor *, v->g->values.count + 1), .symbols = v->symbols, .in_double = true};
    memcpy(eval.at, v->at, sizeof(Tensor *) * (size_t)v->g->values.count);
    if (!eval_graph(v->g, &eval)) {
        printf("FAIL eval: %s\n", eval.error != NULL ? eval.error : "");
        failed++;
    }
    return eval;
}

// The derivative of element 0 of `of` by element i of `by`.
static double difference(const Values *v, const Value *of, const Value *by, int64_t i)
{
    const double h = 1e-4;
    double x = tensor_get(v->at[by->id], i), side[2];
    for (int k = 0; k < 2; k++) {
        tensor_set(v->at[by->id], i, k == 0 ? x + h : x - h);
        Eval e = evaluated(v);
        side[k] = tensor_get(e.at[of->id], 0);
    }
    tensor_set(v->at[by->id], i, x);
    return (side[0] - side[1]) / (2 * h);
}

static Value *output(const Graph *g, const char *name)
{
    for (int i = 0; i < g->outputs.count; i++)
        if (strcmp(g->outputs.at[i].name, name) == 0)
            return g->outputs.at[i].value;
    return NULL;
}

static void compare(const Values *v, const Eval *eval, const Value *gradient, const Value *of, const Value *by)
{
    for (int64_t i = 0; i < tensor_count(eval->at[gradient->id]); i++)
        expect(gradient->name, tensor_get(eval->at[gradient->id], i), difference(v, of, by, i));
}

int main(void)
{
    Arena *arena = arena_new();
    Context cx = {.arena = arena, .names = names_new(arena), .diag = diag_new(arena), .symbols = map_new(arena)};
    NetOptions options = {.load = load};
    Model *model = net_read(&cx, "force.net", &options);
    diag_print(cx.diag, stderr);
    if (model == NULL)
        return 1;
    Graph *g = model->infer;
    graph_expand(g, true, NULL);
    Values v = values_new(&cx, g);
    Eval eval = evaluated(&v);
    compare(&v, &eval, output(g, "force"), output(g, "energy"), g->inputs.at[0]);
    compare(&v, &eval, output(g, "second"), output(g, "first"), g->inputs.at[0]);
    compare(&v, &eval, output(g, "slope"), output(g, "picture"), g->inputs.at[1]);
    Graph *t = model->train;
    graph_expand(t, false, NULL);
    graph_grad(t);
    graph_expand(t, true, NULL);
    v = values_new(&cx, t);
    eval = evaluated(&v);
    for (int i = 0; i < t->gradients.count; i++)
        compare(&v, &eval, t->gradients.at[i].value, t->loss, graph_param(t, t->gradients.at[i].param));
    printf("%d passed, %d failed\n", passed, failed);
    arena_free(arena);
    return failed != 0;
}
