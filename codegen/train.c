// train.c: a training program: the steps of training and evaluation, the update, the data mapping, and the tables by which
// the runtime (mlrt.h) does the rest.
//
// The order is a reader's: what it is and what it costs, kernel files, forward and backward, evaluation, update, data,
// tables, main. Training and evaluation never run at the same time and share one arena.
#include "codegen.h"

#include <string.h>

#ifndef MLC_VERSION
#define MLC_VERSION "0.1.0"
#endif

enum { SWEEP_CHUNK = 16384, SWEEP_PARTS = 16 };

typedef struct Trainer {
    Context *cx;
    Model   *model;
    Recipe  *recipe;
    Program *train, *eval, *data;
    Text    *out;
    bool     train_copies, eval_copies; // a last step copies results
} Trainer;

// --- Numbers over the parameters --------------------------------------------------------------------------------------------

static int64_t param_count(const Param *param)
{
    int64_t count = 1;
    for (int i = 0; i < param->type.shape.rank; i++)
        count *= size_value(param->type.shape.dim[i]);
    return count;
}

static int64_t params_total(const Model *model, bool trainable_only)
{
    int64_t total = 0;
    for (int i = 0; i < model->params.count; i++)
        if (model->params.at[i]->trainable || !trainable_only)
            total += param_count(model->params.at[i]);
    return total;
}

// What one sample costs, forward and backward.
static int64_t sample_flops(const Program *program)
{
    int64_t total = 0, flops;
    for (int i = 0; i < program->steps.count; i++)
        if (program->steps.at[i]->flops != NULL && size_upper(program->steps.at[i]->flops, &flops))
            total += flops;
    const Recipe *recipe = program->model->recipe;
    return recipe != NULL && recipe->batch > 0 ? total / recipe->batch : total;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text != 0; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return (hash ^ 0xff) * 1099511628211u;      // ends the text, so that "ab", "c" is not "a", "bc"
}

// Of what a checkpoint must match: names, types, order and kind of all parameters, and the states of the optimiser.
static const char *fingerprint(const Trainer *t)
{
    uint64_t hash = 14695981039346656037u;
    for (int i = 0; i < t->model->params.count; i++) {
        const Param *param = t->model->params.at[i];
        hash = hash_text(hash, param->path);
        hash = hash_text(hash, type_text(t->cx, &param->type));
        hash = hash_text(hash, param->trainable ? "trained" : "fixed");
    }
    for (int i = 0; i < t->recipe->optimizer->n_states; i++)
        hash = hash_text(hash, t->recipe->optimizer->state[i]);
    return arena_printf(t->cx->arena, "%016llx", (unsigned long long)hash);
}

static const char *summary(const Trainer *t)
{
    Text text = {.arena = t->cx->arena};
    put_grouped(&text, params_total(t->model, false));
    text_add(&text, " parameters, ");
    put_amount(&text, sample_flops(t->train));
    text_add(&text, " operations a sample");
    return text.at;
}

// --- Header -------------------------------------------------------------------------------------------------------------------

static void heading(Text *out, const char *title)
{
    text_add(out, "// ==== %s %.*s\n\n", title, (int)(LINE_WIDTH - 9 - strlen(title)),
             "================================================================================================================");
}

static void print_header(const Trainer *t)
{
    Text *out = t->out;
    text_add(out, "// ");
    put_name(out, t->model->name);
    text_add(out, ": a training program, made from ");
    put_name(out, t->model->path);
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
    text_add(out, "// In this order: kernel files, training (forward, backward), evaluation, update, data, tables, main.\n");
    text_add(out, "// Names end in the number that the value has in the compiler: conv1_weight_5.\n");
    text_add(out, "#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n#include <string.h>\n\n#include \"mlrt.h\"\n\n");
    paste_file(out, "contract.h");
    text_add(out, "\ntypedef MlrtRun Run;\n\n");
}

// --- Optimiser --------------------------------------------------------------------------------------------------------------------

typedef struct Hoisted { LIST(Expr *) exprs; LIST(const char *) names; } Hoisted;

static bool varies(const Expr *e, const OptimizerDef *def)
{
    if (e->kind == EXPR_HYPER) {
        if (strcmp(e->name, "p") == 0 || strcmp(e->name, "g") == 0)
            return true;
        for (int i = 0; i < def->n_states; i++)
            if (strcmp(e->name, def->state[i]) == 0)
                return true;
    }
    for (int i = 0; i < e->count; i++)
        if (varies(e->operand[i], def))
            return true;
    return false;
}

static Expr *in_double(Context *cx, const Expr *e)
{
    Expr *copy = arena_copy(cx->arena, e, sizeof *e);
    if (type_is_float(copy->type))
        copy->type = TYPE_f64;
    for (int i = 0; i < e->count; i++)
        copy->operand[i] = in_double(cx, e->operand[i]);
    return copy;
}

