// build_train.c: the train section: targets, loss and metrics go into the Graph, keys into the Recipe. The section is run
// for evaluation and for training; the Recipe is written by the first of the two. What needs all parameters and metrics to
// be known (groups, freeze, keep, stop, data) waits until the rest of the section is read.
#include <string.h>

#include "build.h"
#include "train.h"

#define LIST_COPY(to, from) ((to).at = (from).at, (to).count = (from).count, (to).room = (from).room)

typedef struct Key { const char *name; void (*set)(Net *, Scope *, Ast *value, Ast *s); const char *missing; } Key;

static const Key *key_find(const char *name);

static Recipe *recipe(Net *net) { return net->train->recipe; }

static void wrong(Net *net, const Ast *ast, const char *what, const char *wanted, const Val *v)
{
    diag_report(net->cx->diag, ast->place, MESSAGE_E0311, what, wanted, val_text(net, v));
    note_frames(net);
}

// --- values of keys -------------------------------------------------------------------------------------------------------------

static bool number_of(Net *net, Scope *scope, Ast *ast, const char *what, double least, double *x)
{
    Val v = eval(net, scope, ast);
    if (v.kind == VAL_NONE)
        return false;
    if (!val_is_number(&v) || v.number.real < least) {
        wrong(net, ast, what, least > 0 ? "a number above 0" : least == 0 ? "a number, 0 or more" : "a number", &v);
        return false;
    }
    *x = v.number.real;
    return true;
}

static bool whole_of(Net *net, Scope *scope, Ast *ast, const char *what, int64_t least, int64_t *n)
{
    Val v = eval(net, scope, ast);
    if (v.kind == VAL_NONE)
        return false;
    if (!val_is_whole(&v, n) || *n < least) {
        wrong(net, ast, what, least > 0 ? "a whole number above 0" : "a whole number, 0 or more", &v);
        return false;
    }
    return true;
}

static bool duration_of(Net *net, Scope *scope, Ast *ast, const char *what, Duration *duration)
{
    static const char *const units[] = {"", "epochs", "steps", "seconds"};
    Val v = eval(net, scope, ast);
    if (v.kind == VAL_NONE)
        return false;
    duration->amount = v.number.real;
    duration->unit = UNIT_SHARE;
    if (v.kind == VAL_NUMBER && v.percent && v.number.real >= 0)
        return true;
    if (v.kind != VAL_DURATION) {
        wrong(net, ast, what, "a duration such as 5 epochs, or a share such as 5%", &v);
        return false;
    }
    int seconds = strcmp(v.text, "hours") == 0 ? 3600 : strcmp(v.text, "minutes") == 0 ? 60 : 1;
    duration->unit = UNIT_SECONDS;
    duration->amount *= seconds;
    for (int u = UNIT_EPOCHS; u <= UNIT_SECONDS; u++)
        if (strcmp(units[u], v.text) == 0)
            duration->unit = (Unit)u;
    return true;
}

static bool flag_of(Net *net, Scope *scope, Ast *ast, const char *what, bool *flag)
{
    return eval_flag(net, scope, ast, what, flag);
}

// --- optimizer, schedule: rows of recipe.def ---------------------------------------------------------------------------------------

static int arg_of(const RecipeArg *args, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(args[i].name, name) == 0)
            return i;
    return -1;
}

static void report_no_arg(Net *net, const Ast *arg, const char *what, const RecipeArg *args, int count)
{
    const char *names[12];
    for (int i = 0; i < count; i++)
        names[i] = args[i].name;
    diag_report(net->cx->diag, arg->name.source != 0 ? arg->name : arg->place, MESSAGE_E0202, what, arg->text != NULL ? arg->text : "there");
    if (arg->text != NULL)
        diag_help_nearest(net->cx->diag, arg->text, names, count);
}

// betas = [0.9, 0.95] sets beta1 and beta2.
static bool list_argument(Net *net, const Ast *arg, const OptimizerDef *def, const Val *v, double *out)
{
    size_t n = strlen(arg->text);
    if (v->kind != VAL_LIST || n < 2 || arg->text[n - 1] != 's')
        return false;
    for (int i = 0; i < v->count; i++) {
        int at = arg_of(def->arg, def->n_args, arena_printf(net->arena, "%.*s%d", (int)n - 1, arg->text, i + 1));
        if (at < 0 || !val_is_number(&v->items[i]))
            return false;
        out[at] = v->items[i].number.real;
    }
    return true;
}

static void optimizer_argument(Net *net, Scope *scope, Ast *arg, const OptimizerDef *def, double *out)
{
    Ast *value = arg->kind == AST_ARGUMENT ? arg->a : arg;
    int at = arg->kind == AST_ARGUMENT ? arg_of(def->arg, def->n_args, arg->text) : -1;
    Val v = eval(net, scope, value);
    if (v.kind == VAL_NONE || (arg->kind == AST_ARGUMENT && list_argument(net, arg, def, &v, out)))
        return;
    if (at < 0)
        report_no_arg(net, arg, def->name, def->arg, def->n_args);
    else if (!val_is_number(&v))
        wrong(net, value, arg->text, "a number", &v);
    else
        out[at] = v.number.real;
}

static const OptimizerDef *optimizer_named(Net *net, const Ast *name)
{
    const OptimizerDef *def = name->kind == AST_NAME ? optimizer_find(name->text) : NULL;
    if (def != NULL)
        return def;
    const char *names[32];
    int count = 0;
    for (; count < 32 && optimizer_at(count) != NULL; count++)
        names[count] = optimizer_at(count)->name;
    const char *text = name->kind == AST_NAME ? name->text : ast_kind_name(name->kind);
    diag_report(net->cx->diag, name->place, MESSAGE_E0311, "optimizer", "one of the optimizers", text);
    if (!diag_help_nearest(net->cx->diag, text, names, count))
        diag_help(net->cx->diag, "sgd, adam and adamw are there");
    return NULL;
}

// A line in the braces: its own values can be named on the right.
static void group_line(Net *net, Scope *scope, Ast *s, const OptimizerDef *def, Param **selected)
{
    int at = s->kind == AST_ASSIGN && s->count == 1 ? arg_of(def->arg, def->n_args, s->items[0]->text) : -1;
    if (at < 0 || s->other_count == 0) {
        if (at >= 0)
            diag_report(net->cx->diag, s->place, MESSAGE_E0209, "a line in the braces of an optimizer", "the parameters: for norms, biases");
        else
            report_no_arg(net, s->items[0], def->name, def->arg, def->n_args);
        return;
    }
    Map *done = map_new(net->arena);            // a line holds once for each parameter
    for (int k = 0; k < s->other_count; k++) {
        int count = select_params(net, scope, s->others[k], "", selected);
        for (int i = 0; i < count; i++) {
            double *own = map_get(net->train->group_args, selected[i]->path);
            if (own == NULL || map_get(done, selected[i]->path) != NULL)
                continue;                       // NULL: another update moves it
            map_set(done, selected[i]->path, own);
            Scope *inner = scope_new(net, SCOPE_BRANCH, scope, scope->file, scope->layer);
            for (int a = 0; a < def->n_args; a++) {
                Binding *b = NEW(net->arena, Binding);
                *b = (Binding){.val = val_real(own[a]), .ast = s->items[0]};
                map_set(inner->names, def->arg[a].name, b);
            }
            double x;
            if (!number_of(net, inner, s->b, s->items[0]->text, -1e300, &x))
                return;
            own[at] = x;
        }
    }
}

