// conv2d and its gradients against the plain triples in double: kernels of 1 to 5, strides, dilations, uneven padding,
// groups, maps smaller than a vector; the number of parts and the number of images change no bit.
#include "kernels.h"

#include "../../kernels/c/conv2d.h"
#include "../../kernels/c/plain.h"

typedef void Run(const MlkConv2d *s, float *result, const float *first, const float *second, const float *bias,
                 float *scratch, int part, int parts);

static void run_forward(const MlkConv2d *s, float *y, const float *x, const float *weight, const float *bias,
                        float *scratch, int part, int parts)
{
    mlk_conv2d(s, x, weight, bias, y, scratch, part, parts);
}

static void run_grad_input(const MlkConv2d *s, float *dx, const float *dy, const float *weight, const float *bias,
                           float *scratch, int part, int parts)
{
    (void)bias;
    mlk_conv2d_grad_input(s, dy, weight, dx, scratch, part, parts);
}

static void run_grad_weight(const MlkConv2d *s, float *dweight, const float *x, const float *dy, const float *bias,
                            float *scratch, int part, int parts)
{
    (void)bias;
    mlk_conv2d_grad_weight(s, x, dy, dweight, scratch, part, parts);
}

static float *run_parts(Run *run, const MlkConv2d *s, int64_t size, const float *first, const float *second,
                        const float *bias, int64_t scratch_size, int parts)
{
    float *result = take_unset(size);
    for (int i = 0; i < parts; i++) {
        float *scratch = take_unset(scratch_size);  // a new one each time: parts share nothing
        run(s, result, first, second, bias, scratch, part_at(i, parts), parts);
        free(scratch);
    }
    return result;
}

static void compare(const char *name, const MlkConv2d *s, const float *got, const double *want, const double *magnitude,
                    int64_t size, int64_t terms)
{
    int64_t wrong = -1;
    for (int64_t i = 0; i < size && wrong < 0; i++)
        if (!close_sum(got[i], want[i], magnitude[i], terms))
            wrong = i;
    char what[300];
    snprintf(what, sizeof what,
             "%s n %d c %d h %d w %d oc %d oh %d ow %d k %dx%d stride %d %d pad %d %d dilation %d %d groups %d, at %d",
             name, (int)s->n, (int)s->c, (int)s->h, (int)s->w, (int)s->oc, (int)s->oh, (int)s->ow, (int)s->kh,
             (int)s->kw, (int)s->stride_h, (int)s->stride_w, (int)s->pad_top, (int)s->pad_left, (int)s->dilation_h,
             (int)s->dilation_w, (int)s->groups, (int)wrong);
    check(wrong < 0, what);
}

// Sizes of the four arrays.
static int64_t x_size(const MlkConv2d *s) { return s->n * s->c * s->h * s->w; }
static int64_t y_size(const MlkConv2d *s) { return s->n * s->oc * s->oh * s->ow; }
static int64_t weight_size(const MlkConv2d *s) { return s->oc * (s->c / s->groups) * s->kh * s->kw; }

static void test_forward(const MlkConv2d *s, const float *x, const float *weight, const float *bias)
{
    int64_t size = y_size(s), scratch = mlk_conv2d_scratch(s);
    double *want = take_doubles(size), *magnitude = take_doubles(size);
    plain_conv2d(s, x, weight, NULL, want, NULL, NULL, magnitude);
    for (int64_t i = 0; bias && i < size; i++) {
        float b = bias[i / (s->oh * s->ow) % s->oc];
        want[i] += b;
        magnitude[i] += fabsf(b);
    }
    float *y = run_parts(run_forward, s, size, x, weight, bias, scratch, 1);
    float *other = run_parts(run_forward, s, size, x, weight, bias, scratch, 2 + random_below(12));
    compare("conv2d", s, y, want, magnitude, size, s->c / s->groups * s->kh * s->kw);
    check(same_bits(y, other, size), "conv2d: the number of parts changes bits");
    MlkConv2d one = *s;
    one.n = 1;
    float *last = run_parts(run_forward, &one, size / s->n, x + (s->n - 1) * x_size(&one), weight, bias, scratch, 1);
    check(same_bits(y + size - size / s->n, last, size / s->n), "conv2d: the number of images changes bits");
    free(want), free(magnitude), free(y), free(other), free(last);
}

