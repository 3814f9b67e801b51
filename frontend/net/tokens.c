// tokens.c: see tokens.h.
#include "tokens.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "net.tab.h"

typedef struct Word { const char *text; int token; bool soft; } Word;

// Reserved; the soft ones are free as argument names, that is, before `=`.
static const Word reserved[] = {
    {"and", T_AND, false},     {"or", T_OR, false},         {"not", T_NOT, false},     {"true", T_TRUE, false},
    {"false", T_FALSE, false}, {"if", T_IF, false},         {"else", T_ELSE, false},   {"repeat", T_REPEAT, false},
    {"loop", T_LOOP, false},   {"in", T_IN, false},         {"then", T_THEN, false},   {"require", T_REQUIRE, false},
    {"as", T_AS, true},        {"by", T_BY, true},          {"except", T_EXCEPT, true}, {"for", T_FOR, true},
    {"from", T_FROM, true},    {"until", T_UNTIL, true},    {"with", T_WITH, true},
};

// Words only at the start of a statement and before a name, a string, a path or a brace.
static const Word statements[] = {
    {"net", T_NET, true},         {"import", T_IMPORT, true},   {"param", T_PARAM, true},     {"input", T_INPUT, true},
    {"target", T_TARGET, true},   {"weight", T_WEIGHT, true},   {"output", T_OUTPUT, true},   {"labels", T_LABELS, true},
    {"auxiliary", T_AUXILIARY, true}, {"init", T_INIT, true},   {"share", T_SHARE, true},     {"weights", T_WEIGHTS, true},
    {"collect", T_COLLECT, true}, {"metric", T_METRIC, true},   {"split", T_SPLIT, true},     {"pad", T_PAD, true},
    {"freeze", T_FREEZE, true},   {"keep", T_KEEP, true},       {"stop", T_STOP, true},       {"block", T_BLOCK, true},
    {"train", T_TRAIN, true},     {"generate", T_GENERATE, true}, {"data", T_DATA, true},     {"update", T_UPDATE, true},
};

static const Word signs[] = {
    {"==", T_EQUAL, false}, {"!=", T_UNEQUAL, false}, {"<=", T_AT_MOST, false}, {">=", T_AT_LEAST, false},
    {"..", T_RANGE, false},
};

// Units of durations, in the plural as the tree has them.
static const char *const units[][2] = {
    {"epoch", "epochs"}, {"step", "steps"}, {"second", "seconds"}, {"minute", "minutes"}, {"hour", "hours"},
};

DiagPlace tokens_place(const Tokens *t, int from, int to) { return (DiagPlace){t->file->source, from, to}; }

void tokens_stop(Tokens *t)
{
    t->stopped = true;
    t->ahead_count = 0;
}

// --- raw tokens ---------------------------------------------------------------------------------------------------------

static bool raw_is(const Tokens *t, Raw raw, const char *text)
{
    size_t length = (size_t)(raw.to - raw.from);
    return strlen(text) == length && memcmp(t->bytes + raw.from, text, length) == 0;
}

static const char *raw_text(const Tokens *t, Raw raw)
{
    return name_intern(t->names, t->bytes + raw.from, (size_t)(raw.to - raw.from));
}

static Raw read_raw(Tokens *t)
{
    for (;;) {
        int length = 0, kind = scanner_next(t->scanner, &length);
        int from = kind == RAW_END ? t->end : t->base + (int)(scanner_text(t->scanner) - t->buffer);
        int to = from + length < t->end ? from + length : t->end;
        Raw raw = {kind, from < t->end ? from : t->end, to};
        if (t->keep && kind != RAW_END && raw.from < t->end)
            LIST_ADD(t->arena, t->file->tokens, ((NetToken){kind, raw.from, raw.to}));
        if (kind != RAW_COMMENT)
            return raw;
    }
}

static Raw raw_peek(Tokens *t)
{
    if (t->ahead_count == 0)
        t->ahead[t->ahead_count++] = read_raw(t);
    return t->ahead[0];
}

