/* Loops for products of one row with a matrix. */
#ifndef STK_DEVICE_CPU_MATMUL_MATMUL_VECTOR_H
#define STK_DEVICE_CPU_MATMUL_MATMUL_VECTOR_H

#include <stdint.h>

#include "device/cpu/simd/isa.h"

typedef struct stk_matvec_table {
    /* y [n] = w x with w [n,k]: rows. */
    void (*dot_rows)(int64_t n, int64_t k, const float *x, const float *w, float *y);
    /* y [n] += x w with w [k,n]: rows as well, each times a number. */
    void (*add_rows)(int64_t n, int64_t k, const float *x, const float *w, float *y);
} stk_matvec_table;

STK_ISA_TABLE(stk_matvec_table, stk_matvec)

#endif
