// build_call.c: calls of ops, by their rows: which arguments are inputs and which attributes, element types that meet,
// broadcasting and its one restriction, parameters that the call owns. No op is known here by its name, but for those
// that stand for signs (build_expr.c) and indices.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"

typedef struct Signature {              // inputs of a row, taken apart
    const char *names[INPUTS_MAX];
    bool optional[INPUTS_MAX], owned[INPUTS_MAX];
    const char *kind[INPUTS_MAX];       // "float", "like x", …
    int count;
    bool variadic;
} Signature;

typedef struct CallState {
    Net *net;
    Scope *scope;
    const Ast *ast;
    OpCall call;
    Signature sig;
    Val val[INPUTS_MAX];                // what was given for the inputs
    const Ast *at[INPUTS_MAX];
    int given;                          // of a variadic op
    bool failed;
} CallState;

// --- the row ----------------------------------------------------------------------------------------------------------------

// "x: float, weight: like x, bias: float?": the kind of input `name`.
static const char *kind_of(Net *net, const OpDef *op, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = op->inputs; p != NULL && *p != 0;) {
        p += strspn(p, " ,*");
        size_t length = strcspn(p, ":,");
        const char *colon = p[length] == ':' ? p + length + 1 : NULL;
        const char *end = p + strcspn(p, ",");
        if (length == n && strncmp(p, name, n) == 0 && colon != NULL) {
            colon += strspn(colon, " ");
            size_t width = (size_t)(end - colon);
            while (width > 0 && strchr("?* ", colon[width - 1]) != NULL)
                width--;
            return arena_string(net->arena, colon, width);
        }
        p = end;
    }
    return "any";
}

static const OwnedDef *owned_def(const OpDef *op, const char *input)
{
    for (int i = 0; i < OWNED_MAX && op->owned[i].input != NULL; i++)
        if (strcmp(op->owned[i].input, input) == 0)
            return &op->owned[i];
    return NULL;
}

static Signature signature_of(Net *net, const OpDef *op)
{
    Signature sig = {0};
    sig.count = op_inputs(op, sig.names, sig.optional, &sig.variadic);
    for (int i = 0; i < sig.count; i++) {
        sig.kind[i] = kind_of(net, op, sig.names[i]);
        sig.owned[i] = owned_def(op, sig.names[i]) != NULL;
    }
    return sig;
}

static int attr_count(const OpDef *op)
{
    int n = 0;
    while (n < ATTRS_MAX && op->attrs[n].name != NULL)
        n++;
    return n;
}

static int attr_index(const OpDef *op, const char *name)
{
    for (int i = 0; i < attr_count(op); i++)
        if (strcmp(op->attrs[i].name, name) == 0)
            return i;
    return -1;
}

// --- attributes ---------------------------------------------------------------------------------------------------------------

static bool word_listed(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = words; p != NULL && *p != 0; p += strcspn(p, " "), p += strspn(p, " "))
        if (strcspn(p, " ") == n && strncmp(p, word, n) == 0)
            return true;
    return false;
}

static void wrong_attr(CallState *s, const Ast *ast, const AttrDef *def, const char *wanted, const Val *v)
{
    diag_report(s->net->cx->diag, ast->place, MESSAGE_E0311, arena_printf(s->net->arena, "%s of %s", def->name, s->call.op->name), wanted, val_text(s->net, v));
    note_frames(s->net);
    s->failed = true;
}

static void wrong_word(CallState *s, const Ast *ast, const AttrDef *def, const char *word)
{
    Diag *diag = s->net->cx->diag;
    const char *words[32];
    int count = 0;
    for (const char *p = def->words; p != NULL && *p != 0 && count < 32; p += strcspn(p, " "), p += strspn(p, " "))
        words[count++] = arena_string(s->net->arena, p, strcspn(p, " "));
    diag_report(diag, ast->place, MESSAGE_E0215, word, def->name, s->call.op->name);
    if (!diag_help_nearest(diag, word, words, count) && count > 0)
        diag_help(diag, "one of: %s", def->words);
    note_frames(s->net);
    s->failed = true;
}

static bool within(CallState *s, const Ast *ast, const AttrDef *def, double x, const Val *v)
{
    if (!(def->least < def->most) || (x >= def->least && x <= def->most))
        return true;
    Net *net = s->net;
    diag_report(net->cx->diag, ast->place, MESSAGE_E0318, def->name, s->call.op->name, arena_printf(net->arena, "%g", def->least),
                arena_printf(net->arena, "%g", def->most), val_text(net, v));
    note_frames(net);
    s->failed = true;
    return false;
}

static void set_whole_list(CallState *s, const Ast *ast, const AttrDef *def, const Val *v, Attr *attr)
{
    const Val *items = v->kind == VAL_LIST ? v->items : v;
    int count = v->kind == VAL_LIST ? v->count : 1;
    if (count > COUNT(attr->ints)) {
        wrong_attr(s, ast, def, "a shorter list", v);
        return;
    }
    attr->count = count;
    for (int i = 0; i < count; i++) {
        if (!val_is_whole(&items[i], &attr->ints[i])) {
            wrong_attr(s, ast, def, "whole numbers", v);
            return;
        }
        if (!within(s, ast, def, (double)attr->ints[i], &items[i]))
            return;
    }
}

