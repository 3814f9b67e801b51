// report.c: tables and curves. The report is one file with the curves as SVG and no script; metrics.csv is what it is drawn
// from, so a resumed run needs no history of its own.
#define _POSIX_C_SOURCE 200809L
#include "report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "progress.h"

enum { TEXT_CLASSES = 20, HTML_CLASSES = 64 };

// --- what both forms need ----------------------------------------------------------------------------------------------

static bool is_number(const MlrtModel *model, int metric)
{
    const MlrtPort *port = &model->output[model->metric[metric].port];
    return strcmp(model->metric[metric].finish, "confusion") != 0 &&
           (mlrt_port_count(port) == 1 || *model->metric[metric].finish);
}

// The name of a class, from the target that has as many.
static const char *class_name(const MlrtDataset *data, int64_t classes, int64_t code, char number[24])
{
    const MlrtModel *m = data->model;
    for (int p = m->n_inputs; p < m->n_inputs + m->n_targets; p++) {
        const char *label =
            m->input[p].below == classes || m->input[p].n_labels == classes ? mlrt_dataset_label(data, p, code) : NULL;
        if (label)
            return label;
    }
    snprintf(number, 24, "%" PRId64, code);
    return number;
}

static void number_text(char text[32], double value)
{
    snprintf(text, 32, "%.31s", mlrt_text_score(value).text);
}

// --- standard output ---------------------------------------------------------------------------------------------------

static void table_row(FILE *out, const MlrtModel *model, const char *name, const MlrtScores *scores)
{
    char text[32];
    number_text(text, scores->loss);
    fprintf(out, "  %-8s %10s  %10s", name, mlrt_text_count(scores->rows).text, text);
    for (int i = 0; i < model->n_metrics; i++)
        if (is_number(model, i)) {
            number_text(text, scores->metric[i]);
            fprintf(out, "  %10s", text);
        }
    fputc('\n', out);
}

static int label_width(const MlrtDataset *data, int64_t classes, const double *sum)
{
    char number[24];
    int width = 3;
    for (int64_t c = 0; c < classes; c++) {
        int length = (int)strnlen(class_name(data, classes, c, number), 12);
        width = length > width ? length : width;
    }
    for (int64_t i = 0; i < classes * classes; i++) {
        int length = snprintf(number, sizeof number, "%.0f", sum[i]);
        width = length > width ? length : width;
    }
    return width;
}

static void confusion_text(FILE *out, const MlrtDataset *data, const char *title, int64_t classes, const double *sum)
{
    char number[24];
    int width = label_width(data, classes, sum);
    fprintf(out, "\n%s (rows: what it is, columns: what was predicted)\n  %-*s", title, width, "");
    for (int64_t c = 0; c < classes; c++)
        fprintf(out, " %*.12s", width, class_name(data, classes, c, number));
    fputc('\n', out);
    for (int64_t r = 0; r < classes; r++) {
        fprintf(out, "  %*.12s", width, class_name(data, classes, r, number));
        for (int64_t c = 0; c < classes; c++)
            if (sum[r * classes + c] == 0)
                fprintf(out, " %*s", width, ".");
            else
                fprintf(out, " %*.0f", width, sum[r * classes + c]);
        fputc('\n', out);
    }
}

void mlrt_report_table(FILE *out, const MlrtEngine *e, const MlrtDataset *data, const MlrtResult *result)
{
    const MlrtModel *m = e->model;
    fprintf(out, "  %-8s %10s  %10s", "", "samples", "loss");
    for (int i = 0; i < m->n_metrics; i++)
        if (is_number(m, i))
            fprintf(out, "  %10s", m->metric[i].name);
    fputc('\n', out);
    for (int p = 0; p < MLRT_PARTS; p++)
        if (result->part[p].rows > 0)
            table_row(out, m, data->part[p].name, &result->part[p]);
    for (int i = 0; i < m->n_metrics && result->confusion_part >= 0; i++) {
        int64_t count, classes = mlrt_confusion_classes(&m->metric[i], &m->output[m->metric[i].port]);
        char title[64];
        snprintf(title, sizeof title, "%.24s of the %s part", m->metric[i].name, data->part[result->confusion_part].name);
        if (classes > 0 && classes <= TEXT_CLASSES)
            confusion_text(out, data, title, classes, mlrt_engine_total(e, i, &count));
    }
}

// --- HTML --------------------------------------------------------------------------------------------------------------

static void put_html(FILE *out, const char *text)
{
    for (; *text; text++)
        if (*text == '<' || *text == '>' || *text == '&' || *text == '"')
            fprintf(out, "&#%d;", *text);
        else
            fputc(*text, out);
}

