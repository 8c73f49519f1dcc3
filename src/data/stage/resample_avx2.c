#ifdef __x86_64__
#include <immintrin.h>
#include <string.h>

#include "data/stage/resample_kernels.h"

#define SPREAD(p) (p), -1, (p) + 3, -1, (p) + 1, -1, (p) + 4, -1, (p) + 2, -1, (p) + 5, -1, -1, -1, -1, -1

/* Four taps of RGB at a time: pixels 0 and 1 side by side in the low half, 2 and 3 in the high one. Gives r, g, b, 0 in
 * both halves, which are to be added. */
static inline __attribute__((always_inline)) __m256i mix_pixel(const uint8_t *src, const int16_t *w, int n_taps)
{
    const __m256i spread = _mm256_setr_epi8(SPREAD(0), SPREAD(6));
    const __m256i pick = _mm256_setr_epi8(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5,
                                          6, 7, 4, 5, 6, 7);
    __m256i sum = _mm256_setzero_si256();
    for (int t = 0; t < n_taps; t += STK_COLUMN_TAPS) {
        int64_t four;
        memcpy(&four, w + t, sizeof(four));
        __m256i x = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(src + 3 * t)));
        __m256i ws = _mm256_shuffle_epi8(_mm256_set1_epi64x(four), pick);
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_shuffle_epi8(x, spread), ws));
    }
    return sum;
}

/* a in the low half, b in the high one. */
static inline __m256i join(__m256i a, __m256i b)
{
    return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}

static inline __attribute__((always_inline)) void columns_rgb(const uint8_t *src, const stk_columns *c, int n_taps,
                                                              int16_t *dst)
{
    const __m256i compact =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, -1, -1, -1, -1));
    const __m256i half = _mm256_set1_epi32(1 << (c->shift - 1));
    const __m128i shift = _mm_cvtsi32_si128(c->shift);
    const __m256i low = _mm256_set1_epi16(c->low), high = _mm256_set1_epi16(c->high);
    for (int i = 0; i < c->n; i += STK_COLUMN_GROUP) {
        const int32_t *first = c->first + i;
        const int16_t *w = c->weight + (int64_t)i * n_taps;
        __m256i x[4];
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++)
            x[k] = mix_pixel(src + 3 * (int64_t)first[k], w + k * n_taps, n_taps);
        __m256i even = _mm256_sra_epi32(_mm256_add_epi32(join(x[0], x[2]), half), shift);
        __m256i odd = _mm256_sra_epi32(_mm256_add_epi32(join(x[1], x[3]), half), shift);
        __m256i kept = _mm256_min_epi16(_mm256_max_epi16(_mm256_packs_epi32(even, odd), low), high);
        __m256i out = _mm256_shuffle_epi8(kept, compact);
        _mm_storeu_si128((__m128i *)(void *)(dst + 3 * i), _mm256_castsi256_si128(out));
        _mm_storeu_si128((__m128i *)(void *)(dst + 3 * i + 6), _mm256_extracti128_si256(out, 1));
    }
}

static void columns(const uint8_t *src, const stk_columns *c, int16_t *dst)
{
    if (c->channels != 3)
        stk_resample_kernels_plain.columns(src, c, dst);
    else if (c->n_taps == 4)
        columns_rgb(src, c, 4, dst);
    else
        columns_rgb(src, c, c->n_taps, dst);
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
