// faulty.c: an allocator that fails on purpose, linked into a copy of mlc: the allocation numbered by MLC_FAIL_AT gives NULL, and
// with MLC_FAIL_EVER all after it too. MLC_FAIL_COUNT names a file that gets the number of allocations at the end.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
char *__wrap_strdup(const char *text);

static long made, fail_at = -1;

static void write_count(void)
{
    FILE *file = fopen(getenv("MLC_FAIL_COUNT"), "w");
    if (file) {
        fprintf(file, "%ld\n", made);
        fclose(file);
    }
}

static int fails(void)
{
    if (fail_at < 0) {
        const char *at = getenv("MLC_FAIL_AT");
        fail_at = at ? atol(at) : 0;
        if (getenv("MLC_FAIL_COUNT"))
            atexit(write_count);
    }
    made++;
    return fail_at > 0 && (made == fail_at || (made > fail_at && getenv("MLC_FAIL_EVER")));
}

void *__wrap_malloc(size_t bytes) { return fails() ? NULL : __real_malloc(bytes); }
void *__wrap_calloc(size_t count, size_t bytes) { return fails() ? NULL : __real_calloc(count, bytes); }
void *__wrap_realloc(void *old, size_t bytes) { return fails() ? NULL : __real_realloc(old, bytes); }
char *__wrap_strdup(const char *text) { return fails() ? NULL : __real_strdup(text); }
