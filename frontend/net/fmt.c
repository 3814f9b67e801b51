// fmt.c: `mlc fmt`: a .net file in the one style.
//
// It works on tokens, line by line: blanks between tokens follow from the tokens, the indentation from the braces, and
// where a line is broken stays the author's choice. So no comment can be lost, and layout made on purpose survives:
// a column of `=` that several statements share stays a column (as far left as it fits), `#` keeps its column.
// Formatting twice gives the same text, because groups are recognised by columns that the result has again.
#include <string.h>

#include "tokens.h"

typedef struct Line {
    int first, count;           // tokens, without a comment at the end
    int comment;                // index of the comment's token, -1
    int depth;                  // braces open at its start, less those it begins by closing
    bool continued;             // goes on with the statement of the line before
    int blank_before;           // blank lines before it: 0 or 1
    int equal;                  // index of its first `=` outside brackets, -1
    int equal_from;             // column of that `=` in the source
    int comment_from;           // column of the comment in the source
    bool comment_near;          // one blank before the comment in the source
    int indent;                 // columns, in the result
    int equal_to, comment_to;
    char *text;                 // without indentation; the blanks before `=` are put in when it is printed
    int before_equal;           // characters of text before the blank before `=`
    int width;                  // characters of text
} Line;

typedef struct Open { char sign; int line, column; bool last; } Open;       // last: nothing stands behind it on its line

typedef struct Format {
    Arena *arena;
    const char *bytes;
    int length;
    const NetToken *tokens;
    int count;
    bool *tight;                // an operator without blanks: in a range, or ^ written so
    LIST(Line) lines;
    LIST(Open) open;
} Format;

// --- tokens -------------------------------------------------------------------------------------------------------------

static bool is(const Format *f, int i, const char *text)
{
    if (i < 0 || i >= f->count)
        return false;
    size_t n = (size_t)(f->tokens[i].to - f->tokens[i].from);
    return strlen(text) == n && memcmp(f->bytes + f->tokens[i].from, text, n) == 0;
}

static bool is_one_of(const Format *f, int i, const char *const *words, int count)
{
    for (int k = 0; k < count; k++)
        if (is(f, i, words[k]))
            return true;
    return false;
}

static bool is_open(const Format *f, int i)  { return is(f, i, "(") || is(f, i, "["); }
static bool is_close(const Format *f, int i) { return is(f, i, ")") || is(f, i, "]"); }
static bool is_sign(const Format *f, int i)  { return i >= 0 && i < f->count && f->tokens[i].kind == RAW_SIGN; }

// Reserved words that are no values; `from` and the like before `=` are names.
static bool is_word(const Format *f, int i)
{
    static const char *const hard[] = {"and", "or", "not", "if", "else", "repeat", "loop", "in", "then", "require"};
    static const char *const soft[] = {"as", "by", "except", "for", "from", "until", "with"};
    return is_one_of(f, i, hard, COUNT(hard)) || (is_one_of(f, i, soft, COUNT(soft)) && !is(f, i + 1, "="));
}

// Does token i end a value, so that a `-` behind it takes two?
static bool ends_value(const Format *f, int i)
{
    if (i < 0 || f->tokens[i].kind == RAW_NEWLINE || f->tokens[i].kind == RAW_COMMENT)
        return false;
    return is_sign(f, i) ? is_close(f, i) : !is_word(f, i);
}

static int previous(const Format *f, int i)
{
    do
        i--;
    while (i >= 0 && (f->tokens[i].kind == RAW_NEWLINE || f->tokens[i].kind == RAW_COMMENT));
    return i;
}

static bool is_unary(const Format *f, int i) { return is(f, i, "-") && !ends_value(f, previous(f, i)); }

static bool is_binary(const Format *f, int i)
{
    static const char *const signs[] = {"+", "-", "*", "/", "^"};
    return is_one_of(f, i, signs, COUNT(signs)) && !is_unary(f, i);
}

static bool apart(const Format *f, int i)       // blanks in the source between token i - 1 and i
{
    return i > 0 && f->tokens[i].from > f->tokens[i - 1].to;
}

// Operators in the operands of a range are written without blanks: 0..layers-1.
static void tighten_side(Format *f, int i, int step)
{
    int depth = 0;
    for (i += step; i >= 0 && i < f->count; i += step) {
        bool in = step > 0 ? is_open(f, i) : is_close(f, i), out = step > 0 ? is_close(f, i) : is_open(f, i);
        depth += in - out;
        if (depth < 0 || is_word(f, i) || f->tokens[i].kind == RAW_NEWLINE)
            return;
        if (depth > 0)
            continue;
        if (is_binary(f, i))
            f->tight[i] = true;
        else if (is_sign(f, i) && !is_open(f, i) && !is_close(f, i) && !is(f, i, ".") && !is(f, i, "-"))
            return;
    }
}

