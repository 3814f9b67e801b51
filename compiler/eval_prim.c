// eval_prim.c: what each scalar primitive gives, for the interpreter.
//
// Floating point is computed in double and rounded to the type by the caller: for + - * / and sqrt of floats that is the
// correctly rounded result. Integers are computed in 64 bits and wrap around; a division by zero gives 0; floor division and
// its remainder are Python's. A minimum or maximum with a NaN is NaN. A test holds these against the C text of the rows.
#include <math.h>

#include "eval.h"

// One text for the interpreter and for generated programs, because both must draw the same numbers.
#include "../kernels/c/random.h"

static double remainder_of(double a, double b)
{
    double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double prim_float(PrimId prim, DType type, double a, double b)
{
    switch (prim) {
    case PRIM_add:      return a + b;
    case PRIM_sub:      return a - b;
    case PRIM_mul:      return a * b;
    case PRIM_div:      return a / b;
    case PRIM_floordiv: return floor(type_round(type == TYPE_f64 ? type : TYPE_f32, a / b));
    case PRIM_mod:      return remainder_of(a, b);
    case PRIM_neg:      return -a;
    case PRIM_abs:      return fabs(a);
    case PRIM_min:      return a < b || isnan(a) ? a : b;
    case PRIM_max:      return a > b || isnan(a) ? a : b;
    case PRIM_sqrt:     return sqrt(a);
    case PRIM_exp:      return exp(a);
    case PRIM_expm1:    return expm1(a);
    case PRIM_log:      return log(a);
    case PRIM_log1p:    return log1p(a);
    case PRIM_sin:      return sin(a);
    case PRIM_cos:      return cos(a);
    case PRIM_tanh:     return tanh(a);
    case PRIM_sigmoid:  return a < 0 ? exp(a) / (1 + exp(a)) : 1 / (1 + exp(-a));
    case PRIM_erf:      return erf(a);
    case PRIM_pow:      return pow(a, b);
    case PRIM_floor:    return floor(a);
    case PRIM_ceil:     return ceil(a);
    case PRIM_round:    return rint(a);
    default:            BUG("%s of floats", prim_def(prim)->name);
    }
}

static int64_t quotient(int64_t a, int64_t b)
{
    return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static int64_t rest_of(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

int64_t prim_whole(PrimId prim, int64_t a, int64_t b)
{
    int64_t rest;
    switch (prim) {
    case PRIM_add:      return (int64_t)((uint64_t)a + (uint64_t)b);
    case PRIM_sub:      return (int64_t)((uint64_t)a - (uint64_t)b);
    case PRIM_mul:      return (int64_t)((uint64_t)a * (uint64_t)b);
    case PRIM_div:      return quotient(a, b);
    case PRIM_floordiv: rest = rest_of(a, b); return quotient(a, b) - (rest != 0 && (rest < 0) != (b < 0));
    case PRIM_mod:      rest = rest_of(a, b); return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    case PRIM_neg:      return (int64_t)(0 - (uint64_t)a);
    case PRIM_abs:      return a < 0 ? (int64_t)(0 - (uint64_t)a) : a;
    case PRIM_min:      return a < b ? a : b;
    case PRIM_max:      return a > b ? a : b;
    case PRIM_and:      return a & b;
    case PRIM_or:       return a | b;
    case PRIM_not:      return !a;
    default:            BUG("%s of whole numbers", prim_def(prim)->name);
    }
}

// Of u64, which are kept as the same bits in an i64: where the sign bit is a digit.
int64_t prim_natural(PrimId prim, int64_t x, int64_t y)
{
    uint64_t a = (uint64_t)x, b = (uint64_t)y;
    switch (prim) {
    case PRIM_div: case PRIM_floordiv: return b == 0 ? 0 : (int64_t)(a / b);
    case PRIM_mod: return b == 0 ? 0 : (int64_t)(a % b);
    case PRIM_min: return a < b ? x : y;
    case PRIM_max: return a > b ? x : y;
    case PRIM_abs: return x;
    default:       return prim_whole(prim, x, y);
    }
}

bool prim_compares(PrimId prim) { return prim >= PRIM_lt && prim <= PRIM_ne; }

#define COMPARE(a, b)                                                                                                       \
    (prim == PRIM_lt ? (a) < (b) : prim == PRIM_le ? (a) <= (b) : prim == PRIM_gt ? (a) > (b) : prim == PRIM_ge ? (a) >= (b)   \
     : prim == PRIM_eq ? (a) == (b) : (a) != (b))

bool prim_compare_float(PrimId prim, double a, double b)   { return COMPARE(a, b); }
bool prim_compare_whole(PrimId prim, int64_t a, int64_t b) { return COMPARE(a, b); }
bool prim_compare_natural(PrimId prim, int64_t a, int64_t b) { return COMPARE((uint64_t)a, (uint64_t)b); }

double prim_random(uint64_t seed, uint64_t step, int64_t place, int64_t element) { return mlk_random(seed, step, place, element); }
