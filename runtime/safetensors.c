// safetensors.c: reader and writer. See safetensors.h for the promises.
//
// The header is JSON of a fixed grammar, read in one pass without a tree; a general JSON reader would accept names twice,
// lose large numbers, and take many times the header's size. Names and metadata go into one block, which is as large as the
// header, since no escape is shorter than what it stands for. Duplicates are found by sorting: hashes can be made to collide.
#include "safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digest.h"

static const char DATA_DIGEST[] = "mlc.digest", HEADER_DIGEST[] = "mlc.header";

typedef struct Reader {
    MlrtTensors *made;
    const char *path;
    const char *start, *at, *end;       // the header
    char *text;                         // the free part of made->text
    size_t room, metadata_room;         // of made->tensor and made->metadata
    size_t metadata_bytes;
    const char *header_digest_at;       // where the value of mlc.header stands in the header
    bool has_metadata;
    MlrtError *error;
} Reader;

static MlrtStatus fail_here(const Reader *reader, const char *expected)
{
    size_t left = (size_t)(reader->end - reader->at);
    return mlrt_fail(reader->error, MLRT_BAD_FILE, "%s: safetensors header, byte %zu: %s expected, found '%s'", reader->path,
                     (size_t)(reader->at - reader->start), expected, mlrt_quote(reader->at, left < 24 ? left : 24).text);
}

// --- JSON --------------------------------------------------------------------------------------------------------------

static void skip_spaces(Reader *reader)
{
    while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\n' || *reader->at == '\r' || *reader->at == '\t'))
        reader->at++;
}

static bool accept(Reader *reader, char c)
{
    skip_spaces(reader);
    bool there = reader->at < reader->end && *reader->at == c;
    reader->at += there;
    return there;
}

static bool read_hex4(Reader *reader, uint32_t *unit)
{
    *unit = 0;
    for (int i = 0; i < 4; i++, reader->at++) {
        char c = reader->at < reader->end ? *reader->at : 0, low = (char)(c | 0x20);
        if (c >= '0' && c <= '9')
            *unit = *unit * 16 + (uint32_t)(c - '0');
        else if (low >= 'a' && low <= 'f')
            *unit = *unit * 16 + (uint32_t)(low - 'a' + 10);
        else
            return false;
    }
    return true;
}

static void put_utf8(Reader *reader, uint32_t point)
{
    char *to = reader->text;
    if (point < 0x80)
        *to++ = (char)point;
    else if (point < 0x800) {
        *to++ = (char)(0xC0 | point >> 6);
        *to++ = (char)(0x80 | (point & 63));
    } else {
        if (point < 0x10000)
            *to++ = (char)(0xE0 | point >> 12);
        else {
            *to++ = (char)(0xF0 | point >> 18);
            *to++ = (char)(0x80 | (point >> 12 & 63));
        }
        *to++ = (char)(0x80 | (point >> 6 & 63));
        *to++ = (char)(0x80 | (point & 63));
    }
    reader->text = to;
}

// \uXXXX, or two of them for what lies beyond 16 bits.
static bool read_unicode(Reader *reader)
{
    uint32_t unit, low;
    if (!read_hex4(reader, &unit) || unit == 0 || (unit >= 0xDC00 && unit < 0xE000))
        return false;
    if (unit >= 0xD800 && unit < 0xDC00) {
        if (reader->end - reader->at < 2 || reader->at[0] != '\\' || reader->at[1] != 'u')
            return false;
        reader->at += 2;
        if (!read_hex4(reader, &low) || low < 0xDC00 || low >= 0xE000)
            return false;
        unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    }
    put_utf8(reader, unit);
    return true;
}

static bool read_escape(Reader *reader)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = reader->at < reader->end ? *reader->at++ : 0;
    if (c == 'u')
        return read_unicode(reader);
    const char *found = c ? strchr(from, c) : NULL;
    if (found)
        *reader->text++ = to[found - from];
    return found != NULL;
}

