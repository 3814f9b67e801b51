// checkpoint.c: saving and loading. The metadata of the state come from the rows of state.def, in both directions.
#include "checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digest.h"
#include "number.h"

enum { META_TEXT = 32, META_FIXED = 8, SET_KEY = 112, SET_VALUE = 1024 };

typedef enum Kind { WHOLE, EXACT } Kind;
static const struct StateRow { const char *name; Kind kind; size_t at; } state_rows[] = {
#define STATE(kind, name) {#name, kind, offsetof(MlrtState, name)},
#include "state.def"
#undef STATE
};

enum { STATES = sizeof state_rows / sizeof *state_rows };

// --- writing -----------------------------------------------------------------------------------------------------------

typedef struct Saved {                  // what goes into a file, and the memory of names and texts
    MlrtTensor   *tensor;  size_t tensors;
    MlrtMetadata *meta;    size_t metas;
    char         *names;                // of the optimiser's tensors, n_states x n_params x room
    char         *texts;                // of keys and values
    char        **codes;                // one for each field, NULL: none
    char         *sets;                 // keys and values of settings
} Saved;

static MlrtTensor tensor_of(const MlrtParam *param, const char *name, const float *values)
{
    MlrtTensor tensor = {.name = name, .type = MLRT_f32, .rank = param->rank, .data = values};
    memcpy(tensor.shape, param->dim, sizeof(int64_t) * (size_t)param->rank);
    return tensor;
}

static size_t name_room(const MlrtModel *model)
{
    size_t longest = 0, state = 0;
    for (int i = 0; i < model->n_params; i++)
        longest = strlen(model->param[i].path) > longest ? strlen(model->param[i].path) : longest;
    for (int s = 0; s < model->n_states; s++)
        state = strlen(model->state[s]) > state ? strlen(model->state[s]) : state;
    return longest + state + sizeof "optimizer..";
}

static void state_name(char *to, size_t room, const MlrtModel *model, int state, const MlrtParam *param)
{
    snprintf(to, room, "optimizer.%s.%s", model->state[state], param->path);
}

static bool fill_tensors(Saved *saved, const MlrtEngine *e, bool optimizer)
{
    const MlrtModel *m = e->model;
    size_t params = (size_t)m->n_params, states = optimizer ? (size_t)m->n_states : 0, room = name_room(m);
    saved->tensor = mlrt_alloc_array(params * (1 + states) + 1, sizeof *saved->tensor);
    saved->names = mlrt_alloc_array(params * states + 1, room);
    if (!saved->tensor || !saved->names)
        return false;
    for (int i = 0; i < m->n_params; i++)
        saved->tensor[saved->tensors++] = tensor_of(&m->param[i], m->param[i].path, (optimizer ? e->param : e->shown) + m->param[i].offset);
    char *name = saved->names;
    for (size_t s = 0; s < states; s++)
        for (int i = 0; i < m->n_params; i++) {
            const MlrtParam *param = &m->param[i];
            if (!param->trainable)
                continue;
            state_name(name, room, m, (int)s, param);
            saved->tensor[saved->tensors++] = tensor_of(param, name, e->state + (int64_t)s * m->trainable_count + param->offset);
            name += room;
        }
    return true;
}

static void add_meta(Saved *saved, const char *key, const char *value)
{
    saved->meta[saved->metas++] = (MlrtMetadata){key, value};
}

static void fill_state(Saved *saved, const MlrtState *state)
{
    char *text = saved->texts;
    for (int i = 0; i < STATES; i++, text += 2 * META_TEXT) {
        const char *at = (const char *)state + state_rows[i].at;
        snprintf(text, META_TEXT, "state.%.24s", state_rows[i].name);
        if (state_rows[i].kind == WHOLE)
            snprintf(text + META_TEXT, META_TEXT, "%" PRId64, *(const int64_t *)(const void *)at);
        else
            snprintf(text + META_TEXT, META_TEXT, "%.17g", *(const double *)(const void *)at);
        add_meta(saved, text, text + META_TEXT);
    }
}

