// import.h: what the files of the importer share.
//
//   wire.c         bytes to messages, with limits
//   tensor_file.c  tensors of all forms
//   import.c       the walk over a model: names, types, versions, order of the nodes
//   onnx.def       the operators: a row each, with the first opset of it that is known and the function that builds it
//   build.c        what these functions are written with: attributes, inputs, calls of mlc's ops
//   known.c        values that are known when importing: numbers, and sizes that have names
//   ops_*.c        the functions, by family
//
// A function that fails has reported why; then m->failed is set, and everything after gives NULL.
#ifndef MLC_ONNX_IMPORT_H
#define MLC_ONNX_IMPORT_H

#include "../../compiler/ops/op.h"
#include "onnx.h"
#include "wire.h"

typedef struct Item {                   // what a name stands for
    const char *name;
    Value *value;                       // NULL: an initializer that nothing has asked for yet
    const Tensor *tensor;               // of an initializer
} Item;

typedef struct Scope { Map *items; struct Scope *outer; int depth; } Scope;

typedef struct Versions { int64_t ai, ml, training, preview; } Versions;      // of each domain, 0: not imported

typedef struct Import {
    Context    *cx;
    Builder     b;
    Graph      *g;
    Model      *model;
    const char *path;
    const OnnxOptions *options;
    const Onnx__Model *file;
    Scope      *scope;
    Versions    versions;
    const char *node;                   // "conv1 (Conv)": what is being built, for messages
    bool        failed;
    PointerMap *known;                  // Value to Tensor: what was found out
    PointerMap *demanded;               // graph inputs that had to be known
    Map        *taken;                  // names of inputs that are fixed
    bool        again;                  // an input was fixed: the import begins anew
} Import;

typedef struct OnnxCall {               // one node
    Import  *m;
    const Onnx__Node *p;
    const char *op, *detail;            // of the row
    int64_t  version;                   // of the operator set
    int      n_in, n_out;               // n_out: as the node lists them
    Value   *in[INPUTS_MAX], *out[OUTPUTS_MAX];
    bool     read[64];                  // attributes that the function has asked for
} OnnxCall;

typedef struct OnnxOp { const char *domain, *name; int since, least, most; void (*build)(OnnxCall *c); const char *detail; } OnnxOp;
const OnnxOp *onnx_op(const char *domain, const char *name);
const OnnxOp *onnx_op_at(int i);        // NULL behind the last

// --- import.c ----------------------------------------------------------------------------------------------------------
DType onnx_type(int number);                            // TYPE_NONE: one that mlc has not
const char *onnx_type_name(int number);
Tensor *onnx_tensor(Arena *arena, const Onnx__Tensor *p, const void *outside, size_t outside_bytes, const char **why);
Tensor *import_tensor(Import *m, const Onnx__Tensor *p, const char *name);     // also from an external file; NULL after a report
Item   *import_find(Import *m, const char *name);
Value  *import_value(Import *m, Item *item);
void    import_graph(Import *m, const Onnx__Graph *p, int n, Value *const *in, Value **out);    // a subgraph, written out

// --- build.c -----------------------------------------------------------------------------------------------------------
// The node is refused: "node conv1 (Conv): …".
void     refuse_node(OnnxCall *c, const char *format, ...) PRINTF_LIKE(2, 3);
const Onnx__Attribute *attribute(OnnxCall *c, const char *name);        // NULL: it is not given
int64_t  int_of(OnnxCall *c, const char *name, int64_t otherwise);
double   float_of(OnnxCall *c, const char *name, double otherwise);
const char *word_of(OnnxCall *c, const char *name, const char *otherwise);
int      ints_of(OnnxCall *c, const char *name, int64_t *to, int room);  // their number; -1: not given
Value   *input_of(OnnxCall *c, int i);                     // NULL: left out
DType    dtype_of(OnnxCall *c, int number);             // an ONNX type, or a report
int64_t  axis_of(OnnxCall *c, int64_t axis, int rank);  // from 0; reports what is outside

Value *emit(Import *m, OpCall *call);                   // NULL after a report, or if an input is NULL that may not be
bool   emit_all(Import *m, OpCall *call, Value **out);
OpCall call1(Import *m, const char *op, Value *x);
OpCall call2(Import *m, const char *op, Value *x, Value *y);
Value *op1(Import *m, const char *op, Value *x);
Value *op2(Import *m, const char *op, Value *x, Value *y);
Value *op3(Import *m, const char *op, Value *x, Value *y, Value *z);
Value *formula(Import *m, const char *text, int n, Value *const *in);    // over x0, x1, …
#define formula1(m, text, x)       formula((m), (text), 1, (Value *const[]){(x)})
#define formula2(m, text, x, y)    formula((m), (text), 2, (Value *const[]){(x), (y)})
#define formula3(m, text, x, y, z) formula((m), (text), 3, (Value *const[]){(x), (y), (z)})
Value *number(Import *m, DType type, double x);
Value *numbers(Import *m, DType type, int n, const int64_t *x);     // one axis
Value *constant(Import *m, const Tensor *t);
Value *cast_to(Import *m, Value *x, DType type);
Value *reshape_to(Import *m, Value *x, int rank, const Size *dims);
Value *broadcast_as(Import *m, Value *x, int rank, const Size *dims);
Value *transposed(Import *m, Value *x, const int64_t *perm);
Value *sliced(Import *m, Value *x, int axis, Size from, Size count, int64_t step);
Value *reduced(Import *m, const char *op, Value *x, int n, const int64_t *axes, bool keep);
Value *joined(Import *m, int n, Value *const *in, int axis);
int    rank_of(const Value *v);
Size   dim_of(const Value *v, int i);
Size   whole(Import *m, int64_t n);
bool   is_number(const Value *v);       // int or float

// --- known.c -----------------------------------------------------------------------------------------------------------
const Tensor *known_value(Import *m, Value *v);         // NULL: it is known only when running
// The elements of a whole number or of a list, as sizes; -1 after a report that input `what` must be known.
int  known_sizes(OnnxCall *c, Value *v, const char *what, Size *to, int room);
int  known_ints(OnnxCall *c, Value *v, const char *what, int64_t *to, int room);
bool known_number(OnnxCall *c, Value *v, const char *what, double *to);
bool sizes_of(Import *m, Value *v, Size *to, int room, int *count);     // no report

Value *conv_of(OnnxCall *c, Value *x, Value *weight, Value *bias);     // by the attributes of the node (ops_nn.c)

#define ONNX_FUNCTION(name) void name(OnnxCall *c);
#include "functions.def"
#undef ONNX_FUNCTION

#endif
