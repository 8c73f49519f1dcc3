/* Lanes of bf16 as f32, where the processor rounds to bf16 in one instruction. For the loops of such processors only.
 */
#ifndef STK_DEVICE_CPU_SIMD_BF16_LANES_H
#define STK_DEVICE_CPU_SIMD_BF16_LANES_H

#include <immintrin.h>
#include <stdint.h>

enum { LANES = 16, ALL = 0xffff }; /* ALL, a constant, costs no mask */

#define INLINE static inline __attribute__((always_inline))

INLINE __mmask16 mask_of(int64_t n_left)
{
    return n_left >= LANES ? ALL : (__mmask16)((1u << n_left) - 1);
}

INLINE __m512 load(const uint16_t *from, __mmask16 mask)
{
    __m256i x = mask == ALL ? _mm256_loadu_si256((const __m256i *)from) : _mm256_maskz_loadu_epi16(mask, from);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

INLINE __m512 load_param(const float *from, __mmask16 mask)
{
    return _mm512_maskz_loadu_ps(mask, from);
}

INLINE void store(uint16_t *to, __m512 x, __mmask16 mask)
{
    _mm256_mask_storeu_epi16(to, mask, (__m256i)_mm512_cvtneps_pbh(x));
}

#endif