static void group_lines(Net *net, Scope *scope, Ast *body, const OptimizerDef *def, Param **selected)
{
    for (int i = 0; i < body->count; i++) {
        Ast *s = body->items[i];
        bool flag;
        if (s->kind == AST_IF) {
            if (eval_flag(net, scope, s->a, "an if", &flag) && (flag || s->otherwise != NULL))
                group_lines(net, scope, flag ? s->body : s->otherwise, def, selected);
        } else if (s->kind == AST_REPEAT) {
            Val list = eval(net, scope, s->a);
            for (int k = 0; list.kind == VAL_LIST && k < list.count && s->count == 1; k++) {
                Scope *turn = scope_new(net, SCOPE_BRANCH, scope, scope->file, scope->layer);
                Binding *b = NEW(net->arena, Binding);
                *b = (Binding){.val = list.items[k], .ast = s->items[0]};
                map_set(turn->names, s->items[0]->text, b);
                group_lines(net, turn, s->body, def, selected);
            }
        } else {
            group_line(net, scope, s, def, selected);
        }
    }
}

// Groups of one optimizer. Parameters with the same arguments are in the same group; the first is the optimizer itself.
typedef struct Grouping { const OptimizerDef *def; LIST(OptimizerGroup) groups; } Grouping;

static int group_of(Net *net, Grouping *g, const OptimizerDef *own, const double *args)
{
    for (int i = 0; i < g->groups.count; i++)
        if (g->groups.at[i].own == own && memcmp(g->groups.at[i].arg, args, sizeof g->groups.at[i].arg) == 0)
            return i;
    OptimizerGroup group = {.own = own};
    memcpy(group.arg, args, sizeof group.arg);
    LIST_ADD(net->arena, g->groups, group);
    return g->groups.count - 1;
}

// Which group each of `params` is in, after the lines in the braces.
static void make_groups(Net *net, Scope *scope, Grouping *g, const OptimizerGroup *base, Ast *body, Param **params, int n, int *group)
{
    double (*args)[10] = arena_alloc(net->arena, sizeof(*args) * (size_t)(n + 1));
    net->train->group_args = map_new(net->arena);
    for (int i = 0; i < n; i++) {
        memcpy(args[i], base->arg, sizeof base->arg);
        map_set(net->train->group_args, params[i]->path, args[i]);
    }
    if (body != NULL)
        group_lines(net, scope, body, g->def, NEW_ARRAY(net->arena, Param *, net->model->params.count + 1));
    for (int i = 0; i < n; i++)
        group[i] = group_of(net, g, NULL, args[i]);
}

static void set_optimizer(Net *net, Scope *scope, Ast *value, Ast *s)
{
    (void)s;
    LIST_ADD(net->arena, net->train->late, ((Late){net->train->key_statement, scope, value, -1}));
}

// adamw(lr = 3e-4): the row and its arguments. `prefix` of -D: "optimizer".
static const OptimizerDef *read_optimizer(Net *net, Scope *scope, Ast *value, const char *prefix, OptimizerGroup *base)
{
    const OptimizerDef *def = optimizer_named(net, value->kind == AST_CALL ? value->a : value);
    *base = (OptimizerGroup){.own = NULL};
    if (def == NULL)
        return NULL;
    for (int i = 0; i < def->n_args; i++)
        base->arg[i] = def->arg[i].initial;
    for (int i = 0; value->kind == AST_CALL && i < value->count; i++)
        optimizer_argument(net, scope, value->items[i], def, base->arg);
    for (int i = 0; i < def->n_args; i++) {
        Ast *setting = setting_ast(net, arena_printf(net->arena, "%s.%s", prefix, def->arg[i].name));
        if (setting != NULL)
            number_of(net, scope, setting, def->arg[i].name, -1e300, &base->arg[i]);
    }
    return def;
}

// Every parameter that `selectors` choose, once.
static Param **chosen_params(Net *net, Scope *scope, Ast **selectors, int count, int *n)
{
    Map *seen = map_new(net->arena);
    Param **out = NEW_ARRAY(net->arena, Param *, net->model->params.count + 1);
    Param **some = NEW_ARRAY(net->arena, Param *, net->model->params.count + 1);
    *n = 0;
    for (int i = 0; i < count; i++) {
        int found = select_params(net, scope, selectors[i], "", some);
        for (int k = 0; k < found; k++)
            if (map_get(seen, some[k]->path) == NULL) {
                map_set(seen, some[k]->path, some[k]);
                out[(*n)++] = some[k];
            }
    }
    return out;
}

// optimizer = muon(lr = 0.02) for …: another optimizer for some of the parameters.
static void optimizer_for(Net *net, Scope *scope, Ast *value, Ast *s)
{
    Recipe *r = recipe(net);
    OptimizerGroup base;
    int n;
    const OptimizerDef *def = read_optimizer(net, scope, value, "optimizer", &base);
    Param **params = chosen_params(net, scope, s->others, s->other_count, &n);
    if (def == NULL || n == 0)
        return;
    if (r->optimizer == NULL) {
        diag_report(net->cx->diag, s->place, MESSAGE_E0209, "an optimizer for some of the parameters", "the others, before it");
        return;
    }
    base.own = def;
    LIST_ADD(net->arena, r->groups, base);
    for (int i = 0; i < n; i++)
        params[i]->group = r->groups.count - 1;
}

static void late_optimizer(Net *net, Scope *scope, Ast *value, Ast *s)
{
    Recipe *r = recipe(net);
    OptimizerGroup base;
    if (s->other_count > 0) {
        optimizer_for(net, scope, value, s);
        return;
    }
    Grouping g = {.def = read_optimizer(net, scope, value, "optimizer", &base)};
    if (g.def == NULL)
        return;
    if (r->optimizer != NULL)
        diag_report(net->cx->diag, s->place, MESSAGE_E0512, "optimizer");
    int n = net->model->params.count, *group = NEW_ARRAY(net->arena, int, n + 1);
    LIST_ADD(net->arena, g.groups, base);
    make_groups(net, scope, &g, &base, s->body, net->model->params.at, n, group);
    for (int i = 0; i < n; i++)
        net->model->params.at[i]->group = group[i];
    r->optimizer = g.def;
    LIST_COPY(r->groups, g.groups);
}

