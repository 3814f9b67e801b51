// Convolution of 3x3 taps with stride 1 by Winograd's minimal filtering F(4x4, 3x3), and its two gradients, NCHW.
//
// A tile of 4x4 results needs 6x6 pixels. Pixels and taps are each taken to 36 numbers by small linear maps, the numbers of
// all channels meet in 36 matrix products, and the sums are taken back:
//   y = A' [ sum over channels of (G w G') (B' x B) ] A      36 products for 16 results instead of 144
//   dx is the same on dy, with the taps reversed and the channels exchanged
//   dw = G' [ sum over tiles of (B' x B) (A dy A') ] G       the exact adjoint
// The maps come from the points 0, +-sqrt(1/2), +-sqrt(2), infinity: with 0, +-1, +-2 the numbers differ more in size and
// the errors are larger. Rounding errors are about four times those of the direct sums (rms 2e-6 of the results' rms).
//
// The pixels of a block of tiles are turned, so that a vector holds channels; the maps are then element by element. A
// block is a few images, or a few rows of tiles of one, so that it stays in the L2 cache. A result is one chain over the
// channels wherever its tile lies: bits depend neither on the number of images nor on parts. Considered: F(2x2), more exact
// and 1.8 times as many products; channels last throughout, which would spare the turning.
#ifndef MLK_WINOGRAD_H
#define MLK_WINOGRAD_H

#include "conv2d.h"

enum {
    MLK_POINTS = 36,        // numbers of a tile
    MLK_COLUMNS = 32,       // result channels of a panel, on every target
    MLK_WINOGRAD_PAD = 16,  // floats between rows, so that they do not share lines of the cache
    MLK_WINOGRAD_TILES = 64 // of a block for the weights' gradient: the length of the products' chains
};

#define MLK_A 0.70710678118654752f  // the points' sizes; A A = 1/2, B B = 2
#define MLK_B 1.41421356237309505f

// How the tiles are dealt with: blocks of `images` images by `rows` rows of tiles.
typedef struct MlkTiling {
    int64_t height, width;  // tiles of an image
    int64_t images, rows;   // of a block
    int64_t tiles;          // of a block, at most
    int64_t channels;       // floats between turned pixels
    int64_t pitch;          // floats between tiles of one point
} MlkTiling;

// Numbers of different points lie an odd number of cache lines apart: a tile's 36 then fall into different sets.
MLK_LEAF int64_t mlk_odd_lines(int64_t floats) { return ((floats + 15) / 16 | 1) * 16; }

MLK_LEAF int64_t mlk_whole_vectors(int64_t n) { return (n + MLK_W - 1) / MLK_W * MLK_W; }

// `wanted`: about how many tiles make a block.
MLK_FN MlkTiling mlk_winograd_tiling(const MlkConv2d *s, int64_t wanted)
{
    MlkTiling t = {.height = (s->oh + 3) / 4, .width = (s->ow + 3) / 4, .images = 1, .channels = mlk_whole_vectors(s->c)};
    int64_t all = t.height * t.width;
    t.rows = all <= wanted ? t.height : mlk_max_of(1, wanted / t.width);
    if (all > 0 && all <= wanted)
        t.images = mlk_min(mlk_max_of(1, wanted / all), mlk_max_of(1, s->n));
    t.tiles = t.images * t.rows * t.width;
    t.pitch = t.channels + MLK_WINOGRAD_PAD;
    return t;
}

// Many channels: products with more rows, for each reads all the weights.
MLK_LEAF int64_t mlk_winograd_wanted(const MlkConv2d *s) { return s->c <= 64 ? 32 : 64; }

// --- The maps, for a vector of channels ----------------------------------------------------------------------------------

