// runtime_files.c: the readers and writers of the runtime, each rule with a file that keeps it and one that breaks it; every
// allocation failing in turn; a disk that is full; every byte of a checkpoint flipped.
// Link with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup (the failing allocations) and -lz -lm.
#define _GNU_SOURCE
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "../../runtime/digest.h"
#include "../../runtime/number.h"
#include "../../runtime/safetensors.h"
#include "../../runtime/table.h"

static int passed, failed;
static MlrtError error;
static char folder[64] = "/tmp/mlrt-files-XXXXXX";

#define CHECK(condition) check((condition), __LINE__, #condition)
static void check(bool holds, int line, const char *what)
{
    passed += holds;
    failed += !holds;
    if (!holds)
        printf("runtime_files.c:%d: %s does not hold (last error: %s)\n", line, what, error.text);
}

static const char *in_folder(const char *name)
{
    static char paths[8][128];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, 128, "%s/%s", folder, name);
    return path;
}

static const char *file_with(const char *name, const void *bytes, size_t count)
{
    const char *path = in_folder(name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, count, file) != count || fclose(file) != 0)
        abort();
    return path;
}

// --- failing allocations -----------------------------------------------------------------------------------------------

static long fail_at = -1, allocations;          // the allocation that fails, counted from 0; -1 for none

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
char *__real_strdup(const char *text);
static bool fails(void) { return fail_at >= 0 && allocations++ == fail_at; }
void *__wrap_malloc(size_t bytes) { return fails() ? NULL : __real_malloc(bytes); }
void *__wrap_calloc(size_t count, size_t bytes) { return fails() ? NULL : __real_calloc(count, bytes); }
void *__wrap_realloc(void *old, size_t bytes) { return fails() ? NULL : __real_realloc(old, bytes); }
char *__wrap_strdup(const char *text) { return fails() ? NULL : __real_strdup(text); }

// Runs the action with the first, second, ... allocation failing, until none does. Each time it has to say so.
static void check_allocations(const char *what, MlrtStatus action(void))
{
    long n = 0;
    for (;; n++) {
        fail_at = n;
        allocations = 0;
        MlrtStatus status = action();
        bool injected = allocations > n;
        fail_at = -1;
        if (!injected) {
            CHECK(status == MLRT_OK);
            break;
        }
        if (status != MLRT_OUT_OF_MEMORY)
            printf("%s: allocation %ld fails, status %s\n", what, n, mlrt_status_name(status));
        CHECK(status == MLRT_OUT_OF_MEMORY);
    }
    CHECK(n > 0);
}

// --- numbers -----------------------------------------------------------------------------------------------------------

static uint64_t random_state = 88172645463325252u;
static uint64_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

// Against strtof and strtod in the C locale, the program's own: random bits printed in several ways, and the exact middle of
// two neighbouring floats, which is where rounding goes wrong.
static void compare_numbers(const char *text)
{
    float narrow = 7, narrow_want = strtof(text, NULL);
    double wide = 7, wide_want = strtod(text, NULL);
    MlrtNumber a = mlrt_number_f32(text, strlen(text), &narrow), b = mlrt_number_f64(text, strlen(text), &wide);
    CHECK(isinf(narrow_want) ? a == MLRT_NUMBER_RANGE : a == MLRT_NUMBER_OK && memcmp(&narrow, &narrow_want, 4) == 0);
    CHECK(isinf(wide_want) ? b == MLRT_NUMBER_RANGE : b == MLRT_NUMBER_OK && memcmp(&wide, &wide_want, 8) == 0);
}

