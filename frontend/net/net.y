/* net.y: the grammar of .net files. It keeps to what reads well; what may stand where is checked afterwards (check.c).
 * A statement is parsed as values first, and an assignment is recognised by the sign that follows; so `f(x) = 3` parses,
 * and gets a message that says more than "syntax error". */
%code requires {
#include "tokens.h"

typedef struct AstList { Ast **items; int count, room; } AstList;
}

%define api.pure full
%define api.prefix {net_grammar_}
%define api.location.type {DiagPlace}
%define api.token.prefix {T_}
%define parse.error custom
%define parse.lac full
%locations
%expect 0
%param {Tokens *t}

%union {
    const char *text;
    Ast *ast;
    AstList list;
}

%code {
#include <string.h>

#define YYLLOC_DEFAULT(now, of, n)                                                              \
    ((now) = (n) > 0 ? (DiagPlace){YYRHSLOC(of, 1).source, YYRHSLOC(of, 1).from, YYRHSLOC(of, n).to}   \
                     : (DiagPlace){YYRHSLOC(of, 0).source, YYRHSLOC(of, 0).to, YYRHSLOC(of, 0).to})
#define YYMAXDEPTH 4000

int net_grammar_lex(YYSTYPE *value, DiagPlace *place, Tokens *t);
static void net_grammar_error(const DiagPlace *place, Tokens *t, const char *text);

static AstList list_one(Tokens *t, Ast *item);
static AstList list_more(Tokens *t, AstList list, Ast *item);

// A node of a kind with a name and up to two children.
static Ast *make(Tokens *t, AstKind kind, DiagPlace place, const char *text, Ast *a, Ast *b)
{
    Ast *node = ast_new(t, kind, place);
    node->text = text;
    node->a = a;
    node->b = b;
    ast_child(t, node, a);
    ast_child(t, node, b);
    return node;
}

static Ast *with_name(Ast *node, DiagPlace name)
{
    node->name = name;
    return node;
}

static Ast *with_items(Tokens *t, Ast *node, AstList list)
{
    node->items = list.items;
    node->count = list.count;
    for (int i = 0; i < list.count; i++)
        ast_child(t, node, list.items[i]);
    return node;
}

static Ast *with_others(Tokens *t, Ast *node, AstList list)
{
    node->others = list.items;
    node->other_count = list.count;
    for (int i = 0; i < list.count; i++)
        ast_child(t, node, list.items[i]);
    return node;
}

static Ast *with_body(Tokens *t, Ast *node, Ast *body)
{
    node->body = body;
    ast_child(t, node, body);
    return node;
}

static Ast *with_otherwise(Tokens *t, Ast *node, Ast *body)
{
    node->otherwise = body;
    ast_child(t, node, body);
    return node;
}

static Ast *body_of(Tokens *t, DiagPlace place, AstList list)
{
    return with_items(t, ast_new(t, AST_BODY, place), list);
}

}

%token START_FILE START_EXPRESSION NEWLINE
%token <text> NAME
%token <ast> NUMBER PERCENT DURATION STRING PATH
%token EQUAL "==" UNEQUAL "!=" AT_MOST "<=" AT_LEAST ">=" RANGE ".."
%token AND "and" OR "or" NOT "not" TRUE "true" FALSE "false" IF "if" ELSE "else" REPEAT "repeat" LOOP "loop" IN "in"
%token THEN "then" REQUIRE "require" AS "as" BY "by" EXCEPT "except" FOR "for" FROM "from" UNTIL "until" WITH "with"
%token NET "net" IMPORT "import" PARAM "param" INPUT "input" TARGET "target" WEIGHT "weight" OUTPUT "output"
%token LABELS "labels" AUXILIARY "auxiliary" INIT "init" SHARE "share" WEIGHTS "weights" COLLECT "collect"
%token METRIC "metric" SPLIT "split" PAD "pad" FREEZE "freeze" KEEP "keep" STOP "stop" BLOCK "block" TRAIN "train"
%token GENERATE "generate" DATA "data" UPDATE "update"

