// build_data.c: the data section: a source whose fields become inputs of a Graph of its own, and a mapping that fills the
// net's inputs and targets, one sample at a time. What type and shape a field has is not in the model: a field that an
// assignment gives to an input or target has that one's, and the trainer checks the file against it; a column of a table
// is an f32, or the integer it is given to directly.
#include <string.h>

#include "build.h"
#include "train.h"

static void wrong(Net *net, const Ast *ast, const char *what, const char *wanted, const char *got)
{
    diag_report(net->cx->diag, ast->place, MESSAGE_E0311, what, wanted, got);
}

// --- sources --------------------------------------------------------------------------------------------------------------------

typedef struct SourceKind { const char *kind; const char *names; bool open; } SourceKind;   // open: arguments name the fields

static const SourceKind kinds[] = {
    {"csv", "path header separator", false}, {"npy", "", true}, {"idx", "", true},
};

// Sources of the language that this version refuses by name.
static const char *const later[] = {"files", "folder", "detection", "conll", "lines", "text", "stream", "windows", "triplets"};

static const SourceKind *source_kind(Net *net, const Ast *ast)
{
    const char *name = ast->kind == AST_CALL && ast->a->kind == AST_NAME ? ast->a->text : "";
    const char *names[COUNT(kinds)];
    for (int i = 0; i < COUNT(kinds); i++) {
        names[i] = kinds[i].kind;
        if (strcmp(kinds[i].kind, name) == 0)
            return &kinds[i];
    }
    for (int i = 0; i < COUNT(later); i++)
        if (strcmp(later[i], name) == 0) {
            refuse(net, ast, arena_printf(net->arena, "the source `%s`", name), "csv, npy and idx are");
            return NULL;
        }
    diag_report(net->cx->diag, ast->place, MESSAGE_E0511, name[0] != 0 ? name : "this");
    diag_help_nearest(net->cx->diag, name, names, COUNT(kinds));
    return NULL;
}

static const char *source_argument(Net *net, const SourceKind *kind, const Ast *arg, int place)
{
    if (kind->open) {
        if (arg->kind != AST_ARGUMENT)
            wrong(net, arg, kind->kind, "given fields with names: image = \"images.npy\"", "a file without a name");
        return arg->kind == AST_ARGUMENT ? arg->text : NULL;
    }
    static const char *const names[] = {"path", "header", "separator"};
    if (arg->kind != AST_ARGUMENT && place == 0)
        return names[0];
    for (int i = 0; arg->kind == AST_ARGUMENT && i < COUNT(names); i++)
        if (strcmp(names[i], arg->text) == 0)
            return names[i];
    diag_report(net->cx->diag, arg->place, MESSAGE_E0202, kind->kind, arg->kind == AST_ARGUMENT ? arg->text : "there");
    if (arg->kind == AST_ARGUMENT)
        diag_help_nearest(net->cx->diag, arg->text, names, COUNT(names));
    return NULL;
}

static Source *read_source(Net *net, Scope *scope, Ast *ast)
{
    const SourceKind *kind = source_kind(net, ast);
    if (kind == NULL)
        return NULL;
    Source *source = NEW(net->arena, Source);
    *source = (Source){.kind = kind->kind, .place = ast->place};
    for (int i = 0; i < ast->count; i++) {
        Ast *arg = ast->items[i];
        const char *name = source_argument(net, kind, arg, i);
        Val v = name != NULL ? eval(net, scope, arg->kind == AST_ARGUMENT ? arg->a : arg) : (Val){0};
        if (v.kind == VAL_NONE)
            return NULL;
        if (source->n_args >= COUNT(source->arg)) {
            wrong(net, arg, kind->kind, "given 8 files at most", "more");
            return NULL;
        }
        if (v.kind != VAL_STRING && (kind->open || strcmp(name, "header") != 0)) {
            wrong(net, arg, name, "a string", val_text(net, &v));
            return NULL;
        }
        source->arg[source->n_args] = name;
        source->text[source->n_args++] = v.kind == VAL_STRING ? v.text : val_text(net, &v);
    }
    if (source->n_args == 0) {
        diag_report(net->cx->diag, ast->place, MESSAGE_E0209, kind->kind, kind->open ? "a file for each field" : "its file");
        return NULL;
    }
    return source;
}

// --- fields ---------------------------------------------------------------------------------------------------------------------

