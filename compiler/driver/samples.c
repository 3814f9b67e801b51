// samples.c: `mlc run --samples FILE`: rows of a file become inputs as the net's `data` section says, by the same Graph that
// training and m_prepare use, so that a row gives the same inputs everywhere. Columns that only targets need may be missing.
#include "driver.h"

#include "../../runtime/csv.h"

#include <stdlib.h>
#include <string.h>

typedef struct Samples {
    Command *command;
    Model   *model;
    Ports   *ports;
    Graph   *graph;                     // of one sample, with what inputs need and nothing else
    const char *path;
    int64_t  rows;
    void   **column;                    // by input of the graph: its elements for all rows; NULL: not needed
} Samples;

static Arena *arena_of(const Samples *s) { return s->command->cx.arena; }

static bool refuse(const Samples *s, const char *what)
{
    return fail_input(s->command, MESSAGE_E0901, arena_printf(arena_of(s), "%s with --samples", what)), false;
}

// --- What is needed ----------------------------------------------------------------------------------------------------

static int port_of(const Samples *s, const char *name)
{
    for (int i = 0; i < s->ports->object.n_in; i++)
        if (strcmp(s->ports->object.port[i].name, name) == 0)
            return i;
    return -1;
}

static bool keep_inputs(Samples *s)
{
    int kept = 0;
    bool *made = NEW_ARRAY(arena_of(s), bool, s->ports->object.n_in + 1);
    s->graph = graph_copy(s->model->recipe->data);
    for (int i = 0; i < s->graph->outputs.count; i++) {
        int port = port_of(s, s->graph->outputs.at[i].name);
        if (port < 0)
            continue;
        made[port] = true;
        s->graph->outputs.at[kept++] = s->graph->outputs.at[i];
    }
    s->graph->outputs.count = kept;
    graph_prune(s->graph);
    for (int i = 0; i < s->ports->object.n_in; i++)
        if (!made[i])
            return fail_input(s->command, MESSAGE_E0713, s->ports->object.port[i].name), false;
    return true;
}

static bool is_needed(const Samples *s, const Value *input)
{
    bool needed = false;
    for (int i = 0; i < s->graph->outputs.count; i++)
        needed |= s->graph->outputs.at[i].value == input;
    for (int i = 0; i < s->graph->nodes.count; i++)
        for (int k = 0; k < s->graph->nodes.at[i]->n_in; k++)
            needed |= s->graph->nodes.at[i]->in[k] == input;
    return needed;
}

// What training learns from its part of the data is not in the net.
static bool check_nodes(const Samples *s)
{
    for (int i = 0; i < s->graph->nodes.count; i++)
        if (s->graph->nodes.at[i]->op->traits & OP_FITTED)
            return refuse(s, s->graph->nodes.at[i]->op->name);
    return true;
}

// --- Reading -----------------------------------------------------------------------------------------------------------

static const char *source_argument(const Source *source, const char *name)
{
    for (int i = 0; i < source->n_args; i++)
        if (source->arg[i] != NULL && strcmp(source->arg[i], name) == 0)
            return source->text[i];
    return NULL;
}

static MlrtCsvOptions csv_options(const Source *source)
{
    const char *header = source_argument(source, "header"), *separator = source_argument(source, "separator");
    MlrtCsvOptions options = {.separator = separator != NULL ? separator[0] : 0};
    if (header != NULL)
        options.header = strcmp(header, "true") == 0 ? MLRT_HEADER_YES : MLRT_HEADER_NO;
    return options;
}

static MlrtStatus find_columns(const MlrtCsv *csv, const Field *field, const char *path, int *columns, int count, MlrtError *error)
{
    if (field->name != NULL)
        return mlrt_csv_find(csv, field->name, columns, error);
    if (field->last >= mlrt_csv_columns(csv))
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s has %d columns, and the net reads column %lld", path, mlrt_csv_columns(csv),
                         (long long)field->last);
    for (int i = 0; i < count; i++)
        columns[i] = (int)field->first + i;
    return MLRT_OK;
}

static bool read_field(Samples *s, const MlrtCsv *csv, const Field *field)
{
    Command *command = s->command;
    MlrtError error = {0};
    const Type *type = &field->value->type;
    int count = field->name != NULL ? 1 : (int)(field->last - field->first + 1);
    if (field->how != FIELD_COLUMNS || field->codes != NULL)
        return refuse(s, "a column of words");
    int *columns = NEW_ARRAY(arena_of(s), int, count);
    void *values = arena_alloc_array(arena_of(s), (size_t)type_def(type->dtype)->bytes * (size_t)count, s->rows);
    MlrtStatus status = find_columns(csv, field, s->path, columns, count, &error);
    if (status == MLRT_OK)
        status = mlrt_csv_numbers(csv, columns, count, ports_type(type->dtype), values, &error);
    s->column[field->value->index] = values;
    return status == MLRT_OK || (fail_runtime(command, &error), false);
}

