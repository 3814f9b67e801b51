// verify.c: `mlc verify`: models with the answers they should give, in folders as ONNX's backend tests have them: model.onnx,
// and test_data_set_N/ with input_I.pb and output_I.pb. Each case runs in a process of its own, so that none can take the others
// with it; --jobs of them at a time.
//
// A case passes if types and shapes are the same and all values are near enough. It is skipped if the model is refused by name.
// Where a shape depends on an input (the axes of a reduction, say), that input is fixed to its value in the data set.
#define _GNU_SOURCE
#include "driver.h"

#include <dirent.h>
#include <fcntl.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 120, TEXT_ROOM = 2000, SETS_MAX = 64, INPUTS_ROOM = 64, FIXED_ELEMENTS = 65536 };

typedef enum Outcome { PASSED, FAILED, SKIPPED } Outcome;

typedef struct Answer { Outcome outcome; double absolute, relative; char text[TEXT_ROOM]; } Answer;    // as it goes through a pipe

typedef struct Case {
    const char *folder;
    Answer  answer;
    pid_t   process;
    int     pipe;
    size_t  got;
    bool    done;
} Case;

// --- One case ----------------------------------------------------------------------------------------------------------

typedef struct Set {                    // test_data_set_N
    const char *folder;
    OnnxFixed   input[INPUTS_ROOM];
    int         n_inputs, number;
} Set;

typedef struct Checking {
    Command *command;
    Answer  *answer;
    const char *folder, *path, *bytes;
    int      length;
    const char **names;                 // of the model's inputs
    int      n_names;
    double   rtol, atol;
} Checking;

static bool settle(Checking *k, Outcome outcome, const char *format, ...) PRINTF_LIKE(3, 4);
static bool settle(Checking *k, Outcome outcome, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    k->answer->outcome = outcome;
    vsnprintf(k->answer->text, sizeof k->answer->text, format, args);
    va_end(args);
    for (char *p = k->answer->text; *p != 0; p++)
        *p = *p == '\n' || *p == '\t' ? ' ' : *p;
    return false;
}

static bool exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

static Tensor *read_tensor(Checking *k, const char *path)
{
    const char *bytes, *why = NULL, *name;
    int length;
    Tensor *t = NULL;
    if (file_load(k->command, path, &bytes, &length, &why))
        t = onnx_tensor_read(k->command->cx.arena, bytes, (size_t)length, &name, &why);
    if (t == NULL)
        settle(k, SKIPPED, "%s: %s", strrchr(path, '/') + 1, why);
    return t;
}

static bool read_set(Checking *k, Set *set)
{
    Arena *arena = k->command->cx.arena;
    for (int i = 0; i < k->n_names && set->n_inputs < INPUTS_ROOM; i++) {
        const char *path = arena_printf(arena, "%s/input_%d.pb", set->folder, i);
        if (!exists(path))
            continue;
        Tensor *t = read_tensor(k, path);
        if (t == NULL)
            return false;
        set->input[set->n_inputs++] = (OnnxFixed){k->names[i], t};
    }
    return true;
}

static void forget_messages(Checking *k)
{
    bool off = k->command->cx.diag->json;
    k->command->cx.diag = diag_new(k->command->cx.arena);
    k->command->cx.diag->json = off;
}

static Model *import(Checking *k, const Set *set)
{
    Context *cx = &k->command->cx;
    OnnxFixed fixed[INPUTS_ROOM];
    int n = 0;
    for (int i = 0; i < set->n_inputs; i++)
        if (tensor_count(set->input[i].tensor) <= FIXED_ELEMENTS)
            fixed[n++] = set->input[i];
    OnnxOptions options = {.fixed = fixed, .n_fixed = n, .shapes = set->input, .n_shapes = set->n_inputs, .pin = true};
    cx->symbols = map_new(cx->arena);
    forget_messages(k);
    Model *model = onnx_read(cx, k->path, k->bytes, (size_t)k->length, &options);
    if (model == NULL)
        settle(k, SKIPPED, "%s", cx->diag->all.count > 0 ? cx->diag->all.at[0]->text : "refused");
    return model;
}