static void set_size_list(CallState *s, const Ast *ast, const AttrDef *def, const Val *v, Attr *attr)
{
    const Val *items = v->kind == VAL_LIST ? v->items : v;
    int count = v->kind == VAL_LIST ? v->count : 1;
    if (count > COUNT(attr->sizes)) {
        diag_report_limit(s->net->cx->diag, ast->place, LIMIT_graph_rank, "this shape");
        s->failed = true;
        return;
    }
    attr->count = count;
    for (int i = 0; i < count; i++) {
        int64_t n;
        if (items[i].kind == VAL_SIZE)
            attr->sizes[i] = items[i].size;
        else if (val_is_whole(&items[i], &n))
            attr->sizes[i] = size_const(s->net->cx, n);
        else {
            if (items[i].kind == VAL_NUMBER)
                diag_report(s->net->cx->diag, ast->place, MESSAGE_E0306, "this", val_text(s->net, &items[i]));
            else
                wrong_attr(s, ast, def, "sizes", v);
            s->failed = true;
            return;
        }
    }
}

static void report_not_whole(CallState *s, const Ast *ast, const Val *v)
{
    const DiagSource *source = &s->net->cx->diag->sources.at[ast->place.source - 1];
    const char *text = arena_string(s->net->arena, source->bytes + ast->place.from, (size_t)(ast->place.to - ast->place.from));
    const char *value = v->number.exact ? arena_printf(s->net->arena, "%lld / %lld", (long long)v->number.num, (long long)v->number.den)
                                        : val_text(s->net, v);
    diag_report(s->net->cx->diag, ast->place, MESSAGE_E0306, text, value);
    note_frames(s->net);
    s->failed = true;
}

// The value `v`, written at `ast`, as attribute `def`.
static void set_attr(CallState *s, const Ast *ast, const AttrDef *def, const Val *v, Attr *attr)
{
    *attr = (Attr){.kind = def->kind};
    int64_t n;
    if (v->running) {
        diag_report(s->net->cx->diag, ast->place, MESSAGE_E0307, arena_printf(s->net->arena, "%s of %s", def->name, s->call.op->name), "the counter of a loop");
        diag_help(s->net->cx->diag, "a counter is a number in a value, or an index: x[.., t]");
        note_frames(s->net);
        s->failed = true;
        return;
    }
    if (v->kind == VAL_WORD || (v->kind == VAL_BOOL && def->kind != ATTR_BOOL && word_listed(def->words, v->number.num ? "true" : "false"))) {
        attr->kind = ATTR_WORD;
        attr->word = v->kind == VAL_WORD ? v->text : v->number.num ? "true" : "false";
        if (!word_listed(def->words, attr->word))
            wrong_word(s, ast, def, attr->word);
        return;
    }
    switch (def->kind) {
    case ATTR_INT:
        if (val_is_whole(v, &n) && within(s, ast, def, (double)n, v))
            attr->i = n;
        else if (v->kind == VAL_NUMBER && !s->failed)
            report_not_whole(s, ast, v);
        else if (!s->failed)
            wrong_attr(s, ast, def, "a whole number", v);
        break;
    case ATTR_FLOAT:
        if (v->kind != VAL_NUMBER)
            wrong_attr(s, ast, def, "a number", v);
        else if (within(s, ast, def, v->number.real, v))
            attr->f = v->number.real;
        break;
    case ATTR_BOOL:
        if (v->kind != VAL_BOOL)
            wrong_attr(s, ast, def, "true or false", v);
        attr->i = v->number.num;
        break;
    case ATTR_INTS:  set_whole_list(s, ast, def, v, attr); break;
    case ATTR_SIZES: set_size_list(s, ast, def, v, attr); break;
    case ATTR_TYPE:
        if (v->kind != VAL_TYPE)
            wrong_attr(s, ast, def, "an element type", v);
        attr->type = v->type;
        break;
    case ATTR_TEXT:
        if (v->kind != VAL_STRING)
            wrong_attr(s, ast, def, "a string", v);
        attr->word = v->text;
        break;
    default:
        wrong_attr(s, ast, def, arena_printf(s->net->arena, "one of: %s", def->words ? def->words : ""), v);
    }
}

// A default or an attribute given by mlc itself, as text: 1, 0.1, true, same, [1, 1].
static void attr_from_text(Net *net, const AttrDef *def, const char *text, Attr *attr)
{
    *attr = (Attr){.kind = def->kind};
    bool number = strchr("-0123456789[.", text[0]) != NULL;
    if (text[0] == 0)
        attr->kind = ATTR_NONE;
    else if (def->kind == ATTR_BOOL)
        attr->i = strcmp(text, "true") == 0;
    else if (def->kind == ATTR_TYPE && type_find(text) != TYPE_NONE)
        attr->type = type_find(text);
    else if (def->kind == ATTR_TEXT)
        attr->word = text;
    else if (!number) {
        attr->kind = ATTR_WORD;
        attr->word = name_intern(net->cx->names, text, strlen(text));
    } else if (def->kind == ATTR_INT)
        attr->i = strtoll(text, NULL, 10);
    else if (def->kind == ATTR_FLOAT)
        attr->f = strtod(text, NULL);
    else
        for (const char *p = text + strspn(text, "[ "); *p != 0 && *p != ']'; p += strspn(p, ", ")) {
            char *end;
            int64_t n = strtoll(p, &end, 10);
            CHECK(end != p && attr->count < RANK_MAX);
            if (def->kind == ATTR_SIZES)
                attr->sizes[attr->count++] = size_const(net->cx, n);
            else
                attr->ints[attr->count++] = n;
            p = end;
        }
}

