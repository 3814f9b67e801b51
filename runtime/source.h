// source.h: the fields of a data mapping, read from a source of the recipe: all rows, as the files have them.
#ifndef MLRT_SOURCE_H
#define MLRT_SOURCE_H

#include "mlrt.h"
#include "table.h"

typedef struct MlrtColumn {             // one field, all rows
    const char *values;                 // rows x field->bytes, NULL where there is nothing to read and nothing is needed
    char      **strings;                // of fields that become codes; values are then made by mlrt_codes_apply
    size_t      stride;                 // bytes from one sample's values to the next one's
    MlrtArray   array;                  // what values points into, or
    void       *owned;                  // its memory
    char       *path;                   // of the array, owned
} MlrtColumn;

typedef struct MlrtRows {               // what a source holds
    size_t      rows;
    char       *path;                   // of the first file, for messages; owned
    MlrtCsv    *csv;                    // open as long as messages need lines; NULL for arrays
    size_t      step;                   // rows of the files from one sample to the next
    MlrtColumn *column;                 // one for each of the model's fields
    int         fields;
} MlrtRows;

// Reads all fields. `targets` false: fields that only targets need may be missing. Close after failure as well.
MlrtStatus mlrt_rows_read(MlrtRows *rows, const MlrtModel *model, const MlrtSource *source, const char *program, bool targets,
                          MlrtError *error);
void mlrt_rows_close(MlrtRows *rows, const MlrtModel *model);

// "optdigits.csv:17" or "row 16 of images.npy", for messages.
typedef struct MlrtRowText { char text[300]; } MlrtRowText;
MlrtRowText mlrt_rows_place(const MlrtRows *rows, size_t row);

#endif