static Type sample_type(Net *net, const Type *whole)
{
    Type type = {.dtype = whole->dtype};
    for (int i = 1; i < whole->shape.rank; i++)
        type.shape.dim[type.shape.rank++] = whole->shape.dim[i];
    (void)net;
    return type;
}

static Value *field_add(Net *net, const Ast *ast, Field field, Type type, const char *name)
{
    Recipe *r = net->train->recipe;
    for (int i = 0; i < r->fields.count; i++) {
        const Field *f = &r->fields.at[i];
        bool same = f->how == field.how && f->first == field.first && f->last == field.last && f->codes == field.codes &&
                    (f->name == field.name || (f->name != NULL && field.name != NULL && strcmp(f->name, field.name) == 0));
        if (same && f->value->type.dtype == type.dtype && shape_equal(&f->value->type.shape, &type.shape))
            return f->value;
    }
    field.value = graph_input(net->graph, name, type, ast->place);
    LIST_ADD(net->arena, r->fields, field);
    return field.value;
}

// A field of npy or idx, when it is first read.
bool field_make(Net *net, Scope *scope, Ast *ast, const char *name, Val *result)
{
    (void)scope;
    const Value *goal = net->data->goal;
    *result = (Val){0};
    if (goal == NULL) {
        refuse(net, ast, arena_printf(net->arena, "the field %s in a helper", name), "use it where an input or target is assigned");
        return true;
    }
    Type type = sample_type(net, &goal->type);
    *result = val_tensor(field_add(net, ast, (Field){.how = FIELD_ARRAY, .name = name}, type, name));
    return true;
}

static DType column_type(Net *net)
{
    const Value *goal = net->data->goal;
    return goal != NULL && net->data->direct ? goal->type.dtype : TYPE_f32;
}

static bool is_table(Net *net, Ast *call, Val *result)
{
    *result = (Val){0};
    if (strcmp(net->data->source->kind, "csv") == 0)
        return true;
    wrong(net, call, call->a->text, "used with csv", net->data->source->kind);
    return false;
}

static Value *column_field(Net *net, const Ast *ast, const Val *v, DType dtype, const char *codes, int64_t n)
{
    Field field = {.how = codes != NULL ? FIELD_STRINGS : FIELD_COLUMNS, .codes = codes, .n_codes = n};
    int64_t at;
    if (v->kind == VAL_STRING) {
        field.name = v->text;
    } else if (val_is_whole(v, &at) && at >= 0) {
        field.first = field.last = at;
    } else {
        wrong(net, ast, "a column", "a number from 0 or a name", val_text(net, v));
        return NULL;
    }
    const char *name = field.name != NULL ? field.name : arena_printf(net->arena, "column%lld", (long long)field.first);
    return field_add(net, ast, field, type_of(dtype, 0, NULL), name);
}

static void columns_range(Net *net, Ast *call, const Val *list, Val *result)
{
    int64_t first, last;
    bool range = list->kind == VAL_LIST && list->count > 0 && val_is_whole(&list->items[0], &first) &&
                 val_is_whole(&list->items[list->count - 1], &last) && last - first == list->count - 1 && first >= 0;
    if (!range) {
        wrong(net, call, "columns", "a range such as 0..63, or names", val_text(net, list));
        return;
    }
    Size n = size_const(net->cx, list->count);
    Field field = {.how = FIELD_COLUMNS, .first = first, .last = last};
    *result = val_tensor(field_add(net, call, field, type_of(column_type(net), 1, &n), "columns"));
}

// Columns by name, one after the other: each is read by itself, then they are joined.
static void columns_named(Net *net, Scope *scope, Ast *call, Val *result)
{
    Val args[INPUTS_MAX];
    if (call->count > INPUTS_MAX) {
        wrong(net, call, "columns", "at most 8 names", "more");
        return;
    }
    for (int i = 0; i < call->count; i++) {
        Val v = eval(net, scope, call->items[i]);
        Value *column = v.kind != VAL_NONE ? column_field(net, call->items[i], &v, column_type(net), NULL, 0) : NULL;
        if (column == NULL)
            return;
        Builder b = {.cx = net->cx, .graph = net->graph, .place = call->place};
        Shape one = {.rank = 1, .dim = {size_const(net->cx, 1)}};
        args[i] = val_tensor(build_reshape(&b, column, &one));
    }
    *result = call->count == 1 ? args[0] : call_simple(net, scope, call, "concat", args, call->count, "axis = 0");
}