static void report_no_attr(CallState *s, const Ast *arg)
{
    Diag *diag = s->net->cx->diag;
    const OpDef *op = s->call.op;
    const char *names[ATTRS_MAX + INPUTS_MAX];
    int count = 0;
    for (int i = 0; i < attr_count(op); i++)
        names[count++] = op->attrs[i].name;
    for (int i = 0; i < s->sig.count; i++)
        names[count++] = s->sig.names[i];
    diag_report(diag, arg->name, MESSAGE_E0202, op->name, arg->text);
    const char *near = name_nearest(arg->text, names, count);
    if (near != NULL)
        diag_help(diag, "did you mean %s? mlc ops %s shows all", near, op->name);
    else
        diag_help(diag, "mlc ops %s shows all", op->name);
    note_frames(s->net);
    s->failed = true;
}

// --- arguments ----------------------------------------------------------------------------------------------------------------

static void give_attr(CallState *s, Ast *ast, int i)
{
    if (s->call.attr[i].kind != ATTR_NONE) {
        diag_report(s->net->cx->diag, ast->place, MESSAGE_E0211, s->call.op->attrs[i].name);
        note_frames(s->net);
        s->failed = true;
        return;
    }
    const AttrDef *def = &s->call.op->attrs[i];
    Val v = eval_word(s->net, s->scope, ast, def->words);
    if (v.kind == VAL_NONE)
        s->failed = true;
    else
        set_attr(s, ast, def, &v, &s->call.attr[i]);
}

static void give_input(CallState *s, const Ast *ast, int i, Val v)
{
    if (i >= INPUTS_MAX || s->val[i].kind != VAL_NONE) {
        diag_report(s->net->cx->diag, ast->place, MESSAGE_E0211, i < s->sig.count ? s->sig.names[i] : "an input");
        note_frames(s->net);
        s->failed = true;
        return;
    }
    s->val[i] = v;
    s->at[i] = ast;
}

static void report_too_many(CallState *s, const Ast *arg, int inputs)
{
    static const char *const counts[] = {"no value", "one value", "two values", "three values", "four values"};
    const OpDef *op = s->call.op;
    Diag *diag = s->net->cx->diag;
    diag_report(diag, arg->place, MESSAGE_E0308, op->name, inputs < 5 ? counts[inputs] : "fewer values");
    const char *larger = arena_printf(s->net->arena, "%simum", op->name);
    if (op_find(larger) != NULL && attr_index(op, "axis") >= 0)
        diag_help(diag, "the larger or smaller of two: %s(x, 1); along an axis: %s(x, axis = 1)", larger, op->name);
    else if (attr_count(op) > 0)
        diag_help(diag, "attributes are given by name: %s(…, %s = …)", op->name, op->attrs[0].name);
    note_frames(s->net);
    s->failed = true;
}

static int next_positional(const OpDef *op, int after)
{
    for (int i = after; i < attr_count(op); i++)
        if (op->attrs[i].positional)
            return i;
    return -1;
}

static int plain_inputs(const Signature *sig)
{
    int n = 0;
    for (int i = 0; i < sig->count; i++)
        n += !sig->owned[i];
    return n;
}

static int next_input(const Signature *sig, int i)
{
    while (i < sig->count && sig->owned[i])
        i++;
    return i;
}

static void give_list(CallState *s, const Ast *ast, const Val *list)
{
    if (list->count > INPUTS_MAX) {
        diag_report(s->net->cx->diag, ast->place, MESSAGE_E0210, s->call.op->name, count_text(s->net, INPUTS_MAX), list->count);
        note_frames(s->net);
        s->failed = true;
    }
    for (int i = 0; i < list->count && i < INPUTS_MAX; i++)
        give_input(s, ast, s->given++, list->items[i]);
}

// Arguments without a name: first the inputs, then the attributes whose rows say so.
static void give_positional(CallState *s, Ast *arg, int *input, int *attr)
{
    *input = next_input(&s->sig, *input);
    bool want_input = s->sig.variadic ? *attr == 0 : *input < s->sig.count;
    int place = next_positional(s->call.op, *attr);
    if (!want_input && place < 0) {
        report_too_many(s, arg, plain_inputs(&s->sig));
        return;
    }
    bool may_be_attr = place >= 0 && (s->sig.variadic ? s->given > 0 : want_input && s->sig.optional[*input]);
    if (!want_input) {
        give_attr(s, arg, place);
        *attr = place + 1;
        return;
    }
    Val v = may_be_attr ? eval_word(s->net, s->scope, arg, s->call.op->attrs[place].words) : eval(s->net, s->scope, arg);
    if (v.kind == VAL_NONE) {
        s->failed = true;
    } else if (may_be_attr && v.kind != VAL_TENSOR) {
        set_attr(s, arg, &s->call.op->attrs[place], &v, &s->call.attr[place]);
        *attr = place + 1;
    } else if (s->sig.variadic && v.kind == VAL_LIST) {
        give_list(s, arg, &v);
    } else if (s->sig.variadic) {
        give_input(s, arg, s->given++, v);
    } else {
        give_input(s, arg, *input, v);
        *input += 1;
    }
}

static void give_named(CallState *s, Ast *arg)
{
    int i = attr_index(s->call.op, arg->text);
    int input = op_input_index(s->call.op, arg->text);
    if (i >= 0) {
        give_attr(s, arg->a, i);
        return;
    }
    if (input < 0) {
        report_no_attr(s, arg);
        return;
    }
    Val v = eval(s->net, s->scope, arg->a);
    if (v.kind == VAL_NONE)
        s->failed = true;
    else
        give_input(s, arg->a, input, v);
}

