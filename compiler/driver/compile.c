// compile.c: `mlc compile`: read the model, make programs of its graphs, print them as C, call the C compiler.
//
// Each kind of result is a function of a dozen lines. Texts are made once, whatever number of results is asked for, and right
// after their programs: the bound of the batch, which a text reads, belongs to the program made last.
#define _GNU_SOURCE
#include "driver.h"

#include "../../codegen/codegen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Making {
    Command *command;
    Model   *model;
    const char *name;                   // of the net, as a C word
    const char *out;                    // of the result being made
    Program *infer;
    Text     object, header, train;     // once they are printed
    float   *weights;                   // NULL: the object takes them from its caller
    bool     wanted[EMIT_COUNT];
} Making;

static Arena *arena_of(const Making *m) { return m->command->cx.arena; }
static const char *named(const Making *m, const char *end) { return arena_printf(arena_of(m), "%s%s", m->name, end); }

// --- Texts -----------------------------------------------------------------------------------------------------------

// The mapping of one sample, for m_prepare and for training. It comes first, since it bounds the batch by 1.
static bool make_data(Making *m, Program **data)
{
    Recipe *recipe = m->model->recipe;
    *data = recipe != NULL && recipe->data != NULL ? program_make(m->command, m->model, recipe->data, 1) : NULL;
    return *data != NULL || recipe == NULL || recipe->data == NULL;
}

static ExitCode read_weights(Making *m)
{
    const char *path = weights_path(m->command, m->model);
    if (path == NULL || weights_bytes(m->model) == 0) {
        m->weights = weights_given(m->command, m->model);
        return EXIT_DONE;
    }
    m->weights = weights_read(m->command, m->model, path);
    return m->weights != NULL ? EXIT_DONE : EXIT_INPUT;
}

static ExitCode make_object(Making *m)
{
    Program *data;
    if (m->object.at != NULL)
        return EXIT_DONE;
    if (!make_data(m, &data) || (m->infer = program_make(m->command, m->model, m->model->infer, m->command->batch.number)) == NULL)
        return EXIT_INPUT;
    ExitCode code = read_weights(m);
    if (code != EXIT_DONE)
        return code;
    m->object.arena = m->header.arena = arena_of(m);
    codegen_object(&m->object, &m->header, m->model, m->infer, data, m->weights != NULL ? named(m, ".weights") : NULL);
    time_note(m->command, "print the object");
    return EXIT_DONE;
}

static ExitCode make_train(Making *m)
{
    Program *data, *train, *eval;
    int64_t batch = m->model->recipe->batch;
    if (m->train.at != NULL)
        return EXIT_DONE;
    if (!make_data(m, &data) || (train = program_make(m->command, m->model, m->model->train, batch)) == NULL ||
        (eval = program_make(m->command, m->model, m->model->eval, batch)) == NULL)
        return EXIT_INPUT;
    m->train.arena = arena_of(m);
    codegen_train(&m->train, m->model, train, eval, data);
    time_note(m->command, "print the training program");
    return EXIT_DONE;
}

// --- Calls of the C compiler -----------------------------------------------------------------------------------------

static const char *absolute(const Making *m, const char *path)
{
    char *here = *path == '/' ? NULL : getcwd(NULL, 0);
    const char *full = here != NULL ? arena_printf(arena_of(m), "%s/%s", here, path) : path;
    free(here);
    return full;
}

static bool write_sources(Making *m)
{
    return m->command->dry_run.given ||
           (work_write(m->command, named(m, ".c"), m->object.at, m->object.length) &&
            work_write(m->command, named(m, ".h"), m->header.at, m->header.length) &&
            (m->weights == NULL || work_write(m->command, named(m, ".weights"), m->weights, (size_t)weights_bytes(m->model))));
}

static bool write_result(Making *m, const char *path, const void *bytes, size_t count)
{
    return m->command->dry_run.given || result_write(m->command, path, bytes, count);
}

// The header lies beside what it describes.
static bool write_header(Making *m)
{
    const char *slash = strrchr(m->out, '/');
    int folder = slash != NULL ? (int)(slash - m->out) + 1 : 0;
    return strcmp(m->out, "-") == 0 ||
           write_result(m, arena_printf(arena_of(m), "%.*s%s.h", folder, m->out, m->name), m->header.at, m->header.length);
}

