// engine.c: lays out the memory and runs the steps of a model on the pool.
//
// Sums over parameters (the norm of the gradients) are cut into chunks of a fixed size and added in their order, so they have
// the same bits for any number of threads.
#include "engine.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"

enum { ALIGN = 64, CHUNK = 1 << 14 };   // of memory; floats in a part of a sweep

// --- memory ------------------------------------------------------------------------------------------------------------

typedef struct Layout { char *base; size_t used; bool fits; } Layout;   // base NULL: only measuring

static void *take(Layout *layout, int64_t count, size_t bytes)
{
    size_t size = 0;
    layout->fits = layout->fits && count >= 0 && mlrt_size_mul((size_t)count, bytes, &size) &&
                   mlrt_size_add(size, ALIGN - 1, &size);
    size &= ~(size_t)(ALIGN - 1);
    size_t at = layout->used;
    layout->fits = layout->fits && mlrt_size_add(layout->used, size, &layout->used);
    return layout->base && layout->fits ? layout->base + at : NULL;
}

static int64_t chunks(const MlrtEngine *e) { return (e->model->trainable_count + CHUNK - 1) / CHUNK; }

static void take_ports(Layout *l, char **to, const MlrtPort *port, int count, int64_t batch)
{
    for (int i = 0; i < count && i < MLRT_PORTS; i++)
        to[i] = take(l, port[i].batched ? batch : 1, (size_t)port[i].bytes);
}

static int64_t totals(const MlrtModel *model)
{
    int64_t count = 1;                  // the loss is the first
    for (int i = 0; i < model->n_metrics; i++)
        count += mlrt_port_count(&model->output[model->metric[i].port]);
    return count;
}

// Floats behind the trained ones: buffers, and what is frozen.
static int64_t buffer_count(const MlrtModel *m) { return m->param_count - m->trainable_count; }

static void lay_out(MlrtEngine *e, Layout *l, char **arena, char **scratch)
{
    const MlrtModel *m = e->model;
    int64_t batch = m->recipe->batch;
    e->param = take(l, m->param_count, sizeof(float));
    e->grad = take(l, m->trainable_count, sizeof(float));
    e->state = take(l, m->trainable_count * m->n_states, sizeof(float));
    e->mean = take(l, m->recipe->ema > 0 ? m->param_count : 0, sizeof(float));
    *arena = take(l, 1, m->arena_bytes);
    *scratch = take(l, mlrt_pool_threads(e->pool), (m->scratch_bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1));
    take_ports(l, e->in, m->input, m->n_inputs + m->n_targets, batch);
    take_ports(l, e->train_out, m->train_output, m->n_train_outputs, batch);
    take_ports(l, e->eval_out, m->output, m->n_outputs, batch);
    e->kept = take(l, buffer_count(m), sizeof(float));
    e->partial = take(l, chunks(e) + 1, sizeof(double));
    e->hyper = take(l, (int64_t)m->recipe->n_groups * MLRT_HYPERS, sizeof(double));
    e->total = take(l, totals(m), sizeof(double));
    e->worker = take(l, mlrt_pool_threads(e->pool), sizeof(MlrtRun));
}

static void fill_worker(MlrtEngine *e, MlrtRun *run, char *arena, char *scratch)
{
    *run = (MlrtRun){.arena = arena, .param = (char *)e->param, .grad = (char *)e->grad, .state = (char *)e->state,
                     .scratch = scratch, .hyper = e->hyper};
    memcpy(run->in, e->in, sizeof run->in);
}

static bool fits_tables(const MlrtModel *m)
{
    return m->n_inputs + m->n_targets <= MLRT_PORTS && m->n_train_outputs <= MLRT_PORTS && m->n_train_outputs > 0 &&
           m->n_outputs <= MLRT_PORTS && m->n_metrics <= MLRT_PORTS && m->n_outputs > m->n_results;
}

