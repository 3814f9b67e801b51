// trainer_model.c: a training program as the compiler would write it, by hand: a multilayer perceptron 64-16-10 for digits.
// The trainer is tested with it, whatever the state of the code generator. With STRINGS, labels are read as words, and the
// three newest weights are kept; with WIDE, the model is another one.
#include <math.h>
#include <string.h>

#include "../../runtime/mlrt.h"

#ifdef WIDE
enum { H = 20 };
#else
enum { H = 16 };
#endif
enum { N = 64, IN = 64, OUT = 10, ROW_PARTS = 4 };
enum { W1 = 0, B1 = W1 + H * IN, W2 = B1 + H, B2 = W2 + OUT * H, PARAMS = B2 + OUT };
enum { A_H = 0, A_LOGIT = A_H + N * H, A_DLOGIT = A_LOGIT + N * OUT, A_DH = A_DLOGIT + N * OUT, ARENA = A_DH + N * H };

static float *arena(const MlrtRun *r, int offset) { return (float *)r->arena + offset; }
static const float *param(const MlrtRun *r, int offset) { return (const float *)r->param + offset; }

// h = max(x w1' + b1, 0), a quarter of the rows
static void fc1_relu(const MlrtRun *r, int part)
{
    const float *x = (const float *)r->in[0], *w = param(r, W1), *b = param(r, B1);
    int rows = (int)r->size[0];
    for (int n = part * rows / ROW_PARTS; n < (part + 1) * rows / ROW_PARTS; n++)
        for (int j = 0; j < H; j++) {
            float sum = b[j];
            for (int i = 0; i < IN; i++)
                sum += x[n * IN + i] * w[j * IN + i];
            arena(r, A_H)[n * H + j] = sum > 0 || sum != sum ? sum : 0;
        }
}

static void fc2(const MlrtRun *r, int part)
{
    const float *h = arena(r, A_H), *w = param(r, W2), *b = param(r, B2);
    int rows = (int)r->size[0];
    for (int n = part * rows / ROW_PARTS; n < (part + 1) * rows / ROW_PARTS; n++)
        for (int k = 0; k < OUT; k++) {
            float sum = b[k];
            for (int j = 0; j < H; j++)
                sum += h[n * H + j] * w[k * H + j];
            arena(r, A_LOGIT)[n * OUT + k] = sum;
        }
}

static float row_loss(const float *logit, int label, float *gradient, float scale)
{
    float most = logit[0], sum = 0;
    for (int k = 1; k < OUT; k++)
        most = logit[k] > most ? logit[k] : most;
    for (int k = 0; k < OUT; k++)
        sum += expf(logit[k] - most);
    for (int k = 0; k < OUT && gradient; k++)
        gradient[k] = scale * (expf(logit[k] - most) / sum - (k == label));
    return logf(sum) + most - logit[label];
}

static void loss_train(const MlrtRun *r, int part)
{
    double total = 0;
    (void)part;
    for (int n = 0; n < r->size[0]; n++)
        total += row_loss(arena(r, A_LOGIT) + n * OUT, ((const int *)r->in[1])[n], arena(r, A_DLOGIT) + n * OUT, 1.0f / (float)r->size[0]);
    *(float *)r->out[0] = (float)(total / (double)r->size[0]);
}

// dw2, db2: one output unit a part
static void fc2_back_weight(const MlrtRun *r, int k)
{
    float *dw = (float *)r->grad + W2 + k * H, *db = (float *)r->grad + B2 + k;
    memset(dw, 0, H * sizeof *dw);
    *db = 0;
    for (int n = 0; n < r->size[0]; n++) {
        float d = arena(r, A_DLOGIT)[n * OUT + k];
        *db += d;
        for (int j = 0; j < H; j++)
            dw[j] += d * arena(r, A_H)[n * H + j];
    }
}

static void fc2_back_input(const MlrtRun *r, int part)
{
    int rows = (int)r->size[0];
    for (int n = part * rows / ROW_PARTS; n < (part + 1) * rows / ROW_PARTS; n++)
        for (int j = 0; j < H; j++) {
            float sum = 0;
            for (int k = 0; k < OUT; k++)
                sum += arena(r, A_DLOGIT)[n * OUT + k] * param(r, W2)[k * H + j];
            arena(r, A_DH)[n * H + j] = arena(r, A_H)[n * H + j] > 0 ? sum : 0;
        }
}

