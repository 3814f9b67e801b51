// npy.c: NumPy's array files, versions 1 to 3. The header is a Python dictionary of three known keys, read by a grammar that
// knows nothing else; the data are viewed in place where order, byte order and alignment allow, else copied once.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

typedef struct Header {
    const char *path, *at, *end;
    bool has_descr, has_order, has_shape, fortran, big_endian;
    MlrtType type;
} Header;

static MlrtStatus fail_header(const Header *header, const char *expected, MlrtError *error)
{
    size_t left = (size_t)(header->end - header->at);
    return mlrt_fail(error, MLRT_BAD_FILE, "%s: npy header: %s expected before '%s'", header->path, expected,
                     mlrt_quote(header->at, left < 20 ? left : 20).text);
}

// --- grammar: { 'key' : value , ... } ----------------------------------------------------------------------------------

static void skip_spaces(Header *header)
{
    while (header->at < header->end && *header->at == ' ')
        header->at++;
}

static bool accept(Header *header, const char *word)
{
    skip_spaces(header);
    size_t length = strlen(word);
    bool there = (size_t)(header->end - header->at) >= length && memcmp(header->at, word, length) == 0;
    header->at += there ? length : 0;
    return there;
}

static bool accept_string(Header *header, const char **text, size_t *length)
{
    skip_spaces(header);
    if (header->at == header->end || (*header->at != '\'' && *header->at != '"'))
        return false;
    const char *close = memchr(header->at + 1, *header->at, (size_t)(header->end - header->at - 1));
    if (!close)
        return false;
    *text = header->at + 1;
    *length = (size_t)(close - *text);
    header->at = close + 1;
    return true;
}

static bool accept_dimension(Header *header, int64_t *value)
{
    const char *start = header->at;
    for (*value = 0; header->at < header->end && *header->at >= '0' && *header->at <= '9'; header->at++)
        if (__builtin_mul_overflow(*value, (int64_t)10, value) ||
            __builtin_add_overflow(*value, (int64_t)(*header->at - '0'), value))
            return false;
    return header->at > start;
}

// --- values ------------------------------------------------------------------------------------------------------------

static MlrtStatus refuse_descr(const Header *header, const char *text, size_t length, MlrtError *error)
{
    char kind = length > 1 ? text[1] : length ? text[0] : ' ';
    const char *what = kind == 'O' ? "Python objects; they are programs and are not read"
                     : kind == 'c' ? "complex numbers; save the real and the imaginary part"
                     : kind == 'U' || kind == 'S' ? "strings; save codes, or use CSV"
                     : kind == 'V' ? "raw bytes; convert with .astype(numpy.float32)"
                                   : "elements of a type that is not read; convert with .astype(...)";
    return mlrt_fail(error, MLRT_BAD_FILE, "%s: the npy file holds '%s': %s", header->path, mlrt_quote(text, length).text, what);
}

static MlrtStatus read_descr(Header *header, MlrtError *error)
{
    const char *text;
    size_t length;
    skip_spaces(header);
    if (header->at < header->end && *header->at == '[')
        return mlrt_fail(error, MLRT_BAD_FILE, "%s: the npy file holds a structured type; save each field as a file of its own",
                         header->path);
    if (!accept_string(header, &text, &length))
        return fail_header(header, "the element type in quotes", error);
    for (int i = 0; i < MLRT_TYPE_COUNT; i++) {
        const MlrtTypeInfo *info = mlrt_type_info((MlrtType)i);
        bool order = info->bytes == 1 ? length == 3 && strchr("|<>", text[0]) != NULL : length == 3 && strchr("<>", text[0]) != NULL;
        if (*info->npy && order && text[0] && memcmp(text + 1, info->npy + 1, 2) == 0) {
            header->type = (MlrtType)i;
            header->big_endian = text[0] == '>' && info->bytes > 1;
            return MLRT_OK;
        }
    }
    return refuse_descr(header, text, length, error);
}

static MlrtStatus read_order(Header *header, MlrtError *error)
{
    header->fortran = accept(header, "True");
    if (!header->fortran && !accept(header, "False"))
        return fail_header(header, "True or False", error);
    return MLRT_OK;
}

static MlrtStatus read_shape(Header *header, MlrtArray *array, MlrtError *error)
{
    if (!accept(header, "("))
        return fail_header(header, "'(' of the shape", error);
    for (array->rank = 0; !accept(header, ")"); array->rank++) {
        if (array->rank == MLRT_LIMIT_RANK)
            return mlrt_fail_limit(error, MLRT_OVER_RANK, "%s: the shape in the npy header", header->path);
        if (!accept_dimension(header, &array->shape[array->rank]))
            return fail_header(header, "a dimension of at most 63 bits", error);
        bool comma = accept(header, ",");
        skip_spaces(header);
        if (!comma && (array->rank == 0 || header->at == header->end || *header->at != ')'))
            return fail_header(header, "',' in the shape", error);
    }
    return MLRT_OK;
}

