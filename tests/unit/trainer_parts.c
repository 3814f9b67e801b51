// trainer_parts.c: the parts of the trainer that have closed forms: draws, initialisers, schedules, splits, metrics, clipping.
#define _DEFAULT_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#include "../../runtime/engine.h"
#include "../../runtime/init.h"
#include "../../runtime/metrics.h"
#include "../../runtime/random.h"
#include "../../runtime/sampler.h"
#include "../../runtime/schedule.h"
#include "../../runtime/split.h"

static bool near(double a, double b, double tolerance) { return fabs(a - b) <= tolerance; }

// Known answers of the paper's reference code (kat_vectors).
static void test_philox(void)
{
    uint32_t zero[4] = {0}, ones[4] = {~0u, ~0u, ~0u, ~0u}, out[4];
    mlrt_philox(0, zero, out);
    CHECK(out[0] == 0x6627e8d5 && out[1] == 0xe169c58d && out[2] == 0xbc57ac4c && out[3] == 0x9b00dbd8);
    mlrt_philox(~(uint64_t)0, ones, out);
    CHECK(out[0] == 0x408f276d && out[1] == 0x41c83b0e && out[2] == 0xa20bc7c6 && out[3] == 0x6d5451fd);
}

static void test_order(void)
{
    enum { COUNT = 1000 };
    int64_t a[COUNT], b[COUNT], seen[COUNT] = {0}, moved = 0;
    for (int i = 0; i < COUNT; i++)
        a[i] = b[i] = i;
    mlrt_random_order(a, COUNT, 3, 1);
    mlrt_random_order(b, COUNT, 3, 1);
    CHECK(memcmp(a, b, sizeof a) == 0);
    for (int i = 0; i < COUNT; i++) {
        seen[a[i]]++;
        moved += a[i] != i;
    }
    for (int i = 0; i < COUNT; i++)
        CHECK(seen[i] == 1);
    CHECK(moved > COUNT - 20);
}

// Mean and deviation of a million draws are within five standard errors.
static void test_distributions(void)
{
    double sum = 0, squares = 0, unit = 0;
    int n = 1000000;
    MlrtRandom random = mlrt_random(5, 6);
    for (int i = 0; i < n; i++) {
        double x = mlrt_random_normal(&random);
        sum += x;
        squares += x * x;
        unit += mlrt_random_unit(&random);
    }
    CHECK(near(sum / n, 0, 5e-3));
    CHECK(near(squares / n, 1, 7.1e-3));
    CHECK(near(unit / n, 0.5, 1.5e-3));
}

static void test_init(void)
{
    static const char *const names[] = {"kaiming_uniform", "uniform_fan", "xavier_uniform", "truncated_normal", "constant"};
    static const double bounds[] = {0.125, 0.125, 0, 0.04, 0};      // kaiming with a = sqrt(5): 1 / sqrt(fan_in)
    enum { COUNT = 4096 };
    static float block[2 * COUNT];
    MlrtError error;
    for (int k = 0; k < 5; k++) {
        MlrtParam params[2] = {{.path = "a.weight", .count = COUNT, .offset = 0}, {.path = "b.weight", .count = COUNT, .offset = COUNT}};
        double bound = k == 2 ? sqrt(6.0 / (64 + 32)) : bounds[k], most = 0;
        params[0].init = (MlrtInit){names[k], {k == 0 ? sqrt(5) : k == 3 ? 0.02 : k == 4 ? 0.5 : 1, 0, 0}, 64, 32};
        params[1].init = params[0].init;
        MlrtModel model = {.n_params = 2, .param = params, .param_count = 2 * COUNT};
        CHECK(mlrt_init_params(&model, 7, block, &error) == MLRT_OK);
        float first = block[0], second = block[COUNT];
        for (int i = 0; i < 2 * COUNT; i++)
            most = fabs(block[i]) > most ? fabs(block[i]) : most;
        if (k == 4)
            CHECK(first == 0.5f && most == 0.5);
        else
            CHECK(most <= bound && most > 0.98 * bound && first != second);
        MlrtParam alone = params[1];
        alone.offset = 0;
        model = (MlrtModel){.n_params = 1, .param = &alone, .param_count = COUNT};
        CHECK(mlrt_init_params(&model, 7, block, &error) == MLRT_OK);
        CHECK(block[0] == second);      // the order of parameters does not matter
    }
}

