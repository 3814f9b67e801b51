// Two-dimensional convolution and its two gradients, NCHW, as matrix products on shifted images (no im2col).
//
// The channels of one image are copied once into planes with a border of zeros; with stride s there are s x s planes a
// channel, one for each phase of the row and column number. Then every tap (channel, ky, kx) sees the pixels of the
// result, taken in the order of the planes' pitch, as one contiguous run at a fixed offset. So:
//   forward      y[oc][pixels] = bias + sum over taps of weight[oc][tap] * run(tap): a tile as in gemm.h
//   grad input   the same on dy, with the taps seen from the other side; with stride and groups, once for each phase of dx;
//                with stride alone a product of the turned weights with the pixels of several images, whose results are
//                added to where the taps lie: phases of small maps would be shorter than a vector
//   grad weight  rows are taps, columns are 2 vectors of output channels (dy transposed), k runs over the pixels
// Runs cover the few columns of the border too; those are computed and not stored.
//
// With few input channels the weights' gradient keeps 9 taps of some output channels in registers instead, and vectors run
// along the pixels of x and dy, which need not be turned.
//
// Each result is one chain over taps (channel, ky, kx), or for the weights over images and pixels, in that order,
// wherever its tile lies (with few channels one chain in each lane): bits depend neither on the number of images nor on
// parts. Considered and left for later:
// Winograd for 3x3 (fewer multiplications, other rounding), NHWC.
#ifndef MLK_CONV2D_H
#define MLK_CONV2D_H

#include "gemm.h"

// All sizes of a convolution. Padding at bottom and right follows from oh and ow; beyond the image x is 0.
typedef struct MlkConv2d {
    int64_t n, c, h, w;            // x (n, c, h, w)
    int64_t oc, oh, ow;            // y (n, oc, oh, ow)
    int64_t kh, kw;                // weight (oc, c / groups, kh, kw)
    int64_t stride_h, stride_w, pad_top, pad_left, dilation_h, dilation_w;
    int64_t groups;
} MlkConv2d;

// What one step of a sum takes: the offset of its weight and of its run. Both are kept in the scratch area, among floats.
typedef struct __attribute__((may_alias)) MlkTap {
    int32_t a, b;
} MlkTap;

// Planes of one channel: plane (py, px) has pixel (r, q) = image pixel (r * step_h + py + top, q * step_w + px + left).
typedef struct MlkPlanes {
    int64_t phases_h, phases_w, step_h, step_w, top, left;
    int64_t height, pitch;
} MlkPlanes;

MLK_LEAF int64_t mlk_planes_channel(const MlkPlanes *p) { return p->phases_h * p->phases_w * p->height * p->pitch; }

// Planes of x for the forward pass and the weight gradient.
MLK_FN MlkPlanes mlk_conv2d_planes(const MlkConv2d *s)
{
    int64_t reach_h = (s->kh - 1) * s->dilation_h, reach_w = (s->kw - 1) * s->dilation_w;
    return (MlkPlanes){mlk_min(s->stride_h, reach_h + 1), mlk_min(s->stride_w, reach_w + 1), s->stride_h, s->stride_w,
                       -s->pad_top, -s->pad_left, s->oh + reach_h / s->stride_h, s->ow + reach_w / s->stride_w};
}

// Planes of dy for the input gradient: row u of dx's phases is  (row of dx + pad) / stride, and needs dy's rows
// u - reach .. u.
MLK_FN MlkPlanes mlk_conv2d_grad_planes(const MlkConv2d *s)
{
    int64_t reach_h = (s->kh - 1) * s->dilation_h / s->stride_h, reach_w = (s->kw - 1) * s->dilation_w / s->stride_w;
    int64_t first_h = s->pad_top / s->stride_h, last_h = (s->h - 1 + s->pad_top) / s->stride_h;
    int64_t first_w = s->pad_left / s->stride_w, last_w = (s->w - 1 + s->pad_left) / s->stride_w;
    return (MlkPlanes){1, 1, 1, 1, first_h - reach_h, first_w - reach_w, last_h - first_h + 1 + reach_h,
                       last_w - first_w + 1 + reach_w};
}

// Index range of a plane's row that lies in the image: 0 <= i * step + at < size.
MLK_LEAF void mlk_inside(int64_t count, int64_t step, int64_t at, int64_t size, int64_t *from, int64_t *end)
{
    *from = at < 0 ? (step - 1 - at) / step : 0;
    *end = size > at ? mlk_min(count, (size - at + step - 1) / step) : 0;
}

