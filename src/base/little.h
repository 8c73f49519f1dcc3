/* Little-endian numbers at any address. */
#ifndef STK_BASE_LITTLE_H
#define STK_BASE_LITTLE_H

#include <stdint.h>

static inline uint16_t stk_little16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t stk_little32(const uint8_t *p)
{
    return (uint32_t)stk_little16(p) | (uint32_t)stk_little16(p + 2) << 16;
}

static inline uint64_t stk_little64(const uint8_t *p)
{
    return (uint64_t)stk_little32(p) | (uint64_t)stk_little32(p + 4) << 32;
}

static inline void stk_put_little32(uint8_t *p, uint32_t x)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(x >> 8 * i);
}

static inline void stk_put_little64(uint8_t *p, uint64_t x)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(x >> 8 * i);
}

#endif
