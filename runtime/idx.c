// idx.c: the format of MNIST: 0 0 TYPE RANK, the dimensions as big-endian 32-bit numbers, the elements big-endian; plain or
// packed by gzip. A packed file is unpacked into exactly the size that its header claims, and that size is believed only
// within the reading budget (limits READ_BASE and READ_FACTOR), so a small file cannot ask for much memory.
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "array.h"

typedef struct Source {
    const char *path;
    const uint8_t *at;                  // plain bytes, or
    size_t left;
    bool packed;
    z_stream stream;                    // the unpacker
    bool ended;                         // the packed stream, its CRC and length right
} Source;

static const struct Kind { uint8_t code; MlrtType type; } kinds[] = {
    {0x08, MLRT_u8}, {0x09, MLRT_i8}, {0x0B, MLRT_i16}, {0x0C, MLRT_i32}, {0x0D, MLRT_f32}, {0x0E, MLRT_f64},
};

static voidpf unpacker_alloc(voidpf unused, uInt count, uInt bytes)
{
    (void)unused;
    return mlrt_alloc_array(count, bytes);
}

static void unpacker_free(voidpf unused, voidpf memory)
{
    (void)unused;
    free(memory);
}

static MlrtStatus source_open(Source *source, const MlrtFile *file, MlrtError *error)
{
    *source = (Source){.path = file->path, .at = file->at, .left = file->bytes};
    if (file->bytes < 2 || file->at[0] != 0x1F || file->at[1] != 0x8B)
        return MLRT_OK;
    source->stream.zalloc = unpacker_alloc;
    source->stream.zfree = unpacker_free;
    if (inflateInit2(&source->stream, 15 + 16) != Z_OK)         // 16: gzip, with its CRC
        return mlrt_fail_memory(error, 65536, file->path);
    source->packed = true;
    return MLRT_OK;
}

static void source_close(Source *source)
{
    if (source->packed)
        inflateEnd(&source->stream);
    source->packed = false;
}

// Unpacks up to `count` bytes; *got is less at the end of the stream or of the file.
static MlrtStatus unpack(Source *source, uint8_t *to, size_t count, size_t *got, MlrtError *error)
{
    z_stream *stream = &source->stream;
    *got = 0;
    while (*got < count && !source->ended) {
        size_t room = count - *got < 1u << 30 ? count - *got : 1u << 30, fed = source->left < 1u << 30 ? source->left : 1u << 30;
        stream->next_in = (z_const Bytef *)(uintptr_t)source->at;
        stream->avail_in = (uInt)fed;
        stream->next_out = to + *got;
        stream->avail_out = (uInt)room;
        int result = inflate(stream, Z_NO_FLUSH);
        source->at += fed - stream->avail_in;
        source->left -= fed - stream->avail_in;
        *got += room - stream->avail_out;
        source->ended = result == Z_STREAM_END;
        if (result == Z_MEM_ERROR)
            return mlrt_fail_memory(error, 65536, source->path);
        if (result == Z_BUF_ERROR)
            return MLRT_OK;                             // the file is at its end
        if (result != Z_OK && result != Z_STREAM_END)
            return mlrt_fail(error, MLRT_BAD_FILE, "%s: the gzip data are damaged: %s", source->path,
                             stream->msg ? stream->msg : "wrong header");
    }
    return MLRT_OK;
}

static MlrtStatus source_read(Source *source, uint8_t *to, size_t count, MlrtError *error)
{
    size_t got = source->left < count ? source->left : count;
    MlrtStatus status = MLRT_OK;
    if (source->packed)
        status = unpack(source, to, count, &got, error);
    else {
        if (got > 0)
            memcpy(to, source->at, got);
        source->at += got;
        source->left -= got;
    }
    if (status == MLRT_OK && got < count)
        status = mlrt_fail(error, MLRT_BAD_FILE, "%s: the IDX file is cut short: %zu bytes are missing", source->path, count - got);
    return status;
}

static MlrtStatus check_end(Source *source, MlrtError *error)
{
    uint8_t more;
    size_t got = 0;
    MlrtStatus status = source->packed ? unpack(source, &more, 1, &got, error) : MLRT_OK;
    if (status != MLRT_OK)
        return status;
    if (got > 0 || source->left > 0)
        return mlrt_fail(error, MLRT_BAD_FILE, "%s: bytes follow after the last element that the IDX header announces", source->path);
    if (source->packed && !source->ended)
        return mlrt_fail(error, MLRT_BAD_FILE, "%s: the gzip data are cut short", source->path);
    return MLRT_OK;
}

static int64_t big_endian(const uint8_t *at)
{
    return (int64_t)((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]);
}

