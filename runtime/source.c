// source.c: opens the files of a source and reads the fields. A file named in a net is looked for as written, then beside the
// .net file, then beside the program, so that a sample runs from any folder.
#include "source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "number.h"

static const char *argument(const MlrtSource *source, const char *name)
{
    for (int a = 0; a < source->n_args; a++)
        if (source->arg[a] && strcmp(source->arg[a], name) == 0)
            return source->text[a];
    return NULL;
}

// --- paths -------------------------------------------------------------------------------------------------------------

// `name` in the folder of `beside`, NULL without memory.
static char *path_beside(const char *beside, const char *name)
{
    const char *slash = strrchr(beside, '/');
    size_t folder = slash ? (size_t)(slash - beside) + 1 : 0, length = strlen(name);
    char *path = malloc(folder + length + 1);
    if (path) {
        memcpy(path, beside, folder);
        memcpy(path + folder, name, length + 1);
    }
    return path;
}

// The path under which the file is there, else as it was written. Owned by the caller; NULL without memory.
static char *path_find(const MlrtModel *model, const char *program, const char *name)
{
    const char *places[] = {"", model->path, program};
    for (int i = 0; i < 3; i++) {
        char *path = *name == '/' || !places[i] ? NULL : path_beside(places[i], name);
        if (path && mlrt_stream_exists(path))
            return path;
        free(path);
    }
    return path_beside("", name);
}

// --- CSV ---------------------------------------------------------------------------------------------------------------

static MlrtStatus fail_option(const char *option, const char *text, const char *expected, MlrtError *error)
{
    return mlrt_fail(error, MLRT_BAD_INPUT, "csv: %s = '%s', but %s was expected", option, mlrt_quote(text, strlen(text)).text,
                     expected);
}

static MlrtStatus csv_options(const MlrtSource *source, MlrtCsvOptions *options, MlrtError *error)
{
    const char *header = argument(source, "header"), *separator = argument(source, "separator");
    *options = (MlrtCsvOptions){0};
    if (header && strcmp(header, "true") != 0 && strcmp(header, "false") != 0)
        return fail_option("header", header, "true or false", error);
    if (header)
        options->header = strcmp(header, "true") == 0 ? MLRT_HEADER_YES : MLRT_HEADER_NO;
    if (separator && strlen(separator) != 1)
        return fail_option("separator", separator, "one character", error);
    options->separator = separator ? separator[0] : 0;
    return MLRT_OK;
}

static MlrtStatus open_csv(MlrtRows *rows, const MlrtModel *model, const MlrtSource *source, const char *program,
                           MlrtError *error)
{
    MlrtCsvOptions options;
    const char *path = argument(source, "path");
    if (!path && source->n_args > 0)
        path = source->text[0];
    if (!path)
        return mlrt_fail(error, MLRT_BAD_INPUT, "csv: no file is named");
    MlrtStatus status = csv_options(source, &options, error);
    if (status != MLRT_OK)
        return status;
    rows->path = path_find(model, program, path);
    if (!rows->path)
        return mlrt_fail_memory(error, strlen(path), path);
    status = mlrt_csv_open(rows->path, &options, &rows->csv, error);
    rows->rows = status == MLRT_OK ? mlrt_csv_rows(rows->csv) : 0;
    return status;
}

static MlrtType type_find(const char *name)
{
    int type = 0;
    while (type < MLRT_TYPE_COUNT && strcmp(mlrt_type_name((MlrtType)type), name) != 0)
        type++;
    return (MlrtType)type;
}

// Whether the file has the columns of the field; false: *problem is filled.
static bool has_columns(const MlrtRows *rows, const MlrtField *field, int *first, int64_t *count, MlrtError *problem)
{
    *count = field->name ? 1 : field->last - field->first + 1;
    *first = (int)field->first;
    if (field->name)
        return mlrt_csv_find(rows->csv, field->name, first, problem) == MLRT_OK;
    int columns = mlrt_csv_columns(rows->csv);
    if (field->first >= 0 && *count > 0 && field->last < columns)
        return true;
    mlrt_fail(problem, MLRT_BAD_INPUT, "%s: column %lld is asked for, the file has columns 0 to %d", rows->path,
              (long long)field->last, columns - 1);
    return false;
}

static MlrtStatus read_numbers(MlrtRows *rows, const MlrtField *field, int first, int count, MlrtColumn *column, MlrtError *error)
{
    size_t bytes;
    MlrtType type = type_find(field->type);
    if (type == MLRT_TYPE_COUNT || (int64_t)mlrt_type_bytes(type) * count != field->bytes)
        return mlrt_fail(error, MLRT_INTERNAL, "a field of %d columns of type %s has %lld bytes", count, field->type,
                         (long long)field->bytes);
    int *columns = mlrt_alloc_array((size_t)count, sizeof *columns);
    if (mlrt_size_mul(rows->rows, (size_t)field->bytes, &bytes))
        column->owned = mlrt_alloc_array(bytes, 1);
    MlrtStatus status = MLRT_OK;
    if (!columns || !column->owned)
        status = mlrt_fail_memory(error, rows->rows * (size_t)field->bytes, rows->path);
    for (int i = 0; i < count && columns; i++)
        columns[i] = first + i;
    if (status == MLRT_OK)
        status = mlrt_csv_numbers(rows->csv, columns, count, type, column->owned, error);
    column->values = column->owned;
    free(columns);
    return status;
}

