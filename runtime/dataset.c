// dataset.c: sources are read, divided into parts, words become codes, and every sample is mapped once into the arrays that
// batches are gathered from. Whatever is wrong with a sample is found here, before training, with its file and line.
//
// Mapping once costs memory for the mapped samples and makes each epoch a copy; mappings with random ops would have to run
// for every batch instead.
#define _POSIX_C_SOURCE 200809L
#include "dataset.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digest.h"
#include "split.h"

enum { SOURCES = 1 + MLRT_PARTS, CHUNK = 256 };         // rows that a thread maps at a time

typedef struct Loader {
    MlrtDataset        *data;
    const MlrtModel    *model;
    const MlrtRecipe   *recipe;
    MlrtRows            source[SOURCES];    // the data, then those of splits
    int                 part[SOURCES];      // the part that a split's source is
    int64_t             first[SOURCES];     // number of its first sample
    int                 n_sources;
    bool                targets;
    int64_t            *bad;                // of each chunk of the source in work: its first bad row, or -1
    int                 current;
} Loader;

// --- reading -----------------------------------------------------------------------------------------------------------

static MlrtStatus add_source(Loader *l, const MlrtSource *source, int part, const char *program, MlrtError *error)
{
    int i = l->n_sources++;
    l->part[i] = part;
    l->first[i] = l->data->rows;
    MlrtStatus status = mlrt_rows_read(&l->source[i], l->model, source, program, l->targets, error);
    l->data->rows += (int64_t)l->source[i].rows;
    return status;
}

static MlrtStatus read_sources(Loader *l, const char *program, MlrtError *error)
{
    MlrtStatus status = add_source(l, l->recipe->source, MLRT_TRAIN, program, error);
    for (int i = 0; i < l->recipe->n_splits && status == MLRT_OK; i++) {
        const MlrtSplit *split = &l->recipe->split[i];
        int part = mlrt_part_find(split->part);
        if (split->source && (part < MLRT_VALID || l->n_sources == SOURCES))
            status = mlrt_fail(error, MLRT_BAD_INPUT, "split: '%s' cannot have a source of its own", split->part);
        else if (split->source)
            status = add_source(l, split->source, part, program, error);
    }
    return status;
}

// --- parts -------------------------------------------------------------------------------------------------------------

static int port_find(const MlrtModel *model, const char *name)
{
    int ports = model->n_inputs + model->n_targets, i = 0;
    while (i < ports && strcmp(model->input[i].name, name) != 0)
        i++;
    return i < ports ? i : -1;
}

static void call_map(const Loader *l, const MlrtRows *rows, size_t row, void *const *port)
{
    const void *field[64];
    for (int f = 0; f < l->model->n_fields; f++) {
        const char *values = rows->column[f].values;
        field[f] = values ? values + row * rows->column[f].stride : NULL;
    }
    l->model->map_sample(field, port, l->targets);
}

// The first number of a value, of whatever type of integer or float.
static int64_t first_number(const char *type, const void *at)
{
    int64_t number = 0;
    if (strcmp(type, "f32") == 0) {
        float value;
        memcpy(&value, at, sizeof value);
        return (int64_t)value;
    }
#define READ(name, c_type)                                                                                                     \
    if (strcmp(type, name) == 0) {                                                                                             \
        c_type value;                                                                                                          \
        memcpy(&value, at, sizeof value);                                                                                      \
        number = (int64_t)value;                                                                                               \
    }
    READ("i64", int64_t) READ("i32", int32_t) READ("i16", int16_t) READ("i8", int8_t)
    READ("u8", uint8_t) READ("u16", uint16_t) READ("u32", uint32_t) READ("bool", uint8_t)
#undef READ
    return number;
}

