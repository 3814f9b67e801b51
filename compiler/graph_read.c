// graph_read.c: reads the text that graph_print writes. Passes are debugged and tested with it.
//
// The text is made by us, but people edit it for tests, so a mistake gives a message with its line and not a crash. Ids are
// kept: a graph that is printed, read and printed again gives the same text.
#include <ctype.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "mlc.h"
#include "ops/op.h"

typedef struct Reader {
    Context *cx;
    Graph   *g;
    const char *text, *at;
    Map     *values;                    // by name_id
    LIST(int) ids;                      // by the value's place in g->values: its id in the text
    const char *error;
    jmp_buf  failed;
} Reader;

static _Noreturn void fail(Reader *r, const char *format, ...) PRINTF_LIKE(2, 3);

static _Noreturn void fail(Reader *r, const char *format, ...)
{
    int line = 1;
    va_list args;
    for (const char *p = r->text; p < r->at; p++)
        line += *p == '\n';
    va_start(args, format);
    r->error = arena_printf(r->cx->arena, "line %d: %s", line, arena_vprintf(r->cx->arena, format, args));
    va_end(args);
    longjmp(r->failed, 1);
}

// --- Words ------------------------------------------------------------------------------------------------------------------

static void skip(Reader *r)
{
    for (;;) {
        r->at += strspn(r->at, " \t\n\r");
        if (*r->at != '#')
            return;
        r->at += strcspn(r->at, "\n");
    }
}

static bool take(Reader *r, const char *sign)
{
    size_t length = strlen(sign);
    skip(r);
    if (strncmp(r->at, sign, length) != 0)
        return false;
    if (isalpha((unsigned char)sign[0]) && (isalnum((unsigned char)r->at[length]) || (r->at[length] != 0 && strchr("_.", r->at[length]) != NULL)))
        return false;
    r->at += length;
    return true;
}

static void need(Reader *r, const char *sign)
{
    if (!take(r, sign))
        fail(r, "%s expected", sign);
}

static const char *word(Reader *r)
{
    skip(r);
    size_t length = 0;
    while (isalnum((unsigned char)r->at[length]) || (r->at[length] != 0 && strchr("_.", r->at[length]) != NULL))
        length++;
    if (length == 0)
        fail(r, "a name expected");
    const char *name = name_intern(r->cx->names, r->at, length);
    r->at += length;
    return name;
}

static const char *string(Reader *r)
{
    Text text = {.arena = r->cx->arena};
    need(r, "\"");
    for (; *r->at != '"'; r->at++) {
        r->at += *r->at == '\\';
        if (*r->at == 0)
            fail(r, "the string is not closed");
        text_put(&text, r->at, 1);
    }
    r->at++;
    return name_intern(r->cx->names, text.at != NULL ? text.at : "", text.length);
}

static int64_t whole(Reader *r)
{
    char *end;
    skip(r);
    int64_t n = strtoll(r->at, &end, 10);
    if (end == r->at)
        fail(r, "a whole number expected");
    r->at = end;
    return n;
}

static double number(Reader *r)
{
    char *end;
    skip(r);
    double x = strtod(r->at, &end);
    if (end == r->at)
        fail(r, "a number expected");
    r->at = end;
    return x;
}

static int one_of(Reader *r, const char *const *names, int count)
{
    const char *name = word(r);
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    fail(r, "%s is not known here", name);
}

// --- Sizes and types ----------------------------------------------------------------------------------------------------------

static Size read_size(Reader *r);

static Size read_factor(Reader *r)
{
    if (take(r, "(")) {
        Size size = read_size(r);
        need(r, ")");
        return size;
    }
    if (take(r, "floor")) {
        need(r, "(");
        Size of = read_size(r);
        need(r, "/");
        int64_t by = whole(r);
        need(r, ")");
        if (by <= 0)
            fail(r, "a division by %lld", (long long)by);
        return size_floordiv(r->cx, of, by);
    }
    skip(r);
    if (isdigit((unsigned char)*r->at))
        return size_const(r->cx, whole(r));
    const char *name = word(r);
    if (map_get(r->cx->symbols, name) == NULL)
        fail(r, "no size is called %s", name);
    return size_symbol(r->cx, name, 0);
}

static Size read_product(Reader *r)
{
    Size size = read_factor(r);
    while (take(r, "*"))
        size = size_times(r->cx, size, read_factor(r));
    return size;
}

