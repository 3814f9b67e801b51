// loop.c: training. A step is: gather a batch, forward and backward, look at loss and gradients, clip, update. Nothing is
// allocated between two steps.
//
// The order of an epoch is a function of the seed and the epoch's number, so that the place in it is one integer. `last` is
// saved at each evaluation, at the interval of `save`, and when stopped; whatever happens in between is done again.
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "random.h"
#include "trainer.h"

typedef struct Loop {
    MlrtSession *s;
    MlrtError   *error;
    int64_t      evaluate_every, save_every, log_every;     // in steps; 0: not by steps
    double       evaluate_seconds, save_seconds;            // 0: not by time
    double       evaluated, saved, reported;                // when it was done last
    int64_t      saved_step;                                // that the newest checkpoint is of, -1: none yet
    int64_t      rows;                                      // of the batch in work
    double       loss, lr, norm;
    double       begun, seconds_before;                     // clock at the start; s->seconds then
    bool         stop;
} Loop;

// --- signals -----------------------------------------------------------------------------------------------------------

static volatile sig_atomic_t signals_seen;

static void on_signal(int number)
{
    (void)number;
    if (signals_seen++ > 0)
        _exit(130);
}

static void watch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

// --- the order of samples ----------------------------------------------------------------------------------------------

static void order_epoch(MlrtSession *s)
{
    const MlrtPart *part = &s->data.part[MLRT_TRAIN];
    if (s->sampler.sum) {
        mlrt_sampler_draw(&s->sampler, part, (uint64_t)s->state.seed, s->state.epoch, s->order);
        return;
    }
    memcpy(s->order, part->row, (size_t)part->rows * sizeof *s->order);
    if (s->settings.recipe.shuffle)
        mlrt_random_order(s->order, part->rows, (uint64_t)s->state.seed, mlrt_hash_text("order") + (uint64_t)s->state.epoch);
}

// Samples of the next batch; 0: the epoch is over.
static int64_t next_rows(const MlrtSession *s)
{
    int64_t batch = s->settings.recipe.batch, left = s->data.part[MLRT_TRAIN].rows - s->state.position;
    return left >= batch ? batch : s->settings.recipe.drop_last ? 0 : left;
}

static void next_epoch(Loop *l)
{
    MlrtSession *s = l->s;
    s->state.epoch++;
    s->state.position = 0;
    order_epoch(s);
    mlrt_progress_epoch(&s->progress, s->state.step);
}

// --- saving ------------------------------------------------------------------------------------------------------------

static MlrtSaved saved_of(const MlrtSession *s) { return (MlrtSaved){&s->engine, &s->data, &s->settings, &s->state}; }

static void note_time(Loop *l) { l->s->seconds = l->seconds_before + (mlrt_clock_now() - l->begun); }

static MlrtStatus save_last(Loop *l)
{
    MlrtSession *s = l->s;
    note_time(l);
    MlrtSaved what = saved_of(s);
    MlrtStatus status = mlrt_checkpoint_save(mlrt_folder_file(&s->folder, "weights/last.safetensors").text, &what, l->error);
    if (status == MLRT_OK) {
        l->saved = mlrt_clock_now();
        l->saved_step = s->state.step;
    }
    return status;
}

// Between evaluations the time is noted as well, in the log: a session that goes on reads it there.
static MlrtStatus save_between(Loop *l)
{
    note_time(l);
    MlrtStatus status = mlrt_log_line(&l->s->folder.log, l->error, "{\"step\":%" PRId64 ",\"seconds\":%.3f}", l->s->state.step,
                                      l->s->seconds);
    return status == MLRT_OK ? save_last(l) : status;
}

static MlrtStatus save_best(Loop *l)
{
    MlrtSaved what = saved_of(l->s);
    return mlrt_weights_save(mlrt_folder_file(&l->s->folder, "weights/best.safetensors").text, &what, l->error);
}