static MlrtStatus read_csv_field(MlrtRows *rows, const MlrtField *field, MlrtColumn *column, bool targets, MlrtError *error)
{
    int first;
    int64_t count;
    MlrtError problem;
    if (!has_columns(rows, field, &first, &count, &problem))
        return field->target_only && !targets ? MLRT_OK : mlrt_fail(error, problem.status, "%s", problem.text);
    if (strcmp(field->how, "strings") == 0 && field->target_only && !targets)
        return MLRT_OK;
    if (strcmp(field->how, "strings") == 0)
        return mlrt_csv_strings(rows->csv, first, &column->strings, error);
    return read_numbers(rows, field, first, (int)count, column, error);
}

// --- arrays ------------------------------------------------------------------------------------------------------------

static MlrtStatus check_array(MlrtArray *array, const MlrtField *field, const char *path, MlrtError *error)
{
    int64_t count = 1;
    for (int i = 0; i < field->rank; i++)
        count *= field->dim[i];
    if (array->rank < 1 || array->shape[0] < 1)
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s: there are no rows", path);
    if (array->count / (size_t)array->shape[0] != (size_t)count)
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s: a row has the shape %s, but %s was expected", path,
                         mlrt_shape_text(array->shape + 1, array->rank - 1).text, mlrt_shape_text(field->dim, field->rank).text);
    MlrtType type = type_find(field->type);
    if (type == MLRT_TYPE_COUNT || (int64_t)mlrt_type_bytes(type) * count != field->bytes)
        return mlrt_fail(error, MLRT_INTERNAL, "a field of type %s has %lld bytes", field->type, (long long)field->bytes);
    return mlrt_array_convert(array, type, path, error);
}

static MlrtStatus take_rows(MlrtRows *rows, size_t count, const char *path, MlrtError *error)
{
    if (rows->path && rows->rows != count)
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s has %zu rows, %s has %zu; they have to be equally many", path, count,
                         rows->path, rows->rows);
    if (!rows->path && !(rows->path = path_beside("", path)))
        return mlrt_fail_memory(error, strlen(path), path);
    rows->rows = count;
    return MLRT_OK;
}

static MlrtStatus read_array_field(MlrtRows *rows, const MlrtModel *model, const MlrtSource *source, const char *program,
                                   const MlrtField *field, MlrtColumn *column, bool targets, MlrtError *error)
{
    const char *file = field->name ? argument(source, field->name) : NULL;
    if (!file)
        return field->target_only && !targets ? MLRT_OK
                                              : mlrt_fail(error, MLRT_BAD_INPUT, "%s: no file is named for '%s'", source->kind,
                                                          field->name ? field->name : "?");
    column->path = path_find(model, program, file);
    if (!column->path)
        return mlrt_fail_memory(error, strlen(file), file);
    bool idx = strcmp(source->kind, "idx") == 0;
    MlrtStatus status = (idx ? mlrt_idx_open : mlrt_npy_open)(column->path, &column->array, error);
    if (status == MLRT_OK)
        status = check_array(&column->array, field, column->path, error);
    if (status == MLRT_OK)
        status = take_rows(rows, (size_t)column->array.shape[0], column->path, error);
    column->values = column->array.data;
    return status;
}

// --- streams -----------------------------------------------------------------------------------------------------------

// Bytes of a text, or the numbers of `type` that a stream is; all as the type of the field.
static MlrtStatus read_stream_field(MlrtRows *rows, const MlrtModel *model, const MlrtSource *source, const char *program,
                                    const MlrtField *field, MlrtColumn *column, MlrtError *error)
{
    const char *path = argument(source, "path"), *word = argument(source, "type"), *skipped = argument(source, "skip");
    int64_t skip = 0;
    MlrtType type = type_find(strcmp(source->kind, "text") == 0 ? "u8" : word ? word : "");
    if (!path)
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s: no file is named", source->kind);
    if (type == MLRT_TYPE_COUNT)
        return mlrt_fail(error, MLRT_BAD_INPUT, "stream: what its numbers are is not said: type = u16");
    if (skipped && (mlrt_number_i64(skipped, strlen(skipped), &skip) != MLRT_NUMBER_OK || skip < 0))
        return mlrt_fail(error, MLRT_BAD_INPUT, "stream: skip = '%s', but a number of bytes was expected",
                         mlrt_quote(skipped, strlen(skipped)).text);
    column->path = path_find(model, program, path);
    if (!column->path)
        return mlrt_fail_memory(error, strlen(path), path);
    MlrtStatus status = mlrt_stream_open(column->path, type, (size_t)skip, &column->array, error);
    if (status == MLRT_OK)
        status = mlrt_array_convert(&column->array, type_find(field->type), column->path, error);
    if (status == MLRT_OK)
        status = take_rows(rows, column->array.count, column->path, error);
    column->values = column->array.data;
    return status;
}

