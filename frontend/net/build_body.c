// build_body.c: statements. `if` and `repeat` are written out, blocks are run with their arguments bound, a net called by
// its name is run with its inputs bound to what it is given.
#include <string.h>

#include "build.h"
#include "train.h"

void refuse(Net *net, const Ast *ast, const char *what, const char *instead)
{
    diag_report(net->cx->diag, ast->place, MESSAGE_E0901, what);
    if (instead[0] != 0)
        diag_help(net->cx->diag, "%s", instead);
    note_frames(net);
}

// What is not carried out yet is named once, wherever it stands.
static void add_later(Net *net, const Ast *ast, const char *what, const char *instead, bool training)
{
    Model *model = net->model;
    for (int i = 0; i < model->later.count; i++)
        if (strcmp(model->later.at[i].what, what) == 0) {
            model->later.at[i].training &= training;
            return;
        }
    LIST_ADD(net->arena, model->later, ((Later){what, instead, ast->place, training}));
}

void later(Net *net, const Ast *ast, const char *what, const char *instead)
{
    add_later(net, ast, what, instead, net->in_train || net->in_data);
}

void later_training(Net *net, const Ast *ast, const char *what, const char *instead) { add_later(net, ast, what, instead, true); }

bool count_statement(Net *net, const Ast *s)
{
    if (++net->statements <= diag_limit(net->cx->diag, LIMIT_net_statements))
        return true;
    diag_report_limit(net->cx->diag, s->place, LIMIT_net_statements, "what `repeat` and blocks write out");
    return false;
}

// --- binding ------------------------------------------------------------------------------------------------------------------

static void name_value(Val *v, const char *name)
{
    if (v->kind == VAL_TENSOR && v->tensor->kind == VALUE_RESULT && strcmp(name, "_") != 0)
        v->tensor->name = name;
}

static void wrong_count(Net *net, const Ast *s, const Val *val, int names)
{
    bool op = val->kind == VAL_TUPLE && val->op != NULL;
    const char *what = op ? val->op->name : val->kind == VAL_TUPLE ? val->text : "this";
    diag_report(net->cx->diag, s->place, MESSAGE_E0407, what, count_text(net, val->kind == VAL_TUPLE ? val->count : 1), names);
    note_frames(net);
}

void bind_names(Net *net, Scope *scope, Ast *s, Ast **names, int count, const Val *val, const char *fixed)
{
    bool op = val->kind == VAL_TUPLE && val->op != NULL;
    bool fits = val->kind != VAL_TUPLE ? count == 1 : op ? count <= val->count : count == val->count;
    if (!fits && val->kind != VAL_NONE)
        wrong_count(net, s, val, count);
    for (int i = 0; i < count; i++) {
        Val v = !fits || val->kind == VAL_NONE ? (Val){0} : val->kind == VAL_TUPLE ? val->items[i] : *val;
        if (fits && s->b != NULL && s->b->kind != AST_NAME)
            name_value(&v, names[i]->text);
        scope_bind(net, scope, names[i], names[i]->text, v, fixed);
    }
}

static void run_assign(Net *net, Scope *scope, Ast *s)
{
    if (s->body != NULL || s->other_count > 0) {
        diag_report(net->cx->diag, s->place, MESSAGE_E0119, "an assignment with braces or for", "the net; it belongs to the optimizer in train");
        return;
    }
    Val v = eval(net, scope, s->b);
    if (s->a != NULL)
        check_declared(net, scope, s->a, &v);
    bind_names(net, scope, s, s->items, s->count, &v, NULL);
}

// --- if and repeat ------------------------------------------------------------------------------------------------------------

static bool binds(const Ast *body, const char *name)
{
    for (int i = 0; body != NULL && i < body->count; i++) {
        const Ast *s = body->items[i];
        for (int k = 0; s->kind == AST_ASSIGN && k < s->count; k++)
            if (s->items[k]->kind == AST_NAME && strcmp(s->items[k]->text, name) == 0)
                return true;
        if (s->kind == AST_IF && binds(s->body, name) && binds(s->otherwise, name))
            return true;
    }
    return false;
}

static void end_name(Net *net, Scope *scope, Ast *ast, const char *name, const char *what, int line)
{
    if (map_get(scope->names, name) != NULL)
        return;
    Binding *b = NEW(net->arena, Binding);
    *b = (Binding){.ast = ast, .ended = true, .what = what, .line = line};
    map_set(scope->names, name, b);
}