// Copies one phase of one image into its plane: rows r..r_end-1, columns q..q_end-1 of the plane; x is what (0, 0) sees.
MLK_FN void mlk_plane_fill(const MlkPlanes *p, const float *x, int64_t w, float *to, int64_t r, int64_t r_end, int64_t q,
                           int64_t q_end)
{
    for (; r < r_end; r++) {
        const float *from = x + r * p->step_h * w;
        if (p->step_w == 1)
            mlk_copy(to + r * p->pitch + q, from + q, q_end - q);
        else
            for (int64_t i = q; i < q_end; i++)
                to[r * p->pitch + i] = from[i * p->step_w];
    }
}

// Copies `channels` images (h, w) into their planes. The border must be 0 already, and stays so.
MLK_FN void mlk_planes_fill(const MlkPlanes *p, int64_t channels, const float *x, int64_t h, int64_t w, float *to)
{
    int64_t phases = p->phases_h * p->phases_w, plane = p->height * p->pitch;
    for (int64_t phase = 0; phase < phases; phase++) {
        int64_t r, r_end, q, q_end, top = phase / p->phases_w + p->top, left = phase % p->phases_w + p->left;
        mlk_inside(p->height, p->step_h, top, h, &r, &r_end);
        mlk_inside(p->pitch, p->step_w, left, w, &q, &q_end);
        for (int64_t c = 0; c < channels && q < q_end; c++)
            mlk_plane_fill(p, x + (c * h + top) * w + left, w, to + (c * phases + phase) * plane, r, r_end, q, q_end);
    }
}

// A part of a vector's lanes that lies side by side in the result, the first at `at`.
typedef struct MlkSegment {
    int64_t lane, count, at;
    mlk_mask mask;
} MlkSegment;

enum { MLK_RUN_VECTORS = 8 };  // vectors of pixels in a tile of one row; two in the others

// A product of rows of weights with runs, and where its pixels go.
typedef struct MlkRuns {
    int64_t rows, k;
    const MlkTap *tap;
    const float *a;  // row i, step p at a[i * a_row + tap[p].a]
    int64_t a_row;
    const float *b;  // step p, pixel q at b[tap[p].b + q]
    int64_t pitch, height, width;  // pixel q = u * pitch + v, u < height, v < width
    float *y;        // row i, pixel (u, v) at y[i * y_row + (u * step_h + top) * y_width + v * step_w + left], if inside
    int64_t y_row, y_height, y_width, step_h, step_w, top, left;
    const float *bias;  // for each row; NULL for 0
    int64_t u, v, v_from, v_end;     // the next pixel to be cut into segments; columns that are inside
    int64_t count[MLK_RUN_VECTORS];  // segments of the current vectors
    MlkSegment segment[MLK_RUN_VECTORS][MLK_W + 1];
} MlkRuns;

// Segments of the next MLK_W pixels; (u, v) is the first of them and moves on.
MLK_FN int64_t mlk_runs_segments(MlkRuns *t, MlkSegment *segment)
{
    int64_t count = 0;
    for (int64_t lane = 0; lane < MLK_W && t->u < t->height;) {
        int64_t length = mlk_min(t->pitch - t->v, MLK_W - lane), y = t->u * t->step_h + t->top;
        int64_t from = mlk_max_of(t->v, t->v_from), end = mlk_min(t->v + length, t->v_end);
        if (from < end && y >= 0 && y < t->y_height) {
            MlkSegment s = {.lane = lane + from - t->v, .count = end - from,
                            .at = y * t->y_width + from * t->step_w + t->left};
            MlkSegment *last = segment + count - 1;
            if (count > 0 && t->step_w == 1 && last->lane + last->count == s.lane && last->at + last->count == s.at)
                last->count += s.count;
            else
                segment[count++] = s;
        }
        lane += length;
        t->v += length;
        if (t->v == t->pitch) {
            t->v = 0;
            t->u++;
        }
    }
    for (int64_t i = 0; i < count; i++)
        segment[i].mask = mlk_mask_lanes(segment[i].lane, segment[i].count);
    return count;
}

MLK_LEAF void mlk_runs_store(const MlkRuns *t, float *y, int vector, mlk_v sum)
{
    for (int64_t s = 0; s < t->count[vector]; s++) {
        const MlkSegment *segment = &t->segment[vector][s];
        if (t->step_w == 1) {
            mlk_store_mask(y + segment->at - segment->lane, sum, segment->mask);
            continue;
        }
        float lanes[MLK_W];
        mlk_store(lanes, sum);
        for (int64_t i = 0; i < segment->count; i++)
            y[segment->at + i * t->step_w] = lanes[segment->lane + i];
    }
}