static void late_update_optimizer(Net *net, Scope *scope, Ast *value, Ast *s, UpdateRule *u)
{
    OptimizerGroup base;
    Grouping g = {.def = read_optimizer(net, scope, value, arena_printf(net->arena, "update.%s.optimizer", u->name), &base)};
    if (g.def == NULL)
        return;
    LIST_ADD(net->arena, g.groups, base);
    u->group = NEW_ARRAY(net->arena, int, u->params.count + 1);
    make_groups(net, scope, &g, &base, s->body, u->params.at, u->params.count, u->group);
    u->optimizer = g.def;
    LIST_COPY(u->groups, g.groups);
}

// at = [30 epochs, 60 epochs]: moments of one unit, one behind the other.
static void schedule_moments(Net *net, Scope *scope, Ast *value, ScheduleStep *step)
{
    while (value->kind == AST_PAREN)
        value = value->a;
    Ast **items = value->kind == AST_LIST ? value->items : &value;
    for (int i = 0; i < (value->kind == AST_LIST ? value->count : 1); i++) {
        Duration moment;
        if (!duration_of(net, scope, items[i], "a moment of multistep", &moment))
            return;
        Duration before = i > 0 ? step->at.at[i - 1] : (Duration){-1, moment.unit};
        if (moment.unit != before.unit || moment.amount <= before.amount) {
            diag_report(net->cx->diag, items[i]->place, MESSAGE_E0311, "a moment of multistep", "later than the one before it, in the same unit", "this");
            return;
        }
        LIST_ADD(net->arena, step->at, moment);
    }
}

static void schedule_argument(Net *net, Scope *scope, Ast *arg, int place, ScheduleStep *step, bool *given)
{
    const ScheduleDef *def = step->def;
    static const char *const names[] = {"for", "for", "over", "every", "every", "at", "by"};
    bool behind = def->length == LENGTH_OVER || def->length == LENGTH_PER;      // its length is not the first argument
    bool named = arg->kind == AST_ARGUMENT, first = !named && place == 0 && !behind;
    Ast *value = named ? arg->a : arg;
    if (first || (named && strcmp(arg->text, names[def->length]) == 0)) {
        if (def->length == LENGTH_AT)
            schedule_moments(net, scope, value, step);
        else if (def->length == LENGTH_BY && value->kind == AST_NAME)
            step->by = value->text;
        else if (def->length == LENGTH_BY)
            diag_report(net->cx->diag, value->place, MESSAGE_E0311, "by of plateau", "a metric or loss", "this");
        else
            duration_of(net, scope, value, arena_printf(net->arena, "the length of %s", def->name), &step->length);
        return;
    }
    int at = named ? arg_of(def->arg, def->n_args, arg->text) : place - !behind;
    if (at < 0 || at >= def->n_args) {
        report_no_arg(net, arg, def->name, def->arg, def->n_args);
        return;
    }
    Val v = eval(net, scope, value);
    if (v.kind == VAL_NONE)
        return;
    if (!val_is_number(&v)) {
        wrong(net, value, def->arg[at].name, "a number", &v);
        return;
    }
    step->arg[at] = v.number.real;
    step->share[at] = v.percent;
    given[at] = true;
}

static void add_schedule(Net *net, Scope *scope, Ast *ast, bool last, Schedule *schedule)
{
    Ast *name = ast->kind == AST_CALL ? ast->a : ast;
    ScheduleStep step = {.def = name->kind == AST_NAME ? schedule_find(name->text) : NULL, .place = ast->place};
    bool given[4] = {false};
    Diag *diag = net->cx->diag;
    if (step.def == NULL) {
        const char *names[32];
        int count = 0;
        for (; count < 32 && schedule_at(count) != NULL; count++)
            names[count] = schedule_at(count)->name;
        const char *text = name->kind == AST_NAME ? name->text : ast_kind_name(name->kind);
        diag_report(diag, name->place, MESSAGE_E0311, "schedule", "one of the schedules", text);
        diag_help_nearest(diag, text, names, count);
        return;
    }
    for (int i = 0; i < step.def->n_args; i++)
        step.arg[i] = step.def->arg[i].initial;
    for (int i = 0; ast->kind == AST_CALL && i < ast->count; i++)
        schedule_argument(net, scope, ast->items[i], i, &step, given);
    for (int i = 0; i < step.def->n_args; i++)
        if (step.def->arg[i].needed && !given[i])
            diag_report(diag, ast->place, MESSAGE_E0209, step.def->name, step.def->arg[i].name);
    ScheduleLength how = step.def->length;
    bool endless = how == LENGTH_AT || how == LENGTH_BY, must = how == LENGTH_FIRST || how == LENGTH_EVERY || how == LENGTH_PER;
    if (endless && !last)
        diag_report(diag, ast->place, MESSAGE_E0311, step.def->name, "the last of a schedule: it has no end", "followed by another");
    else if (how == LENGTH_AT ? step.at.count == 0 : how == LENGTH_BY ? step.by == NULL : (must || !last) && step.length.unit == UNIT_NONE)
        diag_report(diag, ast->place, MESSAGE_E0209, step.def->name, how == LENGTH_AT ? "at" : how == LENGTH_BY ? "by" : "its length");
    LIST_ADD(net->arena, schedule->steps, step);
}

static void schedule_chain(Net *net, Scope *scope, Ast *ast, bool last, Schedule *schedule)
{
    while (ast->kind == AST_PAREN)
        ast = ast->a;
    if (ast->kind == AST_BINARY && strcmp(ast->text, "then") == 0) {
        schedule_chain(net, scope, ast->a, false, schedule);
        schedule_chain(net, scope, ast->b, last, schedule);
        return;
    }
    add_schedule(net, scope, ast, last, schedule);
}

static void set_schedule(Net *net, Scope *scope, Ast *value, Ast *s)
{
    (void)s;
    Schedule schedule = {0};
    schedule_chain(net, scope, value, true, &schedule);
    LIST_COPY(recipe(net)->schedule, schedule.steps);
}

// --- schedules as numbers ---------------------------------------------------------------------------------------------------------

static bool is_schedule_name(const Scope *scope, const Ast *ast)
{
    return ast->kind == AST_NAME && schedule_find(ast->text) != NULL && op_find(ast->text) == NULL && scope_block(scope, ast->text) == NULL;
}

static bool is_schedule(const Scope *scope, const Ast *ast)
{
    while (ast->kind == AST_PAREN)
        ast = ast->a;
    if (ast->kind == AST_BINARY && strcmp(ast->text, "then") == 0)
        return (is_schedule(scope, ast->a) || is_schedule_name(scope, ast->a)) && (is_schedule(scope, ast->b) || is_schedule_name(scope, ast->b));
    return ast->kind == AST_CALL && is_schedule_name(scope, ast->a);
}

