// The steps of an LSTM layer in one direction, and their gradient: at each step one small product for all samples of the
// share, then the gates element by element.
//
// The weights are copied into panels once and then stream from the cache at each step; the states of the step lie close
// together beside them, since rows of the sequences are so far apart that they would share lines of the cache. A sum is one
// chain that begins with x: bits do not depend on samples or parts. Considered: one product over all samples and units of
// several steps, which a recurrence does not allow; walking the weights backwards on odd steps, a few per cent where they
// just miss a cache.
#ifndef MLK_SCAN_H
#define MLK_SCAN_H

#include "gemm.h"
#include "math.h"

typedef struct MlkScan {
    int64_t n, steps, units;
    int64_t reverse;  // from the last step to the first
} MlkScan;

enum { MLK_SCAN_PAD = 16, MLK_SCAN_ROWS = 8 };  // floats between states; samples that a share is better a multiple of

// Copies a matrix (k, columns) to panels.
MLK_FN void mlk_scan_pack(int64_t k, int64_t columns, const float *b, float *to)
{
    for (int64_t j = 0; j < columns; j += MLK_PANEL)
        mlk_pack(k, mlk_min(columns - j, MLK_PANEL), b + j, columns, to + j * k);
}

// c = start (or 0) + a (rows, k) times the panels.
MLK_FN void mlk_scan_product(int64_t rows, int64_t k, int64_t columns, const float *a, int64_t a_row, const float *panels,
                             const float *start, float *c, int64_t c_row)
{
    for (int64_t j = 0; j < columns; j += MLK_PANEL) {
        MlkTile t = {.k = k, .a = a, .a_row = a_row, .a_step = 1, .b = panels + j * k, .b_row = MLK_PANEL,
                     .start = start ? start + j : NULL, .start_row = c_row, .c = c + j, .c_row = c_row, .rows = rows,
                     .columns = mlk_min(columns - j, MLK_PANEL)};
        mlk_panel(&t);
    }
}

MLK_LEAF int64_t mlk_scan_panels(int64_t k, int64_t columns) { return (columns + MLK_PANEL - 1) / MLK_PANEL * MLK_PANEL * k; }

// The gates of one sample and step: sums to gates in place, the new cell and state.
MLK_FN void mlk_lstm_cell(int64_t h, float *gates, const float *before, float *c, float *y, float *state)
{
    float *in = gates, *forget = gates + h, *made = gates + 2 * h, *out = gates + 3 * h;
    MLK_SIMD for (int64_t j = 0; j < h; j++) {
        float i = mlk_sigmoid(in[j]), f = mlk_sigmoid(forget[j]), g = mlk_tanh(made[j]), o = mlk_sigmoid(out[j]);
        float cell = f * (before ? before[j] : 0.0f) + i * g;
        in[j] = i;
        forget[j] = f;
        made[j] = g;
        out[j] = o;
        c[j] = cell;
        y[j] = state[j] = o * mlk_tanh(cell);
    }
}

// Scratch floats for each worker.
MLK_FN int64_t mlk_lstm_scan_scratch(const MlkScan *s)
{
    return mlk_scan_panels(s->units, 4 * s->units) + s->n * (s->units + MLK_SCAN_PAD);
}

// x (n, steps, 4 units) are the inputs' products with the gates i, f, g, o; weight (units, 4 units); start and cell
// (n, units) or NULL for 0. Gives y and c (n, steps, units), and the gates (n, steps, 4 units). part of parts: a share of
// the samples.
MLK_FN void mlk_lstm_scan(const MlkScan *s, const float *x, const float *weight, const float *start, const float *cell, float *y,
                          float *c, float *gates, float *scratch, int part, int parts)
{
    int64_t h = s->units, first = mlk_share(s->n, part, parts), rows = mlk_share(s->n, part + 1, parts) - first;
    int64_t pitch = h + MLK_SCAN_PAD, sample = s->steps * h;
    float *panels = scratch, *state = scratch + mlk_scan_panels(h, 4 * h);
    if (rows == 0)
        return;
    mlk_scan_pack(h, 4 * h, weight, panels);
    for (int64_t i = 0; start && i < rows; i++)
        mlk_copy(state + i * pitch, start + (first + i) * h, h);
    for (int64_t turn = 0; turn < s->steps; turn++) {
        int64_t time = s->reverse ? s->steps - 1 - turn : turn, before = s->reverse ? time + 1 : time - 1;
        int64_t at = first * sample * 4 + time * 4 * h;
        if (turn > 0 || start)
            mlk_scan_product(rows, h, 4 * h, state, pitch, panels, x + at, gates + at, sample * 4);
        for (int64_t i = 0; i < rows; i++) {
            float *own = gates + at + i * sample * 4;
            int64_t row = (first + i) * sample;
            if (turn == 0 && !start)
                mlk_copy(own, x + at + i * sample * 4, 4 * h);
            mlk_lstm_cell(h, own, turn > 0 ? c + row + before * h : cell ? cell + (first + i) * h : NULL, c + row + time * h,
                          y + row + time * h, state + i * pitch);
        }
    }
}

