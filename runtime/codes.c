// codes.c: from the words of a column to numbers 0, 1, 2, ... Names that are whole numbers come in the order of their values,
// so that labels "0" to "12" get the codes that a person expects.
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "table.h"

static const char *whole_number(const char *text, bool *negative)
{
    *negative = *text == '-';
    text += *negative;
    if (!*text || text[strspn(text, "0123456789")])
        return NULL;
    return text + strspn(text, "0");
}

static int compare_names(const char *a, const char *b)
{
    bool minus_a, minus_b;
    const char *x = whole_number(a, &minus_a), *y = whole_number(b, &minus_b);
    if (!x || !y)
        return x ? -1 : y ? 1 : strcmp(a, b);
    if (minus_a != minus_b)
        return minus_a ? -1 : 1;
    size_t p = strlen(x), q = strlen(y);
    int order = p != q ? (p < q ? -1 : 1) : strcmp(x, y);
    order = minus_a ? -order : order;
    return order ? order : strcmp(a, b);
}

static int compare_pointers(const void *a, const void *b)
{
    return compare_names(*(const char *const *)a, *(const char *const *)b);
}

// Copies the distinct ones of the sorted strings into one block.
static MlrtStatus keep_distinct(const char **sorted, size_t count, MlrtCodes *codes, MlrtError *error)
{
    size_t kept = 0, bytes = 0, block;
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || strcmp(sorted[kept - 1], sorted[i]) != 0) {
            sorted[kept++] = sorted[i];
            bytes += strlen(sorted[i]) + 1;
        }
    if (kept > MLRT_LIMIT_CODES)
        return mlrt_fail_limit(error, MLRT_OVER_CODES, "%zu distinct values", kept);
    if (!mlrt_size_mul(kept, sizeof(char *), &block) || !mlrt_size_add(block, bytes, &block) || !(codes->names = malloc(block + 1)))
        return mlrt_fail_memory(error, bytes, "codes");
    char *to = (char *)(codes->names + kept);
    for (size_t i = 0; i < kept; i++) {
        codes->names[i] = to;
        to = stpcpy(to, sorted[i]) + 1;
    }
    codes->count = (int32_t)kept;
    return MLRT_OK;
}

MlrtStatus mlrt_codes_fit(const char *const *strings, size_t count, MlrtCodes *codes, MlrtError *error)
{
    *codes = (MlrtCodes){0};
    const char **sorted = mlrt_alloc_array(count, sizeof *sorted);
    if (!sorted)
        return mlrt_fail_memory(error, count * sizeof *sorted, "codes");
    if (count > 0) {
        memcpy(sorted, strings, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, compare_pointers);
    }
    MlrtStatus status = keep_distinct(sorted, count, codes, error);
    free(sorted);
    return status;
}

static int32_t find_code(const MlrtCodes *codes, const char *name)
{
    int32_t low = 0, high = codes->count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        int order = compare_names(name, codes->names[middle]);
        if (order == 0)
            return middle;
        low = order > 0 ? middle + 1 : low;
        high = order < 0 ? middle : high;
    }
    return -1;
}

MlrtStatus mlrt_codes_apply(const MlrtCodes *codes, const char *const *strings, size_t count, bool unknown, int32_t *to,
                            MlrtError *error)
{
    for (size_t i = 0; i < count; i++) {
        int32_t code = find_code(codes, strings[i]);
        if (code < 0 && !unknown)
            return mlrt_fail(error, MLRT_BAD_INPUT, "row %zu: the value '%s' is none of the %d known ones", i,
                             mlrt_quote(strings[i], strlen(strings[i])).text, (int)codes->count);
        to[i] = code + unknown;
    }
    return MLRT_OK;
}

void mlrt_codes_free(MlrtCodes *codes)
{
    free(codes->names);
    *codes = (MlrtCodes){0};
}
