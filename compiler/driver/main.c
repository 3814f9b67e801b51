// main.c: the verbs of mlc, each a page of calls: read the model, make programs of its graphs, print them as C, call the compiler.
//
// Exit codes: 0 done, 1 the input is at fault, 2 usage, 3 a fault of mlc.
#define _GNU_SOURCE
#include "../mlc.h"
#include "../ops/op.h"
#include "../../frontend/net/net.h"
#include "../../passes/passes.h"
#include "../../runtime/file.h"
#include "../../runtime/safetensors.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { SETTINGS_MAX = 64 };

typedef struct Command {
    const char *verb, *file, *out, *emit, *weights, *target;
    int64_t batch;
    NetSetting set[SETTINGS_MAX];
    int n_set;
    Context cx;
} Command;

static const char *const usage =
    "usage: mlc VERB [FILE] [options]\n"
    "  compile MODEL.net   a training program MODEL-train, or an inference object where there is no train section\n"
    "  check MODEL.net     diagnose only\n"
    "  fmt FILE.net        write the file in the one style\n"
    "  inspect MODEL.net   the graph as text\n"
    "  plan MODEL.net      the memory plan\n"
    "  ops [NAME]          the ops, or the page of one\n"
    "  passes              the passes, in order\n"
    "  explain E0301       what a message means\n"
    "options of compile:\n"
    "  -o FILE             where the result goes\n"
    "  --emit KIND         train (default), program (its C text), obj, c (text of the object)\n"
    "  --weights FILE      safetensors to put into the object\n"
    "  --batch N           the largest batch of the object (default 1)\n"
    "  --target CPU        what -march gets (default native)\n"
    "  -D name=value       sets a param or a key of the recipe\n";

// --- files ---------------------------------------------------------------------------------------------------------------

static bool load(void *user, const char *path, const char **bytes, int *length, const char **why)
{
    Command *command = user;
    MlrtFile file;
    MlrtError error = {0};
    if (mlrt_file_open(path, &file, &error) != MLRT_OK) {
        const char *reason = strstr(error.text, ": cannot be opened: ");        // the message names the file itself
        *why = arena_printf(command->cx.arena, "%s", reason != NULL ? strchr(reason + 2, ':') + 2 : error.text);
        return false;
    }
    if (file.bytes > INT32_MAX) {
        mlrt_file_close(&file);
        *why = "the file is too large";
        return false;
    }
    *bytes = arena_string(command->cx.arena, (const char *)file.at, file.bytes);
    *length = (int)file.bytes;
    mlrt_file_close(&file);
    return true;
}

static bool save(const char *path, const char *bytes, size_t length)
{
    MlrtError error = {0};
    if (mlrt_file_write(path, bytes, length, &error) == MLRT_OK)
        return true;
    fprintf(stderr, "mlc: error: %s\n", error.text);
    return false;
}

// --- the C compiler --------------------------------------------------------------------------------------------------------

static int run_compiler(const char *const *arguments)
{
    pid_t child;
    int status;
    int failed = posix_spawnp(&child, arguments[0], NULL, NULL, (char *const *)arguments, environ);
    if (failed != 0) {
        fprintf(stderr, "mlc: error: cannot run the C compiler %s: %s (CC names another)\n", arguments[0], strerror(failed));
        return 1;
    }
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return 3;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    fprintf(stderr, "mlc: error: the C compiler %s failed\n", arguments[0]);
    return 3;
}

static int compile_text(Command *command, const Text *text, bool object)
{
    const char *cc = getenv("CC") != NULL && *getenv("CC") ? getenv("CC") : "gcc";
    const char *source = arena_printf(command->cx.arena, "%s.c", command->out);
    if (!save(source, text->at, text->length))
        return 1;
    const char *arguments[32] = {cc, "-std=gnu11", "-O2", "-fopenmp-simd", "-ffp-contract=off", "-fno-math-errno",
                                 "-fno-trapping-math"};
    int n = 7;
    arguments[n++] = arena_printf(command->cx.arena, "-march=%s", command->target);
    if (object) {
        arguments[n++] = "-c";
        arguments[n++] = source;
    } else {
        arguments[n++] = "-I" MLC_ROOT "/runtime";
        arguments[n++] = source;
        arguments[n++] = MLC_BUILD "/libmlrt.a";
        arguments[n++] = "-lz";
        arguments[n++] = "-lm";
        arguments[n++] = "-lpthread";
    }
    arguments[n++] = "-o";
    arguments[n++] = command->out;
    return run_compiler(arguments);
}

// --- verbs -----------------------------------------------------------------------------------------------------------------

static Model *read_model(Command *command)
{
    NetOptions options = {.load = load, .user = command, .settings = command->set, .n_settings = command->n_set};
    Model *model = net_read(&command->cx, command->file, &options);
    diag_print(command->cx.diag, stderr);
    return model;
}

static int finish(Command *command, bool good)
{
    diag_print(command->cx.diag, stderr);
    return good ? 0 : 1;
}