// `rows` rows from row i on, `vectors` vectors of pixels from q on (constants).
MLK_LEAF void mlk_runs_tile(const MlkRuns *t, int64_t i, int64_t q, const int rows, const int vectors)
{
    mlk_v sum[8][MLK_RUN_VECTORS];
    const float *a[8];
    MLK_UNROLL for (int r = 0; r < rows; r++) {
        int64_t row = mlk_min(i + r, t->rows - 1);
        a[r] = t->a + row * t->a_row;
        MLK_UNROLL for (int j = 0; j < vectors; j++)
            sum[r][j] = t->bias ? mlk_all(t->bias[row]) : (mlk_v){0};
    }
    const float *b = t->b + q;
    for (const MlkTap *tap = t->tap, *end = tap + t->k; tap < end; tap++) {
        const float *run = b + tap->b;
        int64_t at = tap->a;
        mlk_v right[MLK_RUN_VECTORS];
        MLK_UNROLL for (int j = 0; j < vectors; j++)
            right[j] = mlk_load(run + j * MLK_W);
        MLK_UNROLL for (int r = 0; r < rows; r++) {
            mlk_v left = mlk_all(a[r][at]);
            MLK_UNROLL for (int j = 0; j < vectors; j++)
                sum[r][j] = mlk_fma(left, right[j], sum[r][j]);
        }
    }
    MLK_UNROLL for (int r = 0; r < rows; r++)
        if (i + r < t->rows)
            MLK_UNROLL for (int j = 0; j < vectors; j++)
                mlk_runs_store(t, t->y + (i + r) * t->y_row, j, sum[r][j]);
}

MLK_TILE void mlk_runs_full(const MlkRuns *t, int64_t i, int64_t q) { mlk_runs_tile(t, i, q, MLK_ROWS, 2); }
MLK_TILE void mlk_runs_half(const MlkRuns *t, int64_t i, int64_t q) { mlk_runs_tile(t, i, q, MLK_ROWS / 2, 2); }
MLK_TILE void mlk_runs_thin(const MlkRuns *t, int64_t i, int64_t q) { mlk_runs_tile(t, i, q, MLK_ROWS, 1); }
MLK_TILE void mlk_runs_row(const MlkRuns *t, int64_t i, int64_t q) { mlk_runs_tile(t, i, q, 1, MLK_RUN_VECTORS); }

// Rows from..end-1 for all pixels.
MLK_FN void mlk_runs(MlkRuns *t, int64_t from, int64_t end)
{
    int64_t pixels = (t->height - 1) * t->pitch + t->width, vectors;
    t->u = t->v = 0;
    mlk_inside(t->width, t->step_w, t->left, t->y_width, &t->v_from, &t->v_end);
    for (int64_t q = 0; q < pixels; q += vectors * MLK_W) {
        vectors = end - from == 1 ? MLK_RUN_VECTORS : pixels - q <= MLK_W ? 1 : 2;
        for (int64_t j = 0; j < vectors; j++)
            t->count[j] = mlk_runs_segments(t, t->segment[j]);
        for (int64_t i = from; i < end; i += MLK_ROWS)
            if (vectors == MLK_RUN_VECTORS)
                mlk_runs_row(t, i, q);
            else if (vectors == 1)
                mlk_runs_thin(t, i, q);
            else
                (end - i <= MLK_ROWS / 2 ? mlk_runs_half : mlk_runs_full)(t, i, q);
    }
}

// How a share of `n` images by `rows` rows of each group is dealt out: images first, then rows of an image.
typedef struct MlkImageShare {
    int64_t from, end, splits;
} MlkImageShare;

MLK_LEAF MlkImageShare mlk_image_share(int64_t n, int64_t rows, int part, int parts)
{
    int64_t blocks = (rows + MLK_ROWS - 1) / MLK_ROWS;
    int64_t splits = n > 0 ? mlk_max_of(1, mlk_min((parts + n - 1) / n, blocks)) : 1;
    return (MlkImageShare){mlk_share(n * splits, part, parts), mlk_share(n * splits, part + 1, parts), splits};
}

// Runs all groups of the images' share; t is complete but for a, b, y and bias, which belong to one image and group.
MLK_FN void mlk_runs_image(MlkRuns *t, const MlkImageShare *share, int64_t unit)
{
    int64_t blocks = (t->rows + MLK_ROWS - 1) / MLK_ROWS, split = unit % share->splits;
    int64_t from = blocks * split / share->splits * MLK_ROWS;
    int64_t end = blocks * (split + 1) / share->splits * MLK_ROWS;
    mlk_runs(t, from, mlk_min(end, t->rows));
}

