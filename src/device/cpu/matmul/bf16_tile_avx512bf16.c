/* See bf16_tile.h. A tile of c has up to 6 rows of 64 columns: 24 vectors of sums, four of b and one of a, which is one
 * pair for all columns. Panels of b may as well lie in the second-level cache: alone,
 * tiles reach 89 % of two such instructions a cycle from either.
 */
#include "device/cpu/matmul/bf16_tile.h"

#ifdef __AVX512BF16__

#include <immintrin.h>
#include <string.h>

enum { LANES = 16, ROWS = 6, COLS = STK_BF16_B_WIDTH, VECS = COLS / LANES, LINE = 64 };

/* --- the tile --- */

typedef struct tile_call {
    int64_t k;
    const uint16_t *a;
    int64_t a_row, a_pair; /* from row to row, from pair to pair */
    const uint16_t *b;
    const float *add;
    int64_t add_row;
    const float *bias;
    float *c;
    uint16_t *rounded_c;
    int64_t c_row;
    uint64_t columns; /* bit by bit, which are written */
    const char *ahead;
    int64_t ahead_step; /* bytes from pair to pair */
} tile_call;

/* One pair of a, for all columns. */
static inline __m512i spread_pair(const uint16_t *a)
{
    int32_t pair;
    memcpy(&pair, a, sizeof(pair));
    return _mm512_set1_epi32(pair);
}

static inline __attribute__((always_inline)) void tile_step(const int height, const int vecs, const __m512i a[ROWS],
                                                            const uint16_t *b, __m512 sum[ROWS][VECS])
{
    __m512i of_b[VECS];
#pragma GCC unroll 4
    for (int j = 0; j < vecs; j++)
        of_b[j] = _mm512_loadu_si512(b + 2 * LANES * j);
#pragma GCC unroll 6
    for (int i = 0; i < height; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vecs; j++)
            sum[i][j] = _mm512_dpbf16_ps(sum[i][j], (__m512bh)a[i], (__m512bh)of_b[j]);
}

static inline __attribute__((always_inline)) void write_vec(const tile_call *t, int64_t i, int j, __m512 sum)
{
    __mmask16 mask = (__mmask16)(t->columns >> LANES * j);
    if (t->add) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, t->add + i * t->add_row + LANES * j));
    if (t->bias) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, t->bias + LANES * j));
    int64_t at = i * t->c_row + LANES * j;
    if (t->rounded_c)
        _mm256_mask_storeu_epi16(t->rounded_c + at, mask, (__m256i)_mm512_cvtneps_pbh(sum));
    else
        _mm512_mask_storeu_ps(t->c + at, mask, sum);
}