static MlrtStatus read_entry(Header *header, MlrtArray *array, MlrtError *error)
{
    const char *key;
    size_t length;
    if (!accept_string(header, &key, &length) || !accept(header, ":"))
        return fail_header(header, "a key in quotes and ':'", error);
    bool *seen = length == 5 && memcmp(key, "descr", 5) == 0 ? &header->has_descr
               : length == 13 && memcmp(key, "fortran_order", 13) == 0 ? &header->has_order
               : length == 5 && memcmp(key, "shape", 5) == 0 ? &header->has_shape : NULL;
    if (!seen || *seen)
        return mlrt_fail(error, MLRT_BAD_FILE, "%s: npy header: the key '%s' is %s", header->path, mlrt_quote(key, length).text,
                         seen ? "there twice" : "not known");
    *seen = true;
    return seen == &header->has_descr ? read_descr(header, error)
         : seen == &header->has_order ? read_order(header, error) : read_shape(header, array, error);
}

static MlrtStatus read_header(Header *header, MlrtArray *array, MlrtError *error)
{
    if (!accept(header, "{"))
        return fail_header(header, "'{'", error);
    while (!accept(header, "}")) {
        MlrtStatus status = read_entry(header, array, error);
        if (status != MLRT_OK)
            return status;
        bool comma = accept(header, ",");
        skip_spaces(header);
        if (!comma && (header->at == header->end || *header->at != '}'))
            return fail_header(header, "',' or '}'", error);
    }
    accept(header, "\n");
    if (header->at != header->end)
        return fail_header(header, "the end", error);
    if (!header->has_descr || !header->has_order || !header->has_shape)
        return mlrt_fail(error, MLRT_BAD_FILE, "%s: npy header: descr, fortran_order and shape are needed", header->path);
    return MLRT_OK;
}

// --- data --------------------------------------------------------------------------------------------------------------

static void copy_element(uint8_t *to, const uint8_t *from, size_t bytes, bool reverse)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = from[reverse ? bytes - 1 - i : i];
}

// Column-major to row-major: counts through the row-major positions and keeps the column-major one beside it.
static void copy_fortran(const MlrtArray *array, uint8_t *to, const uint8_t *from, bool reverse)
{
    size_t size = mlrt_type_bytes(array->type), stride[MLRT_LIMIT_RANK] = {1}, at = 0;
    int64_t index[MLRT_LIMIT_RANK] = {0};
    for (int i = 1; i < array->rank; i++)
        stride[i] = stride[i - 1] * (size_t)array->shape[i - 1];
    for (size_t n = 0; n < array->count; n++) {
        copy_element(to + n * size, from + at * size, size, reverse);
        for (int i = array->rank - 1; i >= 0; i--) {
            at += stride[i];
            if (++index[i] < array->shape[i])
                break;
            at -= stride[i] * (size_t)array->shape[i];
            index[i] = 0;
        }
    }
}

static MlrtStatus take_data(const Header *header, MlrtArray *array, const uint8_t *from, MlrtError *error)
{
    size_t size = mlrt_type_bytes(array->type);
    bool turn = header->fortran && array->rank > 1;
    array->data = from;
    if (turn || header->big_endian || (uintptr_t)from % size != 0) {
        uint8_t *to = array->owned = mlrt_alloc_array(array->count, size);
        if (!to)
            return mlrt_fail_memory(error, array->bytes, header->path);
        if (turn)
            copy_fortran(array, to, from, header->big_endian);
        else
            for (size_t i = 0; i < array->count; i++)
                copy_element(to + i * size, from + i * size, size, header->big_endian);
        array->data = to;
    }
    const uint8_t *bits = array->data;
    for (size_t i = 0; array->type == MLRT_bool && i < array->count; i++)
        if (bits[i] > 1)
            return mlrt_fail(error, MLRT_BAD_FILE, "%s: element %zu is %d, a bool is 0 or 1", header->path, i, bits[i]);
    return MLRT_OK;
}