static const char *printed(Context *cx, const Expr *e)
{
    Text text = {.arena = cx->arena};
    Printer p = {.cx = cx, .dialect = &dialect_c, .out = &text};
    print_expr(&p, e);
    return text.at;
}

// What is the same for all elements is computed once, in double, and then rounded, as PyTorch does with its numbers: such
// parts of a formula become locals, "lr_f" or "f1".
static Expr *hoist(Context *cx, Hoisted *hoisted, const OptimizerDef *def, Expr *e)
{
    if (e->kind == EXPR_NUMBER)
        return e;
    if (!varies(e, def)) {
        Expr *wide = in_double(cx, e), *name = arena_copy(cx->arena, e, sizeof *e);
        *name = (Expr){.kind = EXPR_HYPER, .type = e->type};
        for (int i = 0; i < hoisted->exprs.count && name->name == NULL; i++)
            if (strcmp(printed(cx, hoisted->exprs.at[i]), printed(cx, wide)) == 0)
                name->name = hoisted->names.at[i];
        if (name->name == NULL) {
            name->name = wide->kind == EXPR_HYPER ? arena_printf(cx->arena, "%s_f", wide->name)
                                                  : arena_printf(cx->arena, "f%d", hoisted->exprs.count + 1);
            LIST_ADD(cx->arena, hoisted->exprs, wide);
            LIST_ADD(cx->arena, hoisted->names, name->name);
        }
        return name;
    }
    Expr *copy = arena_copy(cx->arena, e, sizeof *e);
    for (int i = 0; i < e->count; i++)
        copy->operand[i] = hoist(cx, hoisted, def, e->operand[i]);
    return copy;
}

enum { FORMULA_NAMES = 32 };

typedef struct FormulaNames { const char *name[FORMULA_NAMES]; Expr *value[FORMULA_NAMES]; int count; } FormulaNames;

static void formula_name(Context *cx, FormulaNames *names, const char *name)
{
    CHECK(names->count < FORMULA_NAMES);
    Expr *leaf = NEW(cx->arena, Expr);
    *leaf = (Expr){.kind = EXPR_HYPER, .type = TYPE_f32, .name = name};
    names->name[names->count] = name;
    names->value[names->count++] = leaf;
}

typedef struct Assignment { const char *to; Expr *value; } Assignment;

// Takes "a = formula; b = formula" apart; each name assigned is known from then on.
static int assignments(Context *cx, const char *text, FormulaNames *names, Assignment out[16])
{
    int count = 0;
    for (const char *at = text; *at != 0;) {
        at += strspn(at, " ;");
        size_t name = strcspn(at, " ="), length = strcspn(at, ";");
        const char *formula = strchr(at, '=') + 1;
        CHECK(count < 16 && formula < at + length);
        out[count].to = arena_string(cx->arena, at, name);
        out[count++].value = expr_parse(cx, arena_string(cx->arena, formula, (size_t)(at + length - formula)), names->name,
                                        names->value, names->count);
        formula_name(cx, names, out[count - 1].to);
        at += length;
    }
    return count;
}

static bool word_in(const char *text, const char *word)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    size_t length = strlen(word);
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
        if ((at == text || strchr(letters, at[-1]) == NULL) && (at[length] == 0 || strchr(letters, at[length]) == NULL))
            return true;
    return false;
}

// The numbers of the recipe that the formulas use, in double: const double lr = hyper[0], …;
static void print_hypers(Text *out, const OptimizerDef *def, const char *uses)
{
    int count = 0;
    for (int i = 0; i < def->n_args; i++)
        if (word_in(uses, def->arg[i].name))
            text_add(out, "%s%s = hyper[%d]", count++ == 0 ? "    const double " : ", ", def->arg[i].name, i);
    text_add(out, count > 0 ? ";\n" : "");
    if (word_in(uses, "t"))
        text_add(out, "    const double t = (double)step;\n");
}

