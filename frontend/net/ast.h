// ast.h: a .net file as a tree, as it was written: nothing is looked up, nothing computed.
//
// One struct serves all kinds. A kind says by its remark which fields it uses; all else is zero. Parentheses are kept.
// Every node knows its place and how deep the tree below it is, which is bounded (net_expression_depth), so that walking
// a tree may recurse. The formatter works on the tokens instead, because comments and line breaks belong to them.
#ifndef MLC_NET_AST_H
#define MLC_NET_AST_H

#include "../../compiler/diag.h"

typedef enum AstKind {
    // expressions
    AST_NAME,           // text
    AST_NUMBER,         // text, number
    AST_PERCENT,        // text, number: already divided by 100
    AST_DURATION,       // text: the unit in the plural, number
    AST_STRING,         // text: contents without braces; items: pieces if there are braces, each AST_STRING or an expression
    AST_PATH,           // as AST_STRING, without the @
    AST_BOOLEAN,        // number: 0 or 1
    AST_LIST,           // items
    AST_PAREN,          // a
    AST_CALL,           // a: what is called, items: arguments
    AST_ARGUMENT,       // text = a
    AST_INDEX,          // a[items]
    AST_SPAN,           // an open range in an index: a.., ..b, ..
    AST_FIELD,          // a.text
    AST_AT,             // a @b: b is a path
    AST_UNARY,          // text a: "-" or "not"
    AST_BINARY,         // a text b
    // statements; "settings" are AST_ARGUMENTs, "values" are expressions
    AST_NET,            // net text
    AST_IMPORT,         // import a [as text] [with items]
    AST_PARAM,          // param text = a
    AST_INPUT,          // input text: a
    AST_TARGET,         // target text: a
    AST_WEIGHT,         // weight text: a = b
    AST_OUTPUT,         // output items [[: a] = b]
    AST_LABELS,         // labels text = a
    AST_AUXILIARY,      // auxiliary text = a
    AST_INIT,           // init items = a
    AST_SHARE,          // share items
    AST_WEIGHTS,        // weights from a [for items] [except others]
    AST_COLLECT,        // collect text = a
    AST_REQUIRE,        // require a, b
    AST_METRIC,         // metric [text =] a
    AST_SPLIT,          // split items [text [by a]]
    AST_PAD,            // pad items
    AST_FREEZE,         // freeze items [until a]
    AST_KEEP,           // keep text (by word | a)
    AST_STOP,           // stop text a words: `stop after 5 epochs without better accuracy`: others are the three names
    AST_VALUE,          // items: a statement that is only values
    AST_ASSIGN,         // items [: a] = b [for others] [body]
    AST_IF,             // if a body [else otherwise]; otherwise is an AST_BODY, or an AST_BODY with one AST_IF
    AST_REPEAT,         // repeat items in a body; items are AST_NAMEs
    AST_LOOP,           // loop items in a body
    AST_BLOCK,          // block text(items) body; items are formals: AST_ARGUMENT, a NULL without a default
    AST_TRAIN,          // train body
    AST_GENERATE,       // generate body
    AST_DATA,           // data [a] [body]
    AST_UPDATE,         // update text for items body
    AST_BODY,           // items: statements
    AST_KINDS
} AstKind;

// A number as written: exact as long as it fits (the fraction num / den in lowest terms), else a double.
typedef struct NetNumber {
    bool exact;
    int64_t num, den;           // den > 0
    double real;                // the value, also when exact
} NetNumber;

typedef struct Ast Ast;
struct Ast {
    AstKind kind;
    int depth;                  // 1 + that of the deepest child
    DiagPlace place;            // the whole of it
    DiagPlace name;             // of text, where that is a part of it
    const char *text;           // interned
    NetNumber *number;
    Ast *a, *b;
    Ast **items;
    int count;
    Ast **others;               // for, except, the words of stop
    int other_count;
    const char *word;           // keep best by WORD
    Ast *body, *otherwise;      // AST_BODY
    bool bound, read;           // a name that was bound here when the model was built, and read by something
};

// A token of the text, for the formatter: also comments, without blanks and line breaks.
typedef struct NetToken { int kind, from, to; } NetToken;

typedef struct NetFile {
    int source;                 // in the Diag
    const char *name;           // of the file, as it was asked for
    Ast *body;                  // AST_BODY; statements with errors are left out
    LIST(NetToken) tokens;      // kept if asked for
    bool broken;                // there were errors
} NetFile;

const char *ast_kind_name(AstKind kind);        // for messages: "output", "an assignment"

// Reads a source of `diag` (see diag_add_source). The tree is made in `arena`, its names in `names`.
// Never NULL; errors are in diag and set `broken`.
NetFile *net_parse(Diag *diag, Arena *arena, Names *names, int source, bool keep_tokens);

// One expression, as -D gives it; NULL after a report.
Ast *net_parse_expression(Diag *diag, Arena *arena, Names *names, int source);

// The file in the one style (see fmt.c); it must have been parsed with its tokens and without errors.
char *net_format(Arena *arena, const Diag *diag, const NetFile *file);

#endif
