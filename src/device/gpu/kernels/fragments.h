/* Products of small matrices in a group's memory, with the results in registers. A group is warps of 32 work-items; a
 * warp has 16 rows of the result, whose columns are cut into tiles of 8. Of each tile a work-item has 4 elements, as
 * the matrix units of CUDA have them (PTX ISA, mma.m16n8k16): rows ROW_OF(0) and ROW_OF(2), columns 2 * (LANE % 4) + i
 * % 2. Matrices begin at multiples of 16 bytes, as do their rows.
 *
 * Settings: T, HALF (1: T has 16 bits).
 */
#define WARP         (ITEM_X / 32)
#define LANE         (ITEM_X % 32)
#define ROW_OF(i)    (LANE / 4 + (i) / 2 * 8)
#define COLUMN_OF(i) (2 * (LANE % 4) + (i) % 2)

FUNCTION void NAME(clear)(float (*sum)[4], int n_tiles)
{
    UNROLL_ON_GPU
    for (int j = 0; j < n_tiles; j++)
        for (int i = 0; i < 4; i++)
            sum[j][i] = 0;
}

#if HALF && HAS_FRAGMENTS

/* sum += a b', a [16,depth] of this warp, b [8 * n_tiles,depth]; n_tiles is even, depth a multiple of 16. */
FUNCTION void NAME(add_rows)(float (*sum)[4], int n_tiles, LOCAL const STORED(T) * a, int a_step,
                             LOCAL const STORED(T) * b, int b_step, int depth)
{
    a += LANE % 16 * a_step + LANE / 16 * 8;
    b += (LANE % 8 + LANE / 16 * 8) * b_step + LANE / 8 % 2 * 8;
    UNROLL_ON_GPU
    for (int k = 0; k < depth; k += 16) {
        u32 left[4], right[4];
        load_matrices(left, a + k, false);
        UNROLL_ON_GPU
        for (int j = 0; j < n_tiles; j += 2) {
            load_matrices(right, b + 8 * j * b_step + k, false);
            PASTE(multiply_fragments_, T)(sum[j], left, right);
            PASTE(multiply_fragments_, T)(sum[j + 1], left, right + 2);
        }
    }
}

/* sum += a b, a [16,depth] of this warp, b [depth,8 * n_tiles]. */
FUNCTION void NAME(add_columns)(float (*sum)[4], int n_tiles, LOCAL const STORED(T) * a, int a_step,
                                LOCAL const STORED(T) * b, int b_step, int depth)
{
    a += LANE % 16 * a_step + LANE / 16 * 8;
    b += LANE % 16 * b_step + LANE / 16 * 8;
    UNROLL_ON_GPU
    for (int k = 0; k < depth; k += 16) {
        u32 left[4], right[4];
        load_matrices(left, a + k, false);
        UNROLL_ON_GPU
        for (int j = 0; j < n_tiles; j += 2) {
            load_matrices(right, b + k * b_step + 8 * j, true);
            PASTE(multiply_fragments_, T)(sum[j], left, right);
            PASTE(multiply_fragments_, T)(sum[j + 1], left, right + 2);
        }
    }
}

#else

FUNCTION void NAME(add_one)(float *sum, float a0, float a1, float b0, float b1)
{
    sum[0] += a0 * b0;
    sum[1] += a0 * b1;
    sum[2] += a1 * b0;
    sum[3] += a1 * b1;
}

FUNCTION void NAME(add_rows)(float (*sum)[4], int n_tiles, LOCAL const STORED(T) * a, int a_step,
                             LOCAL const STORED(T) * b, int b_step, int depth)
{
    a += ROW_OF(0) * a_step;
    b += COLUMN_OF(0) * b_step;
    for (int k = 0; k < depth; k++) {
        const float a0 = LOAD(T, a, k), a1 = LOAD(T, a, 8 * a_step + k);
        UNROLL_ON_GPU
        for (int j = 0; j < n_tiles; j++)
            NAME(add_one)(sum[j], a0, a1, LOAD(T, b, 8 * j * b_step + k), LOAD(T, b, (8 * j + 1) * b_step + k));
    }
}

FUNCTION void NAME(add_columns)(float (*sum)[4], int n_tiles, LOCAL const STORED(T) * a, int a_step,
                                LOCAL const STORED(T) * b, int b_step, int depth)
{
    a += ROW_OF(0) * a_step;
    b += COLUMN_OF(0);
    for (int k = 0; k < depth; k++) {
        const float a0 = LOAD(T, a, k), a1 = LOAD(T, a, 8 * a_step + k);
        UNROLL_ON_GPU
        for (int j = 0; j < n_tiles; j++)
            NAME(add_one)(sum[j], a0, a1, LOAD(T, b, k * b_step + 8 * j), LOAD(T, b, k * b_step + 8 * j + 1));
    }
}

#endif

/* The results as elements of a matrix in the group's memory, this warp's rows of it. */
FUNCTION void NAME(put)(float (*sum)[4], int n_tiles, LOCAL STORED(T) * to, int step)
{
    UNROLL_ON_GPU
    for (int j = 0; j < n_tiles; j++)
        for (int i = 0; i < 4; i++)
            STORE(T, to, ROW_OF(i) * step + 8 * j + COLUMN_OF(i), sum[j][i]);
}