static void give_arguments(CallState *s, const Ast *call)
{
    int input = 0, attr = 0;
    for (int i = 0; i < call->count; i++) {
        if (call->items[i]->kind == AST_ARGUMENT)
            give_named(s, call->items[i]);
        else
            give_positional(s, call->items[i], &input, &attr);
    }
}

static void fill_defaults(CallState *s)
{
    const OpDef *op = s->call.op;
    for (int i = 0; i < attr_count(op); i++) {
        if (s->call.attr[i].kind != ATTR_NONE)
            continue;
        if (op->attrs[i].initial != NULL) {
            attr_from_text(s->net, &op->attrs[i], op->attrs[i].initial, &s->call.attr[i]);
            continue;
        }
        diag_report(s->net->cx->diag, s->ast->place, MESSAGE_E0209, op->name, op->attrs[i].name);
        note_frames(s->net);
        s->failed = true;
    }
}

static CallState call_start(Net *net, Scope *scope, const Ast *ast, const OpDef *op);
static Val finish_call(CallState *s, const char *name);
static Value *cast_to(Net *net, Scope *scope, const Ast *ast, Value *v, DType type);

// --- tensors from numbers ---------------------------------------------------------------------------------------------------

static bool list_shape(const Val *v, int depth, int64_t *dim, int *rank)
{
    if (v->kind != VAL_LIST)
        return val_is_number(v) && depth == *rank;
    if (depth >= RANK_MAX)
        return false;
    if (depth == *rank) {
        dim[depth] = v->count;
        *rank += 1;
    }
    if (dim[depth] != v->count)
        return false;
    for (int i = 0; i < v->count; i++)
        if (!list_shape(&v->items[i], depth + 1, dim, rank))
            return false;
    return true;
}

static void list_fill(const Val *v, Tensor *t, int64_t *at)
{
    if (v->kind != VAL_LIST) {
        tensor_set(t, (*at)++, v->number.real);
        return;
    }
    for (int i = 0; i < v->count; i++)
        list_fill(&v->items[i], t, at);
}

static bool list_has_tensor(const Val *v)
{
    for (int i = 0; v->kind == VAL_LIST && i < v->count; i++)
        if (v->items[i].kind == VAL_TENSOR)
            return true;
    return false;
}

// The first number that the integer type has no room for, or NULL.
static const Val *too_large(const Val *v, DType type)
{
    const TypeDef *def = type_def(type);
    for (int i = 0; v->kind == VAL_LIST && i < v->count; i++) {
        const Val *found = too_large(&v->items[i], type);
        if (found != NULL)
            return found;
    }
    if (v->kind == VAL_LIST || def->kind == KIND_FLOAT || def->kind == KIND_BOOL)
        return NULL;
    int bits = 8 * def->bytes - (def->kind == KIND_INT);
    double room = ldexp(1, bits), x = v->number.real;
    return x < room && x >= (def->kind == KIND_INT ? -room : 0) ? NULL : v;
}

static Value *constant(Net *net, const Val *v, DType type)
{
    int64_t dim[RANK_MAX] = {0}, at = 0;
    int rank = 0;
    if (v->kind == VAL_LIST && v->count == 0)
        return NULL;
    if (v->kind == VAL_LIST ? !list_shape(v, 0, dim, &rank) : !val_is_number(v))
        return NULL;
    Tensor *t = tensor_new(net->arena, type, rank, dim);
    list_fill(v, t, &at);
    Size sizes[RANK_MAX];
    for (int i = 0; i < rank; i++)
        sizes[i] = size_const(net->cx, dim[i]);
    return graph_const(net->graph, type_of(type, rank, sizes), t->data);
}

// A size that is known only when running, as a number: one, times the size.
static Value *size_number(Net *net, Scope *scope, const Ast *ast, Size size, DType like)
{
    Val one = val_int(1);
    DType type = type_is_float(like) ? like : TYPE_f64;
    Val x = val_tensor(constant(net, &one, type));
    Val v = call_sized(net, scope, ast, "per", &x, "times", &size, 1);
    return v.kind == VAL_TENSOR ? cast_to(net, scope, ast, v.tensor, like) : NULL;
}

Value *as_tensor(Net *net, Scope *scope, const Ast *ast, const Val *v, DType like)
{
    if (v->kind == VAL_TENSOR)
        return v->tensor;
    if (v->kind == VAL_TUPLE && v->op != NULL && v->items[0].kind == VAL_TENSOR)
        return v->items[0].tensor;
    if (v->kind == VAL_SIZE)
        return size_number(net, scope, ast, v->size, like);
    const Val *large = val_is_number(v) || v->kind == VAL_LIST ? too_large(v, like) : NULL;
    if (large != NULL) {
        diag_report(net->cx->diag, ast->place, MESSAGE_E0320, val_text(net, large), type_def(like)->name);
        note_frames(net);
        return NULL;
    }
    Value *value = list_has_tensor(v) ? NULL : constant(net, v, like);
    if (value != NULL)
        return value;
    if (v->kind != VAL_NONE) {
        diag_report(net->cx->diag, ast->place, MESSAGE_E0311, "this", "a tensor", val_text(net, v));
        note_frames(net);
    }
    return NULL;
}

// --- element types that meet -------------------------------------------------------------------------------------------------