%left THEN
%left OR
%left AND
%precedence NOT
%nonassoc EQUAL UNEQUAL '<' AT_MOST '>' AT_LEAST
%nonassoc RANGE
%left '+' '-'
%left '*' '/'
%precedence SIGN
%right '^'

%type <list> statements exprs args arguments items names formals some_formals settings others
%type <ast> statement last simple compound body otherwise expr postfix primary arg item formal setting

%%

start: START_FILE statements                { t->result = body_of(t, @2, $2); }
     | START_EXPRESSION expr                { t->result = $2; }
     ;

statements: %empty                          { $$ = (AstList){0}; }
     | statements statement NEWLINE         { $$ = $2 != NULL ? list_more(t, $1, $2) : $1; }
     | statements error NEWLINE             { $$ = $1; yyerrok; }
     | statements error body NEWLINE        { $$ = $1; yyerrok; }
     ;

statement: simple | compound ;

body: '{' statements last '}'               { $$ = body_of(t, @$, $3 != NULL ? list_more(t, $2, $3) : $2); }
     | '{' statements error '}'             { $$ = body_of(t, @$, $2); yyerrok; }
     ;

last: %empty                                { $$ = NULL; }
     | statement
     ;

compound: IF expr body otherwise            { $$ = with_otherwise(t, with_body(t, make(t, AST_IF, @$, NULL, $2, NULL), $3), $4); }
     | REPEAT names IN expr body            { $$ = with_body(t, with_items(t, make(t, AST_REPEAT, @$, NULL, $4, NULL), $2), $5); }
     | LOOP names IN expr body              { $$ = with_body(t, with_items(t, make(t, AST_LOOP, @$, NULL, $4, NULL), $2), $5); }
     | BLOCK NAME '(' formals ')' body      { $$ = with_name(with_body(t, with_items(t, make(t, AST_BLOCK, @$, $2, NULL, NULL), $4), $6), @2); }
     | TRAIN body                           { $$ = with_body(t, make(t, AST_TRAIN, @$, NULL, NULL, NULL), $2); }
     | GENERATE body                        { $$ = with_body(t, make(t, AST_GENERATE, @$, NULL, NULL, NULL), $2); }
     | DATA body                            { $$ = with_body(t, make(t, AST_DATA, @$, NULL, NULL, NULL), $2); }
     | DATA expr body                       { $$ = with_body(t, make(t, AST_DATA, @$, NULL, $2, NULL), $3); }
     | UPDATE NAME FOR exprs body           { $$ = with_name(with_body(t, with_items(t, make(t, AST_UPDATE, @$, $2, NULL, NULL), $4), $5), @2); }
     | exprs '=' expr body                  { $$ = with_body(t, with_items(t, make(t, AST_ASSIGN, @$, NULL, NULL, $3), $1), $4); }
     ;

otherwise: %empty                           { $$ = NULL; }
     | ELSE body                            { $$ = $2; }
     | ELSE IF expr body otherwise          { Ast *inner = make(t, AST_IF, @$, NULL, $3, NULL);
                                              with_otherwise(t, with_body(t, inner, $4), $5);
                                              $$ = body_of(t, @$, list_one(t, inner)); }
     ;

