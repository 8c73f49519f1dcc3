/* For the files of tile_fns with AVX-512: a tile of sums in registers, and blocks of tiles (bf16_tile.h). Before it:
 *
 *   T            an element of a and b
 *   UNIT         how many of them along k are 32 bits, which one instruction multiplies and adds up
 *   MULTIPLY(sum, a, b)   sum [16] of f32 plus a b, of 16 units each, given as f32
 *   ROUND(sum)   16 elements of T, for a c of T; left out: c is f32
 *
 * A tile of c has up to 6 rows of 64 columns: 24 vectors of sums, four of b and one of a, which is one unit for all
 * columns. Panels of b may as well lie in the second-level cache. Where rows of a lie as they are, four units are
 * multiplied by code without a branch: alone 96 % of the rate in registers, where it is 92 % one by one (f32, k of 768,
 * family 6, model 207); in whole training steps products gain 0.7 %.
 */
#include <immintrin.h>
#include <string.h>

enum { LANES = 16, ROWS = 6, COLS = STK_BF16_B_WIDTH, VECS = COLS / LANES, LINE = 64, UNITS_AT_ONCE = 4 };

/* --- rounding --- */

/* f32 to the nearest bf16, in the upper halves: the bits of bf16_from_f32, which the processor's own rounding lacks for
 * denormals. */
static inline __m512i round_lanes(__m512 x)
{
    __m512i bits = _mm512_castps_si512(x), odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    __m512i sign = _mm512_and_si512(bits, _mm512_set1_epi32(INT32_MIN));
    __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_mask_or_epi32(rounded, is_nan, sign, _mm512_set1_epi32(0x7fc00000));
}

static inline __m256i round_to_bf16(__m512 x)
{
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(round_lanes(x), 16));
}

/* --- the tile --- */

typedef struct tile_call {
    int64_t k;
    const T *a;
    int64_t a_row, a_unit; /* from row to row, from unit to unit */
    const T *b;
    const float *add;
    int64_t add_row;
    const float *bias;
    float *c;
    uint16_t *rounded_c;
    int64_t c_row;
    uint64_t columns; /* bit by bit, which are written */
    bool is_far;      /* past the caches: c begins with a line, and so do its rows */
    const char *ahead;
    int64_t ahead_step; /* bytes from unit to unit */
} tile_call;

/* One unit of a, for all columns. */
static inline __m512 spread_unit(const T *a)
{
    float unit;
    memcpy(&unit, a, sizeof(unit));
    return _mm512_set1_ps(unit);
}

/* Row by row, so that one unit of a is in a register at a time. */
static inline __attribute__((always_inline)) void tile_step(const int height, const int vecs, const T *const rows[2],
                                                            int64_t a_row, const bool is_odd, const T *b,
                                                            __m512 sum[ROWS][VECS])
{
    __m512 of_b[VECS];
#pragma GCC unroll 4
    for (int j = 0; j < vecs; j++)
        of_b[j] = _mm512_loadu_ps((const void *)(b + UNIT * LANES * j));
#pragma GCC unroll 6
    for (int i = 0; i < height; i++) {
        const T *a = rows[i / 3] + i % 3 * a_row;
        __m512 unit = is_odd ? _mm512_castsi512_ps(_mm512_set1_epi32((int32_t)*a)) : spread_unit(a);
#pragma GCC unroll 4
        for (int j = 0; j < vecs; j++)
            sum[i][j] = MULTIPLY(sum[i][j], unit, of_b[j]);
    }
}

static inline __attribute__((always_inline)) void write_vec(const tile_call *t, int64_t i, int j, __m512 sum)
{
    __mmask16 mask = (__mmask16)(t->columns >> LANES * j);
    if (t->add) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, t->add + i * t->add_row + LANES * j));
    if (t->bias) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, t->bias + LANES * j));
    int64_t at = i * t->c_row + LANES * j;
#ifdef ROUND
    if (t->rounded_c) {
        _mm256_mask_storeu_epi16(t->rounded_c + at, mask, ROUND(sum));
        return;
    }
