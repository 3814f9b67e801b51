// net.h: what the rest of the compiler uses of the .net language.
#ifndef MLC_NET_H
#define MLC_NET_H

#include "../../compiler/mlc.h"
#include "ast.h"

// Gives the bytes of a file that the model names, in memory that lives as long as the compilation.
// False: *why says why not. The driver opens files in one place, so this is its function.
typedef bool NetLoad(void *user, const char *path, const char **bytes, int *length, const char **why);

// The tensors of a safetensors file: names, types and shapes. False: *why says why not, NULL where the file is not there.
typedef struct NetTensor { const char *name; DType type; int rank; int64_t dim[RANK_MAX]; } NetTensor;
typedef bool NetTensors(void *user, const char *path, const NetTensor **tensors, int *count, const char **why);

typedef struct NetSetting { const char *name, *value; } NetSetting;     // -D name=value

typedef struct NetOptions {
    NetLoad *load;
    NetTensors *tensors;                // NULL: files of weights are not looked at
    void    *user;                      // handed to both
    const NetSetting *settings;
    int      n_settings;
    bool     no_train;                  // leave the train section unread (an inference object is wanted)
} NetOptions;

// Reads a model with all it imports: Graphs, parameters, recipe. NULL after errors, which are in cx->diag.
Model *net_read(Context *cx, const char *path, const NetOptions *options);

#endif