static void print_sweep_body(Text *out, Context *cx, const OptimizerDef *def)
{
    FormulaNames names = {.count = 0};
    Assignment scalar[16], element[16];
    Hoisted hoisted = {.exprs = {0}};
    for (int i = 0; i < def->n_args; i++)
        formula_name(cx, &names, def->arg[i].name);
    formula_name(cx, &names, "t");
    int n_scalars = assignments(cx, def->scalars, &names, scalar);
    formula_name(cx, &names, "p");
    formula_name(cx, &names, "g");
    for (int i = 0; i < def->n_states; i++)
        formula_name(cx, &names, def->state[i]);
    int n_elements = assignments(cx, def->formula, &names, element);
    for (int i = 0; i < n_elements; i++)
        element[i].value = hoist(cx, &hoisted, def, element[i].value);

    Text rest = {.arena = cx->arena};
    for (int i = 0; i < n_scalars; i++)
        text_add(&rest, "    const double %s = %s;\n", scalar[i].to, printed(cx, in_double(cx, scalar[i].value)));
    for (int i = 0; i < hoisted.exprs.count; i++)
        if (hoisted.exprs.at[i]->type == TYPE_bool)
            text_add(&rest, "    const bool %s = %s;\n", hoisted.names.at[i], printed(cx, hoisted.exprs.at[i]));
        else
            text_add(&rest, hoisted.exprs.at[i]->kind == EXPR_HYPER ? "    const float %s = (float)%s;\n" : "    const float %s = (float)(%s);\n",
                     hoisted.names.at[i], printed(cx, hoisted.exprs.at[i]));
    print_hypers(out, def, rest.at != NULL ? rest.at : "");
    text_add(out, "%s", rest.at != NULL ? rest.at : "");
    text_add(out, "    #pragma omp simd\n    for (int64_t i = from; i < end; i++) {\n        float p = param[i], g = grad[i]");
    for (int i = 0; i < def->n_states; i++)
        text_add(out, ", %s = state_%s[i]", def->state[i], def->state[i]);
    text_add(out, ";\n");
    for (int i = 0; i < n_elements; i++)
        text_add(out, "        %s = %s;\n", element[i].to, printed(cx, element[i].value));
    text_add(out, "        param[i] = p;\n");
    for (int i = 0; i < def->n_states; i++)
        text_add(out, "        state_%s[i] = %s;\n", def->state[i], def->state[i]);
    text_add(out, "    }\n}\n\n");
}

static void print_sweep(Text *out, Context *cx, const OptimizerDef *def)
{
    text_add(out, "// ");
    put_remark(out, def->brief);
    text_add(out, "\n//   once a step, in double:  ");
    put_remark(out, def->scalars);
    text_add(out, "\n//   for each element:        ");
    put_remark(out, def->formula);
    int column = (int)strlen(def->name) + 19;
    text_add(out, "\nstatic void %s_sweep(const double *hyper, uint64_t step, float *restrict param, const float *restrict grad,\n%*s",
             def->name, column, "");
    for (int i = 0; i < def->n_states; i++)
        text_add(out, "float *restrict state_%s, ", def->state[i]);
    text_add(out, "int64_t from, int64_t end)\n{\n");
    if (!word_in(def->scalars, "t") && !word_in(def->formula, "t"))
        text_add(out, "    (void)step;\n");
    print_sweep_body(out, cx, def);
}

static int sweep_parts(int64_t trainable)
{
    int64_t parts = (trainable + SWEEP_CHUNK - 1) / SWEEP_CHUNK;
    return parts < 1 ? 1 : parts > SWEEP_PARTS ? SWEEP_PARTS : (int)parts;
}

// Where the trainable parameters of a group begin and end, in elements of the flat block.
static bool group_range(const Model *model, int group, int64_t *from, int64_t *end)
{
    *from = *end = -1;
    for (int i = 0; i < model->params.count; i++) {
        const Param *param = model->params.at[i];
        if (!param->trainable || param->group != group)
            continue;
        int64_t last = param->offset + param_count(param);
        *from = *from < 0 || param->offset < *from ? param->offset : *from;
        *end = last > *end ? last : *end;
    }
    return *from >= 0;
}

static int64_t trainable_end(const Model *model)
{
    int64_t end = 0;
    for (int i = 0; i < model->params.count; i++) {
        const Param *param = model->params.at[i];
        if (param->trainable && param->offset + param_count(param) > end)
            end = param->offset + param_count(param);
    }
    return end;
}

static int64_t block_end(const Model *model)
{
    int64_t end = 0;
    for (int i = 0; i < model->params.count; i++)
        if (model->params.at[i]->offset + param_count(model->params.at[i]) > end)
            end = model->params.at[i]->offset + param_count(model->params.at[i]);
    return end;
}

