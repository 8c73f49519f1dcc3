/* What attention_fragments.dev and attention_grad_fragments.dev share, behind fragments.h and attention.h: attention of
 * 16-bit numbers on chips with fragments (Dao 2023, FlashAttention-2). A head is one chunk, of a multiple of 8 columns.
 * What a warp multiplies by from the left stays in its registers, weights too: two tiles of a result are, rounded, what
 * 16 of the next product's depth want. The other operand's tiles come two at a time, the next one's copies under way.
 * Elsewhere, for tests, the left lies in the group's memory. Settings besides attention.h's:
 *
 *   MASKED   1: the call has a mask of keys
 *   DROPS    1: the call has dropout
 */
#define LEFT       NAME(left)
#define MOST_DEPTH (DC > TILE_COLUMNS ? DC : TILE_COLUMNS)
#define WARP_ROWS  (16 * PARTS)
#define TILE_SIZE  (TILE_COLUMNS * ROW)
#define PARTS_SIZE (TILE_ROWS * P_ROW)
#define LOG2_E     1.44269504f
#define LN_2       0.69314718f

#if HAS_FRAGMENTS
/* A warp may go on without the others of its group. */
#define MAY_SKIP(condition) (condition)

typedef struct LEFT {
    u32 of[MOST_DEPTH / 16][4];
} LEFT;

/* 16 rows of DC columns. */
FUNCTION void NAME(keep_left)(LEFT *left, LOCAL const STORED(T) * a)
{
    a += LANE % 16 * ROW + LANE / 16 * 8;
    UNROLL_ON_GPU
    for (int k = 0; k < DC; k += 16)
        load_matrices(left->of[k / 16], a + k, false);
}

/* A warp's scores; p is memory for them where they do not stay in registers. */
FUNCTION void NAME(turn_left)(LEFT *left, float (*score)[SCORE_TILES][4], LOCAL STORED(T) *)
{
    UNROLL_ON_GPU
    for (int part = 0; part < PARTS; part++) {
        UNROLL_ON_GPU
        for (int k = 0; k < SCORE_TILES; k += 2) {
            UNROLL_ON_GPU
            for (int i = 0; i < 4; i++)
                left[part].of[k / 2][i] =
                    PASTE(pair_of_, T)(score[part][k + i / 2][i % 2 * 2], score[part][k + i / 2][i % 2 * 2 + 1]);
        }
    }
}

/* sum += left b', b [TILE_COLUMNS,DC]. */
FUNCTION void NAME(add_left_rows)(float (*sum)[SCORE_TILES][4], const LEFT *left, LOCAL const STORED(T) * b)
{
    b += (LANE % 8 + LANE / 16 * 8) * ROW + LANE / 8 % 2 * 8;
    UNROLL_ON_GPU
    for (int k = 0; k < DC; k += 16) {
        UNROLL_ON_GPU
        for (int j = 0; j < SCORE_TILES; j += 2) {
            u32 right[4];
            load_matrices(right, b + 8 * j * ROW + k, false);
            UNROLL_ON_GPU
            for (int part = 0; part < PARTS; part++) {
                PASTE(multiply_fragments_, T)(sum[part][j], left[part].of[k / 16], right);
                PASTE(multiply_fragments_, T)(sum[part][j + 1], left[part].of[k / 16], right + 2);
            }
        }
    }
}

/* sum += left b, of the same b. */
FUNCTION void NAME(add_left_columns)(float (*sum)[OUT_TILES][4], const LEFT *left, LOCAL const STORED(T) * b)
{
    b += LANE % 16 * ROW + LANE / 16 * 8;
    UNROLL_ON_GPU
    for (int k = 0; k < TILE_COLUMNS; k += 16) {
        UNROLL_ON_GPU
        for (int j = 0; j < OUT_TILES; j += 2) {
            u32 right[4];
            load_matrices(right, b + k * ROW + 8 * j, true);
            UNROLL_ON_GPU
            for (int part = 0; part < PARTS; part++) {
                PASTE(multiply_fragments_, T)(sum[part][j], left[part].of[k / 16], right);
                PASTE(multiply_fragments_, T)(sum[part][j + 1], left[part].of[k / 16], right + 2);
            }
        }
    }
}

#else
#define MAY_SKIP(condition) 0

typedef struct LEFT {
    LOCAL const STORED(T) * at;
    int step;
} LEFT;

FUNCTION void NAME(keep_left)(LEFT *left, LOCAL const STORED(T) * a)
{
    left->at = a;
    left->step = ROW;
}

FUNCTION void NAME(turn_left)(LEFT *left, float (*score)[SCORE_TILES][4], LOCAL STORED(T) * p)
{
    BARRIER();
    for (int part = 0; part < PARTS; part++) {
        LOCAL STORED(T) *to = p + (WARP_ROWS * WARP + 16 * part) * P_ROW;
        NAME(put)(score[part], SCORE_TILES, to, P_ROW);
        left[part].at = to;
        left[part].step = P_ROW;
    }
    BARRIER();
}

FUNCTION void NAME(add_left_rows)(float (*sum)[SCORE_TILES][4], const LEFT *left, LOCAL const STORED(T) * b)
{
    for (int part = 0; part < PARTS; part++)
        NAME(add_rows)(sum[part], SCORE_TILES, left[part].at, left[part].step, b, ROW, DC);
}

FUNCTION void NAME(add_left_columns)(float (*sum)[OUT_TILES][4], const LEFT *left, LOCAL const STORED(T) * b)
{
    for (int part = 0; part < PARTS; part++)
        NAME(add_columns)(sum[part], OUT_TILES, left[part].at, left[part].step, b, ROW, TILE_COLUMNS);
}

#endif

/* Begins to copy n_rows rows, [n_rows,ROW]; rows and columns that there are not become zeros. */
FUNCTION void NAME(stage)(LOCAL STORED(T) * to, SIDE side, int n_rows)
{
    const int n = n_rows * (DC / 8);
    UNROLL_ON_GPU
    for (int round = 0; round < (n + ITEMS - 1) / ITEMS; round++) {
        const uint i = (uint)(ITEM_X + round * ITEMS);
        const int row = (int)(i / (DC / 8)), e = (int)(i % (DC / 8)) * 8, at = side.first + row;
        const int is_there = at < side.n && e < side.d && (!MASKED || !side.mask || side.mask[at]);
        if (n % ITEMS == 0 || (int)i < n)
            copy_16((LOCAL uint4 *)(to + row * ROW + e),
                    (GLOBAL const uint4 *)(side.from + (is_there ? at * side.step + e : 0)), is_there);
    }
}

/* A warp's rows from `first` on, each times factor[part][row / 8 % 2]. */
FUNCTION void NAME(store_rows)(GLOBAL STORED(T) * to, SIDE side, int first, float (*sum)[OUT_TILES][4],
                               float (*factor)[2])
{
    UNROLL_ON_GPU
    for (int i = 0; i < 2 * PARTS; i++) {
        const int part = i / 2, row = first + 16 * part + ROW_OF(i % 2 * 2);
        GLOBAL STORED(T) *at = to + row * side.step;
        const float times = factor[part][i % 2];
        UNROLL_ON_GPU
        for (int j = 0; j < OUT_TILES; j++) {
            const int e = 8 * j + COLUMN_OF(0);
            if (row < side.n && e < side.d)
                PASTE(store_pair_, T)(at + e, sum[part][j][i % 2 * 2] * times, sum[part][j][i % 2 * 2 + 1] * times);
        }
    }
}
