// csv.c: a first pass over the mapped file checks the structure and notes where rows begin; reading a column walks the rows
// again, which costs less than keeping the place of every cell. Lines are counted only when a message needs one.
#include "csv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"

struct MlrtCsv {
    MlrtFile file;
    MlrtCsvOptions options;
    const char *at, *end;               // the text, without a byte order mark
    uint64_t *row;                      // offsets from `at` of all rows, the header included
    size_t rows, room;                  // of `row`
    int columns;
    bool has_header;
    char **names;                       // columns, one block; NULL without a header
    uint8_t kind[256];                  // of a byte, see below
};

enum { PLAIN, SEPARATOR, LINE_END, QUOTE, NUL };

typedef struct Cell { const char *at, *end; bool quoted; } Cell;       // quoted: without the outer quotes, "" not yet undone

// --- messages ----------------------------------------------------------------------------------------------------------

static uint64_t line_of(const MlrtCsv *csv, const char *place)
{
    uint64_t line = 1;
    for (const char *at = csv->at; at < place; at++)
        line += *at == '\n' || (*at == '\r' && !(at + 1 < csv->end && at[1] == '\n'));
    return line;
}

static MlrtStatus fail_at(const MlrtCsv *csv, const char *place, MlrtError *error, const char *what)
{
    return mlrt_fail(error, MLRT_BAD_FILE, "%s:%llu: %s", csv->file.path, (unsigned long long)line_of(csv, place), what);
}

static MlrtStatus fail_too_long(const MlrtCsv *csv, const char *place, MlrtLimit limit, MlrtError *error)
{
    return mlrt_fail_limit(error, limit, "%s:%llu: too long or too wide; is the separator '%c' and every quote closed?",
                           csv->file.path, (unsigned long long)line_of(csv, place), csv->options.separator);
}

// --- structure ---------------------------------------------------------------------------------------------------------

// Past the closing quote of a cell that begins at `at`, or NULL if the quote stays open.
static const char *skip_quoted(const char *at, const char *end)
{
    for (at++; at < end; at++)
        if (*at == '"') {
            if (at + 1 == end || at[1] != '"')
                return at + 1;
            at++;
        }
    return NULL;
}

static const char *skip_blanks(const MlrtCsv *csv, const char *at)
{
    while (at < csv->end && (*at == ' ' || *at == '\t') && csv->kind[(uint8_t)*at] == PLAIN)
        at++;
    return at;
}

// Where the cell at `at` ends: at a separator, a line end, or the end of the file. No checks: the structure is known.
static const char *cell_read(const MlrtCsv *csv, const char *at, Cell *cell)
{
    cell->quoted = at < csv->end && *at == '"';
    if (cell->quoted) {
        const char *after = skip_quoted(at, csv->end);
        *cell = (Cell){at + 1, after - 1, true};
        return skip_blanks(csv, after);
    }
    const char *start = at = skip_blanks(csv, at);
    while (at < csv->end && csv->kind[(uint8_t)*at] == PLAIN)
        at++;
    *cell = (Cell){start, at, false};
    while (cell->end > start && (cell->end[-1] == ' ' || cell->end[-1] == '\t'))
        cell->end--;
    return at;
}

