// build_expr.c: expressions. An operator on tensors becomes a node, on numbers a number, on sizes a size.
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "build.h"

static Val fail(Net *net)
{
    note_frames(net);
    return (Val){0};
}

// --- names ----------------------------------------------------------------------------------------------------------------

static bool predefined(Net *net, const char *name, Val *v)
{
    if (strcmp(name, "training") == 0) {
        *v = val_bool(net->training);
        if (net->in_data)
            data_varies(net);
    } else if (strcmp(name, "pi") == 0)
        *v = val_real(3.14159265358979323846);
    else if (strcmp(name, "inf") == 0)
        *v = val_real(INFINITY);
    else
        return false;
    return true;
}

static bool is_capital(const char *name) { return isupper((unsigned char)name[0]) != 0; }

// What a name stands for, without a report. Blocks and ops are values too: they can be handed to blocks.
static bool find_value(Net *net, Scope *scope, const char *name, Val *v)
{
    Binding *b = scope_find(scope, name);
    if (b != NULL && !b->ended) {
        b->ast->read = true;
        *v = b->val;
        if (v->kind == VAL_FIELD)
            return field_make(net, scope, b->ast, v->text, v);
        return true;
    }
    Val *param = map_get(scope->file->params, name);
    if (param != NULL) {
        ((Ast *)map_get(scope->file->param_asts, name))->read = true;
        *v = *param;
        return true;
    }
    if (predefined(net, name, v))
        return true;
    BlockDef *block = scope_block(scope, name);
    if (block != NULL) {
        *v = (Val){.kind = VAL_BLOCK, .block = block};
        return true;
    }
    if (is_capital(name) && map_get(net->cx->symbols, name) != NULL) {
        *v = val_size(size_symbol(net->cx, name, 0));
        return true;
    }
    DType type = type_find(name);
    if (type != TYPE_NONE) {
        *v = (Val){.kind = VAL_TYPE, .type = type, .text = name};
        return true;
    }
    const OpDef *op = op_find(name);
    if (op != NULL)
        *v = (Val){.kind = VAL_OP, .op = op, .text = name};
    return op != NULL;
}

static bool word_in(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = words; p != NULL && *p != 0;) {
        p += strspn(p, " ");
        size_t length = strcspn(p, " ");
        if (length == n && strncmp(p, word, n) == 0)
            return true;
        p += length;
    }
    return false;
}

// A word that some attribute of some op knows may travel through params and arguments of blocks.
static bool word_known(const char *word)
{
    for (int i = 0; i < op_count(); i++)
        for (int k = 0; k < ATTRS_MAX && op_at(i)->attrs[k].name != NULL; k++)
            if (word_in(op_at(i)->attrs[k].words, word))
                return true;
    return strcmp(word, "in") == 0 || strcmp(word, "out") == 0;
}

static Val eval_name(Net *net, Scope *scope, Ast *ast)
{
    Val v = {0};
    Binding *b = scope_find(scope, ast->text);
    if (find_value(net, scope, ast->text, &v))
        return v;
    if ((b == NULL || b->ended == false) && b == NULL && word_known(ast->text))
        return (Val){.kind = VAL_WORD, .text = ast->text};
    if (b == NULL || b->ended)
        report_unknown(net, scope, ast, ast->text, "");
    return (Val){0};
}

Val eval_word(Net *net, Scope *scope, Ast *ast, const char *words)
{
    if (ast->kind == AST_NAME && word_in(words, ast->text))
        return (Val){.kind = VAL_WORD, .text = ast->text};
    Val v = {0};
    if (ast->kind == AST_NAME && words != NULL && words[0] != 0 && scope_find(scope, ast->text) == NULL &&
        !find_value(net, scope, ast->text, &v))
        return (Val){.kind = VAL_WORD, .text = ast->text};     // none of the words: whoever asked says which there are
    return eval(net, scope, ast);
}

// --- text -------------------------------------------------------------------------------------------------------------------

