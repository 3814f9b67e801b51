// codegen.h: from a Program to C text. What the printers share.
//
//   text.c     words that are safe in C: comments, strings, numbers, identifiers
//   loops.c    loop trees and formulas as loops and expressions
//   program.c  one function for each step: comment, pointers into memory, loops or the call of a kernel file
//   share.c    functions that several steps have in common
//   c.c        the words of C (a Dialect): what another target replaces
//   files.c    the texts of kernels/c and skeleton/, carried by the compiler, pasted where used
//   bounds.c   integers from data that index memory: what inputs may hold, which indices are compared where they are used
//   data.c     the mapping from fields of a source to inputs and targets
//   train.c    a training program, with optimizer.c (the update) and tables.c (what the runtime is told)
//   object.c   an inference object and its header
//
// Names: what the user wrote appears in comments and strings only, escaped. Identifiers end in the number of the value or
// kernel, so that none can be a keyword, a macro or another's. The one exception is the public interface of an object,
// which has the names of the net's inputs and outputs; those are checked against C's and C++'s words.
#ifndef MLC_CODEGEN_H
#define MLC_CODEGEN_H

#include "../compiler/mlc.h"

enum { LINE_WIDTH = 120 };

#ifndef MLC_VERSION
#define MLC_VERSION "0.1.0"
#endif

// --- Texts that the compiler carries (embed.c makes the array) -------------------------------------------------------

typedef struct EmbeddedFile { const char *name, *text; } EmbeddedFile;
extern const EmbeddedFile embedded_files[];             // ends with a NULL name

const char *embedded_text(const char *name);            // a bug if there is none of that name
// Adds the kernel files whose functions `code` calls, each once, what they include before them, without their include guards.
void  paste_kernels(Context *cx, Text *out, const char *code);
void  paste_file(Text *out, const char *name);

// The parameters of kernel function `name` as its file declares them, "int64_t m, const float *a, …"; NULL: no such kernel.
const char *kernel_parameters(Context *cx, const char *name);
// The fields of a struct of a kernel file, in order: their number.
int   kernel_fields(Context *cx, const char *type, const char *fields[], int room);

// --- text.c ----------------------------------------------------------------------------------------------------------

void  put_name(Text *out, const char *name);            // for comments: [A-Za-z0-9_.:/-], the rest \xNN
void  put_remark(Text *out, const char *text);          // for // comments: printable ASCII but for \ and ??, the rest \xNN
void  put_string(Text *out, const char *text);          // a C string literal; NULL is printed as NULL
void  put_long_string(Text *out, const char *text, int indent);     // the same, a line of text a line
void  put_number(Text *out, double number, DType type); // reads back as the same number of the type
void  put_double(Text *out, double number);
void  put_grouped(Text *out, int64_t n);                // 59,210
void  put_amount(Text *out, int64_t n);                 // 1.3 M
const char *identifier(Context *cx, const char *name);  // letters, digits and _ of a name, at most 40; never empty
const char *public_word(Context *cx, const char *name); // the same, with _ appended to C's and C++'s words

// --- Dialects --------------------------------------------------------------------------------------------------------

typedef struct Dialect {                // what differs between targets that print the same loop trees
    const char *function;               // before the name of a step function
    const char *apart;                  // before that of a function that several steps call
    const char *parameters;             // of a step function
    const char *restrict_word;
    const char *simd;                   // line before a loop of independent steps; NULL: none
    const char *share;                  // format of the begin of a part: extent, part, parts
    bool        run_time_dims;          // pointers to arrays may have dimensions that are known when running only
} Dialect;

extern const Dialect dialect_c;

// --- Printing steps --------------------------------------------------------------------------------------------------

typedef struct LocalName { int var; const char *name; } LocalName;

typedef struct Printer {
    Context       *cx;
    const Dialect *dialect;
    const Program *program;
    const char    *prefix;              // of its functions and constants: train, eval, data, infer
    const Kernel  *kernel;              // being printed; NULL outside
    Text          *out;
    int            indent;              // of the line being printed, in steps of four blanks
    bool           of_index;            // inside an index: integers are small, C's operators do
    LIST(LocalName) loops, locals;      // names of loop variables and of locals, by id
    LIST(int)      index_locals;        // locals that are made of loop variables and sizes alone
    LIST(Value *)  touched;             // memory that the kernel uses, in the order of first use
    LIST(Value *)  flat;                // those that are indexed by one number over all elements
    LIST(Value *)  shaped;              // those with an index for each axis
    LIST(Value *)  written;
    LIST(const Symbol *) sizes;         // named sizes used
    bool           part_used;
} Printer;