// Floats that the planes of `channels` channels take, with what a vector may read beyond their end.
MLK_LEAF int64_t mlk_planes_floats(const MlkPlanes *p, int64_t channels)
{
    return channels * mlk_planes_channel(p) + MLK_RUN_VECTORS * MLK_W;
}

// Scratch floats for each worker of mlk_conv2d.
MLK_FN int64_t mlk_conv2d_scratch(const MlkConv2d *s)
{
    MlkPlanes p = mlk_conv2d_planes(s);
    return mlk_planes_floats(&p, s->c / s->groups) + 2 * (s->c / s->groups) * s->kh * s->kw;
}

// Offset of a tap's run in the planes of x.
MLK_LEAF int64_t mlk_conv2d_tap(const MlkConv2d *s, const MlkPlanes *p, int64_t c, int64_t ky, int64_t kx)
{
    int64_t y = ky * s->dilation_h, x = kx * s->dilation_w;
    int64_t plane = (c * p->phases_h + y % s->stride_h) * p->phases_w + x % s->stride_w;
    return (plane * p->height + y / s->stride_h) * p->pitch + x / s->stride_w;
}

// Writes all taps of channels 0..channels-1, in the order of the weights.
MLK_FN void mlk_conv2d_taps(const MlkConv2d *s, const MlkPlanes *p, int64_t channels, MlkTap *tap)
{
    int32_t a = 0;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t ky = 0; ky < s->kh; ky++)
            for (int64_t kx = 0; kx < s->kw; kx++, a++)
                *tap++ = (MlkTap){a, (int32_t)mlk_conv2d_tap(s, p, c, ky, kx)};
}

// y (n, oc, oh, ow) = bias (oc, or NULL) + x (n, c, h, w) convolved with weight (oc, c / groups, kh, kw).
// scratch: mlk_conv2d_scratch floats of this worker's own (a group's planes have less than 2^31). part of parts: a share
// of the images, and where these are fewer than the parts, of the output channels.
MLK_FN void mlk_conv2d(const MlkConv2d *s, const float *x, const float *weight, const float *bias, float *y,
                       float *scratch, int part, int parts)
{
    int64_t c = s->c / s->groups, oc = s->oc / s->groups, k = c * s->kh * s->kw, area = s->oh * s->ow;
    MlkPlanes p = mlk_conv2d_planes(s);
    MlkImageShare share = mlk_image_share(s->n, oc, part, parts);
    MlkTap *tap = (MlkTap *)scratch;
    float *planes = scratch + 2 * k;
    if (share.from >= share.end || area == 0)
        return;
    mlk_conv2d_taps(s, &p, c, tap);
    memset(planes, 0, (size_t)mlk_planes_floats(&p, c) * sizeof *planes);
    MlkRuns t = {.rows = oc, .k = k, .tap = tap, .a_row = k, .b = planes, .pitch = p.pitch, .height = s->oh,
                 .width = s->ow, .y_row = area, .y_height = s->oh, .y_width = s->ow, .step_h = 1, .step_w = 1};
    for (int64_t unit = share.from; unit < share.end; unit++)
        for (int64_t g = 0; g < s->groups; g++) {
            int64_t image = unit / share.splits;
            mlk_planes_fill(&p, c, x + (image * s->c + g * c) * s->h * s->w, s->h, s->w, planes);
            t.a = weight + g * oc * k;
            t.bias = bias ? bias + g * oc : NULL;
            t.y = y + (image * s->oc + g * oc) * area;
            mlk_runs_image(&t, &share, unit);
        }
}

// The input's gradient by products with whole images: for strides without groups.
MLK_LEAF int mlk_conv2d_strided(const MlkConv2d *s) { return s->groups == 1 && s->stride_h * s->stride_w > 1; }

enum { MLK_STRIDED_PIXELS = 512, MLK_STRIDED_FLOATS = 1 << 17 };  // of dy in a product, and of its result, about

// How it is cut: images in a product, channels in a product.
typedef struct MlkStrided {
    int64_t images, channels;
} MlkStrided;

MLK_LEAF MlkStrided mlk_conv2d_strided_cut(const MlkConv2d *s)
{
    int64_t area = mlk_max_of(1, s->oh * s->ow), images = mlk_min(mlk_max_of(1, MLK_STRIDED_PIXELS / area), mlk_max_of(1, s->n));
    int64_t channels = MLK_STRIDED_FLOATS / (s->kh * s->kw * images * area);
    return (MlkStrided){images, mlk_min(mlk_max_of(1, channels), mlk_max_of(1, s->c))};
}

MLK_FN int64_t mlk_conv2d_strided_scratch(const MlkConv2d *s)
{
    MlkStrided cut = mlk_conv2d_strided_cut(s);
    return MLK_GEMM_SCRATCH + cut.images * s->oh * s->ow * (s->oc + cut.channels * s->kh * s->kw);
}

