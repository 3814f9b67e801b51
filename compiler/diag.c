// diag.c: see diag.h. Reports are collected with their places as byte ranges; lines and columns are found when printing.
#include "diag.h"

#include <stdlib.h>
#include <string.h>

typedef struct MessageRow { const char *code; DiagSeverity severity; const char *option, *text, *help; } MessageRow;

static const MessageRow messages[] = {
#define MESSAGE(id, severity, option, text, help) {#id, DIAG_##severity, option, text, help},
#include "messages.def"
#undef MESSAGE
};

typedef struct LimitRow { const char *name; int64_t value, hard; const char *meaning; } LimitRow;

static const LimitRow limits[] = {
#define LIMIT(id, value, hard, meaning) {#id, value, hard, meaning},
#include "limits.def"
#undef LIMIT
};

Diag *diag_new(Arena *arena)
{
    Diag *diag = NEW(arena, Diag);
    diag->arena = arena;
    diag->max_errors = 20;
    for (int i = 0; i < LIMIT_COUNT; i++)
        diag->limits[i] = limits[i].value;
    return diag;
}

int diag_add_source(Diag *diag, const char *name, const char *bytes, int length)
{
    DiagSource source = {.name = name, .bytes = bytes, .length = length};
    LIST_ADD(diag->arena, diag->sources, source);
    return diag->sources.count;
}

int64_t     diag_limit(const Diag *diag, LimitId id) { return diag->limits[id]; }
const char *limit_name(LimitId id)                   { return limits[id].name; }
const char *message_code(MessageId id)               { return messages[id].code; }
bool        diag_full(const Diag *diag)              { return diag->errors >= diag->max_errors; }

bool diag_set_limit(Diag *diag, const char *setting)
{
    size_t length = strcspn(setting, "=");
    for (int i = 0; i < LIMIT_COUNT && setting[length] == '='; i++) {
        if (strlen(limits[i].name) != length || strncmp(limits[i].name, setting, length) != 0)
            continue;
        char *end;
        long long value = strtoll(setting + length + 1, &end, 10);
        if (*end != 0 || end == setting + length + 1 || value < 1 || value > limits[i].hard)
            return false;
        diag->limits[i] = value;
        return true;
    }
    return false;
}

void limits_print(FILE *to)
{
    for (int i = 0; i < LIMIT_COUNT; i++)
        fprintf(to, "%-22s %12lld  (at most %lld)  %s\n", limits[i].name, (long long)limits[i].value, (long long)limits[i].hard,
                limits[i].meaning);
}

// --- characters --------------------------------------------------------------------------------------------------------

