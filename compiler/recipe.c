// recipe.c: the rows of recipe.def, with their argument lists ("lr = 1e-3, momentum = 0") taken apart once, when asked for.
#include "mlc.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 512 };

typedef struct Words { char text[TEXT_MAX]; const char *name[10]; double value[10]; bool given[10]; int count; } Words;

// Takes "a = 1, b" apart in place. The rows are ours, so what does not fit is a bug.
static void words_split(Words *words, const char *list)
{
    CHECK(strlen(list) < TEXT_MAX);
    strcpy(words->text, list);
    for (char *at = strtok(words->text, ","); at != NULL; at = strtok(NULL, ",")) {
        CHECK(words->count < COUNT(words->name));
        int i = words->count++;
        char *equals = strchr(at, '=');
        at += strspn(at, " ");
        words->name[i] = at;
        at[strcspn(at, " =")] = 0;
        words->given[i] = equals != NULL;
        words->value[i] = equals != NULL ? atof(equals + 1) : 0;
    }
}

static int args_fill(RecipeArg *args, int room, const Words *words)
{
    CHECK(words->count <= room);
    for (int i = 0; i < words->count; i++)
        args[i] = (RecipeArg){words->name[i], words->value[i], !words->given[i]};
    return words->count;
}

typedef struct OptimizerRow { OptimizerDef def; const char *args, *states; Words words, names; bool ready; } OptimizerRow;
typedef struct ScheduleRow { ScheduleDef def; const char *args; Words words; bool ready; } ScheduleRow;
typedef struct InitialiserRow { InitialiserDef def; const char *args; Words words; bool ready; } InitialiserRow;

#define SCHEDULE(...)
#define INITIALISER(...)
static OptimizerRow optimizers[] = {
#define OPTIMIZER(id, about, arguments, kept, scalar, text) \
    {.def = {.name = #id, .brief = about, .scalars = scalar, .formula = text}, .args = arguments, .states = kept},
#include "recipe.def"
#undef OPTIMIZER
};
#undef SCHEDULE
#define OPTIMIZER(...)
static ScheduleRow schedules[] = {
#define SCHEDULE(id, about, arguments, how_long) \
    {.def = {.name = #id, .brief = about, .length = how_long}, .args = arguments},
#include "recipe.def"
#undef SCHEDULE
};
#undef INITIALISER
#define SCHEDULE(...)
static InitialiserRow initialisers[] = {
#define INITIALISER(id, about, arguments) {.def = {.name = #id, .brief = about}, .args = arguments},
#include "recipe.def"
#undef INITIALISER
};

const OptimizerDef *optimizer_at(int i)
{
    if (i >= COUNT(optimizers))
        return NULL;
    OptimizerRow *row = &optimizers[i];
    if (!row->ready) {
        words_split(&row->words, row->args);
        words_split(&row->names, row->states);
        row->def.n_args = args_fill(row->def.arg, COUNT(row->def.arg), &row->words);
        for (int k = 0; k < row->names.count; k++)
            row->def.state[row->def.n_states++] = row->names.name[k];
        row->ready = true;
    }
    return &row->def;
}

const ScheduleDef *schedule_at(int i)
{
    if (i >= COUNT(schedules))
        return NULL;
    ScheduleRow *row = &schedules[i];
    if (!row->ready) {
        words_split(&row->words, row->args);
        row->def.n_args = args_fill(row->def.arg, COUNT(row->def.arg), &row->words);
        row->ready = true;
    }
    return &row->def;
}

const InitialiserDef *initialiser_at(int i)
{
    if (i >= COUNT(initialisers))
        return NULL;
    InitialiserRow *row = &initialisers[i];
    if (!row->ready) {
        words_split(&row->words, row->args);
        row->def.n_args = args_fill(row->def.arg, COUNT(row->def.arg), &row->words);
        row->ready = true;
    }
    return &row->def;
}

int64_t param_count(const Param *param)
{
    int64_t count = 1;
    for (int i = 0; i < param->type.shape.rank; i++)
        count *= size_value(param->type.shape.dim[i]);
    return count;
}

#define FIND(Type, at)                                                          \
    for (int i = 0; at(i) != NULL; i++)                                         \
        if (strcmp(at(i)->name, name) == 0)                                     \
            return at(i);                                                       \
    return NULL

const OptimizerDef   *optimizer_find(const char *name)   { FIND(OptimizerDef, optimizer_at); }
const ScheduleDef    *schedule_find(const char *name)    { FIND(ScheduleDef, schedule_at); }
const InitialiserDef *initialiser_find(const char *name) { FIND(InitialiserDef, initialiser_at); }