// A string, unescaped into the block, ended by 0. Its bytes are UTF-8 without NUL.
static MlrtStatus read_string(Reader *reader, const char **string, size_t *length)
{
    if (!accept(reader, '"'))
        return fail_here(reader, "a string");
    char *start = reader->text;
    while (reader->at < reader->end && *reader->at != '"') {
        char c = *reader->at;
        if ((unsigned char)c < 0x20)
            return fail_here(reader, "a character that is no control character");
        reader->at++;
        if (c != '\\')
            *reader->text++ = c;
        else if (!read_escape(reader))
            return fail_here(reader, "an escape that JSON knows");
    }
    if (reader->at == reader->end)
        return fail_here(reader, "'\"'");
    reader->at++;
    *string = start;
    *length = (size_t)(reader->text - start);
    *reader->text++ = 0;
    return mlrt_is_utf8(start, *length) ? MLRT_OK : fail_here(reader, "UTF-8 text before this place");
}

// Plain digits up to 2^63 - 1: no sign, fraction, exponent or leading zero.
static MlrtStatus read_number(Reader *reader, int64_t *value)
{
    skip_spaces(reader);
    const char *start = reader->at;
    *value = 0;
    for (; reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9'; reader->at++)
        if (__builtin_mul_overflow(*value, (int64_t)10, value) ||
            __builtin_add_overflow(*value, (int64_t)(*reader->at - '0'), value))
            return fail_here(reader, "a number of at most 63 bits");
    bool bad = reader->at == start || (*start == '0' && reader->at - start > 1);
    return bad ? fail_here(reader, "a whole number in plain digits") : MLRT_OK;
}

// After a member of an object or list: true if another follows. Anything else but the closing bracket is left to fail there.
static bool another(Reader *reader) { return accept(reader, ','); }

// --- entries -----------------------------------------------------------------------------------------------------------

static MlrtStatus read_dtype(Reader *reader, MlrtTensor *tensor)
{
    const char *word;
    size_t length;
    MlrtStatus status = read_string(reader, &word, &length);
    if (status != MLRT_OK)
        return status;
    for (int i = 0; i < MLRT_TYPE_COUNT; i++)
        if (strcmp(mlrt_type_info((MlrtType)i)->safetensors, word) == 0) {
            tensor->type = (MlrtType)i;
            return MLRT_OK;
        }
    return mlrt_fail(reader->error, MLRT_BAD_FILE, "%s: tensor '%s' has the type '%s', which is not supported", reader->path,
                     tensor->name, mlrt_quote(word, length).text);
}

static MlrtStatus read_shape(Reader *reader, MlrtTensor *tensor)
{
    if (!accept(reader, '['))
        return fail_here(reader, "'[' of a shape");
    tensor->rank = 0;
    if (accept(reader, ']'))
        return MLRT_OK;
    do {
        if (tensor->rank == MLRT_LIMIT_RANK)
            return mlrt_fail_limit(reader->error, MLRT_OVER_RANK, "%s: tensor '%s'", reader->path, tensor->name);
        MlrtStatus status = read_number(reader, &tensor->shape[tensor->rank++]);
        if (status != MLRT_OK)
            return status;
    } while (another(reader));
    return accept(reader, ']') ? MLRT_OK : fail_here(reader, "',' or ']'");
}

typedef struct Entry { MlrtTensor tensor; int64_t begin, end; bool dtype, shape, offsets; } Entry;

static MlrtStatus read_offsets(Reader *reader, Entry *entry)
{
    MlrtStatus status = accept(reader, '[') ? read_number(reader, &entry->begin) : fail_here(reader, "'[' of data_offsets");
    if (status == MLRT_OK && !accept(reader, ','))
        status = fail_here(reader, "','");
    if (status == MLRT_OK)
        status = read_number(reader, &entry->end);
    if (status == MLRT_OK && !accept(reader, ']'))
        status = fail_here(reader, "']'");
    return status;
}

static MlrtStatus read_member(Reader *reader, Entry *entry)
{
    const char *key;
    size_t length;
    MlrtStatus status = read_string(reader, &key, &length);
    if (status != MLRT_OK)
        return status;
    bool *seen = strcmp(key, "dtype") == 0 ? &entry->dtype : strcmp(key, "shape") == 0 ? &entry->shape
               : strcmp(key, "data_offsets") == 0 ? &entry->offsets : NULL;
    if (!seen || *seen)
        return mlrt_fail(reader->error, MLRT_BAD_FILE, "%s: tensor '%s': the key '%s' is %s", reader->path, entry->tensor.name,
                         mlrt_quote(key, length).text, seen ? "there twice" : "not known");
    *seen = true;
    if (!accept(reader, ':'))
        return fail_here(reader, "':'");
    return seen == &entry->dtype ? read_dtype(reader, &entry->tensor)
         : seen == &entry->shape ? read_shape(reader, &entry->tensor) : read_offsets(reader, entry);
}

// end - begin is what the type and the shape take, and lies within the file.
static MlrtStatus check_entry(const Reader *reader, Entry *entry, size_t data_bytes)
{
    MlrtTensor *tensor = &entry->tensor;
    size_t count, bytes;
    if (!entry->dtype || !entry->shape || !entry->offsets)
        return mlrt_fail(reader->error, MLRT_BAD_FILE, "%s: tensor '%s': dtype, shape and data_offsets are needed", reader->path,
                         tensor->name);
    if (!mlrt_shape_count(tensor->shape, tensor->rank, &count) || !mlrt_size_mul(count, mlrt_type_bytes(tensor->type), &bytes))
        return mlrt_fail_limit(reader->error, MLRT_OVER_ELEMENTS, "%s: tensor '%s' of shape %s", reader->path, tensor->name,
                               mlrt_shape_text(tensor->shape, tensor->rank).text);
    if (entry->begin > entry->end || (uint64_t)entry->end > data_bytes)
        return mlrt_fail(reader->error, MLRT_BAD_FILE, "%s: tensor '%s' is said to lie at bytes %lld to %lld of %zu; the file is "
                         "cut short or damaged", reader->path, tensor->name, (long long)entry->begin, (long long)entry->end,
                         data_bytes);
    if ((uint64_t)(entry->end - entry->begin) != bytes)
        return mlrt_fail(reader->error, MLRT_BAD_FILE, "%s: tensor '%s': %s %s takes %zu bytes, its data_offsets hold %lld",
                         reader->path, tensor->name, mlrt_type_name(tensor->type),
                         mlrt_shape_text(tensor->shape, tensor->rank).text, bytes, (long long)(entry->end - entry->begin));
    tensor->bytes = bytes;
    tensor->data = (const uint8_t *)reader->end + entry->begin;
    return MLRT_OK;
}

static MlrtStatus read_tensor(Reader *reader, const char *name)
{
    MlrtTensors *made = reader->made;
    Entry entry = {.tensor.name = name};
    size_t data_bytes = made->file.bytes - (size_t)(reader->end - (const char *)made->file.at);
    if (!accept(reader, '{'))
        return fail_here(reader, "'{' of a tensor");
    do {
        MlrtStatus status = read_member(reader, &entry);
        if (status != MLRT_OK)
            return status;
    } while (another(reader));
    if (!accept(reader, '}'))
        return fail_here(reader, "',' or '}'");
    if (made->count == MLRT_LIMIT_SAFETENSORS_TENSORS)
        return mlrt_fail_limit(reader->error, MLRT_OVER_SAFETENSORS_TENSORS, "%s: the header", reader->path);
    MlrtStatus status = check_entry(reader, &entry, data_bytes);
    if (status == MLRT_OK && !mlrt_grow((void **)&made->tensor, &reader->room, made->count + 1, sizeof *made->tensor))
        status = mlrt_fail_memory(reader->error, made->count * sizeof *made->tensor, reader->path);
    if (status == MLRT_OK)
        made->tensor[made->count++] = entry.tensor;
    return status;
}

static MlrtStatus read_metadata_entry(Reader *reader)
{
    MlrtTensors *made = reader->made;
    MlrtMetadata entry;
    size_t key_length, value_length;
    MlrtStatus status = read_string(reader, &entry.key, &key_length);
    if (status == MLRT_OK && !accept(reader, ':'))
        status = fail_here(reader, "':'");
    skip_spaces(reader);
    const char *value_at = reader->at + 1;
    if (status == MLRT_OK)
        status = read_string(reader, &entry.value, &value_length);
    if (status != MLRT_OK)
        return status;
    reader->metadata_bytes += key_length + value_length;        // at most the header
    if (reader->metadata_bytes > MLRT_LIMIT_SAFETENSORS_METADATA)
        return mlrt_fail_limit(reader->error, MLRT_OVER_SAFETENSORS_METADATA, "%s: __metadata__", reader->path);
    if (strcmp(entry.key, HEADER_DIGEST) == 0 && reader->at - value_at == 33)
        reader->header_digest_at = value_at;
    if (!mlrt_grow((void **)&made->metadata, &reader->metadata_room, made->metadata_count + 1, sizeof entry))
        return mlrt_fail_memory(reader->error, made->metadata_count * sizeof entry, reader->path);
    made->metadata[made->metadata_count++] = entry;
    return MLRT_OK;
}

static MlrtStatus read_metadata(Reader *reader)
{
    if (reader->has_metadata)
        return mlrt_fail(reader->error, MLRT_BAD_FILE, "%s: __metadata__ is there twice", reader->path);
    reader->has_metadata = true;
    if (!accept(reader, '{'))
        return fail_here(reader, "'{' of __metadata__");
    if (accept(reader, '}'))
        return MLRT_OK;
    do {
        MlrtStatus status = read_metadata_entry(reader);
        if (status != MLRT_OK)
            return status;
    } while (another(reader));
    return accept(reader, '}') ? MLRT_OK : fail_here(reader, "',' or '}'");
}

static MlrtStatus read_entry(Reader *reader)
{
    const char *name;
    size_t length;
    MlrtStatus status = read_string(reader, &name, &length);
    if (status != MLRT_OK)
        return status;
    if (length > MLRT_LIMIT_NAME)
        return mlrt_fail_limit(reader->error, MLRT_OVER_NAME, "%s: tensor '%s'", reader->path, mlrt_quote(name, length).text);
    if (!mlrt_is_clean_text(name, length))
        return mlrt_fail(reader->error, MLRT_BAD_FILE, "%s: the tensor name '%s' holds control characters", reader->path,
                         mlrt_quote(name, length).text);
    if (!accept(reader, ':'))
        return fail_here(reader, "':'");
    return strcmp(name, "__metadata__") == 0 ? read_metadata(reader) : read_tensor(reader, name);
}

static MlrtStatus read_header(Reader *reader)
{
    if (reader->at == reader->end || *reader->at != '{')
        return fail_here(reader, "'{' as the first byte");
    reader->at++;
    if (!accept(reader, '}')) {
        do {
            MlrtStatus status = read_entry(reader);
            if (status != MLRT_OK)
                return status;
        } while (another(reader));
        if (!accept(reader, '}'))
            return fail_here(reader, "',' or '}'");
    }
    while (reader->at < reader->end && *reader->at == ' ')
        reader->at++;
    return reader->at == reader->end ? MLRT_OK : fail_here(reader, "only spaces to the end of the header");
}

// --- the whole ---------------------------------------------------------------------------------------------------------

static int compare_places(const void *a, const void *b)
{
    const MlrtTensor *x = a, *y = b;
    uintptr_t p = (uintptr_t)x->data, q = (uintptr_t)y->data;
    if (p != q)
        return p < q ? -1 : 1;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? -1 : 1) : strcmp(x->name, y->name);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const MlrtTensor *const *)a)->name, (*(const MlrtTensor *const *)b)->name);
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp((*(const MlrtMetadata *const *)a)->key, (*(const MlrtMetadata *const *)b)->key);
}

