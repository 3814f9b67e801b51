// tables.c: what a training program tells the runtime: steps, parameters, ports, fields, recipe (mlrt.h).
#include "train.h"

#include <stdlib.h>
#include <string.h>

// --- Steps and parameters --------------------------------------------------------------------------------------------

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
    text_add(out, ", %lld, %lld},\n", looked_at ? (long long)home->offset : 0,
             looked_at ? (long long)(home->bytes / 4) : 0);
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
    for (int i = 0; i < t->update_steps.count; i++)
        text_add(t->out, "    {%s, %d, \"optimizer\", \"%s\", 0, 0},\n", t->update_steps.at[i].name, t->update_steps.at[i].parts,
                 t->update_steps.at[i].name + strlen("update_"));
    text_add(t->out, "};\n\n");
}

static void print_params(Trainer *t)
{
    Text *out = t->out;
    text_add(out,
             "// path, rank, dimensions, offset, count, {trainable, buffer, training only}, group, initial values\n");
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
    static const char *const how[] = {
        [FIELD_COLUMNS] = "columns", [FIELD_STRINGS] = "strings", [FIELD_ARRAY] = "array"};
    Text *out = t->out;
    DataNeeds needs = {NULL, NULL};
    if (t->data != NULL)
        needs = data_needs(t->data, t->train->graph);
    text_add(out,
             "// how, name, first, last, type, rank, dimensions, bytes, codes, how many, port, for targets alone?\n");
    text_add(out, "static const MlrtField fields[] = {\n");
    for (int i = 0; i < t->recipe->fields.count; i++) {
        const Field *field = &t->recipe->fields.at[i];
        const Type *type = &field->value->type;
        int64_t bytes = type_def(type->dtype)->bytes;
        for (int d = 0; d < type->shape.rank; d++)
            bytes *= size_value(type->shape.dim[d]);
        text_add(out, "    {\"%s\", ", how[field->how]);
        put_string(out, field->name);
        text_add(out, ", %lld, %lld, \"%s\", ", (long long)field->first, (long long)field->last,
                 type_def(type->dtype)->name);
        put_dims(out, &type->shape, 0);
        text_add(out, ", %lld, ", (long long)bytes);
        put_string(out, field->codes);
        text_add(out, ", %lld, %d, %s},\n", (long long)field->n_codes,
                 field->codes != NULL && t->data != NULL ? field_port(t, field) : -1,
                 t->data != NULL && !needs.field[field->value->index] ? "true" : "false");
    }
    text_add(out, t->recipe->fields.count > 0 ? "};\n\n" : "    {0}\n};\n\n");
}

// --- Recipe ----------------------------------------------------------------------------------------------------------

static void put_strings(Text *out, const char *name, const char *const *at, int count)
{
    text_add(out, "static const char *const %s[] = {", name);
    for (int i = 0; i < count; i++) {
        text_add(out, i > 0 ? ", " : "");
        put_string(out, at[i]);
    }
    text_add(out, count > 0 ? "};\n" : "NULL};\n");
}

// windows(source, length, stride) is the source, read by several rows.
static int64_t window_number(const Source *source, const char *name)
{
    for (int i = 0; strcmp(source->kind, "windows") == 0 && i < source->n_args; i++)
        if (strcmp(source->arg[i], name) == 0)
            return strtoll(source->text[i], NULL, 10);
    return 0;
}

static void print_source(Trainer *t, const Source *source, const char *name)
{
    int64_t window = window_number(source, "length"), stride = window_number(source, "stride");
    while (source->of != NULL)
        source = source->of;
    put_strings(t->out, arena_printf(t->cx->arena, "%s_args", name), source->arg, source->n_args);
    put_strings(t->out, arena_printf(t->cx->arena, "%s_texts", name), source->text, source->n_args);
    text_add(t->out, "static const MlrtSource %s = {", name);
    put_string(t->out, source->kind);
    text_add(t->out, ", %d, %s_args, %s_texts, %lld, %lld};\n", source->n_args, name, name, (long long)window,
             (long long)(stride > 0 ? stride : window));
}

static void put_duration(Text *out, Duration duration)
{
    static const char *const unit[] = {[UNIT_NONE] = "MLRT_NONE",
                                       [UNIT_EPOCHS] = "MLRT_EPOCHS",
                                       [UNIT_STEPS] = "MLRT_STEPS",
                                       [UNIT_SECONDS] = "MLRT_SECONDS",
                                       [UNIT_SHARE] = "MLRT_SHARE"};
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

// The moments of a link, as a table of their own.
static void print_moments(Trainer *t, int i)
{
    const ScheduleStep *step = &t->recipe->schedule.at[i];
    if (step->at.count == 0)
        return;
    text_add(t->out, "static const MlrtDuration schedule_%d_at[] = {", i);
    for (int k = 0; k < step->at.count; k++) {
        text_add(t->out, k > 0 ? ", " : "");
        put_duration(t->out, step->at.at[k]);
    }
    text_add(t->out, "};\n");
}

static void print_schedule(Trainer *t)
{
    for (int i = 0; i < t->recipe->schedule.count; i++)
        print_moments(t, i);
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
        text_add(t->out, step->at.count > 0 ? "}, %d, schedule_%d_at, " : "}, %d, NULL, ", step->at.count, i);
        put_string(t->out, step->by);
        text_add(t->out, ", %d},\n", step->better);
    }
    text_add(t->out, t->recipe->schedule.count > 0 ? "};\n" : "    {0}\n};\n");
}

static void put_hypers(Trainer *t, const char *name, const OptimizerDef *def)
{
    const char *names[10];
    for (int i = 0; i < def->n_args; i++)
        names[i] = def->arg[i].name;
    put_strings(t->out, name, names, def->n_args);
}

