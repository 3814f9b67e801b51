// build_weights.c: `weights from "file.safetensors" for … except …`: which parameters start from which file. Selectors are
// resolved when all parameters are known; where the file is there already, names and shapes are compared at once.
#include <string.h>

#include "build.h"

static Ast **all_settled(Net *net, Scope *scope, Ast **selectors, int count)
{
    Ast **list = NEW_ARRAY(net->arena, Ast *, count + 1);
    for (int i = 0; i < count; i++)
        if ((list[i] = settled(net, scope, selectors[i])) == NULL)
            return NULL;
    return list;
}

void run_weights(Net *net, Scope *scope, Ast *s)
{
    Val v = eval(net, scope, s->a);
    if (v.kind == VAL_NONE || !net->first || net->inner != NULL)
        return;
    if (v.kind != VAL_STRING) {
        diag_report(net->cx->diag, s->a->place, MESSAGE_E0311, "weights from", "followed by a string", val_text(net, &v));
        return;
    }
    LateWeights late = {.ast = s, .layer = scope->layer, .text = v.text, .path = path_beside(net, scope->file, s->a, v.text)};
    late.items = all_settled(net, scope, s->items, s->count);
    late.others = all_settled(net, scope, s->others, s->other_count);
    if (late.path != NULL && late.items != NULL && late.others != NULL)
        LIST_ADD(net->arena, net->weights, late);
}

// --- which parameters -----------------------------------------------------------------------------------------------------------

static void choose(Net *net, const LateWeights *late, Ast **selectors, int count, bool value, Map *chosen)
{
    static bool yes, no;                        // only their addresses are used
    Param **selected = NEW_ARRAY(net->arena, Param *, net->model->params.count + 1);
    Scope *scope = scope_new(net, SCOPE_BLOCK, NULL, net->main, late->layer);
    for (int i = 0; i < count; i++) {
        int n = select_named(net, scope, selectors[i], late->layer->path, true, selected);
        for (int k = 0; k < n; k++)
            map_set(chosen, selected[k]->path, value ? &yes : &no);
    }
    if (count == 0 && value)
        for (int i = 0; i < net->model->params.count; i++)
            if (!net->model->params.at[i]->train_only)
                map_set(chosen, net->model->params.at[i]->path, &yes);
    for (int i = 0; i < net->model->params.count; i++)
        if (map_get(chosen, net->model->params.at[i]->path) == &no)
            map_set(chosen, net->model->params.at[i]->path, NULL);
}

// --- what the file has ----------------------------------------------------------------------------------------------------------

static const NetTensor *find_tensor(const NetTensor *tensors, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(tensors[i].name, name) == 0)
            return &tensors[i];
    return NULL;
}

static Type tensor_type(Net *net, const NetTensor *t)
{
    Type type = {.dtype = t->type, .shape = {.rank = t->rank}};
    for (int i = 0; i < t->rank; i++)
        type.shape.dim[i] = size_const(net->cx, t->dim[i]);
    return type;
}

static void compare(Net *net, const WeightSource *source, const Ast *at, const NetTensor *tensors, int count)
{
    Diag *diag = net->cx->diag;
    size_t skip = source->prefix != NULL ? strlen(source->prefix) + 1 : 0;
    for (int i = 0, reported = 0; i < source->params.count && reported < 5; i++) {
        const Param *p = source->params.at[i];
        const NetTensor *t = find_tensor(tensors, count, p->path);
        if (t == NULL && skip > 0 && strlen(p->path) > skip)
            t = find_tensor(tensors, count, p->path + skip);
        Type type = t != NULL ? tensor_type(net, t) : (Type){0};
        if (t != NULL && shape_equal(&type.shape, &p->type.shape))
            continue;
        diag_report(diag, at->place, MESSAGE_E0404, p->path, t != NULL ? type_text(net->cx, &type) : "missing", source->path,
                    type_text(net->cx, &p->type));
        const char *dot = strrchr(p->path, '.');
        diag_help(diag, "except @%s starts it afresh",
                  dot != NULL ? arena_printf(net->arena, "%.*s.*", (int)(dot - p->path), p->path) : p->path);
        reported++;
    }
}

static void look(Net *net, const WeightSource *source, const Ast *at)
{
    const NetTensor *tensors = NULL;
    const char *why = NULL;
    int count = 0;
    if (net->options->tensors == NULL)
        return;
    if (net->options->tensors(net->options->user, source->path, &tensors, &count, &why))
        compare(net, source, at, tensors, count);
    else if (why != NULL)
        diag_report(net->cx->diag, at->place, MESSAGE_E0701, source->path, why);
}

// --- applying -------------------------------------------------------------------------------------------------------------------

// `for @member.0`: the file may name its tensors without that.
static const char *prefix_of(Net *net, const LateWeights *late)
{
    const Ast *s = late->ast->count == 1 ? late->items[0] : NULL;
    return s != NULL && s->kind == AST_PATH && strchr(s->text, '*') == NULL ? path_join(net, late->layer->path, s->text) : NULL;
}

void weights_apply(Net *net)
{
    for (int i = 0; i < net->weights.count; i++) {
        const LateWeights *late = &net->weights.at[i];
        Map *chosen = map_new(net->arena);
        WeightSource source = {.path = late->path, .prefix = prefix_of(net, late), .place = late->ast->place};
        choose(net, late, late->items, late->ast->count, true, chosen);
        choose(net, late, late->others, late->ast->other_count, false, chosen);
        for (int k = 0; k < net->model->params.count; k++)
            if (map_get(chosen, net->model->params.at[k]->path) != NULL)
                LIST_ADD(net->arena, source.params, net->model->params.at[k]);
        LIST_ADD(net->arena, net->model->weight_files, source);
        if (late->ast->count > 0 || late->ast->other_count > 0 || net->weights.count > 1)
            later(net, late->ast, "`weights from` for a part of the net", "--weights FILE, for the whole net");
        else
            later_training(net, late->ast, "`weights from` in a training program", "the option --weights of the training program");
        if (late->ast->count == 0 && late->ast->other_count == 0)
            net->model->weights = late->text;
        look(net, &source, late->ast);
    }
}