// Sorted by place, each tensor begins where the one before ended: no hole, no overlap, no tail.
static MlrtStatus check_layout(const Reader *reader)
{
    MlrtTensors *made = reader->made;
    const uint8_t *next = (const uint8_t *)reader->end, *last = made->file.at + made->file.bytes;
    if (made->count > 0)
        qsort(made->tensor, made->count, sizeof *made->tensor, compare_places);
    for (size_t i = 0; i < made->count; i++) {
        const uint8_t *at = made->tensor[i].data;
        if (at != next)
            return mlrt_fail(reader->error, MLRT_BAD_FILE, "%s: tensor '%s' %s", reader->path, made->tensor[i].name,
                             at < next ? "overlaps another one" : "has bytes before it that belong to no tensor");
        next = at + made->tensor[i].bytes;
    }
    if (next != last)
        return mlrt_fail(reader->error, MLRT_BAD_FILE, "%s: %zu bytes follow after the last tensor", reader->path,
                         (size_t)(last - next));
    return MLRT_OK;
}

static MlrtStatus check_names(const Reader *reader)
{
    MlrtTensors *made = reader->made;
    made->by_name = mlrt_alloc_array(made->count, sizeof *made->by_name);
    if (!made->by_name)
        return mlrt_fail_memory(reader->error, made->count * sizeof *made->by_name, reader->path);
    for (size_t i = 0; i < made->count; i++)
        made->by_name[i] = &made->tensor[i];
    if (made->count > 0)
        qsort(made->by_name, made->count, sizeof *made->by_name, compare_names);
    for (size_t i = 1; i < made->count; i++)
        if (strcmp(made->by_name[i - 1]->name, made->by_name[i]->name) == 0)
            return mlrt_fail(reader->error, MLRT_BAD_FILE, "%s: tensor '%s' is there twice", reader->path, made->by_name[i]->name);
    return MLRT_OK;
}