static bool is_whole_number(const Val *v)
{
    int64_t n;
    if (v->kind == VAL_LIST) {
        for (int i = 0; i < v->count; i++)
            if (!is_whole_number(&v->items[i]))
                return false;
        return true;
    }
    return v->kind == VAL_BOOL || val_is_whole(v, &n);
}

static const Value *tensor_of(const Val *v)
{
    return v->kind == VAL_TENSOR ? v->tensor
         : v->kind == VAL_TUPLE && v->op != NULL && v->items[0].kind == VAL_TENSOR ? v->items[0].tensor : NULL;
}

static bool meets(const CallState *s, int i)    // does the type of input i have to agree with the others?
{
    const char *kind = s->sig.variadic ? "any" : s->sig.kind[i];
    return strcmp(kind, "bool") != 0 && strcmp(kind, "index") != 0 && !(i < s->sig.count && s->sig.owned[i]);
}

// The type that the inputs agree on: the float among them; else the integer; else what numbers alone are. Fractions are
// floats wherever they stand, and a quotient is one.
static DType common_type(const CallState *s, bool quotient)
{
    DType type = TYPE_NONE;
    bool fraction = false, any = false;
    for (int i = 0; i < INPUTS_MAX; i++) {
        if (s->val[i].kind == VAL_NONE || !meets(s, i))
            continue;
        const Value *t = tensor_of(&s->val[i]);
        any = true;
        if (t == NULL) {
            fraction |= !is_whole_number(&s->val[i]);
            continue;
        }
        bool first = type == TYPE_NONE || (type_is_float(t->type.dtype) && !type_is_float(type));
        if (first || (type == TYPE_bool && t->type.dtype != TYPE_bool))
            type = t->type.dtype;
    }
    bool floating = type != TYPE_NONE && type_is_float(type);
    return !any || type == TYPE_NONE ? TYPE_f32 : !floating && (fraction || quotient) ? TYPE_f32 : type;
}

static Value *cast_to(Net *net, Scope *scope, const Ast *ast, Value *v, DType type)
{
    if (v->type.dtype == type)
        return v;
    Val arg = val_tensor(v);
    Val out = call_simple(net, scope, ast, "cast", &arg, 1, arena_printf(net->arena, "type = %s", type_def(type)->name));
    return out.kind == VAL_TENSOR ? out.tensor : NULL;
}

static bool two_floats(DType a, DType b)
{
    return a != b && type_is_float(a) == type_is_float(b) && a != TYPE_bool && b != TYPE_bool;
}

// Losses do not broadcast, but a number has no shape of its own: bce_with_logits(y, 1) is about ones like y.
static Value *grown(CallState *s, Value *number, int input)
{
    const Value *like = NULL;
    for (int i = 0; i < INPUTS_MAX && like == NULL; i++)
        like = i != input && s->val[i].kind != VAL_NONE ? tensor_of(&s->val[i]) : NULL;
    if (like == NULL || number->type.shape.rank > 0 || like->type.shape.rank == 0)
        return number;
    Val x = val_tensor(number);
    Val v = call_sized(s->net, s->scope, s->at[input], "broadcast_to", &x, "shape", like->type.shape.dim, like->type.shape.rank);
    return v.kind == VAL_TENSOR ? v.tensor : NULL;
}

// Numbers become constants, integers that meet a float become that float.
static void make_inputs(CallState *s)
{
    bool elementwise = s->call.op->formula != NULL;
    DType common = common_type(s, elementwise && strcmp(s->call.op->name, "div") == 0);
    int count = s->sig.variadic ? s->given : s->sig.count;
    s->call.n_in = count;
    for (int i = 0; i < count; i++) {
        if (s->val[i].kind == VAL_NONE)
            continue;
        bool flag = !s->sig.variadic && strcmp(s->sig.kind[i], "bool") == 0;
        bool index = !s->sig.variadic && (strcmp(s->sig.kind[i], "index") == 0 || strcmp(s->sig.kind[i], "int") == 0);
        bool floating = !s->sig.variadic && strcmp(s->sig.kind[i], "float") == 0;
        DType like = flag ? TYPE_bool : index ? TYPE_i32 : floating && !type_is_float(common) ? TYPE_f32 : common;
        Value *v = as_tensor(s->net, s->scope, s->at[i], &s->val[i], like);
        if (v != NULL && s->call.op->traits & OP_LOSS && !index && tensor_of(&s->val[i]) == NULL)
            v = grown(s, v, i);
        if (v != NULL && (elementwise || s->sig.variadic) && meets(s, i) && v->type.dtype != common && !two_floats(v->type.dtype, common))
            v = cast_to(s->net, s->scope, s->ast, v, common);
        s->call.in[i] = v;
        s->failed |= v == NULL;
    }
}

static bool kind_allows(const char *kind, DType type)
{
    if (strcmp(kind, "float") == 0)
        return type_is_float(type);
    if (strcmp(kind, "int") == 0 || strcmp(kind, "index") == 0)
        return !type_is_float(type) && type != TYPE_bool;
    return strcmp(kind, "bool") != 0 || type == TYPE_bool;
}

