// progress.c: the line  epoch 3/20  412/938 ━━━━╸──  loss 0.2134  lr 8.7e-04  grad 1.32  12.4k img/s  data 2%  0:31<0:40  all 13:20
// `data` is the share of time spent on gathering batches, a<b the time of the epoch so far and still to come, `all` what the
// whole run still takes.
#define _DEFAULT_SOURCE
#include "progress.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { BAR = 10 };

double mlrt_clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

// --color, then NO_COLOR, then CLICOLOR_FORCE or FORCE_COLOR, then whether a person looks at it.
static bool wants_color(const char *when, bool terminal)
{
    if (when && strcmp(when, "auto") != 0)
        return strcmp(when, "always") == 0;
    if (is_set("NO_COLOR"))
        return false;
    return is_set("CLICOLOR_FORCE") || is_set("FORCE_COLOR") || terminal;
}

void mlrt_progress_begin(MlrtProgress *p, const MlrtModel *model, bool quiet, const char *when_color, int64_t step)
{
    const char *term = getenv("TERM");
    bool image =
        model->n_inputs > 0 && (strcmp(model->input[0].name, "image") == 0 || strcmp(model->input[0].name, "pixels") == 0);
    double now = mlrt_clock_now();
    *p = (MlrtProgress){.quiet = quiet, .begun = now, .epoch_begun = now, .shown = now, .first_step = step, .epoch_first = step,
                        .unit = image ? "img/s" : "rows/s"};
    p->terminal = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
    p->color = wants_color(when_color, p->terminal);
}

void mlrt_progress_epoch(MlrtProgress *p, int64_t step)
{
    p->epoch_begun = mlrt_clock_now();
    p->epoch_first = step;
}

MlrtText mlrt_text_time(double seconds)
{
    MlrtText t;
    long long s = seconds > 0 && seconds < 1e12 ? (long long)(seconds + 0.5) : 0;
    if (s < 3600)
        snprintf(t.text, sizeof t.text, "%lld:%02lld", s / 60, s % 60);
    else
        snprintf(t.text, sizeof t.text, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    return t;
}

MlrtText mlrt_text_score(double value)
{
    MlrtText t;
    bool small = value != 0 && fabs(value) < 1e-3, large = fabs(value) >= 1e5;
    snprintf(t.text, sizeof t.text, isnan(value) ? "-" : small || large ? "%.3e" : "%.4f", value);
    return t;
}

MlrtText mlrt_text_count(int64_t count)
{
    MlrtText t;
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRId64, count), used = 0;
    for (int i = 0; i < length; i++) {
        t.text[used++] = digits[i];
        if (i < length - 1 && (length - i - 1) % 3 == 0 && digits[i] != '-')
            t.text[used++] = ',';
    }
    t.text[used] = 0;
    return t;
}