static MlrtStatus read_header(Source *source, MlrtArray *array, MlrtError *error)
{
    uint8_t head[4], dims[4 * MLRT_LIMIT_RANK];
    MlrtStatus status = source_read(source, head, sizeof head, error);
    if (status != MLRT_OK)
        return status;
    const struct Kind *kind = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        kind = kinds[i].code == head[2] ? &kinds[i] : kind;
    if (head[0] != 0 || head[1] != 0 || !kind || head[3] < 1)
        return mlrt_fail(error, MLRT_BAD_FILE, "%s: not an IDX file (begins with %02x %02x %02x %02x, two zeros, a type of 08 09 "
                         "0b 0c 0d 0e and 1 to 8 dimensions were expected)", source->path, head[0], head[1], head[2], head[3]);
    if (head[3] > MLRT_LIMIT_RANK)
        return mlrt_fail_limit(error, MLRT_OVER_RANK, "%s: an IDX file of %d dimensions", source->path, head[3]);
    array->type = kind->type;
    array->rank = head[3];
    status = source_read(source, dims, 4u * head[3], error);
    for (int i = 0; status == MLRT_OK && i < array->rank; i++)
        array->shape[i] = big_endian(dims + 4 * i);
    return status;
}

static MlrtStatus check_size(const Source *source, MlrtArray *array, MlrtError *error)
{
    MlrtShapeText shape = mlrt_shape_text(array->shape, array->rank);
    size_t budget;
    if (!mlrt_shape_count(array->shape, array->rank, &array->count) ||
        !mlrt_size_mul(array->count, mlrt_type_bytes(array->type), &array->bytes))
        return mlrt_fail_limit(error, MLRT_OVER_ELEMENTS, "%s: shape %s", source->path, shape.text);
    if (!source->packed)
        return array->bytes == source->left ? MLRT_OK
             : mlrt_fail(error, MLRT_BAD_FILE, "%s: shape %s takes %zu bytes, the IDX file has %zu", source->path, shape.text,
                         array->bytes, source->left);
    if (!mlrt_size_mul(array->file.bytes, MLRT_LIMIT_READ_FACTOR, &budget) ||
        !mlrt_size_add(budget, MLRT_LIMIT_READ_BASE, &budget) || array->bytes > budget)
        return mlrt_fail_limit(error, MLRT_OVER_READ_FACTOR, "%s: unpacks to %zu bytes; unpack it with gunzip first", source->path,
                               array->bytes);
    return MLRT_OK;
}

static void to_little_endian(uint8_t *at, size_t count, size_t bytes)
{
    for (size_t n = 0; n < count; n++, at += bytes)
        for (size_t i = 0; i < bytes / 2; i++) {
            uint8_t kept = at[i];
            at[i] = at[bytes - 1 - i];
            at[bytes - 1 - i] = kept;
        }
}

static MlrtStatus read_data(Source *source, MlrtArray *array, MlrtError *error)
{
    size_t size = mlrt_type_bytes(array->type);
    if (!source->packed && size == 1) {
        array->data = source->at;                       // a view of the file, whose length has been checked
        return MLRT_OK;
    }
    array->data = array->owned = mlrt_alloc_array(array->count, size);
    if (!array->owned)
        return mlrt_fail_memory(error, array->bytes, source->path);
    MlrtStatus status = source_read(source, array->owned, array->bytes, error);
    if (status == MLRT_OK)
        status = check_end(source, error);
    if (status == MLRT_OK)
        to_little_endian(array->owned, array->count, size);
    return status;
}

static MlrtStatus idx_read(Source *source, MlrtArray *array, MlrtError *error)
{
    MlrtStatus status = read_header(source, array, error);
    if (status == MLRT_OK)
        status = check_size(source, array, error);
    if (status == MLRT_OK)
        status = read_data(source, array, error);
    return status;
}

MlrtStatus mlrt_idx_parse(MlrtFile file, MlrtArray *array, MlrtError *error)
{
    Source source;
    *array = (MlrtArray){.file = file};
    MlrtStatus status = source_open(&source, &file, error);
    if (status == MLRT_OK)
        status = idx_read(&source, array, error);
    source_close(&source);
    if (status != MLRT_OK)
        mlrt_array_close(array);
    return status;
}

MlrtStatus mlrt_idx_open(const char *path, MlrtArray *array, MlrtError *error)
{
    MlrtFile file;
    *array = (MlrtArray){0};
    MlrtStatus status = mlrt_file_open(path, &file, error);
    return status == MLRT_OK ? mlrt_idx_parse(file, array, error) : status;
}