const char *eval_text(Net *net, Scope *scope, Ast *ast)
{
    if (ast->count == 0)
        return ast->text;
    Text text = {.arena = net->arena};
    text_put(&text, "", 0);
    for (int i = 0; i < ast->count; i++) {
        Ast *piece = ast->items[i];
        if (piece->kind == AST_STRING && piece->count == 0) {
            text_put(&text, piece->text, strlen(piece->text));
            continue;
        }
        Val v = eval(net, scope, piece);
        if (v.kind == VAL_NONE)
            return NULL;
        if (v.running && ast->kind == AST_PATH) {
            diag_report(net->cx->diag, piece->place, MESSAGE_E0307, "the name of a parameter", "the counter of a loop");
            diag_help(net->cx->diag, "a loop has one copy of its parameters; repeat makes one for each turn");
            note_frames(net);
            return NULL;
        }
        if (v.kind != VAL_NUMBER && v.kind != VAL_STRING && v.kind != VAL_WORD) {
            diag_report(net->cx->diag, piece->place, MESSAGE_E0311, "what stands in braces", "a number or a string", val_text(net, &v));
            note_frames(net);
            return NULL;
        }
        const char *shown = v.kind == VAL_NUMBER ? val_text(net, &v) : v.text;
        text_put(&text, shown, strlen(shown));
        if ((int64_t)text.length > diag_limit(net->cx->diag, LIMIT_net_text_bytes)) {
            diag_report_limit(net->cx->diag, ast->place, LIMIT_net_text_bytes, "this string");
            return NULL;
        }
    }
    return name_intern(net->cx->names, text.at, text.length);
}

// --- sizes and types -----------------------------------------------------------------------------------------------------

static Ast *inside(Ast *ast)
{
    while (ast->kind == AST_PAREN)
        ast = ast->a;
    return ast;
}

static bool has_symbols(Net *net, const Ast *ast)
{
    if (ast == NULL)
        return false;
    if (ast->kind == AST_NAME && is_capital(ast->text) && map_get(net->cx->symbols, ast->text) == NULL)
        return true;
    for (int i = 0; i < ast->count; i++)
        if (has_symbols(net, ast->items[i]))
            return true;
    return has_symbols(net, ast->a) || has_symbols(net, ast->b);
}

// Named sizes that are new here are made: in the type of an input or target only.
static void declare_symbols(Net *net, Scope *scope, Ast *ast)
{
    if (ast == NULL)
        return;
    if (ast->kind == AST_NAME && is_capital(ast->text) && scope_find(scope, ast->text) == NULL &&
        map_get(scope->file->params, ast->text) == NULL)
        size_symbol(net->cx, ast->text, 0);
    declare_symbols(net, scope, ast->a);
    declare_symbols(net, scope, ast->b);
    for (int i = 0; i < ast->count; i++)
        declare_symbols(net, scope, ast->items[i]);
}

static bool bounded_size(Net *net, Scope *scope, Ast *ast, Size *size)
{
    Val bound = eval(net, scope, ast->b);
    int64_t n;
    if (bound.kind == VAL_NONE)
        return false;
    if (ast->a->kind != AST_NAME || !is_capital(ast->a->text) || !val_is_whole(&bound, &n) || n < 1) {
        diag_report(net->cx->diag, ast->place, MESSAGE_E0311, "a bound", "a new size and a whole number, such as T <= 128", val_text(net, &bound));
        note_frames(net);
        return false;
    }
    *size = size_symbol(net->cx, ast->a->text, n);
    return true;
}

static void report_size(Net *net, const Ast *ast, const Val *v)
{
    Diag *diag = net->cx->diag;
    if (v->kind == VAL_NUMBER)
        diag_report(diag, ast->place, MESSAGE_E0306, "this", val_text(net, v));
    else
        diag_report(diag, ast->place, MESSAGE_E0311, "a size", "a whole number or a named size", val_text(net, v));
    note_frames(net);
}

