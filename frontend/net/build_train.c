// build_train.c: the train section: targets, loss and metrics go into the Graph, keys into the Recipe. The section is run
// for evaluation and for training; the Recipe is written by the first of the two. What needs all parameters and metrics to
// be known (groups, freeze, keep, stop, data) waits until the rest of the section is read.
#include <string.h>

#include "build.h"
#include "train.h"

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
            if (map_get(done, selected[i]->path) != NULL)
                continue;
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

static int group_of(Net *net, const double *args)
{
    Recipe *r = recipe(net);
    for (int i = 0; i < r->groups.count; i++)
        if (memcmp(r->groups.at[i].arg, args, sizeof r->groups.at[i].arg) == 0)
            return i;
    OptimizerGroup group;
    memcpy(group.arg, args, sizeof group.arg);
    LIST_ADD(net->arena, r->groups, group);
    return r->groups.count - 1;
}

static void make_groups(Net *net, Scope *scope, const OptimizerDef *def, const OptimizerGroup *base, Ast *body)
{
    int n = net->model->params.count;
    double (*args)[10] = arena_alloc(net->arena, sizeof(*args) * (size_t)(n + 1));
    Param **selected = NEW_ARRAY(net->arena, Param *, n + 1);
    for (int i = 0; i < n; i++)
        memcpy(args[i], base->arg, sizeof base->arg);
    net->train->group_args = map_new(net->arena);
    for (int i = 0; i < n; i++)
        map_set(net->train->group_args, net->model->params.at[i]->path, args[i]);
    if (body != NULL)
        group_lines(net, scope, body, def, selected);
    for (int i = 0; i < n; i++)
        net->model->params.at[i]->group = group_of(net, args[i]);
}

static void set_optimizer(Net *net, Scope *scope, Ast *value, Ast *s)
{
    (void)s;
    LIST_ADD(net->arena, net->train->late, ((Late){net->train->key_statement, scope, value}));
}

static void late_optimizer(Net *net, Scope *scope, Ast *value, Ast *s)
{
    Recipe *r = recipe(net);
    const OptimizerDef *def = optimizer_named(net, value->kind == AST_CALL ? value->a : value);
    OptimizerGroup base = {{0}};
    if (def == NULL)
        return;
    for (int i = 0; i < def->n_args; i++)
        base.arg[i] = def->arg[i].initial;
    for (int i = 0; value->kind == AST_CALL && i < value->count; i++)
        optimizer_argument(net, scope, value->items[i], def, base.arg);
    for (int i = 0; i < def->n_args; i++) {
        Ast *setting = setting_ast(net, arena_printf(net->arena, "optimizer.%s", def->arg[i].name));
        if (setting != NULL)
            number_of(net, scope, setting, def->arg[i].name, -1e300, &base.arg[i]);
    }
    r->optimizer = def;
    LIST_ADD(net->arena, r->groups, base);
    make_groups(net, scope, def, &base, s->body);
}