typedef struct Curves { double *value; size_t rows; int columns; MlrtCsv *csv; } Curves;    // all of metrics.csv

typedef struct Box { double x0, x1, y0, y1; } Box;      // the values at the edges of a picture

enum { WIDTH = 640, HEIGHT = 240, LEFT = 56, BOTTOM = 28, TOP = 12 };

static double cell(const Curves *c, size_t row, int column) { return c->value[row * (size_t)c->columns + (size_t)column]; }

static double place_x(const Box *box, double x) { return LEFT + (x - box->x0) / (box->x1 - box->x0) * (WIDTH - LEFT - 12); }
static double place_y(const Box *box, double y)
{
    return HEIGHT - BOTTOM - (y - box->y0) / (box->y1 - box->y0) * (HEIGHT - BOTTOM - TOP);
}

static Box find_box(const Curves *c, const int *column, int count)
{
    Box box = {0, 1, INFINITY, -INFINITY};
    for (size_t r = 0; r < c->rows; r++) {
        box.x1 = fmax(box.x1, cell(c, r, 0));
        for (int i = 0; i < count; i++)
            if (isfinite(cell(c, r, column[i]))) {
                box.y0 = fmin(box.y0, cell(c, r, column[i]));
                box.y1 = fmax(box.y1, cell(c, r, column[i]));
            }
    }
    if (!(box.y0 <= box.y1))
        box.y0 = 0, box.y1 = 1;
    double margin = box.y1 > box.y0 ? 0.05 * (box.y1 - box.y0) : 0.5;
    box.y0 -= margin;
    box.y1 += margin;
    return box;
}

static void put_axes(FILE *out, const Box *box)
{
    for (int i = 0; i <= 4; i++) {
        double y = box->y0 + (box->y1 - box->y0) * i / 4, x = box->x0 + (box->x1 - box->x0) * i / 4;
        fprintf(out, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT, WIDTH - 12, place_y(box, y),
                place_y(box, y));
        fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.3g</text>", LEFT - 6, place_y(box, y) + 4, y);
        fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>\n", place_x(box, x), HEIGHT - 8, x);
    }
}

// At most 1,000 points of a curve are drawn.
static void put_curve(FILE *out, const Curves *c, const Box *box, int column, int nth)
{
    size_t skip = c->rows / 1000 + 1;
    fprintf(out, "<polyline class=\"c%d\" points=\"", nth);
    for (size_t r = 0; r < c->rows; r += r + 1 == c->rows || r + skip < c->rows ? skip : c->rows - 1 - r)
        if (isfinite(cell(c, r, column)))
            fprintf(out, "%.1f,%.1f ", place_x(box, cell(c, r, 0)), place_y(box, cell(c, r, column)));
    fprintf(out, "\"/>\n");
}

static void put_picture(FILE *out, const Curves *c, const char *title, const int *column, int count)
{
    Box box = find_box(c, column, count);
    fputs("<h2>", out);
    put_html(out, title);
    fputs("</h2>\n<p>", out);
    for (int i = 0; i < count; i++) {
        fprintf(out, "<span class=\"k%d\">&#9632;</span> ", i);
        put_html(out, mlrt_csv_name(c->csv, column[i]));
        fputs(" &nbsp; ", out);
    }
    fprintf(out, "</p>\n<svg viewBox=\"0 0 %d %d\" width=\"%d\" role=\"img\">\n", WIDTH, HEIGHT, WIDTH);
    put_axes(out, &box);
    for (int i = 0; i < count; i++)
        put_curve(out, c, &box, column[i], i);
    fputs("</svg>\n", out);
}

// Columns of metrics.csv: step, epoch, lr, train_loss, valid_loss, metrics …, seconds.
static void put_pictures(FILE *out, const Curves *c)
{
    put_picture(out, c, "Loss", (int[]){3, 4}, 2);
    for (int i = 5; i < c->columns - 1; i++)
        put_picture(out, c, mlrt_csv_name(c->csv, i), &i, 1);
    put_picture(out, c, "Learning rate", (int[]){2}, 1);
}

static void put_scores(FILE *out, const MlrtDataset *data, const MlrtResult *result)
{
    const MlrtModel *m = data->model;
    char text[32];
    fputs("<h2>Result with the best weights</h2>\n<table><tr><th></th><th>samples</th><th>loss</th>", out);
    for (int i = 0; i < m->n_metrics; i++)
        if (is_number(m, i)) {
            fputs("<th>", out);
            put_html(out, m->metric[i].name);
            fputs("</th>", out);
        }
    fputs("</tr>\n", out);
    for (int p = 0; p < MLRT_PARTS; p++) {
        if (result->part[p].rows == 0)
            continue;
        number_text(text, result->part[p].loss);
        fprintf(out, "<tr><th>%s</th><td>%" PRId64 "</td><td>%s</td>", data->part[p].name, result->part[p].rows, text);
        for (int i = 0; i < m->n_metrics; i++)
            if (is_number(m, i)) {
                number_text(text, result->part[p].metric[i]);
                fprintf(out, "<td>%s</td>", text);
            }
        fputs("</tr>\n", out);
    }
    fputs("</table>\n", out);
}

