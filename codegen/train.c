// train.c: a training program: the steps of training and evaluation, the update, the data mapping, and the tables by which
// the runtime (mlrt.h) does the rest.
//
// The order is a reader's: what it is and what it costs, kernel files, forward and backward, evaluation, update, data,
// tables, main. Training and evaluation never run at the same time and share one arena.
#include "train.h"

#include <string.h>

// --- Numbers over the parameters -------------------------------------------------------------------------------------

// Parameters as `mlc inspect` counts them: without buffers such as running means.
int64_t params_total(const Model *model, bool trainable_only)
{
    int64_t total = 0;
    for (int i = 0; i < model->params.count; i++)
        if (model->params.at[i]->role != ROLE_BUFFER && (model->params.at[i]->trainable || !trainable_only))
            total += param_count(model->params.at[i]);
    return total;
}

// What one sample costs, forward and backward.
int64_t sample_flops(const Program *program)
{
    int64_t total = 0, flops;
    for (int i = 0; i < program->steps.count; i++)
        if (program->steps.at[i]->flops != NULL && size_upper(program->steps.at[i]->flops, &flops))
            total += flops;
    const Recipe *recipe = program->model->recipe;
    return recipe != NULL && recipe->batch > 0 ? total / recipe->batch : total;
}

int64_t trainable_end(const Model *model)
{
    int64_t end = 0;
    for (int i = 0; i < model->params.count; i++) {
        const Param *param = model->params.at[i];
        if (param->trainable && param->offset + param_count(param) > end)
            end = param->offset + param_count(param);
    }
    return end;
}

// --- Header ----------------------------------------------------------------------------------------------------------

static void print_header(const Trainer *t)
{
    Text *out = t->out;
    text_add(out, "// ");
    put_name(out, t->model->name);
    text_add(out, ": a training program, made from ");
    put_name(out, source_name(t->model->path, t->model->path));
    text_add(out, " by mlc %s. Do not edit: change the net.\n//\n", MLC_VERSION);
    text_add(out, "//   parameters   ");
    put_grouped(out, params_total(t->model, false));
    text_add(out, ", of which ");
    put_grouped(out, params_total(t->model, true));
    text_add(out, " are trained by %s\n", t->recipe->optimizer->name);
    print_memory(out, t->train, "training");
    print_memory(out, t->eval, "evaluation");
    text_add(out, "//   cost         ");
    put_amount(out, sample_flops(t->train));
    text_add(out, " operations a sample, forward and backward; ");
    put_amount(out, sample_flops(t->eval));
    text_add(out, " to evaluate\n//\n");
    text_add(out,
             "// In this order: kernel files, training (forward, backward), evaluation, update, data, tables, main.\n");
    text_add(out, "// Names end in the number that the value has in the compiler: conv1_weight_5.\n");
    text_add(
        out,
        "#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n#include <string.h>\n\n#include \"mlrt.h\"\n\n");
    paste_file(out, "contract.h");
    text_add(out, "\ntypedef MlrtRun Run;\n\n");
}

// --- Update ----------------------------------------------------------------------------------------------------------
static void print_updates(Trainer *t)
{
    Printer p = printer_new(t->train, &dialect_c, "train", t->out);
    for (int i = 0; i < t->train->updates.count; i++)
        print_kernel(&p, t->train->updates.at[i], NULL);
    print_optimizer(t);
}

// --- Data ------------------------------------------------------------------------------------------------------------

static void print_map_sample(const Trainer *t)
{
    Text *out = t->out;
    const Graph *graph = t->data->graph;
    const DataNeeds needs = data_needs(t->data, t->train->graph);
    text_add(out, "// The fields of one sample become its inputs and, where they are known, its targets.\n");
    text_add(out, "static void map_sample(const void *const *field, void *const *port, bool target_too)\n{\n");
    if (t->data->arena_bytes > 0)
        text_add(out, "    static _Thread_local _Alignas(64) char arena[%lld];\n", (long long)t->data->arena_bytes);
    text_add(out, "    Run here = {.size = {1}%s}, *run = &here;\n",
             t->data->arena_bytes > 0 ? ", .arena = arena" : "");
    for (int i = 0; i < t->recipe->fields.count; i++)
        text_add(out, "    run->in[%d] = (char *)(uintptr_t)field[%d];\n", t->recipe->fields.at[i].value->index, i);
    for (int i = 0; i < graph->outputs.count; i++)
        text_add(out, "    run->out[%d] = port[%d];\n", i, data_port(t->train->graph, graph->outputs.at[i].name));
    Printer p = printer_new(t->data, &dialect_c, "data", out);
    p.indent = 1;
    print_mapping(&p, t->train->graph, &needs, true);
    text_add(out, "    if (!target_too)\n        return;\n");
    print_mapping(&p, t->train->graph, &needs, false);
    text_add(out, "}\n\n");
}