// One channel of one image: dx (h, w) = the sum of the taps' pixels, which are `pitch` floats apart.
MLK_FN void mlk_conv2d_gather(const MlkConv2d *s, const float *pixels, int64_t pitch, float *dx)
{
    memset(dx, 0, (size_t)(s->h * s->w) * sizeof *dx);
    for (int64_t ky = 0; ky < s->kh; ky++)
        for (int64_t kx = 0; kx < s->kw; kx++, pixels += pitch) {
            int64_t y, y_end, x, x_end, top = ky * s->dilation_h - s->pad_top, left = kx * s->dilation_w - s->pad_left;
            mlk_inside(s->oh, s->stride_h, top, s->h, &y, &y_end);
            mlk_inside(s->ow, s->stride_w, left, s->w, &x, &x_end);
            for (; y < y_end; y++) {
                float *row = dx + (y * s->stride_h + top) * s->w + left;
                for (int64_t i = x; i < x_end; i++)
                    row[i * s->stride_w] += pixels[y * s->ow + i];
            }
        }
}

MLK_FN void mlk_conv2d_grad_strided(const MlkConv2d *s, const float *dy, const float *weight, float *dx, float *scratch, int part,
                                    int parts)
{
    MlkStrided cut = mlk_conv2d_strided_cut(s);
    int64_t area = s->oh * s->ow, taps = s->kh * s->kw, end = mlk_share(s->c, part + 1, parts);
    float *turned = scratch + MLK_GEMM_SCRATCH, *pixels = turned + cut.images * area * s->oc;
    for (int64_t image = 0; image < s->n; image += cut.images) {
        int64_t images = mlk_min(cut.images, s->n - image), pitch = images * area;
        for (int64_t o = 0; o < s->oc; o++)
            for (int64_t i = 0; i < images; i++)
                mlk_copy(turned + o * pitch + i * area, dy + ((image + i) * s->oc + o) * area, area);
        for (int64_t c = mlk_share(s->c, part, parts), count; c < end; c += count) {
            count = mlk_min(cut.channels, end - c);
            mlk_gemm(count * taps, pitch, s->oc, weight + c * taps, 1, s->c * taps, turned, pitch, pixels, pitch, NULL, 0, scratch,
                     0, 1);
            for (int64_t i = 0; i < images; i++)
                for (int64_t k = 0; k < count; k++)
                    mlk_conv2d_gather(s, pixels + k * taps * pitch + i * area, pitch,
                                      dx + ((image + i) * s->c + c + k) * s->h * s->w);
        }
    }
}

// Scratch floats for each worker of mlk_conv2d_grad_input.
MLK_FN int64_t mlk_conv2d_grad_input_scratch(const MlkConv2d *s)
{
    MlkPlanes p = mlk_conv2d_grad_planes(s);
    if (mlk_conv2d_strided(s))
        return mlk_conv2d_strided_scratch(s);
    return mlk_planes_floats(&p, s->oc / s->groups) + 2 * (s->oc / s->groups) * s->kh * s->kw;
}

// Writes the taps that reach phase (py, px) of dx: offsets in weights and planes of dy. Returns how many they are.
MLK_FN int64_t mlk_conv2d_grad_taps(const MlkConv2d *s, const MlkPlanes *p, int64_t py, int64_t px, MlkTap *tap)
{
    int64_t count = 0, reach_h = (s->kh - 1) * s->dilation_h / s->stride_h;
    int64_t reach_w = (s->kw - 1) * s->dilation_w / s->stride_w;
    for (int64_t o = 0; o < s->oc / s->groups; o++)
        for (int64_t ky = 0; ky < s->kh; ky++)
            for (int64_t kx = 0; kx < s->kw; kx++) {
                int64_t y = ky * s->dilation_h, x = kx * s->dilation_w;
                if (y % s->stride_h != py || x % s->stride_w != px)
                    continue;
                tap[count++] = (MlkTap){
                    (int32_t)((o * (s->c / s->groups) * s->kh + ky) * s->kw + kx),
                    (int32_t)((o * p->height + reach_h - y / s->stride_h) * p->pitch + reach_w - x / s->stride_w)};
            }
    return count;
}