static bool fill_codes(Saved *saved, const MlrtDataset *data)
{
    char *text = saved->texts + 2 * META_TEXT * STATES;
    for (int f = 0; f < data->model->n_fields && data->codes; f++, text += META_TEXT) {
        if (data->codes[f].count == 0)
            continue;
        if (!(saved->codes[f] = mlrt_codes_text(&data->codes[f])))
            return false;
        snprintf(text, META_TEXT, "codes.%d", f);
        add_meta(saved, text, saved->codes[f]);
    }
    return true;
}

static void fill_sets(Saved *saved, const MlrtSettings *settings)
{
    char *key = saved->sets;
    for (int i = 0; i < settings->count; i++)
        if (settings->setting[i].origin != settings->model->path) {
            snprintf(key, SET_KEY, "set.%.96s", settings->setting[i].key);
            mlrt_settings_text(settings, &settings->setting[i], key + SET_KEY, SET_VALUE);
            add_meta(saved, key, key + SET_KEY);
            key += SET_KEY + SET_VALUE;
        }
}

static bool fill_metadata(Saved *saved, const MlrtSaved *what)
{
    const MlrtModel *model = what->engine->model;
    const MlrtDataset *data = what->data;
    size_t fields = (size_t)model->n_fields, sets = (size_t)what->settings->count;
    saved->meta = mlrt_alloc_array(META_FIXED + STATES + fields + sets, sizeof *saved->meta);
    saved->texts = mlrt_alloc_array(2 * STATES + fields + 1, META_TEXT);
    saved->codes = calloc(fields + 1, sizeof *saved->codes);
    saved->sets = mlrt_alloc_array(sets + 1, SET_KEY + SET_VALUE);
    if (!saved->meta || !saved->texts || !saved->codes || !saved->sets)
        return false;
    add_meta(saved, "format", "pt");    // what other readers of such files look for
    add_meta(saved, "mlc.net", model->name);
    add_meta(saved, "mlc.version", model->version);
    add_meta(saved, "mlc.fingerprint", model->fingerprint);
    if (data && data->digest[0])
        add_meta(saved, "mlc.data", data->digest);
    fill_state(saved, what->state);
    fill_sets(saved, what->settings);
    return !data || fill_codes(saved, data);
}

static void saved_free(Saved *saved, const MlrtModel *model)
{
    for (int f = 0; f < model->n_fields && saved->codes; f++)
        free(saved->codes[f]);
    free(saved->codes);
    free(saved->tensor);
    free(saved->meta);
    free(saved->names);
    free(saved->texts);
    free(saved->sets);
}

static MlrtStatus save(const char *path, const MlrtSaved *what, bool optimizer, MlrtError *error)
{
    Saved saved = {0};
    MlrtStatus status = MLRT_OK;
    const MlrtEngine *e = what->engine;
    int64_t states = optimizer ? e->model->n_states * e->model->trainable_count : 0;
    if (!mlrt_all_finite(e->param, e->model->param_count) || !mlrt_all_finite(e->shown, e->model->param_count) || !mlrt_all_finite(e->state, states))
        return mlrt_fail(error, MLRT_DIVERGED, "%s: not written, the weights are not finite any more", path);
    if (!fill_tensors(&saved, e, optimizer) || !fill_metadata(&saved, what))
        status = mlrt_fail_memory(error, sizeof saved, path);
    else
        status = mlrt_safetensors_write(path, saved.tensor, saved.tensors, saved.meta, saved.metas, error);
    saved_free(&saved, e->model);
    return status;
}

MlrtStatus mlrt_weights_save(const char *path, const MlrtSaved *what, MlrtError *error) { return save(path, what, false, error); }

MlrtStatus mlrt_checkpoint_save(const char *path, const MlrtSaved *what, MlrtError *error)
{
    return save(path, what, true, error);
}

// --- reading tensors ---------------------------------------------------------------------------------------------------

static bool same_shape(const MlrtTensor *tensor, const MlrtParam *param)
{
    bool same = tensor->rank == param->rank;
    for (int i = 0; i < param->rank && same; i++)
        same = tensor->shape[i] == param->dim[i];
    return same;
}