// --- windows -----------------------------------------------------------------------------------------------------------

// The field of one row, where `field` is of a window of rows. False: it does not have them as its first axis.
static bool row_field(const MlrtSource *source, const MlrtField *field, MlrtField *row)
{
    *row = *field;
    if (source->window == 0)
        return true;
    if (field->rank < 1 || field->dim[0] != source->window || field->codes)
        return false;
    row->rank--;
    memmove(row->dim, field->dim + 1, sizeof row->dim - sizeof *row->dim);
    row->bytes /= source->window;
    return true;
}

// Samples are windows from now on; their values stay where they are and overlap.
static MlrtStatus make_windows(MlrtRows *rows, const MlrtSource *source, MlrtError *error)
{
    if (source->window == 0)
        return MLRT_OK;
    if (rows->rows < (size_t)source->window)
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s: %zu rows, a window takes %lld", rows->path, rows->rows,
                         (long long)source->window);
    rows->step = (size_t)source->stride;
    rows->rows = (rows->rows - (size_t)source->window) / rows->step + 1;
    return MLRT_OK;
}

// --- all fields --------------------------------------------------------------------------------------------------------

MlrtStatus mlrt_rows_read(MlrtRows *rows, const MlrtModel *model, const MlrtSource *source, const char *program, bool targets,
                          MlrtError *error)
{
    MlrtStatus status = MLRT_OK;
    bool stream = strcmp(source->kind, "text") == 0 || strcmp(source->kind, "stream") == 0;
    bool csv = strcmp(source->kind, "csv") == 0, array = strcmp(source->kind, "npy") == 0 || strcmp(source->kind, "idx") == 0;
    *rows = (MlrtRows){.column = calloc((size_t)model->n_fields + 1, sizeof(MlrtColumn)), .fields = model->n_fields};
    if (!rows->column)
        return mlrt_fail_memory(error, sizeof(MlrtColumn), "fields");
    rows->step = 1;
    if (!csv && !array && !stream)
        return mlrt_fail(error, MLRT_INTERNAL, "this runtime has no data source '%s'", source->kind);
    if (csv)
        status = open_csv(rows, model, source, program, error);
    for (int i = 0; i < model->n_fields && status == MLRT_OK; i++) {
        MlrtField field;
        MlrtColumn *column = &rows->column[i];
        if (!row_field(source, &model->field[i], &field))
            return mlrt_fail(error, MLRT_INTERNAL, "a field of windows has to begin with their length, and hold numbers");
        column->stride = (size_t)field.bytes * (size_t)(source->window > 0 ? source->stride : 1);
        status = csv    ? read_csv_field(rows, &field, column, targets, error)
                 : array ? read_array_field(rows, model, source, program, &field, column, targets, error)
                         : read_stream_field(rows, model, source, program, &field, column, error);
    }
    if (status == MLRT_OK && rows->rows == 0)
        status = mlrt_fail(error, MLRT_BAD_INPUT, "%s: there are no rows", rows->path ? rows->path : source->kind);
    return status == MLRT_OK ? make_windows(rows, source, error) : status;
}

void mlrt_rows_close(MlrtRows *rows, const MlrtModel *model)
{
    for (int i = 0; i < model->n_fields && rows->column; i++) {
        mlrt_array_close(&rows->column[i].array);
        free(rows->column[i].strings);
        free(rows->column[i].owned);
        free(rows->column[i].path);
    }
    free(rows->column);
    free(rows->path);
    if (rows->csv)
        mlrt_csv_close(rows->csv);
    *rows = (MlrtRows){0};
}

MlrtRowText mlrt_rows_place(const MlrtRows *rows, size_t row)
{
    MlrtRowText place;
    row *= rows->step;
    if (rows->csv)
        snprintf(place.text, sizeof place.text, "%s:%llu", rows->path, (unsigned long long)mlrt_csv_line(rows->csv, row));
    else
        snprintf(place.text, sizeof place.text, "row %zu of %s", row, rows->path);
    for (int i = 0; !rows->csv && i < rows->fields; i++) {      // a sample may come from several files
        size_t used = strlen(place.text);
        if (rows->column[i].path && strcmp(rows->column[i].path, rows->path) != 0)
            snprintf(place.text + used, sizeof place.text - used, ", %s", rows->column[i].path);
    }
    return place;
}