static void find_tight(Format *f)
{
    f->tight = NEW_ARRAY(f->arena, bool, f->count + 1);
    for (int i = 0; i < f->count; i++) {
        if (is(f, i, "..")) {
            tighten_side(f, i, -1);
            tighten_side(f, i, 1);
        } else if (is(f, i, "^")) {
            f->tight[i] = !apart(f, i) && !apart(f, i + 1);
        }
    }
}

// Without a blank the two would be read as one: a path may hold dots and stars, a number a point.
static bool would_join(const Format *f, int i)
{
    char sign = f->bytes[f->tokens[i].from];
    int kind = f->tokens[i - 1].kind;
    return (kind == RAW_PATH && (sign == '.' || sign == '*')) || (kind == RAW_NUMBER && is(f, i, "."));
}

// Does a blank stand between token i - 1 and token i of one line?
static bool blank_between(const Format *f, int i)
{
    int before = i - 1;
    if (would_join(f, i))
        return true;
    if (is(f, i, ",") || is(f, i, ";") || is(f, i, ":") || is_close(f, i))
        return false;
    if (is(f, before, ",") || is(f, before, ";") || is(f, before, ":"))
        return true;
    if (is_open(f, before) || is(f, before, ".") || is(f, i, ".") || is_unary(f, before))
        return false;
    if (is(f, before, "..") || (is(f, i, "..") && (ends_value(f, before) || is_open(f, before))))
        return false;
    if ((is_binary(f, i) && f->tight[i]) || (is_binary(f, before) && f->tight[before]))
        return false;
    if (is_open(f, i))
        return !ends_value(f, before);
    return true;
}

// --- columns ------------------------------------------------------------------------------------------------------------

static int width_of(const char *text, size_t length)
{
    int n = 0;
    for (size_t i = 0; i < length; i++)
        n += ((unsigned char)text[i] & 0xC0) != 0x80;
    return n;
}

static int source_column(const Format *f, int at)
{
    int start = at;
    while (start > 0 && f->bytes[start - 1] != '\n')
        start--;
    return width_of(f->bytes + start, (size_t)(at - start));
}

// --- lines --------------------------------------------------------------------------------------------------------------

static bool goes_on(const Format *f, int i)     // does the statement go on behind token i?
{
    static const char *const words[] = {"==", "!=", "<=", ">=", "<", ">", "=", ":", ",", "and", "or", "not", "in", "then", ".."};
    return is_binary(f, i) || is_unary(f, i) || is_one_of(f, i, words, COUNT(words));
}

static void add_text(Format *f, Line *line)
{
    Text text = {.arena = f->arena};
    text_put(&text, "", 0);
    int depth = 0;
    line->equal = -1;
    for (int i = line->first; i < line->first + line->count; i++) {
        depth += is_open(f, i) - is_close(f, i);
        if (depth <= 0 && line->equal < 0 && is(f, i, "=") && i > line->first) {
            line->equal = i;
            line->equal_from = source_column(f, f->tokens[i].from);
            line->before_equal = width_of(text.at, text.length);
        }
        if (i > line->first && blank_between(f, i))
            text_put(&text, " ", 1);
        text_put(&text, f->bytes + f->tokens[i].from, (size_t)(f->tokens[i].to - f->tokens[i].from));
    }
    line->text = text.at;
    line->width = width_of(text.at, text.length);
}

static void line_finish(Format *f, Line line)
{
    if (line.count == 0 && line.comment < 0)
        return;
    add_text(f, &line);
    if (line.comment >= 0) {
        int from = f->tokens[line.comment].from;
        line.comment_from = source_column(f, from);
        line.comment_near = line.count > 0 && from - f->tokens[line.comment - 1].to == 1;
    }
    if (f->lines.count == 0)
        line.blank_before = 0;
    LIST_ADD(f->arena, f->lines, line);
}

static void find_lines(Format *f)
{
    int blanks = 0;
    Line line = {.comment = -1};
    for (int i = 0; i <= f->count; i++) {
        bool end = i == f->count, newline = !end && f->tokens[i].kind == RAW_NEWLINE;
        if (end || newline) {
            blanks = line.count == 0 && line.comment < 0 ? blanks + 1 : 0;
            line_finish(f, line);
            line = (Line){.comment = -1, .first = i + 1, .blank_before = blanks > 0};
        } else if (f->tokens[i].kind == RAW_COMMENT) {
            line.comment = i;
        } else {
            if (line.count++ == 0)
                line.first = i;
        }
    }
}

// --- indentation --------------------------------------------------------------------------------------------------------

