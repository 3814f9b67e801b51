// net_fuzz.c: any bytes through the reader of .net files: parse; if they parse, format, parse again and format again.
// The second text must equal the first, formatting may not make a good file bad, and no token or comment may be lost.
//     clang -fsanitize=fuzzer,address,undefined …; net_fuzz tests/fuzz/net_corpus
#include <stdlib.h>
#include <string.h>

#include "../../frontend/net/tokens.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

typedef struct Read { NetFile *file; const char *bytes; } Read;

static void fail(const char *what, const char *before, size_t length, const char *after)
{
    fprintf(stderr, "%s\n--- before\n%.*s--- after\n%s", what, (int)length, before, after);
    abort();
}

static bool is_break(const Read *read, const NetToken *t) { return t->kind == RAW_NEWLINE || read->bytes[t->from] == ';'; }

// The next token that is no line break, from *i on; its length without blanks at its end (a comment may have some).
static const char *next_token(const Read *read, int *i, int *length)
{
    while (*i < read->file->tokens.count && is_break(read, &read->file->tokens.at[*i]))
        *i += 1;
    if (*i >= read->file->tokens.count)
        return NULL;
    const NetToken *t = &read->file->tokens.at[(*i)++];
    *length = t->to - t->from;
    while (*length > 0 && strchr(" \t\r", read->bytes[t->from + *length - 1]) != NULL)
        *length -= 1;
    return read->bytes + t->from;
}

static bool same_tokens(const Read *a, const Read *b)
{
    int i = 0, k = 0, m = 0, n = 0;
    for (;;) {
        const char *p = next_token(a, &i, &m), *q = next_token(b, &k, &n);
        if (p == NULL || q == NULL)
            return p == NULL && q == NULL;
        if (m != n || memcmp(p, q, (size_t)m) != 0)
            return false;
    }
}

static Read parsed(Diag *diag, Arena *arena, const char *bytes, size_t length)
{
    int source = diag_add_source(diag, "fuzz.net", bytes, (int)length);
    return (Read){net_parse(diag, arena, names_new(arena), source, true), bytes};
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    Arena *arena = arena_new();
    Diag *diag = diag_new(arena);
    const char *text = (const char *)bytes;
    Read first = parsed(diag, arena, text, length);
    if (!first.file->broken) {
        char *once = net_format(arena, diag, first.file);
        Read second = parsed(diag, arena, once, strlen(once));
        if (second.file->broken) {
            diag_print(diag, stderr);
            fail("formatting made a good file bad", text, length, once);
        }
        if (!same_tokens(&first, &second))
            fail("formatting changed the tokens", text, length, once);
        char *twice = net_format(arena, diag, second.file);
        if (strcmp(once, twice) != 0)
            fail("formatting twice gives another text", once, strlen(once), twice);
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
