/* The part of tile.h for f32, and for all where the chip has no units for matrices: tiles lie in the group's memory as
 * f32, and each work-item has some rows and columns of C in registers.
 */
#define ROWS_EACH  (TILE_M / ITEMS_M)
#define WIDES_EACH (TILE_N / ITEMS_N / 4)
/* A lies as [K][M], B as [K][N]. */
#define A_ROW (TILE_M + 4 * A_ALONG_K)
#define B_ROW (TILE_N + 4 * B_ALONG_K)

#define OF(f)    f##_a
#define TILE     TILE_M
#define ALONG_K  A_ALONG_K
#define CHUNK    A_CHUNK
#define AT(m, k) ((k)*A_ROW + (m))
#define STEP     (A_ALONG_K ? A_ROW : 1)
#include "tile_stage.h"
#define OF(f)    f##_b
#define TILE     TILE_N
#define ALONG_K  B_ALONG_K
#define CHUNK    B_CHUNK
#define AT(n, k) ((k)*B_ROW + (n))
#define STEP     (B_ALONG_K ? B_ROW : 1)
#include "tile_stage.h"

/* Column j of an item's: its wides are apart, so that neighbours read neighbours. */
FUNCTION int NAME(column)(int i_item, int j)
{
    return (j * ITEMS_N + i_item) * 4;
}

FUNCTION void NAME(multiply)(LOCAL const float *a, LOCAL const float *b, int y, int x, WIDE(4) * sums)
{
    WIDE(4) sum[ROWS_EACH * WIDES_EACH];
    UNROLL
    for (int i = 0; i < ROWS_EACH * WIDES_EACH; i++)
        sum[i] = sums[i];
    UNROLL
    for (int k = 0; k < TILE_K; k++) {
        WIDE(4) row[WIDES_EACH];
        float left[ROWS_EACH];
        UNROLL
        for (int j = 0; j < WIDES_EACH; j++)
            row[j] = WIDE_LOAD(4, b + k * B_ROW + NAME(column)(x, j));
        UNROLL
        for (int i = 0; i < ROWS_EACH; i += 4)
            WIDE_STORE(4, left + i, WIDE_LOAD(4, a + k * A_ROW + y * ROWS_EACH + i));
        UNROLL
        for (int i = 0; i < ROWS_EACH * WIDES_EACH; i++)
            sum[i] = WIDE_FMA(4, left[i / WIDES_EACH], row[i % WIDES_EACH], sum[i]);
    }
    UNROLL
    for (int i = 0; i < ROWS_EACH * WIDES_EACH; i++)
        sums[i] = sum[i];
}

/* 4 elements of C that begin at (m, n). */
FUNCTION void NAME(put)(GLOBAL STORED(T_OUT) * c, GLOBAL const float *bias, GLOBAL const STORED(T_OUT) * onto,
                        NAME(product) p, int m, int n, WIDE(4) sum)
{
    float x[4];
    GLOBAL STORED(T_OUT) *to = c + (index_t)m * p.ldc + n;
    if (m >= p.m) return;
    WIDE_STORE(4, x, sum);
    for (int i = 0; i < 4 && p.has_onto && n + i < p.n; i++)
        x[i] += LOAD(T_OUT, onto, (index_t)m * p.ldc + n + i);
    if (n + 4 <= p.n) {
        for (int i = 0; i < 4; i++)
            x[i] = NAME(finish)(p, x[i], p.has_bias ? bias[n + i] : 0.0f);
        for (int i = 0; i < 4; i++)
            STORE(T_OUT, to, i, x[i]);
    } else {
        for (int i = 0; i < 4 && n + i < p.n; i++)
            STORE(T_OUT, to, i, NAME(finish)(p, x[i], p.has_bias ? bias[n + i] : 0.0f));
    }
}

KERNEL_OF(multiply_tiles, ITEMS_M *ITEMS_N, 512 / (ITEMS_M * ITEMS_N))
(BUFFER(STORED(T), a), BUFFER(STORED(T), b), BUFFER(STORED(T_OUT), c), BUFFER(float, bias), BUFFER(STORED(T_OUT), onto),
 NAME(product) p, NAME(operands) o)
{
    SHARED(uint4, shared_a, A_ROW * TILE_K / 4);
    SHARED(uint4, shared_b, B_ROW * TILE_K / 4);
    POINTER(const STORED(T), a);
    POINTER(const STORED(T), b);
    POINTER(STORED(T_OUT), c);
    POINTER(const float, bias);
    POINTER(const STORED(T_OUT), onto);
    const NAME(place) at = NAME(find_place)(p);
    const int y = ITEM_X / ITEMS_N, x = ITEM_X % ITEMS_N;
    const int begin = (int)GROUP_Y * p.k_each, end = begin + p.k_each < p.k ? begin + p.k_each : p.k;
    LOCAL float *tile_a = (LOCAL float *)shared_a, *tile_b = (LOCAL float *)shared_b;
    WIDE(4) sum[ROWS_EACH * WIDES_EACH];
    UNROLL
    for (int i = 0; i < ROWS_EACH * WIDES_EACH; i++)
        sum[i] = WIDE_OF(4, 0.0f);
    a += NAME(begin_a)(o, at.batch);
    b += NAME(begin_b)(o, at.batch);
    for (int k = begin; k < end; k += TILE_K) {
        NAME(stage_a)(tile_a, a, o, at.m, k);
        NAME(stage_b)(tile_b, b, o, at.n, k);
        BARRIER();
        NAME(multiply)(tile_a, tile_b, y, x, sum);
        BARRIER();
    }
    c += (index_t)(at.batch * p.c_batch) + (index_t)(GROUP_Y * p.part_stride);
    bias += at.batch * p.bias_batch;
    UNROLL
    for (int i = 0; i < ROWS_EACH * WIDES_EACH; i++)
        NAME(put)
    (c, bias, onto, p, at.m + y * ROWS_EACH + i / WIDES_EACH, at.n + NAME(column)(x, i % WIDES_EACH), sum[i]);
}

#undef ROWS_EACH
#undef WIDES_EACH
#undef A_ROW
#undef B_ROW
