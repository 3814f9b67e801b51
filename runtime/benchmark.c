// benchmark.c: --benchmark: how long a step takes, on samples that are made up once.
//
// A step here is what training does with a batch that has been gathered: forward and backward, the look at the gradients, the
// update. No file is read, none is written. Two steps go before the clock starts: the first one touches the memory.
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "trainer.h"

enum { WARM = 2 };

// --- samples -----------------------------------------------------------------------------------------------------------

typedef void Draw(char *to, int64_t i, MlrtRandom *random, int64_t below);

static void draw_f32(char *to, int64_t i, MlrtRandom *random, int64_t below)
{
    (void)below;
    ((float *)(void *)to)[i] = (float)mlrt_random_normal(random);
}

static void draw_f64(char *to, int64_t i, MlrtRandom *random, int64_t below)
{
    (void)below;
    ((double *)(void *)to)[i] = mlrt_random_normal(random);
}

static void draw_i32(char *to, int64_t i, MlrtRandom *random, int64_t below)
{
    ((int32_t *)(void *)to)[i] = (int32_t)mlrt_random_below(random, (uint64_t)below);
}

static void draw_i64(char *to, int64_t i, MlrtRandom *random, int64_t below)
{
    ((int64_t *)(void *)to)[i] = (int64_t)mlrt_random_below(random, (uint64_t)below);
}

static void draw_u8(char *to, int64_t i, MlrtRandom *random, int64_t below)
{
    to[i] = (char)mlrt_random_below(random, (uint64_t)below);
}

// Of the types that ports have; what is not here is refused. Integers: how many values there are if the net does not say.
static const struct { const char *type; Draw *draw; int64_t values; } draws[] = {
    {"f32", draw_f32, 0}, {"f64", draw_f64, 0}, {"i32", draw_i32, 2}, {"i64", draw_i64, 2}, {"u8", draw_u8, 256}, {"bool", draw_u8, 2},
};

static MlrtStatus fill_port(MlrtSession *s, int p, MlrtError *error)
{
    const MlrtPort *port = &s->model->input[p];
    MlrtRandom random = mlrt_random((uint64_t)s->state.seed, mlrt_hash_text(port->name));
    for (size_t k = 0; k < sizeof draws / sizeof *draws; k++) {
        if (strcmp(draws[k].type, port->type) != 0)
            continue;
        int64_t count = mlrt_port_count(port) * (port->batched ? s->settings.recipe.batch : 1);
        for (int64_t i = 0; i < count; i++)
            draws[k].draw(s->engine.in[p], i, &random, port->below > 0 ? port->below : draws[k].values);
        return MLRT_OK;
    }
    return mlrt_fail(error, MLRT_BAD_INPUT, "--benchmark makes up no values of type %s, which %s has", port->type, port->name);
}

static MlrtStatus fill_ports(MlrtSession *s, MlrtError *error)
{
    MlrtStatus status = MLRT_OK;
    for (int p = 0; p < s->model->n_inputs + s->model->n_targets && status == MLRT_OK; p++)
        status = fill_port(s, p, error);
    return status;
}

// --- steps -------------------------------------------------------------------------------------------------------------

static MlrtStatus one_step(MlrtSession *s, int64_t number, MlrtError *error)
{
    const MlrtRecipe *r = &s->settings.recipe;
    double loss = mlrt_engine_train(&s->engine, r->batch, (uint64_t)s->state.seed, (uint64_t)number);
    double norm = mlrt_engine_clip(&s->engine, r);
    if (!isfinite(loss) || !isfinite(norm))
        return mlrt_fail(error, MLRT_DIVERGED, "step %" PRId64 ": the loss is %g, the norm of the gradients %g", number, loss, norm);
    mlrt_engine_update(&s->engine, r, 1);
    return MLRT_OK;
}

static int compare_times(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The most memory that the process has had so far, in kB; 0: the system does not say. (The figure of getrusage counts what
// was there before exec, too.)
static long peak_memory(void)
{
    char line[128];
    long kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kilobytes = strtol(line + 6, NULL, 10);
    if (file)
        fclose(file);
    return kilobytes;
}

static void show(const MlrtSession *s, double start, const double *ms, int64_t count)
{
    double least = ms[0], median = ms[count / 2], late = ms[count - 1 - count / 100];
    if (s->options.json.given)
        printf("{\"model\":\"%s\",\"threads\":%d,\"batch\":%" PRId64 ",\"steps\":%" PRId64
               ",\"start_ms\":%.6g,\"min_ms\":%.6g,\"median_ms\":%.6g,\"p99_ms\":%.6g,\"planned_bytes\":%zu,\"peak_kb\":%ld}\n",
               s->model->name, mlrt_pool_threads(s->pool), s->settings.recipe.batch, count, start, least, median, late,
               s->engine.bytes, peak_memory());
    else
        printf("%s: %" PRId64 " steps of %" PRId64 " made-up samples, %d thread%s: %.4g ms at least, %.4g median, %.4g at 99%%; "
               "%s of memory planned, %s at most in use\n",
               s->model->name, count, s->settings.recipe.batch, mlrt_pool_threads(s->pool),
               mlrt_pool_threads(s->pool) == 1 ? "" : "s", least, median, late,
               mlrt_text_bytes((double)s->engine.bytes).text, mlrt_text_bytes(1024.0 * (double)peak_memory()).text);
}

MlrtStatus mlrt_benchmark(MlrtSession *s, MlrtError *error)
{
    int64_t count = (int64_t)s->options.benchmark.whole;
    double *ms = mlrt_alloc_array((size_t)count, sizeof *ms);
    MlrtStatus status = ms ? fill_ports(s, error) : mlrt_fail_memory(error, (size_t)count, "times of steps");
    double start = 1e3 * (mlrt_clock_now() - s->progress.begun);    // options, memory, initial weights, samples
    for (int64_t i = 1; i <= WARM && status == MLRT_OK; i++)
        status = one_step(s, i, error);
    for (int64_t i = 0; i < count && status == MLRT_OK; i++) {
        double begun = mlrt_clock_now();
        status = one_step(s, WARM + 1 + i, error);
        ms[i] = 1e3 * (mlrt_clock_now() - begun);
    }
    if (status == MLRT_OK) {
        qsort(ms, (size_t)count, sizeof *ms, compare_times);
        show(s, start, ms, count);
    }
    free(ms);
    return status;
}
