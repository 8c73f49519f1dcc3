/* AVX-512 for processors without it: the data plane's *_avx512.c are built once more with this in front, each intrinsic
 * as plain C or AVX2 by SIMDe (Debian's libsimde-dev). What that version of it lacks, or has wrong, is below.
 */
#ifndef TESTS_DATA_AVX512_INTRINSICS_H
#define TESTS_DATA_AVX512_INTRINSICS_H

#include <stdint.h>
#include <string.h>

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx2.h>
#include <simde/x86/avx512.h>

typedef union lanes {
    __m512i v;
    uint8_t u8[64];
    int16_t i16[32];
    uint16_t u16[32];
    int32_t i32[16];
} lanes;

static inline __m512i in_c_maskz_loadu_epi8(uint64_t mask, const void *from)
{
    lanes r = {.u8 = {0}};
    for (int i = 0; i < 64; i++)
        if (mask >> i & 1) r.u8[i] = ((const uint8_t *)from)[i];
    return r.v;
}
#define _mm512_maskz_loadu_epi8 in_c_maskz_loadu_epi8

static inline void in_c_mask_storeu_epi8(void *to, uint64_t mask, __m512i v)
{
    lanes x = {.v = v};
    for (int i = 0; i < 64; i++)
        if (mask >> i & 1) ((uint8_t *)to)[i] = x.u8[i];
}
#define _mm512_mask_storeu_epi8 in_c_mask_storeu_epi8

static inline __m512i in_c_maskz_compress_epi8(uint64_t mask, __m512i v)
{
    lanes x = {.v = v}, r = {.u8 = {0}};
    for (int i = 0, n = 0; i < 64; i++)
        if (mask >> i & 1) r.u8[n++] = x.u8[i];
    return r.v;
}
#define _mm512_maskz_compress_epi8 in_c_maskz_compress_epi8

static inline __m512i in_c_madd_epi16(__m512i a, __m512i b)
{
    lanes x = {.v = a}, y = {.v = b}, r;
    for (int i = 0; i < 16; i++)
        r.i32[i] = (int32_t)((uint32_t)(x.i16[2 * i] * y.i16[2 * i]) + (uint32_t)(x.i16[2 * i + 1] * y.i16[2 * i + 1]));
    return r.v;
}
#undef _mm512_madd_epi16
#define _mm512_madd_epi16 in_c_madd_epi16

static inline __m512i in_c_srai_epi32(__m512i v, unsigned by)
{
    lanes x = {.v = v};
    for (int i = 0; i < 16; i++)
        x.i32[i] >>= by;
    return x.v;
}
#define _mm512_srai_epi32 in_c_srai_epi32

static inline __m512i in_c_sra_epi32(__m512i v, __m128i by)
{
    uint64_t n;
    memcpy(&n, &by, sizeof(n));
    return in_c_srai_epi32(v, (unsigned)n);
}
#define _mm512_sra_epi32 in_c_sra_epi32

static inline __m256i in_c_cvtusepi16_epi8(__m512i v)
{
    lanes x = {.v = v};
    uint8_t bytes[32];
    for (int i = 0; i < 32; i++)
        bytes[i] = x.u16[i] > 255 ? 255 : (uint8_t)x.u16[i];
    __m256i r;
    memcpy(&r, bytes, sizeof(r));
    return r;
}
#define _mm512_cvtusepi16_epi8 in_c_cvtusepi16_epi8

static inline __m256i in_c_extracti64x4_epi64(__m512i v, int i)
{
    __m256i r;
    memcpy(&r, (const uint8_t *)&v + 32 * i, sizeof(r));
    return r;
}
#undef _mm512_extracti64x4_epi64
#define _mm512_extracti64x4_epi64 in_c_extracti64x4_epi64

#endif
