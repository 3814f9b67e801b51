// schedule.c: a chain of links a then b then c. Each begins at the factor where the one before it ended, so that a curve
// never jumps; the first begins at 1.
//
// With n steps in a link and i = 0 … n-1 inside it, from the level L where it begins:
//   constant  L
//   warmup    from + (1 - from) (i + 1) / n: its last step has the full rate, its first more than none
//   linear    L + (to - L) i / n
//   cosine    to + (L - to) (1 + cos(pi i / n)) / 2: PyTorch's CosineAnnealingLR
//   step      L factor^floor(i / n), for the rest of the run
//   multistep, exponential, polynomial, one_cycle: as PyTorch's; plateau as its ReduceLROnPlateau, by evaluations
#include "schedule.h"

#include <math.h>
#include <string.h>

typedef struct Link {
    double  level, arg[4];              // where it begins; arguments, targets as factors
    int64_t at, length, passed, cuts;   // steps inside it; moments that have passed; cuts of a plateau
} Link;

static const double pi = 3.14159265358979323846;

static double share_done(const Link *link) { return (double)link->at / (double)link->length; }
static double along_cosine(double from, double to, double done) { return to + (from - to) * (1 + cos(pi * done)) / 2; }

static double level_constant(const Link *link) { return link->level; }
static double level_step(const Link *link) { return link->level * pow(link->arg[0], (double)(link->at / link->length)); }
static double level_multistep(const Link *link) { return link->level * pow(link->arg[0], (double)link->passed); }
static double level_exponential(const Link *link) { return link->level * pow(link->arg[0], share_done(link)); }
static double level_linear(const Link *link) { return link->level + (link->arg[0] - link->level) * share_done(link); }
static double level_cosine(const Link *link) { return along_cosine(link->level, link->arg[0], share_done(link)); }
static double level_plateau(const Link *link) { return fmax(link->level * pow(link->arg[0], (double)link->cuts), fmin(link->arg[3], link->level)); }

static double level_warmup(const Link *link)
{
    double done = (double)(link->at + 1) / (double)link->length;
    return link->at >= link->length ? 1 : link->arg[0] + (1 - link->arg[0]) * done;
}

static double level_polynomial(const Link *link)
{
    return link->arg[1] + (link->level - link->arg[1]) * pow(1 - share_done(link), link->arg[0]);
}

static double level_one_cycle(const Link *link)
{
    double top = link->arg[1] * (double)link->length - 1, last = (double)link->length - 1, at = (double)link->at;
    if (at <= top && top > 0)
        return along_cosine(link->level, link->arg[0], at / top);
    return along_cosine(link->arg[0], link->level * link->arg[2], last > top ? fmin((at - top) / (last - top), 1) : 1);
}

// target: the argument that is a value or a share of the learning rate, -1: none.
static const struct LinkRow { const char *name; double (*level)(const Link *link); bool endless; int target; } rows[] = {
    {"constant", level_constant, false, -1},     {"warmup", level_warmup, false, -1},
    {"linear", level_linear, false, 0},          {"cosine", level_cosine, false, 0},
    {"step", level_step, true, -1},              {"multistep", level_multistep, true, -1},
    {"exponential", level_exponential, true, -1}, {"polynomial", level_polynomial, false, 1},
    {"one_cycle", level_one_cycle, false, 0},    {"plateau", level_plateau, true, 3},
};

static const struct LinkRow *row_find(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

int64_t mlrt_duration_steps(MlrtDuration duration, const MlrtClock *clock, int64_t rest)
{
    double steps;
    switch (duration.unit) {
    case MLRT_EPOCHS: steps = duration.amount * (double)clock->epoch_steps; break;
    case MLRT_STEPS: steps = duration.amount; break;
    case MLRT_SHARE: steps = duration.amount * (double)clock->all_steps; break;
    default: return rest;
    }
    return steps < 1 ? 1 : steps > 1e18 ? (int64_t)1e18 : (int64_t)(steps + 0.5);
}

static Link link_of(const MlrtSchedule *step, const struct LinkRow *row, const MlrtClock *clock, double lr, double level)
{
    Link link = {.level = level, .cuts = clock->cuts};
    for (int k = 0; k < 4; k++)
        link.arg[k] = k != row->target || step->share[k] || lr == 0 ? step->arg[k] : step->arg[k] / lr;
    return link;
}

double mlrt_schedule_factor(const MlrtSchedule *chain, int count, const MlrtClock *clock, double lr, int64_t step)
{
    double level = 1;
    int64_t start = 0;
    for (int i = 0; i < count; i++) {
        const struct LinkRow *row = row_find(chain[i].name);
        int64_t rest = clock->all_steps > start ? clock->all_steps - start : 1;
        int64_t length = mlrt_duration_steps(chain[i].length, clock, rest);
        Link link = link_of(&chain[i], row, clock, lr, level);
        link.at = step - start;
        link.length = length;
        for (int k = 0; k < chain[i].n_at; k++)
            link.passed += link.at >= mlrt_duration_steps(chain[i].at[k], clock, rest);
        bool last = i == count - 1 || row->endless || step < start + length;
        if (!last || (link.at > length && !row->endless))
            link.at = length;
        level = row->level(&link);
        if (last)
            break;
        start += length;
    }
    return level;
}

const char *mlrt_schedule_fault(const MlrtSchedule *chain, int count)
{
    for (int i = 0; i < count; i++) {
        const struct LinkRow *row = row_find(chain[i].name);
        if (!row)
            return "a schedule of this name is not known";
        if (chain[i].length.unit == MLRT_SECONDS)
            return "a schedule goes by epochs, steps or a share of the run, not by seconds";
        if (strcmp(row->name, "exponential") == 0 && chain[i].length.unit == MLRT_NONE)
            return "exponential needs `every`";
        if (i < count - 1 && (row->endless || chain[i].length.unit == MLRT_NONE))
            return "only the last link of a schedule may be without an end";
    }
    return NULL;
}

const MlrtSchedule *mlrt_schedule_plateau(const MlrtSchedule *chain, int count, const MlrtClock *clock, int64_t step)
{
    int64_t start = 0;
    for (int i = 0; i < count - 1; i++)
        start += mlrt_duration_steps(chain[i].length, clock, 1);
    return count > 0 && chain[count - 1].by && step >= start ? &chain[count - 1] : NULL;
}

bool mlrt_plateau_better(const MlrtSchedule *plateau, double value, double best)
{
    double threshold = plateau->arg[2];
    if (!isfinite(value))
        return false;
    return isnan(best) || (plateau->better > 0 ? value > best * (1 + threshold) : value < best * (1 - threshold));
}
