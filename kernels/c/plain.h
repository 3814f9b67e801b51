// The plain version of each kernel: the loops that define it. The tests judge the fast ones by these.
//
// Sums are kept in double, and beside each stands its magnitude, the sum of the absolute values of its terms: the error
// that a float sum may have is a multiple of it.
#ifndef MLK_PLAIN_H
#define MLK_PLAIN_H

#include "conv2d.h"
#include "pool.h"

// c (m, n) = start (m, n) + a (m, k) b (k, n); `magnitude` gets the sum of absolute terms, for error bounds.
static __attribute__((unused)) void plain_gemm(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row,
                                               int64_t a_step, const float *b, int64_t b_row, int64_t b_column,
                                               double *c, double *magnitude)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t p = 0; p < k; p++) {
                double term = (double)a[i * a_row + p * a_step] * b[p * b_row + j * b_column];
                c[i * n + j] += term;
                magnitude[i * n + j] += term < 0 ? -term : term;
            }
}

// One convolution, seen as all triples (x, weight, y) that meet: for each, *result += first * second in double, where
// result is y, dx or dweight and the other two are given. A NULL among the doubles is not computed.
static __attribute__((unused)) void plain_conv2d(const MlkConv2d *s, const float *x, const float *weight, const float *dy,
                                                 double *y, double *dx, double *dweight, double *magnitude)
{
    int64_t c = s->c / s->groups, oc = s->oc / s->groups;
    for (int64_t n = 0; n < s->n; n++)
        for (int64_t o = 0; o < s->oc; o++)
            for (int64_t i = 0; i < c; i++)
                for (int64_t oy = 0; oy < s->oh; oy++)
                    for (int64_t ox = 0; ox < s->ow; ox++)
                        for (int64_t ky = 0; ky < s->kh; ky++)
                            for (int64_t kx = 0; kx < s->kw; kx++) {
                                int64_t h = oy * s->stride_h + ky * s->dilation_h - s->pad_top;
                                int64_t w = ox * s->stride_w + kx * s->dilation_w - s->pad_left;
                                if (h < 0 || h >= s->h || w < 0 || w >= s->w)
                                    continue;
                                int64_t at_x = ((n * s->c + o / oc * c + i) * s->h + h) * s->w + w;
                                int64_t at_w = ((o * c + i) * s->kh + ky) * s->kw + kx;
                                int64_t at_y = ((n * s->oc + o) * s->oh + oy) * s->ow + ox;
                                int64_t at = y ? at_y : dx ? at_x : at_w;
                                double term = y    ? (double)x[at_x] * weight[at_w]
                                              : dx ? (double)dy[at_y] * weight[at_w]
                                                   : (double)x[at_x] * dy[at_y];
                                (y ? y : dx ? dx : dweight)[at] += term;
                                magnitude[at] += term < 0 ? -term : term;
                            }
}

// The maximum of one window of one plane of x, and which tap it was: the first of several, the first NaN before all.
static __attribute__((unused)) float plain_maxpool2d(const MlkPool2d *s, const float *plane, int64_t oy, int64_t ox,
                                                     int *tap)
{
    float most = 0;
    *tap = -1;
    for (int64_t ky = 0; ky < s->kh; ky++)
        for (int64_t kx = 0; kx < s->kw; kx++) {
            int64_t h = oy * s->stride_h + ky * s->dilation_h - s->pad_top;
            int64_t w = ox * s->stride_w + kx * s->dilation_w - s->pad_left;
            if (h < 0 || h >= s->h || w < 0 || w >= s->w)
                continue;
            float x = plane[h * s->w + w];
            if (*tap < 0 || x > most || (x != x && most == most)) {
                most = x;
                *tap = (int)(ky * s->kw + kx);
            }
        }
    return most;
}

// The sum of one window of one plane of x, and how many pixels it has with and without the padding.
static __attribute__((unused)) double plain_avgpool2d(const MlkPool2d *s, const float *plane, int64_t oy, int64_t ox,
                                                      int *inside, int *padded)
{
    double sum = 0;
    *inside = *padded = 0;
    for (int64_t ky = 0; ky < s->kh; ky++)
        for (int64_t kx = 0; kx < s->kw; kx++) {
            int64_t h = oy * s->stride_h + ky - s->pad_top, w = ox * s->stride_w + kx - s->pad_left;
            *padded += h < s->h + s->pad_top && w < s->w + s->pad_left;
            if (h < 0 || h >= s->h || w < 0 || w >= s->w)
                continue;
            sum += plane[h * s->w + w];
            ++*inside;
        }
    return sum;
}

#endif