static MlrtStatus check_keys(const Reader *reader)
{
    const MlrtTensors *made = reader->made;
    MlrtStatus status = MLRT_OK;
    const MlrtMetadata **sorted = mlrt_alloc_array(made->metadata_count, sizeof *sorted);
    if (!sorted)
        return mlrt_fail_memory(reader->error, made->metadata_count * sizeof *sorted, reader->path);
    for (size_t i = 0; i < made->metadata_count; i++)
        sorted[i] = &made->metadata[i];
    if (made->metadata_count > 0)
        qsort(sorted, made->metadata_count, sizeof *sorted, compare_keys);
    for (size_t i = 1; i < made->metadata_count; i++)
        if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0)
            status = mlrt_fail(reader->error, MLRT_BAD_FILE, "%s: __metadata__ has the key '%s' twice", reader->path,
                               mlrt_quote(sorted[i]->key, strlen(sorted[i]->key)).text);
    free(sorted);
    return status;
}

// The digest of a header, with zeros where the digest itself stands.
static MlrtDigest header_digest(const char *header, size_t length, const char *digest_at)
{
    MlrtDigestState state;
    size_t before = (size_t)(digest_at - header);
    mlrt_digest_begin(&state);
    mlrt_digest_add(&state, header, before);
    mlrt_digest_add(&state, "00000000000000000000000000000000", 32);
    mlrt_digest_add(&state, digest_at + 32, length - before - 32);
    return mlrt_digest_end(&state);
}