int diag_utf8(const char *at, int left, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (left <= 0)
        return 0;
    unsigned char first = (unsigned char)at[0];
    int length = first < 0x80 ? 1 : first >= 0xC2 && first < 0xE0 ? 2 : first >= 0xE0 && first < 0xF0 ? 3
               : first >= 0xF0 && first < 0xF5 ? 4 : 0;
    if (length == 0 || length > left)
        return 0;
    uint32_t c = length == 1 ? first : first & (0x7Fu >> length);
    for (int i = 1; i < length; i++) {
        unsigned char next = (unsigned char)at[i];
        if ((next & 0xC0) != 0x80)
            return 0;
        c = c << 6 | (next & 0x3F);
    }
    if (c < least[length] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
        return 0;
    *code = c;
    return length;
}

bool diag_is_hidden(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0xAD || c == 0x61C || (c >= 0x200B && c <= 0x200F) ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF;
}

static void escape_into(Text *text, const char *from, size_t length)
{
    for (size_t i = 0; i < length;) {
        uint32_t code = 0;
        int n = diag_utf8(from + i, length - i > 4 ? 4 : (int)(length - i), &code);
        if (n == 0)
            text_add(text, "\\x%02X", (unsigned char)from[i]);
        else if (diag_is_hidden(code))
            text_add(text, n == 1 ? "\\x%02X" : "\\u%04X", (unsigned)code);
        else
            text_put(text, from + i, (size_t)n);
        i += n == 0 ? 1 : (size_t)n;
    }
}

const char *diag_escape(Arena *arena, const char *from, size_t length)
{
    Text text = {.arena = arena};
    text_put(&text, "", 0);
    escape_into(&text, from, length);
    return text.at;
}

// A string of the input in a message: escaped, and cut where it would fill the screen.
static void add_argument(Text *text, const char *from)
{
    enum { LONGEST = 400 };
    size_t length = strlen(from);
    escape_into(text, from, length > LONGEST ? LONGEST : length);
    if (length > LONGEST)
        text_add(text, "…");
}

static void format_into(Text *text, const char *format, va_list *args)
{
    for (const char *p = format; *p != 0; p++) {
        if (*p != '%') {
            text_put(text, p, 1);
            continue;
        }
        switch (*++p) {
        case 's': add_argument(text, va_arg(*args, const char *)); break;
        case 'd': text_add(text, "%d", va_arg(*args, int)); break;
        case 'l': text_add(text, "%lld", (long long)va_arg(*args, int64_t)); break;
        case '%': text_put(text, "%", 1); break;
        default:  BUG("a message has %%%c", *p);
        }
    }
}

static const char *formatted(Diag *diag, const char *format, va_list *args)
{
    Text text = {.arena = diag->arena};
    text_put(&text, "", 0);
    format_into(&text, format, args);
    return text.at;
}

// --- reporting ---------------------------------------------------------------------------------------------------------

static bool same_place(DiagPlace a, DiagPlace b)
{
    return a.source == b.source && a.from == b.from && a.to == b.to;
}

static bool said_before(const Diag *diag, MessageId id, DiagPlace place, const char *text)
{
    for (int i = 0; i < diag->all.count; i++) {
        const Diagnostic *d = diag->all.at[i];
        if (d->id == id && same_place(d->place, place) && strcmp(d->text, text) == 0)
            return true;
    }
    return false;
}

enum { MOST_WARNINGS = 200 };

static void keep(Diag *diag, DiagPlace place, const char *file, MessageId id, const char *text)
{
    DiagSeverity severity = diag->fatal[id] ? DIAG_ERROR : messages[id].severity;
    diag->muted = diag->off[id] || diag_full(diag) || (severity == DIAG_WARNING && diag->warnings >= MOST_WARNINGS) ||
                  said_before(diag, id, place, text);
    if (diag->muted)
        return;
    Diagnostic *d = NEW(diag->arena, Diagnostic);
    d->id = id;
    d->severity = severity;
    d->place = place;
    d->file = file;
    d->text = text;
    LIST_ADD(diag->arena, diag->all, d);
    *(severity == DIAG_ERROR ? &diag->errors : &diag->warnings) += 1;
}

void diag_report(Diag *diag, DiagPlace place, MessageId id, ...)
{
    va_list args;
    va_start(args, id);
    keep(diag, place, NULL, id, formatted(diag, messages[id].text, &args));
    va_end(args);
}

void diag_report_file(Diag *diag, const char *file, MessageId id, ...)
{
    va_list args;
    va_start(args, id);
    keep(diag, (DiagPlace){0}, file, id, formatted(diag, messages[id].text, &args));
    va_end(args);
}

static void add_note(Diag *diag, bool is_help, DiagPlace place, const char *text)
{
    if (diag->muted || diag->all.count == 0)
        return;
    Diagnostic *d = diag->all.at[diag->all.count - 1];
    LIST_ADD(diag->arena, d->notes, ((DiagNote){is_help, place, text}));
}

void diag_note(Diag *diag, DiagPlace place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_note(diag, false, place, formatted(diag, format, &args));
    va_end(args);
}

void diag_help(Diag *diag, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_note(diag, true, (DiagPlace){0}, formatted(diag, format, &args));
    va_end(args);
}

bool diag_help_nearest(Diag *diag, const char *word, const char *const *candidates, int count)
{
    const char *near = strlen(word) > 1 ? name_nearest(word, candidates, count) : NULL;
    if (near != NULL)
        diag_help(diag, "did you mean %s?", near);
    return near != NULL;
}

void diag_report_limit(Diag *diag, DiagPlace place, LimitId id, const char *what)
{
    diag_report(diag, place, MESSAGE_E0120, what, limits[id].name, diag->limits[id], limits[id].meaning);
}

// --- lines and columns -------------------------------------------------------------------------------------------------

static DiagSource *source_of(const Diag *diag, DiagPlace place)
{
    return place.source > 0 && place.source <= diag->sources.count ? &diag->sources.at[place.source - 1] : NULL;
}

static void find_lines(Arena *arena, DiagSource *source)
{
    if (source->lines != NULL)
        return;
    int count = 1;
    for (int i = 0; i < source->length; i++)
        count += source->bytes[i] == '\n';
    source->lines = NEW_ARRAY(arena, int, count + 1);
    source->line_count = 1;
    for (int i = 0; i < source->length; i++)
        if (source->bytes[i] == '\n')
            source->lines[source->line_count++] = i + 1;
}

// The index (from 0) of the line that contains byte `at`.
static int line_index(const Diag *diag, DiagSource *source, int at)
{
    find_lines(diag->arena, source);
    int low = 0, high = source->line_count - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (source->lines[middle] <= at)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static int line_end(const DiagSource *source, int line)
{
    int end = line + 1 < source->line_count ? source->lines[line + 1] - 1 : source->length;
    if (end > source->lines[line] && source->bytes[end - 1] == '\r')
        end--;
    return end;
}

// Characters between two bytes of a line; a byte that is no UTF-8 counts as the four characters it is shown as.
static int characters(const DiagSource *source, int from, int to)
{
    int n = 0;
    for (int i = from; i < to;) {
        uint32_t code;
        int length = diag_utf8(source->bytes + i, source->length - i, &code);
        n += length == 0 ? 4 : 1;
        i += length == 0 ? 1 : length;
    }
    return n;
}

int diag_line(Diag *diag, DiagPlace place)
{
    DiagSource *source = source_of(diag, place);
    return source != NULL ? line_index(diag, source, place.from) + 1 : 0;
}

static int column_of(const Diag *diag, DiagSource *source, int at)
{
    return characters(source, source->lines[line_index(diag, source, at)], at) + 1;
}

int diag_column(Diag *diag, DiagPlace place)
{
    DiagSource *source = source_of(diag, place);
    return source != NULL ? (line_index(diag, source, place.from), column_of(diag, source, place.from)) : 0;
}

const char *diag_where(Diag *diag, DiagPlace place)
{
    DiagSource *source = source_of(diag, place);
    if (source == NULL)
        return "mlc";
    return arena_printf(diag->arena, "%s:%d:%d", diag_escape(diag->arena, source->name, strlen(source->name)),
                        diag_line(diag, place), diag_column(diag, place));
}

// --- printing ----------------------------------------------------------------------------------------------------------

enum { SHOWN = 160 };           // characters of a line that are shown

static const char *color_of(const Diag *diag, const char *code) { return diag->color ? code : ""; }

// The line with a number gutter, and under it a caret and tildes. A long line is cut around the place.
static void print_line(Diag *diag, Text *text, DiagPlace place)
{
    DiagSource *source = source_of(diag, place);
    int line = line_index(diag, source, place.from), end = line_end(source, line), from = source->lines[line];
    int stop = place.to < end ? place.to : end;
    bool cut = place.from - from > SHOWN / 2 && end - from > SHOWN;
    if (cut)
        from = place.from - SHOWN / 2;
    for (int i = 0; i < 3 && from > source->lines[line] && ((unsigned char)source->bytes[from] & 0xC0) == 0x80; i++)
        from--;
    bool cut_end = end - from > SHOWN;
    end = cut_end ? from + SHOWN : end;
    for (int i = 0; cut_end && i < 3 && ((unsigned char)source->bytes[end] & 0xC0) == 0x80; i++)
        end--;                                          // not within a character
    Text shown = {.arena = diag->arena};
    text_put(&shown, "", 0);
    for (int i = from; i < end; i++)
        text_put(&shown, source->bytes[i] == '\t' ? " " : source->bytes + i, 1);
    text_add(text, "%5d | %s%s%s\n", line + 1, cut ? "…" : "", diag_escape(diag->arena, shown.at, shown.length), cut_end ? "…" : "");
    text_add(text, "      | %*s%s^", characters(source, from, place.from) + cut, "", color_of(diag, "\033[1;32m"));
    for (int i = 1; i < characters(source, place.from, stop < end ? stop : end); i++)
        text_put(text, "~", 1);
    text_add(text, "%s\n", color_of(diag, "\033[0m"));
}

static void print_note(Diag *diag, Text *text, const DiagNote *note)
{
    bool placed = source_of(diag, note->place) != NULL;
    text_add(text, "%s%s:%s %s", color_of(diag, note->is_help ? "\033[1;36m" : "\033[1;34m"),
             note->is_help ? "help" : "note", color_of(diag, "\033[0m"), note->text);
    if (placed)
        text_add(text, " at %s", diag_where(diag, note->place));
    text_put(text, "\n", 1);
}

static bool has_help(const Diagnostic *d)
{
    for (int i = 0; i < d->notes.count; i++)
        if (d->notes.at[i].is_help)
            return true;
    return false;
}

static void render(Diag *diag, Text *text, const Diagnostic *d)
{
    bool error = d->severity == DIAG_ERROR;
    const MessageRow *row = &messages[d->id];
    const char *where = d->file != NULL ? diag_escape(diag->arena, d->file, strlen(d->file)) : diag_where(diag, d->place);
    text_add(text, "%s%s:%s %s%s:%s %s [%s%s%s]\n", color_of(diag, "\033[1m"), where, color_of(diag, "\033[0m"),
             color_of(diag, error ? "\033[1;31m" : "\033[1;35m"), error ? "error" : "warning", color_of(diag, "\033[0m"),
             d->text, row->code, row->option[0] != 0 ? ", -W" : "", row->option);
    if (source_of(diag, d->place) != NULL)
        print_line(diag, text, d->place);
    for (int help = 0; help < 2; help++)
        for (int i = 0; i < d->notes.count; i++)
            if (d->notes.at[i].is_help == (bool)help)
                print_note(diag, text, &d->notes.at[i]);
    if (!has_help(d) && row->help[0] != 0)
        print_note(diag, text, &(DiagNote){true, {0}, row->help});
}

static void json_string(FILE *to, const char *key, const char *value)
{
    fprintf(to, "\"%s\":\"", key);
    for (const char *p = value; *p != 0; p++)
        if (*p == '"' || *p == '\\')
            fprintf(to, "\\%c", *p);
        else if (*p == '\n')
            fputs("\\n", to);
        else if ((unsigned char)*p < 0x20)
            fprintf(to, "\\u%04x", (unsigned)*p);
        else
            fputc(*p, to);
    fputc('"', to);
}

static void json_place(Diag *diag, FILE *to, DiagPlace place, const char *file)
{
    DiagSource *source = source_of(diag, place);
    if (source == NULL && file == NULL)
        return;
    fputc(',', to);
    json_string(to, "file", source != NULL ? source->name : file);
    if (source == NULL)
        return;
    DiagPlace end = {place.source, place.to, place.to};
    fprintf(to, ",\"line\":%d,\"column\":%d,\"end_line\":%d,\"end_column\":%d", diag_line(diag, place),
            diag_column(diag, place), diag_line(diag, end), diag_column(diag, end));
}

static void json_notes(Diag *diag, FILE *to, const Diagnostic *d)
{
    fputs(",\"notes\":[", to);
    for (int i = 0; i < d->notes.count; i++) {
        const DiagNote *note = &d->notes.at[i];
        fputs(i > 0 ? ",{" : "{", to);
        json_string(to, "kind", note->is_help ? "help" : "note");
        fputc(',', to);
        json_string(to, "message", note->text);
        json_place(diag, to, note->place, NULL);
        fputc('}', to);
    }
    fputc(']', to);
}

static void print_json(Diag *diag, FILE *to, const Diagnostic *d)
{
    fputc('{', to);
    json_string(to, "severity", d->severity == DIAG_ERROR ? "error" : "warning");
    fputc(',', to);
    json_string(to, "code", messages[d->id].code);
    fputc(',', to);
    json_string(to, "message", d->text);
    json_place(diag, to, d->place, d->file);
    json_notes(diag, to, d);
    Text text = {.arena = diag->arena};
    render(diag, &text, d);
    fputc(',', to);
    json_string(to, "rendered", text.at);
    fputs("}\n", to);
}

static void print_counts(const Diag *diag, FILE *to)
{
    if (diag->errors > 0)
        fprintf(to, "%d error%s", diag->errors, diag->errors == 1 ? "" : "s");
    if (diag->warnings > 0)
        fprintf(to, "%s%d warning%s", diag->errors > 0 ? ", " : "", diag->warnings, diag->warnings == 1 ? "" : "s");
    if (diag_full(diag))
        fprintf(to, "; stopped here (--max-errors %d)", diag->max_errors);
    if (diag->all.count > 0)
        fputc('\n', to);
}

void diag_print(Diag *diag, FILE *to)
{
    for (int i = 0; i < diag->all.count; i++) {
        if (diag->json) {
            print_json(diag, to, diag->all.at[i]);
            continue;
        }
        Text text = {.arena = diag->arena};
        render(diag, &text, diag->all.at[i]);
        fwrite(text.at, 1, text.length, to);
    }
    if (!diag->json)
        print_counts(diag, to);
}

// --- warnings by name, codes by number ---------------------------------------------------------------------------------

bool diag_set_warning(Diag *diag, const char *option)
{
    if (strncmp(option, "-W", 2) != 0)
        return false;
    bool off = strncmp(option, "-Wno-", 5) == 0, error = strncmp(option, "-Werror=", 8) == 0;
    bool all = strcmp(option, "-Werror") == 0, found = all;
    const char *name = option + (off ? 5 : error ? 8 : 2);
    for (int i = 0; i < MESSAGE_COUNT; i++) {
        if (messages[i].severity != DIAG_WARNING || (!all && strcmp(messages[i].option, name) != 0))
            continue;
        found = true;
        if (all || error)
            diag->fatal[i] = true;
        else
            diag->off[i] = off;
    }
    return found;
}

// The text of a row, with … for what the input gives.
static void print_template(FILE *to, const char *text)
{
    for (const char *p = text; *p != 0; p++)
        if (*p == '%' && p[1] != 0)
            fputs(*++p == '%' ? "%" : "…", to);
        else
            fputc(*p, to);
    fputc('\n', to);
}

void warnings_print(FILE *to)
{
    for (int i = 0; i < MESSAGE_COUNT; i++)
        if (messages[i].severity == DIAG_WARNING) {
            fprintf(to, "%-22s ", messages[i].option);
            print_template(to, messages[i].text);
        }
}

bool message_explain(const char *code, FILE *to)
{
    for (int i = 0; i < MESSAGE_COUNT; i++) {
        const MessageRow *row = &messages[i];
        if (strcmp(row->code, code) != 0)
            continue;
        fprintf(to, "%s: %s: ", row->code, row->severity == DIAG_ERROR ? "error" : "warning");
        print_template(to, row->text);
        if (row->option[0] != 0)
            fprintf(to, "switched off by -Wno-%s, made an error by -Werror=%s\n", row->option, row->option);
        if (row->help[0] != 0)
            fprintf(to, "help: %s\n", row->help);
        return true;
    }
    return false;
}
