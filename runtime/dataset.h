// dataset.h: all samples as the steps want them, and which of them train, validate and test.
#ifndef MLRT_DATASET_H
#define MLRT_DATASET_H

#include "settings.h"
#include "source.h"
#include "threads.h"

enum { MLRT_TRAIN, MLRT_VALID, MLRT_TEST, MLRT_PARTS };

typedef struct MlrtPart { const char *name; int64_t rows; int64_t *row; } MlrtPart;    // numbers of samples, ascending

typedef struct MlrtDataset {
    const MlrtModel *model;
    int64_t   rows;                     // of all parts
    char     *port[MLRT_PORTS];         // rows x bytes of a sample; NULL for targets that are not there
    MlrtPart  part[MLRT_PARTS];
    MlrtCodes *codes;                   // one for each field; count 0: not a field of codes
    char      digest[33];               // of everything in `port`
} MlrtDataset;

// Reads the sources of the recipe and maps every sample once. `codes`: those of a checkpoint, or NULL to fit them on the
// training part. `program` is argv[0]. Close after failure as well.
MlrtStatus mlrt_dataset_open(MlrtDataset *data, const MlrtSettings *settings, const MlrtCodes *codes, const char *program,
                             MlrtPool *pool, MlrtError *error);

// The rows of one file, for prediction: inputs only, all in the training part. The codes are needed.
MlrtStatus mlrt_dataset_open_rows(MlrtDataset *data, const MlrtSettings *settings, const char *path, const MlrtCodes *codes,
                                  const char *program, MlrtPool *pool, MlrtError *error);
void mlrt_dataset_close(MlrtDataset *data);

// The name of class `code` of a port, or NULL: from fitted codes, else from the net.
const char *mlrt_dataset_label(const MlrtDataset *data, int port, int64_t code);

// Codes as one line of clean text and back; the text is malloc'ed. NULL: no memory.
char *mlrt_codes_text(const MlrtCodes *codes);
MlrtStatus mlrt_codes_parse(const char *text, MlrtCodes *codes, MlrtError *error);

#endif
