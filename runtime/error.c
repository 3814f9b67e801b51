// error.c: statuses, messages, sizes and element types; all of them read the rows of status.def, limits.def and types.def.
#include "error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- statuses and messages ---------------------------------------------------------------------------------------------

static const struct StatusRow { const char *name; int exit_code; const char *text; } status_rows[] = {
#define STATUS(name, exit_code, text) {#name, exit_code, text},
#include "status.def"
#undef STATUS
};

static const struct StatusRow *status_row(MlrtStatus status)
{
    return &status_rows[(unsigned)status < MLRT_STATUS_COUNT ? status : MLRT_INTERNAL];
}

const char *mlrt_status_name(MlrtStatus status) { return status_row(status)->name; }
const char *mlrt_status_text(MlrtStatus status) { return status_row(status)->text; }
int mlrt_status_exit_code(MlrtStatus status) { return status_row(status)->exit_code; }

MlrtStatus mlrt_vfail(MlrtError *error, MlrtStatus status, const char *format, va_list args)
{
    if (!error)
        return status;
    error->status = status;
    int length = vsnprintf(error->text, sizeof error->text, format, args);
    if (length < 0)
        error->text[0] = 0;
    else if ((size_t)length >= sizeof error->text)
        memcpy(error->text + sizeof error->text - 4, "...", 4);
    return status;
}

MlrtStatus mlrt_fail(MlrtError *error, MlrtStatus status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mlrt_vfail(error, status, format, args);
    va_end(args);
    return status;
}

MlrtStatus mlrt_fail_memory(MlrtError *error, size_t bytes, const char *what)
{
    return mlrt_fail(error, MLRT_OUT_OF_MEMORY, "%s: there is no memory for %zu bytes", what, bytes);
}

static const struct LimitRow { const char *name; long long value; const char *text; } limit_rows[] = {
#define LIMIT(name, value, text) {#name, value, text},
#include "limits.def"
#undef LIMIT
};

MlrtStatus mlrt_fail_limit(MlrtError *error, MlrtLimit limit, const char *format, ...)
{
    char what[400];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    const struct LimitRow *row = &limit_rows[limit];
    return mlrt_fail(error, MLRT_TOO_LARGE, "%s (limit %s: at most %lld %s)", what, row->name, row->value, row->text);
}

// --- text --------------------------------------------------------------------------------------------------------------

// The code point at `at` and its length in bytes, or length 0 where the bytes are no UTF-8 (overlong, surrogate, cut).
static int utf8_next(const uint8_t *at, size_t left, uint32_t *point)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint8_t first = at[0];
    int length = first < 0x80 ? 1 : first < 0xC0 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF8 ? 4 : 0;
    if (length == 0 || (size_t)length > left)
        return 0;
    uint32_t value = length == 1 ? first : first & (0x7Fu >> length);
    for (int i = 1; i < length; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return 0;
        value = value << 6 | (at[i] & 0x3Fu);
    }
    if (value < least[length] || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
        return 0;
    *point = value;
    return length;
}

static bool point_is_clean(uint32_t point)
{
    bool control = point < 0x20 || (point >= 0x7F && point < 0xA0) || point == 0x2028 || point == 0x2029;
    bool direction = point == 0x061C || point == 0x200E || point == 0x200F || (point >= 0x202A && point <= 0x202E) ||
                     (point >= 0x2066 && point <= 0x2069);
    return !control && !direction;
}

static bool text_holds(const void *bytes, size_t length, bool only_clean)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < length;) {
        uint32_t point = 0;
        int step = utf8_next(at + i, length - i, &point);
        if (step == 0 || (only_clean && !point_is_clean(point)))
            return false;
        i += (size_t)step;
    }
    return true;
}

bool mlrt_is_clean_text(const void *bytes, size_t length) { return text_holds(bytes, length, true); }
bool mlrt_is_utf8(const void *bytes, size_t length) { return text_holds(bytes, length, false); }

