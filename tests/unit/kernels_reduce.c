// Sums, dot products, maxima and pooling against their plain versions.
#include "kernels.h"

#include "../../kernels/c/pool.h"
#include "../../kernels/c/reduce.h"
#include "../../kernels/c/plain.h"

static void test_rows(int64_t n)
{
    float *x = take_random(n), *y = take_random(n);
    double sum = 0, dot = 0, size = 0, dot_size = 0;
    float most = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i];
        size += fabsf(x[i]);
        dot += (double)x[i] * y[i];
        dot_size += fabs((double)x[i] * y[i]);
        most = fmaxf(most, x[i]);
    }
    check(close_sum(mlk_sum(x, n), sum, size, n), "sum");
    check(close_sum(mlk_dot(x, y, n), dot, dot_size, n), "dot");
    check(mlk_max(x, n) == most, "max");
    if (n > 0) {
        x[random_below((int)n)] = NAN;
        check(isnan(mlk_max(x, n)), "max of a NaN");
        check(isnan(mlk_sum(x, n)), "sum of a NaN");
    }
    free(x), free(y);
}

static void test_columns(int64_t m, int64_t n, int64_t pad)
{
    int64_t row = n + pad, size = m && n ? (m - 1) * row + n : 0;
    float *x = take_random(size), *y = take_unset(n), *other = take_unset(n);
    mlk_sum_columns(m, n, x, row, y, 0, 1);
    for (int part = 0; part < 5; part++)
        mlk_sum_columns(m, n, x, row, other, part_at(part, 5), 5);
    check(same_bits(y, other, n), "sum_columns: parts change bits");
    for (int64_t j = 0; j < n; j++) {
        double sum = 0, magnitude = 0;
        for (int64_t i = 0; i < m; i++) {
            sum += x[i * row + j];
            magnitude += fabsf(x[i * row + j]);
        }
        check(close_sum(y[j], sum, magnitude, m), "sum_columns");
    }
    free(x), free(y), free(other);
}

static void test_channels(int64_t n, int64_t c, int64_t area)
{
    float *x = take_random(n * c * area), *y = take_unset(c);
    for (int part = 0; part < 3; part++)
        mlk_sum_channels(n, c, area, x, y, part_at(part, 3), 3);
    for (int64_t i = 0; i < c; i++) {
        double sum = 0, magnitude = 0;
        for (int64_t image = 0; image < n; image++)
            for (int64_t p = 0; p < area; p++) {
                sum += x[(image * c + i) * area + p];
                magnitude += fabsf(x[(image * c + i) * area + p]);
            }
        check(close_sum(y[i], sum, magnitude, n * area), "sum_channels");
    }
    free(x), free(y);
}

