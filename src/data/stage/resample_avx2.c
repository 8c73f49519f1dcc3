#ifdef __x86_64__
#include <immintrin.h>
#include <string.h>

#include "data/stage/resample_kernels.h"

#define SPREAD(p) (p), -1, (p) + 3, -1, (p) + 1, -1, (p) + 4, -1, (p) + 2, -1, (p) + 5, -1, -1, -1, -1, -1

/* Two outputs of RGB, whose taps start at p and q: r, g, b, 0 of one in the low half and of the other in the high one.
 * 16 bytes hold four taps, of which two at a time are multiplied: r r g g b b. */
static inline __attribute__((always_inline)) __m256i mix_two(const uint8_t *p, const uint8_t *q, const int16_t *w,
                                                             int n_taps, __m256i sum)
{
    const __m256i spread[2] = {_mm256_broadcastsi128_si256(_mm_setr_epi8(SPREAD(0))),
                               _mm256_broadcastsi128_si256(_mm_setr_epi8(SPREAD(6)))};
    for (int t = 0; t < n_taps; t += 4) {
        __m256i x = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(p + 3 * t)));
        x = _mm256_inserti128_si256(x, _mm_loadu_si128((const __m128i *)(const void *)(q + 3 * t)), 1);
#pragma GCC unroll 2
        for (int k = 0; k < 2; k++) {
            if (t + 2 * k >= n_taps) break;
            __m256i ws = _mm256_load_si256((const __m256i *)(const void *)(w + 8 * (t + 2 * k)));
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_shuffle_epi8(x, spread[k]), ws));
        }
    }
    return sum;
}

static inline __attribute__((always_inline)) void columns_rgb(const uint8_t *src, const stk_columns *c, int n_taps,
                                                              int16_t *dst)
{
    const __m256i compact =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, -1, -1, -1, -1));
    const __m256i half = _mm256_set1_epi32(1 << (c->shift - 1));
    const __m128i shift = _mm_cvtsi32_si128(c->shift);
    const __m256i low = _mm256_set1_epi16(c->low), high = _mm256_set1_epi16(c->high);
    const int16_t *w = c->paired;
    for (int i = 0; i < c->n; i += STK_COLUMN_GROUP, w += 16 * n_taps) {
        const uint8_t *at[4];
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++)
            at[k] = src + 3 * (int64_t)c->first[i + k];
        __m256i a = _mm256_sra_epi32(mix_two(at[0], at[2], w, n_taps, half), shift);
        __m256i b = _mm256_sra_epi32(mix_two(at[1], at[3], w + 8 * n_taps, n_taps, half), shift);
        __m256i kept = _mm256_min_epi16(_mm256_max_epi16(_mm256_packs_epi32(a, b), low), high);
        __m256i out = _mm256_shuffle_epi8(kept, compact);
        _mm_storeu_si128((__m128i *)(void *)(dst + 3 * i), _mm256_castsi256_si128(out));
        _mm_storeu_si128((__m128i *)(void *)(dst + 3 * i + 6), _mm256_extracti128_si256(out, 1));
    }
}

static void columns(const uint8_t *src, const stk_columns *c, int16_t *dst)
{
    if (c->channels != 3) {
        stk_resample_kernels_plain.columns(src, c, dst);
        return;
    }
    switch (c->n_taps) {
    case 2: columns_rgb(src, c, 2, dst); break;
    case 4: columns_rgb(src, c, 4, dst); break;
    case 6: columns_rgb(src, c, 6, dst); break;
    case 8: columns_rgb(src, c, 8, dst); break;
    default: columns_rgb(src, c, c->n_taps, dst);
    }
}

static inline __m256i load(const int16_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

/* Two rows at a time; the last one alone is paired with itself and a weight of 0. */
static void rows(const int16_t *const *row, const int16_t *weight, int n_rows, int n, int shift, uint8_t *dst)
{
    const __m256i half = _mm256_set1_epi32(1 << (shift - 1));
    const __m128i by = _mm_cvtsi32_si128(shift);
    for (int i = 0; i < n; i += STK_ROW_GROUP) {
        __m256i sum[4] = {half, half, half, half};
        for (int r = 0; r < n_rows; r += 2) {
            const int16_t *a = row[r] + i, *b = r + 1 < n_rows ? row[r + 1] + i : a;
            uint32_t low = (uint16_t)weight[r], high = r + 1 < n_rows ? (uint16_t)weight[r + 1] : 0;
            __m256i w = _mm256_set1_epi32((int32_t)(low | high << 16));
            __m256i a0 = load(a), a1 = load(a + 16), b0 = load(b), b1 = load(b + 16);
            sum[0] = _mm256_add_epi32(sum[0], _mm256_madd_epi16(_mm256_unpacklo_epi16(a0, b0), w));
            sum[1] = _mm256_add_epi32(sum[1], _mm256_madd_epi16(_mm256_unpackhi_epi16(a0, b0), w));
            sum[2] = _mm256_add_epi32(sum[2], _mm256_madd_epi16(_mm256_unpacklo_epi16(a1, b1), w));
            sum[3] = _mm256_add_epi32(sum[3], _mm256_madd_epi16(_mm256_unpackhi_epi16(a1, b1), w));
        }
        for (int k = 0; k < 4; k++)
            sum[k] = _mm256_sra_epi32(sum[k], by);
        __m256i bytes = _mm256_packus_epi16(_mm256_packs_epi32(sum[0], sum[1]), _mm256_packs_epi32(sum[2], sum[3]));
        _mm256_storeu_si256((__m256i *)(void *)(dst + i), _mm256_permute4x64_epi64(bytes, 0xD8));
    }
}

const stk_resample_kernels stk_resample_kernels_avx2 = {columns, rows};
#else
typedef int stk_no_avx2; /* a file must not be empty */
#endif
