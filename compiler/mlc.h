// mlc.h: the forms a model passes through, in the order it passes through them. Read this first.
//
//   Source (a .net file)  --frontend/net-->  Model (Graphs + parameters + Recipe)  --passes-->  Program  --codegen-->  C text
//
// A Graph says what is computed, in typed nodes; the interpreter (eval.c) runs any Graph. A Program says how: buffers with
// places, kernels as loop trees or calls of kernel files, steps in order. Printers read Programs only; the loop trees are
// neutral, so that C and CUDA print from the same ones. No form reaches back to an earlier one.
#ifndef MLC_MLC_H
#define MLC_MLC_H

#include "base.h"
#include "diag.h"

enum { RANK_MAX = 8, INPUTS_MAX = 40, ATTRS_MAX = 12, OWNED_MAX = 33, OUTPUTS_MAX = 16, WORDS_MAX = 8 };

typedef struct Value Value;
typedef struct Node Node;
typedef struct Graph Graph;
typedef struct Param Param;
typedef struct OpDef OpDef;
typedef struct Builder Builder;
typedef struct Expr Expr;
typedef struct Loop Loop;

// One compilation: what all parts share. Nothing is global, so two models can be compiled in one process.
typedef struct Context {
    Arena *arena;                       // lives as long as the compilation
    Names *names;                       // interned names: compare by pointer
    Diag  *diag;                        // messages for the user
    Map   *symbols;                     // named sizes by name (Symbol *)
    const char *show;                   // the pass after which graph or program are shown in `log`, "all", or NULL
    bool   timed;                       // the passes are timed there
    struct Text *log;                   // NULL: nowhere
} Context;

// --- Element types (type.c, types.def) ----------------------------------------------------------------------------------

typedef enum DType {
    TYPE_NONE,
#define TYPE(name, bytes, kind, c, npy, safetensors, onnx) TYPE_##name,
#include "types.def"
#undef TYPE
    TYPE_COUNT
} DType;

typedef enum TypeKind { KIND_BOOL, KIND_INT, KIND_UINT, KIND_FLOAT } TypeKind;

typedef struct TypeDef { const char *name; int bytes; TypeKind kind; const char *c, *npy, *safetensors; int onnx; } TypeDef;

const TypeDef *type_def(DType type);
DType type_find(const char *name);                      // TYPE_NONE if there is none of that name
bool  type_is_float(DType type);
double  type_round(DType type, double x);               // to the nearest value of a float type, ties to even
int64_t type_whole(DType type, double x);               // the whole part, the nearest value of an integer type where it is outside, 0 for NaN
int64_t type_wrap(DType type, int64_t n);               // two's complement, cut to the type's width; of a bool: n != 0

// --- Sizes (size.c): integers known when compiling, or polynomials over named sizes ---------------------------------------
//
// A Size is immutable and kept in one normal form (a sum of products of atoms; an atom is a symbol or a floor division),
// so two sizes are the same if size_equal says so, and only then. A symbol equals only itself. What does not fit into 64 bits
// or has too many terms becomes a size that is not valid and equals nothing; graph_call refuses it.

typedef struct Symbol { const char *name; int64_t bound; bool batch; int id; int64_t trained; } Symbol;
// bound 0: none is known. trained: its value in training, as the data has it; 0: its bound
typedef struct SizeForm SizeForm;
typedef const SizeForm *Size;

Size size_const(Context *cx, int64_t n);
Size size_symbol(Context *cx, const char *name, int64_t bound);    // the same Symbol for the same name
Size size_plus(Context *cx, Size a, Size b);
Size size_minus(Context *cx, Size a, Size b);
Size size_times(Context *cx, Size a, Size b);
Size size_floordiv(Context *cx, Size a, int64_t b);     // b > 0
Size size_ceildiv(Context *cx, Size a, int64_t b);
Size size_over(Context *cx, Size a, Size b);            // exact quotient, or NULL where it is not one
bool size_valid(Size a);
bool size_equal(Size a, Size b);
bool size_known(Size a, int64_t *n);                    // true if it is a number
bool size_is(Size a, int64_t n);                        // it is this number
int64_t size_value(Size a);                             // the number; a bug if it is none
bool size_upper(Size a, int64_t *n);                    // its largest value under the symbols' bounds, or more; false if unbounded
int64_t size_at(Size a, const int64_t *symbols);        // with values by Symbol id; INT64_MAX if it does not fit
Size size_with(Context *cx, Size a, const int64_t *symbols);        // with values by Symbol id where they are not negative
int  size_symbols(Size a, const Symbol **symbols, int room);       // the symbols in it
void size_print(Text *text, Size a);                    // 16 * H, floor(W / 4), N