static MlrtStatus check_cell(const MlrtCsv *csv, const char *at, const char **after, MlrtError *error)
{
    const char *start = at;
    if (at < csv->end && *at == '"') {
        at = skip_quoted(at, csv->end);
        if (!at)
            return fail_at(csv, start, error, "a quote is opened here and never closed");
        if (memchr(start, 0, (size_t)(at - start)))
            return fail_at(csv, start, error, "a NUL byte; is this a text file?");
        const char *next = skip_blanks(csv, at);
        if (next < csv->end && csv->kind[(uint8_t)*next] != SEPARATOR && csv->kind[(uint8_t)*next] != LINE_END)
            return fail_at(csv, at, error, "text after a closing quote; a quote inside quotes is written twice");
        at = next;
    } else {
        while (at < csv->end && csv->kind[(uint8_t)*at] == PLAIN)
            at++;
        if (at < csv->end && *at == '"')
            return fail_at(csv, at, error, "a quote inside a cell; put the whole cell in quotes and write the quote twice");
        if (at < csv->end && *at == 0)
            return fail_at(csv, at, error, "a NUL byte; is this a text file? (UTF-16 has to be converted to UTF-8)");
    }
    *after = at;
    return at - start > MLRT_LIMIT_CSV_FIELD ? fail_too_long(csv, start, MLRT_OVER_CSV_FIELD, error) : MLRT_OK;
}

static const char *skip_line_end(const MlrtCsv *csv, const char *at)
{
    if (at + 1 < csv->end && at[0] == '\r' && at[1] == '\n')
        return at + 2;
    return at < csv->end ? at + 1 : at;
}

static MlrtStatus check_row(MlrtCsv *csv, const char *at, const char **after, MlrtError *error)
{
    const char *start = at;
    int columns = 0;
    for (;; at++) {
        MlrtStatus status = check_cell(csv, at, &at, error);
        if (status != MLRT_OK)
            return status;
        if (++columns > MLRT_LIMIT_CSV_COLUMNS)
            return fail_too_long(csv, start, MLRT_OVER_CSV_COLUMNS, error);
        if (at - start > MLRT_LIMIT_CSV_LINE)
            return fail_too_long(csv, start, MLRT_OVER_CSV_LINE, error);
        if (at == csv->end || csv->kind[(uint8_t)*at] == LINE_END)
            break;
    }
    csv->columns = csv->rows == 0 ? columns : csv->columns;
    if (columns != csv->columns)
        return mlrt_fail(error, MLRT_BAD_FILE, "%s:%llu: %s%d cell%s, the first row has %d", csv->file.path,
                         (unsigned long long)line_of(csv, start), at == start ? "an empty line, " : "", columns,
                         columns == 1 ? "" : "s", csv->columns);
    *after = skip_line_end(csv, at);
    return MLRT_OK;
}

static MlrtStatus check_rows(MlrtCsv *csv, MlrtError *error)
{
    const char *last = csv->end;
    while (last > csv->at && (last[-1] == '\n' || last[-1] == '\r'))
        last--;                                         // empty lines at the end
    for (const char *at = csv->at; at < last;) {
        if (!mlrt_grow((void **)&csv->row, &csv->room, csv->rows + 1, sizeof *csv->row))
            return mlrt_fail_memory(error, csv->rows * sizeof *csv->row, csv->file.path);
        uint64_t offset = (uint64_t)(at - csv->at);
        MlrtStatus status = check_row(csv, at, &at, error);
        if (status != MLRT_OK)
            return status;
        csv->row[csv->rows++] = offset;
    }
    if (csv->rows == 0)
        return mlrt_fail(error, MLRT_BAD_FILE, "%s: the file is empty, rows of values were expected", csv->file.path);
    return MLRT_OK;
}

// --- header ------------------------------------------------------------------------------------------------------------

static bool is_number(Cell cell)
{
    double value;
    MlrtNumber kind = mlrt_number_f64(cell.at, (size_t)(cell.end - cell.at), &value);
    return kind == MLRT_NUMBER_OK || kind == MLRT_NUMBER_SPECIAL || kind == MLRT_NUMBER_RANGE;
}

static bool looks_like_header(const MlrtCsv *csv)
{
    const char *first = csv->at + csv->row[0], *second = csv->rows > 1 ? csv->at + csv->row[1] : NULL;
    for (int i = 0; i < csv->columns; i++) {
        Cell above, below;
        first = cell_read(csv, first, &above) + 1;
        bool below_is_number = true;
        if (second) {
            second = cell_read(csv, second, &below) + 1;
            below_is_number = is_number(below);
        }
        if (!is_number(above) && below_is_number)
            return true;
    }
    return false;
}