static void check_kinds(CallState *s)
{
    Diag *diag = s->net->cx->diag;
    for (int i = 0; i < s->sig.count && !s->sig.variadic; i++) {
        const Value *v = s->call.in[i];
        if (v == NULL && !s->sig.optional[i] && !s->sig.owned[i] && s->val[i].kind == VAL_NONE) {
            diag_report(diag, s->ast->place, MESSAGE_E0209, s->call.op->name, s->sig.names[i]);
            note_frames(s->net);
            s->failed = true;
        } else if (v != NULL && !kind_allows(s->sig.kind[i], v->type.dtype)) {
            diag_report(diag, s->at[i]->place, MESSAGE_E0311, arena_printf(s->net->arena, "%s of %s", s->sig.names[i], s->call.op->name),
                        strcmp(s->sig.kind[i], "float") == 0 ? "of a float type" : strcmp(s->sig.kind[i], "bool") == 0 ? "boolean" : "of an integer type",
                        type_text(s->net->cx, &v->type));
            if (strcmp(s->sig.kind[i], "float") == 0)
                diag_help(diag, "cast(…, f32)");
            note_frames(s->net);
            s->failed = true;
        }
    }
}

// --- broadcasting -------------------------------------------------------------------------------------------------------------

static const char *source_text(Net *net, const Ast *ast)
{
    const DiagSource *source = &net->cx->diag->sources.at[ast->place.source - 1];
    int length = ast->place.to - ast->place.from;
    return arena_string(net->arena, source->bytes + ast->place.from, (size_t)(length > 60 ? 60 : length));
}

static const char *size_text(Net *net, Size size)
{
    Text text = {.arena = net->arena};
    size_print(&text, size);
    return text.at;
}

static bool is_one(Size size)
{
    int64_t n;
    return size_known(size, &n) && n == 1;
}

static void report_differ(CallState *s, const Value *a, const Value *b)
{
    Context *cx = s->net->cx;
    int ra = a->type.shape.rank, rb = b->type.shape.rank, rank = ra > rb ? ra : rb;
    for (int i = 0; i < rank; i++) {
        int ia = i - (rank - ra), ib = i - (rank - rb);
        if (ia < 0 || ib < 0)
            continue;
        Size p = a->type.shape.dim[ia], q = b->type.shape.dim[ib];
        if (size_equal(p, q) || is_one(p) || is_one(q))
            continue;
        diag_report(cx->diag, s->ast->place, MESSAGE_E0301, source_text(s->net, s->ast), type_text(cx, &a->type), type_text(cx, &b->type),
                    i, size_text(s->net, p), size_text(s->net, q));
        note_frames(s->net);
        s->failed = true;
        return;
    }
}

// Where ranks differ, only the operand of lower rank may grow.
static void check_growth(CallState *s, const Value *a, const Value *b)
{
    Context *cx = s->net->cx;
    const Value *low = a->type.shape.rank < b->type.shape.rank ? a : b, *high = low == a ? b : a;
    int by = high->type.shape.rank - low->type.shape.rank;
    if (by == 0 || low->type.shape.rank == 0)
        return;
    for (int i = 0; i < low->type.shape.rank; i++) {
        if (!is_one(high->type.shape.dim[i + by]) || is_one(low->type.shape.dim[i]))
            continue;
        Type both = {.dtype = a->type.dtype};
        shape_broadcast(cx, &a->type.shape, &b->type.shape, &both.shape);
        diag_report(cx->diag, s->ast->place, MESSAGE_E0302, type_text(cx, &a->type), type_text(cx, &b->type), type_text(cx, &both));
        note_frames(s->net);
        s->failed = true;
        return;
    }
}

static void check_broadcast(CallState *s)
{
    if (s->call.op->formula == NULL || s->sig.variadic)
        return;
    const Value *first = NULL;
    for (int i = 0; i < s->call.n_in && !s->failed; i++) {
        const Value *v = s->call.in[i];
        Shape both;
        if (v == NULL)
            continue;
        if (first == NULL)
            first = v;
        else if (!shape_broadcast(s->net->cx, &first->type.shape, &v->type.shape, &both))
            report_differ(s, first, v);
        else
            check_growth(s, first, v);
    }
}

// --- parameters ---------------------------------------------------------------------------------------------------------------

static bool attr_is_false(const OpCall *call, const char *name)
{
    int i = name != NULL ? attr_index(call->op, name) : -1;
    return i >= 0 && call->attr[i].kind == ATTR_BOOL && call->attr[i].i == 0;
}

static bool owns(const CallState *s, int i, const OwnedDef **def)
{
    *def = owned_def(s->call.op, s->sig.names[i]);
    return *def != NULL && s->call.in[i] == NULL && !attr_is_false(&s->call, (*def)->unless);
}

static bool owns_any(const CallState *s)
{
    const OwnedDef *def;
    for (int i = 0; i < s->sig.count; i++)
        if (owns(s, i, &def))
            return true;
    return false;
}

// PyTorch's start of a bias depends on the weight beside it.
static void borrow_fans(CallState *s, Value *made)
{
    for (int i = 0; i < s->sig.count; i++) {
        const Value *other = s->call.in[i];
        if (other != NULL && other->param != NULL && other->type.shape.rank >= 2 && made->type.shape.rank == 1) {
            made->param->fan_in = other->param->fan_in;
            made->param->fan_out = other->param->fan_out;
            return;
        }
    }
}

static void make_params(CallState *s, const char *path)
{
    for (int i = 0; i < s->sig.count; i++) {
        const OwnedDef *def;
        if (!owns(s, i, &def) || s->call.owned[i].dtype == TYPE_NONE)
            continue;
        Value *v = param_value(s->net, path_join(s->net, path, def->input), s->call.owned[i], def->role, s->call.op, def->init, s->ast->place);
        if (v == NULL) {
            s->failed = true;
            return;
        }
        s->call.in[i] = v;
        borrow_fans(s, v);
    }
}

