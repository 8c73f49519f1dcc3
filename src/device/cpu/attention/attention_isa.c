#include "device/cpu/attention/attention.h"

#include "device/cpu/attention/attention_rows.h"

/* keeps[i]: whether dropout keeps the weight of query t and key s + i; see draw_bits. */
static void draw_row(const stk_attention_call *call, int64_t n, int64_t h, int64_t t, int64_t s, int64_t n_keys,
                     uint8_t *keeps)
{
    uint16_t bits[MOST_DRAWN];
    int32_t limit = stk_dropout_limit(call->rate);
    draw_bits(call, n, h, t, s, n_keys, bits);
#pragma omp simd
    for (int i = 0; i < n_keys; i++)
        keeps[i] = bits[i] >= limit;
}

#define T       float
#define NAME(x) x##_f32
#define EXP     exp_f32
#define LOG     log_f32
#include "device/cpu/attention/attention_rows_tmpl.h"

#include "device/cpu/attention/attention_tmpl.h"
#undef T
#undef NAME
#undef EXP
#undef LOG

#define T       double
#define NAME(x) x##_f64
#define EXP     exp
#define LOG     log
#include "device/cpu/attention/attention_rows_tmpl.h"

#include "device/cpu/attention/attention_tmpl.h"

const stk_attention_table STK_ISA_NAME(stk_attention) = {
    .f32 = {forward_f32, backward_f32, forward_bytes_f32, backward_bytes_f32},
    .f64 = {forward_f64, backward_f64, forward_bytes_f64, backward_bytes_f64},
};
