// passes.h: from graphs to programs. What the passes share.
//
//   pipeline.c   the table of passes, the orders it must keep, the runner that shows, times and verifies
//   expand.c     ops that are defined by other ops are written out
//   simplify.c   rules of simplify.rules, common subexpressions, dead nodes
//   fold.c       what depends on constants alone is computed now
//   fuse.c       which values get memory, and which are written into the formulas that use them
//   choose.c     which node is a call of a kernel file: a table; choose_conv.c: those of convolutions
//   lower.c      nodes to kernels; loops.c: formulas to loop trees
//   join.c       small kernels over the same rows become one
//   memory.c     lives of values, places in memory
//   program.c    program_of_graph; plan.c: what `mlc plan` prints; run.c: an interpreter of programs, for the tests
#ifndef MLC_PASSES_H
#define MLC_PASSES_H

#include "../compiler/mlc.h"

typedef struct Fusion Fusion;

typedef struct Work {                   // one graph on its way
    Context *cx;
    Model   *model;
    Graph   *graph;
    int64_t  batch;
    Fusion  *fusion;                    // after fuse
    Program *program;                   // after lower
    const char *show;                   // name of a pass whose result is shown, "all", or NULL
    bool     timed;                     // the time of each pass is shown
    Text    *log;                       // where that goes; NULL: nowhere
} Work;

// A pass returns whether it changed anything.
typedef struct PassDef { const char *name; bool (*run)(Work *work); Stage needs, leaves; bool training; const char *brief; } PassDef;
typedef struct PassOrder { const char *first, *then, *reason; } PassOrder;

bool passes_run(Work *work, Stage until);               // all passes up to that stage; false after diagnostics
void passes_list(Text *text);                           // `mlc passes`
const PassDef *pass_at(int i);                          // NULL behind the last
const char *passes_check(void);                         // NULL, or the order that the table breaks

bool pass_expand(Work *work);
bool pass_simplify(Work *work);
bool pass_fold(Work *work);
bool pass_differentiate(Work *work);                    // by grad.c
bool pass_fuse(Work *work);
bool pass_lower(Work *work);
bool pass_join(Work *work);
bool pass_memory(Work *work);

// --- Simplification (simplify.c) ------------------------------------------------------------------------------------------

typedef struct RuleDef { const char *name, *from, *to; } RuleDef;
const RuleDef *rule_at(int i);                          // NULL behind the last

void nodes_place(Graph *g, int first, int at);          // expand.c: appended nodes go to position `at`

// --- Fusion (fuse.c) ---------------------------------------------------------------------------------------------------------

typedef enum FormKind {
    FORM_MEMORY,        // input, parameter or constant: it is there
    FORM_FILE,          // a kernel file computes it
    FORM_PUSH,          // a loop tree of the op's own
    FORM_PULL,          // a formula by element
    FORM_ALIAS,         // the same memory as its node's input, with another shape
} FormKind;

typedef struct Form {
    FormKind kind;
    bool     inlined;                   // PULL: it stands in the formulas that use it, and has no memory
    bool     wanted;                    // something outside of formulas reads it
    bool     used;
    int      sites;                     // loads of it in formulas
    double   reader;                    // the largest number of elements that one of these formulas visits
    Compute  compute;                   // PULL: with what is inlined written out
    const struct Choice *choice;        // FILE
} Form;

struct Fusion { Form *form; };          // by Value id

// --- Kernel files (choose.c) ----------------------------------------------------------------------------------------------------

typedef struct Choice {
    const char *op;
    bool      (*fits)(Work *work, const Node *node);
    void      (*bind)(Work *work, const Node *node, Kernel *kernel);   // file, arguments, parts, scratch
    const char *equation;
} Choice;
const Choice *choice_of(Work *work, const Node *node);  // NULL: loops

// A step that stands before the node's own and prepares for its kernel; to be bound, with what it reads and writes (lower.c).
Kernel *step_before(Work *work, const Node *node, const char *op);

// --- Formulas (formula.c) ---------------------------------------------------------------------------------------------------------

double  compute_visits(const Compute *compute);         // elements at the largest sizes
double  size_largest(Size size);                        // as a double; the bounds are known
Expr   *compute_at(Context *cx, const Compute *compute, Expr *const *index);        // the body at these indices
Expr   *index_plus(Context *cx, Expr *a, Expr *b);
Expr   *index_times(Context *cx, Expr *a, Size b);
bool    expr_is_whole(const Expr *e, int64_t whole);
bool    op_reshapes(const OpDef *op);                   // the elements stay where they are

// --- Loop trees (loops.c) -----------------------------------------------------------------------------------------------------------

// The loops that compute `out` by the formula; `parts` of them can run at the same time. May add scratch values to the graph.
Loop *loops_of_compute(Work *work, const Compute *compute, Value *out, int *parts);
int   parts_for(double operations);

// --- Memory (memory.c) ------------------------------------------------------------------------------------------------------------------

typedef struct Life { int64_t bytes, offset; int first, last; } Life;       // `last` is included
int64_t lives_place(Arena *arena, Life *lives, int count);      // sets the offsets; returns the bytes needed
int64_t lives_bound(const Life *lives, int count);      // the largest sum of bytes alive at once

// --- Interpreter of programs (run.c) ------------------------------------------------------------------------------------------------------

// Runs steps, then updates, by their loop trees; nodes of kernel files by the ops' own rows. eval->at has the inputs and
// parameters and gets what has memory. False with eval->error.
bool program_run(const Program *program, Eval *eval);

#endif
