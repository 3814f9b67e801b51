// driver.h: what the files of the driver share.
//
//   options.def    verbs, options, kinds of results, targets: a row each
//   main.c         picks the verb; exit codes
//   options.c      the command line to a Command, by the rows
//   help.c         --help, `mlc options`, completions and the manual page, by the rows
//   compile.c      `mlc compile`: a page of calls for each kind of result
//   run.c          `mlc run`; samples.c: inputs from a file as the net's `data` reads it; ports.c prints the table by which a program or mlc itself calls an object with files
//   verify.c       `mlc verify`: ONNX models with their answers
//   inspect.c      `mlc inspect` and `mlc plan`
//   manuals.c      check, fmt, ops, passes, explain
//   model.c        reading the model, its weights and what they depend on
//   toolchain.c    where the runtime is, and the call of the C compiler
//   work.c         the private folder of intermediate files, and results that are whole or not there
//
// Whatever is said to the user goes through the Diag of the compilation and is printed once, at the end.
#ifndef MLC_DRIVER_H
#define MLC_DRIVER_H

#include "../mlc.h"
#include "../../frontend/net/net.h"
#include "../../frontend/onnx/onnx.h"
#include "../../passes/passes.h"
#include "../../runtime/file.h"
#include "../../runtime/slots.h"

typedef enum ExitCode { EXIT_DONE = 0, EXIT_INPUT = 1, EXIT_USAGE = 2, EXIT_FAULT = 3 } ExitCode;

// --- Rows ------------------------------------------------------------------------------------------------------------

typedef struct Command Command;

typedef struct VerbDef {
    const char *name, *operands;
    int least, most;
    const char *brief, *text, *example;
    ExitCode (*run)(Command *command);
} VerbDef;

typedef enum OptionKind {
    OPTION_FLAG, OPTION_TEXT, OPTION_FILE, OPTION_FOLDER, OPTION_COUNT, OPTION_WORD, OPTION_WORDS, OPTION_REPEAT, OPTION_PREFIX
} OptionKind;

typedef struct OptionDef {
    const char *letter, *word;            // "-o", "--output"; "" for none
    OptionKind kind;
    const char *argument, *verbs, *initial, *brief;
    size_t at;                          // of its Option in a Command
} OptionDef;

typedef enum EmitNeeds { NEEDS_ANY, NEEDS_INFER, NEEDS_TRAIN } EmitNeeds;
typedef struct EmitDef { const char *name; EmitNeeds needs; const char *file; bool is_text; const char *brief; } EmitDef;
typedef struct TargetDef { const char *name, *machine, *flags, *compiler, *brief; } TargetDef;

extern const VerbDef   verb_rows[];
extern const OptionDef option_rows[];
extern const EmitDef   emit_rows[];
extern const TargetDef target_rows[];
extern const int verb_count, option_count, emit_count, target_count;

typedef enum EmitId {
#define EMIT(name, needs, file, text, brief) EMIT_##name,
#include "options.def"
    EMIT_COUNT
} EmitId;

// --- Command ---------------------------------------------------------------------------------------------------------

typedef struct Option {
    bool        given;
    const char *text;                   // the argument; without one, the default of the row
    int64_t     number;
    LIST(const char *) all;             // REPEAT, PREFIX: every argument
} Option;

struct Command {
    Context        cx;
    const VerbDef *verb;
    LIST(const char *) operands;
    LIST(NetSetting)   settings;        // of -D
    LIST(const char *) read;            // files that were read, for the depfile
    Text           times;               // --time, --show
    double         started;
#define OPTION(field, letter, word, kind, argument, verbs, initial, brief) Option field;
#include "options.def"
};

// Reads the words behind argv[0]. Sets command->verb. False after a report: EXIT_USAGE.
bool command_parse(Command *command, int argc, char **argv);
bool option_goes_with(const OptionDef *option, const VerbDef *verb);
const VerbDef   *verb_find(const char *name);
const TargetDef *target_find(const char *name);

// Reports at no place in particular; returns EXIT_INPUT, EXIT_USAGE, EXIT_FAULT, so that a caller can return it.
static inline ExitCode exit_with(ExitCode code) { return code; }
#define fail_with(code, command, ...) (diag_report((command)->cx.diag, (DiagPlace){0}, __VA_ARGS__), exit_with(code))
#define fail_input(...) fail_with(EXIT_INPUT, __VA_ARGS__)
#define fail_usage(...) fail_with(EXIT_USAGE, __VA_ARGS__)
#define fail_fault(...) fail_with(EXIT_FAULT, __VA_ARGS__)
ExitCode fail_runtime(Command *command, const MlrtError *error);        // what the runtime said, with the code of its status
const char *quoted(Command *command, const char *word);                 // for a command line that can be pasted into a shell

// --- Help (help.c) -----------------------------------------------------------------------------------------------------

void help_print(Text *text, const VerbDef *verb);       // NULL: of mlc as a whole
ExitCode verb_options(Command *command);
ExitCode verb_completion(Command *command);
ExitCode verb_man(Command *command);

