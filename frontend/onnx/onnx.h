// onnx.h: what the rest of the compiler uses of ONNX: models to Models, tensor files (.pb) to Tensors and back.
#ifndef MLC_ONNX_H
#define MLC_ONNX_H

#include "../../compiler/mlc.h"

// Whether the bytes of a file can be an ONNX model and no .net text.
bool onnx_is_model(const char *path, const char *bytes, size_t length);

typedef struct OnnxFixed { const char *name; const Tensor *tensor; } OnnxFixed;

typedef struct OnnxOptions {
    // A shape must be known when compiling. Where one depends on an input of the model, the input has to be fixed: it becomes a
    // constant, and is no input any more. `fixed` has the values that may be taken so; onnx_read takes those that it needs.
    const OnnxFixed *fixed;
    int              n_fixed;
    // The sizes that an input will have: named sizes of the model that stand for these are bounded by them. The same form.
    const OnnxFixed *shapes;
    int              n_shapes;
    bool             pin;               // named sizes become these sizes
} OnnxOptions;

// The model in `bytes`, read from `path` (external data lie beneath its folder). NULL after errors, which are in cx->diag.
Model *onnx_read(Context *cx, const char *path, const char *bytes, size_t length, const OnnxOptions *options);

// A tensor of a .pb file: its name may be NULL. NULL after errors, with what was wrong in *why.
Tensor *onnx_tensor_read(Arena *arena, const char *bytes, size_t length, const char **name, const char **why);
void    onnx_tensor_write(Text *out, const Tensor *tensor, const char *name);

// Names of the inputs, in the order of the file, those that have a value in it last; 0 if it cannot be read.
int onnx_input_names(Arena *arena, const char *bytes, size_t length, const char ***names);

void onnx_list(Text *text);             // the operators that are known, with the opsets

#endif
