// net_model.c: what the language makes of a file, beyond the Graphs: updates and their groups, stages of freezing, files of
// weights, padding, quantization, generation. And a loop is what the same turns written with repeat are.
#include <string.h>

#include "../../frontend/net/net.h"
#include "expect.h"

static bool load(void *user, const char *path, const char **bytes, int *length, const char **why)
{
    (void)path;
    *why = "";
    *bytes = user;
    *length = (int)strlen(user);
    return true;
}

static Model *model_of(Arena *arena, const char *text)
{
    Context *cx = NEW(arena, Context);
    *cx = (Context){.arena = arena, .names = names_new(arena), .diag = diag_new(arena), .symbols = map_new(arena)};
    NetOptions options = {.load = load, .user = (void *)text};
    Model *model = net_read(cx, "test.net", &options);
    diag_print(cx->diag, stderr);
    CHECK_TRUE(model != NULL);
    return model;
}

static const Param *param_of(const Model *model, const char *path)
{
    for (int i = 0; i < model->params.count; i++)
        if (strcmp(model->params.at[i]->path, path) == 0)
            return model->params.at[i];
    return NULL;
}

static bool has(Param *const *list, int count, const char *path)
{
    for (int i = 0; i < count; i++)
        if (strcmp(list[i]->path, path) == 0)
            return true;
    return false;
}

static bool is_later(const Model *model, const char *what)
{
    for (int i = 0; i < model->later.count; i++)
        if (strcmp(model->later.at[i].what, what) == 0)
            return true;
    return false;
}

// --- several optimizers ---------------------------------------------------------------------------------------------------------

static int draws(const Graph *g, uint32_t *salts)
{
    int n = 0;
    for (int i = 0; i < g->nodes.count; i++)
        if (g->nodes.at[i]->salt != 0)
            salts[n++] = g->nodes.at[i]->salt;
    return n;
}

static void test_update(Arena *arena)
{
    const Model *m = model_of(arena,
        "net t\n"
        "input z: f32[N, 4]\n"
        "output y = dense(relu(dense(z, 8) @g1), 3) @g2\n"
        "block judge(x) { dense(dropout(x, rate = 0.5), 1) @d }\n"
        "train {\n"
        "    target real: f32[N, 3]\n"
        "    share @judge\n"
        "    fake = t(random_normal([N, 4]))\n"
        "    update critic for @judge.* {\n"
        "        truth     = judge(real) @judge\n"
        "        loss      = bce_with_logits(truth, 1) + bce_with_logits(judge(fake) @judge, 0)\n"
        "        optimizer = adam(lr = 2e-4, betas = [0.5, 0.99]) { lr = 0.1 * lr for biases }\n"
        "        schedule  = warmup(5 steps) then cosine(to = 0)\n"
        "    }\n"
        "    update maker for @g1.*, @g2.* {\n"
        "        loss      = bce_with_logits(judge(fake) @judge, 1)\n"
        "        optimizer = sgd(lr = 1e-4)\n"
        "        clip      = norm(2)\n"
        "        every     = 3 steps\n"
        "    }\n"
        "    data npy(real = \"real.npy\")\n"
        "    batch  = 4\n"
        "    epochs = 3\n"
        "}\n");
    if (m == NULL)
        return;
    const Recipe *r = m->recipe;
    CHECK_EQUAL(r->updates.count, 2);
    const UpdateRule *critic = &r->updates.at[0], *maker = &r->updates.at[1];
    CHECK_EQUAL(strcmp(critic->name, "critic"), 0);
    CHECK_EQUAL(critic->params.count, 2);
    CHECK_TRUE(has(critic->params.at, critic->params.count, "judge.d.weight"));
    CHECK_EQUAL(critic->groups.count, 2);
    for (int i = 0; i < 2; i++)
        CHECK_EQUAL(critic->groups.at[critic->group[i]].arg[0] < 1e-4, strcmp(critic->params.at[i]->path, "judge.d.bias") == 0);
    CHECK_TRUE(critic->groups.at[0].arg[1] == 0.5 && critic->groups.at[0].arg[2] == 0.99);
    CHECK_EQUAL(critic->schedule.count, 2);
    CHECK_EQUAL(critic->every, 1);
    CHECK_EQUAL(maker->params.count, 4);
    CHECK_EQUAL(maker->every, 3);
    CHECK_TRUE(maker->clip == CLIP_NORM && maker->clip_at == 2);
    CHECK_TRUE(critic->train != maker->train && m->train == critic->train);
    CHECK_TRUE(critic->train->loss != NULL && maker->train->loss != NULL && m->eval->loss == NULL);
    uint32_t a[64], b[64];
    int n = draws(critic->train, a);
    CHECK_EQUAL(draws(maker->train, b), n);
    CHECK_EQUAL(n, 4);
    CHECK_EQUAL(memcmp(a, b, sizeof(uint32_t) * (size_t)n), 0);
    CHECK_TRUE(is_later(m, "`update`"));
}

