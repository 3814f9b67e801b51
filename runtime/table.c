// table.c: collects fields from the readers. Arrays stay views of their files where the reader could leave them there.
#define _POSIX_C_SOURCE 200809L
#include "table.h"

#include <stdlib.h>
#include <string.h>

static void field_free(MlrtTableField *field)
{
    mlrt_array_close(&field->array);
    free(field->strings);
    free(field->name);
    free(field->path);
}

// Appends the field, or frees it and leaves the table as it was. A status that is already bad goes through.
static MlrtStatus table_append(MlrtTable *table, MlrtTableField *field, size_t rows, MlrtStatus status, MlrtError *error)
{
    size_t room = (size_t)table->room;
    if (status == MLRT_OK && rows == 0)
        status = mlrt_fail(error, MLRT_BAD_FILE, "%s: there are no rows", field->name);
    if (status == MLRT_OK && table->fields > 0 && rows != table->rows)
        status = mlrt_fail(error, MLRT_BAD_FILE, "%s has %zu rows, %s has %zu; they have to be equally many", field->name, rows,
                           table->field[0].name, table->rows);
    if (status == MLRT_OK && !mlrt_grow((void **)&table->field, &room, (size_t)table->fields + 1, sizeof *table->field))
        status = mlrt_fail_memory(error, room * sizeof *table->field, field->name);
    table->room = (int)room;
    if (status != MLRT_OK) {
        field_free(field);
        return status;
    }
    table->field[table->fields++] = *field;
    table->rows = rows;
    return MLRT_OK;
}

static MlrtStatus field_begin(const MlrtTable *table, MlrtTableField *field, const char *name, const char *path, MlrtError *error)
{
    *field = (MlrtTableField){.name = strdup(name), .path = strdup(path)};
    if (!field->name || !field->path)
        return mlrt_fail_memory(error, strlen(name) + strlen(path), name);
    if (mlrt_table_field(table, name))
        return mlrt_fail(error, MLRT_BAD_INPUT, "two fields are called '%s'", name);
    return MLRT_OK;
}

// A field that consists of the rows of an array.
static MlrtStatus take_array(MlrtTableField *field, size_t *rows, MlrtError *error)
{
    const MlrtArray *array = &field->array;
    if (array->rank == 0)
        return mlrt_fail(error, MLRT_BAD_FILE, "%s: a single value, rows were expected", field->path);
    *rows = (size_t)array->shape[0];
    field->type = array->type;
    field->rank = array->rank - 1;
    memcpy(field->shape, array->shape + 1, (size_t)field->rank * sizeof *field->shape);
    field->row_bytes = *rows ? array->bytes / *rows : 0;
    field->values = array->data;
    return MLRT_OK;
}

typedef MlrtStatus ArrayOpen(const char *path, MlrtArray *array, MlrtError *error);

static MlrtStatus add_array(MlrtTable *table, const char *name, const char *path, ArrayOpen *open, MlrtError *error)
{
    MlrtTableField field;
    size_t rows = 0;
    MlrtStatus status = field_begin(table, &field, name, path, error);
    if (status == MLRT_OK)
        status = open(field.path, &field.array, error);
    if (status == MLRT_OK)
        status = take_array(&field, &rows, error);
    return table_append(table, &field, rows, status, error);
}

MlrtStatus mlrt_table_add_npy(MlrtTable *table, const char *name, const char *path, MlrtError *error)
{
    return add_array(table, name, path, mlrt_npy_open, error);
}

MlrtStatus mlrt_table_add_idx(MlrtTable *table, const char *name, const char *path, MlrtError *error)
{
    return add_array(table, name, path, mlrt_idx_open, error);
}

static MlrtStatus read_columns(MlrtTableField *field, const MlrtCsv *csv, const int *columns, int count, MlrtType type, MlrtError *error)
{
    size_t bytes;
    if (count < 1 || count > MLRT_LIMIT_CSV_COLUMNS)
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s: %d columns are asked for", field->name, count);
    if (!mlrt_size_mul(mlrt_csv_rows(csv), (size_t)count * mlrt_type_bytes(type), &bytes) ||
        !(field->array.owned = mlrt_alloc_array(bytes, 1)))
        return mlrt_fail_memory(error, mlrt_csv_rows(csv), field->name);
    field->type = type;
    field->rank = count > 1;
    field->shape[0] = count > 1 ? count : 0;
    field->row_bytes = (size_t)count * mlrt_type_bytes(type);
    field->values = field->array.data = field->array.owned;
    return mlrt_csv_numbers(csv, columns, count, type, field->array.owned, error);
}

MlrtStatus mlrt_table_add_csv(MlrtTable *table, const char *name, const MlrtCsv *csv, const int *columns, int count,
                              MlrtType type, MlrtError *error)
{
    MlrtTableField field;
    MlrtStatus status = field_begin(table, &field, name, "", error);
    if (status == MLRT_OK)
        status = read_columns(&field, csv, columns, count, type, error);
    return table_append(table, &field, mlrt_csv_rows(csv), status, error);
}

MlrtStatus mlrt_table_add_strings(MlrtTable *table, const char *name, const MlrtCsv *csv, int column, MlrtError *error)
{
    MlrtTableField field;
    MlrtStatus status = field_begin(table, &field, name, "", error);
    if (status == MLRT_OK)
        status = mlrt_csv_strings(csv, column, &field.strings, error);
    return table_append(table, &field, mlrt_csv_rows(csv), status, error);
}

const MlrtTableField *mlrt_table_field(const MlrtTable *table, const char *name)
{
    for (int i = 0; i < table->fields; i++)
        if (strcmp(table->field[i].name, name) == 0)
            return &table->field[i];
    return NULL;
}

void mlrt_table_free(MlrtTable *table)
{
    for (int i = 0; i < table->fields; i++)
        field_free(&table->field[i]);
    free(table->field);
    *table = (MlrtTable){0};
}
