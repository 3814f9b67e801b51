// build_param.c: what parameters are called, who shares them, how they are chosen by selectors, and how they start.
#include <stdlib.h>
#include <string.h>

#include "build.h"

// --- names ------------------------------------------------------------------------------------------------------------------

Layer *layer_new(Net *net, Layer *outer, const char *path, const char *kind)
{
    Layer *layer = NEW(net->arena, Layer);
    *layer = (Layer){.outer = outer, .path = path, .kind = kind, .counts = map_new(net->arena)};
    if (outer != NULL) {
        layer->depth = outer->depth + 1;
        layer->again = outer->again;
    }
    return layer;
}

// Joins two parts with a dot; "." and "" add nothing.
const char *path_join(Net *net, const char *outer, const char *inner)
{
    if (strcmp(inner, ".") == 0 || inner[0] == 0)
        return outer;
    return outer[0] == 0 ? inner : arena_printf(net->arena, "%s.%s", outer, inner);
}

const char *name_number(Net *net, Layer *layer, const char *kind)
{
    int *count = map_get(layer->counts, kind);
    if (count == NULL) {
        count = NEW(net->arena, int);
        map_set(layer->counts, kind, count);
    }
    return arena_printf(net->arena, "%s%d", kind, ++*count);
}

const char *layer_path(Net *net, Layer *layer)
{
    if (layer->path == NULL)
        layer->path = path_join(net, layer_path(net, layer->outer), name_number(net, layer->outer, layer->kind));
    return layer->path;
}

const char *layer_shown(const Layer *layer)
{
    while (layer->path == NULL)
        layer = layer->outer;
    return layer->path;
}

static bool beneath(const char *path, const char *whole)
{
    size_t n = strlen(whole);
    return strncmp(path, whole, n) == 0 && (path[n] == 0 || path[n] == '.' || n == 0);
}

static bool is_shared(const Layer *layer, const char *path)
{
    for (; layer != NULL; layer = layer->outer) {
        if (layer->again)
            return true;
        for (int i = 0; i < layer->shared.count; i++)
            if (beneath(path, layer->shared.at[i]))
                return true;
    }
    return false;
}

// The next turn of a loop runs the same calls again.
static bool in_later_turn(const Net *net, UsedName *used)
{
    for (const LoopRun *loop = net->loop; loop != NULL; loop = loop->outer)
        if (used->turn >= loop->first_turn && used->turn < loop->turn) {
            used->turn = net->turns;
            return true;
        }
    return false;
}

bool name_take(Net *net, Layer *layer, const char *path, const char *what, DiagPlace place, bool *again)
{
    UsedName *used = map_get(net->used, path);
    *again = used != NULL;
    if (used == NULL) {
        used = NEW(net->arena, UsedName);
        *used = (UsedName){what, place, net->turns};
        map_set(net->used, path, used);
        return true;
    }
    if (is_shared(layer, path) || in_later_turn(net, used))
        return true;
    diag_report(net->cx->diag, place, MESSAGE_E0401, path, used->what, diag_line(net->cx->diag, used->place));
    diag_help(net->cx->diag, "if the weights are meant to be shared: share @%s", path);
    note_frames(net);
    return false;
}

// --- parameters -------------------------------------------------------------------------------------------------------------

static void find_fans(Param *p)
{
    int64_t n[RANK_MAX], inner = 1;
    int rank = p->type.shape.rank;
    for (int i = 0; i < rank; i++)
        n[i] = size_value(p->type.shape.dim[i]);
    for (int i = 2; i < rank; i++)
        inner *= n[i];
    p->fan_in = rank >= 2 ? n[1] * inner : rank == 1 ? n[0] : 1;
    p->fan_out = rank >= 1 ? n[0] * inner : 1;
}

static Param *param_make(Net *net, const char *path, Type type, ParamRole role, const OpDef *op, const char *init, DiagPlace place)
{
    Param *p = NEW(net->arena, Param);
    *p = (Param){.path = name_intern(net->cx->names, path, strlen(path)), .type = type, .role = role, .op = op, .place = place};
    p->trainable = role != ROLE_BUFFER;
    p->train_only = net->in_train;
    find_fans(p);
    if (!init_parse(net, init, &p->init))
        BUG("the initialiser %s of %s", init, op != NULL ? op->name : path);
    map_set(net->params, p->path, p);
    LIST_ADD(net->arena, net->model->params, p);
    return p;
}

