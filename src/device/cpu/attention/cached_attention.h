/* Attention of one query to a cache of keys and values. */
#ifndef STK_DEVICE_CPU_ATTENTION_CACHED_ATTENTION_H
#define STK_DEVICE_CPU_ATTENTION_CACHED_ATTENTION_H

#include "device/cpu/simd/isa.h"
#include "graph/op.h"

/* y [d] = softmax(scale q k') v with q [d], n_keys >= 1 rows k and v [d] that are `step` elements apart; score has room
 * for n_keys. */
typedef void (*stk_attend_row_fn)(int64_t d, int64_t n_keys, int64_t step, double scale, const void *q, const void *k,
                                  const void *v, void *score, void *y);

typedef struct stk_attend_row_table {
    stk_attend_row_fn f32, f64;
} stk_attend_row_table;

STK_ISA_TABLE(stk_attend_row_table, stk_attend_row)

#endif
