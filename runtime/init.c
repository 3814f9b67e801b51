// init.c: the initialisers that recipe.def of the compiler names, one row each.
//
// Every row comes down to a distribution and its width; the widths are PyTorch's. For the fan-based ones the compiler puts
// the fan that was asked for into fan_in (Xavier uses both).
#include "init.h"

#include <math.h>
#include <string.h>

#include "random.h"

typedef enum Shape { FIXED, UNIFORM, NORMAL, TRUNCATED } Shape;

typedef struct Draw { double centre, width; } Draw;     // FIXED: centre; UNIFORM: centre ± width; else mean and deviation

static double fan(int64_t count) { return count > 0 ? (double)count : 1; }
static double fan_sum(const MlrtInit *i) { return fan(i->fan_in + i->fan_out); }
static double leak(const MlrtInit *i) { return 1 + i->number[0] * i->number[0]; }

static Draw draw_zeros(const MlrtInit *i) { (void)i; return (Draw){0, 0}; }
static Draw draw_ones(const MlrtInit *i) { (void)i; return (Draw){1, 0}; }
static Draw draw_constant(const MlrtInit *i) { return (Draw){i->number[0], 0}; }
static Draw draw_normal(const MlrtInit *i) { return (Draw){i->number[1], i->number[0]}; }
static Draw draw_uniform(const MlrtInit *i) { return (Draw){0, i->number[0]}; }
static Draw draw_uniform_fan(const MlrtInit *i) { return (Draw){0, 1 / sqrt(fan(i->fan_in))}; }
static Draw draw_uniform_out(const MlrtInit *i) { return (Draw){0, i->number[0] / sqrt(fan(i->fan_out))}; }
static Draw draw_xavier_uniform(const MlrtInit *i) { return (Draw){0, i->number[0] * sqrt(6 / fan_sum(i))}; }
static Draw draw_xavier_normal(const MlrtInit *i) { return (Draw){0, i->number[0] * sqrt(2 / fan_sum(i))}; }
static Draw draw_kaiming_uniform(const MlrtInit *i) { return (Draw){0, sqrt(6 / (leak(i) * fan(i->fan_in)))}; }
static Draw draw_kaiming_normal(const MlrtInit *i) { return (Draw){0, sqrt(2 / (leak(i) * fan(i->fan_in)))}; }

static const struct InitRow { const char *name; Shape shape; Draw (*draw)(const MlrtInit *init); } rows[] = {
    {"zeros", FIXED, draw_zeros},
    {"ones", FIXED, draw_ones},
    {"constant", FIXED, draw_constant},
    {"normal", NORMAL, draw_normal},
    {"truncated_normal", TRUNCATED, draw_normal},
    {"uniform", UNIFORM, draw_uniform},
    {"uniform_fan", UNIFORM, draw_uniform_fan},
    {"uniform_out", UNIFORM, draw_uniform_out},
    {"xavier_uniform", UNIFORM, draw_xavier_uniform},
    {"xavier_normal", NORMAL, draw_xavier_normal},
    {"kaiming_uniform", UNIFORM, draw_kaiming_uniform},
    {"kaiming_normal", NORMAL, draw_kaiming_normal},
};

static double draw_standard(Shape shape, MlrtRandom *random)
{
    double drawn = 0;
    if (shape == UNIFORM)
        drawn = 2 * mlrt_random_unit(random) - 1;
    else if (shape != FIXED)
        do
            drawn = mlrt_random_normal(random);
        while (shape == TRUNCATED && fabs(drawn) > 2);
    return drawn;
}

static MlrtStatus init_param(const MlrtParam *param, uint64_t seed, float *values, MlrtError *error)
{
    MlrtRandom random = mlrt_random(seed, mlrt_hash_text(param->path));
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        if (strcmp(rows[r].name, param->init.name) != 0)
            continue;
        Draw draw = rows[r].draw(&param->init);
        for (int64_t i = 0; i < param->count; i++)
            values[i] = (float)(draw.centre + draw.width * draw_standard(rows[r].shape, &random));
        return MLRT_OK;
    }
    return mlrt_fail(error, MLRT_INTERNAL, "%s: initialiser '%s' is not known to this runtime", param->path, param->init.name);
}

MlrtStatus mlrt_init_params(const MlrtModel *model, uint64_t seed, float *block, MlrtError *error)
{
    MlrtStatus status = MLRT_OK;
    for (int i = 0; i < model->n_params && status == MLRT_OK; i++)
        status = init_param(&model->param[i], seed, block + model->param[i].offset, error);
    return status;
}