// One sample and step, back: the gradients of the sums, and of the cell before. dy, dc_more: of this step's y and c, or NULL.
MLK_FN void mlk_lstm_cell_back(int64_t h, const float *gates, const float *c, const float *before, const float *dy,
                               const float *dc_more, const float *dh, float *dc, float *dx, float *state)
{
    const float *in = gates, *forget = gates + h, *made = gates + 2 * h, *out = gates + 3 * h;
    MLK_SIMD for (int64_t j = 0; j < h; j++) {
        float i = in[j], f = forget[j], g = made[j], o = out[j], t = mlk_tanh(c[j]);
        float p = dy ? dh[j] + dy[j] : dh[j], r = dc_more ? dc[j] + dc_more[j] : dc[j];
        float q = r + p * o * (1.0f - t * t);
        dx[j] = state[j] = q * g * i * (1.0f - i);
        dx[j + h] = state[j + h] = q * (before ? before[j] : 0.0f) * f * (1.0f - f);
        dx[j + 2 * h] = state[j + 2 * h] = q * i * (1.0f - g * g);
        dx[j + 3 * h] = state[j + 3 * h] = p * t * o * (1.0f - o);
        dc[j] = q * f;
    }
}

MLK_FN int64_t mlk_lstm_scan_grad_scratch(const MlkScan *s)
{
    return mlk_scan_panels(4 * s->units, s->units) + s->n * (4 * s->units + MLK_SCAN_PAD);
}

// The gradient: turned (4 units, units) is the weights' transpose; gates and c of the forward steps, cell as there; dy and
// dcell (n, steps, units) or NULL. Gives dx (n, steps, 4 units), and dstart and dfirst (n, units) of the first state and cell.
MLK_FN void mlk_lstm_scan_grad(const MlkScan *s, const float *turned, const float *gates, const float *c, const float *cell,
                               const float *dy, const float *dcell, float *dx, float *dstart, float *dfirst, float *scratch,
                               int part, int parts)
{
    int64_t h = s->units, first = mlk_share(s->n, part, parts), rows = mlk_share(s->n, part + 1, parts) - first;
    int64_t pitch = 4 * h + MLK_SCAN_PAD, sample = s->steps * h;
    float *panels = scratch, *state = scratch + mlk_scan_panels(4 * h, h), *dh = dstart + first * h, *dc = dfirst + first * h;
    if (rows == 0)
        return;
    mlk_scan_pack(4 * h, h, turned, panels);
    memset(dh, 0, (size_t)(rows * h) * sizeof *dh);
    memset(dc, 0, (size_t)(rows * h) * sizeof *dc);
    for (int64_t turn = s->steps - 1; turn >= 0; turn--) {
        int64_t time = s->reverse ? s->steps - 1 - turn : turn, before = s->reverse ? time + 1 : time - 1;
        for (int64_t i = 0; i < rows; i++) {
            int64_t row = (first + i) * sample, at = row + time * h;
            mlk_lstm_cell_back(h, gates + 4 * at, c + at, turn > 0 ? c + row + before * h : cell ? cell + (first + i) * h : NULL,
                               dy ? dy + at : NULL, dcell ? dcell + at : NULL, dh + i * h, dc + i * h, dx + 4 * at,
                               state + i * pitch);
        }
        mlk_scan_product(rows, 4 * h, h, state, pitch, panels, NULL, dh, h);
    }
}

#endif
