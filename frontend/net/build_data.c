// build_data.c: the data section: a source whose fields become inputs of a Graph of its own, and a mapping that fills the
// net's inputs and targets, one sample at a time. What type and shape a field has is not in the model: a field that an
// assignment gives to an input or target has that one's, and the trainer checks the file against it; a column of a table
// is an f32, or the integer it is given to directly. Pictures and texts have sizes of their own in every sample.
//
// The mapping is run with `training` false; where it asks for `training`, once more with it true: that is the mapping of the
// training part. What is filled is looked at when the section ends, so a name may go through several lines.
#include <stdlib.h>
#include <string.h>

#include "build.h"
#include "train.h"

static void wrong(Net *net, const Ast *ast, const char *what, const char *wanted, const char *got)
{
    diag_report(net->cx->diag, ast->place, MESSAGE_E0311, what, wanted, got);
}

// --- sources --------------------------------------------------------------------------------------------------------------------

// A row a source. `open`: the arguments are the fields; else `arguments` are their names, of which so many may stand without.
typedef struct SourceKind { const char *kind; bool open; const char *arguments; int plain; const char *fields; bool now; } SourceKind;

static const SourceKind kinds[] = {
    {"csv",       false, "path header separator", 1, "",                      true},
    {"npy",       true,  "",                      0, "",                      true},
    {"idx",       true,  "",                      0, "",                      true},
    {"files",     true,  "",                      0, "",                      false},
    {"folder",    false, "path",                  1, "image label",           false},
    {"detection", false, "images labels",         0, "image box class",       false},
    {"conll",     false, "path",                  1, "",                      false},
    {"lines",     false, "path",                  1, "line",                  false},
    {"text",      false, "path",                  1, "bytes",                 true},
    {"stream",    false, "path type skip",        1, "values",                true},
    {"windows",   false, "of length stride",      1, "",                      true},
    {"triplets",  false, "of",                    1, "anchor positive negative", false},
};

static const SourceKind *source_kind(Net *net, const Ast *ast)
{
    const char *name = ast->kind == AST_CALL && ast->a->kind == AST_NAME ? ast->a->text : "";
    const char *names[COUNT(kinds)];
    for (int i = 0; i < COUNT(kinds); i++) {
        names[i] = kinds[i].kind;
        if (strcmp(kinds[i].kind, name) == 0)
            return &kinds[i];
    }
    diag_report(net->cx->diag, ast->place, MESSAGE_E0511, name[0] != 0 ? name : "this");
    diag_help_nearest(net->cx->diag, name, names, COUNT(kinds));
    return NULL;
}

static const SourceKind *kind_row(const Source *source)
{
    for (int i = 0; i < COUNT(kinds); i++)
        if (strcmp(kinds[i].kind, source->kind) == 0)
            return &kinds[i];
    return NULL;
}

// Word `i` of a list of words, or NULL.
static const char *word_at(Net *net, const char *words, int i)
{
    for (; *words != 0; i--) {
        size_t n = strcspn(words, " ");
        if (i == 0)
            return name_intern(net->cx->names, words, n);
        words += n + strspn(words + n, " ");
    }
    return NULL;
}

static const char *source_argument(Net *net, const SourceKind *kind, const Ast *arg, int place)
{
    if (kind->open) {
        if (arg->kind != AST_ARGUMENT)
            wrong(net, arg, kind->kind, "given fields with names: image = \"images.npy\"", "a file without a name");
        return arg->kind == AST_ARGUMENT ? arg->text : NULL;
    }
    const char *names[8];
    int count = 0;
    while (count < 8 && (names[count] = word_at(net, kind->arguments, count)) != NULL)
        count++;
    if (arg->kind != AST_ARGUMENT && place < kind->plain)
        return names[place];
    for (int i = 0; arg->kind == AST_ARGUMENT && i < count; i++)
        if (strcmp(names[i], arg->text) == 0)
            return names[i];
    diag_report(net->cx->diag, arg->place, MESSAGE_E0202, kind->kind, arg->kind == AST_ARGUMENT ? arg->text : "there");
    if (arg->kind == AST_ARGUMENT)
        diag_help_nearest(net->cx->diag, arg->text, names, count);
    return NULL;
}

static Source *read_source(Net *net, Scope *scope, Ast *ast);

