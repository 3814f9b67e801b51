// settings.c: the keys that --set can change are a table: fixed rows from settings.def, and one for each number of the
// optimiser, link of the schedule and source of data that the recipe has. Parsing, config.yaml and messages go by the table.
#include "settings.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"
#include "schedule.h"

static const struct FixedRow { const char *key; MlrtSettingKind kind; size_t at; double least; } fixed_rows[] = {
#define SETTING(key, kind, place, least) {key, MLRT_SET_##kind, offsetof(MlrtRecipe, place), least},
#define COMPILED(key)
#include "settings.def"
#undef SETTING
#undef COMPILED
};

static const char *const compiled_keys[] = {
#define SETTING(key, kind, place, least)
#define COMPILED(key) key,
#include "settings.def"
#undef SETTING
#undef COMPILED
};

enum { LINK_SETTINGS = 6 };             // of a link of the schedule at most

enum { FIXED = sizeof fixed_rows / sizeof *fixed_rows, COMPILED = sizeof compiled_keys / sizeof *compiled_keys };

static const struct UnitRow { const char *word; int unit; double factor; } unit_rows[] = {
    {"epochs", MLRT_EPOCHS, 1}, {"epoch", MLRT_EPOCHS, 1}, {"steps", MLRT_STEPS, 1}, {"step", MLRT_STEPS, 1},
    {"s", MLRT_SECONDS, 1},     {"min", MLRT_SECONDS, 60}, {"h", MLRT_SECONDS, 3600}, {"%", MLRT_SHARE, 0.01},
};

enum { UNITS = sizeof unit_rows / sizeof *unit_rows };

// --- values from text --------------------------------------------------------------------------------------------------

static bool read_real(const char *text, size_t length, double *value)
{
    return mlrt_number_f64(text, length, value) == MLRT_NUMBER_OK;
}

static bool read_duration(const char *text, MlrtDuration *duration)
{
    size_t length = strspn(text, "+-.0123456789"), words;
    const char *word = text + length + strspn(text + length, " ");
    words = strlen(word);
    for (int i = 0; i < UNITS; i++)
        if (strlen(unit_rows[i].word) == words && strcmp(unit_rows[i].word, word) == 0) {
            double amount;
            if (!read_real(text, length, &amount) || !(amount > 0))
                return false;
            *duration = (MlrtDuration){amount * unit_rows[i].factor, unit_rows[i].unit};
            return true;
        }
    if (strcmp(text, "off") == 0)
        *duration = (MlrtDuration){0, MLRT_NONE};
    return strcmp(text, "off") == 0;
}

static bool read_bool(const char *text, bool *value)
{
    *value = strcmp(text, "true") == 0;
    return *value || strcmp(text, "false") == 0;
}

static bool read_clip(const char *text, MlrtRecipe *recipe)
{
    size_t length = strlen(text);
    if (strcmp(text, "none") == 0)
        recipe->clip = 0;
    if (strcmp(text, "none") == 0)
        return true;
    bool by_norm = strncmp(text, "norm(", 5) == 0, by_value = strncmp(text, "value(", 6) == 0;
    size_t skip = by_norm ? 5 : by_value ? 6 : 0, tail = skip && length > skip && text[length - 1] == ')';
    double at;
    if ((skip && !tail) || !read_real(text + skip, length - skip - tail, &at) || !(at > 0))
        return false;
    recipe->clip = by_value ? 2 : by_norm || !recipe->clip ? 1 : recipe->clip;
    recipe->clip_at = at;
    return true;
}

static const MlrtMetric *metric_find(const MlrtModel *model, const char *name)
{
    for (int i = 0; i < model->n_metrics; i++)
        if (strcmp(model->metric[i].name, name) == 0)
            return &model->metric[i];
    return NULL;
}

// "accuracy", "lowest kl", "highest kl", "loss".
static bool read_keep(const MlrtModel *model, const char *text, MlrtRecipe *recipe)
{
    bool low = strncmp(text, "lowest ", 7) == 0, high = strncmp(text, "highest ", 8) == 0;
    const char *name = text + (low ? 7 : high ? 8 : 0);
    const MlrtMetric *metric = metric_find(model, name);
    bool loss = strcmp(name, "loss") == 0;
    int better = low || loss ? -1 : high ? 1 : metric ? metric->better : 0;
    if ((!metric && !loss) || !better)
        return false;
    recipe->keep_by = loss ? "loss" : metric->name;
    recipe->keep_better = better;
    return true;
}