static double largest(const double *sum, int64_t count)
{
    double most = 1;
    for (int64_t i = 0; i < count; i++)
        most = fmax(most, sum[i]);
    return most;
}

static void put_confusion(FILE *out, const MlrtDataset *data, const char *title, int64_t classes, const double *sum)
{
    char number[24];
    double most = largest(sum, classes * classes);
    fputs("<h2>", out);
    put_html(out, title);
    fputs("</h2>\n<p>Rows: what it is. Columns: what was predicted.</p>\n<table class=\"matrix\"><tr><th></th>", out);
    for (int64_t c = 0; c < classes; c++) {
        fputs("<th>", out);
        put_html(out, class_name(data, classes, c, number));
        fputs("</th>", out);
    }
    for (int64_t r = 0; r < classes; r++) {
        fputs("</tr>\n<tr><th>", out);
        put_html(out, class_name(data, classes, r, number));
        fputs("</th>", out);
        for (int64_t c = 0; c < classes; c++) {
            double value = sum[r * classes + c];
            fprintf(out, "<td style=\"background:rgba(%s,%.2f)\">%.0f</td>", r == c ? "0,120,60" : "200,40,20",
                    0.8 * value / most, value);
        }
    }
    fputs("</tr></table>\n", out);
}

static void put_confusions(FILE *out, const MlrtEngine *e, const MlrtDataset *data)
{
    const MlrtModel *m = e->model;
    for (int i = 0; i < m->n_metrics; i++) {
        int64_t count, classes = mlrt_confusion_classes(&m->metric[i], &m->output[m->metric[i].port]);
        if (classes > 0 && classes <= HTML_CLASSES)
            put_confusion(out, data, m->metric[i].name, classes, mlrt_engine_total(e, i, &count));
    }
}

static void put_settings(FILE *out, const MlrtSettings *settings)
{
    char text[1100];
    fputs("<h2>Recipe</h2>\n<table>\n", out);
    for (int i = 0; i < settings->count; i++) {
        mlrt_settings_text(settings, &settings->setting[i], text, sizeof text);
        fputs("<tr><th>", out);
        put_html(out, settings->setting[i].key);
        fputs("</th><td>", out);
        put_html(out, text);
        fputs("</td><td>", out);
        put_html(out, settings->setting[i].origin);
        fputs("</td></tr>\n", out);
    }
    fputs("</table>\n", out);
}

static const char style[] =
    "body{font:15px/1.4 sans-serif;max-width:720px;margin:2em auto;padding:0 1em;color:#222}svg{max-width:100%}"
    "text{font:11px sans-serif;fill:#666}.grid{stroke:#ddd}polyline{fill:none;stroke-width:1.6}"
    ".c0{stroke:#1668b4}.c1{stroke:#d0571a}.k0{color:#1668b4}.k1{color:#d0571a}"
    "table{border-collapse:collapse}td,th{padding:2px 8px;text-align:right;font-weight:normal}th{color:#666}"
    ".matrix td{min-width:2em;text-align:center}";

static void put_page(FILE *out, const MlrtFolder *folder, const MlrtEngine *e, const MlrtDataset *data,
                     const MlrtSettings *settings, const MlrtResult *result, const Curves *curves)
{
    fputs("<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>", out);
    put_html(out, folder->path);
    fprintf(out, "</title>\n<style>%s</style>\n<h1>", style);
    put_html(out, e->model->name);
    fputs("</h1>\n<p>", out);
    put_html(out, e->model->summary);
    fputs("<br>", out);
    put_html(out, folder->path);
    fputs("</p>\n", out);
    if (result)
        put_scores(out, data, result);
    if (curves->rows > 0)
        put_pictures(out, curves);
    if (!result || result->confusion_part >= 0)
        put_confusions(out, e, data);
    put_settings(out, settings);
    fputs("</html>\n", out);
}