// to[i * step] = B' from: 6 pixels to 6 points.
MLK_LEAF void mlk_map_pixels(const mlk_v *from, int64_t from_step, mlk_v *to, int64_t to_step)
{
    mlk_v x0 = from[0], x1 = from[from_step], x2 = from[2 * from_step], x3 = from[3 * from_step];
    mlk_v x4 = from[4 * from_step], x5 = from[5 * from_step];
    const mlk_v a = mlk_all(MLK_A), b = mlk_all(MLK_B), half = mlk_all(-0.5f), two = mlk_all(-2), more = mlk_all(-2.5f);
    mlk_v even_a = mlk_fma(two, x2, x4), odd_a = mlk_fma(two, x1, x3);
    mlk_v even_b = mlk_fma(half, x2, x4), odd_b = mlk_fma(half, x1, x3);
    to[0] = mlk_fma(more, x2, x0) + x4;
    to[to_step] = mlk_fma(a, odd_a, even_a);
    to[2 * to_step] = mlk_fma(-a, odd_a, even_a);
    to[3 * to_step] = mlk_fma(b, odd_b, even_b);
    to[4 * to_step] = mlk_fma(-b, odd_b, even_b);
    to[5 * to_step] = mlk_fma(more, x3, x1) + x5;
}

// to = A' from: 6 points to 4 results.
MLK_LEAF void mlk_map_results(const mlk_v *from, int64_t from_step, mlk_v *to, int64_t to_step)
{
    const mlk_v a = mlk_all(MLK_A), b = mlk_all(MLK_B), half = mlk_all(0.5f), two = mlk_all(2);
    mlk_v sum_a = from[from_step] + from[2 * from_step], sum_b = from[3 * from_step] + from[4 * from_step];
    mlk_v odd_a = a * (from[from_step] - from[2 * from_step]), odd_b = b * (from[3 * from_step] - from[4 * from_step]);
    to[0] = (from[0] + sum_a) + sum_b;
    to[to_step] = odd_a + odd_b;
    to[2 * to_step] = mlk_fma(half, sum_a, two * sum_b);
    to[3 * to_step] = mlk_fma(half, odd_a, mlk_fma(two, odd_b, from[5 * from_step]));
}

// to = A from: 4 gradients of results to 6 points.
MLK_LEAF void mlk_map_gradients(const mlk_v *from, int64_t from_step, mlk_v *to, int64_t to_step)
{
    const mlk_v a = mlk_all(MLK_A), b = mlk_all(MLK_B), half = mlk_all(0.5f), two = mlk_all(2);
    mlk_v y0 = from[0], y1 = from[from_step], y2 = from[2 * from_step], y3 = from[3 * from_step];
    mlk_v even_a = mlk_fma(half, y2, y0), odd_a = mlk_fma(half, y3, y1);
    mlk_v even_b = mlk_fma(two, y2, y0), odd_b = mlk_fma(two, y3, y1);
    to[0] = y0;
    to[to_step] = mlk_fma(a, odd_a, even_a);
    to[2 * to_step] = mlk_fma(-a, odd_a, even_a);
    to[3 * to_step] = mlk_fma(b, odd_b, even_b);
    to[4 * to_step] = mlk_fma(-b, odd_b, even_b);
    to[5 * to_step] = y3;
}

// to = G from: 3 taps to 6 points.
MLK_LEAF void mlk_map_taps(const mlk_v *from, int64_t from_step, mlk_v *to, int64_t to_step)
{
    const mlk_v a = mlk_all(MLK_A), b = mlk_all(MLK_B), half = mlk_all(0.5f), two = mlk_all(2);
    const mlk_v by_a = mlk_all(-2.0f / 3), by_b = mlk_all(1.0f / 6);
    mlk_v even_a = mlk_fma(half, from[2 * from_step], from[0]), even_b = mlk_fma(two, from[2 * from_step], from[0]);
    to[0] = from[0];
    to[to_step] = by_a * mlk_fma(a, from[from_step], even_a);
    to[2 * to_step] = by_a * mlk_fma(-a, from[from_step], even_a);
    to[3 * to_step] = by_b * mlk_fma(b, from[from_step], even_b);
    to[4 * to_step] = by_b * mlk_fma(-b, from[from_step], even_b);
    to[5 * to_step] = from[2 * from_step];
}