typedef struct Shape { int rank; Size dim[RANK_MAX]; } Shape;
typedef struct Type { DType dtype; Shape shape; } Type;

bool shape_equal(const Shape *a, const Shape *b);
bool type_equal(const Type *a, const Type *b);
Size shape_count(Context *cx, const Shape *shape);      // product of all dims; 1 for rank 0
bool shape_broadcast(Context *cx, const Shape *a, const Shape *b, Shape *out);  // numpy's rule; false if they do not fit
Type type_of(DType dtype, int rank, const Size *dims);
void type_print(Text *text, const Type *type);          // f32[N, 64]
const char *type_text(Context *cx, const Type *type);

// --- Scalar formulas (expr.c, expr_text.c, prims.def) ---------------------------------------------------------------------------------

typedef enum PrimId {
#define PRIM(name, operands, result, c, da, db) PRIM_##name,
#include "prims.def"
#undef PRIM
    PRIM_COUNT
} PrimId;

typedef struct PrimDef { const char *name; int operands; enum { PRIM_SAME, PRIM_BOOL, PRIM_KEEP, PRIM_F32 } result; const char *c, *d[2]; } PrimDef;
const PrimDef *prim_def(PrimId prim);

typedef enum ExprKind {
    EXPR_NUMBER,        // number (floats) or whole (integers)
    EXPR_INDEX,         // a loop variable: var
    EXPR_SIZE,          // size, as an i64
    EXPR_ARG,           // operand `arg` of the formula of an op
    EXPR_LOAD,          // value[index…]
    EXPR_LOCAL,         // what a LOOP_LET or an accumulator of id `var` holds
    EXPR_HYPER,         // a number of the recipe that may change while training (lr, …): name
    EXPR_PRIM,          // prim(operand…)
    EXPR_CAST,          // operand[0] as type
} ExprKind;

struct Expr {
    ExprKind kind;
    DType    type;                      // of the result; index arithmetic is i64
    PrimId   prim;
    int      var, arg;
    double   number;
    int64_t  whole;
    Size     size;
    Value   *value;
    const char *name;
    int      count;                     // of operands, or of indices for a load
    Expr    *operand[RANK_MAX];
};

Expr *expr_number(Context *cx, DType type, double number);
Expr *expr_whole(Context *cx, int64_t whole);                       // an i64
Expr *expr_index(Context *cx, int var);                             // an i64
Expr *expr_size(Context *cx, Size size);                            // a number where it is known
Expr *expr_arg(Context *cx, DType type, int arg);
Expr *expr_local(Context *cx, DType type, int var);
Expr *expr_load(Context *cx, Value *value, int count, Expr *const *index);
Expr *expr_prim(Context *cx, PrimId prim, Expr *a, Expr *b, Expr *c);    // whole numbers fold; unused operands NULL
Expr *expr_cast(Context *cx, DType type, Expr *a);
// A formula over the op's input names and its numeric attributes ("max(x, 0)", "select(x > 0, x, slope * x)").
// Its grammar: numbers, names, + - * / comparisons, prim calls. An error in it is a bug of the row.
Expr *expr_parse(Context *cx, const char *formula, const char *const *names, Expr *const *values, int count);
Expr *expr_derivative(Context *cx, Expr *formula, int arg);         // d formula / d EXPR_ARG arg, simplified; NULL if zero
Expr *expr_rewrite(Context *cx, Expr *e, Expr *(*at)(void *context, Expr *e), void *context);    // bottom up; `at` sees every node
bool  expr_equal(const Expr *a, const Expr *b);
typedef struct Cost { int cheap, heavy, loads, prims; } Cost;
void  expr_cost(const Expr *e, Cost *cost);                         // adds what one element costs
void  expr_print(Text *text, const Expr *e, const char *const *args);    // as expr_parse reads it; args NULL: x0, x1, …
void  number_print(Text *text, DType type, double number);          // the shortest text that reads back to the same value

// --- Attributes ------------------------------------------------------------------------------------------------------------

typedef enum AttrKind { ATTR_NONE, ATTR_INT, ATTR_FLOAT, ATTR_BOOL, ATTR_WORD, ATTR_INTS, ATTR_SIZES, ATTR_TYPE, ATTR_FORMULA, ATTR_TEXT } AttrKind;

typedef struct Attr {
    AttrKind kind;                      // ATTR_NONE: not given and no default
    int64_t  i;                         // INT, BOOL
    double   f;                         // FLOAT
    const char *word;                   // WORD, TEXT
    int      count;
    int64_t  ints[RANK_MAX * 2];        // INTS
    Size     sizes[RANK_MAX];           // SIZES
    DType    type;                      // TYPE
    Expr    *formula;                   // FORMULA (of `map`)
} Attr;

