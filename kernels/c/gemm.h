// Matrix products, C = start + A B, in register tiles.
//
// A tile of C (MLK_ROWS rows by two vectors) stays in registers while k runs: each step loads two vectors of a row of B
// and broadcasts one element of each row of A, so A may be transposed or strided. It is read where it lies unless its pitch
// would put the elements of a tile into the same lines of the L1 cache; then blocks of it are copied. B is read where it
// lies, too; a panel of it (MLK_K_BLOCK rows by MLK_PANEL columns) is copied into the scratch area only if it is transposed,
// ends inside a vector, or has a row pitch at which its rows would fall into the same lines of the L1 cache.
// Where B is transposed and C has fewer rows than columns, as in layers with small batches, C' = B' A' is computed
// instead: then A is what gets turned, which is less, and B's rows are read where they lie.
//
// Each element of C is one chain  c = fma(a[p], b[p], c), p = 0, 1, ..., k-1.  Blocking over k stores and reloads the
// float unchanged, so neither sizes, nor tails, nor the division into parts alter its bits.
#ifndef MLK_GEMM_H
#define MLK_GEMM_H

#include "vector.h"

#define MLK_K_BLOCK      256
#define MLK_PANEL        (2 * MLK_W)
#define MLK_N_BLOCK      256                              // columns of C that mlk_gemm_turned takes at once
#define MLK_M_BLOCK      128                              // rows of A that are copied at once
#define MLK_A_PAD        16
#define MLK_GEMM_SCRATCH (MLK_K_BLOCK * (MLK_PANEL + MLK_M_BLOCK + MLK_A_PAD * 2))  // floats for each worker, whatever the sizes

// One tile of C and what it is made from. Rows that the tile has too many repeat the last one and are not stored.
typedef struct MlkTile {
    int64_t k;
    const float *a;      // row i, step p at a[i * a_row + p * a_step]
    int64_t a_row, a_step;
    const float *b;      // step p, column j at b[p * b_row + j], readable in whole vectors
    int64_t b_row;
    const float *start;  // where the sums begin: row i at start + i * start_row; NULL for 0
    int64_t start_row;
    float *c;
    int64_t c_row;
    int64_t rows, columns;  // valid in this tile
} MlkTile;

MLK_LEAF mlk_v mlk_tile_start(const MlkTile *t, int64_t row, int vector)
{
    int64_t columns = t->columns - vector * MLK_W;
    if (!t->start || columns <= 0)
        return (mlk_v){0};
    const float *from = t->start + row * t->start_row + vector * MLK_W;
    return columns >= MLK_W ? mlk_load(from) : mlk_load_first(from, columns);
}

MLK_LEAF void mlk_tile_store(const MlkTile *t, int64_t row, int vector, mlk_v sum)
{
    int64_t columns = t->columns - vector * MLK_W;
    float *to = t->c + row * t->c_row + vector * MLK_W;
    if (columns >= MLK_W)
        mlk_store(to, sum);
    else if (columns > 0)
        mlk_store_first(to, sum, columns);
}

// The tile itself; `rows` and `vectors` are constants where it is called, so that the loops over them unroll.
MLK_LEAF void mlk_tile(const MlkTile *t, const int rows, const int vectors)
{
    mlk_v sum[8][4];
    const float *a[8];
    MLK_UNROLL for (int i = 0; i < rows; i++) {
        int64_t row = mlk_min(i, t->rows - 1);
        a[i] = t->a + row * t->a_row;
        MLK_UNROLL for (int j = 0; j < vectors; j++)
            sum[i][j] = mlk_tile_start(t, row, j);
    }
    const float *b = t->b;
    int64_t step = t->a_step, at = 0, b_row = t->b_row;
    for (int64_t p = t->k; p > 0; p--) {
        mlk_v right[4];
        MLK_UNROLL for (int j = 0; j < vectors; j++)
            right[j] = mlk_load(b + j * MLK_W);
        MLK_UNROLL for (int i = 0; i < rows; i++) {
            mlk_v left = mlk_all(a[i][at]);
            MLK_UNROLL for (int j = 0; j < vectors; j++)
                sum[i][j] = mlk_fma(left, right[j], sum[i][j]);
        }
        b += b_row;
        at += step;
    }
    MLK_UNROLL for (int i = 0; i < rows; i++)
        if (i < t->rows)
            MLK_UNROLL for (int j = 0; j < vectors; j++)
                mlk_tile_store(t, i, j, sum[i][j]);
}

