// optimizer.c: the steps of an optimiser, printed from its row in recipe.def: one loop over all trained parameters; where the
// row says something of a parameter as a whole, a step for that and another loop.
//
// What is the same for all elements is computed once a step, in double; the loop itself is float, in PyTorch's order of
// operations.
#include "train.h"

#include <string.h>

enum { SWEEP_CHUNK = 16384, SWEEP_PARTS = 16, GEMM_SCRATCH = 49152 };     // the last as in kernels.def

typedef struct Hoisted {
    const char *const *varying;         // names that differ from element to element: p, g, states, and what is made of them
    int n_varying;
    LIST(Expr *) exprs;
    LIST(const char *) names;
} Hoisted;

static bool varies(const Expr *e, const Hoisted *hoisted)
{
    for (int i = 0; i < hoisted->n_varying && e->kind == EXPR_HYPER; i++)
        if (strcmp(e->name, hoisted->varying[i]) == 0)
            return true;
    for (int i = 0; i < e->count; i++)
        if (varies(e->operand[i], hoisted))
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
static Expr *hoist(Context *cx, Hoisted *hoisted, Expr *e)
{
    if (e->kind == EXPR_NUMBER)
        return e;
    if (!varies(e, hoisted)) {
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
        copy->operand[i] = hoist(cx, hoisted, e->operand[i]);
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

// One function of a row: the formula as a loop over elements from … end.
typedef struct Sweep {
    const OptimizerDef *def;
    const char *suffix, *formula;       // "sweep", def->formula
    const char *numbers[8];             // of a tensor, in double: sums over it, or rows and columns
    int n_numbers;
    Assignment scalar[16], element[16];
    int n_scalars, n_elements;
    bool used[16];                      // the scalars that the formula needs
    Hoisted hoisted;
} Sweep;

static bool assigns(const Sweep *sweep, const char *name)
{
    for (int i = 0; i < sweep->n_elements; i++)
        if (strcmp(sweep->element[i].to, name) == 0)
            return true;
    return false;
}

static bool sweep_reads(const Sweep *sweep, const char *name) { return word_in(sweep->formula, name); }

static void sweep_parse(Context *cx, Sweep *sweep)
{
    FormulaNames names = {.count = 0};
    const OptimizerDef *def = sweep->def;
    for (int i = 0; i < def->n_args; i++)
        formula_name(cx, &names, def->arg[i].name);
    formula_name(cx, &names, "t");
    sweep->n_scalars = assignments(cx, def->scalars, &names, sweep->scalar);
    for (int i = 0; i < sweep->n_numbers; i++)
        formula_name(cx, &names, sweep->numbers[i]);
    int constants = names.count;
    formula_name(cx, &names, "p");
    formula_name(cx, &names, "g");
    for (int i = 0; i < def->n_states; i++)
        formula_name(cx, &names, def->state[i]);
    sweep->n_elements = assignments(cx, sweep->formula, &names, sweep->element);
    sweep->hoisted.varying = names.name + constants;
    sweep->hoisted.n_varying = names.count - constants;
    for (int i = 0; i < sweep->n_elements; i++)
        sweep->element[i].value = hoist(cx, &sweep->hoisted, sweep->element[i].value);
}

// What stands before the loop: numbers of the recipe, scalars, and what was taken out of the loop.
static void print_numbers(Text *out, Context *cx, Sweep *sweep)
{
    const Hoisted *hoisted = &sweep->hoisted;
    Text taken = {.arena = cx->arena}, uses = taken, scalars = taken;
    for (int i = 0; i < hoisted->exprs.count; i++) {
        const Expr *e = hoisted->exprs.at[i];
        const char *form = e->type == TYPE_bool         ? "    const bool %s = %s;\n"
                           : e->kind == EXPR_HYPER ? "    const float %s = (float)%s;\n"
                                                   : "    const float %s = (float)(%s);\n";
        text_add(&taken, form, hoisted->names.at[i], printed(cx, e));
    }
    text_add(&uses, "%s", taken.at != NULL ? taken.at : "");
    for (int i = sweep->n_scalars - 1; i >= 0; i--) {
        const char *value = printed(cx, in_double(cx, sweep->scalar[i].value));
        sweep->used[i] = word_in(uses.at, sweep->scalar[i].to);
        if (sweep->used[i])
            text_add(&uses, " %s", value);
    }
    for (int i = 0; i < sweep->n_scalars; i++)
        if (sweep->used[i])
            text_add(&scalars, "    const double %s = %s;\n", sweep->scalar[i].to,
                     printed(cx, in_double(cx, sweep->scalar[i].value)));
    print_hypers(out, sweep->def, uses.at != NULL ? uses.at : "");
    if (uses.at == NULL || !word_in(uses.at, "t"))
        text_add(out, "    (void)step;\n");
    text_add(out, "%s%s", scalars.at != NULL ? scalars.at : "", taken.at != NULL ? taken.at : "");
}

static void print_loop(Text *out, Context *cx, const Sweep *sweep)
{
    const OptimizerDef *def = sweep->def;
    bool known[16] = {false};           // names that are declared already
    const bool p = sweep_reads(sweep, "p"), g = sweep_reads(sweep, "g");
    text_add(out, "    #pragma omp simd\n    for (int64_t i = from; i < end; i++) {\n        float %s%s%s", p ? "p = param[i]" : "", p && g ? ", " : "",
             g ? "g = grad[i]" : "");
    for (int i = 0; i < def->n_states; i++)
        if (sweep_reads(sweep, def->state[i]))
            text_add(out, ", %s = state_%s[i]", def->state[i], def->state[i]);
    text_add(out, ";\n");
    for (int i = 0; i < sweep->n_elements; i++) {
        const char *to = sweep->element[i].to;
        known[i] = strcmp(to, "p") == 0 || strcmp(to, "g") == 0;
        for (int s = 0; s < def->n_states; s++)
            known[i] = known[i] || strcmp(to, def->state[s]) == 0;
        text_add(out, "        %s%s = %s;\n", known[i] ? "" : "const float ", to, printed(cx, sweep->element[i].value));
    }
    if (assigns(sweep, "p"))
        text_add(out, "        param[i] = p;\n");
    if (def->tensor[0] != 0 && assigns(sweep, "g"))
        text_add(out, "        grad[i] = g;\n");
    for (int i = 0; i < def->n_states; i++)
        if (assigns(sweep, def->state[i]))
            text_add(out, "        state_%s[i] = %s;\n", def->state[i], def->state[i]);
    text_add(out, "    }\n}\n\n");
}

static void print_sweep(Text *out, Context *cx, Sweep *sweep)
{
    const OptimizerDef *def = sweep->def;
    sweep_parse(cx, sweep);
    int column = (int)strlen(def->name) + (int)strlen(sweep->suffix) + 14;
    text_add(out, "static void %s_%s(const double *hyper, uint64_t step, %sfloat *restrict param, %sfloat *restrict grad,\n%*s",
             def->name, sweep->suffix, assigns(sweep, "p") ? "" : "const ",
             def->tensor[0] != 0 && assigns(sweep, "g") ? "" : "const ", column, "");
    for (int i = 0; i < def->n_states; i++)
        if (sweep_reads(sweep, def->state[i]))
            text_add(out, "float *restrict state_%s, ", def->state[i]);
    for (int i = 0; i < sweep->n_numbers; i++)
        text_add(out, "double %s, ", sweep->numbers[i]);
    text_add(out, "int64_t from, int64_t end)\n{\n");
    if (!sweep_reads(sweep, "p"))
        text_add(out, "    (void)param;\n");
    print_numbers(out, cx, sweep);
    print_loop(out, cx, sweep);
}

// --- The optimisers of a recipe ----------------------------------------------------------------------------------------

const OptimizerDef *group_optimizer(const Recipe *recipe, int group)
{
    return group < recipe->groups.count && recipe->groups.at[group].own != NULL ? recipe->groups.at[group].own
                                                                                : recipe->optimizer;
}

static void add_name(const char **names, int *count, const char *name)
{
    for (int i = 0; i < *count; i++)
        if (strcmp(names[i], name) == 0)
            return;
    CHECK(*count < OPTIMIZER_STATES);
    names[(*count)++] = name;
}

// Every state that one of the optimisers keeps, once; the average of the weights is the last.
int optimizer_states(const Recipe *recipe, const char *names[OPTIMIZER_STATES])
{
    int count = 0;
    for (int g = 0; g == 0 || g < recipe->groups.count; g++)
        for (int i = 0; i < group_optimizer(recipe, g)->n_states; i++)
            add_name(names, &count, group_optimizer(recipe, g)->state[i]);
    if (recipe->ema > 0)
        add_name(names, &count, "average");
    return count;
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

static bool moves(const Trainer *t, const Param *param, const OptimizerDef *def)
{
    return param->trainable && group_optimizer(t->recipe, param->group) == def;
}

static bool whole_sums(const OptimizerDef *def) { return def->tensor[0] != 0 && strcmp(def->tensor, "orthogonal") != 0; }
static bool whole_matrix(const OptimizerDef *def) { return strcmp(def->tensor, "orthogonal") == 0; }

static int64_t matrix_rows(const Param *param) { return param->type.shape.rank > 0 ? size_value(param->type.shape.dim[0]) : 1; }

// A row of the steps that update_section lists.
static void add_step(Trainer *t, const char *name, int parts)
{
    LIST_ADD(t->cx->arena, t->update_steps, ((UpdateStep){name, parts}));
}

static void print_part_bounds(Text *out, int64_t count, int parts)
{
    if (parts > 1)
        text_add(out, "    const int64_t first = mlk_share(%lld, part, %d), last = mlk_share(%lld, part + 1, %d);\n",
                 (long long)count, parts, (long long)count, parts);
    else
        text_add(out, "    const int64_t first = 0, last = %lld;\n    (void)part;\n", (long long)count);
}

// The states that a function of the row takes, as places in the state block.
static void print_state_arguments(Trainer *t, const Sweep *sweep)
{
    const char *all[OPTIMIZER_STATES];
    int count = optimizer_states(t->recipe, all);
    for (int i = 0; i < sweep->def->n_states; i++)
        for (int k = 0; k < count; k++)
            if (strcmp(all[k], sweep->def->state[i]) == 0 && sweep_reads(sweep, all[k]))
                text_add(t->out, k == 0 ? ", state" : ", state + %lld", (long long)(k * trainable_end(t->model)));
}

static void print_blocks(Text *out, const Sweep *sweep, bool any)
{
    bool states = false;
    for (int i = 0; i < sweep->def->n_states; i++)
        states = states || sweep_reads(sweep, sweep->def->state[i]);
    bool grad = sweep->def->tensor[0] != 0 && assigns(sweep, "g");
    text_add(out, "    float *param = (void *)run->param%s;\n    %sfloat *grad = (%svoid *)run->grad;\n",
             states || !any ? ", *state = (void *)run->state" : "", grad ? "" : "const ", grad ? "" : "const ");
}

// The flat sweep of one optimiser: over the groups that it moves.
static void print_sweep_step(Trainer *t, const Sweep *sweep)
{
    Text *out = t->out;
    const OptimizerDef *def = sweep->def;
    int64_t count = trainable_end(t->model), from, end;
    int parts = sweep_parts(count), groups = 0;
    text_add(out, "// One sweep over all %sparameters, in %d part%s.\n", def == t->recipe->optimizer ? "trained " : "of its ", parts,
             parts > 1 ? "s" : "");
    text_add(out, "static void update_%s(const Run *run, int part)\n{\n", def->name);
    print_blocks(out, sweep, false);
    print_part_bounds(out, count, parts);
    if (def->n_states == 0)
        text_add(out, "    (void)state;\n");
    for (int g = 0; g == 0 || g < t->recipe->groups.count; g++) {
        if (group_optimizer(t->recipe, g) != def || !group_range(t->model, g, &from, &end))
            continue;
        bool whole = from == 0 && end == count;
        groups++;
        text_add(out, "    %s_sweep(run->hyper + %d * MLRT_HYPERS, run->step, param, grad", def->name, g);
        print_state_arguments(t, sweep);
        text_add(out, whole ? ", first, last);\n" : ", mlk_max2_i64(first, %lld), mlk_min2_i64(last, %lld));\n",
                 (long long)from, (long long)end);
    }
    if (groups == 0)
        text_add(out, "    (void)param, (void)grad, (void)state, (void)first, (void)last;\n");
    text_add(out, "}\n\n");
    add_step(t, arena_printf(t->cx->arena, "update_%s", def->name), parts);
}

// --- Tensors as a whole ------------------------------------------------------------------------------------------------

// from, end, group, rows, columns, first chunk of each parameter that `def` moves. Returns how many; *chunks: of all.
static int print_tensors(Trainer *t, const OptimizerDef *def, int64_t *chunks)
{
    int count = 0;
    *chunks = 0;
    text_add(t->out, "// The parameters that %s moves: where they begin and end, group, rows, columns, first chunk.\n", def->name);
    text_add(t->out, "static const int64_t %s_tensors[][6] = {\n", def->name);
    for (int i = 0; i < t->model->params.count; i++) {
        const Param *param = t->model->params.at[i];
        if (!moves(t, param, def))
            continue;
        int64_t n = param_count(param), rows = matrix_rows(param);
        text_add(t->out, "    {%lld, %lld, %d, %lld, %lld, %lld},  // ", (long long)param->offset, (long long)(param->offset + n),
                 param->group, (long long)rows, (long long)(rows > 0 ? n / rows : 0), (long long)*chunks);
        put_name(t->out, param->path);
        text_add(t->out, "\n");
        *chunks += (n + SWEEP_CHUNK - 1) / SWEEP_CHUNK;
        count++;
    }
    text_add(t->out, "    {0, 0, 0, 0, 0, %lld}};\n\n", (long long)*chunks);
    return count;
}

// The sums of each chunk; every chunk's are added up in one order, whatever the number of parts.
static void print_sums_step(Trainer *t, const Sweep *apply, int64_t chunks)
{
    Text *out = t->out;
    const char *name = apply->def->name;
    int parts = sweep_parts(chunks * SWEEP_CHUNK);
    FormulaNames names = {.count = 0};
    Assignment sum[16];
    formula_name(t->cx, &names, "p");
    formula_name(t->cx, &names, "g");
    int sums = assignments(t->cx, apply->def->tensor, &names, sum);
    text_add(out, "static double %s_sums[%lld][%d];\n\n", name, (long long)chunks, sums);
    text_add(out, "// Sums over each parameter, a chunk of %d elements at a time: ", SWEEP_CHUNK);
    put_remark(out, apply->def->tensor);
    text_add(out, "\nstatic void update_%s_sums(const Run *run, int part)\n{\n", name);
    text_add(out, "    const float *param = (const void *)run->param, *grad = (const void *)run->grad;\n");
    print_part_bounds(out, chunks, parts);
    text_add(out, "    for (int64_t chunk = first, k = 0; chunk < last; chunk++) {\n");
    text_add(out, "        while (%s_tensors[k + 1][5] <= chunk)\n            k++;\n", name);
    text_add(out, "        const int64_t from = %s_tensors[k][0] + (chunk - %s_tensors[k][5]) * %d;\n", name, name, SWEEP_CHUNK);
    text_add(out, "        const int64_t end = mlk_min2_i64(from + %d, %s_tensors[k][1]);\n", SWEEP_CHUNK, name);
    for (int s = 0; s < sums; s++)
        text_add(out, "        double %s[8] = {0};\n", sum[s].to);
    text_add(out, "        for (int64_t i = from; i < end; i += 8)\n");
    text_add(out, "            for (int64_t lane = 0; lane < mlk_min2_i64(8, end - i); lane++) {\n");
    text_add(out, "                const double p = (double)param[i + lane], g = (double)grad[i + lane];\n");
    bool p_used = word_in(apply->def->tensor, "p"), g_used = word_in(apply->def->tensor, "g");
    if (!p_used || !g_used)
        text_add(out, "                (void)%s;\n", p_used ? "g" : "p");
    for (int s = 0; s < sums; s++)
        text_add(out, "                %s[lane] += %s;\n", sum[s].to, printed(t->cx, in_double(t->cx, sum[s].value)));
    text_add(out, "            }\n");
    for (int s = 0; s < sums; s++) {
        const char *n = sum[s].to;
        text_add(out, "        %s_sums[chunk][%d] = ((%s[0] + %s[1]) + (%s[2] + %s[3])) + ((%s[4] + %s[5]) + (%s[6] + %s[7]));\n", name,
                 s, n, n, n, n, n, n, n, n);
    }
    text_add(out, "    }\n}\n\n");
    add_step(t, arena_printf(t->cx->arena, "update_%s_sums", name), parts);
}

static int argument_index(const OptimizerDef *def, const char *name)
{
    int i = 0;
    while (i < def->n_args && strcmp(def->arg[i].name, name) != 0)
        i++;
    CHECK(i < def->n_args);
    return i;
}

// One matrix a part. g of each becomes orthogonal in this worker's scratch memory.
static void print_matrix_step(Trainer *t, const OptimizerDef *def, int count)
{
    Text *out = t->out;
    const char *name = def->name;
    text_add(out, "_Static_assert(MLK_GEMM_SCRATCH <= %d, \"the work area was planned for another kernel\");\n\n", GEMM_SCRATCH);
    text_add(out, "// The direction of one parameter, as a matrix, becomes orthogonal.\n");
    text_add(out, "static void update_%s_matrix(const Run *run, int part)\n{\n", name);
    text_add(out, "    const int64_t *tensor = %s_tensors[part];\n", name);
    text_add(out, "    const double *hyper = run->hyper + tensor[2] * MLRT_HYPERS;\n");
    text_add(out, "    mlk_orthogonal(tensor[3], tensor[4], (float *)(void *)run->grad + tensor[0], (float)hyper[%d], (float)hyper[%d],\n",
             argument_index(def, "ns_coefficient1"), argument_index(def, "ns_coefficient2"));
    text_add(out, "                   (float)hyper[%d], (float)hyper[%d], (int64_t)hyper[%d], (void *)run->scratch);\n}\n\n",
             argument_index(def, "ns_coefficient3"), argument_index(def, "eps"), argument_index(def, "ns_steps"));
    add_step(t, arena_printf(t->cx->arena, "update_%s_matrix", name), count);
}

static void print_apply_step(Trainer *t, const Sweep *apply)
{
    Text *out = t->out;
    const OptimizerDef *def = apply->def;
    int64_t count = trainable_end(t->model);
    int parts = sweep_parts(count);
    text_add(out, "// Moves each parameter, or the part of it that lies in this share of the block.\n");
    text_add(out, "static void update_%s_apply(const Run *run, int part)\n{\n", def->name);
    print_blocks(out, apply, true);
    print_part_bounds(out, count, parts);
    text_add(out, "    for (int64_t k = 0; %s_tensors[k][1] > 0; k++) {\n", def->name);
    text_add(out, "        const int64_t *tensor = %s_tensors[k];\n", def->name);
    text_add(out, "        const int64_t from = mlk_max2_i64(first, tensor[0]), end = mlk_min2_i64(last, tensor[1]);\n");
    text_add(out, "        if (from >= end)\n            continue;\n");
    for (int s = 0; s < apply->n_numbers && whole_sums(def); s++)
        text_add(out, "        double %s = 0;\n", apply->numbers[s]);
    if (whole_sums(def))
        text_add(out, "        for (int64_t chunk = tensor[5]; chunk < tensor[11]; chunk++) {\n");
    for (int s = 0; s < apply->n_numbers && whole_sums(def); s++)
        text_add(out, "            %s += %s_sums[chunk][%d];\n", apply->numbers[s], def->name, s);
    if (whole_sums(def))
        text_add(out, "        }\n");
    text_add(out, "        %s_apply(run->hyper + tensor[2] * MLRT_HYPERS, run->step, param, grad", def->name);
    print_state_arguments(t, apply);
    for (int s = 0; s < apply->n_numbers; s++)
        if (whole_sums(def))
            text_add(out, ", %s", apply->numbers[s]);
        else
            text_add(out, ", (double)tensor[%d]", 3 + s);
    text_add(out, ", from, end);\n    }\n}\n\n");
    add_step(t, arena_printf(t->cx->arena, "update_%s_apply", def->name), parts);
}

static void print_tensor_steps(Trainer *t, const OptimizerDef *def)
{
    Sweep apply = {.def = def, .suffix = "apply", .formula = def->apply};
    FormulaNames names = {.count = 0};
    Assignment sum[16];
    int64_t chunks;
    formula_name(t->cx, &names, "p");
    formula_name(t->cx, &names, "g");
    if (whole_matrix(def)) {
        apply.numbers[apply.n_numbers++] = "rows";
        apply.numbers[apply.n_numbers++] = "columns";
    } else {
        apply.n_numbers = assignments(t->cx, def->tensor, &names, sum);
        for (int i = 0; i < apply.n_numbers; i++)
            apply.numbers[i] = sum[i].to;
    }
    print_sweep(t->out, t->cx, &apply);
    int count = print_tensors(t, def, &chunks);
    if (count == 0)
        return;
    if (whole_matrix(def))
        print_matrix_step(t, def, count);
    else
        print_sums_step(t, &apply, chunks);
    print_apply_step(t, &apply);
}

// Floats of work area that the update needs for a worker.
int64_t update_scratch(const Model *model)
{
    int64_t most = 0;
    for (int i = 0; i < model->params.count; i++) {
        const Param *param = model->params.at[i];
        if (!param->trainable || !whole_matrix(group_optimizer(model->recipe, param->group)))
            continue;
        int64_t n = param_count(param), rows = matrix_rows(param), columns = rows > 0 ? n / rows : 0;
        int64_t side = rows < columns ? rows : columns, floats = GEMM_SCRATCH + 2 * n + 2 * side * side;
        most = floats > most ? floats : most;
    }
    return most;
}

// --- The average of the weights ----------------------------------------------------------------------------------------

static void print_average_step(Trainer *t)
{
    const char *all[OPTIMIZER_STATES];
    int64_t count = trainable_end(t->model);
    int parts = sweep_parts(count), states = optimizer_states(t->recipe, all);
    Text *out = t->out;
    text_add(out, "// The average of the weights, which evaluation uses: it begins with the weights of the first step.\n");
    text_add(out, "static void update_average(const Run *run, int part)\n{\n");
    text_add(out, "    const float *param = (const void *)run->param;\n    float *average = (float *)(void *)run->state + %lld;\n",
             (long long)((states - 1) * count));
    text_add(out, "    const float share = run->step > 1 ? (float)(1 - run->hyper[MLRT_EMA]) : 1;\n");
    print_part_bounds(out, count, parts);
    text_add(out, "    for (int64_t i = first; i < last; i++)\n        average[i] += share * (param[i] - average[i]);\n}\n\n");
    add_step(t, "update_average", parts);
}

static void print_one(Trainer *t, const OptimizerDef *def)
{
    Sweep sweep = {.def = def, .suffix = "sweep", .formula = def->formula};
    Text *out = t->out;
    text_add(out, "// ");
    put_remark(out, def->brief);
    text_add(out, "\n//   once a step, in double:  ");
    put_remark(out, def->scalars);
    text_add(out, "\n//   for each element:        ");
    put_remark(out, def->formula);
    if (def->tensor[0] != 0) {
        text_add(out, "\n//   for each parameter:      ");
        put_remark(out, def->tensor);
        text_add(out, "\n//   then for each element:   ");
        put_remark(out, def->apply);
    }
    text_add(out, "\n");
    print_sweep(out, t->cx, &sweep);
    print_sweep_step(t, &sweep);
    if (def->tensor[0] != 0)
        print_tensor_steps(t, def);
}

void print_optimizer(Trainer *t)
{
    for (int g = 0; g == 0 || g < t->recipe->groups.count; g++) {
        bool first = true;
        for (int k = 0; k < g; k++)
            first = first && group_optimizer(t->recipe, k) != group_optimizer(t->recipe, g);
        if (first)
            print_one(t, group_optimizer(t->recipe, g));
    }
    if (t->recipe->ema > 0)
        print_average_step(t);
}