// --- One row per op (ops/op.h has what rows are written with; ops/ops.def lists them) -----------------------------------------

typedef struct AttrDef {
    const char *name;
    AttrKind    kind;
    const char *initial;                // default as text ("1", "0.1", "same", "none"); NULL: must be given; "" : may be absent
    const char *words;                  // "zeros reflect edge": words allowed besides, or instead of, a value
    double      least, most;            // range, where least < most
    bool        positional;             // may follow the inputs without its name
    const char *onnx;                   // ONNX's name of it, if it has another
    const char *brief;
} AttrDef;

typedef enum ParamRole { ROLE_WEIGHT, ROLE_BIAS, ROLE_NORM, ROLE_EMBEDDING, ROLE_BUFFER, ROLE_COUNT } ParamRole;
extern const char *const role_names[ROLE_COUNT];                    // "weight", "bias", … (print.c)

typedef struct OwnedDef {               // a parameter that calls of the op own
    const char *input;                  // name of the input it fills: "weight"
    ParamRole   role;                   // ROLE_NORM: scale and shift of normalisation
    const char *init;                   // default initialiser, PyTorch's: "kaiming_uniform(a = 2.2360679774997896)", "zeros"
    const char *unless;                 // attribute that, false, leaves it out: "bias"
} OwnedDef;

enum {                                  // traits
    OP_COMMUTES   = 1 << 0,             // f(a, b) = f(b, a)
    OP_RANDOM     = 1 << 1,             // a function of (seed, step, place, element)
    OP_MODE       = 1 << 2,             // follows `training`
    OP_DATA       = 1 << 3,             // may be used in `data`
    OP_FITTED     = 1 << 4,             // looks at the training part once
    OP_LOSS       = 1 << 5,             // compares like with like; gives one number
    OP_METRIC     = 1 << 6,
    OP_INTERNAL   = 1 << 7,             // made by passes, not written by people
    OP_MOVES      = 1 << 8,             // only moves elements (reshape, transpose, slice): exact
    OP_MANY       = 1 << 10,            // gradients come by any of its results, not by the first alone: `grad` may get dy[0] = NULL
    OP_INDEX      = 1 << 9,             // the inputs marked so in `inputs` are indices, checked against the axis they index
};

typedef struct MetricDef { enum { METRIC_MEAN, METRIC_SUM } add; int better; const char *finish; } MetricDef;
// add: how batches add up (mean weighted by rows, or sum); better: +1 higher, -1 lower, 0 not known;
// finish: what the runtime makes of the sum ("", "exp", "sqrt", "f1", "iou", "auc", "map", "confusion")

typedef struct OnnxName { const char *name; int since, until; } OnnxName;

typedef struct OpCall {                 // what a shape rule sees and fills
    Context     *cx;
    const OpDef *op;
    DiagPlace    place;
    int          n_in;
    Value       *in[INPUTS_MAX];        // by the order of op->inputs; NULL: optional and absent, or owned and not yet made
    Type         owned[INPUTS_MAX];     // for owned inputs that are NULL: the rule fills their types
    Attr         attr[ATTRS_MAX];       // complete: defaults are filled in
    int          n_out;
    Type         out[OUTPUTS_MAX];
    bool         training;
} OpCall;

// A value said element by element: out[i0, …, i(rank-1)] = reduce over r0, … of body. Loop variables 0 … rank-1 are the axes
// of the output, rank … rank+reduced-1 those of the reduction. The pull form: fusion is substitution of loads.
typedef enum Reduce { REDUCE_NONE, REDUCE_SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN } Reduce;

typedef struct Compute {
    int    rank;      Size extent[RANK_MAX];
    int    reduced;   Size reduced_extent[RANK_MAX];
    Reduce reduce;
    Expr  *body;
} Compute;

struct OpDef {
    const char *name;
    const char *brief;                  // one line
    const char *doc;                    // manual text: the formula, the paper, traps; may be NULL
    const char *example;                // lines of .net
    const char *inputs;                 // "x: float, weight: float, bias: float?"; kinds: float int bool any index, like x; "*": any number
    const char *outputs;                // "y"
    AttrDef     attrs[ATTRS_MAX];
    OwnedDef    owned[OWNED_MAX];
    int         traits;
    bool      (*shape)(OpCall *call);   // fills out types (and owned types); false after a diagnostic
    const char *formula;                // elementwise ops: over input and attribute names
    // One of the next four says what the op is (formula ops need none):
    void      (*compute)(Context *cx, const Node *node, int output, Compute *out);     // pull form
    Loop     *(*lower)(Context *cx, const Node *node);                                 // push form (scatter, argmax, …)
    void      (*expand)(Builder *b, const Node *node, Value **out);             // in terms of other ops
    // Gradient: fills dx[i] (NULL: none) for the inputs, given dy of each output (NULL: not used). Formula ops and expanded ops
    // need none. `no_grad` says why there is none.
    void      (*grad)(Builder *b, const Node *node, Value *const *dy, Value **dx);
    const char *no_grad;
    bool        once;                   // and it should have one: what goes back through it has no derivative itself
    Size      (*flops)(Context *cx, const Node *node);     // NULL: one per element of the output
    const char *precision;              // "any", "f32" (accumulates in f32 at least), …
    const char *quantize;               // policy: "", "int8"
    const char *along;                  // along an axis: "each", "back", "mixes" (for generate)
    const char *mean_over;              // losses: what a mean divides by ("rows", "where")
    MetricDef   metric;
    OnnxName    onnx[4];
    const char *const *cases;           // test cases: "x: f32[2,3]; axis = 1", NULL-terminated
};

