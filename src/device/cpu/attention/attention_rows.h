/* What attention does to blocks and rows whatever its numbers are: sizes, places, and which weights dropout keeps. For
 * attention_isa.c and attention_avx512bf16.c only.
 */
#ifndef STK_DEVICE_CPU_ATTENTION_ATTENTION_ROWS_H
#define STK_DEVICE_CPU_ATTENTION_ATTENTION_ROWS_H

#include <math.h>

#include "base/align.h"
#include "base/philox_many.h"
#include "device/cpu/attention/attention.h"
#include "device/cpu/element/element_math.h"

/* Sizes of blocks, multiples of every tile: what is used at a time stays in an L2 cache of 512 KiB for heads of 64.
 * Forward, keys and values are packed whole, and few queries pass by many keys; backward, a block of each. */
enum { QUERIES = STK_ATTENTION_QUERIES, KEYS = 256, GRAD_QUERIES = 96, GRAD_KEYS = 128, MOST_KEYS = KEYS, WIDEST = 64 };

/* What draw_bits may write: whole vectors of whole blocks. */
enum { MOST_GROUPS = MOST_KEYS / STK_DROPOUT_BLOCK + WIDE_LANES, MOST_DRAWN = STK_DROPOUT_BLOCK * MOST_GROUPS };

/* The 16 random bits of the weight of query t and of each of n_keys keys from s on, a multiple of STK_DROPOUT_BLOCK. */
static inline void draw_bits(const stk_attention_call *call, int64_t n, int64_t h, int64_t t, int64_t s, int64_t n_keys,
                             uint16_t bits[MOST_DRAWN])
{
    uint64_t pairs[2 * MOST_GROUPS];
    int n_groups = (int)((n_keys + STK_DROPOUT_BLOCK - 1) / STK_DROPOUT_BLOCK);
    int64_t at = stk_dropout_attention_element(h, call->size.t, t, call->size.s, s) / STK_DROPOUT_BLOCK;
    philox_run(call->key, n_groups, (uint64_t)call->sample + (uint64_t)n, (uint64_t)at, pairs);
    split_pairs(2 * n_groups, pairs, bits);
}

/* The first key that counts, or S. */
static int64_t find_first_key(const stk_attention_call *call, int64_t n)
{
    int64_t s = 0;
    while (call->mask && s < call->size.s && !call->mask[n * call->size.s + s])
        s++;
    return s;
}

/* From one row of a head to the next. */
static int64_t step_of(const stk_attention_call *call)
{
    return call->has_one_head ? call->size.d : call->size.h * call->size.d;
}

/* Where [n,i,h,0] is among rows of n_rows. */
static int64_t row_at(const stk_attention_call *call, int64_t n_rows, int64_t n, int64_t i, int64_t h)
{
    if (call->has_one_head) return i * call->size.d;
    return ((n * n_rows + i) * call->size.h + h) * call->size.d;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Columns in whole vectors of every width. */
static int64_t pad(int64_t n)
{
    return stk_round_up_i64(n, WIDEST);
}

/* Of n keys from s on, those that query t sees as far as causality goes: the first ones. */
static int64_t count_seen(const stk_attention_call *call, int64_t t, int64_t s, int64_t n)
{
    int64_t seen = call->causal ? t - s + 1 : n;
    return seen < 0 ? 0 : least(seen, n);
}

#endif