// --- stages, groups, keys ---------------------------------------------------------------------------------------------------------

static void test_recipe(Arena *arena)
{
    const Model *m = model_of(arena,
        "net t\n"
        "input x: f32[N, 6]\n"
        "input w: f32[N]\n"
        "a = relu(dense(x, 5) @a)\n"
        "b = relu(batchnorm(dense(a, 5) @b) @bn)\n"
        "output y = dense(b, 3) @c\n"
        "auxiliary small = 0.1 * mean(b^2)\n"
        "weights from \"none.safetensors\" for @a, @bn.* except @a.bias\n"
        "train {\n"
        "    target label: i32[N]\n"
        "    loss        = (warmup(2 epochs) then constant) * cross_entropy(y, label) + mean(w)\n"
        "    ema         = 0.99\n"
        "    precision   = bf16\n"
        "    micro_batch = 2\n"
        "    recompute   = [@a, @b.weight]\n"
        "    quantize    = int8(activations = per_channel, from = 2 epochs, except = @c.*)\n"
        "    sampler     = balanced(label)\n"
        "    freeze @bn.*\n"
        "    freeze @a.* until 3 epochs\n"
        "    freeze @a.*, @b.* until 1 epoch\n"
        "    data csv(\"a.csv\") {\n"
        "        x = columns(0..5)\n"
        "        if training { x = x + random_normal([6]) }\n"
        "        w = column(\"w\")\n"
        "        label = column(6)\n"
        "        split train = 80%, valid = 20% grouped by column(\"patient\")\n"
        "    }\n"
        "    batch     = 4\n"
        "    epochs    = 3\n"
        "    optimizer = adamw(lr = 1e-3) { weight_decay = 0 for norms, biases }\n"
        "    optimizer = sgd(lr = 1e-2) for @c.*\n"
        "}\n");
    if (m == NULL)
        return;
    const Recipe *r = m->recipe;
    CHECK_TRUE(r->ema == 0.99 && r->precision == TYPE_bf16 && r->micro_batch == 2);
    CHECK_EQUAL(r->recompute.count, 3);
    CHECK_EQUAL(strcmp(r->quantize.activations, "per_channel") + strcmp(r->quantize.weights, "per_channel"), 0);
    CHECK_TRUE(r->quantize.from.amount == 2 && r->quantize.from.unit == UNIT_EPOCHS && r->quantize.except.count == 2);
    CHECK_EQUAL(strcmp(r->sampler, "balanced") + strcmp(r->sampler_by, "label"), 0);
    CHECK_TRUE(!param_of(m, "bn.weight")->trainable && param_of(m, "a.weight")->trainable);
    CHECK_EQUAL(r->stages.count, 2);
    CHECK_TRUE(r->stages.at[0].until.amount == 1 && r->stages.at[1].until.amount == 3);
    CHECK_EQUAL(r->stages.at[0].frozen.count, 4);
    CHECK_EQUAL(r->stages.at[1].frozen.count, 2);
    CHECK_TRUE(has(r->stages.at[1].frozen.at, 2, "a.weight"));
    CHECK_EQUAL(m->weight_files.count, 1);
    CHECK_EQUAL(m->weight_files.at[0].params.count, 5);        // a.weight and all four of bn, its statistics among them
    CHECK_TRUE(has(m->weight_files.at[0].params.at, 5, "bn.running_var") && !has(m->weight_files.at[0].params.at, 5, "a.bias"));
    CHECK_TRUE(m->weights == NULL);
    CHECK_EQUAL(r->numbers.count, 1);
    CHECK_EQUAL(r->numbers.at[0].steps.count, 2);
    const OptimizerGroup *c = &r->groups.at[param_of(m, "c.bias")->group], *b = &r->groups.at[param_of(m, "b.bias")->group];
    CHECK_TRUE(c->own == optimizer_find("sgd") && c->arg[0] == 1e-2 && b->own == NULL && b->arg[4] == 0);
    CHECK_TRUE(r->grouped_by != NULL && r->augment != NULL && r->data != r->augment);
    CHECK_EQUAL(r->augment->inputs.count, r->data->inputs.count);
    CHECK_EQUAL(r->augment->nodes.count > r->data->nodes.count, true);
    CHECK_EQUAL(m->train->auxiliary.count, 1);
    CHECK_EQUAL(strcmp(m->train->loss->node->op->name, "add"), 0);          // the auxiliary loss is in it
    CHECK_TRUE(m->train->loss->node->in[1] == m->train->auxiliary.at[0].value && m->eval->auxiliary.count == 0);
    CHECK_TRUE(!is_later(m, "`ema`") && is_later(m, "freeze … until") && is_later(m, "a schedule as a number"));
}

