// file.c: opening, atomic writing, appending. See file.h for the promises.
//
// Bytes are mapped and not read: weights stay views of the file, and a large data set costs address space only. Whoever
// replaces a file through this writer gives it a new inode, so a mapping that somebody holds keeps its content.
// A failed fsync is final: after one, Linux may mark the pages clean though they never reached the disk, so a second try
// could succeed without having written anything.
#define _GNU_SOURCE
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static MlrtStatus fail_disk(MlrtError *error, const char *path, const char *what)
{
    int cause = errno;
    return mlrt_fail(error, MLRT_DISK, "%s: %s: %s", path, what, strerror(cause));
}

static void close_quietly(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

static int open_retry(const char *path, int flags, mode_t mode)
{
    int descriptor;
    do
        descriptor = open(path, flags | O_CLOEXEC | O_NOCTTY, mode);
    while (descriptor < 0 && errno == EINTR);
    return descriptor;
}

static MlrtStatus check_regular(int descriptor, const char *path, struct stat *info, MlrtError *error)
{
    if (fstat(descriptor, info) != 0)
        return fail_disk(error, path, "its state cannot be read");
    if (S_ISDIR(info->st_mode))
        return mlrt_fail(error, MLRT_BAD_FILE, "%s: this is a folder, a file was expected", path);
    if (!S_ISREG(info->st_mode))
        return mlrt_fail(error, MLRT_BAD_FILE, "%s: not a regular file (a pipe, device or socket); copy it to a file first", path);
    return MLRT_OK;
}

// --- reading -----------------------------------------------------------------------------------------------------------

static MlrtStatus map_bytes(int descriptor, size_t bytes, MlrtFile *file, MlrtError *error)
{
    void *mapping = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (mapping == MAP_FAILED)
        return errno == ENOMEM ? mlrt_fail_memory(error, bytes, file->path) : fail_disk(error, file->path, "cannot be mapped");
    file->at = file->mapping = mapping;
    file->bytes = bytes;
    return MLRT_OK;
}

MlrtStatus mlrt_file_open(const char *path, MlrtFile *file, MlrtError *error)
{
    struct stat info;
    *file = mlrt_file_of_memory(path, "", 0);
    int descriptor = open_retry(path, O_RDONLY | O_NONBLOCK, 0);    // O_NONBLOCK: a FIFO must not hold us up
    if (descriptor < 0)
        return mlrt_fail(error, MLRT_BAD_FILE, "%s: cannot be opened: %s", path, strerror(errno));
    MlrtStatus status = check_regular(descriptor, path, &info, error);
    if (status == MLRT_OK && (uintmax_t)info.st_size > PTRDIFF_MAX)
        status = mlrt_fail(error, MLRT_TOO_LARGE, "%s: larger than the memory of this machine can address", path);
    if (status == MLRT_OK && info.st_size > 0)
        status = map_bytes(descriptor, (size_t)info.st_size, file, error);
    close_quietly(&descriptor);
    return status;
}

MlrtFile mlrt_file_of_memory(const char *name, const void *bytes, size_t count)
{
    return (MlrtFile){.path = name, .at = bytes, .bytes = count};
}

void mlrt_file_close(MlrtFile *file)
{
    if (file->mapping)
        munmap(file->mapping, file->bytes);
    file->mapping = NULL;
    file->at = NULL;
    file->bytes = 0;
}

// --- writing -----------------------------------------------------------------------------------------------------------

// write(2) until all is written. Returns false with errno set.
static bool write_all(int descriptor, const uint8_t *bytes, size_t count)
{
    while (count > 0) {
        size_t part = count < (1u << 30) ? count : (1u << 30);
        ssize_t written = write(descriptor, bytes, part);
        if (written < 0 && errno == EINTR)
            continue;
        if (written == 0)
            errno = ENOSPC;
        if (written <= 0)
            return false;
        bytes += written;
        count -= (size_t)written;
    }
    return true;
}

// The folder of a path, in a new string: "a/b.txt" gives "a/", "b.txt" gives "./".
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) + 1 : 2;
    char *folder = malloc(length + 1);
    if (!folder)
        return NULL;
    memcpy(folder, slash ? path : "./", length);
    folder[length] = 0;
    return folder;
}