MlrtStatus mlrt_engine_open(MlrtEngine *e, const MlrtModel *model, MlrtPool *pool, MlrtError *error)
{
    char *arena, *scratch;
    Layout measure = {NULL, 0, true};
    *e = (MlrtEngine){.model = model, .pool = pool};
    if (!fits_tables(model))
        return mlrt_fail(error, MLRT_INTERNAL, "%s: the tables of the program do not fit this runtime", model->path);
    lay_out(e, &measure, &arena, &scratch);
    e->bytes = measure.used;
    if (measure.fits && measure.used < PTRDIFF_MAX - ALIGN)
        e->block = calloc(1, measure.used + ALIGN);     // pages that are not touched cost nothing
    if (!e->block)
        return mlrt_fail_memory(error, measure.used, "parameters, activations and batches");
    Layout real = {e->block + (ALIGN - (uintptr_t)e->block % ALIGN) % ALIGN, 0, true};
    lay_out(e, &real, &arena, &scratch);
    size_t own = (model->scratch_bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    for (int w = 0; w < mlrt_pool_threads(pool); w++)
        fill_worker(e, &e->worker[w], arena, scratch + (size_t)w * own);
    e->shown = e->param;
    return MLRT_OK;
}

void mlrt_engine_close(MlrtEngine *e)
{
    free(e->block);
    *e = (MlrtEngine){0};
}

// --- running steps -----------------------------------------------------------------------------------------------------

typedef struct StepWork { MlrtEngine *engine; const MlrtStep *step; } StepWork;

static void run_part(void *context, int part, int worker)
{
    StepWork *work = context;
    work->step->run(&work->engine->worker[worker], part);
}

static void run_step(MlrtEngine *e, const MlrtStep *step)
{
    StepWork work = {e, step};
    mlrt_pool_run(e->pool, run_part, &work, step->parts);
}

static void run_section(MlrtEngine *e, const MlrtSection *section)
{
    for (int i = 0; i < section->count; i++)
        run_step(e, &section->step[i]);
}

static void prepare(MlrtEngine *e, const float *param, char *const *out, int64_t rows, uint64_t seed, uint64_t step)
{
    for (int w = 0; w < mlrt_pool_threads(e->pool); w++) {
        MlrtRun *run = &e->worker[w];
        memcpy(run->out, out, sizeof run->out);
        run->param = (char *)(uintptr_t)param;
        run->size[0] = rows;
        run->seed = seed;
        run->step = step;
    }
}

typedef struct Gather { MlrtEngine *engine; const MlrtDataset *data; const int64_t *row; int64_t rows; int ports; } Gather;

enum { GATHER_ROWS = 32 };

static void gather_part(void *context, int part, int worker)
{
    Gather *g = context;
    int64_t first = (int64_t)part * GATHER_ROWS, end = first + GATHER_ROWS < g->rows ? first + GATHER_ROWS : g->rows;
    (void)worker;
    for (int p = 0; p < g->ports; p++) {
        size_t bytes = (size_t)g->engine->model->input[p].bytes;
        for (int64_t i = first; i < end && g->data->port[p]; i++)
            memcpy(g->engine->in[p] + (size_t)i * bytes, g->data->port[p] + (size_t)g->row[i] * bytes, bytes);
    }
}

void mlrt_engine_gather(MlrtEngine *e, const MlrtDataset *data, const int64_t *row, int64_t rows)
{
    Gather g = {e, data, row, rows, e->model->n_inputs + e->model->n_targets};
    mlrt_pool_run(e->pool, gather_part, &g, (int)((rows + GATHER_ROWS - 1) / GATHER_ROWS));
}

static double read_value(const MlrtPort *port, const char *at, int64_t i)
{
    if (strcmp(port->type, "f32") == 0)
        return ((const float *)at)[i];
    if (strcmp(port->type, "f64") == 0)
        return ((const double *)at)[i];
    if (strcmp(port->type, "i64") == 0)
        return (double)((const int64_t *)at)[i];
    if (strcmp(port->type, "i32") == 0)
        return ((const int32_t *)at)[i];
    return ((const uint8_t *)at)[i];
}

double mlrt_engine_train(MlrtEngine *e, int64_t rows, uint64_t seed, uint64_t step)
{
    prepare(e, e->param, e->train_out, rows, seed, step);
    run_section(e, &e->model->train);
    return read_value(&e->model->train_output[0], e->train_out[0], 0);
}

void mlrt_engine_eval(MlrtEngine *e, int64_t rows, uint64_t seed)
{
    prepare(e, e->shown, e->eval_out, rows, seed, 0);
    run_section(e, &e->model->eval);
}

// --- the average of the weights ----------------------------------------------------------------------------------------

// The state of this name, or -1.
static int state_find(const MlrtModel *model, const char *name)
{
    int s = 0;
    while (s < model->n_states && strcmp(model->state[s], name) != 0)
        s++;
    return s < model->n_states ? s : -1;
}

void mlrt_engine_show(MlrtEngine *e, bool average)
{
    const MlrtModel *m = e->model;
    int s = m->recipe->ema > 0 && average ? state_find(m, "average") : -1;
    e->shown = e->param;
    if (s < 0)
        return;
    memcpy(e->mean, e->param, (size_t)m->param_count * sizeof *e->mean);        // buffers and what is frozen are as they are
    memcpy(e->mean, e->state + s * m->trainable_count, (size_t)m->trainable_count * sizeof *e->mean);
    e->shown = e->mean;
}

// --- gradients ---------------------------------------------------------------------------------------------------------

static int64_t chunk_end(const MlrtEngine *e, int part)
{
    int64_t end = ((int64_t)part + 1) * CHUNK;
    return end < e->model->trainable_count ? end : e->model->trainable_count;
}

// Compiled for several instruction sets, of which the best is taken when the program starts: all give the same bits.
// (Sanitizers cannot run the code that chooses.)
#if defined(__x86_64__) && defined(__linux__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif

enum { SUMS = 32 };     // side by side, for vectors

CLONES static double sum_squares(const float *x, int64_t n)
{
    double sum[SUMS] = {0};
    int64_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (int k = 0; k < SUMS; k++)
            sum[k] += (double)x[i + k] * (double)x[i + k];
    for (; i < n; i++)
        sum[0] += (double)x[i] * (double)x[i];
    for (int half = SUMS / 2; half > 0; half /= 2)
        for (int k = 0; k < half; k++)
            sum[k] += sum[k + half];
    return sum[0];
}

static void squares_part(void *context, int part, int worker)
{
    MlrtEngine *e = context;
    int64_t from = (int64_t)part * CHUNK;
    (void)worker;
    e->partial[part] = sum_squares(e->grad + from, chunk_end(e, part) - from);
}

typedef struct Scale { MlrtEngine *engine; float factor, bound; } Scale;

static void scale_part(void *context, int part, int worker)
{
    Scale *s = context;
    int64_t end = chunk_end(s->engine, part);
    (void)worker;
    for (int64_t i = (int64_t)part * CHUNK; i < end; i++)
        s->engine->grad[i] *= s->factor;
}

static void bound_part(void *context, int part, int worker)
{
    Scale *s = context;
    int64_t end = chunk_end(s->engine, part);
    (void)worker;
    for (int64_t i = (int64_t)part * CHUNK; i < end; i++)
        s->engine->grad[i] = fminf(fmaxf(s->engine->grad[i], -s->bound), s->bound);
}

// As torch.nn.utils.clip_grad_norm_ and clip_grad_value_.
double mlrt_engine_clip(MlrtEngine *e, const MlrtRecipe *recipe)
{
    double sum = 0;
    int parts = (int)chunks(e);
    mlrt_pool_run(e->pool, squares_part, e, parts);
    for (int i = 0; i < parts; i++)
        sum += e->partial[i];
    double norm = sqrt(sum), factor = recipe->clip_at / (norm + 1e-6);
    Scale scale = {e, (float)factor, (float)recipe->clip_at};
    if (isfinite(norm) && recipe->clip == 1 && factor < 1)
        mlrt_pool_run(e->pool, scale_part, &scale, parts);
    if (isfinite(norm) && recipe->clip == 2)
        mlrt_pool_run(e->pool, bound_part, &scale, parts);
    return norm;
}

static bool is_optimizer(const MlrtStep *step) { return strcmp(step->layer, "optimizer") == 0; }

static bool update_buffers(MlrtEngine *e)
{
    const MlrtSection *update = &e->model->update;
    float *buffers = e->param + e->model->trainable_count;
    int64_t count = buffer_count(e->model);
    memcpy(e->kept, buffers, (size_t)count * sizeof *buffers);
    for (int i = 0; i < update->count; i++)
        if (!is_optimizer(&update->step[i]))
            run_step(e, &update->step[i]);
    bool finite = mlrt_all_finite(buffers, count);
    if (!finite)
        memcpy(buffers, e->kept, (size_t)count * sizeof *buffers);
    return finite;
}

bool mlrt_engine_update(MlrtEngine *e, const MlrtRecipe *recipe, double factor)
{
    const MlrtSection *update = &e->model->update;
    for (int g = 0; g < recipe->n_groups; g++) {
        memcpy(e->hyper + g * MLRT_HYPERS, recipe->group + g * MLRT_HYPERS, MLRT_HYPERS * sizeof(double));
        e->hyper[g * MLRT_HYPERS] *= factor;
    }
    e->hyper[MLRT_EMA] = recipe->ema;
    if (!update_buffers(e))
        return false;
    for (int i = 0; i < update->count; i++)
        if (is_optimizer(&update->step[i]))
            run_step(e, &update->step[i]);
    return true;
}

// --- what is not finite ------------------------------------------------------------------------------------------------

bool mlrt_all_finite(const float *values, int64_t count)
{
    bool finite = true;
    for (int64_t i = 0; i < count && finite; i += 4096) {
        int64_t end = i + 4096 < count ? i + 4096 : count;
        for (int64_t k = i; k < end; k++)
            finite &= fabsf(values[k]) <= FLT_MAX;
    }
    return finite;
}

// A step's result is looked at as soon as it is there, for its memory is used again later. Steps without a place in the arena
// write gradients or outputs.
// `rows` of a smaller last batch fill only the beginning of a result that has a row for each sample.
static bool step_is_finite(const MlrtEngine *e, const MlrtStep *step, bool whole)
{
    const MlrtPort *loss = &e->model->train_output[0];
    int64_t batch = e->model->recipe->batch, rows = e->worker[0].size[0];
    int64_t count = whole || step->count % batch != 0 ? step->count : step->count / batch * rows;
    if (step->count > 0)
        return mlrt_all_finite((const float *)(const void *)(e->worker[0].arena + step->offset), count);
    return mlrt_all_finite(e->grad, e->model->trainable_count) && isfinite(read_value(loss, e->train_out[0], 0));
}

static const MlrtStep *find_nonfinite(MlrtEngine *e, bool whole)
{
    memset(e->grad, 0, (size_t)e->model->trainable_count * sizeof *e->grad);
    memset(e->train_out[0], 0, (size_t)e->model->train_output[0].bytes);
    for (int i = 0; i < e->model->train.count; i++) {
        run_step(e, &e->model->train.step[i]);
        if (!step_is_finite(e, &e->model->train.step[i], whole))
            return &e->model->train.step[i];
    }
    return NULL;
}

const MlrtStep *mlrt_engine_find_nonfinite(MlrtEngine *e)
{
    const MlrtStep *found = find_nonfinite(e, false);
    return found ? found : find_nonfinite(e, true);
}

// --- evaluation --------------------------------------------------------------------------------------------------------

static void add_values(const MlrtPort *port, const char *at, double weight, double *total)
{
    int64_t count = mlrt_port_count(port);
    for (int64_t i = 0; i < count; i++)
        total[i] += weight * read_value(port, at, i);
}

static void add_batch(MlrtEngine *e, int64_t rows)
{
    const MlrtModel *m = e->model;
    double *total = e->total;
    add_values(&m->output[m->n_results], e->eval_out[m->n_results], (double)rows, total++);
    for (int i = 0; i < m->n_metrics; i++) {
        int port = m->metric[i].port;
        add_values(&m->output[port], e->eval_out[port], m->metric[i].sum ? 1 : (double)rows, total);
        total += mlrt_port_count(&m->output[port]);
    }
}

const double *mlrt_engine_total(const MlrtEngine *e, int metric, int64_t *count)
{
    const double *total = e->total + 1;
    for (int i = 0; i < metric; i++)
        total += mlrt_port_count(&e->model->output[e->model->metric[i].port]);
    *count = mlrt_port_count(&e->model->output[e->model->metric[metric].port]);
    return total;
}

static void finish(MlrtEngine *e, MlrtScores *scores)
{
    const MlrtModel *m = e->model;
    double rows = (double)scores->rows;
    scores->loss = e->total[0] / rows;
    for (int i = 0; i < m->n_metrics; i++) {
        int64_t count;
        double *total = e->total + (mlrt_engine_total(e, i, &count) - e->total);
        for (int64_t k = 0; k < count && !m->metric[i].sum; k++)
            total[k] /= rows;
        scores->metric[i] = mlrt_metric_finish(&m->metric[i], &m->output[m->metric[i].port], total);
    }
}

void mlrt_engine_score(MlrtEngine *e, const MlrtDataset *data, const MlrtPart *part, int64_t batch, uint64_t seed,
                       MlrtScores *scores)
{
    *scores = (MlrtScores){.rows = part->rows};
    memset(e->total, 0, (size_t)totals(e->model) * sizeof *e->total);
    for (int64_t at = 0; at < part->rows; at += batch) {
        int64_t rows = part->rows - at < batch ? part->rows - at : batch;
        mlrt_engine_gather(e, data, part->row + at, rows);
        mlrt_engine_eval(e, rows, seed);
        add_batch(e, rows);
    }
    finish(e, scores);
}