// The place in the model that the call's name makes; NULL if it owns nothing.
static const char *take_path(CallState *s, const char *name)
{
    Net *net = s->net;
    const OpDef *op = s->call.op;
    if (!owns_any(s)) {
        if (name == NULL || op->owned[0].input != NULL)
            return NULL;
        diag_report(net->cx->diag, s->ast->place, MESSAGE_E0410, op->name);
        note_frames(net);
        s->failed = true;
        return NULL;
    }
    Layer *layer = s->scope->layer;
    const char *outer = layer_path(net, layer);
    const char *path = path_join(net, outer, name != NULL ? name : name_number(net, layer, op->name));
    bool again;
    s->failed |= !name_take(net, layer, path, op->name, s->ast->place, &again);
    return path;
}

// --- the call -----------------------------------------------------------------------------------------------------------------

static Val result_of(CallState *s, Value **out)
{
    if (s->call.n_out == 1)
        return val_tensor(out[0]);
    Val tuple = {.kind = VAL_TUPLE, .op = s->call.op, .count = s->call.n_out, .items = NEW_ARRAY(s->net->arena, Val, s->call.n_out)};
    for (int i = 0; i < s->call.n_out; i++)
        tuple.items[i] = val_tensor(out[i]);
    return tuple;
}

static bool too_many_nodes(CallState *s)
{
    if (s->net->graph->nodes.count < diag_limit(s->net->cx->diag, LIMIT_graph_nodes))
        return false;
    diag_report_limit(s->net->cx->diag, s->ast->place, LIMIT_graph_nodes, "this model");
    return true;
}

static Val finish_call(CallState *s, const char *name)
{
    Net *net = s->net;
    fill_defaults(s);
    if (!s->failed)
        make_inputs(s);
    if (!s->failed)
        check_kinds(s);
    if (!s->failed)
        check_broadcast(s);
    if (s->failed || too_many_nodes(s))
        return (Val){0};
    int before = net->cx->diag->errors;
    const char *path = take_path(s, name);
    if (!s->failed && path != NULL && (s->failed = !s->call.op->shape(&s->call)) == false)
        make_params(s, path);
    Value *out[OUTPUTS_MAX] = {NULL};
    if (!s->failed && graph_call(net->graph, &s->call, path != NULL ? path : layer_shown(s->scope->layer), out)) {
        if (s->call.n_out == 0)
            for (; s->call.n_out < OUTPUTS_MAX && out[s->call.n_out] != NULL; s->call.n_out++) {}
        return result_of(s, out);
    }
    if (net->cx->diag->errors > before)
        note_frames(net);
    return (Val){0};
}

static CallState call_start(Net *net, Scope *scope, const Ast *ast, const OpDef *op)
{
    CallState s = {.net = net, .scope = scope, .ast = ast, .sig = signature_of(net, op)};
    s.call = (OpCall){.cx = net->cx, .op = op, .place = ast->place, .training = net->training};
    return s;
}

Val call_op(Net *net, Scope *scope, Ast *call, const OpDef *op, const char *name)
{
    bool random = op->traits & OP_RANDOM && !net->training;
    if (net->in_data && (random || !(op->traits & (OP_DATA | OP_RANDOM)))) {
        diag_report(net->cx->diag, call->place, random ? MESSAGE_E0502 : MESSAGE_E0508, op->name);
        return (Val){0};
    }
    CallState s = call_start(net, scope, call, op);
    give_arguments(&s, call);
    Val v = s.failed ? (Val){0} : finish_call(&s, name);
    if (v.kind == VAL_NONE)
        mark_read(scope, call);
    return v;
}

// "axis = 1, keep = true"
static void attrs_from_text(CallState *s, const char *attrs)
{
    for (const char *p = attrs; *p != 0;) {
        p += strspn(p, " ,");
        size_t n = strcspn(p, " =");
        int i = attr_index(s->call.op, arena_string(s->net->arena, p, n));
        if (i < 0)
            BUG("%s has no attribute %.*s", s->call.op->name, (int)n, p);
        p += n + strspn(p + n, " =");
        size_t length = p[0] == '[' ? strcspn(p, "]") + 1 : strcspn(p, ",");
        attr_from_text(s->net, &s->call.op->attrs[i], arena_string(s->net->arena, p, length), &s->call.attr[i]);
        p += length;
    }
}

Val call_simple(Net *net, Scope *scope, const Ast *ast, const char *name, Val *args, int count, const char *attrs)
{
    const OpDef *op = op_find(name);
    if (op == NULL) {
        refuse(net, ast, arena_printf(net->arena, "%s of tensors", name), "mlc ops lists what there is");
        return (Val){0};
    }
    CallState s = call_start(net, scope, ast, op);
    for (int i = 0; i < count; i++)
        give_input(&s, ast->kind == AST_BINARY ? (i == 0 ? ast->a : ast->b) : ast, s.sig.variadic ? s.given++ : i, args[i]);
    attrs_from_text(&s, attrs);
    return s.failed ? (Val){0} : finish_call(&s, NULL);
}

// An op of one input, with an attribute of sizes.
Val call_sized(Net *net, Scope *scope, const Ast *ast, const char *name, const Val *x, const char *attr, const Size *sizes, int count)
{
    const OpDef *op = op_find(name);
    CHECK(op != NULL && attr_index(op, attr) >= 0);
    CallState s = call_start(net, scope, ast, op);
    give_input(&s, ast, 0, *x);
    Attr *a = &s.call.attr[attr_index(op, attr)];
    *a = (Attr){.kind = ATTR_SIZES, .count = count};
    for (int i = 0; i < count; i++)
        a->sizes[i] = sizes[i];
    return finish_call(&s, NULL);
}