// A name in the folder of the target that nobody has: the process number tells writers apart, the counter one process's.
static MlrtStatus create_temporary(MlrtWriter *writer, size_t room, MlrtError *error)
{
    for (int attempt = 0; attempt < 1000; attempt++) {
        snprintf(writer->temporary, room, "%s.tmp-%ld-%d", writer->path, (long)getpid(), attempt);
        writer->descriptor = open_retry(writer->temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
        if (writer->descriptor >= 0)
            return MLRT_OK;
        if (errno != EEXIST)
            break;
    }
    return fail_disk(error, writer->temporary, "cannot be created");
}

static MlrtStatus writer_start(MlrtWriter *writer, const char *path, MlrtError *error)
{
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return mlrt_fail(error, MLRT_DISK, "%s: exists and is not a regular file; it is not replaced", path);
    size_t room = strlen(path) + 48;
    writer->path = strdup(path);
    writer->temporary = malloc(room);
    if (!writer->path || !writer->temporary)
        return mlrt_fail_memory(error, room, path);
    writer->temporary[0] = 0;
    return create_temporary(writer, room, error);
}

static void writer_release(MlrtWriter *writer)
{
    close_quietly(&writer->descriptor);
    free(writer->path);
    free(writer->temporary);
    writer->path = writer->temporary = NULL;
}

MlrtStatus mlrt_writer_begin(MlrtWriter *writer, const char *path, MlrtError *error)
{
    writer->path = writer->temporary = NULL;
    writer->descriptor = -1;
    writer->used = 0;
    writer->status = writer_start(writer, path, error);
    if (writer->status != MLRT_OK)
        writer_release(writer);
    return writer->status;
}

static MlrtStatus writer_flush(MlrtWriter *writer, MlrtError *error)
{
    size_t used = writer->used;
    writer->used = 0;
    if (!write_all(writer->descriptor, writer->buffer, used))
        writer->status = fail_disk(error, writer->path, "cannot be written");
    return writer->status;
}

static MlrtStatus writer_repeat(const MlrtWriter *writer, MlrtError *error)
{
    return mlrt_fail(error, writer->status, "%s: an earlier write failed", writer->path ? writer->path : "file");
}

MlrtStatus mlrt_writer_put(MlrtWriter *writer, const void *bytes, size_t count, MlrtError *error)
{
    if (writer->status != MLRT_OK)
        return writer_repeat(writer, error);
    if (count > sizeof writer->buffer - writer->used && writer_flush(writer, error) != MLRT_OK)
        return writer->status;
    if (count > sizeof writer->buffer) {
        if (!write_all(writer->descriptor, bytes, count))
            writer->status = fail_disk(error, writer->path, "cannot be written");
        return writer->status;
    }
    if (count > 0)
        memcpy(writer->buffer + writer->used, bytes, count);
    writer->used += count;
    return MLRT_OK;
}

// After the rename the new file is there; syncing the folder makes the new name survive a power cut. Some file systems have
// no such thing and say EINVAL.
static MlrtStatus sync_folder(const char *path, MlrtError *error)
{
    MlrtStatus status = MLRT_OK;
    int descriptor = -1;
    char *folder = folder_of(path);
    if (!folder)
        status = mlrt_fail_memory(error, strlen(path), path);
    else if ((descriptor = open_retry(folder, O_RDONLY | O_DIRECTORY, 0)) < 0)
        status = fail_disk(error, folder, "the folder cannot be opened to sync it");
    else if (fsync(descriptor) != 0 && errno != EINVAL && errno != EROFS)
        status = fail_disk(error, folder, "the folder cannot be synced");
    close_quietly(&descriptor);
    free(folder);
    return status;
}

static MlrtStatus writer_finish(MlrtWriter *writer, MlrtError *error)
{
    if (writer_flush(writer, error) != MLRT_OK)
        return writer->status;
    if (fsync(writer->descriptor) != 0)
        return fail_disk(error, writer->path, "cannot be synced to the disk");
    int descriptor = writer->descriptor;
    writer->descriptor = -1;
    if (close(descriptor) != 0 && errno != EINTR)
        return fail_disk(error, writer->path, "cannot be closed");
    if (rename(writer->temporary, writer->path) != 0)
        return fail_disk(error, writer->path, "cannot be replaced by the new file");
    writer->temporary[0] = 0;
    return sync_folder(writer->path, error);
}

MlrtStatus mlrt_writer_commit(MlrtWriter *writer, MlrtError *error)
{
    MlrtStatus status = writer->status != MLRT_OK ? writer_repeat(writer, error) : writer_finish(writer, error);
    mlrt_writer_abandon(writer);
    return status;
}

void mlrt_writer_abandon(MlrtWriter *writer)
{
    if (writer->temporary && writer->temporary[0])
        unlink(writer->temporary);
    writer_release(writer);
    writer->status = MLRT_INTERNAL;                     // a put after the end is a fault of the caller, and is told so
}

MlrtStatus mlrt_file_write(const char *path, const void *bytes, size_t count, MlrtError *error)
{
    MlrtWriter writer;
    MlrtStatus status = mlrt_writer_begin(&writer, path, error);
    if (status == MLRT_OK)
        status = mlrt_writer_put(&writer, bytes, count, error);
    if (status == MLRT_OK)
        status = mlrt_writer_commit(&writer, error);
    mlrt_writer_abandon(&writer);
    return status;
}

void mlrt_file_remove_stale(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t length = strlen(name);
    char *folder = folder_of(path);
    DIR *entries = folder ? opendir(folder) : NULL;
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        if (strncmp(entry->d_name, name, length) == 0 && strncmp(entry->d_name + length, ".tmp-", 5) == 0)
            unlinkat(dirfd(entries), entry->d_name, 0);
    if (entries)
        closedir(entries);
    free(folder);
}

// --- logs --------------------------------------------------------------------------------------------------------------

// The length up to which the file consists of whole lines, at most `keep`: reads backwards from there for a line end.
static bool whole_lines(int descriptor, uint64_t keep, uint64_t *whole)
{
    char part[4096];
    while (keep > 0) {
        size_t count = keep < sizeof part ? (size_t)keep : sizeof part;
        ssize_t got = pread(descriptor, part, count, (off_t)(keep - count));
        if (got < 0 && errno == EINTR)
            continue;
        if (got != (ssize_t)count)
            return false;
        for (size_t i = count; i > 0; i--)
            if (part[i - 1] == '\n') {
                *whole = keep - count + i;
                return true;
            }
        keep -= count;
    }
    *whole = 0;
    return true;
}

static MlrtStatus log_prepare(MlrtLog *log, uint64_t keep, MlrtError *error)
{
    struct stat info;
    MlrtStatus status = check_regular(log->descriptor, log->path, &info, error);
    if (status != MLRT_OK)
        return status;
    uint64_t size = (uint64_t)info.st_size;
    if (!whole_lines(log->descriptor, keep < size ? keep : size, &log->bytes))
        return fail_disk(error, log->path, "cannot be read");
    if (log->bytes != size && ftruncate(log->descriptor, (off_t)log->bytes) != 0)
        return fail_disk(error, log->path, "cannot be cut to its last whole line");
    return MLRT_OK;
}

MlrtStatus mlrt_log_open(MlrtLog *log, const char *path, uint64_t keep, MlrtError *error)
{
    MlrtStatus status = MLRT_OK;
    *log = (MlrtLog){.path = strdup(path), .descriptor = -1};
    if (!log->path)
        status = mlrt_fail_memory(error, strlen(path) + 1, path);
    else if ((log->descriptor = open_retry(path, O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK, 0666)) < 0)
        status = fail_disk(error, path, "the log cannot be opened");
    else
        status = log_prepare(log, keep, error);
    if (status != MLRT_OK)
        mlrt_log_close(log, NULL);
    return status;
}

MlrtStatus mlrt_log_line(MlrtLog *log, MlrtError *error, const char *format, ...)
{
    char line[MLRT_LIMIT_LOG_LINE + 1];
    if (log->descriptor < 0)
        return mlrt_fail(error, MLRT_INTERNAL, "log: a line is written to a log that is not open");
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (length < 0 || length >= MLRT_LIMIT_LOG_LINE)
        return mlrt_fail_limit(error, MLRT_OVER_LOG_LINE, "%s: a line of %d bytes", log->path, length);
    line[length] = '\n';
    if (!write_all(log->descriptor, (const uint8_t *)line, (size_t)length + 1)) {
        MlrtStatus status = fail_disk(error, log->path, "a line cannot be appended");
        if (ftruncate(log->descriptor, (off_t)log->bytes) != 0)
            close_quietly(&log->descriptor);            // half a line stays; nothing may be written after it
        return status;
    }
    log->bytes += (uint64_t)length + 1;
    return MLRT_OK;
}

MlrtStatus mlrt_log_sync(MlrtLog *log, MlrtError *error)
{
    if (log->descriptor >= 0 && fsync(log->descriptor) != 0)
        return fail_disk(error, log->path, "the log cannot be synced to the disk");
    return MLRT_OK;
}

MlrtStatus mlrt_log_close(MlrtLog *log, MlrtError *error)
{
    MlrtStatus status = MLRT_OK;
    if (log->descriptor >= 0 && close(log->descriptor) != 0 && errno != EINTR)
        status = fail_disk(error, log->path, "the log cannot be closed");
    log->descriptor = -1;
    free(log->path);
    log->path = NULL;
    return status;
}
