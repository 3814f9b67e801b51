// build.h: from trees to a Model. Inside frontend/net only.
//
// Everything is written out when compiling: a model is made by running its statements once for each Graph that is wanted
// (outputs alone; evaluation; training), with `training` true or false. A run is an Expansion; parameters are shared by
// path between runs. What a name is bound to is a Val; numbers, lists, blocks and the like exist only here.
//
//   build.c        one model: files, runs, params and -D            build_scope.c   names, and who reads them
//   build_val.c    numbers and lists: exact arithmetic              build_expr.c    expressions
//   build_call.c   calls of ops by their rows                       build_body.c    statements, blocks, repeat, if
//   build_param.c  names of parameters, selectors, initialisers     build_train.c   train      build_data.c   data
#ifndef MLC_NET_BUILD_H
#define MLC_NET_BUILD_H

#include "net.h"

typedef enum ValKind {
    VAL_NONE,           // after an error: whatever uses it stays silent
    VAL_NUMBER,         // number
    VAL_BOOL,           // number: 0 or 1
    VAL_STRING,         // text
    VAL_WORD,           // text: a bare name bound to nothing
    VAL_TYPE,           // type: f32, a word of its own
    VAL_DURATION,       // number, text: unit
    VAL_LIST,           // items
    VAL_TUPLE,          // items: several results of a call
    VAL_BLOCK,          // block
    VAL_OP,             // op
    VAL_SIZE,           // size: not known when compiling
    VAL_TENSOR,         // tensor
    VAL_FIELD,          // a field of the data source, not made yet: text
} ValKind;

typedef struct BlockDef BlockDef;
typedef struct SourceFile SourceFile;
typedef struct Val Val;
struct Val {
    ValKind kind;
    bool percent;               // written with %, or a product of that alone: a share
    bool running;               // a counter of `loop`, or made of one: known only when the loop runs
    NetNumber number;
    const char *text;
    DType type;
    Size size;
    Value *tensor;
    const OpDef *op;
    BlockDef *block;
    Val *items;
    int count;
};

struct BlockDef {
    const char *name;
    Ast *ast;                   // AST_BLOCK; for a net as a block its file's body
    SourceFile *file;
    bool is_net;                // inputs are the arguments, outputs the results
    bool called;
    const char *alias;          // import … as ALIAS: the scope of its parameters without an @
};

// A file that was read, once for each way it is imported.
struct SourceFile {
    const char *path;
    NetFile *file;
    const char *net;            // name, NULL for a library
    DiagPlace net_place;
    Map *blocks;                // BlockDef by name: its own and imported ones
    Map *params;                // Val by name, with -D or `with` applied
    Map *param_asts;            // Ast by name
    bool main;
};

typedef struct Binding {
    Val val;
    Ast *ast;                   // where it was bound: ast->read is set by who reads it
    const char *fixed;          // "input", "output", "param", "target": may not be rebound
    bool ended;                 // was bound in an `if` or `repeat` that is over: `what`, `line`
    const char *what;
    int line;
} Binding;

typedef enum ScopeKind { SCOPE_FILE, SCOPE_BLOCK, SCOPE_BRANCH, SCOPE_TRAIN, SCOPE_DATA } ScopeKind;

typedef struct Scope Scope;
struct Scope {
    ScopeKind kind;
    Scope *outer;               // for branches, train and data: where names are looked up next; NULL for files and blocks
    SourceFile *file;
    Map *names;                 // Binding by name
    // what owns parameters: the same for all branches of one file or block
    struct Layer *layer;
};

// Where parameters get their names: a file or one call of a block.
typedef struct Layer {
    struct Layer *outer;
    const char *path;           // joined, "" at the top; NULL: an unnamed call, numbered when its first parameter is made
    const char *kind;           // the block's name
    Map *counts;                // of unnamed calls by kind: int *
    LIST(const char *) shared;  // paths said with `share`
    int depth;
    bool again;                 // a net called by its name: the same weights
} Layer;

typedef struct Frame { const BlockDef *block; DiagPlace place; } Frame;     // a call that is being written out

typedef struct InitRule { Layer *layer; const char *prefix; Ast **selectors; int count; Init init; DiagPlace place; } InitRule;

typedef struct UsedName { const char *what; DiagPlace place; int64_t turn; } UsedName;     // the op that a name belongs to

typedef struct Known { const Ast *ast; Val val; } Known;

typedef struct LateWeights { Ast *ast; Layer *layer; const char *text, *path; Ast **items; Ast **others; } LateWeights;     // `weights from`, until all parameters are known

