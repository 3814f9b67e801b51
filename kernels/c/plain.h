// The plain version of each kernel: the loops that define it. The tests judge the fast ones by these.
//
// Sums are kept in double, and beside each stands its magnitude, the sum of the absolute values of its terms: the error
// that a float sum may have is a multiple of it.
#ifndef MLK_PLAIN_H
#define MLK_PLAIN_H

#include <stdint.h>

// c (m, n) = start (m, n) + a (m, k) b (k, n); `magnitude` gets the sum of absolute terms, for error bounds.
static __attribute__((unused)) void plain_gemm(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row,
                                               int64_t a_step, const float *b, int64_t b_row, int64_t b_column,
                                               double *c, double *magnitude)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t p = 0; p < k; p++) {
                double term = (double)a[i * a_row + p * a_step] * b[p * b_row + j * b_column];
                c[i * n + j] += term;
                magnitude[i * n + j] += term < 0 ? -term : term;
            }
}

#endif