MLK_TILE void mlk_tile_full(const MlkTile *t) { mlk_tile(t, MLK_ROWS, 2); }
MLK_TILE void mlk_tile_half(const MlkTile *t) { mlk_tile(t, MLK_ROWS / 2, 2); }
MLK_TILE void mlk_tile_row(const MlkTile *t) { mlk_tile(t, 1, 2); }
MLK_TILE void mlk_tile_full_thin(const MlkTile *t) { mlk_tile(t, MLK_ROWS, 1); }
MLK_TILE void mlk_tile_row_thin(const MlkTile *t) { mlk_tile(t, 1, 1); }

// All rows of one panel: `panel` says everything but how many rows a tile has.
MLK_FN void mlk_panel(const MlkTile *panel)
{
    MlkTile t = *panel;
    int thin = t.columns <= MLK_W;
    for (int64_t left = panel->rows; left > 0; left -= t.rows) {
        t.rows = mlk_min(left, MLK_ROWS);
        if (t.rows == 1)
            (thin ? mlk_tile_row_thin : mlk_tile_row)(&t);
        else if (thin)
            mlk_tile_full_thin(&t);
        else
            (t.rows <= MLK_ROWS / 2 ? mlk_tile_half : mlk_tile_full)(&t);
        t.a += t.rows * t.a_row;
        t.c += t.rows * t.c_row;
        if (t.start)
            t.start += t.rows * t.start_row;
    }
}

// Copies k rows of `columns` floats to the panel, filled up with zeros.
MLK_FN void mlk_pack(int64_t k, int64_t columns, const float *b, int64_t b_row, float *panel)
{
    for (int64_t p = 0; p < k; p++, b += b_row, panel += MLK_PANEL)
        for (int j = 0; j < MLK_PANEL; j += MLK_W) {
            int64_t left = mlk_min(mlk_max_of(columns - j, 0), MLK_W);
            mlk_store(panel + j, left == MLK_W ? mlk_load(b + j) : mlk_load_first(b + j, left));
        }
}

// to[p * to_row + j] = from[j * from_row + p] for MLK_TURN rows j and MLK_TURN steps p: pairs of neighbours, pairs of
// pairs, and with 8 floats the halves.
#if MLK_W >= 8
#define MLK_TURN 8
#define MLK_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define MLK_HIGH(a, b) __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define MLK_LOW2(a, b) __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define MLK_HIGH2(a, b) __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define MLK_LOWER(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define MLK_UPPER(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15)
#else
#define MLK_TURN 4
#define MLK_LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define MLK_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define MLK_LOW2(a, b) __builtin_shufflevector(a, b, 0, 1, 4, 5)
#define MLK_HIGH2(a, b) __builtin_shufflevector(a, b, 2, 3, 6, 7)
#endif

typedef float mlk_turn __attribute__((vector_size(4 * MLK_TURN)));
typedef float mlk_turn_anywhere __attribute__((vector_size(4 * MLK_TURN), aligned(4), may_alias));

// Four rows that are turned within each quarter: step 4 i + p of row j goes to lane 4 i + j of result p.
MLK_LEAF void mlk_turn_four(const float *from, int64_t row, mlk_turn out[4])
{
    mlk_turn a = *(const mlk_turn_anywhere *)from, b = *(const mlk_turn_anywhere *)(from + row);
    mlk_turn c = *(const mlk_turn_anywhere *)(from + 2 * row), d = *(const mlk_turn_anywhere *)(from + 3 * row);
    mlk_turn ab_low = MLK_LOW(a, b), ab_high = MLK_HIGH(a, b), cd_low = MLK_LOW(c, d), cd_high = MLK_HIGH(c, d);
    out[0] = MLK_LOW2(ab_low, cd_low);
    out[1] = MLK_HIGH2(ab_low, cd_low);
    out[2] = MLK_LOW2(ab_high, cd_high);
    out[3] = MLK_HIGH2(ab_high, cd_high);
}