// Names that a branch which is not taken would bind have ended too.
static void end_untaken(Net *net, Scope *scope, const Ast *body, const char *what, int line)
{
    for (int i = 0; body != NULL && i < body->count; i++)
        for (int k = 0; body->items[i]->kind == AST_ASSIGN && k < body->items[i]->count; k++)
            if (body->items[i]->items[k]->kind == AST_NAME)
                end_name(net, scope, body->items[i]->items[k], body->items[i]->items[k]->text, what, line);
}

void end_branch(Net *net, Scope *scope, const Scope *branch, const Ast *other, const char *what, int line)
{
    for (int i = 0; i < map_count(branch->names); i++) {
        const char *name = map_key(branch->names, i);
        Binding *b = map_value(branch->names, i);
        if (b->ended)
            continue;
        if (other != NULL && binds(other, name)) {
            scope_bind(net, scope, b->ast, name, b->val, NULL);
        } else {
            end_name(net, scope, b->ast, name, what, line);
        }
    }
}

static void run_if(Net *net, Scope *scope, Ast *s)
{
    bool flag;
    int line = diag_line(net->cx->diag, s->place);
    if (!eval_flag(net, scope, s->a, "an if", &flag))
        return;
    Ast *taken = flag ? s->body : s->otherwise, *other = flag ? s->otherwise : s->body;
    mark_read(scope, other);
    Scope *branch = scope_new(net, SCOPE_BRANCH, scope, scope->file, scope->layer);
    if (taken != NULL)
        run_body(net, branch, taken);
    end_branch(net, scope, branch, other, "if", line);
    end_untaken(net, scope, other, "if", line);
}

static bool bind_turn(Net *net, Scope *turn, Ast *s, const Val *item)
{
    bool apart = s->count > 1;
    if (apart && (item->kind != VAL_LIST || item->count != s->count)) {
        diag_report(net->cx->diag, s->a->place, MESSAGE_E0407, val_text(net, item), count_text(net, item->kind == VAL_LIST ? item->count : 1), s->count);
        note_frames(net);
        return false;
    }
    for (int i = 0; i < s->count; i++) {
        s->items[i]->read = true;               // counters need not be read
        Binding *b = NEW(net->arena, Binding);
        *b = (Binding){.val = apart ? item->items[i] : *item, .ast = s->items[i]};
        map_set(turn->names, s->items[i]->text, b);
    }
    return true;
}

static void run_repeat(Net *net, Scope *scope, Ast *s)
{
    Val list = eval(net, scope, s->a);
    int line = diag_line(net->cx->diag, s->place), errors = net->cx->diag->errors;
    if (list.kind == VAL_NONE)
        return;
    if (list.kind == VAL_TENSOR || list.kind == VAL_SIZE || list.running) {
        diag_report(net->cx->diag, s->a->place, MESSAGE_E0307, "a repeat", list.kind == VAL_SIZE ? val_text(net, &list) : list.running ? "the counter of a loop" : "a tensor");
        diag_help(net->cx->diag, "repeat is written out when compiling; its count must be a number");
        note_frames(net);
        return;
    }
    if (list.kind != VAL_LIST) {
        diag_report(net->cx->diag, s->a->place, MESSAGE_E0311, "what repeat goes through", "a list or a range", val_text(net, &list));
        note_frames(net);
        return;
    }
    if (list.count == 0)
        mark_read(scope, s->body);
    for (int i = 0; i < list.count && net->cx->diag->errors == errors; i++) {
        Scope *turn = scope_new(net, SCOPE_BRANCH, scope, scope->file, scope->layer);
        if (!count_statement(net, s) || !bind_turn(net, turn, s, &list.items[i]))
            return;
        run_body(net, turn, s->body);
        end_branch(net, scope, turn, NULL, "repeat", line);
    }
}

// --- inputs and outputs ---------------------------------------------------------------------------------------------------------

static void mark_batch(Net *net, const Type *type)
{
    const Symbol *symbol[1];
    if (net->graph->inputs.count == 1 && type->shape.rank > 0 && size_symbols(type->shape.dim[0], symbol, 1) == 1)
        ((Symbol *)map_get(net->cx->symbols, symbol[0]->name))->batch = true;
}