static void test_numbers(void)
{
    char text[1400];
    for (int i = 0; i < 4000; i++) {
        uint64_t bits = random_bits();
        uint32_t half = (uint32_t)random_bits() & 0x7F7FFFFE, next = half + 1;
        double wide;
        float low, high;
        memcpy(&wide, &bits, 8);
        memcpy(&low, &half, 4);
        memcpy(&high, &next, 4);
        if (isfinite(wide)) {
            snprintf(text, sizeof text, i % 2 ? "%.17g" : "%.25e", wide);
            compare_numbers(text);
        }
        snprintf(text, sizeof text, "%.160f%s", ((double)low + (double)high) / 2, i % 3 == 0 ? "1" : "");
        compare_numbers(text);
        snprintf(text, sizeof text, "%.18e", (double)low);
        compare_numbers(text);
    }
    static const char *const good[] = {"0", "-0", "1", "+1.", ".5", "1e5", "1E-5", "000012.500", "3.4028235e38", "3.4028236e38",
                                       "1e-45", "7e-46", "1e400", "1e-400", "0e999999999999", "9007199254740993"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        compare_numbers(good[i]);
    static const char *const bad[] = {"", "-", ".", "e5", "1e", "1e+", "0x10", "1,5", "1 ", " 1", "1_000", "--1", "1.2.3", "nano"};
    float value;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(mlrt_number_f32(bad[i], strlen(bad[i]), &value) == MLRT_NUMBER_NONE);
    CHECK(mlrt_number_f32("-Infinity", 9, &value) == MLRT_NUMBER_SPECIAL && isinf(value) && value < 0);
    CHECK(mlrt_number_f32("NaN", 3, &value) == MLRT_NUMBER_SPECIAL && isnan(value));
    int64_t whole;
    CHECK(mlrt_number_i64("-9223372036854775808", 20, &whole) == MLRT_NUMBER_OK && whole == INT64_MIN);
    CHECK(mlrt_number_i64("9223372036854775808", 19, &whole) == MLRT_NUMBER_RANGE);
    CHECK(mlrt_number_i64("5.00", 4, &whole) == MLRT_NUMBER_OK && whole == 5);
    CHECK(mlrt_number_i64("5.01", 4, &whole) == MLRT_NUMBER_FRACTION);
    CHECK(mlrt_number_i64("1e3", 3, &whole) == MLRT_NUMBER_FRACTION);
}

// --- CSV ---------------------------------------------------------------------------------------------------------------

static MlrtCsv *csv_of(const char *text, size_t length, MlrtCsvOptions options)
{
    MlrtCsv *csv;
    error.text[0] = 0;
    mlrt_csv_parse(mlrt_file_of_memory("t.csv", text, length), &options, &csv, &error);
    return csv;
}

static MlrtStatus read_csv(const char *text, MlrtCsvOptions options, int column, MlrtType type, void *to)
{
    MlrtCsv *csv = csv_of(text, strlen(text), options);
    MlrtStatus status = csv ? mlrt_csv_numbers(csv, &column, 1, type, to, &error) : error.status;
    mlrt_csv_close(csv);
    return status;
}

static bool says(const char *words) { return strstr(error.text, words) != NULL; }

static void test_csv_structure(void)
{
    static const char *const texts[] = {"a,b\n1,2\n3,4\n", "a,b\r\n1,2\r\n3,4", "a,b\r1,2\r3,4\r", "\357\273\277a,b\n1,2\n3,4\n\n\n",
                                        "\"a\",\"b\"\n\"1\" , 2 \n3,\"4\"\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        float values[4] = {0};
        int columns[] = {1, 0}, found = -1;
        MlrtCsv *csv = csv_of(texts[i], strlen(texts[i]), (MlrtCsvOptions){0});
        CHECK(csv && mlrt_csv_rows(csv) == 2 && mlrt_csv_columns(csv) == 2 && mlrt_csv_find(csv, "b", &found, &error) == MLRT_OK);
        CHECK(csv && found == 1 && mlrt_csv_numbers(csv, columns, 2, MLRT_f32, values, &error) == MLRT_OK);
        CHECK(values[0] == 2 && values[1] == 1 && values[2] == 4 && values[3] == 3);
        CHECK(csv && mlrt_csv_find(csv, "c", &found, &error) == MLRT_BAD_INPUT && says("a, b"));
        columns[0] = 0;
        CHECK(csv && mlrt_csv_numbers(csv, columns, 2, MLRT_f32, values, &error) == MLRT_BAD_INPUT && says("twice"));
        columns[0] = 2;
        CHECK(csv && mlrt_csv_numbers(csv, columns, 2, MLRT_f32, values, &error) == MLRT_BAD_INPUT && says("no column 2"));
        mlrt_csv_close(csv);
    }
    static const struct { const char *text; size_t length; const char *words; } bad[] = {
        {"", 0, "empty"}, {"\n\n", 2, "empty"}, {"1,2\n3\n", 6, "t.csv:2: 1 cell, the first row has 2"},
        {"1,2\n\n3,4\n", 9, ":2: an empty line"}, {"1,2\n3,\"4\n5,6\n", 13, ":2: a quote is opened"},
        {"1,2\n3,\"4\"5\n", 11, ":2: text after a closing quote"}, {"1,2\n3,4\"5\n", 10, ":2: a quote inside a cell"},
        {"1,2\n3,\0\n", 8, ":2: a NUL byte"}, {"1,2\n3,\"\0\"\n", 10, ":2: a NUL byte"}, {"\xFF\xFE" "1\0", 4, "UTF-16"},
        {"a,b\n", 4, "a header and no rows"}, {"a\x01,b\n1,2\n", 9, "not clean UTF-8"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!csv_of(bad[i].text, bad[i].length, (MlrtCsvOptions){0}) && says(bad[i].words));
    CHECK(!csv_of("1,2\n", 4, (MlrtCsvOptions){.separator = '5'}) && error.status == MLRT_BAD_INPUT);
    MlrtCsv *all_text = csv_of("x;y\np;q\n", 8, (MlrtCsvOptions){.separator = ';'});
    CHECK(all_text && mlrt_csv_rows(all_text) == 2 && !mlrt_csv_name(all_text, 0));
    mlrt_csv_close(all_text);
}

static MlrtStatus csv_limit(size_t cells, size_t bytes)         // one row of so many cells of so many bytes
{
    size_t length = cells * (bytes + 1);
    char *text = malloc(length + 1);
    memset(text, '1', length);
    for (size_t i = 1; i <= cells; i++)
        text[i * (bytes + 1) - 1] = i == cells ? '\n' : ',';
    MlrtCsv *csv = csv_of(text, length, (MlrtCsvOptions){0});
    MlrtStatus status = csv ? MLRT_OK : error.status;
    mlrt_csv_close(csv);
    free(text);
    return status;
}

static void test_csv_limits(void)
{
    CHECK(csv_limit(1, MLRT_LIMIT_CSV_FIELD) == MLRT_OK);
    CHECK(csv_limit(1, MLRT_LIMIT_CSV_FIELD + 1) == MLRT_TOO_LARGE && says("CSV_FIELD"));
    CHECK(csv_limit(MLRT_LIMIT_CSV_COLUMNS, 1) == MLRT_OK);
    CHECK(csv_limit(MLRT_LIMIT_CSV_COLUMNS + 1, 1) == MLRT_TOO_LARGE && says("CSV_COLUMNS"));
    CHECK(csv_limit(MLRT_LIMIT_CSV_LINE / 1024, 1023) == MLRT_OK);
    CHECK(csv_limit(MLRT_LIMIT_CSV_LINE / 1024 + 1, 1023) == MLRT_TOO_LARGE && says("CSV_LINE"));
}

static void test_csv_values(void)
{
    MlrtCsvOptions plain = {.header = MLRT_HEADER_NO}, loose = {.allow_empty = true, .allow_nonfinite = true};
    float real[4];
    int32_t whole[4];
    uint8_t small[4];
    CHECK(read_csv("1\n2.5\n-3e2\n", plain, 0, MLRT_f32, real) == MLRT_OK && real[1] == 2.5f && real[2] == -300);
    CHECK(read_csv("1,x\n2,y\n", plain, 1, MLRT_f32, real) == MLRT_BAD_FILE && says("t.csv:1: column 1: 'x' is not a number"));
    CHECK(read_csv("a,b\n1,2\n3,x\n", (MlrtCsvOptions){0}, 1, MLRT_f32, real) == MLRT_BAD_FILE && says(":3: column 1 'b'"));
    CHECK(read_csv("1\n\"a\nb\"\n", plain, 0, MLRT_f32, real) == MLRT_BAD_FILE && says(":2: column 0"));
    CHECK(read_csv("1;2\n1,5;2\n", (MlrtCsvOptions){.separator = ';'}, 0, MLRT_f32, real) == MLRT_BAD_FILE && says("decimal point"));
    CHECK(read_csv("1,2\n,2\n", plain, 0, MLRT_f32, real) == MLRT_BAD_FILE && says("empty"));
    CHECK(read_csv("1,2\n,2\n", loose, 0, MLRT_f32, real) == MLRT_OK && isnan(real[1]));
    CHECK(read_csv("1\nnan\n", plain, 0, MLRT_f32, real) == MLRT_BAD_FILE && says("not finite"));
    CHECK(read_csv("1\ninf\n", loose, 0, MLRT_f32, real) == MLRT_OK && isinf(real[1]));
    CHECK(read_csv("1\n1e39\n", plain, 0, MLRT_f32, real) == MLRT_BAD_FILE && says("does not fit"));
    CHECK(read_csv("-2147483648\n2147483647\n", plain, 0, MLRT_i32, whole) == MLRT_OK && whole[0] == INT32_MIN && whole[1] == INT32_MAX);
    CHECK(read_csv("2147483648\n", plain, 0, MLRT_i32, whole) == MLRT_BAD_FILE && says("does not fit"));
    CHECK(read_csv("1.5\n", plain, 0, MLRT_i32, whole) == MLRT_BAD_FILE && says("whole number"));
    CHECK(read_csv("true\n0\nfalse\n1\n", plain, 0, MLRT_bool, small) == MLRT_OK && small[0] == 1 && small[3] == 1 && small[2] == 0);
    CHECK(read_csv("yes\n", plain, 0, MLRT_bool, small) == MLRT_BAD_FILE && says("true, false"));
    CHECK(read_csv("256\n", plain, 0, MLRT_u8, small) == MLRT_BAD_FILE);
}

static void test_strings_and_codes(void)
{
    const char *text = "kind,n\n dog ,1\n\"cat, \"\"old\"\"\",2\ndog,3\n10,4\n9,5\n";
    char **strings = NULL;
    int32_t codes[5];
    MlrtCodes fitted;
    MlrtCsv *csv = csv_of(text, strlen(text), (MlrtCsvOptions){0});
    CHECK(csv && mlrt_csv_strings(csv, 0, &strings, &error) == MLRT_OK && strcmp(strings[1], "cat, \"old\"") == 0);
    CHECK(mlrt_codes_fit((const char *const *)strings, 5, &fitted, &error) == MLRT_OK && fitted.count == 4);
    CHECK(mlrt_codes_apply(&fitted, (const char *const *)strings, 5, false, codes, &error) == MLRT_OK);
    CHECK(codes[0] == 3 && codes[1] == 2 && codes[2] == 3 && codes[3] == 1 && codes[4] == 0);
    const char *unseen[] = {"cow"};
    CHECK(mlrt_codes_apply(&fitted, unseen, 1, false, codes, &error) == MLRT_BAD_INPUT && says("row 0: the value 'cow'"));
    CHECK(mlrt_codes_apply(&fitted, unseen, 1, true, codes, &error) == MLRT_OK && codes[0] == 0);
    mlrt_codes_free(&fitted);
    free(strings);
    mlrt_csv_close(csv);
    csv = csv_of("x,1\n\xE9,2\n", 8, (MlrtCsvOptions){.header = MLRT_HEADER_NO});
    CHECK(csv && mlrt_csv_strings(csv, 0, &strings, &error) == MLRT_BAD_FILE && says("not UTF-8"));
    mlrt_csv_close(csv);
}

// --- npy ---------------------------------------------------------------------------------------------------------------

static size_t npy_bytes(char *to, int version, const char *header, const void *data, size_t count)
{
    size_t length = strlen(header), start = version == 1 ? 10 : 12;
    memcpy(to, "\x93NUMPY", 6);
    to[6] = (char)version;
    to[7] = 0;
    memset(to + 8, 0, 4);
    to[8] = (char)(length & 255);
    to[9] = (char)(length >> 8);
    memcpy(to + start, header, length);
    memcpy(to + start + length, data, count);
    return start + length + count;
}

static MlrtStatus npy_of(int version, const char *header, const void *data, size_t count, MlrtArray *array)
{
    static char bytes[MLRT_LIMIT_NPY_HEADER + 64];
    size_t length = npy_bytes(bytes, version, header, data, count);
    return mlrt_npy_parse(mlrt_file_of_memory("t.npy", bytes, length), array, &error);
}

static void test_npy(void)
{
    MlrtArray array;
    const float data[6] = {1, 2, 3, 4, 5, 6};
    const char *plain = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
    for (int version = 1; version <= 3; version++) {
        CHECK(npy_of(version, plain, data, 24, &array) == MLRT_OK && array.rank == 2 && array.shape[1] == 3);
        CHECK(memcmp(array.data, data, 24) == 0);
        mlrt_array_close(&array);
    }
    CHECK(npy_of(1, "{'shape': (2, 3), 'fortran_order': True, 'descr': '<f4'}", data, 24, &array) == MLRT_OK);
    const float turned[6] = {1, 3, 5, 2, 4, 6};
    CHECK(memcmp(array.data, turned, 24) == 0);
    mlrt_array_close(&array);
    CHECK(npy_of(1, "{'descr': '>i2', 'fortran_order': False, 'shape': (2,)}", "\1\2\xFF\xFE", 4, &array) == MLRT_OK);
    CHECK(((const int16_t *)array.data)[0] == 258 && ((const int16_t *)array.data)[1] == -2);
    mlrt_array_close(&array);
    CHECK(npy_of(1, "{'descr': '<f8', 'fortran_order': False, 'shape': ()}", "\0\0\0\0\0\0\xF0\x3F", 8, &array) == MLRT_OK);
    CHECK(array.rank == 0 && array.count == 1 && *(const double *)array.data == 1.0);
    mlrt_array_close(&array);
    static const struct { const char *header; size_t bytes; const char *words; } bad[] = {
        {"{'descr': '|O', 'fortran_order': False, 'shape': (6,)}", 24, "objects"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (3,)}", 24, "complex"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,)}", 24, "structured"},
        {"{'descr': '<U4', 'fortran_order': False, 'shape': (6,)}", 24, "strings"},
        {"{'descr': '<f16', 'fortran_order': False, 'shape': (1,)}", 16, "astype"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4)}", 24, "cut short"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}", 24, "followed by"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (6)}", 24, "','"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-6,)}", 24, "dimension"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", 24, "dimension"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4, 0)}", 0, "ELEMENTS"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,6)}", 24, "RANK"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (6,)}", 24, "twice"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (6,), 'x': 1}", 24, "not known"},
        {"{'descr': '<f4', 'fortran_order': False}", 24, "needed"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (6,)} x", 24, "the end"},
        {"{'descr': '<f4', 'fortran_order': 1, 'shape': (6,)}", 24, "True or False"},
        {"{'descr': '|b1', 'fortran_order': False, 'shape': (24,)}", 24, "bool is 0 or 1"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(npy_of(1, bad[i].header, data, bad[i].bytes, &array) != MLRT_OK && says(bad[i].words));
    CHECK(npy_of(4, plain, data, 24, &array) == MLRT_BAD_FILE && says("version 4"));
    CHECK(mlrt_npy_parse(mlrt_file_of_memory("t", "\x93NUMPY\1\0\xFF\1{}", 12), &array, &error) != MLRT_OK && says("ends inside"));
    static char padded[MLRT_LIMIT_NPY_HEADER + 2];
    memset(padded, ' ', MLRT_LIMIT_NPY_HEADER + 1);
    memcpy(padded, plain, strlen(plain) - 1);
    CHECK(npy_of(1, padded, data, 24, &array) == MLRT_TOO_LARGE && says("NPY_HEADER"));
    padded[MLRT_LIMIT_NPY_HEADER] = 0;
    CHECK(npy_of(1, padded, data, 24, &array) == MLRT_OK);
    mlrt_array_close(&array);
    const char *path = in_folder("out.npy");
    const int64_t shape[] = {3, 2};
    CHECK(mlrt_npy_write(path, MLRT_f32, shape, 2, data, &error) == MLRT_OK && mlrt_npy_open(path, &array, &error) == MLRT_OK);
    CHECK(array.shape[0] == 3 && memcmp(array.data, data, 24) == 0 && !array.owned);
    mlrt_array_close(&array);
    CHECK(mlrt_npy_write(path, MLRT_bf16, shape, 2, data, &error) == MLRT_BAD_INPUT && says("bf16"));
}

