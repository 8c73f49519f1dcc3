/* The part of tile.h for processors: a group has one work-item, which multiplies as a processor's libraries do. Tiles
 * lie in the group's memory as f32, B in panels of COLUMNS columns, one of which stays in the first cache while all
 * rows of A pass by it; ROWS x COLUMNS sums are in registers while K goes by, and in the group's memory between.
 */
#define COLUMNS (16 * WIDES)
/* An odd number of a cache's lines, so that the elements read one after the other are not all in the same few. */
#define A_ROW      (16 + (A_ALONG_K ? TILE_K : TILE_M))
#define B_AT(n, k) (((n) / COLUMNS * TILE_K + (k)) * COLUMNS + (n) % COLUMNS)

#define OF(f)   f##_a
#define ALONG_K A_ALONG_K
#define CHUNK   A_CHUNK
#define WHOLE   A_WHOLE
#include "tile_read.h"
#define OF(f)   f##_b
#define ALONG_K B_ALONG_K
#define CHUNK   B_CHUNK
#define WHOLE   B_WHOLE
#include "tile_read.h"

/* What lies behind `rows` and `depth` in the tile is any number. */
FUNCTION void NAME(stage_a)(LOCAL float *to, GLOBAL const STORED(T) * a, NAME(operands) o, int m_first, int k_first,
                            int rows, int depth)
{
    const int n_outer = A_ALONG_K ? rows : depth, n_inner = A_ALONG_K ? depth : rows;
    NO_UNROLL
    for (int i = 0; i < n_outer; i++) {
        const int m = m_first + (A_ALONG_K ? i : 0), k = k_first + (A_ALONG_K ? 0 : i);
        const index_t at = NAME(find_run_a)(o, m, k, n_inner);
        NO_UNROLL
        for (int j = 0; j < n_inner; j += 16)
            WIDE_STORE(16, to + i * A_ROW + j, NAME(read_run_a)(a, o, at, m, k, j, n_inner));
    }
}

/* As they lie in memory, row by row; where that is along K, each 16 x 16 numbers are turned in registers. */
FUNCTION void NAME(stage_b)(LOCAL float *to, GLOBAL const STORED(T) * b, NAME(operands) o, int n_first, int k_first,
                            int columns, int depth)
{
#if B_ALONG_K
    NO_UNROLL
    for (int n = 0; n < columns; n += 16) {
        index_t at[16];
        for (int i = 0; i < 16; i++)
            at[i] = NAME(find_run_b)(o, n_first + n + i, k_first, depth);
        NO_UNROLL
        for (int k = 0; k < depth; k += 16) {
            WIDE(16) x[16];
            UNROLL
            for (int i = 0; i < 16; i++)
                x[i] = NAME(read_run_b)(b, o, at[i], n_first + n + i, k_first, k, depth);
            TURN_16(x);
            UNROLL
            for (int i = 0; i < 16; i++)
                WIDE_STORE(16, to + B_AT(n, k + i), x[i]);
        }
    }
#else
    NO_UNROLL
    for (int k = 0; k < depth; k++) {
        const index_t at = NAME(find_run_b)(o, n_first, k_first + k, columns);
        NO_UNROLL
        for (int n = 0; n < columns; n += 16)
            WIDE_STORE(16, to + B_AT(n, k), NAME(read_run_b)(b, o, at, n_first, k_first + k, n, columns));
    }
#endif
}

/* sum [ROWS,COLUMNS] += a b, where K is `depth`. */
FUNCTION void NAME(multiply)(LOCAL const float *a, LOCAL const float *b, int depth, WIDE(16) * sum)
{
    NO_UNROLL
    for (int k = 0; k < depth; k++) {
        WIDE(16) row[WIDES];
        UNROLL
        for (int j = 0; j < WIDES; j++)
            row[j] = WIDE_LOAD(16, b + k * COLUMNS + j * 16);
        UNROLL
        for (int i = 0; i < ROWS; i++) {
            const float left = a[A_ALONG_K ? i * A_ROW + k : k * A_ROW + i];
            UNROLL
            for (int j = 0; j < WIDES; j++)
                sum[i * WIDES + j] = WIDE_FMA(16, left, row[j], sum[i * WIDES + j]);
        }
    }
}

/* At (m, n) of C, all inside. */
FUNCTION void NAME(put_all)(GLOBAL STORED(T_OUT) * c, GLOBAL const float *bias, NAME(product) p, int m, int n,
                            const WIDE(16) * sum)
{
    UNROLL
    for (int i = 0; i < ROWS * WIDES; i++) {
        const int column = n + i % WIDES * 16;
        WIDE(16) x = sum[i];
        if (p.has_bias) x += WIDE_LOAD(16, bias + column);
        if (p.relu) x = x <= 0 ? 0 : x;
        WIDE_TO(T_OUT, c + (index_t)(m + i / WIDES) * p.ldc + column, x);
    }
}

/* What is inside of them, or is added to a matrix. */
FUNCTION void NAME(put_some)(GLOBAL STORED(T_OUT) * c, GLOBAL const float *bias, GLOBAL const STORED(T_OUT) * onto,
                             NAME(product) p, int m, int n, LOCAL const float *sum)
{
    NO_UNROLL
    for (int i = 0; i < ROWS && m + i < p.m; i++) {
        NO_UNROLL
        for (int j = 0; j < COLUMNS && n + j < p.n; j++) {
            const index_t at = (index_t)(m + i) * p.ldc + n + j;
            const float x = sum[i * TILE_N + j] + (p.has_onto ? LOAD(T_OUT, onto, at) : 0.0f);
            STORE(T_OUT, c, at, NAME(finish)(p, x, p.has_bias ? bias[n + j] : 0.0f));
        }
    }
}