#endif
    if (t->is_far && mask == (__mmask16)~0)
        _mm512_stream_ps(t->c + at, sum);
    else
        _mm512_mask_storeu_ps(t->c + at, mask, sum);
}

static inline __attribute__((always_inline)) void tile(const int height, const int vecs, const tile_call *t)
{
    __m512 sum[ROWS][VECS];
    int64_t a_row = t->a_row, n_units = t->k / UNIT;
    const char *ahead = t->ahead;
    const T *b = t->b, *rows[2] = {t->a, height > 3 ? t->a + 3 * a_row : t->a};
#pragma GCC unroll 6
    for (int i = 0; i < height; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vecs; j++)
            sum[i][j] = _mm512_setzero_ps();
    int64_t l = 0;
    if (t->a_unit == UNIT)
        for (; l + UNITS_AT_ONCE <= n_units; l += UNITS_AT_ONCE) {
#pragma GCC unroll 4
            for (int u = 0; u < UNITS_AT_ONCE; u++) {
                const T *at[2] = {rows[0] + UNIT * u, rows[1] + UNIT * u};
                tile_step(height, vecs, at, a_row, false, b + UNIT * COLS * u, sum);
                _mm_prefetch(ahead, _MM_HINT_T1);
                ahead += t->ahead_step;
            }
            b += UNIT * COLS * UNITS_AT_ONCE;
            rows[0] += UNIT * UNITS_AT_ONCE;
            rows[1] += UNIT * UNITS_AT_ONCE;
            __asm__("" : "+r"(rows[0]), "+r"(rows[1]));
        }
    for (; l < n_units; l++) {
        tile_step(height, vecs, rows, a_row, false, b, sum);
        _mm_prefetch(ahead, _MM_HINT_T1);
        ahead += t->ahead_step;
        b += UNIT * COLS;
        rows[0] += t->a_unit;
        rows[1] += t->a_unit;
        /* Else the compiler keeps a pointer for each row, some of them in memory. */
        __asm__("" : "+r"(rows[0]), "+r"(rows[1]));
    }
    /* The last pair's second element is 0. */
    if (t->k % UNIT) tile_step(height, vecs, rows, a_row, true, b, sum);
#pragma GCC unroll 6
    for (int i = 0; i < height; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vecs; j++)
            write_vec(t, i, j, sum[i][j]);
}

#define TILE_FN(height)                                                                                                \
    static __attribute__((noinline)) void wide_##height(const tile_call *t)                                            \
    {                                                                                                                  \
        tile(height, VECS, t);                                                                                         \
    }                                                                                                                  \
    static __attribute__((noinline)) void narrow_##height(const tile_call *t)                                          \
    {                                                                                                                  \
        tile(height, VECS / 2, t);                                                                                     \
    }
TILE_FN(1)
TILE_FN(2)
TILE_FN(3)
TILE_FN(4)
TILE_FN(5)
TILE_FN(6)
#undef TILE_FN

/* --- blocks --- */

/* The height of the next tile when m rows are left: two of middle height instead of a high and a low one. */
static int64_t next_height(int64_t m)
{
    return m >= 2 * ROWS || m == ROWS ? ROWS : m > ROWS ? (m + 1) / 2 : m;
}