// Sizes of a called net become what stands in its arguments.
static bool unify_size(Net *net, Scope *scope, Ast *item, Size given)
{
    Size size;
    int64_t bound, most;
    bool bounded = item->kind == AST_BINARY && strcmp(item->text, "<=") == 0;
    Ast *name = bounded ? item->a : item;
    if (name->kind == AST_NAME && name->text[0] >= 'A' && name->text[0] <= 'Z' && map_get(scope->names, name->text) == NULL &&
        map_get(scope->file->params, name->text) == NULL) {
        Binding *b = NEW(net->arena, Binding);
        *b = (Binding){.val = val_size(given), .ast = name};
        map_set(scope->names, name->text, b);
        Val limit = bounded ? eval(net, scope, item->b) : (Val){0};
        return !bounded || (val_is_whole(&limit, &bound) && size_upper(given, &most) && most <= bound);
    }
    return eval_size(net, scope, name, false, &size) && size_equal(size, given);
}

static void take_argument(Net *net, Scope *scope, Ast *s)
{
    NetCall *inner = net->inner;
    if (inner->next >= inner->n_args)
        return;
    Val v = inner->args[inner->next++];
    Ast *type = s->a->kind == AST_INDEX ? s->a->a : s->a;
    DType dtype = type->kind == AST_NAME ? type_find(type->text) : TYPE_NONE;
    Value *t = as_tensor(net, scope, inner->ast, &v, dtype);
    bool fits = t != NULL && t->type.dtype == dtype && t->type.shape.rank == (s->a->kind == AST_INDEX ? s->a->count : 0);
    for (int i = 0; fits && i < t->type.shape.rank; i++)
        fits = unify_size(net, scope, s->a->items[i], t->type.shape.dim[i]);
    if (t != NULL && !fits) {
        diag_report(net->cx->diag, inner->ast->place, MESSAGE_E0311, arena_printf(net->arena, "input %s", s->text), "as the net declares it",
                    type_text(net->cx, &t->type));
        note_frames(net);
    }
    scope_bind(net, scope, s, s->text, fits ? val_tensor(t) : (Val){0}, "an input");
}

static void run_input(Net *net, Scope *scope, Ast *s)
{
    Type type;
    if (scope_find(scope, s->text) != NULL) {
        diag_report(net->cx->diag, s->name, MESSAGE_E0207, s->text, diag_line(net->cx->diag, scope_find(scope, s->text)->ast->place));
        return;
    }
    if (net->inner != NULL) {
        take_argument(net, scope, s);
        return;
    }
    Val v = {0};
    if (eval_type(net, scope, s->a, &type)) {
        v = val_tensor(graph_input(net->graph, s->text, type, s->place));
        mark_batch(net, &type);
    }
    scope_bind(net, scope, s, s->text, v, "an input");
}

static void add_output(Net *net, const Ast *ast, const char *name, const Val *v)
{
    if (v->kind == VAL_NONE)
        return;
    Val single = v->kind == VAL_TUPLE && v->op != NULL ? v->items[0] : *v;
    if (net->inner != NULL) {
        LIST_ADD(net->arena, net->inner->results, single);
        return;
    }
    Value *t = as_tensor(net, NULL, ast, &single, TYPE_f32);
    if (t == NULL)
        return;
    for (int i = 0; i < net->graph->outputs.count; i++)
        if (strcmp(net->graph->outputs.at[i].name, name) == 0) {
            diag_report(net->cx->diag, ast->place, MESSAGE_E0512, arena_printf(net->arena, "output %s", name));
            return;
        }
    LIST_ADD(net->arena, net->graph->outputs, ((NamedValue){.name = name, .value = t}));
}

static void run_output(Net *net, Scope *scope, Ast *s)
{
    if (s->b != NULL) {
        Val v = eval(net, scope, s->b);
        if (s->a != NULL)
            check_declared(net, scope, s->a, &v);
        bind_names(net, scope, s, s->items, s->count, &v, "an output");
    }
    for (int i = 0; i < s->count; i++) {
        Val v = eval(net, scope, s->items[i]);
        add_output(net, s->items[i], s->items[i]->text, &v);
        Binding *b = scope_find(scope, s->items[i]->text);
        if (b != NULL && !b->ended)
            b->fixed = "an output";
    }
}

