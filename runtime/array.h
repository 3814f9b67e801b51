// array.h: files that hold one array: .npy of NumPy, IDX as MNIST comes in (plain or gzip), and streams of numbers.
#ifndef MLRT_ARRAY_H
#define MLRT_ARRAY_H

#include "file.h"

typedef struct MlrtArray {
    MlrtType type;
    int rank;                           // 0 is a single value
    int64_t shape[MLRT_LIMIT_RANK];
    size_t count, bytes;                // elements, and bytes of them
    const void *data;                   // row-major, in this machine's byte order, aligned for the type
    MlrtFile file;                      // what data points into, or
    void *owned;                        // the memory it was converted or unpacked into
} MlrtArray;

// On success the array is the caller's, to close; on failure there is nothing to close. `path` must live as long.
MlrtStatus mlrt_npy_open(const char *path, MlrtArray *array, MlrtError *error);
MlrtStatus mlrt_npy_parse(MlrtFile file, MlrtArray *array, MlrtError *error);      // takes the file
MlrtStatus mlrt_idx_open(const char *path, MlrtArray *array, MlrtError *error);
MlrtStatus mlrt_idx_parse(MlrtFile file, MlrtArray *array, MlrtError *error);      // takes the file
// Numbers of one type and nothing else, behind the first `skip` bytes of each file that the pattern matches (*, ?, []).
MlrtStatus mlrt_stream_open(const char *pattern, MlrtType type, size_t skip, MlrtArray *array, MlrtError *error);
bool mlrt_stream_exists(const char *pattern);           // whether there is such a file, or one that it matches
void mlrt_array_close(MlrtArray *array);

// The same numbers in another type, if it holds them all: whole numbers in any, floats in f32 and f64. On failure the array
// stays as it was.
MlrtStatus mlrt_array_convert(MlrtArray *array, MlrtType type, const char *path, MlrtError *error);

// Writes a version 1 .npy file, whole or not at all. bf16 is refused: npy files have no such type.
MlrtStatus mlrt_npy_write(const char *path, MlrtType type, const int64_t *shape, int rank, const void *data, MlrtError *error);

#endif