// Groups by a target's text where it is read as codes: those are fitted after the split.
static MlrtStatus group_by_text(const Loader *l, const MlrtRows *rows, int port, int64_t *group, bool *done, MlrtError *error)
{
    MlrtStatus status = MLRT_OK;
    for (int f = 0; f < l->model->n_fields && !*done && status == MLRT_OK; f++)
        if (l->model->field[f].port == port && rows->column[f].strings) {
            MlrtCodes all;
            const char *const *strings = (const char *const *)rows->column[f].strings;
            int32_t *codes = mlrt_alloc_array(rows->rows, sizeof *codes);
            status = codes ? mlrt_codes_fit(strings, rows->rows, &all, error) : mlrt_fail_memory(error, rows->rows, "split");
            if (status == MLRT_OK) {
                status = mlrt_codes_apply(&all, strings, rows->rows, false, codes, error);
                for (size_t i = 0; i < rows->rows; i++)
                    group[i] = codes[i];
                mlrt_codes_free(&all);
            }
            free(codes);
            *done = true;
        }
    return status;
}

// Groups by mapping every sample once for nothing but the target; fields that become codes read as 0 meanwhile.
static MlrtStatus group_by_value(const Loader *l, const MlrtRows *rows, int port, int64_t *group, MlrtError *error)
{
    void *scratch[MLRT_PORTS] = {0};
    bool enough = true;
    int ports = l->model->n_inputs + l->model->n_targets;
    int32_t zero = 0;
    for (int p = 0; p < ports; p++)
        enough = (scratch[p] = calloc(1, (size_t)l->model->input[p].bytes + 1)) && enough;
    for (size_t row = 0; row < rows->rows && enough; row++) {
        const void *field[64];
        for (int f = 0; f < l->model->n_fields; f++) {
            const char *values = rows->column[f].values;
            field[f] = values ? (const void *)(values + row * rows->column[f].stride) : &zero;
        }
        l->model->map_sample(field, scratch, true);
        group[row] = first_number(l->model->input[port].type, scratch[port]);
    }
    for (int p = 0; p < ports; p++)
        free(scratch[p]);
    return enough ? MLRT_OK : mlrt_fail_memory(error, rows->rows, "split");
}

static MlrtStatus find_groups(const Loader *l, int64_t **group, MlrtError *error)
{
    *group = NULL;
    if (!l->recipe->stratified_by)
        return MLRT_OK;
    int port = port_find(l->model, l->recipe->stratified_by);
    if (port < 0)
        return mlrt_fail(error, MLRT_INTERNAL, "split: stratified by '%s', which the net does not have",
                         l->recipe->stratified_by);
    bool done = false;
    *group = mlrt_alloc_array(l->source[0].rows, sizeof **group);
    if (!*group)
        return mlrt_fail_memory(error, l->source[0].rows * sizeof **group, "split");
    MlrtStatus status = group_by_text(l, &l->source[0], port, *group, &done, error);
    return status == MLRT_OK && !done ? group_by_value(l, &l->source[0], port, *group, error) : status;
}

static MlrtStatus fill_part(Loader *l, int source, MlrtError *error)
{
    MlrtPart *part = &l->data->part[l->part[source]];
    int64_t rows = (int64_t)l->source[source].rows;
    int64_t *row = mlrt_alloc_array((size_t)rows, sizeof *row);
    if (!row)
        return mlrt_fail_memory(error, (size_t)rows * sizeof *row, "split");
    for (int64_t i = 0; i < rows; i++)
        row[i] = l->first[source] + i;
    free(part->row);
    part->row = row;
    part->rows = rows;
    return MLRT_OK;
}

static MlrtStatus make_parts(Loader *l, MlrtError *error)
{
    int64_t *group = NULL;
    MlrtStatus status = find_groups(l, &group, error);
    if (status == MLRT_OK)
        status = mlrt_split_by_share(l->data->part, l->recipe, (int64_t)l->source[0].rows, group, error);
    free(group);
    for (int i = 1; i < l->n_sources && status == MLRT_OK; i++)
        status = fill_part(l, i, error);
    return status;
}

// --- codes -------------------------------------------------------------------------------------------------------------