static bool read_stop(const char *text, MlrtRecipe *recipe)
{
    if (!read_duration(text, &recipe->stop_after))
        return false;
    if (!recipe->stop_by) {             // by what is best
        recipe->stop_by = recipe->keep_by;
        recipe->stop_better = recipe->keep_better;
    }
    return true;
}

// A number, or a share of the learning rate: "10%".
static bool read_target(const char *text, const MlrtSetting *setting)
{
    size_t length = strlen(text);
    bool share = length > 1 && text[length - 1] == '%';
    double value;
    if (!read_real(text, length - share, &value) || value < 0)
        return false;
    *(double *)setting->place = share ? value / 100 : value;
    *setting->share = share;
    return true;
}

static bool read_whole(const char *text, const MlrtSetting *setting)
{
    int64_t value;
    if (mlrt_number_i64(text, strlen(text), &value) != MLRT_NUMBER_OK || (double)value < setting->least)
        return false;
    *(int64_t *)setting->place = value;
    return true;
}

static bool read_number(const char *text, const MlrtSetting *setting)
{
    double value;
    if (!read_real(text, strlen(text), &value) || value < setting->least)
        return false;
    *(double *)setting->place = value;
    return true;
}

static bool read_value(MlrtSettings *s, const MlrtSetting *setting, const char *text)
{
    switch (setting->kind) {
    case MLRT_SET_REAL: return read_number(text, setting);
    case MLRT_SET_COUNT:
    case MLRT_SET_SEED: return read_whole(text, setting);
    case MLRT_SET_BOOL: return read_bool(text, setting->place);
    case MLRT_SET_CLIP: return read_clip(text, &s->recipe);
    case MLRT_SET_KEEP: return read_keep(s->model, text, &s->recipe);
    case MLRT_SET_STOP: return read_stop(text, &s->recipe);
    case MLRT_SET_DURATION: return read_duration(text, setting->place);
    case MLRT_SET_TARGET: return read_target(text, setting);
    case MLRT_SET_TEXT: *(const char **)setting->place = text; return *text != 0;
    }
    return false;
}

static const char *const expected[] = {
    [MLRT_SET_REAL] = "a number",
    [MLRT_SET_COUNT] = "a whole number",
    [MLRT_SET_SEED] = "a whole number from 0",
    [MLRT_SET_BOOL] = "true or false",
    [MLRT_SET_CLIP] = "norm(1), value(0.5) or none",
    [MLRT_SET_KEEP] = "loss, or a metric with lowest or highest before it",
    [MLRT_SET_STOP] = "a duration (5 epochs, 200 steps) or off",
    [MLRT_SET_DURATION] = "a duration (1 epoch, 200 steps, 5%, 10 min) or off",
    [MLRT_SET_TARGET] = "a number from 0, or a share of the learning rate (10%)",
    [MLRT_SET_TEXT] = "a file",
};

// --- values to text ----------------------------------------------------------------------------------------------------

// The shortest decimal that reads back to the same number.
static void real_text(double value, const char *unit, char *text, size_t size)
{
    double back = 0;
    for (int digits = 6; digits <= 17; digits++) {
        int length = snprintf(text, size, "%.*g", digits, value);
        if (length > 0 && mlrt_number_f64(text, (size_t)length, &back) == MLRT_NUMBER_OK && back == value)
            break;
    }
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s", unit);
}

static void duration_text(MlrtDuration duration, char *text, size_t size)
{
    if (duration.unit == MLRT_NONE)
        snprintf(text, size, "off");
    for (int i = 0; i < UNITS; i++)
        if (unit_rows[i].unit == (int)duration.unit) {
            bool one = duration.amount == 1 && (duration.unit == MLRT_EPOCHS || duration.unit == MLRT_STEPS);
            const char *word = unit_rows[i + one].word;     // "1 epoch": the singular follows its plural
            char unit[16];
            snprintf(unit, sizeof unit, "%s%s", *word == '%' ? "" : " ", word);
            real_text(duration.amount / unit_rows[i].factor, unit, text, size);
            return;
        }
}

