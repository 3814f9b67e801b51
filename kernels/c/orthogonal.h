// The nearest orthogonal matrix, roughly: what Muon moves a matrix by (Jordan et al. 2024). A few steps of a Newton-Schulz
// iteration, X <- a X + (b A + c A A) X with A = X X', bring all singular values near 1. They are products of matrices alone,
// of the shorter side where they can be: a tall matrix is turned on its side first.
#ifndef MLK_ORTHOGONAL_H
#define MLK_ORTHOGONAL_H

#include "gemm.h"

// Floats of work area for a matrix of so many rows and columns.
#define MLK_ORTHOGONAL_SCRATCH(rows, columns) \
    (MLK_GEMM_SCRATCH + 2 * (rows) * (columns) + 2 * mlk_min(rows, columns) * mlk_min(rows, columns))

// Element i of the wide form of g: g itself, or its transpose if it is tall.
MLK_LEAF int64_t mlk_wide_index(int64_t rows, int64_t columns, int64_t i)
{
    return rows <= columns ? i : i % rows * columns + i / rows;
}

// g (rows, columns) becomes its orthogonal neighbour, by `steps` of the iteration with a, b, c. Below eps its norm counts as
// eps. scratch: MLK_ORTHOGONAL_SCRATCH floats.
MLK_FN void mlk_orthogonal(int64_t rows, int64_t columns, float *g, float a, float b, float c, float eps, int64_t steps,
                           float *scratch)
{
    int64_t m = mlk_min(rows, columns), n = rows + columns - m, count = rows * columns;
    float *x = scratch + MLK_GEMM_SCRATCH, *next = x + count, *gram = next + count, *polynomial = gram + m * m;
    double squares = 0;
    for (int64_t i = 0; i < count; i++)
        squares += (double)g[i] * (double)g[i];
    float norm = (float)sqrt(squares), scale = 1.0f / (norm > eps ? norm : eps);
    for (int64_t i = 0; i < count; i++)
        x[i] = scale * g[mlk_wide_index(rows, columns, i)];
    for (int64_t step = 0; step < steps; step++) {
        mlk_gemm_nt(m, m, n, x, n, 1, x, n, gram, m, NULL, 0, scratch, 0, 1);
        mlk_gemm(m, m, m, gram, m, 1, gram, m, polynomial, m, NULL, 0, scratch, 0, 1);
        for (int64_t i = 0; i < m * m; i++)
            polynomial[i] = b * gram[i] + c * polynomial[i];
        mlk_gemm(m, n, m, polynomial, m, 1, x, n, next, n, NULL, 0, scratch, 0, 1);
        for (int64_t i = 0; i < count; i++)
            x[i] = a * x[i] + next[i];
    }
    for (int64_t i = 0; i < count; i++)
        g[mlk_wide_index(rows, columns, i)] = x[i];
}

#endif