/* Rows [row, row + height) and the panel of columns from col on, with what the diagonal leaves of them. */
static void multiply_tile(const stk_tile_block *g, int64_t row, int64_t height, int64_t col)
{
    static void (*const fns[2][ROWS])(const tile_call *) = {
        {narrow_1, narrow_2, narrow_3, narrow_4, narrow_5, narrow_6},
        {wide_1, wide_2, wide_3, wide_4, wide_5, wide_6},
    };
    enum { A_WIDTH = STK_BF16_A_WIDTH };
    int64_t from = 0, to = g->k, width = g->n - col < COLS ? g->n - col : COLS,
            depth = (g->depth + UNIT - 1) / UNIT * UNIT;
    if (g->skip == STK_SKIP_COLUMNS && col > row + height - 1 + g->diagonal) return;
    if (g->skip == STK_SKIP_END && to > row + height + g->diagonal) to = row + height + g->diagonal;
    if (g->skip == STK_SKIP_START && row > g->diagonal) from = (row - g->diagonal) / UNIT * UNIT;
    to = to < from ? from : to;
    tile_call t = {.k = to - from, .add_row = g->add_row, .c_row = g->c_row};
    t.b = (const T *)g->b + col * depth + from * COLS;
    t.ahead = (const char *)t.b;
    if (g->ahead) {
        int64_t each = g->ahead_bytes / g->m; /* of its rows brings as much */
        t.ahead = (const char *)g->ahead + each * row;
        t.ahead_step = each * height / ((g->k + UNIT - 1) / UNIT);
    }
    if (g->a_row) {
        t.a = (const T *)g->a + row * g->a_row + from;
        t.a_row = g->a_row;
        t.a_unit = UNIT;
    } else {
        t.a = (const T *)g->a + row / A_WIDTH * A_WIDTH * depth + from * A_WIDTH + row % A_WIDTH * UNIT;
        t.a_row = UNIT;
        t.a_unit = UNIT * A_WIDTH;
    }
    if (g->add) t.add = g->add + row * g->add_row + col;
    if (g->bias) t.bias = g->bias + col;
    if (g->rounded_c)
        t.rounded_c = g->rounded_c + row * g->c_row + col;
    else
        t.c = g->c + row * g->c_row + col;
    t.columns = ~(uint64_t)0 >> (COLS - width);
    t.is_far = g->is_far && (uintptr_t)t.c % LINE == 0 && t.c_row % LANES == 0;
    fns[width > COLS / 2][height - 1](&t);
}

static void multiply(const stk_tile_block *g)
{
    for (int64_t row = 0, height; row < g->m; row += height) {
        int64_t left = g->m - row, in_panel = STK_BF16_A_WIDTH - row % STK_BF16_A_WIDTH;
        height = next_height(!g->a_row && in_panel < left ? in_panel : left);
        for (int64_t col = 0; col < g->n; col += COLS)
            multiply_tile(g, row, height, col);
    }
    if (g->is_far) _mm_sfence();
}

/* --- squares --- */

/* far: past the caches. Lines that another core has read are else taken from its cache first, one after the other. */
static inline void store(T *to, __m512i x, bool far)
{
    if (far)
        _mm512_stream_si512((__m512i *)(void *)to, x);
    else
        _mm512_storeu_si512(to, x);
}

/* 16 x 16 units: x[i][l] becomes to[l][i]. */
static inline void transpose_units(__m512i x[LANES], T *to, int64_t to_row, bool far)
{
    __m512i y[LANES];
    for (int i = 0; i < LANES; i += 2) {
        y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
        y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
    }
    for (int i = 0; i < LANES; i += 4) {
        x[i] = _mm512_unpacklo_epi64(y[i], y[i + 2]);
        x[i + 1] = _mm512_unpackhi_epi64(y[i], y[i + 2]);
        x[i + 2] = _mm512_unpacklo_epi64(y[i + 1], y[i + 3]);
        x[i + 3] = _mm512_unpackhi_epi64(y[i + 1], y[i + 3]);
    }
    /* Now x[4 g + r] has columns r, r + 4, r + 8 and r + 12 of rows 4 g to 4 g + 3. */
    for (int r = 0; r < 4; r++) {
        __m512i low = _mm512_shuffle_i32x4(x[r], x[r + 4], 0x88), high = _mm512_shuffle_i32x4(x[r], x[r + 4], 0xdd);
        __m512i low2 = _mm512_shuffle_i32x4(x[r + 8], x[r + 12], 0x88);
        __m512i high2 = _mm512_shuffle_i32x4(x[r + 8], x[r + 12], 0xdd);
        store(to + r * to_row, _mm512_shuffle_i32x4(low, low2, 0x88), far);
        store(to + (r + 4) * to_row, _mm512_shuffle_i32x4(high, high2, 0x88), far);
        store(to + (r + 8) * to_row, _mm512_shuffle_i32x4(low, low2, 0xdd), far);
        store(to + (r + 12) * to_row, _mm512_shuffle_i32x4(high, high2, 0xdd), far);
    }
}