// --- x[.., 1..3, -1] --------------------------------------------------------------------------------------------------------

typedef struct Cut { Size from, count; bool drop; } Cut;        // of one axis

// A whole number, or a size, counted from the end where it is negative.
static bool index_of(CallState *s, Ast *ast, Size length, Size *at)
{
    Context *cx = s->net->cx;
    Val v = eval(s->net, s->scope, ast);
    int64_t n, known;
    if (v.kind == VAL_SIZE) {
        *at = v.size;
        return true;
    }
    if (!val_is_whole(&v, &n)) {
        if (v.kind == VAL_TENSOR)
            diag_report(cx->diag, ast->place, MESSAGE_E0311, "an index", "a whole number; for a tensor of indices there is gather", val_text(s->net, &v));
        else if (v.kind != VAL_NONE)
            diag_report(cx->diag, ast->place, MESSAGE_E0311, "an index", "a whole number or a range", val_text(s->net, &v));
        return false;
    }
    if (size_known(length, &known) && (n < -known || n >= known)) {
        diag_report(cx->diag, ast->place, MESSAGE_E0312, n, known);
        return false;
    }
    *at = n < 0 ? size_plus(cx, length, size_const(cx, n)) : size_const(cx, n);
    return true;
}

static bool cut_of(CallState *s, Ast *item, Size length, Cut *cut)
{
    Context *cx = s->net->cx;
    Size one = size_const(cx, 1), last = NULL;
    bool binary = item->kind == AST_BINARY && strcmp(item->text, "..") == 0;
    *cut = (Cut){.from = size_const(cx, 0)};
    if (item->kind != AST_SPAN && !binary) {
        cut->drop = true;
        cut->count = one;
        return index_of(s, item, length, &cut->from);
    }
    if (item->a == NULL && item->b == NULL) {
        cut->count = length;
        return true;
    }
    if (item->a != NULL && !index_of(s, item->a, length, &cut->from))
        return false;
    if (item->b != NULL ? !index_of(s, item->b, length, &last) : (last = size_minus(cx, length, one)) == NULL)
        return false;
    cut->count = size_plus(cx, size_minus(cx, last, cut->from), one);
    int64_t n;
    if (!size_known(cut->count, &n) || n > 0)
        return true;
    diag_report(cx->diag, item->place, MESSAGE_E0311, "a range of an axis", "not empty; it never runs backwards", "this");
    return false;
}

static const char *number_text(Net *net, Size size)
{
    int64_t n;
    return size_known(size, &n) ? arena_printf(net->arena, "%lld", (long long)n) : NULL;
}

static Val cut_axis(CallState *s, const Val *x, int axis, const Cut *cut)
{
    const char *from = number_text(s->net, cut->from);
    if (from == NULL) {
        later(s->net, s->ast, "an index that is known only when running", "a number, counted from the start, or ..");
        from = "0";
    }
    const OpDef *op = op_find("slice");
    if (op == NULL) {
        refuse(s->net, s->ast, "an index of a tensor", "");
        return (Val){0};
    }
    CallState call = call_start(s->net, s->scope, s->ast, op);
    give_input(&call, s->ast, 0, *x);
    attrs_from_text(&call, arena_printf(s->net->arena, "axis = %d, from = %s", axis, from));
    int count = attr_index(op, "count");
    CHECK(count >= 0);
    call.call.attr[count] = (Attr){.kind = ATTR_SIZES, .count = 1, .sizes = {cut->count}};
    return finish_call(&call, NULL);
}

static Val drop_axes(CallState *s, const Val *x, const Cut *cuts, int count)
{
    Shape shape = {0};
    for (int i = 0; i < x->tensor->type.shape.rank; i++)
        if (i >= count || !cuts[i].drop)
            shape.dim[shape.rank++] = x->tensor->type.shape.dim[i];
    if (shape.rank == x->tensor->type.shape.rank)
        return *x;
    Builder b = {.cx = s->net->cx, .graph = s->net->graph, .scope = layer_shown(s->scope->layer), .place = s->ast->place, .training = s->net->training};
    return val_tensor(build_reshape(&b, x->tensor, &shape));
}

Val call_index(Net *net, Scope *scope, Ast *ast, const Val *base)
{
    CallState s = {.net = net, .scope = scope, .ast = ast};
    Cut cuts[RANK_MAX];
    Val x = *base;
    const Shape *shape = &base->tensor->type.shape;
    if (ast->count > shape->rank) {
        diag_report(net->cx->diag, ast->place, MESSAGE_E0317, "this", shape->rank, shape->rank);
        note_frames(net);
        return (Val){0};
    }
    for (int i = 0; i < ast->count; i++) {
        if (!cut_of(&s, ast->items[i], shape->dim[i], &cuts[i])) {
            note_frames(net);
            return (Val){0};
        }
    }
    for (int i = 0; i < ast->count && x.kind == VAL_TENSOR; i++)
        if (!size_equal(cuts[i].count, x.tensor->type.shape.dim[i]))
            x = cut_axis(&s, &x, i, &cuts[i]);
    return x.kind == VAL_TENSOR ? drop_axes(&s, &x, cuts, ast->count) : x;
}