simple: NET NAME                            { $$ = with_name(make(t, AST_NET, @$, $2, NULL, NULL), @2); }
     | IMPORT STRING                        { $$ = make(t, AST_IMPORT, @$, NULL, $2, NULL); }
     | IMPORT STRING AS NAME                { $$ = with_name(make(t, AST_IMPORT, @$, $4, $2, NULL), @4); }
     | IMPORT STRING WITH settings          { $$ = with_items(t, make(t, AST_IMPORT, @$, NULL, $2, NULL), $4); }
     | IMPORT STRING AS NAME WITH settings  { $$ = with_name(with_items(t, make(t, AST_IMPORT, @$, $4, $2, NULL), $6), @4); }
     | PARAM NAME '=' expr                  { $$ = with_name(make(t, AST_PARAM, @$, $2, $4, NULL), @2); }
     | INPUT NAME ':' expr                  { $$ = with_name(make(t, AST_INPUT, @$, $2, $4, NULL), @2); }
     | TARGET NAME ':' expr                 { $$ = with_name(make(t, AST_TARGET, @$, $2, $4, NULL), @2); }
     | WEIGHT NAME ':' expr '=' expr        { $$ = with_name(make(t, AST_WEIGHT, @$, $2, $4, $6), @2); }
     | OUTPUT exprs                         { $$ = with_items(t, make(t, AST_OUTPUT, @$, NULL, NULL, NULL), $2); }
     | OUTPUT exprs '=' expr                { $$ = with_items(t, make(t, AST_OUTPUT, @$, NULL, NULL, $4), $2); }
     | OUTPUT exprs ':' expr '=' expr       { $$ = with_items(t, make(t, AST_OUTPUT, @$, NULL, $4, $6), $2); }
     | LABELS NAME '=' expr                 { $$ = with_name(make(t, AST_LABELS, @$, $2, $4, NULL), @2); }
     | AUXILIARY NAME '=' expr              { $$ = with_name(make(t, AST_AUXILIARY, @$, $2, $4, NULL), @2); }
     | INIT exprs '=' expr                  { $$ = with_items(t, make(t, AST_INIT, @$, NULL, $4, NULL), $2); }
     | SHARE exprs                          { $$ = with_items(t, make(t, AST_SHARE, @$, NULL, NULL, NULL), $2); }
     | WEIGHTS FROM expr others             { $$ = with_others(t, make(t, AST_WEIGHTS, @$, NULL, $3, NULL), $4); }
     | WEIGHTS FROM expr FOR exprs others   { $$ = with_others(t, with_items(t, make(t, AST_WEIGHTS, @$, NULL, $3, NULL), $5), $6); }
     | COLLECT NAME '=' expr                { $$ = with_name(make(t, AST_COLLECT, @$, $2, $4, NULL), @2); }
     | REQUIRE expr ',' STRING              { $$ = make(t, AST_REQUIRE, @$, NULL, $2, $4); }
     | DATA expr                            { $$ = make(t, AST_DATA, @$, NULL, $2, NULL); }
     | METRIC expr                          { $$ = make(t, AST_METRIC, @$, NULL, $2, NULL); }
     | METRIC NAME '=' expr                 { $$ = with_name(make(t, AST_METRIC, @$, $2, $4, NULL), @2); }
     | SPLIT settings                       { $$ = with_items(t, make(t, AST_SPLIT, @$, NULL, NULL, NULL), $2); }
     | SPLIT settings NAME                  { $$ = with_name(with_items(t, make(t, AST_SPLIT, @$, $3, NULL, NULL), $2), @3); }
     | SPLIT settings NAME BY expr          { $$ = with_name(with_items(t, make(t, AST_SPLIT, @$, $3, $5, NULL), $2), @3); }
     | PAD settings                         { $$ = with_items(t, make(t, AST_PAD, @$, NULL, NULL, NULL), $2); }
     | FREEZE exprs                         { $$ = with_items(t, make(t, AST_FREEZE, @$, NULL, NULL, NULL), $2); }
     | FREEZE exprs UNTIL expr              { $$ = with_items(t, make(t, AST_FREEZE, @$, NULL, $4, NULL), $2); }
     | KEEP NAME BY NAME                    { $$ = with_name(make(t, AST_KEEP, @$, $2, NULL, NULL), @4); $$->word = $4; }
     | KEEP NAME NUMBER                     { $$ = with_name(make(t, AST_KEEP, @$, $2, $3, NULL), @2); }
     | STOP NAME DURATION NAME NAME NAME    { $$ = with_name(make(t, AST_STOP, @$, $2, $3, NULL), @6);
                                              AstList words = list_one(t, with_name(make(t, AST_NAME, @4, $4, NULL, NULL), @4));
                                              words = list_more(t, words, make(t, AST_NAME, @5, $5, NULL, NULL));
                                              words = list_more(t, words, make(t, AST_NAME, @6, $6, NULL, NULL));
                                              with_others(t, $$, words); }
     | exprs                                { $$ = with_items(t, make(t, AST_VALUE, @$, NULL, NULL, NULL), $1); }
     | exprs '=' expr                       { $$ = with_items(t, make(t, AST_ASSIGN, @$, NULL, NULL, $3), $1); }
     | exprs ':' expr '=' expr              { $$ = with_items(t, make(t, AST_ASSIGN, @$, NULL, $3, $5), $1); }
     | exprs '=' expr FOR exprs             { $$ = with_others(t, with_items(t, make(t, AST_ASSIGN, @$, NULL, NULL, $3), $1), $5); }
     ;