// to = G' from: 6 points to the gradients of 3 taps.
MLK_LEAF void mlk_map_back(const mlk_v *from, int64_t from_step, mlk_v *to, int64_t to_step)
{
    const mlk_v a = mlk_all(MLK_A), b = mlk_all(MLK_B), half = mlk_all(0.5f), two = mlk_all(2);
    const mlk_v by_a = mlk_all(-2.0f / 3), by_b = mlk_all(1.0f / 6);
    mlk_v sum_a = by_a * (from[from_step] + from[2 * from_step]), sum_b = by_b * (from[3 * from_step] + from[4 * from_step]);
    mlk_v odd_a = by_a * (from[from_step] - from[2 * from_step]), odd_b = by_b * (from[3 * from_step] - from[4 * from_step]);
    to[0] = (from[0] + sum_a) + sum_b;
    to[to_step] = mlk_fma(a, odd_a, b * odd_b);
    to[2 * to_step] = mlk_fma(half, sum_a, mlk_fma(two, sum_b, from[5 * from_step]));
}

// --- Weights ---------------------------------------------------------------------------------------------------------------

// Floats of one point, and of all, in a panel of mapped weights.
MLK_LEAF int64_t mlk_winograd_point(const MlkConv2d *s) { return mlk_odd_lines(s->c * MLK_COLUMNS); }
MLK_LEAF int64_t mlk_winograd_panel(const MlkConv2d *s) { return MLK_POINTS * mlk_winograd_point(s); }

// Floats of the mapped weights: panels of MLK_COLUMNS results, in each point after point, channel after channel.
MLK_LEAF int64_t mlk_winograd_weights(const MlkConv2d *s)
{
    return (s->oc + MLK_COLUMNS - 1) / MLK_COLUMNS * mlk_winograd_panel(s);
}

// What lies between the points is 0: nothing uses it, but all of the memory can be looked at.
MLK_FN void mlk_winograd_blank(const MlkConv2d *s, float *panel)
{
    int64_t used = s->c * MLK_COLUMNS, point = mlk_winograd_point(s);
    for (int64_t e = 0; e < MLK_POINTS; e++)
        memset(panel + e * point + used, 0, (size_t)(point - used) * sizeof *panel);
}

// The taps of one channel, tap t of result j at taps[t * MLK_COLUMNS + j], to all points.
MLK_FN void mlk_winograd_map_weight(const float *taps, float *u, int64_t point)
{
    for (int64_t j = 0; j < MLK_COLUMNS; j += MLK_W) {
        mlk_v w[9], rows[18], all[MLK_POINTS];
        MLK_UNROLL for (int t = 0; t < 9; t++)
            w[t] = mlk_load(taps + t * MLK_COLUMNS + j);
        MLK_UNROLL for (int q = 0; q < 3; q++)
            mlk_map_taps(w + q, 3, rows + q, 3);
        MLK_UNROLL for (int r = 0; r < 6; r++)
            mlk_map_taps(rows + 3 * r, 1, all + 6 * r, 1);
        for (int64_t e = 0; e < MLK_POINTS; e++)
            mlk_store(u + e * point + j, all[e]);
    }
}

// u (mlk_winograd_weights) from the weights of the convolution s: (oc, c, 3, 3), or where `turned` (c, oc, 3, 3) with the
// taps reversed: the convolution that gives the input's gradient. part of parts: a share of the channels.
MLK_FN void mlk_winograd_weight(const MlkConv2d *s, const float *weight, int turned, float *u, int part, int parts)
{
    float taps[9 * MLK_COLUMNS], reversed[9 * MLK_COLUMNS];
    int64_t point = mlk_winograd_point(s), row = turned ? 9 : s->c * 9;
    int64_t end = mlk_share(s->c, part + 1, parts);
    for (int64_t o = 0; o < s->oc; o += MLK_COLUMNS) {
        float *panel = u + o / MLK_COLUMNS * mlk_winograd_panel(s);
        int64_t count = mlk_min(s->oc - o, MLK_COLUMNS);
        if (count < MLK_COLUMNS)
            memset(taps, 0, sizeof taps);
        for (int64_t c = mlk_share(s->c, part, parts); c < end; c++) {
            mlk_transpose(count, 9, turned ? weight + (c * s->oc + o) * 9 : weight + (o * s->c + c) * 9, row, taps, MLK_COLUMNS);
            for (int64_t t = 0; turned && t < 9; t++)
                memcpy(reversed + t * MLK_COLUMNS, taps + (8 - t) * MLK_COLUMNS, MLK_COLUMNS * sizeof *taps);
            mlk_winograd_map_weight(turned ? reversed : taps, panel + c * MLK_COLUMNS, point);
        }
        if (part == 0)
            mlk_winograd_blank(s, panel);
    }
}

