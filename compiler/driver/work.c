// work.c: the private folder of intermediate files, and results that are whole or not there.
//
// However mlc ends, nothing may stay behind: not after an error, Ctrl-C, or kill -9. So whoever cleans up is another process, the
// guard: it is told what to remove, waits for the end of a pipe that only mlc holds open, and removes it then. A handler of
// signals could not do that for SIGKILL, and would need care at every call; here there is one place and one order.
// (Considered: files without names, by O_TMPFILE. The assembler and the linker want names.)
#define _GNU_SOURCE
#include "driver.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// --- The guard -------------------------------------------------------------------------------------------------------
//
// Messages are a letter and a text that ends in 0: D a folder to remove, T a result whose temporaries are to be removed,
// G the process group of a running tool, "" for none, E the end. The end of the pipe says the same.

enum { MESSAGES_ROOM = 65536, REMOVE_TRIES = 100 };

static struct Guard { pid_t process; int pipe; const char *folder; } guard = {.pipe = -1};      // of this process

static void remove_tree(int parent, const char *name)
{
    int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *entries = folder >= 0 ? fdopendir(folder) : NULL;
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(dirfd(entries), entry->d_name, 0) != 0 && (errno == EISDIR || errno == EPERM))
            remove_tree(dirfd(entries), entry->d_name);
    }
    if (entries != NULL)
        closedir(entries);
    unlinkat(parent, name, AT_REMOVEDIR);
}

// A tool that was killed just now may still finish a call that makes a file: look again until the folder is gone.
static void remove_folder(const char *path)
{
    struct stat info;
    for (int i = 0; i < REMOVE_TRIES && lstat(path, &info) == 0; i++) {
        if (i > 0)
            usleep(10000);
        remove_tree(AT_FDCWD, path);
    }
}

// PATH.tmp-PID-N, as the runtime's writer and this file call them.
static void remove_temporaries(const char *path, pid_t owner)
{
    char folder[4096], begin[512];
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    snprintf(folder, sizeof folder, "%.*s", slash != NULL ? (int)(slash - path) + 1 : 1, slash != NULL ? path : ".");
    snprintf(begin, sizeof begin, "%s.tmp-%ld-", name, (long)owner);
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;)
        if (strncmp(entry->d_name, begin, strlen(begin)) == 0)
            unlinkat(dirfd(entries), entry->d_name, 0);
    if (entries != NULL)
        closedir(entries);
}

static size_t read_all(char *messages, size_t room)
{
    size_t used = 0;
    while (used < room) {
        ssize_t got = read(STDIN_FILENO, messages + used, room - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        used += (size_t)got;
        if (used >= 2 && memcmp(messages + used - 2, "E", 2) == 0 && (used == 2 || messages[used - 3] == 0))
            break;
    }
    return used;
}

static void clean_up(const char *messages, size_t used, pid_t owner)
{
    const char *group = "";
    for (int pass = 0; pass < 2; pass++) {              // first nobody may write any more
        for (const char *at = messages; at < messages + used && memchr(at, 0, (size_t)(messages + used - at)) != NULL;
             at += strlen(at) + 1) {
            if (pass == 0 && at[0] == 'G')
                group = at + 1;
            if (pass == 1 && at[0] == 'D')
                remove_folder(at + 1);
            if (pass == 1 && at[0] == 'T')
                remove_temporaries(at + 1, owner);
        }
        if (pass == 0 && *group != 0)
            kill(-(pid_t)atol(group), SIGKILL);
    }
}

static _Noreturn void guard_main(int from, pid_t owner)
{
    static char messages[MESSAGES_ROOM];
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP};
    setsid();
    for (int i = 0; i < COUNT(ignored); i++)
        signal(ignored[i], SIG_IGN);
    dup2(from, STDIN_FILENO);
    close_range(1, ~0u, 0);                             // nobody waits for what this process holds open
    size_t used = read_all(messages, sizeof messages);
    clean_up(messages, used, owner);
    _exit(0);
}

static bool guard_tell(char what, const char *text)
{
    char message[4096];                                 // PIPE_BUF: written at once or not at all
    int length = snprintf(message, sizeof message, "%c%s", what, text);
    if (length < 0 || length >= (int)sizeof message)
        return false;
    ssize_t written;
    do
        written = write(guard.pipe, message, (size_t)length + 1);
    while (written < 0 && errno == EINTR);
    return written == length + 1;
}

static void guard_end(void)
{
    if (guard.process == 0)
        return;
    guard_tell('E', "");
    close(guard.pipe);
    while (waitpid(guard.process, NULL, 0) < 0 && errno == EINTR)
        continue;
    guard = (struct Guard){.pipe = -1};
}

static bool guard_begin(Command *command)
{
    int ends[2];
    if (guard.process != 0)
        return true;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return fail_input(command, MESSAGE_E0714, strerror(errno)), false;
    pid_t owner = getpid(), child = fork();
    if (child == 0)
        guard_main(ends[0], owner);
    close(ends[0]);
    if (child < 0) {
        close(ends[1]);
        return fail_input(command, MESSAGE_E0714, strerror(errno)), false;
    }
    guard = (struct Guard){child, ends[1], NULL};
    atexit(guard_end);
    return true;
}