typedef struct NetCall {        // a net called like a block
    const Val *args;
    int n_args, next;           // which argument the next `input` takes
    LIST(Val) results;          // of its outputs
    const Ast *ast;
} NetCall;

typedef struct Collected { const char *name; const Ast *ast; LIST(Value *) values; } Collected;

typedef struct LoopRun {        // a `loop` that is being written out
    struct LoopRun *outer;
    int64_t first_turn, turn;   // turns are numbered through the whole model
    LIST(Collected) collected;
} LoopRun;

typedef struct Net {            // one model being read
    Context *cx;
    Arena *arena;
    const NetOptions *options;
    Model *model;
    Map *files;                 // SourceFile by path
    Map *parsed;                // NetFile by path: read once, however often it is imported
    int imports;
    bool import_failed;
    SourceFile *main;
    Map *params;                // Param by path
    bool *used_settings;        // which -D were used
    LIST(BlockDef *) called;    // whose bodies were run, to report unread names
    int64_t statements;         // written out so far
    int64_t list_elements;      // of all lists so far
    int depth;                  // of evaluations inside each other
    // the present expansion
    Graph *graph;
    bool training, in_train, in_data, first;
    int update;                 // training: whose loss this run is for
    Map *used;                  // UsedName by path, of calls that own parameters
    LIST(InitRule) inits;
    LIST(Frame) frames;
    Scope *top, *infer_top;     // names of the net: of the present run, of that for inference
    LIST(Known) known;          // arguments that were evaluated to see whether they are numbers
    const char *deciding;       // what a comparison of sizes would decide: "an if"; NULL
    NetCall *inner;             // inside a net that is called, NULL in the net itself
    LoopRun *loop;              // NULL: not in a loop
    int64_t turns;              // of all loops so far
    LIST(LateWeights) weights;
    LIST(const Ast *) numbers;  // schedules as numbers, in the order of Recipe.numbers
    struct Train *train;
    struct DataPart *data;
    Map *train_filled;          // inputs and targets that data fills: the section
} Net;

// --- build_val.c ---------------------------------------------------------------------------------------------------------

Val *list_new(Net *net, const Ast *ast, int64_t count);         // NULL after a limit
Val val_int(int64_t n);
Val val_real(double x);
Val val_bool(bool b);
Val val_tensor(Value *v);
Val val_size(Size size);                        // a number where it is known
bool val_is_whole(const Val *v, int64_t *n);
bool val_is_number(const Val *v);               // number or boolean
const char *val_text(Net *net, const Val *v);   // for messages: 2/3, "a", f32[N, 3]
const char *val_kind(const Val *v);             // "a number"
const char *count_text(Net *net, int n);        // "1 value", "2 values"
Val val_binary(Net *net, const Ast *ast, const char *sign, const Val *a, const Val *b);     // not tensors
Val val_negate(Net *net, const Ast *ast, const Val *a);
// Functions of numbers and lists, by the name of the op they are for tensors. False if there is none of that name.
bool val_function(Net *net, const Ast *call, const char *name, const Val *args, int count, Val *result);
bool val_function_known(const char *name);
Val val_parse(Net *net, const char *text);      // -D: a number, true, "text", a word, a list; VAL_NONE if it is nothing

// --- build_scope.c -------------------------------------------------------------------------------------------------------

Scope *scope_new(Net *net, ScopeKind kind, Scope *outer, SourceFile *file, Layer *layer);
ScopeKind scope_section(const Scope *scope);     // what the branches it lies in belong to
Binding *scope_find(const Scope *scope, const char *name);      // also ended ones
void scope_bind(Net *net, Scope *scope, Ast *name, const char *text, Val val, const char *fixed);
BlockDef *scope_block(const Scope *scope, const char *name);
void report_unknown(Net *net, Scope *scope, const Ast *ast, const char *name, const char *also);
void report_unread(Net *net);
void mark_read(Scope *scope, const Ast *ast);   // a branch that is not taken: what it names counts as read
void note_frames(Net *net);                     // adds "in block f, called at …" to the latest report

// --- build_expr.c --------------------------------------------------------------------------------------------------------

Val eval(Net *net, Scope *scope, Ast *ast);
Val eval_word(Net *net, Scope *scope, Ast *ast, const char *words);     // a bare name in `words` is a word
const char *eval_text(Net *net, Scope *scope, Ast *ast);        // of a string or path, with braces replaced; NULL: error
bool eval_type(Net *net, Scope *scope, Ast *ast, Type *type);   // f32[N, 3]
bool eval_size(Net *net, Scope *scope, Ast *ast, bool declares, Size *size);
bool eval_shape(Net *net, Scope *scope, Ast *list, bool declares, Shape *shape);
bool eval_flag(Net *net, Scope *scope, Ast *ast, const char *what, bool *flag);     // of `if`, `require`
void check_declared(Net *net, Scope *scope, Ast *type, const Val *val);

