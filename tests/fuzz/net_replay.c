// net_replay.c: runs a fuzz entry over the files of folders, as they are, so that the corpus is part of the quick tests with
// any compiler. (replay.c also changes every byte; a model takes too long for that.)
//     net_replay FOLDER…
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

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
    // A block of exactly this length, so that reading past it is seen by sanitizers and valgrind.
    uint8_t *exact = malloc(length + (length == 0));
    if (exact == NULL)
        abort();
    memcpy(exact, bytes, length);
    LLVMFuzzerTestOneInput(exact, length);
    free(exact);
    return 0;
}

int main(int argc, char **argv)
{
    int passed = 0, failed = 0;
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        if (folder == NULL) {
            perror(argv[i]);
            return 1;
        }
        for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
            if (entry->d_name[0] != '.') {
                if (replay(argv[i], entry->d_name) == 0)
                    passed++;
                else
                    failed++;
            }
        closedir(folder);
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0 || passed == 0;
}