Printer     printer_new(const Program *program, const Dialect *dialect, const char *prefix, Text *out);
void        put_line(Printer *p, const char *format, ...) PRINTF_LIKE(2, 3);    // indented, with a line end
void        put_indent(Printer *p);
void        print_size(Printer *p, Text *out, Size size);
const char *size_name(Context *cx, const Symbol *symbol);
int         size_slot(const Program *program, const Symbol *symbol);    // its place in run->size: 0 is the batch
const Symbol *batch_symbol(Context *cx);                // NULL: the model has none
void        print_expr(Printer *p, const Expr *e);
void        print_loops(Printer *p, const Loop *loop);
void        name_loops(Printer *p, const Loop *loop);

const Buffer *buffer_home(const Program *program, const Value *value);  // follows aliases; NULL: not in memory
const char *value_name(Context *cx, const Value *value);                // an identifier: image_3
const char *kernel_name(Context *cx, const char *prefix, const Kernel *kernel);     // train_12_fc1_relu
void        put_place(Printer *p, const Value *value, Text *out);       // "run->arena + 4096"
const char *place_text(Printer *p, const Value *value); // the same, as a pointer to void

typedef struct KernelText {             // a step function in pieces
    Printer     own;                    // knows the values and sizes that it uses
    const char *sizes, *pointers, *body;
    bool        run_used;
} KernelText;

typedef struct Functions Functions;     // share.c: which functions are common to several steps
Functions *functions_new(Context *cx);
void       functions_count(Functions *functions, const Program *program, const Dialect *dialect, const char *prefix);  // before printing

KernelText  kernel_text(const Printer *p, const Kernel *kernel, bool at);   // at: the places are arguments, NAME_at
void        print_function_body(Text *out, const KernelText *text);
void        print_comment(Printer *p, const Kernel *kernel);
// A step's function; functions NULL: nothing is shared.
void        print_kernel(Printer *p, const Kernel *kernel, const Functions *functions);
void        print_steps(Text *out, const Program *program, const Dialect *dialect, const char *prefix, Functions *functions);   // constants, functions
void        print_steps_of(Text *out, const Program *program, const Dialect *dialect, const char *prefix, Functions *functions, const bool *which);
void        print_call_steps(Printer *p, const bool *which, bool wanted);   // steps s with which[s] == wanted; which NULL: all
void        print_sizes(const Printer *p, Text *out);   // const int64_t N = run->size[0]; for the sizes that p used
const char *source_name(const char *net, const char *source);
void        heading(Text *out, const char *title);      // ==== Title ====
const char *grouped_text(Printer *p, const Value *value);
void        print_output_copy(Printer *p, const Value *value, int index);     // a line, where the output needs it
const Value *constant_of(const Program *program, const Value *value);      // NULL: not a constant of the program
void        print_memory(Text *out, const Program *program, const char *title);     // lines of a comment

// --- Indices from data (bounds.c) -------------------------------------------------------------------------------------

void index_bounds(const Program *program);              // fills Value.below of the inputs that steps index by
bool index_is_checked(const Program *program, const Value *value, int count, Expr *const *index, int i);

// --- The data mapping (data.c) ---------------------------------------------------------------------------------------

typedef struct DataNeeds { bool *step, *field; } DataNeeds;     // what inputs need, not targets alone

DataNeeds data_needs(const Program *data, const Graph *graph);
int  data_port(const Graph *graph, const char *name);   // which input or target; -1: none
bool data_fills_input(const Graph *graph, const char *name);
void print_mapping(Printer *p, const Graph *graph, const DataNeeds *needs, bool for_inputs);

// --- What generated callers of an object need (object.c) -----------------------------------------------------------

typedef struct ObjectNames {
    const char *prefix;                 // of its functions
    LIST(const char *)   port;          // fields of its io: inputs, then outputs
    LIST(const Symbol *) size;          // named sizes but for the batch; their fields are called size_name
    const Symbol *batch;                // NULL: none
    int64_t max_batch, arena_bytes;
} ObjectNames;

ObjectNames object_names(Model *model, Program *infer);

#endif