static char *cell_copy(Cell cell, char *to)             // undoes "" and ends with 0; returns where the next may begin
{
    for (const char *at = cell.at; at < cell.end; at++) {
        *to++ = *at;
        at += cell.quoted && *at == '"';
    }
    *to++ = 0;
    return to;
}

static MlrtStatus read_names(MlrtCsv *csv, MlrtError *error)
{
    const char *at = csv->at + csv->row[0];
    size_t bytes = (size_t)((csv->rows > 1 ? csv->at + csv->row[1] : csv->end) - at);
    size_t block = (size_t)csv->columns * (sizeof(char *) + 1) + bytes;     // bounded by CSV_COLUMNS and CSV_LINE
    csv->names = malloc(block);
    if (!csv->names)
        return mlrt_fail_memory(error, block, csv->file.path);
    char *to = (char *)(csv->names + csv->columns);
    for (int i = 0; i < csv->columns; i++) {
        Cell cell;
        const char *start = at;
        at = cell_read(csv, at, &cell) + 1;
        size_t length = (size_t)(cell.end - cell.at);
        if (length > MLRT_LIMIT_NAME)
            return mlrt_fail_limit(error, MLRT_OVER_NAME, "%s: the name of column %d", csv->file.path, i);
        if (!mlrt_is_clean_text(cell.at, length))
            return fail_at(csv, start, error, "a column name is not clean UTF-8 text");
        csv->names[i] = to;
        to = cell_copy(cell, to);
    }
    return MLRT_OK;
}

static MlrtStatus settle_header(MlrtCsv *csv, MlrtError *error)
{
    MlrtCsvHeader wish = csv->options.header;
    csv->has_header = wish == MLRT_HEADER_YES || (wish == MLRT_HEADER_AUTO && looks_like_header(csv));
    if (csv->has_header && csv->rows == 1)
        return mlrt_fail(error, MLRT_BAD_FILE, "%s: a header and no rows (if this is a row of values, say header = false)",
                         csv->file.path);
    return csv->has_header ? read_names(csv, error) : MLRT_OK;
}

// --- opening -----------------------------------------------------------------------------------------------------------

static MlrtStatus check_separator(MlrtCsv *csv, MlrtError *error)
{
    uint8_t separator = (uint8_t)csv->options.separator;
    if (separator == '"' || separator == '\n' || separator == '\r' || separator >= 0x7F || strchr("+-.eE", separator) ||
        (separator >= '0' && separator <= '9'))
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s: byte %d cannot separate cells", csv->file.path, separator);
    csv->kind[0] = NUL;
    csv->kind['"'] = QUOTE;
    csv->kind['\n'] = csv->kind['\r'] = LINE_END;
    csv->kind[separator] = SEPARATOR;
    return MLRT_OK;
}