// --- parameters of one's own, sharing, initialisers -----------------------------------------------------------------------------

static void run_weight(Net *net, Scope *scope, Ast *s)
{
    Type type;
    Init init;
    bool again;
    const char *path = path_join(net, layer_path(net, scope->layer), s->text);
    Val v = {0};
    bool good = eval_type(net, scope, s->a, &type);
    good &= init_eval(net, scope, s->b, &init);
    if (good && name_take(net, scope->layer, path, "weight", s->name, &again)) {
        Value *value = param_value(net, path, type, ROLE_WEIGHT, NULL, "zeros", s->place);
        if (value != NULL) {
            value->param->init = init;
            v = val_tensor(value);
        }
    }
    scope_bind(net, scope, s, s->text, v, NULL);
}

static void run_share(Net *net, Scope *scope, Ast *s)
{
    for (int i = 0; i < s->count; i++) {
        if (s->items[i]->kind != AST_PATH) {
            diag_report(net->cx->diag, s->items[i]->place, MESSAGE_E0311, "what is shared", "a path such as @encoder", ast_kind_name(s->items[i]->kind));
            continue;
        }
        const char *path = eval_text(net, scope, s->items[i]);
        if (path != NULL)
            LIST_ADD(net->arena, scope->layer->shared, path_join(net, layer_path(net, scope->layer), path));
    }
}

// A selector whose braces are replaced: rules are applied at the end, when loop variables are gone.
Ast *settled(Net *net, Scope *scope, Ast *selector)
{
    if (selector->kind != AST_PATH || selector->count == 0)
        return selector;
    const char *text = eval_text(net, scope, selector);
    if (text == NULL)
        return NULL;
    Ast *copy = arena_copy(net->arena, selector, sizeof *selector);
    copy->text = text;
    copy->count = 0;
    return copy;
}

static void run_init(Net *net, Scope *scope, Ast *s)
{
    InitRule rule = {.layer = scope->layer, .prefix = layer_path(net, scope->layer), .count = s->count, .place = s->place};
    rule.selectors = NEW_ARRAY(net->arena, Ast *, s->count);
    for (int i = 0; i < s->count; i++)
        if ((rule.selectors[i] = settled(net, scope, s->items[i])) == NULL)
            return;
    if (init_eval(net, scope, s->a, &rule.init))
        LIST_ADD(net->arena, net->inits, rule);
}

// --- the rest of the net --------------------------------------------------------------------------------------------------------

static void run_require(Net *net, Scope *scope, Ast *s)
{
    bool flag;
    if (!eval_flag(net, scope, s->a, "a requirement", &flag) || flag)
        return;
    const char *text = eval_text(net, scope, s->b);
    int n = net->frames.count;
    diag_report(net->cx->diag, n > 0 ? net->frames.at[n - 1].place : s->place, MESSAGE_E0409, text != NULL ? text : "");
    if (n > 0)
        diag_note(net->cx->diag, s->place, "it is required");
}

static void run_auxiliary(Net *net, Scope *scope, Ast *s)
{
    Val v = eval(net, scope, s->a);
    if (v.kind == VAL_NONE || !net->training || net->inner != NULL)
        return;
    Value *t = as_tensor(net, scope, s->a, &v, TYPE_f32);
    if (t != NULL && t->type.shape.rank != 0)
        diag_report(net->cx->diag, s->a->place, MESSAGE_E0305, type_text(net->cx, &t->type));
    else if (t != NULL)
        LIST_ADD(net->arena, net->graph->auxiliary, ((NamedValue){.name = s->text, .value = t}));
}

static void labels_from_list(Net *net, const Ast *ast, const Val *v, Labels *labels)
{
    labels->count = v->count;
    labels->names = NEW_ARRAY(net->arena, const char *, v->count);
    for (int i = 0; i < v->count; i++) {
        labels->names[i] = v->items[i].kind == VAL_STRING ? v->items[i].text : val_text(net, &v->items[i]);
        if (v->items[i].kind != VAL_STRING)
            diag_report(net->cx->diag, ast->place, MESSAGE_E0311, "a label", "a string", val_text(net, &v->items[i]));
    }
}

