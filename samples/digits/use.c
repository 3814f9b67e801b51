// use.c: a program that has the trained digits net in it. Reads rows of 64 pixels (0 … 16) and a digit, and says how many of
// the rows that were held out of training it gets right. Which those are stands in the split.csv of the run.
//
//   mlc compile digits.net --emit obj --batch 64 --weights runs/latest/weights/best.safetensors
//   cc use.c digits.o -lm -o use && ./use optdigits.csv runs/latest/split.csv
#include "digits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIXELS = 64, DIGITS = 10 };

typedef struct Sample { float pixel[PIXELS]; int digit; } Sample;

static int read_sample(FILE *file, Sample *sample)
{
    for (int i = 0; i < PIXELS; i++)
        if (fscanf(file, "%f,", &sample->pixel[i]) != 1)
            return 0;
    return fscanf(file, "%d", &sample->digit) == 1;
}

// The next line of split.csv: "17,valid". 1: the row was held out; 0: it was not; -1: there is none.
static int read_part(FILE *file)
{
    long row;
    char part[8];
    return fscanf(file, "%ld,%7s", &row, part) != 2 ? -1 : strcmp(part, "train") != 0;
}

static int largest(const float x[DIGITS])
{
    int best = 0;
    for (int i = 1; i < DIGITS; i++)
        if (x[i] > x[best])
            best = i;
    return best;
}

// What the net says about one sample, -1 after a message.
static int classify(const Sample *sample, void *arena, size_t arena_bytes)
{
    float image[PIXELS], logits[DIGITS];
    const digits_fields fields = {.columns_0_to_63 = sample->pixel};
    const digits_sample input = {.image = image};
    const digits_io io = {.image = image, .logits = logits};
    digits_status status = digits_prepare(&fields, &input);             // as the `data` section of the net says
    if (status == digits_OK)
        status = digits_run(&io, 1, arena, arena_bytes);
    if (status == digits_OK)
        return largest(logits);
    fprintf(stderr, "use: %s\n", digits_status_text(status));
    return -1;
}

int main(int argc, char **argv)
{
    FILE *data = argc == 3 ? fopen(argv[1], "r") : NULL, *split = argc == 3 ? fopen(argv[2], "r") : NULL;
    const size_t arena_bytes = digits_arena_bytes(1);
    void *arena = aligned_alloc(64, arena_bytes);
    if (data == NULL || split == NULL || arena == NULL) {
        fprintf(stderr, "usage: use DATA.csv SPLIT.csv\n");
        return 2;
    }
    Sample sample;
    int rows = 0, right = 0, held_out, answer = 0;
    if (fscanf(split, "%*[^\n]") == EOF)                                // its header
        return 1;
    while (answer >= 0 && (held_out = read_part(split)) >= 0 && read_sample(data, &sample)) {
        if (!held_out)
            continue;
        answer = classify(&sample, arena, arena_bytes);
        right += answer == sample.digit;
        rows++;
    }
    printf("%d of %d held-out rows right\n", right, rows);
    free(arena);
    fclose(data);
    fclose(split);
    return answer < 0 || rows == 0;
}
