/* What the cross-entropy rules share. */
#ifndef STK_OPS_LOSS_H
#define STK_OPS_LOSS_H

#include "ops/compose.h"

/* logits [N,C] float; labels i32 [N] or shares of the statistics' dtype [N,C]. */
stk_status stk_loss_check(const stk_op_call *call);
/* The desc of the loss of logits: [N]. */
stk_tensor_desc stk_loss_out(stk_tensor_desc logits);
void stk_loss_print(const stk_attrs *attrs, stk_text *out);

/* The shares of the classes: of numbers i32 [N], or as they are, smoothed; [N,C] like the logits, which are wide. */
stk_value stk_loss_compose_target(stk_value labels, stk_value logits, double smoothing);
/* -sum of target * log(softmax(logits)), [N]. */
stk_value stk_loss_compose(stk_value logits, stk_value target);
/* (softmax(logits) * sum of target - target) * dloss, [N,C]. */
stk_value stk_loss_compose_grad(stk_value logits, stk_value target, stk_value dloss);

#endif
