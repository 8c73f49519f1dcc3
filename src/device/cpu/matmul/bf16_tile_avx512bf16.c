/* See bf16_tile.h: bf16. Alone, tiles reach 89 % of two such instructions a cycle, with panels of b in the first- or
 * the second-level cache. */
#include "device/cpu/matmul/bf16_tile.h"

#ifdef __AVX512BF16__

#define T                   uint16_t
#define UNIT                2
#define MULTIPLY(sum, a, b) _mm512_dpbf16_ps(sum, (__m512bh)_mm512_castps_si512(a), (__m512bh)_mm512_castps_si512(b))
#define ROUND(sum)          (__m256i) _mm512_cvtneps_pbh(sum)
#include "device/cpu/matmul/tile_tmpl.h"

/* --- packing --- */

static __mmask32 mask_of(int64_t n)
{
    return n >= 32 ? ~(__mmask32)0 : n <= 0 ? 0 : ((__mmask32)1 << n) - 1;
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
                transpose_units(of, whole ? panel : rest, whole ? 2 * width : 2 * LANES, s->far && whole);
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

static void pack_far(const void *x, int64_t row, int64_t col, int64_t k, int64_t n, int width, int64_t depth, void *to)
{
    pack_from(&(source){x, row, col, false, true}, k, n, width, depth, to);
}

static void pack_rounded(const float *x, int64_t row, int64_t col, int64_t k, int64_t n, int width, int64_t depth,
                         void *to)
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
    transpose_units(left, to, to_row, false);
    transpose_units(right, to + LANES * to_row, to_row, false);
}

static void transpose(const void *x_, int64_t row, int64_t k, int64_t n, void *to_, int64_t to_row)
{
    const uint16_t *x = x_;
    uint16_t *to = to_;
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

const stk_tile_fns stk_bf16_tile_avx512bf16 = {
    .pack = pack, .pack_far = pack_far, .pack_rounded = pack_rounded, .transpose = transpose, .multiply = multiply};

#else
typedef int stk_bf16_tile_is_not_built;
#endif