const OpDef *op_find(const char *name);                 // NULL if there is none
int  op_count(void);
const OpDef *op_at(int i);
int  op_input_index(const OpDef *op, const char *name); // -1 if there is none
int  op_inputs(const OpDef *op, const char *names[INPUTS_MAX], bool optional[INPUTS_MAX], bool *variadic);     // their number
const Attr *node_attr(const Node *node, const char *name);              // a bug if the op has no such attribute
const Attr *call_attr(const OpCall *call, const char *name);

// --- Graph (graph.c, print.c, verify.c) ----------------------------------------------------------------------------------------

typedef enum ValueKind { VALUE_INPUT, VALUE_PARAM, VALUE_CONST, VALUE_RESULT } ValueKind;

struct Value {
    int         id;                     // numbered in the graph; identifiers are made from it
    ValueKind   kind;
    const char *name;                   // as the user wrote it, or a name made from the op; not unique
    Type        type;
    Node       *node;                   // RESULT: who makes it
    int         index;                  // RESULT: which output; INPUT: which input
    Param      *param;                  // PARAM
    const void *data;                   // CONST: elements, row-major, of the dtype
    DiagPlace   place;
    int64_t     below;                  // integers: all elements are known to be in 0 … below-1; 0: nothing is known
};

typedef enum Phase { PHASE_FORWARD, PHASE_BACKWARD, PHASE_UPDATE } Phase;

struct Node {
    int          id;
    const OpDef *op;
    int          n_in, n_out;
    Value       *in[INPUTS_MAX];        // NULL: absent
    Value       *out[OUTPUTS_MAX];
    Attr         attr[ATTRS_MAX];
    const char  *scope;                 // "layer1.0.conv1": the layer, for messages and reports
    DiagPlace    place;
    Phase        phase;
    uint32_t     salt;                  // random ops: which draw of the step this is
};

typedef enum Stage { STAGE_READ, STAGE_TYPED, STAGE_PLAIN, STAGE_DIFFERENTIATED, STAGE_FUSED, STAGE_PLANNED, STAGE_COUNT } Stage;

extern const char *const stage_names[STAGE_COUNT];                 // "read", "typed", … (print.c)

typedef struct Update { Param *param; Value *value; } Update;       // after the step, the buffer becomes the value
typedef struct Gradient { Param *param; Value *value; } Gradient;
typedef struct NamedValue { const char *name; Value *value; const MetricDef *metric; int better; } NamedValue;

struct Graph {
    Context    *cx;
    const char *name;
    Stage       stage;
    bool        training;
    LIST(Value *) values;
    LIST(Node *)  nodes;                // always a valid order of execution
    LIST(Value *) inputs;               // inputs, then targets
    int           n_targets;            // the last so many of inputs are targets
    LIST(NamedValue) outputs;           // in the user's order
    LIST(NamedValue) metrics;           // evaluation: what each batch gives
    Value        *loss;                 // one number, or NULL
    LIST(NamedValue) auxiliary;
    LIST(Update)   updates;             // batch-norm statistics and the like
    LIST(Gradient) gradients;           // after grad: for every trainable parameter
    uint32_t       draws;               // random nodes made so far: each has a salt of its own
    int            n_made;              // nodes made so far: their ids
    PointerMap    *of_param;            // a parameter's value
};

