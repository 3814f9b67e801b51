// op.h: what the rows of the ops are written with. Inside compiler/ops, and for passes/grad.c.
//
// A row is an OpDef (mlc.h), in the file of its family; ops.def lists the names. Whoever adds an op writes a row, adds its
// name to ops.def, and is done: parser, shapes, gradient, fusion, code, manual and tests read the row.
//
// What an op is, is said in the first of these ways that can say it:
//   formula   element by element, over names of inputs and attributes
//   compute   pull form: out[i …] = reduce over r … of a formula with loads; fuses
//   expand    by other ops; its gradient comes by itself. With `grad` besides, the rule is taken, and it is written out later
//   lower     push form, a loop tree: what scatters or remembers where
//
// Shape rules allow numpy's broadcasting for elementwise ops; that a .net is stricter where ranks differ (E0302) is a rule of
// that language and stands in its reader.
#ifndef MLC_OP_H
#define MLC_OP_H

#include <string.h>

#include "../mlc.h"

#define CASES(...) (const char *const[]){__VA_ARGS__, NULL}

#define OP(name) extern const OpDef op_##name;
#include "ops.def"
#undef OP

// --- Shape rules (shapes.c) -------------------------------------------------------------------------------------------------

// Reports at the call; false, so that a rule can return it.
#define op_error(call, ...) (diag_report((call)->cx->diag, (call)->place, __VA_ARGS__), op_failed())
static inline bool op_failed(void) { return false; }

bool same_shape(OpCall *call);              // as the first input
bool same_number_shape(OpCall *call);       // the same, and not booleans
bool same_bool_shape(OpCall *call);         // its shape, boolean
bool broadcast_shape(OpCall *call);         // all inputs have one element type; numpy's broadcasting
bool broadcast_number_shape(OpCall *call);  // the same, and not booleans
bool broadcast_bool_shape(OpCall *call);    // the same as broadcast_shape; the result is boolean
bool select_shape(OpCall *call);            // condition, x, y
bool reduce_shape(OpCall *call);            // attributes axis, keep; the type of x
bool reduce_index_shape(OpCall *call);      // the same, i32

bool op_one(OpCall *call, Type type);       // the op has one output, of this type; true
bool op_broadcast(OpCall *call, Shape *out);                    // of all inputs; reports E0301
bool op_like(OpCall *call, int a, int b);                       // inputs a and b have one type, or E0303
bool op_rank(OpCall *call, int input, int least, int most);     // reports E0311
bool op_axis(OpCall *call, const char *attr, int rank, int *axis);      // a single axis, counted from 0; reports E0312
bool op_axes(OpCall *call, const char *attr, int rank, bool *in);       // in[RANK_MAX]: which; none given: all
bool op_owned(OpCall *call, const char *input, Type type);      // sets the type of an owned input, or checks the one given
bool op_matches(OpCall *call, const char *input, Type type);    // an input that was given has this type, or E0311
const char *op_input_name(const OpCall *call, int input);       // of the value, or of the row's input

Type type_like(OpCall *call, DType initial);                    // attributes shape and type, or input `like`, which is let go

// The same for a node that was checked.
int  node_axis(const Node *node, const char *attr, int rank);
void node_axes(const Node *node, const char *attr, int rank, bool *in);
bool node_flag(const Node *node, const char *attr);
Shape shape_without(Context *cx, const Shape *x, const bool *axes, bool keep); // these axes dropped, or of size 1
int64_t attr_axis(const Attr *attr, int i, int rank);           // entry i, counted from 0; not checked

// --- Windows of conv and pool (window.c) ----------------------------------------------------------------------------------------

// The one place that knows how a window walks over a picture: out[o] sees in[o * stride - before + k * dilation].
typedef struct Window {
    int     axes;
    int64_t kernel[3], stride[3], dilation[3], before[3], after[3];
    Size    in[3], out[3];
} Window;

// Attributes stride, pad, and where the op has them kernel, dilation, ceil; `x` has the spatial axes last; `kernel` overrides
// the attribute. With `call`, mistakes are reported there and give false; without, there are none.
bool window_of(Context *cx, const OpDef *op, const Attr *attr, const Shape *x, const int64_t *kernel, OpCall *call, Window *w);
bool window_read(const OpDef *op, const Attr *attr, const Shape *x, const int64_t *kernel, OpCall *call, Window *w);     // all but `out`
// Where tap `tap` of the window at `out` lies on axis `axis`, and whether that is inside.
Expr *window_at(Context *cx, const Window *w, int axis, Expr *out, Expr *tap);
Expr *window_inside(Context *cx, const Window *w, int axis, Expr *at);      // NULL: always
// The windows that see pixel `in` by tap `tap`: which one, and whether there is such.
Expr *window_back(Context *cx, const Window *w, int axis, Expr *in, Expr *tap, Expr **exists);

// --- Formulas (formulas.c) --------------------------------------------------------------------------------------------------------