// The same place in the text is the same number in every run.
static int number_index(Net *net, Scope *scope, Ast *ast)
{
    int at = 0;
    while (at < net->numbers.count && net->numbers.at[at] != ast)
        at++;
    if (at < net->numbers.count)
        return at;
    Schedule schedule = {.name = arena_printf(net->arena, "number%d", at + 1)};
    LIST_ADD(net->arena, net->numbers, ast);
    schedule_chain(net, scope, ast, true, &schedule);
    LIST_ADD(net->arena, recipe(net)->numbers, schedule);
    return at;
}

bool schedule_number(Net *net, Scope *scope, Ast *ast, Val *v)
{
    if (!net->in_train || net->in_data || !is_schedule(scope, ast))
        return false;
    int errors = net->cx->diag->errors, at = number_index(net, scope, ast);
    *v = (Val){0};
    if (net->cx->diag->errors > errors)
        return true;
    Expr *hyper = NEW(net->arena, Expr);
    *hyper = (Expr){.kind = EXPR_HYPER, .type = TYPE_f32, .name = net->train->recipe->numbers.at[at].name};
    float one = 1;
    Value *x = graph_const(net->graph, type_of(TYPE_f32, 0, NULL), arena_copy(net->arena, &one, sizeof one)), *out[OUTPUTS_MAX];
    OpCall call = {.cx = net->cx, .op = op_find("map"), .place = ast->place, .n_in = 1, .in = {x}, .training = net->training};
    call.attr[0] = (Attr){.kind = ATTR_FORMULA, .formula = expr_prim(net->cx, PRIM_mul, expr_arg(net->cx, TYPE_f32, 0), hyper, NULL)};
    if (graph_call(net->graph, &call, layer_shown(scope->layer), out))
        *v = val_tensor(out[0]);
    later(net, ast, "a schedule as a number", "a constant factor");
    return true;
}

// --- the other keys -----------------------------------------------------------------------------------------------------------------

static void set_batch(Net *net, Scope *scope, Ast *value, Ast *s)
{
    (void)s;
    if (value->kind == AST_NAME && strcmp(value->text, "whole") == 0) {
        recipe(net)->whole = true;
        recipe(net)->batch = 1;
        later(net, value, "`batch = whole`", "a number of samples");
    } else
        whole_of(net, scope, value, "batch", 1, &recipe(net)->batch);
}

static void both_lengths(Net *net, const Ast *s)
{
    Train *t = net->train;
    const Ast *first = t->length_said;
    t->length_said = s;
    if (first == NULL || strcmp(first->items[0]->text, s->items[0]->text) == 0)
        return;
    bool epochs = first->items[0]->text[0] == 'e';
    int line = diag_line(net->cx->diag, s->place), other = diag_line(net->cx->diag, first->place);
    diag_report(net->cx->diag, s->place, MESSAGE_E0504, epochs ? other : line, epochs ? line : other);
}

static void set_epochs(Net *net, Scope *scope, Ast *value, Ast *s)
{
    if (s != NULL)
        both_lengths(net, s);
    number_of(net, scope, value, "epochs", 1e-9, &recipe(net)->epochs);
    recipe(net)->steps = 0;
}

static void set_steps(Net *net, Scope *scope, Ast *value, Ast *s)
{
    if (s != NULL)
        both_lengths(net, s);
    whole_of(net, scope, value, "steps", 1, &recipe(net)->steps);
    recipe(net)->epochs = 0;
}

static void read_clip(Net *net, Scope *scope, Ast *value, int *clip, double *at)
{
    const char *name = value->kind == AST_CALL && value->a->kind == AST_NAME && value->count == 1 ? value->a->text : "";
    bool norm = strcmp(name, "norm") == 0;
    if (!norm && strcmp(name, "value") != 0) {
        diag_report(net->cx->diag, value->place, MESSAGE_E0311, "clip", "norm(…) or value(…)", "this");
        return;
    }
    if (number_of(net, scope, value->items[0], "clip", 1e-30, at))
        *clip = norm ? CLIP_NORM : CLIP_VALUE;
}

static void set_clip(Net *net, Scope *scope, Ast *value, Ast *s)
{
    (void)s;
    int clip = CLIP_NONE;
    read_clip(net, scope, value, &clip, &recipe(net)->clip_at);
    recipe(net)->clip = clip;
}

static void set_precision(Net *net, Scope *scope, Ast *value, Ast *s)
{
    (void)scope;
    (void)s;
    DType type = value->kind == AST_NAME ? type_find(value->text) : TYPE_NONE;
    if (type == TYPE_NONE || !type_is_float(type)) {
        diag_report(net->cx->diag, value->place, MESSAGE_E0311, "precision", "f32, bf16, f16 or f64", value->kind == AST_NAME ? value->text : "this");
        return;
    }
    recipe(net)->precision = type;
    if (type != TYPE_f32)
        later(net, value, "a precision other than f32", "leave the line out: f32 is the default");
}

static void set_micro_batch(Net *net, Scope *scope, Ast *value, Ast *s)
{
    (void)s;
    Recipe *r = recipe(net);
    if (!whole_of(net, scope, value, "micro_batch", 1, &r->micro_batch))
        return;
    later(net, value, "`micro_batch`", "a smaller batch");
}

static void set_ema(Net *net, Scope *scope, Ast *value, Ast *s)
{
    (void)s;
    Recipe *r = recipe(net);
    Val v = eval(net, scope, value);
    if (v.kind == VAL_NONE)
        return;
    if (v.kind != VAL_NUMBER || v.number.real < 0 || v.number.real >= 1) {
        wrong(net, value, "ema", "a decay from 0 to below 1", &v);
        return;
    }
    r->ema = v.number.real;
}

// A list of selectors, or one: parameters are known at the end of the section.
static void late_selectors(Net *net, Scope *scope, Ast *value, const char *what)
{
    while (value->kind == AST_PAREN)
        value = value->a;
    Ast **items = value->kind == AST_LIST ? value->items : &value;
    int n, count = value->kind == AST_LIST ? value->count : 1;
    Param **params = chosen_params(net, scope, items, count, &n);
    Recipe *r = recipe(net);
    for (int i = 0; i < n; i++) {
        if (strcmp(what, "recompute") == 0)
            LIST_ADD(net->arena, r->recompute, params[i]);
        else
            LIST_ADD(net->arena, r->quantize.except, params[i]);
    }
}

static void set_recompute(Net *net, Scope *scope, Ast *value, Ast *s)
{
    (void)s;
    LIST_ADD(net->arena, net->train->late, ((Late){net->train->key_statement, scope, value, -1}));
    later(net, value, "`recompute`", "leave the line out");
}