// The value of an argument as text. NULL after a report.
static const char *argument_text(Net *net, Scope *scope, const SourceKind *kind, const char *name, Ast *value)
{
    bool number = strcmp(name, "skip") == 0 || (strcmp(kind->kind, "windows") == 0 && strcmp(name, "of") != 0);
    if (strcmp(kind->kind, "stream") == 0 && strcmp(name, "type") == 0) {
        static const char *const types[] = {"u8", "i8", "u16", "i16", "u32", "i32", "i64"};
        for (int i = 0; value->kind == AST_NAME && i < COUNT(types); i++)
            if (strcmp(types[i], value->text) == 0)
                return value->text;
        wrong(net, value, "type of stream", "one of u8 i8 u16 i16 u32 i32 i64", value->kind == AST_NAME ? value->text : "this");
        return NULL;
    }
    Val v = eval(net, scope, value);
    int64_t n;
    if (v.kind == VAL_NONE)
        return NULL;
    if (number && !(val_is_whole(&v, &n) && n >= (strcmp(name, "skip") != 0))) {
        wrong(net, value, arena_printf(net->arena, "%s of %s", name, kind->kind), "a whole number above 0", val_text(net, &v));
        return NULL;
    }
    if (!number && v.kind != VAL_STRING && (kind->open || strcmp(name, "header") != 0)) {
        wrong(net, value, name, "a string", val_text(net, &v));
        return NULL;
    }
    return v.kind == VAL_STRING ? v.text : val_text(net, &v);
}

static Source *read_source(Net *net, Scope *scope, Ast *ast)
{
    const SourceKind *kind = source_kind(net, ast);
    if (kind == NULL)
        return NULL;
    Source *source = NEW(net->arena, Source);
    *source = (Source){.kind = kind->kind, .place = ast->place};
    for (int i = 0; i < ast->count; i++) {
        Ast *arg = ast->items[i], *value = arg->kind == AST_ARGUMENT ? arg->a : arg;
        const char *name = source_argument(net, kind, arg, i), *text = "";
        if (name != NULL && strcmp(name, "of") == 0 && !kind->open)
            source->of = read_source(net, scope, value);
        else if (name != NULL)
            text = argument_text(net, scope, kind, name, value);
        if (name == NULL || text == NULL || (source->of == NULL && strcmp(name, "of") == 0 && !kind->open))
            return NULL;
        if (source->n_args >= COUNT(source->arg)) {
            wrong(net, arg, kind->kind, "given 8 files at most", "more");
            return NULL;
        }
        source->arg[source->n_args] = name;
        source->text[source->n_args++] = text;
    }
    if (source->n_args == 0) {
        diag_report(net->cx->diag, ast->place, MESSAGE_E0209, kind->kind, kind->open ? "a file for each field" : "its file");
        return NULL;
    }
    if (!kind->now)
        later(net, ast, arena_printf(net->arena, "the source `%s`", kind->kind), "csv, npy, idx, text and stream are");
    return source;
}

static const char *source_text(const Source *source, const char *name)
{
    for (int i = 0; source != NULL && i < source->n_args; i++)
        if (strcmp(source->arg[i], name) == 0)
            return source->text[i];
    return NULL;
}

// What windows and triplets are made of.
static const Source *innermost(const Source *source)
{
    while (source != NULL && source->of != NULL)
        source = source->of;
    return source;
}

static bool is_csv(const Net *net) { return net->data->source != NULL && strcmp(innermost(net->data->source)->kind, "csv") == 0; }

// The length of the time axis that windows puts in front, or 0.
static int64_t window_length(const Source *source)
{
    for (; source != NULL; source = source->of)
        if (strcmp(source->kind, "windows") == 0)
            return source_text(source, "length") != NULL ? strtoll(source_text(source, "length"), NULL, 10) : 0;
    return 0;
}

// --- fields ---------------------------------------------------------------------------------------------------------------------

static Type sample_type(const Type *whole)
{
    Type type = {.dtype = whole->dtype};
    for (int i = 1; i < whole->shape.rank; i++)
        type.shape.dim[type.shape.rank++] = whole->shape.dim[i];
    return type;
}

// The field as an input of the present graph. All are inputs of the graph for evaluation, in the same order.
static Value *field_add(Net *net, const Ast *ast, Field field, Type type, const char *name)
{
    DataSection *d = net->data->section;
    int at = 0;
    for (; at < d->fields.count; at++) {
        const Field *f = &d->fields.at[at];
        bool same = f->how == field.how && f->first == field.first && f->last == field.last && f->codes == field.codes &&
                    (f->name == field.name || (f->name != NULL && field.name != NULL && strcmp(f->name, field.name) == 0));
        if (same && type_equal(&f->value->type, &type))
            break;
    }
    if (at == d->fields.count) {
        field.value = graph_input(d->data, name, type, ast->place);
        LIST_ADD(net->arena, d->fields, field);
        if (net->graph != d->data)
            graph_input(net->graph, name, type, ast->place);
    }
    return net->graph->inputs.at[at];
}

static Size own_size(Net *net, const char *field, const char *what)
{
    return size_symbol(net->cx, arena_printf(net->arena, "%s_%s", field, what), 0);
}