bool eval_size(Net *net, Scope *scope, Ast *ast, bool declares, Size *size)
{
    ast = inside(ast);
    if (declares && ast->kind == AST_BINARY && strcmp(ast->text, "<=") == 0)
        return bounded_size(net, scope, ast, size);
    if (declares && has_symbols(net, ast))
        declare_symbols(net, scope, ast);
    Val v = {0};
    if (ast->kind == AST_NAME && !find_value(net, scope, ast->text, &v)) {
        report_unknown(net, scope, ast, ast->text, declares ? "A new size begins with a capital letter"
                                                            : "A size is named in the type of an input first");
        return false;
    }
    if (v.kind == VAL_NONE)
        v = eval(net, scope, ast);
    int64_t n;
    if (v.kind == VAL_NONE)
        return false;
    if (v.kind == VAL_SIZE)
        *size = v.size;
    else if (val_is_whole(&v, &n))
        *size = size_const(net->cx, n);
    else {
        report_size(net, ast, &v);
        return false;
    }
    return true;
}

static bool sizes_of(Net *net, Scope *scope, const Ast *ast, Ast **items, int count, bool declares, Shape *shape)
{
    if (count > diag_limit(net->cx->diag, LIMIT_graph_rank)) {
        diag_report_limit(net->cx->diag, ast->place, LIMIT_graph_rank, "this shape");
        return false;
    }
    bool good = true;
    shape->rank = count;
    for (int i = 0; i < count; i++) {
        if (items[i]->kind == AST_SPAN) {
            diag_report(net->cx->diag, items[i]->place, MESSAGE_E0311, "a size", "a whole number or a named size", "a range");
            good = false;
        } else {
            good &= eval_size(net, scope, items[i], declares, &shape->dim[i]);
        }
        int64_t n;
        if (good && size_known(shape->dim[i], &n) && n < 0) {
            diag_report(net->cx->diag, items[i]->place, MESSAGE_E0311, "a size", "at least 0", arena_printf(net->arena, "%lld", (long long)n));
            good = false;
        }
    }
    return good;
}

bool eval_shape(Net *net, Scope *scope, Ast *list, bool declares, Shape *shape)
{
    return sizes_of(net, scope, list, list->items, list->count, declares, shape);
}

static void report_type(Net *net, const Ast *ast, const char *name)
{
    const char *names[TYPE_COUNT];
    int count = 0;
    for (int t = TYPE_NONE + 1; t < TYPE_COUNT; t++)
        names[count++] = type_def((DType)t)->name;
    diag_report(net->cx->diag, ast->place, MESSAGE_E0316, name);
    diag_help_nearest(net->cx->diag, name, names, count);
}

bool eval_type(Net *net, Scope *scope, Ast *ast, Type *type)
{
    Ast *base = ast->kind == AST_INDEX ? ast->a : ast;
    DType dtype = base->kind == AST_NAME ? type_find(base->text) : TYPE_NONE;
    *type = (Type){.dtype = dtype};
    if (dtype == TYPE_NONE) {
        report_type(net, base, base->kind == AST_NAME ? base->text : "this");
        return false;
    }
    if (ast->kind == AST_INDEX && !sizes_of(net, scope, ast, ast->items, ast->count, true, &type->shape))
        return false;
    Size bytes = size_times(net->cx, shape_count(net->cx, &type->shape), size_const(net->cx, type_def(dtype)->bytes));
    if (size_valid(bytes))
        return true;
    diag_report(net->cx->diag, ast->place, MESSAGE_E0313, arena_printf(net->arena, "the size of %s", type_text(net->cx, type)));
    return false;
}