static void clip_text(const MlrtRecipe *recipe, char *text, size_t size)
{
    if (recipe->clip == 0)
        snprintf(text, size, "none");
    else {
        int used = snprintf(text, size, "%s(", recipe->clip == 1 ? "norm" : "value");
        real_text(recipe->clip_at, ")", text + used, size - (size_t)used);
    }
}

void mlrt_settings_text(const MlrtSettings *s, const MlrtSetting *setting, char *text, size_t size)
{
    const MlrtRecipe *recipe = &s->recipe;
    switch (setting->kind) {
    case MLRT_SET_REAL: real_text(*(double *)setting->place, "", text, size); break;
    case MLRT_SET_COUNT:
    case MLRT_SET_SEED: snprintf(text, size, "%" PRId64, *(int64_t *)setting->place); break;
    case MLRT_SET_BOOL: snprintf(text, size, "%s", *(bool *)setting->place ? "true" : "false"); break;
    case MLRT_SET_CLIP: clip_text(recipe, text, size); break;
    case MLRT_SET_KEEP:
        snprintf(text, size, "%s %s", recipe->keep_better > 0 ? "highest" : "lowest", recipe->keep_by ? recipe->keep_by : "loss");
        break;
    case MLRT_SET_STOP: duration_text(recipe->stop_after, text, size); break;
    case MLRT_SET_DURATION: duration_text(*(MlrtDuration *)setting->place, text, size); break;
    case MLRT_SET_TARGET:
        real_text(*(double *)setting->place * (*setting->share ? 100 : 1), *setting->share ? "%" : "", text, size);
        break;
    case MLRT_SET_TEXT: snprintf(text, size, "%s", *(const char **)setting->place); break;
    }
}

// --- the table ---------------------------------------------------------------------------------------------------------

static MlrtSetting *add(MlrtSettings *s, MlrtSettingKind kind, void *place)
{
    MlrtSetting *setting = &s->setting[s->count++];
    *setting = (MlrtSetting){.kind = kind, .place = place, .origin = s->model->path};
    return setting;
}

static void add_fixed(MlrtSettings *s)
{
    for (int i = 0; i < FIXED; i++) {
        MlrtSetting *setting = add(s, fixed_rows[i].kind, (char *)&s->recipe + fixed_rows[i].at);
        snprintf(setting->key, sizeof setting->key, "%s", fixed_rows[i].key);
        setting->least = fixed_rows[i].least;
    }
}

// The optimiser of a group that has one of its own, or NULL.
static const MlrtOptimizer *own_optimizer(const MlrtRecipe *recipe, int group)
{
    return recipe->own && recipe->own[group].name ? &recipe->own[group] : NULL;
}

static void add_hypers(MlrtSettings *s)
{
    for (int g = 0; g < s->recipe.n_groups; g++) {
        const MlrtOptimizer *own = own_optimizer(&s->recipe, g);
        for (int k = 0; k < (own ? own->n_hyper : s->recipe.n_hyper); k++) {
            MlrtSetting *setting = add(s, MLRT_SET_REAL, &s->group[g * MLRT_HYPERS + k]);
            const char *name = own ? own->hyper[k] : s->recipe.hyper[k];
            if (g == 0)
                snprintf(setting->key, sizeof setting->key, "optimizer.%s", name);
            else
                snprintf(setting->key, sizeof setting->key, "optimizer.groups.%d.%s", g - 1, name);
        }
    }
    if (s->model->recipe->ema > 0)      // else there is no average in the program
        snprintf(add(s, MLRT_SET_REAL, &s->recipe.ema)->key, sizeof s->setting->key, "ema");
}

static const struct ArgRow { const char *link, *argument; int at; bool target; } arg_rows[] = {
    {"warmup", "from", 0, false},      {"linear", "to", 0, true},           {"cosine", "to", 0, true},
    {"step", "factor", 0, false},      {"multistep", "factor", 0, false},   {"exponential", "factor", 0, false},
    {"polynomial", "power", 0, false}, {"polynomial", "to", 1, true},       {"one_cycle", "peak", 0, true},
    {"one_cycle", "rise", 1, false},   {"one_cycle", "end", 2, false},      {"plateau", "factor", 0, false},
    {"plateau", "patience", 1, false}, {"plateau", "threshold", 2, false},  {"plateau", "to", 3, true},
};

