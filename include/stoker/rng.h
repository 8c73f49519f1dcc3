/* Random numbers made of a key and a counter, never of hidden state: any thread can make any of them, and the same key
 * gives the same numbers today and after a resume. Philox 4x32-10: Salmon et al., "Parallel random numbers: as easy as
 * 1, 2, 3", SC 2011.
 *
 * Threads: a stk_rng is a value, one thread's own; copies go on alike.
 */
#ifndef STOKER_RNG_H
#define STOKER_RNG_H

#include "stoker/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_u32x4 {
    uint32_t v[4];
} stk_u32x4;

/* A stream of numbers; cheap to make, kept on the stack. Its members are not for use. */
typedef struct stk_rng {
    uint64_t key, stream, i_block;
    stk_u32x4 block;
    int n_left; /* words of block not used yet */
} stk_rng;

/* The stream of one sample in one stage. Other purposes take other numbers, as for a function of a sample's index:
 * stk_rng_make(seed, 0, i_sample, 0). */
STK_API stk_rng stk_rng_make(uint64_t seed, uint64_t epoch, uint64_t i_sample, uint64_t i_stage);
STK_API uint32_t stk_rng_u32(stk_rng *rng);
/* Uniform in [0, n), n >= 1, without bias. */
STK_API uint32_t stk_rng_below(stk_rng *rng, uint32_t n);
/* Uniform in [0, 1), 24 bits. */
STK_API float stk_rng_uniform(stk_rng *rng);
/* Normal with mean 0 and deviation 1 (Box-Muller). */
STK_API float stk_rng_normal(stk_rng *rng);

#ifdef __cplusplus
}
#endif
#endif