static Size read_size(Reader *r)
{
    Size size = take(r, "-") ? size_minus(r->cx, size_const(r->cx, 0), read_product(r)) : read_product(r);
    for (;;) {
        if (take(r, "+"))
            size = size_plus(r->cx, size, read_product(r));
        else if (take(r, "-"))
            size = size_minus(r->cx, size, read_product(r));
        else
            return size;
    }
}

static int read_sizes(Reader *r, Size *sizes)
{
    int count = 0;
    while (!take(r, "]")) {
        if (count > 0)
            need(r, ",");
        if (count == RANK_MAX)
            fail(r, "more than %d sizes", RANK_MAX);
        sizes[count++] = read_size(r);
    }
    return count;
}

static Type read_type(Reader *r)
{
    const char *name = word(r);
    Type type = {.dtype = type_find(name)};
    if (type.dtype == TYPE_NONE)
        fail(r, "%s is no element type", name);
    if (take(r, "["))
        type.shape.rank = read_sizes(r, type.shape.dim);
    return type;
}

// --- Values -------------------------------------------------------------------------------------------------------------------

typedef struct Declared { const char *key, *name; int id; Type type; int64_t below; } Declared;

static Declared read_declared(Reader *r)
{
    Declared d = {.key = word(r)};
    const char *end = strrchr(d.key, '_');
    if (end == NULL || end[1] == 0 || strspn(end + 1, "0123456789") != strlen(end + 1) || strlen(end + 1) > 8)
        fail(r, "%s does not end in _ and an id", d.key);
    d.id = (int)strtol(end + 1, NULL, 10);
    d.name = name_intern(r->cx->names, d.key, (size_t)(end - d.key));
    skip(r);
    if (*r->at == '"')
        d.name = string(r);
    need(r, ":");
    d.type = read_type(r);
    if (take(r, "<"))
        d.below = whole(r);
    return d;
}

static void keep(Reader *r, const Declared *d, Value *value)
{
    if (map_get(r->values, d->key) != NULL)
        fail(r, "%s is there already", d->key);
    map_set(r->values, d->key, value);
    while (r->ids.count <= value->id)
        LIST_ADD(r->cx->arena, r->ids, -1);
    r->ids.at[value->id] = d->id;
    value->below = d->below;
}

static Value *read_value(Reader *r)
{
    const char *key = word(r);
    Value *value = map_get(r->values, key);
    if (value == NULL)
        fail(r, "no value is called %s", key);
    return value;
}

static void read_input(Reader *r, bool target)
{
    Declared d = read_declared(r);
    keep(r, &d, graph_input(r->g, d.name, d.type, (DiagPlace){0}));
    r->g->n_targets += target;
}

static void read_param(Reader *r)
{
    Declared d = read_declared(r);
    Param *param = NEW(r->cx->arena, Param);
    *param = (Param){.path = d.name, .type = d.type, .init = {.name = "zeros"}};
    param->role = (ParamRole)one_of(r, role_names, ROLE_COUNT);
    param->trainable = !take(r, "frozen");
    keep(r, &d, graph_param(r->g, param));
}

static void read_const(Reader *r)
{
    Declared d = read_declared(r);
    int64_t dim[RANK_MAX];
    for (int i = 0; i < d.type.shape.rank; i++)
        if (!size_known(d.type.shape.dim[i], &dim[i]) || dim[i] < 0)
            fail(r, "the sizes of a constant are numbers");
    Tensor *t = tensor_new(r->cx->arena, d.type.dtype, d.type.shape.rank, dim);
    need(r, "=");
    need(r, "[");
    for (int64_t i = 0; i < tensor_count(t); i++) {
        if (i > 0)
            need(r, ",");
        if (type_is_float(t->dtype))
            tensor_set(t, i, number(r));
        else
            tensor_set_whole(t, i, whole(r));
    }
    need(r, "]");
    Value *value = graph_const(r->g, d.type, t->data);
    value->name = strcmp(d.name, "const") == 0 ? NULL : d.name;
    keep(r, &d, value);
}

// --- Nodes --------------------------------------------------------------------------------------------------------------------

static Expr *read_formula(Reader *r, const OpCall *call)
{
    static const char *const names[INPUTS_MAX] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"};
    Expr *arg[INPUTS_MAX];
    for (int i = 0; i < call->n_in; i++)
        arg[i] = expr_arg(r->cx, call->in[i] != NULL ? call->in[i]->type.dtype : TYPE_f32, i);
    return expr_parse(r->cx, string(r), names, arg, call->n_in);
}