// The header's place: 2 (version 1) or 4 bytes of length after the 8 bytes of magic and version.
static MlrtStatus find_header(const MlrtFile *file, Header *header, MlrtError *error)
{
    const uint8_t *at = file->at;
    if (file->bytes < 12 || memcmp(at, "\x93NUMPY", 6) != 0)
        return mlrt_fail(error, MLRT_BAD_FILE, "%s: not an npy file (it does not begin with \\x93NUMPY)", file->path);
    if (at[6] < 1 || at[6] > 3 || at[7] != 0)
        return mlrt_fail(error, MLRT_BAD_FILE, "%s: npy version %d.%d; 1.0, 2.0 and 3.0 are read", file->path, at[6], at[7]);
    size_t start = at[6] == 1 ? 10 : 12;
    size_t length = at[6] == 1 ? at[8] | (size_t)at[9] << 8
                               : at[8] | (size_t)at[9] << 8 | (size_t)at[10] << 16 | (size_t)at[11] << 24;
    if (length > MLRT_LIMIT_NPY_HEADER)
        return mlrt_fail_limit(error, MLRT_OVER_NPY_HEADER, "%s: a header of %zu bytes", file->path, length);
    if (length > file->bytes - start)
        return mlrt_fail(error, MLRT_BAD_FILE, "%s: the file ends inside the npy header", file->path);
    header->path = file->path;
    header->at = (const char *)at + start;
    header->end = header->at + length;
    return MLRT_OK;
}

static MlrtStatus npy_read(MlrtArray *array, MlrtError *error)
{
    Header header = {0};
    MlrtStatus status = find_header(&array->file, &header, error);
    if (status == MLRT_OK)
        status = read_header(&header, array, error);
    if (status != MLRT_OK)
        return status;
    array->type = header.type;
    size_t there = array->file.bytes - (size_t)((const uint8_t *)header.end - array->file.at);
    if (!mlrt_shape_count(array->shape, array->rank, &array->count) ||
        !mlrt_size_mul(array->count, mlrt_type_bytes(array->type), &array->bytes))
        return mlrt_fail_limit(error, MLRT_OVER_ELEMENTS, "%s: shape %s", header.path,
                               mlrt_shape_text(array->shape, array->rank).text);
    if (array->bytes != there)
        return mlrt_fail(error, MLRT_BAD_FILE, "%s: %s %s takes %zu bytes, the file has %zu; it is %s", header.path,
                         mlrt_type_name(array->type), mlrt_shape_text(array->shape, array->rank).text, array->bytes, there,
                         there < array->bytes ? "cut short" : "followed by something else");
    return take_data(&header, array, (const uint8_t *)header.end, error);
}

MlrtStatus mlrt_npy_parse(MlrtFile file, MlrtArray *array, MlrtError *error)
{
    *array = (MlrtArray){.file = file};
    MlrtStatus status = npy_read(array, error);
    if (status != MLRT_OK)
        mlrt_array_close(array);
    return status;
}

MlrtStatus mlrt_npy_open(const char *path, MlrtArray *array, MlrtError *error)
{
    MlrtFile file;
    *array = (MlrtArray){0};
    MlrtStatus status = mlrt_file_open(path, &file, error);
    return status == MLRT_OK ? mlrt_npy_parse(file, array, error) : status;
}

void mlrt_array_close(MlrtArray *array)
{
    mlrt_file_close(&array->file);
    free(array->owned);
    array->owned = NULL;
    array->data = NULL;
}

// --- writing -----------------------------------------------------------------------------------------------------------

// Magic, version 1.0, and a header that ends with a line end where the data become aligned to 64 bytes. Returns its length.
static size_t build_header(char *to, size_t room, MlrtType type, const int64_t *shape, int rank)
{
    size_t used = 10;
    used += (size_t)snprintf(to + used, room - used, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                             mlrt_type_info(type)->npy);
    for (int i = 0; i < rank; i++)
        used += (size_t)snprintf(to + used, room - used, "%s%lld%s", i ? ", " : "", (long long)shape[i], rank == 1 ? "," : "");
    used += (size_t)snprintf(to + used, room - used, "), }");
    while ((used + 1) % 64 != 0)
        to[used++] = ' ';
    to[used++] = '\n';
    memcpy(to, "\x93NUMPY\1\0", 8);
    to[8] = (char)((used - 10) & 0xFF);
    to[9] = (char)((used - 10) >> 8);
    return used;
}

MlrtStatus mlrt_npy_write(const char *path, MlrtType type, const int64_t *shape, int rank, const void *data, MlrtError *error)
{
    char header[512];
    size_t bytes;
    MlrtWriter writer;
    if (rank < 0 || rank > MLRT_LIMIT_RANK || !mlrt_shape_count(shape, rank, &bytes) ||
        !mlrt_size_mul(bytes, mlrt_type_bytes(type), &bytes))
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s: a shape that cannot be written", path);
    if (!*mlrt_type_info(type)->npy)
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s: npy files have no %s; convert to f32", path, mlrt_type_name(type));
    MlrtStatus status = mlrt_writer_begin(&writer, path, error);
    if (status == MLRT_OK)
        status = mlrt_writer_put(&writer, header, build_header(header, sizeof header, type, shape, rank), error);
    if (status == MLRT_OK)
        status = mlrt_writer_put(&writer, data, bytes, error);
    if (status == MLRT_OK)
        status = mlrt_writer_commit(&writer, error);
    mlrt_writer_abandon(&writer);
    return status;
}
