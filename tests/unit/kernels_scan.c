// The steps of an LSTM and their gradient against plain loops in double: odd numbers of units, samples and steps, both
// directions, with and without what is given; parts and samples change no bit.
#include "kernels.h"

#include "../../kernels/c/scan.h"

typedef struct Case {
    MlkScan s;
    int start, cell, dy, dcell;
} Case;

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

// The sequences of one case; the ones that are not given are NULL.
typedef struct Data {
    float *x, *weight, *turned, *start, *cell, *dy, *dcell;
    float *y, *c, *gates, *dx, *dstart, *dfirst;
} Data;

static int64_t time_of(const MlkScan *s, int64_t turn) { return s->reverse ? s->steps - 1 - turn : turn; }

// One sample, forward and back, in double; the largest difference to what the kernels gave.
static double differs(const Case *k, const Data *d, int64_t n)
{
    int64_t h = k->s.units, steps = k->s.steps;
    double *state = take_doubles(h), *cell = take_doubles(h), *gates = take_doubles(steps * 4 * h), *cells = take_doubles((steps + 1) * h);
    double *dh = take_doubles(h), *dc = take_doubles(h), *sums = take_doubles(4 * h), worst = 0;
    for (int64_t j = 0; j < h; j++) {
        state[j] = d->start ? d->start[n * h + j] : 0;
        cells[j] = d->cell ? d->cell[n * h + j] : 0;
    }
    for (int64_t turn = 0; turn < steps; turn++) {
        int64_t at = n * steps + time_of(&k->s, turn);
        double *g = gates + turn * 4 * h;
        for (int64_t j = 0; j < 4 * h; j++) {
            sums[j] = d->x[at * 4 * h + j];
            for (int64_t i = 0; i < h; i++)
                sums[j] += state[i] * d->weight[i * 4 * h + j];
            g[j] = j / h == 2 ? tanh(sums[j]) : sigmoid(sums[j]);
            worst = fmax(worst, fabs(g[j] - d->gates[at * 4 * h + j]));
        }
        for (int64_t j = 0; j < h; j++) {
            double *c = cells + (turn + 1) * h + j;
            *c = g[h + j] * cells[turn * h + j] + g[j] * g[2 * h + j];
            state[j] = g[3 * h + j] * tanh(*c);
            worst = fmax(worst, fmax(fabs(*c - d->c[at * h + j]), fabs(state[j] - d->y[at * h + j])));
        }
    }
    for (int64_t turn = steps - 1; turn >= 0; turn--) {
        int64_t at = n * steps + time_of(&k->s, turn);
        double *g = gates + turn * 4 * h;
        for (int64_t j = 0; j < h; j++) {
            double i = g[j], f = g[h + j], m = g[2 * h + j], o = g[3 * h + j], t = tanh(cells[(turn + 1) * h + j]);
            double p = dh[j] + (d->dy ? d->dy[at * h + j] : 0), r = dc[j] + (d->dcell ? d->dcell[at * h + j] : 0);
            double q = r + p * o * (1 - t * t);
            sums[j] = q * m * i * (1 - i);
            sums[h + j] = q * cells[turn * h + j] * f * (1 - f);
            sums[2 * h + j] = q * i * (1 - m * m);
            sums[3 * h + j] = p * t * o * (1 - o);
            dc[j] = q * f;
        }
        for (int64_t j = 0; j < 4 * h; j++)
            worst = fmax(worst, fabs(sums[j] - d->dx[at * 4 * h + j]));
        for (int64_t j = 0; j < h; j++) {
            dh[j] = 0;
            for (int64_t i = 0; i < 4 * h; i++)
                dh[j] += sums[i] * d->turned[i * h + j];
        }
    }
    for (int64_t j = 0; j < h; j++)
        worst = fmax(worst, fmax(fabs(dh[j] - d->dstart[n * h + j]), fabs(dc[j] - d->dfirst[n * h + j])));
    free(state), free(cell), free(gates), free(cells), free(dh), free(dc), free(sums);
    return worst;
}

static void run(const Case *k, Data *d, int parts)
{
    const MlkScan *s = &k->s;
    int64_t all = s->n * s->steps * s->units;
    d->y = take_unset(all), d->c = take_unset(all), d->gates = take_unset(4 * all), d->dx = take_unset(4 * all);
    d->dstart = take_unset(s->n * s->units), d->dfirst = take_unset(s->n * s->units);
    for (int i = 0; i < parts; i++) {
        float *scratch = take_unset(mlk_lstm_scan_scratch(s));
        mlk_lstm_scan(s, d->x, d->weight, d->start, d->cell, d->y, d->c, d->gates, scratch, part_at(i, parts), parts);
        free(scratch);
    }
    for (int i = 0; i < parts; i++) {
        float *scratch = take_unset(mlk_lstm_scan_grad_scratch(s));
        mlk_lstm_scan_grad(s, d->turned, d->gates, d->c, d->cell, d->dy, d->dcell, d->dx, d->dstart, d->dfirst, scratch,
                           part_at(i, parts), parts);
        free(scratch);
    }
}

static void run_case(const Case *k)
{
    const MlkScan *s = &k->s;
    int64_t h = s->units, all = s->n * s->steps * h;
    Data d = {.x = take_random(4 * all), .weight = take_random(4 * h * h), .turned = take_random(4 * h * h)};
    for (int64_t i = 0; i < h; i++)
        for (int64_t j = 0; j < 4 * h; j++)
            d.turned[j * h + i] = d.weight[i * 4 * h + j];
    d.start = k->start ? take_random(s->n * h) : NULL;
    d.cell = k->cell ? take_random(s->n * h) : NULL;
    d.dy = k->dy ? take_random(all) : NULL;
    d.dcell = k->dcell ? take_random(all) : NULL;
    run(k, &d, 1);
    double worst = 0;
    for (int64_t n = 0; n < s->n; n++)
        worst = fmax(worst, differs(k, &d, n));
    char what[160];
    snprintf(what, sizeof what, "lstm n %d steps %d units %d reverse %d given %d %d %d %d: off by %.3g", (int)s->n, (int)s->steps,
             (int)h, (int)s->reverse, k->start, k->cell, k->dy, k->dcell, worst);
    // gates are below 1 and pass errors on damped; a gradient's sum has 4 h terms below 1
    check(worst <= 2e-6 * (1 + (double)h), what);
    Data other = d;
    run(k, &other, 1 + random_below(4));
    check(same_bits(d.y, other.y, all) && same_bits(d.dx, other.dx, 4 * all) && same_bits(d.dstart, other.dstart, s->n * h),
          "lstm: the number of parts changes bits");
    float *const made[] = {d.x, d.weight, d.turned, d.start, d.cell, d.dy, d.dcell, d.y, d.c, d.gates, d.dx, d.dstart, d.dfirst,
                           other.y, other.c, other.gates, other.dx, other.dstart, other.dfirst};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        free(made[i]);
}

int main(void)
{
    for (int i = 0; i < 150; i++)
        run_case(&(Case){{1 + random_below(19), 1 + random_below(6), 1 + random_below(40), random_below(2)}, random_below(2),
                         random_below(2), random_below(2), random_below(2)});
    run_case(&(Case){{16, 3, 128, 0}, 0, 0, 1, 0});
    return check_summary();
}