// --- Verbs -------------------------------------------------------------------------------------------------------------

ExitCode verb_compile(Command *command);
ExitCode verb_run(Command *command);
ExitCode verb_verify(Command *command);
ExitCode verb_check(Command *command);
ExitCode verb_fmt(Command *command);
ExitCode verb_inspect(Command *command);
ExitCode verb_plan(Command *command);
ExitCode verb_ops(Command *command);
ExitCode verb_passes(Command *command);
ExitCode verb_explain(Command *command);

// --- Model (model.c) ---------------------------------------------------------------------------------------------------

bool   file_load(void *command, const char *path, const char **bytes, int *length, const char **why);   // a NetLoad
Model *model_read(Command *command);                    // of the first operand; NULL after diagnostics
Program *program_make(Command *command, Model *model, Graph *graph, int64_t batch);
Graph *model_part(Command *command, Model *model);      // by --part, or what there is; NULL after a report
int64_t part_batch(Command *command, const Model *model, const Graph *graph);
void   program_print(Text *text, const Program *program);               // plan, steps, loop trees (inspect.c)
const char *weights_path(Command *command, const Model *model);        // --weights, or the net's own; NULL: none
float *weights_read(Command *command, Model *model, const char *path); // the flat block of an object; NULL after reports
float *weights_given(Command *command, const Model *model);           // what an ONNX model has itself; NULL: nothing
int64_t weights_bytes(const Model *model);
void   time_note(Command *command, const char *what);   // --time: what has just ended

// --- Intermediate files and results (work.c) -----------------------------------------------------------------------------

// A folder of our own (--keep: the user's). However this process ends, also by a signal that cannot be caught, it is removed.
const char *work_folder(Command *command);              // absolute; NULL after a report
const char *work_file(Command *command, const char *name);              // its path in there; NULL after a report
bool work_write(Command *command, const char *name, const void *bytes, size_t count);
void work_child(int pid);                               // a process group that must not outlive this process; 0: it has ended

// A result: written under another name in the same folder, and renamed when it is whole.
typedef struct Result { const char *path, *temporary; } Result;
bool result_begin(Command *command, Result *result, const char *path);  // refuses what would replace an input, or is no file
bool result_end(Command *command, Result *result);      // the temporary has been written by somebody
bool result_write(Command *command, const char *path, const void *bytes, size_t count);     // "-": standard output

// --- Tool chain (toolchain.c) --------------------------------------------------------------------------------------------

typedef struct Home { const char *library, *headers; } Home;            // libmlrt.a, and the folder of mlrt.h
bool home_find(Command *command, Home *home);           // false after a report that names where it looked

typedef struct Build {                  // one call of the C compiler, in the folder of intermediate files
    LIST(const char *) argument;
    const TargetDef *target;
} Build;
bool build_begin(Command *command, Build *build, const char *target);   // compiler and flags; false after a report
bool build_is_cross(const TargetDef *target);
void build_add(Command *command, Build *build, const char *argument);
ExitCode build_run(Command *command, Build *build);
ExitCode tool_run(Command *command, const char *const *argument);       // any program, with what it says kept

// --- Samples (samples.c) -----------------------------------------------------------------------------------------------

struct Ports;
bool samples_read(Command *command, Model *model, struct Ports *ports, MlrtSlots *slots, const char *path);   // false after a report

// --- Objects and files (ports.c) -------------------------------------------------------------------------------------------

typedef struct Ports {                  // the table for runtime/slots.h, and what it was made from
    Context   *cx;
    MlrtObject object;                  // without `run`
    LIST(MlrtSlot)       port;          // inputs, then outputs
    LIST(Type)           type;          // of each
    LIST(const Symbol *) symbols;       // named sizes; the first is the batch, or NULL
    LIST(const char *)   names;
    LIST(int64_t)        bounds;
    void      *running;                 // for whoever interprets
} Ports;

MlrtType ports_type(DType type);                        // as the runtime calls it
bool     ports_make(Command *command, Model *model, Ports *ports);      // false after a report
int64_t *ports_symbols(const Ports *ports, const int64_t *size);        // by Symbol id
void     ports_shape(void *ports, const int64_t *size, int port, int64_t *dim);
// As C: a table `mlc_object` for the object of NAME.h, and main if it is to be a program.
void     ports_print(Text *out, const Ports *ports, Model *model, Program *infer, bool with_main, bool takes_weights);

// --- A model that is run (run.c) -------------------------------------------------------------------------------------------

typedef struct Running {
    Command *command;
    Model   *model;
    Ports    ports;
    float   *weights;                   // NULL: the net has no parameters
    int      number;                    // of the library, where several are loaded
} Running;

ExitCode running_weights(Running *r);                   // the parameters get their places and values
ExitCode running_load(Running *r, int64_t batch, MlrtObject *object);  // compiled and loaded
// The `run` of a table whose user is Ports, with `running` set: by the interpreter.
const char *running_interpret(void *user, const void *const *in, void *const *out, const int64_t *size, const void *weights, void *arena, size_t arena_bytes);

#endif