// One group of one image: dx (c, h, w) for each phase of its rows and columns.
MLK_FN void mlk_conv2d_grad_image(const MlkConv2d *s, const MlkPlanes *p, MlkRuns *t, const MlkImageShare *share,
                                  int64_t unit, MlkTap *tap)
{
    for (int64_t py = 0; py < s->stride_h; py++)
        for (int64_t px = 0; px < s->stride_w; px++) {
            if (s->stride_h * s->stride_w > 1 || t->k < 0)
                t->k = mlk_conv2d_grad_taps(s, p, py, px, tap);
            t->top = s->pad_top / s->stride_h * s->stride_h + py - s->pad_top;
            t->left = s->pad_left / s->stride_w * s->stride_w + px - s->pad_left;
            mlk_runs_image(t, share, unit);
        }
}

// dx (n, c, h, w) from dy (n, oc, oh, ow) and weight. scratch: mlk_conv2d_grad_input_scratch floats. part as above,
// but with strides and no groups a share of the input channels.
MLK_FN void mlk_conv2d_grad_input(const MlkConv2d *s, const float *dy, const float *weight, float *dx, float *scratch,
                                  int part, int parts)
{
    int64_t c = s->c / s->groups, oc = s->oc / s->groups, taps = s->kh * s->kw, area = s->h * s->w;
    if (mlk_conv2d_strided(s)) {
        mlk_conv2d_grad_strided(s, dy, weight, dx, scratch, part, parts);
        return;
    }
    MlkImageShare share = mlk_image_share(s->n, c, part, parts);
    if (share.from >= share.end || area == 0)
        return;
    MlkPlanes p = mlk_conv2d_grad_planes(s);
    MlkTap *tap = (MlkTap *)scratch;
    float *planes = scratch + 2 * oc * taps;
    memset(planes, 0, (size_t)mlk_planes_floats(&p, oc) * sizeof *planes);
    MlkRuns t = {.rows = c, .k = -1, .tap = tap, .a_row = taps, .b = planes, .pitch = p.pitch,
                 .height = p.height - (s->kh - 1) * s->dilation_h / s->stride_h,
                 .width = p.pitch - (s->kw - 1) * s->dilation_w / s->stride_w, .y_row = area, .y_height = s->h,
                 .y_width = s->w, .step_h = s->stride_h, .step_w = s->stride_w};
    for (int64_t unit = share.from; unit < share.end; unit++)
        for (int64_t g = 0; g < s->groups; g++) {
            int64_t image = unit / share.splits;
            mlk_planes_fill(&p, oc, dy + (image * s->oc + g * oc) * s->oh * s->ow, s->oh, s->ow, planes);
            t.a = weight + g * oc * c * taps;
            t.y = dx + (image * s->c + g * c) * area;
            mlk_conv2d_grad_image(s, &p, &t, &share, unit, tap);
        }
}

// Windows of 9 taps on few channels: the weights' gradient sums along pixels.
MLK_LEAF int mlk_conv2d_few(const MlkConv2d *s) { return s->kh * s->kw == 9 && s->groups == 1 && s->c <= 4; }

// Scratch floats for each worker of mlk_conv2d_grad_weight: for one block of output channels and all channels of a group;
// with few channels for the lanes of all sums.
MLK_FN int64_t mlk_conv2d_grad_weight_scratch(const MlkConv2d *s)
{
    MlkPlanes p = mlk_conv2d_planes(s);
    int64_t c = s->c / s->groups, k = c * s->kh * s->kw;
    int64_t sums = mlk_conv2d_few(s) ? s->oc * k * MLK_W : (k + s->oh * s->ow) * MLK_PANEL;
    return 2 * k + mlk_planes_floats(&p, c) + sums;
}

#if defined(__AVX512F__) || defined(__aarch64__)
#define MLK_FEW_ROWS 3  // output channels whose 9 taps stay in registers
#else
#define MLK_FEW_ROWS 1
#endif

// Adds one image's products of 9 taps with some rows of dy to the lanes of sums (rows, 9, MLK_W), k sums apart for each row.
MLK_LEAF void mlk_few_tile(const MlkConv2d *s, int64_t pitch, const float *planes, const MlkTap *tap, const float *dy, float *sums,
                           int64_t sums_row, const int rows)
{
    mlk_v sum[MLK_FEW_ROWS][9];
    const float *x[9];
    MLK_UNROLL for (int t = 0; t < 9; t++) {
        x[t] = planes + tap[t].b;
        MLK_UNROLL for (int r = 0; r < rows; r++)
            sum[r][t] = mlk_load(sums + r * sums_row + t * MLK_W);
    }
    for (int64_t y = 0; y < s->oh; y++)
        for (int64_t i = 0; i < s->ow; i += MLK_W) {
            int64_t count = s->ow - i;
            mlk_v d[MLK_FEW_ROWS];
            MLK_UNROLL for (int r = 0; r < rows; r++) {
                const float *from = dy + (r * s->oh + y) * s->ow + i;
                d[r] = count >= MLK_W ? mlk_load(from) : mlk_load_first(from, count);
            }
            MLK_UNROLL for (int t = 0; t < 9; t++) {
                const float *from = x[t] + y * pitch + i;
                mlk_v seen = count >= MLK_W ? mlk_load(from) : mlk_load_first(from, count);
                MLK_UNROLL for (int r = 0; r < rows; r++)
                    sum[r][t] = mlk_fma(seen, d[r], sum[r][t]);
            }
        }
    MLK_UNROLL for (int t = 0; t < 9; t++)
        MLK_UNROLL for (int r = 0; r < rows; r++)
            mlk_store(sums + r * sums_row + t * MLK_W, sum[r][t]);
}

