/* The part of tile.h for 16-bit numbers on chips whose groups of 32 work-items multiply matrices together: C lies in
 * registers as fragments of 16 x 8, tiles in the group's memory as they are. Elsewhere each work-item computes what it
 * would hold there. Settings besides tile.h's: WARPS_M, WARPS_N, the 32s of a group by rows and columns of C.
 *
 * A fragment's element c of lane l is row l / 4 + c / 2 * 8, column l % 4 * 2 + c % 2.
 */
#define FRAGMENTS_M (TILE_M / WARPS_M / 16)
#define FRAGMENTS_N (TILE_N / WARPS_N / 8)
#define A_CHUNKS    (TILE_M * TILE_K / 8)
#define B_CHUNKS    (TILE_N * TILE_K / 8)

/* Where (outer, k) lies in a tile, in elements: chunks of 8 are shuffled so that the 8 of a matrix's rows, or of its
 * columns, lie in different banks. */
FUNCTION int NAME(slot_along_k)(int outer, int k)
{
    return (outer * (TILE_K / 8) + (k / 8 ^ (outer / 2 & 3))) * 8 + k % 8;
}

FUNCTION int NAME(slot_across_k)(int outer, int k, int n_outer)
{
    return (k * (n_outer / 8) + (outer / 8 ^ (k & 7))) * 8 + outer % 8;
}

#if A_ALONG_K
#define SLOT_A(m, k) NAME(slot_along_k)(m, k)
#else
#define SLOT_A(m, k) NAME(slot_across_k)(m, k, TILE_M)
#endif
#if B_ALONG_K
#define SLOT_B(n, k) NAME(slot_along_k)(n, k)
#else
#define SLOT_B(n, k) NAME(slot_across_k)(n, k, TILE_N)
#endif

#define OF(f)          f##_a
#define TILE           TILE_M
#define ALONG_K        A_ALONG_K
#define CHUNK          A_CHUNK
#define SLOT(outer, k) SLOT_A(outer, k)
#include "tile_copy.h"
#define OF(f)          f##_b
#define TILE           TILE_N
#define ALONG_K        B_ALONG_K
#define CHUNK          B_CHUNK
#define SLOT(outer, k) SLOT_B(outer, k)
#include "tile_copy.h"

typedef struct NAME(fragments) {
    float c[FRAGMENTS_M][FRAGMENTS_N][4];
} NAME(fragments);

/* Adds the product of the tiles' 16 k from `k` on; m, n: where the warp's part of C begins. */
FUNCTION void NAME(multiply)(LOCAL const ushort *a, LOCAL const ushort *b, int m, int n, int k, NAME(fragments) * sum)
{
    const int lane = ITEM_X % 32;
#if HAS_FRAGMENTS
    const int eighth = lane & 7, odd = (lane >> 3 & 1) * 8, upper = (lane >> 4) * 8;
    u32 left[FRAGMENTS_M][4], right[FRAGMENTS_N / 2][4];
    UNROLL
    for (int i = 0; i < FRAGMENTS_M; i++)
        load_matrices(left[i],
                      a + SLOT_A(m + i * 16 + odd + (A_ALONG_K ? eighth : 0), k + upper + (A_ALONG_K ? 0 : eighth)),
                      !A_ALONG_K);
    UNROLL
    for (int j = 0; j < FRAGMENTS_N; j += 2)
        load_matrices(right[j / 2],
                      b + SLOT_B(n + j * 8 + upper + (B_ALONG_K ? eighth : 0), k + odd + (B_ALONG_K ? 0 : eighth)),
                      !B_ALONG_K);
    UNROLL
    for (int i = 0; i < FRAGMENTS_M; i++) {
        UNROLL
        for (int j = 0; j < FRAGMENTS_N; j++)
            PASTE(multiply_fragments_, T)(sum->c[i][j], left[i], right[j / 2] + j % 2 * 2);
    }
#else
    NO_UNROLL
    for (int l = k; l < k + 16; l++) {
        float left[2 * FRAGMENTS_M], right[2 * FRAGMENTS_N];
        UNROLL
        for (int i = 0; i < 2 * FRAGMENTS_M; i++)
            left[i] = LOAD(T, a, SLOT_A(m + i * 8 + lane / 4, l));
        UNROLL
        for (int j = 0; j < 2 * FRAGMENTS_N; j++)
            right[j] = LOAD(T, b, SLOT_B(n + j / 2 * 8 + lane % 4 * 2 + j % 2, l));
        UNROLL
        for (int i = 0; i < FRAGMENTS_M; i++) {
            UNROLL
            for (int j = 0; j < FRAGMENTS_N; j++) {
                UNROLL
                for (int c = 0; c < 4; c++)
                    sum->c[i][j][c] += left[2 * i + c / 2] * right[2 * j + c % 2];
            }
        }
    }
#endif
}

