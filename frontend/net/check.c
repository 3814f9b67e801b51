// check.c: what the grammar leaves open: which statements may stand where, and what may be assigned to.
#include <string.h>

#include "tokens.h"

typedef enum Place {
    IN_FILE = 1, IN_BLOCK = 2, IN_TRAIN = 4, IN_UPDATE = 8, IN_DATA = 16, IN_OPTIMIZER = 32, IN_GENERATE = 64, IN_LOOP = 128,
} Place;

enum { NETLIKE = IN_FILE | IN_BLOCK, EVERYWHERE = 255 };

// A row a statement: where it may stand. What is not here may stand nowhere.
static const int places[AST_KINDS] = {
    [AST_NET] = IN_FILE,        [AST_IMPORT] = IN_FILE,     [AST_PARAM] = IN_FILE,      [AST_BLOCK] = IN_FILE,
    [AST_INPUT] = IN_FILE,      [AST_OUTPUT] = IN_FILE,     [AST_LABELS] = IN_FILE,     [AST_TRAIN] = IN_FILE,
    [AST_GENERATE] = IN_FILE,   [AST_WEIGHTS] = IN_FILE,    [AST_INIT] = NETLIKE,       [AST_AUXILIARY] = NETLIKE,
    [AST_WEIGHT] = NETLIKE | IN_TRAIN,      [AST_SHARE] = NETLIKE | IN_TRAIN,   [AST_REQUIRE] = NETLIKE | IN_TRAIN,
    [AST_DATA] = IN_FILE | IN_TRAIN,        [AST_TARGET] = IN_TRAIN,            [AST_METRIC] = IN_TRAIN,
    [AST_FREEZE] = IN_TRAIN,    [AST_UPDATE] = IN_TRAIN,    [AST_KEEP] = IN_TRAIN,      [AST_STOP] = IN_TRAIN,
    [AST_SPLIT] = IN_DATA,      [AST_PAD] = IN_DATA,        [AST_COLLECT] = IN_LOOP,    [AST_VALUE] = IN_BLOCK,
    [AST_ASSIGN] = EVERYWHERE,  [AST_IF] = EVERYWHERE - IN_UPDATE - IN_GENERATE,
    [AST_REPEAT] = NETLIKE | IN_TRAIN | IN_OPTIMIZER,       [AST_LOOP] = NETLIKE | IN_TRAIN,
};

static const char *place_name(int place)
{
    return place & IN_LOOP ? "a loop" : place & IN_FILE ? "the file itself" : place & IN_BLOCK ? "a block"
         : place & IN_TRAIN ? "train" : place & IN_UPDATE ? "update" : place & IN_DATA ? "data"
         : place & IN_OPTIMIZER ? "the braces of an optimizer" : "generate";
}

static void check_body(Diag *diag, const Ast *body, int place);

static void check_targets(Diag *diag, const Ast *s)
{
    for (int i = 0; i < s->count; i++)
        if (s->items[i]->kind != AST_NAME) {
            diag_report(diag, s->items[i]->place, MESSAGE_E0118);
            if (s->items[i]->kind == AST_PAREN)
                diag_help(diag, "several results are taken without brackets: p, q = f(x)");
        }
}

static bool allowed(const Ast *s, int place)
{
    if (s->kind == AST_VALUE && place & (IN_FILE | IN_TRAIN | IN_DATA | IN_UPDATE | IN_OPTIMIZER | IN_GENERATE))
        return false;
    return (places[s->kind] & place) != 0;
}

static void refuse(Diag *diag, const Ast *s, int place)
{
    bool value = s->kind == AST_VALUE;
    diag_report(diag, s->place, MESSAGE_E0119, ast_kind_name(s->kind), place_name(place));
    if (value)
        diag_help(diag, "give it a name: y = …; _ = … throws it away");
}

static void check_statement(Diag *diag, const Ast *s, int place)
{
    if (!allowed(s, place)) {
        refuse(diag, s, place);
        return;
    }
    switch (s->kind) {
    case AST_ASSIGN:
    case AST_OUTPUT:
        check_targets(diag, s);
        if (s->body != NULL)
            check_body(diag, s->body, IN_OPTIMIZER);
        break;
    case AST_IF:
        check_body(diag, s->body, place);
        if (s->otherwise != NULL)
            check_body(diag, s->otherwise, place);
        break;
    case AST_REPEAT:   check_body(diag, s->body, place); break;
    case AST_LOOP:     check_body(diag, s->body, place | IN_LOOP); break;
    case AST_BLOCK:    check_body(diag, s->body, IN_BLOCK); break;
    case AST_TRAIN:    check_body(diag, s->body, IN_TRAIN); break;
    case AST_UPDATE:   check_body(diag, s->body, IN_UPDATE); break;
    case AST_GENERATE: check_body(diag, s->body, IN_GENERATE); break;
    case AST_DATA:     if (s->body != NULL) check_body(diag, s->body, IN_DATA); break;
    default:           break;
    }
}

static void check_body(Diag *diag, const Ast *body, int place)
{
    for (int i = 0; i < body->count; i++)
        check_statement(diag, body->items[i], place);
}

void ast_check(Diag *diag, const NetFile *file) { check_body(diag, file->body, IN_FILE); }
