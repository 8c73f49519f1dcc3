/* See base/content_hash.h. */
#include "base/content_hash.h"

#include <string.h>

#include "base/rng.h"

enum { LANES = 8, STRIPE = 8 * LANES, STRIPES = 16, KEYS = LANES + STRIPES };

/* The first of splitmix64 from 0 on. */
static const uint64_t key[KEYS] = {0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f, 0xf88bb8a8724c81ec,
                                   0x1b39896a51a8749b, 0x53cb9f0c747ea2ea, 0x2c829abe1f4532e1, 0xc584133ac916ab3c,
                                   0x3ee5789041c98ac3, 0xf3b8488c368cb0a6, 0x657eecdd3cb13d09, 0xc2d326e0055bdef6,
                                   0x8621a03fe0bbdb7b, 0x8e1f7555983aa92f, 0xb54e0f1600cc4d19, 0x84bb3f97971d80ab,
                                   0x7d29825c75521255, 0xc3cf17102b7f7f86, 0x3466e9a083914f64, 0xd81a8d2b5a4485ac,
                                   0xdb01602b100b9ed7, 0xa9038a921825f10d, 0xedf5f1d90dca2f6a, 0x54496ad67bd2634c};

/* 64 bytes: each lane gets the product of its word's halves, and its neighbour's word. */
static inline void add_stripe(uint64_t *restrict sum, const uint8_t *p, const uint64_t *restrict k)
{
    uint64_t x[LANES];
    memcpy(x, p, sizeof(x));
    for (int i = 0; i < LANES; i++) {
        uint64_t y = x[i] ^ k[i];
        sum[i] += x[i ^ 1] + (y & 0xffffffff) * (y >> 32);
    }
}

static void stir(uint64_t *restrict sum)
{
    for (int i = 0; i < LANES; i++)
        sum[i] = (sum[i] ^ sum[i] >> 47 ^ key[KEYS - LANES + i]) * 0x9e3779b1u;
}

uint64_t stk_content_hash(const void *data, size_t n)
{
    const uint8_t *p = data;
    uint8_t last[STRIPE] = {0};
    uint64_t sum[LANES] = {key[8], key[9], key[10], key[11], key[12], key[13], key[14], key[15]};
    size_t left = n;
    int i_stripe = 0;
    for (; left >= STRIPE; left -= STRIPE, p += STRIPE) {
        add_stripe(sum, p, key + i_stripe);
        if (++i_stripe < STRIPES) continue;
        stir(sum);
        i_stripe = 0;
    }
    if (left) memcpy(last, p, left);
    add_stripe(sum, last, key + i_stripe);
    stir(sum);
    uint64_t hash = (uint64_t)n;
    for (int i = 0; i < LANES; i++)
        hash = stk_mix64(hash ^ sum[i]);
    return hash;
}
