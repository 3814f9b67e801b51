// Winograd's convolution and its gradients against the plain triples in double: odd maps and channel counts, uneven padding,
// more images than a block, maps of several blocks; the number of parts and of images change no bit.
//
// The errors of these sums are not bounded element by element, since a result is a difference of larger numbers of its
// tile: the bound is a multiple of the largest magnitude of the case, and the rms error has one of its own.
#include "kernels.h"

#include "../../kernels/c/plain.h"
#include "../../kernels/c/winograd.h"

static const double most_error = 16, most_rms = 2;  // in units of 2^-24

static int64_t x_size(const MlkConv2d *s) { return s->n * s->c * s->h * s->w; }
static int64_t y_size(const MlkConv2d *s) { return s->n * s->oc * s->oh * s->ow; }
static int64_t weight_size(const MlkConv2d *s) { return s->oc * s->c * 9; }

static void compare(const char *name, const MlkConv2d *s, const float *got, const double *want, const double *magnitude,
                    int64_t size)
{
    double largest = 0, error = 0, squares = 0, errors = 0;
    for (int64_t i = 0; i < size; i++) {
        double d = fabs(got[i] - want[i]);
        largest = magnitude[i] > largest ? magnitude[i] : largest;
        error = d > error || d != d ? d : error;
        squares += want[i] * want[i];
        errors += d * d;
    }
    char what[240];
    snprintf(what, sizeof what, "%s n %d c %d h %d w %d oc %d oh %d ow %d pad %d %d: largest error %.3g of %.3g, rms %.3g", name,
             (int)s->n, (int)s->c, (int)s->h, (int)s->w, (int)s->oc, (int)s->oh, (int)s->ow, (int)s->pad_top,
             (int)s->pad_left, error, largest, sqrt(errors / (squares + 1e-30)));
    check(error <= most_error * largest * 0x1p-24, what);
    double terms = (double)(s->c > s->n * s->oh * s->ow ? s->c : s->n * s->oh * s->ow);
    check(sqrt(errors / (squares + 1e-30)) <= (most_rms + sqrt(terms)) * 0x1p-22, what);
}

// All parts, each with a scratch area of its own and exactly as large as is asked for.
static float *run_forward(const MlkConv2d *s, const float *x, const float *weight, const float *bias, int turned, int columns,
                          int parts)
{
    float *u = take_unset(mlk_winograd_weights(s)), *y = take_unset(y_size(s));
    for (int i = 0; i < parts; i++)
        mlk_winograd_weight(s, weight, turned, u, part_at(i, parts), parts);
    for (int i = 0; i < parts; i++) {
        float *scratch = take_unset(mlk_winograd_scratch(s));
        mlk_winograd(s, x, u, bias, y, columns, scratch, part_at(i, parts), parts);
        free(scratch);
    }
    free(u);
    return y;
}

static void test_forward(const MlkConv2d *s, const float *x, const float *weight, const float *bias)
{
    int64_t size = y_size(s);
    double *want = take_doubles(size), *magnitude = take_doubles(size);
    plain_conv2d(s, x, weight, NULL, want, NULL, NULL, magnitude);
    for (int64_t i = 0; bias && i < size; i++)
        want[i] += bias[i / (s->oh * s->ow) % s->oc];
    float *y = run_forward(s, x, weight, bias, 0, 1, 1);
    int columns = 1 + random_below(3);
    float *other = run_forward(s, x, weight, bias, 0, columns, columns * (1 + random_below(5)));
    compare("winograd", s, y, want, magnitude, size);
    check(same_bits(y, other, size), "winograd: the number of parts changes bits");
    MlkConv2d one = *s;
    one.n = 1;
    float *last = run_forward(&one, x + (s->n - 1) * x_size(&one), weight, bias, 0, 1, 1);
    check(same_bits(y + size - size / s->n, last, size / s->n), "winograd: the number of images changes bits");
    free(want), free(magnitude), free(y), free(other), free(last);
}