static bool has_own_optimizers(const Recipe *recipe)
{
    bool any = false;
    for (int g = 0; g < recipe->groups.count; g++)
        any = any || recipe->groups.at[g].own != NULL;
    return any;
}

// Of each group; an empty row where it is the recipe's.
static void print_own_optimizers(Trainer *t)
{
    const Recipe *r = t->recipe;
    if (!has_own_optimizers(r))
        return;
    for (int g = 0; g < r->groups.count; g++)
        if (r->groups.at[g].own != NULL)
            put_hypers(t, arena_printf(t->cx->arena, "hypers_%d", g), r->groups.at[g].own);
    text_add(t->out, "static const MlrtOptimizer own[] = {\n");
    for (int g = 0; g < r->groups.count; g++) {
        const OptimizerDef *own = r->groups.at[g].own;
        if (own != NULL)
            text_add(t->out, "    {\"%s\", %d, hypers_%d},\n", own->name, own->n_args, g);
        else
            text_add(t->out, "    {0},\n");
    }
    text_add(t->out, "};\n");
}

static void print_hyper_tables(Trainer *t)
{
    const OptimizerDef *def = t->recipe->optimizer;
    put_hypers(t, "hypers", def);
    print_own_optimizers(t);
    text_add(t->out, "static const double groups[][MLRT_HYPERS] = {\n");
    for (int g = 0; g == 0 || g < t->recipe->groups.count; g++) {
        def = group_optimizer(t->recipe, g);
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
    if (has_own_optimizers(r))
        text_add(out, "    .own = own,\n");
    if (r->ema > 0)
        field_double(out, "ema", r->ema);
    text_add(out, "    .n_schedule = %d, .schedule = schedule,\n    .clip = %d,\n", r->schedule.count, (int)r->clip);
    field_double(out, "clip_at", r->clip_at);
    field_text(out, "keep_by", r->keep_by);
    text_add(out, "    .keep_better = %d, .keep_last = %d,\n", r->keep_better, r->keep_last);
    field_duration(out, "stop_after", r->stop_after);
    field_text(out, "stop_by", r->stop_by);
    text_add(out, "    .stop_better = %d,\n", r->stop_better);
    field_duration(out, "evaluate", r->evaluate);
    field_duration(out, "save", r->save);
    text_add(out, "    .shuffle = %s, .drop_last = %s,\n", r->shuffle ? "true" : "false",
             r->drop_last ? "true" : "false");
    text_add(out, "    .seed = %lluu,\n    .source = %s,\n", (unsigned long long)r->seed,
             r->source != NULL ? "&source" : "NULL");
    text_add(out, "    .n_splits = %d, .split = splits,\n", r->splits.count);
    field_text(out, "stratified_by", r->stratified_by);
    if (r->sampler != NULL) {
        field_text(out, "sampler", r->sampler);
        field_text(out, "sampler_by", r->sampler_by);
    }
    text_add(out, "};\n\n");
}

// --- The model -------------------------------------------------------------------------------------------------------
static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text != 0; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return (hash ^ 0xff) * 1099511628211u;  // ends the text, so that "ab", "c" is not "a", "bc"
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
    const char *states[OPTIMIZER_STATES];
    for (int i = 0, count = optimizer_states(t->recipe, states); i < count; i++)
        hash = hash_text(hash, states[i]);
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
    text_add(out, "    .param_count = %lld, .trainable_count = %lld,\n", (long long)params_end(t->model, false),
             (long long)trainable_end(t->model));
    text_add(out, "    .n_params = %d, .param = params,\n", t->model->params.count);
    const char *states[OPTIMIZER_STATES];
    text_add(out, "    .n_states = %d, .state = states,\n", optimizer_states(t->recipe, states));
    text_add(out, "    .n_inputs = %d, .n_targets = %d, .input = inputs,\n", train->inputs.count - train->n_targets,
             train->n_targets);
    text_add(out, "    .n_train_outputs = %d, .n_outputs = %d,\n", 1 + train->auxiliary.count,
             eval->outputs.count + 1 + eval->metrics.count);
    text_add(out, "    .train_output = train_outputs, .output = outputs,\n    .n_results = %d,\n", eval->outputs.count);
    text_add(out, "    .n_metrics = %d, .metric = metrics,\n", eval->metrics.count);
    text_add(out, "    .n_fields = %d, .field = fields,\n", t->recipe->fields.count);
    text_add(out, "    .map_sample = %s,\n", t->data != NULL ? "map_sample" : "NULL");
    text_add(out, "    .arena_bytes = %lld, .scratch_bytes = %lld,\n",
             (long long)most(t->train->arena_bytes, t->eval->arena_bytes),
             (long long)most(most(t->train->scratch_bytes, t->eval->scratch_bytes), 4 * update_scratch(t->model)));
    text_add(out, "    .train = {train_steps, %d},\n", t->train->steps.count + t->train_copies);
    text_add(out, "    .update = {update_steps, %d},\n", t->train->updates.count + t->update_steps.count);
    text_add(out, "    .eval = {eval_steps, %d},\n", t->eval->steps.count + t->eval_copies);
    text_add(out, "    .recipe = &recipe,\n};\n\n");
}

void print_tables(Trainer *t)
{
    print_section(t, t->train, "train", t->train_copies);
    print_update_section(t);
    print_section(t, t->eval, "eval", t->eval_copies);
    print_params(t);
    print_labels(t);
    print_ports(t);
    print_metrics(t);
    print_fields(t);
    const char *states[OPTIMIZER_STATES];
    put_strings(t->out, "states", states, optimizer_states(t->recipe, states));
    text_add(t->out, "\n");
    print_recipe(t);
    print_model(t);
}