static void walk_brackets(Format *f, Line *line, int n, int *depth)
{
    Text seen = {.arena = f->arena};
    text_put(&seen, "", 0);
    for (int i = line->first; i < line->first + line->count; i++) {
        if (i > line->first && blank_between(f, i))
            text_put(&seen, " ", 1);
        if (i == line->equal)
            text_pad(&seen, (size_t)(line->equal_to - line->indent));
        text_put(&seen, f->bytes + f->tokens[i].from, (size_t)(f->tokens[i].to - f->tokens[i].from));
        *depth += is(f, i, "{") - is(f, i, "}");
        if (is_open(f, i)) {
            Open o = {f->bytes[f->tokens[i].from], n, line->indent + width_of(seen.at, seen.length),
                      i == line->first + line->count - 1};
            LIST_ADD(f->arena, f->open, o);
        } else if (is_close(f, i) && f->open.count > 0) {
            f->open.count--;
        }
    }
}

// Where a line that goes on begins: under what stands behind the bracket or the `=`, or four blanks further.
static int continued_indent(const Format *f, const Line *line, const Line *start)
{
    if (f->open.count > 0) {
        const Open *o = &f->open.at[f->open.count - 1];
        bool closes = is_close(f, line->first) && line->count > 0;
        int outer = f->lines.at[o->line].indent;
        return o->last ? (closes ? outer : outer + 4) : closes ? o->column - 1 : o->column;
    }
    bool value = start->equal >= 0 && start->equal < start->first + start->count - 1;
    return value ? start->equal_to + 2 : start->indent + 4;
}

static bool is_comment_only(const Line *line) { return line->count == 0; }

static bool belongs_to_equals(const Line *line) { return !line->continued && line->equal >= 0; }

static int natural_equal(const Line *line) { return line->depth * 4 + line->before_equal + 1; }

// Is line n of the group that line `first` begins: a statement of the same body and paragraph, `=` in the same column?
static bool same_group(const Format *f, int first, int n)
{
    const Line *a = &f->lines.at[first], *b = &f->lines.at[n];
    return belongs_to_equals(b) && b->depth == a->depth && b->equal_from == a->equal_from && b->equal_to == 0;
}

static bool ends_paragraph(const Line *first, const Line *line) { return line->blank_before > 0 || line->depth < first->depth; }

// Statements of one paragraph whose `=` stood in one column keep one column.
static void align_equals(Format *f)
{
    for (int first = 0; first < f->lines.count; first++) {
        Line *line = &f->lines.at[first];
        if (!belongs_to_equals(line) || line->equal_to > 0)
            continue;
        int column = 0, end = first;
        for (; end < f->lines.count && (end == first || !ends_paragraph(line, &f->lines.at[end])); end++)
            if (same_group(f, first, end) && natural_equal(&f->lines.at[end]) > column)
                column = natural_equal(&f->lines.at[end]);
        for (int n = end - 1; n >= first; n--)
            if (same_group(f, first, n))
                f->lines.at[n].equal_to = column;
    }
}

static void find_depths(Format *f)
{
    int depth = 0, brackets = 0;
    bool on = false;
    for (int n = 0; n < f->lines.count; n++) {
        Line *line = &f->lines.at[n];
        int first = line->first;
        line->depth = depth - (line->count > 0 && is(f, first, "}"));
        line->continued = brackets > 0 || on || (line->count > 0 && is(f, first, "then"));
        for (int i = first; i < first + line->count; i++) {
            brackets += is_open(f, i) - is_close(f, i);
            depth += is(f, i, "{") - is(f, i, "}");
        }
        if (line->count > 0)
            on = goes_on(f, first + line->count - 1);
        if (line->depth < 0)
            line->depth = 0;
    }
}

static void indent_lines(Format *f)
{
    int depth = 0;
    Line *start = NULL;
    for (int n = 0; n < f->lines.count; n++) {
        Line *line = &f->lines.at[n];
        if (line->continued && start != NULL) {
            line->indent = continued_indent(f, line, start);
            line->equal_to = line->equal >= 0 ? line->indent + line->before_equal + 1 : 0;
        } else {
            line->indent = line->depth * 4;
            start = is_comment_only(line) ? start : line;
        }
        walk_brackets(f, line, n, &depth);
    }
}

// --- comments -----------------------------------------------------------------------------------------------------------

static int line_end(const Line *line)
{
    int pad = line->equal >= 0 ? line->equal_to - (line->indent + line->before_equal + 1) : 0;
    return line->indent + line->width + pad;
}

// A comment of its own that stood under one at the end of a line stays under it.
static bool under_comment(const Format *f, int n)
{
    const Line *line = &f->lines.at[n];
    return n > 0 && is_comment_only(line) && line->blank_before == 0 && f->lines.at[n - 1].comment >= 0 &&
           f->lines.at[n - 1].comment_from == line->comment_from && f->lines.at[n - 1].comment_to > 0;
}