static MlrtStatus save_kept(Loop *l)
{
    char name[64];
    int count = l->s->settings.recipe.keep_last;
    if (count <= 0)
        return MLRT_OK;
    MlrtSaved what = saved_of(l->s);
    snprintf(name, sizeof name, "weights/step-%08" PRId64 ".safetensors", l->s->state.step);
    MlrtStatus status = mlrt_weights_save(mlrt_folder_file(&l->s->folder, name).text, &what, l->error);
    mlrt_folder_thin(&l->s->folder, count);
    return status;
}

// --- logs --------------------------------------------------------------------------------------------------------------

typedef struct Json { char text[40]; } Json;

static Json json(double value)          // JSON has no word for what is not finite
{
    Json number;
    snprintf(number.text, sizeof number.text, isfinite(value) ? "%.9g" : "null", value);
    return number;
}

static MlrtStatus log_step(Loop *l)
{
    MlrtSession *s = l->s;
    MlrtStatus status = MLRT_OK;
    if (s->folder.trace.descriptor >= 0)
        status = mlrt_log_line(&s->folder.trace, l->error, "{\"step\":%" PRId64 ",\"loss\":%s,\"lr\":%s}", s->state.step,
                               json(l->loss).text, json(l->lr).text);
    if (status == MLRT_OK && (s->state.step % l->log_every == 0 || s->state.step == 1))
        status = mlrt_log_line(&s->folder.log, l->error,
                               "{\"step\":%" PRId64 ",\"epoch\":%" PRId64 ",\"loss\":%s,\"lr\":%s,\"grad\":%s}", s->state.step,
                               s->state.epoch + 1, json(l->loss).text, json(l->lr).text, json(l->norm).text);
    return status;
}

static size_t append(char *line, size_t size, size_t used, const char *format, ...) __attribute__((format(printf, 4, 5)));
static size_t append(char *line, size_t size, size_t used, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line + used, size - used, format, args);
    va_end(args);
    return length < 0 ? used : used + (size_t)length < size ? used + (size_t)length : size - 1;
}

static double exact_epoch(const MlrtSession *s)
{
    return (double)s->state.epoch + (double)s->state.position / (double)s->data.part[MLRT_TRAIN].rows;
}

static MlrtStatus log_evaluation(Loop *l, double train_loss, const MlrtScores *scores, bool scored)
{
    MlrtSession *s = l->s;
    char line[4096], csv[4096];
    size_t used = append(line, sizeof line, 0, "{\"step\":%" PRId64 ",\"train_loss\":%s", s->state.step, json(train_loss).text);
    size_t wide = append(csv, sizeof csv, 0, "%" PRId64 ",%.6g,%.9g,%.9g,%.9g", s->state.step, exact_epoch(s), l->lr, train_loss,
                         scored ? scores->loss : NAN);
    if (scored)
        used = append(line, sizeof line, used, ",\"valid_loss\":%s", json(scores->loss).text);
    for (int i = 0; i < s->model->n_metrics; i++) {
        if (strcmp(s->model->metric[i].finish, "confusion") == 0)
            continue;
        if (scored)
            used = append(line, sizeof line, used, ",\"valid_%s\":%s", s->model->metric[i].name, json(scores->metric[i]).text);
        wide = append(csv, sizeof csv, wide, ",%.9g", scored ? scores->metric[i] : NAN);
    }
    MlrtStatus status = mlrt_log_line(&s->folder.log, l->error, "%s,\"seconds\":%.3f}", line, s->seconds);
    return status == MLRT_OK ? mlrt_log_line(&s->folder.metrics, l->error, "%s,%.3f", csv, s->seconds) : status;
}

// --- evaluation --------------------------------------------------------------------------------------------------------

static int metric_find(const MlrtModel *model, const char *name)
{
    int i = 0;
    while (i < model->n_metrics && strcmp(model->metric[i].name, name) != 0)
        i++;
    return i < model->n_metrics ? i : -1;
}

