// use.c: a program that has the trained digits net in it. Reads rows of 64 pixels (0 … 16) and a digit from a CSV file, and
// says how many it gets right.
//
//   mlc compile digits.net --emit obj --batch 64 --weights runs/latest/weights/best.safetensors -o digits.o
//   cc use.c digits.o -lm -o use && ./use optdigits.csv
#include "digits.h"

#include <stdio.h>

static _Alignas(64) char arena[1 << 20];

static int largest(const float *x, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (x[i] > x[best])
            best = i;
    return best;
}

int main(int argc, char **argv)
{
    FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (file == NULL) {
        fprintf(stderr, "usage: use FILE.csv\n");
        return 2;
    }
    float image[64], logits[10];
    int rows = 0, right = 0, pixel = 0, value;
    while (fscanf(file, "%d%*1[,\n]", &value) == 1) {
        if (pixel < 64) {
            image[pixel++] = (float)value / 16;         // as the `data` section of digits.net says
            continue;
        }
        digits_status status = digits_run(&(digits_io){.image = image, .logits = logits}, 1, arena, sizeof arena);
        if (status != digits_OK) {
            fprintf(stderr, "use: %s\n", digits_status_text(status));
            return 1;
        }
        right += largest(logits, 10) == value;
        rows++;
        pixel = 0;
    }
    fclose(file);
    printf("%d of %d right (all rows of the file, those trained on included)\n", right, rows);
    return rows == 0;
}
