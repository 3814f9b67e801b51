// update.c: takes the place of the runtime in a generated training program: runs its update 20 times on weights and gradients
// made from integers, and compares the weights with those of answers.txt (record.py). Usage: PROGRAM answers.txt CASE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mlrt.h"

enum { FLOATS = 4096, STEPS = 20 };

static float param[FLOATS], grad[FLOATS], state[8 * FLOATS];
static char scratch[1 << 20];

static float number(uint32_t index, uint32_t step, uint32_t k)
{
    uint32_t h = (k + 1) * 2654435761u + (index * 1000 + step) * 2246822519u;
    h ^= h >> 15;
    h *= 2246822519u;
    h ^= h >> 13;
    return (float)(h >> 8) / 16777216.0f - 0.5f;
}

static void fill(const MlrtModel *model, float *to, uint32_t step)
{
    for (int i = 0; i < model->n_params; i++)
        for (int64_t k = 0; k < model->param[i].count; k++)
            to[model->param[i].offset + k] = number((uint32_t)i, step, (uint32_t)k);
}

// What lies behind the work area that a program asked for has to stay as it is.
static bool inside(const MlrtModel *model)
{
    for (size_t i = model->scratch_bytes; i < sizeof scratch; i++)
        if (scratch[i] != 0x55)
            return false;
    return true;
}

// `backwards`: parts in the other order, which must not matter.
static void update(const MlrtModel *model, double *hyper, bool backwards)
{
    memset(state, 0, sizeof state);
    fill(model, param, 0);
    MlrtRun run = {.param = (char *)param, .grad = (char *)grad, .state = (char *)state, .scratch = scratch, .hyper = hyper,
                   .size = {1}};
    for (uint64_t t = 1; t <= STEPS; t++) {
        fill(model, grad, (uint32_t)t);
        run.step = t;
        for (int s = 0; s < model->update.count; s++) {
            const MlrtStep *step = &model->update.step[s];
            for (int part = 0; part < step->parts; part++)
                step->run(&run, backwards ? step->parts - 1 - part : part);
        }
    }
}

// What a name of the answers stands for: a parameter, or the average of one.
static const float *values_of(const MlrtModel *model, const char *name, int64_t *count)
{
    int64_t average = -1;
    for (int s = 0; s < model->n_states; s++)
        if (strcmp(model->state[s], "average") == 0)
            average = s * model->trainable_count;
    bool mean = strncmp(name, "average.", 8) == 0;
    for (int i = 0; i < model->n_params; i++)
        if (strcmp(model->param[i].path, mean ? name + 8 : name) == 0 && (!mean || average >= 0)) {
            *count = model->param[i].count;
            return (mean ? state + average : param) + model->param[i].offset;
        }
    return NULL;
}

static int compare(const MlrtModel *model, char *line)
{
    char *name = strtok(line, " ");
    int64_t count = 0;
    const float *got = values_of(model, name, &count);
    if (!got) {
        fprintf(stderr, "%s is not in the program\n", name);
        return 1;
    }
    for (int64_t k = 0; k < count; k++) {
        char *word = strtok(NULL, " ");
        double want = word ? strtod(word, NULL) : NAN;
        if (!(fabs((double)got[k] - want) <= 3e-6 * (1 + fabs(want)))) {        // 20 steps of some roundings of numbers around 1
            fprintf(stderr, "%s[%d] is %.9g, expected %.9g\n", name, (int)k, (double)got[k], want);
            return 1;
        }
    }
    return 0;
}

int mlrt_main(const MlrtModel *model, int argc, char **argv)
{
    static char line[8192];
    static float forwards[FLOATS];
    double hyper[8 * MLRT_HYPERS] = {0};
    int lines = 0, failed = 0;
    FILE *file = argc == 3 ? fopen(argv[1], "r") : NULL;
    if (!file || model->param_count > FLOATS || model->recipe->n_groups > 8 || model->scratch_bytes > sizeof scratch)
        return 3;
    memset(scratch, 0x55, sizeof scratch);
    memcpy(hyper, model->recipe->group, (size_t)model->recipe->n_groups * MLRT_HYPERS * sizeof *hyper);
    hyper[MLRT_EMA] = model->recipe->ema;
    update(model, hyper, true);
    memcpy(forwards, param, sizeof param);
    update(model, hyper, false);
    if (memcmp(forwards, param, sizeof param) != 0) {
        fprintf(stderr, "the order of the parts matters\n");
        return 1;
    }
    if (!inside(model)) {
        fprintf(stderr, "the update writes behind its work area\n");
        return 1;
    }
    size_t length = strlen(argv[2]);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, argv[2], length) == 0 && line[length] == ' ') {
            failed += compare(model, line + length + 1);
            lines++;
        }
    fclose(file);
    return failed > 0 || lines < model->n_params;
}