// --- IDX ---------------------------------------------------------------------------------------------------------------

static size_t gzip_bytes(const void *from, size_t count, uint8_t *to, size_t room)
{
    z_stream stream = {0};
    deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    stream.next_in = (Bytef *)(uintptr_t)from;
    stream.avail_in = (uInt)count;
    stream.next_out = to;
    stream.avail_out = (uInt)room;
    deflate(&stream, Z_FINISH);
    deflateEnd(&stream);
    return room - stream.avail_out;
}

static MlrtStatus idx_of(const void *bytes, size_t count, MlrtArray *array)
{
    return mlrt_idx_parse(mlrt_file_of_memory("t.idx", bytes, count), array, &error);
}

static void test_idx(void)
{
    MlrtArray array;
    uint8_t packed[512];
    static const char pixels[] = "\0\0\x08\2\0\0\0\2\0\0\0\3abcdef", shorts[] = "\0\0\x0B\1\0\0\0\2\1\2\xFF\xFE";
    CHECK(idx_of(pixels, 18, &array) == MLRT_OK && array.rank == 2 && array.shape[1] == 3 && memcmp(array.data, "abcdef", 6) == 0);
    mlrt_array_close(&array);
    CHECK(idx_of(shorts, 12, &array) == MLRT_OK && ((const int16_t *)array.data)[0] == 258 && ((const int16_t *)array.data)[1] == -2);
    mlrt_array_close(&array);
    size_t length = gzip_bytes(pixels, 18, packed, sizeof packed - 1);
    CHECK(idx_of(packed, length, &array) == MLRT_OK && memcmp(array.data, "abcdef", 6) == 0);
    mlrt_array_close(&array);
    for (size_t cut = 0; cut < length; cut++)
        CHECK(idx_of(packed, cut, &array) == MLRT_BAD_FILE);
    packed[length] = 0;
    CHECK(idx_of(packed, length + 1, &array) == MLRT_BAD_FILE && says("bytes follow"));
    packed[length - 8] ^= 1;
    CHECK(idx_of(packed, length, &array) == MLRT_BAD_FILE && says("damaged"));
    for (size_t cut = 0; cut < 18; cut++)
        CHECK(idx_of(pixels, cut, &array) == MLRT_BAD_FILE);
    CHECK(idx_of(pixels, 19, &array) == MLRT_BAD_FILE && says("takes 6 bytes"));
    CHECK(idx_of("\0\0\x0A\1\0\0\0\1a", 9, &array) == MLRT_BAD_FILE && says("not an IDX"));
    length = gzip_bytes("\0\0\x08\1\x7F\xFF\xFF\xFF", 8, packed, sizeof packed);
    CHECK(idx_of(packed, length, &array) == MLRT_TOO_LARGE && says("READ_FACTOR"));
}