static MlrtStatus check_marks(MlrtCsv *csv, MlrtError *error)
{
    const uint8_t *at = csv->file.at;
    size_t bytes = csv->file.bytes;
    if (bytes >= 2 && ((at[0] == 0xFF && at[1] == 0xFE) || (at[0] == 0xFE && at[1] == 0xFF)))
        return mlrt_fail(error, MLRT_BAD_FILE, "%s: this is UTF-16; save it as UTF-8 (iconv -f utf-16 -t utf-8)",
                         csv->file.path);
    size_t mark = bytes >= 3 && memcmp(at, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    csv->at = (const char *)at + mark;
    csv->end = (const char *)at + bytes;
    return MLRT_OK;
}

static MlrtStatus csv_build(MlrtCsv *csv, MlrtError *error)
{
    MlrtStatus status = check_separator(csv, error);
    if (status == MLRT_OK)
        status = check_marks(csv, error);
    if (status == MLRT_OK)
        status = check_rows(csv, error);
    if (status == MLRT_OK)
        status = settle_header(csv, error);
    return status;
}

MlrtStatus mlrt_csv_parse(MlrtFile file, const MlrtCsvOptions *options, MlrtCsv **csv, MlrtError *error)
{
    MlrtCsv *made = calloc(1, sizeof *made);
    *csv = NULL;
    if (!made) {
        mlrt_fail_memory(error, sizeof *made, file.path);
        mlrt_file_close(&file);
        return MLRT_OUT_OF_MEMORY;
    }
    made->file = file;
    made->options = options ? *options : (MlrtCsvOptions){0};
    made->options.separator = made->options.separator ? made->options.separator : ',';
    MlrtStatus status = csv_build(made, error);
    if (status != MLRT_OK)
        mlrt_csv_close(made);
    else
        *csv = made;
    return status;
}

MlrtStatus mlrt_csv_open(const char *path, const MlrtCsvOptions *options, MlrtCsv **csv, MlrtError *error)
{
    MlrtFile file;
    *csv = NULL;
    MlrtStatus status = mlrt_file_open(path, &file, error);
    return status == MLRT_OK ? mlrt_csv_parse(file, options, csv, error) : status;
}

void mlrt_csv_close(MlrtCsv *csv)
{
    if (!csv)
        return;
    mlrt_file_close(&csv->file);
    free(csv->row);
    free(csv->names);
    free(csv);
}

size_t mlrt_csv_rows(const MlrtCsv *csv) { return csv->rows - csv->has_header; }
int mlrt_csv_columns(const MlrtCsv *csv) { return csv->columns; }
const char *mlrt_csv_name(const MlrtCsv *csv, int column) { return csv->names ? csv->names[column] : NULL; }

static const char *row_start(const MlrtCsv *csv, size_t row) { return csv->at + csv->row[row + csv->has_header]; }
uint64_t mlrt_csv_line(const MlrtCsv *csv, size_t row) { return line_of(csv, row_start(csv, row)); }

MlrtStatus mlrt_csv_find(const MlrtCsv *csv, const char *name, int *column, MlrtError *error)
{
    char list[200] = "";
    size_t used = 0;
    int found = 0;
    if (!csv->names)
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s: the file has no header, so no column is called '%s'", csv->file.path, name);
    for (int i = 0; i < csv->columns; i++) {
        if (strcmp(csv->names[i], name) == 0 && found++ == 0)
            *column = i;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", csv->names[i]);
    }
    if (found > 1)
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s: %d columns are called '%s'; give its number", csv->file.path, found, name);
    if (found == 0)
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s: no column is called '%s'; there are: %s", csv->file.path, name, list);
    return MLRT_OK;
}

// --- values ------------------------------------------------------------------------------------------------------------

typedef struct ColumnText { char text[96]; } ColumnText;

static ColumnText column_text(const MlrtCsv *csv, int column)
{
    ColumnText shown;
    snprintf(shown.text, sizeof shown.text, csv->names ? "column %d '%.60s'" : "column %d", column,
             csv->names ? csv->names[column] : "");
    return shown;
}

static const char *reason_of(Cell cell, MlrtNumber kind, MlrtType type)
{
    size_t length = (size_t)(cell.end - cell.at);
    const char *comma = memchr(cell.at, ',', length);
    if (length == 0)
        return "the cell is empty";
    if (kind == MLRT_NUMBER_SPECIAL)
        return "is not finite, which this column does not allow";
    if (kind == MLRT_NUMBER_RANGE)
        return "does not fit the type";
    if (kind == MLRT_NUMBER_FRACTION)
        return "is not a whole number";
    if (comma)
        return "is not a number; write a decimal point instead of the comma";
    return type == MLRT_bool ? "is none of 0, 1, true, false" : "is not a number";
}

static MlrtStatus fail_cell(const MlrtCsv *csv, Cell cell, int column, MlrtNumber kind, MlrtType type, MlrtError *error)
{
    return mlrt_fail(error, MLRT_BAD_FILE, "%s:%llu: %s: '%s' %s (%s was expected)", csv->file.path,
                     (unsigned long long)line_of(csv, cell.at), column_text(csv, column).text,
                     mlrt_quote(cell.at, (size_t)(cell.end - cell.at)).text, reason_of(cell, kind, type),
                     mlrt_type_name(type));
}

static const struct Range { int64_t least, most; } ranges[MLRT_TYPE_COUNT] = {
    [MLRT_bool] = {0, 1},           [MLRT_i8] = {INT8_MIN, INT8_MAX},    [MLRT_u8] = {0, UINT8_MAX},
    [MLRT_i16] = {INT16_MIN, INT16_MAX}, [MLRT_u16] = {0, UINT16_MAX},   [MLRT_i32] = {INT32_MIN, INT32_MAX},
    [MLRT_u32] = {0, UINT32_MAX},   [MLRT_i64] = {INT64_MIN, INT64_MAX}, [MLRT_u64] = {0, INT64_MAX},     // larger ones are refused
};

static MlrtNumber store_integer(Cell cell, MlrtType type, char *to)
{
    int64_t value = 0;
    size_t length = (size_t)(cell.end - cell.at);
    MlrtNumber kind = mlrt_number_i64(cell.at, length, &value);
    if (type == MLRT_bool && length == 4 && memcmp(cell.at, "true", 4) == 0)
        value = 1, kind = MLRT_NUMBER_OK;
    if (type == MLRT_bool && length == 5 && memcmp(cell.at, "false", 5) == 0)
        value = 0, kind = MLRT_NUMBER_OK;
    if (kind == MLRT_NUMBER_OK && (value < ranges[type].least || value > ranges[type].most))
        return MLRT_NUMBER_RANGE;
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)value >> 8 * i);
    if (kind == MLRT_NUMBER_OK)
        memcpy(to, bytes, mlrt_type_bytes(type));       // little-endian machines, as all that the runtime supports
    return kind;
}

