// build.c: one model: its files with their params, then the runs: outputs alone, evaluation, training.
#include <string.h>

#include "build.h"
#include "train.h"

typedef struct Chain { const char *path; const struct Chain *outer; int depth; } Chain;    // files that import each other

static SourceFile *read_file(Net *net, const char *path, DiagPlace place, const Chain *chain, Map *with);

// --- files --------------------------------------------------------------------------------------------------------------------

static void report_file(Net *net, DiagPlace place, const char *path, const char *why)
{
    if (place.source != 0)
        diag_report(net->cx->diag, place, MESSAGE_E0701, path, why);
    else
        diag_report_file(net->cx->diag, path, MESSAGE_E0701, path, why);
}

// Beside the importing file or beneath it: what a file names may not lead elsewhere.
const char *path_beside(Net *net, const SourceFile *from, const Ast *ast, const char *name)
{
    bool leaves = name[0] == '/' || strchr(name, '\\') != NULL || strcmp(name, "..") == 0 || strncmp(name, "../", 3) == 0 ||
                  strstr(name, "/../") != NULL;
    if (leaves) {
        diag_report(net->cx->diag, ast->place, MESSAGE_E0703, name);
        return NULL;
    }
    const char *slash = strrchr(from->path, '/');
    return slash == NULL ? name : arena_printf(net->arena, "%.*s/%s", (int)(slash - from->path), from->path, name);
}

static bool chain_allows(Net *net, DiagPlace place, const Chain *chain, const char *path)
{
    Text cycle = {.arena = net->arena};
    text_add(&cycle, "%s", path);
    for (const Chain *c = chain; c != NULL; c = c->outer) {
        text_add(&cycle, ", %s", c->path);
        if (strcmp(c->path, path) == 0) {
            diag_report(net->cx->diag, place, MESSAGE_E0702, path, cycle.at);
            return false;
        }
    }
    LimitId limit = ++net->imports > diag_limit(net->cx->diag, LIMIT_net_imports) ? LIMIT_net_imports : LIMIT_net_import_depth;
    if (limit == LIMIT_net_imports || (chain != NULL && chain->depth >= diag_limit(net->cx->diag, limit))) {
        diag_report_limit(net->cx->diag, place, limit, "this import");
        return false;
    }
    return true;
}

static void add_block(Net *net, SourceFile *file, BlockDef *block, DiagPlace place)
{
    BlockDef *other = map_get(file->blocks, block->name);
    if (other == block)
        return;
    if (other != NULL) {
        diag_report(net->cx->diag, place, MESSAGE_E0207, arena_printf(net->arena, "block %s", block->name),
                    diag_line(net->cx->diag, other->ast->place));
        return;
    }
    if (op_find(block->name) != NULL && !block->is_net && block->file == file)
        diag_report(net->cx->diag, place, MESSAGE_W0102, block->name);
    map_set(file->blocks, block->name, block);
}

static Map *with_values(Net *net, SourceFile *file, Ast *s)
{
    Map *with = map_new(net->arena);
    Scope *scope = scope_new(net, SCOPE_FILE, NULL, file, layer_new(net, NULL, "", ""));
    for (int i = 0; i < s->count; i++) {
        Val *v = NEW(net->arena, Val);
        *v = eval(net, scope, s->items[i]->a);
        map_set(with, s->items[i]->text, v);
    }
    return with;
}

static BlockDef *net_block(Net *net, SourceFile *file, const char *name, const char *alias)
{
    BlockDef *block = NEW(net->arena, BlockDef);
    *block = (BlockDef){.name = name, .ast = file->file->body, .file = file, .is_net = true, .alias = alias};
    return block;
}