// `x: [N, 16, 5, 5] = …` and `x: f32[N, 3] = …`: what stands there must be so.
void check_declared(Net *net, Scope *scope, Ast *ast, const Val *val)
{
    Type type = {0};
    if (val->kind == VAL_NONE)
        return;
    bool typed = ast->kind != AST_LIST;
    if (!(typed ? eval_type(net, scope, ast, &type) : eval_shape(net, scope, ast, false, &type.shape)))
        return;
    if (val->kind != VAL_TENSOR) {
        diag_report(net->cx->diag, ast->place, MESSAGE_E0310, "a tensor", val_text(net, val));
        note_frames(net);
        return;
    }
    const Type *real = &val->tensor->type;
    if (shape_equal(&type.shape, &real->shape) && (!typed || type.dtype == real->dtype))
        return;
    if (!typed)
        type.dtype = real->dtype;
    diag_report(net->cx->diag, ast->place, MESSAGE_E0310, type_text(net->cx, &type), type_text(net->cx, real));
    note_frames(net);
}

// --- fields -----------------------------------------------------------------------------------------------------------------

static Val shape_list(Net *net, const Shape *shape)
{
    Val list = {.kind = VAL_LIST, .count = shape->rank, .items = NEW_ARRAY(net->arena, Val, shape->rank)};
    for (int i = 0; i < shape->rank; i++)
        list.items[i] = val_size(shape->dim[i]);
    return list;
}

static Val no_axis(Net *net, const Ast *ast, const char *needs, const Val *base)
{
    diag_report(net->cx->diag, ast->place, MESSAGE_E0311, arena_printf(net->arena, "what has .%s", ast->text), needs, val_text(net, base));
    return fail(net);
}

static Val eval_field(Net *net, Scope *scope, Ast *ast)
{
    Val base = eval(net, scope, ast->a);
    if (base.kind == VAL_NONE)
        return base;
    if (base.kind != VAL_TENSOR) {
        diag_report(net->cx->diag, ast->a->place, MESSAGE_E0311, arena_printf(net->arena, "what has .%s", ast->text), "a tensor", val_kind(&base));
        return fail(net);
    }
    const Shape *shape = &base.tensor->type.shape;
    const char *field = ast->text;
    if (strcmp(field, "shape") == 0)
        return shape_list(net, shape);
    if (strcmp(field, "batch") == 0)
        return shape->rank >= 1 ? val_size(shape->dim[0]) : no_axis(net, ast, "a tensor with axes", &base);
    if (strcmp(field, "channels") == 0)
        return shape->rank >= 2 ? val_size(shape->dim[1]) : no_axis(net, ast, "a tensor of rank 2 or more", &base);
    if (strcmp(field, "features") == 0)
        return shape->rank >= 1 ? val_size(shape->dim[shape->rank - 1]) : no_axis(net, ast, "a tensor with axes", &base);
    bool height = strcmp(field, "height") == 0;
    if (height || strcmp(field, "width") == 0)
        return shape->rank == 4 || (net->in_data && shape->rank == 3) ? val_size(shape->dim[shape->rank - (height ? 2 : 1)])
                                                                      : no_axis(net, ast, "a tensor of rank 4", &base);
    static const char *const fields[] = {"shape", "batch", "channels", "height", "width", "features"};
    diag_report(net->cx->diag, ast->name, MESSAGE_E0216, field);
    diag_help_nearest(net->cx->diag, field, fields, COUNT(fields));
    return fail(net);
}

// --- operators ----------------------------------------------------------------------------------------------------------------

typedef struct Operator { const char *sign, *op; } Operator;

static const Operator operators[] = {       // signs and the ops they are for tensors
    {"+", "add"}, {"-", "sub"}, {"*", "mul"}, {"/", "div"}, {"^", "pow"}, {"==", "equal"}, {"!=", "not_equal"}, {"<", "less"},
    {"<=", "less_equal"}, {">", "greater"}, {">=", "greater_equal"}, {"and", "and"}, {"or", "or"},
};

static const char *operator_op(const char *sign)
{
    for (int i = 0; i < COUNT(operators); i++)
        if (strcmp(operators[i].sign, sign) == 0)
            return operators[i].op;
    return NULL;
}

