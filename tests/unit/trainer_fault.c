// trainer_fault.c: system calls that fail on purpose. Linked into a training program its functions take the place of the C
// library's: with FAULT=CALL:WHAT:N the N-th call of that name fails with an errno (ENOSPC, EIO, …), or
//   KILL   ends the process there, as kill -9 would
//   TORN   ends it with half of a write done
//   SHORT  lets a write do half of what it was asked
// "fault" on standard error says that it came to that.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NO_FAULT = 0, TORN = -1, SHORT = -2 };

static const struct { const char *name; int number; } causes[] = {
    {"ENOSPC", ENOSPC}, {"EIO", EIO}, {"EINTR", EINTR}, {"EACCES", EACCES}, {"EMFILE", EMFILE}, {"ENOMEM", ENOMEM},
    {"EDQUOT", EDQUOT}, {"EROFS", EROFS}, {"TORN", TORN}, {"SHORT", SHORT},
};

static int fault_of(const char *call)
{
    static atomic_long seen;
    const char *fault = getenv("FAULT");
    size_t length = strlen(call);
    if (!fault || strncmp(fault, call, length) != 0 || fault[length] != ':')
        return NO_FAULT;
    const char *what = fault + length + 1, *colon = strchr(what, ':');
    if (!colon || atomic_fetch_add(&seen, 1) + 1 != atol(colon + 1))
        return NO_FAULT;
    static const char said[] = "fault\n";
    syscall(SYS_write, 2, said, sizeof said - 1);
    if (strncmp(what, "KILL", 4) == 0)
        raise(SIGKILL);
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        if (strncmp(what, causes[i].name, (size_t)(colon - what)) == 0)
            return causes[i].number;
    abort();
}

#define FAIL_IF_DUE(call, value)        \
    int fault = fault_of(call);         \
    if (fault > 0) {                    \
        errno = fault;                  \
        return value;                   \
    }

ssize_t write(int descriptor, const void *bytes, size_t count)
{
    FAIL_IF_DUE("write", -1)
    ssize_t done = syscall(SYS_write, descriptor, bytes, fault == NO_FAULT ? count : (count + 1) / 2);
    if (fault == TORN)
        raise(SIGKILL);
    return done;
}

int open(const char *path, int flags, ...)
{
    FAIL_IF_DUE("open", -1)
    va_list args;
    va_start(args, flags);
    int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int close(int descriptor)
{
    int fault = fault_of("close"), done = (int)syscall(SYS_close, descriptor);
    errno = fault > 0 ? fault : errno;
    return fault > 0 ? -1 : done;
}

int fsync(int descriptor)
{
    FAIL_IF_DUE("fsync", -1)
    return (int)syscall(SYS_fsync, descriptor);
}

int rename(const char *from, const char *to)
{
    FAIL_IF_DUE("rename", -1)
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int ftruncate(int descriptor, off_t bytes)
{
    FAIL_IF_DUE("ftruncate", -1)
    return (int)syscall(SYS_ftruncate, descriptor, bytes);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int descriptor, off_t offset)
{
    FAIL_IF_DUE("mmap", MAP_FAILED)
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, descriptor, offset);
}
