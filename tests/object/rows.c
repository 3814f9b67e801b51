// rows.c: the rows of a CSV file through an object, printed as a training program's --predict prints them: nine digits tell
// every float from every other, so equal text is equal bits. Usage: rows FILE.csv BATCH
//
// Compiled with MODEL (the prefix), HEADER, INPUT, WIDTH (columns of a row that make the input), OUTPUTS(X) = X(name, count) …
// FIELD: the raw columns go through MODEL_prepare; else they are divided by 16, as the nets here say.
#include HEADER

#include <stdio.h>
#include <stdlib.h>

#define JOIN(a, b) a##b
#define NAME(model, part) JOIN(model, part)

#define ROOM(name, count) static float name[64 * (count)];
#define POINT(name, count) .name = name,
#define PRINT(name, count) print(name + row * (count), count);

static float INPUT[64 * WIDTH];
OUTPUTS(ROOM)

static int column;                      // of the line being printed

static void print(const float *x, int count)
{
    for (int i = 0; i < count; i++)
        printf("%s%.9g", column++ > 0 ? "," : "", (double)x[i]);
}

// One line of numbers: the first WIDTH make the input of a sample. 0 at the end of the file.
static int read_row(FILE *file, float *input)
{
    float raw[WIDTH];
    int at = 0, c;
    float value;
    while (fscanf(file, "%f", &value) == 1) {
        if (at < WIDTH)
            raw[at] = value;
        at++;
        c = fgetc(file);
        if (c == '\n' || c == EOF)
            break;
    }
    if (at < WIDTH)
        return 0;
#ifdef FIELD
    const NAME(MODEL, _fields) fields = {.FIELD = raw};
    const NAME(MODEL, _sample) sample = {.INPUT = input};
    if (NAME(MODEL, _prepare)(&fields, &sample) != NAME(MODEL, _OK))
        exit(1);
#else
    for (int i = 0; i < WIDTH; i++)
        input[i] = raw[i] / 16;
#endif
    return 1;
}

int main(int argc, char **argv)
{
    FILE *file = argc == 3 ? fopen(argv[1], "r") : NULL;
    const int batch = argc == 3 ? atoi(argv[2]) : 0;
    const size_t room = NAME(MODEL, _arena_bytes)(batch);
    char *arena = room > 0 ? aligned_alloc(64, (room + 63) / 64 * 64) : NULL;
    if (file == NULL || arena == NULL || batch > 64)
        return 2;
    const NAME(MODEL, _io) io = {.INPUT = INPUT, OUTPUTS(POINT)};
    for (int rows = 1; rows > 0;) {
        for (rows = 0; rows < batch && read_row(file, INPUT + rows * WIDTH);)
            rows++;
        if (rows > 0 && NAME(MODEL, _run)(&io, rows, arena, room) != NAME(MODEL, _OK))
            return 1;
        for (int row = 0; row < rows; row++) {
            column = 0;
            OUTPUTS(PRINT)
            putchar('\n');
        }
    }
    free(arena);
    return fclose(file);
}