// Index arithmetic without additions of 0 and multiplications by 1.
Expr *e_axis(Context *cx, int axis);
Expr *e_whole(Context *cx, int64_t n);
Expr *e_size(Context *cx, Size size);
Expr *e_add(Context *cx, Expr *a, Expr *b);
Expr *e_sub(Context *cx, Expr *a, Expr *b);
Expr *e_mul(Context *cx, Expr *a, Expr *b);
Expr *e_div(Context *cx, Expr *a, int64_t b);               // floor division
Expr *e_mod(Context *cx, Expr *a, int64_t b);
Expr *e_prim(Context *cx, PrimId prim, Expr *a, Expr *b);
Expr *e_select(Context *cx, Expr *condition, Expr *a, Expr *b);
Expr *e_and(Context *cx, Expr *a, Expr *b);                 // either may be NULL
Expr *e_where(Context *cx, Expr *condition, Expr *a, double otherwise);     // condition NULL: a
Expr *e_zero(Context *cx, DType type);                      // of any element type, as are the next
Expr *e_value(Context *cx, DType type, double x);
Expr *e_least(Context *cx, DType type);                     // below all others: -inf, or the smallest integer
Expr *e_greatest(Context *cx, DType type);
Expr *e_load(Context *cx, Value *value, Expr *const *index);            // all axes of value
Expr *e_index(Context *cx, Value *value, Expr *const *index);           // an element as an index, i64

Expr *e_place(Context *cx, Value *value, Expr *const *index, Size extent);  // the same; counted from the end where it is negative

void compute_over(Compute *out, const Shape *shape);        // the axes of the output; no reduction, no body yet
int  compute_reduce(Compute *out, Reduce reduce, Size extent);          // adds an axis of reduction; its loop variable

Expr *op_formula(Context *cx, const Node *node);            // of a formula op or a map, over EXPR_ARG; NULL: it has none

// Loop trees, for the rows with a push form.
typedef struct Nest { Context *cx; Loop *root, *at; int locals; } Nest; // `at`: where the next loop goes
Nest  nest_new(Context *cx);
Expr *nest_for(Nest *nest, int var, Size extent, AxisMark mark);        // goes into a new loop; its variable
Expr *nest_local(Nest *nest, DType type, Expr *start);                  // an accumulator
Expr *nest_let(Nest *nest, Expr *value);
void  nest_if(Nest *nest, Expr *condition);                             // goes into it
void  nest_update(Nest *nest, Expr *local, Reduce reduce, Expr *value);
void  nest_store(Nest *nest, Value *target, Expr *const *index, Expr *value);
void  nest_scatter(Nest *nest, Value *target, Expr *const *index, Expr *value);     // adds to memory
void  nest_join(Nest *nest, Value *target, Expr *const *index, Reduce reduce, Expr *value);
void  nest_fill(Nest *nest, Value *target, Expr *value);                // a loop over all of it

// --- Nodes from C (builds.c) ---------------------------------------------------------------------------------------------------------

// A call with its defaults; attributes and inputs are set in it, then op_build adds the node. A mistake is a bug.
OpCall  call_new(Builder *b, const char *op, int n_in, Value *const *in);
void    call_int(OpCall *call, const char *attr, int64_t value);
void    call_float(OpCall *call, const char *attr, double value);
void    call_bool(OpCall *call, const char *attr, bool value);
void    call_ints(OpCall *call, const char *attr, int count, const int64_t *values);
void    call_sizes(OpCall *call, const char *attr, int count, const Size *sizes);
void    call_type(OpCall *call, const char *attr, DType type);
void    call_word(OpCall *call, const char *attr, const char *word);
void    call_same(OpCall *call, const Node *node);          // attributes of the same names as the node's
Value  *op_build(Builder *b, OpCall *call);                 // its first output
void    op_build_all(Builder *b, OpCall *call, Value **out);

void    attr_read(Context *cx, const AttrDef *def, const char *text, Attr *attr);   // a default, or an attribute from C, as text

Value *build_cast(Builder *b, Value *x, DType type);
Value *build_slice(Builder *b, Value *x, int axis, Size from, Size count, int64_t step);
Value *build_repeat_to(Builder *b, Value *x, const Shape *shape);       // broadcast_to
Value *build_reduce(Builder *b, const char *op, Value *x, const bool *axes, bool keep);
Value *build_per(Builder *b, Value *x, Size times, Size by);            // x * times / by
Value *build_keep_axes(Builder *b, Value *x, const Shape *whole, const bool *axes);     // dropped axes come back with size 1
Value *build_formula(Builder *b, Expr *formula, int n_in, Value *const *in);            // a map of this formula
#define build_map1(b, formula, x)        build_map((b), (formula), 1, (Value *const[]){(x)})
#define build_map2(b, formula, x, y)     build_map((b), (formula), 2, (Value *const[]){(x), (y)})
#define build_map3(b, formula, x, y, z)  build_map((b), (formula), 3, (Value *const[]){(x), (y), (z)})

// --- The manual (manual.c) ---------------------------------------------------------------------------------------------------------------

void ops_list(Text *text);                              // name and brief of all ops that people write
void op_manual(Text *text, const OpDef *op);            // a page: signature, attributes, parameters, gradient, ONNX, example

// Counts of operations, for reports and parts.
Size flops_of_count(Context *cx, const Shape *shape, int64_t each);

#endif
