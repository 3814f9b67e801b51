// Products and sums are rounded one by one: a compiler must not fuse them, whatever options it is given. Where a fused
// multiply-add is meant, the code says so.
#if defined(__clang__) || !defined(__GNUC__)
#pragma STDC FP_CONTRACT OFF
#else
// gcc 12 makes wrong addresses (in its pass ivopts) of vector loops around short inner loops: sums came out wrong at -O1 and -O2.
// The pass is worth two per cent at most here. tests/unit/outer_loops.c has such loops.
#pragma GCC optimize("fp-contract=off", "no-ivopts")
#endif
#pragma GCC diagnostic ignored "-Wunknown-pragmas"  // of omp simd, for a compiler without -fopenmp-simd
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"  // a loop that may become vector code need not
#endif
