// npy.c: makes and compares .npy files for the tests of the command line.
//
//   npy make FILE TYPE SHAPE SEED     random elements: floats in -1 ... 1, integers in 0 ... 9; SHAPE is "3,1,8,8", "" is one value
//   npy csv FILE.csv FILE.npy         the f32 elements as CSV: the first axis as rows
//   npy prefix OUT IN PREFIX          a safetensors file with PREFIX before every name
//   npy same A B TOLERANCE            same type and shape, elements within TOLERANCE * (1 + |a|); f32 and integers
#include "array.h"
#include "safetensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int complain(const MlrtError *error)
{
    fprintf(stderr, "npy: %s\n", error->text);
    return 1;
}

static double draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 33) / (double)(1u << 31);
}

static int make(const char *path, const char *type_name, const char *shape_text, uint64_t seed)
{
    int64_t shape[MLRT_LIMIT_RANK];
    int rank = 0;
    size_t count = 0;
    MlrtType type = MLRT_f32;
    MlrtError error = {0};
    for (int i = 0; i < MLRT_TYPE_COUNT; i++)
        type = strcmp(mlrt_type_name((MlrtType)i), type_name) == 0 ? (MlrtType)i : type;
    for (char *at = (char *)(uintptr_t)shape_text; *at && rank < MLRT_LIMIT_RANK; at += *at == ',')
        shape[rank++] = strtoll(at, &at, 10);
    if (!mlrt_shape_count(shape, rank, &count))
        return 2;
    char *data = calloc(count + 1, 8);
    for (size_t i = 0; data && i < count; i++)
        if (type == MLRT_f32)
            ((float *)(void *)data)[i] = (float)(2 * draw(&seed) - 1);
        else if (type == MLRT_f64)
            ((double *)(void *)data)[i] = 2 * draw(&seed) - 1;
        else if (type == MLRT_i64)
            ((int64_t *)(void *)data)[i] = (int64_t)(10 * draw(&seed));
        else
            ((int32_t *)(void *)data)[i] = (int32_t)(10 * draw(&seed));
    MlrtStatus status = data ? mlrt_npy_write(path, type, shape, rank, data, &error) : MLRT_OUT_OF_MEMORY;
    free(data);
    return status == MLRT_OK ? 0 : complain(&error);
}

static int write_csv(const char *path, const char *from)
{
    MlrtArray a;
    MlrtError error = {0};
    if (mlrt_npy_open(from, &a, &error) != MLRT_OK)
        return complain(&error);
    FILE *out = fopen(path, "w");
    size_t rows = a.rank > 0 ? (size_t)a.shape[0] : 1, columns = rows > 0 ? a.count / rows : 0;
    for (size_t i = 0; out && i < rows * columns; i++)
        fprintf(out, "%.9g%c", (double)((const float *)a.data)[i], (i + 1) % columns == 0 ? '\n' : ',');
    mlrt_array_close(&a);
    return out && fclose(out) == 0 ? 0 : 1;
}

static int put_prefix(const char *out, const char *in, const char *prefix)
{
    MlrtTensors tensors;
    MlrtError error = {0};
    if (mlrt_safetensors_open(in, &tensors, &error) != MLRT_OK)
        return complain(&error);
    for (size_t i = 0; i < tensors.count; i++) {
        char *name = malloc(strlen(prefix) + strlen(tensors.tensor[i].name) + 1);
        if (!name)
            return 1;
        strcpy(name, prefix);
        tensors.tensor[i].name = strcat(name, tensors.tensor[i].name);
    }
    MlrtStatus status = mlrt_safetensors_write(out, tensors.tensor, tensors.count, NULL, 0, &error);
    return status == MLRT_OK ? 0 : complain(&error);
}

static double element(const MlrtArray *a, size_t i)
{
    return a->type == MLRT_f32   ? (double)((const float *)a->data)[i]
         : a->type == MLRT_i32   ? (double)((const int32_t *)a->data)[i]
         : a->type == MLRT_i64   ? (double)((const int64_t *)a->data)[i]
                                 : NAN;
}

static int same(const char *one, const char *other, double tolerance)
{
    MlrtArray a, b;
    MlrtError error = {0};
    if (mlrt_npy_open(one, &a, &error) != MLRT_OK || mlrt_npy_open(other, &b, &error) != MLRT_OK)
        return complain(&error);
    bool good = a.type == b.type && a.rank == b.rank && a.count == b.count && memcmp(a.shape, b.shape, (size_t)a.rank * 8) == 0;
    double worst = 0;
    for (size_t i = 0; good && i < a.count; i++) {
        double x = element(&a, i), y = element(&b, i), off = fabs(x - y) / (1 + fabs(x));
        worst = off > worst || isnan(off) ? off : worst;
    }
    if (!good || !(worst <= tolerance))
        fprintf(stderr, "npy: %s %s and %s %s differ, by %g\n", one, mlrt_shape_text(a.shape, a.rank).text, other,
                mlrt_shape_text(b.shape, b.rank).text, worst);
    return good && worst <= tolerance && a.count > 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 6 && strcmp(argv[1], "make") == 0)
        return make(argv[2], argv[3], argv[4], strtoull(argv[5], NULL, 10));
    if (argc == 4 && strcmp(argv[1], "csv") == 0)
        return write_csv(argv[2], argv[3]);
    if (argc == 5 && strcmp(argv[1], "prefix") == 0)
        return put_prefix(argv[2], argv[3], argv[4]);
    if (argc == 5 && strcmp(argv[1], "same") == 0)
        return same(argv[2], argv[3], atof(argv[4]));
    fputs("usage: npy make|csv|same ...\n", stderr);
    return 2;
}
