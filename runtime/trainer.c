// trainer.c: mlrt_main: what every training program does, from its arguments to its exit code.
//
// In order: options; the file that the session begins with (a checkpoint, weights, or none); settings; data; memory and
// parameters; then one mode. Each stage is a function that fails with a message; all is given back in one place.
#define _POSIX_C_SOURCE 200809L
#include "trainer.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "init.h"

static bool is_training(const MlrtOptions *o) { return !o->eval.given && !o->predict.given && !o->init_only.given; }

// --- the file that the session begins with -----------------------------------------------------------------------------

// --resume: weights/last of the run. --weights: that file. --eval and --predict without it: the best of runs/latest.
static MlrtStatus find_weights(MlrtSession *s, MlrtError *error)
{
    const MlrtOptions *o = &s->options;
    bool best = (o->eval.given || o->predict.given) && !o->weights.given;
    MlrtStatus status = MLRT_OK;
    s->weights_path[0] = 0;
    if (o->weights.given && strlen(o->weights.text) >= sizeof s->weights_path)
        return mlrt_fail(error, MLRT_BAD_USAGE, "--weights: the name of the file is too long");
    if (o->weights.given)
        strcpy(s->weights_path, o->weights.text);
    else if (o->resume.given || best)
        status = mlrt_folder_find(&s->folder, o->resume.text, error);
    if (status != MLRT_OK || (!o->resume.given && !best))
        return status;
    MlrtPath path = mlrt_folder_file(&s->folder, best ? "weights/best.safetensors" : "weights/last.safetensors");
    strcpy(s->weights_path, path.text);
    if (access(path.text, F_OK) != 0)
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s: not there: this run ended before anything was saved; start it anew",
                         path.text);
    return MLRT_OK;
}

static MlrtStatus open_weights(MlrtSession *s, MlrtError *error)
{
    MlrtStatus status = find_weights(s, error);
    if (status != MLRT_OK || !s->weights_path[0])
        return status;
    status = mlrt_safetensors_open(s->weights_path, &s->weights, error);
    s->has_weights = status == MLRT_OK;
    return status;
}

// Settings as in the file (to train on from weights, or to evaluate foreign ones, the net's hold), then the options.
static MlrtStatus open_settings(MlrtSession *s, MlrtError *error)
{
    const MlrtOptions *o = &s->options;
    MlrtStatus status = mlrt_settings_open(&s->settings, s->model, error);
    bool restore = s->has_weights && (o->resume.given || !is_training(o));
    const char *fingerprint = restore ? mlrt_safetensors_metadata(&s->weights, "mlc.fingerprint") : NULL;
    restore = fingerprint && strcmp(fingerprint, s->model->fingerprint) == 0;
    if (status == MLRT_OK && restore)
        status = mlrt_checkpoint_settings(&s->weights, &s->settings, o->resume.given, error);
    if (status == MLRT_OK && restore)
        status = mlrt_checkpoint_codes(&s->weights, s->model, &s->codes, error);
    MlrtState kept = {.seed = (int64_t)s->settings.recipe.seed};
    if (status == MLRT_OK && restore)
        status = mlrt_checkpoint_state(&s->weights, &kept, error);
    s->settings.recipe.seed = (uint64_t)kept.seed;
    if (status == MLRT_OK)
        status = mlrt_settings_apply(&s->settings, o, error);
    if (status == MLRT_OK && o->resume.given && s->settings.recipe.seed != (uint64_t)kept.seed)
        status = mlrt_fail(error, MLRT_BAD_USAGE, "a run keeps its seed (%lld): another one would divide the data anew",
                           (long long)kept.seed);
    s->state = (MlrtState){.seed = (int64_t)s->settings.recipe.seed};
    return status;
}

// --- stages ------------------------------------------------------------------------------------------------------------

static MlrtStatus open_pool(MlrtSession *s, MlrtError *error)
{
    int threads = s->options.threads.given ? (int)s->options.threads.whole : mlrt_threads_available();
    s->pool = mlrt_pool_new(threads);
    return s->pool ? MLRT_OK : mlrt_fail(error, MLRT_OUT_OF_MEMORY, "%d threads cannot be started", threads);
}

static MlrtStatus open_data(MlrtSession *s, MlrtError *error)
{
    const MlrtOptions *o = &s->options;
    if (o->init_only.given || o->benchmark.given)
        return MLRT_OK;
    if (o->predict.given)
        return mlrt_dataset_open_rows(&s->data, &s->settings, o->predict.text, s->codes, s->argv[0], s->pool, error);
    MlrtStatus status = mlrt_dataset_open(&s->data, &s->settings, s->codes, s->argv[0], s->pool, error);
    const char *digest = s->has_weights && o->resume.given ? mlrt_safetensors_metadata(&s->weights, "mlc.data") : NULL;
    if (status == MLRT_OK && digest && strcmp(digest, s->data.digest) != 0)
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s: the data are not those that this run was begun with (digest %s, now %s)",
                         s->folder.path, digest, s->data.digest);
    return status;
}

MlrtStatus mlrt_take_weights(MlrtSession *s, const MlrtTensors *file, MlrtError *error)
{
    char prefix[64];
    MlrtStatus status = mlrt_weights_load(file, &s->engine, prefix, error);
    if (status == MLRT_OK && !is_training(&s->options))
        status = mlrt_checkpoint_average(file, &s->engine, error);
    if (status == MLRT_OK && prefix[0])
        mlrt_say(&s->progress, s->argv[0], "note", "%s: the prefix '%s' of its names is left out", file->file.path, prefix);
    if (status == MLRT_OK && is_training(&s->options) && !s->options.quiet.given)
        mlrt_say(&s->progress, s->argv[0], "note", "all %d parameters and buffers are from %s", s->model->n_params,
                 file->file.path);
    return status;
}

