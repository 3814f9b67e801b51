// slots.c: files to the inputs of a compiled model, and its outputs to files. See slots.h.
#define _POSIX_C_SOURCE 200809L
#include "slots.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "array.h"
#include "csv.h"
#include "options.h"

// --- Which file is which input -----------------------------------------------------------------------------------------

static int port_named(const MlrtObject *object, const char *name, size_t length)
{
    for (int i = 0; i < object->n_in; i++)
        if (strlen(object->port[i].name) == length && memcmp(object->port[i].name, name, length) == 0)
            return i;
    return -1;
}

static bool is_name(const char *word, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", word[i]))
            return false;
    return length > 0;
}

static MlrtStatus fail_unknown(const MlrtObject *object, const char *word, size_t length, MlrtError *error)
{
    const char *names[MLRT_SLOTS];
    char name[64];
    for (int i = 0; i < object->n_in; i++)
        names[i] = object->port[i].name;
    snprintf(name, sizeof name, "%.*s", (int)(length < 63 ? length : 63), word);
    const char *near = mlrt_nearest(name, names, object->n_in);
    return mlrt_fail(error, MLRT_BAD_USAGE, "%s has no input '%s'%s%s%s", object->name, mlrt_quote(word, length).text,
                     near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static MlrtStatus match(const MlrtObject *object, MlrtSlots *ports, const char *word, MlrtError *error)
{
    const char *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : 0;
    int port = equals ? port_named(object, word, length) : -1;
    if (port < 0 && equals && is_name(word, length))
        return fail_unknown(object, word, length, error);
    bool named = port >= 0;
    for (int i = 0; !named && port < 0 && i < object->n_in; i++)
        port = ports->path[i] ? -1 : i;
    if (port < 0)
        return mlrt_fail(error, MLRT_BAD_USAGE, "%s takes %d input%s; %s is one too many", object->name, object->n_in,
                         object->n_in == 1 ? "" : "s", word);
    if (ports->path[port])
        return mlrt_fail(error, MLRT_BAD_USAGE, "input %s is given twice, as %s and as %s", object->port[port].name,
                         ports->path[port], equals + 1);
    ports->path[port] = named ? equals + 1 : word;
    return MLRT_OK;
}

MlrtStatus mlrt_slots_match(const MlrtObject *object, MlrtSlots *ports, int count, const char *const *words, MlrtError *error)
{
    MlrtStatus status = MLRT_OK;
    for (int named = 1; named >= 0; named--)            // what has a name first: files without one take what is left
        for (int i = 0; i < count && status == MLRT_OK; i++)
            if ((strchr(words[i], '=') != NULL) == named)
                status = match(object, ports, words[i], error);
    for (int i = 0; i < object->n_in && status == MLRT_OK; i++)
        if (!ports->path[i])
            status = mlrt_fail(error, MLRT_BAD_USAGE, "input %s %s has no file; give FILE or %s=FILE", object->port[i].name,
                               object->port[i].shape, object->port[i].name);
    return status;
}

// --- Sizes -------------------------------------------------------------------------------------------------------------

typedef struct Given { const char *path[MLRT_SLOT_SIZES]; int axis[MLRT_SLOT_SIZES]; } Given;     // who said a size first

static MlrtStatus bind(const MlrtObject *object, MlrtSlots *ports, Given *given, int port, int axis, int64_t n, MlrtError *error)
{
    int size = object->port[port].bind[axis];
    if (size < 0)
        return MLRT_OK;
    const char *path = ports->path[port], *name = object->size[size];
    if (given->path[size] && ports->size[size] != n)
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s is %lld in %s (axis %d), but %lld in %s (axis %d)", name,
                         (long long)ports->size[size], given->path[size], given->axis[size], (long long)n, path, axis);
    if (n < 1)
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s: %s is %lld on axis %d, and must be at least 1", path, name, (long long)n, axis);
    if (object->bound[size] > 0 && n > object->bound[size])
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s: %s is %lld on axis %d, and at most %lld fit%s", path, name, (long long)n, axis,
                         (long long)object->bound[size], size == 0 ? " (--batch, when compiling)" : "");
    ports->size[size] = n;
    given->path[size] = path;
    given->axis[size] = axis;
    return MLRT_OK;
}

