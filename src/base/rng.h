/* Counter-based random numbers: a key and a counter, never hidden state, so that any thread can make any number.
 * Philox 4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
 */
#ifndef STK_BASE_RNG_H
#define STK_BASE_RNG_H

#include <stdint.h>

typedef struct stk_u32x4 {
    uint32_t v[4];
} stk_u32x4;

/* Four random words for (key, counter). Pure. */
stk_u32x4 stk_philox(uint64_t key, uint64_t counter_hi, uint64_t counter_lo);

/* A stream of numbers for one sample in one stage; cheap to make, kept on the stack. */
typedef struct stk_rng {
    uint64_t key, stream, i_block;
    stk_u32x4 block;
    int n_left; /* words of block not used yet */
} stk_rng;

stk_rng stk_rng_make(uint64_t seed, uint64_t epoch, uint64_t i_sample, uint64_t i_stage);
uint32_t stk_rng_u32(stk_rng *rng);
/* Uniform in [0, n), n >= 1, without bias. */
uint32_t stk_rng_below(stk_rng *rng, uint32_t n);
/* Uniform in [0, 1), 24 bits. */
float stk_rng_uniform(stk_rng *rng);
/* Normal with mean 0 and deviation 1 (Box-Muller). */
float stk_rng_normal(stk_rng *rng);

/* A well-mixed 64-bit hash of one word (splitmix64's finaliser). */
uint64_t stk_mix64(uint64_t x);

#endif
