// parse.c: makes the tree of a .net file: checks that the bytes are text, runs the grammar, then the checks of check.c.
#include <string.h>

#include "net.tab.h"


static void stop_at_limit(Tokens *t, DiagPlace place, LimitId limit, const char *what)
{
    if (!t->stopped)
        diag_report_limit(t->diag, place, limit, what);
    tokens_stop(t);
}

Ast *ast_new(Tokens *t, AstKind kind, DiagPlace place)
{
    if (++*t->nodes > diag_limit(t->diag, LIMIT_net_syntax_nodes))
        stop_at_limit(t, place, LIMIT_net_syntax_nodes, "this file");
    Ast *node = NEW(t->arena, Ast);
    node->kind = kind;
    node->place = place;
    node->depth = 1;
    return node;
}

void ast_child(Tokens *t, Ast *parent, const Ast *child)
{
    if (child == NULL || child->depth < parent->depth)
        return;
    parent->depth = child->depth + 1;
    if (parent->depth > diag_limit(t->diag, LIMIT_net_expression_depth))
        stop_at_limit(t, parent->place, LIMIT_net_expression_depth, "this expression");
}

const char *ast_kind_name(AstKind kind)
{
    static const char *const names[AST_KINDS] = {
        [AST_NAME] = "a name", [AST_NUMBER] = "a number", [AST_PERCENT] = "a percentage", [AST_DURATION] = "a duration",
        [AST_STRING] = "a string", [AST_PATH] = "a path", [AST_BOOLEAN] = "a boolean", [AST_LIST] = "a list",
        [AST_PAREN] = "a value", [AST_CALL] = "a call", [AST_ARGUMENT] = "an argument", [AST_INDEX] = "an index",
        [AST_SPAN] = "a range", [AST_FIELD] = "a field", [AST_AT] = "a value with a name", [AST_UNARY] = "a value",
        [AST_BINARY] = "a value", [AST_NET] = "net", [AST_IMPORT] = "import", [AST_PARAM] = "param", [AST_INPUT] = "input",
        [AST_TARGET] = "target", [AST_WEIGHT] = "weight", [AST_OUTPUT] = "output", [AST_LABELS] = "labels",
        [AST_AUXILIARY] = "auxiliary", [AST_INIT] = "init", [AST_SHARE] = "share", [AST_WEIGHTS] = "weights",
        [AST_COLLECT] = "collect", [AST_REQUIRE] = "require", [AST_METRIC] = "metric", [AST_SPLIT] = "split",
        [AST_PAD] = "pad", [AST_FREEZE] = "freeze", [AST_KEEP] = "keep", [AST_STOP] = "stop",
        [AST_VALUE] = "a value of its own", [AST_ASSIGN] = "an assignment", [AST_IF] = "if", [AST_REPEAT] = "repeat",
        [AST_LOOP] = "loop", [AST_BLOCK] = "block", [AST_TRAIN] = "train", [AST_GENERATE] = "generate",
        [AST_DATA] = "data", [AST_UPDATE] = "update", [AST_BODY] = "a body",
    };
    return names[kind];
}

// --- the bytes ----------------------------------------------------------------------------------------------------------

// Strict UTF-8, and no character that cannot be seen. Returns false after the first that is wrong.
static bool check_text(Diag *diag, int source, const char *bytes, int length)
{
    for (int i = 0; i < length;) {
        uint32_t code;
        int n = diag_utf8(bytes + i, length - i, &code);
        DiagPlace place = {source, i, i + (n > 0 ? n : 1)};
        char byte[8];
        if (n == 0) {
            snprintf(byte, sizeof byte, "0x%02X", (unsigned char)bytes[i]);
            diag_report(diag, place, MESSAGE_E0108, byte);
            return false;
        }
        bool carriage = code == '\r' && i + 1 < length && bytes[i + 1] == '\n', mark = code == 0xFEFF && i == 0;
        if (diag_is_hidden(code) && code != '\n' && code != '\t' && !carriage && !mark) {
            char name[16];
            snprintf(name, sizeof name, "U+%04X", (unsigned)code);
            diag_report(diag, place, MESSAGE_E0117, name);
            return false;
        }
        i += n;
    }
    return true;
}

// --- running the grammar ------------------------------------------------------------------------------------------------

// Reads bytes[base..end) of the source. The copy for flex ends with a newline, so that rules may look one character ahead.
static Ast *run(Tokens *t)
{
    size_t length = (size_t)(t->end - t->base);
    char *copy = arena_alloc(t->arena, length + 3);
    memcpy(copy, t->bytes + t->base, length);
    copy[length] = '\n';
    t->buffer = copy;
    t->scanner = scanner_new(t, copy, length + 1);
    int before = t->diag->errors;
    int failed = net_grammar_parse(t);
    scanner_free(t->scanner);
    return failed == 0 && t->diag->errors == before ? t->result : NULL;
}

Ast *net_parse_part(Tokens *outer, int from, int to)
{
    Tokens t = {.arena = outer->arena, .diag = outer->diag, .names = outer->names, .file = outer->file,
                .bytes = outer->bytes, .base = from, .end = to, .expression = true, .nodes = outer->nodes};
    Ast *value = run(&t);
    outer->stopped |= t.stopped;
    return value;
}

Ast *net_parse_expression(Diag *diag, Arena *arena, Names *names, int source)
{
    const DiagSource *s = &diag->sources.at[source - 1];
    NetFile *file = NEW(arena, NetFile);
    file->source = source;
    int64_t nodes = 0;
    Tokens t = {.arena = arena, .diag = diag, .names = names, .file = file, .bytes = s->bytes, .end = s->length,
                .expression = true, .nodes = &nodes};
    return s->length <= diag_limit(diag, LIMIT_net_token_bytes) && check_text(diag, source, s->bytes, s->length) ? run(&t)
                                                                                                              : NULL;
}

static const char byte_order_mark[] = "\xEF\xBB\xBF";

NetFile *net_parse(Diag *diag, Arena *arena, Names *names, int source, bool keep_tokens)
{
    const DiagSource *s = &diag->sources.at[source - 1];
    NetFile *file = NEW(arena, NetFile);
    file->source = source;
    file->name = s->name;
    file->body = NEW(arena, Ast);
    file->body->kind = AST_BODY;
    file->broken = true;
    DiagPlace start = {source, 0, 0};
    if (s->length > diag_limit(diag, LIMIT_net_file_bytes)) {
        diag_report_limit(diag, start, LIMIT_net_file_bytes, "this file");
        return file;
    }
    if (!check_text(diag, source, s->bytes, s->length))
        return file;
    int64_t nodes = 0;
    bool marked = s->length >= 3 && memcmp(s->bytes, byte_order_mark, 3) == 0;
    Tokens t = {.arena = arena, .diag = diag, .names = names, .file = file, .bytes = s->bytes, .base = marked ? 3 : 0,
                .end = s->length, .keep = keep_tokens, .nodes = &nodes};
    int before = diag->errors;
    Ast *body = run(&t);
    if (body != NULL)
        file->body = body;
    if (body != NULL && diag->errors == before)
        ast_check(diag, file);
    file->broken = diag->errors != before || body == NULL;
    return file;
}
