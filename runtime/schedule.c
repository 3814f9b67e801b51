// schedule.c: a chain of links a then b then c. Each begins at the factor where the one before it ended, so that a curve
// never jumps; the first begins at 1.
//
// With n steps in a link and i = 0 … n-1 inside it, from the level L where it begins:
//   constant  L
//   warmup    from + (1 - from) (i + 1) / n: its last step has the full rate, its first more than none
//   linear    L + (to - L) i / n
//   cosine    to + (L - to) (1 + cos(pi i / n)) / 2: PyTorch's CosineAnnealingLR
//   step      L factor^floor(i / n), for the rest of the run
#include "schedule.h"

#include <math.h>
#include <string.h>

typedef struct Link { double level, target, base_factor; int64_t at, length; } Link;

static double level_constant(const Link *link) { return link->level; }
static double level_step(const Link *link) { return link->level * pow(link->base_factor, (double)(link->at / link->length)); }
static double share_done(const Link *link) { return (double)link->at / (double)link->length; }

static double level_warmup(const Link *link)
{
    double done = (double)(link->at + 1) / (double)link->length;
    return link->at >= link->length ? 1 : link->base_factor + (1 - link->base_factor) * done;
}

static double level_linear(const Link *link) { return link->level + (link->target - link->level) * share_done(link); }

static double level_cosine(const Link *link)
{
    return link->target + (link->level - link->target) * (1 + cos(3.14159265358979323846 * share_done(link))) / 2;
}

static const struct LinkRow { const char *name; double (*level)(const Link *link); bool endless; } rows[] = {
    {"constant", level_constant, false},
    {"warmup", level_warmup, false},
    {"linear", level_linear, false},
    {"cosine", level_cosine, false},
    {"step", level_step, true},
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

double mlrt_schedule_factor(const MlrtSchedule *chain, int count, const MlrtClock *clock, double lr, int64_t step)
{
    double level = 1;
    int64_t start = 0;
    for (int i = 0; i < count; i++) {
        const struct LinkRow *row = row_find(chain[i].name);
        int64_t rest = clock->all_steps > start ? clock->all_steps - start : 1;
        int64_t length = mlrt_duration_steps(chain[i].length, clock, rest);
        double value = chain[i].arg[0];
        Link link = {level, chain[i].share[0] || lr == 0 ? value : value / lr, value, step - start, length};
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
        if (i < count - 1 && (row->endless || chain[i].length.unit == MLRT_NONE))
            return "only the last link of a schedule may be without an end";
    }
    return NULL;
}
