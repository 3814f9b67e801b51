// diag.h: diagnostics: what is said to the user about their input, with the place, and how it is printed.
//
// Every message is a row of messages.def, every limit a row of limits.def. A Diag is the context of one compilation: it
// holds the sources (so that lines can be shown), collects what is reported, and prints it all at the end, as text
// (file:line:col: error: …, the line with a caret, note:, help:) or as one JSON object a line.
// Reports of the same message at the same place with the same text count once: a part that is expanded twice (for training
// and for evaluation) does not complain twice.
//
// The formats of the rows know %s (a string from the input: printed escaped), %d (int) and %l (int64_t).
#ifndef MLC_DIAG_H
#define MLC_DIAG_H

#include <stdio.h>

#include "base.h"

typedef enum DiagSeverity { DIAG_ERROR, DIAG_WARNING } DiagSeverity;

typedef enum MessageId {
#define MESSAGE(id, severity, option, text, help) MESSAGE_##id,
#include "messages.def"
#undef MESSAGE
    MESSAGE_COUNT
} MessageId;

typedef enum LimitId {
#define LIMIT(id, value, hard, meaning) LIMIT_##id,
#include "limits.def"
#undef LIMIT
    LIMIT_COUNT
} LimitId;

// A stretch of a source, in bytes. All zeros: nowhere in particular.
typedef struct DiagPlace {
    int source;                 // as diag_add_source gave it; 0: none
    int from, to;               // [from, to)
} DiagPlace;

typedef struct DiagSource {
    const char *name;           // as the user wrote it
    const char *bytes;          // kept by the caller as long as the Diag
    int length;
    int *lines, line_count;     // where each line begins; made when first needed
} DiagSource;

typedef struct DiagNote {
    bool is_help;
    DiagPlace place;            // for notes; nowhere for help
    const char *text;
} DiagNote;

typedef struct Diagnostic {
    MessageId id;
    DiagSeverity severity;      // a warning that was made an error is an error
    DiagPlace place;
    const char *file;           // instead of a place: a file without lines, or NULL
    const char *text;
    LIST(DiagNote) notes;
} Diagnostic;

typedef struct Diag {
    Arena *arena;
    LIST(DiagSource) sources;
    LIST(Diagnostic *) all;
    int errors, warnings;
    int max_errors;             // default 20; what comes after is not kept
    bool color, json;
    bool muted;                 // the last report was dropped (a repetition, a switched-off warning): so are its notes
    bool off[MESSAGE_COUNT], fatal[MESSAGE_COUNT];      // -Wno-name, -Werror=name
    int64_t limits[LIMIT_COUNT];
} Diag;

Diag *diag_new(Arena *arena);

// Adds a source and returns its number. `bytes` are not copied and must live as long as the Diag.
int diag_add_source(Diag *diag, const char *name, const char *bytes, int length);

// Reports message `id` at `place`; the rest are the arguments of the row's text. Notes and help go to the latest report.
void diag_report(Diag *diag, DiagPlace place, MessageId id, ...);
void diag_report_file(Diag *diag, const char *file, MessageId id, ...);     // a file whose lines cannot be shown
void diag_note(Diag *diag, DiagPlace place, const char *format, ...);
void diag_help(Diag *diag, const char *format, ...);

// "did you mean NAME?" if one of the candidates is near to the word; returns whether one was.
bool diag_help_nearest(Diag *diag, const char *word, const char *const *candidates, int count);

bool diag_full(const Diag *diag);                       // --max-errors is reached: no use in going on

// Prints all that was collected, and last the count of errors and warnings (nothing if there were none).
void diag_print(Diag *diag, FILE *to);

int         diag_line(Diag *diag, DiagPlace place);     // the line (from 1) at which a place begins; 0: nowhere
int         diag_column(Diag *diag, DiagPlace place);   // the column (from 1, in characters)
const char *diag_where(Diag *diag, DiagPlace place);    // "file:line:col", in the arena

// A name for a message: control characters, bytes that are not UTF-8 and marks that turn the direction of text escaped.
const char *diag_escape(Arena *arena, const char *text, size_t length);
// The length of the well-formed UTF-8 character at `at` (at most `left` bytes), 0 if there is none; *code gets its number.
int diag_utf8(const char *at, int left, uint32_t *code);
bool diag_is_hidden(uint32_t code);                     // control, bidirectional and other invisible characters

// -Wname, -Wno-name, -Werror, -Werror=name. False if there is no such warning.
bool diag_set_warning(Diag *diag, const char *option);
const char *message_code(MessageId id);                 // "E0301"
// `mlc explain E0301`: false if there is no such code.
bool message_explain(const char *code, FILE *to);

int64_t     diag_limit(const Diag *diag, LimitId id);
const char *limit_name(LimitId id);
// --limit name=value. False if there is no such limit, or the value is none between 1 and the hard maximum.
bool        diag_set_limit(Diag *diag, const char *setting);
void        warnings_print(FILE *to);                   // the names of warnings and what they say
void        limits_print(FILE *to);                     // the table, for the manual
// Reports that `what` passes a limit, with the name of the limit.
void diag_report_limit(Diag *diag, DiagPlace place, LimitId id, const char *what);

#endif