static bool is_loss(const char *name) { return !name || strcmp(name, "loss") == 0; }

static double value_by(const MlrtSession *s, const char *name, double train_loss, const MlrtScores *scores, bool scored)
{
    int metric = is_loss(name) ? -1 : metric_find(s->model, name);
    if (metric >= 0)
        return scored ? scores->metric[metric] : NAN;
    return scored ? scores->loss : train_loss;
}

// Without a validation part the training part is scored, but only if a rule asks for a metric.
static const MlrtPart *part_to_score(const MlrtSession *s)
{
    const MlrtRecipe *r = &s->settings.recipe;
    const MlrtSchedule *last = r->n_schedule > 0 ? &r->schedule[r->n_schedule - 1] : NULL;
    bool metric = !is_loss(r->keep_by) || (last && last->by && !is_loss(last->by)) || (r->stop_after.unit != MLRT_NONE && !is_loss(r->stop_by));
    if (s->data.part[MLRT_VALID].rows > 0)
        return &s->data.part[MLRT_VALID];
    return metric ? &s->data.part[MLRT_TRAIN] : NULL;
}

// As ReduceLROnPlateau: one more cut when more than `patience` evaluations in a row were no better.
static void judge_plateau(Loop *l, double train_loss, const MlrtScores *scores, bool scored)
{
    MlrtSession *s = l->s;
    const MlrtRecipe *r = &s->settings.recipe;
    const MlrtSchedule *plateau = mlrt_schedule_plateau(r->schedule, r->n_schedule, &s->clock, s->state.step);
    if (!plateau)
        return;
    double value = value_by(s, plateau->by, train_loss, scores, scored);
    if (mlrt_plateau_better(plateau, value, s->state.plateau_step ? s->state.plateau_best : NAN)) {
        s->state.plateau_best = value;
        s->state.plateau_step = s->state.step;
        s->state.plateau_bad = 0;
    } else if ((double)++s->state.plateau_bad > plateau->arg[1]) {
        s->state.plateau_bad = 0;
        s->state.plateau_cuts++;
    }
    s->clock.cuts = s->state.plateau_cuts;
}

static MlrtStatus judge(Loop *l, double train_loss, const MlrtScores *scores, bool scored, bool *is_best)
{
    MlrtSession *s = l->s;
    const MlrtRecipe *r = &s->settings.recipe;
    double value = value_by(s, r->keep_by, train_loss, scores, scored);
    *is_best = mlrt_is_better(value, s->state.best_step ? s->state.best : NAN, is_loss(r->keep_by) ? -1 : r->keep_better);
    if (*is_best) {
        s->state.best = value;
        s->state.best_step = s->state.step;
        s->state.best_epoch = s->state.epoch;
    }
    value = value_by(s, r->stop_by, train_loss, scores, scored);
    if (mlrt_is_better(value, s->state.stop_step ? s->state.stop_best : NAN, is_loss(r->stop_by) ? -1 : r->stop_better)) {
        s->state.stop_best = value;
        s->state.stop_step = s->state.step;
    }
    int64_t patience = mlrt_duration_steps(r->stop_after, &s->clock, INT64_MAX);
    if (r->stop_after.unit != MLRT_NONE && s->state.step - s->state.stop_step >= patience)
        l->stop = true;
    return *is_best ? save_best(l) : MLRT_OK;
}

static void show_evaluation(Loop *l, double train_loss, const MlrtScores *scores, bool scored, bool is_best)
{
    MlrtSession *s = l->s;
    char line[1024];
    size_t used = append(line, sizeof line, 0, "epoch %.4g  step %s  train loss %s", exact_epoch(s),
                         mlrt_text_count(s->state.step).text, mlrt_text_score(train_loss).text);
    if (scored)
        used = append(line, sizeof line, used, "  valid loss %s", mlrt_text_score(scores->loss).text);
    for (int i = 0; i < s->model->n_metrics && scored; i++)
        if (isfinite(scores->metric[i]))
            used = append(line, sizeof line, used, "  %s %s", s->model->metric[i].name, mlrt_text_score(scores->metric[i]).text);
    mlrt_progress_line(&s->progress, "%s  %s%s", line, mlrt_text_time(s->seconds).text, is_best ? "  best" : "");
}