static MlrtStatus load_tensor(const char *path, const MlrtTensor *tensor, const MlrtParam *param, float *to, MlrtError *error)
{
    if (!same_shape(tensor, param))
        return mlrt_fail(error, MLRT_BAD_FILE, "%s: '%s' has the shape %s, the model's has %s; this file is of another model",
                         path, tensor->name, mlrt_shape_text(tensor->shape, tensor->rank).text,
                         mlrt_shape_text(param->dim, param->rank).text);
    if (tensor->type != MLRT_f32 && tensor->type != MLRT_f64)
        return mlrt_fail(error, MLRT_BAD_FILE, "%s: '%s' is of type %s; f32 or f64 is read", path, tensor->name,
                         mlrt_type_name(tensor->type));
    if (mlrt_tensor_nonfinite(tensor) > 0)
        return mlrt_fail(error, MLRT_BAD_FILE, "%s: '%s' has %zu values that are not finite", path, tensor->name,
                         mlrt_tensor_nonfinite(tensor));
    if (tensor->type == MLRT_f32)
        memcpy(to, tensor->data, (size_t)param->count * sizeof *to);
    for (int64_t i = 0; i < param->count && tensor->type == MLRT_f64; i++) {
        double value;
        memcpy(&value, (const char *)tensor->data + 8 * i, sizeof value);
        to[i] = (float)value;
    }
    return MLRT_OK;
}

static const MlrtTensor *find_prefixed(const MlrtTensors *file, const char *prefix, const char *path)
{
    char name[MLRT_LIMIT_NAME + 64];
    int length = snprintf(name, sizeof name, "%s%s", prefix, path);
    return length > 0 && (size_t)length < sizeof name ? mlrt_safetensors_find(file, name) : NULL;
}

// If the first parameter is not there by its name, but "something." before it: that.
static void guess_prefix(const MlrtTensors *file, const MlrtModel *model, char prefix[64])
{
    prefix[0] = 0;
    if (model->n_params == 0 || mlrt_safetensors_find(file, model->param[0].path))
        return;
    size_t length = strlen(model->param[0].path);
    for (size_t i = 0; i < file->count; i++) {
        const char *name = file->tensor[i].name;
        size_t longer = strlen(name);
        bool ends = longer > length + 1 && longer - length < 64 && strcmp(name + longer - length, model->param[0].path) == 0;
        if (ends && name[longer - length - 1] == '.' && strncmp(name, "optimizer.", 10) != 0) {
            memcpy(prefix, name, longer - length);
            prefix[longer - length] = 0;
            return;
        }
    }
}

static bool is_expected(const MlrtModel *model, const char *prefix, const char *name)
{
    size_t length = strlen(name), skip = strlen(prefix), counter = sizeof "num_batches_tracked" - 1;
    if (strncmp(name, "optimizer.", 10) == 0 ||
        (length >= counter && strcmp(name + length - counter, "num_batches_tracked") == 0))
        return true;
    if (length < skip || strncmp(name, prefix, skip) != 0)
        return false;
    for (int i = 0; i < model->n_params; i++)
        if (strcmp(model->param[i].path, name + skip) == 0)
            return true;
    return false;
}

static MlrtStatus check_names(const MlrtTensors *file, const MlrtModel *model, const char *prefix, MlrtError *error)
{
    const char *missing = NULL, *unexpected = NULL;
    int missed = 0, more = 0;
    for (int i = 0; i < model->n_params; i++)
        if (!model->param[i].train_only && !find_prefixed(file, prefix, model->param[i].path)) {
            missing = missing ? missing : model->param[i].path;
            missed++;
        }
    for (size_t i = 0; i < file->count; i++)
        if (!is_expected(model, prefix, file->tensor[i].name)) {
            unexpected = unexpected ? unexpected : file->tensor[i].name;
            more++;
        }
    if (!missed && !more)
        return MLRT_OK;
    const char *path = file->file.path;
    if (!more)
        return mlrt_fail(error, MLRT_BAD_FILE, "%s: '%s' is missing (%d in all); this file is of another model", path, missing,
                         missed);
    if (!missed)
        return mlrt_fail(error, MLRT_BAD_FILE, "%s: '%s' is not in the model (%d in all); this file is of another model", path,
                         mlrt_quote(unexpected, strlen(unexpected)).text, more);
    return mlrt_fail(error, MLRT_BAD_FILE,
                     "%s: '%s' is missing (%d in all) and '%s' is not in the model (%d in all); this file is "
                     "of another model",
                     path, missing, missed, mlrt_quote(unexpected, strlen(unexpected)).text, more);
}