// --- A block of tiles --------------------------------------------------------------------------------------------------------

// Rows of pixels of one image that a block has turned: first..end-1.
typedef struct MlkBlock {
    int64_t image, images;     // which images
    int64_t row, rows;         // which rows of tiles in each
    int64_t tiles;
    int64_t first, end;        // rows of pixels
    int64_t image_floats;      // turned pixels of one image
} MlkBlock;

// The block that begins at row `row` of tiles of image `image` and ends before image `end`.
MLK_LEAF MlkBlock mlk_winograd_block(const MlkConv2d *s, const MlkTiling *t, int64_t image, int64_t end, int64_t row)
{
    MlkBlock b = {.image = image, .images = mlk_min(t->images, end - image), .row = row, .rows = mlk_min(t->rows, t->height - row)};
    b.tiles = b.images * b.rows * t->width;
    b.first = mlk_min(mlk_max_of(4 * row - s->pad_top, 0), s->h);
    b.end = mlk_max_of(b.first, mlk_min(4 * (row + b.rows) + 2 - s->pad_top, s->h));
    b.image_floats = (b.end - b.first) * s->w * t->channels;
    return b;
}

MLK_LEAF int64_t mlk_winograd_turned(const MlkConv2d *s, const MlkTiling *t)
{
    return t->images * mlk_min(4 * t->rows + 2, s->h) * s->w * t->channels;
}

// One tile's pixels, all channels, to points: v + point * area + channel. pixel: 36 addresses.
MLK_FN void mlk_winograd_map_tile(const float *const *pixel, int64_t channels, float *v, int64_t area)
{
    for (int64_t c = 0; c < channels; c += MLK_W) {
        mlk_v x[6], rows[MLK_POINTS], all[6];
        MLK_UNROLL for (int q = 0; q < 6; q++) {
            MLK_UNROLL for (int r = 0; r < 6; r++)
                x[r] = mlk_load(pixel[6 * r + q] + c);
            mlk_map_pixels(x, 1, rows + q, 6);
        }
        MLK_UNROLL for (int r = 0; r < 6; r++) {
            mlk_map_pixels(rows + 6 * r, 1, all, 1);
            MLK_UNROLL for (int q = 0; q < 6; q++)
                mlk_store(v + (6 * r + q) * area + c, all[q]);
        }
    }
}

// Turns the block's pixels and maps its tiles: v (36, tiles, pitch).
MLK_FN void mlk_winograd_pixels(const MlkConv2d *s, const MlkTiling *t, const MlkBlock *b, const float *x, const float *zeros,
                                float *turned, float *v)
{
    int64_t area = mlk_odd_lines(b->tiles * t->pitch), tile = 0;
    for (int64_t i = 0; i < b->images; i++) {
        float *image = turned + i * b->image_floats;
        mlk_transpose(s->c, (b->end - b->first) * s->w, x + (b->image + i) * s->c * s->h * s->w + b->first * s->w,
                      s->h * s->w, image, t->channels);
        for (int64_t ty = b->row; ty < b->row + b->rows; ty++)
            for (int64_t tx = 0; tx < t->width; tx++, tile++) {
                const float *pixel[MLK_POINTS];
                for (int64_t p = 0; p < MLK_POINTS; p++) {
                    int64_t h = 4 * ty + p / 6 - s->pad_top, w = 4 * tx + p % 6 - s->pad_left;
                    int inside = h >= 0 && h < s->h && w >= 0 && w < s->w;
                    pixel[p] = inside ? image + ((h - b->first) * s->w + w) * t->channels : zeros;
                }
                mlk_winograd_map_tile(pixel, t->channels, v + tile * t->pitch, area);
            }
    }
}