static void test_grad_input(const MlkConv2d *s, const float *dy, const float *weight)
{
    int64_t size = x_size(s), scratch = mlk_conv2d_grad_input_scratch(s);
    double *want = take_doubles(size), *magnitude = take_doubles(size);
    plain_conv2d(s, NULL, weight, dy, NULL, want, NULL, magnitude);
    float *dx = run_parts(run_grad_input, s, size, dy, weight, NULL, scratch, 1);
    float *other = run_parts(run_grad_input, s, size, dy, weight, NULL, scratch, 2 + random_below(12));
    compare("conv2d_grad_input", s, dx, want, magnitude, size, s->oc / s->groups * s->kh * s->kw);
    check(same_bits(dx, other, size), "conv2d_grad_input: the number of parts changes bits");
    free(want), free(magnitude), free(dx), free(other);
}

static void test_grad_weight(const MlkConv2d *s, const float *x, const float *dy)
{
    int64_t size = weight_size(s), scratch = mlk_conv2d_grad_weight_scratch(s);
    double *want = take_doubles(size), *magnitude = take_doubles(size);
    plain_conv2d(s, x, NULL, dy, NULL, NULL, want, magnitude);
    float *dweight = run_parts(run_grad_weight, s, size, x, dy, NULL, scratch, 1);
    float *other = run_parts(run_grad_weight, s, size, x, dy, NULL, scratch, 2 + random_below(40));
    compare("conv2d_grad_weight", s, dweight, want, magnitude, size, s->n * s->oh * s->ow);
    check(same_bits(dweight, other, size), "conv2d_grad_weight: the number of parts changes bits");
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

// Output size with `pad` in all; 0 if the kernel is larger than the padded image.
static int64_t output_size(int64_t size, int64_t pad, int64_t kernel, int64_t stride, int64_t dilation)
{
    int64_t room = size + pad - (kernel - 1) * dilation - 1;
    return room < 0 ? 0 : room / stride + 1;
}

static MlkConv2d random_case(void)
{
    int64_t groups = random_below(4) ? 1 : 1 + random_below(4);
    MlkConv2d s = {.n = 1 + random_below(3), .c = groups * (1 + random_below(5)), .h = 1 + random_below(19),
                   .w = 1 + random_below(19), .oc = groups * (1 + random_below(random_below(3) ? 9 : 40)),
                   .kh = 1 + random_below(5), .kw = 1 + random_below(5), .stride_h = 1 + random_below(3) / 2,
                   .stride_w = 1 + random_below(4) / 2, .pad_top = random_below(4), .pad_left = random_below(4),
                   .dilation_h = 1 + random_below(4) / 3, .dilation_w = 1 + random_below(4) / 3, .groups = groups};
    s.oh = output_size(s.h, s.pad_top + random_below(4), s.kh, s.stride_h, s.dilation_h);
    s.ow = output_size(s.w, s.pad_left + random_below(4), s.kw, s.stride_w, s.dilation_w);
    return s;
}

int main(void)
{
    for (int i = 0; i < 250; i++) {
        MlkConv2d s = random_case();
        if (s.oh > 0 && s.ow > 0)
            run_case(&s);
    }
    // depthwise; 1x1 on a small map; one channel; stride 2 of ResNet
    run_case(&(MlkConv2d){2, 12, 9, 9, 12, 9, 9, 3, 3, 1, 1, 1, 1, 1, 1, 12});
    run_case(&(MlkConv2d){2, 20, 7, 7, 33, 7, 7, 1, 1, 1, 1, 0, 0, 1, 1, 1});
    run_case(&(MlkConv2d){3, 1, 28, 28, 10, 28, 28, 3, 3, 1, 1, 1, 1, 1, 1, 1});
    run_case(&(MlkConv2d){1, 3, 21, 20, 9, 11, 10, 7, 7, 2, 2, 3, 3, 1, 1, 1});
    run_case(&(MlkConv2d){2, 6, 8, 8, 5, 4, 4, 1, 1, 2, 2, 0, 0, 1, 1, 1});
    run_case(&(MlkConv2d){3, 3, 19, 23, 11, 10, 12, 3, 3, 2, 2, 1, 1, 1, 1, 1});  // few channels
    run_case(&(MlkConv2d){2, 4, 9, 37, 7, 9, 37, 3, 3, 1, 1, 1, 1, 1, 1, 1});
    run_case(&(MlkConv2d){2, 2, 20, 12, 5, 20, 12, 9, 1, 1, 1, 4, 0, 1, 1, 1});
    return check_summary();
}