MlrtText mlrt_text_bytes(double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    MlrtText t;
    int unit = 0;
    for (; bytes >= 1024 && unit < 4; unit++)
        bytes /= 1024;
    snprintf(t.text, sizeof t.text, bytes < 10 && unit > 0 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return t;
}

static MlrtText text_rate(double rate)
{
    MlrtText t;
    const char *unit = rate >= 1e6 ? "M" : rate >= 1e4 ? "k" : "";
    double value = rate / (rate >= 1e6 ? 1e6 : rate >= 1e4 ? 1e3 : 1);
    snprintf(t.text, sizeof t.text, value < 100 && *unit ? "%.1f%s" : "%.0f%s", value, unit);
    return t;
}

static void draw_bar(char *to, double done)
{
    int halves = (int)(done * 2 * BAR);
    for (int i = 0; i < BAR; i++)
        to = stpcpy(to, halves >= 2 * i + 2 ? "━" : halves == 2 * i + 1 ? "╸" : "─");
}

// Characters, not bytes: those that go on with one do not count.
static int width_of(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

// The fields from left to right; the first to go where there is no room is the one with the largest number.
typedef struct Field { int leave; char text[160]; } Field;

enum { FIELDS = 9 };

static void fill_fields(const MlrtProgress *p, const MlrtMoment *m, Field field[FIELDS])
{
    char bar[4 * BAR + 1] = "";
    double now = mlrt_clock_now(), spent = now - p->begun, in_epoch = now - p->epoch_begun;
    double per_step = spent / (double)(m->step > p->first_step ? m->step - p->first_step : 1);
    double left = per_step * (double)(m->epoch_steps - m->epoch_step), all = per_step * (double)(m->all_steps - m->step);
    if (p->terminal)
        draw_bar(bar, (double)m->epoch_step / (double)m->epoch_steps);
    static const int leave[FIELDS] = {0, 4, 6, 1, 7, 8, 5, 9, 3};
    for (int i = 0; i < FIELDS; i++)
        field[i].leave = leave[i];
    size_t room = sizeof field->text;
    snprintf(field[0].text, room, "epoch %" PRId64 "/%" PRId64, m->epoch, m->epochs);
    snprintf(field[1].text, room, "%" PRId64 "/%" PRId64, m->epoch_step, m->epoch_steps);
    snprintf(field[2].text, room, "%s", bar);
    snprintf(field[3].text, room, "loss %s", mlrt_text_score(m->loss).text);
    snprintf(field[4].text, room, "lr %.1e", m->lr);
    snprintf(field[5].text, room, "grad %.2f", m->norm);
    snprintf(field[6].text, room, "%s %s", text_rate((double)m->rows / (per_step > 0 ? per_step : 1e-9)).text, p->unit);
    snprintf(field[7].text, room, "data %.0f%%", spent > 0 ? 100 * p->waited / spent : 0);
    snprintf(field[8].text, room, "%s<%s  all %s", mlrt_text_time(in_epoch).text, mlrt_text_time(left).text,
             mlrt_text_time(all).text);
}

// The fields that fit into so many characters, two blanks between them (one before the bar).
static void line_text(const MlrtProgress *p, const MlrtMoment *m, int columns, char *line, size_t size)
{
    Field field[FIELDS];
    int width = 0, least = FIELDS + 1;
    fill_fields(p, m, field);
    for (int i = 0; i < FIELDS; i++)
        width += field[i].text[0] ? width_of(field[i].text) + (i == 0 ? 0 : i == 2 ? 1 : 2) : 0;
    while (width > columns && least > 1) {
        least--;
        for (int i = 1; i < FIELDS; i++)
            width -= field[i].leave == least && field[i].text[0] ? width_of(field[i].text) + (i == 2 ? 1 : 2) : 0;
    }
    size_t used = 0;
    for (int i = 0; i < FIELDS; i++)
        if (field[i].text[0] && field[i].leave < least && used < size)
            used += (size_t)snprintf(line + used, size - used, "%s%s", i == 0 ? "" : i == 2 ? " " : "  ", field[i].text);
}

static int terminal_columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col - 1 : 79;
}

void mlrt_progress_step(MlrtProgress *p, const MlrtMoment *m)
{
    double now = mlrt_clock_now();
    char line[800];
    if (p->quiet || now - p->shown < (p->terminal ? 0.1 : 30))
        return;
    p->shown = now;
    line_text(p, m, p->terminal ? terminal_columns() : INT_MAX, line, sizeof line);
    if (p->terminal) {
        fprintf(stderr, "\r%s\033[K", line);
        p->drawn = true;
    } else
        fprintf(stderr, "%s\n", line);
}

void mlrt_progress_end(MlrtProgress *p)
{
    if (p->drawn)
        fputs("\r\033[K", stderr);
    p->drawn = false;
}

void mlrt_progress_line(MlrtProgress *p, const char *format, ...)
{
    va_list args;
    if (p->quiet)
        return;
    mlrt_progress_end(p);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    p->shown = mlrt_clock_now();
}

void mlrt_say(const MlrtProgress *p, const char *program, const char *kind, const char *format, ...)
{
    const char *slash = strrchr(program, '/'), *tint = strcmp(kind, "error") == 0 ? "\033[1;31m" : "\033[1m";
    va_list args;
    if (p->drawn)
        fputs("\r\033[K", stderr);
    fprintf(stderr, "%s: %s%s:%s ", slash ? slash + 1 : program, p->color ? tint : "", kind, p->color ? "\033[0m" : "");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}