static MlrtNumber store_real(const MlrtCsv *csv, Cell cell, MlrtType type, char *to)
{
    float narrow = NAN;
    double wide = (double)NAN;
    size_t length = (size_t)(cell.end - cell.at);
    MlrtNumber kind = MLRT_NUMBER_OK;
    if (length > 0 || !csv->options.allow_empty)
        kind = type == MLRT_f32 ? mlrt_number_f32(cell.at, length, &narrow) : mlrt_number_f64(cell.at, length, &wide);
    if (kind == MLRT_NUMBER_SPECIAL && csv->options.allow_nonfinite)
        kind = MLRT_NUMBER_OK;
    if (type == MLRT_f32)
        memcpy(to, &narrow, sizeof narrow);
    else
        memcpy(to, &wide, sizeof wide);
    return kind;
}

// One row: `place` says for each column up to `last` where its value goes, -1 for nowhere.
static MlrtStatus read_row(const MlrtCsv *csv, size_t row, const int *place, int last, MlrtType type, char *to, MlrtError *error)
{
    bool real = type == MLRT_f32 || type == MLRT_f64;
    size_t bytes = mlrt_type_bytes(type);
    const char *at = row_start(csv, row);
    for (int i = 0; i <= last; i++) {
        Cell cell;
        at = cell_read(csv, at, &cell) + 1;
        if (place[i] < 0)
            continue;
        char *target = to + (size_t)place[i] * bytes;
        MlrtNumber kind = real ? store_real(csv, cell, type, target) : store_integer(cell, type, target);
        if (kind != MLRT_NUMBER_OK)
            return fail_cell(csv, cell, i, kind, type, error);
    }
    return MLRT_OK;
}

