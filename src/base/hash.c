#include "base/hash.h"

#include <string.h>

#define P1 0x9E3779B185EBCA87u
#define P2 0xC2B2AE3D27D4EB4Fu
#define P3 0x165667B19E3779F9u
#define P4 0x85EBCA77C2B2AE63u
#define P5 0x27D4EB2F165667C5u

static uint64_t rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static uint64_t read64(const uint8_t *p)
{
    uint64_t x;
    memcpy(&x, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    return x;
}

static uint32_t read32(const uint8_t *p)
{
    uint32_t x;
    memcpy(&x, p, 4);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap32(x);
#endif
    return x;
}

static uint64_t add_lane(uint64_t lane, uint64_t input)
{
    return rotate(lane + input * P2, 31) * P1;
}

/* Whole stripes of 32 bytes; returns where they end. */
static const uint8_t *add_stripes(uint64_t lane[4], const uint8_t *p, size_t n_stripes)
{
    for (const uint8_t *end = p + 32 * n_stripes; p < end; p += 32)
        for (int i = 0; i < 4; i++)
            lane[i] = add_lane(lane[i], read64(p + 8 * i));
    return p;
}

stk_hash64_parts stk_hash64_begin(uint64_t seed)
{
    return (stk_hash64_parts){.seed = seed, .lane = {seed + P1 + P2, seed + P2, seed, seed - P1}};
}

void stk_hash64_add(stk_hash64_parts *hash, const void *data, size_t n)
{
    const uint8_t *p = data, *end = n ? p + n : p;
    size_t held = hash->n % 32;
    hash->n += n;
    if (held > 0) {
        size_t more = n < 32 - held ? n : 32 - held;
        memcpy(hash->rest + held, p, more);
        if (held + more < 32) return;
        add_stripes(hash->lane, hash->rest, 1);
        p += more;
    }
    p = add_stripes(hash->lane, p, (size_t)(end - p) / 32);
    if (p < end) memcpy(hash->rest, p, (size_t)(end - p));
}

uint64_t stk_hash64_end(const stk_hash64_parts *hash)
{
    const uint64_t *lane = hash->lane;
    const uint8_t *p = hash->rest, *end = p + hash->n % 32;
    uint64_t h = hash->seed + P5;
    if (hash->n >= 32) {
        h = rotate(lane[0], 1) + rotate(lane[1], 7) + rotate(lane[2], 12) + rotate(lane[3], 18);
        for (int i = 0; i < 4; i++)
            h = (h ^ add_lane(0, lane[i])) * P1 + P4;
    }
    h += hash->n;
    for (; end - p >= 8; p += 8)
        h = rotate(h ^ add_lane(0, read64(p)), 27) * P1 + P4;
    if (end - p >= 4) {
        h = rotate(h ^ read32(p) * P1, 23) * P2 + P3;
        p += 4;
    }
    for (; p < end; p++)
        h = rotate(h ^ *p * P5, 11) * P1;
    h = (h ^ h >> 33) * P2;
    h = (h ^ h >> 29) * P3;
    return h ^ h >> 32;
}

uint64_t stk_hash64(const void *data, size_t n, uint64_t seed)
{
    stk_hash64_parts hash = stk_hash64_begin(seed);
    stk_hash64_add(&hash, data, n);
    return stk_hash64_end(&hash);
}

uint64_t stk_hash_text(const char *text)
{
    return stk_hash64(text, strlen(text), 0);
}