static MlrtStatus check_digests(const Reader *reader)
{
    const MlrtTensors *made = reader->made;
    const char *data = mlrt_safetensors_metadata(made, DATA_DIGEST), *header = mlrt_safetensors_metadata(made, HEADER_DIGEST);
    if (!data && !header)
        return MLRT_OK;
    size_t length = (size_t)(reader->end - reader->start);
    size_t data_bytes = made->file.bytes - 8 - length;
    if (!data || !header || !reader->header_digest_at ||
        strcmp(header, header_digest(reader->start, length, reader->header_digest_at).text) != 0)
        return mlrt_fail(reader->error, MLRT_BAD_FILE, "%s: the file is damaged: its header does not match its digest", reader->path);
    if (strcmp(data, mlrt_digest(reader->end, data_bytes).text) != 0)
        return mlrt_fail(reader->error, MLRT_BAD_FILE, "%s: the file is damaged: its data do not match their digest", reader->path);
    return MLRT_OK;
}

static MlrtStatus find_header(Reader *reader)
{
    const MlrtFile *file = &reader->made->file;
    static const char lfs[] = "version https://git-lfs";
    uint64_t length = 0;
    if (file->bytes >= sizeof lfs - 1 && memcmp(file->at, lfs, sizeof lfs - 1) == 0)
        return mlrt_fail(reader->error, MLRT_BAD_FILE, "%s: this is a Git LFS pointer, not the file itself; run: git lfs pull",
                         file->path);
    if (file->bytes < 10)
        return mlrt_fail(reader->error, MLRT_BAD_FILE, "%s: %zu bytes are no safetensors file", file->path, file->bytes);
    for (int i = 0; i < 8; i++)
        length |= (uint64_t)file->at[i] << 8 * i;
    if (length > MLRT_LIMIT_SAFETENSORS_HEADER)
        return mlrt_fail_limit(reader->error, MLRT_OVER_SAFETENSORS_HEADER,
                               "%s: a header of %llu bytes; is this a safetensors file?", file->path, (unsigned long long)length);
    if (length > file->bytes - 8)
        return mlrt_fail(reader->error, MLRT_BAD_FILE, "%s: the file ends inside the safetensors header", file->path);
    reader->start = reader->at = (const char *)file->at + 8;
    reader->end = reader->start + length;
    return MLRT_OK;
}

