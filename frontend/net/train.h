// train.h: what build_train.c and build_data.c keep while a train section is read.
#ifndef MLC_NET_TRAIN_H
#define MLC_NET_TRAIN_H

#include "build.h"

typedef struct Late { Ast *s; Scope *scope; Ast *value; } Late;     // a statement that waits for the end of the section

typedef struct Train {
    Recipe *recipe;
    bool record;                // this run writes the recipe
    bool has_loss;
    Map *failed_metrics;        // those that were reported already
    const Ast *length_said;     // `epochs = …` or `steps = …`
    Ast *key_statement;         // the assignment whose key is being set
    LIST(Late) late;
    Map *group_args;            // arguments of the optimizer by parameter: double[10]
} Train;

typedef struct DataPart {
    Source *source;
    Scope *scope;
    Graph *outer;               // whose inputs and targets are filled
    const Value *goal;          // what the present assignment fills, NULL for a helper
    bool direct;                // its right side is nothing but a field
    Map *filled;                // by name of input or target
} DataPart;

void report_unread_names(Net *net, const Scope *scope, const char *section, const char *const *known, int count);
Ast *setting_ast(Net *net, const char *name);       // -D name=…, as a tree; NULL if it was not given (build.c)
bool train_statement(Net *net, Scope *scope, Ast *s);       // true: it was one of train
bool data_statement(Net *net, Scope *scope, Ast *s);

#endif
