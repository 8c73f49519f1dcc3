/* Which elements dropout keeps: the one formula that every device follows, so that masks are the same everywhere.
 * The mask of row i depends on (seed, stream, sample + i) only: neither the batch's cut nor the thread count matters.
 */
#ifndef STK_GRAPH_DROPOUT_H
#define STK_GRAPH_DROPOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"

static inline uint64_t stk_dropout_key(int64_t seed, int64_t stream)
{
    return (uint64_t)seed ^ stk_mix64((uint64_t)stream);
}

/* Four elements share one block of words: those with numbers 4 * i_block .. 4 * i_block + 3 within their row. */
static inline stk_u32x4 stk_dropout_block(uint64_t key, int64_t sample, int64_t row, int64_t i_block)
{
    return stk_philox(key, (uint64_t)sample + (uint64_t)row, (uint64_t)i_block);
}

/* A word's upper 24 bits are uniform in [0, 1). */
static inline bool stk_dropout_keeps_word(uint32_t word, double rate)
{
    return (double)(word >> 8) * 0x1p-24 >= rate;
}

/* Element number `element` of row number `row`, the rest of the dimensions flattened. */
static inline bool stk_dropout_keeps(uint64_t key, int64_t sample, int64_t row, int64_t element, double rate)
{
    stk_u32x4 block = stk_dropout_block(key, sample, row, element / 4);
    return stk_dropout_keeps_word(block.v[element % 4], rate);
}

#endif