static MlrtStatus read_all(Reader *reader)
{
    MlrtStatus status = find_header(reader);
    if (status != MLRT_OK)
        return status;
    size_t length = (size_t)(reader->end - reader->start);
    reader->text = reader->made->text = malloc(length + 1);
    if (!reader->text)
        return mlrt_fail_memory(reader->error, length, reader->path);
    status = read_header(reader);
    if (status == MLRT_OK)
        status = check_layout(reader);
    if (status == MLRT_OK)
        status = check_names(reader);
    if (status == MLRT_OK)
        status = check_keys(reader);
    if (status == MLRT_OK)
        status = check_digests(reader);
    return status;
}

MlrtStatus mlrt_safetensors_parse(MlrtFile file, MlrtTensors *tensors, MlrtError *error)
{
    *tensors = (MlrtTensors){.file = file};
    Reader reader = {.made = tensors, .path = file.path, .error = error};
    MlrtStatus status = read_all(&reader);
    if (status != MLRT_OK)
        mlrt_safetensors_close(tensors);
    return status;
}

MlrtStatus mlrt_safetensors_open(const char *path, MlrtTensors *tensors, MlrtError *error)
{
    MlrtFile file;
    *tensors = (MlrtTensors){0};
    MlrtStatus status = mlrt_file_open(path, &file, error);
    return status == MLRT_OK ? mlrt_safetensors_parse(file, tensors, error) : status;
}

void mlrt_safetensors_close(MlrtTensors *tensors)
{
    mlrt_file_close(&tensors->file);
    free(tensors->tensor);
    free(tensors->by_name);
    free(tensors->metadata);
    free(tensors->text);
    *tensors = (MlrtTensors){0};
}

const MlrtTensor *mlrt_safetensors_find(const MlrtTensors *tensors, const char *name)
{
    size_t low = 0, high = tensors->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, tensors->by_name[middle]->name);
        if (order == 0)
            return tensors->by_name[middle];
        low = order > 0 ? middle + 1 : low;
        high = order < 0 ? middle : high;
    }
    return NULL;
}

const char *mlrt_safetensors_metadata(const MlrtTensors *tensors, const char *key)
{
    for (size_t i = 0; i < tensors->metadata_count; i++)
        if (strcmp(tensors->metadata[i].key, key) == 0)
            return tensors->metadata[i].value;
    return NULL;
}

// The exponent's bits, all set in what is not finite, as the type keeps them in its highest two bytes.
static unsigned exponent_mask(MlrtType type)
{
    return type == MLRT_f16 ? 0x7C00 : type == MLRT_bf16 || type == MLRT_f32 ? 0x7F80 : type == MLRT_f64 ? 0x7FF0 : 0;
}

size_t mlrt_tensor_nonfinite(const MlrtTensor *tensor)
{
    size_t found = 0, size = mlrt_type_bytes(tensor->type);
    unsigned mask = exponent_mask(tensor->type);
    const uint8_t *at = tensor->data;
    for (size_t i = 0; mask && i + size <= tensor->bytes; i += size)
        found += ((at[i + size - 1] * 256u + at[i + size - 2]) & mask) == mask;
    return found;
}

// --- writing -----------------------------------------------------------------------------------------------------------

typedef struct Header { char *at; size_t used, room; bool failed; } Header;

static void header_put(Header *header, const char *bytes, size_t count)
{
    if (!header->failed && mlrt_grow((void **)&header->at, &header->room, header->used + count + 1, 1))
        memcpy(header->at + header->used, bytes, count);
    else
        header->failed = true;
    header->used += header->failed ? 0 : count;
}

static void header_text(Header *header, const char *text) { header_put(header, text, strlen(text)); }

static void header_number(Header *header, uint64_t number)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    header_text(header, digits);
}

