// schedule.h: durations in steps, and the learning rate as a function of the step.
#ifndef MLRT_SCHEDULE_H
#define MLRT_SCHEDULE_H

#include "mlrt.h"

typedef struct MlrtClock {
    int64_t epoch_steps, all_steps;     // of this run; both at least 1
    int64_t cuts;                       // of a plateau, so far
} MlrtClock;

// A duration in optimiser steps, rounded, at least 1; `rest` where it is not given. Seconds have no steps: `rest`.
int64_t mlrt_duration_steps(MlrtDuration duration, const MlrtClock *clock, int64_t rest);

// The factor of the learning rate for a step, counted from 0. `lr` is the base value, for targets that are no shares of it.
double mlrt_schedule_factor(const MlrtSchedule *chain, int count, const MlrtClock *clock, double lr, int64_t step);

// The plateau that holds at this step, NULL: none. Whether a value of its metric is better than the best one (NaN: none yet).
const MlrtSchedule *mlrt_schedule_plateau(const MlrtSchedule *chain, int count, const MlrtClock *clock, int64_t step);
bool mlrt_plateau_better(const MlrtSchedule *plateau, double value, double best);

// NULL, or what is wrong with the chain: an unknown name, a link in seconds, a link without an end before another.
const char *mlrt_schedule_fault(const MlrtSchedule *chain, int count);

#endif
