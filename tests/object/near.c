// near.c: the largest difference of two files of numbers, which may be at most TOLERANCE of the largest number (at least 1).
// Usage: near A B TOLERANCE. Files are text, or .npy of f32.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t read_numbers(const char *path, double **numbers)
{
    static char bytes[1 << 24];
    FILE *file = fopen(path, "rb");
    const size_t length = file != NULL ? fread(bytes, 1, sizeof bytes - 1, file) : 0;
    size_t count = 0;
    if (file != NULL)
        fclose(file);
    bytes[length] = 0;
    *numbers = malloc((length / 2 + 2) * sizeof **numbers);
    if (*numbers == NULL)
        return 0;
    if (length > 10 && memcmp(bytes, "\x93NUMPY", 6) == 0 && strstr(bytes + 10, "'<f4'") != NULL) {
        const size_t start = 10 + (unsigned char)bytes[8] + 256 * (size_t)(unsigned char)bytes[9];
        for (size_t at = start; at + 4 <= length; at += 4) {
            float x;
            memcpy(&x, bytes + at, 4);
            (*numbers)[count++] = (double)x;
        }
        return count;
    }
    for (char *at = bytes, *end; *at != 0; at = end) {
        const double x = strtod(at, &end);
        if (end == at)
            end++;
        else
            (*numbers)[count++] = x;
    }
    return count;
}

int main(int argc, char **argv)
{
    double *a, *b, most = 0, scale = 1;
    if (argc != 4)
        return 2;
    const size_t count = read_numbers(argv[1], &a), other = read_numbers(argv[2], &b);
    for (size_t i = 0; i < count && i < other; i++) {
        const double difference = fabs(a[i] - b[i]);
        most = isnan(difference) ? INFINITY : fmax(most, difference);
        scale = fmax(scale, fabs(a[i]));
    }
    const int good = count > 0 && count == other && most <= atof(argv[3]) * scale;
    if (!good)
        printf("near: %s %s: %zu and %zu numbers, largest difference %g of %g\n", argv[1], argv[2], count, other, most, scale);
    else
        printf("  %zu numbers, largest difference %.2g of %.3g\n", count, most, scale);
    free(a);
    free(b);
    return !good;
}