// One label a line; blanks at the ends of lines and an empty last line do not count.
static void labels_from_file(Net *net, Scope *scope, const Ast *ast, const char *name, Labels *labels)
{
    const char *path = path_beside(net, scope->file, ast, name), *bytes = NULL, *why = "";
    int length = 0;
    LIST(const char *) names = {0};
    if (path == NULL)
        return;
    if (!net->options->load(net->options->user, path, &bytes, &length, &why)) {
        diag_report(net->cx->diag, ast->place, MESSAGE_E0701, path, why);
        return;
    }
    for (int i = 0; i < length;) {
        int end = i, next;
        while (end < length && bytes[end] != '\n')
            end++;
        next = end + 1;
        while (end > i && strchr(" \t\r", bytes[end - 1]) != NULL && bytes[end - 1] != 0)
            end--;
        LIST_ADD(net->arena, names, diag_escape(net->arena, bytes + i, (size_t)(end - i)));
        i = next;
    }
    labels->names = names.at;
    labels->count = names.count;
    if (names.count > diag_limit(net->cx->diag, LIMIT_net_list_length))
        diag_report_limit(net->cx->diag, ast->place, LIMIT_net_list_length, "this list of labels");
}

static bool is_file_name(const char *text)
{
    size_t n = strlen(text);
    return n > 4 && strcmp(text + n - 4, ".txt") == 0;
}

// Any other string gives a label for each of its characters.
static void labels_from_letters(Net *net, const char *text, Labels *labels)
{
    LIST(const char *) names = {0};
    for (const char *p = text; *p != 0;) {
        uint32_t code;
        int n = diag_utf8(p, (int)strlen(p), &code);
        LIST_ADD(net->arena, names, diag_escape(net->arena, p, (size_t)n));
        p += n;
    }
    labels->names = names.at;
    labels->count = names.count;
}

static void run_labels(Net *net, Scope *scope, Ast *s)
{
    Labels labels = {.output = s->text};
    Val v = eval(net, scope, s->a);
    if (scope_find(scope, s->text) == NULL)
        report_unknown(net, scope, s, s->text, "");
    if (v.kind == VAL_NONE || !net->first || net->inner != NULL)
        return;
    if (v.kind == VAL_LIST)
        labels_from_list(net, s->a, &v, &labels);
    else if (v.kind == VAL_STRING && is_file_name(v.text))
        labels_from_file(net, scope, s->a, v.text, &labels);
    else if (v.kind == VAL_STRING)
        labels_from_letters(net, v.text, &labels);
    else
        diag_report(net->cx->diag, s->a->place, MESSAGE_E0311, "labels", "a list of strings or the name of a file", val_text(net, &v));
    LIST_ADD(net->arena, net->model->labels, labels);
}

void run_statement(Net *net, Scope *scope, Ast *s)
{
    if (!count_statement(net, s) || diag_full(net->cx->diag))
        return;
    ScopeKind section = scope_section(scope);
    if ((section == SCOPE_TRAIN && train_statement(net, scope, s)) || (section == SCOPE_DATA && data_statement(net, scope, s)))
        return;
    switch (s->kind) {
    case AST_ASSIGN:    run_assign(net, scope, s); break;
    case AST_IF:        run_if(net, scope, s); break;
    case AST_REPEAT:    run_repeat(net, scope, s); break;
    case AST_INPUT:     run_input(net, scope, s); break;
    case AST_OUTPUT:    run_output(net, scope, s); break;
    case AST_WEIGHT:    run_weight(net, scope, s); break;
    case AST_SHARE:     run_share(net, scope, s); break;
    case AST_INIT:      run_init(net, scope, s); break;
    case AST_REQUIRE:   run_require(net, scope, s); break;
    case AST_AUXILIARY: run_auxiliary(net, scope, s); break;
    case AST_LABELS:    run_labels(net, scope, s); break;
    case AST_WEIGHTS:   run_weights(net, scope, s); break;
    case AST_LOOP:      run_loop(net, scope, s); break;
    case AST_COLLECT:   run_collect(net, scope, s); break;
    case AST_VALUE:     diag_report(net->cx->diag, s->place, MESSAGE_E0408); note_frames(net); break;
    default:            break;                  // net, import, param, block: read before; train, generate, data: afterwards
    }
}

