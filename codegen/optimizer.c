// optimizer.c: the sweep of an optimiser, printed from its row in recipe.def: one loop over all trained parameters.
//
// What is the same for all elements is computed once a step, in double; the loop itself is float, in PyTorch's order of
// operations.
#include "train.h"

#include <string.h>

enum { SWEEP_CHUNK = 16384, SWEEP_PARTS = 16 };

typedef struct Hoisted {
    LIST(Expr *) exprs;
    LIST(const char *) names;
} Hoisted;

static bool varies(const Expr *e, const OptimizerDef *def)
{
    if (e->kind == EXPR_HYPER) {
        if (strcmp(e->name, "p") == 0 || strcmp(e->name, "g") == 0)
            return true;
        for (int i = 0; i < def->n_states; i++)
            if (strcmp(e->name, def->state[i]) == 0)
                return true;
    }
    for (int i = 0; i < e->count; i++)
        if (varies(e->operand[i], def))
            return true;
    return false;
}

static Expr *in_double(Context *cx, const Expr *e)
{
    Expr *copy = arena_copy(cx->arena, e, sizeof *e);
    if (type_is_float(copy->type))
        copy->type = TYPE_f64;
    for (int i = 0; i < e->count; i++)
        copy->operand[i] = in_double(cx, e->operand[i]);
    return copy;
}

static const char *printed(Context *cx, const Expr *e)
{
    Text text = {.arena = cx->arena};
    Printer p = {.cx = cx, .dialect = &dialect_c, .out = &text};
    print_expr(&p, e);
    return text.at;
}

// What is the same for all elements is computed once, in double, and then rounded, as PyTorch does with its numbers: such
// parts of a formula become locals, "lr_f" or "f1".
static Expr *hoist(Context *cx, Hoisted *hoisted, const OptimizerDef *def, Expr *e)
{
    if (e->kind == EXPR_NUMBER)
        return e;
    if (!varies(e, def)) {
        Expr *wide = in_double(cx, e), *name = arena_copy(cx->arena, e, sizeof *e);
        *name = (Expr){.kind = EXPR_HYPER, .type = e->type};
        for (int i = 0; i < hoisted->exprs.count && name->name == NULL; i++)
            if (strcmp(printed(cx, hoisted->exprs.at[i]), printed(cx, wide)) == 0)
                name->name = hoisted->names.at[i];
        if (name->name == NULL) {
            name->name = wide->kind == EXPR_HYPER ? arena_printf(cx->arena, "%s_f", wide->name)
                                                  : arena_printf(cx->arena, "f%d", hoisted->exprs.count + 1);
            LIST_ADD(cx->arena, hoisted->exprs, wide);
            LIST_ADD(cx->arena, hoisted->names, name->name);
        }
        return name;
    }
    Expr *copy = arena_copy(cx->arena, e, sizeof *e);
    for (int i = 0; i < e->count; i++)
        copy->operand[i] = hoist(cx, hoisted, def, e->operand[i]);
    return copy;
}

enum { FORMULA_NAMES = 32 };

typedef struct FormulaNames {
    const char *name[FORMULA_NAMES];
    Expr *value[FORMULA_NAMES];
    int count;
} FormulaNames;

static void formula_name(Context *cx, FormulaNames *names, const char *name)
{
    CHECK(names->count < FORMULA_NAMES);
    Expr *leaf = NEW(cx->arena, Expr);
    *leaf = (Expr){.kind = EXPR_HYPER, .type = TYPE_f32, .name = name};
    names->name[names->count] = name;
    names->value[names->count++] = leaf;
}

typedef struct Assignment {
    const char *to;
    Expr *value;
} Assignment;

// Takes "a = formula; b = formula" apart; each name assigned is known from then on.
static int assignments(Context *cx, const char *text, FormulaNames *names, Assignment out[16])
{
    int count = 0;
    for (const char *at = text; *at != 0;) {
        at += strspn(at, " ;");
        size_t name = strcspn(at, " ="), length = strcspn(at, ";");
        const char *formula = strchr(at, '=') + 1;
        CHECK(count < 16 && formula < at + length);
        out[count].to = arena_string(cx->arena, at, name);
        out[count++].value = expr_parse(cx, arena_string(cx->arena, formula, (size_t)(at + length - formula)),
                                        names->name, names->value, names->count);
        formula_name(cx, names, out[count - 1].to);
        at += length;
    }
    return count;
}

static bool word_in(const char *text, const char *word)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    size_t length = strlen(word);
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
        if ((at == text || strchr(letters, at[-1]) == NULL) && (at[length] == 0 || strchr(letters, at[length]) == NULL))
            return true;
    return false;
}

// The numbers of the recipe that the formulas use, in double: const double lr = hyper[0], …;
static void print_hypers(Text *out, const OptimizerDef *def, const char *uses)
{
    int count = 0;
    for (int i = 0; i < def->n_args; i++)
        if (word_in(uses, def->arg[i].name))
            text_add(out, "%s%s = hyper[%d]", count++ == 0 ? "    const double " : ", ", def->arg[i].name, i);
    text_add(out, count > 0 ? ";\n" : "");
    if (word_in(uses, "t"))
        text_add(out, "    const double t = (double)step;\n");
}