// Runs the build with the result as its output.
static ExitCode build_result(Making *m, Build *build)
{
    Command *command = m->command;
    Result result = {.path = m->out, .temporary = m->out};
    if (!command->dry_run.given && !result_begin(command, &result, m->out))
        return EXIT_INPUT;
    build_add(command, build, "-o");
    build_add(command, build, absolute(m, result.temporary));
    ExitCode code = build_run(command, build);
    time_note(command, "C compiler");
    return code != EXIT_DONE || command->dry_run.given || result_end(command, &result) ? code : EXIT_INPUT;
}

static void add_all(Making *m, Build *build, const char *const *arguments)
{
    for (; *arguments != NULL; arguments++)
        build_add(m->command, build, *arguments);
}

// What links the runtime in. It is there for this machine only.
static ExitCode add_runtime(Making *m, Build *build, const char *what)
{
    Home home;
    if (build_is_cross(build->target))
        return fail_input(m->command, MESSAGE_E0901, arena_printf(arena_of(m), "%s for %s", what, build->target->name));
    if (!home_find(m->command, &home))
        return EXIT_INPUT;
    add_all(m, build, (const char *const[]){"-I", home.headers, home.library, "-lz", "-lm", "-lpthread", NULL});
    return EXIT_DONE;
}

// --- Kinds of results ------------------------------------------------------------------------------------------------

static ExitCode emit_train(Making *m)
{
    Build build;
    ExitCode code = make_train(m);
    if (code != EXIT_DONE)
        return code;
    if (!m->command->dry_run.given && !work_write(m->command, named(m, "-train.c"), m->train.at, m->train.length))
        return EXIT_INPUT;
    if (!build_begin(m->command, &build, m->command->target.text))
        return EXIT_INPUT;
    build_add(m->command, &build, named(m, "-train.c"));
    code = add_runtime(m, &build, "a training program");
    return code == EXIT_DONE ? build_result(m, &build) : code;
}

static ExitCode emit_train_c(Making *m)
{
    ExitCode code = make_train(m);
    return code != EXIT_DONE || write_result(m, m->out, m->train.at, m->train.length) ? code : EXIT_INPUT;
}

// The sources of the object, and a call of the C compiler with these arguments.
static ExitCode begin_object(Making *m, Build *build, const char *const *arguments)
{
    ExitCode code = make_object(m);
    if (code != EXIT_DONE)
        return code;
    if (!write_sources(m) || !build_begin(m->command, build, m->command->target.text))
        return EXIT_INPUT;
    add_all(m, build, arguments);
    return EXIT_DONE;
}

static ExitCode emit_obj(Making *m)
{
    Build build;
    ExitCode code = begin_object(m, &build, (const char *const[]){"-fPIC", "-c", named(m, ".c"), NULL});
    if (code != EXIT_DONE)
        return code;
    code = build_result(m, &build);
    return code != EXIT_DONE || write_header(m) ? code : EXIT_INPUT;
}

static ExitCode emit_so(Making *m)
{
    Build build;
    ExitCode code = begin_object(m, &build, (const char *const[]){"-shared", "-fPIC", named(m, ".c"), "-lm", NULL});
    if (code != EXIT_DONE)
        return code;
    code = build_result(m, &build);
    return code != EXIT_DONE || write_header(m) ? code : EXIT_INPUT;
}

// "aarch64-linux-gnu-ar" belongs to "aarch64-linux-gnu-gcc".
static const char *archiver(Making *m, const TargetDef *target)
{
    size_t length = build_is_cross(target) ? strlen(target->compiler) : 0;
    return length > 3 ? arena_printf(arena_of(m), "%.*sar", (int)length - 3, target->compiler) : "ar";
}

static ExitCode archive(Making *m, const TargetDef *target)
{
    const char *archive = named(m, ".a");
    const char *const call[] = {archiver(m, target), "rcsD", archive, named(m, ".o"), NULL};
    ExitCode code = tool_run(m->command, call);
    MlrtFile file;
    MlrtError error = {0};
    if (code != EXIT_DONE)
        return code;
    if (mlrt_file_open(work_file(m->command, archive), &file, &error) != MLRT_OK)
        return fail_runtime(m->command, &error);
    bool good = result_write(m->command, m->out, file.at, file.bytes);
    mlrt_file_close(&file);
    return good ? EXIT_DONE : EXIT_INPUT;
}