// Pictures are for people: every two seconds will do.
static MlrtStatus report_now_and_then(Loop *l)
{
    MlrtSession *s = l->s;
    double now = mlrt_clock_now();
    if (now - l->reported < 2)
        return MLRT_OK;
    l->reported = now;
    return mlrt_report_html(&s->folder, &s->engine, &s->data, &s->settings, NULL, l->error);
}

static MlrtStatus evaluate(Loop *l)
{
    MlrtSession *s = l->s;
    MlrtScores scores = {0};
    bool is_best = false;
    const MlrtPart *part = part_to_score(s);
    double train_loss = s->state.loss_rows ? s->state.loss_sum / (double)s->state.loss_rows : NAN;
    mlrt_engine_show(&s->engine, s->state.step > 0);
    if (part)
        mlrt_engine_score(&s->engine, &s->data, part, s->settings.recipe.batch, (uint64_t)s->state.seed, &scores);
    note_time(l);
    s->state.loss_sum = 0;
    s->state.loss_rows = 0;
    MlrtStatus status = log_evaluation(l, train_loss, &scores, part != NULL);
    if (status == MLRT_OK)
        status = judge(l, train_loss, &scores, part != NULL, &is_best);
    if (status == MLRT_OK)
        judge_plateau(l, train_loss, &scores, part != NULL);
    if (status == MLRT_OK)
        status = save_kept(l);
    if (status == MLRT_OK)
        status = save_last(l);
    if (status == MLRT_OK)
        status = report_now_and_then(l);
    show_evaluation(l, train_loss, &scores, part != NULL, is_best);
    l->evaluated = mlrt_clock_now();
    return status;
}

// --- one step ----------------------------------------------------------------------------------------------------------

// The parameters are still those before the step: they are saved, and the culprit is looked for.
static MlrtStatus diverged(Loop *l)
{
    MlrtSession *s = l->s;
    int64_t step = s->state.step + 1;
    const MlrtStep *culprit = mlrt_engine_find_nonfinite(&s->engine);
    bool buffers = !culprit && isfinite(l->loss) && isfinite(l->norm);
    const char *layer = culprit && culprit->layer && *culprit->layer ? culprit->layer : buffers ? "the buffers" : "the loss";
    const char *what = culprit && culprit->op ? culprit->op : buffers ? "running statistics" : "sum of the gradients' squares";
    bool good = mlrt_all_finite(s->engine.param, s->model->param_count);
    if (good)
        good = save_between(l) == MLRT_OK;
    return mlrt_fail(l->error, MLRT_DIVERGED,
                     "step %" PRId64 ": %s (%s) gave a value that is not finite (loss %g, gradient norm %g, lr %.3g); "
                     "%s are in %s/weights; try a lower optimizer.lr, or clip=norm(1)",
                     step, layer, what, l->loss, l->norm, l->lr,
                     good ? "the weights before this step" : "the last good weights", s->folder.path);
}

static MlrtStatus step(Loop *l)
{
    MlrtSession *s = l->s;
    const MlrtRecipe *r = &s->settings.recipe;
    double before = mlrt_clock_now();
    mlrt_engine_gather(&s->engine, &s->data, s->order + s->state.position, l->rows);
    s->progress.waited += mlrt_clock_now() - before;
    double factor = mlrt_schedule_factor(r->schedule, r->n_schedule, &s->clock, r->group[0], s->state.step);
    l->lr = r->group[0] * factor;
    l->loss = mlrt_engine_train(&s->engine, l->rows, (uint64_t)s->state.seed, (uint64_t)s->state.step + 1);
    l->norm = mlrt_engine_clip(&s->engine, r);
    if (!isfinite(l->loss) || !isfinite(l->norm))
        return diverged(l);
    if (!mlrt_engine_update(&s->engine, r, factor))
        return diverged(l);
    s->state.step++;
    s->state.position += l->rows;
    s->state.loss_sum += l->loss * (double)l->rows;
    s->state.loss_rows += l->rows;
    return log_step(l);
}