MLK_LEAF void mlk_transpose_block(const float *from, int64_t from_row, float *to, int64_t to_row)
{
    mlk_turn top[4];
    mlk_turn_four(from, from_row, top);
#if MLK_TURN == 8
    mlk_turn bottom[4];
    mlk_turn_four(from + 4 * from_row, from_row, bottom);
    MLK_UNROLL for (int p = 0; p < 4; p++) {
        *(mlk_turn_anywhere *)(to + p * to_row) = MLK_LOWER(top[p], bottom[p]);
        *(mlk_turn_anywhere *)(to + (p + 4) * to_row) = MLK_UPPER(top[p], bottom[p]);
    }
#else
    MLK_UNROLL for (int p = 0; p < 4; p++)
        *(mlk_turn_anywhere *)(to + p * to_row) = top[p];
#endif
}

// to[p * to_row + j] = from[j * from_row + p] for `rows` rows j and `steps` steps p; 16 steps at a time, so that lines of
// the cache are read and written whole.
MLK_FN void mlk_transpose(int64_t rows, int64_t steps, const float *from, int64_t from_row, float *to, int64_t to_row)
{
    for (int64_t first = 0; first < steps; first += 16)
        for (int64_t j = 0; j < rows; j += MLK_TURN) {
            int64_t p = first, end = mlk_min(first + 16, steps);
            for (; rows - j >= MLK_TURN && p + MLK_TURN <= end; p += MLK_TURN)
                mlk_transpose_block(from + j * from_row + p, from_row, to + p * to_row + j, to_row);
            for (int64_t i = j; i < mlk_min(j + MLK_TURN, rows); i++)
                for (int64_t q = p; q < end; q++)
                    to[q * to_row + i] = from[i * from_row + q];
        }
}

// Copies `columns` rows of a transposed B, k floats long, to the panel as columns, filled up with zeros.
MLK_FN void mlk_pack_transposed(int64_t k, int64_t columns, const float *b, int64_t b_row, float *panel)
{
    for (int64_t p = 0; columns < MLK_PANEL && p < k; p++) {
        mlk_store(panel + p * MLK_PANEL, (mlk_v){0});
        mlk_store(panel + p * MLK_PANEL + MLK_W, (mlk_v){0});
    }
    mlk_transpose(columns, k, b, b_row, panel, MLK_PANEL);
}

// Points the panel at rows k0.. and columns j0.. of B, in place or copied to scratch.
MLK_FN void mlk_panel_take(MlkTile *panel, const float *b, int64_t b_row, int transposed, int64_t k0, int64_t j0,
                           float *scratch)
{
    int64_t width = panel->columns <= MLK_W ? MLK_W : MLK_PANEL;
    int same_lines = b_row % 512 == 0 && panel->rows >= 4 * MLK_ROWS;
    panel->b = scratch;
    panel->b_row = MLK_PANEL;
    if (transposed) {
        mlk_pack_transposed(panel->k, panel->columns, b + j0 * b_row + k0, b_row, scratch);
    } else if (panel->columns < width || same_lines) {
        mlk_pack(panel->k, panel->columns, b + k0 * b_row + j0, b_row, scratch);
    } else {
        panel->b = b + k0 * b_row + j0;
        panel->b_row = b_row;
    }
}

// A block of C for mlk_gemm_turned: rows i..i+rows-1 (one panel), columns j..j+columns-1 (at most MLK_N_BLOCK).
typedef struct MlkTurned {
    int64_t i, rows, j, columns;
} MlkTurned;