// --- safetensors -------------------------------------------------------------------------------------------------------

static MlrtStatus tensors_of(const char *header, size_t data_bytes, MlrtTensors *tensors)
{
    static uint8_t bytes[4096];
    size_t length = strlen(header);
    memset(bytes, 0, sizeof bytes);
    bytes[0] = (uint8_t)length;
    bytes[1] = (uint8_t)(length >> 8);
    memcpy(bytes + 8, header, length);
    MlrtStatus status = mlrt_safetensors_parse(mlrt_file_of_memory("t.st", bytes, 8 + length + data_bytes), tensors, &error);
    return status;
}

#define ENTRY(name, dtype, shape, from, to) "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" from "," to "]}"

static void test_safetensors_rules(void)
{
    MlrtTensors tensors;
    CHECK(tensors_of("{" ENTRY("b", "F32", "2,1", "0", "8") "," ENTRY("a", "U8", "", "8", "9") "," ENTRY("z", "I64", "0", "9", "9") "}   ",
                     9, &tensors) == MLRT_OK && tensors.count == 3);
    CHECK(mlrt_safetensors_find(&tensors, "a")->rank == 0 && !mlrt_safetensors_find(&tensors, "c"));
    mlrt_safetensors_close(&tensors);
    CHECK(tensors_of("{\"__metadata__\":{\"k\\u00e9\\n\":\"\\ud83d\\ude00\"}}", 0, &tensors) == MLRT_OK);
    CHECK(strcmp(mlrt_safetensors_metadata(&tensors, "k\xC3\xA9\n"), "\xF0\x9F\x98\x80") == 0);
    mlrt_safetensors_close(&tensors);
    CHECK(tensors_of("{}", 0, &tensors) == MLRT_OK && tensors.count == 0);
    mlrt_safetensors_close(&tensors);
    static const struct { const char *header; size_t bytes; const char *words; } bad[] = {
        {" {}", 0, "first byte"}, {"{}x", 0, "only spaces"}, {"{},", 0, "only spaces"}, {"{\"a\"", 0, "':'"}, {"{\"a", 0, "'\"'"},
        {"{" ENTRY("a", "F32", "1", "0", "4") "," ENTRY("a", "F32", "1", "4", "8") "}", 8, "twice"},
        {"{" ENTRY("a", "F32", "1", "0", "4") "," ENTRY("b", "F32", "1", "5", "9") "}", 9, "no tensor"},
        {"{" ENTRY("a", "F32", "1", "0", "4") "," ENTRY("b", "F32", "1", "2", "6") "}", 6, "overlaps"},
        {"{" ENTRY("a", "F32", "1", "0", "4") "}", 5, "1 bytes follow"}, {"{" ENTRY("a", "F32", "1", "0", "4") "}", 3, "cut short"},
        {"{" ENTRY("a", "F32", "1", "4", "0") "}", 4, "cut short"}, {"{" ENTRY("a", "F32", "2", "0", "4") "}", 4, "takes 8"},
        {"{" ENTRY("a", "F32", "-1", "0", "4") "}", 4, "plain digits"}, {"{" ENTRY("a", "F32", "01", "0", "4") "}", 4, "plain digits"},
        {"{" ENTRY("a", "F32", "1.0", "0", "4") "}", 4, "']'"}, {"{" ENTRY("a", "F32", "1e0", "0", "4") "}", 4, "']'"},
        {"{" ENTRY("a", "F32", "9223372036854775808", "0", "4") "}", 4, "63 bits"},
        {"{" ENTRY("a", "F32", "4294967296,4294967296", "0", "4") "}", 4, "ELEMENTS"},
        {"{" ENTRY("a", "F32", "1,1,1,1,1,1,1,1,1", "0", "4") "}", 4, "RANK"}, {"{" ENTRY("a", "C64", "1", "0", "8") "}", 8, "'C64'"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1],\"x\":1}}", 1, "not known"},
        {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1, "twice"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[]}}", 0, "needed"}, {"{\"a\":{}}", 0, "a string"}, {"{\"a\":1}", 0, "'{'"},
        {"{" ENTRY("a\\u0000", "U8", "", "0", "1") "}", 1, "escape"}, {"{" ENTRY("a\\n", "U8", "", "0", "1") "}", 1, "control"},
        {"{" ENTRY("a\\ud800", "U8", "", "0", "1") "}", 1, "escape"}, {"{" ENTRY("\xC0\x80", "U8", "", "0", "1") "}", 1, "UTF-8"},
        {"{\"__metadata__\":{\"a\":\"b\",\"a\":\"c\"}}", 0, "'a' twice"}, {"{\"__metadata__\":{\"a\":1}}", 0, "a string"},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "twice"}, {"{\"__metadata__\":{\"mlc.digest\":\"0\"}}", 0, "damaged"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(tensors_of(bad[i].header, bad[i].bytes, &tensors) != MLRT_OK && says(bad[i].words));
    const char *lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:0\n";
    CHECK(mlrt_safetensors_parse(mlrt_file_of_memory("t", lfs, strlen(lfs)), &tensors, &error) == MLRT_BAD_FILE && says("git lfs pull"));
    CHECK(mlrt_safetensors_parse(mlrt_file_of_memory("t", "\1\xE1\xF5\5\0\0\0\0{}", 10), &tensors, &error) == MLRT_TOO_LARGE);
    CHECK(mlrt_safetensors_parse(mlrt_file_of_memory("t", "\3\0\0\0\0\0\0\0{}", 10), &tensors, &error) == MLRT_BAD_FILE && says("ends inside"));
}

