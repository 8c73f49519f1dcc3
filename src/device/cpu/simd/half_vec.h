/* Vectors of 16-bit floats to f32 and back, with the results of half.h. For *_isa.c only, behind the header that says
 * what a vec is.
 */
#ifndef STK_DEVICE_CPU_SIMD_HALF_VEC_H
#define STK_DEVICE_CPU_SIMD_HALF_VEC_H

#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include "device/cpu/simd/half.h"

typedef uint16_t vec_half __attribute__((vector_size(VEC_BYTES / 2), aligned(2), may_alias));
typedef uint32_t vec_bits __attribute__((vector_size(VEC_BYTES)));

static inline vec load_bf16(const uint16_t *from)
{
#ifdef __AVX512F__
    /* The general form becomes five instructions. */
    __m512i bits = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)from)), 16);
    return (vec)_mm512_castsi512_ps(bits);
#endif
    vec_bits wide = __builtin_convertvector(*(const vec_half *)from, vec_bits) << 16;
    vec x;
    memcpy(&x, &wide, sizeof(x));
    return x;
}

static inline void store_bf16(uint16_t *to, vec x)
{
    vec_bits bits, is_nan;
    memcpy(&bits, &x, sizeof(bits));
    /* Larger than infinity, but for the sign. */
    is_nan = (vec_bits)((bits & 0x7fffffff) > 0x7f800000);
    vec_bits rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, nan = (bits >> 16 & 0x8000) | 0x7fc0;
    *(vec_half *)to = __builtin_convertvector((is_nan & nan) | (~is_nan & rounded), vec_half);
}

static inline vec load_f16(const uint16_t *from)
{
    float x[LANES];
    for (int i = 0; i < LANES; i++)
        x[i] = f16_to_f32(from[i]);
    return *(const vec *)x;
}

static inline void store_f16(uint16_t *to, vec x)
{
    float from[LANES];
    *(vec *)from = x;
    for (int i = 0; i < LANES; i++)
        to[i] = f16_from_f32(from[i]);
}

#endif
