// inspect.c: `mlc inspect` and `mlc plan`: what a model is, layer by layer, and where its memory goes.
#include "driver.h"

#include <stdio.h>
#include <string.h>

// --- Layers ----------------------------------------------------------------------------------------------------------

typedef struct Layer {
    const Node *node;
    const char *name, *shape;
    int64_t params, buffers;            // elements that are its own, counted where they are first used
    Size    operations;
} Layer;

typedef struct Table {
    Command *command;
    Model   *model;
    Program *program;                   // for inference at the batch given
    LIST(Layer) layers;
    int64_t params, buffers;
    Size    operations;
} Table;

static Size node_operations(Context *cx, const Node *node)
{
    return node->op->flops != NULL ? node->op->flops(cx, node) : shape_count(cx, &node->out[0]->type.shape);
}

static const char *shapes_text(Context *cx, const Node *node)
{
    Text text = {.arena = cx->arena};
    for (int i = 0; i < node->n_out; i++) {
        text_add(&text, i > 0 ? ", " : "");
        type_print(&text, &node->out[i]->type);
    }
    return text.at != NULL ? text.at : "";
}

static Layer layer_of(Table *table, const Node *node, bool *counted)
{
    Context *cx = &table->command->cx;
    Layer layer = {.node = node, .name = node->scope != NULL ? node->scope : "", .shape = shapes_text(cx, node),
                   .operations = node_operations(cx, node)};
    for (int i = 0; i < node->n_in; i++) {
        const Value *value = node->in[i];
        if (value == NULL || value->kind != VALUE_PARAM || counted[value->id])
            continue;
        counted[value->id] = true;
        *(value->param->role == ROLE_BUFFER ? &layer.buffers : &layer.params) += param_count(value->param);
    }
    return layer;
}

// The layers are those of the net as it was written; the program, made afterwards, has what memory they take.
static bool table_make(Table *table)
{
    Context *cx = &table->command->cx;
    const Graph *graph = table->model->infer;
    bool *counted = NEW_ARRAY(cx->arena, bool, graph->values.count + 1);
    table->operations = size_const(cx, 0);
    for (int i = 0; i < graph->nodes.count; i++) {
        Layer layer = layer_of(table, graph->nodes.at[i], counted);
        LIST_ADD(cx->arena, table->layers, layer);
        table->params += layer.params;
        table->buffers += layer.buffers;
        table->operations = size_plus(cx, table->operations, layer.operations);
    }
    table->program = program_make(table->command, table->model, table->model->infer, table->command->batch.number);
    return table->program != NULL;
}

// At the largest sizes; -1 where there is no such number.
static int64_t largest(Size size)
{
    int64_t n;
    return size_upper(size, &n) ? n : -1;
}

// --- As a table ------------------------------------------------------------------------------------------------------

static const char *grouped(Context *cx, int64_t n)
{
    char digits[32];
    Text text = {.arena = cx->arena};
    int length = snprintf(digits, sizeof digits, "%lld", (long long)n);
    for (int i = 0; i < length; i++)
        text_add(&text, i > 0 && (length - i) % 3 == 0 && digits[i - 1] != '-' ? ",%c" : "%c", digits[i]);
    return text.at;
}

static const char *bytes_text(Context *cx, int64_t bytes)
{
    return bytes < 10000      ? arena_printf(cx->arena, "%lld B", (long long)bytes)
         : bytes < 10000000   ? arena_printf(cx->arena, "%.1f kB", 1e-3 * (double)bytes)
                              : arena_printf(cx->arena, "%.1f MB", 1e-6 * (double)bytes);
}

static void print_table(Table *table, Text *text)
{
    Context *cx = &table->command->cx;
    int name = 5, op = 2, shape = 6;
    for (int i = 0; i < table->layers.count; i++) {
        const Layer *layer = &table->layers.at[i];
        name = (int)strlen(layer->name) > name ? (int)strlen(layer->name) : name;
        op = (int)strlen(layer->node->op->name) > op ? (int)strlen(layer->node->op->name) : op;
        shape = (int)strlen(layer->shape) > shape ? (int)strlen(layer->shape) : shape;
    }
    text_add(text, "%-*s  %-*s  %-*s  %14s  %16s\n", name, "layer", op, "op", shape, "output", "parameters", "operations");
    for (int i = 0; i < table->layers.count; i++) {
        const Layer *layer = &table->layers.at[i];
        text_add(text, "%-*s  %-*s  %-*s  %14s  %16s\n", name, layer->name, op, layer->node->op->name, shape, layer->shape,
                 layer->params > 0 ? grouped(cx, layer->params) : "", grouped(cx, largest(layer->operations)));
    }
    const Program *p = table->program;
    text_add(text, "\nparameters   %s (%s)\n", grouped(cx, table->params), bytes_text(cx, 4 * table->params));
    if (table->buffers > 0)
        text_add(text, "buffers      %s\n", grouped(cx, table->buffers));
    text_add(text, "operations   %s at batch %lld\n", grouped(cx, largest(table->operations)), (long long)table->command->batch.number);
    text_add(text, "peak memory  %s, besides parameters, inputs and outputs\n", bytes_text(cx, p->arena_bytes + p->scratch_bytes));
}

static void print_parameters(Table *table, Text *text)
{
    Context *cx = &table->command->cx;
    for (int i = 0; i < table->model->params.count; i++) {
        const Param *param = table->model->params.at[i];
        text_add(text, "%-40s %-24s %12s  %s%s\n", param->path, type_text(cx, &param->type), grouped(cx, param_count(param)),
                 role_names[param->role], param->train_only ? ", only in training" : param->trainable || param->role == ROLE_BUFFER ? "" : ", frozen");
    }
}

