#ifdef __x86_64__
#include <immintrin.h>

#include "data/stage/resample_kernels.h"

/* Two rows at a time; the last one alone is paired with itself and a weight of 0. */
static void rows(const int16_t *const *row, const int16_t *weight, int n_rows, int n, int shift, uint8_t *dst)
{
    const __m512i half = _mm512_set1_epi32(1 << (shift - 1));
    const __m128i by = _mm_cvtsi32_si128(shift);
    for (int i = 0; i < n; i += STK_ROW_GROUP) {
        __m512i low_sum = half, high_sum = half;
        for (int r = 0; r < n_rows; r += 2) {
            const int16_t *a = row[r] + i, *b = r + 1 < n_rows ? row[r + 1] + i : a;
            uint32_t low = (uint16_t)weight[r], high = r + 1 < n_rows ? (uint16_t)weight[r + 1] : 0;
            __m512i w = _mm512_set1_epi32((int32_t)(low | high << 16));
            __m512i x = _mm512_loadu_si512(a), y = _mm512_loadu_si512(b);
            low_sum = _mm512_add_epi32(low_sum, _mm512_madd_epi16(_mm512_unpacklo_epi16(x, y), w));
            high_sum = _mm512_add_epi32(high_sum, _mm512_madd_epi16(_mm512_unpackhi_epi16(x, y), w));
        }
        __m512i words = _mm512_packs_epi32(_mm512_sra_epi32(low_sum, by), _mm512_sra_epi32(high_sum, by));
        words = _mm512_max_epi16(words, _mm512_setzero_si512());
        _mm256_storeu_si256((__m256i *)(void *)(dst + i), _mm512_cvtusepi16_epi8(words));
    }
}

/* Columns gather their pixels from anywhere: wider registers would only be put together from halves. */
static void columns(const uint8_t *src, const stk_columns *c, int16_t *dst)
{
    stk_resample_kernels_avx2.columns(src, c, dst);
}

const stk_resample_kernels stk_resample_kernels_avx512 = {columns, rows};
#else
typedef int stk_no_avx512; /* a file must not be empty */
#endif