static Raw raw_next(Tokens *t)
{
    Raw raw = raw_peek(t);
    t->ahead[0] = t->ahead[1];
    t->ahead_count--;
    return raw;
}

// --- brackets -----------------------------------------------------------------------------------------------------------

static bool in_brackets(const Tokens *t)
{
    return t->open.count > 0 && t->open.at[t->open.count - 1].sign != '{';
}

void tokens_recover(Tokens *t)
{
    int kept = 0;
    for (int i = 0; i < t->open.count; i++)
        if (t->open.at[i].sign == '{')
            t->open.at[kept++] = t->open.at[i];
    t->open.count = kept;
}

static void bracket_open(Tokens *t, char sign, DiagPlace place)
{
    const char *what = t->first != NULL && t->second != NULL && (strcmp(t->first, "block") == 0 || strcmp(t->first, "update") == 0)
                     ? arena_printf(t->arena, "%s %s", t->first, t->second) : t->first != NULL ? t->first : "this";
    LIST_ADD(t->arena, t->open, ((Opening){sign, place, what}));
    if (t->open.count <= diag_limit(t->diag, LIMIT_net_nesting))
        return;
    diag_report_limit(t->diag, place, LIMIT_net_nesting, "this bracket");
    tokens_stop(t);
}

static void bracket_close(Tokens *t, char sign)
{
    while (sign == '}' && in_brackets(t))
        t->open.count--;
    if (t->open.count > 0 && (sign == '}') == (t->open.at[t->open.count - 1].sign == '{'))
        t->open.count--;
}

static void report_unclosed(Tokens *t)
{
    if (t->open.count == 0 || t->stopped)
        return;
    const Opening *o = &t->open.at[t->open.count - 1];
    char sign[2] = {o->sign, 0};
    diag_report(t->diag, o->place, MESSAGE_E0104, sign, o->what, diag_line(t->diag, o->place));
    tokens_stop(t);
}

// --- numbers ------------------------------------------------------------------------------------------------------------

static int64_t greatest_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static bool multiply_by_tens(int64_t *value, int times)
{
    for (; times > 0 && *value != 0; times--)
        if (__builtin_mul_overflow(*value, (int64_t)10, value))
            return false;
    return true;
}

// The decimal m * 10^power as an exact fraction, if it fits.
static bool exact_decimal(NetNumber *n, int64_t m, int64_t power)
{
    n->num = m;
    n->den = 1;
    if (power > 400 || power < -400 || !multiply_by_tens(power >= 0 ? &n->num : &n->den, (int)(power < 0 ? -power : power)))
        return false;
    int64_t divisor = greatest_divisor(n->num, n->den);
    n->num /= divisor;
    n->den /= divisor;
    return n->exact = true;
}

NetNumber *number_parse(Tokens *t, const char *text, size_t length, DiagPlace place)
{
    NetNumber *n = NEW(t->arena, NetNumber);
    char *plain = arena_alloc(t->arena, length + 1);
    int64_t m = 0, power = 0, exponent = 0;
    bool fits = true, point = false, whole = true;
    size_t used = 0, i = 0;
    for (; i < length && text[i] != 'e' && text[i] != 'E'; i++) {
        if (text[i] == '_')
            continue;
        plain[used++] = text[i];
        if (text[i] == '.') {
            point = true;
            whole = false;
            continue;
        }
        fits = fits && !__builtin_mul_overflow(m, (int64_t)10, &m) && !__builtin_add_overflow(m, (int64_t)(text[i] - '0'), &m);
        power -= point;
    }
    if (i < length) {
        whole = false;
        memcpy(plain + used, text + i, length - i);
        exponent = strtol(plain + used + 1, NULL, 10);
    }
    n->real = strtod(plain, NULL);
    if (exponent > 100000 || exponent < -100000)
        exponent = exponent > 0 ? 100000 : -100000;
    if (!(fits && exact_decimal(n, m, power + exponent)) && (whole || !isfinite(n->real)))
        diag_report(t->diag, place, MESSAGE_E0113, text[0] == 0 ? "" : arena_string(t->arena, text, length));
    return n;
}