static Val eval_binary(Net *net, Scope *scope, Ast *ast)
{
    if (strcmp(ast->text, "then") == 0) {
        Val number;
        if (schedule_number(net, scope, ast, &number))
            return number;
        diag_report(net->cx->diag, ast->place, MESSAGE_E0119, "then", "a value; it chains schedules in train");
        return fail(net);
    }
    Val args[2] = {eval(net, scope, ast->a), eval(net, scope, ast->b)};
    if (args[0].kind == VAL_NONE || args[1].kind == VAL_NONE)
        return (Val){0};
    const char *op = operator_op(ast->text);
    if ((args[0].kind == VAL_TENSOR || args[1].kind == VAL_TENSOR) && op != NULL)
        return call_simple(net, scope, ast, op, args, 2, "");
    return val_binary(net, ast, ast->text, &args[0], &args[1]);
}

static Val eval_unary(Net *net, Scope *scope, Ast *ast)
{
    Val v = eval(net, scope, ast->a);
    bool minus = ast->text[0] == '-';
    if (v.kind == VAL_NONE)
        return v;
    if (v.kind == VAL_TENSOR)
        return call_simple(net, scope, ast, minus ? "neg" : "not", &v, 1, "");
    if (minus)
        return val_negate(net, ast, &v);
    if (v.kind == VAL_BOOL)
        return val_bool(!v.number.num);
    diag_report(net->cx->diag, ast->place, MESSAGE_E0311, "what stands after not", "a boolean", val_text(net, &v));
    return fail(net);
}

static Val eval_list(Net *net, Scope *scope, Ast *ast)
{
    Val list = {.kind = VAL_LIST, .count = ast->count, .items = list_new(net, ast, ast->count)};
    bool good = list.items != NULL;
    if (!good)
        return (Val){0};
    for (int i = 0; i < ast->count; i++) {
        list.items[i] = eval(net, scope, ast->items[i]);
        good &= list.items[i].kind != VAL_NONE;
    }
    return good ? list : (Val){0};
}

// --- list[i] -------------------------------------------------------------------------------------------------------------------

static Val list_at(Net *net, Scope *scope, Ast *ast, const Val *base, Ast *item)
{
    Val at = eval(net, scope, item);
    int64_t i;
    if (at.kind == VAL_NONE)
        return at;
    if (!val_is_whole(&at, &i)) {
        diag_report(net->cx->diag, item->place, MESSAGE_E0311, "the index of a list", "a whole number", val_text(net, &at));
        return fail(net);
    }
    if (at.running) {
        diag_report(net->cx->diag, item->place, MESSAGE_E0307, "the index of a list", "the counter of a loop");
        return fail(net);
    }
    if (i < -base->count || i >= base->count) {
        diag_report(net->cx->diag, ast->place, MESSAGE_E0312, i, (int64_t)base->count);
        return fail(net);
    }
    return base->items[i < 0 ? i + base->count : i];
}

static Val eval_index(Net *net, Scope *scope, Ast *ast)
{
    Val base = eval(net, scope, ast->a);
    if (base.kind == VAL_LIST && ast->count == 1 && ast->items[0]->kind != AST_SPAN)
        return list_at(net, scope, ast, &base, ast->items[0]);
    if (base.kind == VAL_TENSOR)
        return call_index(net, scope, ast, &base);
    if (base.kind != VAL_NONE) {
        diag_report(net->cx->diag, ast->place, MESSAGE_E0311, "what is indexed", "a tensor or a list", val_kind(&base));
        note_frames(net);
    }
    return (Val){0};
}

// --- calls ---------------------------------------------------------------------------------------------------------------------

static void report_no_op(Net *net, Scope *scope, const Ast *callee)
{
    LIST(const char *) names = {0};
    for (int i = 0; i < op_count(); i++)
        if (!(op_at(i)->traits & OP_INTERNAL))
            LIST_ADD(net->arena, names, op_at(i)->name);
    for (int i = 0; i < map_count(scope->file->blocks); i++)
        LIST_ADD(net->arena, names, map_key(scope->file->blocks, i));
    diag_report(net->cx->diag, callee->place, MESSAGE_E0201, callee->text);
    diag_help_nearest(net->cx->diag, callee->text, names.at, names.count);
    note_frames(net);
}

