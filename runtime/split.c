// split.c: the samples are shuffled by the seed, sorted by class where they are to be stratified, and dealt out by the
// running sum of the shares within each class: so a class of n samples gives round(n share) to a part, up to one.
#include "split.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

typedef struct Sample { int64_t row, group, rank; } Sample;     // rank: its place in the shuffled order

static const char *const part_names[MLRT_PARTS] = {"train", "valid", "test"};

int mlrt_part_find(const char *name)
{
    for (int p = 0; p < MLRT_PARTS; p++)
        if (strcmp(part_names[p], name) == 0)
            return p;
    return -1;
}

static int by_group(const void *a, const void *b)
{
    const Sample *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static Sample *samples_shuffled(int64_t rows, const int64_t *group, uint64_t seed)
{
    Sample *samples = mlrt_alloc_array((size_t)rows, sizeof *samples);
    int64_t *order = mlrt_alloc_array((size_t)rows, sizeof *order);
    for (int64_t i = 0; i < rows && order; i++)
        order[i] = i;
    if (order)
        mlrt_random_order(order, rows, seed, mlrt_hash_text("split"));
    for (int64_t i = 0; i < rows && samples && order; i++)
        samples[i] = (Sample){order[i], group ? group[order[i]] : 0, i};
    if (samples && order)
        qsort(samples, (size_t)rows, sizeof *samples, by_group);
    else {
        free(samples);
        samples = NULL;
    }
    free(order);
    return samples;
}

static MlrtStatus read_shares(const MlrtRecipe *recipe, double share[MLRT_PARTS], MlrtError *error)
{
    double given = 0;
    bool train = false;
    for (int i = 0; i < recipe->n_splits; i++) {
        int p = mlrt_part_find(recipe->split[i].part);
        if (p < 0)
            return mlrt_fail(error, MLRT_BAD_INPUT, "split: '%s' is none of train, valid, test", recipe->split[i].part);
        share[p] = recipe->split[i].source ? 0 : recipe->split[i].share;
        given += share[p];
        train = train || (p == MLRT_TRAIN && share[p] > 0);
    }
    if (given > 1 + 1e-9)
        return mlrt_fail(error, MLRT_BAD_INPUT, "split: the shares add up to %.6g%%, more than all", given * 100);
    if (!train)
        share[MLRT_TRAIN] = 1 - given;
    return MLRT_OK;
}

// Gives out one class: samples[0 … count-1].
static void deal(MlrtPart part[MLRT_PARTS], const double share[MLRT_PARTS], const Sample *samples, int64_t count)
{
    static const int order[] = {MLRT_VALID, MLRT_TEST, MLRT_TRAIN};
    double sum = 0;
    int64_t next = 0;
    for (int i = 0; i < MLRT_PARTS; i++) {
        MlrtPart *to = &part[order[i]];
        sum += share[order[i]];
        int64_t end = llround(sum * (double)count);
        for (end = end < count ? end : count; next < end; next++)
            to->row[to->rows++] = samples[next].row;
    }
}

static bool allocate(MlrtPart part[MLRT_PARTS], int64_t rows)
{
    bool done = true;
    for (int p = 0; p < MLRT_PARTS; p++) {
        part[p] = (MlrtPart){part_names[p], 0, mlrt_alloc_array((size_t)rows, sizeof(int64_t))};
        done = done && part[p].row;
    }
    return done;
}

MlrtStatus mlrt_split_by_share(MlrtPart part[MLRT_PARTS], const MlrtRecipe *recipe, int64_t rows, const int64_t *group,
                               MlrtError *error)
{
    double share[MLRT_PARTS] = {0};
    MlrtStatus status = read_shares(recipe, share, error);
    Sample *samples = status == MLRT_OK ? samples_shuffled(rows, group, recipe->seed) : NULL;
    if (status == MLRT_OK && (!allocate(part, rows) || !samples))
        status = mlrt_fail_memory(error, (size_t)rows * sizeof *samples, "split");
    for (int64_t i = 0, end; i < rows && status == MLRT_OK; i = end) {
        for (end = i + 1; end < rows && samples[end].group == samples[i].group;)
            end++;
        deal(part, share, samples + i, end - i);
    }
    for (int p = 0; p < MLRT_PARTS && status == MLRT_OK; p++)
        qsort(part[p].row, (size_t)part[p].rows, sizeof(int64_t), by_number);
    free(samples);
    return status;
}