// classes(column("c"), n), category(column("c"), size = n): strings become numbers, by what the training part has.
static void coded_column(Net *net, Scope *scope, Ast *call, const char *codes, Val *result)
{
    Ast *column = call->count == 2 ? call->items[0] : NULL;
    bool good = column != NULL && column->kind == AST_CALL && column->a->kind == AST_NAME && strcmp(column->a->text, "column") == 0 &&
                column->count == 1;
    if (!good) {
        wrong(net, call, codes, "given a column and a number of codes", "this");
        return;
    }
    Ast *size = call->items[1]->kind == AST_ARGUMENT ? call->items[1]->a : call->items[1];
    Val which = eval(net, scope, column->items[0]), n = eval(net, scope, size);
    int64_t count;
    if (which.kind == VAL_NONE || n.kind == VAL_NONE)
        return;
    if (!val_is_whole(&n, &count) || count < 1) {
        wrong(net, size, "the number of codes", "a whole number above 0", val_text(net, &n));
        return;
    }
    Value *v = column_field(net, column->items[0], &which, TYPE_i32, codes, count);
    if (v != NULL)
        *result = val_tensor(v);
}

bool data_call(Net *net, Scope *scope, Ast *call, const char *name, Val *result)
{
    if (!net->in_data || net->frames.count > 0)
        return false;
    bool column = strcmp(name, "column") == 0, columns = strcmp(name, "columns") == 0;
    bool codes = strcmp(name, "classes") == 0 || strcmp(name, "category") == 0;
    if (!column && !columns && !codes)
        return false;
    if (!is_table(net, call, result))
        return true;
    if (codes) {
        coded_column(net, scope, call, strcmp(name, "classes") == 0 ? "classes" : "category", result);
        return true;
    }
    Val first = call->count > 0 && call->items[0]->kind != AST_ARGUMENT ? eval(net, scope, call->items[0]) : (Val){0};
    if (first.kind == VAL_NONE) {
        if (call->count == 0)
            diag_report(net->cx->diag, call->place, MESSAGE_E0209, name, "which");
    } else if (columns && first.kind == VAL_STRING) {
        columns_named(net, scope, call, result);
    } else if (columns) {
        columns_range(net, call, &first, result);
    } else {
        Value *v = column_field(net, call, &first, column_type(net), NULL, 0);
        *result = v != NULL ? val_tensor(v) : (Val){0};
    }
    return true;
}

// --- filling inputs and targets ---------------------------------------------------------------------------------------------------

static const Value *goal_of(Net *net, const char *name)
{
    const Graph *g = net->data->outer;
    for (int i = 0; i < g->inputs.count; i++)
        if (strcmp(g->inputs.at[i]->name, name) == 0)
            return g->inputs.at[i];
    return NULL;
}

// The same but for axes of size 1?
static bool same_but_ones(const Shape *a, const Shape *b)
{
    int i = 0, k = 0;
    int64_t n;
    for (;;) {
        while (i < a->rank && size_known(a->dim[i], &n) && n == 1)
            i++;
        while (k < b->rank && size_known(b->dim[k], &n) && n == 1)
            k++;
        if (i == a->rank || k == b->rank)
            return i == a->rank && k == b->rank;
        if (!size_equal(a->dim[i++], b->dim[k++]))
            return false;
    }
}

static bool takes_shape(Net *net, const Shape *from, const Shape *to)
{
    return same_but_ones(from, to) || (from->rank == 1 && size_equal(shape_count(net->cx, from), shape_count(net->cx, to)));
}

static void fill(Net *net, const Ast *at, const char *name, const Value *goal, Value *v)
{
    Type wanted = sample_type(net, &goal->type);
    bool whole = !type_is_float(wanted.dtype) && !type_is_float(v->type.dtype);
    if (!takes_shape(net, &v->type.shape, &wanted.shape) || (v->type.dtype != wanted.dtype && !whole)) {
        diag_report(net->cx->diag, at->place, MESSAGE_E0510, type_text(net->cx, &v->type), name,
                    arena_printf(net->arena, "%s a sample", type_text(net->cx, &wanted)));
        if (!type_is_float(wanted.dtype) && type_is_float(v->type.dtype))
            diag_help(net->cx->diag, "cast(…, %s)", type_def(wanted.dtype)->name);
        return;
    }
    Builder b = {.cx = net->cx, .graph = net->graph, .place = at->place};
    if (v->type.dtype != wanted.dtype)
        v = build1(&b, "cast", v, arena_printf(net->arena, "type = %s", type_def(wanted.dtype)->name));
    if (!shape_equal(&v->type.shape, &wanted.shape))
        v = build_reshape(&b, v, &wanted.shape);
    for (int i = 0; i < net->graph->outputs.count; i++)
        if (strcmp(net->graph->outputs.at[i].name, name) == 0) {
            net->graph->outputs.at[i].value = v;
            return;
        }
    LIST_ADD(net->arena, net->graph->outputs, ((NamedValue){.name = name, .value = v}));
    map_set(net->data->filled, name, v);
}