static void show_step(Loop *l)
{
    MlrtSession *s = l->s;
    int64_t in_epoch = (s->state.position + s->settings.recipe.batch - 1) / s->settings.recipe.batch;
    int64_t epochs = (s->clock.all_steps + s->clock.epoch_steps - 1) / s->clock.epoch_steps;
    MlrtMoment moment = {s->state.step, s->clock.all_steps, in_epoch, s->clock.epoch_steps, s->state.epoch + 1, epochs,
                         l->loss, l->lr, l->norm, l->rows};
    mlrt_progress_step(&s->progress, &moment);
}

// --- the loop ----------------------------------------------------------------------------------------------------------

static bool is_due(int64_t step, int64_t every, double last, double seconds)
{
    return (every > 0 && step % every == 0) || (seconds > 0 && mlrt_clock_now() - last >= seconds);
}

static MlrtStatus after_step(Loop *l)
{
    MlrtSession *s = l->s;
    MlrtStatus status = MLRT_OK;
    if (next_rows(s) == 0)
        next_epoch(l);
    show_step(l);
    if (s->state.step >= s->clock.all_steps || is_due(s->state.step, l->evaluate_every, l->evaluated, l->evaluate_seconds))
        status = evaluate(l);
    else if (is_due(s->state.step, l->save_every, l->saved, l->save_seconds))
        status = save_between(l);
    return status;
}

static MlrtStatus stopped(Loop *l)
{
    MlrtSession *s = l->s;
    MlrtStatus status = l->saved_step == s->state.step ? MLRT_OK : save_between(l);
    if (status != MLRT_OK)
        return status;
    return mlrt_fail(l->error, MLRT_STOPPED,
                     "at step %" PRId64 " of %" PRId64 "; everything is saved, go on with: %s --resume %s", s->state.step,
                     s->clock.all_steps, s->argv[0], s->folder.path);
}

static MlrtStatus run(Loop *l)
{
    MlrtSession *s = l->s;
    MlrtStatus status = MLRT_OK;
    order_epoch(s);
    if (next_rows(s) == 0)
        next_epoch(l);
    while (status == MLRT_OK && s->state.step < s->clock.all_steps && !l->stop) {
        l->rows = next_rows(s);
        status = step(l);
        if (status == MLRT_OK)
            status = after_step(l);
        if (status == MLRT_OK && signals_seen && s->state.step < s->clock.all_steps)
            return stopped(l);
    }
    return status;
}

static void set_interval(MlrtDuration duration, const MlrtClock *clock, int64_t *every, double *seconds)
{
    *seconds = duration.unit == MLRT_SECONDS ? duration.amount : 0;
    *every = duration.unit == MLRT_SECONDS || duration.unit == MLRT_NONE ? 0 : mlrt_duration_steps(duration, clock, 0);
}

static Loop loop_of(MlrtSession *s, MlrtError *error)
{
    Loop l = {.s = s, .error = error, .saved_step = -1, .begun = mlrt_clock_now(), .seconds_before = s->seconds};
    const MlrtRecipe *r = &s->settings.recipe;
    MlrtDuration epoch = {1, MLRT_EPOCHS};
    set_interval(r->evaluate.unit == MLRT_NONE ? epoch : r->evaluate, &s->clock, &l.evaluate_every, &l.evaluate_seconds);
    set_interval(r->save, &s->clock, &l.save_every, &l.save_seconds);
    l.log_every = s->clock.all_steps / 4000 + 1;
    l.evaluated = l.saved = l.begun;
    return l;
}