static ExitCode emit_lib(Making *m)
{
    Build build;
    ExitCode code = begin_object(m, &build, (const char *const[]){"-fPIC", "-c", named(m, ".c"), "-o", named(m, ".o"), NULL});
    if (code != EXIT_DONE)
        return code;
    code = build_run(m->command, &build);
    time_note(m->command, "C compiler");
    if (code != EXIT_DONE || m->command->dry_run.given)
        return code;
    code = archive(m, build.target);
    return code != EXIT_DONE || write_header(m) ? code : EXIT_INPUT;
}

static ExitCode emit_exe(Making *m)
{
    Build build;
    Ports table;
    Text ports = {.arena = arena_of(m)};
    ExitCode code = make_object(m);
    if (code != EXIT_DONE)
        return code;
    if (m->weights == NULL && weights_bytes(m->model) > 0)
        return fail_input(m->command, MESSAGE_E0710, m->model->name);
    if (!ports_make(m->command, m->model, &table))
        return EXIT_INPUT;
    ports_print(&ports, &table, m->model, m->infer, true, false);
    if (!write_sources(m) ||
        (!m->command->dry_run.given && !work_write(m->command, named(m, "-main.c"), ports.at, ports.length)) ||
        !build_begin(m->command, &build, m->command->target.text))
        return EXIT_INPUT;
    add_all(m, &build, (const char *const[]){named(m, ".c"), named(m, "-main.c"), NULL});
    code = add_runtime(m, &build, "a program");
    return code == EXIT_DONE ? build_result(m, &build) : code;
}

static ExitCode emit_c(Making *m)
{
    const char *slash = strrchr(m->out, '/');
    ExitCode code = make_object(m);
    if (code != EXIT_DONE)
        return code;
    if (!write_result(m, m->out, m->object.at, m->object.length) || !write_header(m))
        return EXIT_INPUT;
    const char *weights = arena_printf(arena_of(m), "%.*s%s.weights", slash != NULL ? (int)(slash - m->out) + 1 : 0, m->out, m->name);
    bool stands_alone = m->weights == NULL || strcmp(m->out, "-") == 0;
    return stands_alone || write_result(m, weights, m->weights, (size_t)weights_bytes(m->model)) ? EXIT_DONE : EXIT_INPUT;
}

static ExitCode emit_weights(Making *m)
{
    ExitCode code = make_object(m);
    if (code != EXIT_DONE)
        return code;
    if (m->weights == NULL)
        return weights_bytes(m->model) > 0 ? fail_input(m->command, MESSAGE_E0710, m->model->name)
                                           : fail_input(m->command, MESSAGE_E0620, m->model->name, "parameters");
    return write_result(m, m->out, m->weights, (size_t)weights_bytes(m->model)) ? EXIT_DONE : EXIT_INPUT;
}

static ExitCode emit_graph(Making *m)
{
    Text text = {.arena = arena_of(m)};
    Graph *graph = model_part(m->command, m->model);
    if (graph == NULL)
        return EXIT_INPUT;
    text_put(&text, "", 0);
    graph_print(&text, graph);
    return write_result(m, m->out, text.at, text.length) ? EXIT_DONE : EXIT_INPUT;
}

static ExitCode emit_program(Making *m)
{
    Text text = {.arena = arena_of(m)};
    Graph *graph = model_part(m->command, m->model);
    if (graph == NULL)
        return EXIT_INPUT;
    Program *program = program_make(m->command, m->model, graph, part_batch(m->command, m->model, graph));
    if (program == NULL)
        return EXIT_INPUT;
    program_print(&text, program);
    return write_result(m, m->out, text.at, text.length) ? EXIT_DONE : EXIT_INPUT;
}

static ExitCode (*const emitters[])(Making *m) = {
#define EMIT(name, needs, file, text, brief) emit_##name,
#include "options.def"
};

// Graphs are shown as they were read: before passes rewrite them. A program of the same graph is made last, of what is left.
static const EmitId emit_order[] = {EMIT_graph,   EMIT_obj,   EMIT_lib,     EMIT_so,     EMIT_exe,
                                    EMIT_c,       EMIT_weights, EMIT_train, EMIT_train_c, EMIT_program};

// --- What is asked for -----------------------------------------------------------------------------------------------

static int wanted_kinds(Making *m)
{
    int count = 0;
    const char *list = m->command->emit.text;
    if (*list == 0)
        list = m->model->train != NULL ? "train" : "obj";
    for (int i = 0; i < EMIT_COUNT; i++)
        for (const char *at = list; *at != 0; at += strcspn(at, ",") + (at[strcspn(at, ",")] != 0))
            if (strlen(emit_rows[i].name) == strcspn(at, ",") && strncmp(at, emit_rows[i].name, strcspn(at, ",")) == 0 && !m->wanted[i]) {
                m->wanted[i] = true;
                count++;
            }
    return count;
}