static int verb_check(Command *command) { return read_model(command) != NULL ? 0 : 1; }

static int verb_fmt(Command *command)
{
    const char *bytes, *why;
    int length;
    if (!load(command, command->file, &bytes, &length, &why)) {
        fprintf(stderr, "mlc: error: %s\n", why);
        return 1;
    }
    Context *cx = &command->cx;
    NetFile *file = net_parse(cx->diag, cx->arena, cx->names, diag_add_source(cx->diag, command->file, bytes, length), true);
    if (file->broken)
        return finish(command, false);
    const char *text = net_format(cx->arena, cx->diag, file);
    return save(command->file, text, strlen(text)) ? 0 : 1;
}

static int verb_inspect(Command *command)
{
    Model *model = read_model(command);
    if (model == NULL)
        return 1;
    int64_t total = 0;
    for (int i = 0; i < model->params.count; i++) {
        const Param *p = model->params.at[i];
        int64_t count = param_count(p);
        printf("%-40s %-24s %12lld%s\n", p->path, type_text(&command->cx, &p->type), (long long)count,
               p->role == ROLE_BUFFER ? "  buffer" : "");
        total += p->role == ROLE_BUFFER ? 0 : count;
    }
    printf("%lld parameters, %d nodes for inference\n", (long long)total, model->infer->nodes.count);
    return 0;
}

static int verb_plan(Command *command)
{
    Model *model = read_model(command);
    if (model == NULL)
        return 1;
    bool train = model->train != NULL;
    Program *program = program_of_graph(model, train ? model->train : model->infer, train ? model->recipe->batch : command->batch);
    if (program == NULL)
        return finish(command, false);
    Text text = {.arena = command->cx.arena};
    plan_print(&text, program);
    fputs(text.at, stdout);
    return 0;
}

static int compile_train(Command *command, Model *model)
{
    Recipe *recipe = model->recipe;
    Program *train = program_of_graph(model, model->train, recipe->batch);
    Program *eval = program_of_graph(model, model->eval, recipe->batch);
    Program *data = recipe->data != NULL ? program_of_graph(model, recipe->data, 1) : NULL;
    if (train == NULL || eval == NULL || (data == NULL && recipe->data != NULL))
        return finish(command, false);
    Text text = {.arena = command->cx.arena};
    codegen_train(&text, model, train, eval, data);
    if (strcmp(command->emit, "program") == 0)
        return save(command->out, text.at, text.length) ? 0 : 1;
    return compile_text(command, &text, false);
}

// The parameter of that name and shape in the file, or NULL after a message that names the first difference.
static const MlrtTensor *weights_find(const MlrtTensors *tensors, const Command *command, const Param *param)
{
    const MlrtTensor *tensor = mlrt_safetensors_find(tensors, param->path);
    int64_t count = param_count(param);
    const char *fault = tensor == NULL                                         ? "is missing"
                      : tensor->type != MLRT_f32                               ? "is not f32"
                      : tensor->rank != param->type.shape.rank                 ? "has another rank"
                      : tensor->bytes != (size_t)count * sizeof(float)         ? "has another size"
                                                                               : NULL;
    for (int i = 0; fault == NULL && i < tensor->rank; i++)
        if (tensor->shape[i] != size_value(param->type.shape.dim[i]))
            fault = "has another shape";
    if (fault == NULL)
        return tensor;
    fprintf(stderr, "mlc: error: %s: %s %s; the net has %s\n", command->weights, param->path, fault,
            type_text((Context *)&command->cx, &param->type));
    return NULL;
}

// Lays the tensors of --weights out as the flat block of the program, in a file that the assembler reads.
static bool weights_write(Command *command, const Model *model, const char *path)
{
    MlrtTensors tensors = {0};
    MlrtError error = {0};
    if (mlrt_safetensors_open(command->weights, &tensors, &error) != MLRT_OK) {
        fprintf(stderr, "mlc: error: %s\n", error.text);
        return false;
    }
    int64_t end = params_end(model, true);
    bool good = true;
    char *block = arena_alloc_array(command->cx.arena, sizeof(float), end);
    for (int i = 0; good && i < model->params.count; i++) {
        const Param *param = model->params.at[i];
        if (param->train_only)
            continue;
        const MlrtTensor *tensor = weights_find(&tensors, command, param);
        good = tensor != NULL;
        if (good)
            memcpy(block + param->offset * (int64_t)sizeof(float), tensor->data, tensor->bytes);
    }
    mlrt_safetensors_close(&tensors);
    return good && save(path, block, (size_t)end * sizeof(float));
}