static void test_schedule(void)
{
    MlrtClock clock = {10, 100, 0};
    MlrtSchedule chain[] = {
        {"warmup", {2, MLRT_EPOCHS}, {0.1}, {false}, 0, NULL, NULL, 0},
        {"constant", {0.1, MLRT_SHARE}, {0}, {false}, 0, NULL, NULL, 0},
        {"cosine", {50, MLRT_STEPS}, {0.1}, {true}, 0, NULL, NULL, 0},
        {"linear", {0, MLRT_NONE}, {0.001}, {false}, 0, NULL, NULL, 0},
    };
    CHECK(!mlrt_schedule_fault(chain, 4));
    for (int i = 0; i < 100; i++) {
        double got = mlrt_schedule_factor(chain, 4, &clock, 0.1, i), want;
        if (i < 20)
            want = 0.1 + 0.9 * (i + 1) / 20;
        else if (i < 30)
            want = 1;
        else if (i < 80)
            want = 0.1 + 0.9 * (1 + cos(M_PI * (i - 30) / 50)) / 2;
        else
            want = 0.1 + (0.01 - 0.1) * (i - 80) / 20;
        CHECK(near(got, want, 1e-12));
    }
    MlrtSchedule steps[] = {{"step", {3, MLRT_EPOCHS}, {0.5}, {false}, 0, NULL, NULL, 0}};
    CHECK(near(mlrt_schedule_factor(steps, 1, &clock, 1, 29), 1, 0));
    CHECK(near(mlrt_schedule_factor(steps, 1, &clock, 1, 30), 0.5, 0));
    CHECK(near(mlrt_schedule_factor(steps, 1, &clock, 1, 95), 0.125, 0));
    CHECK(mlrt_schedule_factor(NULL, 0, &clock, 1, 5) == 1);
    MlrtSchedule open[] = {{"cosine", {0, MLRT_NONE}, {0}, {false}, 0, NULL, NULL, 0}, {"constant", {0, MLRT_NONE}, {0}, {false}, 0, NULL, NULL, 0}};
    CHECK(mlrt_schedule_fault(open, 2));
}

// Line `name` of tests/optimizers/schedules.txt, PyTorch's answers; how many there are.
static int recorded(const char *name, double *values, int most)
{
    static char line[4096];
    FILE *file = fopen("tests/optimizers/schedules.txt", "r");
    int count = 0;
    CHECK(file != NULL);
    while (file && fgets(line, sizeof line, file)) {
        char *word = strtok(line, " \n");
        if (strcmp(word, name) == 0)
            while (count < most && (word = strtok(NULL, " \n")))
                values[count++] = strtod(word, NULL);
    }
    if (file)
        fclose(file);
    return count;
}

static void test_recorded_schedules(void)
{
    MlrtDuration moments[3] = {{5, MLRT_STEPS}, {0.6, MLRT_SHARE}, {13, MLRT_STEPS}}, rest = {0, MLRT_NONE};
    MlrtSchedule chains[] = {
        {"multistep", rest, {0.3}, {false}, 3, moments, NULL, 0},
        {"exponential", {1, MLRT_STEPS}, {0.9}, {false}, 0, NULL, NULL, 0},
        {"polynomial", rest, {2}, {false}, 0, NULL, NULL, 0},
        {"one_cycle", rest, {2.5, 0.3, 1e-4}, {false}, 0, NULL, NULL, 0},
    };
    MlrtClock clock = {5, 20, 0};
    for (int c = 0; c < 4; c++) {
        double want[64];
        int count = recorded(chains[c].name, want, 64);
        CHECK(count == 20 && !mlrt_schedule_fault(&chains[c], 1));
        for (int i = 0; i < count; i++)
            CHECK(near(mlrt_schedule_factor(&chains[c], 1, &clock, 0.1, i), want[i], 1e-9));
    }
}

static void test_plateau(void)
{
    double loss[64], want[64], best = NAN;
    int count = recorded("losses", loss, 64), bad = 0;
    MlrtSchedule plateau = {"plateau", {0, MLRT_NONE}, {0.5, 2, 1e-2, 2e-2}, {false}, 0, NULL, "loss", -1};
    MlrtClock clock = {5, 100, 0};
    CHECK(count == 25 && recorded("plateau", want, 64) == count && mlrt_schedule_plateau(&plateau, 1, &clock, 0) == &plateau);
    for (int i = 0; i < count; i++) {
        if (mlrt_plateau_better(&plateau, loss[i], best)) {
            best = loss[i];
            bad = 0;
        } else if (++bad > 2) {
            bad = 0;
            clock.cuts++;
        }
        CHECK(near(mlrt_schedule_factor(&plateau, 1, &clock, 0.1, i), want[i], 1e-12));
    }
    CHECK(!mlrt_plateau_better(&plateau, NAN, best) && mlrt_plateau_better(&plateau, 1, NAN));
}

