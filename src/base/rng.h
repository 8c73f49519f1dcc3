/* Counter-based random numbers: stoker/rng.h, and what they are made of. */
#ifndef STK_BASE_RNG_H
#define STK_BASE_RNG_H

#include "stoker/rng.h"

/* Four random words for (key, counter). Pure. */
stk_u32x4 stk_philox(uint64_t key, uint64_t counter_hi, uint64_t counter_lo);

/* A well-mixed 64-bit hash of one word (splitmix64's finaliser). */
uint64_t stk_mix64(uint64_t x);

#endif
