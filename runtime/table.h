// table.h: what a data source gives: rows, and named fields that have one value a row; and the codes of text columns.
#ifndef MLRT_TABLE_H
#define MLRT_TABLE_H

#include "array.h"
#include "csv.h"

typedef struct MlrtTableField {
    char *name;                         // owned
    MlrtType type;
    int rank;                           // of one row's value, at most 7; 0 is a single value
    int64_t shape[MLRT_LIMIT_RANK - 1];
    size_t row_bytes;
    const void *values;                 // (rows, shape...), row-major and aligned; NULL for text
    char **strings;                     // rows pointers, for text; else NULL. Owned, one block
    MlrtArray array;                    // what values points into
    char *path;                         // owned: what the array's file names itself by
} MlrtTableField;

typedef struct MlrtTable {
    size_t rows;                        // of every field
    int fields, room;
    MlrtTableField *field;
} MlrtTable;

// A table begins as {0}. Each add appends one field; its rows have to be as many as those that are there. On failure the
// table is as before. The table owns all it holds.
MlrtStatus mlrt_table_add_npy(MlrtTable *table, const char *name, const char *path, MlrtError *error);
MlrtStatus mlrt_table_add_idx(MlrtTable *table, const char *name, const char *path, MlrtError *error);
MlrtStatus mlrt_table_add_csv(MlrtTable *table, const char *name, const MlrtCsv *csv, const int *columns, int count,
                              MlrtType type, MlrtError *error);         // shape () for one column, (count) for more
MlrtStatus mlrt_table_add_strings(MlrtTable *table, const char *name, const MlrtCsv *csv, int column, MlrtError *error);
const MlrtTableField *mlrt_table_field(const MlrtTable *table, const char *name);    // NULL if absent
void mlrt_table_free(MlrtTable *table);

// --- codes -------------------------------------------------------------------------------------------------------------

typedef struct MlrtCodes {
    int32_t count;
    char **names;                       // count distinct ones, in the order of their codes. Owned, one block
} MlrtCodes;

// The distinct strings: whole numbers by value, then the others byte by byte.
MlrtStatus mlrt_codes_fit(const char *const *strings, size_t count, MlrtCodes *codes, MlrtError *error);

// Codes from 0 for names[0]. A string that is not among the names is an error that names it and its row (from 0).
// With `unknown`, names[0] has code 1 and whatever is not among the names has code 0.
MlrtStatus mlrt_codes_apply(const MlrtCodes *codes, const char *const *strings, size_t count, bool unknown, int32_t *to,
                            MlrtError *error);
void mlrt_codes_free(MlrtCodes *codes);

#endif
