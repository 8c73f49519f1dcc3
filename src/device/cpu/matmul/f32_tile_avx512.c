/* See bf16_tile.h: f32, of f32 or of bf16 that is widened as it is packed. */
#include "device/cpu/matmul/bf16_tile.h"

#ifdef __AVX512F__

#define T                   float
#define UNIT                1
#define MULTIPLY(sum, a, b) _mm512_fmadd_ps(a, b, sum)
#define ROUND(sum)          round_to_bf16(sum)
#include "device/cpu/matmul/tile_tmpl.h"

/* --- what is packed --- */

/* Element (l, j) is number l * row + j * col of x: f32, f32 to be rounded to bf16, or bf16. */
typedef enum source_kind { PLAIN, ROUNDED, NARROW } source_kind;

typedef struct source {
    const void *x;
    int64_t row, col;
    source_kind kind;
} source;

static inline __mmask16 mask_of(int64_t n)
{
    return n >= LANES ? (__mmask16)~0 : n <= 0 ? 0 : (__mmask16)((1 << n) - 1);
}

/* 16 elements from number `at` on. */
static inline __m512i load(const source *s, int64_t at, __mmask16 mask)
{
    if (s->kind == NARROW) {
        __m256i halves = _mm256_maskz_loadu_epi16(mask, (const uint16_t *)s->x + at);
        return _mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16);
    }
    __m512 x = _mm512_maskz_loadu_ps(mask, (const float *)s->x + at);
    if (s->kind == PLAIN) return _mm512_castps_si512(x);
    return _mm512_slli_epi32(_mm512_srli_epi32(round_lanes(x), 16), 16);
}

static inline void fetch(const source *s, int64_t at)
{
    int64_t size = s->kind == NARROW ? (int64_t)sizeof(uint16_t) : (int64_t)sizeof(float);
    _mm_prefetch((const char *)s->x + at * size, _MM_HINT_T0);
}

/* Rows lie side by side. Some rows of each panel at a time, as in bf16. */
static inline __attribute__((always_inline)) void pack_rows(const source *s, int64_t k, int64_t n, int width,
                                                            int64_t depth, float *to)
{
    enum { AT_ONCE = LANES };
    for (int64_t first = 0; first < k; first += AT_ONCE)
        for (int64_t p = 0; p < n; p += width)
            for (int64_t l = first; l < first + AT_ONCE && l < k; l++)
                for (int64_t j = 0; j < width; j += LANES) {
                    int64_t at = l * s->row + p + j;
                    fetch(s, at + AT_ONCE * s->row);
                    store(to + p * depth + l * width + j, load(s, at, mask_of(n - p - j)), true);
                }
}

/* 16 elements of each of 16 rows, from element `at` on, of which n_rows rows exist, become columns of `to`. */
static inline __attribute__((always_inline)) void turn_square(const source *s, int64_t at, int64_t step, int64_t n_rows,
                                                              __mmask16 mask, float *to, int64_t to_row, bool far)
{
    __m512i of[LANES];
    for (int i = 0; i < LANES; i++)
        of[i] = i < n_rows ? load(s, at + i * step, mask) : _mm512_setzero_si512();
    transpose_units(of, to, to_row, far);
}

/* Columns lie side by side: they are turned, 16 by 16. */
static inline __attribute__((always_inline)) void pack_columns(const source *s, int64_t k, int64_t n, int width,
                                                               int64_t depth, float *to)
{
    for (int64_t p = 0; p < n; p += width)
        for (int64_t l = 0; l < k; l += LANES)
            for (int64_t j = 0; j < width; j += LANES) {
                float rest[LANES * LANES], *panel = to + p * depth + l * width + j;
                int64_t at = (p + j) * s->col + l, left = k - l;
                bool whole = left >= LANES;
                for (int i = 0; i < LANES; i++)
                    fetch(s, at + i * s->col + LANES);
                turn_square(s, at, s->col, n - p - j, mask_of(left), whole ? panel : rest, whole ? width : LANES,
                            whole);
                for (int64_t i = 0; !whole && i < left; i++)
                    memcpy(panel + i * width, rest + i * LANES, LINE);
            }
}

static inline __attribute__((always_inline)) void pack_from(const source *s, int64_t k, int64_t n, int width,
                                                            int64_t depth, float *to)
{
    if (s->col == 1)
        pack_rows(s, k, n, width, depth, to);
    else
        pack_columns(s, k, n, width, depth, to);
    _mm_sfence();
}

static void pack_far(const void *x, int64_t row, int64_t col, int64_t k, int64_t n, int width, int64_t depth, void *to)
{
    pack_from(&(source){x, row, col, PLAIN}, k, n, width, depth, to);
}

static void pack_rounded(const float *x, int64_t row, int64_t col, int64_t k, int64_t n, int width, int64_t depth,
                         void *to)
{
    pack_from(&(source){x, row, col, ROUNDED}, k, n, width, depth, to);
}

static void pack_widened(const uint16_t *x, int64_t row, int64_t col, int64_t k, int64_t n, int width, int64_t depth,
                         float *to)
{
    pack_from(&(source){x, row, col, NARROW}, k, n, width, depth, to);
}

/* --- rows of a --- */

static inline __attribute__((always_inline)) void transpose_from(const source *s, int64_t k, int64_t n, float *to,
                                                                 int64_t to_row)
{
    for (int64_t l = 0; l < k; l += LANES) {
        for (int64_t i = l + LANES; i < l + 2 * LANES && i < k; i++)
            for (int64_t j = 0; j < n; j += LANES)
                fetch(s, i * s->row + j);
        for (int64_t j = 0; j < n; j += LANES)
            turn_square(s, l * s->row + j, s->row, k - l, mask_of(n - j), to + j * to_row + l, to_row, false);
    }
}

static void transpose(const void *x, int64_t row, int64_t k, int64_t n, void *to, int64_t to_row)
{
    transpose_from(&(source){x, row, 1, PLAIN}, k, n, to, to_row);
}

static void transpose_widened(const uint16_t *x, int64_t row, int64_t k, int64_t n, float *to, int64_t to_row)
{
    transpose_from(&(source){x, row, 1, NARROW}, k, n, to, to_row);
}

static void widen(const uint16_t *x, int64_t row, int64_t m, int64_t k, float *to, int64_t to_row)
{
    const source s = {x, row, 1, NARROW};
    for (int64_t i = 0; i < m; i++)
        for (int64_t l = 0; l < k; l += LANES)
            store(to + i * to_row + l, load(&s, i * row + l, mask_of(k - l)), false);
}

const stk_tile_fns stk_f32_tile_avx512 = {.pack_far = pack_far,
                                          .pack_rounded = pack_rounded,
                                          .pack_widened = pack_widened,
                                          .transpose = transpose,
                                          .transpose_widened = transpose_widened,
                                          .widen = widen,
                                          .multiply = multiply};

#else
typedef int stk_f32_tile_is_not_built;
#endif