static Attr read_list(Reader *r, const AttrDef *def)
{
    Attr attr = {.kind = def->kind == ATTR_SIZES ? ATTR_SIZES : ATTR_INTS};
    if (attr.kind == ATTR_SIZES) {
        attr.count = read_sizes(r, attr.sizes);
        return attr;
    }
    while (!take(r, "]")) {
        if (attr.count > 0)
            need(r, ",");
        if (attr.count == COUNT(attr.ints))
            fail(r, "a list that is too long");
        attr.ints[attr.count++] = whole(r);
    }
    return attr;
}

static Attr read_attr(Reader *r, const OpCall *call, const AttrDef *def)
{
    skip(r);
    if (take(r, "["))
        return read_list(r, def);
    if (take(r, "none"))
        return (Attr){.kind = ATTR_NONE};
    if (*r->at == '"' && def->kind == ATTR_FORMULA)
        return (Attr){.kind = ATTR_FORMULA, .formula = read_formula(r, call)};
    if (*r->at == '"')
        return (Attr){.kind = ATTR_TEXT, .word = string(r)};
    bool numeric = isdigit((unsigned char)*r->at) || *r->at == '-' || *r->at == '+';
    if (def->kind == ATTR_FLOAT && (numeric || strncmp(r->at, "inf", 3) == 0 || strncmp(r->at, "nan", 3) == 0))
        return (Attr){.kind = ATTR_FLOAT, .f = number(r)};
    if (numeric)
        return (Attr){.kind = ATTR_INT, .i = whole(r)};
    const char *name = word(r);
    if (def->kind == ATTR_BOOL && (strcmp(name, "true") == 0 || strcmp(name, "false") == 0))
        return (Attr){.kind = ATTR_BOOL, .i = strcmp(name, "true") == 0};
    if (def->kind == ATTR_TYPE && type_find(name) != TYPE_NONE)
        return (Attr){.kind = ATTR_TYPE, .type = type_find(name)};
    return (Attr){.kind = ATTR_WORD, .word = name};
}

// name = value; false where the text goes on with an input.
static bool read_named_attr(Reader *r, OpCall *call)
{
    const char *before = r->at, *name = word(r);
    if (!take(r, "=")) {
        r->at = before;
        return false;
    }
    for (int i = 0; i < ATTRS_MAX && call->op->attrs[i].name != NULL; i++)
        if (strcmp(call->op->attrs[i].name, name) == 0) {
            call->attr[i] = read_attr(r, call, &call->op->attrs[i]);
            return true;
        }
    fail(r, "%s has no attribute %s", call->op->name, name);
}

static void read_arguments(Reader *r, OpCall *call)
{
    need(r, "(");
    for (bool first = true; !take(r, ")"); first = false) {
        if (!first)
            need(r, ",");
        if (read_named_attr(r, call))
            continue;
        if (call->n_in == INPUTS_MAX)
            fail(r, "more than %d inputs", INPUTS_MAX);
        call->in[call->n_in] = take(r, "none") ? NULL : read_value(r);
        call->n_in++;
    }
}

static void read_node(Reader *r)
{
    Declared d[OUTPUTS_MAX];
    Value *out[OUTPUTS_MAX] = {NULL};
    int count = 0;
    skip(r);
    const char *start = r->at;
    do {
        if (count == OUTPUTS_MAX)
            fail(r, "more than %d outputs", OUTPUTS_MAX);
        d[count++] = read_declared(r);
    } while (take(r, ","));
    need(r, "=");
    const char *name = word(r), *scope = "";
    if (op_find(name) == NULL)
        fail(r, "no op is called %s", name);
    Builder b = {.cx = r->cx, .graph = r->g, .training = r->g->training};
    OpCall call = call_new(&b, name, 0, NULL);
    read_arguments(r, &call);
    if (take(r, "@")) {
        skip(r);
        scope = *r->at == '"' ? string(r) : word(r);
    }
    if (!graph_call(r->g, &call, scope, out))
        fail(r, "%s cannot be called so", name);
    Node *node = out[0]->node;
    node->phase = take(r, "backward") ? PHASE_BACKWARD : take(r, "update") ? PHASE_UPDATE : PHASE_FORWARD;
    node->salt = 0;
    if (take(r, "draw")) {
        node->salt = (uint32_t)whole(r);
        r->g->draws = node->salt > r->g->draws ? node->salt : r->g->draws;
    }
    const char *end = r->at;
    r->at = start;                                      // where a mistake is shown
    if (count != node->n_out)
        fail(r, "%s has %d outputs", name, node->n_out);
    for (int i = 0; i < count; i++) {
        if (!type_equal(&d[i].type, &out[i]->type))
            fail(r, "%s is %s", d[i].key, type_text(r->cx, &out[i]->type));
        out[i]->name = d[i].name;
        keep(r, &d[i], out[i]);
    }
    r->at = end;
}

