/* Moving elements: strided copies, whatever the dtype. */
#ifndef STK_DEVICE_CPU_ROWS_MOVE_H
#define STK_DEVICE_CPU_ROWS_MOVE_H

#include <stdint.h>

#include "device/cpu/simd/isa.h"

/* By log2 of the element's bytes. Strides in elements. */
typedef struct stk_move_table {
    /* dst[i * dst_stride] = src[i * src_stride]; memory does not overlap. */
    void (*strided[4])(int64_t n, void *dst, int64_t dst_stride, const void *src, int64_t src_stride);
    /* dst[r * dst_stride + c] = src[c * src_stride + r]. */
    void (*transpose[4])(int64_t n_rows, int64_t n_cols, void *dst, int64_t dst_stride, const void *src,
                         int64_t src_stride);
} stk_move_table;

STK_ISA_TABLE(stk_move_table, stk_move)

#endif
