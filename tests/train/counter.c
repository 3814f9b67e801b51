// counter.c: to be loaded before a program (LD_PRELOAD): says on standard error, when it ends, how often it asked for memory.
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

static atomic_long calls;

void *malloc(size_t bytes) { return atomic_fetch_add(&calls, 1), __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { return atomic_fetch_add(&calls, 1), __libc_calloc(count, bytes); }
void *realloc(void *old, size_t bytes) { return atomic_fetch_add(&calls, 1), __libc_realloc(old, bytes); }
void *aligned_alloc(size_t alignment, size_t bytes) { return atomic_fetch_add(&calls, 1), __libc_memalign(alignment, bytes); }

int posix_memalign(void **at, size_t alignment, size_t bytes)
{
    *at = aligned_alloc(alignment, bytes);
    return *at == NULL ? 12 : 0;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    atomic_fetch_add(&calls, 1);
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
}

__attribute__((destructor)) static void tell(void) { dprintf(STDERR_FILENO, "calls for memory: %ld\n", atomic_load(&calls)); }