static void test_generate(Arena *arena)
{
    const Model *m = model_of(arena,
        "net t\n"
        "input code: i32[N, T <= 16]\n"
        "h = embedding(code, 100, 8) @wte + embedding(range(T), 16, 8) @wpe\n"
        "q, k, v = split(dense(layernorm(h) @ln, 24) @qkv, 3, axis = -1)\n"
        "h = h + dense(attention(q, k, v, heads = 2, causal = true), 8) @proj\n"
        "h = reshape(reshape(h, [-1, T, 2, 4]), [-1, T, 8])\n"
        "output logits = dense(gelu(h), 100, bias = false, weight = @wte.weight)\n"
        "generate { code = sample(logits, temperature = 0.8, top_k = 40); end = 99; text = bpe(\"t.json\") }\n");
    if (m == NULL)
        return;
    const Generate *g = m->generate;
    CHECK_TRUE(g != NULL && strcmp(g->input, "code") == 0 && strcmp(g->logits, "logits") == 0 && strcmp(g->along->name, "T") == 0);
    CHECK_TRUE(g->temperature == 0.8 && g->top_k == 40 && g->top_p == 1 && g->end == 99 && g->limit == 256);
    CHECK_EQUAL(strcmp(g->text, "bpe") + strcmp(g->text_from, "t.json"), 0);
}

// --- a loop is its turns ----------------------------------------------------------------------------------------------------------

static const char *printed(Arena *arena, const Graph *g)
{
    Text text = {.arena = arena};
    graph_print(&text, g);
    return text.at;
}

static void test_loop(Arena *arena)
{
    const Model *loop = model_of(arena,
        "net t\ninput x: f32[N, 3, 4]\nblock cell(x, h) { tanh(dense(concat([x, h], axis = 1), 4)) }\n"
        "h = x[.., 0]\n"
        "loop t in 0..2 { h = cell(x[.., t], h) @cell * (t + 1) }\n"
        "output y = dense(h, 2)\n");
    const Model *turns = model_of(arena,
        "net t\ninput x: f32[N, 3, 4]\nblock cell(x, h) { tanh(dense(concat([x, h], axis = 1), 4) @dense1) }\n"
        "h = x[.., 0]\n"
        "share @cell\n"
        "repeat t in 0..2 { h = cell(x[.., t], h) @cell * (t + 1) }\n"
        "output y = dense(h, 2) @dense1\n");
    if (loop == NULL || turns == NULL)
        return;
    CHECK_EQUAL(loop->params.count, 4);
    CHECK_TEXT(printed(arena, loop->infer), printed(arena, turns->infer));
}

int main(void)
{
    Arena *arena = arena_new();
    test_update(arena);
    test_recipe(arena);
    test_generate(arena);
    test_loop(arena);
    arena_free(arena);
    return check_end();
}