static MlrtStatus name_of_length(int length)
{
    char header[2048];
    MlrtTensors tensors;
    snprintf(header, sizeof header, "{\"%0*d\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", length, 1);
    MlrtStatus status = tensors_of(header, 1, &tensors);
    if (status == MLRT_OK)
        mlrt_safetensors_close(&tensors);
    return status;
}

static void test_names(void)
{
    CHECK(name_of_length(MLRT_LIMIT_NAME - 1) == MLRT_OK && name_of_length(MLRT_LIMIT_NAME) == MLRT_OK);
    CHECK(name_of_length(MLRT_LIMIT_NAME + 1) == MLRT_TOO_LARGE && says("NAME"));
}

static const float weights[3] = {1, -2, INFINITY};
static const int64_t steps[1] = {1234567890123};
static const MlrtTensor pieces[] = {
    {.name = "fc.weight", .type = MLRT_f32, .rank = 2, .shape = {3, 1}, .data = weights},
    {.name = "step", .type = MLRT_i64, .data = steps},
    {.name = "flags", .type = MLRT_bool, .rank = 1, .shape = {2}, .data = "\0\1"},
};
static const MlrtMetadata notes[] = {{"format", "pt"}, {"net", "line 1\n\"quoted\" \\ \xC3\xA9"}};

