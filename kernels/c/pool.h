// Maximum and average pooling, NCHW, with their gradients.
//
// The maximum's forward pass notes for each result where in its window it was found (ky * kw + kx, one byte; windows of
// more than 255 pixels do not fit, see mlk_maxpool2d_fits), so the gradient only puts values back. Padding and ceil mode
// are the caller's choice of oh and ow; windows are cut off at the image. The first maximum wins and NaN counts as the
// largest, as in PyTorch. A vector of neighbouring results goes through its windows tap by tap; strides 1 and 2 load it
// whole where no tap leaves the image.
#ifndef MLK_POOL_H
#define MLK_POOL_H

#include "vector.h"

// Sizes of a pooling layer. planes = n * c.
typedef struct MlkPool2d {
    int64_t planes, h, w;  // x (planes, h, w)
    int64_t oh, ow;        // y (planes, oh, ow)
    int64_t kh, kw, stride_h, stride_w, pad_top, pad_left, dilation_h, dilation_w;
} MlkPool2d;

#define MLK_POOL_NOWHERE 255  // the window has no pixel in the image

// 1 if a window's positions can be written in the byte that mlk_maxpool2d gives for each result.
MLK_LEAF int mlk_maxpool2d_fits(const MlkPool2d *s) { return s->kh * s->kw <= 255; }

// The columns ox for which tap kx lies in the image, from..end-1.
MLK_LEAF void mlk_pool_columns(const MlkPool2d *s, int64_t kx, int64_t *from, int64_t *end)
{
    int64_t left = s->pad_left - kx * s->dilation_w;  // x = ox * stride - left
    *from = left > 0 ? (left + s->stride_w - 1) / s->stride_w : 0;
    *end = s->w + left > 0 ? mlk_min(s->ow, (s->w + left - 1) / s->stride_w + 1) : 0;
}

typedef int32_t mlk_ints __attribute__((vector_size(4 * MLK_W)));
typedef uint8_t mlk_bytes __attribute__((vector_size(MLK_W)));

// The even ones of 2 * count - 1 floats (count <= MLK_W), the odd ones between them skipped; nothing beyond is read.
MLK_LEAF mlk_v mlk_load_even(const float *from, int64_t count)
{
    int64_t n = 2 * count - 1;
    mlk_v a = n >= MLK_W ? mlk_load(from) : mlk_load_first(from, n);
    mlk_v b = n > MLK_W ? mlk_load_first(from + MLK_W, n - MLK_W) : (mlk_v){0};
#if MLK_W == 16
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
#elif MLK_W == 8
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
#else
    return __builtin_shufflevector(a, b, 0, 2, 4, 6);
#endif
}

// Up to MLK_W neighbouring results, and where their values were found.
typedef struct MlkMaxima {
    mlk_v most;
    mlk_ints tap;  // MLK_POOL_NOWHERE: no pixel yet
} MlkMaxima;

MLK_LEAF void mlk_maxima_add(MlkMaxima *m, mlk_v x, mlk_ints exists, int32_t tap)
{
    mlk_ints larger = (x > m->most) | ((x != x) & (m->most == m->most)) | (m->tap == MLK_POOL_NOWHERE);
    mlk_ints take = larger & exists;
    m->most = (mlk_v)(((mlk_ints)x & take) | ((mlk_ints)m->most & ~take));
    m->tap = ((tap - (mlk_ints){0}) & take) | (m->tap & ~take);
}

// The general tap: lane i sees row[i * stride], and exists if from <= i < end.
MLK_FN void mlk_maxima_add_some(MlkMaxima *m, const float *row, int64_t stride, int64_t from, int64_t end, int32_t tap)
{
    float x[MLK_W] = {0};
    int32_t exists[MLK_W] = {0};
    mlk_ints lanes;
    for (int64_t i = from; i < end; i++) {
        x[i] = row[i * stride];
        exists[i] = -1;
    }
    memcpy(&lanes, exists, sizeof lanes);
    mlk_maxima_add(m, mlk_load(x), lanes, tap);
}

// One row of the window at results first..first+count-1.
MLK_FN void mlk_maxima_add_row(MlkMaxima *m, const MlkPool2d *s, const float *row, int64_t first, int64_t count,
                               int32_t tap)
{
    const mlk_ints all = ~(mlk_ints){0};
    for (int64_t kx = 0; kx < s->kw; kx++, tap++) {
        int64_t from, end, left = first * s->stride_w + kx * s->dilation_w - s->pad_left;
        mlk_pool_columns(s, kx, &from, &end);
        from = mlk_max_of(from - first, 0);
        end = mlk_min(end - first, count);
        if (from > 0 || end < count || s->stride_w > 2)
            mlk_maxima_add_some(m, row + left, s->stride_w, from, end, tap);
        else if (s->stride_w == 2)
            mlk_maxima_add(m, mlk_load_even(row + left, count), all, tap);
        else
            mlk_maxima_add(m, mlk_load_first(row + left, count), all, tap);
    }
}

// One row of results, from row `top` of a plane on.
MLK_FN void mlk_maxpool_row(const MlkPool2d *s, const float *plane, int64_t top, float *y, uint8_t *at)
{
    int64_t ky_first = top < 0 ? (s->dilation_h - 1 - top) / s->dilation_h : 0;
    for (int64_t i = 0; i < s->ow; i += MLK_W) {
        int64_t count = mlk_min(s->ow - i, MLK_W);
        MlkMaxima m = {mlk_all(-__builtin_inff()), MLK_POOL_NOWHERE - (mlk_ints){0}};
        for (int64_t ky = ky_first; ky < s->kh && top + ky * s->dilation_h < s->h; ky++)
            mlk_maxima_add_row(&m, s, plane + (top + ky * s->dilation_h) * s->w, i, count, (int32_t)(ky * s->kw));
        mlk_store_first(y + i, m.most, count);
        mlk_bytes taps = __builtin_convertvector(m.tap, mlk_bytes);
        memcpy(at + i, &taps, (size_t)count);
    }
}

