// files.c: the texts that the compiler carries, and what their declarations say.
//
// A kernel file states its own interface: the functions that begin a line with MLK_FN, MLK_LEAF or MLK_TILE, their
// parameters, the files it includes, the fields of its structs. Reading that here keeps one statement of each; a table
// beside the files would be a second.
#include "codegen.h"

#include <ctype.h>
#include <string.h>

static const EmbeddedFile *embedded_find(const char *name, size_t length)
{
    for (const EmbeddedFile *file = embedded_files; file->name != NULL; file++)
        if (strlen(file->name) == length && strncmp(file->name, name, length) == 0)
            return file;
    return NULL;
}

const char *embedded_text(const char *name)
{
    const EmbeddedFile *file = embedded_find(name, strlen(name));
    if (file == NULL)
        BUG("the compiler carries no file %s", name);
    return file->text;
}

static const char *line_end(const char *at)
{
    const char *end = strchr(at, '\n');
    return end != NULL ? end + 1 : at + strlen(at);
}

static bool starts(const char *at, const char *with) { return strncmp(at, with, strlen(with)) == 0; }

static bool line_defines(const char *line)
{
    return starts(line, "MLK_FN ") || starts(line, "MLK_LEAF ") || starts(line, "MLK_TILE ");
}

// The name a line defines: the word before its first bracket.
static const char *defined_name(const char *line, size_t *length)
{
    const char *bracket = line + strcspn(line, "(\n"), *name = bracket;
    while (name > line && (isalnum((unsigned char)name[-1]) || name[-1] == '_'))
        name--;
    *length = *bracket == '(' ? (size_t)(bracket - name) : 0;
    return name;
}

// The file in which a function is defined, and the line of its definition. mlk_add_i32 and its like stand in scalar.h,
// made by a macro: whatever no line defines must be there.
static const EmbeddedFile *function_find(const char *name, size_t length, const char **definition)
{
    for (const EmbeddedFile *file = embedded_files; file->name != NULL; file++)
        for (const char *line = file->text; *line != 0; line = line_end(line)) {
            size_t found;
            if (!line_defines(line))
                continue;
            const char *at = defined_name(line, &found);
            if (found == length && strncmp(at, name, length) == 0) {
                *definition = line;
                return file;
            }
        }
    *definition = NULL;
    return embedded_find("scalar.h", strlen("scalar.h"));
}

// --- Pasting ---------------------------------------------------------------------------------------------------------

typedef struct Pasted {
    Context *cx;
    LIST(const EmbeddedFile *) files;
} Pasted;

static void paste_need(Pasted *pasted, const EmbeddedFile *file)
{
    for (int i = 0; i < pasted->files.count; i++)
        if (pasted->files.at[i] == file)
            return;
    for (const char *line = file->text; *line != 0; line = line_end(line))
        if (starts(line, "#include \"")) {
            const char *name = line + strlen("#include \"");
            const EmbeddedFile *needed = embedded_find(name, strcspn(name, "\""));
            CHECK(needed != NULL);
            paste_need(pasted, needed);
        }
    LIST_ADD(pasted->cx->arena, pasted->files, file);
}

// The text without include guard and includes of its neighbours.
void paste_file(Text *out, const char *name)
{
    const char *text = embedded_text(name);
    const char *guard = strstr(text, "#ifndef "), *define = guard != NULL ? line_end(guard) : NULL;
    bool guarded = guard != NULL && starts(define, "#define ") && strstr(define, "_H\n") == line_end(define) - 3;
    const char *end = text + strlen(text);
    if (guarded)
        while (!starts(end, "#endif"))
            end--;
    for (const char *line = text; line < end; line = line_end(line)) {
        bool blank_pair = *line == '\n' && out->length >= 2 && strcmp(out->at + out->length - 2, "\n\n") == 0;
        if (!(guarded && (line == guard || line == define)) && !starts(line, "#include \"") && !blank_pair)
            text_put(out, line, (size_t)(line_end(line) - line));
    }
}

void paste_kernels(Context *cx, Text *out, const char *code)
{
    Pasted pasted = {.cx = cx};
    const char *definition;
    for (const char *at = strstr(code, "mlk_"); at != NULL; at = strstr(at, "mlk_")) {
        size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz_0123456789");
        if (at[length] == '(')
            paste_need(&pasted, function_find(at, length, &definition));
        at += length;
    }
    for (int i = 0; i < pasted.files.count; i++) {
        text_add(out, "// ---- %s: ", pasted.files.at[i]->name);
        text_add(out, "a kernel file of the compiler ");
        text_add(
            out, "%.*s\n\n", (int)(LINE_WIDTH - 40 - strlen(pasted.files.at[i]->name)),
            "--------------------------------------------------------------------------------------------------------");
        paste_file(out, pasted.files.at[i]->name);
    }
}

// --- Declarations ----------------------------------------------------------------------------------------------------

const char *kernel_parameters(Context *cx, const char *name)
{
    const char *line;
    function_find(name, strlen(name), &line);
    if (line == NULL)
        return NULL;
    const char *from = line + strcspn(line, "(") + 1;
    return arena_string(cx->arena, from, strcspn(from, ")"));
}

int kernel_fields(Context *cx, const char *type, const char *fields[], int room)
{
    const char *head = arena_printf(cx->arena, "typedef struct %s {", type), *at = NULL;
    for (const EmbeddedFile *file = embedded_files; file->name != NULL && at == NULL; file++)
        at = strstr(file->text, head);
    CHECK(at != NULL);
    int count = 0;
    for (at = line_end(at); *at != '}'; at = line_end(at))
        for (const char *word = strstr(at, "int64_t "); word != NULL && word < line_end(at);) {
            word += strspn(word, ", ");
            if (starts(word, "int64_t "))
                word += strlen("int64_t ");
            size_t length = strcspn(word, ",;");
            CHECK(count < room);
            fields[count++] = arena_string(cx->arena, word, length);
            word = word[length] == ',' ? word + length : NULL;
        }
    return count;
}