// --- strings and paths --------------------------------------------------------------------------------------------------

static void add_piece(Tokens *t, Ast *whole, Ast *piece, int *room)
{
    ast_child(t, whole, piece);
    list_grow(t->arena, (void **)&whole->items, whole->count, room, sizeof *whole->items);
    whole->items[whole->count++] = piece;
}

static void add_letters(Tokens *t, Ast *whole, Text *letters, DiagPlace place, int *room)
{
    if (letters->length == 0)
        return;
    Ast *piece = ast_new(t, AST_STRING, place);
    piece->text = name_intern(t->names, letters->at, letters->length);
    add_piece(t, whole, piece, room);
    *letters = (Text){.arena = t->arena};
}

// One escaped character; returns how many bytes it took.
static int unescape(Tokens *t, Text *letters, int at)
{
    char c = t->bytes[at + 1];
    if (c == 'n')
        c = '\n';
    else if (c != '"' && c != '\\' && c != '{') {
        uint32_t code;
        int length = diag_utf8(t->bytes + at + 1, t->end - at - 1, &code);
        diag_report(t->diag, tokens_place(t, at, at + 1 + length), MESSAGE_E0111,
                    arena_string(t->arena, t->bytes + at + 1, (size_t)length));
        return 1 + (length > 0 ? length : 1);
    }
    text_put(letters, &c, 1);
    return 2;
}

static int closing_brace(const Tokens *t, int at, int to)
{
    while (at < to && t->bytes[at] != '}' && t->bytes[at] != '{' && t->bytes[at] != '"')
        at++;
    return at < to && t->bytes[at] == '}' ? at : -1;
}

Ast *tokens_text(Tokens *t, AstKind kind, DiagPlace place, int from, int to, bool quoted)
{
    Ast *whole = ast_new(t, kind, place);
    Text letters = {.arena = t->arena};
    int room = 0;
    for (int at = from; at < to && !t->stopped;) {
        if (quoted && t->bytes[at] == '\\') {
            at += unescape(t, &letters, at);
            continue;
        }
        if (t->bytes[at] != '{') {
            text_put(&letters, t->bytes + at++, 1);
            continue;
        }
        int close = closing_brace(t, at + 1, to);
        if (close < 0) {
            diag_report(t->diag, tokens_place(t, at, at + 1), MESSAGE_E0114, kind == AST_PATH ? "a path" : "a string");
            break;
        }
        add_letters(t, whole, &letters, place, &room);
        Ast *value = net_parse_part(t, at + 1, close);
        if (value != NULL)
            add_piece(t, whole, value, &room);
        at = close + 1;
    }
    if (whole->count > 0)
        add_letters(t, whole, &letters, place, &room);
    whole->text = whole->count > 0 ? name_intern(t->names, t->bytes + from, (size_t)(to - from))
                                   : name_intern(t->names, letters.length ? letters.at : "", letters.length);
    return whole;
}

// --- tokens of the grammar ----------------------------------------------------------------------------------------------

static bool at_start(const Tokens *t)
{
    return !t->expression && (t->last == 0 || t->last == T_NEWLINE || t->last == '{' || t->last == '}');
}

static const Word *find_word(const Tokens *t, Raw raw, const Word *words, int count)
{
    for (int i = 0; i < count; i++)
        if (raw_is(t, raw, words[i].text))
            return &words[i];
    return NULL;
}

static bool is_statement_word(Tokens *t)
{
    Raw next = raw_peek(t);
    return next.kind == RAW_NAME || next.kind == RAW_STRING || next.kind == RAW_PATH ||
           (next.kind == RAW_SIGN && t->bytes[next.from] == '{');
}

