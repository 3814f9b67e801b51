// The table of kernels: each row names a function that its file really defines, and its scratch is declared there too.
#include "kernels.h"

#include "../../kernels/c/conv2d.h"
#include "../../kernels/c/math.h"
#include "../../kernels/c/orthogonal.h"
#include "../../kernels/c/pool.h"
#include "../../kernels/c/random.h"
#include "../../kernels/c/reduce.h"
#include "../../kernels/c/scan.h"
#include "../../kernels/c/winograd.h"

typedef struct Row {
    const char *name, *file, *needs, *scratch;
    void (*function)(void);
} Row;

#define KERNEL(name, file, needs, scratch) {#name, file, needs, scratch, (void (*)(void))name},
static const Row rows[] = {
#include "../../kernels/kernels.def"
};

// The text of a kernel file, found from this file's place; the caller frees it.
static char *read_kernel_file(const char *name)
{
    char path[1024];
    const char *slash = strrchr(__FILE__, '/');
    snprintf(path, sizeof path, "%.*s../../kernels/c/%s", slash ? (int)(slash - __FILE__ + 1) : 0, __FILE__, name);
    FILE *file = fopen(path, "r");
    if (!file)
        return NULL;
    enum { MOST = 200000 };
    char *text = take(MOST);
    text[fread(text, 1, MOST - 1, file)] = 0;
    fclose(file);
    return text;
}

static int names_file(const char *list, const char *file, size_t length)
{
    for (const char *at = strstr(list, file); at; at = strstr(at + 1, file))
        if ((at == list || at[-1] == ' ') && (at[length] == 0 || at[length] == ' '))
            return 1;
    return 0;
}

// Each #include "x.h" of the file is one of the row's needs.
static int includes_are_needs(const char *text, const char *needs)
{
    static const char include[] = "#include \"";
    for (const char *at = strstr(text, include); at; at = strstr(at, include)) {
        char name[64] = "";
        at += sizeof include - 1;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "\""), at);
        if (!names_file(needs, name, strlen(name)))
            return 0;
    }
    return 1;
}

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const Row *row = &rows[i];
        char call[100];
        char *text = read_kernel_file(row->file);
        snprintf(call, sizeof call, "%s(", row->name);
        if (check(text != NULL, row->file)) {
            check(row->function != NULL && strstr(text, call) != NULL, row->name);
            check(strstr(text, row->scratch) != NULL, row->scratch);
            check(includes_are_needs(text, row->needs), row->needs);
        }
        free(text);
    }
    return check_summary();
}
