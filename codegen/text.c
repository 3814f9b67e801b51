// text.c: words that are safe in C text: comments, strings, numbers, identifiers.
//
// Whatever a file of the user contains cannot end a comment, continue a line, form a trigraph or become a keyword.
#include "codegen.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void put_escaped(Text *out, unsigned char c) { text_add(out, "\\x%02X", c); }

void put_name(Text *out, const char *name)
{
    for (; *name != 0; name++)
        if (isalnum((unsigned char)*name) || strchr("_.:/-", *name) != NULL)
            text_put(out, name, 1);
        else
            put_escaped(out, (unsigned char)*name);
}

void put_remark(Text *out, const char *text)
{
    for (const char *at = text; *at != 0; at++)
        if (*at < ' ' || *at > '~' || *at == '\\' || (*at == '?' && at[1] == '?'))
            put_escaped(out, (unsigned char)*at);
        else
            text_put(out, at, 1);
}

static void put_string_char(Text *out, const char *at)
{
    unsigned char c = (unsigned char)*at;
    if (c == '\n')
        text_add(out, "\\n");
    else if (c == '"' || c == '\\' || (c == '?' && at[1] == '?'))
        text_add(out, "\\%c", c);
    else if (c < ' ' || c > '~')
        text_add(out, "\\%03o", c);
    else
        text_put(out, at, 1);
}

void put_string(Text *out, const char *text)
{
    if (text == NULL) {
        text_add(out, "NULL");
        return;
    }
    text_add(out, "\"");
    for (; *text != 0; text++)
        put_string_char(out, text);
    text_add(out, "\"");
}

void put_long_string(Text *out, const char *text, int indent)
{
    text_add(out, "\"");
    for (; *text != 0; text++) {
        put_string_char(out, text);
        if (*text == '\n' && text[1] != 0)
            text_add(out, "\"\n%*s\"", indent, "");
    }
    text_add(out, "\"");
}

// The shortest decimal that reads back as x, by strtof or strtod.
static void put_shortest(Text *out, double x, bool single)
{
    char digits[64];
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, x);
        if (single ? strtof(digits, NULL) == (float)x : strtod(digits, NULL) == x)
            break;
    }
    text_add(out, "%s%s", digits, strpbrk(digits, ".e") == NULL ? ".0" : "");
}

static void put_float(Text *out, double x, bool single)
{
    if (isnan(x))
        text_add(out, "NAN");
    else if (isinf(x))
        text_add(out, x < 0 ? "-INFINITY" : "INFINITY");
    else {
        put_shortest(out, x, single);
        text_add(out, single ? "f" : "");
    }
}

void put_double(Text *out, double number) { put_float(out, number, false); }

void put_number(Text *out, double number, DType type)
{
    if (type_is_float(type))
        put_float(out, type == TYPE_f64 ? number : (double)(float)number, type != TYPE_f64);
    else
        text_add(out, "%.0f", number);
}

void put_grouped(Text *out, int64_t n)
{
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)n);
    for (int i = 0; i < length; i++)
        text_add(out, "%s%c", i > 0 && (length - i) % 3 == 0 && digits[i - 1] != '-' ? "," : "", digits[i]);
}

void put_amount(Text *out, int64_t n)
{
    static const char *const unit[] = {"", " k", " M", " G", " T", " P"};
    double amount = (double)n;
    int i = 0;
    for (; amount >= 999.5 && i < COUNT(unit) - 1; i++)
        amount /= 1000;
    text_add(out, i > 0 && amount < 99.95 ? "%.1f%s" : "%.0f%s", amount, unit[i]);
}

const char *identifier(Context *cx, const char *name)
{
    char word[41];
    int length = 0;
    for (; name != NULL && *name != 0 && length < COUNT(word) - 1; name++) {
        bool letter = isalnum((unsigned char)*name);
        if (letter || (length > 0 && word[length - 1] != '_'))  // never two _ in a row, nor one at the front
            word[length++] = letter ? *name : '_';
    }
    while (length > 0 && word[length - 1] == '_')
        length--;
    bool bad_start = length == 0 || isdigit((unsigned char)word[0]);
    return arena_printf(cx->arena, "%s%.*s", bad_start ? "v" : "", length, word);
}

const char *public_word(Context *cx, const char *name)
{
    static const char reserved[] =
        " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class "
        "co_await "
        "co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default "
        "delete do "
        "double dynamic_cast else enum explicit export extern false final float for friend goto if import inline int "
        "linux "
        "long module mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
        "register "
        "reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch "
        "template "
        "this thread_local throw true try typedef typeid typename typeof typeof_unqual union unix unsigned using "
        "virtual void "
        "volatile wchar_t while xor xor_eq NULL EOF NAN INFINITY I errno stdin stdout stderr assert weights ";
    const char *word = identifier(cx, name);
    const char *padded = arena_printf(cx->arena, " %s ", word);
    return strstr(reserved, padded) != NULL ? arena_printf(cx->arena, "%s_", word) : word;
}

void heading(Text *out, const char *title)
{
    text_add(out, "// ==== %s %.*s\n\n", title, (int)(LINE_WIDTH - 9 - strlen(title)),
             "========================================================================================================="
             "=======");
}
