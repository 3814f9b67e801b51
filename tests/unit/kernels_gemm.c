// gemm and gemm_nt against the plain sum in double: sizes from 0 past one block, both layouts of A, pitches, bias,
// accumulation; any number of parts and any number of rows give the same bits.
#include "kernels.h"

#include "../../kernels/c/gemm.h"
#include "../../kernels/c/plain.h"

typedef struct Case {
    int64_t m, n, k;
    int a_transposed, b_transposed, bias, accumulate;
    int64_t a_pad, b_pad, c_pad;  // floats between the rows
} Case;

static const int64_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 10, 13, 16, 17, 31, 33, 48, 61};

static int64_t random_size(void) { return sizes[random_below(sizeof sizes / sizeof sizes[0])]; }

static void multiply(const Case *s, int64_t rows, const float *a, int64_t a_row, int64_t a_step, const float *b,
                     int64_t b_row, float *c, int64_t c_row, const float *bias, int parts)
{
    float *scratch = take_unset(MLK_GEMM_SCRATCH);
    for (int i = 0; i < parts; i++)
        (s->b_transposed ? mlk_gemm_nt : mlk_gemm)(rows, s->n, s->k, a, a_row, a_step, b, b_row, c, c_row,
                                                   s->bias ? bias : NULL, s->accumulate, scratch, part_at(i, parts),
                                                   parts);
    free(scratch);
}

static int64_t area(int64_t rows, int64_t columns, int64_t row) { return rows && columns ? (rows - 1) * row + columns : 0; }

// 1 if each element is near its sum and nothing between the rows was written.
static int agrees(const Case *s, const float *got, int64_t c_row, const double *want, const double *magnitude)
{
    for (int64_t i = 0; i < s->m; i++) {
        for (int64_t j = 0; j < s->n; j++)
            if (!close_sum(got[i * c_row + j], want[i * s->n + j], magnitude[i * s->n + j], s->k))
                return 0;
        for (int64_t j = s->n; s->n > 0 && i + 1 < s->m && j < c_row; j++)
            if (got[i * c_row + j] != -12345.0f)
                return 0;
    }
    return 1;
}

static void run_case(const Case *s)
{
    int64_t a_row = s->a_transposed ? 1 : s->k + s->a_pad, a_step = s->a_transposed ? s->m + s->a_pad : 1;
    int64_t b_row = (s->b_transposed ? s->k : s->n) + s->b_pad, c_row = s->n + s->c_pad;
    int64_t c_area = area(s->m, s->n, c_row);
    float *a = take_random(s->a_transposed ? area(s->k, s->m, a_step) : area(s->m, s->k, a_row));
    float *b = take_random(s->b_transposed ? area(s->n, s->k, b_row) : area(s->k, s->n, b_row));
    float *bias = take_random(s->n), *start = take_unset(c_area);
    double *want = take_doubles(s->m * s->n), *magnitude = take_doubles(s->m * s->n);
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++) {
            if (s->accumulate)
                start[i * c_row + j] = (float)random_below(100) * 0.25f;
            want[i * s->n + j] = s->accumulate ? start[i * c_row + j] : s->bias ? bias[j] : 0;
            magnitude[i * s->n + j] = fabs(want[i * s->n + j]);
        }
    plain_gemm(s->m, s->n, s->k, a, a_row, a_step, b, s->b_transposed ? 1 : b_row, s->b_transposed ? b_row : 1, want,
               magnitude);

    char what[160];
    snprintf(what, sizeof what, "gemm%s m %d n %d k %d at %d bias %d accumulate %d", s->b_transposed ? "_nt" : "",
             (int)s->m, (int)s->n, (int)s->k, s->a_transposed, s->bias, s->accumulate);
    float *c = take_copy(start, c_area), *other = take_copy(start, c_area);
    multiply(s, s->m, a, a_row, a_step, b, b_row, c, c_row, bias, 1);
    check(agrees(s, c, c_row, want, magnitude), what);
    multiply(s, s->m, a, a_row, a_step, b, b_row, other, c_row, bias, 2 + random_below(15));
    check(same_bits(c, other, c_area), "the number of parts changes bits");
    if (s->m > 1) {  // the last row alone
        int64_t last = s->m - 1;
        memcpy(other + last * c_row, start + last * c_row, (size_t)s->n * sizeof *c);
        multiply(s, 1, a + last * a_row, a_row, a_step, b, b_row, other + last * c_row, c_row, bias, 1);
        check(same_bits(c + last * c_row, other + last * c_row, s->n), "the number of rows changes bits");
    }
    free(a), free(b), free(bias), free(start), free(want), free(magnitude), free(c), free(other);
}

int main(void)
{
    for (int i = 0; i < 1500; i++) {
        Case s = {random_size(), random_size(), random_size(), random_below(2), random_below(2), random_below(2),
                  random_below(2), random_below(2) * 3, random_below(2) * 5, random_below(2) * 7};
        run_case(&s);
    }
    run_case(&(Case){.m = 9, .n = 70, .k = 600, .bias = 1});  // several blocks of k, several panels
    run_case(&(Case){.m = 9, .n = 70, .k = 513, .b_transposed = 1, .accumulate = 1});
    run_case(&(Case){.m = 100, .n = 1024, .k = 5});  // a pitch that is packed
    run_case(&(Case){.m = 300, .n = 1, .k = 300});
    run_case(&(Case){.m = 1, .n = 300, .k = 300, .b_transposed = 1});
    run_case(&(Case){.m = 500, .n = 10, .k = 20, .b_transposed = 1, .bias = 1});
    run_case(&(Case){.m = 67, .n = 301, .k = 515, .b_transposed = 1, .bias = 1});  // computed turned
    run_case(&(Case){.m = 35, .n = 600, .k = 70, .b_transposed = 1, .accumulate = 1});
    run_case(&(Case){.m = 256, .n = 130, .k = 300, .a_transposed = 1});  // blocks of A are copied
    run_case(&(Case){.m = 301, .n = 130, .k = 512, .bias = 1});
    run_case(&(Case){.m = 384, .n = 70, .k = 261, .a_transposed = 1, .accumulate = 1});
    return check_summary();
}