static MlrtStatus fail_shape(const MlrtObject *object, const MlrtSlots *ports, int port, const int64_t *shape, int rank,
                             MlrtError *error)
{
    return mlrt_fail(error, MLRT_BAD_INPUT, "%s has the shape %s, and %s takes %s", ports->path[port],
                     mlrt_shape_text(shape, rank).text, object->port[port].name, object->port[port].shape);
}

static MlrtStatus bind_all(const MlrtObject *object, MlrtSlots *ports, Given *given, int port, const int64_t *shape, int rank,
                           MlrtError *error)
{
    if (rank != object->port[port].rank)
        return fail_shape(object, ports, port, shape, rank, error);
    MlrtStatus status = MLRT_OK;
    for (int i = 0; i < rank && status == MLRT_OK; i++)
        status = bind(object, ports, given, port, i, shape[i], error);
    return status;
}

// --- Reading -----------------------------------------------------------------------------------------------------------

typedef struct Shape { int rank; int64_t dim[MLRT_LIMIT_RANK]; } Shape;

static MlrtStatus keep_copy(const MlrtSlots *ports, int port, const void *from, size_t bytes, void **to, MlrtError *error)
{
    *to = malloc(bytes + 64);
    if (!*to)
        return mlrt_fail_memory(error, bytes, ports->path[port]);
    if (bytes > 0)
        memcpy(*to, from, bytes);
    return MLRT_OK;
}

static MlrtStatus read_npy(const MlrtObject *object, MlrtSlots *ports, int port, MlrtFile file, Shape *shape, MlrtError *error)
{
    MlrtArray array;
    MlrtStatus status = mlrt_npy_parse(file, &array, error);
    if (status != MLRT_OK)
        return status;
    *shape = (Shape){.rank = array.rank};
    for (int i = 0; i < array.rank; i++)
        shape->dim[i] = array.shape[i];
    const MlrtSlot *taken = &object->port[port];
    if (array.type != taken->type)
        status = mlrt_fail(error, MLRT_BAD_INPUT, "%s holds %s, and %s takes %s", ports->path[port], mlrt_type_name(array.type),
                           taken->name, mlrt_type_name(taken->type));
    else
        status = keep_copy(ports, port, array.data, array.bytes, &ports->data[port], error);
    mlrt_array_close(&array);
    return status;
}

// The shape of a port that has `rows` rows of `columns` columns: the one dimension behind the first that is not known yet
// follows from the number of columns.
static MlrtStatus shape_of_csv(const MlrtObject *object, const MlrtSlots *ports, int port, int64_t rows, int64_t columns, Shape *shape,
                               MlrtError *error)
{
    const MlrtSlot *taken = &object->port[port];
    int64_t size[MLRT_SLOT_SIZES], known = 1;
    int open = -1;
    *shape = (Shape){.rank = taken->rank};
    for (int i = 0; i < object->n_sizes; i++)
        size[i] = ports->size[i] > 0 ? ports->size[i] : 1;
    object->shape(object->user, size, port, shape->dim);
    for (int i = 1; i < taken->rank; i++) {
        if (taken->bind[i] >= 0 && ports->size[taken->bind[i]] == 0) {
            if (open >= 0)
                return mlrt_fail(error, MLRT_BAD_INPUT, "%s: a CSV file cannot say both %s and %s of %s; give a .npy file",
                                 ports->path[port], object->size[taken->bind[open]], object->size[taken->bind[i]], taken->shape);
            open = i;
        } else {
            known *= shape->dim[i];
        }
    }
    if (taken->rank > 0)
        shape->dim[0] = rows;
    if (open >= 0 && known > 0 && columns % known == 0)
        shape->dim[open] = columns / known;
    else if (columns != known || (taken->rank == 0 && rows != 1))
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s has %lld rows of %lld columns, and %s takes %s: %lld columns", ports->path[port],
                         (long long)rows, (long long)columns, taken->name, taken->shape, (long long)known);
    return MLRT_OK;
}

