// options.c: words to options, and the page that explains them, both from the rows of options.def.
#define _POSIX_C_SOURCE 200809L
#include "options.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "number.h"
#include "threads.h"

typedef enum Kind { FLAG, TEXT, MAYBE, COUNT, REAL, SEED, SET } Kind;

typedef struct Row { const char *title, *name; Kind kind; const char *argument, *initial, *brief; size_t at; } Row;

static const Row rows[] = {
#define GROUP(title) {title, NULL, FLAG, "", "", "", 0},
#define OPTION(field, name, kind, argument, initial, brief)                                                                    \
    {NULL, name, kind, argument, initial, brief, offsetof(MlrtOptions, field)},
#include "options.def"
#undef OPTION
#undef GROUP
};

enum { ROWS = sizeof rows / sizeof *rows };

// --- nearest names -----------------------------------------------------------------------------------------------------

static int least(int a, int b) { return a < b ? a : b; }

// Levenshtein's distance, of names up to 63 bytes.
static int distance(const char *a, const char *b)
{
    int line[64], n = (int)strnlen(b, 63);
    for (int j = 0; j <= n; j++)
        line[j] = j;
    for (int i = 1; a[i - 1] && i < 64; i++) {
        int diagonal = line[0];
        line[0] = i;
        for (int j = 1; j <= n; j++) {
            int above = line[j];
            line[j] = least(least(above, line[j - 1]) + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return line[n];
}

const char *mlrt_nearest(const char *name, const char *const *names, int count)
{
    int best = (int)strnlen(name, 63) / 2 + 1;
    const char *found = NULL;
    for (int i = 0; i < count; i++) {
        int d = names[i] ? distance(name, names[i]) : best;
        if (d < best) {
            best = d;
            found = names[i];
        }
    }
    if (found)
        return found;
    for (int i = 0; i < count; i++)     // "lr" for "optimizer.lr"
        if (names[i] && strlen(name) > 1 && strstr(names[i], name))
            return names[i];
    return NULL;
}

// --- parsing -----------------------------------------------------------------------------------------------------------

static MlrtStatus fail_unknown(const char *word, MlrtError *error)
{
    const char *names[ROWS];
    for (int i = 0; i < ROWS; i++)
        names[i] = rows[i].name;
    size_t length = strcspn(word, "=");
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(length < 63 ? length : 63), word);
    const char *near = mlrt_nearest(name, names, ROWS);
    return mlrt_fail(error, MLRT_BAD_USAGE, "unknown option --%s%s%s%s", mlrt_quote(word, length).text,
                     near ? "; did you mean --" : "", near ? near : "", near ? "?" : " (--help lists them)");
}

static const Row *row_find(const char *word)
{
    size_t length = strcspn(word, "=");
    for (int i = 0; i < ROWS; i++)
        if (rows[i].name && strlen(rows[i].name) == length && memcmp(rows[i].name, word, length) == 0)
            return &rows[i];
    return NULL;
}

static MlrtStatus take_number(const Row *row, MlrtOption *option, MlrtError *error)
{
    int64_t whole = 0;
    size_t length = strlen(option->text);
    if (row->kind == REAL) {
        if (mlrt_number_f64(option->text, length, &option->number) == MLRT_NUMBER_OK && option->number > 0)
            return MLRT_OK;
    } else if (mlrt_number_i64(option->text, length, &whole) == MLRT_NUMBER_OK && whole >= (row->kind == COUNT)) {
        option->whole = (uint64_t)whole;
        option->number = (double)whole;
        return MLRT_OK;
    }
    return mlrt_fail(error, MLRT_BAD_USAGE, "--%s takes a %snumber %s, not '%s'", row->name, row->kind == REAL ? "" : "whole ",
                     row->kind == SEED ? "from 0" : "above 0", mlrt_quote(option->text, length).text);
}

// Fills option->text from "--name=text" or the next word; *used counts the words.
static MlrtStatus take_text(const Row *row, MlrtOption *option, const char *word, const char *next, int *used, MlrtError *error)
{
    const char *equals = strchr(word, '=');
    if (row->kind == FLAG)
        return equals ? mlrt_fail(error, MLRT_BAD_USAGE, "--%s takes no argument", row->name) : MLRT_OK;
    option->text = equals ? equals + 1 : NULL;
    if (!equals && next && !(row->kind == MAYBE && next[0] == '-')) {
        option->text = next;
        ++*used;
    }
    if (!option->text && row->kind != MAYBE)
        return mlrt_fail(error, MLRT_BAD_USAGE, "--%s needs an argument: --%s %s", row->name, row->name, row->argument);
    return row->kind == COUNT || row->kind == REAL || row->kind == SEED ? take_number(row, option, error) : MLRT_OK;
}

static MlrtStatus check_together(const MlrtOptions *o, MlrtError *error)
{
    if (o->eval.given && o->predict.given)
        return mlrt_fail(error, MLRT_BAD_USAGE, "--eval and --predict exclude each other");
    if (o->resume.given && (o->run.given || o->weights.given))
        return mlrt_fail(error, MLRT_BAD_USAGE, "--resume goes on in the folder and with the weights of its run; leave --%s out",
                         o->run.given ? "run" : "weights");
    if (o->out.given && !o->predict.given)
        return mlrt_fail(error, MLRT_BAD_USAGE, "--out goes with --predict");
    if (o->json.given && !o->benchmark.given)
        return mlrt_fail(error, MLRT_BAD_USAGE, "--json goes with --benchmark");
    if (o->benchmark.given && (o->resume.given || o->eval.given || o->predict.given || o->init_only.given || o->dry_run.given))
        return mlrt_fail(error, MLRT_BAD_USAGE, "--benchmark is a mode of its own: leave --%s out",
                         o->resume.given ? "resume" : o->eval.given ? "eval" : o->predict.given ? "predict" :
                         o->init_only.given ? "init-only" : "dry-run");
    if (o->epochs.given && o->steps.given)
        return mlrt_fail(error, MLRT_BAD_USAGE, "--epochs and --steps exclude each other");
    if (o->threads.given && o->threads.whole > 1024)
        return mlrt_fail(error, MLRT_BAD_USAGE, "--threads takes 1 to 1024");
    const char *when = o->color.text;
    if (when && strcmp(when, "auto") && strcmp(when, "always") && strcmp(when, "never"))
        return mlrt_fail(error, MLRT_BAD_USAGE, "--color takes auto, always or never");
    return MLRT_OK;
}

MlrtStatus mlrt_options_parse(MlrtOptions *options, int argc, char **argv, const char **sets, MlrtError *error)
{
    *options = (MlrtOptions){.sets = sets};
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (strncmp(word, "--", 2) != 0 || !word[2])
            return mlrt_fail(error, MLRT_BAD_USAGE, "'%s' is no option (--help lists them)", mlrt_quote(word, strlen(word)).text);
        const Row *row = row_find(word + 2);
        if (!row)
            return fail_unknown(word + 2, error);
        MlrtOption *option = (MlrtOption *)((char *)options + row->at);
        option->given = true;
        MlrtStatus status = take_text(row, option, word, argv[i + 1], &i, error);
        if (status != MLRT_OK)
            return status;
        if (row->kind == SET)
            sets[options->n_sets++] = option->text;
    }
    return check_together(options, error);
}

// --- help --------------------------------------------------------------------------------------------------------------

// "$epochs" and the like stand for what the recipe says.
static const char *initial_text(const Row *row, const MlrtModel *model, char text[64])
{
    const MlrtRecipe *r = model->recipe;
    if (strcmp(row->initial, "$epochs") == 0 && r->steps > 0)
        snprintf(text, 64, "%" PRId64 " steps", r->steps);
    else if (strcmp(row->initial, "$epochs") == 0)
        snprintf(text, 64, "%g", r->epochs);
    else if (strcmp(row->initial, "$batch") == 0)
        snprintf(text, 64, "%" PRId64, r->batch);
    else if (strcmp(row->initial, "$seed") == 0)
        snprintf(text, 64, "%" PRIu64, r->seed);
    else if (strcmp(row->initial, "$threads") == 0)
        snprintf(text, 64, "%d", mlrt_threads_available());
    else if (strcmp(row->initial, "$run") == 0)
        snprintf(text, 64, "runs/%.40s-N", model->name);
    else
        return row->initial;
    return text;
}

static void print_row(const Row *row, const MlrtModel *model, FILE *out)
{
    char left[64], initial[64];
    bool maybe = row->kind == MAYBE;
    snprintf(left, sizeof left, "--%s%s%s%s", row->name, *row->argument ? (maybe ? " [" : " ") : "", row->argument,
             maybe ? "]" : "");
    fprintf(out, "  %-18s %s", left, row->brief);
    fprintf(out, *row->initial ? " (default: %s)\n" : "\n", initial_text(row, model, initial));
}

void mlrt_options_help(const MlrtModel *model, const char *program, FILE *out)
{
    fprintf(out, "%s trains %s (%s): %s\n", program, model->name, model->path, model->summary);
    for (int i = 0; i < ROWS; i++)
        if (rows[i].title)
            fprintf(out, "\n%s\n", rows[i].title);
        else
            print_row(&rows[i], model, out);
    fprintf(out, "\nExamples\n  %s --epochs 20 --set optimizer.lr=3e-4\n  %s --resume\n"
                 "  %s --predict new.csv --out answers.csv\n", program, program, program);
    fputs("\nExit codes: 0 done, 1 bad input, 2 bad usage, 3 a fault of ours, 4 stopped and saved, 5 diverged.\n", out);
}
