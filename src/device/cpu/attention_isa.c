#include "device/cpu/attention.h"

#include "device/cpu/attention_rows.h"

#define T       float
#define NAME(x) x##_f32
#define EXP     exp_f32
#define LOG     log_f32
#include "device/cpu/attention_rows_tmpl.h"

#include "device/cpu/attention_tmpl.h"
#undef T
#undef NAME
#undef EXP
#undef LOG

#define T       double
#define NAME(x) x##_f64
#define EXP     exp
#define LOG     log
#include "device/cpu/attention_rows_tmpl.h"

#include "device/cpu/attention_tmpl.h"

const stk_attention_table STK_ISA_NAME(stk_attention) = {
    .f32 = {forward_f32, backward_f32, forward_bytes_f32, backward_bytes_f32},
    .f64 = {forward_f64, backward_f64, forward_bytes_f64, backward_bytes_f64},
};