// An argument is evaluated once, to see whether the call is one of numbers; if it is not, the op's own reading of its
// arguments finds the value here.
static Val eval_once(Net *net, Scope *scope, Ast *ast)
{
    Val v = eval(net, scope, ast);
    LIST_ADD(net->arena, net->known, ((Known){ast, v}));
    return v;
}

static bool is_known(Net *net, const Ast *ast, Val *v)
{
    for (int i = net->known.count - 1; i >= 0; i--)
        if (net->known.at[i].ast == ast) {
            *v = net->known.at[i].val;
            net->known.at[i].ast = NULL;
            return true;
        }
    return false;
}

// floor(W / 4) of sizes: the quotient need not be whole.
static bool floor_of_sizes(Net *net, Scope *scope, Ast *call, Val *result)
{
    bool up = strcmp(call->a->text, "ceil") == 0;
    if ((!up && strcmp(call->a->text, "floor") != 0) || call->count != 1)
        return false;
    Ast *quotient = inside(call->items[0]);
    if (quotient->kind != AST_BINARY || quotient->text[0] != '/')
        return false;
    Val a = eval_once(net, scope, quotient->a), b = eval_once(net, scope, quotient->b);
    int64_t n;
    if (a.kind == VAL_NONE || b.kind == VAL_NONE) {
        *result = (Val){0};
        return true;
    }
    if (a.kind != VAL_SIZE || !val_is_whole(&b, &n) || n <= 0)
        return false;
    *result = val_size(up ? size_ceildiv(net->cx, a.size, n) : size_floordiv(net->cx, a.size, n));
    return true;
}

// A call of a function of numbers, where all arguments are numbers, sizes or lists.
static bool number_call(Net *net, Scope *scope, Ast *call, Val *result)
{
    const char *name = call->a->text;
    if (!val_function_known(name) || call->count < 1 || call->count > 2)
        return false;
    if (floor_of_sizes(net, scope, call, result))
        return true;
    Val args[2] = {{0}, {0}};
    for (int i = 0; i < call->count; i++) {
        if (call->items[i]->kind == AST_ARGUMENT)
            return false;
        args[i] = eval_once(net, scope, call->items[i]);
        if (args[i].kind == VAL_NONE) {
            *result = (Val){0};
            return true;
        }
        if (args[i].kind == VAL_TENSOR && !(i == 1 && strcmp(name, "append") == 0))
            return false;
    }
    return val_function(net, call, name, args, call->count, result);
}

// What a call's name means: a value bound to a block or op first (an argument of a block), then blocks, then ops.
static bool callee_of(Net *net, Scope *scope, Ast *callee, Val *what)
{
    Binding *b = scope_find(scope, callee->text);
    if (b != NULL && !b->ended && (b->val.kind == VAL_BLOCK || b->val.kind == VAL_OP)) {
        b->ast->read = true;
        *what = b->val;
        return true;
    }
    BlockDef *block = scope_block(scope, callee->text);
    const OpDef *op = op_find(callee->text);
    if (block != NULL)
        *what = (Val){.kind = VAL_BLOCK, .block = block};
    else if (op != NULL && !(op->traits & OP_INTERNAL))
        *what = (Val){.kind = VAL_OP, .op = op};
    else
        report_no_op(net, scope, callee);
    return what->kind != VAL_NONE;
}

static Val eval_any_call(Net *net, Scope *scope, Ast *call, const char *name)
{
    Val result = {0}, what = {0};
    if (call->a->kind != AST_NAME) {
        diag_report(net->cx->diag, call->a->place, MESSAGE_E0311, "what is called", "the name of an op or block", ast_kind_name(call->a->kind));
        return fail(net);
    }
    if (name == NULL && scope_block(scope, call->a->text) == NULL && number_call(net, scope, call, &result))
        return result;
    if (name == NULL && data_call(net, scope, call, call->a->text, &result))
        return result;
    if (name == NULL && schedule_number(net, scope, call, &result))
        return result;
    if (!callee_of(net, scope, call->a, &what)) {
        mark_read(scope, call);                 // no complaint about names that only this call reads
        return (Val){0};
    }
    return what.kind == VAL_BLOCK ? call_block(net, scope, call, what.block, name) : call_op(net, scope, call, what.op, name);
}