// What the guard does not know of it cannot remove: then nothing is begun.
static bool guard_watches(Command *command, char what, const char *path)
{
    return guard_tell(what, path) || (fail_input(command, MESSAGE_E0714, arena_printf(command->cx.arena, "it does not hear of %s", path)), false);
}

void work_child(int pid)
{
    char text[32] = "";
    if (pid != 0)
        snprintf(text, sizeof text, "%d", pid);
    guard_tell('G', text);                              // unknown to the guard, a tool would end by itself a little later
}

// --- Intermediate files ----------------------------------------------------------------------------------------------

static const char *kept_folder(Command *command)
{
    const char *path = command->keep.text;
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return fail_input(command, MESSAGE_E0711, path, strerror(errno)), NULL;
    char *full = realpath(path, NULL);
    if (full == NULL)
        return fail_input(command, MESSAGE_E0711, path, strerror(errno)), NULL;
    const char *copy = arena_printf(command->cx.arena, "%s", full);
    free(full);
    return copy;
}

static const char *private_folder(Command *command)
{
    const char *place = getenv("TMPDIR");
    place = place != NULL && *place ? place : "/tmp";
    char *full = realpath(place, NULL);
    char *path = full != NULL ? arena_printf(command->cx.arena, "%s/mlc-XXXXXX", full) : NULL;
    free(full);
    if (path == NULL || mkdtemp(path) == NULL)          // 0700
        return fail_input(command, MESSAGE_E0711, place, strerror(errno)), NULL;
    if (guard_watches(command, 'D', path))
        return path;
    rmdir(path);
    return NULL;
}

const char *work_folder(Command *command)
{
    if (guard.folder != NULL)
        return guard.folder;
    if (!guard_begin(command))
        return NULL;
    return guard.folder = command->keep.given ? kept_folder(command) : private_folder(command);
}

const char *work_file(Command *command, const char *name)
{
    const char *folder = work_folder(command);
    return folder != NULL ? arena_printf(command->cx.arena, "%s/%s", folder, name) : NULL;
}

// No sync: what is in here is needed only while this process lives.
bool work_write(Command *command, const char *name, const void *bytes, size_t count)
{
    const char *path = work_file(command, name);
    FILE *file = path != NULL ? fopen(path, "we") : NULL;
    bool good = file != NULL && fwrite(bytes, 1, count, file) == count;
    int cause = errno;
    if (file != NULL && fclose(file) != 0 && good) {
        cause = errno;
        good = false;
    }
    if (!good && path != NULL)
        fail_input(command, MESSAGE_E0705, path, strerror(cause));
    return good;
}

// --- Results ---------------------------------------------------------------------------------------------------------

// What is made must not replace what it is made from, under whatever name.
static bool replaces_input(Command *command, const char *path)
{
    struct stat old, input;
    if (stat(path, &old) != 0)
        return false;
    for (int i = 0; i < command->read.count; i++)
        if (stat(command->read.at[i], &input) == 0 && input.st_dev == old.st_dev && input.st_ino == old.st_ino)
            return fail_input(command, MESSAGE_E0619, path, command->read.at[i]), true;
    if (!S_ISREG(old.st_mode))
        return fail_input(command, MESSAGE_E0705, path, S_ISDIR(old.st_mode) ? "it is a folder" : "it is not a regular file"), true;
    return false;
}

bool result_begin(Command *command, Result *result, const char *path)
{
    if (replaces_input(command, path) || !guard_begin(command))
        return false;
    if (!guard_watches(command, 'T', path))
        return false;
    *result = (Result){path, arena_printf(command->cx.arena, "%s.tmp-%ld-0", path, (long)getpid())};
    int file = open(result->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);      // found out before the long work
    if (file < 0)
        return fail_input(command, MESSAGE_E0705, path, strerror(errno)), false;
    close(file);
    return true;
}

bool result_end(Command *command, Result *result)
{
    int file = open(result->temporary, O_RDONLY | O_CLOEXEC);
    bool good = file >= 0 && fsync(file) == 0;
    if (good)
        good = rename(result->temporary, result->path) == 0;
    if (!good)
        fail_input(command, MESSAGE_E0705, result->path, strerror(errno));
    if (file >= 0)
        close(file);
    return good;
}

static bool result_print(Command *command, const void *bytes, size_t count)
{
    if (fwrite(bytes, 1, count, stdout) == count && fflush(stdout) == 0)
        return true;
    return fail_input(command, MESSAGE_E0705, "standard output", strerror(errno)), false;
}

bool result_write(Command *command, const char *path, const void *bytes, size_t count)
{
    MlrtError error = {0};
    if (strcmp(path, "-") == 0)
        return result_print(command, bytes, count);
    if (replaces_input(command, path) || !guard_begin(command))
        return false;
    if (!guard_watches(command, 'T', path))
        return false;
    if (mlrt_file_write(path, bytes, count, &error) == MLRT_OK)
        return true;
    return fail_runtime(command, &error), false;
}