// Where the sums begin: sums[column * MLK_PANEL + row].
MLK_FN void mlk_turned_start(const MlkTurned *block, const float *c, int64_t c_row, const float *bias, int accumulate,
                             float *sums)
{
    if (accumulate && block->rows < MLK_PANEL)
        memset(sums, 0, (size_t)(block->columns * MLK_PANEL) * sizeof *sums);
    if (accumulate)
        mlk_transpose(block->rows, block->columns, c + block->i * c_row + block->j, c_row, sums, MLK_PANEL);
    for (int64_t j = 0; !accumulate && bias && j < block->columns; j++) {
        mlk_store(sums + j * MLK_PANEL, mlk_all(bias[block->j + j]));
        mlk_store(sums + j * MLK_PANEL + MLK_W, mlk_all(bias[block->j + j]));
    }
}

// C (m, n) = start + A B with B given as its rows' transpose, by C' = B' A'. Each element is the same chain.
MLK_FN void mlk_gemm_turned(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, const float *b, int64_t b_row,
                            float *c, int64_t c_row, const float *bias, int accumulate, float *scratch, int part, int parts)
{
    int64_t panels = (m + MLK_PANEL - 1) / MLK_PANEL, splits = mlk_max_of(1, mlk_min((parts + panels - 1) / panels, n));
    float *sums = scratch + MLK_K_BLOCK * MLK_PANEL;
    for (int64_t unit = mlk_share(panels * splits, part, parts); unit < mlk_share(panels * splits, part + 1, parts); unit++) {
        int64_t end = n * (unit % splits + 1) / splits;
        MlkTurned t = {.i = unit / splits * MLK_PANEL, .j = n * (unit % splits) / splits};
        t.rows = mlk_min(m - t.i, MLK_PANEL);
        for (; t.j < end; t.j += MLK_N_BLOCK) {
            t.columns = mlk_min(end - t.j, MLK_N_BLOCK);
            mlk_turned_start(&t, c, c_row, bias, accumulate, sums);
            for (int64_t k0 = 0; k0 == 0 || k0 < k; k0 += MLK_K_BLOCK) {
                MlkTile tile = {.k = mlk_min(k - k0, MLK_K_BLOCK), .a = b + t.j * b_row + k0, .a_row = b_row, .a_step = 1,
                                .b = scratch, .b_row = MLK_PANEL, .start_row = MLK_PANEL, .c = sums, .c_row = MLK_PANEL,
                                .rows = t.columns, .columns = t.rows <= MLK_W ? MLK_W : MLK_PANEL};
                tile.start = accumulate || bias || k0 > 0 ? sums : NULL;
                mlk_pack_transposed(tile.k, t.rows, a + t.i * a_row + k0, a_row, scratch);
                mlk_panel(&tile);
            }
            mlk_transpose(t.columns, t.rows, sums, MLK_PANEL, c + t.i * c_row + t.j, c_row);
        }
    }
}

// Pitches at which the rows of a tile, or its steps, fall into few sets of the cache.
MLK_LEAF int mlk_same_sets(int64_t k, int64_t a_row, int64_t a_step)
{
    return a_step == 1 ? a_row % 256 == 0 && a_row >= 512 : k >= 128 && a_row == 1 && a_step % 128 == 0 && a_step >= 256;
}

// Copies rows i..i+rows-1 and steps k0..k0+k-1 of A close together, and makes the tile read them there.
MLK_FN void mlk_take_rows(MlkTile *t, const float *a, int64_t i, int64_t k0, float *to)
{
    if (t->a_step == 1) {
        for (int64_t r = 0; r < t->rows; r++)
            mlk_copy(to + r * (MLK_K_BLOCK + MLK_A_PAD), a + (i + r) * t->a_row + k0, t->k);
        t->a_row = MLK_K_BLOCK + MLK_A_PAD;
    } else {
        for (int64_t p = 0; p < t->k; p++)
            mlk_copy(to + p * (MLK_M_BLOCK + MLK_A_PAD), a + (k0 + p) * t->a_step + i, t->rows);
        t->a_step = MLK_M_BLOCK + MLK_A_PAD;
    }
    t->a = to;
}

// A share of C: rows i_from..i_end-1, columns j_from..j_end-1.
typedef struct MlkShare {
    int64_t i_from, i_end, j_from, j_end;
} MlkShare;