Graph *graph_new(Context *cx, const char *name);
Value *graph_input(Graph *g, const char *name, Type type, DiagPlace place);
Value *graph_param(Graph *g, Param *param);             // the one value of that parameter in this graph
Value *graph_const(Graph *g, Type type, const void *data);
// Checks the call by its row, infers types, adds the node. Out values in out[]; false after a diagnostic.
bool   graph_call(Graph *g, OpCall *call, const char *scope, Value **out);
Value *graph_scratch(Graph *g, const char *name, Type type);       // a value that a kernel uses beside the nodes
// All values that the graph names (outputs, metrics, losses, updates, gradients) become what `map` says.
void   graph_map_wanted(Graph *g, Value *(*map)(void *context, Value *value), void *context);
void   graph_replace(Graph *g, Value *from, Value *to); // everywhere `from` is used
void   graph_bind(Graph *g, const int64_t *symbols);    // size_with for all types, attributes and formulas
// Writes out the ops that are defined by others: those without a gradient rule, or that need none any more; with `all`, all of
// them. now (may be NULL): by id of the values there were, what each has become. True if anything changed.
bool   graph_expand(Graph *g, bool all, Value ***now);
void   graph_print(Text *text, const Graph *g);         // print.c says how; graph_read reads it
// The Graph that graph_print wrote, with parameters of its own. NULL and a message (with its line) in *error.
Graph *graph_read(Context *cx, const char *text, const char **error);
void   graph_dot(Text *text, const Graph *g);           // for Graphviz
void   graph_verify(const Graph *g);                    // a bug, naming the node, if an invariant of its stage does not hold
Graph *graph_copy(const Graph *g);
void   graph_prune(Graph *g);                           // drops nodes that nothing wanted uses

// A Builder adds nodes from C: in gradients, expansions and passes. Types are inferred; a mistake there is a bug.
struct Builder { Context *cx; Graph *graph; const char *scope; DiagPlace place; Phase phase; bool training; };
Value *build(Builder *b, const char *op, int n_in, Value *const *in, const char *attrs);    // attrs as text: "axis = 1, keep = true"
Value *build1(Builder *b, const char *op, Value *x, const char *attrs);
Value *build2(Builder *b, const char *op, Value *x, Value *y, const char *attrs);
Value *build_map(Builder *b, const char *formula, int n_in, Value *const *in);              // over x0, x1, …
Value *build_number(Builder *b, DType type, double number);
Value *build_sum_to(Builder *b, Value *x, const Shape *shape);      // sums what broadcasting had repeated
Value *build_reshape(Builder *b, Value *x, const Shape *shape);

// --- Gradients (grad.c): reverse mode on the Graph ------------------------------------------------------------------------------------

// Adds the gradient of the loss by every trainable parameter; false if there is no loss, or after a diagnostic.
bool   graph_grad(Graph *g);
// d(sum of y)/dx, of the shape of x, by nodes that are appended. The producers of y are in the graph. NULL: y does not depend
// on x, or a diagnostic was given (an op on the way has no gradient of its own gradient).
Value *build_gradient(Builder *b, Value *y, Value *x);

// --- Interpreter (eval.c, eval_loop.c, tensor.c): runs any Graph, as the rows say ------------------------------------------------------------------------

typedef struct Tensor { DType dtype; int rank; int64_t dim[RANK_MAX]; void *data; } Tensor;  // row-major; data in an arena
Tensor *tensor_new(Arena *arena, DType dtype, int rank, const int64_t *dim);        // zeroed
int64_t tensor_count(const Tensor *t);
double  tensor_get(const Tensor *t, int64_t i);                     // any element type as a double
void    tensor_set(Tensor *t, int64_t i, double x);                 // rounded to the type; integers: type_whole
int64_t tensor_get_whole(const Tensor *t, int64_t i);               // integers exactly
void    tensor_set_whole(Tensor *t, int64_t i, int64_t n);          // wraps around

typedef struct Eval {
    Arena   *arena;
    Tensor **at;                        // by Value id; inputs and parameters are put there by the caller
    int64_t *symbols;                   // by Symbol id
    uint64_t seed, step;
    bool     in_double;                 // every float type is computed and stored as f64 (gradient checks)
    char    *error;                     // where it failed: index out of range, …
} Eval;
bool eval_graph(const Graph *g, Eval *eval);            // false with eval->error

// --- Parameters and the recipe ---------------------------------------------------------------------------------------------------

typedef struct Init { const char *name; double number[3]; bool fan_out; const char *path; } Init;   // rows in recipe.def INIT

struct Param {
    const char *path;                   // "layer1.0.conv1.weight", PyTorch's name
    Type        type;                   // sizes are known
    ParamRole   role;
    const OpDef *op;                    // whose parameter it is (for selectors), NULL for a weight statement
    bool        trainable;              // false: buffer or frozen
    bool        train_only;             // made in `train`: in the checkpoint, not in the object
    Init        init;
    int64_t     fan_in, fan_out;
    int         group;                  // of the optimiser
    int64_t     offset;                 // place in the flat block, in elements (trainable first); set by the planner
    const void *data;                   // the elements, where they came with the model (ONNX); NULL: they come with the weights
    DiagPlace   place;
};

int64_t param_count(const Param *param);                 // elements