// A link's key sets its length; "schedule.cosine.to" its argument. A second link of the same name is numbered from 2.
static void add_link(MlrtSettings *s, int i)
{
    MlrtSchedule *link = &s->schedule[i];
    int nth = 1;
    char name[48];
    for (int j = 0; j < i; j++)
        nth += strcmp(s->schedule[j].name, link->name) == 0;
    snprintf(name, sizeof name, nth > 1 ? "schedule.%.24s.%d" : "schedule.%.24s", link->name, nth);
    if (link->n_at == 0 && !link->by)   // those have no length
        snprintf(add(s, MLRT_SET_DURATION, &link->length)->key, sizeof s->setting->key, "%s", name);
    for (size_t r = 0; r < sizeof arg_rows / sizeof *arg_rows; r++)
        if (strcmp(arg_rows[r].link, link->name) == 0) {
            MlrtSetting *setting = add(s, arg_rows[r].target ? MLRT_SET_TARGET : MLRT_SET_REAL, &link->arg[arg_rows[r].at]);
            setting->share = &link->share[arg_rows[r].at];
            snprintf(setting->key, sizeof setting->key, "%s.%s", name, arg_rows[r].argument);
        }
}

// "data.path", "split.valid.path"; a source of several files has a key for each name: "data.pixels".
static void add_source(MlrtSettings *s, const MlrtSource *source, const char *prefix, const char *part)
{
    bool csv = strcmp(source->kind, "csv") == 0;
    for (int a = 0; a < source->n_args; a++) {
        const char *name = source->arg[a];
        if (csv && name && *name && strcmp(name, "path") != 0)
            continue;
        MlrtSetting *setting = add(s, MLRT_SET_TEXT, (void *)&source->text[a]);
        snprintf(setting->key, sizeof setting->key, "%s%s.%s", prefix, part, csv ? "path" : name);
    }
}

static void fill_table(MlrtSettings *s)
{
    add_fixed(s);
    add_hypers(s);
    for (int i = 0; i < s->recipe.n_schedule; i++)
        add_link(s, i);
    if (s->recipe.source)
        add_source(s, s->recipe.source, "data", "");
    for (int i = 0; i < s->recipe.n_splits; i++)
        if (s->recipe.split[i].source)
            add_source(s, s->recipe.split[i].source, "split.", s->recipe.split[i].part);
}

static MlrtSetting *setting_find(MlrtSettings *s, const char *key, size_t length)
{
    for (int i = 0; i < s->count; i++)
        if (strlen(s->setting[i].key) == length && memcmp(s->setting[i].key, key, length) == 0)
            return &s->setting[i];
    return NULL;
}

// --- changing values ---------------------------------------------------------------------------------------------------