// y (planes, oh, ow) = the largest x of each window; at (planes, oh, ow) = ky * kw + kx of it. A window with nothing
// above -infinity gives its first pixel; one without any pixel -infinity and MLK_POOL_NOWHERE. part of parts: a share of
// the planes.
MLK_FN void mlk_maxpool2d(const MlkPool2d *s, const float *x, float *y, uint8_t *at, int part, int parts)
{
    int64_t row = mlk_share(s->planes, part, parts) * s->oh, end = mlk_share(s->planes, part + 1, parts) * s->oh;
    for (; row < end; row++)
        mlk_maxpool_row(s, x + row / s->oh * s->h * s->w, row % s->oh * s->stride_h - s->pad_top, y + row * s->ow,
                        at + row * s->ow);
}

// dx (planes, h, w) from dy and the positions that mlk_maxpool2d noted. part of parts: a share of the planes.
MLK_FN void mlk_maxpool2d_grad(const MlkPool2d *s, const float *dy, const uint8_t *at, float *dx, int part, int parts)
{
    int64_t plane = mlk_share(s->planes, part, parts), end = mlk_share(s->planes, part + 1, parts);
    int64_t i = plane * s->oh * s->ow, offset[MLK_POOL_NOWHERE];
    for (int64_t tap = 0; tap < s->kh * s->kw && tap < MLK_POOL_NOWHERE; tap++)
        offset[tap] = tap / s->kw * s->dilation_h * s->w + tap % s->kw * s->dilation_w;
    for (; plane < end; plane++) {
        float *to = dx + plane * s->h * s->w;
        memset(to, 0, (size_t)(s->h * s->w) * sizeof *to);
        for (int64_t oy = 0; oy < s->oh; oy++) {
            int64_t corner = (oy * s->stride_h - s->pad_top) * s->w - s->pad_left;
            for (int64_t ox = 0; ox < s->ow; ox++, corner += s->stride_w, i++)
                if (at[i] != MLK_POOL_NOWHERE)
                    to[corner + offset[at[i]]] += dy[i];
        }
    }
}

// What one window's sum is divided by: its pixels in the image or, with count_pad, in the image with pad_top rows above
// and below it and pad_left columns on either side.
MLK_LEAF float mlk_avgpool_count(const MlkPool2d *s, int64_t oy, int64_t ox, int count_pad)
{
    int64_t top = oy * s->stride_h - s->pad_top, left = ox * s->stride_w - s->pad_left;
    int64_t h_end = mlk_min(top + s->kh, s->h + (count_pad ? s->pad_top : 0));
    int64_t w_end = mlk_min(left + s->kw, s->w + (count_pad ? s->pad_left : 0));
    if (!count_pad) {
        top = mlk_max_of(top, 0);
        left = mlk_max_of(left, 0);
    }
    return (float)(mlk_max_of(h_end - top, 0) * mlk_max_of(w_end - left, 0));
}

// y (planes, oh, ow) = the mean of each window; count_pad: zeros of the padding count as pixels. Dilation must be 1.
// part of parts: a share of the planes.
MLK_FN void mlk_avgpool2d(const MlkPool2d *s, const float *x, float *y, int count_pad, int part, int parts)
{
    int64_t row = mlk_share(s->planes, part, parts) * s->oh, end_row = mlk_share(s->planes, part + 1, parts) * s->oh;
    for (; row < end_row; row++) {
        const float *plane = x + row / s->oh * s->h * s->w;
        float *to = y + row * s->ow;
        int64_t oy = row % s->oh, top = oy * s->stride_h - s->pad_top;
        memset(to, 0, (size_t)s->ow * sizeof *to);
        for (int64_t h = mlk_max_of(top, 0); h < mlk_min(top + s->kh, s->h); h++)
            for (int64_t kx = 0; kx < s->kw; kx++) {
                int64_t from, end;
                mlk_pool_columns(s, kx, &from, &end);
                MLK_SIMD for (int64_t i = from; i < end; i++)
                    to[i] += plane[h * s->w + i * s->stride_w + kx - s->pad_left];
            }
        for (int64_t ox = 0; ox < s->ow; ox++)
            to[ox] /= mlk_avgpool_count(s, oy, ox, count_pad);
    }
}

// dx (planes, h, w) from dy. part of parts: a share of the planes.
MLK_FN void mlk_avgpool2d_grad(const MlkPool2d *s, const float *dy, float *dx, int count_pad, int part, int parts)
{
    int64_t plane = mlk_share(s->planes, part, parts), end = mlk_share(s->planes, part + 1, parts);
    for (; plane < end; plane++) {
        float *to = dx + plane * s->h * s->w;
        memset(to, 0, (size_t)(s->h * s->w) * sizeof *to);
        for (int64_t oy = 0; oy < s->oh; oy++)
            for (int64_t ox = 0; ox < s->ow; ox++) {
                float share = dy[(plane * s->oh + oy) * s->ow + ox] / mlk_avgpool_count(s, oy, ox, count_pad);
                int64_t top = oy * s->stride_h - s->pad_top, left = ox * s->stride_w - s->pad_left;
                for (int64_t h = mlk_max_of(top, 0); h < mlk_min(top + s->kh, s->h); h++)
                    for (int64_t w = mlk_max_of(left, 0); w < mlk_min(left + s->kw, s->w); w++)
                        to[h * s->w + w] += share;
            }
    }
}

#endif
