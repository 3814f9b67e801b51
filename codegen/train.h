// train.h: what the files that print training programs share: train.c, optimizer.c, tables.c.
#ifndef MLC_CODEGEN_TRAIN_H
#define MLC_CODEGEN_TRAIN_H

#include "codegen.h"

enum { OPTIMIZER_STATES = 8 };

typedef struct UpdateStep { const char *name; int parts; } UpdateStep;

typedef struct Trainer {
    Context *cx;
    Model   *model;
    Recipe  *recipe;
    Program *train, *eval, *data;
    Text    *out;
    LIST(UpdateStep) update_steps;      // of the optimisers, in their order
    bool     train_copies, eval_copies; // a last step copies results
} Trainer;

int64_t trainable_end(const Model *model);              // floats of the block that are trained; they come first
int64_t params_total(const Model *model, bool trainable_only);
int64_t sample_flops(const Program *program);           // what one sample costs

void print_optimizer(Trainer *t);                       // of each optimiser its sweep, and the steps that call it
int  sweep_parts(int64_t trainable);
const OptimizerDef *group_optimizer(const Recipe *recipe, int group);
int  optimizer_states(const Recipe *recipe, const char *names[OPTIMIZER_STATES]);
int64_t update_scratch(const Model *model);             // floats for a worker
void print_tables(Trainer *t);                          // everything the runtime is told

#endif