static MlrtStatus save(void) { return mlrt_safetensors_write(in_folder("w.st"), pieces, 3, notes, 2, &error); }

static MlrtStatus load(void)
{
    MlrtTensors tensors;
    MlrtStatus status = mlrt_safetensors_open(in_folder("w.st"), &tensors, &error);
    if (status == MLRT_OK)
        mlrt_safetensors_close(&tensors);
    return status;
}

static void test_safetensors_files(void)
{
    MlrtTensors tensors;
    CHECK(save() == MLRT_OK && mlrt_safetensors_open(in_folder("w.st"), &tensors, &error) == MLRT_OK && tensors.count == 3);
    CHECK(strcmp(tensors.tensor[0].name, "step") == 0 && memcmp(tensors.tensor[0].data, steps, 8) == 0);
    const MlrtTensor *weight = mlrt_safetensors_find(&tensors, "fc.weight");
    CHECK(weight && weight->shape[0] == 3 && memcmp(weight->data, weights, 12) == 0 && mlrt_tensor_nonfinite(weight) == 1);
    CHECK(strcmp(mlrt_safetensors_metadata(&tensors, "net"), notes[1].value) == 0);
    CHECK(((const uint8_t *)tensors.tensor[0].data - tensors.file.at) % 8 == 0);
    size_t bytes = tensors.file.bytes;
    uint8_t *copy = malloc(bytes);
    memcpy(copy, tensors.file.at, bytes);
    mlrt_safetensors_close(&tensors);
    for (size_t i = 0; i < bytes; i++) {            // a changed bit anywhere is damage, and so is a cut anywhere
        copy[i] ^= (uint8_t)(1 << i % 8);
        CHECK(mlrt_safetensors_parse(mlrt_file_of_memory("w", copy, bytes), &tensors, &error) != MLRT_OK);
        copy[i] ^= (uint8_t)(1 << i % 8);
        CHECK(mlrt_safetensors_parse(mlrt_file_of_memory("w", copy, i), &tensors, &error) != MLRT_OK);
    }
    free(copy);
    MlrtTensor twice[] = {pieces[0], pieces[0]};
    CHECK(mlrt_safetensors_write(in_folder("w.st"), twice, 2, NULL, 0, &error) == MLRT_BAD_INPUT && says("two tensors"));
    CHECK(load() == MLRT_OK);                       // the refused write left the old file
    CHECK(strcmp(mlrt_digest("", 0).text, "99aa06d3014798d86001c324468d497f") == 0);    // as xxh128sum prints
}