// Keeps the `most` codes that occur most often (count[i] times), the first of equals.
static MlrtStatus keep_frequent(MlrtCodes *codes, const int64_t *count, int64_t most, MlrtError *error)
{
    const char **kept = mlrt_alloc_array((size_t)most, sizeof *kept);
    char *taken = calloc((size_t)codes->count, 1);
    MlrtCodes fewer = {0};
    MlrtStatus status = kept && taken ? MLRT_OK : mlrt_fail_memory(error, (size_t)codes->count, "codes");
    for (int64_t k = 0; k < most && status == MLRT_OK; k++) {
        int32_t best = -1;
        for (int32_t i = 0; i < codes->count; i++)
            if (!taken[i] && (best < 0 || count[i] > count[best]))
                best = i;
        taken[best] = 1;
        kept[k] = codes->names[best];
    }
    if (status == MLRT_OK)
        status = mlrt_codes_fit(kept, (size_t)most, &fewer, error);
    free(kept);
    free(taken);
    if (status == MLRT_OK) {
        mlrt_codes_free(codes);
        *codes = fewer;
    }
    return status;
}

static MlrtStatus limit_codes(MlrtCodes *codes, const char *const *strings, size_t rows, int64_t most, MlrtError *error)
{
    int32_t *code = mlrt_alloc_array(rows, sizeof *code);
    int64_t *count = calloc((size_t)codes->count, sizeof *count);
    MlrtStatus status = code && count ? MLRT_OK : mlrt_fail_memory(error, rows * sizeof *code, "codes");
    if (status == MLRT_OK)
        status = mlrt_codes_apply(codes, strings, rows, false, code, error);
    for (size_t i = 0; i < rows && status == MLRT_OK; i++)
        count[code[i]]++;
    if (status == MLRT_OK)
        status = keep_frequent(codes, count, most, error);
    free(code);
    free(count);
    return status;
}

static const char *field_name(const MlrtField *field, char text[32])
{
    snprintf(text, 32, "column %lld", (long long)field->first);
    return field->name ? field->name : text;
}

// Fits the codes of one field on the training part.
static MlrtStatus fit_field(Loader *l, int f, MlrtError *error)
{
    const MlrtField *field = &l->model->field[f];
    const MlrtPart *part = &l->data->part[MLRT_TRAIN];
    MlrtCodes *codes = &l->data->codes[f];
    char text[32];
    const char **strings = mlrt_alloc_array((size_t)part->rows, sizeof *strings);
    if (!strings)
        return mlrt_fail_memory(error, (size_t)part->rows * sizeof *strings, "codes");
    for (int64_t i = 0; i < part->rows; i++)
        strings[i] = l->source[0].column[f].strings[part->row[i]];
    MlrtStatus status = mlrt_codes_fit(strings, (size_t)part->rows, codes, error);
    bool classes = strcmp(field->codes, "classes") == 0;
    if (status == MLRT_OK && classes && codes->count != field->n_codes)
        status = mlrt_fail(error, MLRT_BAD_INPUT, "%s: '%s' has %d different values in the training part, classes was told %lld",
                           l->source[0].path, field_name(field, text), (int)codes->count, (long long)field->n_codes);
    if (status == MLRT_OK && !classes && codes->count > field->n_codes - 1)
        status = limit_codes(codes, strings, (size_t)part->rows, field->n_codes - 1, error);
    free(strings);
    return status;
}

// An unseen value is looked for here, so that the message can say the line.
static MlrtStatus apply_field(const Loader *l, MlrtRows *rows, int f, MlrtError *error)
{
    const MlrtField *field = &l->model->field[f];
    MlrtColumn *column = &rows->column[f];
    if (!column->strings)
        return MLRT_OK;
    int32_t *values = mlrt_alloc_array(rows->rows, sizeof *values);
    if (!values)
        return mlrt_fail_memory(error, rows->rows * sizeof *values, "codes");
    column->owned = values;
    column->values = column->owned;
    char text[32];
    bool unknown = strcmp(field->codes, "category") == 0;
    for (size_t i = 0; i < rows->rows; i++) {
        MlrtError problem;
        const char *const *string = (const char *const *)column->strings + i;
        if (mlrt_codes_apply(&l->data->codes[f], string, 1, unknown, values + i, &problem) != MLRT_OK)
            return mlrt_fail(error, problem.status, "%s: %s: '%s' does not occur in the training part",
                             mlrt_rows_place(rows, i).text, field_name(field, text), mlrt_quote(*string, strlen(*string)).text);
    }
    return MLRT_OK;
}