// --- begin and end -----------------------------------------------------------------------------------------------------

static MlrtStatus prepare(MlrtSession *s, MlrtError *error)
{
    const MlrtRecipe *r = &s->settings.recipe;
    int64_t rows = s->data.part[MLRT_TRAIN].rows;
    if (s->model->trainable_count == 0)
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s has no parameters that training could change", s->model->path);
    if (rows == 0)
        return mlrt_fail(error, MLRT_BAD_INPUT, "the training part is empty; all %" PRId64 " samples are given to other parts",
                         s->data.rows);
    if (rows < r->batch)
        return mlrt_fail(error, MLRT_BAD_INPUT,
                         "a batch of %" PRId64 " is larger than the training part (%" PRId64 " samples); --batch %" PRId64
                         " at most",
                         r->batch, rows, rows);
    int64_t most = (int64_t)1 << 50;     // no run gets there
    if (s->state.position < 0 || s->state.position > rows || s->state.epoch < 0 || s->state.epoch > most || s->state.step < 0 ||
        s->state.step > most)
        return mlrt_fail(error, MLRT_BAD_FILE,
                         "%s: its state makes no sense: step %" PRId64 ", epoch %" PRId64 ", sample %" PRId64, s->weights_path,
                         s->state.step, s->state.epoch, s->state.position);
    s->clock.epoch_steps = r->drop_last ? rows / r->batch : (rows + r->batch - 1) / r->batch;
    double steps = r->steps > 0 ? (double)r->steps : r->epochs * (double)s->clock.epoch_steps;
    if (!(steps < 1e15))
        return mlrt_fail(error, MLRT_BAD_INPUT, "%g steps are more than can be counted", steps);
    s->clock.all_steps = steps < 1 ? 1 : (int64_t)(steps + 0.5);
    s->clock.cuts = s->state.plateau_cuts;
    s->order = mlrt_alloc_array((size_t)rows, sizeof *s->order);
    if (!s->order)
        return mlrt_fail_memory(error, (size_t)rows * sizeof *s->order, "order of samples");
    return mlrt_sampler_open(&s->sampler, &s->data, r, error);
}

static MlrtStatus open_folder(MlrtSession *s, MlrtError *error)
{
    const MlrtOptions *o = &s->options;
    MlrtStatus status = MLRT_OK;
    if (!o->resume.given)
        status = mlrt_folder_make(&s->folder, s->model, o->run.text, error);
    if (status == MLRT_OK && o->resume.given) {
        mlrt_file_remove_stale(mlrt_folder_file(&s->folder, "weights/last.safetensors").text);
        mlrt_file_remove_stale(mlrt_folder_file(&s->folder, "weights/best.safetensors").text);
    }
    if (status == MLRT_OK)
        status = mlrt_folder_describe(&s->folder, &s->settings, mlrt_pool_threads(s->pool), s->argc, s->argv, error);
    if (status == MLRT_OK && !o->resume.given)
        status = mlrt_folder_split(&s->folder, &s->data, error);
    return status == MLRT_OK ? mlrt_folder_open_logs(&s->folder, s->model, s->state.step, o->log.text, &s->seconds, error) : status;
}

// best, last, the kept ones, and one that is being written beside them.
static double disk_bytes(const MlrtSession *s)
{
    double params = (double)s->model->param_count, states = (double)s->model->trainable_count * s->model->n_states;
    return 4 * (params * (3 + s->settings.recipe.keep_last) + 2 * states);
}