static void test_split(void)
{
    enum { ROWS = 1000 };
    int64_t group[ROWS], seen[ROWS] = {0}, ones = 0;
    MlrtPart part[MLRT_PARTS] = {{0}};
    MlrtSplit splits[] = {{"valid", 0.1, NULL}, {"test", 0.2, NULL}};
    MlrtRecipe recipe = {.n_splits = 2, .split = splits, .seed = 1};
    MlrtError error;
    for (int i = 0; i < ROWS; i++)
        group[i] = i % 10 == 0;         // 100 of 1,000
    CHECK(mlrt_split_by_share(part, &recipe, ROWS, group, &error) == MLRT_OK);
    CHECK(part[MLRT_TRAIN].rows == 700 && part[MLRT_VALID].rows == 100 && part[MLRT_TEST].rows == 200);
    for (int p = 0; p < MLRT_PARTS; p++)
        for (int64_t i = 0; i < part[p].rows; i++)
            seen[part[p].row[i]]++;
    for (int i = 0; i < ROWS; i++)
        CHECK(seen[i] == 1);
    for (int64_t i = 0; i < part[MLRT_VALID].rows; i++)
        ones += group[part[MLRT_VALID].row[i]];
    CHECK(ones == 10);
    for (int p = 0; p < MLRT_PARTS; p++)
        free(part[p].row);
    splits[0].share = 0.9;
    CHECK(mlrt_split_by_share(part, &recipe, ROWS, NULL, &error) == MLRT_BAD_INPUT);
}

static void test_metrics(void)
{
    double sum[4] = {8, 2, 1, 9};
    MlrtPort port = {.rank = 2, .dim = {2, 2}};
    MlrtMetric f1 = {"f1", 0, true, 1, "f1"};
    CHECK(near(mlrt_metric_finish(&f1, &port, sum), (16.0 / 19 + 18.0 / 21) / 2, 1e-15));
    MlrtMetric iou = {"iou", 0, true, 1, "iou"}, power = {"exp", 0, false, -1, "exp"}, root = {"sqrt", 0, false, -1, "sqrt"}, area = {"auc", 0, true, 1, "auc"}, map = {"map", 0, true, 1, "map"};
    MlrtPort number = {.rank = 0}, steps = {.rank = 2, .dim = {2, 3}}, found = {.rank = 3, .dim = {2, 4, 2}};
    CHECK(near(mlrt_metric_finish(&iou, &port, sum), (8.0 / 11 + 9.0 / 12) / 2, 1e-15));
    CHECK(near(mlrt_metric_finish(&power, &number, (double[]){2}), exp(2), 1e-12) && near(mlrt_metric_finish(&root, &number, (double[]){2}), sqrt(2), 1e-15));
    // zeros at steps 0, 0, 1; ones at 1, 2: of 6 pairs 5 are in order and one is equal
    CHECK(near(mlrt_metric_finish(&area, &steps, (double[]){2, 1, 0, 0, 1, 1}), 5.5 / 6, 1e-15));
    // Class 0 has 4 objects: from the best on right, wrong, right (precision 1, then at most 2/3); class 1 has none.
    CHECK(near(mlrt_metric_finish(&map, &found, (double[]){4, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 5}), (1 + 2.0 / 3) / 4, 1e-15));
    CHECK(!mlrt_is_better(NAN, NAN, 1) && !mlrt_is_better(INFINITY, 1, 1) && mlrt_is_better(1, NAN, -1) && mlrt_is_better(1, 2, -1));
}

