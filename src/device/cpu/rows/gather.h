/* Rows added up by number. */
#ifndef STK_DEVICE_CPU_ROWS_GATHER_H
#define STK_DEVICE_CPU_ROWS_GATHER_H

#include "device/cpu/simd/isa.h"
#include "graph/op.h"

/* dst[ids[i]][c] += src[i][c] for columns begin .. end-1 of rows of `width` elements, in the order of i. */
typedef void (*stk_add_rows_fn)(int64_t n_ids, const int32_t *ids, int64_t width, int64_t begin, int64_t end,
                                const void *src, void *dst);

typedef struct stk_gather_table {
    stk_add_rows_fn add_f32, add_f64;
} stk_gather_table;

STK_ISA_TABLE(stk_gather_table, stk_gather)

#endif
