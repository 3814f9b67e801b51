// recipe.c: the rows of recipe.def as constant tables, so that any number of compilations may read them at once.
#include "mlc.h"

#include <string.h>

// A list in a row, and how many it has: N_ is pasted before the word of the row.
#define ARG(id, value) {#id, value, false}
#define NEED(id)       {#id, 0, true}
#define ARGS(...)     {__VA_ARGS__}
#define N_ARGS(...)   COUNT_OF(RecipeArg, __VA_ARGS__)
#define STATES(...)   {__VA_ARGS__}
#define N_STATES(...) COUNT_OF(char *, __VA_ARGS__)
#define COUNT_OF(Type, ...) (int)(sizeof((const Type[]){__VA_ARGS__}) / sizeof(Type))

#define SCHEDULE(...)
#define INITIALISER(...)
static const OptimizerDef optimizers[] = {
#define OPTIMIZER(id, about, arguments, kept, scalar, text)                                                            \
    {.name = #id, .brief = about, .n_args = N_##arguments, .arg = arguments, .n_states = N_##kept, .state = kept,      \
     .scalars = scalar, .formula = text, .tensor = "", .apply = ""},
#define TENSOR_OPTIMIZER(id, about, arguments, kept, scalar, text, of_tensor, move)                                    \
    {.name = #id, .brief = about, .n_args = N_##arguments, .arg = arguments, .n_states = N_##kept, .state = kept,      \
     .scalars = scalar, .formula = text, .tensor = of_tensor, .apply = move},
#include "recipe.def"
#undef OPTIMIZER
#undef TENSOR_OPTIMIZER
};
#undef SCHEDULE
#define OPTIMIZER(...)
#define TENSOR_OPTIMIZER(...)
static const ScheduleDef schedules[] = {
#define SCHEDULE(id, about, arguments, how_long) \
    {.name = #id, .brief = about, .n_args = N_##arguments, .arg = arguments, .length = how_long},
#include "recipe.def"
#undef SCHEDULE
};
#undef INITIALISER
#define SCHEDULE(...)
static const InitialiserDef initialisers[] = {
#define INITIALISER(id, about, arguments) {.name = #id, .brief = about, .n_args = N_##arguments, .arg = arguments},
#include "recipe.def"
#undef INITIALISER
};

const OptimizerDef   *optimizer_at(int i)   { return i < COUNT(optimizers) ? &optimizers[i] : NULL; }
const ScheduleDef    *schedule_at(int i)    { return i < COUNT(schedules) ? &schedules[i] : NULL; }
const InitialiserDef *initialiser_at(int i) { return i < COUNT(initialisers) ? &initialisers[i] : NULL; }

#define FIND(at)                                                                \
    for (int i = 0; at(i) != NULL; i++)                                         \
        if (strcmp(at(i)->name, name) == 0)                                     \
            return at(i);                                                       \
    return NULL

const OptimizerDef   *optimizer_find(const char *name)   { FIND(optimizer_at); }
const ScheduleDef    *schedule_find(const char *name)    { FIND(schedule_at); }
const InitialiserDef *initialiser_find(const char *name) { FIND(initialiser_at); }

int64_t param_count(const Param *param)
{
    int64_t count = 1;
    for (int i = 0; i < param->type.shape.rank; i++)
        count *= size_value(param->type.shape.dim[i]);
    return count;
}

bool model_complete(Model *model, bool training)
{
    int errors = model->cx->diag->errors;
    for (int i = 0; i < model->later.count; i++) {
        const Later *later = &model->later.at[i];
        if (later->training && !training)
            continue;
        diag_report(model->cx->diag, later->place, MESSAGE_E0901, later->what);
        if (later->instead[0] != 0)
            diag_help(model->cx->diag, "%s", later->instead);
    }
    return model->cx->diag->errors == errors;
}