static bool sizes_known(const Type *type)
{
    int64_t n;
    for (int i = 0; i < type->shape.rank; i++)
        if (!size_known(type->shape.dim[i], &n))
            return false;
    return true;
}

Value *param_value(Net *net, const char *path, Type type, ParamRole role, const OpDef *op, const char *init, DiagPlace place)
{
    Diag *diag = net->cx->diag;
    Param *p = map_get(net->params, path);
    if (strlen(path) > (size_t)diag_limit(diag, LIMIT_graph_name_bytes)) {
        diag_report_limit(diag, place, LIMIT_graph_name_bytes, "this name");
        return NULL;
    }
    if (!sizes_known(&type)) {
        diag_report(diag, place, MESSAGE_E0311, "a parameter", "of sizes known when compiling", type_text(net->cx, &type));
        note_frames(net);
        return NULL;
    }
    Size bytes = size_times(net->cx, shape_count(net->cx, &type.shape), size_const(net->cx, type_def(type.dtype)->bytes));
    if (!size_valid(bytes) || size_value(bytes) > diag_limit(diag, LIMIT_net_param_bytes)) {
        diag_report_limit(diag, place, LIMIT_net_param_bytes, arena_printf(net->arena, "%s, %s,", path, type_text(net->cx, &type)));
        return NULL;
    }
    if (p == NULL)
        p = param_make(net, path, type, role, op, init, place);
    if (p->type.dtype != type.dtype || !shape_equal(&p->type.shape, &type.shape)) {
        diag_report(diag, place, MESSAGE_E0311, path, arena_printf(net->arena, "%s, as it is shared", type_text(net->cx, &p->type)), type_text(net->cx, &type));
        note_frames(net);
        return NULL;
    }
    return graph_param(net->graph, p);
}

Value *param_known(Net *net, Scope *scope, const Ast *ast)
{
    const char *path = eval_text(net, scope, (Ast *)ast);
    if (path == NULL)
        return NULL;
    const char *full = path_join(net, layer_path(net, scope->layer), path);
    Param *p = map_get(net->params, full);
    if (p != NULL)
        return graph_param(net->graph, p);
    if (net->cx->diag->errors > 0)              // what should have made it may be what failed
        return NULL;
    LIST(const char *) names = {0};
    for (int i = 0; i < map_count(net->params); i++)
        LIST_ADD(net->arena, names, map_key(net->params, i));
    diag_report(net->cx->diag, ast->place, MESSAGE_E0402, full);
    const char *near = name_nearest(full, names.at, names.count);
    if (near != NULL)
        diag_help(net->cx->diag, "did you mean @%s (line %d)?", near,
                  diag_line(net->cx->diag, ((Param *)map_get(net->params, near))->place));
    note_frames(net);
    return NULL;
}

// --- selectors --------------------------------------------------------------------------------------------------------------