// Values from a few, so that equal ones meet, with NaN and infinities among them.
static float *take_few(int64_t n, int odd_values)
{
    static const float few[] = {0, 1, 2, -1, 0.5f, INFINITY, -INFINITY, NAN};
    float *x = take((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = few[random_below(odd_values ? 8 : 5)];
    return x;
}

static void test_maxpool(const MlkPool2d *s, int odd_values)
{
    int64_t nx = s->planes * s->h * s->w, ny = s->planes * s->oh * s->ow;
    float *x = take_few(nx, odd_values), *y = take_unset(ny), *dy = take_random(ny), *dx = take_unset(nx);
    float *want = take((size_t)nx * sizeof *want);
    uint8_t *at = take((size_t)ny);
    memset(want, 0, (size_t)nx * sizeof *want);
    for (int part = 0; part < 3; part++)
        mlk_maxpool2d(s, x, y, at, part_at(part, 3), 3);
    for (int part = 0; part < 3; part++)
        mlk_maxpool2d_grad(s, dy, at, dx, part_at(part, 3), 3);
    int same = 1;
    for (int64_t i = 0; i < ny; i++) {
        int tap;
        int64_t plane = i / (s->oh * s->ow), oy = i / s->ow % s->oh, ox = i % s->ow;
        float most = plain_maxpool2d(s, x + plane * s->h * s->w, oy, ox, &tap);
        if (tap < 0) {
            same &= at[i] == MLK_POOL_NOWHERE && y[i] == -INFINITY;
            continue;
        }
        same &= at[i] == tap && (y[i] == most || (isnan(y[i]) && isnan(most)));
        int64_t h = oy * s->stride_h + tap / s->kw * s->dilation_h - s->pad_top;
        int64_t w = ox * s->stride_w + tap % s->kw * s->dilation_w - s->pad_left;
        want[(plane * s->h + h) * s->w + w] += dy[i];
    }
    check(same, "maxpool2d");
    check(same_bits(dx, want, nx), "maxpool2d_grad");
    free(x), free(y), free(dy), free(dx), free(want), free(at);
}

static void test_avgpool(const MlkPool2d *s, int count_pad)
{
    int64_t nx = s->planes * s->h * s->w, ny = s->planes * s->oh * s->ow;
    float *x = take_random(nx), *y = take_unset(ny), *dy = take_random(ny), *dx = take_unset(nx);
    for (int part = 0; part < 3; part++)
        mlk_avgpool2d(s, x, y, count_pad, part_at(part, 3), 3);
    for (int part = 0; part < 3; part++)
        mlk_avgpool2d_grad(s, dy, dx, count_pad, part_at(part, 3), 3);
    int near = 1;
    double through = 0, back = 0;  // <dy, A x> = <A' dy, x>: the gradient is the transpose
    for (int64_t i = 0; i < ny; i++) {
        int inside, padded;
        double sum = plain_avgpool2d(s, x + i / (s->oh * s->ow) * s->h * s->w, i / s->ow % s->oh, i % s->ow, &inside,
                                     &padded);
        near &= fabs(y[i] - sum / (count_pad ? padded : inside)) < 1e-6;
        through += (double)dy[i] * y[i];
    }
    for (int64_t i = 0; i < nx; i++)
        back += (double)dx[i] * x[i];
    check(near, "avgpool2d");
    check(fabs(through - back) < 1e-5 * (1 + fabs(through)), "avgpool2d_grad");
    free(x), free(y), free(dy), free(dx);
}

static int64_t pool_size(int64_t size, int64_t pad, int64_t window, int64_t stride, int ceil_mode)
{
    int64_t room = size + 2 * pad - window;
    if (room < 0)
        return 0;
    int64_t count = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
    return (count - 1) * stride >= size + pad ? count - 1 : count;  // the last window starts in the image or its padding
}

// Windows of 2x2 side by side, with and without pixels that none covers.
static void test_pairs(void)
{
    static const int64_t sizes[][2] = {{28, 28}, {14, 14}, {7, 9}, {33, 67}, {2, 2}, {3, 32}, {4, 34}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        MlkPool2d s = {.planes = 5, .h = sizes[i][0], .w = sizes[i][1], .oh = sizes[i][0] / 2, .ow = sizes[i][1] / 2, .kh = 2,
                       .kw = 2, .stride_h = 2, .stride_w = 2, .dilation_h = 1, .dilation_w = 1};
        check(mlk_pool_pairs(&s), "windows side by side");
        test_maxpool(&s, 0);
        test_maxpool(&s, 1);
    }
}

static void test_pools(void)
{
    int kh = 1 + random_below(4), kw = 1 + random_below(4), ceil_mode = random_below(2);
    MlkPool2d s = {.planes = 1 + random_below(5), .h = 1 + random_below(20), .w = 1 + random_below(40), .kh = kh,
                   .kw = kw, .stride_h = 1 + random_below(3), .stride_w = 1 + random_below(3),
                   .pad_top = random_below(kh / 2 + 1), .pad_left = random_below(kw / 2 + 1), .dilation_h = 1,
                   .dilation_w = 1};
    s.oh = pool_size(s.h, s.pad_top, kh, s.stride_h, ceil_mode);
    s.ow = pool_size(s.w, s.pad_left, kw, s.stride_w, ceil_mode);
    if (s.oh == 0 || s.ow == 0)
        return;
    test_maxpool(&s, random_below(2));
    test_avgpool(&s, random_below(2));
    s.dilation_h = s.dilation_w = 2;
    s.oh = pool_size(s.h, s.pad_top, 2 * kh - 1, s.stride_h, 0);
    s.ow = pool_size(s.w, s.pad_left, 2 * kw - 1, s.stride_w, 0);
    if (s.oh > 0 && s.ow > 0)
        test_maxpool(&s, 1);
}

int main(void)
{
    for (int n = 0; n < 300; n += n < 70 ? 1 : 23)
        test_rows(n);
    test_rows(5000);
    test_columns(0, 5, 0);
    test_columns(3, 0, 0);
    for (int i = 0; i < 60; i++)
        test_columns(random_below(200), random_below(70), random_below(4));
    test_channels(3, 5, 49);
    test_channels(1, 1, 1);
    for (int i = 0; i < 600; i++)
        test_pools();
    test_pairs();
    return check_summary();
}