static const Value *goal_of(Net *net, const char *name)
{
    const Graph *g = net->data->outer;
    for (int i = 0; name != NULL && i < g->inputs.count; i++)
        if (strcmp(g->inputs.at[i]->name, name) == 0)
            return g->inputs.at[i];
    return NULL;
}

static Type picture_type(Net *net, const char *field, int64_t channels)
{
    Size dim[3] = {size_const(net->cx, channels), own_size(net, field, "height"), own_size(net, field, "width")};
    return type_of(TYPE_u8, channels > 0 ? 3 : 2, channels > 0 ? dim : dim + 1);
}

static DType stream_type(const char *text)
{
    DType type = text != NULL ? type_find(text) : TYPE_NONE;
    return type != TYPE_NONE ? type : text != NULL && strcmp(text, "u32") == 0 ? TYPE_i64 : TYPE_i32;
}

// Fields whose type the source says. False: it is not known.
static bool field_type(Net *net, const Source *source, const char *name, Type *type)
{
    const char *kind = source != NULL ? source->kind : "";
    Size length = NULL;
    if (source == NULL && strcmp(name, "image") == 0) {
        *type = picture_type(net, name, 3);
    } else if (strcmp(kind, "folder") == 0 || strcmp(kind, "detection") == 0) {
        Size boxes[2] = {own_size(net, "box", "count"), size_const(net->cx, 4)};
        bool box = strcmp(name, "box") == 0, class = strcmp(name, "class") == 0;
        *type = strcmp(name, "image") == 0 ? picture_type(net, name, 3)
              : type_of(box ? TYPE_f32 : TYPE_i32, box ? 2 : class ? 1 : 0, boxes);
    } else if (strcmp(kind, "files") == 0) {
        const Value *goal = goal_of(net, name);
        Type wanted = goal != NULL ? sample_type(&goal->type) : (Type){0};
        int64_t channels = goal == NULL ? 3 : wanted.shape.rank == 2 ? 0 : 3;
        if (goal != NULL && wanted.shape.rank == 3)
            size_known(wanted.shape.dim[0], &channels);
        *type = picture_type(net, name, channels);
    } else if (strcmp(kind, "text") == 0 || strcmp(kind, "stream") == 0) {
        length = window_length(net->data->source) > 0 ? size_const(net->cx, window_length(net->data->source)) : own_size(net, name, "length");
        *type = type_of(kind[0] == 't' ? TYPE_u8 : stream_type(source_text(source, "type")), 1, &length);
    } else {
        return false;
    }
    return true;
}

// A field that has a name in the mapping, when it is first read.
bool field_make(Net *net, Scope *scope, Ast *ast, const char *name, Val *result)
{
    (void)scope;
    const Value *goal = net->data->goal;
    const Source *source = innermost(net->data->source);
    Type type;
    *result = (Val){0};
    if ((source != NULL && strcmp(source->kind, "lines") == 0) || (source == NULL && strcmp(name, "text") == 0)) {
        wrong(net, ast, name, "read by wordpiece, bpe or characters: it is a text", "this");
        return true;
    }
    if (!field_type(net, source, name, &type)) {
        if (goal == NULL) {
            refuse(net, ast, arena_printf(net->arena, "the field %s in a helper", name), "use it where an input or target is assigned");
            return true;
        }
        type = sample_type(&goal->type);
    }
    *result = val_tensor(field_add(net, ast, (Field){.how = FIELD_ARRAY, .name = name}, type, name));
    return true;
}

static DType column_type(Net *net)
{
    const Value *goal = net->data->goal;
    return goal != NULL && net->data->direct ? goal->type.dtype : TYPE_f32;
}

// The type of columns: windows have a time axis in front.
static Type table_type(Net *net, DType dtype, int64_t columns)
{
    Size dim[2];
    int rank = 0;
    if (window_length(net->data->source) > 0)
        dim[rank++] = size_const(net->cx, window_length(net->data->source));
    if (columns > 0)
        dim[rank++] = size_const(net->cx, columns);
    return type_of(dtype, rank, dim);
}

static bool is_table(Net *net, Ast *call, Val *result)
{
    *result = (Val){0};
    if (net->data->source == NULL || is_csv(net) || strcmp(innermost(net->data->source)->kind, "conll") == 0)
        return true;
    wrong(net, call, call->a->text, "used with csv", net->data->source->kind);
    return false;
}

static bool column_named(Net *net, const Ast *ast, const Val *v, Field *field)
{
    int64_t at;
    if (v->kind == VAL_STRING) {
        field->name = v->text;
    } else if (val_is_whole(v, &at) && at >= 0) {
        field->first = field->last = at;
    } else {
        wrong(net, ast, "a column", "a number from 0 or a name", val_text(net, v));
        return false;
    }
    return true;
}