// int8(weights = per_channel, activations = per_tensor, from = 1 epoch, except = [@head.*])
static void set_quantize(Net *net, Scope *scope, Ast *value, Ast *s)
{
    (void)s;
    static const char *const names[] = {"weights", "activations", "from", "except"};
    Quantize *q = &recipe(net)->quantize;
    Ast *name = value->kind == AST_CALL ? value->a : value;
    if (name->kind != AST_NAME || strcmp(name->text, "int8") != 0) {
        diag_report(net->cx->diag, value->place, MESSAGE_E0311, "quantize", "int8(…)", name->kind == AST_NAME ? name->text : "this");
        return;
    }
    *q = (Quantize){.on = true, .weights = "per_channel", .activations = "per_tensor", .from = {0, UNIT_STEPS}};
    for (int i = 0; value->kind == AST_CALL && i < value->count; i++) {
        Ast *arg = value->items[i];
        const char *key = arg->kind == AST_ARGUMENT ? arg->text : "";
        bool word = arg->kind == AST_ARGUMENT && arg->a->kind == AST_NAME &&
                    (strcmp(arg->a->text, "per_channel") == 0 || strcmp(arg->a->text, "per_tensor") == 0);
        if (strcmp(key, "from") == 0) {
            duration_of(net, scope, arg->a, "from of int8", &q->from);
        } else if (strcmp(key, "except") == 0) {
            LIST_ADD(net->arena, net->train->late, ((Late){net->train->key_statement, scope, arg->a, -1}));
        } else if (strcmp(key, "weights") != 0 && strcmp(key, "activations") != 0) {
            diag_report(net->cx->diag, arg->place, MESSAGE_E0202, "int8", key[0] != 0 ? key : "there");
            diag_help_nearest(net->cx->diag, key, names, COUNT(names));
        } else if (!word) {
            diag_report(net->cx->diag, arg->a->place, MESSAGE_E0311, arena_printf(net->arena, "%s of int8", key), "per_channel or per_tensor",
                        arg->a->kind == AST_NAME ? arg->a->text : "this");
        } else if (key[0] == 'w') {
            q->weights = arg->a->text;
        } else {
            q->activations = arg->a->text;
        }
    }
    later(net, value, "`quantize`", "leave the line out");
}

static const Value *input_named(const Net *net, const char *name)
{
    for (int i = 0; i < net->graph->inputs.count; i++)
        if (strcmp(net->graph->inputs.at[i]->name, name) == 0)
            return net->graph->inputs.at[i];
    return NULL;
}

// balanced(label), weighted(w)
static void set_sampler(Net *net, Scope *scope, Ast *value, Ast *s)
{
    (void)scope;
    (void)s;
    const char *name = value->kind == AST_CALL && value->a->kind == AST_NAME && value->count == 1 ? value->a->text : "";
    bool balanced = strcmp(name, "balanced") == 0;
    const Ast *by = balanced || strcmp(name, "weighted") == 0 ? value->items[0] : NULL;
    const Value *v = by != NULL && by->kind == AST_NAME ? input_named(net, by->text) : NULL;
    if (by == NULL) {
        diag_report(net->cx->diag, value->place, MESSAGE_E0311, "sampler", "balanced(TARGET) or weighted(TARGET)", "this");
    } else if (v == NULL || v->type.shape.rank != 1 || (balanced && type_is_float(v->type.dtype))) {
        diag_report(net->cx->diag, by->place, MESSAGE_E0311, "what a sampler goes by", balanced ? "an integer input or target of one number a sample" : "an input or target of one number a sample",
                    v != NULL ? type_text(net->cx, &v->type) : by->kind == AST_NAME ? by->text : "this");
    } else {
        recipe(net)->sampler = name;
        recipe(net)->sampler_by = by->text;
    }
}

static void set_bucket(Net *net, Scope *scope, Ast *value, Ast *s)
{
    (void)s;
    Val v = eval(net, scope, value);
    const Symbol *symbol[1];
    if (v.kind == VAL_NONE)
        return;
    if (v.kind != VAL_SIZE || size_symbols(v.size, symbol, 1) != 1 || symbol[0]->batch) {
        wrong(net, value, "bucket", "a named size that differs between samples, such as T", &v);
        return;
    }
    recipe(net)->bucket = symbol[0];
    later(net, value, "`bucket`", "leave the line out");
}

static void set_evaluate(Net *net, Scope *scope, Ast *value, Ast *s) { (void)s; duration_of(net, scope, value, "evaluate", &recipe(net)->evaluate); }
static void set_save(Net *net, Scope *scope, Ast *value, Ast *s)     { (void)s; duration_of(net, scope, value, "save", &recipe(net)->save); }
static void set_shuffle(Net *net, Scope *scope, Ast *value, Ast *s)  { (void)s; flag_of(net, scope, value, "shuffle", &recipe(net)->shuffle); }
static void set_drop_last(Net *net, Scope *scope, Ast *value, Ast *s) { (void)s; flag_of(net, scope, value, "drop_last", &recipe(net)->drop_last); }

static void set_seed(Net *net, Scope *scope, Ast *value, Ast *s)
{
    (void)s;
    int64_t seed;
    if (whole_of(net, scope, value, "seed", 0, &seed))
        recipe(net)->seed = (uint64_t)seed;
}

static const Key keys[] = {     // a key without a function is refused by name
    {"loss", NULL, ""},             {"batch", set_batch, ""},       {"epochs", set_epochs, ""},     {"steps", set_steps, ""},
    {"optimizer", set_optimizer, ""}, {"schedule", set_schedule, ""}, {"clip", set_clip, ""},       {"precision", set_precision, ""},
    {"evaluate", set_evaluate, ""}, {"save", set_save, ""},         {"shuffle", set_shuffle, ""},   {"drop_last", set_drop_last, ""},
    {"seed", set_seed, ""},
    {"micro_batch", set_micro_batch, ""}, {"ema", set_ema, ""},     {"quantize", set_quantize, ""}, {"recompute", set_recompute, ""},
    {"sampler", set_sampler, ""},   {"bucket", set_bucket, ""},
};