static const Tensor *input_named(const Set *set, const char *name)
{
    for (int i = 0; i < set->n_inputs; i++)
        if (strcmp(set->input[i].name, name) == 0)
            return set->input[i].tensor;
    return NULL;
}

// The inputs that the model still has, as the table has them.
static bool place_inputs(Checking *k, const Running *r, const Set *set, MlrtSlots *slots)
{
    const Graph *graph = r->model->infer;
    for (int i = 0; i < r->ports.symbols.count; i++)
        slots->size[i] = 1;
    for (int i = 0; i < graph->inputs.count; i++) {
        const Value *value = graph->inputs.at[i];
        const Tensor *t = input_named(set, value->name);
        size_t bytes = t != NULL ? (size_t)tensor_count(t) * (size_t)type_def(t->dtype)->bytes : 0;
        if (t == NULL)
            return settle(k, SKIPPED, "the data set has no input %s", value->name);
        for (int a = 0; a < t->rank; a++)
            if (r->ports.port.at[i].bind[a] >= 0)
                slots->size[r->ports.port.at[i].bind[a]] = t->dim[a];
        slots->data[i] = malloc(bytes + 64);
        if (slots->data[i] == NULL)
            return settle(k, FAILED, "no memory");
        memcpy(slots->data[i], t->data, bytes);
    }
    return true;
}

static bool near_enough(Checking *k, const Tensor *got, const Tensor *wanted, const char *name)
{
    int64_t wrong = 0, first = 0;
    for (int64_t i = 0; i < tensor_count(wanted); i++) {
        if (!type_is_float(wanted->dtype)) {
            if (tensor_get_whole(got, i) != tensor_get_whole(wanted, i) && wrong++ == 0)
                first = i;
            continue;
        }
        double a = tensor_get(got, i), b = tensor_get(wanted, i), away = fabs(a - b);
        if ((isnan(a) && isnan(b)) || a == b)
            continue;
        if (isfinite(away) && away > k->answer->absolute)
            k->answer->absolute = away;
        if (isfinite(away) && b != 0 && away / fabs(b) > k->answer->relative)
            k->answer->relative = away / fabs(b);
        if (!(away <= k->atol + k->rtol * fabs(b)) && wrong++ == 0)
            first = i;
    }
    if (wrong == 0)
        return true;
    return settle(k, FAILED, "%s: %lld of %lld values differ; element %lld is %.9g and should be %.9g", name, (long long)wrong, (long long)tensor_count(wanted),
                  (long long)first, tensor_get(got, first), tensor_get(wanted, first));
}

static bool compare(Checking *k, const Running *r, const Set *set, MlrtSlots *slots)
{
    const Graph *graph = r->model->infer;
    Arena *arena = k->command->cx.arena;
    for (int i = 0; i < graph->outputs.count; i++) {
        const char *path = arena_printf(arena, "%s/output_%d.pb", set->folder, i), *name = graph->outputs.at[i].name;
        if (!exists(path))
            continue;
        Tensor *wanted = read_tensor(k, path), got = {.dtype = graph->outputs.at[i].value->type.dtype, .rank = graph->outputs.at[i].value->type.shape.rank};
        if (wanted == NULL)
            return false;
        ports_shape((void *)(uintptr_t)&r->ports, slots->size, graph->inputs.count + i, got.dim);
        got.data = slots->data[graph->inputs.count + i];
        bool same = got.dtype == wanted->dtype && got.rank == wanted->rank;
        for (int a = 0; same && a < got.rank; a++)
            same = got.dim[a] == wanted->dim[a];
        if (!same)
            return settle(k, FAILED, "%s is %s, and should have another type or shape", name, type_text(&k->command->cx, &graph->outputs.at[i].value->type));
        if (!near_enough(k, &got, wanted, name))
            return false;
    }
    return true;
}

