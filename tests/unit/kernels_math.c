// The elementary functions against MPFR: the ULP that kernels/c/math.h states, on sampled floats of every exponent and
// on special values; and the loop over each, compiled to vector code, gives the bits of the single call.
#include "kernels.h"

#include "../../kernels/c/math.h"

#include <mpfr.h>

enum { SAMPLES = 6000 };

typedef float Function(float x);
typedef int Judge(mpfr_t y, const mpfr_t x, mpfr_rnd_t round);

typedef struct Row {
    const char *name;
    Function *function;
    Judge *judge;
    double ulp;       // the largest error that math.h states
    float low, high;  // where most samples lie
} Row;

static int judge_sigmoid(mpfr_t y, const mpfr_t x, mpfr_rnd_t round)
{
    mpfr_neg(y, x, round);
    mpfr_exp(y, y, round);
    mpfr_add_ui(y, y, 1, round);
    return mpfr_ui_div(y, 1, y, round);
}

// MPFR gives +infinity at -0; IEEE 754's rSqrt, like 1 / sqrt, gives -infinity.
static int judge_rsqrt(mpfr_t y, const mpfr_t x, mpfr_rnd_t round)
{
    mpfr_sqrt(y, x, round);
    return mpfr_ui_div(y, 1, y, round);
}

// The loops that become vector code stand beside the single calls.
#define FUNCTION(name)                                                                              \
    static float one_##name(float x) { return mlk_##name(x); }                                     \
    static __attribute__((noinline)) void all_##name(float *restrict y, const float *restrict x, int n) \
    {                                                                                               \
        _Pragma("omp simd") for (int i = 0; i < n; i++) y[i] = mlk_##name(x[i]);                    \
    }
FUNCTION(exp)
FUNCTION(expm1)
FUNCTION(log)
FUNCTION(log1p)
FUNCTION(sigmoid)
FUNCTION(tanh)
FUNCTION(erf)
FUNCTION(rsqrt)
FUNCTION(sin)
FUNCTION(cos)

typedef void Loop(float *restrict y, const float *restrict x, int n);

static const Row rows[] = {
    {"exp", one_exp, mpfr_exp, 1, -105, 90},
    {"expm1", one_expm1, mpfr_expm1, 1.4, -3, 3},
    {"log", one_log, mpfr_log, 0.9, 0, 3},
    {"log1p", one_log1p, mpfr_log1p, 1, -1, 3},
    {"sigmoid", one_sigmoid, judge_sigmoid, 2.3, -20, 20},
    {"tanh", one_tanh, mpfr_tanh, 1.3, -3, 3},
    {"erf", one_erf, mpfr_erf, 1.2, -4, 4},
    {"rsqrt", one_rsqrt, judge_rsqrt, 1.5, 0, 10},
    {"sin", one_sin, mpfr_sin, 1.6, -20, 20},
    {"cos", one_cos, mpfr_cos, 1.6, -20, 20},
};
static Loop *const loops[] = {all_exp, all_expm1, all_log, all_log1p, all_sigmoid,
                              all_tanh, all_erf, all_rsqrt, all_sin, all_cos};

static const float special[] = {0.0f, -0.0f, 1.0f, -1.0f, 0.5f, -0.5f, 2.0f, 3.0f, -2.0f, -3.0f, INFINITY, -INFINITY,
                                NAN, 1e-45f, -1e-45f, 1e-39f, 1.17549435e-38f, 3.4028235e38f, -3.4028235e38f,
                                88.72283f, 88.72284f, -87.33654f, -103.97208f, -103.97209f, 0.625f, 0.92f, 4.0f,
                                1e-8f, 1e-7f, 16777216.0f, 16777217.0f, 8388609.0f, 0x1.921fb6p+0f, 0.99999994f};
enum { SPECIALS = sizeof special / sizeof special[0] };