// --- Results ---------------------------------------------------------------------------------------------------------
// What a program gives, in the order of run->out: training the loss and its parts, evaluation outputs, loss and metrics.
typedef LIST(const Value *) Values;

static Values results(const Trainer *t, const Program *program)
{
    const Graph *graph = program->graph;
    Values out = {0};
    for (int i = 0; program == t->eval && i < graph->outputs.count; i++)
        LIST_ADD(t->cx->arena, out, graph->outputs.at[i].value);
    LIST_ADD(t->cx->arena, out, graph->loss);
    for (int i = 0; program == t->eval && i < graph->metrics.count; i++)
        LIST_ADD(t->cx->arena, out, graph->metrics.at[i].value);
    for (int i = 0; program == t->train && i < graph->auxiliary.count; i++)
        LIST_ADD(t->cx->arena, out, graph->auxiliary.at[i].value);
    return out;
}

// One last step for results that have no place of their own. Returns whether there is one.
static bool print_result_copies(const Trainer *t, Program *program, const char *prefix)
{
    Text copies = {.arena = t->cx->arena};
    Printer p = printer_new(program, &dialect_c, prefix, &copies);
    p.indent = 1;
    Values values = results(t, program);
    for (int i = 0; i < values.count; i++)
        print_output_copy(&p, values.at[i], i);
    if (copies.at == NULL)
        return false;
    text_add(t->out, "// Results that are other values as they stand.\n");
    text_add(t->out, "static void %s_results(const Run *run, int part)\n{\n    (void)part;\n", prefix);
    print_sizes(&p, t->out);
    text_add(t->out, "%s}\n\n", copies.at);
    return true;
}

// Evaluation takes the same inputs: each gets the narrower of both bounds.
static void share_bounds(const Graph *train, const Graph *eval)
{
    for (int i = 0; i < train->inputs.count; i++) {
        int k = data_port(eval, train->inputs.at[i]->name);
        Value *a = train->inputs.at[i], *b = k >= 0 ? eval->inputs.at[k] : a;
        if (a->below == 0 || (b->below > 0 && b->below < a->below))
            a->below = b->below;
        b->below = a->below;
    }
}

// --- The program -----------------------------------------------------------------------------------------------------
// The steps first, into a text of their own: they show which kernel files the program needs.
void codegen_train(Text *c, Model *model, Program *train, Program *eval, Program *data)
{
    Text code = {.arena = model->cx->arena};
    Trainer t = {.cx = model->cx,
                 .model = model,
                 .recipe = model->recipe,
                 .train = train,
                 .eval = eval,
                 .data = data,
                 .out = &code};
    index_bounds(train);
    index_bounds(eval);
    share_bounds(train->graph, eval->graph);
    Functions *functions = functions_new(model->cx);
    functions_count(functions, train, &dialect_c, "train");
    functions_count(functions, eval, &dialect_c, "eval");
    heading(&code, "Training: forward and backward");
    print_steps(&code, train, &dialect_c, "train", functions);
    t.train_copies = print_result_copies(&t, train, "train");
    heading(&code, "Evaluation");
    print_steps(&code, eval, &dialect_c, "eval", functions);
    t.eval_copies = print_result_copies(&t, eval, "eval");
    heading(&code, "Update");
    print_updates(&t);
    if (data != NULL) {
        heading(&code, "Data");
        print_steps(&code, data, &dialect_c, "data", NULL);
        print_map_sample(&t);
    }
    heading(&code, "Tables");
    print_tables(&t);
    heading(&code, "Main");
    text_add(&code, "int main(int argc, char **argv) { return mlrt_main(&model, argc, argv); }\n");
    t.out = c;
    print_header(&t);
    heading(c, "Kernels");
    paste_kernels(model->cx, c, code.at);
    text_put(c, code.at, code.length);
}