typedef enum Unit { UNIT_NONE, UNIT_EPOCHS, UNIT_STEPS, UNIT_SECONDS, UNIT_SHARE } Unit;
typedef struct Duration { double amount; Unit unit; } Duration;

// recipe.def: rows OPTIMIZER, SCHEDULE, INITIALISER: names, arguments with defaults, formulas (recipe.c).
typedef struct RecipeArg { const char *name; double initial; bool needed; } RecipeArg;
typedef enum ScheduleLength { LENGTH_OPTIONAL, LENGTH_FIRST, LENGTH_OVER, LENGTH_EVERY, LENGTH_PER, LENGTH_AT, LENGTH_BY } ScheduleLength;
typedef struct OptimizerDef {
    const char *name, *brief;
    int n_args;    RecipeArg arg[10];
    int n_states;  const char *state[3];
    const char *scalars, *formula;
    const char *tensor, *apply;         // "": the formula moves the parameters; else it makes g, see recipe.def
} OptimizerDef;
typedef struct ScheduleDef { const char *name, *brief; int n_args; RecipeArg arg[4]; ScheduleLength length; } ScheduleDef;
typedef struct InitialiserDef { const char *name, *brief; int n_args; RecipeArg arg[3]; } InitialiserDef;
const OptimizerDef   *optimizer_at(int i);              // NULL behind the last
const ScheduleDef    *schedule_at(int i);
const InitialiserDef *initialiser_at(int i);
const OptimizerDef   *optimizer_find(const char *name);
const ScheduleDef    *schedule_find(const char *name);
const InitialiserDef *initialiser_find(const char *name);

typedef struct OptimizerGroup {
    double arg[10];                     // group 0 is the optimiser itself
    const OptimizerDef *own;            // another optimiser for this group; NULL: the recipe's
} OptimizerGroup;
typedef struct ScheduleStep {
    const ScheduleDef *def;
    Duration    length;
    double      arg[4];
    bool        share[4];               // it is a share of the learning rate
    LIST(Duration) at;                  // multistep: from the begin of the step, ascending
    const char *by;  int better;        // plateau: a metric or "loss"; +1 higher, -1 lower
    DiagPlace   place;
} ScheduleStep;
typedef struct Schedule { const char *name; LIST(ScheduleStep) steps; } Schedule;

typedef enum FieldHow { FIELD_COLUMNS, FIELD_STRINGS, FIELD_ARRAY } FieldHow;
typedef struct Field {                  // what the data graph reads from the source: one of its inputs
    FieldHow    how;
    const char *name;                   // array name (npy, idx), or column name; NULL: by number
    int64_t     first, last;            // column numbers, both included, where name is NULL
    Value      *value;                  // the input of the data graph it feeds (per sample)
    const char *codes;                  // FIELD_STRINGS: "classes" or "category": strings become i32 codes, fitted on the training part;
                                        // "wordpiece", "characters", "bpe", "bytes": a row of codes; "picture": a file
    int64_t     n_codes;                // of classes and category; the longest row, 0 for any
    const char *codes_from;             // vocabulary file, alphabet, or word ("gray")
    LIST(const char *) names;           // what the codes stand for, where the weights tell
} Field;

typedef struct Source { const char *kind; int n_args; const char *arg[8], *text[8]; struct Source *of; DiagPlace place; } Source;   // csv: path, header, separator; npy/idx: field = file; windows: of another
typedef struct Split { const char *part; double share; Source *source; } Split;                 // share or source
typedef struct Pad { const char *name; double value; } Pad;     // of an input or target whose sizes differ between samples

typedef struct DataSection {            // one `data { }`
    Source   *source;                   // NULL: what a caller gives (image, text, column)
    LIST(Split)   splits;
    const char   *stratified_by;
    Value        *grouped_by;           // rows of one group stay in one part; an input of the graph
    bool          ordered;              // the parts follow each other in time
    LIST(Field)   fields;
    LIST(Pad)     pads;
    Graph        *data;                 // fields -> inputs and targets, one sample; outputs are named as what they fill
    Graph        *augment;              // the same with `training` true; NULL: no different
} DataSection;

// An `update NAME for …` of several: moves its own weights by a loss of its own, in the order written.
typedef struct UpdateRule {
    const char *name;
    Graph      *train;                  // the training graph with this loss; its random draws are those of the other updates
    const OptimizerDef  *optimizer;
    LIST(OptimizerGroup) groups;
    LIST(ScheduleStep)   schedule;
    int         clip;  double clip_at;  // as in Recipe
    int64_t     every;                  // steps
    LIST(Param *) params;               // what moves
    int        *group;                  // of each of them
} UpdateRule;