// --- As JSON ---------------------------------------------------------------------------------------------------------

static void put_json(Text *text, const char *from)
{
    text_put(text, "\"", 1);
    for (; *from != 0; from++)
        if (*from == '"' || *from == '\\')
            text_add(text, "\\%c", *from);
        else if ((unsigned char)*from < ' ')
            text_add(text, "\\u%04x", (unsigned)*from);
        else
            text_put(text, from, 1);
    text_put(text, "\"", 1);
}

static void put_port(Text *text, const char *name, const Type *type, bool first)
{
    text_add(text, first ? "\n    {\"name\": " : ",\n    {\"name\": ");
    put_json(text, name);
    text_add(text, ", \"type\": \"%s\", \"shape\": [", type_def(type->dtype)->name);
    for (int i = 0; i < type->shape.rank; i++) {
        Text dim = {.arena = text->arena};
        int64_t n;
        size_print(&dim, type->shape.dim[i]);
        text_add(text, i > 0 ? ", " : "");
        if (size_known(type->shape.dim[i], &n))
            text_add(text, "%lld", (long long)n);
        else
            put_json(text, dim.at);
    }
    text_add(text, "]}");
}

static void print_json(Table *table, Text *text)
{
    const Graph *graph = table->program->graph;
    text_add(text, "{\n  \"name\": ");
    put_json(text, table->model->name);
    text_add(text, ",\n  \"batch\": %lld,\n  \"inputs\": [", (long long)table->command->batch.number);
    for (int i = 0; i < graph->inputs.count - graph->n_targets; i++)
        put_port(text, graph->inputs.at[i]->name, &graph->inputs.at[i]->type, i == 0);
    text_add(text, "\n  ],\n  \"outputs\": [");
    for (int i = 0; i < graph->outputs.count; i++)
        put_port(text, graph->outputs.at[i].name, &graph->outputs.at[i].value->type, i == 0);
    text_add(text, "\n  ],\n  \"layers\": [");
    for (int i = 0; i < table->layers.count; i++) {
        const Layer *layer = &table->layers.at[i];
        text_add(text, i > 0 ? ",\n    {\"layer\": " : "\n    {\"layer\": ");
        put_json(text, layer->name);
        text_add(text, ", \"op\": \"%s\", \"output\": ", layer->node->op->name);
        put_json(text, layer->shape);
        text_add(text, ", \"parameters\": %lld, \"operations\": %lld}", (long long)layer->params, (long long)largest(layer->operations));
    }
    const Program *p = table->program;
    text_add(text, "\n  ],\n  \"parameters\": %lld,\n  \"buffers\": %lld,\n  \"operations\": %lld,\n  \"peak_bytes\": %lld\n}\n",
             (long long)table->params, (long long)table->buffers, (long long)largest(table->operations),
             (long long)(p->arena_bytes + p->scratch_bytes));
}

// --- Verbs -----------------------------------------------------------------------------------------------------------

ExitCode verb_inspect(Command *command)
{
    Table table = {.command = command, .model = model_read(command)};
    Text text = {.arena = command->cx.arena};
    if (command->dot.given + command->json.given + command->params.given > 1)
        return fail_usage(command, MESSAGE_E0617, "one of --dot, --json and --parameters", "they exclude each other");
    if (table.model == NULL)
        return EXIT_INPUT;
    text_put(&text, "", 0);
    if (command->dot.given)
        graph_dot(&text, table.model->infer);
    else if (command->params.given)
        print_parameters(&table, &text);
    else if (!table_make(&table))
        return EXIT_INPUT;
    else if (command->json.given)
        print_json(&table, &text);
    else
        print_table(&table, &text);
    fputs(text.at, stdout);
    return EXIT_DONE;
}

int64_t part_batch(Command *command, const Model *model, const Graph *graph)
{
    return graph == model->infer ? command->batch.number : graph == model->recipe->data ? 1 : model->recipe->batch;
}

void program_print(Text *text, const Program *program)
{
    plan_print(text, program);
    for (int phase = 0; phase < 2; phase++) {
        int count = phase == 0 ? program->steps.count : program->updates.count;
        for (int i = 0; i < count; i++) {
            const Kernel *kernel = phase == 0 ? program->steps.at[i] : program->updates.at[i];
            text_add(text, "\n%s %d %s: %s\n", phase == 0 ? "step" : "update", kernel->id, kernel->name,
                     kernel->file != NULL ? kernel->file : kernel->equation != NULL ? kernel->equation : "");
            if (kernel->loops != NULL)
                loop_print(text, kernel->loops, 1);
        }
    }
}

ExitCode verb_plan(Command *command)
{
    Model *model = model_read(command);
    Text text = {.arena = command->cx.arena};
    Graph *graph = model != NULL ? model_part(command, model) : NULL;
    if (graph == NULL)
        return EXIT_INPUT;
    if (command->batch.given && graph != model->infer)
        return fail_usage(command, MESSAGE_E0617, "--batch", "it is of inference (--part infer); -D batch=N sets that of training");
    Program *program = program_make(command, model, graph, part_batch(command, model, graph));
    if (program == NULL)
        return EXIT_INPUT;
    plan_print(&text, program);
    fputs(text.at, stdout);
    return EXIT_DONE;
}