static bool beside(const Format *f, int n) { return f->lines.at[n].comment >= 0 && !is_comment_only(&f->lines.at[n]); }

static void align_comments(Format *f)
{
    for (int n = 0; n < f->lines.count;) {
        Line *line = &f->lines.at[n];
        if (!beside(f, n)) {
            n++;
            continue;
        }
        int end = n + 1, column = line_end(line) + 1;
        while (end < f->lines.count && beside(f, end) && f->lines.at[end].blank_before == 0 &&
               f->lines.at[end].comment_from == line->comment_from) {
            if (line_end(&f->lines.at[end]) + 1 > column)
                column = line_end(&f->lines.at[end]) + 1;
            end++;
        }
        if ((end > n + 1 || !line->comment_near) && line->comment_from > column)
            column = line->comment_from;
        for (; n < end; n++)
            f->lines.at[n].comment_to = column;
        for (; n < f->lines.count && under_comment(f, n); n++)
            f->lines.at[n].comment_to = f->lines.at[n].indent = column;
    }
}

// --- printing -----------------------------------------------------------------------------------------------------------

// Comments lose the blanks at their end, a carriage return among them.
static void put_comment(const Format *f, Text *text, NetToken token)
{
    int to = token.to;
    while (to > token.from && strchr(" \t\r", f->bytes[to - 1]) != NULL)
        to--;
    text_put(text, f->bytes + token.from, (size_t)(to - token.from));
}

static void put_blanks(Text *text, int count)
{
    for (; count > 0; count--)
        text_put(text, " ", 1);
}

static size_t bytes_of(const char *text, int characters)
{
    size_t i = 0;
    for (; text[i] != 0; i++)
        if (((unsigned char)text[i] & 0xC0) != 0x80 && characters-- == 0)
            break;
    return i;
}

static void put_line(const Format *f, Text *text, const Line *line)
{
    if (line->blank_before > 0)
        text_put(text, "\n", 1);
    put_blanks(text, line->indent);
    if (line->equal >= 0) {
        size_t before = bytes_of(line->text, line->before_equal);
        text_put(text, line->text, before);
        put_blanks(text, line->equal_to - line->indent - line->before_equal - 1);
        text_put(text, line->text + before, strlen(line->text) - before);
    } else {
        text_put(text, line->text, strlen(line->text));
    }
    if (line->comment >= 0) {
        put_blanks(text, is_comment_only(line) ? 0 : line->comment_to - line_end(line));
        put_comment(f, text, f->tokens[line->comment]);
    }
    text_put(text, "\n", 1);
}

// A semicolon that separates nothing is left out.
static bool idle_semicolon(const Format *f, int i, const NetToken *kept, int count)
{
    if (!is(f, i, ";"))
        return false;
    bool first = count == 0 || kept[count - 1].kind == RAW_NEWLINE || kept[count - 1].kind == RAW_COMMENT ||
                 strchr(";{", f->bytes[kept[count - 1].from]) != NULL;
    int next = i + 1;
    bool last = next >= f->count || f->tokens[next].kind == RAW_NEWLINE || f->tokens[next].kind == RAW_COMMENT;
    return first || last || is(f, next, ";") || is(f, next, "}");
}

// Settles the tokens: `else` on a line of its own joins the line of the brace before it.
static void settle_tokens(Format *f, const NetFile *file)
{
    NetToken *kept = NEW_ARRAY(f->arena, NetToken, file->tokens.count + 1);
    f->tokens = file->tokens.at;
    f->count = file->tokens.count;
    int count = 0;
    for (int i = 0; i < f->count; i++) {
        if (idle_semicolon(f, i, kept, count))
            continue;
        if (is(f, i, "else")) {
            int last = count;
            while (last > 0 && kept[last - 1].kind == RAW_NEWLINE)
                last--;
            bool brace = last > 0 && kept[last - 1].kind == RAW_SIGN && f->bytes[kept[last - 1].from] == '}';
            count = brace ? last : count;
        }
        kept[count++] = f->tokens[i];
    }
    f->tokens = kept;
    f->count = count;
}

char *net_format(Arena *arena, const Diag *diag, const NetFile *file)
{
    const DiagSource *source = &diag->sources.at[file->source - 1];
    Format f = {.arena = arena, .bytes = source->bytes, .length = source->length};
    settle_tokens(&f, file);
    find_tight(&f);
    find_lines(&f);
    find_depths(&f);
    align_equals(&f);
    indent_lines(&f);
    align_comments(&f);
    Text text = {.arena = arena};
    text_put(&text, "", 0);
    for (int i = 0; i < f.lines.count; i++)
        put_line(&f, &text, &f.lines.at[i]);
    return text.at;
}
