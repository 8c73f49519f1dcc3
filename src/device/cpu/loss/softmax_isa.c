#include "device/cpu/loss/softmax.h"

#include <math.h>

#include "device/cpu/element/element_math.h"

#define T       float
#define NAME(x) x##_f32
#define EXP     exp_f32
#define LOG     log_f32
#include "device/cpu/loss/softmax_tmpl.h"
#undef T
#undef NAME
#undef EXP
#undef LOG

#define T       double
#define NAME(x) x##_f64
#define EXP     exp
#define LOG     log
#include "device/cpu/loss/softmax_tmpl.h"

const stk_softmax_table STK_ISA_NAME(stk_softmax) = {
    .f32 = {softmax_f32, softmax_grad_f32, loss_f32, loss_grad_f32, loss_and_grad_f32, few_loss_f32, few_loss_grad_f32,
            few_in_top_k_f32, in_top_k_f32},
    .f64 = {softmax_f64, softmax_grad_f64, loss_f64, loss_grad_f64, loss_and_grad_f64, few_loss_f64, few_loss_grad_f64,
            few_in_top_k_f64, in_top_k_f64},
};
