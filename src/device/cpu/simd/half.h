/* 16-bit floats to f32 and back, to nearest even, without branches or calls, so that loops around them vectorise. A NaN
 * stays one. For *_isa.c only.
 */
#ifndef STK_DEVICE_CPU_SIMD_HALF_H
#define STK_DEVICE_CPU_SIMD_HALF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline int32_t bits_of(float x)
{
    int32_t i;
    memcpy(&i, &x, sizeof(i));
    return i;
}

static inline float float_of(int32_t i)
{
    float x;
    memcpy(&x, &i, sizeof(x));
    return x;
}

static inline float bf16_to_f32(uint16_t bits)
{
    return float_of((int32_t)((uint32_t)bits << 16));
}

/* The nearest number that bf16 has, ties to the even one. */
static inline float bf16_round(float x)
{
    uint32_t bits = (uint32_t)bits_of(x), rounded = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    return float_of((int32_t)(x != x ? (bits & 0x80000000u) | 0x7fc00000u : rounded));
}

static inline uint16_t bf16_from_f32(float x)
{
    return (uint16_t)((uint32_t)bits_of(bf16_round(x)) >> 16);
}

/* The same where x, if it is a NaN, is one of bf16's or the processor's own: its lower half is 0, and no carry comes.
 */
static inline uint16_t bf16_from_tame_f32(float x)
{
    uint32_t bits = (uint32_t)bits_of(x);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* The product moves the exponent's bias over and makes denormals normal. */
static inline float f16_to_f32(uint16_t bits)
{
    float size = float_of((int32_t)((uint32_t)(bits & 0x7fff) << 13)) * 0x1p112f;
    int32_t high = (bits & 0x7c00) == 0x7c00 ? 0x7f800000 : 0;
    return float_of(bits_of(size) | high | (int32_t)((uint32_t)(bits & 0x8000) << 16));
}

static inline uint16_t f16_from_f32(float x)
{
    uint32_t bits = (uint32_t)bits_of(x), sign = bits >> 16 & 0x8000;
    float size = fabsf(x);
    /* Below the normal numbers the step is 2^-24 everywhere: adding a large number rounds to it. */
    uint32_t tiny = (uint32_t)(bits_of(size + 0.5f) - bits_of(0.5f));
    uint32_t normal = (uint32_t)bits_of(size) - (112u << 23);
    normal = (normal + 0xfff + (normal >> 13 & 1)) >> 13;
    uint32_t y = size < 0x1p-14f ? tiny : normal;
    y = size >= 65520.0f ? 0x7c00 : y;
    y = x != x ? 0x7e00 : y;
    return (uint16_t)(x != x ? 0x7e00 : sign | y);
}

#endif