// Codes from a file are no more to be trusted than the file: they must stay below what the net was compiled for.
static MlrtStatus copy_codes(const MlrtField *field, const MlrtCodes *from, MlrtCodes *to, MlrtError *error)
{
    bool classes = strcmp(field->codes, "classes") == 0;
    char text[32];
    if (classes ? from->count != field->n_codes : from->count >= field->n_codes)
        return mlrt_fail(error, MLRT_BAD_FILE, "the weights know %d values of '%s', the net has room for %lld", (int)from->count,
                         field_name(field, text), (long long)field->n_codes - !classes);
    return mlrt_codes_fit((const char *const *)from->names, (size_t)from->count, to, error);
}

static MlrtStatus make_codes(Loader *l, const MlrtCodes *given, MlrtError *error)
{
    MlrtStatus status = MLRT_OK;
    for (int f = 0; f < l->model->n_fields && status == MLRT_OK; f++) {
        if (!l->model->field[f].codes)
            continue;
        if (given && given[f].count > 0)
            status = copy_codes(&l->model->field[f], &given[f], &l->data->codes[f], error);
        else if (l->source[0].column[f].strings)
            status = fit_field(l, f, error);
        for (int s = 0; s < l->n_sources && status == MLRT_OK; s++)
            status = apply_field(l, &l->source[s], f, error);
    }
    return status;
}

// --- mapping -----------------------------------------------------------------------------------------------------------

// The first value of a sample's port that may not stand there: not finite, or no class number. -1: all are fine.
static int64_t bad_value(const MlrtPort *port, const char *sample)
{
    const char *type = port->type;
    if (strcmp(type, "f32") == 0)
        for (int64_t i = 0; i < port->bytes / 4; i++) {
            float value;
            memcpy(&value, sample + 4 * i, sizeof value);
            if (!isfinite(value))
                return i;
        }
    if (port->below <= 0 || strcmp(type, "f32") == 0)
        return -1;
    int64_t count = 1;
    for (int i = 0; i < port->rank; i++)
        count *= port->dim[i];
    for (int64_t i = 0, width = count > 0 ? port->bytes / count : 0; i < count; i++) {
        int64_t value = first_number(type, sample + i * width);
        if (value < 0 || value >= port->below)
            return i;
    }
    return -1;
}

static int loaded_ports(const Loader *l) { return l->model->n_inputs + (l->targets ? l->model->n_targets : 0); }

static bool map_row(const Loader *l, size_t row)
{
    void *port[MLRT_PORTS];
    int ports = loaded_ports(l);
    int64_t sample = l->first[l->current] + (int64_t)row;
    for (int p = 0; p < l->model->n_inputs + l->model->n_targets; p++)
        port[p] = p < ports ? l->data->port[p] + sample * l->model->input[p].bytes : NULL;
    call_map(l, &l->source[l->current], row, port);
    for (int p = 0; p < ports; p++)
        if (bad_value(&l->model->input[p], port[p]) >= 0)
            return false;
    return true;
}

static void map_chunk(void *context, int chunk, int worker)
{
    Loader *l = context;
    size_t rows = l->source[l->current].rows, first = (size_t)chunk * CHUNK;
    (void)worker;
    l->bad[chunk] = -1;
    for (size_t row = first; row < rows && row < first + CHUNK && l->bad[chunk] < 0; row++)
        if (!map_row(l, row))
            l->bad[chunk] = (int64_t)row;
}

static MlrtStatus fail_row(const Loader *l, int64_t row, MlrtError *error)
{
    MlrtRowText place = mlrt_rows_place(&l->source[l->current], (size_t)row);
    for (int p = 0; p < loaded_ports(l); p++) {
        const MlrtPort *port = &l->model->input[p];
        const char *sample = l->data->port[p] + (l->first[l->current] + row) * port->bytes;
        int64_t at = bad_value(port, sample), width = 1;
        if (at < 0)
            continue;
        if (strcmp(port->type, "f32") == 0) {
            float value;
            memcpy(&value, sample + 4 * at, sizeof value);
            return mlrt_fail(error, MLRT_BAD_INPUT, "%s: '%s' becomes %s there; every value has to be finite", place.text,
                             port->name, isnan(value) ? "nan" : "infinite");
        }
        for (int i = 0; i < port->rank; i++)
            width *= port->dim[i];
        int64_t value = first_number(port->type, sample + at * (port->bytes / width));
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s: '%s' is %" PRId64 "; it has to be 0 to %" PRId64, place.text, port->name,
                         value, port->below - 1);
    }
    return mlrt_fail(error, MLRT_INTERNAL, "%s: a bad value that is not found again", place.text);
}

