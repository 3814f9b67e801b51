// sampler.c: see sampler.h. A draw is a number below the sum of all weights, looked for in their running sums.
#include "sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

static double value_of(const MlrtDataset *data, int port, int64_t row)
{
    const char *type = data->model->input[port].type, *at = data->port[port] + row * data->model->input[port].bytes;
#define READ(name, c_type)                  \
    if (strcmp(type, name) == 0) {          \
        c_type value;                       \
        memcpy(&value, at, sizeof value);   \
        return (double)value;               \
    }
    READ("f32", float) READ("f64", double) READ("i64", int64_t) READ("i32", int32_t) READ("i16", int16_t) READ("i8", int8_t)
#undef READ
    return *(const uint8_t *)at;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

// How many of the sorted values are below, or not above, x.
static int64_t count_below(const double *sorted, int64_t count, double x, bool equal_too)
{
    int64_t from = 0, end = count;
    while (from < end) {
        int64_t middle = from + (end - from) / 2;
        if (sorted[middle] < x || (equal_too && sorted[middle] == x))
            from = middle + 1;
        else
            end = middle;
    }
    return from;
}

// One over the size of its class.
static MlrtStatus balance(double *weight, int64_t rows, MlrtError *error)
{
    double *sorted = mlrt_alloc_array((size_t)rows, sizeof *sorted);
    if (!sorted)
        return mlrt_fail_memory(error, (size_t)rows * sizeof *sorted, "sampler");
    memcpy(sorted, weight, (size_t)rows * sizeof *sorted);
    qsort(sorted, (size_t)rows, sizeof *sorted, by_value);
    for (int64_t i = 0; i < rows; i++)
        weight[i] = 1 / (double)(count_below(sorted, rows, weight[i], true) - count_below(sorted, rows, weight[i], false));
    free(sorted);
    return MLRT_OK;
}

static MlrtStatus add_up(double *weight, int64_t rows, const char *name, MlrtError *error)
{
    double sum = 0;
    for (int64_t i = 0; i < rows; i++) {
        if (!(weight[i] >= 0) || !isfinite(weight[i]))
            return mlrt_fail(error, MLRT_BAD_INPUT, "sampler: sample %lld of the training part has the weight %g in '%s'; it has to be 0 or more",
                             (long long)i, weight[i], name);
        sum += weight[i];
        weight[i] = sum;
    }
    return sum > 0 && isfinite(sum) ? MLRT_OK : mlrt_fail(error, MLRT_BAD_INPUT, "sampler: the weights in '%s' add up to %g", name, sum);
}

MlrtStatus mlrt_sampler_open(MlrtSampler *s, const MlrtDataset *data, const MlrtRecipe *recipe, MlrtError *error)
{
    const MlrtModel *m = data->model;
    const MlrtPart *part = &data->part[MLRT_TRAIN];
    int port = 0, ports = m->n_inputs + m->n_targets;
    *s = (MlrtSampler){.rows = part->rows};
    if (!recipe->sampler)
        return MLRT_OK;
    while (port < ports && strcmp(m->input[port].name, recipe->sampler_by) != 0)
        port++;
    if (port == ports || !data->port[port])
        return mlrt_fail(error, MLRT_INTERNAL, "sampler: the program has no '%s'", recipe->sampler_by);
    s->sum = mlrt_alloc_array((size_t)part->rows, sizeof *s->sum);
    if (!s->sum)
        return mlrt_fail_memory(error, (size_t)part->rows * sizeof *s->sum, "sampler");
    for (int64_t i = 0; i < part->rows; i++)
        s->sum[i] = value_of(data, port, part->row[i]);
    MlrtStatus status = strcmp(recipe->sampler, "balanced") == 0 ? balance(s->sum, part->rows, error) : MLRT_OK;
    return status == MLRT_OK ? add_up(s->sum, part->rows, recipe->sampler_by, error) : status;
}

void mlrt_sampler_close(MlrtSampler *s)
{
    free(s->sum);
    s->sum = NULL;
}

void mlrt_sampler_draw(const MlrtSampler *s, const MlrtPart *part, uint64_t seed, int64_t epoch, int64_t *order)
{
    MlrtRandom random = mlrt_random(seed, mlrt_hash_text("sampler") + (uint64_t)epoch);
    for (int64_t i = 0; i < s->rows; i++) {
        int64_t at = count_below(s->sum, s->rows, mlrt_random_unit(&random) * s->sum[s->rows - 1], true);
        order[i] = part->row[at < s->rows ? at : s->rows - 1];
    }
}