static int verb_compile(Command *command)
{
    Model *model = read_model(command);
    if (model == NULL)
        return 1;
    bool wants_train = strcmp(command->emit, "train") == 0 || strcmp(command->emit, "program") == 0;
    bool wants_object = strcmp(command->emit, "obj") == 0 || strcmp(command->emit, "c") == 0;
    if (!wants_train && !wants_object) {
        fprintf(stderr, "mlc: error: --emit %s is not available in this version; there are train, program, obj and c\n",
                command->emit);
        return 2;
    }
    if (wants_train && model->train == NULL) {
        fprintf(stderr, "mlc: error: %s has no train section; --emit obj makes an inference object\n", command->file);
        return 1;
    }
    if (command->out == NULL)
        command->out = arena_printf(command->cx.arena, wants_train ? "%s-train" : "%s.o", model->name);
    if (wants_train)
        return compile_train(command, model);
    Program *infer = program_of_graph(model, model->infer, command->batch);
    if (infer == NULL)
        return finish(command, false);
    Text text = {.arena = command->cx.arena}, header = {.arena = command->cx.arena};
    const char *blob = NULL;
    if (command->weights != NULL) {
        blob = arena_printf(command->cx.arena, "%s.weights", command->out);
        if (!weights_write(command, model, blob))
            return 1;
    }
    codegen_object(&text, &header, model, infer, NULL, blob);
    const char *slash = strrchr(command->out, '/');             // the header lies beside the object
    int folder = slash != NULL ? (int)(slash - command->out) + 1 : 0;
    if (!save(arena_printf(command->cx.arena, "%.*s%s.h", folder, command->out, model->name), header.at, header.length))
        return 1;
    if (strcmp(command->emit, "c") == 0)
        return save(command->out, text.at, text.length) ? 0 : 1;
    return compile_text(command, &text, true);
}

static int verb_ops(Command *command)
{
    Text text = {.arena = command->cx.arena};
    if (command->file == NULL) {
        ops_list(&text);
    } else {
        const OpDef *op = op_find(command->file);
        if (op == NULL) {
            fprintf(stderr, "mlc: error: no op is called %s; mlc ops lists all\n", command->file);
            return 1;
        }
        op_manual(&text, op);
    }
    fputs(text.at, stdout);
    return 0;
}

static int verb_passes(Command *command)
{
    Text text = {.arena = command->cx.arena};
    passes_list(&text);
    fputs(text.at, stdout);
    return 0;
}

static int verb_explain(Command *command) { return message_explain(command->file, stdout) ? 0 : 1; }

typedef struct Verb { const char *name; int (*run)(Command *command); bool needs_file; } Verb;

static const Verb verbs[] = {
    {"compile", verb_compile, true}, {"check", verb_check, true},     {"fmt", verb_fmt, true},
    {"inspect", verb_inspect, true}, {"plan", verb_plan, true},       {"ops", verb_ops, false},
    {"passes", verb_passes, false},  {"explain", verb_explain, true},
};

// --- arguments -------------------------------------------------------------------------------------------------------------

static int usage_error(const char *text, const char *what)
{
    fprintf(stderr, "mlc: error: %s%s%s\nmlc --help shows the verbs and options\n", text, what ? " " : "", what ? what : "");
    return 2;
}

static bool set_option(Command *command, const char *option, char *value)
{
    if (strcmp(option, "-D") == 0 || strcmp(option, "--batch") == 0) {
        char *end = strchr(value, '=');
        if (option[1] == '-') {
            command->batch = strtoll(value, &end, 10);
            return *end == 0 && command->batch > 0 && command->batch <= 1 << 20;
        }
        if (end == NULL || command->n_set == SETTINGS_MAX)
            return false;
        *end = 0;
        command->set[command->n_set++] = (NetSetting){value, end + 1};
        return true;
    }
    const char **place = strcmp(option, "-o") == 0          ? &command->out
                       : strcmp(option, "--emit") == 0      ? &command->emit
                       : strcmp(option, "--weights") == 0   ? &command->weights
                       : strcmp(option, "--target") == 0    ? &command->target
                                                            : NULL;
    if (place != NULL)
        *place = value;
    return place != NULL;
}

int main(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        fputs(usage, argc < 2 ? stderr : stdout);
        return argc < 2 ? 2 : 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("mlc " MLC_VERSION);
        return 0;
    }
    Arena *arena = arena_new();
    Command command = {.verb = argv[1], .emit = "train", .batch = 1, .target = "native",
                       .cx = {arena, names_new(arena), diag_new(arena), map_new(arena)}};
    for (int i = 2; i < argc; i++) {
        if (argv[i][0] != '-') {
            if (command.file != NULL)
                return usage_error("one file is enough:", argv[i]);
            command.file = argv[i];
        } else if (strcmp(argv[i], "--help") == 0) {
            fputs(usage, stdout);
            return 0;
        } else if (i + 1 == argc || !set_option(&command, argv[i], argv[i + 1])) {
            return usage_error("not understood:", argv[i]);
        } else {
            i++;
        }
    }
    for (int i = 0; i < COUNT(verbs); i++)
        if (strcmp(verbs[i].name, command.verb) == 0) {
            if (verbs[i].needs_file && command.file == NULL)
                return usage_error("which file?", NULL);
            int code = verbs[i].run(&command);
            arena_free(arena);
            return code;
        }
    return usage_error("no such verb:", command.verb);
}
