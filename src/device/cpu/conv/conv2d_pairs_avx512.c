/* See conv2d_pairs.h. Built with AVX512-BF16; runs where stk_isa_has_bf16. */
#include "device/cpu/conv/conv2d_pairs.h"

#include <stddef.h>

#ifdef __AVX512BF16__
#include <immintrin.h>

static void join(const uint16_t *first, const uint16_t *second, int64_t n_pixels, int64_t step, int64_t n_channels,
                 uint32_t *to, int64_t chunk_step)
{
    static const uint16_t order[2][32] = {{0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
                                           8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47},
                                          {16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55,
                                           24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63}};
    const __m512i low = _mm512_loadu_si512(order[0]), high = _mm512_loadu_si512(order[1]);
    const __mmask32 has_second = second ? 0xffffffffu : 0;
    if (!second) second = first;
    for (int64_t pixel = 0; pixel < n_pixels; pixel++, to += STK_PAIRS_CHUNK) {
        const uint16_t *from[2] = {first + pixel * step, second + pixel * step};
        uint32_t *chunk = to;
        for (int64_t c = 0; c < n_channels; c += STK_PAIRS_CHUNK, chunk += chunk_step) {
            __m512i a = _mm512_loadu_si512(from[0] + c), b = _mm512_maskz_loadu_epi16(has_second, from[1] + c);
            _mm512_storeu_si512(chunk, _mm512_permutex2var_epi16(a, low, b));
            _mm512_storeu_si512(chunk + 16, _mm512_permutex2var_epi16(a, high, b));
        }
    }
}

static inline void join_tile(const uint16_t *first, const uint16_t *second, __mmask16 of_first, __mmask16 of_second,
                             uint32_t *to)
{
    __m512i a = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(of_first, first));
    __m512i b = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(of_second, second));
    _mm512_mask_storeu_epi32(to, of_first, _mm512_or_si512(a, _mm512_slli_epi32(b, 16)));
}

static void join_tiles(const uint16_t *first, const uint16_t *second, int64_t n_pixels, int64_t step,
                       int64_t n_channels, uint32_t *to, int64_t tile_step, int64_t first_pixel)
{
    const int64_t n_whole = n_channels / STK_PAIRS_TILE, to_step = STK_PAIRS_TILE * tile_step;
    const int n_left = (int)(n_channels % STK_PAIRS_TILE);
    const __mmask16 whole = (1u << STK_PAIRS_TILE) - 1, left = (__mmask16)((1u << n_left) - 1);
    const __mmask16 other = second ? whole : 0;
    if (!second) second = first;
    for (int64_t pixel = first_pixel; pixel < first_pixel + n_pixels; pixel++) {
        uint32_t *tile = to + pixel * STK_PAIRS_TILE;
        for (int64_t i = 0; i < n_whole; i++, tile += to_step, first += STK_PAIRS_TILE, second += STK_PAIRS_TILE)
            join_tile(first, second, whole, other, tile);
        join_tile(first, second, left, left & other, to + n_whole * to_step + pixel * n_left);
        first += step - n_whole * STK_PAIRS_TILE;
        second += step - n_whole * STK_PAIRS_TILE;
    }
}

/* The sums are fetched while the products run: from one tile to the next there are many lines between them. */
#define MULTIPLY(W)                                                                                                    \
    static void multiply_##W(const stk_pairs_tile *t)                                                                  \
    {                                                                                                                  \
        __m512 sum[W][2];                                                                                              \
        const uint32_t *grad = t->grad;                                                                                \
        for (int i = 0; i < (W); i++) {                                                                                \
            _mm_prefetch((const char *)(t->sums + i * t->sums_step), _MM_HINT_T0);                                     \
            _mm_prefetch((const char *)(t->sums + i * t->sums_step + 16), _MM_HINT_T0);                                \
            sum[i][0] = sum[i][1] = _mm512_setzero_ps();                                                               \
        }                                                                                                              \
        for (int64_t image = 0; image < t->n_images; image++)                                                          \
            for (int64_t row = 0; row < t->n_rows; row++) {                                                            \
                const uint32_t *x = t->x + image * t->x_image + row * t->x_row;                                        \
                for (int64_t col = 0; col < t->n_cols; col++, x += t->x_col, grad += (W)) {                            \
                    const __m512bh low = (__m512bh)_mm512_loadu_si512(x), high = (__m512bh)_mm512_loadu_si512(x + 16); \
                    _Pragma("GCC unroll 12") for (int i = 0; i < (W); i++)                                             \
                    {                                                                                                  \
                        const __m512bh g = (__m512bh)_mm512_set1_epi32((int)grad[i]);                                  \
                        sum[i][0] = _mm512_dpbf16_ps(sum[i][0], g, low);                                               \
                        sum[i][1] = _mm512_dpbf16_ps(sum[i][1], g, high);                                              \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        for (int i = 0; i < (W); i++) {                                                                                \
            float *to = t->sums + i * t->sums_step;                                                                    \
            if (t->adds) {                                                                                             \
                sum[i][0] = _mm512_add_ps(sum[i][0], _mm512_loadu_ps(to));                                             \
                sum[i][1] = _mm512_add_ps(sum[i][1], _mm512_loadu_ps(to + 16));                                        \
            }                                                                                                          \
            _mm512_storeu_ps(to, sum[i][0]);                                                                           \
            _mm512_storeu_ps(to + 16, sum[i][1]);                                                                      \
        }                                                                                                              \
    }
MULTIPLY(4)
MULTIPLY(8)
MULTIPLY(12)

static void multiply(const stk_pairs_tile *tile, int width)
{
    if (width == 12)
        multiply_12(tile);
    else if (width == 8)
        multiply_8(tile);
    else
        multiply_4(tile);
}

const stk_pairs_fns *stk_pairs_of_build(void)
{
    static const stk_pairs_fns fns = {join, join_tiles, multiply};
    return &fns;
}

#else

const stk_pairs_fns *stk_pairs_of_build(void)
{
    return NULL;
}

#endif
