/* What is done to one sample's row of gates at one step of lstm and gru, and backwards; ops/recurrent.h has the
 * formulas. n units side by side of each gate, and gates `stride` elements apart; all rows are of the table's type.
 */
#ifndef STK_DEVICE_CPU_RECURRENT_RECURRENT_H
#define STK_DEVICE_CPU_RECURRENT_RECURRENT_H

#include <stdint.h>

#include "device/cpu/simd/isa.h"

typedef struct stk_recurrent_row {
    int64_t n, stride;
    const void *x, *sums, *bias;     /* from the inputs; weight times h; [G] each. gates may be x */
    const void *h_before, *c_before; /* [n] */
    void *h, *c, *gates, *part;      /* c of lstm, part of gru */
} stk_recurrent_row;

/* carry: weight' times what the step behind had to do, NULL at the last step. pass: what reaches h past the product,
 * dc_carry: what reaches c; both are read and written. dx may be gates. */
typedef struct stk_recurrent_back {
    int64_t n, stride;
    const void *dh, *dc, *carry; /* dc: NULL, none */
    const void *c, *c_before, *h_before, *gates, *part;
    void *dx, *dstate, *pass, *dc_carry;
} stk_recurrent_back;

typedef struct stk_recurrent_fns {
    void (*lstm)(const stk_recurrent_row *row);
    void (*gru)(const stk_recurrent_row *row);
    void (*lstm_back)(const stk_recurrent_back *row);
    void (*gru_back)(const stk_recurrent_back *row);
    /* A step that does not count: pass += dh + carry, dc_carry += dc; dx and dstate are 0. */
    void (*hold_back)(const stk_recurrent_back *row, int n_gates);
} stk_recurrent_fns;

typedef struct stk_recurrent_table {
    stk_recurrent_fns f32, f64;
} stk_recurrent_table;

STK_ISA_TABLE(stk_recurrent_table, stk_recurrent)

#endif