// m (36, tiles, MLK_COLUMNS) = v times the weights of one panel, point by point.
MLK_FN void mlk_winograd_products(const MlkConv2d *s, const MlkTiling *t, const MlkBlock *b, const float *v, const float *u,
                                  float *m)
{
    int64_t v_area = mlk_odd_lines(b->tiles * t->pitch), m_area = mlk_odd_lines(b->tiles * MLK_COLUMNS);
    for (int64_t e = 0; e < MLK_POINTS; e++) {
        MlkTile tile = {.a_row = t->pitch, .a_step = 1, .b_row = MLK_COLUMNS, .c_row = MLK_COLUMNS, .start_row = MLK_COLUMNS,
                        .rows = b->tiles, .columns = MLK_PANEL};
        for (int64_t k = 0; k < s->c; k += MLK_K_BLOCK)
            for (int64_t j = 0; j < MLK_COLUMNS; j += MLK_PANEL) {
                tile.k = mlk_min(s->c - k, MLK_K_BLOCK);
                tile.a = v + e * v_area + k;
                tile.b = u + e * mlk_winograd_point(s) + k * MLK_COLUMNS + j;
                tile.c = m + e * m_area + j;
                tile.start = k > 0 ? tile.c : NULL;
                mlk_panel(&tile);
            }
    }
}

// One tile's sums to results, pixel (r, q) to y + (r * width + q) * MLK_COLUMNS for rows x columns of them.
MLK_FN void mlk_winograd_map_sums(const float *m, int64_t area, const float *bias, float *y, int64_t width, int64_t rows,
                                  int64_t columns)
{
    for (int64_t j = 0; j < MLK_COLUMNS; j += MLK_W) {
        mlk_v sums[6], half[24], all[16], start = mlk_load(bias + j);
        MLK_UNROLL for (int q = 0; q < 6; q++) {
            MLK_UNROLL for (int r = 0; r < 6; r++)
                sums[r] = mlk_load(m + (6 * r + q) * area + j);
            mlk_map_results(sums, 1, half + q, 6);
        }
        MLK_UNROLL for (int r = 0; r < 4; r++)
            mlk_map_results(half + 6 * r, 1, all + 4 * r, 1);
        MLK_UNROLL for (int r = 0; r < 4; r++)
            MLK_UNROLL for (int q = 0; q < 4; q++)
                if (r < rows && q < columns)
                    mlk_store(y + (r * width + q) * MLK_COLUMNS + j, all[4 * r + q] + start);
    }
}

// The results of one panel of channels, from the sums to y: turned pixels first, then channels.
MLK_FN void mlk_winograd_results(const MlkConv2d *s, const MlkTiling *t, const MlkBlock *b, const float *m, const float *bias,
                                 float *turned, float *y, int64_t first, int64_t count)
{
    int64_t tile = 0, top = 4 * b->row, rows = mlk_min(4 * b->rows, s->oh - top);
    for (int64_t i = 0; i < b->images; i++) {
        for (int64_t ty = 0; ty < b->rows; ty++)
            for (int64_t tx = 0; tx < t->width; tx++, tile++)
                mlk_winograd_map_sums(m + tile * MLK_COLUMNS, mlk_odd_lines(b->tiles * MLK_COLUMNS), bias,
                                      turned + (4 * ty * s->ow + 4 * tx) * MLK_COLUMNS, s->ow, mlk_min(4, rows - 4 * ty),
                                      mlk_min(4, s->ow - 4 * tx));
        mlk_transpose(rows * s->ow, count, turned, MLK_COLUMNS,
                      y + (((b->image + i) * s->oc + first) * s->oh + top) * s->ow, s->oh * s->ow);
    }
}

// --- The convolution -----------------------------------------------------------------------------------------------------------

