// predict.c: what a trained net says: scores of the parts of its data, or answers to the rows of a file.
//
// Answers are CSV: a column for each output; an output that has as many values as a target has classes gives the class first
// (its label, where there is one), then the values.
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer.h"

void mlrt_score_all(MlrtSession *s, MlrtResult *result)
{
    *result = (MlrtResult){.confusion_part = -1};
    for (int p = 0; p < MLRT_PARTS; p++)
        if (s->data.part[p].rows > 0) {
            mlrt_engine_score(&s->engine, &s->data, &s->data.part[p], s->settings.recipe.batch, (uint64_t)s->state.seed,
                              &result->part[p]);
            result->confusion_part = p;
        }
}

static MlrtStatus flush_output(MlrtError *error)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return mlrt_fail(error, MLRT_DISK, "standard output cannot be written");
    return MLRT_OK;
}

MlrtStatus mlrt_evaluate(MlrtSession *s, MlrtError *error)
{
    MlrtResult result;
    char digest[33];
    mlrt_score_all(s, &result);
    mlrt_weights_digest(&s->engine, digest);
    printf("%s with %s\n\n", s->model->name, s->weights_path);
    mlrt_report_table(stdout, &s->engine, &s->data, &result);
    printf("\n  weights digest %s\n", digest);
    return flush_output(error);
}

// --- prediction --------------------------------------------------------------------------------------------------------

typedef struct Answer {                 // where the lines go
    MlrtWriter *writer;                 // NULL: standard output
    MlrtStatus  status;
    MlrtError  *error;
} Answer;

static void put(Answer *a, const char *text)
{
    if (a->status != MLRT_OK)
        return;
    if (a->writer)
        a->status = mlrt_writer_put(a->writer, text, strlen(text), a->error);
    else if (fputs(text, stdout) == EOF)
        a->status = mlrt_fail(a->error, MLRT_DISK, "standard output cannot be written");
}

static void put_cell(Answer *a, const char *text)
{
    if (!text[strcspn(text, ",\"\n\r")]) {
        put(a, text);
        return;
    }
    put(a, "\"");
    for (; *text; text++) {
        char c[3] = {*text, *text == '"' ? '"' : 0, 0};
        put(a, c);
    }
    put(a, "\"");
}

// The target that an output with `count` values a row decides about, -1: none.
static int target_of(const MlrtModel *m, int64_t count)
{
    for (int p = m->n_inputs; p < m->n_inputs + m->n_targets && count > 1; p++)
        if (m->input[p].below == count || m->input[p].n_labels == count)
            return p;
    return -1;
}

static void put_head(Answer *a, const MlrtSession *s, int output)
{
    const MlrtPort *port = &s->model->output[output];
    int64_t count = mlrt_port_count(port);
    int target = port->rank == 1 ? target_of(s->model, count) : -1;
    char text[64];
    if (target >= 0)
        put_cell(a, s->model->input[target].name);
    for (int64_t i = 0; i < count; i++) {
        const char *label = target >= 0 ? mlrt_dataset_label(&s->data, target, i) : NULL;
        put(a, i || target >= 0 ? "," : "");
        snprintf(text, sizeof text, ".%" PRId64, i);
        char name[512];
        snprintf(name, sizeof name, "%.200s%s%.200s", port->name, label ? "." : "", label ? label : count > 1 ? text : "");
        put_cell(a, name);
    }
}

static double value_at(const MlrtPort *port, const char *at, int64_t i)
{
#define READ(name, c_type)                                                                                                     \
    if (strcmp(port->type, name) == 0)                                                                                         \
        return (double)((const c_type *)(const void *)at)[i];
    READ("f32", float) READ("f64", double) READ("i64", int64_t) READ("i32", int32_t) READ("i16", int16_t) READ("i8", int8_t)
#undef READ
    return ((const uint8_t *)at)[i];
}

static void put_class(Answer *a, const MlrtSession *s, const MlrtPort *port, int target, const char *at)
{
    int64_t best = 0, count = mlrt_port_count(port);
    char number[24];
    for (int64_t i = 1; i < count; i++)
        if (value_at(port, at, i) > value_at(port, at, best))
            best = i;
    const char *label = mlrt_dataset_label(&s->data, target, best);
    snprintf(number, sizeof number, "%" PRId64, best);
    put_cell(a, label ? label : number);
}

static void put_row(Answer *a, const MlrtSession *s, int output, int64_t row)
{
    const MlrtPort *port = &s->model->output[output];
    const char *at = s->engine.eval_out[output] + (port->batched ? row * port->bytes : 0);
    int64_t count = mlrt_port_count(port);
    int target = port->rank == 1 ? target_of(s->model, count) : -1;
    char number[40];
    if (target >= 0)
        put_class(a, s, port, target, at);
    for (int64_t i = 0; i < count; i++) {
        snprintf(number, sizeof number, "%s%.9g", i || target >= 0 ? "," : "", value_at(port, at, i));
        put(a, number);
    }
}

static void put_line(Answer *a, const MlrtSession *s, int64_t row, void (*cells)(Answer *, const MlrtSession *, int, int64_t))
{
    for (int o = 0; o < s->model->n_results; o++) {
        put(a, o ? "," : "");
        if (cells)
            cells(a, s, o, row);
        else
            put_head(a, s, o);
    }
    put(a, "\n");
}

static void answer_all(Answer *a, MlrtSession *s)
{
    const MlrtPart *part = &s->data.part[MLRT_TRAIN];
    int64_t batch = s->settings.recipe.batch;
    put_line(a, s, 0, NULL);
    for (int64_t at = 0; at < part->rows && a->status == MLRT_OK; at += batch) {
        int64_t rows = part->rows - at < batch ? part->rows - at : batch;
        mlrt_engine_gather(&s->engine, &s->data, part->row + at, rows);
        mlrt_engine_eval(&s->engine, rows, (uint64_t)s->state.seed);
        for (int64_t row = 0; row < rows; row++)
            put_line(a, s, row, put_row);
    }
}

MlrtStatus mlrt_predict(MlrtSession *s, MlrtError *error)
{
    MlrtWriter writer;
    const char *path = s->options.out.text;
    Answer answer = {path ? &writer : NULL, MLRT_OK, error};
    if (s->model->n_results == 0)
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s has no outputs to predict", s->model->path);
    if (path && (answer.status = mlrt_writer_begin(&writer, path, error)) != MLRT_OK)
        return answer.status;
    answer_all(&answer, s);
    if (path && answer.status == MLRT_OK)
        answer.status = mlrt_writer_commit(&writer, error);
    if (path)
        mlrt_writer_abandon(&writer);
    return answer.status == MLRT_OK ? flush_output(error) : answer.status;
}
