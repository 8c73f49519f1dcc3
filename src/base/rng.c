#include "base/rng.h"

#include <math.h>

stk_u32x4 stk_philox(uint64_t key, uint64_t counter_hi, uint64_t counter_lo)
{
    uint32_t c0 = (uint32_t)counter_lo, c1 = (uint32_t)(counter_lo >> 32);
    uint32_t c2 = (uint32_t)counter_hi, c3 = (uint32_t)(counter_hi >> 32);
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int i = 0; i < 10; i++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (stk_u32x4){{c0, c1, c2, c3}};
}

uint64_t stk_mix64(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

stk_rng stk_rng_make(uint64_t seed, uint64_t epoch, uint64_t i_sample, uint64_t i_stage)
{
    return (stk_rng){.key = stk_mix64(seed ^ stk_mix64(epoch ^ stk_mix64(i_stage))), .stream = i_sample};
}

/* Exported functions are not inlined into one another. */
static inline uint32_t next_u32(stk_rng *rng)
{
    if (rng->n_left == 0) {
        rng->block = stk_philox(rng->key, rng->stream, rng->i_block++);
        rng->n_left = 4;
    }
    return rng->block.v[4 - rng->n_left--];
}

uint32_t stk_rng_u32(stk_rng *rng)
{
    return next_u32(rng);
}

uint32_t stk_rng_below(stk_rng *rng, uint32_t n)
{
    /* Lemire's multiply-shift with rejection. */
    uint64_t product = (uint64_t)next_u32(rng) * n;
    if ((uint32_t)product < n) {
        uint32_t threshold = -n % n;
        while ((uint32_t)product < threshold)
            product = (uint64_t)next_u32(rng) * n;
    }
    return (uint32_t)(product >> 32);
}

float stk_rng_uniform(stk_rng *rng)
{
    return (float)(next_u32(rng) >> 8) * 0x1p-24f;
}

float stk_rng_normal(stk_rng *rng)
{
    double u = ((double)next_u32(rng) + 1.0) * 0x1p-32, v = (double)next_u32(rng) * 0x1p-32;
    return (float)(sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v));
}
