// Speed of the kernels on one thread, in GFLOP/s and as a share of the processor's peak, which is measured first, with
// multiply-adds that stay in registers. Compile with the flags of generated programs and a -march.
#define _POSIX_C_SOURCE 200809L
#include "../../kernels/c/conv2d.h"
#include "../../kernels/c/math.h"
#include "../../kernels/c/pool.h"
#include "../../kernels/c/reduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__aarch64__)
#define IN_REGISTER(v) __asm__ volatile("" : "+w"(v))
#else
#define IN_REGISTER(v) __asm__ volatile("" : "+x"(v))
#endif

static double peak;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define CHAIN(i)                  \
    sum##i = mlk_fma(sum##i, b, c); \
    IN_REGISTER(sum##i);

static double measure_peak(void)
{
    enum { CHAINS = 10, STEPS = 1000000 };
    mlk_v b = mlk_all(0.999f), c = mlk_all(0.001f), sum0 = c, sum1 = c, sum2 = c, sum3 = c, sum4 = c, sum5 = c;
    mlk_v sum6 = c, sum7 = c, sum8 = c, sum9 = c;
    double best = 0;
    for (int round = 0; round < 20; round++) {
        double start = now();
        for (int step = 0; step < STEPS; step++) {
            CHAIN(0) CHAIN(1) CHAIN(2) CHAIN(3) CHAIN(4) CHAIN(5) CHAIN(6) CHAIN(7) CHAIN(8) CHAIN(9)
        }
        double rate = 2.0 * MLK_W * CHAINS * STEPS / (now() - start) * 1e-9;
        best = rate > best ? rate : best;
    }
    return best;
}

static float *take(int64_t n)
{
    float *x = aligned_alloc(64, (size_t)(n * 4 + 127) / 64 * 64);
    if (!x)
        exit(1);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(i * 7919 % 1009) / 1009.0f - 0.5f;
    return x;
}

typedef void Call(void *context);

// The shortest of many runs, in seconds; about 0.15 s in all.
static double shortest(Call *call, void *context)
{
    double best = 1e9, all = now();
    call(context);
    for (int64_t inner = 1; now() - all < 0.15;) {
        double start = now();
        for (int64_t i = 0; i < inner; i++)
            call(context);
        double each = (now() - start) / (double)inner;
        best = each < best ? each : best;
        if (each * (double)inner < 1e-4)
            inner *= 2;
    }
    return best;
}

static void report(const char *name, double operations, double seconds)
{
    double rate = operations / seconds * 1e-9;
    printf("%-44s %10.1f us %8.1f GFLOP/s %5.0f %%\n", name, seconds * 1e6, rate, 100 * rate / peak);
}

typedef struct Gemm {
    const char *name;
    int64_t m, n, k;
    int a_transposed, b_transposed;
    float *a, *b, *c, *scratch;
} Gemm;

static void call_gemm(void *context)
{
    Gemm *g = context;
    (g->b_transposed ? mlk_gemm_nt : mlk_gemm)(g->m, g->n, g->k, g->a, g->a_transposed ? 1 : g->k,
                                               g->a_transposed ? g->m : 1, g->b, g->b_transposed ? g->k : g->n, g->c,
                                               g->n, NULL, 0, g->scratch, 0, 1);
}

static void bench_gemm(Gemm g)
{
    g.a = take(g.m * g.k), g.b = take(g.k * g.n), g.c = take(g.m * g.n), g.scratch = take(MLK_GEMM_SCRATCH);
    report(g.name, 2.0 * (double)(g.m * g.n * g.k), shortest(call_gemm, &g));
    free(g.a), free(g.b), free(g.c), free(g.scratch);
}

typedef struct Conv {
    const char *name;
    MlkConv2d s;
    float *x, *weight, *y, *scratch;
} Conv;

static void call_forward(void *context)
{
    Conv *c = context;
    mlk_conv2d(&c->s, c->x, c->weight, NULL, c->y, c->scratch, 0, 1);
}

static void call_grad_input(void *context)
{
    Conv *c = context;
    mlk_conv2d_grad_input(&c->s, c->y, c->weight, c->x, c->scratch, 0, 1);
}

static void call_grad_weight(void *context)
{
    Conv *c = context;
    mlk_conv2d_grad_weight(&c->s, c->x, c->y, c->weight, c->scratch, 0, 1);
}

static void bench_conv(Conv c)
{
    const MlkConv2d *s = &c.s;
    int64_t y = s->n * s->oc * s->oh * s->ow, taps = s->c / s->groups * s->kh * s->kw;
    char name[80];
    c.x = take(s->n * s->c * s->h * s->w), c.weight = take(s->oc * taps), c.y = take(y);
    c.scratch = take(mlk_conv2d_scratch(s) + mlk_conv2d_grad_input_scratch(s) + mlk_conv2d_grad_weight_scratch(s));
    double operations = 2.0 * (double)(y * taps);
    snprintf(name, sizeof name, "%s, forward", c.name);
    report(name, operations, shortest(call_forward, &c));
    for (int64_t i = 0; i < y; i++)
        c.y[i] = (float)(i % 13) - 6;
    snprintf(name, sizeof name, "%s, grad input", c.name);
    report(name, operations, shortest(call_grad_input, &c));
    snprintf(name, sizeof name, "%s, grad weight", c.name);
    report(name, operations, shortest(call_grad_weight, &c));
    free(c.x), free(c.weight), free(c.y), free(c.scratch);
}

enum { LENGTH = 4096 };
static float from[LENGTH], to[LENGTH];

// The empty statement at the end keeps the compiler from leaving out a result that nobody reads.
#define LOOP(name)                                \
    static void call_##name(void *context)        \
    {                                             \
        (void)context;                            \
        MLK_SIMD for (int i = 0; i < LENGTH; i++) \
            to[i] = mlk_##name(from[i]);          \
        __asm__ volatile("" : : "r"(to) : "memory"); \
    }
LOOP(exp)
LOOP(log)
LOOP(sigmoid)
LOOP(tanh)
LOOP(erf)
LOOP(sin)

static void bench_function(const char *name, Call *call)
{
    printf("%-44s %10.2f ns for each float\n", name, shortest(call, NULL) / LENGTH * 1e9);
}

typedef struct Pool {
    MlkPool2d s;
    float *x, *y;
    uint8_t *at;
} Pool;

static void call_maxpool(void *context)
{
    Pool *p = context;
    mlk_maxpool2d(&p->s, p->x, p->y, p->at, 0, 1);
}

static void call_maxpool_grad(void *context)
{
    Pool *p = context;
    mlk_maxpool2d_grad(&p->s, p->y, p->at, p->x, 0, 1);
}

static void bench_pool(void)
{
    Pool p = {{512, 28, 28, 14, 14, 2, 2, 2, 2, 0, 0, 1, 1}, take(512 * 28 * 28), take(512 * 14 * 14), NULL};
    p.at = malloc(512 * 14 * 14);
    if (!p.at)
        exit(1);
    printf("%-44s %10.2f ns for each float read\n", "maxpool 2x2, 28x28", shortest(call_maxpool, &p) / 401408 * 1e9);
    printf("%-44s %10.2f ns for each float written\n", "maxpool 2x2 gradient",
           shortest(call_maxpool_grad, &p) / 401408 * 1e9);
    free(p.x), free(p.y), free(p.at);
}

int main(void)
{
    peak = measure_peak();
    printf("%-44s %13s %8.1f GFLOP/s, vectors of %d\n", "peak", "", peak, MLK_W);
    bench_gemm((Gemm){"gemm nn 64x256x784", 64, 256, 784, 0, 0, 0, 0, 0, 0});
    bench_gemm((Gemm){"gemm nt 64x256x784 (a layer's forward)", 64, 256, 784, 0, 1, 0, 0, 0, 0});
    bench_gemm((Gemm){"gemm nn 64x784x256 (its grad input)", 64, 784, 256, 0, 0, 0, 0, 0, 0});
    bench_gemm((Gemm){"gemm tn 256x784x64 (its grad weight)", 256, 784, 64, 1, 0, 0, 0, 0, 0});
    bench_gemm((Gemm){"gemm nt 64x10x256", 64, 10, 256, 0, 1, 0, 0, 0, 0});
    bench_gemm((Gemm){"gemm nn 32x64x64", 32, 64, 64, 0, 0, 0, 0, 0, 0});
    bench_gemm((Gemm){"gemm nt 32x64x64", 32, 64, 64, 0, 1, 0, 0, 0, 0});
    bench_gemm((Gemm){"gemm nn 1024x1024x1024", 1024, 1024, 1024, 0, 0, 0, 0, 0, 0});
    bench_gemm((Gemm){"gemm nt 1024x1024x1024", 1024, 1024, 1024, 0, 1, 0, 0, 0, 0});
    bench_gemm((Gemm){"gemm nn 1x1024x1024", 1, 1024, 1024, 0, 0, 0, 0, 0, 0});
    bench_gemm((Gemm){"gemm nt 1x1024x1024", 1, 1024, 1024, 0, 1, 0, 0, 0, 0});
    bench_conv((Conv){"conv 3x3 14x14 32->64", {16, 32, 14, 14, 64, 14, 14, 3, 3, 1, 1, 1, 1, 1, 1, 1}, 0, 0, 0, 0});
    bench_conv((Conv){"conv 3x3 28x28 1->32", {16, 1, 28, 28, 32, 28, 28, 3, 3, 1, 1, 1, 1, 1, 1, 1}, 0, 0, 0, 0});
    bench_conv((Conv){"conv 3x3 8x8 16->32", {32, 16, 8, 8, 32, 8, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1}, 0, 0, 0, 0});
    bench_conv((Conv){"conv 3x3 7x7 128->128", {4, 128, 7, 7, 128, 7, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1}, 0, 0, 0, 0});
    bench_conv((Conv){"conv 3x3 28x28 64->64, stride 2", {4, 64, 28, 28, 64, 14, 14, 3, 3, 2, 2, 1, 1, 1, 1, 1}, 0, 0, 0, 0});
    bench_conv((Conv){"conv 1x1 14x14 64->128", {8, 64, 14, 14, 128, 14, 14, 1, 1, 1, 1, 0, 0, 1, 1, 1}, 0, 0, 0, 0});
    bench_conv((Conv){"conv 3x3 14x14 64, depthwise", {8, 64, 14, 14, 64, 14, 14, 3, 3, 1, 1, 1, 1, 1, 1, 64}, 0, 0, 0, 0});
    bench_pool();
    for (int i = 0; i < LENGTH; i++)
        from[i] = (float)(i + 1) * 0.002f;
    bench_function("exp", call_exp);
    bench_function("log", call_log);
    bench_function("sigmoid", call_sigmoid);
    bench_function("tanh", call_tanh);
    bench_function("erf", call_erf);
    bench_function("sin", call_sin);
    return 0;
}
