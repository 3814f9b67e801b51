// net_fuzz.c: any bytes through the reader of .net files: parse; if they parse, format, parse again and format again.
// The second text must equal the first, and formatting may not make a good file bad.
//     clang -fsanitize=fuzzer,address,undefined …; net_fuzz tests/fuzz/net_corpus
#include <stdlib.h>
#include <string.h>

#include "../../frontend/net/ast.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static char *formatted(Diag *diag, Arena *arena, const char *bytes, size_t length, bool must_parse)
{
    Names *names = names_new(arena);
    int source = diag_add_source(diag, "fuzz.net", bytes, (int)length);
    NetFile *file = net_parse(diag, arena, names, source, true);
    if (must_parse && file->broken) {
        diag_print(diag, stderr);
        fwrite(bytes, 1, length, stderr);
        abort();
    }
    return file->broken ? NULL : net_format(arena, diag, file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    Arena *arena = arena_new();
    Diag *diag = diag_new(arena);
    char *once = formatted(diag, arena, (const char *)bytes, length, false);
    if (once != NULL) {
        char *twice = formatted(diag, arena, once, strlen(once), true);
        if (strcmp(once, twice) != 0) {
            fprintf(stderr, "--- once\n%s--- twice\n%s", once, twice);
            abort();
        }
    }
    FILE *nowhere = fopen("/dev/null", "w");
    if (nowhere != NULL) {
        diag_print(diag, nowhere);
        diag->json = true;
        diag_print(diag, nowhere);
        fclose(nowhere);
    }
    arena_free(arena);
    return 0;
}
