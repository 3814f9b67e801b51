// safetensors.h: files of named tensors, as weights and checkpoints are kept.
//
// The reader takes exactly what the format allows and nothing else: no unknown key, no name twice, no hole, no overlap, no
// byte too many, so no two readers can see two things in one file. Tensors are views of the mapped file.
// Files that the writer makes carry two digests in their metadata, `mlc.digest` over the data and `mlc.header` over the
// header; where they are present they are verified, so a changed bit anywhere is reported as damage.
#ifndef MLRT_SAFETENSORS_H
#define MLRT_SAFETENSORS_H

#include "file.h"

typedef struct MlrtTensor {
    const char *name;
    MlrtType type;
    int rank;
    int64_t shape[MLRT_LIMIT_RANK];
    const void *data;                   // when read: in the file, little-endian, NOT aligned: copy it out, never cast
    size_t bytes;                       // of data; the writer computes it itself
} MlrtTensor;

typedef struct MlrtMetadata { const char *key, *value; } MlrtMetadata;

typedef struct MlrtTensors {
    MlrtFile file;
    MlrtTensor *tensor;                 // in the order of their data
    size_t count;
    const MlrtTensor **by_name;         // the same, sorted
    MlrtMetadata *metadata;             // in the order of the file
    size_t metadata_count;
    char *text;                         // what all names and metadata point into
} MlrtTensors;

// On success the tensors are the caller's, to close; on failure there is nothing to close. `path` must live as long.
MlrtStatus mlrt_safetensors_open(const char *path, MlrtTensors *tensors, MlrtError *error);
MlrtStatus mlrt_safetensors_parse(MlrtFile file, MlrtTensors *tensors, MlrtError *error);  // takes the file
void mlrt_safetensors_close(MlrtTensors *tensors);

const MlrtTensor *mlrt_safetensors_find(const MlrtTensors *tensors, const char *name);     // NULL if absent
const char *mlrt_safetensors_metadata(const MlrtTensors *tensors, const char *key);        // NULL if absent
size_t mlrt_tensor_nonfinite(const MlrtTensor *tensor);     // how many elements are NaN or infinite; 0 for integers

// Writes `count` tensors straight from where their data are, ordered by alignment and name, with the metadata given and the
// digests. Nothing but the header is built in memory. Whole or not at all. Names have to be distinct and clean.
MlrtStatus mlrt_safetensors_write(const char *path, const MlrtTensor *tensors, size_t count, const MlrtMetadata *metadata,
                                  size_t metadata_count, MlrtError *error);

#endif