// Scratch floats for each worker of mlk_winograd.
MLK_FN int64_t mlk_winograd_scratch(const MlkConv2d *s)
{
    MlkTiling t = mlk_winograd_tiling(s, mlk_winograd_wanted(s));
    return t.channels + mlk_winograd_turned(s, &t) + MLK_POINTS * (mlk_odd_lines(t.tiles * t.pitch) + mlk_odd_lines(t.tiles * MLK_COLUMNS)) +
           4 * t.rows * s->ow * MLK_COLUMNS;
}

// The result channels first..end-1 (`first` begins a panel) of the images from..end_image-1.
MLK_FN void mlk_winograd_images(const MlkConv2d *s, const float *x, const float *u, const float *bias, float *y,
                                float *scratch, int64_t image, int64_t end_image, int64_t first, int64_t end)
{
    MlkTiling t = mlk_winograd_tiling(s, mlk_winograd_wanted(s));
    float *zeros = scratch, *pixels = zeros + t.channels, *v = pixels + mlk_winograd_turned(s, &t);
    float *m = v + MLK_POINTS * mlk_odd_lines(t.tiles * t.pitch);
    float *results = m + MLK_POINTS * mlk_odd_lines(t.tiles * MLK_COLUMNS);
    memset(zeros, 0, (size_t)t.channels * sizeof *zeros);
    for (; image < end_image; image += t.images)
        for (int64_t row = 0; row < t.height; row += t.rows) {
            MlkBlock b = mlk_winograd_block(s, &t, image, end_image, row);
            mlk_winograd_pixels(s, &t, &b, x, zeros, pixels, v);
            for (int64_t o = first; o < end; o += MLK_COLUMNS) {
                int64_t count = mlk_min(end - o, MLK_COLUMNS);
                float start[MLK_COLUMNS] = {0};
                if (bias)
                    memcpy(start, bias + o, (size_t)count * sizeof *bias);
                mlk_winograd_products(s, &t, &b, v, u + o / MLK_COLUMNS * mlk_winograd_panel(s), m);
                mlk_winograd_results(s, &t, &b, m, start, results, y, o, count);
            }
        }
}

// y (n, oc, oh, ow) = bias (oc, or NULL) + x (n, c, h, w) convolved with 3x3 weights, stride 1, that mlk_winograd_weight has
// mapped to u. scratch: mlk_winograd_scratch floats of this worker's own. part of parts, a multiple of `columns`: a share of
// the result channels (in `columns` shares) by a share of the images.
MLK_FN void mlk_winograd(const MlkConv2d *s, const float *x, const float *u, const float *bias, float *y, int columns,
                         float *scratch, int part, int parts)
{
    int64_t panels = (s->oc + MLK_COLUMNS - 1) / MLK_COLUMNS;
    int column = part % columns, row = part / columns, rows = parts / columns;
    int64_t first = mlk_share(panels, column, columns) * MLK_COLUMNS;
    int64_t end = mlk_min(mlk_share(panels, column + 1, columns) * MLK_COLUMNS, s->oc);
    if (first < end)
        mlk_winograd_images(s, x, u, bias, y, scratch, mlk_share(s->n, row, rows), mlk_share(s->n, row + 1, rows), first, end);
}

// --- The gradient of the weights -------------------------------------------------------------------------------------------------

// Floats of the mapped gradient for `splits` shares of the images.
MLK_LEAF int64_t mlk_winograd_sums(const MlkConv2d *s, int splits) { return splits * mlk_winograd_weights(s); }

// Scratch floats for each worker of mlk_winograd_grad_weight.
MLK_FN int64_t mlk_winograd_grad_weight_scratch(const MlkConv2d *s)
{
    MlkTiling t = mlk_winograd_tiling(s, MLK_WINOGRAD_TILES);
    int64_t pixels = mlk_winograd_turned(s, &t), results = t.images * 4 * t.rows * s->ow * MLK_COLUMNS;
    return mlk_max_of(t.channels, MLK_COLUMNS) + mlk_max_of(pixels, results) + MLK_POINTS * (mlk_odd_lines(t.tiles * t.pitch) + mlk_odd_lines(t.tiles * MLK_COLUMNS));
}