static void print_sweep_step(Trainer *t)
{
    Text *out = t->out;
    const OptimizerDef *def = t->recipe->optimizer;
    int64_t count = trainable_end(t->model), from, end;
    int parts = sweep_parts(count), groups = 0;
    text_add(out, "// One sweep over all trained parameters, in %d part%s.\n", parts, parts > 1 ? "s" : "");
    text_add(out, "static void update_%s(const Run *run, int part)\n{\n", def->name);
    text_add(out, "    float *param = (void *)run->param, *state = (void *)run->state;\n    const float *grad = (const void *)run->grad;\n");
    if (parts > 1)
        text_add(out, "    const int64_t first = mlk_share(%lld, part, %d), last = mlk_share(%lld, part + 1, %d);\n", (long long)count,
                 parts, (long long)count, parts);
    else
        text_add(out, "    const int64_t first = 0, last = %lld;\n    (void)part;\n", (long long)count);
    if (def->n_states == 0)
        text_add(out, "    (void)state;\n");
    for (int g = 0; g == 0 || g < t->recipe->groups.count; g++) {
        if (!group_range(t->model, g, &from, &end))
            continue;
        bool whole = from == 0 && end == count;
        groups++;
        text_add(out, "    %s_sweep(run->hyper + %d * MLRT_HYPERS, run->step, param, grad", def->name, g);
        for (int i = 0; i < def->n_states; i++)
            text_add(out, i == 0 ? ", state" : ", state + %lld", (long long)(i * count));
        text_add(out, whole ? ", first, last);\n" : ", mlk_max2_i64(first, %lld), mlk_min2_i64(last, %lld));\n", (long long)from, (long long)end);
    }
    if (groups == 0)
        text_add(out, "    (void)param, (void)grad, (void)state, (void)first, (void)last;\n");
    text_add(out, "}\n\n");
}

static void print_updates(Trainer *t)
{
    Printer p = printer_new(t->train, &dialect_c, "train", t->out);
    for (int i = 0; i < t->train->updates.count; i++)
        print_kernel(&p, t->train->updates.at[i]);
    print_sweep(t->out, t->cx, t->recipe->optimizer);
    print_sweep_step(t);
}

// --- Data -------------------------------------------------------------------------------------------------------------------------