MLK_TILE void mlk_few_full(const MlkConv2d *s, int64_t pitch, const float *planes, const MlkTap *tap, const float *dy,
                           float *sums, int64_t sums_row)
{
    mlk_few_tile(s, pitch, planes, tap, dy, sums, sums_row, MLK_FEW_ROWS);
}

MLK_TILE void mlk_few_row(const MlkConv2d *s, int64_t pitch, const float *planes, const MlkTap *tap, const float *dy,
                          float *sums, int64_t sums_row)
{
    mlk_few_tile(s, pitch, planes, tap, dy, sums, sums_row, 1);
}

// The weights' gradient with few channels: a share of the output channels.
MLK_FN void mlk_conv2d_grad_few(const MlkConv2d *s, const float *x, const float *dy, float *dweight, float *scratch, int part,
                                int parts)
{
    MlkPlanes p = mlk_conv2d_planes(s);
    int64_t k = s->c * 9, area = s->oh * s->ow, tiles = (s->oc + MLK_FEW_ROWS - 1) / MLK_FEW_ROWS;
    int64_t from = mlk_share(tiles, part, parts) * MLK_FEW_ROWS;
    int64_t end = mlk_min(mlk_share(tiles, part + 1, parts) * MLK_FEW_ROWS, s->oc);
    if (from >= end)
        return;
    MlkTap *tap = (MlkTap *)scratch;
    float *planes = scratch + 2 * k, *sums = planes + mlk_planes_floats(&p, s->c);
    mlk_conv2d_taps(s, &p, s->c, tap);
    memset(planes, 0, (size_t)(sums + (end - from) * k * MLK_W - planes) * sizeof *planes);
    for (int64_t image = 0; image < s->n; image++) {
        mlk_planes_fill(&p, s->c, x + image * s->c * s->h * s->w, s->h, s->w, planes);
        for (int64_t o = from, rows; o < end; o += rows) {
            rows = end - o >= MLK_FEW_ROWS ? MLK_FEW_ROWS : 1;
            for (int64_t t = 0; t < k; t += 9)
                (rows > 1 ? mlk_few_full : mlk_few_row)(s, p.pitch, planes, tap + t, dy + (image * s->oc + o) * area,
                                                        sums + ((o - from) * k + t) * MLK_W, k * MLK_W);
        }
    }
    for (int64_t i = 0; i < (end - from) * k; i++)
        dweight[from * k + i] = mlk_sum_lanes(mlk_load(sums + i * MLK_W));
}

// Sums of some taps (rows) by two vectors of output channels, over the pixels of one image.
typedef struct MlkTaps {
    int64_t rows;
    const MlkTap *tap;  // of each row: where it begins in planes
    const float *planes;
    int64_t height, width, pitch;
    const float *dy;  // pixel, output channel at dy[pixel * MLK_PANEL + channel]
    float *sum;       // row, output channel at sum[row * MLK_PANEL + channel], added to
} MlkTaps;

MLK_LEAF void mlk_taps_tile(const MlkTaps *t, int64_t row, const int rows, const int vectors)
{
    mlk_v sum[8][2];
    const float *a[8], *dy = t->dy;
    MLK_UNROLL for (int i = 0; i < rows; i++) {
        int64_t from = mlk_min(row + i, t->rows - 1);
        a[i] = t->planes + t->tap[from].b;
        MLK_UNROLL for (int j = 0; j < vectors; j++)
            sum[i][j] = mlk_load(t->sum + from * MLK_PANEL + j * MLK_W);
    }
    for (int64_t y = 0, at = 0; y < t->height; y++, at += t->pitch - t->width)
        for (int64_t end = at + t->width; at < end; at++, dy += MLK_PANEL) {
            mlk_v right[2];
            MLK_UNROLL for (int j = 0; j < vectors; j++)
                right[j] = mlk_load(dy + j * MLK_W);
            MLK_UNROLL for (int i = 0; i < rows; i++) {
                mlk_v left = mlk_all(a[i][at]);
                MLK_UNROLL for (int j = 0; j < vectors; j++)
                    sum[i][j] = mlk_fma(left, right[j], sum[i][j]);
            }
        }
    MLK_UNROLL for (int i = 0; i < rows; i++)
        if (row + i < t->rows)
            MLK_UNROLL for (int j = 0; j < vectors; j++)
                mlk_store(t->sum + (row + i) * MLK_PANEL + j * MLK_W, sum[i][j]);
}

