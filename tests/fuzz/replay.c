// replay.c: runs a fuzz entry over the files of a corpus without libFuzzer, so that it is part of the quick tests with any
// compiler: each file as it is, cut at every byte, and with every byte changed in a few ways; where a run is too slow for that
// (whole models), only as it is.
//     replay [--as-is] FOLDER…
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 1 << 20, MUTATED = 4096 };     // files longer than that are only run as they are

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static long runs;
static bool as_is;

// In a block of exactly this length, so that reading past it is seen by sanitizers and valgrind.
static void run(const uint8_t *bytes, size_t length)
{
    uint8_t *exact = malloc(length + (length == 0));
    if (exact == NULL)
        abort();
    memcpy(exact, bytes, length);
    LLVMFuzzerTestOneInput(exact, length);
    free(exact);
    runs++;
}

static void run_changed(uint8_t *bytes, size_t length)
{
    static const uint8_t others[] = {0, '9', ',', '"', 0x7F, 0xFF};
    for (size_t i = 0; i < length; i++) {
        uint8_t kept = bytes[i];
        run(bytes, i);
        for (size_t k = 0; k < sizeof others; k++) {
            bytes[i] = others[k];
            run(bytes, length);
        }
        bytes[i] = (uint8_t)(kept + 1);
        run(bytes, length);
        bytes[i] = kept;
    }
}

static int replay(const char *folder, const char *name)
{
    static uint8_t bytes[LONGEST];
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    size_t length = fread(bytes, 1, LONGEST, file);
    fclose(file);
    run(bytes, length);
    if (length <= MUTATED && !as_is)
        run_changed(bytes, length);
    return 0;
}

int main(int argc, char **argv)
{
    as_is = argc > 1 && strcmp(argv[1], "--as-is") == 0;
    int files = 0, first = as_is ? 2 : 1, failed = argc <= first;
    for (int i = first; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        if (folder == NULL)
            perror(argv[i]);
        failed += folder == NULL;
        for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;)
            if (entry->d_name[0] != '.') {
                failed += replay(argv[i], entry->d_name);
                files++;
            }
        if (folder != NULL)
            closedir(folder);
    }
    printf("%ld runs of %d files\n%d passed, %d failed\n", runs, files, files - failed, failed);
    return failed != 0 || files == 0;
}