static bool any_needs(const Making *m, EmitNeeds needs)
{
    for (int i = 0; i < EMIT_COUNT; i++)
        if (m->wanted[i] && emit_rows[i].needs == needs)
            return true;
    return false;
}

static ExitCode check_options(Making *m, int kinds)
{
    Command *command = m->command;
    bool object = any_needs(m, NEEDS_INFER) || m->wanted[EMIT_program], text = false;
    if (any_needs(m, NEEDS_TRAIN) && m->model->train == NULL) {
        fail_input(command, MESSAGE_E0620, m->model->name, "train section");
        diag_help(command->cx.diag, "--emit obj makes an inference object");
        return EXIT_INPUT;
    }
    if (command->out.given && kinds > 1)
        return fail_usage(command, MESSAGE_E0617, "-o", "several results are asked for; they get names of their own");
    for (int i = 0; i < EMIT_COUNT; i++)
        text |= m->wanted[i] && emit_rows[i].is_text;
    if (strcmp(command->out.text, "-") == 0 && !text)
        return fail_usage(command, MESSAGE_E0617, "-o -", "only text goes to standard output");
    if (command->batch.given && !object)
        return fail_usage(command, MESSAGE_E0617, "--batch", "it is of objects; -D batch=N sets that of training");
    if (command->weights.given && !any_needs(m, NEEDS_INFER))
        return fail_usage(command, MESSAGE_E0617, "--weights", "a training program takes them when it runs");
    if (command->part.given && !m->wanted[EMIT_graph] && !m->wanted[EMIT_program])
        return fail_usage(command, MESSAGE_E0617, "--part", "it is of --emit graph and --emit program");
    if ((command->mf.given || command->mt.given || command->mp.given) && !command->md.given)
        return fail_usage(command, MESSAGE_E0617, "-MF, -MT or -MP", "it goes with -MD");
    return EXIT_DONE;
}

static const char *result_name(const Making *m, const EmitDef *def)
{
    const char *percent = strchr(def->file, '%');
    if (m->command->out.given)
        return m->command->out.text;
    return percent == NULL ? def->file
                           : arena_printf(arena_of(m), "%.*s%s%s", (int)(percent - def->file), def->file, m->model->name, percent + 1);
}

// --- Dependencies ----------------------------------------------------------------------------------------------------

static void put_make_name(Text *text, const char *name)
{
    for (; *name != 0; name++)
        text_add(text, *name == ' ' || *name == '#' || *name == '\\' ? "\\%c" : *name == '$' ? "$%c" : "%c", *name);
}

// Absolute names, so that it does not matter where make runs.
static bool write_dependencies(Making *m, const char *out)
{
    Command *command = m->command;
    Text text = {.arena = arena_of(m)}, empty = {.arena = arena_of(m)};
    text_put(&empty, "", 0);
    put_make_name(&text, command->mt.given ? command->mt.text : out);
    text_add(&text, ":");
    for (int i = 0; i < command->read.count; i++) {
        char *full = realpath(command->read.at[i], NULL);
        const char *name = full != NULL ? full : command->read.at[i];
        text_add(&text, " \\\n  ");
        put_make_name(&text, name);
        if (command->mp.given) {
            put_make_name(&empty, name);
            text_add(&empty, ":\n");
        }
        free(full);
    }
    text_add(&text, "\n%s", empty.at);
    return write_result(m, command->mf.given ? command->mf.text : arena_printf(arena_of(m), "%s.d", out), text.at, text.length);
}

ExitCode verb_compile(Command *command)
{
    Making m = {.command = command, .model = model_read(command)};
    if (m.model == NULL)
        return EXIT_INPUT;
    m.name = identifier(&command->cx, m.model->name);
    ExitCode code = check_options(&m, wanted_kinds(&m));
    const char *first = NULL;
    for (int i = 0; i < COUNT(emit_order) && code == EXIT_DONE; i++) {
        if (!m.wanted[emit_order[i]])
            continue;
        m.out = result_name(&m, &emit_rows[emit_order[i]]);
        first = first == NULL ? m.out : first;
        code = emitters[emit_order[i]](&m);
    }
    if (code == EXIT_DONE && command->md.given && !write_dependencies(&m, first))
        code = EXIT_INPUT;
    return code;
}