static inline __attribute__((always_inline)) void tile(const int height, const int vecs, const tile_call *t)
{
    __m512 sum[ROWS][VECS];
    __m512i pair[ROWS];
    int64_t a_row = t->a_row, n_pairs = t->k / 2;
    const char *ahead = t->ahead;
    const uint16_t *b = t->b, *rows[2] = {t->a, height > 3 ? t->a + 3 * a_row : t->a};
#pragma GCC unroll 6
    for (int i = 0; i < height; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vecs; j++)
            sum[i][j] = _mm512_setzero_ps();
    for (int64_t l = 0; l < n_pairs; l++) {
#pragma GCC unroll 6
        for (int i = 0; i < height; i++)
            pair[i] = spread_pair(rows[i / 3] + i % 3 * a_row);
        tile_step(height, vecs, pair, b, sum);
        _mm_prefetch(ahead, _MM_HINT_T1);
        ahead += t->ahead_step;
        b += 2 * COLS;
        rows[0] += t->a_pair;
        rows[1] += t->a_pair;
        /* Else the compiler keeps a pointer for each row, some of them in memory. */
        __asm__("" : "+r"(rows[0]), "+r"(rows[1]));
    }
    if (t->k % 2) {
#pragma GCC unroll 6
        for (int i = 0; i < height; i++)
            pair[i] = _mm512_set1_epi32(rows[i / 3][i % 3 * a_row]);
        tile_step(height, vecs, pair, b, sum);
    }
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
static void multiply_tile(const stk_bf16_block *g, int64_t row, int64_t height, int64_t col)
{
    static void (*const fns[2][ROWS])(const tile_call *) = {
        {narrow_1, narrow_2, narrow_3, narrow_4, narrow_5, narrow_6},
        {wide_1, wide_2, wide_3, wide_4, wide_5, wide_6},
    };
    enum { A_WIDTH = STK_BF16_A_WIDTH };
    int64_t from = 0, to = g->k, width = g->n - col < COLS ? g->n - col : COLS, depth = (g->depth + 1) / 2 * 2;
    if (g->skip == STK_SKIP_COLUMNS && col > row + height - 1 + g->diagonal) return;
    if (g->skip == STK_SKIP_END && to > row + height + g->diagonal) to = row + height + g->diagonal;
    if (g->skip == STK_SKIP_START && row > g->diagonal) from = (row - g->diagonal) / 2 * 2;
    to = to < from ? from : to;
    tile_call t = {.k = to - from, .add_row = g->add_row, .c_row = g->c_row};
    t.b = g->b + col * depth + from * COLS;
    t.ahead = (const char *)t.b;
    if (g->ahead) {
        int64_t each = g->ahead_bytes / g->m; /* of its rows brings as much */
        t.ahead = (const char *)g->ahead + each * row;
        t.ahead_step = each * height / ((g->k + 1) / 2);
    }
    if (g->a_row) {
        t.a = g->a + row * g->a_row + from;
        t.a_row = g->a_row;
        t.a_pair = 2;
    } else {
        t.a = g->a + row / A_WIDTH * A_WIDTH * depth + from * A_WIDTH + row % A_WIDTH * 2;
        t.a_row = 2;
        t.a_pair = 2 * A_WIDTH;
    }
    if (g->add) t.add = g->add + row * g->add_row + col;
    if (g->bias) t.bias = g->bias + col;
    if (g->rounded_c)
        t.rounded_c = g->rounded_c + row * g->c_row + col;
    else
        t.c = g->c + row * g->c_row + col;
    t.columns = ~(uint64_t)0 >> (COLS - width);
    fns[width > COLS / 2][height - 1](&t);
}

static void multiply(const stk_bf16_block *g)
{
    for (int64_t row = 0, height; row < g->m; row += height) {
        int64_t left = g->m - row, in_panel = STK_BF16_A_WIDTH - row % STK_BF16_A_WIDTH;
        height = next_height(!g->a_row && in_panel < left ? in_panel : left);
        for (int64_t col = 0; col < g->n; col += COLS)
            multiply_tile(g, row, height, col);
    }
}

/* --- packing --- */

static __mmask32 mask_of(int64_t n)
{
    return n >= 32 ? ~(__mmask32)0 : n <= 0 ? 0 : ((__mmask32)1 << n) - 1;
}

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

/* What is packed: bf16, or f32 (wide), which is rounded on the way. Element (l, j) is number l * row + j * col. */
typedef struct source {
    const void *x;
    int64_t row, col;
    bool wide, far; /* far: of this x no near cache holds anything; nor is the result to be held in one */
} source;

/* 32 elements from number `at` on. */
static inline __m512i load(const source *s, int64_t at, __mmask32 mask)
{
    static const uint16_t upper[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                                       33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
    if (!s->wide) return _mm512_maskz_loadu_epi16(mask, (const uint16_t *)s->x + at);
    const float *x = (const float *)s->x + at;
    __m512i low = round_lanes(_mm512_maskz_loadu_ps((__mmask16)mask, x));
    __m512i high = round_lanes(_mm512_maskz_loadu_ps((__mmask16)(mask >> LANES), x + LANES));
    return _mm512_permutex2var_epi16(low, _mm512_loadu_si512(upper), high);
}

/* The same elements into the first-level cache. */
static inline void fetch(const source *s, int64_t at)
{
    const char *x = (const char *)s->x + at * (s->wide ? (int64_t)sizeof(float) : (int64_t)sizeof(uint16_t));
    _mm_prefetch(x, _MM_HINT_T0);
    if (s->wide) _mm_prefetch(x + LINE, _MM_HINT_T0);
}

/* Two rows as pairs. */
static inline void pair_rows(__m512i first, __m512i second, __m512i pairs[2])
{
    static const uint16_t from[2][32] = {
        {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
         8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47},
        {16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55,
         24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63},
    };
    for (int i = 0; i < 2; i++)
        pairs[i] = _mm512_permutex2var_epi16(first, _mm512_loadu_si512(from[i]), second);
}

/* far: past the caches. Lines that another core has read are else taken from its cache first, one after the other. */
static inline void store(uint16_t *to, __m512i x, bool far)
{
    if (far)
        _mm512_stream_si512((__m512i *)(void *)to, x);
    else
        _mm512_storeu_si512(to, x);
}

/* Rows l and l + 1 of a panel, from elements number `at` on; no second one where there is none. */
static inline void pack_pair(const source *s, int64_t at, bool has_second, int64_t n, int width, uint16_t *to)
{
    for (int64_t j = 0; j < width; j += 2 * LANES) {
        __mmask32 mask = mask_of(n - j);
        __m512i pairs[2], second = has_second ? load(s, at + s->row + j, mask) : _mm512_setzero_si512();
        pair_rows(load(s, at + j, mask), second, pairs);
        store(to + 2 * j, pairs[0], s->far);
        if (width - j > LANES) store(to + 2 * j + 2 * LANES, pairs[1], s->far);
    }
}

/* Rows lie side by side. Some rows of each panel at a time: whole lines are used while they are there, and what is
 * written lies together, since panels may be a power of two apart. */
static inline __attribute__((always_inline)) void pack_rows(const source *s, int64_t k, int64_t n, int width,
                                                            int64_t depth, uint16_t *to)
{
    enum { AT_ONCE = STK_BF16_SQUARE };
    int64_t end = (n + width - 1) / width * width;
    for (int64_t first = 0; first < k; first += AT_ONCE)
        for (int64_t p = 0; p < end; p += width)
            for (int64_t l = first; l < first + AT_ONCE && l < k; l += 2) {
                int64_t at = l * s->row + p;
                for (int64_t j = 0; s->far && j < width; j += 2 * LANES) {
                    fetch(s, at + AT_ONCE * s->row + j);
                    fetch(s, at + (AT_ONCE + 1) * s->row + j);
                }
                pack_pair(s, at, l + 1 < k, n - p, width, to + p * depth + l * width);
            }
}

/* 16 x 16 pairs: x[i][l] becomes to[l][i]. */
static inline void transpose_pairs(__m512i x[LANES], uint16_t *to, int64_t to_row, bool far)
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

/* Columns lie side by side: their pairs are neighbours already. */
static inline __attribute__((always_inline)) void pack_columns(const source *s, int64_t k, int64_t n, int width,
                                                               int64_t depth, uint16_t *to)
{
    enum { AHEAD = STK_BF16_SQUARE };
    int64_t end_l = (k + 1) / 2 * 2, end = (n + width - 1) / width * width, col = s->col;
    for (int64_t p = 0; p < end; p += width)
        for (int64_t l = 0; l < end_l; l += 2 * LANES)
            for (int64_t j = 0; j < width; j += LANES) {
                __m512i of[LANES];
                int64_t at = (p + j) * col + l, ahead = l + AHEAD < k ? at + AHEAD : at + AHEAD - k + width * col;
                uint16_t *panel = to + p * depth + l * width + 2 * j, rest[LANES * 2 * LANES];
                bool whole = end_l - l >= 2 * LANES;
                for (int i = 0; s->far && i < LANES; i++)
                    fetch(s, ahead + i * col);
                for (int i = 0; i < LANES; i++)
                    of[i] = p + j + i < n ? load(s, at + i * col, mask_of(k - l)) : _mm512_setzero_si512();
                transpose_pairs(of, whole ? panel : rest, whole ? 2 * width : 2 * LANES, s->far && whole);
                for (int64_t i = 0; !whole && i < (end_l - l) / 2; i++)
                    memcpy(panel + i * 2 * width, rest + i * 2 * LANES, LINE);
            }
}

static inline __attribute__((always_inline)) void pack_from(const source *s, int64_t k, int64_t n, int width,
                                                            int64_t depth, uint16_t *to)
{
    if (s->col == 1)
        pack_rows(s, k, n, width, depth, to);
    else
        pack_columns(s, k, n, width, depth, to);
    if (s->far) _mm_sfence();
}

static void pack(const uint16_t *x, int64_t row, int64_t col, int64_t k, int64_t n, int width, uint16_t *to)
{
    pack_from(&(source){x, row, col, false, false}, k, n, width, (k + 1) / 2 * 2, to);
}

static void pack_far(const uint16_t *x, int64_t row, int64_t col, int64_t k, int64_t n, int width, int64_t depth,
                     uint16_t *to)
{
    pack_from(&(source){x, row, col, false, true}, k, n, width, depth, to);
}

static void pack_rounded(const float *x, int64_t row, int64_t col, int64_t k, int64_t n, int width, int64_t depth,
                         uint16_t *to)
{
    pack_from(&(source){x, row, col, true, true}, k, n, width, depth, to);
}

/* --- transposing --- */

/* Columns j to j + 31 of 32 rows from x on, of which n_rows exist: 32 elements of each of 32 rows of `to`. */
static inline void transpose_square(const uint16_t *x, int64_t row, int64_t n_rows, __mmask32 mask, uint16_t *to,
                                    int64_t to_row)
{
    __m512i left[LANES], right[LANES];
    for (int i = 0; i < LANES; i++) {
        __m512i pairs[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
        __m512i second = _mm512_maskz_loadu_epi16(2 * i + 1 < n_rows ? mask : 0, x + (2 * i + 1) * row);
        if (2 * i < n_rows) pair_rows(_mm512_maskz_loadu_epi16(mask, x + 2 * i * row), second, pairs);
        left[i] = pairs[0];
        right[i] = pairs[1];
    }
    transpose_pairs(left, to, to_row, false);
    transpose_pairs(right, to + LANES * to_row, to_row, false);
}

static void transpose(const uint16_t *x, int64_t row, int64_t k, int64_t n, uint16_t *to, int64_t to_row)
{
    enum { SIDE = STK_BF16_SQUARE };
    for (int64_t l = 0; l < k; l += SIDE) {
        /* Rows are far apart, which no prefetcher of the processor follows. */
        for (int64_t i = l + SIDE; i < l + 2 * SIDE && i < k; i++)
            for (int64_t j = 0; j < n; j += SIDE)
                _mm_prefetch((const char *)(x + i * row + j), _MM_HINT_T0);
        for (int64_t j = 0; j < n; j += SIDE)
            transpose_square(x + l * row + j, row, k - l, mask_of(n - j), to + j * to_row + l, to_row);
    }
}

const stk_bf16_tile_fns stk_bf16_tile_avx512bf16 = {pack, pack_far, pack_rounded, transpose, multiply};

#else
typedef int stk_bf16_tile_is_not_built;
#endif
