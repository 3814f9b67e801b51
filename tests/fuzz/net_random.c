// net_random.c: random sequences of tokens, with comments and line breaks wherever they fall, through the entry of net_fuzz.c.
// Most are no model, many parse: statements are put together from pieces that fit, with blanks and breaks of any kind.
//     net_random [COUNT [SEED]]
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

enum { ROOM = 1 << 16 };

typedef struct Writer { char text[ROOM]; size_t length; uint64_t state; int depth; bool wild; } Writer;

static unsigned draw(Writer *w, unsigned below)
{
    w->state = w->state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(w->state >> 33) % below;
}

static void put(Writer *w, const char *text)
{
    size_t n = strlen(text);
    if (w->length + n < ROOM) {
        memcpy(w->text + w->length, text, n);
        w->length += n;
    }
}

static void blank(Writer *w)
{
    static const char *const blanks[] = {" ", "  ", "", "\t", "     "};
    put(w, blanks[draw(w, 5)]);
}

// Where a line may be broken: inside brackets and after an operator.
static void may_break(Writer *w)
{
    static const char *const breaks[] = {" ", "", "\n", "  # why\n", " #\n\n", "\r\n", "\n    # more\n\n\n# and more   \n"};
    put(w, breaks[draw(w, 12) < 8 ? draw(w, 2) : draw(w, 7)]);
}

static void word(Writer *w, const char *text)
{
    put(w, text);
    blank(w);
}

static void name(Writer *w)
{
    static const char *const names[] = {"x", "y", "input", "weight", "split", "N", "T", "conv", "h_1", "data", "pi", "_"};
    put(w, names[draw(w, 12)]);
}

static void expression(Writer *w);

static void arguments(Writer *w)
{
    put(w, "(");
    may_break(w);
    for (unsigned n = draw(w, 3); n > 0; n--) {
        if (draw(w, 3) == 0) {
            put(w, "kernel");
            blank(w);
            put(w, "=");
            may_break(w);
        }
        expression(w);
        may_break(w);
        if (n > 1)
            put(w, ",");
        may_break(w);
    }
    put(w, ")");
}

static void primary(Writer *w)
{
    static const char *const atoms[] = {"1", "0.5", "1e-3", "80%", "5 epochs", "\"a # b\"", "\"{x + 1}.txt\"", "true", "1_000", "@a.{i}.b", "@\"q r\""};
    switch (draw(w, 7)) {
    case 0: put(w, "("); may_break(w); expression(w); may_break(w); put(w, ")"); break;
    case 1: put(w, "["); may_break(w); expression(w); put(w, ","); may_break(w); expression(w); put(w, "]"); break;
    case 2: name(w); arguments(w); if (draw(w, 2)) put(w, " @fc.1"); break;
    case 3: name(w); put(w, "[.., "); expression(w); put(w, draw(w, 2) ? "..]" : "]"); break;
    case 4: name(w); put(w, ".shape"); break;
    case 5: name(w); break;
    default: put(w, atoms[draw(w, 11)]);
    }
}

static void expression(Writer *w)
{
    static const char *const signs[] = {"+", "-", "*", "/", "^", "and", "or", "then", "==", "<"};
    if (w->depth > 6) {
        put(w, "1");
        return;
    }
    w->depth++;
    if (draw(w, 8) == 0)
        put(w, draw(w, 2) ? "-" : "not ");
    primary(w);
    if (draw(w, 3) == 0) {
        unsigned sign = draw(w, 10);
        put(w, " ");
        put(w, signs[sign]);
        put(w, " ");
        may_break(w);
        put(w, "(");
        expression(w);
        put(w, ")");
    }
    w->depth--;
}

static void body(Writer *w);

static void end_line(Writer *w)
{
    static const char *const ends[] = {"\n", "\n\n\n", " # note\n", "      # note, further right  \n", "\r\n", ";", "#\n", "\n  # by itself\n"};
    put(w, ends[draw(w, 8)]);
}

static void statement(Writer *w)
{
    if (w->depth > 5) {
        put(w, "x = 1");
        return;
    }
    w->depth++;
    switch (draw(w, 12)) {
    case 0: word(w, "if"); put(w, " "); expression(w); put(w, " "); body(w); if (draw(w, 2)) { put(w, " else "); body(w); } break;
    case 1: word(w, "repeat"); put(w, " i, k in 0..3 "); body(w); break;
    case 2: put(w, "loop t in 0..T-1 "); body(w); break;
    case 3: put(w, "output x"); blank(w); put(w, "="); blank(w); expression(w); break;
    case 4: put(w, "param width"); blank(w); put(w, "= "); expression(w); break;
    case 5: put(w, "init conv.weight, biases = normal(0.02)"); break;
    case 6: put(w, "x"); blank(w); put(w, ":"); blank(w); put(w, "[N, 3]"); blank(w); put(w, "="); blank(w); expression(w); break;
    case 7: put(w, "train "); body(w); break;
    case 8: put(w, "block f(x, act = relu) "); body(w); break;
    case 9: put(w, "optimizer = adam(lr = 1) "); body(w); break;
    default: name(w); blank(w); put(w, "="); may_break(w); expression(w);
    }
    w->depth--;
}

static void body(Writer *w)
{
    put(w, "{");
    if (draw(w, 4) == 0)
        put(w, "  # opens\n");
    blank(w);
    for (unsigned n = draw(w, 4); n > 0; n--) {
        statement(w);
        end_line(w);
        blank(w);
    }
    put(w, "}");
}

// Any token behind any other.
static void wild(Writer *w)
{
    static const char *const tokens[] = {
        "x", "T", "net", "if", "else", "repeat", "in", "then", "train", "(", ")", "[", "]", "{", "}", "=", ":", ",", "..", "+", "-",
        "^", "<=", "@a.*", "\"s\"", "5%", "3 steps", "0.5", "\n", ";", "# c\n", "for", "until", "not", "@.", " ",
    };
    for (unsigned n = draw(w, 30); n > 0; n--) {
        put(w, tokens[draw(w, sizeof tokens / sizeof tokens[0])]);
        blank(w);
    }
}

int main(int argc, char **argv)
{
    static Writer w;
    int count = argc > 1 ? atoi(argv[1]) : 20000;
    w.state = argc > 2 ? (uint64_t)atoll(argv[2]) : 1;
    for (int i = 0; i < count; i++) {
        w.length = 0;
        w.depth = 0;
        if (i % 4 == 3)
            wild(&w);
        for (unsigned n = draw(&w, 6); i % 4 != 3 && n > 0; n--) {
            statement(&w);
            end_line(&w);
        }
        LLVMFuzzerTestOneInput((const uint8_t *)w.text, w.length);
    }
    printf("%d passed, 0 failed\n", count);
    return 0;
}