MlrtStatus mlrt_weights_load(const MlrtTensors *file, MlrtEngine *e, char prefix[64], MlrtError *error)
{
    const MlrtModel *m = e->model;
    guess_prefix(file, m, prefix);
    MlrtStatus status = check_names(file, m, prefix, error);
    for (int i = 0; i < m->n_params && status == MLRT_OK; i++) {
        const MlrtTensor *tensor = find_prefixed(file, prefix, m->param[i].path);
        if (tensor)                     // parameters of training alone may be absent: they keep their initial values
            status = load_tensor(file->file.path, tensor, &m->param[i], e->param + m->param[i].offset, error);
    }
    return status;
}

static void put_difference(FILE *out, int *left, const char *what, const char *name)
{
    if (--*left == 0)
        fputs("  ...\n", out);
    if (*left > 0)
        fprintf(out, "  %s  %s\n", what, mlrt_quote(name, strlen(name)).text);
}

void mlrt_weights_differences(FILE *out, const MlrtTensors *file, const MlrtModel *model, int most)
{
    char prefix[64];
    guess_prefix(file, model, prefix);
    for (int i = 0; i < model->n_params; i++) {
        const MlrtTensor *tensor = find_prefixed(file, prefix, model->param[i].path);
        if (!tensor && !model->param[i].train_only)
            put_difference(out, &most, "missing   ", model->param[i].path);
        else if (tensor && !same_shape(tensor, &model->param[i]))
            put_difference(out, &most, "misshapen ", model->param[i].path);
    }
    for (size_t i = 0; i < file->count; i++)
        if (!is_expected(model, prefix, file->tensor[i].name))
            put_difference(out, &most, "unexpected", file->tensor[i].name);
}

static MlrtStatus load_states(const MlrtTensors *file, MlrtEngine *e, char *name, size_t room, MlrtError *error)
{
    const MlrtModel *m = e->model;
    MlrtStatus status = MLRT_OK;
    for (int s = 0; s < m->n_states; s++)
        for (int i = 0; i < m->n_params && status == MLRT_OK; i++) {
            const MlrtParam *param = &m->param[i];
            if (!param->trainable)
                continue;
            state_name(name, room, m, s, param);
            const MlrtTensor *tensor = mlrt_safetensors_find(file, name);
            if (!tensor)
                return mlrt_fail(error, MLRT_BAD_FILE, "%s: '%s' is missing; training cannot go on from a file of weights alone "
                                 "(begin with it: --weights)", file->file.path, name);
            status = load_tensor(file->file.path, tensor, param, e->state + s * m->trainable_count + param->offset, error);
        }
    return status;
}

MlrtStatus mlrt_checkpoint_average(const MlrtTensors *file, MlrtEngine *e, MlrtError *error)
{
    const MlrtModel *m = e->model;
    char name[MLRT_LIMIT_NAME + 64];
    MlrtStatus status = MLRT_OK;
    for (int i = 0; i < m->n_params && m->recipe->ema > 0 && status == MLRT_OK; i++) {
        snprintf(name, sizeof name, "optimizer.average.%.1000s", m->param[i].path);
        const MlrtTensor *tensor = m->param[i].trainable ? mlrt_safetensors_find(file, name) : NULL;
        if (tensor)
            status = load_tensor(file->file.path, tensor, &m->param[i], e->param + m->param[i].offset, error);
    }
    return status;
}