static MlrtStatus map_source(Loader *l, int source, MlrtPool *pool, MlrtError *error)
{
    size_t chunks = (l->source[source].rows + CHUNK - 1) / CHUNK;
    l->current = source;
    l->bad = mlrt_alloc_array(chunks, sizeof *l->bad);
    if (!l->bad || chunks > INT32_MAX)
        return mlrt_fail_memory(error, chunks * sizeof *l->bad, "samples");
    mlrt_pool_run(pool, map_chunk, l, (int)chunks);
    int64_t bad = -1;
    for (size_t i = 0; i < chunks && bad < 0; i++)
        bad = l->bad[i];
    free(l->bad);
    return bad < 0 ? MLRT_OK : fail_row(l, bad, error);
}

static MlrtStatus map_all(Loader *l, MlrtPool *pool, MlrtError *error)
{
    MlrtStatus status = MLRT_OK;
    for (int p = 0; p < loaded_ports(l) && status == MLRT_OK; p++) {
        size_t bytes = 0;
        if (mlrt_size_mul((size_t)l->data->rows, (size_t)l->model->input[p].bytes, &bytes))
            l->data->port[p] = calloc(bytes + 1, 1);
        if (!l->data->port[p])
            status = mlrt_fail_memory(error, bytes, l->model->input[p].name);
    }
    for (int s = 0; s < l->n_sources && status == MLRT_OK; s++)
        status = map_source(l, s, pool, error);
    return status;
}

static void digest_all(Loader *l)
{
    MlrtDigestState state;
    mlrt_digest_begin(&state);
    for (int p = 0; p < loaded_ports(l); p++)
        mlrt_digest_add(&state, l->data->port[p], (size_t)(l->data->rows * l->model->input[p].bytes));
    memcpy(l->data->digest, mlrt_digest_end(&state).text, sizeof l->data->digest);
}

// --- all together ------------------------------------------------------------------------------------------------------

static MlrtStatus load(Loader *l, const MlrtCodes *codes, const char *program, MlrtPool *pool, MlrtError *error)
{
    l->data->codes = calloc((size_t)l->model->n_fields + 1, sizeof(MlrtCodes));
    if (!l->data->codes)
        return mlrt_fail_memory(error, sizeof(MlrtCodes), "codes");
    if (l->model->n_fields > 64)
        return mlrt_fail(error, MLRT_INTERNAL, "more than 64 fields");
    MlrtStatus status = read_sources(l, program, error);
    if (status == MLRT_OK)
        status = make_parts(l, error);
    if (status == MLRT_OK)
        status = make_codes(l, codes, error);
    if (status == MLRT_OK)
        status = map_all(l, pool, error);
    if (status == MLRT_OK)
        digest_all(l);
    for (int s = 0; s < l->n_sources; s++)
        mlrt_rows_close(&l->source[s], l->model);
    return status;
}

// A net that draws its own samples: an epoch is one batch of nothing.
static MlrtStatus load_nothing(MlrtDataset *data, const MlrtRecipe *recipe, MlrtError *error)
{
    if (data->model->n_inputs > 0)
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s has inputs, but its train section has no data to fill them from",
                         data->model->path);
    data->rows = recipe->batch;
    return mlrt_split_by_share(data->part, &(MlrtRecipe){.seed = recipe->seed}, data->rows, NULL, error);
}

MlrtStatus mlrt_dataset_open(MlrtDataset *data, const MlrtSettings *settings, const MlrtCodes *codes, const char *program,
                             MlrtPool *pool, MlrtError *error)
{
    Loader loader = {.data = data, .model = settings->model, .recipe = &settings->recipe, .targets = true};
    *data = (MlrtDataset){.model = settings->model};
    if (!settings->recipe.source)
        return load_nothing(data, &settings->recipe, error);
    return load(&loader, codes, program, pool, error);
}