static void show_start(MlrtSession *s)
{
    const MlrtPart *part = s->data.part;
    mlrt_progress_line(&s->progress, "%s: %s", s->model->name, s->model->summary);
    mlrt_progress_line(&s->progress, "%s samples to train, %s to validate, %s to test; %s of memory; %d threads; %s",
                       mlrt_text_count(part[MLRT_TRAIN].rows).text, mlrt_text_count(part[MLRT_VALID].rows).text,
                       mlrt_text_count(part[MLRT_TEST].rows).text, mlrt_text_bytes((double)s->engine.bytes).text,
                       mlrt_pool_threads(s->pool), s->folder.path);
    mlrt_progress_line(&s->progress, "%s steps; weights and checkpoints take %s of disk at most",
                       mlrt_text_count(s->clock.all_steps).text, mlrt_text_bytes(disk_bytes(s)).text);
    s->progress.begun = mlrt_clock_now();
    s->progress.first_step = s->state.step;
    if (s->state.step > 0)
        mlrt_progress_line(&s->progress, "going on behind step %" PRId64 " of %" PRId64, s->state.step, s->clock.all_steps);
}

static MlrtStatus load_best(MlrtSession *s, MlrtError *error)
{
    char prefix[64];
    MlrtTensors best;
    MlrtPath path = mlrt_folder_file(&s->folder, "weights/best.safetensors");
    MlrtStatus status = mlrt_safetensors_open(path.text, &best, error);
    if (status != MLRT_OK)
        return status;
    status = mlrt_weights_load(&best, &s->engine, prefix, error);
    mlrt_safetensors_close(&best);
    mlrt_engine_show(&s->engine, false);
    return status;
}

static void show_end(const MlrtSession *s, const MlrtResult *result, const char *last_digest)
{
    const MlrtRecipe *r = &s->settings.recipe;
    char best_digest[33];
    mlrt_weights_digest(&s->engine, best_digest);
    printf("%s: %s steps, %.4g epochs in %s\n", s->model->name, mlrt_text_count(s->state.step).text, exact_epoch(s),
           mlrt_text_time(s->seconds).text);
    if (s->state.best_step)
        printf("best at epoch %" PRId64 ", step %s, by %s: %.6g\n", s->state.best_epoch, mlrt_text_count(s->state.best_step).text,
               is_loss(r->keep_by) ? "loss" : r->keep_by, s->state.best);
    putchar('\n');
    mlrt_report_table(stdout, &s->engine, &s->data, result);
    if (s->state.best_step)
        printf("\n  best weights  %s  digest %s", mlrt_folder_file(&s->folder, "weights/best.safetensors").text, best_digest);
    printf("\n  last          %s  digest %s\n", mlrt_folder_file(&s->folder, "weights/last.safetensors").text, last_digest);
    printf("  report        %s\n", mlrt_folder_file(&s->folder, "report.html").text);
}

static MlrtStatus write_reports(MlrtSession *s, const MlrtResult *result, MlrtError *error)
{
    MlrtStatus status = mlrt_report_html(&s->folder, &s->engine, &s->data, &s->settings, result, error);
    if (status == MLRT_OK)
        status = mlrt_report_card(&s->folder, &s->engine, &s->data, &s->settings, &s->state, s->seconds, result, error);
    return status;
}

// The last weights are saved for good, then everything is scored with the best ones.
static MlrtStatus finish(Loop *l)
{
    MlrtSession *s = l->s;
    MlrtResult result;
    char last_digest[33];
    MlrtStatus status = MLRT_OK;
    mlrt_progress_end(&s->progress);
    if (l->stop)
        mlrt_progress_line(&s->progress, "no better for long enough: ended at step %" PRId64, s->state.step);
    s->state.ended = 1;
    status = save_last(l);
    mlrt_weights_digest(&s->engine, last_digest);
    mlrt_engine_show(&s->engine, true);
    MlrtSaved what = saved_of(s);
    if (status == MLRT_OK && s->options.save.given)
        status = mlrt_weights_save(s->options.save.text, &what, l->error);
    if (status == MLRT_OK && s->state.best_step)
        status = load_best(s, l->error);
    if (status != MLRT_OK)
        return status;
    mlrt_score_all(s, &result);
    status = write_reports(s, &result, l->error);
    if (status == MLRT_OK)
        show_end(s, &result, last_digest);
    return status;
}