// Whole panels of columns, or whole tiles of rows where the columns are few, or where A is to be copied and tall: then each
// share copies rows of its own.
MLK_FN MlkShare mlk_gemm_share(int64_t m, int64_t n, int copied, int part, int parts)
{
    int64_t panels = (n + MLK_PANEL - 1) / MLK_PANEL, blocks = (m + MLK_ROWS - 1) / MLK_ROWS;
    if (!(copied && m >= n && blocks >= 4 * parts) && (panels >= parts || panels >= blocks))
        return (MlkShare){0, m, mlk_share(panels, part, parts) * MLK_PANEL,
                          mlk_min(mlk_share(panels, part + 1, parts) * MLK_PANEL, n)};
    return (MlkShare){mlk_share(blocks, part, parts) * MLK_ROWS, mlk_min(mlk_share(blocks, part + 1, parts) * MLK_ROWS, m), 0, n};
}

MLK_FN void mlk_gemm_any(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, int64_t a_step, const float *b,
                         int64_t b_row, int transposed, float *c, int64_t c_row, const float *bias, int accumulate,
                         float *scratch, int part, int parts)
{
    int copied = mlk_same_sets(k, a_row, a_step);
    MlkShare s = mlk_gemm_share(m, n, copied, part, parts);
    copied = copied && s.i_end - s.i_from > MLK_ROWS && s.j_end - s.j_from > MLK_PANEL;
    int64_t rows = copied ? MLK_M_BLOCK : mlk_max_of(1, s.i_end - s.i_from);
    for (int64_t k0 = 0; k0 == 0 || k0 < k; k0 += MLK_K_BLOCK)
        for (int64_t i = s.i_from; i < s.i_end; i += rows) {
            MlkTile left = {.k = mlk_min(k - k0, MLK_K_BLOCK), .a = a + i * a_row + k0 * a_step, .a_row = a_row,
                            .a_step = a_step, .c_row = c_row, .rows = mlk_min(s.i_end - i, rows)};
            if (copied)
                mlk_take_rows(&left, a, i, k0, scratch + MLK_K_BLOCK * MLK_PANEL);
            for (int64_t j = s.j_from; j < s.j_end; j += MLK_PANEL) {
                MlkTile t = left;
                t.c = c + i * c_row + j;
                t.columns = mlk_min(s.j_end - j, MLK_PANEL);
                if (accumulate || k0 > 0) {
                    t.start = t.c;
                    t.start_row = c_row;
                } else if (bias) {
                    t.start = bias + j;
                }
                mlk_panel_take(&t, b, b_row, transposed, k0, j, scratch);
                mlk_panel(&t);
            }
        }
}

// C (m, n) = (accumulate ? C : bias ? bias (n) : 0) + A (m, k) B (k, n).
// A has element (i, p) at a[i * a_row + p * a_step], so a transposed A is a_row = 1. The rows of B and C are b_row and
// c_row floats apart. scratch: MLK_GEMM_SCRATCH floats of this worker's own. part of parts: a share of C; the shares
// may run in any order or at once.
MLK_FN void mlk_gemm(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, int64_t a_step, const float *b,
                     int64_t b_row, float *c, int64_t c_row, const float *bias, int accumulate, float *scratch, int part,
                     int parts)
{
    mlk_gemm_any(m, n, k, a, a_row, a_step, b, b_row, 0, c, c_row, bias, accumulate, scratch, part, parts);
}

// The same with B given as its rows' transpose, (n, k): y = x W' + b with W as (out, in).
MLK_FN void mlk_gemm_nt(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, int64_t a_step, const float *b,
                        int64_t b_row, float *c, int64_t c_row, const float *bias, int accumulate, float *scratch,
                        int part, int parts)
{
    if (a_step == 1 && 2 * m >= MLK_W && m < n)
        mlk_gemm_turned(m, n, k, a, a_row, b, b_row, c, c_row, bias, accumulate, scratch, part, parts);
    else
        mlk_gemm_any(m, n, k, a, a_row, a_step, b, b_row, 1, c, c_row, bias, accumulate, scratch, part, parts);
}

#endif