static int name_token(Tokens *t, Raw raw, NET_GRAMMAR_STYPE *value)
{
    value->text = raw_text(t, raw);
    const Word *word = find_word(t, raw, reserved, COUNT(reserved));
    if (word != NULL) {
        Raw next = word->soft ? raw_peek(t) : raw;
        return next.kind == RAW_SIGN && raw_is(t, next, "=") ? T_NAME : word->token;
    }
    word = at_start(t) ? find_word(t, raw, statements, COUNT(statements)) : NULL;
    return word != NULL && is_statement_word(t) ? word->token : T_NAME;
}

static int number_token(Tokens *t, Raw *raw, NET_GRAMMAR_STYPE *value)
{
    DiagPlace place = tokens_place(t, raw->from, raw->to);
    Ast *n = ast_new(t, AST_NUMBER, place);
    n->text = raw_text(t, *raw);
    n->number = number_parse(t, t->bytes + raw->from, (size_t)(raw->to - raw->from), place);
    value->ast = n;
    Raw next = raw_peek(t);
    for (int i = 0; next.kind == RAW_NAME && i < COUNT(units); i++) {
        if (!raw_is(t, next, units[i][0]) && !raw_is(t, next, units[i][1]))
            continue;
        raw_next(t);
        raw->to = next.to;
        n->kind = AST_DURATION;
        n->text = name_intern(t->names, units[i][1], strlen(units[i][1]));
        n->place.to = next.to;
        return T_DURATION;
    }
    return T_NUMBER;
}

static int percent_token(Tokens *t, Raw raw, NET_GRAMMAR_STYPE *value)
{
    DiagPlace place = tokens_place(t, raw.from, raw.to);
    Ast *n = ast_new(t, AST_PERCENT, place);
    n->text = raw_text(t, raw);
    n->number = number_parse(t, t->bytes + raw.from, (size_t)(raw.to - raw.from - 1), place);
    n->number->real /= 100;
    if (n->number->exact && !__builtin_mul_overflow(n->number->den, (int64_t)100, &n->number->den)) {
        int64_t divisor = greatest_divisor(n->number->num, n->number->den);
        n->number->num /= divisor;
        n->number->den /= divisor;
    } else {
        n->number->exact = false;
    }
    value->ast = n;
    return T_PERCENT;
}

static int text_token(Tokens *t, Raw raw, NET_GRAMMAR_STYPE *value)
{
    bool path = raw.kind == RAW_PATH;
    int from = raw.from + path;
    bool quoted = t->bytes[from] == '"';
    value->ast = tokens_text(t, path ? AST_PATH : AST_STRING, tokens_place(t, raw.from, raw.to), from + quoted,
                             raw.to - quoted, quoted);
    return path ? T_PATH : T_STRING;
}

static int sign_token(Tokens *t, Raw raw)
{
    char sign = t->bytes[raw.from];
    if (raw.to - raw.from == 2)
        return find_word(t, raw, signs, COUNT(signs))->token;
    if (sign == '(' || sign == '[' || sign == '{')
        bracket_open(t, sign, tokens_place(t, raw.from, raw.to));
    else if (sign == ')' || sign == ']' || sign == '}')
        bracket_close(t, sign);
    return sign;
}

// What is wrong in itself is reported here, and then read as what was probably meant.
static int bad_token(Tokens *t, Raw *raw, NET_GRAMMAR_STYPE *value)
{
    DiagPlace place = tokens_place(t, raw->from, raw->to);
    const char *text = raw_text(t, *raw);
    switch (raw->kind) {
    case RAW_BAD_NUMBER:
        diag_report(t->diag, place, MESSAGE_E0101);
        diag_help(t->diag, "write 0%s", text);
        return number_token(t, raw, value);
    case RAW_BAD_POINT:
        diag_report(t->diag, place, MESSAGE_E0106);
        diag_help(t->diag, "write %s0", text);
        raw->to--;
        return number_token(t, raw, value);
    case RAW_OPEN_STRING:
        diag_report(t->diag, place, MESSAGE_E0109);
        value->ast = ast_new(t, AST_STRING, place);
        value->ast->text = "";
        return T_STRING;
    case RAW_BAD_PATH:
        diag_report(t->diag, place, MESSAGE_E0112);
        return T_NET_GRAMMAR_error;
    case RAW_BAD_PERCENT:
        diag_report(t->diag, place, MESSAGE_E0103);
        return '*';
    default:
        diag_report(t->diag, place, MESSAGE_E0107, text);
        return T_NET_GRAMMAR_error;
    }
}