// Ten thousand draws: classes of 90 and 10 samples come equally often, weights as often as they say, one of weight 0 never.
static void test_sampler(void)
{
    enum { ROWS = 100, EPOCHS = 100 };
    int32_t label[ROWS];
    float weight[ROWS];
    int64_t row[ROWS], order[ROWS], again[ROWS], rare = 0, heavy = 0, never = 0;
    for (int i = 0; i < ROWS; i++) {
        label[i] = i % 10 == 3;
        weight[i] = i == 7 ? 0 : i == 8 ? 98 : 1;
        row[i] = i;
    }
    MlrtPort ports[] = {{.name = "label", .type = "i32", .bytes = 4}, {.name = "w", .type = "f32", .bytes = 4}};
    MlrtModel model = {.n_inputs = 2, .input = ports};
    MlrtDataset data = {.model = &model, .rows = ROWS, .port = {(char *)label, (char *)weight}, .part = {{"train", ROWS, row}}};
    MlrtRecipe recipe = {.sampler = "balanced", .sampler_by = "label"};
    MlrtSampler balanced, weighted;
    MlrtError error;
    CHECK(mlrt_sampler_open(&balanced, &data, &recipe, &error) == MLRT_OK);
    recipe = (MlrtRecipe){.sampler = "weighted", .sampler_by = "w"};
    CHECK(mlrt_sampler_open(&weighted, &data, &recipe, &error) == MLRT_OK);
    for (int e = 0; e < EPOCHS; e++) {
        mlrt_sampler_draw(&balanced, &data.part[0], 5, e, order);
        mlrt_sampler_draw(&balanced, &data.part[0], 5, e, again);
        CHECK(memcmp(order, again, sizeof order) == 0);
        for (int i = 0; i < ROWS; i++)
            rare += label[order[i]];
        mlrt_sampler_draw(&weighted, &data.part[0], 5, e, order);
        for (int i = 0; i < ROWS; i++) {
            heavy += order[i] == 8;
            never += order[i] == 7;
        }
    }
    CHECK(labs((long)rare - 5000) < 250 && labs((long)heavy - 5000) < 250 && never == 0);     // five deviations
    mlrt_sampler_close(&balanced);
    mlrt_sampler_close(&weighted);
    weight[4] = -1;
    CHECK(mlrt_sampler_open(&weighted, &data, &recipe, &error) == MLRT_BAD_INPUT && strstr(error.text, "sample 4"));
    mlrt_sampler_close(&weighted);
}

static void test_codes(void)
{
    const char *const words[] = {"10", "2", "a,b", "per%cent", "two\nlines", "2"};
    MlrtCodes codes, back;
    MlrtError error;
    CHECK(mlrt_codes_fit(words, 6, &codes, &error) == MLRT_OK && codes.count == 5);
    char *text = mlrt_codes_text(&codes);
    CHECK(text && mlrt_is_clean_text(text, strlen(text)));
    CHECK(mlrt_codes_parse(text, &back, &error) == MLRT_OK && back.count == 5);
    for (int i = 0; i < 5; i++)
        CHECK(strcmp(codes.names[i], back.names[i]) == 0);
    CHECK(strcmp(codes.names[0], "2") == 0 && strcmp(codes.names[1], "10") == 0);
    mlrt_codes_free(&codes);
    mlrt_codes_free(&back);
    CHECK(mlrt_codes_parse("a%2", &back, &error) == MLRT_BAD_FILE);
    free(text);
}

// The norm of 100,000 gradients, and what clipping leaves, have the same bits for 1 and 5 threads.
static void test_clip(void)
{
    enum { COUNT = 100000 };
    float *kept = NULL;
    double norms[2];
    double hyper[MLRT_HYPERS] = {0};
    MlrtRecipe recipe = {.batch = 1, .n_groups = 1, .group = hyper, .clip = 1, .clip_at = 2};
    MlrtPort loss = {.name = "loss", .type = "f32", .bytes = 4};
    MlrtModel model = {.path = "x", .recipe = &recipe, .param_count = COUNT, .trainable_count = COUNT, .n_train_outputs = 1, .n_outputs = 1,
                       .train_output = &loss, .output = &loss};
    for (int k = 0; k < 2; k++) {
        MlrtEngine engine;
        MlrtError error;
        MlrtPool *pool = mlrt_pool_new(k ? 5 : 1);
        CHECK(mlrt_engine_open(&engine, &model, pool, &error) == MLRT_OK);
        double sum = 0;
        for (int i = 0; i < COUNT; i++) {
            engine.grad[i] = sinf((float)i);
            sum += (double)engine.grad[i] * engine.grad[i];
        }
        norms[k] = mlrt_engine_clip(&engine, &recipe);
        CHECK(near(norms[k], sqrt(sum), 1e-9));
        CHECK(engine.grad[5] == (float)(2 / (norms[k] + 1e-6)) * sinf(5));
        if (k == 0) {
            kept = malloc(COUNT * sizeof *kept);
            memcpy(kept, engine.grad, COUNT * sizeof *kept);
        } else
            CHECK(memcmp(kept, engine.grad, COUNT * sizeof *kept) == 0);
        engine.grad[7] = NAN;
        CHECK(!isfinite(mlrt_engine_clip(&engine, &recipe)));
        mlrt_engine_close(&engine);
        mlrt_pool_free(pool);
    }
    CHECK(memcmp(&norms[0], &norms[1], sizeof norms[0]) == 0);
    free(kept);
}

int main(void)
{
    test_philox();
    test_order();
    test_distributions();
    test_init();
    test_schedule();
    test_recorded_schedules();
    test_plateau();
    test_split();
    test_metrics();
    test_codes();
    test_sampler();
    test_clip();
    printf(failures ? "%d failures\n" : "trainer parts: ok\n", failures);
    return failures != 0;
}