// --- What the graph names -------------------------------------------------------------------------------------------------------

static NamedValue read_named(Reader *r)
{
    NamedValue named = {.name = string(r)};
    need(r, "=");
    named.value = read_value(r);
    if (take(r, "by")) {
        const OpDef *op = op_find(word(r));
        if (op == NULL)
            fail(r, "no such metric");
        named.metric = &op->metric;
    }
    named.better = take(r, "maximize") ? 1 : take(r, "minimize") ? -1 : 0;
    return named;
}

static Param *read_of_param(Reader *r)
{
    Value *value = read_value(r);
    if (value->param == NULL)
        fail(r, "%s is no parameter", value->name);
    need(r, "=");
    return value->param;
}

static void read_symbol(Reader *r)
{
    const char *name = word(r);
    Size size = size_symbol(r->cx, name, take(r, "<=") ? whole(r) : 0);
    Symbol *symbol = map_get(r->cx->symbols, name);
    (void)size;
    symbol->batch = take(r, "batch");
}

static void read_line(Reader *r)
{
    Arena *arena = r->cx->arena;
    Graph *g = r->g;
    if (take(r, "size"))
        read_symbol(r);
    else if (take(r, "input"))
        read_input(r, false);
    else if (take(r, "target"))
        read_input(r, true);
    else if (take(r, "param"))
        read_param(r);
    else if (take(r, "const"))
        read_const(r);
    else if (take(r, "output"))
        LIST_ADD(arena, g->outputs, read_named(r));
    else if (take(r, "metric"))
        LIST_ADD(arena, g->metrics, read_named(r));
    else if (take(r, "auxiliary"))
        LIST_ADD(arena, g->auxiliary, read_named(r));
    else if (take(r, "loss")) {
        need(r, "=");
        g->loss = read_value(r);
    } else if (take(r, "update")) {
        Param *param = read_of_param(r);
        LIST_ADD(arena, g->updates, ((Update){param, read_value(r)}));
    } else if (take(r, "gradient")) {
        Param *param = read_of_param(r);
        LIST_ADD(arena, g->gradients, ((Gradient){param, read_value(r)}));
    } else
        read_node(r);
}

// Values go to the places that their ids say; ids that the text does not use get a value that nobody reads.
static void settle_ids(Reader *r)
{
    Graph *g = r->g;
    int last = -1, count = g->values.count;
    Value **made = arena_copy(r->cx->arena, g->values.at, sizeof(Value *) * (size_t)count);
    for (int i = 0; i < count; i++)
        last = r->ids.at[i] > last ? r->ids.at[i] : last;
    g->values.count = 0;
    for (int i = 0; i <= last; i++)
        LIST_ADD(r->cx->arena, g->values, NULL);
    for (int i = 0; i < count; i++) {
        int id = r->ids.at[i];
        if (g->values.at[id] != NULL)
            fail(r, "two values have the id %d", id);
        g->values.at[id] = made[i];
        made[i]->id = id;
    }
    for (int i = 0; i <= last; i++)
        if (g->values.at[i] == NULL) {
            g->values.at[i] = NEW(r->cx->arena, Value);
            *g->values.at[i] = (Value){.id = i, .kind = VALUE_RESULT, .name = "unused"};
        }
}

Graph *graph_read(Context *cx, const char *text, const char **error)
{
    Reader r = {.cx = cx, .text = text, .at = text, .values = map_new(cx->arena)};
    if (setjmp(r.failed) != 0) {
        *error = r.error;
        return NULL;
    }
    need(&r, "graph");
    r.g = graph_new(cx, word(&r));
    need(&r, "(");
    r.g->training = take(&r, "training");
    if (r.g->training)
        need(&r, ",");
    r.g->stage = (Stage)one_of(&r, stage_names, STAGE_COUNT);
    need(&r, ")");
    need(&r, "{");
    while (!take(&r, "}"))
        read_line(&r);
    settle_ids(&r);
    return r.g;
}
