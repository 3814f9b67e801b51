// csv.h: comma separated values.
//
// A file is opened once: its structure is checked and the start of each row noted. Columns are then read as numbers or as
// text, as often as wanted. Lines end with LF, CRLF or CR. A cell that begins with " runs to the closing ", with "" for one
// quote, and may contain separators and line ends; blanks around cells that are not quoted do not count. Empty lines at the
// end are ignored. All rows have as many cells as the first.
#ifndef MLRT_CSV_H
#define MLRT_CSV_H

#include "file.h"

typedef enum MlrtCsvHeader {
    MLRT_HEADER_AUTO,                   // a header if a cell of the first row is no number where the second row has one;
                                        // in a file of one row: if a cell of it is no number
    MLRT_HEADER_YES,
    MLRT_HEADER_NO,
} MlrtCsvHeader;

typedef struct MlrtCsvOptions {
    MlrtCsvHeader header;
    char separator;                     // 0 means ','
    bool allow_empty;                   // an empty cell is NaN in f32 and f64, "" as text; else an error
    bool allow_nonfinite;               // nan and inf may be written; else an error
} MlrtCsvOptions;

typedef struct MlrtCsv MlrtCsv;

// NULL options are all zero. On success *csv is the caller's, to close; on failure it is NULL. `path` must live as long.
MlrtStatus mlrt_csv_open(const char *path, const MlrtCsvOptions *options, MlrtCsv **csv, MlrtError *error);
MlrtStatus mlrt_csv_parse(MlrtFile file, const MlrtCsvOptions *options, MlrtCsv **csv, MlrtError *error);  // takes the file
void mlrt_csv_close(MlrtCsv *csv);

size_t mlrt_csv_rows(const MlrtCsv *csv);               // without the header; at least 1
int mlrt_csv_columns(const MlrtCsv *csv);
const char *mlrt_csv_name(const MlrtCsv *csv, int column);              // NULL if the file has no header
uint64_t mlrt_csv_line(const MlrtCsv *csv, size_t row);                 // the line, from 1, on which a row begins; for messages

// The column of that name; an unknown or doubled name is MLRT_BAD_INPUT, and the message lists the names there are.
MlrtStatus mlrt_csv_find(const MlrtCsv *csv, const char *name, int *column, MlrtError *error);

// Reads `count` different columns into values (rows, count), row by row. Types: f32, f64, and the integers, whose range is
// checked; bool takes 0, 1, true and false.
MlrtStatus mlrt_csv_numbers(const MlrtCsv *csv, const int *columns, int count, MlrtType type, void *values, MlrtError *error);

// Reads one column as text: *strings is one block of `rows` pointers and the text they point to, to be given to free().
MlrtStatus mlrt_csv_strings(const MlrtCsv *csv, int column, char ***strings, MlrtError *error);

#endif