// --- files -------------------------------------------------------------------------------------------------------------

static size_t size_of(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? (size_t)info.st_size : 0;
}

static int count_temporaries(void)
{
    char command[200];
    snprintf(command, sizeof command, "test -z \"$(find %s -name '*.tmp-*')\"", folder);
    return system(command);
}

static void test_disk_full(void)
{
    struct rlimit old, small;
    static char large[100000];
    const char *path = in_folder("w.st");
    size_t before = size_of(path);
    const MlrtTensor big = {.name = "big", .type = MLRT_u8, .rank = 1, .shape = {100000}, .data = large};
    getrlimit(RLIMIT_FSIZE, &old);
    small = (struct rlimit){50000, old.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    CHECK(mlrt_safetensors_write(path, &big, 1, NULL, 0, &error) == MLRT_DISK && says("cannot be written"));
    MlrtLog log;
    CHECK(mlrt_log_open(&log, in_folder("full.jsonl"), 0, &error) == MLRT_OK);
    MlrtStatus status = MLRT_OK;
    for (int i = 0; i < 1000 && status == MLRT_OK; i++)
        status = mlrt_log_line(&log, &error, "%0100d", i);
    CHECK(status == MLRT_DISK && log.bytes % 101 == 0 && size_of(log.path) == log.bytes);
    mlrt_log_close(&log, &error);
    setrlimit(RLIMIT_FSIZE, &old);
    CHECK(size_of(path) == before && load() == MLRT_OK && count_temporaries() == 0);
}

static void test_files(void)
{
    MlrtFile file;
    MlrtLog log;
    mkfifo(in_folder("pipe"), 0600);
    CHECK(mlrt_file_open(in_folder("none"), &file, &error) == MLRT_BAD_FILE);
    CHECK(mlrt_file_open(folder, &file, &error) == MLRT_BAD_FILE && says("folder"));
    CHECK(mlrt_file_open(in_folder("pipe"), &file, &error) == MLRT_BAD_FILE && says("regular"));
    CHECK(mlrt_file_open("/dev/zero", &file, &error) == MLRT_BAD_FILE && says("regular"));
    CHECK(mlrt_file_open(file_with("empty", "", 0), &file, &error) == MLRT_OK && file.bytes == 0);
    mlrt_file_close(&file);
    CHECK(mlrt_file_write(in_folder("pipe"), "x", 1, &error) == MLRT_DISK && says("not replaced"));
    CHECK(mlrt_file_write(in_folder("no/folder"), "x", 1, &error) == MLRT_DISK);
    file_with("kept.tmp-99-0", "half", 4);
    mlrt_file_remove_stale(in_folder("kept"));
    CHECK(count_temporaries() == 0);
    const char *path = file_with("log", "one\ntwo\nhal", 11);
    CHECK(mlrt_log_open(&log, path, MLRT_LOG_KEEP_ALL, &error) == MLRT_OK && log.bytes == 8);
    CHECK(mlrt_log_line(&log, &error, "%s", "three") == MLRT_OK && mlrt_log_close(&log, &error) == MLRT_OK && size_of(path) == 14);
    CHECK(mlrt_log_open(&log, path, 8, &error) == MLRT_OK && size_of(path) == 8);
    CHECK(mlrt_log_line(&log, &error, "%0*d", MLRT_LIMIT_LOG_LINE, 1) == MLRT_TOO_LARGE && mlrt_log_close(&log, &error) == MLRT_OK);
}

static void test_text(void)
{
    size_t result = 5;
    CHECK(!mlrt_size_mul(SIZE_MAX, 2, &result) && !mlrt_size_add(SIZE_MAX, 1, &result) && result == 5);
    CHECK(strcmp(mlrt_quote("a\n\xE9\xC3\xA9\xE2\x80\xAE", 8).text, "a\\x0A\\xE9\xC3\xA9\\xE2\\x80\\xAE") == 0);
    CHECK(!mlrt_is_clean_text("\xED\xA0\x80", 3) && !mlrt_is_clean_text("\xE2\x80\xAE", 3) && mlrt_is_clean_text("\xC3\xA9 x", 4));
    mlrt_fail(&error, MLRT_DISK, "%0600d", 1);
    CHECK(strlen(error.text) == 511 && strcmp(error.text + 508, "...") == 0);
    CHECK(mlrt_status_exit_code(MLRT_STOPPED) == 4 && mlrt_status_exit_code(MLRT_DIVERGED) == 5 && mlrt_status_exit_code(MLRT_BAD_FILE) == 1);
}

// --- tables, and every reader without memory ---------------------------------------------------------------------------

static MlrtStatus load_table(void)
{
    MlrtTable table = {0};
    MlrtCsv *csv = NULL;
    const int columns[] = {1, 2};
    MlrtStatus status = mlrt_csv_open(in_folder("t.csv"), NULL, &csv, &error);
    if (status == MLRT_OK)
        status = mlrt_table_add_csv(&table, "x", csv, columns, 2, MLRT_f32, &error);
    if (status == MLRT_OK)
        status = mlrt_table_add_strings(&table, "kind", csv, 0, &error);
    if (status == MLRT_OK)
        status = mlrt_table_add_npy(&table, "y", in_folder("t.npy"), &error);
    if (status == MLRT_OK)
        status = mlrt_table_add_idx(&table, "z", in_folder("t.gz"), &error);
    MlrtCodes codes = {0};
    if (status == MLRT_OK)
        status = mlrt_codes_fit((const char *const *)mlrt_table_field(&table, "kind")->strings, table.rows, &codes, &error);
    if (status == MLRT_OK)
        CHECK(table.rows == 2 && mlrt_table_field(&table, "y")->rank == 1 && mlrt_table_field(&table, "x")->row_bytes == 8 &&
              ((const float *)mlrt_table_field(&table, "y")->values)[1] == 5 && codes.count == 2 && !mlrt_table_field(&table, "q"));
    mlrt_codes_free(&codes);
    mlrt_csv_close(csv);
    mlrt_table_free(&table);
    return status;
}

static void test_table(void)
{
    char bytes[512];
    uint8_t packed[256];
    const float data[6] = {1, 3, 5, 2, 4, 6};
    MlrtTable table = {0};
    file_with("t.csv", "k,a,b\nx,1,2\ny,3,4\n", 18);
    file_with("t.npy", bytes, npy_bytes(bytes, 1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", data, 24));
    const float expected[6] = {1, 5, 4, 3, 2, 6};
    file_with("t.gz", packed, gzip_bytes("\0\0\x0B\1\0\0\0\2abcd", 12, packed, sizeof packed));
    file_with("one.npy", bytes, npy_bytes(bytes, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }", data, 24));
    CHECK(mlrt_table_add_npy(&table, "y", in_folder("t.npy"), &error) == MLRT_OK);
    CHECK(memcmp(table.field[0].values, expected, 24) == 0);
    CHECK(mlrt_table_add_npy(&table, "y", in_folder("t.npy"), &error) == MLRT_BAD_INPUT && says("two fields"));
    CHECK(mlrt_table_add_npy(&table, "v", in_folder("one.npy"), &error) == MLRT_BAD_FILE && says("v has 6 rows, y has 2"));
    CHECK(table.fields == 1);
    mlrt_table_free(&table);
}

static MlrtStatus save_array(void)
{
    const int64_t shape[] = {3};
    return mlrt_npy_write(in_folder("a.npy"), MLRT_f32, shape, 1, weights, &error);
}

static MlrtStatus open_log(void)
{
    MlrtLog log;
    MlrtStatus status = mlrt_log_open(&log, in_folder("log"), 0, &error);
    return status == MLRT_OK ? mlrt_log_close(&log, &error) : status;
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    test_text();
    test_numbers();
    test_csv_structure();
    test_csv_limits();
    test_csv_values();
    test_strings_and_codes();
    test_npy();
    test_idx();
    test_safetensors_rules();
    test_names();
    test_safetensors_files();
    test_files();
    test_disk_full();
    test_table();
    check_allocations("table", load_table);
    check_allocations("safetensors reader", load);
    check_allocations("safetensors writer", save);
    check_allocations("npy writer", save_array);
    check_allocations("log", open_log);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    failed += system(command) != 0;
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