others: %empty                              { $$ = (AstList){0}; }
     | EXCEPT exprs                         { $$ = $2; }
     ;

names: NAME                                 { $$ = list_one(t, make(t, AST_NAME, @1, $1, NULL, NULL)); }
     | names ',' NAME                       { $$ = list_more(t, $1, make(t, AST_NAME, @3, $3, NULL, NULL)); }
     ;

formals: %empty                             { $$ = (AstList){0}; }
     | some_formals
     ;

some_formals: formal                        { $$ = list_one(t, $1); }
     | some_formals ',' formal              { $$ = list_more(t, $1, $3); }
     ;

formal: NAME                                { $$ = with_name(make(t, AST_ARGUMENT, @$, $1, NULL, NULL), @1); }
     | setting
     ;

settings: setting                           { $$ = list_one(t, $1); }
     | settings ',' setting                 { $$ = list_more(t, $1, $3); }
     ;

setting: NAME '=' expr                      { $$ = with_name(make(t, AST_ARGUMENT, @$, $1, $3, NULL), @1); }
     ;

exprs: expr                                 { $$ = list_one(t, $1); }
     | exprs ',' expr                       { $$ = list_more(t, $1, $3); }
     ;

expr: expr THEN expr                        { $$ = make(t, AST_BINARY, @$, "then", $1, $3); }
     | expr OR expr                         { $$ = make(t, AST_BINARY, @$, "or", $1, $3); }
     | expr AND expr                        { $$ = make(t, AST_BINARY, @$, "and", $1, $3); }
     | expr EQUAL expr                      { $$ = make(t, AST_BINARY, @$, "==", $1, $3); }
     | expr UNEQUAL expr                    { $$ = make(t, AST_BINARY, @$, "!=", $1, $3); }
     | expr '<' expr                        { $$ = make(t, AST_BINARY, @$, "<", $1, $3); }
     | expr AT_MOST expr                    { $$ = make(t, AST_BINARY, @$, "<=", $1, $3); }
     | expr '>' expr                        { $$ = make(t, AST_BINARY, @$, ">", $1, $3); }
     | expr AT_LEAST expr                   { $$ = make(t, AST_BINARY, @$, ">=", $1, $3); }
     | expr RANGE expr                      { $$ = make(t, AST_BINARY, @$, "..", $1, $3); }
     | expr '+' expr                        { $$ = make(t, AST_BINARY, @$, "+", $1, $3); }
     | expr '-' expr                        { $$ = make(t, AST_BINARY, @$, "-", $1, $3); }
     | expr '*' expr                        { $$ = make(t, AST_BINARY, @$, "*", $1, $3); }
     | expr '/' expr                        { $$ = make(t, AST_BINARY, @$, "/", $1, $3); }
     | expr '^' expr                        { $$ = make(t, AST_BINARY, @$, "^", $1, $3); }
     | NOT expr                             { $$ = make(t, AST_UNARY, @$, "not", $2, NULL); }
     | '-' expr %prec SIGN                  { $$ = make(t, AST_UNARY, @$, "-", $2, NULL); }
     | postfix
     ;

postfix: primary
     | postfix '(' args ')'                 { $$ = with_items(t, make(t, AST_CALL, @$, NULL, $1, NULL), $3); }
     | postfix '[' items ']'                { $$ = with_items(t, make(t, AST_INDEX, @$, NULL, $1, NULL), $3); }
     | postfix '.' NAME                     { $$ = with_name(make(t, AST_FIELD, @$, $3, $1, NULL), @3); }
     | postfix PATH                         { $$ = make(t, AST_AT, @$, NULL, $1, $2); }
     ;