/* Of the next step's tiles a part, while this step's are multiplied: i of n parts. */
FUNCTION void NAME(ask_ahead)(GLOBAL const STORED(T) * a, GLOBAL const STORED(T) * b, NAME(operands) o, int m_first,
                              int n_first, int k_first, int rows, int columns, int i, int n)
{
    const int n_a = A_ALONG_K ? rows : TILE_K, n_b = B_ALONG_K ? columns : TILE_K;
    for (int at = i * n_a / n; at < (i + 1) * n_a / n; at++) {
        for (int j = 0; j < (A_ALONG_K ? TILE_K : rows); j += 16) {
            const index_t from = NAME(find_a)(o, m_first + (A_ALONG_K ? at : j), k_first + (A_ALONG_K ? j : at));
            if (from >= 0) PREFETCH(a + from);
        }
    }
    for (int at = i * n_b / n; at < (i + 1) * n_b / n; at++) {
        for (int j = 0; j < (B_ALONG_K ? TILE_K : columns); j += 16) {
            const index_t from = NAME(find_b)(o, n_first + (B_ALONG_K ? at : j), k_first + (B_ALONG_K ? j : at));
            if (from >= 0) PREFETCH(b + from);
        }
    }
}

KERNEL(multiply_tiles, 1, 1, 1)
(BUFFER(STORED(T), a), BUFFER(STORED(T), b), BUFFER(STORED(T_OUT), c), BUFFER(float, bias), BUFFER(STORED(T_OUT), onto),
 NAME(product) p, NAME(operands) o)
{
    SHARED(WIDE(16), shared_a, A_ROW * (A_ALONG_K ? TILE_M : TILE_K) / 16);
    SHARED(WIDE(16), shared_b, TILE_N * TILE_K / 16);
    SHARED(WIDE(16), shared_c, TILE_M * TILE_N / 16);
    POINTER(const STORED(T), a);
    POINTER(const STORED(T), b);
    POINTER(STORED(T_OUT), c);
    POINTER(const float, bias);
    POINTER(const STORED(T_OUT), onto);
    const NAME(place) at = NAME(find_place)(p);
    const int begin = (int)GROUP_Y * p.k_each, end = begin + p.k_each < p.k ? begin + p.k_each : p.k;
    const int rows = p.m - at.m < p.tile_m ? p.m - at.m : p.tile_m;
    const int columns = p.n - at.n < p.tile_n ? p.n - at.n : p.tile_n;
    const int n_parts = ((rows + ROWS - 1) / ROWS) * ((columns + COLUMNS - 1) / COLUMNS);
    LOCAL float *tile_a = (LOCAL float *)shared_a, *tile_b = (LOCAL float *)shared_b, *tile_c = (LOCAL float *)shared_c;
    c += (index_t)(at.batch * p.c_batch) + (index_t)(GROUP_Y * p.part_stride);
    bias += at.batch * p.bias_batch;
    a += NAME(begin_a)(o, at.batch);
    b += NAME(begin_b)(o, at.batch);
    NO_UNROLL
    for (int k = begin; k == begin || k < end; k += TILE_K) {
        const int depth = end - k < TILE_K ? end - k : TILE_K;
        NAME(stage_a)(tile_a, a, o, at.m, k, rows, depth);
        NAME(stage_b)(tile_b, b, o, at.n, k, columns, depth);
        int i_part = 0;
        NO_UNROLL
        for (int n = 0; n < columns; n += COLUMNS) {
            NO_UNROLL
            for (int m = 0; m < rows; m += ROWS) {
                WIDE(16) sum[ROWS * WIDES];
                LOCAL float *kept = tile_c + m * TILE_N + n;
                const int all = at.m + m + ROWS <= p.m && at.n + n + COLUMNS <= p.n && !p.has_onto;
                if (k + TILE_K < end)
                    NAME(ask_ahead)(a, b, o, at.m, at.n, k + TILE_K, rows, columns, i_part++, n_parts);
                UNROLL
                for (int i = 0; i < ROWS * WIDES; i++)
                    sum[i] = k == begin ? WIDE_OF(16, 0.0f) : WIDE_LOAD(16, kept + i / WIDES * TILE_N + i % WIDES * 16);
                NAME(multiply)(tile_a + (A_ALONG_K ? m * A_ROW : m), tile_b + n * TILE_K, depth, sum);
                if (k + TILE_K >= end && all) {
                    NAME(put_all)(c, bias, p, at.m + m, at.n + n, sum);
                    continue;
                }
                UNROLL
                for (int i = 0; i < ROWS * WIDES; i++)
                    WIDE_STORE(16, kept + i / WIDES * TILE_N + i % WIDES * 16, sum[i]);
                if (k + TILE_K >= end) NAME(put_some)(c, bias, onto, p, at.m + m, at.n + n, kept);
            }
        }
    }
}

#undef COLUMNS
#undef B_AT
#undef A_ROW