static void check_with(Net *net, const SourceFile *imported, const Ast *s)
{
    for (int i = 0; i < s->count; i++) {
        if (map_get(imported->params, s->items[i]->text) != NULL)
            continue;
        const char *names[64];
        int count = 0;
        for (; count < map_count(imported->params) && count < 64; count++)
            names[count] = map_key(imported->params, count);
        diag_report(net->cx->diag, s->items[i]->name, MESSAGE_E0203, s->items[i]->text);
        diag_help_nearest(net->cx->diag, s->items[i]->text, names, count);
    }
}

static BlockDef *no_block(Net *net, Ast *s)
{
    BlockDef *block = NEW(net->arena, BlockDef);
    *block = (BlockDef){.name = s->text, .ast = s};
    return block;
}

static void read_import(Net *net, SourceFile *file, Ast *s, const Chain *chain)
{
    const char *name = s->a->text;
    size_t n = strlen(name);
    if (n > 5 && strcmp(name + n - 5, ".onnx") == 0) {
        refuse(net, s, "import of an ONNX file", "");
        if (s->text != NULL)                    // calls of it are silent: this is what is wrong with them
            map_set(file->blocks, s->text, no_block(net, s));
        return;
    }
    const char *path = path_beside(net, file, s->a, name);
    SourceFile *imported = path != NULL ? read_file(net, path, s->a->place, chain, with_values(net, file, s)) : NULL;
    net->import_failed |= imported == NULL;
    if (imported == NULL)
        return;
    check_with(net, imported, s);
    if (s->text != NULL && imported->net == NULL)
        diag_report(net->cx->diag, s->a->place, MESSAGE_E0412);
    else if (s->text != NULL)
        add_block(net, file, net_block(net, imported, s->text, s->text), s->place);
    for (int i = 0; s->text == NULL && i < map_count(imported->blocks); i++) {
        BlockDef *block = map_value(imported->blocks, i);
        if (!block->is_net)
            add_block(net, file, block, s->place);
    }
}

// --- params -------------------------------------------------------------------------------------------------------------------

static const NetSetting *find_setting(Net *net, const char *name)
{
    for (int i = 0; i < net->options->n_settings; i++)
        if (strcmp(net->options->settings[i].name, name) == 0) {
            net->used_settings[i] = true;
            return &net->options->settings[i];
        }
    return NULL;
}

Ast *setting_ast(Net *net, const char *name)
{
    const NetSetting *setting = find_setting(net, name);
    if (setting == NULL)
        return NULL;
    Diag *diag = net->cx->diag;
    int source = diag_add_source(diag, arena_printf(net->arena, "-D %s", name), setting->value, (int)strlen(setting->value));
    return net_parse_expression(diag, net->arena, net->cx->names, source);
}

static Val param_given(Net *net, Scope *scope, Ast *s, Map *with)
{
    Val *from = with != NULL ? map_get(with, s->text) : NULL;
    if (from != NULL)
        return *from;
    Ast *setting = scope->file->main ? setting_ast(net, s->text) : NULL;
    if (setting != NULL && setting->kind == AST_NAME && type_find(setting->text) == TYPE_NONE)
        return (Val){.kind = VAL_WORD, .text = setting->text};
    return eval(net, scope, setting != NULL ? setting : s->a);
}

static void read_param(Net *net, SourceFile *file, Ast *s, Map *with)
{
    Scope *scope = scope_new(net, SCOPE_FILE, NULL, file, layer_new(net, NULL, "", ""));
    if (map_get(file->params, s->text) != NULL) {
        diag_report(net->cx->diag, s->name, MESSAGE_E0207, s->text, diag_line(net->cx->diag, ((Ast *)map_get(file->param_asts, s->text))->place));
        return;
    }
    Val *v = NEW(net->arena, Val);
    *v = param_given(net, scope, s, with);
    if (v->kind == VAL_TENSOR || v->kind == VAL_SIZE || v->kind == VAL_BLOCK) {
        diag_report(net->cx->diag, s->a->place, MESSAGE_E0311, "a param", "a number, word, string or list", val_text(net, v));
        *v = (Val){0};
    }
    s->bound = true;
    map_set(file->params, s->text, v);
    map_set(file->param_asts, s->text, s);
    if (file->main)
        map_set(net->model->settings, s->text, (void *)val_text(net, v));
}

