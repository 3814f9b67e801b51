// share.c: steps that do the same with other memory share one function. A deep network repeats its layers, and its gradients
// and its evaluation repeat them again: what they have in common is compiled once, which is most of the time of the C compiler
// and most of the size of the program.
//
// Two steps are the same if their functions are, once the values that they touch are called by the order of their first use.
// The function takes the places of its values as arguments NAME_at and has the names of the first step that uses it; each step
// keeps its own function with its comment, which calls the common one with its own places. What is used once is written as it
// always was.
#include "codegen.h"

#include <ctype.h>
#include <string.h>

typedef struct Common { int uses; const char *name; } Common;

struct Functions { Context *cx; Map *common; };         // by key

Functions *functions_new(Context *cx)
{
    Functions *functions = NEW(cx->arena, Functions);
    *functions = (Functions){cx, map_new(cx->arena)};
    return functions;
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

// The number of the value that a name begins with: h_12, h_12_flat, h_12_at; -1: none. What follows goes to *rest.
static int value_named(const char *const *names, int count, const char *word, size_t length, size_t *rest)
{
    static const char *const endings[] = {"", "_flat", "_at"};
    for (int i = 0; i < count; i++)
        for (int k = 0; k < COUNT(endings); k++) {
            size_t n = strlen(names[i]);
            if (length == n + strlen(endings[k]) && memcmp(word, names[i], n) == 0 && memcmp(word + n, endings[k], length - n) == 0) {
                *rest = n;
                return i;
            }
        }
    return -1;
}

static void add_canonical(Text *key, const char *text, const char *const *names, int count)
{
    for (const char *p = text; *p != 0;) {
        size_t length = 0, rest = 0;
        while (is_word(p[length]))
            length++;
        int value = length > 0 ? value_named(names, count, p, length, &rest) : -1;
        if (value >= 0)
            text_add(key, "$%d", value);
        length = length > 0 ? length : 1;
        text_put(key, p + (value >= 0 ? rest : 0), length - (value >= 0 ? rest : 0));
        p += length;
    }
}

// The function with its values numbered.
static const char *key_of(const Functions *functions, const KernelText *text)
{
    Arena *arena = functions->cx->arena;
    Text key = {.arena = arena};
    const char **names = NEW_ARRAY(arena, const char *, text->own.touched.count);
    for (int i = 0; i < text->own.touched.count; i++)
        names[i] = value_name(functions->cx, text->own.touched.at[i]);
    add_canonical(&key, text->sizes, names, text->own.touched.count);
    add_canonical(&key, text->pointers, names, text->own.touched.count);
    add_canonical(&key, text->body, names, text->own.touched.count);
    return key.at != NULL ? key.at : "";
}

void functions_count(Functions *functions, const Program *program, const Dialect *dialect, const char *prefix)
{
    Printer p = printer_new(program, dialect, prefix, NULL);
    for (int i = 0; i < program->steps.count; i++) {
        KernelText text = kernel_text(&p, program->steps.at[i], true);
        const char *key = key_of(functions, &text);
        Common *common = map_get(functions->common, key);
        if (common == NULL) {
            common = NEW(functions->cx->arena, Common);
            map_set(functions->common, key, common);
        }
        common->uses++;
    }
}

static void print_common(Printer *p, KernelText *text, const Kernel *kernel, Common *common)
{
    common->name = arena_printf(p->cx->arena, "%s_at", kernel_name(p->cx, p->prefix, kernel));
    text_add(p->out, "// What %d steps do, each at its own places.\n%s %s %s(const Run *run, int part", common->uses, p->dialect->apart,
             p->dialect->function, common->name);
    size_t line = p->out->length - 100;
    for (int i = 0; i < text->own.touched.count; i++) {
        const Value *value = text->own.touched.at[i];
        bool wraps = p->out->length - line > LINE_WIDTH - 24;
        text_add(p->out, wraps ? ",\n    void *%s_at" : ", void *%s_at", value_name(p->cx, value));
        line = wraps ? p->out->length - 40 : line;
    }
    text_add(p->out, ")\n");
    print_function_body(p->out, text);
}

static void print_call_of(Printer *p, KernelText *text, const Common *common)
{
    text_add(p->out, "{\n    %s(run, part", common->name);
    size_t line = p->out->length - strlen(common->name) - 16;
    for (int i = 0; i < text->own.touched.count; i++) {
        const char *place = place_text(&text->own, text->own.touched.at[i]);
        bool wraps = p->out->length - line + strlen(place) > LINE_WIDTH - 4;
        line = wraps ? p->out->length : line;
        text_add(p->out, wraps ? ",\n        %s" : ", %s", place);
    }
    text_add(p->out, ");\n}\n\n");
}

// A function of its own for each step is easier to read: steps share one if that saves a page of text, or a kernel file, which
// the C compiler works out for the sizes of each call.
static bool pays(const Kernel *kernel, const KernelText *text, int uses)
{
    return uses > 1 && (kernel->file != NULL || (size_t)(uses - 1) * strlen(text->body) > 1500);
}

void print_kernel(Printer *p, const Kernel *kernel, const Functions *functions)
{
    KernelText text = kernel_text(p, kernel, functions != NULL);
    Common *common = functions != NULL ? map_get(functions->common, key_of(functions, &text)) : NULL;
    bool shared = common != NULL && pays(kernel, &text, common->uses), first = shared && common->name == NULL;
    if (first)
        print_common(p, &text, kernel, common);
    if (!shared && functions != NULL)
        text = kernel_text(p, kernel, false);
    text.own.out = p->out;
    print_comment(&text.own, kernel);
    text_add(p->out, "%s %s(%s)\n", p->dialect->function, kernel_name(p->cx, p->prefix, kernel), p->dialect->parameters);
    if (shared)
        print_call_of(p, &text, common);
    else
        print_function_body(p->out, &text);
}