static void fc1_back_weight(const MlrtRun *r, int j)
{
    float *dw = (float *)r->grad + W1 + j * IN, *db = (float *)r->grad + B1 + j;
    memset(dw, 0, IN * sizeof *dw);
    *db = 0;
    for (int n = 0; n < r->size[0]; n++) {
        float d = arena(r, A_DH)[n * H + j];
        *db += d;
        for (int i = 0; i < IN; i++)
            dw[i] += d * ((const float *)r->in[0])[n * IN + i];
    }
}

#ifdef COUNT_ALLOCATIONS
#include <stdatomic.h>
#include <stdio.h>
extern atomic_long allocations;

// Called once an update: says how many allocations there were between the 2nd and the 60th.
static void count_allocations(const MlrtRun *r)
{
    static long before;
    if (r->step == 2)
        before = atomic_load(&allocations);
    if (r->step == 60)
        fprintf(stderr, "allocations in steps: %ld\n", atomic_load(&allocations) - before);
}
#else
static void count_allocations(const MlrtRun *r) { (void)r; }
#endif

// hyper: lr, beta1, beta2, eps, weight_decay
static void adamw(const MlrtRun *r, int part)
{
    float *p = (float *)r->param, *m = (float *)r->state, *v = m + PARAMS;
    const float *g = (const float *)r->grad;
    const double *h = r->hyper;
    double t = (double)r->step;
    if (part == 0)
        count_allocations(r);
    float a = (float)(h[0] / (1 - pow(h[1], t))), b = (float)sqrt(1 - pow(h[2], t)), keep = (float)(1 - h[0] * h[4]);
    for (int i = part * PARAMS / ROW_PARTS; i < (part + 1) * PARAMS / ROW_PARTS; i++) {
        m[i] += (1 - (float)h[1]) * (g[i] - m[i]);
        v[i] = (float)h[2] * v[i] + (1 - (float)h[2]) * g[i] * g[i];
        p[i] = p[i] * keep - a * m[i] / (sqrtf(v[i]) / b + (float)h[3]);
    }
}

static void evaluation(const MlrtRun *r, int part)
{
    double total = 0, right = 0;
    float *confusion = (float *)r->out[3];
    (void)part;
    memset(confusion, 0, OUT * OUT * sizeof *confusion);
    for (int n = 0; n < r->size[0]; n++) {
        const float *logit = arena(r, A_LOGIT) + n * OUT;
        int best = 0, label = ((const int *)r->in[1])[n];
        for (int k = 1; k < OUT; k++)
            best = logit[k] > logit[best] ? k : best;
        total += row_loss(logit, label, NULL, 0);
        right += best == label;
        confusion[label * OUT + best]++;
    }
    memcpy(r->out[0], arena(r, A_LOGIT), (size_t)r->size[0] * OUT * sizeof(float));
    *(float *)r->out[1] = (float)(total / (double)r->size[0]);
    *(float *)r->out[2] = (float)(right / (double)r->size[0]);
}

static void map_sample(const void *const *field, void *const *port, bool target_too)
{
    for (int i = 0; i < IN; i++)
        ((float *)port[0])[i] = ((const float *)field[0])[i] / 16;
    if (target_too)
        memcpy(port[1], field[1], sizeof(int));
}

static const MlrtStep train_steps[] = {
    {fc1_relu, ROW_PARTS, "fc1", "linear + relu", A_H * 4, N * H},
    {fc2, ROW_PARTS, "fc2", "linear", A_LOGIT * 4, N * OUT},
    {loss_train, 1, "loss", "cross_entropy", A_DLOGIT * 4, N * OUT},
    {fc2_back_weight, OUT, "fc2", "gradient of the weights", 0, 0},
    {fc2_back_input, ROW_PARTS, "fc2", "gradient of the input", A_DH * 4, N * H},
    {fc1_back_weight, H, "fc1", "gradient of the weights", 0, 0},
};
static const MlrtStep update_steps[] = {{adamw, ROW_PARTS, "", "adamw", 0, 0}};
static const MlrtStep eval_steps[] = {
    {fc1_relu, ROW_PARTS, "fc1", "linear + relu", A_H * 4, N * H},
    {fc2, ROW_PARTS, "fc2", "linear", A_LOGIT * 4, N * OUT},
    {evaluation, 1, "loss", "cross_entropy", 0, 0},
};