static MlrtStatus read_columns(const MlrtObject *object, MlrtSlots *ports, int port, const MlrtCsv *csv, MlrtError *error)
{
    int columns = mlrt_csv_columns(csv);
    size_t bytes = 0, count = 0;
    int *all = mlrt_alloc_array((size_t)columns, sizeof *all);
    bool fits = mlrt_size_mul((size_t)columns, mlrt_csv_rows(csv), &count) &&
                mlrt_size_mul(count, mlrt_type_bytes(object->port[port].type), &bytes);
    ports->data[port] = fits ? malloc(bytes + 64) : NULL;
    MlrtStatus status = all && ports->data[port] ? MLRT_OK : mlrt_fail_memory(error, bytes, ports->path[port]);
    for (int i = 0; status == MLRT_OK && i < columns; i++)
        all[i] = i;
    if (status == MLRT_OK)
        status = mlrt_csv_numbers(csv, all, columns, object->port[port].type, ports->data[port], error);
    free(all);
    return status;
}

static MlrtStatus read_csv(const MlrtObject *object, MlrtSlots *ports, int port, MlrtFile file, Shape *shape, MlrtError *error)
{
    MlrtCsv *csv;
    MlrtCsvOptions options = {.allow_nonfinite = true};
    MlrtStatus status = mlrt_csv_parse(file, &options, &csv, error);
    if (status != MLRT_OK)
        return status;
    status = shape_of_csv(object, ports, port, (int64_t)mlrt_csv_rows(csv), mlrt_csv_columns(csv), shape, error);
    if (status == MLRT_OK)
        status = read_columns(object, ports, port, csv, error);
    mlrt_csv_close(csv);
    return status;
}

static bool ends_with(const char *path, const char *end)
{
    size_t length = strlen(path), tail = strlen(end);
    return length >= tail && strcmp(path + length - tail, end) == 0;
}