// One tile of dy, a panel of channels, to points.
MLK_FN void mlk_winograd_map_gradient(const float *const *pixel, float *d, int64_t area)
{
    for (int64_t j = 0; j < MLK_COLUMNS; j += MLK_W) {
        mlk_v y[4], rows[24], all[6];
        MLK_UNROLL for (int q = 0; q < 4; q++) {
            MLK_UNROLL for (int r = 0; r < 4; r++)
                y[r] = mlk_load(pixel[4 * r + q] + j);
            mlk_map_gradients(y, 1, rows + q, 4);
        }
        MLK_UNROLL for (int r = 0; r < 6; r++) {
            mlk_map_gradients(rows + 4 * r, 1, all, 1);
            MLK_UNROLL for (int q = 0; q < 6; q++)
                mlk_store(d + (6 * r + q) * area + j, all[q]);
        }
    }
}

// Turns and maps a panel of dy: d (36, tiles, MLK_COLUMNS).
MLK_FN void mlk_winograd_gradients(const MlkConv2d *s, const MlkTiling *t, const MlkBlock *b, const float *dy, int64_t first,
                                   int64_t count, const float *zeros, float *turned, float *d)
{
    int64_t top = 4 * b->row, rows = mlk_min(4 * b->rows, s->oh - top), tile = 0;
    if (count < MLK_COLUMNS)
        memset(turned, 0, (size_t)(rows * s->ow * MLK_COLUMNS) * sizeof *turned);
    for (int64_t i = 0; i < b->images; i++) {
        mlk_transpose(count, rows * s->ow, dy + (((b->image + i) * s->oc + first) * s->oh + top) * s->ow, s->oh * s->ow,
                      turned, MLK_COLUMNS);
        for (int64_t ty = 0; ty < b->rows; ty++)
            for (int64_t tx = 0; tx < t->width; tx++, tile++) {
                const float *pixel[16];
                for (int64_t p = 0; p < 16; p++) {
                    int64_t h = 4 * ty + p / 4, w = 4 * tx + p % 4;
                    pixel[p] = h < rows && w < s->ow ? turned + (h * s->ow + w) * MLK_COLUMNS : zeros;
                }
                mlk_winograd_map_gradient(pixel, d + tile * MLK_COLUMNS, mlk_odd_lines(b->tiles * MLK_COLUMNS));
            }
    }
}

// sums (36, c, MLK_COLUMNS) of one panel, with what the block adds.
MLK_FN void mlk_winograd_join(const MlkConv2d *s, const MlkTiling *t, const MlkBlock *b, const float *v, const float *d,
                              float *sums, int more)
{
    int64_t v_area = mlk_odd_lines(b->tiles * t->pitch), d_area = mlk_odd_lines(b->tiles * MLK_COLUMNS);
    for (int64_t e = 0; e < MLK_POINTS; e++)
        for (int64_t j = 0; j < MLK_COLUMNS; j += MLK_PANEL) {
            MlkTile tile = {.k = b->tiles, .a = v + e * v_area, .a_row = 1, .a_step = t->pitch, .b = d + e * d_area + j,
                            .b_row = MLK_COLUMNS, .start_row = MLK_COLUMNS, .c = sums + e * mlk_winograd_point(s) + j, .c_row = MLK_COLUMNS, .rows = s->c, .columns = MLK_PANEL};
            tile.start = more ? tile.c : NULL;
            mlk_panel(&tile);
        }
}