static void test_grad_input(const MlkConv2d *s, const float *dy, const float *weight)
{
    MlkConv2d turned = {s->n, s->oc, s->oh, s->ow, s->c, s->h, s->w, 3, 3, 1, 1, 2 - s->pad_top, 2 - s->pad_left, 1, 1, 1};
    int64_t size = x_size(s);
    double *want = take_doubles(size), *magnitude = take_doubles(size);
    plain_conv2d(s, NULL, weight, dy, NULL, want, NULL, magnitude);
    float *dx = run_forward(&turned, dy, weight, NULL, 1, 1, 1);
    compare("winograd, input's gradient", s, dx, want, magnitude, size);
    free(want), free(magnitude), free(dx);
}

static float *run_grad_weight(const MlkConv2d *s, const float *x, const float *dy, int splits, int columns)
{
    float *sums = take_unset(mlk_winograd_sums(s, splits)), *dweight = take_unset(weight_size(s));
    for (int i = 0; i < splits * columns; i++) {
        float *scratch = take_unset(mlk_winograd_grad_weight_scratch(s));
        mlk_winograd_grad_weight(s, x, dy, sums, splits, scratch, part_at(i, splits * columns), splits * columns);
        free(scratch);
    }
    for (int i = 0; i < columns; i++)
        mlk_winograd_grad_finish(s, sums, splits, dweight, part_at(i, columns), columns);
    free(sums);
    return dweight;
}

static void test_grad_weight(const MlkConv2d *s, const float *x, const float *dy)
{
    int64_t size = weight_size(s);
    int splits = 1 + random_below(4);
    double *want = take_doubles(size), *magnitude = take_doubles(size);
    plain_conv2d(s, x, NULL, dy, NULL, NULL, want, magnitude);
    float *dweight = run_grad_weight(s, x, dy, splits, 1), *other = run_grad_weight(s, x, dy, splits, 2 + random_below(3));
    compare("winograd, weights' gradient", s, dweight, want, magnitude, size);
    check(same_bits(dweight, other, size), "winograd, weights' gradient: the number of parts changes bits");
    free(want), free(magnitude), free(dweight), free(other);
}

static void run_case(const MlkConv2d *s)
{
    float *x = take_random(x_size(s)), *dy = take_random(y_size(s)), *weight = take_random(weight_size(s));
    float *bias = take_random(s->oc);
    test_forward(s, x, weight, random_below(2) ? bias : NULL);
    test_grad_input(s, dy, weight);
    test_grad_weight(s, x, dy);
    free(x), free(dy), free(weight), free(bias);
}

static MlkConv2d random_case(void)
{
    MlkConv2d s = {.n = 1 + random_below(4), .c = 1 + random_below(40), .h = 1 + random_below(17), .w = 1 + random_below(17),
                   .oc = 1 + random_below(40), .kh = 3, .kw = 3, .stride_h = 1, .stride_w = 1, .pad_top = random_below(3),
                   .pad_left = random_below(3), .dilation_h = 1, .dilation_w = 1, .groups = 1};
    s.oh = s.h + s.pad_top + random_below(3) - 2;
    s.ow = s.w + s.pad_left + random_below(3) - 2;
    return s;
}

int main(void)
{
    for (int i = 0; i < 24; i++) {
        MlkConv2d s = random_case();
        if (s.oh > 0 && s.ow > 0)
            run_case(&s);
    }
    // many small maps in a block; several blocks of one map; a wide map; chains longer than a block of the product
    run_case(&(MlkConv2d){19, 16, 4, 4, 24, 4, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1});
    run_case(&(MlkConv2d){2, 5, 53, 29, 7, 53, 29, 3, 3, 1, 1, 1, 1, 1, 1, 1});
    run_case(&(MlkConv2d){1, 3, 6, 281, 3, 6, 281, 3, 3, 1, 1, 1, 1, 1, 1, 1});
    run_case(&(MlkConv2d){2, 263, 7, 7, 33, 7, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1});
    return check_summary();
}