static MlrtStatus read_curves(const MlrtFolder *folder, const char *path, Curves *c, MlrtError *error)
{
    int column[MLRT_PORTS + 8];
    MlrtCsvOptions options = {.header = MLRT_HEADER_YES, .allow_nonfinite = true};
    *c = (Curves){0};
    if (strchr(path, '\n') || folder->metrics.bytes == 0)
        return MLRT_OK;
    MlrtStatus status = mlrt_csv_open(path, &options, &c->csv, error);
    if (status != MLRT_OK)              // no evaluation yet: a header alone is no table
        return c->csv = NULL, MLRT_OK;
    c->columns = mlrt_csv_columns(c->csv) < MLRT_PORTS + 8 ? mlrt_csv_columns(c->csv) : MLRT_PORTS + 8;
    c->rows = mlrt_csv_rows(c->csv);
    for (int i = 0; i < c->columns; i++)
        column[i] = i;
    c->value = mlrt_alloc_array(c->rows * (size_t)c->columns, sizeof *c->value);
    if (!c->value)
        return mlrt_fail_memory(error, c->rows, path);
    return mlrt_csv_numbers(c->csv, column, c->columns, MLRT_f64, c->value, error);
}

MlrtStatus mlrt_report_html(const MlrtFolder *folder, const MlrtEngine *e, const MlrtDataset *data, const MlrtSettings *settings,
                            const MlrtResult *result, MlrtError *error)
{
    Curves curves;
    char *text = NULL;
    size_t bytes = 0;
    MlrtPath metrics = mlrt_folder_file(folder, "metrics.csv");
    MlrtStatus status = read_curves(folder, metrics.text, &curves, error);
    FILE *out = status == MLRT_OK ? open_memstream(&text, &bytes) : NULL;
    if (out)
        put_page(out, folder, e, data, settings, result, &curves);
    if (status == MLRT_OK && (!out || fclose(out) != 0))
        status = mlrt_fail_memory(error, bytes, "report.html");
    if (status == MLRT_OK)
        status = mlrt_file_write(mlrt_folder_file(folder, "report.html").text, text, bytes, error);
    free(text);
    free(curves.value);
    if (curves.csv)
        mlrt_csv_close(curves.csv);
    return status;
}

// --- the model card ----------------------------------------------------------------------------------------------------

static void put_card_metrics(FILE *out, const MlrtDataset *data, const MlrtResult *result)
{
    const MlrtModel *m = data->model;
    fputs("metrics:\n", out);
    for (int p = 0; p < MLRT_PARTS; p++) {
        if (result->part[p].rows == 0)
            continue;
        fprintf(out, "  %s: {samples: %" PRId64 ", loss: %.6g", data->part[p].name, result->part[p].rows, result->part[p].loss);
        for (int i = 0; i < m->n_metrics; i++)
            if (is_number(m, i))
                fprintf(out, ", %s: %.6g", m->metric[i].name, result->part[p].metric[i]);
        fputs("}\n", out);
    }
}

static void put_card(FILE *out, const MlrtEngine *e, const MlrtDataset *data, const MlrtSettings *settings,
                     const MlrtState *state, double seconds, const MlrtResult *result)
{
    const MlrtModel *m = e->model;
    char digest[33];
    mlrt_weights_digest(e, digest);
    fprintf(out, "---\nlicense:  # to be filled in before the weights are given away\nmodel: %s\ncompiler: \"mlc %s\"\n",
            m->name, m->version);
    fprintf(out, "fingerprint: %s\nweights_digest: %s\ndata_digest: %s\n", m->fingerprint, digest,
            data->digest[0] ? data->digest : "none");
    fprintf(out, "seed: %" PRId64 "\nsteps: %" PRId64 "\nbest_step: %" PRId64 "\n", state->seed, state->step, state->best_step);
    put_card_metrics(out, data, result);
    fprintf(out, "---\n\n# %s\n\n%s\n\n", m->name, m->summary);
    fprintf(out,
            "Trained by %s from `%s` (kept here as `model.net`) with the recipe in `config.yaml`, for %" PRId64
            " epochs in %s.\n",
            settings->recipe.optimizer, m->path, state->epoch, mlrt_text_time(seconds).text);
    fputs("`weights/best.safetensors` holds the parameters under their names; `report.html` shows how training went.\n\n"
          "The licence above is empty: say what may be done with these weights, and what data they were made from.\n", out);
}

MlrtStatus mlrt_report_card(const MlrtFolder *folder, const MlrtEngine *e, const MlrtDataset *data, const MlrtSettings *settings,
                            const MlrtState *state, double seconds, const MlrtResult *result, MlrtError *error)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (out)
        put_card(out, e, data, settings, state, seconds, result);
    MlrtStatus status = MLRT_OK;
    if (!out || fclose(out) != 0)
        status = mlrt_fail_memory(error, bytes, "README.md");
    else
        status = mlrt_file_write(mlrt_folder_file(folder, "README.md").text, text, bytes, error);
    free(text);
    return status;
}
