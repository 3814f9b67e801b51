// Products and sums are rounded one by one: a compiler must not fuse them, whatever options it is given. Where a fused
// multiply-add is meant, the code says so.
#if defined(__clang__) || !defined(__GNUC__)
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#endif
#pragma GCC diagnostic ignored "-Wunknown-pragmas"  // of omp simd, for a compiler without -fopenmp-simd
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"  // a loop that may become vector code need not
#endif