// The line goes on after these.
static bool continues(int token)
{
    return strchr("+-*/^<>=:,", token) != NULL ? token != 0 && token < 128
         : token == T_EQUAL || token == T_UNEQUAL || token == T_AT_MOST || token == T_AT_LEAST || token == T_RANGE ||
           token == T_AND || token == T_OR || token == T_NOT || token == T_IN || token == T_THEN;
}

static bool newline_counts(Tokens *t)
{
    if (t->expression || in_brackets(t) || t->last == 0 || t->last == T_NEWLINE || t->last == '{' || continues(t->last))
        return false;
    while (raw_peek(t).kind == RAW_NEWLINE)
        raw_next(t);
    Raw next = raw_peek(t);
    return !(next.kind == RAW_NAME && (raw_is(t, next, "else") || raw_is(t, next, "then")));
}

static void too_long(Tokens *t, Raw raw)
{
    if (raw.to - raw.from <= diag_limit(t->diag, LIMIT_net_token_bytes) || raw.kind == RAW_NEWLINE)
        return;
    diag_report_limit(t->diag, tokens_place(t, raw.from, raw.from + 16), LIMIT_net_token_bytes, "this word");
    tokens_stop(t);
}

static void remember_words(Tokens *t, const Raw *raw)
{
    if (at_start(t)) {
        t->words = 0;
        t->first = t->second = NULL;
    }
    if (t->words < 2 && raw->kind == RAW_NAME)
        *(t->words == 0 ? &t->first : &t->second) = raw_text(t, *raw);
    t->words++;
}

static int next_token(Tokens *t, Raw *raw, NET_GRAMMAR_STYPE *value)
{
    for (;;) {
        *raw = raw_next(t);
        if (raw->kind == RAW_SIGN && t->bytes[raw->from] == ';')
            raw->kind = RAW_NEWLINE;
        if (raw->kind != RAW_NEWLINE || newline_counts(t))
            break;
    }
    too_long(t, *raw);
    if (t->stopped)
        return 0;
    if (raw->kind != RAW_NEWLINE)
        remember_words(t, raw);
    switch (raw->kind) {
    case RAW_END:     return 0;
    case RAW_NEWLINE: return T_NEWLINE;
    case RAW_NAME:    return name_token(t, *raw, value);
    case RAW_NUMBER:  return number_token(t, raw, value);
    case RAW_PERCENT: return percent_token(t, *raw, value);
    case RAW_STRING:
    case RAW_PATH:    return text_token(t, *raw, value);
    case RAW_SIGN:    return sign_token(t, *raw);
    default:          return bad_token(t, raw, value);
    }
}

// The scanner of the grammar: first the token that says what is read, then what the text has, a newline before the end.
int net_grammar_lex(NET_GRAMMAR_STYPE *value, DiagPlace *place, Tokens *t)
{
    *place = tokens_place(t, t->end, t->end);
    if (!t->started) {
        t->started = true;
        return t->expression ? T_START_EXPRESSION : T_START_FILE;
    }
    if (diag_full(t->diag))
        tokens_stop(t);
    if (t->stopped)
        return 0;
    Raw raw;
    int token = next_token(t, &raw, value);
    if (token == 0 && !t->expression)
        report_unclosed(t);
    if (t->stopped)
        return 0;
    if (token == 0 && at_start(t) == false && !t->expression)
        token = T_NEWLINE;
    *place = tokens_place(t, raw.from, raw.to);
    t->before = t->last;
    t->before_place = t->last_place;
    t->last = token;
    t->last_place = *place;
    return token;
}
