/* One sweep over a parameter and its optimiser state. Outputs may be the inputs of the same name. */
#ifndef STK_DEVICE_CPU_UPDATE_OPTIMIZER_H
#define STK_DEVICE_CPU_UPDATE_OPTIMIZER_H

#include "device/cpu/simd/isa.h"
#include "graph/op.h"

/* Numbers that do not change within a sweep; what they mean is in optimizer_tmpl.h. */
typedef struct stk_sgd_numbers {
    double lr, momentum, decay_param, decay_grad;
    int nesterov, like_keras;
} stk_sgd_numbers;

typedef struct stk_adam_numbers {
    double beta1, beta2, decay_param, decay_grad, step, root_factor, eps;
} stk_adam_numbers;

typedef struct stk_optimizer_fns {
    void (*sgd)(int64_t n, const stk_sgd_numbers *k, const void *param, const void *grad, void *out);
    void (*momentum)(int64_t n, const stk_sgd_numbers *k, const void *param, const void *velocity, const void *grad,
                     void *out, void *out_velocity);
    void (*adam)(int64_t n, const stk_adam_numbers *k, const void *const in[4], void *const out[3]);
} stk_optimizer_fns;

typedef struct stk_optimizer_table {
    stk_optimizer_fns f32, f64;
} stk_optimizer_table;

STK_ISA_TABLE(stk_optimizer_table, stk_optimizer)

#endif
