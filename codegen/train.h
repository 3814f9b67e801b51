// train.h: what the files that print training programs share: train.c, optimizer.c, tables.c.
#ifndef MLC_CODEGEN_TRAIN_H
#define MLC_CODEGEN_TRAIN_H

#include "codegen.h"

typedef struct Trainer {
    Context *cx;
    Model   *model;
    Recipe  *recipe;
    Program *train, *eval, *data;
    Text    *out;
    bool     train_copies, eval_copies; // a last step copies results
} Trainer;

int64_t trainable_end(const Model *model);              // floats of the block that are trained; they come first
int64_t params_total(const Model *model, bool trainable_only);
int64_t sample_flops(const Program *program);           // what one sample costs

void print_optimizer(Trainer *t);                       // the sweep, and the step that calls it
int  sweep_parts(int64_t trainable);
void print_tables(Trainer *t);                          // everything the runtime is told

#endif
