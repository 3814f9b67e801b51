// Maximum and average pooling, NCHW, with their gradients.
//
// The maximum's forward pass notes for each result where in its window it was found (ky * kw + kx, one byte; windows of
// more than 255 pixels do not fit, see mlk_maxpool2d_fits), so the gradient only puts values back. Padding and ceil mode
// are the caller's choice of oh and ow; windows are cut off at the image. The first maximum wins and NaN counts as the
// largest, as in PyTorch. A row of results is computed with the window outside and the columns inside, so that the inner
// loop has no branch and becomes vector code.
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

// One tap of one row of results: keeps what is larger, or the first NaN.
MLK_LEAF void mlk_maxpool_tap(int64_t from, int64_t end, const float *x, int64_t left, int64_t stride, float *y,
                              uint8_t *at, int tap)
{
    MLK_SIMD for (int64_t i = from; i < end; i++) {
        float v = x[i * stride + left], old = y[i];
        int take = (v > old) | ((v != v) & (old == old));
        uint32_t mask = 0u - (uint32_t)take, bits, old_bits;
        memcpy(&bits, &v, sizeof bits);
        memcpy(&old_bits, &old, sizeof old_bits);
        bits = (bits & mask) | (old_bits & ~mask);
        memcpy(&y[i], &bits, sizeof bits);
        at[i] = (uint8_t)((tap & (int)mask) | (at[i] & (int)~mask));
    }
}

// The first tap of a window that begins at pixel `start` and lies in the image; -1 if none does.
MLK_LEAF int64_t mlk_pool_first(int64_t start, int64_t taps, int64_t dilation, int64_t size)
{
    int64_t tap = start < 0 ? (dilation - 1 - start) / dilation : 0;
    return tap < taps && start + tap * dilation < size ? tap : -1;
}

// One row of results, from row `top` of a plane on. Each begins as -infinity at its window's first pixel.
MLK_FN void mlk_maxpool_row(const MlkPool2d *s, const float *plane, int64_t top, float *y, uint8_t *at)
{
    int64_t ky = mlk_pool_first(top, s->kh, s->dilation_h, s->h);
    for (int64_t i = 0; i < s->ow; i++) {
        int64_t kx = mlk_pool_first(i * s->stride_w - s->pad_left, s->kw, s->dilation_w, s->w);
        y[i] = -__builtin_inff();
        at[i] = (uint8_t)(ky < 0 || kx < 0 ? MLK_POOL_NOWHERE : ky * s->kw + kx);
    }
    for (; ky >= 0 && ky < s->kh && top + ky * s->dilation_h < s->h; ky++)
        for (int64_t kx = 0; kx < s->kw; kx++) {
            int64_t from, end, left = kx * s->dilation_w - s->pad_left;
            const float *row = plane + (top + ky * s->dilation_h) * s->w;
            int tap = (int)(ky * s->kw + kx);
            mlk_pool_columns(s, kx, &from, &end);
            if (s->stride_w == 1)
                mlk_maxpool_tap(from, end, row, left, 1, y, at, tap);
            else if (s->stride_w == 2)
                mlk_maxpool_tap(from, end, row, left, 2, y, at, tap);
            else
                mlk_maxpool_tap(from, end, row, left, s->stride_w, y, at, tap);
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
    for (; plane < end; plane++) {
        float *to = dx + plane * s->h * s->w;
        memset(to, 0, (size_t)(s->h * s->w) * sizeof *to);
        for (int64_t oy = 0; oy < s->oh; oy++)
            for (int64_t ox = 0; ox < s->ow; ox++) {
                int64_t i = (plane * s->oh + oy) * s->ow + ox, ky = at[i] / s->kw, kx = at[i] % s->kw;
                int64_t h = oy * s->stride_h + ky * s->dilation_h - s->pad_top;
                int64_t w = ox * s->stride_w + kx * s->dilation_w - s->pad_left;
                if (at[i] != MLK_POOL_NOWHERE)
                    to[h * s->w + w] += dy[i];
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
