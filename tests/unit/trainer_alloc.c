// trainer_alloc.c: an allocator that fails on purpose, and counts. Linked into a training program it takes the place of the C
// library's: with FAIL_AT=N the N-th allocation fails, with FAIL_FROM=N that one and all later ones. "fault" on standard error
// says that it came to that.
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);

atomic_long allocations;

static long number_of(const char *name)
{
    const char *text = getenv(name);
    long number = 0;
    for (; text && *text >= '0' && *text <= '9'; text++)
        number = number * 10 + (*text - '0');
    return number;
}

static int fails(void)
{
    long n = atomic_fetch_add(&allocations, 1) + 1, at = number_of("FAIL_AT"), from = number_of("FAIL_FROM");
    int failed = n == at || (from > 0 && n >= from);
    if (failed && (n == at || n == from) && write(STDERR_FILENO, "fault\n", 6) != 6)
        _exit(99);
    if (failed)
        errno = ENOMEM;
    return failed;
}

void *malloc(size_t bytes) { return fails() ? NULL : __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { return fails() ? NULL : __libc_calloc(count, bytes); }
void *realloc(void *old, size_t bytes) { return fails() ? NULL : __libc_realloc(old, bytes); }