// True if `key` is a value that was fixed when compiling: a line "key = …" of the model's settings, or a row COMPILED.
static bool is_compiled(const MlrtModel *model, const char *key)
{
    for (int i = 0; i < COMPILED; i++)
        if (strcmp(compiled_keys[i], key) == 0)
            return true;
    size_t length = strlen(key);
    for (const char *line = model->settings; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
        if (strncmp(line, key, length) == 0 && strncmp(line + length, " = ", 3) == 0)
            return true;
    return false;
}

static MlrtStatus fail_key(MlrtSettings *s, const char *text, size_t length, MlrtError *error)
{
    char key[96];
    snprintf(key, sizeof key, "%.*s", (int)(length < 95 ? length : 95), text);
    if (is_compiled(s->model, key))
        return mlrt_fail(error, MLRT_BAD_USAGE, "'%s' is fixed when compiling: mlc compile %s -D '%s'", key, s->model->path,
                         mlrt_quote(text, strlen(text)).text);
    const char **names = mlrt_alloc_array((size_t)s->count, sizeof *names);
    for (int i = 0; names && i < s->count; i++)
        names[i] = s->setting[i].key;
    const char *near = names ? mlrt_nearest(key, names, s->count) : NULL;
    free(names);
    return mlrt_fail(error, MLRT_BAD_USAGE, "--set: unknown key '%s'%s%s%s", mlrt_quote(key, strlen(key)).text,
                     near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

// A new number of the optimiser reaches the groups that it moves: values that were the same follow, learning rates keep their ratio.
static void follow_base(MlrtSettings *s, const MlrtSetting *setting, double before)
{
    ptrdiff_t k = (double *)setting->place - s->group;
    for (int g = 1; g < s->recipe.n_groups; g++) {
        double *value = &s->group[g * MLRT_HYPERS + k];
        if (own_optimizer(&s->recipe, g))
            continue;
        if (k == 0 && before > 0)
            *value *= s->group[0] / before;
        else if (*value == before)
            *value = s->group[k];
    }
}

// A run is as long as epochs say or as steps say: the other is then 0, as a net has it.
static void exclude_other(MlrtSettings *s, const MlrtSetting *setting)
{
    bool epochs = strcmp(setting->key, "epochs") == 0;
    MlrtSetting *other = epochs ? setting_find(s, "steps", 5) : setting_find(s, "epochs", 6);
    other->origin = s->model->path;
    if (epochs)
        s->recipe.steps = 0;
    else
        s->recipe.epochs = 0;
}

static MlrtStatus apply(MlrtSettings *s, MlrtSetting *setting, const char *text, const char *origin, MlrtError *error)
{
    double before = setting->kind == MLRT_SET_REAL ? *(double *)setting->place : 0;
    if (!read_value(s, setting, text))
        return mlrt_fail(error, MLRT_BAD_USAGE, "%s: '%s' takes %s, not '%s'", origin, setting->key, expected[setting->kind],
                         mlrt_quote(text, strlen(text)).text);
    setting->origin = origin;
    if (strncmp(setting->key, "optimizer.", 10) == 0 && strncmp(setting->key, "optimizer.groups.", 17) != 0)
        follow_base(s, setting, before);
    if (strcmp(setting->key, "epochs") == 0 || strcmp(setting->key, "steps") == 0)
        exclude_other(s, setting);
    return MLRT_OK;
}

MlrtStatus mlrt_settings_set(MlrtSettings *s, const char *text, const char *origin, MlrtError *error)
{
    size_t length = strcspn(text, "=");
    if (!text[length])
        return mlrt_fail(error, MLRT_BAD_USAGE, "%s takes KEY=VALUE, not '%s'", origin, mlrt_quote(text, length).text);
    MlrtSetting *setting = setting_find(s, text, length);
    return setting ? apply(s, setting, text + length + 1, origin, error) : fail_key(s, text, length, error);
}

MlrtStatus mlrt_settings_set_value(MlrtSettings *s, const char *key, const char *value, const char *origin, MlrtError *error)
{
    MlrtSetting *setting = setting_find(s, key, strlen(key));
    return setting ? apply(s, setting, value, origin, error) : fail_key(s, key, strlen(key), error);
}

static MlrtStatus apply_option(MlrtSettings *s, const MlrtOption *option, const char *key, const char *origin, MlrtError *error)
{
    return option->given ? apply(s, setting_find(s, key, strlen(key)), option->text, origin, error) : MLRT_OK;
}

static MlrtStatus apply_options(MlrtSettings *s, const MlrtOptions *o, MlrtError *error)
{
    MlrtStatus status = MLRT_OK;
    for (int i = 0; i < o->n_sets && status == MLRT_OK; i++)
        status = mlrt_settings_set(s, o->sets[i], "--set", error);
    if (status == MLRT_OK)
        status = apply_option(s, &o->epochs, "epochs", "--epochs", error);
    if (status == MLRT_OK)
        status = apply_option(s, &o->steps, "steps", "--steps", error);
    if (status == MLRT_OK)
        status = apply_option(s, &o->batch, "batch", "--batch", error);
    if (status == MLRT_OK)
        status = apply_option(s, &o->seed, "seed", "--seed", error);
    if (status == MLRT_OK && o->no_shuffle.given)
        status = apply(s, setting_find(s, "shuffle", 7), "false", "--no-shuffle", error);
    return status;
}

static MlrtStatus check(const MlrtSettings *s, MlrtError *error)
{
    const MlrtRecipe *recipe = &s->recipe;
    int64_t compiled = s->model->recipe->batch;
    if (recipe->batch > compiled)
        return mlrt_fail(error, MLRT_BAD_USAGE,
                         "batch %" PRId64 ": the memory was planned for %" PRId64
                         " at most; for more: mlc compile %s -D batch=%" PRId64,
                         recipe->batch, compiled, s->model->path, recipe->batch);
    if (!(recipe->epochs > 0) && recipe->steps <= 0)
        return mlrt_fail(error, MLRT_BAD_USAGE, "neither epochs nor steps say how long to train");
    if (!(recipe->ema < 1))
        return mlrt_fail(error, MLRT_BAD_USAGE, "ema takes a decay from 0 to below 1, not %g", recipe->ema);
    const char *fault = mlrt_schedule_fault(recipe->schedule, recipe->n_schedule);
    return fault ? mlrt_fail(error, MLRT_BAD_USAGE, "schedule: %s", fault) : MLRT_OK;
}

// --- copies ------------------------------------------------------------------------------------------------------------

static bool copy_array(const void *from, size_t count, size_t bytes, void *to)
{
    void *copy = mlrt_alloc_array(count, bytes);
    if (copy && count > 0)
        memcpy(copy, from, count * bytes);
    *(void **)to = copy;
    return copy != NULL;
}

static void copy_source(MlrtSettings *s, int at, const MlrtSource *source, int *texts)
{
    s->source[at] = *source;
    s->source[at].text = s->source_text + *texts;
    for (int a = 0; a < source->n_args; a++)
        s->source_text[(*texts)++] = source->text[a];
}

static int count_texts(const MlrtRecipe *recipe)
{
    int count = recipe->source ? recipe->source->n_args : 0;
    for (int i = 0; i < recipe->n_splits; i++)
        count += recipe->split[i].source ? recipe->split[i].source->n_args : 0;
    return count;
}

static bool copy_sources(MlrtSettings *s, const MlrtRecipe *from)
{
    int texts = 0;
    s->source = mlrt_alloc_array((size_t)from->n_splits + 1, sizeof *s->source);
    s->source_text = mlrt_alloc_array((size_t)count_texts(from), sizeof *s->source_text);
    if (!s->source || !s->source_text || !copy_array(from->split, (size_t)from->n_splits, sizeof *s->split, &s->split))
        return false;
    if (from->source) {
        copy_source(s, 0, from->source, &texts);
        s->recipe.source = &s->source[0];
    }
    for (int i = 0; i < from->n_splits; i++)
        if (from->split[i].source) {
            copy_source(s, i + 1, from->split[i].source, &texts);
            s->split[i].source = &s->source[i + 1];
        }
    s->recipe.split = s->split;
    return true;
}

static bool copy_recipe(MlrtSettings *s, const MlrtRecipe *from)
{
    s->recipe = *from;
    size_t groups = (size_t)from->n_groups * MLRT_HYPERS, links = (size_t)from->n_schedule;
    size_t rows = FIXED + 1 + groups + LINK_SETTINGS * links + (size_t)count_texts(from);
    s->setting = mlrt_alloc_array(rows, sizeof *s->setting);
    if (!s->setting || !copy_array(from->group, groups, sizeof *s->group, &s->group) ||
        !copy_array(from->schedule, links, sizeof *s->schedule, &s->schedule) || !copy_sources(s, from))
        return false;
    s->recipe.group = s->group;
    s->recipe.schedule = s->schedule;
    return true;
}

MlrtStatus mlrt_settings_open(MlrtSettings *s, const MlrtModel *model, MlrtError *error)
{
    *s = (MlrtSettings){.model = model};
    if (!copy_recipe(s, model->recipe))
        return mlrt_fail_memory(error, sizeof *s, "settings");
    fill_table(s);
    return MLRT_OK;
}

MlrtStatus mlrt_settings_apply(MlrtSettings *s, const MlrtOptions *options, MlrtError *error)
{
    MlrtStatus status = apply_options(s, options, error);
    return status == MLRT_OK ? check(s, error) : status;
}

void mlrt_settings_close(MlrtSettings *s)
{
    free(s->setting);
    free(s->group);
    free(s->schedule);
    free(s->source);
    free(s->source_text);
    free(s->split);
}
