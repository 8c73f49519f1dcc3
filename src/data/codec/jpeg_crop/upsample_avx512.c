/* As upsample_avx2.c, 64 samples at a time; nothing is read or written beyond what is asked for. */
#ifdef __x86_64__
#include <immintrin.h>

#include "data/codec/jpeg_crop/kernels.h"
#include "data/codec/jpeg_crop/mask.h"

/* 3 near + far as words, of the lower or upper eight bytes of each quarter. */
static inline __m512i weigh(__m512i near, __m512i far, bool upper)
{
    const __m512i weights = _mm512_set1_epi16(3 | 1 << 8);
    return _mm512_maddubs_epi16(upper ? _mm512_unpackhi_epi8(near, far) : _mm512_unpacklo_epi8(near, far), weights);
}

/* Words of two samples each, left one first; n bytes of them. */
static inline void store_pairs(uint8_t *dst, __m512i lower, __m512i upper, int n)
{
    const __m512i begin = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const __m512i end = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    _mm512_mask_storeu_epi8(dst, stk_first_bytes(n), _mm512_permutex2var_epi64(lower, begin, upper));
    _mm512_mask_storeu_epi8(dst + 64, stk_first_bytes(n - 64), _mm512_permutex2var_epi64(lower, end, upper));
}

void stk_jpeg_upsample_h2v1_avx512(const uint8_t *src, int n, uint8_t *dst)
{
    for (int i = 0; i < n; i += 64) {
        __mmask64 m = stk_first_bytes(n - i);
        __m512i here = _mm512_maskz_loadu_epi8(m, src + i), out[2];
        __m512i left = _mm512_maskz_loadu_epi8(m, src + i - 1), right = _mm512_maskz_loadu_epi8(m, src + i + 1);
#pragma GCC unroll 2
        for (int upper = 0; upper < 2; upper++) {
            __m512i a = _mm512_add_epi16(weigh(here, left, upper), _mm512_set1_epi16(1));
            __m512i b = _mm512_add_epi16(weigh(here, right, upper), _mm512_set1_epi16(2));
            out[upper] = _mm512_or_si512(_mm512_srli_epi16(a, 2), _mm512_slli_epi16(_mm512_srli_epi16(b, 2), 8));
        }
        store_pairs(dst + 2 * i, out[0], out[1], 2 * (n - i));
    }
}

void stk_jpeg_upsample_h2v2_avx512(const uint8_t *near, const uint8_t *far, int n, uint8_t *dst)
{
    for (int i = 0; i < n; i += 64) {
        __mmask64 m = stk_first_bytes(n - i);
        __m512i near0 = _mm512_maskz_loadu_epi8(m, near + i), near1 = _mm512_maskz_loadu_epi8(m, near + i - 1);
        __m512i near2 = _mm512_maskz_loadu_epi8(m, near + i + 1), far0 = _mm512_maskz_loadu_epi8(m, far + i);
        __m512i far1 = _mm512_maskz_loadu_epi8(m, far + i - 1), far2 = _mm512_maskz_loadu_epi8(m, far + i + 1), out[2];
#pragma GCC unroll 2
        for (int upper = 0; upper < 2; upper++) {
            __m512i here = weigh(near0, far0, upper), three = _mm512_add_epi16(here, _mm512_add_epi16(here, here));
            __m512i a = _mm512_add_epi16(_mm512_add_epi16(three, weigh(near1, far1, upper)), _mm512_set1_epi16(8));
            __m512i b = _mm512_add_epi16(_mm512_add_epi16(three, weigh(near2, far2, upper)), _mm512_set1_epi16(7));
            out[upper] = _mm512_or_si512(_mm512_srli_epi16(a, 4), _mm512_slli_epi16(_mm512_srli_epi16(b, 4), 8));
        }
        store_pairs(dst + 2 * i, out[0], out[1], 2 * (n - i));
    }
}

void stk_jpeg_upsample_h1v2_avx512(const uint8_t *near, const uint8_t *far, bool far_is_above, int n, uint8_t *dst)
{
    const __m512i bias = _mm512_set1_epi16(far_is_above ? 1 : 2);
    for (int i = 0; i < n; i += 64) {
        __mmask64 m = stk_first_bytes(n - i);
        __m512i a = _mm512_maskz_loadu_epi8(m, near + i), b = _mm512_maskz_loadu_epi8(m, far + i);
        __m512i lower = _mm512_srli_epi16(_mm512_add_epi16(weigh(a, b, false), bias), 2);
        __m512i upper = _mm512_srli_epi16(_mm512_add_epi16(weigh(a, b, true), bias), 2);
        _mm512_mask_storeu_epi8(dst + i, m, _mm512_packus_epi16(lower, upper));
    }
}
#endif