static bool run_set(Checking *k, Set *set)
{
    Command *command = k->command;
    Running r = {.command = command, .number = set->number};
    MlrtSlots slots = {0};
    MlrtError error = {0};
    if (!read_set(k, set) || (r.model = import(k, set)) == NULL)
        return false;
    if (r.model->infer->outputs.count == 0)
        return settle(k, SKIPPED, "it has no outputs");
    if (!ports_make(command, r.model, &r.ports))
        return settle(k, SKIPPED, "%s", command->cx.diag->all.at[0]->text);
    r.ports.running = &r;
    if (running_weights(&r) != EXIT_DONE)
        return settle(k, FAILED, "%s", command->cx.diag->all.count > 0 ? command->cx.diag->all.at[0]->text : "no weights");
    if (!place_inputs(k, &r, set, &slots))
        return false;
    MlrtObject object = r.ports.object;
    object.run = running_interpret;
    if (!command->interpret.given && running_load(&r, slots.size[0], &object) != EXIT_DONE)
        return settle(k, FAILED, "%s", command->cx.diag->all.count > 0 ? command->cx.diag->all.at[command->cx.diag->all.count - 1]->text : "it cannot be compiled");
    if (mlrt_slots_run(&object, &slots, r.weights, &error) != MLRT_OK)
        return settle(k, FAILED, "%s", error.text);
    bool right = compare(k, &r, set, &slots);
    mlrt_slots_close(&slots);
    return right;
}

// tolerance.txt beside the model: lines "atol 1e-6", "rtol 1e-3" count instead of the options.
static void read_tolerance(Checking *k)
{
    const char *bytes, *why, *path = arena_printf(k->command->cx.arena, "%s/tolerance.txt", k->folder);
    int length;
    if (!exists(path) || !file_load(k->command, path, &bytes, &length, &why))
        return;
    for (const char *p = bytes; *p != 0; p += strcspn(p, "\n"), p += *p == '\n') {
        double x;
        if (sscanf(p, "atol %lf", &x) == 1)
            k->atol = x;
        if (sscanf(p, "rtol %lf", &x) == 1)
            k->rtol = x;
    }
}

static void run_case(Checking *k)
{
    read_tolerance(k);
    const char *why = NULL;
    Arena *arena = k->command->cx.arena;
    int sets = 0;
    k->path = arena_printf(arena, "%s/model.onnx", k->folder);
    if (!file_load(k->command, k->path, &k->bytes, &k->length, &why)) {
        settle(k, FAILED, "model.onnx cannot be read: %s", why);
        return;
    }
    k->n_names = onnx_input_names(arena, k->bytes, (size_t)k->length, &k->names);
    for (int i = 0; i < SETS_MAX; i++) {
        Set set = {.folder = arena_printf(arena, "%s/test_data_set_%d", k->folder, i), .number = i};
        if (!exists(set.folder))
            continue;
        sets++;
        if (!run_set(k, &set))
            return;
    }
    Set none = {.folder = ""};
    if (sets == 0 && import(k, &none) != NULL)
        settle(k, FAILED, "it has no test_data_set");
}

// --- Processes -----------------------------------------------------------------------------------------------------------

static void child(Command *command, const Case *one, int to, double rtol, double atol)
{
    Answer answer = {.outcome = PASSED};
    Checking k = {.command = command, .answer = &answer, .folder = one->folder, .rtol = rtol, .atol = atol};
    alarm(SECONDS);
    run_case(&k);
    const char *at = (const char *)&answer;
    for (size_t sent = 0; sent < sizeof answer;) {
        ssize_t n = write(to, at + sent, sizeof answer - sent);
        if (n <= 0)
            break;
        sent += (size_t)n;
    }
    close(to);
    exit(0);                            // which removes intermediate files
}

static bool start(Command *command, Case *one, double rtol, double atol)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return fail_input(command, MESSAGE_E0711, "a pipe", strerror(errno)), false;
    fflush(NULL);
    one->process = fork();
    if (one->process == 0) {
        close(ends[0]);
        child(command, one, ends[1], rtol, atol);
    }
    close(ends[1]);
    one->pipe = ends[0];
    return one->process > 0 ? true : (fail_input(command, MESSAGE_E0711, "a process", strerror(errno)), false);
}