// Until a moment these do not move besides those that never do: `trainable` false while the programs of the stage are made.
typedef struct FreezeStage { Duration until; LIST(Param *) frozen; } FreezeStage;

typedef struct Quantize { bool on; const char *weights, *activations; Duration from; LIST(Param *) except; } Quantize;     // words: per_channel, per_tensor

typedef struct Recipe {
    int64_t   batch;
    double    epochs;   int64_t steps;  // one of them is 0
    const OptimizerDef *optimizer;
    LIST(OptimizerGroup) groups;
    LIST(ScheduleStep)   schedule;
    enum { CLIP_NONE, CLIP_NORM, CLIP_VALUE } clip;  double clip_at;
    const char *keep_by;  int keep_better;  int keep_last;          // metric name or "loss"; +1 higher, -1 lower
    Duration  stop_after; const char *stop_by; int stop_better;
    Duration  evaluate, save;
    bool      shuffle, drop_last;
    uint64_t  seed;
    Source   *source;
    LIST(Split)   splits;
    const char   *stratified_by;
    LIST(Field)   fields;
    Graph    *data;                     // fields -> inputs and targets, one sample; outputs are named as what they fill
    double    ema;                      // decay of the average of the weights; 0: none
    // What follows is read, checked and kept, but not carried out: Model.later names it.
    Graph    *augment;                  // the mapping of the data in training; NULL: no different
    Value    *grouped_by;
    bool      ordered;
    LIST(Pad)         pads;
    LIST(DataSection) more_data;        // behind the first
    bool      whole;                    // batch = whole: the arrays are one sample
    int64_t   micro_batch;              // 0: batch
    DType     precision;                // TYPE_NONE: f32
    Quantize  quantize;
    LIST(Param *)     recompute;        // the layers that own these compute their activations again
    const char *sampler, *sampler_by;   // balanced, weighted; an input or target
    const Symbol *bucket;               // samples of similar size go together
    LIST(UpdateRule)  updates;          // instead of one loss and optimizer
    LIST(FreezeStage) stages;           // by time, all in one unit; after the last nothing of this is frozen
    LIST(Schedule)    numbers;          // schedules as numbers: EXPR_HYPER in the graphs, by name
} Recipe;

typedef struct Labels { const char *output; int count; const char **names; } Labels;

// Parameters start from a file: path as it is to be opened.
// In the file they may be named without `prefix`.
typedef struct WeightSource { const char *path, *prefix; LIST(Param *) params; DiagPlace place; } WeightSource;

// generate: `logits` at the last position gives the next element of `input` along `along`.
typedef struct Generate {
    const char *input, *logits;
    const Symbol *along;
    double   temperature, top_p;        // temperature 0: the most probable
    int64_t  top_k, end, limit;         // 0: all; end -1: none
    const char *text, *text_from;       // "bytes", "bpe" and its file; NULL: numbers only
    DiagPlace place;
} Generate;

// Something the language understands and the rest of mlc does not carry out yet.
typedef struct Later { const char *what, *instead; DiagPlace place; bool training; } Later;     // training: the object does without

typedef struct Model {
    Context    *cx;
    const char *name, *path;            // of the net; of its file
    LIST(Param *) params;               // in the order of first use
    Graph      *train;                  // loss with training = true; NULL without a train section
    Graph      *eval;                   // outputs, loss and metrics with training = false
    Graph      *infer;                  // outputs alone
    Recipe     *recipe;                 // NULL without a train section
    LIST(Labels) labels;
    Map        *settings;               // -D and param values, resolved, with origin (text), for the run folder
    const char *weights;                // `weights from` for the whole net, as written, or NULL
    LIST(WeightSource) weight_files;    // all of `weights from`, in their order
    Generate   *generate;               // NULL: none
    DataSection *prepare;               // `data { }` outside of train: what is done to what a caller gives; NULL: none
    LIST(Later) later;
} Model;

// Reports what of the model is not carried out yet. `training`: a training program is wanted, not only outputs.
bool model_complete(Model *model, bool training);

// --- Program ------------------------------------------------------------------------------------------------------------------------

typedef enum Space {                    // where a buffer lives
    SPACE_ARENA,                        // activations, by offset; planned
    SPACE_PARAM, SPACE_GRAD, SPACE_STATE,   // the flat blocks
    SPACE_INPUT, SPACE_OUTPUT,          // the caller's memory (object), or the batch (trainer)
    SPACE_CONST,
} Space;

typedef struct Buffer {
    Value  *value;
    Space   space;
    int64_t offset, bytes;              // in its space; bytes at the largest sizes
    int     index;                      // INPUT, OUTPUT: which
    int     first, last;                // steps between which it lives
    struct Buffer *alias;               // shares the memory of this one (in place, reshape)
} Buffer;

