// parity.c: begins a run with the weights that record.py begins with, and compares what came out with what PyTorch recorded.
//
//   parity fill FILE OUT                    FILE with its tensors' values replaced by those of record.py
//   parity compare NAME LOG WEIGHTS ANSWERS NAME.expected and NAME.safetensors against a log, weights and predictions
//   parity evaluation NAME TABLE            the line of --eval
//
// An error of a parameter is the largest difference of an element over the largest element of that tensor.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "csv.h"
#include "safetensors.h"

static const double LOSS_BOUND = 1e-5, PARAMETER_BOUND = 1e-4, ANSWER_BOUND = 1e-4;

static MlrtError error;

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "parity: %s%s\n", what, detail);
    exit(1);
}

static void check(MlrtStatus status)
{
    if (status != MLRT_OK)
        die(error.text, "");
}

static void *take(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory)
        die("no memory", "");
    return memory;
}

static int64_t elements(const MlrtTensor *t)
{
    int64_t count = 1;
    for (int i = 0; i < t->rank; i++)
        count *= t->shape[i];
    return count;
}

static bool ends_with(const char *text, const char *end)
{
    size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

// --- fill --------------------------------------------------------------------------------------------------------------

static uint64_t hash(const char *name)
{
    uint64_t h = 14695981039346656037u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 1099511628211u;
    return h;
}

static double uniform(uint64_t seed, int64_t i)                 // -1 … 1
{
    uint64_t x = seed + (uint64_t)(i + 1) * 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    x ^= x >> 31;
    return (double)(x >> 11) / 4503599627370496.0 - 1.0;
}

static double scaled(const MlrtTensor *t, double r)
{
    int64_t fan = 1;
    for (int i = 1; i < t->rank; i++)
        fan *= t->shape[i];
    if (t->rank >= 2)
        return r * sqrt(3.0 / (double)fan);
    if (ends_with(t->name, ".running_var") || ends_with(t->name, ".weight"))
        return 1.0 + 0.1 * r;
    return 0.1 * r;
}

static MlrtTensor filled(const MlrtTensor *from)
{
    MlrtTensor t = *from;
    float *value = take((size_t)elements(&t) * sizeof *value);
    for (int64_t i = 0; i < elements(&t); i++)
        value[i] = (float)scaled(&t, uniform(hash(t.name), i));
    if (t.type != MLRT_f32)
        die("not f32: ", t.name);
    t.data = value;
    return t;
}

static int fill(const char *from, const char *to)
{
    MlrtTensors file;
    check(mlrt_safetensors_open(from, &file, &error));
    MlrtTensor *made = take(file.count * sizeof *made);
    for (size_t i = 0; i < file.count; i++)
        made[i] = filled(&file.tensor[i]);
    check(mlrt_safetensors_write(to, made, file.count, NULL, 0, &error));
    for (size_t i = 0; i < file.count; i++)
        free((void *)made[i].data);
    free(made);
    mlrt_safetensors_close(&file);
    return 0;
}

// --- compare -----------------------------------------------------------------------------------------------------------

static int wrong;

static void judge(const char *what, double worst, double bound, const char *where)
{
    bool good = worst <= bound;         // not for NaN
    printf("  %-10s off by %.1e at most (%s), bound %.0e%s\n", what, worst, where, bound, good ? "" : "  WRONG");
    wrong += !good;
}

static FILE *open_text(const char *name, const char *ending)
{
    char path[1024];
    snprintf(path, sizeof path, "%s%s", name, ending);
    FILE *file = fopen(path, "r");
    if (!file)
        die(path, ": cannot be opened");
    return file;
}

static void compare_losses(const char *name, const char *log_path)
{
    FILE *expected = open_text(name, ".expected"), *log = open_text(log_path, "");
    char line[512], other[512], where[64] = "none";
    double worst = 0;
    int steps = 0;
    while (fgets(line, sizeof line, expected)) {
        int step, logged;
        double loss, got;
        if (sscanf(line, "step %d %lf", &step, &loss) != 2)
            continue;
        if (!fgets(other, sizeof other, log) || sscanf(other, "{\"step\":%d,\"loss\":%lf", &logged, &got) != 2 || logged != step)
            die("the log lacks a line: ", line);
        double off = fabs(got - loss) / fabs(loss);
        if (!(off <= worst)) {
            worst = off;
            snprintf(where, sizeof where, "step %d: %.9g, here %.9g", step, loss, got);
        }
        steps++;
    }
    if (steps == 0 || fgets(other, sizeof other, log))
        die("the log has another number of steps than ", name);
    judge("losses", worst, LOSS_BOUND, where);
    fclose(expected);
    fclose(log);
}

static float f32_at(const MlrtTensor *t, int64_t i)
{
    float value;
    memcpy(&value, (const char *)t->data + (size_t)i * sizeof value, sizeof value);
    return value;
}

static double norm_of(const MlrtTensor *t)
{
    double sum = 0;
    for (int64_t i = 0; i < elements(t); i++)
        sum += (double)f32_at(t, i) * f32_at(t, i);
    return sqrt(sum);
}

static double norm_recorded(const MlrtTensors *recorded, const char *name)
{
    char key[1100];
    double value;
    snprintf(key, sizeof key, "%s.norm", name);
    const MlrtTensor *t = mlrt_safetensors_find(recorded, key);
    if (!t || t->type != MLRT_f64 || elements(t) != 1)
        die("not recorded: ", key);
    memcpy(&value, t->data, sizeof value);
    return value;
}

// Every `stride`-th element, over the largest of those recorded; and the length of the whole.
static double tensor_error(const MlrtTensor *got, const MlrtTensors *recorded, int64_t stride)
{
    const MlrtTensor *want = mlrt_safetensors_find(recorded, got->name);
    if (!want || want->type != MLRT_f32 || elements(want) != (elements(got) + stride - 1) / stride)
        die("not recorded, or with another number of elements: ", got->name);
    double off = 0, largest = 0, norm = norm_recorded(recorded, got->name);
    for (int64_t i = 0; i < elements(want); i++) {
        double distance = fabs((double)f32_at(got, i * stride) - f32_at(want, i));
        off = distance <= off ? off : distance;
        largest = fmax(largest, fabs(f32_at(want, i)));
    }
    double by_norm = fabs(norm_of(got) - norm) / norm;
    off /= largest;
    return off >= by_norm || off != off ? off : by_norm;
}

static void compare_parameters(const MlrtTensors *recorded, const char *path)
{
    MlrtTensors file;
    const char *text = mlrt_safetensors_metadata(recorded, "stride"), *where = "none";
    check(mlrt_safetensors_open(path, &file, &error));
    if (!text)
        die("the recording does not say its stride", "");
    double worst = 0;
    for (size_t i = 0; i < file.count; i++) {
        double off = tensor_error(&file.tensor[i], recorded, strtoll(text, NULL, 10));
        if (getenv("PARITY_ALL"))
            printf("    %-40s %.2e\n", file.tensor[i].name, off);
        if (!(off <= worst)) {
            worst = off;
            where = file.tensor[i].name;
        }
    }
    if (2 * file.count + 1 != recorded->count)
        die("the recording has parameters that the program does not have", "");
    judge("parameters", worst, PARAMETER_BOUND, where);
    mlrt_safetensors_close(&file);
}

// The outputs are the last columns of the predictions; the first rows were recorded.
static void compare_answers(const MlrtTensors *recorded, const char *path)
{
    const MlrtTensor *want = mlrt_safetensors_find(recorded, "answers");
    MlrtCsv *csv;
    check(mlrt_csv_open(path, &(MlrtCsvOptions){.header = MLRT_HEADER_YES}, &csv, &error));
    if (!want || want->rank != 2 || (int64_t)mlrt_csv_rows(csv) < want->shape[0] || mlrt_csv_columns(csv) < want->shape[1])
        die(path, ": not as many answers as were recorded");
    int count = (int)want->shape[1], *columns = take((size_t)count * sizeof *columns);
    double *got = take(mlrt_csv_rows(csv) * (size_t)count * sizeof *got), off = 0, largest = 0;
    for (int i = 0; i < count; i++)
        columns[i] = mlrt_csv_columns(csv) - count + i;
    check(mlrt_csv_numbers(csv, columns, count, MLRT_f64, got, &error));
    for (int64_t i = 0; i < elements(want); i++) {
        double distance = fabs(got[i] - f32_at(want, i));
        off = distance <= off ? off : distance;
        largest = fmax(largest, fabs(f32_at(want, i)));
    }
    judge("answers", off / largest, ANSWER_BOUND, "of the trained net, in evaluation");
    free(columns);
    free(got);
    mlrt_csv_close(csv);
}

static int compare(const char *name, const char *log, const char *weights, const char *answers)
{
    MlrtTensors recorded;
    char path[1024];
    snprintf(path, sizeof path, "%s.safetensors", name);
    check(mlrt_safetensors_open(path, &recorded, &error));
    compare_losses(name, log);
    compare_parameters(&recorded, weights);
    compare_answers(&recorded, answers);
    mlrt_safetensors_close(&recorded);
    return wrong > 0;
}

// --- evaluation --------------------------------------------------------------------------------------------------------

// The table has four or five digits of each: what is recorded has to round to what it shows.
static void compare_shown(const char *what, double want, const char *shown)
{
    const char *point = strchr(shown, '.');
    char text[64];
    snprintf(text, sizeof text, "%.*f", point ? (int)strspn(point + 1, "0123456789") : 0, want);
    double off = fabs(strtod(text, NULL) - strtod(shown, NULL));
    judge(what, off, 1.01 * pow(10, point ? -(double)strspn(point + 1, "0123456789") : 0), shown);
}

static int evaluation(const char *name, const char *table_path)
{
    FILE *expected = open_text(name, ".expected"), *table = open_text(table_path, "");
    char line[512], loss_shown[64] = "", accuracy_shown[64] = "";
    double loss = NAN, accuracy = NAN;
    while (fgets(line, sizeof line, expected))
        sscanf(line, "evaluation %lf %lf", &loss, &accuracy);
    while (fgets(line, sizeof line, table))
        sscanf(line, " train %*s %63s %63s", loss_shown, accuracy_shown);
    if (!*accuracy_shown)
        die(table_path, " has no line for the training part");
    compare_shown("evaluation", loss, loss_shown);
    compare_shown("accuracy", accuracy, accuracy_shown);
    fclose(expected);
    fclose(table);
    return wrong > 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "fill") == 0)
        return fill(argv[2], argv[3]);
    if (argc == 6 && strcmp(argv[1], "compare") == 0)
        return compare(argv[2], argv[3], argv[4], argv[5]);
    if (argc == 4 && strcmp(argv[1], "evaluation") == 0)
        return evaluation(argv[2], argv[3]);
    fprintf(stderr, "usage: parity fill FILE OUT | compare NAME LOG WEIGHTS ANSWERS | evaluation NAME TABLE\n");
    return 2;
}
