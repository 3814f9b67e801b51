// program.c: one graph to its program, and where parameters lie.
#include "passes.h"

enum { PARAM_ALIGN = 16 };              // floats: one line of the cache

// --- Parameters -------------------------------------------------------------------------------------------------------------

static int64_t param_room(const Param *param)
{
    int64_t count = 1, room;
    for (int i = 0; i < param->type.shape.rank; i++)
        CHECK(size_mul(count, size_value(param->type.shape.dim[i]), &count));
    CHECK(size_add(count, PARAM_ALIGN - 1, &room));
    return room / PARAM_ALIGN * PARAM_ALIGN;
}

static int64_t place_group(const Model *model, int group, bool trainable, int64_t offset)
{
    for (int i = 0; i < model->params.count; i++) {
        Param *param = model->params.at[i];
        if (param->trainable != trainable || (trainable && param->group != group))
            continue;
        param->offset = offset;
        CHECK(size_add(offset, param_room(param), &offset));
    }
    return offset;
}

void params_place(Model *model)
{
    int groups = 1;
    for (int i = 0; i < model->params.count; i++)
        if (model->params.at[i]->group >= groups)
            groups = model->params.at[i]->group + 1;
    int64_t offset = 0;
    for (int group = 0; group < groups; group++)
        offset = place_group(model, group, true, offset);
    place_group(model, 0, false, offset);
}

int64_t params_end(const Model *model, bool deployed)
{
    int64_t end = 0;
    for (int i = 0; i < model->params.count; i++) {
        const Param *param = model->params.at[i];
        int64_t last = param->offset + param_count(param);
        if (last > end && !(deployed && param->train_only))
            end = last;
    }
    return end;
}

// --- Sizes ----------------------------------------------------------------------------------------------------------------------

static bool shape_has(const Shape *shape, const Symbol *symbol)
{
    const Symbol *symbols[RANK_MAX];
    for (int i = 0; i < shape->rank; i++) {
        int count = size_symbols(shape->dim[i], symbols, RANK_MAX);
        for (int k = 0; k < count; k++)
            if (symbols[k] == symbol)
                return true;
    }
    return false;
}

// The batch is bounded by the recipe; every other named size says itself how large it may be. A graph without a batch, as
// the mapping of data, says nothing of it.
static void bound_batch(Context *cx, const Graph *graph, int64_t batch)
{
    for (int i = 0; i < map_count(cx->symbols); i++) {
        Symbol *symbol = map_value(cx->symbols, i);
        for (int k = 0; symbol->batch && batch > 0 && k < graph->inputs.count; k++)
            if (shape_has(&graph->inputs.at[k]->type.shape, symbol))
                symbol->bound = batch;
    }
}

// A training program is made for one size of everything but the batch, that of the data or else the largest: its samples are all
// of one shape.
static void bind_sizes(const Model *model, Graph *graph)
{
    Context *cx = model->cx;
    const Recipe *recipe = model->recipe;
    if (recipe == NULL || (graph != model->train && graph != model->eval && graph != recipe->data))
        return;
    int64_t *symbols = NEW_ARRAY(cx->arena, int64_t, map_count(cx->symbols) + 1);
    for (int i = 0; i < map_count(cx->symbols); i++) {
        const Symbol *symbol = map_value(cx->symbols, i);
        int64_t size = symbol->trained > 0 ? symbol->trained : symbol->bound;
        symbols[symbol->id] = !symbol->batch && size > 0 ? size : -1;
    }
    graph_bind(graph, symbols);
}

static void check_bounds(Context *cx, const Value *value)
{
    const Symbol *symbols[RANK_MAX];
    for (int i = 0; i < value->type.shape.rank; i++) {
        int count = size_symbols(value->type.shape.dim[i], symbols, RANK_MAX);
        for (int k = 0; k < count; k++)
            if (symbols[k]->bound <= 0) {
                diag_report(cx->diag, value->place, MESSAGE_E0319, symbols[k]->name, value->name);
                diag_help(cx->diag, "%s <= 1024, in the type of the input", symbols[k]->name);
                return;
            }
    }
}

Program *program_of_graph(Model *model, Graph *graph, int64_t batch)
{
    Context *cx = model->cx;
    int errors = cx->diag->errors;
    model_complete(model, graph != model->infer);
    bound_batch(cx, graph, batch);
    bind_sizes(model, graph);
    for (int i = 0; i < graph->inputs.count; i++)
        check_bounds(cx, graph->inputs.at[i]);
    if (cx->diag->errors > errors)
        return NULL;
    params_place(model);
    Work work = {.cx = cx, .model = model, .graph = graph, .batch = batch, .show = cx->show, .timed = cx->timed, .log = cx->log};
    return passes_run(&work, STAGE_PLANNED) ? work.program : NULL;
}