// --- build_call.c --------------------------------------------------------------------------------------------------------

Val call_op(Net *net, Scope *scope, Ast *call, const OpDef *op, const char *name);  // name: the @path, NULL
// An op applied to values, without parameters: operators, indexing.
Val call_simple(Net *net, Scope *scope, const Ast *ast, const char *op, Val *args, int count, const char *attrs);
Val call_sized(Net *net, Scope *scope, const Ast *ast, const char *op, const Val *x, const char *attr, const Size *sizes, int count);
Value *as_tensor(Net *net, Scope *scope, const Ast *ast, const Val *val, DType like);
Val call_index(Net *net, Scope *scope, Ast *ast, const Val *base);

// --- build_body.c --------------------------------------------------------------------------------------------------------

void run_body(Net *net, Scope *scope, Ast *body);
void run_statement(Net *net, Scope *scope, Ast *s);
void run_file(Net *net, Scope *scope, SourceFile *file);
Val  call_block(Net *net, Scope *scope, Ast *call, BlockDef *block, const char *name);
void bind_names(Net *net, Scope *scope, Ast *s, Ast **names, int count, const Val *val, const char *fixed);
const char *path_beside(Net *net, const SourceFile *from, const Ast *ast, const char *name);  // build.c; NULL after a report
bool count_statement(Net *net, const Ast *s);   // false: too many
void refuse(Net *net, const Ast *ast, const char *what, const char *instead);      // the model is not read
void later(Net *net, const Ast *ast, const char *what, const char *instead);       // it is, but cannot be compiled
void later_training(Net *net, const Ast *ast, const char *what, const char *instead);      // not into a training program
void end_branch(Net *net, Scope *scope, const Scope *branch, const Ast *other, const char *what, int line);
Ast *settled(Net *net, Scope *scope, Ast *selector);    // a selector whose braces are replaced; NULL after a report

// --- build_loop.c, build_weights.c, build_generate.c ---------------------------------------------------------------------

void run_loop(Net *net, Scope *scope, Ast *s);
void run_collect(Net *net, Scope *scope, Ast *s);
void run_weights(Net *net, Scope *scope, Ast *s);
void weights_apply(Net *net);                           // when all parameters are known
void run_generate(Net *net, Scope *scope, Ast *s);      // likewise

// --- build_param.c -------------------------------------------------------------------------------------------------------

Layer *layer_new(Net *net, Layer *outer, const char *path, const char *kind);
const char *layer_path(Net *net, Layer *layer);                 // numbers it if it has no name yet
const char *layer_shown(const Layer *layer);                    // without numbering
const char *path_join(Net *net, const char *outer, const char *inner);
// Takes the name for a call of `what` that owns parameters. *again: the name is shared and was there before.
bool  name_take(Net *net, Layer *layer, const char *path, const char *what, DiagPlace place, bool *again);
const char *name_number(Net *net, Layer *layer, const char *kind);      // dense1, dense2, …
Value *param_value(Net *net, const char *path, Type type, ParamRole role, const OpDef *op, const char *init, DiagPlace place);
Value *param_known(Net *net, Scope *scope, const Ast *path);    // weight = @wte.weight; NULL after a report
// With `buffers`, paths match statistics too: files have them.
int   select_named(Net *net, Scope *scope, Ast *selector, const char *prefix, bool buffers, Param **out);
int   select_params(Net *net, Scope *scope, Ast *selector, const char *prefix, Param **out);   // into out, which has room for all; reports if there are none
bool  init_parse(Net *net, const char *text, Init *init);
bool  init_eval(Net *net, Scope *scope, Ast *ast, Init *init);
void  inits_apply(Net *net);

// --- build_train.c, build_data.c ------------------------------------------------------------------------------------------

void run_train(Net *net, Scope *file_scope, Ast *train);
bool schedule_number(Net *net, Scope *scope, Ast *ast, Val *v);     // warmup(5 epochs) where a value is wanted; false: it is none
void run_data(Net *net, Scope *train_scope, Ast *data);
bool field_make(Net *net, Scope *scope, Ast *ast, const char *name, Val *result);   // `column(3)`, a field of npy
bool data_call(Net *net, Scope *scope, Ast *call, const char *name, Val *result);   // column, columns, classes, category, …
void data_varies(Net *net);                                     // the mapping asks whether it is training
void run_prepare(Net *net, Scope *file_scope, Ast *data);      // `data { }` outside of train

#endif
