// run.c: `mlc run`: a model on files. The object is compiled for the very batch that the files have, loaded, and called by the
// table that stands in it; with --interpret the table is mlc's own, and the interpreter does what the rows of the ops say.
#define _GNU_SOURCE
#include "driver.h"

#include "../../codegen/codegen.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

// --- Interpreted -----------------------------------------------------------------------------------------------------

static Tensor *tensor_of(Arena *arena, const Type *type, const int64_t *symbols, const void *data)
{
    int64_t dim[RANK_MAX];
    for (int i = 0; i < type->shape.rank; i++)
        dim[i] = size_at(type->shape.dim[i], symbols);
    Tensor *tensor = tensor_new(arena, type->dtype, type->shape.rank, dim);
    if (data != NULL)
        memcpy(tensor->data, data, (size_t)tensor_count(tensor) * (size_t)type_def(type->dtype)->bytes);
    return tensor;
}

static void place_values(const Running *r, Eval *eval, const void *const *in)
{
    const Graph *graph = r->model->infer;
    for (int i = 0; i < graph->values.count; i++) {
        const Value *value = graph->values.at[i];
        if (value->kind == VALUE_PARAM)
            eval->at[i] = tensor_of(eval->arena, &value->type, eval->symbols, r->weights + value->param->offset);
        else if (value->kind == VALUE_INPUT)
            eval->at[i] = tensor_of(eval->arena, &value->type, eval->symbols, in[value->index]);
    }
}

const char *running_interpret(void *user, const void *const *in, void *const *out, const int64_t *size, const void *weights, void *arena,
                             size_t arena_bytes)
{
    const Ports *ports = user;
    const Running *r = ports->running;
    const Graph *graph = r->model->infer;
    (void)weights, (void)arena, (void)arena_bytes;
    Arena *memory = r->command->cx.arena;
    Eval eval = {.arena = memory, .at = NEW_ARRAY(memory, Tensor *, graph->values.count + 1), .symbols = ports_symbols(ports, size)};
    place_values(r, &eval, in);
    if (!eval_graph(graph, &eval))
        return eval.error != NULL ? eval.error : "the interpreter failed";
    for (int i = 0; i < graph->outputs.count; i++) {
        const Value *value = graph->outputs.at[i].value;
        const Tensor *tensor = eval.at[value->id];
        memcpy(out[i], tensor->data, (size_t)tensor_count(tensor) * (size_t)type_def(value->type.dtype)->bytes);
    }
    return NULL;
}

// --- Compiled --------------------------------------------------------------------------------------------------------

static ExitCode compile_object(Running *r, int64_t batch, const char *library)
{
    Command *command = r->command;
    Context *cx = &command->cx;
    Text c = {.arena = cx->arena}, header = {.arena = cx->arena}, ports = {.arena = cx->arena};
    Build build;
    Home home;
    Program *infer = program_make(command, r->model, r->model->infer, batch);
    if (infer == NULL || !home_find(command, &home) || !build_begin(command, &build, "native"))
        return EXIT_INPUT;
    const char *name = identifier(cx, r->model->name), *arena_c = arena_printf(cx->arena, "%s.c", name),
               *ports_c = arena_printf(cx->arena, "%s-ports.c", name);
    codegen_object(&c, &header, r->model, infer, NULL, NULL);
    ports_print(&ports, &r->ports, r->model, infer, false, weights_bytes(r->model) > 0);
    if (!work_write(command, arena_c, c.at, c.length) || !work_write(command, ports_c, ports.at, ports.length) ||
        !work_write(command, arena_printf(cx->arena, "%s.h", name), header.at, header.length))
        return EXIT_INPUT;
    const char *const arguments[] = {"-shared", "-fPIC", "-I", home.headers, arena_c, ports_c, "-lm", "-o", library};
    for (int i = 0; i < COUNT(arguments); i++)
        build_add(command, &build, arguments[i]);
    ExitCode code = build_run(command, &build);
    time_note(command, "C compiler");
    return code;
}

ExitCode running_load(Running *r, int64_t batch, MlrtObject *object)
{
    const char *library = work_file(r->command, arena_printf(r->command->cx.arena, "model-%d.so", r->number));
    if (library == NULL)
        return EXIT_INPUT;
    ExitCode code = compile_object(r, batch, library);
    if (code != EXIT_DONE)
        return code;
    void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    const MlrtObject *table = loaded != NULL ? dlsym(loaded, "mlc_object") : NULL;
    if (table == NULL)
        return fail_input(r->command, MESSAGE_E0712, dlerror());
    *object = *table;
    return EXIT_DONE;
}

// --- The verb --------------------------------------------------------------------------------------------------------

// Parameters get their places; for the interpreter nothing else is planned.
ExitCode running_weights(Running *r)
{
    params_place(r->model);
    if (weights_bytes(r->model) == 0)
        return EXIT_DONE;
    const char *path = weights_path(r->command, r->model);
    if (path == NULL && (r->weights = weights_given(r->command, r->model)) != NULL)
        return EXIT_DONE;
    if (path == NULL)
        return fail_input(r->command, MESSAGE_E0710, r->model->name);
    r->weights = weights_read(r->command, r->model, path);
    return r->weights != NULL ? EXIT_DONE : EXIT_INPUT;
}

static ExitCode run_ports(Running *r, MlrtSlots *ports)
{
    Command *command = r->command;
    MlrtError error = {0};
    MlrtObject object = r->ports.object;
    const char *const *words = command->operands.at + 1;
    MlrtStatus status = MLRT_OK;
    if (command->samples.given && command->operands.count > 1)
        return fail_usage(command, MESSAGE_E0617, command->operands.at[1], "--samples gives all inputs");
    if (command->samples.given && !samples_read(command, r->model, &r->ports, ports, command->samples.text))
        return EXIT_INPUT;
    if (!command->samples.given) {
        status = mlrt_slots_match(&object, ports, command->operands.count - 1, words, &error);
        if (status == MLRT_OK)
            status = mlrt_slots_read(&object, ports, &error);
    }
    if (status != MLRT_OK)
        return fail_runtime(command, &error);
    time_note(command, "read the inputs");
    object.run = running_interpret;
    ExitCode code = command->interpret.given ? EXIT_DONE : running_load(r, ports->size[0], &object);
    if (code != EXIT_DONE)
        return code;
    status = mlrt_slots_run(&object, ports, r->weights, &error);
    time_note(command, "run");
    if (status == MLRT_OK)
        status = mlrt_slots_write(&object, ports, command->to.text, &error);
    time_note(command, "write the outputs");
    return status == MLRT_OK ? EXIT_DONE : fail_runtime(command, &error);
}

ExitCode verb_run(Command *command)
{
    Running r = {.command = command};
    MlrtSlots ports = {0};
    if (!command->to.given)
        return fail_usage(command, MESSAGE_E0606, "mlc run", "--out DIR: where the outputs go");
    if ((r.model = model_read(command)) == NULL || !model_complete(r.model, false) || !ports_make(command, r.model, &r.ports))
        return EXIT_INPUT;
    r.ports.running = &r;
    ExitCode code = running_weights(&r);
    if (code == EXIT_DONE)
        code = run_ports(&r, &ports);
    mlrt_slots_close(&ports);
    return code;
}