static void header_string(Header *header, const char *text)
{
    char escape[8];
    header_text(header, "\"");
    for (; *text; text++) {
        bool plain = (unsigned char)*text >= 0x20 && *text != '"' && *text != '\\';
        if (!plain)
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned)(unsigned char)*text);
        header_put(header, plain ? text : escape, plain ? 1 : 6);
    }
    header_text(header, "\"");
}

static void header_pair(Header *header, const char *key, const char *value)
{
    header_string(header, key);
    header_text(header, ":");
    header_string(header, value);
}

static void header_tensor(Header *header, const MlrtTensor *tensor, uint64_t begin, uint64_t end)
{
    header_text(header, ",");
    header_string(header, tensor->name);
    header_text(header, ":{\"dtype\":\"");
    header_text(header, mlrt_type_info(tensor->type)->safetensors);
    header_text(header, "\",\"shape\":[");
    for (int i = 0; i < tensor->rank; i++) {
        header_text(header, i ? "," : "");
        header_number(header, (uint64_t)tensor->shape[i]);
    }
    header_text(header, "],\"data_offsets\":[");
    header_number(header, begin);
    header_text(header, ",");
    header_number(header, end);
    header_text(header, "]}");
}

static int compare_written(const void *a, const void *b)
{
    const MlrtTensor *x = *(const MlrtTensor *const *)a, *y = *(const MlrtTensor *const *)b;
    size_t p = mlrt_type_bytes(x->type), q = mlrt_type_bytes(y->type);
    return p != q ? (p > q ? -1 : 1) : strcmp(x->name, y->name);
}

static MlrtStatus tensor_bytes(const char *path, const MlrtTensor *tensor, size_t *bytes, MlrtError *error)
{
    size_t length = strlen(tensor->name);
    if (length > MLRT_LIMIT_NAME || !mlrt_is_clean_text(tensor->name, length) || strcmp(tensor->name, "__metadata__") == 0)
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s: '%s' cannot be the name of a tensor", path,
                         mlrt_quote(tensor->name, length).text);
    if (tensor->rank < 0 || tensor->rank > MLRT_LIMIT_RANK || !mlrt_shape_count(tensor->shape, tensor->rank, bytes) ||
        !mlrt_size_mul(*bytes, mlrt_type_bytes(tensor->type), bytes))
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s: tensor '%s' has a shape that cannot be written", path, tensor->name);
    return MLRT_OK;
}

// The data's part of the header, and the digest of the data, in the order in which they are written.
static MlrtStatus build_tensors(const char *path, const MlrtTensor **sorted, size_t count, Header *header, MlrtDigest *digest,
                                MlrtError *error)
{
    MlrtDigestState state;
    size_t begin = 0, bytes, end;
    mlrt_digest_begin(&state);
    for (size_t i = 0; i < count; i++) {
        MlrtStatus status = tensor_bytes(path, sorted[i], &bytes, error);
        if (status != MLRT_OK)
            return status;
        if (!mlrt_size_add(begin, bytes, &end) || end > INT64_MAX)
            return mlrt_fail_limit(error, MLRT_OVER_ELEMENTS, "%s: all tensors together", path);
        header_tensor(header, sorted[i], begin, end);
        mlrt_digest_add(&state, sorted[i]->data, bytes);
        begin = end;
    }
    *digest = mlrt_digest_end(&state);
    return MLRT_OK;
}

static MlrtStatus check_metadata(const char *path, const MlrtMetadata *metadata, size_t count, MlrtError *error)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        const char *key = metadata[i].key;
        size_t length = strlen(metadata[i].value);
        if (strcmp(key, DATA_DIGEST) == 0 || strcmp(key, HEADER_DIGEST) == 0 || !mlrt_is_utf8(key, strlen(key)) ||
            !mlrt_is_utf8(metadata[i].value, length))
            return mlrt_fail(error, MLRT_BAD_INPUT, "%s: the metadata '%s' cannot be written", path,
                             mlrt_quote(key, strlen(key)).text);
        for (size_t j = 0; j < i; j++)
            if (strcmp(metadata[j].key, key) == 0)
                return mlrt_fail(error, MLRT_BAD_INPUT, "%s: the metadata '%s' are given twice", path, key);
        bytes += strlen(key) + length;
    }
    if (bytes + 128 > MLRT_LIMIT_SAFETENSORS_METADATA)
        return mlrt_fail_limit(error, MLRT_OVER_SAFETENSORS_METADATA, "%s", path);
    return MLRT_OK;
}

