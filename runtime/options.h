// options.h: the command line of a training program, as options.def lists it.
#ifndef MLRT_OPTIONS_H
#define MLRT_OPTIONS_H

#include <stdio.h>

#include "mlrt.h"

typedef struct MlrtOption {
    bool        given;
    const char *text;                   // TEXT and MAYBE: the argument, NULL: none
    double      number;                 // COUNT, REAL
    uint64_t    whole;                  // COUNT, SEED
} MlrtOption;

typedef struct MlrtOptions {
#define GROUP(title)
#define OPTION(field, name, kind, argument, initial, brief) MlrtOption field;
#include "options.def"
#undef OPTION
#undef GROUP
    const char *const *sets;  int n_sets;       // arguments of --set, in order: an array of argc pointers that the caller gives
} MlrtOptions;

// Reads the words behind argv[0]. `sets` has room for argc pointers. Failure is MLRT_BAD_USAGE; the message names the nearest option.
MlrtStatus mlrt_options_parse(MlrtOptions *options, int argc, char **argv, const char **sets, MlrtError *error);
void mlrt_options_help(const MlrtModel *model, const char *program, FILE *out);

// The name of the list that is nearest to `name`, NULL if none is near. Used for every "did you mean".
const char *mlrt_nearest(const char *name, const char *const *names, int count);

#endif