static void print_map_sample(const Trainer *t)
{
    Text *out = t->out;
    const Graph *graph = t->data->graph;
    const DataNeeds needs = data_needs(t->data, t->train->graph);
    text_add(out, "// The fields of one sample become its inputs and, where they are known, its targets.\n");
    text_add(out, "static void map_sample(const void *const *field, void *const *port, bool target_too)\n{\n");
    if (t->data->arena_bytes > 0)
        text_add(out, "    static _Thread_local _Alignas(64) char arena[%lld];\n", (long long)t->data->arena_bytes);
    text_add(out, "    Run here = {.size = {1}%s}, *run = &here;\n", t->data->arena_bytes > 0 ? ", .arena = arena" : "");
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

// --- Tables -----------------------------------------------------------------------------------------------------------------------

static void put_dims(Text *out, const Shape *shape, int from)
{
    text_add(out, "%d, {", shape->rank - from > 0 ? shape->rank - from : 0);
    for (int i = from; i < shape->rank; i++) {
        int64_t n = 0;
        CHECK(size_upper(shape->dim[i], &n));
        text_add(out, i > from ? ", %lld" : "%lld", (long long)n);
    }
    text_add(out, shape->rank > from ? "}" : "0}");
}

// The scope and op of a step, for messages.
static void put_step(Trainer *t, const Program *program, const char *prefix, const Kernel *kernel)
{
    Text *out = t->out;
    text_add(out, "    {%s, %d, ", kernel_name(t->cx, prefix, kernel), kernel->parts);
    put_string(out, kernel->scope != NULL ? kernel->scope : "");
    text_add(out, ", ");
    put_string(out, kernel->op != NULL ? kernel->op : "");
    const Value *result = kernel->writes.count > 0 ? kernel->writes.at[0] : NULL;
    const Buffer *home = result != NULL ? buffer_home(program, result) : NULL;
    bool looked_at = home != NULL && home->space == SPACE_ARENA && result->type.dtype == TYPE_f32;
    text_add(out, ", %lld, %lld},\n", looked_at ? (long long)home->offset : 0, looked_at ? (long long)(home->bytes / 4) : 0);
}

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

static void print_section(Trainer *t, const Program *program, const char *prefix, bool copies)
{
    text_add(t->out, "static const MlrtStep %s_steps[] = {\n", prefix);
    for (int i = 0; i < program->steps.count; i++)
        put_step(t, program, prefix, program->steps.at[i]);
    if (copies)
        text_add(t->out, "    {%s_results, 1, \"results\", \"copy\", 0, 0},\n", prefix);
    text_add(t->out, program->steps.count > 0 || copies ? "};\n\n" : "    {0}\n};\n\n");
}

static void print_update_section(Trainer *t)
{
    text_add(t->out, "static const MlrtStep update_steps[] = {\n");
    for (int i = 0; i < t->train->updates.count; i++)
        put_step(t, t->train, "train", t->train->updates.at[i]);
    text_add(t->out, "    {update_%s, %d, \"optimizer\", \"%s\", 0, 0},\n};\n\n", t->recipe->optimizer->name,
             sweep_parts(trainable_end(t->model)), t->recipe->optimizer->name);
}

static void print_params(Trainer *t)
{
    Text *out = t->out;
    text_add(out, "// path, rank, dimensions, offset, count, {trainable, buffer, training only}, group, initial values\n");
    text_add(out, "static const MlrtParam params[] = {\n");
    for (int i = 0; i < t->model->params.count; i++) {
        const Param *param = t->model->params.at[i];
        text_add(out, "    {");
        put_string(out, param->path);
        text_add(out, ", ");
        put_dims(out, &param->type.shape, 0);
        text_add(out, ", %lld, %lld, %s, %s, %s, %d,\n     {", (long long)param->offset, (long long)param_count(param),
                 param->trainable ? "true" : "false", param->role == ROLE_BUFFER ? "true" : "false",
                 param->train_only ? "true" : "false", param->group);
        put_string(out, param->init.name);
        text_add(out, ", {");
        for (int k = 0; k < 3; k++) {
            text_add(out, k > 0 ? ", " : "");
            put_double(out, param->init.number[k]);
        }
        text_add(out, "}, %lld, %lld}},\n", (long long)(param->init.fan_out ? param->fan_out : param->fan_in),
                 (long long)param->fan_out);
    }
    text_add(out, t->model->params.count > 0 ? "};\n\n" : "    {0}\n};\n\n");
}

static const Labels *labels_of(const Model *model, const char *name)
{
    for (int i = 0; i < model->labels.count; i++)
        if (strcmp(model->labels.at[i].output, name) == 0)
            return &model->labels.at[i];
    return NULL;
}

static void print_labels(Trainer *t)
{
    for (int i = 0; i < t->model->labels.count; i++) {
        const Labels *labels = &t->model->labels.at[i];
        text_add(t->out, "static const char *const labels_%d[] = {", i);
        for (int k = 0; k < labels->count; k++) {
            text_add(t->out, k > 0 ? ", " : "");
            put_string(t->out, labels->names[k]);
        }
        text_add(t->out, "};\n");
    }
}

static bool is_batched(const Context *cx, const Value *value)
{
    const Symbol *symbols[1], *batch = batch_symbol((Context *)(uintptr_t)cx);
    const Shape *shape = &value->type.shape;
    return shape->rank > 0 && batch != NULL && size_symbols(shape->dim[0], symbols, 1) == 1 && symbols[0] == batch;
}

static void put_port(Trainer *t, const char *name, const Value *value)
{
    Text *out = t->out;
    bool batched = is_batched(t->cx, value);
    const Labels *labels = labels_of(t->model, name);
    int64_t bytes = type_def(value->type.dtype)->bytes, n = 0;
    for (int i = batched; i < value->type.shape.rank; i++)
        bytes *= size_upper(value->type.shape.dim[i], &n) ? n : 0;
    text_add(out, "    {");
    put_string(out, name);
    text_add(out, ", \"%s\", ", type_def(value->type.dtype)->name);
    put_dims(out, &value->type.shape, batched);
    text_add(out, ", %lld, %s, %lld, ", (long long)bytes, batched ? "true" : "false", (long long)value->below);
    if (labels != NULL)
        text_add(out, "%d, labels_%d},\n", labels->count, (int)(labels - t->model->labels.at));
    else
        text_add(out, "0, NULL},\n");
}

static void print_ports(Trainer *t)
{
    Text *out = t->out;
    const Graph *train = t->train->graph, *eval = t->eval->graph;
    text_add(out, "// name, type, rank, dimensions, bytes, a row for each sample?, below, labels\n");
    text_add(out, "static const MlrtPort inputs[] = {\n");
    for (int i = 0; i < train->inputs.count; i++)
        put_port(t, train->inputs.at[i]->name, train->inputs.at[i]);
    text_add(out, train->inputs.count > 0 ? "};\n" : "    {0}\n};\n");
    text_add(out, "static const MlrtPort train_outputs[] = {\n");
    put_port(t, "loss", train->loss);
    for (int i = 0; i < train->auxiliary.count; i++)
        put_port(t, train->auxiliary.at[i].name, train->auxiliary.at[i].value);
    text_add(out, "};\nstatic const MlrtPort outputs[] = {\n");
    for (int i = 0; i < eval->outputs.count; i++)
        put_port(t, eval->outputs.at[i].name, eval->outputs.at[i].value);
    put_port(t, "loss", eval->loss);
    for (int i = 0; i < eval->metrics.count; i++)
        put_port(t, eval->metrics.at[i].name, eval->metrics.at[i].value);
    text_add(out, "};\n\n");
}

static void print_metrics(Trainer *t)
{
    const Graph *eval = t->eval->graph;
    text_add(t->out, "// name, output, added up?, better, finish\nstatic const MlrtMetric metrics[] = {\n");
    for (int i = 0; i < eval->metrics.count; i++) {
        const NamedValue *metric = &eval->metrics.at[i];
        text_add(t->out, "    {");
        put_string(t->out, metric->name);
        text_add(t->out, ", %d, %s, %d, ", eval->outputs.count + 1 + i,
                 metric->metric != NULL && metric->metric->add == METRIC_SUM ? "true" : "false", metric->better);
        put_string(t->out, metric->metric != NULL && metric->metric->finish != NULL ? metric->metric->finish : "");
        text_add(t->out, "},\n");
    }
    text_add(t->out, eval->metrics.count > 0 ? "};\n\n" : "    {0}\n};\n\n");
}

// The output of the data graph that a field reaches through ops of one operand: the port its codes are the labels of.
static int field_port(const Trainer *t, const Field *field)
{
    const Graph *data = t->data->graph;
    for (int i = 0; i < data->outputs.count; i++) {
        const Value *at = data->outputs.at[i].value;
        while (at != field->value && at->kind == VALUE_RESULT && at->node->n_in > 0 && at->node->in[0] != NULL)
            at = at->node->in[0];
        if (at == field->value)
            return data_port(t->train->graph, data->outputs.at[i].name);
    }
    return -1;
}

static void print_fields(Trainer *t)
{
    static const char *const how[] = {[FIELD_COLUMNS] = "columns", [FIELD_STRINGS] = "strings", [FIELD_ARRAY] = "array"};
    Text *out = t->out;
    DataNeeds needs = {NULL, NULL};
    if (t->data != NULL)
        needs = data_needs(t->data, t->train->graph);
    text_add(out, "// how, name, first, last, type, rank, dimensions, bytes, codes, how many, port, for targets alone?\n");
    text_add(out, "static const MlrtField fields[] = {\n");
    for (int i = 0; i < t->recipe->fields.count; i++) {
        const Field *field = &t->recipe->fields.at[i];
        const Type *type = &field->value->type;
        int64_t bytes = type_def(type->dtype)->bytes;
        for (int d = 0; d < type->shape.rank; d++)
            bytes *= size_value(type->shape.dim[d]);
        text_add(out, "    {\"%s\", ", how[field->how]);
        put_string(out, field->name);
        text_add(out, ", %lld, %lld, \"%s\", ", (long long)field->first, (long long)field->last, type_def(type->dtype)->name);
        put_dims(out, &type->shape, 0);
        text_add(out, ", %lld, ", (long long)bytes);
        put_string(out, field->codes);
        text_add(out, ", %lld, %d, %s},\n", (long long)field->n_codes, field->codes != NULL && t->data != NULL ? field_port(t, field) : -1,
                 t->data != NULL && !needs.field[field->value->index] ? "true" : "false");
    }
    text_add(out, t->recipe->fields.count > 0 ? "};\n\n" : "    {0}\n};\n\n");
}

// --- Recipe -------------------------------------------------------------------------------------------------------------------------

static void put_strings(Text *out, const char *name, const char *const *at, int count)
{
    text_add(out, "static const char *const %s[] = {", name);
    for (int i = 0; i < count; i++) {
        text_add(out, i > 0 ? ", " : "");
        put_string(out, at[i]);
    }
    text_add(out, count > 0 ? "};\n" : "NULL};\n");
}

static void print_source(Trainer *t, const Source *source, const char *name)
{
    put_strings(t->out, arena_printf(t->cx->arena, "%s_args", name), source->arg, source->n_args);
    put_strings(t->out, arena_printf(t->cx->arena, "%s_texts", name), source->text, source->n_args);
    text_add(t->out, "static const MlrtSource %s = {", name);
    put_string(t->out, source->kind);
    text_add(t->out, ", %d, %s_args, %s_texts};\n", source->n_args, name, name);
}

static void put_duration(Text *out, Duration duration)
{
    static const char *const unit[] = {[UNIT_NONE] = "MLRT_NONE", [UNIT_EPOCHS] = "MLRT_EPOCHS", [UNIT_STEPS] = "MLRT_STEPS",
                                       [UNIT_SECONDS] = "MLRT_SECONDS", [UNIT_SHARE] = "MLRT_SHARE"};
    text_add(out, "{");
    put_double(out, duration.amount);
    text_add(out, ", %s}", unit[duration.unit]);
}

static void print_sources(Trainer *t)
{
    if (t->recipe->source != NULL)
        print_source(t, t->recipe->source, "source");
    for (int i = 0; i < t->recipe->splits.count; i++)
        if (t->recipe->splits.at[i].source != NULL)
            print_source(t, t->recipe->splits.at[i].source, arena_printf(t->cx->arena, "source_%d", i));
    text_add(t->out, "static const MlrtSplit splits[] = {\n");
    for (int i = 0; i < t->recipe->splits.count; i++) {
        const Split *split = &t->recipe->splits.at[i];
        text_add(t->out, "    {");
        put_string(t->out, split->part);
        text_add(t->out, ", ");
        put_double(t->out, split->share);
        text_add(t->out, split->source != NULL ? ", &source_%d},\n" : ", NULL},\n", i);
    }
    text_add(t->out, t->recipe->splits.count > 0 ? "};\n" : "    {0}\n};\n");
}

static void print_schedule(Trainer *t)
{
    text_add(t->out, "static const MlrtSchedule schedule[] = {\n");
    for (int i = 0; i < t->recipe->schedule.count; i++) {
        const ScheduleStep *step = &t->recipe->schedule.at[i];
        text_add(t->out, "    {\"%s\", ", step->def->name);
        put_duration(t->out, step->length);
        for (int k = 0; k < 4; k++) {
            text_add(t->out, k > 0 ? ", " : ", {");
            put_double(t->out, step->arg[k]);
        }
        for (int k = 0; k < 4; k++)
            text_add(t->out, "%s%s", k > 0 ? ", " : "}, {", step->share[k] ? "true" : "false");
        text_add(t->out, "}},\n");
    }
    text_add(t->out, t->recipe->schedule.count > 0 ? "};\n" : "    {0}\n};\n");
}

static void print_hyper_tables(Trainer *t)
{
    const OptimizerDef *def = t->recipe->optimizer;
    const char *names[10];
    for (int i = 0; i < def->n_args; i++)
        names[i] = def->arg[i].name;
    put_strings(t->out, "hypers", names, def->n_args);
    text_add(t->out, "static const double groups[][MLRT_HYPERS] = {\n");
    for (int g = 0; g == 0 || g < t->recipe->groups.count; g++) {
        for (int i = 0; i < def->n_args; i++) {
            text_add(t->out, i > 0 ? ", " : "    {");
            put_double(t->out, t->recipe->groups.count > 0 ? t->recipe->groups.at[g].arg[i] : def->arg[i].initial);
        }
        text_add(t->out, "},\n");
    }
    text_add(t->out, "};\n");
}

static void field_text(Text *out, const char *name, const char *text)
{
    text_add(out, "    .%s = ", name);
    put_string(out, text);
    text_add(out, ",\n");
}

static void field_duration(Text *out, const char *name, Duration duration)
{
    text_add(out, "    .%s = ", name);
    put_duration(out, duration);
    text_add(out, ",\n");
}

static void field_double(Text *out, const char *name, double number)
{
    text_add(out, "    .%s = ", name);
    put_double(out, number);
    text_add(out, ",\n");
}

static void print_recipe(Trainer *t)
{
    Text *out = t->out;
    const Recipe *r = t->recipe;
    print_sources(t);
    print_schedule(t);
    print_hyper_tables(t);
    text_add(out, "\nstatic const MlrtRecipe recipe = {\n    .batch = %lld,\n", (long long)r->batch);
    field_double(out, "epochs", r->epochs);
    text_add(out, "    .steps = %lld,\n    .optimizer = \"%s\",\n", (long long)r->steps, r->optimizer->name);
    text_add(out, "    .n_hyper = %d, .hyper = hypers,\n", r->optimizer->n_args);
    text_add(out, "    .n_groups = %d, .group = groups[0],\n", r->groups.count > 0 ? r->groups.count : 1);
    text_add(out, "    .n_schedule = %d, .schedule = schedule,\n    .clip = %d,\n", r->schedule.count, (int)r->clip);
    field_double(out, "clip_at", r->clip_at);
    field_text(out, "keep_by", r->keep_by);
    text_add(out, "    .keep_better = %d, .keep_last = %d,\n", r->keep_better, r->keep_last);
    field_duration(out, "stop_after", r->stop_after);
    field_text(out, "stop_by", r->stop_by);
    text_add(out, "    .stop_better = %d,\n", r->stop_better);
    field_duration(out, "evaluate", r->evaluate);
    field_duration(out, "save", r->save);
    text_add(out, "    .shuffle = %s, .drop_last = %s,\n", r->shuffle ? "true" : "false", r->drop_last ? "true" : "false");
    text_add(out, "    .seed = %lluu,\n    .source = %s,\n", (unsigned long long)r->seed, r->source != NULL ? "&source" : "NULL");
    text_add(out, "    .n_splits = %d, .split = splits,\n", r->splits.count);
    field_text(out, "stratified_by", r->stratified_by);
    text_add(out, "};\n\n");
}

// --- The model ------------------------------------------------------------------------------------------------------------------------

// The text of the .net file itself, for the run folder.
static const char *source_text(const Trainer *t)
{
    const Diag *diag = t->cx->diag;
    for (int i = 0; i < diag->sources.count; i++)
        if (strcmp(diag->sources.at[i].name, t->model->path) == 0)
            return arena_string(t->cx->arena, diag->sources.at[i].bytes, (size_t)diag->sources.at[i].length);
    return "";
}

static const char *settings_text(const Trainer *t)
{
    Text text = {.arena = t->cx->arena};
    for (int i = 0; t->model->settings != NULL && i < map_count(t->model->settings); i++)
        text_add(&text, "%s = %s\n", map_key(t->model->settings, i), (const char *)map_value(t->model->settings, i));
    return text.at != NULL ? text.at : "";
}

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static void print_model(Trainer *t)
{
    Text *out = t->out;
    const Graph *train = t->train->graph, *eval = t->eval->graph;
    text_add(out, "static const MlrtModel model = {\n    .abi = MLRT_ABI,\n");
    field_text(out, "name", t->model->name);
    field_text(out, "path", t->model->path);
    text_add(out, "    .text =\n        ");
    put_long_string(out, source_text(t), 8);
    text_add(out, ",\n");
    field_text(out, "version", MLC_VERSION);
    field_text(out, "fingerprint", fingerprint(t));
    text_add(out, "    .settings =\n        ");
    put_long_string(out, settings_text(t), 8);
    text_add(out, ",\n");
    field_text(out, "summary", summary(t));
    text_add(out, "    .param_count = %lld, .trainable_count = %lld,\n", (long long)block_end(t->model), (long long)trainable_end(t->model));
    text_add(out, "    .n_params = %d, .param = params,\n", t->model->params.count);
    text_add(out, "    .n_states = %d, .state = states,\n", t->recipe->optimizer->n_states);
    text_add(out, "    .n_inputs = %d, .n_targets = %d, .input = inputs,\n", train->inputs.count - train->n_targets, train->n_targets);
    text_add(out, "    .n_train_outputs = %d, .n_outputs = %d,\n", 1 + train->auxiliary.count, eval->outputs.count + 1 + eval->metrics.count);
    text_add(out, "    .train_output = train_outputs, .output = outputs,\n    .n_results = %d,\n", eval->outputs.count);
    text_add(out, "    .n_metrics = %d, .metric = metrics,\n", eval->metrics.count);
    text_add(out, "    .n_fields = %d, .field = fields,\n", t->recipe->fields.count);
    text_add(out, "    .map_sample = %s,\n", t->data != NULL ? "map_sample" : "NULL");
    text_add(out, "    .arena_bytes = %lld, .scratch_bytes = %lld,\n", (long long)most(t->train->arena_bytes, t->eval->arena_bytes),
             (long long)most(t->train->scratch_bytes, t->eval->scratch_bytes));
    text_add(out, "    .train = {train_steps, %d},\n", t->train->steps.count + t->train_copies);
    text_add(out, "    .update = {update_steps, %d},\n", t->train->updates.count + 1);
    text_add(out, "    .eval = {eval_steps, %d},\n", t->eval->steps.count + t->eval_copies);
    text_add(out, "    .recipe = &recipe,\n};\n\n");
}

static void print_tables(Trainer *t)
{
    print_section(t, t->train, "train", t->train_copies);
    print_update_section(t);
    print_section(t, t->eval, "eval", t->eval_copies);
    print_params(t);
    print_labels(t);
    print_ports(t);
    print_metrics(t);
    print_fields(t);
    const OptimizerDef *def = t->recipe->optimizer;
    put_strings(t->out, "states", def->state, def->n_states);
    text_add(t->out, "\n");
    print_recipe(t);
    print_model(t);
}

// The steps first, into a text of their own: they show which kernel files the program needs.
void codegen_train(Text *c, Model *model, Program *train, Program *eval, Program *data)
{
    Text code = {.arena = model->cx->arena};
    Trainer t = {.cx = model->cx, .model = model, .recipe = model->recipe, .train = train, .eval = eval, .data = data, .out = &code};
    heading(&code, "Training: forward and backward");
    print_steps(&code, train, &dialect_c, "train");
    t.train_copies = print_result_copies(&t, train, "train");
    heading(&code, "Evaluation");
    print_steps(&code, eval, &dialect_c, "eval");
    t.eval_copies = print_result_copies(&t, eval, "eval");
    heading(&code, "Update");
    print_updates(&t);
    if (data != NULL) {
        heading(&code, "Data");
        print_steps(&code, data, &dialect_c, "data");
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