static MlrtStatus open_model(MlrtSession *s, MlrtError *error)
{
    MlrtStatus status = mlrt_engine_open(&s->engine, s->model, s->pool, error);
    if (status == MLRT_OK)
        status = mlrt_init_params(s->model, (uint64_t)s->state.seed, s->engine.param, error);
    if (status != MLRT_OK || !s->has_weights)
        return status;
    if (s->options.resume.given)
        status = mlrt_checkpoint_load(&s->weights, &s->engine, &s->state, error);
    else
        status = mlrt_take_weights(s, &s->weights, error);
    if (status == MLRT_BAD_FILE)
        mlrt_weights_differences(stderr, &s->weights, s->model, 1000);
    return status;
}

static MlrtStatus write_initial(MlrtSession *s, MlrtError *error)
{
    MlrtSaved what = {&s->engine, NULL, &s->settings, &s->state};
    MlrtStatus status = mlrt_weights_save(s->options.init_only.text, &what, error);
    if (status == MLRT_OK)
        printf("%s: the initial weights of %s, seed %lld\n", s->options.init_only.text, s->model->name, (long long)s->state.seed);
    return status;
}

static MlrtStatus run_mode(MlrtSession *s, MlrtError *error)
{
    const MlrtOptions *o = &s->options;
    if (o->init_only.given)
        return write_initial(s, error);
    if (o->benchmark.given)
        return mlrt_benchmark(s, error);
    if (o->eval.given)
        return mlrt_evaluate(s, error);
    if (o->predict.given)
        return mlrt_predict(s, error);
    return o->dry_run.given ? mlrt_dry_run(s, error) : mlrt_train(s, error);
}

static MlrtStatus run_stages(MlrtSession *s, MlrtError *error)
{
    static MlrtStatus (*const stages[])(MlrtSession *, MlrtError *) = {
        open_weights, open_settings, open_pool, open_data, open_model, run_mode,
    };
    MlrtStatus status = MLRT_OK;
    for (size_t i = 0; i < sizeof stages / sizeof *stages && status == MLRT_OK; i++)
        status = stages[i](s, error);
    return status;
}

static void close_session(MlrtSession *s)
{
    mlrt_folder_close(&s->folder);
    mlrt_engine_close(&s->engine);
    if (s->data.model)
        mlrt_dataset_close(&s->data);
    mlrt_settings_close(&s->settings);
    mlrt_codes_array_free(s->codes, s->model);
    if (s->has_weights)
        mlrt_safetensors_close(&s->weights);
    mlrt_pool_free(s->pool);
    mlrt_sampler_close(&s->sampler);
    free(s->order);
    free(s->sets);
}

// --- the program -------------------------------------------------------------------------------------------------------

static void print_version(const MlrtModel *model)
{
    printf("%s, compiled by mlc %s\nfingerprint %s\n", model->name, model->version, model->fingerprint);
}

static MlrtStatus read_options(MlrtSession *s, MlrtError *error)
{
    s->sets = mlrt_alloc_array((size_t)s->argc + 1, sizeof *s->sets);
    if (!s->sets)
        return mlrt_fail_memory(error, (size_t)s->argc, "options");
    if (s->model->abi != MLRT_ABI)
        return mlrt_fail(error, MLRT_INTERNAL, "the program was compiled for runtime %d, this is runtime %d", s->model->abi,
                         MLRT_ABI);
    return mlrt_options_parse(&s->options, s->argc, s->argv, s->sets, error);
}

// A pipe that closes and a file that may not grow are errors of the write that meets them.
static void ignore_signals(void)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

static void report(const MlrtSession *s, MlrtStatus status, const MlrtError *error)
{
    const char *kind = status == MLRT_STOPPED ? "stopped" : "error";
    if (status != MLRT_OK)
        mlrt_say(&s->progress, s->argv[0], kind, "%s", error->text);
}

int mlrt_main(const MlrtModel *model, int argc, char **argv)
{
    MlrtError error = {0};
    MlrtSession *s = calloc(1, sizeof *s);
    if (!s || argc < 1) {
        fprintf(stderr, "%s: error: there is no memory to start\n", model->name);
        return 1;
    }
    *s = (MlrtSession){.model = model, .argc = argc, .argv = argv};
    s->folder.log.descriptor = s->folder.metrics.descriptor = s->folder.trace.descriptor = -1;
    ignore_signals();
    MlrtStatus status = read_options(s, &error);
    mlrt_progress_begin(&s->progress, model, s->options.quiet.given, s->options.color.text, 0);
    if (status == MLRT_OK && s->options.help.given)
        mlrt_options_help(model, argv[0], stdout);
    else if (status == MLRT_OK && s->options.version.given)
        print_version(model);
    else if (status == MLRT_OK)
        status = run_stages(s, &error);
    if (fflush(stdout) != 0 && status == MLRT_OK)
        status = mlrt_fail(&error, MLRT_DISK, "standard output cannot be written");
    report(s, status, &error);
    close_session(s);
    free(s);
    return mlrt_status_exit_code(status);
}
