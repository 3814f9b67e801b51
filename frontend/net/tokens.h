// tokens.h: from raw tokens to those of the grammar. What depends on the surroundings is settled here, so that the grammar
// needs one token of lookahead and has no conflicts: newlines that end no statement, statement words (`input` is one only
// before a name), reserved words that are argument names before `=`, durations, and where brackets are open.
#ifndef MLC_NET_TOKENS_H
#define MLC_NET_TOKENS_H

#include "ast.h"

enum RawKind {
    RAW_END, RAW_NEWLINE, RAW_COMMENT, RAW_NUMBER, RAW_PERCENT, RAW_NAME, RAW_STRING, RAW_PATH, RAW_SIGN,
    RAW_BAD_POINT, RAW_BAD_NUMBER, RAW_OPEN_STRING, RAW_BAD_PATH, RAW_BAD_PERCENT, RAW_BAD_CHARACTER,
};

typedef struct TokensScanner TokensScanner;     // flex's (net.l)

typedef struct Raw { int kind, from, to; } Raw;

typedef struct Opening { char sign; DiagPlace place; const char *what; } Opening;    // what: "block bottleneck"

typedef struct Tokens {
    Arena *arena;
    Diag *diag;
    Names *names;
    NetFile *file;
    const char *bytes;          // of the whole source
    int base, end;              // the part that is read: the file, or what stands in braces
    const char *buffer;         // the copy that flex reads, of bytes[base..end)
    TokensScanner *scanner;
    bool keep;                  // keep raw tokens for the formatter
    bool expression;            // an expression in braces is read: no newlines, no statement words
    bool started, stopped;      // stopped: a limit was passed, or there were too many errors
    Raw ahead[2];
    int ahead_count;
    int last;                   // the last token handed out
    DiagPlace last_place;
    int before;                 // the one before it
    DiagPlace before_place;
    const char *first, *second; // the first two words of the statement, to name its braces
    int words;
    LIST(Opening) open;
    int64_t *nodes;             // how many tree nodes there are, over all parts of the file
    Ast *result;
} Tokens;

TokensScanner *scanner_new(Tokens *tokens, char *bytes, size_t length);     // bytes[length], [length + 1] are 0
int            scanner_next(TokensScanner *scanner, int *length);
const char    *scanner_text(TokensScanner *scanner);
void           scanner_free(TokensScanner *scanner);

void tokens_recover(Tokens *tokens);            // after an error: no bracket is open any more, only braces
void tokens_stop(Tokens *tokens);               // the next token is the end

DiagPlace tokens_place(const Tokens *tokens, int from, int to);

// The contents of a string or path between `from` and `to` (without quotes or @), with the expressions in its braces.
Ast *tokens_text(Tokens *tokens, AstKind kind, DiagPlace place, int from, int to, bool quoted);

NetNumber *number_parse(Tokens *tokens, const char *text, size_t length, DiagPlace place);

Ast *ast_new(Tokens *tokens, AstKind kind, DiagPlace place);
void ast_child(Tokens *tokens, Ast *parent, const Ast *child);      // depth of the parent

void ast_check(Diag *diag, const NetFile *file);        // what may stand where; left sides of assignments (check.c)

Ast *net_parse_part(Tokens *outer, int from, int to);   // an expression in braces; NULL after an error (parse.c)

#endif