MLK_TILE void mlk_taps_full(const MlkTaps *t, int64_t row) { mlk_taps_tile(t, row, MLK_ROWS, 2); }
MLK_TILE void mlk_taps_thin(const MlkTaps *t, int64_t row) { mlk_taps_tile(t, row, MLK_ROWS, 1); }
MLK_TILE void mlk_taps_row(const MlkTaps *t, int64_t row) { mlk_taps_tile(t, row, 1, 2); }

// The weight gradient's share of one group: output channels o.. (`count` of them), channels c_from..c_end-1.
MLK_FN void mlk_conv2d_grad_block(const MlkConv2d *s, const MlkPlanes *p, int64_t g, int64_t o, int64_t count,
                                  int64_t c_from, int64_t c_end, const float *x, const float *dy, float *dweight,
                                  float *scratch)
{
    int64_t c = s->c / s->groups, k = c * s->kh * s->kw, area = s->oh * s->ow, rows = (c_end - c_from) * s->kh * s->kw;
    MlkTap *tap = (MlkTap *)scratch;
    float *planes = scratch + 2 * rows, *sum = planes + mlk_planes_floats(p, c_end - c_from), *turned = sum + rows * MLK_PANEL;
    mlk_conv2d_taps(s, p, c_end - c_from, tap);
    memset(planes, 0, (size_t)(turned + area * MLK_PANEL - planes) * sizeof *planes);
    MlkTaps t = {rows, tap, planes, s->oh, s->ow, p->pitch, turned, sum};
    for (int64_t image = 0; image < s->n; image++) {
        mlk_planes_fill(p, c_end - c_from, x + (image * s->c + g * c + c_from) * s->h * s->w, s->h, s->w, planes);
        mlk_transpose(count, area, dy + (image * s->oc + o) * area, area, turned, MLK_PANEL);
        for (int64_t i = 0; i < rows; i += MLK_ROWS)
            (rows - i == 1 ? mlk_taps_row : count <= MLK_W ? mlk_taps_thin : mlk_taps_full)(&t, i);
    }
    mlk_transpose(rows, count, sum, MLK_PANEL, dweight + o * k + c_from * s->kh * s->kw, k);
}

// A sensible number of parts for mlk_conv2d_grad_weight: more would mostly repeat the preparation.
MLK_FN int mlk_conv2d_grad_weight_parts(const MlkConv2d *s)
{
    int64_t c = s->c / s->groups, oc = s->oc / s->groups;
    int64_t blocks = s->groups * ((oc + 31) / 32), splits = mlk_max_of(1, mlk_min(c, c * s->kh * s->kw / 128));
    return (int)mlk_min(blocks * splits, 64);
}

// dweight (oc, c / groups, kh, kw) from x and dy. scratch: mlk_conv2d_grad_weight_scratch floats. part of parts: blocks
// of output channels, then input channels; every part goes through all images in their order.
MLK_FN void mlk_conv2d_grad_weight(const MlkConv2d *s, const float *x, const float *dy, float *dweight, float *scratch,
                                   int part, int parts)
{
    int64_t c = s->c / s->groups, oc = s->oc / s->groups;
    int64_t group_blocks = (oc + MLK_PANEL - 1) / MLK_PANEL, blocks = s->groups * group_blocks;
    if (blocks == 0 || c == 0)
        return;
    if (mlk_conv2d_few(s)) {
        mlk_conv2d_grad_few(s, x, dy, dweight, scratch, part, parts);
        return;
    }
    int64_t splits = mlk_max_of(1, mlk_min((parts + blocks - 1) / blocks, c)), units = blocks * splits;
    MlkPlanes p = mlk_conv2d_planes(s);
    for (int64_t unit = mlk_share(units, part, parts); unit < mlk_share(units, part + 1, parts); unit++) {
        int64_t block = unit / splits, split = unit % splits, g = block / group_blocks;
        int64_t first = block % group_blocks * MLK_PANEL, o = g * oc + first;
        mlk_conv2d_grad_block(s, &p, g, o, mlk_min(oc - first, MLK_PANEL), c * split / splits, c * (split + 1) / splits,
                              x, dy, dweight, scratch);
    }
}

#endif