// What a failure in the middle leaves behind is worth a word.
static void name_checkpoint(const Loop *l, MlrtStatus status)
{
    MlrtPath path = mlrt_folder_file(&l->s->folder, "weights/last.safetensors");
    if (status == MLRT_OK || status == MLRT_STOPPED || status == MLRT_DIVERGED || access(path.text, F_OK) != 0)
        return;
    mlrt_say(&l->s->progress, l->s->argv[0], "note",
             "training ended at step %" PRId64 "; the last good checkpoint is %s; go on with --resume %s", l->s->state.step,
             path.text, l->s->folder.path);
}

MlrtStatus mlrt_train(MlrtSession *s, MlrtError *error)
{
    MlrtStatus status = prepare(s, error);
    if (status == MLRT_OK && s->options.resume.given && s->state.ended && s->state.step >= s->clock.all_steps)
        return mlrt_fail(error, MLRT_BAD_USAGE,
                         "%s has done all its %" PRId64 " steps; to train longer: --resume %s --epochs N", s->folder.path,
                         s->state.step, s->folder.path);
    if (status == MLRT_OK)
        status = open_folder(s, error);
    if (status != MLRT_OK)
        return status;
    s->state.ended = 0;
    s->state.shuffle = s->settings.recipe.shuffle;
    s->state.batch = s->settings.recipe.batch;
    show_start(s);
    Loop l = loop_of(s, error);
    l.saved_step = s->options.resume.given ? s->state.step : -1;
    watch_signals();
    mlrt_progress_epoch(&s->progress, s->state.step);
    status = run(&l);
    if (status == MLRT_OK)
        status = finish(&l);
    mlrt_progress_end(&s->progress);
    name_checkpoint(&l, status);
    return status;
}

// --- trying ------------------------------------------------------------------------------------------------------------

// One step, one evaluation of a batch, one save and load; nothing stays.
MlrtStatus mlrt_dry_run(MlrtSession *s, MlrtError *error)
{
    char path[64], prefix[64];
    MlrtTensors file;
    MlrtStatus status = prepare(s, error);
    if (status != MLRT_OK)
        return status;
    Loop l = loop_of(s, error);
    order_epoch(s);
    l.rows = next_rows(s);
    s->folder.log.descriptor = s->folder.metrics.descriptor = s->folder.trace.descriptor = -1;
    mlrt_engine_gather(&s->engine, &s->data, s->order, l.rows);
    double loss = mlrt_engine_train(&s->engine, l.rows, (uint64_t)s->state.seed, 1);
    double norm = mlrt_engine_clip(&s->engine, &s->settings.recipe);
    if (!isfinite(loss) || !isfinite(norm))
        return mlrt_fail(error, MLRT_DIVERGED, "step 1: the loss is %g, the norm of the gradients %g", loss, norm);
    mlrt_engine_update(&s->engine, &s->settings.recipe, 1);
    mlrt_engine_eval(&s->engine, l.rows, (uint64_t)s->state.seed);
    snprintf(path, sizeof path, "dry-run-%ld.safetensors", (long)getpid());
    MlrtSaved what = saved_of(s);
    status = mlrt_checkpoint_save(path, &what, error);
    if (status == MLRT_OK && (status = mlrt_safetensors_open(path, &file, error)) == MLRT_OK) {
        status = mlrt_weights_load(&file, &s->engine, prefix, error);
        mlrt_safetensors_close(&file);
    }
    unlink(path);
    if (status == MLRT_OK)
        printf("%s: %s samples, %s steps of %" PRId64 ", %s of memory; first loss %.6g, gradient norm %.6g: all is well\n",
               s->model->name, mlrt_text_count(s->data.rows).text, mlrt_text_count(s->clock.all_steps).text,
               s->settings.recipe.batch, mlrt_text_bytes((double)s->engine.bytes).text, loss, norm);
    return status;
}