// Statements after a limit was passed are not run: the report stands.
void run_body(Net *net, Scope *scope, Ast *body)
{
    for (int i = 0; i < body->count; i++) {
        if (net->statements > diag_limit(net->cx->diag, LIMIT_net_statements))
            return;
        run_statement(net, scope, body->items[i]);
    }
}

void run_file(Net *net, Scope *scope, SourceFile *file) { run_body(net, scope, file->file->body); }

// --- blocks ---------------------------------------------------------------------------------------------------------------------

static int formal_index(const Ast *block, const char *name)
{
    for (int i = 0; i < block->count; i++)
        if (strcmp(block->items[i]->text, name) == 0)
            return i;
    return -1;
}

static void report_no_argument(Net *net, const Ast *arg, const BlockDef *block)
{
    const char *names[64];
    int count = 0;
    for (; count < block->ast->count && count < 64; count++)
        names[count] = block->ast->items[count]->text;
    diag_report(net->cx->diag, arg->name, MESSAGE_E0208, block->name, arg->text);
    diag_help_nearest(net->cx->diag, arg->text, names, count);
    note_frames(net);
}

// The arguments of a call by the formals of the block; NONE where nothing was given. False after a report.
static bool block_arguments(Net *net, Scope *scope, Ast *call, const BlockDef *block, Val *args)
{
    bool good = true;
    int next = 0;
    for (int i = 0; i < call->count; i++) {
        Ast *arg = call->items[i];
        bool named = arg->kind == AST_ARGUMENT;
        int at = named ? formal_index(block->ast, arg->text) : next++;
        if (at < 0 || at >= block->ast->count) {
            if (named)
                report_no_argument(net, arg, block);
            good = false;
            if (named)
                continue;
            else
                diag_report(net->cx->diag, arg->place, MESSAGE_E0210, arena_printf(net->arena, "block %s", block->name), count_text(net, block->ast->count), call->count);
            return false;
        }
        if (args[at].kind != VAL_NONE) {
            diag_report(net->cx->diag, arg->place, MESSAGE_E0211, block->ast->items[at]->text);
            good = false;
        }
        args[at] = eval(net, scope, named ? arg->a : arg);
        if (args[at].kind == VAL_TUPLE && args[at].op != NULL)
            args[at] = args[at].items[0];
        good &= args[at].kind != VAL_NONE;
    }
    return good;
}

static bool bind_formals(Net *net, Scope *inside, const Ast *call, const BlockDef *block, Val *args)
{
    bool good = true;
    Scope *defaults = scope_new(net, SCOPE_BLOCK, NULL, block->file, inside->layer);
    for (int i = 0; i < block->ast->count; i++) {
        Ast *formal = block->ast->items[i];
        if (args[i].kind == VAL_NONE && formal->a != NULL)
            args[i] = eval(net, defaults, formal->a);
        else if (args[i].kind == VAL_NONE) {
            diag_report(net->cx->diag, call->place, MESSAGE_E0209, arena_printf(net->arena, "block %s", block->name), formal->text);
            note_frames(net);
            good = false;
        }
        Binding *b = NEW(net->arena, Binding);
        *b = (Binding){.val = args[i], .ast = formal};
        formal->bound = true;
        map_set(inside->names, formal->text, b);
    }
    return good;
}

static Val last_value(Net *net, Scope *scope, const BlockDef *block, Ast *s)
{
    if (s->count == 1)
        return eval(net, scope, s->items[0]);
    Val tuple = {.kind = VAL_TUPLE, .text = block->name, .count = s->count, .items = NEW_ARRAY(net->arena, Val, s->count)};
    for (int i = 0; i < s->count; i++) {
        tuple.items[i] = eval(net, scope, s->items[i]);
        if (tuple.items[i].kind == VAL_NONE)
            return (Val){0};
    }
    return tuple;
}

static Val run_block(Net *net, Scope *scope, const BlockDef *block)
{
    Ast *body = block->ast->body;
    Ast *last = body->count > 0 ? body->items[body->count - 1] : NULL;
    if (last == NULL || last->kind != AST_VALUE) {
        diag_report(net->cx->diag, block->ast->name, MESSAGE_E0406, block->name);
        if (last != NULL && last->kind == AST_ASSIGN && last->items[0]->kind == AST_NAME)
            diag_help(net->cx->diag, "make %s its last line", last->items[0]->text);
        return (Val){0};
    }
    // `init` may stand after the value is known only; order within the block is the reader's.
    for (int i = 0; i < body->count - 1; i++)
        run_statement(net, scope, body->items[i]);
    return last_value(net, scope, block, last);
}