static const MlrtParam params[] = {
    {"fc1.weight", 2, {H, IN}, W1, H * IN, true, false, false, 0, {"kaiming_uniform", {2.2360679774997896}, IN, H}},
    {"fc1.bias", 1, {H}, B1, H, true, false, false, 0, {"uniform_fan", {0}, IN, H}},
    {"fc2.weight", 2, {OUT, H}, W2, OUT * H, true, false, false, 0, {"kaiming_uniform", {2.2360679774997896}, H, OUT}},
    {"fc2.bias", 1, {OUT}, B2, OUT, true, false, false, 0, {"uniform_fan", {0}, H, OUT}},
};
static const char *const states[] = {"m", "v"};
static const MlrtPort inputs[] = {
    {.name = "image", .type = "f32", .rank = 1, .dim = {IN}, .bytes = IN * 4, .batched = true},
    {.name = "label", .type = "i32", .bytes = 4, .batched = true, .below = OUT},
};
static const MlrtPort train_outputs[] = {{.name = "loss", .type = "f32", .bytes = 4}};
static const MlrtPort outputs[] = {
    {.name = "logits", .type = "f32", .rank = 1, .dim = {OUT}, .bytes = OUT * 4, .batched = true},
    {.name = "loss", .type = "f32", .bytes = 4},
    {.name = "accuracy", .type = "f32", .bytes = 4},
    {.name = "confusion", .type = "f32", .rank = 2, .dim = {OUT, OUT}, .bytes = OUT * OUT * 4},
};
static const MlrtMetric metrics[] = {{"accuracy", 2, false, 1, ""}, {"confusion", 3, true, 0, "confusion"}};
static const MlrtField fields[] = {
    {"columns", NULL, 0, 63, "f32", 1, {IN}, IN * 4, NULL, 0, -1, false},
#ifdef STRINGS
    {"strings", NULL, 64, 64, "i32", 0, {0}, 4, "classes", OUT, 1, true},
#else
    {"columns", NULL, 64, 64, "i32", 0, {0}, 4, NULL, 0, -1, true},
#endif
};
static const char *const hypers[] = {"lr", "beta1", "beta2", "eps", "weight_decay"};
static const double group[MLRT_HYPERS] = {3e-3, 0.9, 0.999, 1e-8, 0.01};
static const MlrtSchedule schedule[] = {
    {"warmup", {0.05, MLRT_SHARE}, {0}, {false}, 0, NULL, NULL, 0},
    {"cosine", {0, MLRT_NONE}, {0.1}, {true}, 0, NULL, NULL, 0},
};
static const char *const source_args[] = {"path"};
static const char *const source_texts[] = {"digits.csv"};
static const MlrtSource source = {"csv", 1, source_args, source_texts, 0, 0};
static const MlrtSplit splits[] = {{"train", 0.8, NULL}, {"valid", 0.1, NULL}, {"test", 0.1, NULL}};
static const MlrtRecipe recipe = {
#ifdef STRINGS
    .keep_last = 3,
#endif
    .batch = N, .epochs = 5, .optimizer = "adamw", .n_hyper = 5, .hyper = hypers, .n_groups = 1, .group = group,
    .n_schedule = 2, .schedule = schedule, .clip = 1, .clip_at = 1, .keep_by = "accuracy", .keep_better = 1,
    .evaluate = {1, MLRT_EPOCHS}, .shuffle = true, .seed = 1, .source = &source, .n_splits = 3, .split = splits, .stratified_by = "label",
};
static const MlrtModel model = {
    .abi = MLRT_ABI, .name = "digits", .path = "digits.net", .text = "# written by hand\n", .version = "test", .fingerprint = "5f1e",
    .settings = "classes = 10 (digits.net)\n", .summary = "1,210 parameters", .param_count = PARAMS, .trainable_count = PARAMS,
    .n_params = 4, .param = params, .n_states = 2, .state = states, .n_inputs = 1, .n_targets = 1, .input = inputs,
    .n_train_outputs = 1, .n_outputs = 4, .train_output = train_outputs, .output = outputs, .n_results = 1, .n_metrics = 2,
    .metric = metrics, .n_fields = 2, .field = fields, .map_sample = map_sample, .arena_bytes = ARENA * 4, .scratch_bytes = 64,
    .train = {train_steps, 6}, .update = {update_steps, 1}, .eval = {eval_steps, 3}, .recipe = &recipe,
};

int main(int argc, char **argv) { return mlrt_main(&model, argc, argv); }