MlrtStatus mlrt_checkpoint_load(const MlrtTensors *file, MlrtEngine *e, MlrtState *state, MlrtError *error)
{
    char prefix[64];
    MlrtStatus status = mlrt_weights_load(file, e, prefix, error);
    if (status != MLRT_OK)
        return status;
    const char *fingerprint = mlrt_safetensors_metadata(file, "mlc.fingerprint");
    if (!fingerprint || strcmp(fingerprint, e->model->fingerprint) != 0)
        return mlrt_fail(error, MLRT_BAD_FILE, "%s: the parameters have the same names and shapes, but they are of another model "
                         "(fingerprint %s, not %s); to begin with them all the same: --weights", file->file.path,
                         fingerprint ? mlrt_quote(fingerprint, strlen(fingerprint)).text : "missing", e->model->fingerprint);
    size_t room = name_room(e->model);
    char *name = malloc(room);
    status = name ? load_states(file, e, name, room, error) : mlrt_fail_memory(error, room, file->file.path);
    free(name);
    return status == MLRT_OK ? mlrt_checkpoint_state(file, state, error) : status;
}

// --- reading the state -------------------------------------------------------------------------------------------------

MlrtStatus mlrt_checkpoint_state(const MlrtTensors *file, MlrtState *state, MlrtError *error)
{
    for (int i = 0; i < STATES; i++) {
        char key[META_TEXT];
        snprintf(key, sizeof key, "state.%.24s", state_rows[i].name);
        const char *text = mlrt_safetensors_metadata(file, key);
        void *at = (char *)state + state_rows[i].at;
        MlrtNumber read = MLRT_NUMBER_OK;
        if (text && state_rows[i].kind == WHOLE)
            read = mlrt_number_i64(text, strlen(text), at);
        else if (text)
            read = mlrt_number_f64(text, strlen(text), at);
        if (read != MLRT_NUMBER_OK && read != MLRT_NUMBER_SPECIAL)
            return mlrt_fail(error, MLRT_BAD_FILE, "%s: metadata %s: '%s' is no number", file->file.path, key,
                             mlrt_quote(text, strlen(text)).text);
    }
    return MLRT_OK;
}

MlrtStatus mlrt_checkpoint_settings(const MlrtTensors *file, MlrtSettings *settings, bool strict, MlrtError *error)
{
    for (size_t i = 0; i < file->metadata_count; i++) {
        const MlrtMetadata *meta = &file->metadata[i];
        MlrtStatus status = MLRT_OK;
        if (strncmp(meta->key, "set.", 4) == 0)
            status = mlrt_settings_set_value(settings, meta->key + 4, meta->value, "as resumed", error);
        if (status != MLRT_OK && strict)
            return mlrt_fail(error, MLRT_BAD_FILE,
                             "%s was written with the setting %s = %s, which the recipe does not take any more",
                             file->file.path, meta->key + 4, mlrt_quote(meta->value, strlen(meta->value)).text);
    }
    return MLRT_OK;
}

MlrtStatus mlrt_checkpoint_codes(const MlrtTensors *file, const MlrtModel *model, MlrtCodes **codes, MlrtError *error)
{
    MlrtStatus status = MLRT_OK;
    *codes = calloc((size_t)model->n_fields + 1, sizeof **codes);
    if (!*codes)
        return mlrt_fail_memory(error, sizeof **codes, file->file.path);
    for (int f = 0; f < model->n_fields && status == MLRT_OK; f++) {
        char key[META_TEXT];
        snprintf(key, sizeof key, "codes.%d", f);
        const char *text = mlrt_safetensors_metadata(file, key);
        if (text && model->field[f].codes)
            status = mlrt_codes_parse(text, &(*codes)[f], error);
    }
    return status;
}

void mlrt_codes_array_free(MlrtCodes *codes, const MlrtModel *model)
{
    for (int f = 0; f < model->n_fields && codes; f++)
        mlrt_codes_free(&codes[f]);
    free(codes);
}

void mlrt_weights_digest(const MlrtEngine *e, char digest[33])
{
    MlrtDigestState state;
    mlrt_digest_begin(&state);
    for (int i = 0; i < e->model->n_params; i++) {
        const MlrtParam *param = &e->model->param[i];
        mlrt_digest_add(&state, param->path, strlen(param->path) + 1);
        mlrt_digest_add(&state, e->param + param->offset, (size_t)param->count * sizeof *e->param);
    }
    memcpy(digest, mlrt_digest_end(&state).text, 33);
}