// The source of the recipe with another file; a source of several files cannot be swapped like this.
MlrtStatus mlrt_dataset_open_rows(MlrtDataset *data, const MlrtSettings *settings, const char *path, const MlrtCodes *codes,
                                  const char *program, MlrtPool *pool, MlrtError *error)
{
    const char *text[MLRT_PORTS];
    MlrtRecipe recipe = {.seed = settings->recipe.seed, .batch = settings->recipe.batch};
    Loader loader = {.data = data, .model = settings->model, .recipe = &recipe};
    *data = (MlrtDataset){.model = settings->model};
    const MlrtSource *from = settings->recipe.source;
    if (!from || strcmp(from->kind, "csv") != 0 || from->window > 0 || from->n_args > MLRT_PORTS)
        return mlrt_fail(error, MLRT_BAD_USAGE, "--predict reads CSV rows, and this net's data are no CSV file");
    MlrtSource source = *from;
    for (int a = 0; a < from->n_args; a++)
        text[a] = a == 0 || (from->arg[a] && strcmp(from->arg[a], "path") == 0) ? path : from->text[a];
    source.text = text;
    recipe.source = &source;
    return load(&loader, codes, program, pool, error);
}

void mlrt_dataset_close(MlrtDataset *data)
{
    for (int p = 0; p < MLRT_PORTS; p++)
        free(data->port[p]);
    for (int p = 0; p < MLRT_PARTS; p++)
        free(data->part[p].row);
    for (int f = 0; data->codes && f < data->model->n_fields; f++)
        mlrt_codes_free(&data->codes[f]);
    free(data->codes);
    *data = (MlrtDataset){0};
}

const char *mlrt_dataset_label(const MlrtDataset *data, int port, int64_t code)
{
    for (int f = 0; f < data->model->n_fields && data->codes && code >= 0; f++)
        if (data->model->field[f].port == port && code < data->codes[f].count &&
            strcmp(data->model->field[f].codes, "classes") == 0)
            return data->codes[f].names[code];
    const MlrtPort *described = &data->model->input[port];
    return code >= 0 && code < described->n_labels ? described->labels[code] : NULL;
}

// --- codes as text: names joined by commas; a comma, % and what is not printable as %XX ---------------------------------

char *mlrt_codes_text(const MlrtCodes *codes)
{
    size_t room = 1;
    for (int32_t i = 0; i < codes->count; i++)
        room += 3 * strlen(codes->names[i]) + 1;
    char *text = malloc(room), *to = text;
    for (int32_t i = 0; i < codes->count && text; i++) {
        for (const char *from = codes->names[i]; *from; from++) {
            unsigned char c = (unsigned char)*from;
            if (c <= ' ' || c >= 127 || c == ',' || c == '%')
                to += sprintf(to, "%%%02X", c);
            else
                *to++ = (char)c;
        }
        *to++ = ',';
    }
    if (text)
        *to = 0;
    return text;
}

static int hex_digit(char c)
{
    const char *digits = "0123456789ABCDEF", *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

MlrtStatus mlrt_codes_parse(const char *text, MlrtCodes *codes, MlrtError *error)
{
    size_t count = 0, length = strlen(text);
    char *plain = malloc(length + 1), *to = plain;
    const char **names = mlrt_alloc_array(length + 1, sizeof *names);
    MlrtStatus status = plain && names ? MLRT_OK : mlrt_fail_memory(error, length, "codes");
    for (const char *at = text; *at && status == MLRT_OK;) {
        names[count++] = to;
        for (; *at && *at != ',' && status == MLRT_OK; at++) {
            int high = *at == '%' ? hex_digit(at[1]) : 0, low = *at == '%' && high >= 0 ? hex_digit(at[2]) : 0;
            if (high < 0 || low < 0 || (*at == '%' && high == 0 && low == 0))
                status = mlrt_fail(error, MLRT_BAD_FILE, "codes: a damaged list of names");
            *to++ = *at == '%' ? (char)(high * 16 + low) : *at;
            at += *at == '%' && status == MLRT_OK ? 2 : 0;
        }
        *to++ = 0;
        at += *at == ',';
    }
    if (status == MLRT_OK)
        status = mlrt_codes_fit(names, count, codes, error);
    free(plain);
    free(names);
    return status;
}