static bool is_direct(const Ast *ast)
{
    return ast->kind == AST_NAME || (ast->kind == AST_CALL && ast->a->kind == AST_NAME &&
                                     (strcmp(ast->a->text, "column") == 0 || strcmp(ast->a->text, "columns") == 0));
}

static void run_mapping(Net *net, Scope *scope, Ast *s)
{
    const char *name = s->items[0]->text;
    const Value *goal = goal_of(net, name);
    net->data->goal = goal;
    net->data->direct = is_direct(s->b);
    Val v = eval(net, scope, s->b);
    net->data->goal = NULL;
    s->items[0]->read |= goal != NULL;
    if (s->a != NULL)
        check_declared(net, scope, s->a, &v);
    bind_names(net, scope, s, s->items, s->count, &v, NULL);
    if (goal == NULL || v.kind == VAL_NONE || s->count != 1)
        return;
    Value *t = as_tensor(net, scope, s->b, &v, goal->type.dtype);
    if (t != NULL)
        fill(net, s->b, name, goal, t);
    else
        map_set(net->data->filled, name, (void *)goal);         // reported already
}

// --- split ----------------------------------------------------------------------------------------------------------------------

static bool is_part(Net *net, const Ast *setting)
{
    static const char *const parts[] = {"train", "valid", "test"};
    for (int i = 0; i < COUNT(parts); i++)
        if (strcmp(parts[i], setting->text) == 0)
            return true;
    diag_report(net->cx->diag, setting->name, MESSAGE_E0311, "a part of split", "train, valid or test", setting->text);
    diag_help_nearest(net->cx->diag, setting->text, parts, COUNT(parts));
    return false;
}

static void split_part(Net *net, Scope *scope, Ast *setting)
{
    Recipe *r = net->train->recipe;
    Split split = {.part = setting->text};
    if (!is_part(net, setting))
        return;
    for (int i = 0; i < r->splits.count; i++)
        if (strcmp(r->splits.at[i].part, setting->text) == 0)
            diag_report(net->cx->diag, setting->place, MESSAGE_E0512, arena_printf(net->arena, "the part %s", setting->text));
    if (setting->a->kind == AST_CALL) {
        split.source = read_source(net, scope, setting->a);
        if (split.source != NULL && strcmp(split.source->kind, net->data->source->kind) != 0)
            wrong(net, setting->a, "another source", arena_printf(net->arena, "of the same kind, %s", net->data->source->kind), split.source->kind);
    } else {
        Val v = eval(net, scope, setting->a);
        if (v.kind == VAL_NONE)
            return;
        if (v.kind != VAL_NUMBER || v.number.real < 0 || v.number.real > 1) {
            wrong(net, setting->a, setting->text, "a share such as 80%, or a source", val_text(net, &v));
            return;
        }
        split.share = v.number.real;
    }
    LIST_ADD(net->arena, r->splits, split);
}

static void run_split(Net *net, Scope *scope, Ast *s)
{
    Recipe *r = net->train->recipe;
    for (int i = 0; i < s->count; i++)
        split_part(net, scope, s->items[i]);
    double sum = 0;
    for (int i = 0; i < r->splits.count; i++)
        sum += r->splits.at[i].share;
    if (sum > 1 + 1e-9)
        diag_report(net->cx->diag, s->place, MESSAGE_E0509, arena_printf(net->arena, "%g%%", 100 * sum));
    if (s->text == NULL)
        return;
    if (strcmp(s->text, "stratified") != 0) {
        refuse(net, s, arena_printf(net->arena, "split … %s", s->text), "stratified by NAME is");
        return;
    }
    if (s->a == NULL || s->a->kind != AST_NAME || goal_of(net, s->a->text) == NULL)
        wrong(net, s, "stratified by", "followed by an input or target", s->a != NULL && s->a->text != NULL ? s->a->text : "nothing");
    else
        r->stratified_by = s->a->text;
}