static Value *column_field(Net *net, const Ast *ast, const Val *v, DType dtype, const char *codes, int64_t n)
{
    Field field = {.how = codes != NULL ? FIELD_STRINGS : FIELD_COLUMNS, .codes = codes, .n_codes = n};
    if (!column_named(net, ast, v, &field))
        return NULL;
    const char *name = field.name != NULL ? field.name : arena_printf(net->arena, "column%lld", (long long)field.first);
    return field_add(net, ast, field, table_type(net, dtype, 0), name);
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
    Field field = {.how = FIELD_COLUMNS, .first = first, .last = last};
    *result = val_tensor(field_add(net, call, field, table_type(net, column_type(net), list->count), "columns"));
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
        Type one = table_type(net, column->type.dtype, 1);
        args[i] = val_tensor(build_reshape(&b, column, &one.shape));
    }
    *result = call->count == 1 ? args[0] : call_simple(net, scope, call, "concat", args, call->count, "axis = -1");
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

// --- texts and pictures ---------------------------------------------------------------------------------------------------------

typedef struct Reader { const char *name; const char *from; bool need_from, limit; } Reader;

static const Reader readers[] = {           // what makes a row of codes, or a picture, of a string
    {"wordpiece", "a vocabulary: \"vocab.txt\"", true, true}, {"bpe", "a file: \"tokenizer.json\"", true, true},
    {"characters", "an alphabet: \"abc\"", true, true},       {"bytes", "", false, true},
    {"picture", "", false, false},
};

static const Reader *reader_find(const char *name)
{
    for (int i = 0; i < COUNT(readers); i++)
        if (strcmp(readers[i].name, name) == 0)
            return &readers[i];
    return NULL;
}

// What is read: column("text"), or the field `line` or `text`.
static bool string_field(Net *net, Scope *scope, Ast *ast, Field *field)
{
    Binding *b = ast->kind == AST_NAME ? scope_find(scope, ast->text) : NULL;
    bool column = ast->kind == AST_CALL && ast->a->kind == AST_NAME && strcmp(ast->a->text, "column") == 0 && ast->count == 1;
    if (b != NULL && b->val.kind == VAL_FIELD) {
        b->ast->read = true;
        field->name = b->val.text;
        return true;
    }
    Val which = column ? eval(net, scope, ast->items[0]) : (Val){0};
    if (!column)
        wrong(net, ast, "what is read as a text", "a column or a field of strings", "this");
    return column && which.kind != VAL_NONE && column_named(net, ast, &which, field);
}

static bool reader_argument(Net *net, Scope *scope, const Reader *reader, Ast *arg, int place, Field *field, int64_t *channels)
{
    Ast *value = arg->kind == AST_ARGUMENT ? arg->a : arg;
    if (arg->kind == AST_ARGUMENT && strcmp(arg->text, "color") == 0 && strcmp(reader->name, "picture") == 0) {
        bool gray = value->kind == AST_NAME && strcmp(value->text, "gray") == 0;
        if (!gray && !(value->kind == AST_NAME && strcmp(value->text, "rgb") == 0)) {
            wrong(net, value, "color of picture", "gray or rgb", value->kind == AST_NAME ? value->text : "this");
            return false;
        }
        field->codes_from = value->text;
        *channels = gray ? 1 : 3;
        return true;
    }
    if (arg->kind == AST_ARGUMENT && !(reader->limit && strcmp(arg->text, "limit") == 0)) {
        diag_report(net->cx->diag, arg->name, MESSAGE_E0202, reader->name, arg->text);
        return false;
    }
    Val v = eval(net, scope, value);
    if (v.kind == VAL_NONE)
        return false;
    if (arg->kind == AST_ARGUMENT && val_is_whole(&v, &field->n_codes) && field->n_codes > 0)
        return true;
    if (arg->kind != AST_ARGUMENT && place == 1 && reader->need_from && v.kind == VAL_STRING) {
        field->codes_from = v.text;
        return true;
    }
    wrong(net, value, reader->name, arg->kind == AST_ARGUMENT ? "limited to a whole number above 0" : reader->need_from ? reader->from : "given one value",
          val_text(net, &v));
    return false;
}

// text_length; another field of that name with another limit gets a size of its own.
static const char *new_size_name(Net *net, const char *field, int64_t bound)
{
    const char *name = arena_printf(net->arena, "%s_length", field);
    for (int i = 2;; i++) {
        const Symbol *known = map_get(net->cx->symbols, name);
        if (known == NULL || known->bound == bound)
            return name;
        name = arena_printf(net->arena, "%s_length%d", field, i);
    }
}

