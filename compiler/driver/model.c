// model.c: reading the model, its weights, and what they depend on.
#include "driver.h"

#include "../../runtime/dataset.h"
#include "../../runtime/safetensors.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

ExitCode fail_runtime(Command *command, const MlrtError *error)
{
    diag_report(command->cx.diag, (DiagPlace){0}, MESSAGE_E0704, error->text);
    return (ExitCode)mlrt_status_exit_code(error->status);
}

static double milliseconds(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

void time_note(Command *command, const char *what)
{
    double now = milliseconds();
    if (command->time.given && what != NULL)
        text_add(&command->times, "%-28s %8.1f ms\n", what, now - command->started);
    command->started = now;
}

bool file_load(void *user, const char *path, const char **bytes, int *length, const char **why)
{
    Command *command = user;
    MlrtFile file;
    MlrtError error = {0};
    if (mlrt_file_open(path, &file, &error) != MLRT_OK) {
        size_t name = strlen(path);                     // the caller's message names the file itself
        const char *text = strncmp(error.text, path, name) == 0 ? error.text + name + strspn(error.text + name, ": ") : error.text;
        const char *reason = strstr(text, "cannot be opened: ");
        *why = arena_printf(command->cx.arena, "%s", reason == text ? text + strlen("cannot be opened: ") : text);
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
    LIST_ADD(command->cx.arena, command->read, arena_printf(command->cx.arena, "%s", path));
    return true;
}

// What a file of weights has, for the messages of the language. A file that is not there yet is no fault.
static bool file_tensors(void *user, const char *path, const NetTensor **list, int *count, const char **why)
{
    Command *command = user;
    MlrtTensors tensors = {0};
    MlrtError error = {0};
    *why = NULL;
    if (access(path, F_OK) != 0)
        return false;
    if (mlrt_safetensors_open(path, &tensors, &error) != MLRT_OK) {
        *why = arena_printf(command->cx.arena, "%s", error.text);
        return false;
    }
    NetTensor *made = NEW_ARRAY(command->cx.arena, NetTensor, (int64_t)tensors.count + 1);
    for (size_t i = 0; i < tensors.count; i++) {
        const MlrtTensor *t = &tensors.tensor[i];
        made[i] = (NetTensor){arena_printf(command->cx.arena, "%s", t->name), type_find(mlrt_type_name(t->type)), t->rank, {0}};
        for (int k = 0; k < t->rank && k < RANK_MAX; k++)
            made[i].dim[k] = t->shape[k];
    }
    *list = made;
    *count = (int)tensors.count;
    mlrt_safetensors_close(&tensors);
    LIST_ADD(command->cx.arena, command->read, path);
    return true;
}

// --fix NAME=FILE: the inputs that become constants.
static bool read_fixed(Command *command, OnnxOptions *options)
{
    OnnxFixed *fixed = NEW_ARRAY(command->cx.arena, OnnxFixed, command->fix.all.count + 1);
    for (int i = 0; i < command->fix.all.count; i++) {
        const char *setting = command->fix.all.at[i], *equals = strchr(setting, '='), *bytes, *why = NULL, *name;
        int length;
        if (equals == NULL)
            return fail_usage(command, MESSAGE_E0606, "--fix", "NAME=FILE"), false;
        fixed[i].name = arena_string(command->cx.arena, setting, (size_t)(equals - setting));
        if (file_load(command, equals + 1, &bytes, &length, &why))
            fixed[i].tensor = onnx_tensor_read(command->cx.arena, bytes, (size_t)length, &name, &why);
        if (fixed[i].tensor == NULL)
            return fail_input(command, MESSAGE_E0701, equals + 1, why), false;
    }
    options->fixed = fixed;
    options->n_fixed = command->fix.all.count;
    return true;
}

static Model *onnx_model(Command *command, const char *path)
{
    const char *bytes, *why = NULL;
    int length;
    OnnxOptions options = {0};
    if (!read_fixed(command, &options))
        return NULL;
    if (!file_load(command, path, &bytes, &length, &why)) {
        fail_input(command, MESSAGE_E0701, path, why);
        return NULL;
    }
    Model *model = onnx_read(&command->cx, path, bytes, (size_t)length, &options);
    time_note(command, "read the model");
    return command->cx.diag->errors == 0 ? model : NULL;
}

Model *model_read(Command *command)
{
    if (onnx_is_model(command->operands.at[0], NULL, 0))
        return onnx_model(command, command->operands.at[0]);
    NetOptions options = {.load = file_load, .tensors = file_tensors, .user = command, .settings = command->settings.at,
                          .n_settings = command->settings.count};
    Model *model = net_read(&command->cx, command->operands.at[0], &options);
    time_note(command, "read the model");
    return command->cx.diag->errors == 0 ? model : NULL;
}

Program *program_make(Command *command, Model *model, Graph *graph, int64_t batch)
{
    command->cx.show = command->show.given ? command->show.text : NULL;
    command->cx.timed = command->time.given;
    command->cx.log = command->show.given || command->time.given ? &command->times : NULL;
    const char *part = graph == model->infer ? "infer" : graph == model->train ? "train" : graph == model->eval ? "eval" : "data";
    Program *program = program_of_graph(model, graph, batch);
    time_note(command, arena_printf(command->cx.arena, "passes (%s)", part));
    return program;
}

Graph *model_part(Command *command, Model *model)
{
    const char *part = *command->part.text ? command->part.text : model->train != NULL ? "train" : "infer";
    Graph *graph = strcmp(part, "infer") == 0                             ? model->infer
                 : model->recipe == NULL                                  ? NULL
                 : strcmp(part, "train") == 0                             ? model->train
                 : strcmp(part, "eval") == 0                              ? model->eval
                                                                          : model->recipe->data;
    if (graph == NULL)
        fail_input(command, MESSAGE_E0620, model->name, strcmp(part, "data") == 0 ? "data section" : "train section");
    return graph;
}

// --- Weights ---------------------------------------------------------------------------------------------------------

int64_t weights_bytes(const Model *model) { return params_end(model, true) * (int64_t)sizeof(float); }

// The language has made the path of `weights from` one that can be opened, inside the folder of the model.
// The elements that came with the model; NULL unless all of them did.
float *weights_given(Command *command, const Model *model)
{
    float *block = NEW_ARRAY(command->cx.arena, float, params_end(model, true) + 1);
    for (int i = 0; i < model->params.count; i++) {
        const Param *param = model->params.at[i];
        if (!param->train_only && param->data == NULL)
            return NULL;
        if (!param->train_only)
            memcpy(block + param->offset, param->data, sizeof(float) * (size_t)param_count(param));
    }
    return weights_bytes(model) > 0 ? block : NULL;
}

const char *weights_path(Command *command, const Model *model)
{
    if (command->weights.given)
        return command->weights.text;
    return model->weights != NULL && model->weight_files.count > 0 ? model->weight_files.at[0].path : NULL;
}

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

// What other tools put before every name: "module.", "_orig_mod.", "model.".
static const char *common_prefix(Command *command, const MlrtTensors *tensors, const Model *model)
{
    const char *path = NULL;
    for (int i = 0; i < model->params.count && path == NULL; i++)
        path = model->params.at[i]->train_only ? NULL : model->params.at[i]->path;
    for (size_t i = 0; path != NULL && i < tensors->count; i++) {
        const char *name = tensors->tensor[i].name;
        size_t longer = strlen(name);
        if (ends_with(name, path) && longer > strlen(path) && name[longer - strlen(path) - 1] == '.' &&
            strncmp(name, "optimizer.", 10) != 0 && mlrt_safetensors_find(tensors, path) == NULL)
            return arena_string(command->cx.arena, name, longer - strlen(path));
    }
    return "";
}

// What a tensor has that the parameter has not, or NULL.
static const char *misfit(Command *command, const MlrtTensor *tensor, const Param *param)
{
    const Shape *shape = &param->type.shape;
    bool same = tensor->rank == shape->rank;
    for (int i = 0; same && i < tensor->rank; i++)
        same = tensor->shape[i] == size_value(shape->dim[i]);
    if (same && (tensor->type == MLRT_f32 || tensor->type == MLRT_f64)) {
        size_t bad = mlrt_tensor_nonfinite(tensor);
        return bad == 0 ? NULL : arena_printf(command->cx.arena, "%s: %zu values that are not finite", param->path, bad);
    }
    return arena_printf(command->cx.arena, "%s: %s%s in the file, %s in the net", param->path, mlrt_type_name(tensor->type),
                        mlrt_shape_text(tensor->shape, tensor->rank).text, type_text(&command->cx, &param->type));
}

typedef struct Faults { LIST(const char *) at; } Faults;

static const MlrtTensor *find_tensor(Command *command, const MlrtTensors *tensors, const char *prefix, const Param *param, Faults *faults)
{
    Arena *arena = command->cx.arena;
    const MlrtTensor *tensor = mlrt_safetensors_find(tensors, arena_printf(arena, "%s%s", prefix, param->path));
    const char *fault = tensor == NULL ? arena_printf(arena, "%s is missing", param->path) : misfit(command, tensor, param);
    if (fault != NULL)
        LIST_ADD(arena, faults->at, fault);
    return fault == NULL ? tensor : NULL;
}

static bool is_expected(Command *command, const Model *model, const char *prefix, const char *name)
{
    if (strncmp(name, "optimizer.", 10) == 0 || ends_with(name, "num_batches_tracked"))
        return true;
    for (int i = 0; i < model->params.count; i++)
        if (strcmp(name, arena_printf(command->cx.arena, "%s%s", prefix, model->params.at[i]->path)) == 0)
            return true;
    return false;
}

static bool report_faults(Command *command, const char *path, const Faults *faults)
{
    enum { SHOWN = 20 };
    if (faults->at.count == 0)
        return true;
    fail_input(command, MESSAGE_E0709, path);
    for (int i = 0; i < faults->at.count && i < SHOWN; i++)
        diag_note(command->cx.diag, (DiagPlace){0}, "%s", faults->at.at[i]);
    if (faults->at.count > SHOWN)
        diag_note(command->cx.diag, (DiagPlace){0}, "and %d more", faults->at.count - SHOWN);
    return false;
}

// f64 is rounded, as a training program does.
static void copy_weights(const MlrtTensor *tensor, const Param *param, float *to)
{
    int64_t count = param_count(param);
    if (tensor->type == MLRT_f32)
        memcpy(to, tensor->data, tensor->bytes);
    for (int64_t i = 0; i < count && tensor->type == MLRT_f64; i++) {
        double value;
        memcpy(&value, (const char *)tensor->data + 8 * i, sizeof value);
        to[i] = (float)value;
    }
}

// What the codes of text columns stand for, as training numbered them.
static void read_names(Command *command, const MlrtTensors *tensors, Recipe *recipe)
{
    Arena *arena = command->cx.arena;
    for (int f = 0; recipe != NULL && f < recipe->fields.count; f++) {
        Field *field = &recipe->fields.at[f];
        MlrtCodes codes = {0};
        MlrtError error = {0};
        const char *text = mlrt_safetensors_metadata(tensors, arena_printf(arena, "codes.%d", f));
        if (text == NULL || field->codes == NULL || mlrt_codes_parse(text, &codes, &error) != MLRT_OK)
            continue;
        for (int i = 0; i < codes.count; i++)
            LIST_ADD(arena, field->names, arena_printf(arena, "%s", codes.names[i]));
        mlrt_codes_free(&codes);
    }
}

float *weights_read(Command *command, Model *model, const char *path)
{
    MlrtTensors tensors = {0};
    MlrtError error = {0};
    Faults faults = {0};
    if (mlrt_safetensors_open(path, &tensors, &error) != MLRT_OK)
        return fail_runtime(command, &error), NULL;
    LIST_ADD(command->cx.arena, command->read, path);
    const char *prefix = common_prefix(command, &tensors, model);
    if (*prefix)
        diag_report(command->cx.diag, (DiagPlace){0}, MESSAGE_W0701, path, prefix);
    float *block = NEW_ARRAY(command->cx.arena, float, params_end(model, true) + 1);
    for (int i = 0; i < model->params.count; i++) {
        const Param *param = model->params.at[i];
        const MlrtTensor *tensor = param->train_only ? NULL : find_tensor(command, &tensors, prefix, param, &faults);
        if (tensor != NULL)
            copy_weights(tensor, param, block + param->offset);
    }
    for (size_t i = 0; i < tensors.count; i++)
        if (!is_expected(command, model, prefix, tensors.tensor[i].name))
            LIST_ADD(command->cx.arena, faults.at,
                     arena_printf(command->cx.arena, "%s is not in the net", tensors.tensor[i].name));
    read_names(command, &tensors, model->recipe);
    mlrt_safetensors_close(&tensors);
    time_note(command, "read the weights");
    return report_faults(command, path, &faults) ? block : NULL;
}