// How far y is from the exact value, in units of the last place of a float near that value.
static double ulps(float y, const mpfr_t exact)
{
    float nearest = mpfr_get_flt(exact, MPFR_RNDN);
    if (isnan(nearest) || isnan(y))
        return isnan(nearest) && isnan(y) ? 0 : INFINITY;
    if (isinf(nearest) || isinf(y) || nearest == 0)
        return y == nearest && signbit(y) == signbit(nearest) ? 0 : fabsf(y) <= 1e-45f && nearest == 0 ? 1 : INFINITY;
    int exponent;
    frexpf(nearest, &exponent);
    double unit = ldexp(1, exponent - 24 < -149 ? -149 : exponent - 24);
    mpfr_t difference;
    mpfr_init2(difference, 100);
    mpfr_set_flt(difference, y, MPFR_RNDN);
    mpfr_sub(difference, difference, exact, MPFR_RNDN);
    double off = fabs(mpfr_get_d(difference, MPFR_RNDN)) / unit;
    mpfr_clear(difference);
    return off;
}

static float sample(const Row *row, int i)
{
    if (i < SPECIALS)
        return special[i];
    if (i % 4 == 0)
        return mlk_from_bits(random_bits());
    return row->low + (row->high - row->low) * (float)(random_bits() >> 8) * 0x1p-24f;
}

static int verbose;

static void test_row(const Row *row, Loop *loop)
{
    static float x[SAMPLES], y[SAMPLES], many[SAMPLES];
    double worst = 0;
    float worst_at = 0;
    mpfr_t exact;
    mpfr_init2(exact, 100);
    for (int i = 0; i < SAMPLES; i++) {
        x[i] = sample(row, i);
        y[i] = row->function(x[i]);
        mpfr_set_flt(exact, x[i], MPFR_RNDN);
        row->judge(exact, exact, MPFR_RNDN);
        double off = ulps(y[i], exact);
        if (off > worst) {
            worst = off;
            worst_at = x[i];
        }
    }
    mpfr_clear(exact);
    loop(many, x, SAMPLES);
    int same = 1;
    for (int i = 0; i < SAMPLES; i++)
        same &= mlk_bits(y[i]) == mlk_bits(many[i]) || (isnan(y[i]) && isnan(many[i]));
    char what[120];
    snprintf(what, sizeof what, "%s: %.3f ulp at %a", row->name, worst, (double)worst_at);
    if (verbose)
        printf("%s\n", what);
    check(worst <= row->ulp, what);
    snprintf(what, sizeof what, "%s: a loop of it gives other bits", row->name);
    check(same, what);
}

static void test_pow(void)
{
    double worst = 0;
    float at_x = 0, at_y = 0;
    mpfr_t base, exponent;
    mpfr_inits2(100, base, exponent, (mpfr_ptr)0);
    for (int i = 0; i < SPECIALS * SPECIALS + 3 * SAMPLES; i++) {
        int j = i - SPECIALS * SPECIALS;
        float x = j < 0 ? special[i / SPECIALS] : j % 3 ? (float)random_bits() * 0x1p-28f : mlk_from_bits(random_bits());
        float y = j < 0 ? special[i % SPECIALS] : j % 2 ? (float)(int32_t)random_bits() * 0x1p-26f
                                                        : (float)(random_below(41) - 20);
        mpfr_set_flt(base, x, MPFR_RNDN);
        mpfr_set_flt(exponent, y, MPFR_RNDN);
        mpfr_pow(base, base, exponent, MPFR_RNDN);
        double off = ulps(mlk_pow(x, y), base);
        if (off > worst) {
            worst = off;
            at_x = x;
            at_y = y;
        }
    }
    mpfr_clears(base, exponent, (mpfr_ptr)0);
    char what[120];
    snprintf(what, sizeof what, "pow: %.3f ulp at %a, %a", worst, (double)at_x, (double)at_y);
    if (verbose)
        printf("%s\n", what);
    check(worst <= 0.6, what);
}

int main(int count, char **arguments)
{
    verbose = count > 1 && strcmp(arguments[1], "-v") == 0;
    mpfr_set_emin(-16384);
    mpfr_set_emax(16384);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        test_row(&rows[i], loops[i]);
    test_pow();
    return check_summary();
}