typedef enum LoopKind { LOOP_BLOCK, LOOP_FOR, LOOP_LET, LOOP_ACCUMULATOR, LOOP_STORE, LOOP_UPDATE, LOOP_IF } LoopKind;
typedef enum AxisMark { AXIS_SERIAL, AXIS_PARALLEL, AXIS_VECTOR, AXIS_BLOCK, AXIS_THREAD } AxisMark;

struct Loop {
    LoopKind kind;
    int      var;                       // FOR: loop variable; LET, ACCUMULATOR: local id; UPDATE of a local: its id
    AxisMark mark;
    Expr    *from, *to;                 // FOR: from <= var < to
    Expr    *value;                     // LET, ACCUMULATOR (start), STORE, UPDATE, IF (condition)
    Value   *target;                    // STORE, UPDATE: memory; NULL: the local `var`
    int      count;
    Expr    *index[RANK_MAX];           // of target
    Reduce   reduce;                    // UPDATE: how value joins what is there
    DType    type;                      // LET, ACCUMULATOR
    LIST(Loop *) body;                  // BLOCK, FOR, IF
    Loop    *other;                     // IF: else
};
Loop *loop_new(Context *cx, LoopKind kind);
Loop *loop_for(Context *cx, int var, AxisMark mark, Expr *from, Expr *to);
void  loop_add(Context *cx, Loop *parent, Loop *child);
void  loop_print(Text *text, const Loop *loop, int depth);          // neutral text, for debugging and tests
bool  node_compute(Context *cx, const Node *node, int output, Compute *out);    // compute.c; false: the op has no pull form
Loop *loop_of_compute(Context *cx, const Compute *compute, Value *out);     // the plain nest
bool  loop_run(const Loop *loop, Eval *eval);                       // interpreter of loop trees

// A kernel is a function that a step calls: a loop tree, or a call of a kernel file (kernels/kernels.def) with bound sizes.
typedef struct KernelArg { enum { ARG_VALUE, ARG_SIZE, ARG_NUMBER, ARG_NULL } kind; Value *value; Size size; int64_t number; } KernelArg;

typedef struct Kernel {
    int         id;                     // position in the program; identifiers are numbered by it
    const char *name;                   // "fc1_relu": letters, digits, _; made from scope and op, cut to 40 characters
    const char *scope, *op;             // of the most telling node: "fc1", "dense"
    const char *equation;               // for the comment over it: "h = max(x w' + b, 0)"
    DiagPlace   place;
    Phase       phase;
    LIST(Node *) nodes;                 // what it computes, in order
    LIST(Value *) reads, writes;        // memory it touches, each once; inlined values are not among them
    Loop       *loops;                  // over all parts: the outermost FOR marked AXIS_PARALLEL is what parts divide; or:
    const char *file;                   // row of kernels.def: "gemm_nt", "conv2d", …
    int         n_args;  KernelArg arg[24];
    Size        repeat;                 // file kernels: called so many times with values advancing by one matrix (batched); NULL: once
    int         parts;                  // >= 1; a function of shapes alone
    Size        flops;
    int64_t     scratch;                // bytes a worker needs
} Kernel;

typedef struct Program {                // of one graph: training, evaluation or inference
    Context *cx;
    Model   *model;
    Graph   *graph;                     // at STAGE_PLANNED
    LIST(Kernel *) steps;               // forward and backward, in order
    LIST(Kernel *) updates;             // training: buffers, clip-free optimiser sweep (formula of the OptimizerDef)
    Buffer **buffer;                    // by Value id; NULL: never in memory (inlined)
    int64_t  arena_bytes, scratch_bytes;
    int64_t  lower_bound;               // the largest sum of live bytes at any step
} Program;

// passes/: from graphs to programs. `batch` bounds the batch symbol. NULL after diagnostics.
Program *program_of_graph(Model *model, Graph *graph, int64_t batch);
const Value *value_origin(const Value *value);                     // past reshapes and the like: what names are made of
void     plan_print(Text *text, const Program *program);            // `mlc plan`: peak, lives, lower bound
void     params_place(Model *model);                                // offsets in the flat block: trainable by group, then the rest
int64_t  params_end(const Model *model, bool deployed);             // elements of the flat block; deployed: as an object has it

// codegen/: from programs to text. All deterministic.
void codegen_train(Text *c, Model *model, Program *train, Program *eval, Program *data);   // model.c of a training program (includes mlrt.h)
void codegen_object(Text *c, Text *header, Model *model, Program *infer, Program *data, const char *weights_file);
// data: the mapping of one sample, for m_prepare; NULL: none. weights_file: path for .incbin, holding the flat block of
// parameters; NULL: the caller gives a pointer to that block (io.weights)

#endif