// Files of these kinds are known not to be CSV.
static MlrtStatus refuse_kind(const char *path, MlrtError *error)
{
    static const char *const kinds[][2] = {
        {".npz", "unpack it; each array in it is a .npy file"},   {".pb", "save the array as .npy"},
        {".pt", "save the tensor by numpy.save(file, x.numpy())"}, {".safetensors", "save the tensor as .npy"},
        {".h5", "save the array as .npy"},                        {".parquet", "save the table as CSV"},
        {".png", "save the pixels as .npy"},                      {".jpg", "save the pixels as .npy"},
        {".jpeg", "save the pixels as .npy"},                     {".xlsx", "save the sheet as CSV"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (ends_with(path, kinds[i][0]))
            return mlrt_fail(error, MLRT_BAD_FILE, "%s: inputs are .npy or CSV files, not %s: %s", path, kinds[i][0], kinds[i][1]);
    return MLRT_OK;
}

static MlrtStatus read_port(const MlrtObject *object, MlrtSlots *ports, Given *given, int port, bool npy, Shape *shape,
                            MlrtError *error)
{
    MlrtFile file;
    MlrtStatus status = refuse_kind(ports->path[port], error);
    if (status == MLRT_OK)
        status = mlrt_file_open(ports->path[port], &file, error);
    if (status != MLRT_OK)
        return status;
    bool is_npy = ends_with(ports->path[port], ".npy") || (file.bytes >= 6 && memcmp(file.at, "\x93NUMPY", 6) == 0);
    if (is_npy != npy) {
        mlrt_file_close(&file);
        return MLRT_OK;                                 // its turn comes, or has been
    }
    status = npy ? read_npy(object, ports, port, file, shape, error) : read_csv(object, ports, port, file, shape, error);
    return status == MLRT_OK ? bind_all(object, ports, given, port, shape->dim, shape->rank, error) : status;
}

// Dimensions that are made of several sizes can be compared only now.
static MlrtStatus check_shape(const MlrtObject *object, const MlrtSlots *ports, int port, const Shape *had, MlrtError *error)
{
    int64_t dim[MLRT_LIMIT_RANK];
    object->shape(object->user, ports->size, port, dim);
    for (int i = 0; i < had->rank; i++)
        if (dim[i] != had->dim[i])
            return mlrt_fail(error, MLRT_BAD_INPUT, "%s has the shape %s, and %s takes %s, here %s", ports->path[port],
                             mlrt_shape_text(had->dim, had->rank).text, object->port[port].name, object->port[port].shape,
                             mlrt_shape_text(dim, had->rank).text);
    return MLRT_OK;
}

static MlrtStatus check_sizes(const MlrtObject *object, MlrtSlots *ports, MlrtError *error)
{
    if (ports->size[0] == 0)
        ports->size[0] = 1;
    for (int i = 1; i < object->n_sizes; i++)
        if (ports->size[i] == 0)
            return mlrt_fail(error, MLRT_BAD_INPUT, "no input of %s says how large %s is", object->name, object->size[i]);
    return MLRT_OK;
}

MlrtStatus mlrt_slots_read(const MlrtObject *object, MlrtSlots *ports, MlrtError *error)
{
    Given given = {{0}, {0}};
    Shape had[MLRT_SLOTS];
    MlrtStatus status = MLRT_OK;
    if (object->n_in + object->n_out > MLRT_SLOTS || object->n_sizes > MLRT_SLOT_SIZES)
        return mlrt_fail(error, MLRT_TOO_LARGE, "%s has more than %d inputs, outputs, or %d named sizes", object->name, MLRT_SLOTS,
                         MLRT_SLOT_SIZES);
    for (int npy = 1; npy >= 0; npy--)                  // .npy files know their shapes; CSV files may follow from them
        for (int i = 0; i < object->n_in && status == MLRT_OK; i++)
            status = read_port(object, ports, &given, i, npy, &had[i], error);
    if (status == MLRT_OK)
        status = check_sizes(object, ports, error);
    for (int i = 0; i < object->n_in && status == MLRT_OK; i++)
        status = check_shape(object, ports, i, &had[i], error);
    return status;
}

// --- Running and writing -----------------------------------------------------------------------------------------------

static MlrtStatus make_output(const MlrtObject *object, MlrtSlots *ports, int port, MlrtError *error)
{
    int64_t dim[MLRT_LIMIT_RANK];
    size_t count = 0, bytes = 0;
    object->shape(object->user, ports->size, port, dim);
    bool fits = mlrt_shape_count(dim, object->port[port].rank, &count) &&
                mlrt_size_mul(count, mlrt_type_bytes(object->port[port].type), &bytes);
    ports->data[port] = fits ? calloc(1, bytes + 64) : NULL;
    return ports->data[port] ? MLRT_OK : mlrt_fail_memory(error, bytes, object->port[port].name);
}

MlrtStatus mlrt_slots_run(const MlrtObject *object, MlrtSlots *ports, const void *weights, MlrtError *error)
{
    MlrtStatus status = MLRT_OK;
    for (int i = 0; i < object->n_out && status == MLRT_OK; i++)
        status = make_output(object, ports, object->n_in + i, error);
    if (status != MLRT_OK)
        return status;
    void *arena = NULL;
    if (posix_memalign(&arena, 64, object->arena_bytes + 64) != 0)
        return mlrt_fail_memory(error, object->arena_bytes, "the activations");
    const char *wrong = object->run(object->user, (const void *const *)ports->data, ports->data + object->n_in, ports->size, weights,
                                    arena, object->arena_bytes);
    free(arena);
    return wrong ? mlrt_fail(error, MLRT_BAD_INPUT, "%s: %s", object->name, wrong) : MLRT_OK;
}

// npy files have no bf16: each is the upper half of an f32, which is written.
static MlrtStatus write_bf16(const char *path, const MlrtSlot *port, const int64_t *dim, const void *data, MlrtError *error)
{
    size_t count = 0;
    uint32_t *wide = mlrt_shape_count(dim, port->rank, &count) ? mlrt_alloc_array(count, sizeof *wide) : NULL;
    if (!wide)
        return mlrt_fail_memory(error, count, path);
    for (size_t i = 0; i < count; i++)
        wide[i] = (uint32_t)((const uint16_t *)data)[i] << 16;
    MlrtStatus status = mlrt_npy_write(path, MLRT_f32, dim, port->rank, wide, error);
    free(wide);
    return status;
}

static MlrtStatus write_output(const MlrtObject *object, const MlrtSlots *ports, int output, const char *folder, MlrtError *error)
{
    const MlrtSlot *port = &object->port[object->n_in + output];
    int64_t dim[MLRT_LIMIT_RANK];
    size_t room = strlen(folder) + 40;
    char *path = malloc(room);
    if (!path)
        return mlrt_fail_memory(error, room, folder);
    snprintf(path, room, "%s/output_%d.npy", folder, output);
    object->shape(object->user, ports->size, object->n_in + output, dim);
    const void *data = ports->data[object->n_in + output];
    MlrtStatus status = port->type == MLRT_bf16 ? write_bf16(path, port, dim, data, error)
                                                : mlrt_npy_write(path, port->type, dim, port->rank, data, error);
    free(path);
    return status;
}

MlrtStatus mlrt_slots_write(const MlrtObject *object, const MlrtSlots *ports, const char *folder, MlrtError *error)
{
    struct stat info;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return mlrt_fail(error, MLRT_DISK, "%s: the folder cannot be made: %s", folder, strerror(errno));
    if (stat(folder, &info) != 0 || !S_ISDIR(info.st_mode))
        return mlrt_fail(error, MLRT_DISK, "%s: is not a folder", folder);
    MlrtStatus status = MLRT_OK;
    for (int i = 0; i < object->n_out && status == MLRT_OK; i++)
        status = write_output(object, ports, i, folder, error);
    return status;
}

void mlrt_slots_close(MlrtSlots *ports)
{
    for (int i = 0; i < MLRT_SLOTS; i++)
        free(ports->data[i]);
    *ports = (MlrtSlots){0};
}

// --- A program of one object -------------------------------------------------------------------------------------------

static void print_help(const MlrtObject *object, const char *program)
{
    printf("usage: %s [FILE | NAME=FILE]... --out DIR\n\nRuns %s on .npy or CSV files and writes DIR/output_0.npy, ...\n\nInputs\n",
           program, object->name);
    for (int i = 0; i < object->n_in + object->n_out; i++)
        printf("%s  %s %s %s\n", i == object->n_in ? "\nOutputs\n" : "", object->port[i].name, mlrt_type_name(object->port[i].type),
               object->port[i].shape);
    for (int i = 0; i < object->n_sizes; i++)
        if (object->size[i][0])
            printf("%s  %s: 1 ... %lld\n", i == 0 ? "\nSizes\n" : "", object->size[i], (long long)object->bound[i]);
    printf("\nExample\n  %s %s=inputs.npy --out answers\n\nExit codes: 0 done, 1 bad input, 2 bad usage, 3 a fault of ours.\n", program,
           object->n_in > 0 ? object->port[0].name : "x");
}

static MlrtStatus run_files(const MlrtObject *object, int count, const char *const *words, const char *folder, MlrtError *error)
{
    MlrtSlots ports = {0};
    MlrtStatus status = mlrt_slots_match(object, &ports, count, words, error);
    if (status == MLRT_OK)
        status = mlrt_slots_read(object, &ports, error);
    if (status == MLRT_OK)
        status = mlrt_slots_run(object, &ports, NULL, error);
    if (status == MLRT_OK)
        status = mlrt_slots_write(object, &ports, folder, error);
    mlrt_slots_close(&ports);
    return status;
}

// The words that are no options stay, in order; --out takes the next.
static MlrtStatus take_words(int argc, char **argv, const char **words, int *count, const char **folder, MlrtError *error)
{
    for (int i = 1; i < argc; i++) {
        bool out = strcmp(argv[i], "--out") == 0;
        if (out && i + 1 == argc)
            return mlrt_fail(error, MLRT_BAD_USAGE, "--out needs an argument: --out DIR");
        if (out)
            *folder = argv[++i];
        else if (strncmp(argv[i], "--out=", 6) == 0)
            *folder = argv[i] + 6;
        else if (argv[i][0] == '-')
            return mlrt_fail(error, MLRT_BAD_USAGE, "unknown option %s (--help lists them)", mlrt_quote(argv[i], strlen(argv[i])).text);
        else
            words[(*count)++] = argv[i];
    }
    return *folder ? MLRT_OK : mlrt_fail(error, MLRT_BAD_USAGE, "--out DIR says where the outputs go");
}

int mlrt_object_main(const MlrtObject *object, int argc, char **argv)
{
    MlrtError error = {0};
    const char *folder = NULL;
    int count = 0;
    signal(SIGXFSZ, SIG_IGN);
    if (argc < 2 || strcmp(argv[1], "--help") == 0) {
        print_help(object, argc > 0 ? argv[0] : object->name);
        return argc < 2 ? 2 : 0;
    }
    const char **words = mlrt_alloc_array((size_t)argc, sizeof *words);
    MlrtStatus status = words ? take_words(argc, argv, words, &count, &folder, &error) : mlrt_fail_memory(&error, (size_t)argc, "arguments");
    if (status == MLRT_OK)
        status = run_files(object, count, words, folder, &error);
    free(words);
    if (status != MLRT_OK)
        fprintf(stderr, "%s: error: %s\n", argv[0], error.text);
    return mlrt_status_exit_code(status);
}