// The mapped gradient, for each of `splits` shares of the images apart: sums (splits, panels, 36, c, MLK_COLUMNS). part of
// parts, a multiple of `splits`: one share of the images, and a share of the panels. mlk_winograd_grad_finish adds up.
MLK_FN void mlk_winograd_grad_weight(const MlkConv2d *s, const float *x, const float *dy, float *sums, int splits,
                                     float *scratch, int part, int parts)
{
    MlkTiling t = mlk_winograd_tiling(s, MLK_WINOGRAD_TILES);
    int64_t panels = (s->oc + MLK_COLUMNS - 1) / MLK_COLUMNS, size = mlk_winograd_panel(s);
    int split = part % splits, columns = parts / splits;
    int64_t first = mlk_share(panels, part / splits, columns), end = mlk_share(panels, part / splits + 1, columns);
    int64_t image = mlk_share(s->n, split, splits), end_image = mlk_share(s->n, split + 1, splits), begin = image;
    int64_t room = mlk_max_of(mlk_winograd_turned(s, &t), t.images * 4 * t.rows * s->ow * MLK_COLUMNS);
    int64_t blank = mlk_max_of(t.channels, MLK_COLUMNS);
    float *zeros = scratch, *turned = zeros + blank, *v = turned + room, *d = v + MLK_POINTS * mlk_odd_lines(t.tiles * t.pitch);
    memset(zeros, 0, (size_t)blank * sizeof *zeros);
    sums += (split * panels + first) * size;
    for (int64_t p = first; p < end; p++)
        mlk_winograd_blank(s, sums + (p - first) * size);
    if (begin == end_image)
        memset(sums, 0, (size_t)((end - first) * size) * sizeof *sums);
    for (; image < end_image && first < end; image += t.images)
        for (int64_t row = 0; row < t.height; row += t.rows) {
            MlkBlock b = mlk_winograd_block(s, &t, image, end_image, row);
            mlk_winograd_pixels(s, &t, &b, x, zeros, turned, v);
            for (int64_t p = first; p < end; p++) {
                mlk_winograd_gradients(s, &t, &b, dy, p * MLK_COLUMNS, mlk_min(s->oc - p * MLK_COLUMNS, MLK_COLUMNS), zeros, turned, d);
                mlk_winograd_join(s, &t, &b, v, d, sums + (p - first) * size, image > begin || row > 0);
            }
        }
}

// The sums of one channel and panel, over the splits, back to 9 taps: taps[t * MLK_COLUMNS + j].
MLK_FN void mlk_winograd_map_back(const float *sums, int64_t point, int64_t split, int splits, float *taps)
{
    for (int64_t j = 0; j < MLK_COLUMNS; j += MLK_W) {
        mlk_v column[6], rows[18], all[9];
        MLK_UNROLL for (int q = 0; q < 6; q++) {
            MLK_UNROLL for (int r = 0; r < 6; r++) {
                column[r] = mlk_load(sums + (6 * r + q) * point + j);
                for (int k = 1; k < splits; k++)
                    column[r] += mlk_load(sums + k * split + (6 * r + q) * point + j);
            }
            mlk_map_back(column, 1, rows + q, 6);
        }
        MLK_UNROLL for (int r = 0; r < 3; r++)
            mlk_map_back(rows + 6 * r, 1, all + 3 * r, 1);
        MLK_UNROLL for (int t = 0; t < 9; t++)
            mlk_store(taps + t * MLK_COLUMNS + j, all[t]);
    }
}

// dweight (oc, c, 3, 3) from the sums of mlk_winograd_grad_weight. part of parts: a share of the channels.
MLK_FN void mlk_winograd_grad_finish(const MlkConv2d *s, const float *sums, int splits, float *dweight, int part, int parts)
{
    enum { CHANNELS = 8 };
    float taps[CHANNELS * 9 * MLK_COLUMNS];
    int64_t point = mlk_winograd_point(s), split = mlk_winograd_weights(s), end = mlk_share(s->c, part + 1, parts);
    for (int64_t o = 0; o < s->oc; o += MLK_COLUMNS)
        for (int64_t c = mlk_share(s->c, part, parts); c < end; c += CHANNELS) {
            int64_t count = mlk_min(end - c, CHANNELS);
            for (int64_t k = 0; k < count; k++)
                mlk_winograd_map_back(sums + o / MLK_COLUMNS * mlk_winograd_panel(s) + (c + k) * MLK_COLUMNS, point, split, splits,
                                      taps + k * 9 * MLK_COLUMNS);
            mlk_transpose(count * 9, mlk_min(s->oc - o, MLK_COLUMNS), taps, MLK_COLUMNS, dweight + (o * s->c + c) * 9, s->c * 9);
        }
}

#endif
