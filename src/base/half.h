/* The 16-bit floats, by their bits: round to nearest, ties to even; NaN stays NaN. Threads: any. */
#ifndef STK_BASE_HALF_H
#define STK_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t stk_f32_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static inline float stk_f32_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static inline uint16_t stk_f32_to_bf16(float x)
{
    uint32_t bits = stk_f32_bits(x);
    if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float stk_bf16_to_f32(uint16_t x)
{
    return stk_f32_of_bits((uint32_t)x << 16);
}

static inline uint16_t stk_f32_to_f16(float x)
{
    uint32_t bits = stk_f32_bits(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000) return (uint16_t)(sign | 0x7e00);
    if (size >= 0x47800000) return (uint16_t)(sign | 0x7c00); /* 2^16 and more */
    /* Below 2^-14 steps are 2^-24, as those of floats from 0.5 on: that addition rounds as it should. */
    if (size < 0x38800000) return (uint16_t)(sign | (stk_f32_bits(stk_f32_of_bits(size) + 0.5f) - stk_f32_bits(0.5f)));
    return (uint16_t)(sign | ((size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13));
}

static inline float stk_f16_to_f32(uint16_t x)
{
    uint32_t sign = (uint32_t)(x & 0x8000) << 16, size = x & 0x7fff;
    if (size >= 0x7c00) return stk_f32_of_bits(sign | 0x7f800000 | (size & 0x3ff) << 13);
    if (size < 0x400) return stk_f32_of_bits(sign | stk_f32_bits((float)size * 0x1p-24f));
    return stk_f32_of_bits(sign | ((size << 13) + 0x38000000));
}

#endif
