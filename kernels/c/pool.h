// Maximum and average pooling, NCHW, with their gradients.
//
// The maximum's forward pass notes for each result where in its window it was found (ky * kw + kx, one byte; windows of
// more than 255 pixels do not fit, see mlk_maxpool2d_fits), so the gradient only puts values back. Padding and ceil mode
// are the caller's choice of oh and ow; windows are cut off at the image. The first maximum wins and NaN counts as the
// largest, as in PyTorch. A vector of neighbouring results goes through its windows tap by tap; strides 1 and 2 load it
// whole where no tap leaves the image. Windows of 2x2 side by side, the usual ones, have loops of their own, with the same
// results but for the sign of zero.
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

#if MLK_W == 16
#define MLK_EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define MLK_ODD(a, b)  __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#define MLK_ZIP_LOW(a, b)  __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define MLK_ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif MLK_W == 8
#define MLK_EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define MLK_ODD(a, b)  __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#define MLK_ZIP_LOW(a, b)  __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define MLK_ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define MLK_EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define MLK_ODD(a, b)  __builtin_shufflevector(a, b, 1, 3, 5, 7)
#define MLK_ZIP_LOW(a, b)  __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define MLK_ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#endif

// The even ones of 2 * count - 1 floats (count <= MLK_W), the odd ones between them skipped; nothing beyond is read.
MLK_LEAF mlk_v mlk_load_even(const float *from, int64_t count)
{
    int64_t n = 2 * count - 1;
    mlk_v a = n >= MLK_W ? mlk_load(from) : mlk_load_first(from, n);
    mlk_v b = n > MLK_W ? mlk_load_first(from + MLK_W, n - MLK_W) : (mlk_v){0};
    return MLK_EVEN(a, b);
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

// Windows of 2x2 at stride 2 that lie in the image.
MLK_LEAF int mlk_pool_pairs(const MlkPool2d *s)
{
    int inside = s->pad_top == 0 && s->pad_left == 0 && 2 * s->oh <= s->h && 2 * s->ow <= s->w;
    return inside && s->kh == 2 && s->kw == 2 && s->stride_h == 2 && s->stride_w == 2 && s->dilation_h == 1 && s->dilation_w == 1;
}

MLK_LEAF void mlk_pair_add(mlk_v *most, mlk_ints *tap, mlk_v x, int32_t number)
{
    mlk_ints take = (x > *most) | ((x != x) & (*most == *most));
    *most = (mlk_v)(((mlk_ints)x & take) | ((mlk_ints)*most & ~take));
    *tap = ((number - (mlk_ints){0}) & take) | (*tap & ~take);
}

// Up to MLK_W windows: floats `from` and `from + w` on; a whole vector of taps may be written where `spare` says so.
MLK_LEAF void mlk_maxpool_pairs(const float *from, int64_t w, int64_t count, int spare, float *y, uint8_t *at)
{
    int64_t low = mlk_min(2 * count, MLK_W), high = 2 * count - low;
    mlk_v a, b, c, d;
    if (count == MLK_W) {
        a = mlk_load(from), b = mlk_load(from + MLK_W), c = mlk_load(from + w), d = mlk_load(from + w + MLK_W);
    } else {
        a = mlk_load_first(from, low), b = mlk_load_first(from + MLK_W, high);
        c = mlk_load_first(from + w, low), d = mlk_load_first(from + w + MLK_W, high);
    }
    mlk_v most = MLK_EVEN(a, b);
    mlk_ints tap = {0};
    mlk_pair_add(&most, &tap, MLK_ODD(a, b), 1);
    mlk_pair_add(&most, &tap, MLK_EVEN(c, d), 2);
    mlk_pair_add(&most, &tap, MLK_ODD(c, d), 3);
    mlk_bytes taps = __builtin_convertvector(tap, mlk_bytes);
    if (count == MLK_W)
        mlk_store(y, most);
    else
        mlk_store_first(y, most, count);
    if (spare)
        memcpy(at, &taps, sizeof taps);
    else
        memcpy(at, &taps, (size_t)count);
}

// Rows from..end-1 of results. Behind a row there is room for a vector of taps until the last rows.
MLK_FN void mlk_maxpool_pair_rows(const MlkPool2d *s, const float *x, float *y, uint8_t *at, int64_t from, int64_t end)
{
    for (int64_t row = from, plane = from / s->oh, oy = from % s->oh; row < end; row++) {
        const float *top = x + (plane * s->h + 2 * oy) * s->w;
        for (int64_t i = 0; i < s->ow; i += MLK_W)
            mlk_maxpool_pairs(top + 2 * i, s->w, mlk_min(s->ow - i, MLK_W), row * s->ow + i + MLK_W <= end * s->ow,
                              y + row * s->ow + i, at + row * s->ow + i);
        oy++;
        plane += oy == s->oh;
        oy = oy == s->oh ? 0 : oy;
    }
}

// y (planes, oh, ow) = the largest x of each window; at (planes, oh, ow) = ky * kw + kx of it. A window with nothing
// above -infinity gives its first pixel; one without any pixel -infinity and MLK_POOL_NOWHERE. part of parts: a share of
// the planes.
MLK_FN void mlk_maxpool2d(const MlkPool2d *s, const float *x, float *y, uint8_t *at, int part, int parts)
{
    int64_t row = mlk_share(s->planes, part, parts) * s->oh, end = mlk_share(s->planes, part + 1, parts) * s->oh;
    if (mlk_pool_pairs(s)) {
        mlk_maxpool_pair_rows(s, x, y, at, row, end);
        return;
    }
    for (; row < end; row++)
        mlk_maxpool_row(s, x + row / s->oh * s->h * s->w, row % s->oh * s->stride_h - s->pad_top, y + row * s->ow,
                        at + row * s->ow);
}

// One row of dy to the two rows of dx that it comes from.
MLK_FN void mlk_maxpool_pairs_back(const float *dy, const uint8_t *at, int64_t count, float *top, float *bottom)
{
    for (int64_t i = 0; i < count; i += MLK_W) {
        int64_t n = mlk_min(count - i, MLK_W), low = mlk_min(2 * n, MLK_W), high = 2 * n - low;
        mlk_bytes bytes = {0};
        if (n == MLK_W)
            memcpy(&bytes, at + i, sizeof bytes);
        else
            memcpy(&bytes, at + i, (size_t)n);
        mlk_ints tap = __builtin_convertvector(bytes, mlk_ints), d = (mlk_ints)mlk_load_first(dy + i, n);
        for (int row = 0; row < 2; row++) {
            float *to = (row == 0 ? top : bottom) + 2 * i;
            mlk_v even = (mlk_v)(d & (tap == 2 * row)), odd = (mlk_v)(d & (tap == 2 * row + 1));
            mlk_store_first(to, MLK_ZIP_LOW(even, odd), low);
            mlk_store_first(to + MLK_W, MLK_ZIP_HIGH(even, odd), high);
        }
    }
}

// One plane; what no window covers is 0.
MLK_FN void mlk_maxpool_plane_back(const MlkPool2d *s, const float *dy, const uint8_t *at, float *dx)
{
    for (int64_t oy = 0; oy < s->oh; oy++, dx += 2 * s->w) {
        mlk_maxpool_pairs_back(dy + oy * s->ow, at + oy * s->ow, s->ow, dx, dx + s->w);
        for (int64_t i = 2 * s->ow; i < s->w; i++)
            dx[i] = dx[s->w + i] = 0;
    }
    memset(dx, 0, (size_t)((s->h - 2 * s->oh) * s->w) * sizeof *dx);
}

// dx (planes, h, w) from dy and the positions that mlk_maxpool2d noted. part of parts: a share of the planes.
MLK_FN void mlk_maxpool2d_grad(const MlkPool2d *s, const float *dy, const uint8_t *at, float *dx, int part, int parts)
{
    int64_t plane = mlk_share(s->planes, part, parts), end = mlk_share(s->planes, part + 1, parts);
    int64_t i = plane * s->oh * s->ow, offset[MLK_POOL_NOWHERE];
    for (int64_t tap = 0; tap < s->kh * s->kw && tap < MLK_POOL_NOWHERE; tap++)
        offset[tap] = tap / s->kw * s->dilation_h * s->w + tap % s->kw * s->dilation_w;
    for (; mlk_pool_pairs(s) && plane < end; plane++, i += s->oh * s->ow)
        mlk_maxpool_plane_back(s, dy + i, at + i, dx + plane * s->h * s->w);
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