/* Two neighbours of C, at (m, n) and behind it. */
FUNCTION void NAME(put)(GLOBAL STORED(T_OUT) * c, GLOBAL const float *bias, GLOBAL const STORED(T_OUT) * onto,
                        NAME(product) p, int m, int n, float x, float y)
{
    if (m >= p.m || n >= p.n) return;
    GLOBAL STORED(T_OUT) *to = c + (index_t)m * p.ldc + n;
    if (p.has_onto) {
        const index_t at = (index_t)m * p.ldc + n;
        x += LOAD(T_OUT, onto, at);
        y += n + 1 < p.n ? LOAD(T_OUT, onto, at + 1) : 0.0f;
    }
    x = NAME(finish)(p, x, p.has_bias ? bias[n] : 0.0f);
    y = NAME(finish)(p, y, p.has_bias && n + 1 < p.n ? bias[n + 1] : 0.0f);
    if (p.in_pairs) {
        PASTE(store_pair_, T_OUT)(to, x, y);
    } else {
        STORE(T_OUT, to, 0, x);
        if (n + 1 < p.n) STORE(T_OUT, to, 1, y);
    }
}

KERNEL_OF(multiply_tiles, 32 * WARPS_M * WARPS_N, 2)
(BUFFER(STORED(T), a), BUFFER(STORED(T), b), BUFFER(STORED(T_OUT), c), BUFFER(float, bias), BUFFER(STORED(T_OUT), onto),
 NAME(product) p, NAME(operands) o)
{
    SHARED(uint4, shared_a, COPY_STAGES * A_CHUNKS);
    SHARED(uint4, shared_b, COPY_STAGES * B_CHUNKS);
    POINTER(const STORED(T), a);
    POINTER(const STORED(T), b);
    POINTER(STORED(T_OUT), c);
    POINTER(const float, bias);
    POINTER(const STORED(T_OUT), onto);
    const NAME(place) at = NAME(find_place)(p);
    const int begin = (int)GROUP_Y * p.k_each, end = begin + p.k_each < p.k ? begin + p.k_each : p.k;
    const int n_steps = (end - begin + TILE_K - 1) / TILE_K;
    const int warp = ITEM_X / 32, lane = ITEM_X % 32;
    const int m = warp / WARPS_N * (TILE_M / WARPS_M), n = warp % WARPS_N * (TILE_N / WARPS_N);
    NAME(fragments) sum;
    UNROLL
    for (int i = 0; i < FRAGMENTS_M * FRAGMENTS_N * 4; i++)
        sum.c[i / 4 / FRAGMENTS_N][i / 4 % FRAGMENTS_N][i % 4] = 0.0f;
    a += NAME(begin_a)(o, at.batch);
    b += NAME(begin_b)(o, at.batch);
    /* Copies of the tiles of the next steps are under way while this step's are multiplied. */
    for (int step = 0; step < COPY_STAGES - 1; step++) {
        if (step < n_steps) {
            NAME(stage_a)(shared_a + step * A_CHUNKS, a, o, at.m, begin + step * TILE_K);
            NAME(stage_b)(shared_b + step * B_CHUNKS, b, o, at.n, begin + step * TILE_K);
        }
        COPIES_END();
    }
    for (int step = 0; step < n_steps; step++) {
        const int next = step + COPY_STAGES - 1, from = step % COPY_STAGES, to = next % COPY_STAGES;
        COPIES_WAIT(COPY_STAGES - 2);
        BARRIER();
        if (next < n_steps) {
            NAME(stage_a)(shared_a + to * A_CHUNKS, a, o, at.m, begin + next * TILE_K);
            NAME(stage_b)(shared_b + to * B_CHUNKS, b, o, at.n, begin + next * TILE_K);
        }
        COPIES_END();
        UNROLL
        for (int k = 0; k < TILE_K; k += 16)
            NAME(multiply)
        ((LOCAL const ushort *)(shared_a + from * A_CHUNKS), (LOCAL const ushort *)(shared_b + from * B_CHUNKS), m, n,
         k, &sum);
    }
    c += (index_t)(at.batch * p.c_batch) + (index_t)(GROUP_Y * p.part_stride);
    bias += at.batch * p.bias_batch;
    UNROLL
    for (int i = 0; i < FRAGMENTS_M * FRAGMENTS_N * 2; i++) {
        const int row = i / 2 / FRAGMENTS_N, column = i / 2 % FRAGMENTS_N, half_row = i % 2;
        NAME(put)
        (c, bias, onto, p, at.m + m + row * 16 + half_row * 8 + lane / 4, at.n + n + column * 8 + lane % 4 * 2,
         sum.c[row][column][2 * half_row], sum.c[row][column][2 * half_row + 1]);
    }
}

#undef FRAGMENTS_M
#undef FRAGMENTS_N
#undef A_CHUNKS
#undef B_CHUNKS
#undef SLOT_A
#undef SLOT_B
