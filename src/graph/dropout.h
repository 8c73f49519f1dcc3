/* Which elements dropout keeps: the one formula that every device follows, so that masks are the same everywhere.
 * The mask of row i depends on (seed, stream, sample + i) only: neither the batch's cut nor the thread count matters.
 */
#ifndef STK_GRAPH_DROPOUT_H
#define STK_GRAPH_DROPOUT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"

static inline uint64_t stk_dropout_key(int64_t seed, int64_t stream)
{
    return (uint64_t)seed ^ stk_mix64((uint64_t)stream);
}

enum { STK_DROPOUT_BLOCK = 8 }; /* elements of a row that share one block of four random words */

/* Each element takes 16 bits, the lower half of a word first. A rate therefore counts in steps of 1/65,536. */
static inline int32_t stk_dropout_limit(double rate)
{
    return (int32_t)ceil(rate * 0x1p16);
}

/* Element number `element` of row number `row`, the rest of the dimensions flattened. */
static inline bool stk_dropout_keeps(uint64_t key, int64_t sample, int64_t row, int64_t element, double rate)
{
    stk_u32x4 block = stk_philox(key, (uint64_t)sample + (uint64_t)row, (uint64_t)(element / STK_DROPOUT_BLOCK));
    int i = (int)(element % STK_DROPOUT_BLOCK);
    return (int32_t)(block.v[i / 2] >> 16 * (i % 2) & 0xffff) >= stk_dropout_limit(rate);
}

/* The number of attention's weight for query t and key s among t_all and s_all, of one head: each query begins a block.
 */
static inline int64_t stk_dropout_attention_element(int64_t head, int64_t t_all, int64_t t, int64_t s_all, int64_t s)
{
    int64_t blocks = (s_all + STK_DROPOUT_BLOCK - 1) / STK_DROPOUT_BLOCK;
    return (head * t_all + t) * blocks * STK_DROPOUT_BLOCK + s;
}

#endif
