// train.h: what build_train.c and build_data.c keep while a train section is read.
#ifndef MLC_NET_TRAIN_H
#define MLC_NET_TRAIN_H

#include "build.h"

typedef struct Late { Ast *s; Scope *scope; Ast *value; int update; } Late;     // a statement that waits for the end of the section; update: -1, or whose
typedef struct Until { const Ast *ast; Duration until; LIST(Param *) params; } Until;     // freeze … until

typedef struct Train {
    Recipe *recipe;
    bool record;                // this run writes the recipe
    bool has_loss;
    Map *failed_metrics;        // those that were reported already
    const Ast *length_said;     // `epochs = …` or `steps = …`
    Ast *key_statement;         // the assignment whose key is being set
    int updates;                // `update` sections seen in this run
    bool update_has_loss;       // the present one
    LIST(Late) late;
    LIST(Until) untils;
    LIST(Value *) losses;       // of updates, in this run
    const Ast *data;            // the last data section
    bool data_failed;           // its source could not be read
    Map *group_args;            // arguments of the optimizer by parameter: double[10]
} Train;

typedef struct DataPart {
    DataSection *section;
    Source *source;             // of the section; NULL: what a caller gives
    bool record;                // this run writes the section; the other makes the mapping for training
    bool varies;                // the mapping has used `training`
    Graph *outer;               // whose inputs and targets are filled
    const Value *goal;          // what the present assignment fills, NULL for a helper
    bool direct;                // its right side is nothing but a field
    Map *assigned;              // by name of input or target: the Ast of the value
    Map *filled;                // likewise: what was given
} DataPart;

void report_unread_names(Net *net, const Scope *scope, const char *section, const char *const *known, int count);
Ast *setting_ast(Net *net, const char *name);       // -D name=…, as a tree; NULL if it was not given (build.c)
bool train_statement(Net *net, Scope *scope, Ast *s);       // true: it was one of train
bool data_statement(Net *net, Scope *scope, Ast *s);
void check_filled(Net *net, const Ast *train);

#endif
