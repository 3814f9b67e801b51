// net_replay.c: runs a fuzz entry over files, without libFuzzer, so that the corpus is part of the quick tests with any compiler.
//     cc net_replay.c net_fuzz.c … -o net_replay; ./net_replay tests/fuzz/net_corpus/*
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static int replay(const char *path)
{
    enum { LONGEST = 1 << 20 };
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    uint8_t *bytes = malloc(LONGEST);
    size_t length = bytes != NULL ? fread(bytes, 1, LONGEST, file) : 0;
    fclose(file);
    // A block of exactly this length, so that reading past it is seen by sanitizers and valgrind.
    uint8_t *exact = malloc(length > 0 ? length : 1);
    if (bytes == NULL || exact == NULL) {
        fprintf(stderr, "%s: out of memory\n", path);
        free(bytes);
        free(exact);
        return 1;
    }
    for (size_t i = 0; i < length; i++)
        exact[i] = bytes[i];
    free(bytes);
    LLVMFuzzerTestOneInput(exact, length);
    free(exact);
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed += replay(argv[i]);
    printf("%d passed, %d failed\n", argc - 1 - failed, failed);
    return failed != 0;
}