static bool read_fields(Samples *s)
{
    const Recipe *recipe = s->model->recipe;
    MlrtCsv *csv;
    MlrtError error = {0};
    MlrtCsvOptions options = csv_options(recipe->source);
    if (mlrt_csv_open(s->path, &options, &csv, &error) != MLRT_OK)
        return fail_runtime(s->command, &error), false;
    s->rows = (int64_t)mlrt_csv_rows(csv);
    s->column = NEW_ARRAY(arena_of(s), void *, s->graph->inputs.count + 1);
    bool good = true;
    for (int i = 0; i < recipe->fields.count && good; i++)
        if (is_needed(s, s->graph->inputs.at[recipe->fields.at[i].value->index]))
            good = read_field(s, csv, &recipe->fields.at[i]);
    mlrt_csv_close(csv);
    return good;
}

// --- Mapping -----------------------------------------------------------------------------------------------------------

static Tensor *field_of_row(const Samples *s, Arena *arena, const Value *value, int64_t row)
{
    int64_t dim[RANK_MAX];
    for (int i = 0; i < value->type.shape.rank; i++)
        dim[i] = size_value(value->type.shape.dim[i]);
    Tensor *tensor = tensor_new(arena, value->type.dtype, value->type.shape.rank, dim);
    size_t bytes = (size_t)tensor_count(tensor) * (size_t)type_def(value->type.dtype)->bytes;
    memcpy(tensor->data, (const char *)s->column[value->index] + (size_t)row * bytes, bytes);
    return tensor;
}

// The inputs of row `row` go behind those of the rows before it.
static bool map_row(Samples *s, MlrtSlots *slots, int64_t row)
{
    Arena *arena = arena_new();
    Eval eval = {.arena = arena, .at = NEW_ARRAY(arena, Tensor *, s->graph->values.count + 1),
                 .symbols = NEW_ARRAY(arena, int64_t, map_count(s->command->cx.symbols) + 1)};
    for (int i = 0; i < s->graph->inputs.count; i++)
        if (s->column[i] != NULL)
            eval.at[s->graph->inputs.at[i]->id] = field_of_row(s, arena, s->graph->inputs.at[i], row);
    bool good = eval_graph(s->graph, &eval);
    for (int i = 0; i < s->graph->outputs.count && good; i++) {
        const Tensor *tensor = eval.at[s->graph->outputs.at[i].value->id];
        size_t bytes = (size_t)tensor_count(tensor) * (size_t)type_def(tensor->dtype)->bytes;
        memcpy((char *)slots->data[port_of(s, s->graph->outputs.at[i].name)] + (size_t)row * bytes, tensor->data, bytes);
    }
    if (!good)
        fail_input(s->command, MESSAGE_E0704, arena_printf(arena_of(s), "%s, row %lld: %s", s->path, (long long)row + 1,
                                                           eval.error != NULL ? eval.error : "cannot be mapped"));
    arena_free(arena);
    return good;
}

static bool make_room(Samples *s, MlrtSlots *slots)
{
    for (int i = 0; i < s->graph->outputs.count; i++) {
        const Type *type = &s->graph->outputs.at[i].value->type;
        int64_t bytes = type_def(type->dtype)->bytes, n;
        int port = port_of(s, s->graph->outputs.at[i].name);
        if (type->shape.rank + 1 != s->ports->type.at[port].shape.rank || type->dtype != s->ports->type.at[port].dtype)
            return refuse(s, "an input that is not one for each sample");
        for (int k = 0; k < type->shape.rank; k++)
            if (!size_known(type->shape.dim[k], &n) || !size_mul(bytes, n, &bytes))
                return refuse(s, "a sample of no fixed size");
        if (!size_mul(bytes, s->rows, &bytes) || (slots->data[port] = malloc((size_t)bytes + 64)) == NULL)
            out_of_memory((size_t)bytes);
    }
    return true;
}

bool samples_read(Command *command, Model *model, Ports *ports, MlrtSlots *slots, const char *path)
{
    Samples s = {.command = command, .model = model, .ports = ports, .path = path};
    const Recipe *recipe = model->recipe;
    if (recipe == NULL || recipe->data == NULL || recipe->source == NULL)
        return fail_input(command, MESSAGE_E0620, model->name, "data section"), false;
    if (strcmp(recipe->source->kind, "csv") != 0)
        return refuse(&s, recipe->source->kind);
    if (ports->object.n_sizes > 1)
        return refuse(&s, "a net with named sizes besides the batch");
    if (!keep_inputs(&s) || !check_nodes(&s) || !read_fields(&s) || !make_room(&s, slots))
        return false;
    for (int64_t row = 0; row < s.rows; row++)
        if (!map_row(&s, slots, row))
            return false;
    slots->size[0] = s.rows;
    return true;
}