static MlrtStatus check_columns(const MlrtCsv *csv, const int *columns, int count, int *place, int *last, MlrtError *error)
{
    for (int i = 0; i < csv->columns; i++)
        place[i] = -1;
    *last = -1;
    for (int i = 0; i < count; i++) {
        int column = columns[i];
        if (column < 0 || column >= csv->columns)
            return mlrt_fail(error, MLRT_BAD_INPUT, "%s: there is no column %d, they are numbered 0 to %d", csv->file.path,
                             column, csv->columns - 1);
        if (place[column] >= 0)
            return mlrt_fail(error, MLRT_BAD_INPUT, "%s: column %d is asked for twice", csv->file.path, column);
        place[column] = i;
        *last = column > *last ? column : *last;
    }
    return MLRT_OK;
}

MlrtStatus mlrt_csv_numbers(const MlrtCsv *csv, const int *columns, int count, MlrtType type, void *values, MlrtError *error)
{
    int last;
    if (type == MLRT_f16 || type == MLRT_bf16)
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s: columns are not read as %s; read f32", csv->file.path, mlrt_type_name(type));
    int *place = mlrt_alloc_array((size_t)csv->columns, sizeof *place);
    if (!place)
        return mlrt_fail_memory(error, (size_t)csv->columns * sizeof *place, csv->file.path);
    MlrtStatus status = check_columns(csv, columns, count, place, &last, error);
    size_t row_bytes = (size_t)count * mlrt_type_bytes(type);
    for (size_t row = 0; status == MLRT_OK && row < mlrt_csv_rows(csv); row++)
        status = read_row(csv, row, place, last, type, (char *)values + row * row_bytes, error);
    free(place);
    return status;
}

static Cell cell_at(const MlrtCsv *csv, size_t row, int column)
{
    Cell cell = {0};
    const char *at = row_start(csv, row);
    for (int i = 0; i <= column; i++)
        at = cell_read(csv, at, &cell) + 1;
    return cell;
}

static MlrtStatus measure_strings(const MlrtCsv *csv, int column, size_t *bytes, MlrtError *error)
{
    *bytes = 0;
    for (size_t row = 0; row < mlrt_csv_rows(csv); row++) {
        Cell cell = cell_at(csv, row, column);
        size_t length = (size_t)(cell.end - cell.at);
        if (length == 0 && !csv->options.allow_empty)
            return mlrt_fail(error, MLRT_BAD_FILE, "%s:%llu: %s: the cell is empty", csv->file.path,
                             (unsigned long long)line_of(csv, cell.at), column_text(csv, column).text);
        if (!mlrt_is_utf8(cell.at, length))
            return mlrt_fail(error, MLRT_BAD_FILE, "%s:%llu: %s: '%s' is not UTF-8", csv->file.path,
                             (unsigned long long)line_of(csv, cell.at), column_text(csv, column).text,
                             mlrt_quote(cell.at, length).text);
        *bytes += length + 1;                           // at most the file
    }
    return MLRT_OK;
}

MlrtStatus mlrt_csv_strings(const MlrtCsv *csv, int column, char ***strings, MlrtError *error)
{
    size_t rows = mlrt_csv_rows(csv), bytes, block;
    *strings = NULL;
    if (column < 0 || column >= csv->columns)
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s: there is no column %d, they are numbered 0 to %d", csv->file.path, column,
                         csv->columns - 1);
    MlrtStatus status = measure_strings(csv, column, &bytes, error);
    if (status != MLRT_OK)
        return status;
    if (!mlrt_size_mul(rows, sizeof(char *), &block) || !mlrt_size_add(block, bytes, &block) || !(*strings = malloc(block)))
        return mlrt_fail_memory(error, bytes, csv->file.path);
    char *to = (char *)(*strings + rows);
    for (size_t row = 0; row < rows; row++) {
        (*strings)[row] = to;
        to = cell_copy(cell_at(csv, row, column), to);
    }
    return MLRT_OK;
}
