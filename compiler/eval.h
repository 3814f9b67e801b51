// eval.h: inside the interpreter.
#ifndef MLC_EVAL_H
#define MLC_EVAL_H

#include "mlc.h"

double  prim_float(PrimId prim, DType type, double a, double b);    // in double; the caller rounds
int64_t prim_whole(PrimId prim, int64_t a, int64_t b);              // in 64 bits; the caller wraps
int64_t prim_natural(PrimId prim, int64_t a, int64_t b);            // of u64
bool    prim_compares(PrimId prim);
bool    prim_compare_float(PrimId prim, double a, double b);
bool    prim_compare_whole(PrimId prim, int64_t a, int64_t b);
bool    prim_compare_natural(PrimId prim, int64_t a, int64_t b);
double  prim_random(uint64_t seed, uint64_t step, int64_t place, int64_t element);

#endif