// The whole header: 8 bytes of length, metadata with both digests first, tensors, spaces to a multiple of 8.
static MlrtStatus build_header(const char *path, const MlrtTensor **sorted, size_t count, const MlrtMetadata *metadata,
                               size_t metadata_count, Header *header, MlrtError *error)
{
    MlrtDigest digest;
    MlrtStatus status = check_metadata(path, metadata, metadata_count, error);
    if (status != MLRT_OK)
        return status;
    header_put(header, "\0\0\0\0\0\0\0\0", 8);
    header_text(header, "{\"__metadata__\":{\"mlc.header\":\"");
    size_t header_digest_at = header->used;
    header_text(header, "00000000000000000000000000000000\",\"mlc.digest\":\"");
    size_t data_digest_at = header->used;
    header_text(header, "00000000000000000000000000000000\"");
    for (size_t i = 0; i < metadata_count; i++) {
        header_text(header, ",");
        header_pair(header, metadata[i].key, metadata[i].value);
    }
    header_text(header, "}");
    status = build_tensors(path, sorted, count, header, &digest, error);
    if (status != MLRT_OK)
        return status;
    header_text(header, "}");
    header_put(header, "        ", (8 - header->used % 8) % 8);
    if (header->failed)
        return mlrt_fail_memory(error, header->used, path);
    size_t length = header->used - 8;
    if (length > MLRT_LIMIT_SAFETENSORS_HEADER)
        return mlrt_fail_limit(error, MLRT_OVER_SAFETENSORS_HEADER, "%s", path);
    for (int i = 0; i < 8; i++)
        header->at[i] = (char)(uint8_t)(length >> 8 * i);
    memcpy(header->at + data_digest_at, digest.text, 32);
    digest = header_digest(header->at + 8, length, header->at + header_digest_at);
    memcpy(header->at + header_digest_at, digest.text, 32);
    return MLRT_OK;
}

static MlrtStatus write_all(const char *path, const MlrtTensor **sorted, size_t count, const Header *header, MlrtError *error)
{
    MlrtWriter writer;
    MlrtStatus status = mlrt_writer_begin(&writer, path, error);
    if (status == MLRT_OK)
        status = mlrt_writer_put(&writer, header->at, header->used, error);
    for (size_t i = 0; status == MLRT_OK && i < count; i++) {
        size_t bytes;
        status = tensor_bytes(path, sorted[i], &bytes, error);
        if (status == MLRT_OK)
            status = mlrt_writer_put(&writer, sorted[i]->data, bytes, error);
    }
    if (status == MLRT_OK)
        status = mlrt_writer_commit(&writer, error);
    mlrt_writer_abandon(&writer);
    return status;
}

static MlrtStatus sort_tensors(const char *path, const MlrtTensor *tensors, size_t count, const MlrtTensor **sorted,
                               MlrtError *error)
{
    for (size_t i = 0; i < count; i++)
        sorted[i] = &tensors[i];
    if (count > 0)
        qsort(sorted, count, sizeof *sorted, compare_names);
    for (size_t i = 1; i < count; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            return mlrt_fail(error, MLRT_BAD_INPUT, "%s: two tensors are called '%s'", path, sorted[i]->name);
    if (count > 0)
        qsort(sorted, count, sizeof *sorted, compare_written);
    return MLRT_OK;
}

MlrtStatus mlrt_safetensors_write(const char *path, const MlrtTensor *tensors, size_t count, const MlrtMetadata *metadata,
                                  size_t metadata_count, MlrtError *error)
{
    Header header = {0};
    const MlrtTensor **sorted = mlrt_alloc_array(count, sizeof *sorted);
    if (!sorted)
        return mlrt_fail_memory(error, count, path);
    MlrtStatus status = sort_tensors(path, tensors, count, sorted, error);
    if (status == MLRT_OK)
        status = build_header(path, sorted, count, metadata, metadata_count, &header, error);
    if (status == MLRT_OK)
        status = write_all(path, sorted, count, &header, error);
    free(header.at);
    free(sorted);
    return status;
}