static bool enter(Net *net, BlockDef *block, const Ast *call)
{
    Text cycle = {.arena = net->arena};
    bool found = false;
    for (int i = 0; i < net->frames.count; i++) {
        found |= net->frames.at[i].block == block;
        if (found)
            text_add(&cycle, "%s, ", net->frames.at[i].block->name);
    }
    if (found || (block->is_net && block->file->main && !net->in_train)) {
        text_add(&cycle, "%s", block->name);
        diag_report(net->cx->diag, call->place, MESSAGE_E0405, block->name, cycle.at);
        return false;
    }
    if (net->frames.count >= diag_limit(net->cx->diag, LIMIT_net_block_depth)) {
        diag_report_limit(net->cx->diag, call->place, LIMIT_net_block_depth, "this chain of blocks");
        return false;
    }
    LIST_ADD(net->arena, net->frames, ((Frame){block, call->place}));
    return true;
}

static Layer *layer_of_call(Net *net, Scope *scope, const BlockDef *block, const char *name)
{
    if (block->is_net && block->file->main) {
        Layer *layer = layer_new(net, NULL, "", block->name);
        layer->again = true;
        return layer;
    }
    if (name == NULL)
        name = block->alias;
    const char *path = name != NULL ? path_join(net, layer_path(net, scope->layer), name) : NULL;
    Layer *layer = layer_new(net, scope->layer, path, block->name);
    if (name != NULL && strcmp(name, ".") == 0)
        layer->counts = scope->layer->counts;
    return layer;
}

static int count_inputs(const BlockDef *block)
{
    int n = 0;
    for (int i = 0; i < block->ast->count; i++)
        n += block->ast->items[i]->kind == AST_INPUT;
    return n;
}

static Val call_net(Net *net, Scope *scope, Ast *call, BlockDef *block, Layer *layer)
{
    NetCall inner = {.ast = call}, *outer = net->inner;
    int inputs = count_inputs(block);
    if (call->count != inputs) {
        diag_report(net->cx->diag, call->place, MESSAGE_E0210, block->name, count_text(net, inputs), call->count);
        note_frames(net);
        return (Val){0};
    }
    Val *args = NEW_ARRAY(net->arena, Val, call->count + 1);
    bool good = true;
    for (int i = 0; i < call->count; i++) {
        if (call->items[i]->kind == AST_ARGUMENT) {
            refuse(net, call->items[i], "a named argument of a net", "inputs are given in their order");
            return (Val){0};
        }
        args[i] = eval(net, scope, call->items[i]);
        good &= args[i].kind != VAL_NONE;
    }
    inner.args = args;
    inner.n_args = call->count;
    if (!good || !enter(net, block, call))
        return (Val){0};
    net->inner = &inner;
    bool in_train = net->in_train;
    run_file(net, scope_new(net, SCOPE_FILE, NULL, block->file, layer), block->file);
    net->in_train = in_train;
    net->inner = outer;
    net->frames.count--;
    if (inner.results.count == 0)
        return (Val){0};
    return inner.results.count == 1 ? inner.results.at[0]
         : (Val){.kind = VAL_TUPLE, .text = block->name, .items = inner.results.at, .count = inner.results.count};
}

Val call_block(Net *net, Scope *scope, Ast *call, BlockDef *block, const char *name)
{
    if (block->file == NULL) {                  // an import that was refused
        mark_read(scope, call);
        return (Val){0};
    }
    Layer *layer = layer_of_call(net, scope, block, name);
    if (block->is_net)
        return call_net(net, scope, call, block, layer);
    Val *args = NEW_ARRAY(net->arena, Val, block->ast->count + 1);
    if (!block_arguments(net, scope, call, block, args))
        return (Val){0};
    Scope *inside = scope_new(net, SCOPE_BLOCK, NULL, block->file, layer);
    if (!block->called) {
        block->called = true;
        LIST_ADD(net->arena, net->called, block);
    }
    if (!count_statement(net, call) || !bind_formals(net, inside, call, block, args) || !enter(net, block, call))
        return (Val){0};
    Val v = run_block(net, inside, block);
    net->frames.count--;
    return v;
}
