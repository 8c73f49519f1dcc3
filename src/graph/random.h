/* The numbers of op random: the one formula that every device follows. Row i of a batch depends on (seed, stream,
 * sample + i) only, as dropout's masks do (dropout.h); four elements of a row share a block of Philox.
 */
#ifndef STK_GRAPH_RANDOM_H
#define STK_GRAPH_RANDOM_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"

/* Other streams than dropout's of the same number. */
static inline uint64_t stk_random_key(int64_t seed, int64_t stream)
{
    return (uint64_t)seed ^ stk_mix64(~(uint64_t)stream);
}

/* Elements 4 * i_block to 4 * i_block + 3 of a row: uniform in [0, 1), or normal with mean 0 and deviation 1. */
static inline void stk_random_block(uint64_t key, int64_t sample, int64_t row, int64_t i_block, bool normal,
                                    double out[4])
{
    stk_u32x4 words = stk_philox(key, (uint64_t)sample + (uint64_t)row, (uint64_t)i_block);
    for (int i = 0; i < 4; i++)
        out[i] = (double)(words.v[i] >> 8) * 0x1p-24;
    for (int i = 0; normal && i < 4; i += 2) {
        /* 1 - u is in (0, 1], whose logarithm is finite. */
        double size = sqrt(-2 * log(1 - out[i])), angle = 6.28318530717958647692 * out[i + 1];
        out[i] = size * cos(angle);
        out[i + 1] = size * sin(angle);
    }
}

#endif