primary: NAME                               { $$ = make(t, AST_NAME, @$, $1, NULL, NULL); }
     | NUMBER | PERCENT | DURATION | STRING | PATH
     | TRUE                                 { $$ = make(t, AST_BOOLEAN, @$, "true", NULL, NULL); }
     | FALSE                                { $$ = make(t, AST_BOOLEAN, @$, "false", NULL, NULL); }
     | '(' expr ')'                         { $$ = make(t, AST_PAREN, @$, NULL, $2, NULL); }
     | '[' ']'                              { $$ = make(t, AST_LIST, @$, NULL, NULL, NULL); }
     | '[' exprs ']'                        { $$ = with_items(t, make(t, AST_LIST, @$, NULL, NULL, NULL), $2); }
     | '[' exprs ',' ']'                    { $$ = with_items(t, make(t, AST_LIST, @$, NULL, NULL, NULL), $2); }
     ;

args: %empty                                { $$ = (AstList){0}; }
     | arguments
     | arguments ','
     ;

arguments: arg                              { $$ = list_one(t, $1); }
     | arguments ',' arg                    { $$ = list_more(t, $1, $3); }
     ;

arg: expr
     | setting
     ;

items: item                                 { $$ = list_one(t, $1); }
     | items ',' item                       { $$ = list_more(t, $1, $3); }
     ;

item: expr
     | RANGE                                { $$ = make(t, AST_SPAN, @$, NULL, NULL, NULL); }
     | expr RANGE                           { $$ = make(t, AST_SPAN, @$, NULL, $1, NULL); }
     | RANGE expr                           { $$ = make(t, AST_SPAN, @$, NULL, NULL, $2); }
     ;

%%

static AstList list_more(Tokens *t, AstList list, Ast *item)
{
    list_grow(t->arena, (void **)&list.items, list.count, &list.room, sizeof *list.items);
    list.items[list.count++] = item;
    return list;
}

static AstList list_one(Tokens *t, Ast *item) { return list_more(t, (AstList){0}, item); }

// Only running out of the parser's stack comes here; syntax errors go to yyreport_syntax_error.
static void net_grammar_error(const DiagPlace *place, Tokens *t, const char *text)
{
    (void)text;
    if (!t->stopped)
        diag_report_limit(t->diag, *place, LIMIT_net_expression_depth, "this expression");
    tokens_stop(t);
}

typedef struct Expected { bool value, sign, name; int count; const char *words[YYNTOKENS]; } Expected;

// A sign as it is written, from the name the grammar has for it ('+', "==", NEWLINE).
static const char *spelled(Tokens *t, yysymbol_kind_t kind)
{
    const char *name = yysymbol_name(kind);
    if (kind == YYSYMBOL_NEWLINE)
        return "the end of the line";
    size_t length = strlen(name);
    bool quoted = length > 2 && (name[0] == '\'' || name[0] == '"');
    return quoted ? arena_string(t->arena, name + 1, length - 2) : name;
}

// What is summed up as "a value", "an operator", or does not help: statement words and the like.
static bool is_general(const Expected *e, yysymbol_kind_t kind, const char *word)
{
    if (kind <= YYSYMBOL_START_EXPRESSION || kind == YYSYMBOL_NAME || (kind >= YYSYMBOL_NET && kind <= YYSYMBOL_UPDATE))
        return true;
    if (e->value && ((kind >= YYSYMBOL_NUMBER && kind <= YYSYMBOL_PATH) || kind == YYSYMBOL_IF || kind == YYSYMBOL_REPEAT ||
                     kind == YYSYMBOL_LOOP || kind == YYSYMBOL_REQUIRE))
        return true;
    bool operand = strlen(word) == 1 && strchr("+-*/^<>.([", word[0]) != NULL;
    return (e->value || e->sign) && (operand || kind == YYSYMBOL_PATH || kind == YYSYMBOL_THEN ||
                                     (kind >= YYSYMBOL_EQUAL && kind <= YYSYMBOL_FALSE));
}