// --- the section ------------------------------------------------------------------------------------------------------------------

bool data_statement(Net *net, Scope *scope, Ast *s)
{
    switch (s->kind) {
    case AST_SPLIT:  run_split(net, scope, s); return true;
    case AST_PAD:    refuse(net, s, "`pad`", "samples of one size"); return true;
    case AST_ASSIGN: run_mapping(net, scope, s); return true;
    case AST_IF:
        if (s->a->kind == AST_NAME && strcmp(s->a->text, "training") == 0) {
            refuse(net, s, "`if training` in data", "leave augmentation out");
            return true;
        }
        return false;
    default: return false;
    }
}

static const char *fields_text(Net *net, const Source *source)
{
    Text text = {.arena = net->arena};
    for (int i = 0; i < source->n_args; i++)
        text_add(&text, "%s%s", i > 0 ? ", " : "", source->arg[i]);
    return text.at;
}

// A field with the name of an input or target goes there by itself.
static void fill_by_name(Net *net, Scope *scope, Ast *ast)
{
    const Source *source = net->data->source;
    for (int i = 0; i < source->n_args && strcmp(source->kind, "csv") != 0; i++) {
        const char *name = source->arg[i];
        const Value *goal = goal_of(net, name);
        if (goal == NULL || map_get(net->data->filled, name) != NULL)
            continue;
        Val v;
        net->data->goal = goal;
        if (field_make(net, scope, ast, name, &v) && v.kind == VAL_TENSOR)
            fill(net, ast, name, goal, v.tensor);
        net->data->goal = NULL;
    }
}

static void check_filled(Net *net, const Ast *ast)
{
    const Graph *g = net->data->outer;
    for (int i = 0; i < g->inputs.count; i++) {
        const Value *v = g->inputs.at[i];
        if (map_get(net->data->filled, v->name) != NULL)
            continue;
        const Source *source = net->data->source;
        diag_report(net->cx->diag, ast->place, MESSAGE_E0501, i < g->inputs.count - g->n_targets ? "input" : "target", v->name, type_text(net->cx, &v->type));
        if (strcmp(source->kind, "csv") != 0)
            diag_help(net->cx->diag, "the source has %s; for instance %s = %s", fields_text(net, source), v->name, source->arg[source->n_args - 1]);
        else
            diag_help(net->cx->diag, "for instance %s = column(0)", v->name);
    }
}

static void bind_fields(Net *net, Scope *scope, Ast *call)
{
    const Source *source = net->data->source;
    for (int i = 0; i < source->n_args && strcmp(source->kind, "csv") != 0; i++) {
        Binding *b = NEW(net->arena, Binding);
        *b = (Binding){.val = {.kind = VAL_FIELD, .text = source->arg[i]}, .ast = call->items[i]};
        b->ast->read = true;                    // a field need not be used
        map_set(scope->names, source->arg[i], b);
    }
}

void run_data(Net *net, Scope *train_scope, Ast *ast)
{
    Recipe *r = net->train->recipe;
    if (r->source != NULL) {
        refuse(net, ast, "a second data section", "one source");
        return;
    }
    if (ast->a == NULL) {
        diag_report(net->cx->diag, ast->place, MESSAGE_E0209, "data in train", "its source");
        return;
    }
    Source *source = read_source(net, train_scope, ast->a);
    if (source == NULL)
        return;
    r->source = source;
    Graph *outer = net->graph;
    DataPart part = {.source = source, .outer = outer, .filled = map_new(net->arena)};
    Scope *scope = scope_new(net, SCOPE_DATA, NULL, train_scope->file, train_scope->layer);
    int errors = net->cx->diag->errors;
    net->data = &part;
    net->graph = graph_new(net->cx, "data");
    net->in_data = true;
    bind_fields(net, scope, ast->a);
    if (ast->body != NULL)
        run_body(net, scope, ast->body);
    fill_by_name(net, scope, ast->a);
    if (net->cx->diag->errors == errors)
        check_filled(net, ast);
    report_unread_names(net, scope, "data", NULL, 0);
    r->data = net->graph;
    net->in_data = false;
    net->graph = outer;
    net->data = NULL;
}
