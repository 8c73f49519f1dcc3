#include "device/cpu/batch_norm.h"

#include <math.h>

/* The forward result, and what tells the backward pass where ReLU was 0: both must be the same to the bit. */
static inline float affine_f32(float x, float mean, float factor, float bias)
{
    return (x - mean) * factor + bias;
}

static inline double affine_f64(double x, double mean, double factor, double bias)
{
    return (x - mean) * factor + bias;
}

#define T       float
#define NAME(x) x##_f32
#include "device/cpu/batch_norm_tmpl.h"
#undef T
#undef NAME

#define T       double
#define NAME(x) x##_f64
#include "device/cpu/batch_norm_tmpl.h"

const stk_batch_norm_table STK_ISA_NAME(stk_batch_norm) = {
    .forward_f32 = {measure_share_f32, normalize_share_f32},
    .grad_f32 = {sum_grads_share_f32, write_grads_share_f32},
    .apply_f32 = apply_share_f32,
    .apply_f64 = apply_share_f64,
    .forward_f64 = {measure_share_f64, normalize_share_f64},
    .grad_f64 = {sum_grads_share_f64, write_grads_share_f64},
};