static Expected expected_of(const yypcontext_t *context, Tokens *t)
{
    Expected e = {0};
    yysymbol_kind_t kinds[YYNTOKENS];
    int n = yypcontext_expected_tokens(context, kinds, YYNTOKENS);
    for (int i = 0; i < n; i++) {
        e.value |= kinds[i] == YYSYMBOL_NUMBER;
        e.name |= kinds[i] == YYSYMBOL_NAME;
        e.sign |= strcmp(yysymbol_name(kinds[i]), "'+'") == 0;
    }
    for (int i = 0; i < n; i++) {
        const char *word = spelled(t, kinds[i]);
        bool closes = kinds[i] == YYSYMBOL_NEWLINE || strchr("),]", word[0]) != NULL;
        if (e.sign && !closes)
            continue;
        if (!is_general(&e, kinds[i], word))
            e.words[e.count++] = kinds[i] == YYSYMBOL_STRING ? "a string"
                               : kinds[i] == YYSYMBOL_DURATION ? "a duration such as 5 epochs" : word;
    }
    return e;
}

// "a value, ) or ]"
static const char *expected_text(Tokens *t, const Expected *e)
{
    const char *parts[YYNTOKENS + 3];
    int count = 0;
    if (e->value)
        parts[count++] = "a value";
    else if (e->name)
        parts[count++] = "a name";
    if (e->sign)
        parts[count++] = "an operator";
    for (int i = 0; i < e->count; i++)
        parts[count++] = e->words[i];
    if (count == 0)
        return "something else";
    Text text = {.arena = t->arena};
    for (int i = 0; i < count; i++)
        text_add(&text, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " or ", parts[i]);
    return text.at;
}

static bool is_comparison(yysymbol_kind_t kind)
{
    const char *name = yysymbol_name(kind);
    return strcmp(name, "'<'") == 0 || strcmp(name, "'>'") == 0 ||
           (kind >= YYSYMBOL_EQUAL && kind <= YYSYMBOL_AT_LEAST);
}

static const char *found_text(Tokens *t, yysymbol_kind_t kind, DiagPlace place)
{
    if (kind == YYSYMBOL_YYEOF)
        return t->expression ? "the end of the expression" : "the end of the file";
    if (kind == YYSYMBOL_NEWLINE)
        return "the end of the line";
    return arena_string(t->arena, t->bytes + place.from, (size_t)(place.to - place.from));
}

static void note_open_bracket(Tokens *t)
{
    if (t->open.count == 0 || t->open.at[t->open.count - 1].sign == '{')
        return;
    const Opening *o = &t->open.at[t->open.count - 1];
    char sign[2] = {o->sign, 0};
    diag_note(t->diag, o->place, "the %s is still open, which began", sign);
}

static int yyreport_syntax_error(const yypcontext_t *context, Tokens *t)
{
    yysymbol_kind_t kind = yypcontext_token(context);
    DiagPlace place = *yypcontext_location(context);
    if (t->stopped)
        return 0;
    Expected e = expected_of(context, t);
    const char *found = found_text(t, kind, place);
    if (e.sign && is_comparison(kind)) {
        diag_report(t->diag, place, MESSAGE_E0105);
    } else if (e.sign && kind == YYSYMBOL_RANGE) {
        diag_report(t->diag, place, MESSAGE_E0115);
    } else if (e.sign && kind == YYSYMBOL_NAME && t->before == T_NUMBER) {
        diag_report(t->diag, place, MESSAGE_E0102, found);
    } else if (e.sign && t->before == T_PERCENT && (kind == YYSYMBOL_NAME || kind == YYSYMBOL_NUMBER)) {
        diag_report(t->diag, t->before_place, MESSAGE_E0103);
    } else {
        diag_report(t->diag, place, MESSAGE_E0110, found, expected_text(t, &e));
        note_open_bracket(t);
        if (e.value && kind >= YYSYMBOL_AND && kind <= YYSYMBOL_WITH)
            diag_help(t->diag, "%s is a reserved word; it can be a name of an argument only", found);
    }
    tokens_recover(t);
    return 0;
}
