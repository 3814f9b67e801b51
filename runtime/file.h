// file.h: the only place of the runtime that opens files.
//
// Reading: a regular file, its size taken once from the descriptor, its bytes mapped. Writing: into a temporary in the same
// folder, synced, renamed over the old file, the folder synced; so a file is whole or not there, and a failure of any kind
// leaves the old one untouched. Logs are appended to, a whole line at a time.
#ifndef MLRT_FILE_H
#define MLRT_FILE_H

#include "error.h"

// --- reading -----------------------------------------------------------------------------------------------------------

typedef struct MlrtFile {
    const char *path;                   // for messages; the caller's string, must live as long as the file is open
    const uint8_t *at;                  // the bytes, read-only; never NULL while open
    size_t bytes;
    void *mapping;                      // what mlrt_file_close gives back, NULL for bytes that the caller owns
} MlrtFile;

// A path that is missing, unreadable, or not a regular file (folder, FIFO, device) is MLRT_BAD_FILE.
MlrtStatus mlrt_file_open(const char *path, MlrtFile *file, MlrtError *error);
MlrtFile mlrt_file_of_memory(const char *name, const void *bytes, size_t count);    // a view; nothing is copied
void mlrt_file_close(MlrtFile *file);                                               // may be called twice

// --- writing -----------------------------------------------------------------------------------------------------------

typedef struct MlrtWriter {
    char *path, *temporary;             // owned; temporary is "PATH.tmp-PID-N"
    int descriptor;                     // -1 when closed
    MlrtStatus status;                  // the first failure; once failed, puts and commit do nothing but repeat it
    size_t used;                        // bytes in the buffer
    uint8_t buffer[16384];
} MlrtWriter;

// Order of calls: begin, any number of puts, then commit or abandon. A failed begin needs no abandon. After commit, failed or
// not, the writer is closed and owns nothing. `path` may be missing or a regular file, nothing else.
MlrtStatus mlrt_writer_begin(MlrtWriter *writer, const char *path, MlrtError *error);
MlrtStatus mlrt_writer_put(MlrtWriter *writer, const void *bytes, size_t count, MlrtError *error);
MlrtStatus mlrt_writer_commit(MlrtWriter *writer, MlrtError *error);
void mlrt_writer_abandon(MlrtWriter *writer);           // removes the temporary; may be called after commit

// A whole file in one call.
MlrtStatus mlrt_file_write(const char *path, const void *bytes, size_t count, MlrtError *error);

// Removes the temporaries that killed writers of this path left behind; for the owner of the folder, while nobody writes.
void mlrt_file_remove_stale(const char *path);

// --- logs --------------------------------------------------------------------------------------------------------------

typedef struct MlrtLog {
    char *path;                         // owned
    int descriptor;                     // -1 when closed
    uint64_t bytes;                     // what the file holds: a checkpoint notes it, and a resumed run keeps just this much
} MlrtLog;

#define MLRT_LOG_KEEP_ALL UINT64_MAX

// Opens or creates the file and keeps its first `keep` bytes (0 starts afresh, MLRT_LOG_KEEP_ALL goes on); half a line at
// the end, from a killed writer, is cut off.
MlrtStatus mlrt_log_open(MlrtLog *log, const char *path, uint64_t keep, MlrtError *error);

// Appends one line; the line end is added. Allocates nothing. If it cannot be written whole, nothing of it stays.
MlrtStatus mlrt_log_line(MlrtLog *log, MlrtError *error, const char *format, ...) __attribute__((format(printf, 3, 4)));
MlrtStatus mlrt_log_sync(MlrtLog *log, MlrtError *error);
MlrtStatus mlrt_log_close(MlrtLog *log, MlrtError *error);      // reports what the system held back; may be called twice

#endif