MlrtQuoted mlrt_quote(const void *bytes, size_t length)
{
    MlrtQuoted quoted;
    const uint8_t *at = bytes;
    size_t used = 0, shown = length < 60 ? length : 60;
    for (size_t i = 0; i < shown;) {
        uint32_t point = 0;
        int step = utf8_next(at + i, length - i, &point);
        if (step > 0 && i + (size_t)step > shown)
            break;
        if (step > 0 && point_is_clean(point)) {
            memcpy(quoted.text + used, at + i, (size_t)step);
            used += (size_t)step;
            i += (size_t)step;
        } else {
            used += (size_t)snprintf(quoted.text + used, 5, "\\x%02X", (unsigned)at[i]);
            i++;
        }
    }
    memcpy(quoted.text + used, length > shown ? "..." : "", length > shown ? 4 : 1);
    return quoted;
}

// --- sizes and memory --------------------------------------------------------------------------------------------------

bool mlrt_size_mul(size_t a, size_t b, size_t *result)
{
    size_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *result = product;
    return true;
}

bool mlrt_size_add(size_t a, size_t b, size_t *result)
{
    size_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *result = sum;
    return true;
}

void *mlrt_alloc_array(size_t count, size_t bytes)
{
    size_t size;
    if (!mlrt_size_mul(count, bytes, &size) || size > PTRDIFF_MAX)
        return NULL;
    return malloc(size ? size : 1);
}

bool mlrt_grow(void **array, size_t *room, size_t wanted, size_t bytes)
{
    if (wanted <= *room)
        return true;
    size_t larger = *room < 8 ? 16 : *room, size;
    if (*room >= 8 && !mlrt_size_mul(*room, 2, &larger))
        return false;
    if (larger < wanted)
        larger = wanted;
    if (!mlrt_size_mul(larger, bytes, &size) || size > PTRDIFF_MAX)
        return false;
    void *moved = realloc(*array, size);
    if (!moved)
        return false;
    *array = moved;
    *room = larger;
    return true;
}

// --- element types -----------------------------------------------------------------------------------------------------

static const MlrtTypeInfo type_rows[] = {
#define TYPE(name, bytes, npy, safetensors, c_type) {#name, bytes, npy, safetensors, #c_type},
#include "types.def"
#undef TYPE
};

#define TYPE(name, bytes, npy, safetensors, c_type) _Static_assert(sizeof(c_type) == (bytes), "types.def: " #name);
#include "types.def"
#undef TYPE

const MlrtTypeInfo *mlrt_type_info(MlrtType type) { return &type_rows[(unsigned)type < MLRT_TYPE_COUNT ? type : MLRT_u8]; }
size_t mlrt_type_bytes(MlrtType type) { return mlrt_type_info(type)->bytes; }
const char *mlrt_type_name(MlrtType type) { return mlrt_type_info(type)->name; }

bool mlrt_shape_count(const int64_t *shape, int rank, size_t *count)
{
    size_t bound = 1, all = 1;          // `bound` leaves zeros out: a shape (0, 2^62, 8) is no less absurd for its zero
    for (int i = 0; i < rank; i++) {
        if (shape[i] < 0 || (uint64_t)shape[i] > SIZE_MAX)
            return false;
        if (shape[i] > 0 && (!mlrt_size_mul(bound, (size_t)shape[i], &bound) || bound > MLRT_LIMIT_ELEMENTS))
            return false;
        all = shape[i] == 0 ? 0 : all;
    }
    *count = all ? bound : 0;
    return true;
}

MlrtShapeText mlrt_shape_text(const int64_t *shape, int rank)
{
    MlrtShapeText shown;
    size_t used = 1;
    shown.text[0] = '(';
    for (int i = 0; i < rank && i < MLRT_LIMIT_RANK; i++)
        used += (size_t)snprintf(shown.text + used, sizeof shown.text - used, "%s%" PRId64, i ? ", " : "", shape[i]);
    memcpy(shown.text + used, ")", 2);
    return shown;
}