// Waits for that child, whose answer is in the pipe, or which has died.
static void finish(Case *one)
{
    int status = 0;
    for (;;) {
        ssize_t n = read(one->pipe, (char *)&one->answer + one->got, sizeof one->answer - one->got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        one->got += (size_t)n;
    }
    close(one->pipe);
    while (waitpid(one->process, &status, 0) < 0 && errno == EINTR)
        continue;
    if (one->got != sizeof one->answer) {
        one->answer = (Answer){.outcome = FAILED};
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
            snprintf(one->answer.text, sizeof one->answer.text, "it took more than %d seconds", SECONDS);
        else
            snprintf(one->answer.text, sizeof one->answer.text, WIFSIGNALED(status) ? "mlc was ended by signal %d" : "mlc ended with code %d",
                     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    one->done = true;
}

// --- Folders ---------------------------------------------------------------------------------------------------------------

typedef struct Cases { LIST(Case) at; } Cases;

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static bool add_folder(Command *command, Cases *cases, const char *folder)
{
    Arena *arena = command->cx.arena;
    if (exists(arena_printf(arena, "%s/model.onnx", folder)))
        return LIST_ADD(arena, cases->at, ((Case){.folder = folder})), true;
    struct { const char **at; int count, room; } names = {0};
    DIR *entries = opendir(folder);
    if (entries == NULL)
        return fail_input(command, MESSAGE_E0701, folder, strerror(errno)), false;
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;)
        if (entry->d_name[0] != '.' && exists(arena_printf(arena, "%s/%s/model.onnx", folder, entry->d_name)))
            LIST_ADD(arena, names, arena_printf(arena, "%s/%s", folder, entry->d_name));
    closedir(entries);
    if (names.count == 0)
        return fail_input(command, MESSAGE_E0701, folder, "there is no model.onnx in it, nor in a folder beneath it"), false;
    qsort(names.at, (size_t)names.count, sizeof *names.at, by_name);
    for (int i = 0; i < names.count; i++)
        LIST_ADD(arena, cases->at, ((Case){.folder = names.at[i]}));
    return true;
}

static void print_case(const Command *command, const Case *one)
{
    static const char *const words[] = {"passed", "failed", "skipped"};
    const char *slash = strrchr(one->folder, '/'), *name = slash != NULL && slash[1] != 0 ? slash + 1 : one->folder;
    const Answer *a = &one->answer;
    if (a->outcome == PASSED && command->verbose.given)
        printf("passed   %s  absolute %.2g, relative %.2g\n", name, a->absolute, a->relative);
    else if (a->outcome == PASSED)
        printf("passed   %s\n", name);
    else
        printf("%-8s %s: %s\n", words[a->outcome], name, a->text);
}

static bool positive(Command *command, const Option *option, const char *name, double *to)
{
    char *end;
    *to = strtod(option->text, &end);
    if (end == option->text || *end != 0 || !(*to >= 0))
        return fail_usage(command, MESSAGE_E0607, name, option->text), false;
    return true;
}

ExitCode verb_verify(Command *command)
{
    Cases cases = {0};
    int counts[3] = {0}, begun = 0, jobs = (int)command->jobs.number;
    double absolute = 0, relative = 0, rtol, atol;
    if (!positive(command, &command->rtol, "--rtol", &rtol) || !positive(command, &command->atol, "--atol", &atol))
        return EXIT_USAGE;
    for (int i = 0; i < command->operands.count; i++)
        if (!add_folder(command, &cases, command->operands.at[i]))
            return EXIT_INPUT;
    for (int i = 0; i < cases.at.count; i++) {          // answers in order, whichever is ready first
        while (begun < cases.at.count && begun < i + jobs)
            if (!start(command, &cases.at.at[begun++], rtol, atol))
                return EXIT_INPUT;
        Case *one = &cases.at.at[i];
        finish(one);
        print_case(command, one);
        counts[one->answer.outcome]++;
        absolute = one->answer.absolute > absolute ? one->answer.absolute : absolute;
        relative = one->answer.relative > relative ? one->answer.relative : relative;
    }
    printf("largest error of what passed or failed: absolute %.3g, relative %.3g\n%d passed, %d failed, %d skipped\n", absolute, relative, counts[PASSED],
           counts[FAILED], counts[SKIPPED]);
    return counts[FAILED] > 0 ? EXIT_INPUT : EXIT_DONE;
}