static const Key *key_find(const char *name)
{
    for (int i = 0; i < COUNT(keys); i++)
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

// --- loss and metrics -----------------------------------------------------------------------------------------------------------------

static Value *one_number(Net *net, Scope *scope, Ast *ast, const Val *v)
{
    if (v->kind == VAL_NONE)
        return NULL;
    Value *t = as_tensor(net, scope, ast, v, TYPE_f32);
    if (t == NULL || (t->type.shape.rank == 0 && type_is_float(t->type.dtype)))
        return t;
    diag_report(net->cx->diag, ast->place, MESSAGE_E0305, type_text(net->cx, &t->type));
    return NULL;
}

static void run_loss(Net *net, Scope *scope, Ast *s)
{
    Val v = eval(net, scope, s->b);
    Value *loss = one_number(net, scope, s->b, &v);
    s->items[0]->read = true;
    net->train->has_loss = true;
    if (loss != NULL)
        net->graph->loss = loss;
    scope_bind(net, scope, s->items[0], "loss", loss != NULL ? val_tensor(loss) : (Val){0}, NULL);
}

static const char *metric_name(const Ast *s)
{
    return s->text != NULL ? s->text : s->a->kind == AST_NAME ? s->a->text
         : s->a->kind == AST_CALL && s->a->a->kind == AST_NAME ? s->a->a->text : NULL;
}

static void run_metric(Net *net, Scope *scope, Ast *s)
{
    const char *name = metric_name(s);
    if (name == NULL) {
        diag_report(net->cx->diag, s->a->place, MESSAGE_E0209, "a metric that is an expression", "its name: metric error = …");
        return;
    }
    Val v = eval(net, scope, s->a);
    if (v.kind == VAL_NONE)
        map_set(net->train->failed_metrics, name, s);
    if (v.kind == VAL_NONE || net->training)
        return;
    Val single = v.kind == VAL_TUPLE && v.op != NULL ? v.items[0] : v;
    Value *t = as_tensor(net, scope, s->a, &single, TYPE_f32);
    if (t == NULL)
        return;
    const OpDef *op = s->a->kind == AST_CALL && t->node != NULL ? t->node->op : NULL;
    bool row = op != NULL && op->traits & OP_METRIC, loss = op != NULL && op->traits & OP_LOSS;
    if (!row && t->type.shape.rank != 0) {
        diag_report(net->cx->diag, s->a->place, MESSAGE_E0311, "a metric", "one number", type_text(net->cx, &t->type));
        return;
    }
    for (int i = 0; i < net->graph->metrics.count; i++)
        if (strcmp(net->graph->metrics.at[i].name, name) == 0)
            diag_report(net->cx->diag, s->place, MESSAGE_E0512, arena_printf(net->arena, "metric %s", name));
    LIST_ADD(net->arena, net->graph->metrics, ((NamedValue){.name = name, .value = t, .metric = row ? &op->metric : NULL,
                                                            .better = row ? op->metric.better : loss ? -1 : 0}));
}

// Which way metric `name` is better: +1, -1, 0 not known; -2 after a report that there is none.
static int better_of(Net *net, const Ast *at, const char *name)
{
    if (strcmp(name, "loss") == 0 && recipe(net)->updates.count == 0)
        return -1;
    const char *names[64] = {"loss"};
    int count = 1;
    for (int i = 0; i < net->graph->metrics.count; i++) {
        if (strcmp(net->graph->metrics.at[i].name, name) == 0)
            return net->graph->metrics.at[i].better;
        if (count < 64)
            names[count++] = net->graph->metrics.at[i].name;
    }
    if (map_get(net->train->failed_metrics, name) != NULL)
        return -2;
    diag_report(net->cx->diag, at->name, MESSAGE_E0507, name);
    diag_help_nearest(net->cx->diag, name, names, count);
    return -2;
}

static int direction(Net *net, const Ast *s, const char *how, const char *metric, const char *statement)
{
    int better = better_of(net, s, metric);
    if (better == -2)
        return 0;
    if (strcmp(how, "highest") == 0 || strcmp(how, "higher") == 0)
        return 1;
    if (strcmp(how, "lowest") == 0 || strcmp(how, "lower") == 0)
        return -1;
    if (strcmp(how, "best") != 0 && strcmp(how, "better") != 0) {
        diag_report(net->cx->diag, s->place, MESSAGE_E0311, statement, "followed by best, lowest or highest (better, lower or higher)", how);
        return 0;
    }
    if (better == 0) {
        diag_report(net->cx->diag, s->name, MESSAGE_E0503, metric);
        diag_help(net->cx->diag, strcmp(statement, "keep") == 0 ? "keep lowest by %s" : "stop after … without lower %s", metric);
    }
    return better;
}

static void late_keep(Net *net, Scope *scope, Ast *s)
{
    Recipe *r = recipe(net);
    int64_t n;
    if (s->word != NULL) {
        r->keep_by = s->word;
        r->keep_better = direction(net, s, s->text, s->word, "keep");
    } else if (strcmp(s->text, "last") != 0) {
        diag_report(net->cx->diag, s->name, MESSAGE_E0311, "keep", "keep last N, or keep best by METRIC", s->text);
    } else if (whole_of(net, scope, s->a, "keep last", 1, &n)) {
        r->keep_last = (int)(n > 1000 ? 1000 : n);
    }
}

static void late_stop(Net *net, Scope *scope, Ast *s)
{
    Recipe *r = recipe(net);
    if (strcmp(s->text, "after") != 0 || strcmp(s->others[0]->text, "without") != 0) {
        diag_report(net->cx->diag, s->place, MESSAGE_E0311, "stop", "stop after 5 epochs without better accuracy", "this");
        return;
    }
    duration_of(net, scope, s->a, "stop after", &r->stop_after);
    r->stop_by = s->others[2]->text;
    r->stop_better = direction(net, s, s->others[1]->text, r->stop_by, "stop");
}

static void late_freeze(Net *net, Scope *scope, Ast *s)
{
    int n;
    Param **params = chosen_params(net, scope, s->items, s->count, &n);
    if (s->a == NULL) {
        for (int i = 0; i < n; i++)
            params[i]->trainable = false;
        return;
    }
    Until until = {.ast = s->a};
    if (!duration_of(net, scope, s->a, "until", &until.until))
        return;
    for (int i = 0; i < n; i++)
        LIST_ADD(net->arena, until.params, params[i]);
    LIST_ADD(net->arena, net->train->untils, until);
    later(net, s->a, "freeze … until", "freeze for the whole run, without until");
}

static bool is_among(Param *const *list, int count, const Param *p)
{
    for (int i = 0; i < count; i++)
        if (list[i] == p)
            return true;
    return false;
}

// The stages of freezing, in time: until a moment, all that is frozen until then or longer.
static void make_stages(Net *net)
{
    Recipe *r = recipe(net);
    const Train *t = net->train;
    for (int i = 0; i < t->untils.count; i++) {
        const Until *u = &t->untils.at[i];
        int at = 0;
        if (u->until.unit != t->untils.at[0].until.unit) {
            Val v = eval(net, net->top, (Ast *)u->ast);
            wrong(net, u->ast, "until", "in the same unit as the others, so that their order is known", &v);
            return;
        }
        while (at < r->stages.count && r->stages.at[at].until.amount < u->until.amount)
            at++;
        if (at < r->stages.count && r->stages.at[at].until.amount == u->until.amount)
            continue;
        LIST_ADD(net->arena, r->stages, (FreezeStage){0});
        for (int k = r->stages.count - 1; k > at; k--)
            r->stages.at[k] = r->stages.at[k - 1];
        r->stages.at[at] = (FreezeStage){.until = u->until};
    }
    for (int k = 0; k < r->stages.count; k++) {
        FreezeStage *stage = &r->stages.at[k];
        for (int i = 0; i < t->untils.count; i++)
            for (int p = 0; t->untils.at[i].until.amount >= stage->until.amount && p < t->untils.at[i].params.count; p++)
                if (!is_among(stage->frozen.at, stage->frozen.count, t->untils.at[i].params.at[p]))
                    LIST_ADD(net->arena, stage->frozen, t->untils.at[i].params.at[p]);
    }
}

static void late_key(Net *net, const Late *late)
{
    const char *key = late->s->items[0]->text;
    if (strcmp(key, "optimizer") != 0)
        late_selectors(net, late->scope, late->value, key);
    else if (late->update >= 0)
        late_update_optimizer(net, late->scope, late->value, late->s, &recipe(net)->updates.at[late->update]);
    else
        late_optimizer(net, late->scope, late->value, late->s);
}

static void late_update_params(Net *net, Scope *scope, Ast *s, UpdateRule *u)
{
    int n;
    Param **params = chosen_params(net, scope, s->items, s->count, &n);
    for (int i = 0; i < n; i++)
        LIST_ADD(net->arena, u->params, params[i]);
}

static void run_late(Net *net, const Late *late)
{
    switch (late->s->kind) {
    case AST_KEEP:   late_keep(net, late->scope, late->s); break;
    case AST_STOP:   late_stop(net, late->scope, late->s); break;
    case AST_FREEZE: late_freeze(net, late->scope, late->s); break;
    case AST_DATA:   run_data(net, late->scope, late->s); break;
    case AST_UPDATE: late_update_params(net, late->scope, late->s, &recipe(net)->updates.at[late->update]); break;
    default:         late_key(net, late);
    }
}

// --- statements ---------------------------------------------------------------------------------------------------------------------

static void run_target(Net *net, Scope *scope, Ast *s)
{
    Type type;
    Binding *b = map_get(scope->names, s->text);
    if (b != NULL && !b->ended) {
        diag_report(net->cx->diag, s->name, MESSAGE_E0207, s->text, diag_line(net->cx->diag, b->ast->place));
        return;
    }
    Val v = {0};
    if (eval_type(net, scope, s->a, &type)) {
        v = val_tensor(graph_input(net->graph, s->text, type, s->place));
        net->graph->n_targets++;
    }
    scope_bind(net, scope, s, s->text, v, "a target");
}

static void set_key(Net *net, Scope *scope, const Key *key, Ast *value, Ast *s)
{
    if (key->set == NULL)
        refuse(net, s != NULL ? s : value, arena_printf(net->arena, "`%s`", key->name), key->missing);
    else if (net->train->record)
        key->set(net, scope, value, s);
}

static bool is_key(const Ast *s)
{
    return s->count == 1 && s->items[0]->kind == AST_NAME && key_find(s->items[0]->text) != NULL;
}

static void run_key(Net *net, Scope *scope, Ast *s)
{
    const Key *key = key_find(s->items[0]->text);
    if (strcmp(key->name, "loss") == 0) {
        run_loss(net, scope, s);
        return;
    }
    if (s->other_count > 0 && strcmp(key->name, "optimizer") != 0) {
        diag_report(net->cx->diag, s->place, MESSAGE_E0119, "`for`", arena_printf(net->arena, "the key %s; it belongs to the optimizer", key->name));
        return;
    }
    if (!net->train->record && key->set != NULL)
        return;
    Ast *setting = s->other_count == 0 ? setting_ast(net, key->name) : NULL;
    net->train->key_statement = s;
    set_key(net, scope, key, setting != NULL ? setting : s->b, s);
}

// --- update -------------------------------------------------------------------------------------------------------------------------

static const char *const update_keys[] = {"loss", "optimizer", "schedule", "clip", "every"};

static void update_loss(Net *net, Scope *scope, Ast *value, int at)
{
    Val v = eval(net, scope, value);
    Value *loss = one_number(net, scope, value, &v);
    net->train->has_loss = net->train->update_has_loss = true;
    if (loss != NULL)
        LIST_ADD(net->arena, net->train->losses, loss);
    if (net->training && net->update == at && loss != NULL)
        net->graph->loss = loss;
}

static void update_key(Net *net, Scope *scope, Ast *s, const char *key, int at)
{
    Ast *value = s->b;
    if (strcmp(key, "loss") == 0) {
        update_loss(net, scope, value, at);
        return;
    }
    if (!net->train->record)
        return;
    UpdateRule *u = &recipe(net)->updates.at[at];
    Ast *setting = setting_ast(net, arena_printf(net->arena, "update.%s.%s", u->name, key));
    value = setting != NULL ? setting : value;
    Schedule schedule = {0};
    if (strcmp(key, "optimizer") == 0) {
        LIST_ADD(net->arena, net->train->late, ((Late){s, scope, value, at}));
    } else if (strcmp(key, "schedule") == 0) {
        schedule_chain(net, scope, value, true, &schedule);
        LIST_COPY(u->schedule, schedule.steps);
    } else if (strcmp(key, "clip") == 0) {
        read_clip(net, scope, value, &u->clip, &u->clip_at);
    } else {
        Val v = eval(net, scope, value);
        int64_t n = 0;
        if (v.kind == VAL_DURATION && strcmp(v.text, "steps") == 0 && v.number.exact && v.number.den == 1)
            n = v.number.num;
        if (n < 1 && v.kind != VAL_NONE)
            wrong(net, value, "every", "a number of steps, such as 5 steps", &v);
        u->every = n;
    }
}

static const char *update_key_of(const Ast *s)
{
    const char *name = s->kind == AST_ASSIGN && s->count == 1 && s->items[0]->kind == AST_NAME ? s->items[0]->text : NULL;
    for (int i = 0; name != NULL && i < COUNT(update_keys); i++)
        if (strcmp(update_keys[i], name) == 0)
            return name;
    return NULL;
}

// The losses of all updates are evaluated in every run, so that random draws are the same; one of them counts.
static void run_update(Net *net, Scope *scope, Ast *s)
{
    int at = net->train->updates++, errors = net->cx->diag->errors;
    Scope *inside = scope_new(net, SCOPE_BRANCH, scope, scope->file, scope->layer);
    net->train->update_has_loss = false;
    if (net->train->record) {
        for (int i = 0; i < recipe(net)->updates.count; i++)
            if (strcmp(recipe(net)->updates.at[i].name, s->text) == 0)
                diag_report(net->cx->diag, s->place, MESSAGE_E0512, arena_printf(net->arena, "update %s", s->text));
        LIST_ADD(net->arena, recipe(net)->updates, ((UpdateRule){.name = s->text, .every = 1}));
        LIST_ADD(net->arena, net->train->late, ((Late){s, scope, NULL, at}));
    }
    for (int i = 0; i < s->body->count; i++) {
        Ast *line = s->body->items[i];
        const char *key = update_key_of(line);
        if (key != NULL)
            update_key(net, inside, line, key, at);
        else if (line->kind == AST_ASSIGN && is_key(line))
            diag_report(net->cx->diag, line->place, MESSAGE_E0206, "update", line->items[0]->text);
        else
            run_statement(net, inside, line);
    }
    if (!net->train->update_has_loss && net->cx->diag->errors == errors)
        diag_report(net->cx->diag, s->place, MESSAGE_E0506, arena_printf(net->arena, "loss in update %s", s->text));
    report_unread_names(net, inside, "update", update_keys, COUNT(update_keys));
    later(net, s, "`update`", "one loss and one optimizer");
}

bool train_statement(Net *net, Scope *scope, Ast *s)
{
    switch (s->kind) {
    case AST_TARGET: run_target(net, scope, s); return true;
    case AST_METRIC: run_metric(net, scope, s); return true;
    case AST_UPDATE: run_update(net, scope, s); return true;
    case AST_FREEZE: case AST_KEEP: case AST_STOP: case AST_DATA:
        if (net->train->record)
            LIST_ADD(net->arena, net->train->late, ((Late){s, scope, NULL, -1}));
        return true;
    case AST_ASSIGN:
        if (is_key(s))
            run_key(net, scope, s);
        return is_key(s);
    default: return false;
    }
}

// --- the section --------------------------------------------------------------------------------------------------------------------

// A misspelt key is a name that nothing reads.
void report_unread_names(Net *net, const Scope *scope, const char *section, const char *const *known, int count)
{
    for (int i = 0; i < map_count(scope->names); i++) {
        Binding *b = map_value(scope->names, i);
        const char *name = map_key(scope->names, i);
        if (b->ended || b->ast->read || b->fixed != NULL)
            continue;
        diag_report(net->cx->diag, b->ast->place, MESSAGE_E0206, section, name);
        diag_help_nearest(net->cx->diag, name, known, count);
    }
}

static void report_unread_train(Net *net, const Scope *scope)
{
    const char *names[COUNT(keys)];
    for (int i = 0; i < COUNT(keys); i++)
        names[i] = keys[i].name;
    report_unread_names(net, scope, "train", names, COUNT(keys));
}

// Keys that only the command line gives.
static void run_settings(Net *net, Scope *scope)
{
    for (int i = 0; i < COUNT(keys); i++) {
        Ast *setting = keys[i].set != NULL && keys[i].set != set_optimizer ? setting_ast(net, keys[i].name) : NULL;
        if (setting != NULL)
            set_key(net, scope, &keys[i], setting, NULL);
    }
}

// Which way the metric of a plateau is better; metrics are known at the end.
static void find_better(Net *net, ScheduleStep *step)
{
    if (step->by == NULL)
        return;
    Ast at = {.place = step->place, .name = step->place};
    step->better = better_of(net, &at, step->by);
    if (step->better == 0)
        diag_report(net->cx->diag, step->place, MESSAGE_E0503, step->by);
}

// What moves matrices moves nothing else.
static void check_matrix(Net *net, const Param *param, const Ast *train)
{
    const Recipe *r = recipe(net);
    const OptimizerDef *own = param->group < r->groups.count ? r->groups.at[param->group].own : NULL, *def = own != NULL ? own : r->optimizer;
    if (!param->trainable || param->type.shape.rank >= 2 || strcmp(def->tensor, "orthogonal") != 0)
        return;
    diag_report(net->cx->diag, train->place, MESSAGE_E0311, def->name, "for matrices, parameters of two axes or more",
                arena_printf(net->arena, "%s: %s", param->path, type_text(net->cx, &param->type)));
    diag_help(net->cx->diag, "an optimizer for all, then `optimizer = %s(…) for @*.weight`", def->name);
}

static void check_recipe(Net *net, const Ast *train)
{
    Diag *diag = net->cx->diag;
    const Recipe *r = recipe(net);
    if (!net->train->has_loss)
        diag_report(diag, train->place, MESSAGE_E0506, "loss");
    if (diag->errors > 0)
        return;
    if (r->batch == 0)
        diag_report(diag, train->place, MESSAGE_E0506, "batch");
    if (r->epochs == 0 && r->steps == 0)
        diag_report(diag, train->place, MESSAGE_E0506, "epochs or steps");
    if (r->optimizer == NULL && r->updates.count == 0)
        diag_report(diag, train->place, MESSAGE_E0506, "optimizer");
    for (int i = 0; i < net->model->params.count && r->optimizer != NULL; i++)
        check_matrix(net, net->model->params.at[i], train);
    for (int i = 0; i < r->schedule.count; i++)
        find_better(net, &r->schedule.at[i]);
    for (int i = 0; i < r->updates.count; i++)
        if (r->updates.at[i].optimizer == NULL)
            diag_report(diag, train->place, MESSAGE_E0506, arena_printf(net->arena, "optimizer in update %s", r->updates.at[i].name));
    if (r->updates.count > 0 && (r->optimizer != NULL || net->graph->loss != NULL))
        diag_report(diag, train->place, MESSAGE_E0512, r->optimizer != NULL ? "optimizer, in train and in update," : "loss, in train and in update,");
    if (r->micro_batch > 0 && (r->micro_batch > r->batch || r->batch % r->micro_batch != 0))
        diag_report(diag, train->place, MESSAGE_E0306, "batch / micro_batch", arena_printf(net->arena, "%lld / %lld", (long long)r->batch, (long long)r->micro_batch));
}

static void finish_section(Net *net, Scope *scope, const Ast *train)
{
    if (map_count(scope->names) >= 0)
        run_settings(net, scope);
    for (int i = 0; i < net->train->late.count; i++)
        run_late(net, &net->train->late.at[i]);
    make_stages(net);
    report_unread_train(net, scope);
    bool good = net->cx->diag->errors == 0 && !net->train->data_failed;
    check_recipe(net, train);
    if (good)
        check_filled(net, train);
}

// Training minimises the loss and what layers add to it.
static void add_auxiliary(Net *net, const Scope *scope, const Ast *train)
{
    Graph *g = net->graph;
    Builder b = {.cx = net->cx, .graph = g, .scope = layer_shown(scope->layer), .place = train->place, .training = net->training};
    for (int i = 0; g->loss != NULL && i < g->auxiliary.count; i++)
        g->loss = build2(&b, "add", g->loss, g->auxiliary.at[i].value, "");
}

void run_train(Net *net, Scope *file_scope, Ast *train)
{
    bool record = net->model->recipe == NULL;
    Train *t = NEW(net->arena, Train);
    net->train = t;
    t->failed_metrics = map_new(net->arena);
    t->record = record;
    net->train_filled = map_new(net->arena);
    if (record) {
        t->recipe = NEW(net->arena, Recipe);
        t->recipe->shuffle = true;
        t->recipe->evaluate = (Duration){1, UNIT_EPOCHS};
        net->model->recipe = t->recipe;
    }
    t->recipe = net->model->recipe;
    Scope *scope = scope_new(net, SCOPE_TRAIN, file_scope, file_scope->file, file_scope->layer);
    run_body(net, scope, train->body);
    add_auxiliary(net, scope, train);
    if (record)
        finish_section(net, scope, train);
}
