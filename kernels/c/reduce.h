// Sums, dot products and maxima of rows and columns, in a fixed order.
//
// A row is summed in 4 vectors of running sums, element i always into lane i % (4 MLK_W); these are added in pairs, then
// halves of the last vector onto each other. The order depends on the length and the vector width alone. Rounding
// errors grow with n / (4 MLK_W), not with n.
#ifndef MLK_REDUCE_H
#define MLK_REDUCE_H

#include "vector.h"

// The sum of x[i] * y[i], or of x[i] if y is NULL (a constant where this is called).
MLK_LEAF float mlk_sum_products(const float *x, const float *y, int64_t n)
{
    const mlk_v one = mlk_all(1.0f);
    mlk_v sum[4] = {{0}, {0}, {0}, {0}};
    int64_t i = 0;
    for (; i + 4 * MLK_W <= n; i += 4 * MLK_W)
        MLK_UNROLL for (int j = 0; j < 4; j++)
            sum[j] = mlk_fma(mlk_load(x + i + j * MLK_W), y ? mlk_load(y + i + j * MLK_W) : one, sum[j]);
    MLK_UNROLL for (int j = 0; j < 4; j++) {
        int64_t left = mlk_min(mlk_max_of(n - i - j * MLK_W, 0), MLK_W);
        if (left > 0)
            sum[j] = mlk_fma(mlk_load_first(x + i + j * MLK_W, left),
                             y ? mlk_load_first(y + i + j * MLK_W, left) : one, sum[j]);
    }
    return mlk_sum_lanes((sum[0] + sum[2]) + (sum[1] + sum[3]));
}

// The sum of x (n); 0 for n = 0.
MLK_FN float mlk_sum(const float *x, int64_t n) { return mlk_sum_products(x, NULL, n); }

// The sum of x[i] * y[i], i < n.
MLK_FN float mlk_dot(const float *x, const float *y, int64_t n) { return mlk_sum_products(x, y, n); }

// The largest of x (n); a NaN among them gives NaN, n = 0 gives -infinity. Largest and NaN are kept apart, so that
// neither depends on the order.
MLK_FN float mlk_max(const float *x, int64_t n)
{
    const mlk_v least = mlk_all(-__builtin_inff());
    mlk_v most = least, nan = {0};
    for (int64_t i = 0; i < n; i += MLK_W) {
        float end[MLK_W];
        const float *from = x + i;
        if (n - i < MLK_W) {
            mlk_store(end, least);
            memcpy(end, from, (size_t)(n - i) * sizeof *x);
            from = end;
        }
        mlk_v v = mlk_load(from);
        __typeof__(v > most) more = v > most;
        most = (mlk_v)(((__typeof__(more))v & more) | ((__typeof__(more))most & ~more));
        nan = (mlk_v)((__typeof__(more))nan | (v != v));
    }
    float lanes[MLK_W], result = -__builtin_inff();
    int32_t nans[MLK_W];
    mlk_store(lanes, most);
    memcpy(nans, &nan, sizeof nans);
    for (int i = 0; i < MLK_W; i++) {
        if (nans[i])
            return __builtin_nanf("");
        result = lanes[i] > result ? lanes[i] : result;
    }
    return result;
}

// One vector of columns: rows are added in blocks of 64, and the blocks' sums to each other.
MLK_LEAF mlk_v mlk_sum_rows(int64_t m, const float *x, int64_t x_row, int64_t lanes)
{
    mlk_v total = {0};
    for (int64_t i = 0; i < m;) {
        mlk_v sum = {0};
        for (int64_t end = mlk_min(m, i + 64); i < end; i++)
            sum += lanes == MLK_W ? mlk_load(x + i * x_row) : mlk_load_first(x + i * x_row, lanes);
        total += sum;
    }
    return total;
}

// y (n) = the sums of the columns of x (m, n), whose rows are x_row floats apart: a bias' gradient. part of parts: a
// share of the columns.
MLK_FN void mlk_sum_columns(int64_t m, int64_t n, const float *x, int64_t x_row, float *y, int part, int parts)
{
    int64_t vectors = (n + MLK_W - 1) / MLK_W;
    for (int64_t j = mlk_share(vectors, part, parts) * MLK_W; j < mlk_share(vectors, part + 1, parts) * MLK_W; j += MLK_W) {
        int64_t lanes = mlk_min(n - j, MLK_W);
        if (lanes == MLK_W)
            mlk_store(y + j, mlk_sum_rows(m, x + j, x_row, MLK_W));
        else
            mlk_store_first(y + j, mlk_sum_rows(m, x + j, x_row, lanes), lanes);
    }
}

// y (c) = the sums of x (n, c, area) over n and area: the gradient of a convolution's bias, a batch norm's mean. part of
// parts: a share of the channels; each adds the images' sums in their order.
MLK_FN void mlk_sum_channels(int64_t n, int64_t c, int64_t area, const float *x, float *y, int part, int parts)
{
    for (int64_t i = mlk_share(c, part, parts); i < mlk_share(c, part + 1, parts); i++) {
        float sum = 0;
        for (int64_t image = 0; image < n; image++)
            sum += mlk_sum(x + (image * c + i) * area, area);
        y[i] = sum;
    }
}

#endif