static void read_declaration(Net *net, SourceFile *file, Ast *s, const Chain *chain, Map *with)
{
    if (s->kind == AST_PARAM) {
        read_param(net, file, s, with);
    } else if (s->kind == AST_IMPORT) {
        read_import(net, file, s, chain);
    } else if (s->kind == AST_BLOCK) {
        BlockDef *block = NEW(net->arena, BlockDef);
        *block = (BlockDef){.name = s->text, .ast = s, .file = file};
        add_block(net, file, block, s->name);
    } else if (s->kind == AST_NET) {
        if (file->net != NULL)
            diag_report(net->cx->diag, s->place, MESSAGE_E0512, "net");
        file->net = s->text;
        file->net_place = s->place;
    }
}

static NetFile *parsed_file(Net *net, const char *path, DiagPlace place)
{
    NetFile *file = map_get(net->parsed, path);
    const char *bytes = NULL, *why = "";
    int length = 0;
    if (file != NULL)
        return file;
    if (!net->options->load(net->options->user, path, &bytes, &length, &why)) {
        report_file(net, place, path, why);
        return NULL;
    }
    int source = diag_add_source(net->cx->diag, path, bytes, length);
    file = net_parse(net->cx->diag, net->arena, net->cx->names, source, false);
    map_set(net->parsed, path, file);
    return file;
}

static SourceFile *read_file(Net *net, const char *path, DiagPlace place, const Chain *outer, Map *with)
{
    if (!chain_allows(net, place, outer, path))
        return NULL;
    SourceFile *known = with == NULL || map_count(with) == 0 ? map_get(net->files, path) : NULL;
    if (known != NULL)
        return known;
    NetFile *parsed = parsed_file(net, path, place);
    if (parsed == NULL || parsed->broken)
        return NULL;
    SourceFile *file = NEW(net->arena, SourceFile);
    *file = (SourceFile){.path = path, .blocks = map_new(net->arena), .params = map_new(net->arena),
                         .param_asts = map_new(net->arena), .main = outer == NULL};
    file->file = parsed;
    Chain chain = {path, outer, outer != NULL ? outer->depth + 1 : 0};
    for (int i = 0; i < file->file->body->count; i++)
        read_declaration(net, file, file->file->body->items[i], &chain, with);
    map_set(net->files, path, file);
    return file;
}

// --- runs ---------------------------------------------------------------------------------------------------------------------

static Ast *train_of(const SourceFile *file)
{
    for (int i = 0; i < file->file->body->count; i++)
        if (file->file->body->items[i]->kind == AST_TRAIN)
            return file->file->body->items[i];
    return NULL;
}

// Writes the model out once.
static Graph *run(Net *net, bool training, Ast *train)
{
    Graph *graph = graph_new(net->cx, net->main->net);
    graph->training = training;
    net->graph = graph;
    net->training = training;
    net->in_train = false;
    net->used = map_new(net->arena);
    net->inits.count = 0;
    net->statements = 0;
    net->list_elements = 0;
    Scope *scope = scope_new(net, SCOPE_FILE, NULL, net->main, layer_new(net, NULL, "", ""));
    net->top = scope;
    run_file(net, scope, net->main);
    if (train != NULL) {
        net->in_train = true;
        run_train(net, scope, train);
        net->in_train = false;
    }
    if (training)
        graph->outputs.count = 0;
    return graph;
}

static void check_settings(Net *net)
{
    LIST(const char *) names = {0};
    for (int i = 0; i < map_count(net->main->params); i++)
        LIST_ADD(net->arena, names, map_key(net->main->params, i));
    for (int i = 0; i < net->options->n_settings; i++) {
        const char *name = net->options->settings[i].name;
        if (net->used_settings[i] || (net->options->no_train && train_of(net->main) != NULL))
            continue;
        diag_report(net->cx->diag, (DiagPlace){0}, MESSAGE_E0213, name);
        diag_help_nearest(net->cx->diag, name, names.at, names.count);
    }
}

