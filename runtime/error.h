// error.h: how the runtime reports, what it accepts at most, its element types, and its arithmetic on sizes.
//
// The runtime lives in other people's programs. Every function that can fail returns an MlrtStatus and, on failure, fills the
// caller's MlrtError with one line of text: file, place, what was expected, what to do. It never exits and prints nothing.
// An MlrtError may be NULL where only the status matters.
#ifndef MLRT_ERROR_H
#define MLRT_ERROR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum MlrtStatus {
#define STATUS(name, exit_code, text) MLRT_##name,
#include "status.def"
#undef STATUS
    MLRT_STATUS_COUNT
} MlrtStatus;

typedef struct MlrtError {
    MlrtStatus status;
    char text[512];                     // one line without a line end, cut with "..." if longer
} MlrtError;

// Fills `error` and returns `status`, so that a caller can write: return mlrt_fail(error, MLRT_BAD_FILE, "...", ...).
MlrtStatus mlrt_fail(MlrtError *error, MlrtStatus status, const char *format, ...) __attribute__((format(printf, 3, 4)));
MlrtStatus mlrt_vfail(MlrtError *error, MlrtStatus status, const char *format, va_list args);
MlrtStatus mlrt_fail_memory(MlrtError *error, size_t bytes, const char *what);  // MLRT_OUT_OF_MEMORY

const char *mlrt_status_name(MlrtStatus status);
const char *mlrt_status_text(MlrtStatus status);
int mlrt_status_exit_code(MlrtStatus status);

// Bytes of a file as they may stand in a message: cut to 60 bytes, control characters and whatever is not UTF-8 as \xNN.
// Use: mlrt_fail(error, MLRT_BAD_FILE, "unknown name '%s'", mlrt_quote(bytes, length).text);
typedef struct MlrtQuoted { char text[4 * 60 + 4]; } MlrtQuoted;
MlrtQuoted mlrt_quote(const void *bytes, size_t length);

// True if the bytes are strict UTF-8 without NUL, control characters and marks that turn the direction of the text around.
bool mlrt_is_clean_text(const void *bytes, size_t length);
bool mlrt_is_utf8(const void *bytes, size_t length);

// Limits: the values MLRT_LIMIT_CSV_LINE, ..., and the rows MLRT_OVER_CSV_LINE, ... by which a refusal names them.
#define LIMIT(name, value, text) enum { MLRT_LIMIT_##name = value };
#include "limits.def"
#undef LIMIT

typedef enum MlrtLimit {
#define LIMIT(name, value, text) MLRT_OVER_##name,
#include "limits.def"
#undef LIMIT
    MLRT_LIMIT_COUNT
} MlrtLimit;

// Fails with MLRT_TOO_LARGE: the text of the format, then the limit: "... (limit CSV_FIELD: at most 65536 bytes in ...)".
MlrtStatus mlrt_fail_limit(MlrtError *error, MlrtLimit limit, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Sizes: the only arithmetic on sizes that come from a file. False if the result does not fit; `result` is then untouched.
bool mlrt_size_mul(size_t a, size_t b, size_t *result);
bool mlrt_size_add(size_t a, size_t b, size_t *result);

// malloc of count * bytes, NULL if the product does not fit. A size of 0 gives a pointer that may be freed.
void *mlrt_alloc_array(size_t count, size_t bytes);

// Enlarges an array to hold at least `wanted` elements (doubling *room), keeping its content. False, and nothing changed,
// if there is no memory.
bool mlrt_grow(void **array, size_t *room, size_t wanted, size_t bytes);

// --- element types -----------------------------------------------------------------------------------------------------

typedef enum MlrtType {
#define TYPE(name, bytes, npy, safetensors, c_type) MLRT_##name,
#include "types.def"
#undef TYPE
    MLRT_TYPE_COUNT
} MlrtType;

typedef struct MlrtTypeInfo {
    const char *name;                   // "f32"
    size_t bytes;                       // of an element
    const char *npy;                    // "<f4", or "" if npy files have no such type
    const char *safetensors;            // "F32"
    const char *c_name;                 // "float"
} MlrtTypeInfo;

const MlrtTypeInfo *mlrt_type_info(MlrtType type);      // never NULL for a type of the enum
size_t mlrt_type_bytes(MlrtType type);
const char *mlrt_type_name(MlrtType type);

// The number of elements of a shape (1 for rank 0). False if a dimension is negative or the product of the dimensions that
// are not 0 exceeds MLRT_LIMIT_ELEMENTS.
bool mlrt_shape_count(const int64_t *shape, int rank, size_t *count);

// A shape as text, for messages: "(3, 4)".
typedef struct MlrtShapeText { char text[MLRT_LIMIT_RANK * 22 + 4]; } MlrtShapeText;
MlrtShapeText mlrt_shape_text(const int64_t *shape, int rank);

#endif