static Val eval_call(Net *net, Scope *scope, Ast *call, const char *name)
{
    int known = net->known.count;
    Val v = eval_any_call(net, scope, call, name);
    net->known.count = known;
    return v;
}

static Val eval_at(Net *net, Scope *scope, Ast *ast)
{
    Ast *call = inside(ast->a);
    if (call->kind != AST_CALL) {
        diag_report(net->cx->diag, ast->b->place, MESSAGE_E0410, ast_kind_name(call->kind));
        return fail(net);
    }
    const char *path = eval_text(net, scope, ast->b);
    return path != NULL ? eval_call(net, scope, call, path) : (Val){0};
}

static Val eval_path(Net *net, Scope *scope, Ast *ast)
{
    Value *v = param_known(net, scope, ast);
    return v != NULL ? val_tensor(v) : (Val){0};
}

static Val eval_kind(Net *net, Scope *scope, Ast *ast)
{
    switch (ast->kind) {
    case AST_NAME:     return eval_name(net, scope, ast);
    case AST_NUMBER:   return (Val){.kind = VAL_NUMBER, .number = *ast->number};
    case AST_PERCENT:  return (Val){.kind = VAL_NUMBER, .number = *ast->number, .percent = true};
    case AST_DURATION: return (Val){.kind = VAL_DURATION, .number = *ast->number, .text = ast->text};
    case AST_BOOLEAN:  return val_bool(ast->text[0] == 't');
    case AST_STRING: {
        const char *text = eval_text(net, scope, ast);
        return text != NULL ? (Val){.kind = VAL_STRING, .text = text} : (Val){0};
    }
    case AST_PATH:   return eval_path(net, scope, ast);
    case AST_LIST:   return eval_list(net, scope, ast);
    case AST_PAREN:  return eval(net, scope, ast->a);
    case AST_CALL:   return eval_call(net, scope, ast, NULL);
    case AST_INDEX:  return eval_index(net, scope, ast);
    case AST_FIELD:  return eval_field(net, scope, ast);
    case AST_AT:     return eval_at(net, scope, ast);
    case AST_UNARY:  return eval_unary(net, scope, ast);
    case AST_BINARY: return eval_binary(net, scope, ast);
    default:         BUG("%s is no expression", ast_kind_name(ast->kind));
    }
}

Val eval(Net *net, Scope *scope, Ast *ast)
{
    Val v = {0};
    if (net->known.count > 0 && is_known(net, ast, &v))
        return v;
    if (++net->depth > diag_limit(net->cx->diag, LIMIT_net_call_depth))
        diag_report_limit(net->cx->diag, ast->place, LIMIT_net_call_depth, "this expression");
    else
        v = eval_kind(net, scope, ast);
    net->depth--;
    return v;
}

bool eval_flag(Net *net, Scope *scope, Ast *ast, const char *what, bool *flag)
{
    net->deciding = what;
    Val v = eval(net, scope, ast);
    net->deciding = NULL;
    if (v.kind == VAL_NONE)
        return false;
    if (v.kind == VAL_BOOL && !v.running) {
        *flag = v.number.num != 0;
        return true;
    }
    if (v.kind == VAL_TENSOR || v.kind == VAL_SIZE || v.running)
        diag_report(net->cx->diag, ast->place, MESSAGE_E0307, what, v.kind == VAL_SIZE ? val_text(net, &v) : v.running ? "the counter of a loop" : "a tensor");
    else
        diag_report(net->cx->diag, ast->place, MESSAGE_E0311, what, "true or false", val_text(net, &v));
    note_frames(net);
    return false;
}