static void schedule_argument(Net *net, Scope *scope, Ast *arg, int place, ScheduleStep *step, bool *given)
{
    const ScheduleDef *def = step->def;
    static const char *const names[] = {"for", "for", "over", "every"};
    bool named = arg->kind == AST_ARGUMENT, first = !named && place == 0 && def->length != LENGTH_OVER;
    Ast *value = named ? arg->a : arg;
    if (first || (named && strcmp(arg->text, names[def->length]) == 0)) {
        duration_of(net, scope, value, arena_printf(net->arena, "the length of %s", def->name), &step->length);
        return;
    }
    int at = named ? arg_of(def->arg, def->n_args, arg->text) : place - (def->length != LENGTH_OVER);
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

static void add_schedule(Net *net, Scope *scope, Ast *ast, bool last)
{
    Ast *name = ast->kind == AST_CALL ? ast->a : ast;
    ScheduleStep step = {.def = name->kind == AST_NAME ? schedule_find(name->text) : NULL};
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
    bool must = step.def->length == LENGTH_FIRST || step.def->length == LENGTH_EVERY || !last;
    if (must && step.length.unit == UNIT_NONE)
        diag_report(diag, ast->place, MESSAGE_E0209, step.def->name, "its length");
    LIST_ADD(net->arena, recipe(net)->schedule, step);
}

static void schedule_chain(Net *net, Scope *scope, Ast *ast, bool last)
{
    while (ast->kind == AST_PAREN)
        ast = ast->a;
    if (ast->kind == AST_BINARY && strcmp(ast->text, "then") == 0) {
        schedule_chain(net, scope, ast->a, false);
        schedule_chain(net, scope, ast->b, last);
        return;
    }
    add_schedule(net, scope, ast, last);
}

static void set_schedule(Net *net, Scope *scope, Ast *value, Ast *s) { (void)s; schedule_chain(net, scope, value, true); }

// --- the other keys -----------------------------------------------------------------------------------------------------------------

static void set_batch(Net *net, Scope *scope, Ast *value, Ast *s)
{
    (void)s;
    if (value->kind == AST_NAME && strcmp(value->text, "whole") == 0)
        refuse(net, value, "`batch = whole`", "a number of samples");
    else
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

static void set_clip(Net *net, Scope *scope, Ast *value, Ast *s)
{
    (void)s;
    Recipe *r = recipe(net);
    const char *name = value->kind == AST_CALL && value->a->kind == AST_NAME && value->count == 1 ? value->a->text : "";
    bool norm = strcmp(name, "norm") == 0;
    if (!norm && strcmp(name, "value") != 0) {
        diag_report(net->cx->diag, value->place, MESSAGE_E0311, "clip", "norm(…) or value(…)", "this");
        return;
    }
    if (number_of(net, scope, value->items[0], "clip", 1e-30, &r->clip_at))
        r->clip = norm ? CLIP_NORM : CLIP_VALUE;
}

static void set_precision(Net *net, Scope *scope, Ast *value, Ast *s)
{
    (void)scope;
    (void)s;
    if (value->kind != AST_NAME || strcmp(value->text, "f32") != 0)
        refuse(net, value, "a precision other than f32", "leave the line out: f32 is the default");
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
    {"micro_batch", NULL, "a smaller batch"},                       {"ema", NULL, "leave the line out"},
    {"quantize", NULL, "leave the line out"},                       {"recompute", NULL, "leave the line out"},
    {"sampler", NULL, "shuffle = true"},                            {"bucket", NULL, "leave the line out"},
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
    if (strcmp(name, "loss") == 0)
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
    if (s->a != NULL) {
        refuse(net, s->a, "freeze … until", "freeze for the whole run, without until");
        return;
    }
    Param **selected = NEW_ARRAY(net->arena, Param *, net->model->params.count + 1);
    for (int i = 0; i < s->count; i++) {
        int count = select_params(net, scope, s->items[i], "", selected);
        for (int k = 0; k < count; k++)
            selected[k]->trainable = false;
    }
}

static void run_late(Net *net, const Late *late)
{
    switch (late->s->kind) {
    case AST_KEEP:   late_keep(net, late->scope, late->s); break;
    case AST_STOP:   late_stop(net, late->scope, late->s); break;
    case AST_FREEZE: late_freeze(net, late->scope, late->s); break;
    case AST_DATA:   run_data(net, late->scope, late->s); break;
    default:         late_optimizer(net, late->scope, late->value, late->s);
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
    if (s->other_count > 0) {
        refuse(net, s, "an optimizer for some of the parameters", "lines in braces: lr = 0.1 * lr for @encoder.*");
        return;
    }
    if (!net->train->record && key->set != NULL)
        return;
    Ast *setting = setting_ast(net, key->name);
    net->train->key_statement = s;
    set_key(net, scope, key, setting != NULL ? setting : s->b, s);
}

bool train_statement(Net *net, Scope *scope, Ast *s)
{
    switch (s->kind) {
    case AST_TARGET: run_target(net, scope, s); return true;
    case AST_METRIC: run_metric(net, scope, s); return true;
    case AST_UPDATE:
        refuse(net, s, "`update`", "one loss and one optimizer");
        mark_read(scope, s);
        net->train->has_loss = true;
        return true;
    case AST_FREEZE: case AST_KEEP: case AST_STOP: case AST_DATA:
        if (net->train->record)
            LIST_ADD(net->arena, net->train->late, ((Late){s, scope, NULL}));
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
    if (r->optimizer == NULL)
        diag_report(diag, train->place, MESSAGE_E0506, "optimizer");
}

static void finish_section(Net *net, Scope *scope, const Ast *train)
{
    if (map_count(scope->names) >= 0)
        run_settings(net, scope);
    for (int i = 0; i < net->train->late.count; i++)
        run_late(net, &net->train->late.at[i]);
    report_unread_train(net, scope);
    check_recipe(net, train);
}

void run_train(Net *net, Scope *file_scope, Ast *train)
{
    bool record = net->model->recipe == NULL;
    Train *t = NEW(net->arena, Train);
    net->train = t;
    t->failed_metrics = map_new(net->arena);
    t->record = record;
    if (record) {
        t->recipe = NEW(net->arena, Recipe);
        t->recipe->shuffle = true;
        t->recipe->evaluate = (Duration){1, UNIT_EPOCHS};
        net->model->recipe = t->recipe;
    }
    t->recipe = net->model->recipe;
    Scope *scope = scope_new(net, SCOPE_TRAIN, file_scope, file_scope->file, file_scope->layer);
    run_body(net, scope, train->body);
    if (record)
        finish_section(net, scope, train);
}