// Does `pattern` with * (any characters) match the whole of `text`? Goes back to the last * only: linear in practice.
static bool matches(const char *pattern, const char *text)
{
    const char *star = NULL, *from = NULL;
    while (*text != 0) {
        if (*pattern == '*') {
            star = pattern++;
            from = text;
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star != NULL) {
            pattern = star + 1;
            text = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == 0;
}

static const char *last_part(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot != NULL ? dot + 1 : path;
}

typedef enum SelectorKind { BY_NOTHING, BY_PATH, BY_NORMS, BY_BIASES, BY_OP } SelectorKind;

typedef struct Selector {
    SelectorKind kind;
    const char *path, *below;   // BY_PATH: the whole pattern, and the same for all beneath it
    const OpDef *op;            // BY_OP
    const char *part;           // "weight" of conv.weight, or NULL
} Selector;

static Selector selector_of(Net *net, Scope *scope, Ast *ast, const char *prefix)
{
    Selector s = {BY_NOTHING, NULL, NULL, NULL, NULL};
    const char *path = ast->kind == AST_PATH ? eval_text(net, scope, ast) : NULL;
    bool field = ast->kind == AST_FIELD && ast->a->kind == AST_NAME;
    const char *name = ast->kind == AST_NAME ? ast->text : field ? ast->a->text : "";
    if (path != NULL) {
        s.kind = BY_PATH;
        s.path = path_join(net, prefix, path);
        s.below = arena_printf(net->arena, "%s.*", s.path);
    } else if (strcmp(name, "norms") == 0 || strcmp(name, "biases") == 0) {
        s.kind = name[0] == 'n' ? BY_NORMS : BY_BIASES;
    } else if ((s.op = op_find(name)) != NULL) {
        s.kind = BY_OP;
        s.part = field ? ast->text : NULL;
    }
    return s;
}

static bool selects(const Selector *s, const char *prefix, const Param *p, bool buffers)
{
    bool bias = strcmp(last_part(p->path), "bias") == 0;
    if (p->role == ROLE_BUFFER && !(buffers && s->kind == BY_PATH))
        return false;
    if (s->kind == BY_PATH)
        return matches(s->path, p->path) || matches(s->below, p->path);
    if (!beneath(p->path, prefix))
        return false;
    return s->kind == BY_NORMS ? p->role == ROLE_NORM
         : s->kind == BY_BIASES ? p->role == ROLE_BIAS || (p->role == ROLE_NORM && bias)
         : p->op == s->op && (s->part == NULL || strcmp(last_part(p->path), s->part) == 0);
}

static const char *selector_shown(Net *net, const Ast *s)
{
    const DiagSource *source = &net->cx->diag->sources.at[s->place.source - 1];
    return arena_string(net->arena, source->bytes + s->place.from, (size_t)(s->place.to - s->place.from));
}

static void report_no_match(Net *net, Scope *scope, Ast *selector)
{
    Diag *diag = net->cx->diag;
    LIST(const char *) names = {0};
    if (diag->errors > 0)                       // parameters may be missing because their call failed
        return;
    for (int i = 0; i < map_count(net->params); i++) {
        const char *path = map_key(net->params, i);
        for (const char *dot = path; (dot = strchr(dot, '.')) != NULL; dot++)
            LIST_ADD(net->arena, names, arena_string(net->arena, path, (size_t)(dot - path)));
        LIST_ADD(net->arena, names, path);
    }
    diag_report(diag, selector->place, MESSAGE_E0403, selector_shown(net, selector), map_count(net->params));
    const char *path = selector->kind == AST_PATH ? eval_text(net, scope, selector) : NULL;
    if (path != NULL) {
        size_t length = strlen(path);
        bool star = length > 2 && strcmp(path + length - 2, ".*") == 0;
        const char *near = name_nearest(star ? arena_string(net->arena, path, length - 2) : path, names.at, names.count);
        if (near != NULL)
            diag_help(diag, star ? "did you mean @%s.*?" : "did you mean @%s?", near);
    }
    note_frames(net);
}

int select_params(Net *net, Scope *scope, Ast *ast, const char *prefix, Param **out)
{
    return select_named(net, scope, ast, prefix, false, out);
}

int select_named(Net *net, Scope *scope, Ast *ast, const char *prefix, bool buffers, Param **out)
{
    int count = 0, errors = net->cx->diag->errors;
    Selector s = selector_of(net, scope, ast, prefix);
    for (int i = 0; i < net->model->params.count && s.kind != BY_NOTHING; i++)
        if (selects(&s, prefix, net->model->params.at[i], buffers))
            out[count++] = net->model->params.at[i];
    if (s.kind == BY_NOTHING && net->cx->diag->errors == errors) {
        diag_report(net->cx->diag, ast->place, MESSAGE_E0414);
        note_frames(net);
    } else if (s.kind != BY_NOTHING && count == 0) {
        report_no_match(net, scope, ast);
    }
    return count;
}

// --- initialisers -------------------------------------------------------------------------------------------------------------

static void init_defaults(const InitialiserDef *def, Init *init)
{
    *init = (Init){.name = def->name};
    for (int i = 0; i < def->n_args; i++)
        init->number[i] = def->arg[i].initial;
}

static int arg_index(const RecipeArg *args, int count, const char *name, size_t length)
{
    for (int i = 0; i < count; i++)
        if (strlen(args[i].name) == length && strncmp(args[i].name, name, length) == 0)
            return i;
    return -1;
}

// "kaiming_uniform(a = 2.236)" as rows of ops write it.
bool init_parse(Net *net, const char *text, Init *init)
{
    size_t n = strcspn(text, "( ");
    const InitialiserDef *def = initialiser_find(arena_string(net->arena, text, n));
    if (def == NULL)
        return false;
    init_defaults(def, init);
    const char *at = text + n + strspn(text + n, "( ");
    for (int place = 0; *at != 0 && *at != ')'; place++) {
        const char *equals = strchr(at, '=');
        size_t length = strcspn(at, " =,)");
        bool named = equals != NULL && equals < at + strcspn(at, ",)");
        int i = named ? arg_index(def->arg, def->n_args, at, length) : place;
        const char *value = named ? equals + 1 + strspn(equals + 1, " ") : at;
        if (named && length == 3 && strncmp(at, "fan", 3) == 0)
            init->fan_out = strncmp(value, "out", 3) == 0;
        else if (i >= 0 && i < def->n_args)
            init->number[i] = strtod(value, NULL);
        else
            return false;
        at += strcspn(at, ",)");
        at += strspn(at, ", ");
    }
    return true;
}

static bool init_argument(Net *net, Scope *scope, Ast *arg, const InitialiserDef *def, int place, Init *init)
{
    bool named = arg->kind == AST_ARGUMENT;
    Ast *value = named ? arg->a : arg;
    if (named && strcmp(arg->text, "fan") == 0 && value->kind == AST_NAME &&
        (strcmp(value->text, "out") == 0 || strcmp(value->text, "in") == 0)) {
        init->fan_out = value->text[0] == 'o';
        return true;
    }
    int i = named ? arg_index(def->arg, def->n_args, arg->text, strlen(arg->text)) : place;
    if (i < 0 || i >= def->n_args) {
        const char *names[4] = {"fan"};
        for (int k = 0; k < def->n_args; k++)
            names[k + 1] = def->arg[k].name;
        diag_report(net->cx->diag, arg->place, MESSAGE_E0202, def->name, named ? arg->text : "there");
        if (named)
            diag_help_nearest(net->cx->diag, arg->text, names, def->n_args + 1);
        note_frames(net);
        return false;
    }
    Val v = eval(net, scope, value);
    if (v.kind != VAL_NUMBER) {
        if (v.kind != VAL_NONE) {
            diag_report(net->cx->diag, value->place, MESSAGE_E0311, def->arg[i].name, "a number", val_text(net, &v));
            note_frames(net);
        }
        return false;
    }
    init->number[i] = v.number.real;
    return true;
}

bool init_eval(Net *net, Scope *scope, Ast *ast, Init *init)
{
    Ast *name = ast->kind == AST_CALL ? ast->a : ast;
    const InitialiserDef *def = name->kind == AST_NAME ? initialiser_find(name->text) : NULL;
    if (def == NULL) {
        const char *names[64];
        int count = 0;
        while (count < 64 && initialiser_at(count) != NULL) {
            names[count] = initialiser_at(count)->name;
            count++;
        }
        diag_report(net->cx->diag, name->place, MESSAGE_E0411, name->kind == AST_NAME ? name->text : ast_kind_name(name->kind));
        if (name->kind == AST_NAME)
            diag_help_nearest(net->cx->diag, name->text, names, count);
        note_frames(net);
        return false;
    }
    init_defaults(def, init);
    bool good = true;
    for (int i = 0; ast->kind == AST_CALL && i < ast->count; i++)
        good &= init_argument(net, scope, ast->items[i], def, i, init);
    return good;
}

// The outer scope wins over the inner, later over earlier.
static bool wins(const InitRule *a, const InitRule *b) { return b == NULL || a->layer->depth <= b->layer->depth; }

void inits_apply(Net *net)
{
    const InitRule **chosen = NEW_ARRAY(net->arena, const InitRule *, net->model->params.count);
    Param **selected = NEW_ARRAY(net->arena, Param *, net->model->params.count);
    Map *index = map_new(net->arena);
    for (int i = 0; i < net->model->params.count; i++)
        map_set(index, net->model->params.at[i]->path, (void *)(chosen + i));
    for (int r = 0; r < net->inits.count; r++) {
        const InitRule *rule = &net->inits.at[r];
        Scope *scope = scope_new(net, SCOPE_BLOCK, NULL, net->main, rule->layer);
        for (int s = 0; s < rule->count; s++) {
            int count = select_params(net, scope, rule->selectors[s], rule->prefix, selected);
            for (int k = 0; k < count; k++) {
                const InitRule **slot = map_get(index, selected[k]->path);
                if (wins(rule, *slot))
                    *slot = rule;
            }
        }
    }
    for (int i = 0; i < net->model->params.count; i++)
        if (chosen[i] != NULL)
            net->model->params.at[i]->init = chosen[i]->init;
}
