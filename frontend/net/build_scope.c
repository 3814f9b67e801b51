// build_scope.c: what names are bound to, and which were never read. An `if` or `repeat` has a scope of its own that ends
// with it, but rebinds names from outside; a block sees its arguments and the params of its file, nothing else.
#include <string.h>

#include "build.h"

Scope *scope_new(Net *net, ScopeKind kind, Scope *outer, SourceFile *file, Layer *layer)
{
    Scope *scope = NEW(net->arena, Scope);
    *scope = (Scope){.kind = kind, .outer = outer, .file = file, .names = map_new(net->arena), .layer = layer};
    return scope;
}

ScopeKind scope_section(const Scope *scope)
{
    while (scope->kind == SCOPE_BRANCH && scope->outer != NULL)
        scope = scope->outer;
    return scope->kind;
}

Binding *scope_find(const Scope *scope, const char *name)
{
    Binding *ended = NULL;
    for (; scope != NULL; scope = scope->outer) {
        Binding *b = map_get(scope->names, name);
        if (b != NULL && !b->ended)
            return b;
        if (b != NULL && ended == NULL)
            ended = b;
    }
    return ended;
}

BlockDef *scope_block(const Scope *scope, const char *name) { return map_get(scope->file->blocks, name); }

// The scope where an assignment to `name` goes: where it is bound already, among the branches of this body; or here.
static Scope *target_scope(Scope *scope, const char *name)
{
    for (Scope *s = scope;; s = s->outer) {
        Binding *b = map_get(s->names, name);
        if (b != NULL && !b->ended)
            return s;
        if (s->kind != SCOPE_BRANCH || s->outer == NULL)
            return scope;
    }
}

static void refuse_rebinding(Net *net, Scope *scope, const Ast *ast, const char *name, const char *fixed)
{
    diag_report(net->cx->diag, ast->place, MESSAGE_E0205, name, fixed);
    if (strcmp(fixed, "an input") == 0 && scope->kind == SCOPE_FILE && net->main->main)
        diag_help(net->cx->diag, "do this in data, where it becomes part of the preprocessing, or use another name");
    note_frames(net);
}

void scope_bind(Net *net, Scope *scope, Ast *ast, const char *name, Val val, const char *fixed)
{
    if (strcmp(name, "_") == 0)
        return;
    Scope *where = target_scope(scope, name);
    Binding *b = map_get(where->names, name);
    if (b != NULL && !b->ended && b->fixed != NULL) {
        refuse_rebinding(net, scope, ast, name, b->fixed);
        return;
    }
    ScopeKind section = scope_section(scope);
    bool over_params = section == SCOPE_FILE || section == SCOPE_TRAIN;     // elsewhere a name may hide a param
    if (b == NULL && over_params && fixed == NULL && map_get(scope->file->params, name) != NULL) {
        refuse_rebinding(net, scope, ast, name, "a param");
        return;
    }
    if (b != NULL && !b->ended && where != scope)
        b->ast->read = true;                    // without the branch, it would be what is read
    Binding *made = NEW(net->arena, Binding);
    *made = (Binding){.val = val, .ast = ast, .fixed = fixed};
    ast->bound = true;
    map_set(where->names, name, made);
}

// --- reports ----------------------------------------------------------------------------------------------------------------

void note_frames(Net *net)
{
    for (int i = net->frames.count - 1; i >= 0 && i > net->frames.count - 9; i--)
        diag_note(net->cx->diag, net->frames.at[i].place, net->frames.at[i].block->is_net ? "in net %s, called" : "in block %s, called",
                  net->frames.at[i].block->name);
}

typedef LIST(const char *) Candidates;

static void add_names(Net *net, Candidates *list, const Map *map)
{
    for (int i = 0; i < map_count(map); i++)
        LIST_ADD(net->arena, *list, map_key(map, i));
}

// `also` is added to the help, "" for nothing.
void report_unknown(Net *net, Scope *scope, const Ast *ast, const char *name, const char *also)
{
    Binding *ended = scope_find(scope, name);
    if (ended != NULL && ended->ended) {
        diag_report(net->cx->diag, ast->place, MESSAGE_E0204, name, ended->what, ended->line);
        note_frames(net);
        return;
    }
    Candidates list = {0};
    for (Scope *s = scope; s != NULL; s = s->outer)
        add_names(net, &list, s->names);
    add_names(net, &list, scope->file->params);
    diag_report(net->cx->diag, ast->place, MESSAGE_E0203, name);
    const char *near = strlen(name) > 1 ? name_nearest(name, list.at, list.count) : NULL;
    if (near != NULL)
        diag_help(net->cx->diag, "did you mean %s?%s%s", near, also[0] != 0 ? " " : "", also);
    else if (also[0] != 0)
        diag_help(net->cx->diag, "%s", also);
    note_frames(net);
}

// --- reading ----------------------------------------------------------------------------------------------------------------

static void mark_name(Scope *scope, const char *name)
{
    Binding *b = scope_find(scope, name);
    if (b != NULL)
        b->ast->read = true;
    Ast *param = map_get(scope->file->param_asts, name);
    if (b == NULL && param != NULL)
        param->read = true;
}

void mark_read(Scope *scope, const Ast *ast)
{
    if (ast == NULL)
        return;
    if (ast->kind == AST_NAME && ast->text != NULL)
        mark_name(scope, ast->text);
    mark_read(scope, ast->a);
    mark_read(scope, ast->b);
    for (int i = 0; i < ast->count; i++)
        mark_read(scope, ast->items[i]);
    for (int i = 0; i < ast->other_count; i++)
        mark_read(scope, ast->others[i]);
    mark_read(scope, ast->body);
    mark_read(scope, ast->otherwise);
}

// --- unread names -----------------------------------------------------------------------------------------------------------

static void report_name(Net *net, const Ast *ast, const char *name)
{
    if (ast->bound && !ast->read && strcmp(name, "_") != 0)
        diag_report(net->cx->diag, ast->name.source != 0 ? ast->name : ast->place, MESSAGE_W0101, name);
}

static void report_in(Net *net, const Ast *body)
{
    for (int i = 0; i < body->count; i++) {
        const Ast *s = body->items[i];
        if (s->kind == AST_ASSIGN)
            for (int k = 0; k < s->count; k++)
                report_name(net, s->items[k], s->items[k]->text);
        else if (s->kind == AST_PARAM || s->kind == AST_WEIGHT || s->kind == AST_INPUT || s->kind == AST_COLLECT)
            report_name(net, s, s->text);
        else if (s->kind == AST_IF || s->kind == AST_REPEAT || s->kind == AST_LOOP) {
            report_in(net, s->body);
            if (s->otherwise != NULL)
                report_in(net, s->otherwise);
        }
    }
}

// Names of the net and of the blocks that were written out. Those of train and data are reported where they end.
void report_unread(Net *net)
{
    report_in(net, net->main->file->body);
    for (int i = 0; i < net->called.count; i++) {
        const Ast *block = net->called.at[i]->ast;
        if (block->kind != AST_BLOCK)
            continue;
        for (int k = 0; k < block->count; k++)
            report_name(net, block->items[k], block->items[k]->text);
        report_in(net, block->body);
    }
}