static void read_strings(Net *net, Scope *scope, Ast *call, const Reader *reader, Val *result)
{
    Field field = {.how = FIELD_STRINGS, .codes = reader->name};
    int64_t channels = 3;
    if (call->count == 0 || !string_field(net, scope, call->items[0], &field)) {
        if (call->count == 0)
            diag_report(net->cx->diag, call->place, MESSAGE_E0209, reader->name, "what to read");
        return;
    }
    for (int i = 1; i < call->count; i++)
        if (!reader_argument(net, scope, reader, call->items[i], i, &field, &channels))
            return;
    if (reader->need_from && field.codes_from == NULL) {
        diag_report(net->cx->diag, call->place, MESSAGE_E0209, reader->name, reader->from);
        return;
    }
    const char *name = field.name != NULL ? field.name : arena_printf(net->arena, "column%lld", (long long)field.first);
    const char *size = new_size_name(net, name, field.n_codes);
    Size length = size_symbol(net->cx, size, field.n_codes);
    Type type = strcmp(reader->name, "picture") == 0 ? picture_type(net, name, channels)
                                                     : type_of(strcmp(reader->name, "bytes") == 0 ? TYPE_u8 : TYPE_i32, 1, &length);
    later(net, call, arena_printf(net->arena, "`%s` in data", reader->name), "codes that are numbers already");
    *result = val_tensor(field_add(net, call, field, type, name));
}

