// stream.c: files that are nothing but numbers one after the other: bytes of text, or tokens. A pattern with * takes all files
// it matches, in the order of their names, as one.
#define _POSIX_C_SOURCE 200809L
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"

typedef struct Joined { char *bytes; size_t used; } Joined;

static MlrtStatus append_file(Joined *to, const char *path, size_t size, size_t skip, MlrtError *error)
{
    MlrtFile file;
    size_t whole = 0;
    MlrtStatus status = mlrt_file_open(path, &file, error);
    if (status != MLRT_OK)
        return status;
    size_t bytes = file.bytes < skip ? 0 : file.bytes - skip;
    char *grown = mlrt_size_add(to->used, bytes + 8, &whole) ? realloc(to->bytes, whole) : NULL;
    if (file.bytes < skip)
        status = mlrt_fail(error, MLRT_BAD_FILE, "%s: %zu bytes, fewer than the %zu to be skipped", path, file.bytes, skip);
    else if (bytes % size != 0)
        status = mlrt_fail(error, MLRT_BAD_FILE, "%s: %zu bytes behind the first %zu are no multiple of %zu", path, bytes, skip, size);
    else if (!grown)
        status = mlrt_fail_memory(error, bytes, path);
    if (grown)
        to->bytes = grown;
    if (status == MLRT_OK && bytes > 0)
        memcpy(to->bytes + to->used, file.at + skip, bytes);
    to->used += status == MLRT_OK ? bytes : 0;
    mlrt_file_close(&file);
    return status;
}

static MlrtStatus append_all(Joined *to, const char *pattern, size_t size, size_t skip, MlrtError *error)
{
    glob_t found;
    if (!strpbrk(pattern, "*?["))
        return append_file(to, pattern, size, skip, error);
    int result = glob(pattern, 0, NULL, &found);
    if (result == GLOB_NOSPACE)
        return mlrt_fail_memory(error, strlen(pattern), pattern);
    if (result != 0)
        return mlrt_fail(error, MLRT_BAD_FILE, "%s: there is no such file", pattern);
    MlrtStatus status = MLRT_OK;
    for (size_t i = 0; i < found.gl_pathc && status == MLRT_OK; i++)
        status = append_file(to, found.gl_pathv[i], size, skip, error);
    globfree(&found);
    return status;
}

MlrtStatus mlrt_stream_open(const char *pattern, MlrtType type, size_t skip, MlrtArray *array, MlrtError *error)
{
    Joined joined = {0};
    *array = (MlrtArray){.type = type, .rank = 1};
    MlrtStatus status = append_all(&joined, pattern, mlrt_type_bytes(type), skip, error);
    if (status == MLRT_OK && joined.used == 0)
        status = mlrt_fail(error, MLRT_BAD_FILE, "%s: the file is empty", pattern);
    if (status != MLRT_OK) {
        free(joined.bytes);
        return status;
    }
    array->data = array->owned = joined.bytes;
    array->bytes = joined.used;
    array->count = joined.used / mlrt_type_bytes(type);
    array->shape[0] = (int64_t)array->count;
    return MLRT_OK;
}

bool mlrt_stream_exists(const char *pattern)
{
    glob_t found;
    if (access(pattern, F_OK) == 0)
        return true;
    if (!strpbrk(pattern, "*?[") || glob(pattern, 0, NULL, &found) != 0)
        return false;
    globfree(&found);
    return true;
}
