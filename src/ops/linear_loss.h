/* What linear_cross_entropy and its gradient share. */
#ifndef STK_OPS_LINEAR_LOSS_H
#define STK_OPS_LINEAR_LOSS_H

#include "ops/compose.h"

/* Checks x [M,D], weight [V,D] and labels i32 [M], the first three inputs of both, and the attributes. */
stk_status stk_linear_loss_check(const stk_op_call *call);
/* The loss of each row. */
stk_tensor_desc stk_linear_loss_out(const stk_op_call *call);
void stk_linear_loss_print(const stk_attrs *attrs, stk_text *out);
/* Of one product of x and the weight, and so of each that the gradient adds. */
double stk_linear_loss_flops(const stk_op_call *call);

/* All logits at once, [M,V], wide; which rows count, bool [M]; and the labels of those, any class for the others. */
typedef struct stk_linear_loss_parts {
    stk_value logits, counts, labels;
} stk_linear_loss_parts;
stk_linear_loss_parts stk_linear_loss_compose(const stk_decompose_call *call);
/* A product that stays wide. */
stk_value stk_linear_loss_multiply(stk_value a, stk_value b, bool transpose_a, bool transpose_b);

#endif