bool data_call(Net *net, Scope *scope, Ast *call, const char *name, Val *result)
{
    if (!net->in_data || net->frames.count > 0)
        return false;
    bool column = strcmp(name, "column") == 0, columns = strcmp(name, "columns") == 0;
    bool codes = strcmp(name, "classes") == 0 || strcmp(name, "category") == 0;
    const Reader *reader = op_find(name) == NULL ? reader_find(name) : NULL;
    *result = (Val){0};
    if (reader != NULL) {
        read_strings(net, scope, call, reader, result);
        return true;
    }
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

// May a sample of size `given` fill the axis `wanted`? A named size takes what fits its bound; *differs: it may be another in every sample.
static bool fills_axis(Net *net, Size given, Size wanted, bool *differs)
{
    const Symbol *symbol[2];
    int64_t n, most;
    if (size_equal(given, wanted))
        return true;
    if (size_symbols(wanted, symbol, 2) != 1)
        return false;
    int64_t *values = NEW_ARRAY(net->arena, int64_t, map_count(net->cx->symbols) + 1);
    int64_t none = size_at(wanted, values);
    values[symbol[0]->id] = 1;
    int64_t step = size_at(wanted, values) - none;
    if (size_known(given, &n)) {
        if (step <= 0 || (n - none) % step != 0 || (n - none) / step < 1)
            return false;
        int64_t value = values[symbol[0]->id] = (n - none) / step;
        if (size_at(wanted, values) != n || (symbol[0]->bound > 0 && value > symbol[0]->bound))
            return false;
        Symbol *same = map_get(net->cx->symbols, symbol[0]->name);
        if (same->trained == 0 && !same->batch)
            same->trained = value;                      // training is for samples of this size
        return same->trained == value || same->batch;
    }
    *differs = true;
    return !size_upper(given, &most) || !size_upper(wanted, &n) || most <= n;
}

typedef enum Fit { FIT_NOT, FIT_SAME, FIT_NAMED, FIT_DIFFERS } Fit;

static Fit takes_shape(Net *net, const Shape *from, const Shape *to)
{
    if (same_but_ones(from, to) || (from->rank == 1 && size_equal(shape_count(net->cx, from), shape_count(net->cx, to))))
        return FIT_SAME;
    bool differs = false;
    for (int i = 0; i < to->rank; i++)
        if (from->rank != to->rank || !fills_axis(net, from->dim[i], to->dim[i], &differs))
            return FIT_NOT;
    return differs ? FIT_DIFFERS : FIT_NAMED;
}

static bool is_padded(const Net *net, const char *name)
{
    const DataSection *d = net->data->section;
    for (int i = 0; i < d->pads.count; i++)
        if (strcmp(d->pads.at[i].name, name) == 0)
            return true;
    return false;
}

static void fill(Net *net, const Ast *at, const char *name, const Value *goal, Value *v)
{
    Type wanted = sample_type(&goal->type);
    bool whole = !type_is_float(wanted.dtype) && !type_is_float(v->type.dtype);
    Fit fit = takes_shape(net, &v->type.shape, &wanted.shape);
    map_set(net->data->filled, name, v);
    if (fit == FIT_NOT || (v->type.dtype != wanted.dtype && !whole)) {
        diag_report(net->cx->diag, at->place, MESSAGE_E0510, type_text(net->cx, &v->type), name,
                    arena_printf(net->arena, "%s a sample", type_text(net->cx, &wanted)));
        if (fit != FIT_NOT && !type_is_float(wanted.dtype) && type_is_float(v->type.dtype))
            diag_help(net->cx->diag, "cast(…, %s)", type_def(wanted.dtype)->name);
        return;
    }
    if (fit == FIT_DIFFERS && !is_padded(net, name))
        diag_report(net->cx->diag, at->place, MESSAGE_E0513, name, type_text(net->cx, &v->type));
    if (fit == FIT_DIFFERS)
        later(net, at, "samples whose sizes differ", "a size that is a number");
    Builder b = {.cx = net->cx, .graph = net->graph, .place = at->place};
    if (v->type.dtype != wanted.dtype)
        v = build1(&b, "cast", v, arena_printf(net->arena, "type = %s", type_def(wanted.dtype)->name));
    if (fit == FIT_SAME && !shape_equal(&v->type.shape, &wanted.shape))
        v = build_reshape(&b, v, &wanted.shape);
    LIST_ADD(net->arena, net->graph->outputs, ((NamedValue){.name = name, .value = v}));
}

static bool is_direct(const Ast *ast)
{
    return ast->kind == AST_NAME || (ast->kind == AST_CALL && ast->a->kind == AST_NAME &&
                                     (strcmp(ast->a->text, "column") == 0 || strcmp(ast->a->text, "columns") == 0));
}

static void run_mapping(Net *net, Scope *scope, Ast *s)
{
    const char *name = s->items[0]->text;
    net->data->goal = s->count == 1 ? goal_of(net, name) : NULL;
    net->data->direct = is_direct(s->b);
    Val v = eval(net, scope, s->b);
    net->data->goal = NULL;
    if (s->a != NULL)
        check_declared(net, scope, s->a, &v);
    bind_names(net, scope, s, s->items, s->count, &v, NULL);
    for (int i = 0; i < s->count; i++)
        if (goal_of(net, s->items[i]->text) != NULL) {
            s->items[i]->read = true;
            map_set(net->data->assigned, s->items[i]->text, s->b);
        }
}

// What names of inputs and targets stand for in the end.
static void fill_assigned(Net *net, Scope *scope)
{
    for (int i = 0; i < map_count(net->data->assigned); i++) {
        const char *name = map_key(net->data->assigned, i);
        const Ast *at = map_value(net->data->assigned, i);
        const Value *goal = goal_of(net, name);
        Binding *b = scope_find(scope, name);
        if (b == NULL || b->ended)
            continue;
        if (map_get(net->train_filled, name) != NULL && map_get(net->train_filled, name) != net->data->section)
            diag_report(net->cx->diag, at->place, MESSAGE_E0512, arena_printf(net->arena, "data for %s", name));
        map_set(net->train_filled, name, net->data->section);
        Value *t = b->val.kind != VAL_NONE ? as_tensor(net, scope, at, &b->val, goal->type.dtype) : NULL;
        if (t != NULL)
            fill(net, at, name, goal, t);
        else
            map_set(net->data->filled, name, (void *)goal);         // reported already
    }
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
    DataSection *r = net->data->section;
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
    DataSection *d = net->data->section;
    if (!net->data->record)
        return;
    if (net->data->source == NULL) {
        diag_report(net->cx->diag, s->place, MESSAGE_E0119, "split", "data without a source");
        return;
    }
    for (int i = 0; i < s->count; i++)
        split_part(net, scope, s->items[i]);
    double sum = 0;
    for (int i = 0; i < d->splits.count; i++)
        sum += d->splits.at[i].share;
    if (sum > 1 + 1e-9)
        diag_report(net->cx->diag, s->place, MESSAGE_E0509, arena_printf(net->arena, "%g%%", 100 * sum));
    if (s->text == NULL)
        return;
    static const char *const words[] = {"stratified", "grouped", "ordered"};
    if (strcmp(s->text, "stratified") == 0) {
        if (s->a == NULL || s->a->kind != AST_NAME || goal_of(net, s->a->text) == NULL)
            wrong(net, s, "stratified by", "followed by an input or target", s->a != NULL && s->a->text != NULL ? s->a->text : "nothing");
        else
            d->stratified_by = s->a->text;
    } else if (strcmp(s->text, "grouped") == 0) {
        Val v = s->a != NULL ? eval(net, scope, s->a) : (Val){0};
        if (v.kind == VAL_TENSOR && v.tensor->kind == VALUE_INPUT)
            d->grouped_by = v.tensor;
        else if (s->a == NULL || v.kind != VAL_NONE)
            wrong(net, s, "grouped by", "followed by a field, such as column(\"patient\")", s->a == NULL ? "nothing" : val_text(net, &v));
        later(net, s, "split … grouped", "stratified by NAME is");
    } else if (strcmp(s->text, "ordered") == 0) {
        d->ordered = true;
        if (s->a != NULL)
            wrong(net, s->a, "ordered", "the last word", "more");
        later(net, s, "split … ordered", "stratified by NAME is");
    } else {
        wrong(net, s, "what follows a split", "stratified by NAME, grouped by COLUMN or ordered", s->text);
        diag_help_nearest(net->cx->diag, s->text, words, COUNT(words));
    }
}

static void run_pad(Net *net, Scope *scope, Ast *s)
{
    for (int i = 0; net->data->record && i < s->count; i++) {
        const Ast *setting = s->items[i];
        Val v = eval(net, scope, setting->a);
        if (goal_of(net, setting->text) == NULL)
            wrong(net, setting, "what is padded", "an input or target", setting->text);
        else if (v.kind != VAL_NONE && v.kind != VAL_NUMBER)
            wrong(net, setting->a, arena_printf(net->arena, "pad of %s", setting->text), "a number", val_text(net, &v));
        else if (is_padded(net, setting->text))
            diag_report(net->cx->diag, setting->place, MESSAGE_E0512, arena_printf(net->arena, "pad of %s", setting->text));
        else
            LIST_ADD(net->arena, net->data->section->pads, ((Pad){setting->text, v.number.real}));
        later(net, s, "`pad`", "samples of one size");
    }
}

// --- the section ------------------------------------------------------------------------------------------------------------------

bool data_statement(Net *net, Scope *scope, Ast *s)
{
    switch (s->kind) {
    case AST_SPLIT:  run_split(net, scope, s); return true;
    case AST_PAD:    run_pad(net, scope, s); return true;
    case AST_ASSIGN: run_mapping(net, scope, s); return true;
    default: return false;
    }
}

// Field `i` by its name, or NULL.
static const char *field_name(Net *net, int i)
{
    const Source *source = net->data->source, *inner = innermost(source);
    const SourceKind *kind = source != NULL ? kind_row(strcmp(source->kind, "triplets") == 0 ? source : inner) : NULL;
    if (source == NULL)
        return word_at(net, "image text", i);
    if (kind->open)
        return i < inner->n_args ? inner->arg[i] : NULL;
    return word_at(net, kind->fields, i);
}

static const char *fields_text(Net *net)
{
    Text text = {.arena = net->arena};
    const char *name;
    text_put(&text, "", 0);
    for (int i = 0; (name = field_name(net, i)) != NULL; i++)
        text_add(&text, "%s%s", i > 0 ? ", " : "", name);
    return text.at;
}

// A field with the name of an input or target goes there by itself.
static void fill_by_name(Net *net, Scope *scope, Ast *ast)
{
    const char *name;
    for (int i = 0; (name = field_name(net, i)) != NULL; i++) {
        const Value *goal = goal_of(net, name);
        if (goal == NULL || map_get(net->data->filled, name) != NULL)
            continue;
        Val v;
        net->data->goal = goal;
        if (field_make(net, scope, ast, name, &v) && v.kind == VAL_TENSOR) {
            fill(net, ast, name, goal, v.tensor);
            map_set(net->train_filled, name, net->data->section);
        }
        net->data->goal = NULL;
    }
}

static void bind_fields(Net *net, Scope *scope, Ast *at)
{
    const char *name;
    for (int i = 0; (name = field_name(net, i)) != NULL; i++) {
        Ast *ast = NEW(net->arena, Ast);
        *ast = (Ast){.kind = AST_NAME, .text = name, .place = at->place, .read = true};     // a field need not be used
        Binding *b = NEW(net->arena, Binding);
        *b = (Binding){.val = {.kind = VAL_FIELD, .text = name}, .ast = ast};
        map_set(scope->names, name, b);
    }
}

static void run_mapping_once(Net *net, Scope *outer, Ast *ast, Graph *graph, bool training)
{
    bool was = net->training;
    Scope *scope = scope_new(net, SCOPE_DATA, NULL, outer->file, outer->layer);
    net->graph = graph;
    net->training = training;
    net->data->assigned = map_new(net->arena);
    net->data->filled = map_new(net->arena);
    bind_fields(net, scope, ast->a != NULL ? ast->a : ast);
    if (ast->body != NULL)
        run_body(net, scope, ast->body);
    fill_assigned(net, scope);
    if (net->data->source != NULL)
        fill_by_name(net, scope, ast->a);
    report_unread_names(net, scope, "data", NULL, 0);
    net->training = was;
}

static void run_section(Net *net, Scope *outer, Ast *ast, DataSection *section)
{
    Graph *graph = net->graph;
    int errors = net->cx->diag->errors;
    DataPart part = {.section = section, .source = section->source, .outer = graph, .record = true};
    section->data = graph_new(net->cx, "data");
    net->data = &part;
    net->in_data = true;
    run_mapping_once(net, outer, ast, section->data, false);
    if (part.varies && net->cx->diag->errors == errors) {
        part.record = false;
        section->augment = graph_new(net->cx, "augment");
        section->augment->training = true;
        for (int i = 0; i < section->fields.count; i++)
            graph_input(section->augment, section->fields.at[i].value->name, section->fields.at[i].value->type, ast->place);
        run_mapping_once(net, outer, ast, section->augment, true);
        later(net, ast, "`if training` in data", "leave augmentation out");
    }
    net->in_data = false;
    net->graph = graph;
    net->data = NULL;
}

#define LIST_COPY(to, from) ((to).at = (from).at, (to).count = (from).count, (to).room = (from).room)

// The first section is that of the recipe.
static void keep_section(Net *net, const Ast *ast, const DataSection *d)
{
    Recipe *r = net->train->recipe;
    if (r->source != NULL) {
        LIST_ADD(net->arena, r->more_data, *d);
        later(net, ast, "a second data section", "one source");
        return;
    }
    r->source = d->source;
    LIST_COPY(r->splits, d->splits);
    r->stratified_by = d->stratified_by;
    r->grouped_by = d->grouped_by;
    r->ordered = d->ordered;
    LIST_COPY(r->fields, d->fields);
    LIST_COPY(r->pads, d->pads);
    r->data = d->data;
    r->augment = d->augment;
}

void data_varies(Net *net) { net->data->varies = true; }

void run_data(Net *net, Scope *train_scope, Ast *ast)
{
    if (ast->a == NULL) {
        diag_report(net->cx->diag, ast->place, MESSAGE_E0209, "data in train", "its source");
        return;
    }
    DataSection section = {.source = read_source(net, train_scope, ast->a)};
    net->train->data = ast;
    if (section.source == NULL) {
        net->train->data_failed = true;
        return;
    }
    run_section(net, train_scope, ast, &section);
    keep_section(net, ast, &section);
}

void run_prepare(Net *net, Scope *file_scope, Ast *ast)
{
    if (ast->a != NULL) {
        diag_report(net->cx->diag, ast->a->place, MESSAGE_E0119, "data with a source", "the file itself; it belongs to train");
        return;
    }
    if (net->model->prepare != NULL) {
        diag_report(net->cx->diag, ast->place, MESSAGE_E0512, "data outside of train");
        return;
    }
    Graph *graph = net->graph;
    net->graph = net->model->infer;
    net->model->prepare = NEW(net->arena, DataSection);
    net->train_filled = map_new(net->arena);
    run_section(net, file_scope, ast, net->model->prepare);
    net->graph = graph;
    later(net, ast, "`data` outside of train", "write it in train");
}

// --- is everything filled? ----------------------------------------------------------------------------------------------------------

// What losses and metrics are made of.
static bool *needed(Net *net, const Graph *g)
{
    bool *used = NEW_ARRAY(net->arena, bool, g->values.count + 1);
    if (g->loss != NULL)
        used[g->loss->id] = true;
    for (int i = 0; i < g->metrics.count; i++)
        used[g->metrics.at[i].value->id] = true;
    for (int i = 0; i < net->train->losses.count; i++)
        used[net->train->losses.at[i]->id] = true;
    for (int i = g->nodes.count - 1; i >= 0; i--) {
        const Node *node = g->nodes.at[i];
        bool wanted = false;
        for (int k = 0; k < node->n_out; k++)
            wanted |= node->out[k] != NULL && used[node->out[k]->id];
        for (int k = 0; wanted && k < node->n_in; k++)
            if (node->in[k] != NULL)
                used[node->in[k]->id] = true;
    }
    return used;
}

static void report_unfilled(Net *net, const Value *v, bool input)
{
    const Ast *ast = net->train->data;
    Diag *diag = net->cx->diag;
    const Recipe *r = net->train->recipe;
    diag_report(diag, ast->place, MESSAGE_E0501, input ? "input" : "target", v->name, type_text(net->cx, &v->type));
    DataPart part = {.source = r->source};
    net->data = &part;
    const char *fields = fields_text(net), *last = NULL, *name;
    for (int k = 0; (name = field_name(net, k)) != NULL; k++)
        last = name;
    net->data = NULL;
    if (last != NULL)
        diag_help(diag, "the source has %s; for instance %s = %s", fields, v->name, last);
    else
        diag_help(diag, "for instance %s = column(0)", v->name);
}

void check_filled(Net *net, const Ast *train)
{
    const Graph *g = net->graph;
    const bool *used = needed(net, g);
    for (int i = 0; i < g->inputs.count; i++) {
        const Value *v = g->inputs.at[i];
        bool input = i < g->inputs.count - g->n_targets;
        if (map_get(net->train_filled, v->name) != NULL || (input && !used[v->id]))
            continue;
        if (net->train->data == NULL) {
            diag_report(net->cx->diag, train->place, MESSAGE_E0506, "data");
            return;
        }
        report_unfilled(net, v, input);
    }
    if (net->train->data == NULL && g->inputs.count > 0)
        later(net, train, "training without data", "a data section that fills the inputs");
}