static void print_sweep_body(Text *out, Context *cx, const OptimizerDef *def)
{
    FormulaNames names = {.count = 0};
    Assignment scalar[16], element[16];
    Hoisted hoisted = {.exprs = {0}};
    for (int i = 0; i < def->n_args; i++)
        formula_name(cx, &names, def->arg[i].name);
    formula_name(cx, &names, "t");
    int n_scalars = assignments(cx, def->scalars, &names, scalar);
    formula_name(cx, &names, "p");
    formula_name(cx, &names, "g");
    for (int i = 0; i < def->n_states; i++)
        formula_name(cx, &names, def->state[i]);
    int n_elements = assignments(cx, def->formula, &names, element);
    for (int i = 0; i < n_elements; i++)
        element[i].value = hoist(cx, &hoisted, def, element[i].value);

    Text rest = {.arena = cx->arena};
    for (int i = 0; i < n_scalars; i++)
        text_add(&rest, "    const double %s = %s;\n", scalar[i].to, printed(cx, in_double(cx, scalar[i].value)));
    for (int i = 0; i < hoisted.exprs.count; i++)
        if (hoisted.exprs.at[i]->type == TYPE_bool)
            text_add(&rest, "    const bool %s = %s;\n", hoisted.names.at[i], printed(cx, hoisted.exprs.at[i]));
        else
            text_add(&rest,
                     hoisted.exprs.at[i]->kind == EXPR_HYPER ? "    const float %s = (float)%s;\n"
                                                             : "    const float %s = (float)(%s);\n",
                     hoisted.names.at[i], printed(cx, hoisted.exprs.at[i]));
    print_hypers(out, def, rest.at != NULL ? rest.at : "");
    text_add(out, "%s", rest.at != NULL ? rest.at : "");
    text_add(
        out,
        "    #pragma omp simd\n    for (int64_t i = from; i < end; i++) {\n        float p = param[i], g = grad[i]");
    for (int i = 0; i < def->n_states; i++)
        text_add(out, ", %s = state_%s[i]", def->state[i], def->state[i]);
    text_add(out, ";\n");
    for (int i = 0; i < n_elements; i++)
        text_add(out, "        %s = %s;\n", element[i].to, printed(cx, element[i].value));
    text_add(out, "        param[i] = p;\n");
    for (int i = 0; i < def->n_states; i++)
        text_add(out, "        state_%s[i] = %s;\n", def->state[i], def->state[i]);
    text_add(out, "    }\n}\n\n");
}

static void print_sweep(Text *out, Context *cx, const OptimizerDef *def)
{
    text_add(out, "// ");
    put_remark(out, def->brief);
    text_add(out, "\n//   once a step, in double:  ");
    put_remark(out, def->scalars);
    text_add(out, "\n//   for each element:        ");
    put_remark(out, def->formula);
    int column = (int)strlen(def->name) + 19;
    text_add(out,
             "\nstatic void %s_sweep(const double *hyper, uint64_t step, float *restrict param, const float *restrict "
             "grad,\n%*s",
             def->name, column, "");
    for (int i = 0; i < def->n_states; i++)
        text_add(out, "float *restrict state_%s, ", def->state[i]);
    text_add(out, "int64_t from, int64_t end)\n{\n");
    if (!word_in(def->scalars, "t") && !word_in(def->formula, "t"))
        text_add(out, "    (void)step;\n");
    print_sweep_body(out, cx, def);
}

int sweep_parts(int64_t trainable)
{
    int64_t parts = (trainable + SWEEP_CHUNK - 1) / SWEEP_CHUNK;
    return parts < 1 ? 1 : parts > SWEEP_PARTS ? SWEEP_PARTS : (int)parts;
}

// Where the trainable parameters of a group begin and end, in elements of the flat block.
static bool group_range(const Model *model, int group, int64_t *from, int64_t *end)
{
    *from = *end = -1;
    for (int i = 0; i < model->params.count; i++) {
        const Param *param = model->params.at[i];
        if (!param->trainable || param->group != group)
            continue;
        int64_t last = param->offset + param_count(param);
        *from = *from < 0 || param->offset < *from ? param->offset : *from;
        *end = last > *end ? last : *end;
    }
    return *from >= 0;
}

static void print_sweep_step(Trainer *t)
{
    Text *out = t->out;
    const OptimizerDef *def = t->recipe->optimizer;
    int64_t count = trainable_end(t->model), from, end;
    int parts = sweep_parts(count), groups = 0;
    text_add(out, "// One sweep over all trained parameters, in %d part%s.\n", parts, parts > 1 ? "s" : "");
    text_add(out, "static void update_%s(const Run *run, int part)\n{\n", def->name);
    text_add(out, "    float *param = (void *)run->param, *state = (void *)run->state;\n    const float *grad = (const "
                  "void *)run->grad;\n");
    if (parts > 1)
        text_add(out, "    const int64_t first = mlk_share(%lld, part, %d), last = mlk_share(%lld, part + 1, %d);\n",
                 (long long)count, parts, (long long)count, parts);
    else
        text_add(out, "    const int64_t first = 0, last = %lld;\n    (void)part;\n", (long long)count);
    if (def->n_states == 0)
        text_add(out, "    (void)state;\n");
    for (int g = 0; g == 0 || g < t->recipe->groups.count; g++) {
        if (!group_range(t->model, g, &from, &end))
            continue;
        bool whole = from == 0 && end == count;
        groups++;
        text_add(out, "    %s_sweep(run->hyper + %d * MLRT_HYPERS, run->step, param, grad", def->name, g);
        for (int i = 0; i < def->n_states; i++)
            text_add(out, i == 0 ? ", state" : ", state + %lld", (long long)(i * count));
        text_add(out, whole ? ", first, last);\n" : ", mlk_max2_i64(first, %lld), mlk_min2_i64(last, %lld));\n",
                 (long long)from, (long long)end);
    }
    if (groups == 0)
        text_add(out, "    (void)param, (void)grad, (void)state, (void)first, (void)last;\n");
    text_add(out, "}\n\n");
}

void print_optimizer(Trainer *t)
{
    print_sweep(t->out, t->cx, t->recipe->optimizer);
    print_sweep_step(t);
}
