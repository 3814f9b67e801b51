// net_build_fuzz.c: any bytes as a model: read, written out as Graphs, recipe and parameters, or refused with diagnostics.
//     clang -fsanitize=fuzzer,address,undefined … with the compiler; net_build_fuzz tests/fuzz/net_corpus tests/net
#include "../../frontend/net/net.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

typedef struct Input { const char *bytes; int length; } Input;

static bool load(void *user, const char *path, const char **bytes, int *length, const char **why)
{
    const Input *input = user;
    (void)path;
    *why = "";
    *bytes = input->bytes;
    *length = input->length;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    Arena *arena = arena_new();
    Context cx = {.arena = arena, .names = names_new(arena), .diag = diag_new(arena), .symbols = map_new(arena)};
    Input input = {(const char *)bytes, (int)length};
    // Small limits: what is to be found is found in small models, and quickly.
    cx.diag->limits[LIMIT_net_statements] = 2000;
    cx.diag->limits[LIMIT_net_list_length] = 500;
    cx.diag->limits[LIMIT_graph_nodes] = 1000;
    NetOptions options = {.load = load, .user = &input};
    net_read(&cx, "fuzz.net", &options);
    FILE *nowhere = fopen("/dev/null", "w");
    if (nowhere != NULL) {
        diag_print(cx.diag, nowhere);
        fclose(nowhere);
    }
    arena_free(arena);
    return 0;
}
