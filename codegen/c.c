// c.c: the words of C.
#include "codegen.h"

const Dialect dialect_c = {
    .function      = "static void",
    .apart         = "__attribute__((noinline))",
    .parameters    = "const Run *run, int part",
    .restrict_word = "restrict ",
    .simd          = "#pragma omp simd",
    .share         = "mlk_share(%s, %s, %d)",
    .run_time_dims = true,
};