// Several updates: the same Graph, each time with the loss of another.
static void run_training(Net *net, Ast *train)
{
    Model *model = net->model;
    Recipe *recipe = model->recipe;
    int errors = net->cx->diag->errors;
    net->update = 0;
    model->train = run(net, true, train);
    for (int i = 0; i < recipe->updates.count && net->cx->diag->errors == errors; i++) {
        net->update = i;
        recipe->updates.at[i].train = i == 0 ? model->train : run(net, true, train);
    }
}

// `data` outside of train needs the inputs, `generate` the outputs.
static void run_later_sections(Net *net)
{
    const Ast *body = net->main->file->body;
    for (int i = 0; i < body->count; i++) {
        if (body->items[i]->kind == AST_DATA)
            run_prepare(net, net->top, body->items[i]);
        else if (body->items[i]->kind == AST_GENERATE)
            run_generate(net, net->top, body->items[i]);
    }
}

// What a section names that is not run counts as read.
static void mark_unread_sections(Net *net, const Ast *train)
{
    const Ast *body = net->main->file->body;
    for (int i = 0; i < body->count; i++) {
        Ast *s = body->items[i];
        if ((s->kind == AST_TRAIN && s != train) || s->kind == AST_DATA || s->kind == AST_GENERATE)
            mark_read(net->top, s);
    }
}

static void run_all(Net *net)
{
    Model *model = net->model;
    Diag *diag = net->cx->diag;
    Ast *train = net->options->no_train ? NULL : train_of(net->main);
    net->first = true;
    model->infer = run(net, false, NULL);
    net->first = false;
    net->infer_top = net->top;
    if (model->infer->outputs.count == 0 && diag->errors == 0)
        diag_report(diag, net->main->net_place, MESSAGE_E0413, net->main->net);
    if (train != NULL)
        model->eval = run(net, false, train);
    if (train != NULL && diag->errors == 0)
        run_training(net, train);
    if (diag->errors == 0) {
        inits_apply(net);
        weights_apply(net);
        run_later_sections(net);
    }
    check_settings(net);
    mark_unread_sections(net, train);
    if (diag->errors == 0)
        report_unread(net);
}

Model *net_read(Context *cx, const char *path, const NetOptions *options)
{
    Net *net = NEW(cx->arena, Net);
    int errors = cx->diag->errors;
    *net = (Net){.cx = cx, .arena = cx->arena, .options = options, .files = map_new(cx->arena), .params = map_new(cx->arena),
                 .parsed = map_new(cx->arena)};
    net->model = NEW(cx->arena, Model);
    net->model->cx = cx;
    net->model->path = path;
    net->model->settings = map_new(cx->arena);
    net->used_settings = NEW_ARRAY(cx->arena, bool, options->n_settings + 1);
    net->graph = graph_new(cx, "params");               // for expressions in params, which make no nodes
    if (cx->symbols == NULL)
        cx->symbols = map_new(cx->arena);
    net->main = read_file(net, path, (DiagPlace){0}, NULL, NULL);
    if (net->main == NULL || net->import_failed)
        return NULL;
    if (net->main->net == NULL) {
        diag_report(cx->diag, (DiagPlace){net->main->file->source, 0, 0}, MESSAGE_E0412);
        return NULL;
    }
    net->model->name = net->main->net;
    // The net's own name is a block for train; a net that is called like an op or a block does not hide it.
    if (map_get(net->main->blocks, net->main->net) == NULL && op_find(net->main->net) == NULL)
        map_set(net->main->blocks, net->main->net, net_block(net, net->main, net->main->net, NULL));
    run_all(net);
    return cx->diag->errors == errors ? net->model : NULL;
}
