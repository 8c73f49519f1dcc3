#ifdef __x86_64__
#include <immintrin.h>

#include "data/codec/jpeg_crop/kernels.h"

static inline __m256i load(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

/* 3 near + far as words, of the lower or upper eight bytes of each half. */
static inline __m256i weigh(__m256i near, __m256i far, bool upper)
{
    const __m256i weights = _mm256_set1_epi16(3 | 1 << 8);
    return _mm256_maddubs_epi16(upper ? _mm256_unpackhi_epi8(near, far) : _mm256_unpacklo_epi8(near, far), weights);
}

/* Words of two samples each, left one first. */
static inline void store_pairs(uint8_t *dst, __m256i lower, __m256i upper)
{
    _mm256_storeu_si256((__m256i *)(void *)dst, _mm256_permute2x128_si256(lower, upper, 0x20));
    _mm256_storeu_si256((__m256i *)(void *)(dst + 32), _mm256_permute2x128_si256(lower, upper, 0x31));
}

void stk_jpeg_upsample_h2v1_avx2(const uint8_t *src, int n, uint8_t *dst)
{
    for (int i = 0; i < n; i += 32) {
        __m256i here = load(src + i), left = load(src + i - 1), right = load(src + i + 1), out[2];
#pragma GCC unroll 2
        for (int upper = 0; upper < 2; upper++) {
            __m256i a = _mm256_add_epi16(weigh(here, left, upper), _mm256_set1_epi16(1));
            __m256i b = _mm256_add_epi16(weigh(here, right, upper), _mm256_set1_epi16(2));
            out[upper] = _mm256_or_si256(_mm256_srli_epi16(a, 2), _mm256_slli_epi16(_mm256_srli_epi16(b, 2), 8));
        }
        store_pairs(dst + 2 * i, out[0], out[1]);
    }
}

void stk_jpeg_upsample_h2v2_avx2(const uint8_t *near, const uint8_t *far, int n, uint8_t *dst)
{
    for (int i = 0; i < n; i += 32) {
        __m256i near0 = load(near + i), near1 = load(near + i - 1), near2 = load(near + i + 1), out[2];
        __m256i far0 = load(far + i), far1 = load(far + i - 1), far2 = load(far + i + 1);
#pragma GCC unroll 2
        for (int upper = 0; upper < 2; upper++) {
            __m256i here = weigh(near0, far0, upper), three = _mm256_add_epi16(here, _mm256_add_epi16(here, here));
            __m256i a = _mm256_add_epi16(_mm256_add_epi16(three, weigh(near1, far1, upper)), _mm256_set1_epi16(8));
            __m256i b = _mm256_add_epi16(_mm256_add_epi16(three, weigh(near2, far2, upper)), _mm256_set1_epi16(7));
            out[upper] = _mm256_or_si256(_mm256_srli_epi16(a, 4), _mm256_slli_epi16(_mm256_srli_epi16(b, 4), 8));
        }
        store_pairs(dst + 2 * i, out[0], out[1]);
    }
}

void stk_jpeg_upsample_h1v2_avx2(const uint8_t *near, const uint8_t *far, bool far_is_above, int n, uint8_t *dst)
{
    const __m256i bias = _mm256_set1_epi16(far_is_above ? 1 : 2);
    for (int i = 0; i < n; i += 32) {
        __m256i a = load(near + i), b = load(far + i);
        __m256i lower = _mm256_srli_epi16(_mm256_add_epi16(weigh(a, b, false), bias), 2);
        __m256i upper = _mm256_srli_epi16(_mm256_add_epi16(weigh(a, b, true), bias), 2);
        _mm256_storeu_si256((__m256i *)(void *)(dst + i), _mm256_packus_epi16(lower, upper));
    }
}
#endif
