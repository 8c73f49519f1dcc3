/* What the cross-entropy rules share. */
#ifndef STK_OPS_LOSS_H
#define STK_OPS_LOSS_H

#include "ops/rule.h"

/* logits [N,C] float; labels i32 [N] or shares of the statistics' dtype [N,C]. */
stk_status stk_loss_check(const stk_op_call *call);
/* The desc of the loss of logits: [N]. */
stk_tensor_desc stk_loss_out(stk_tensor_desc logits);
void stk_loss_print(const stk_attrs *attrs, stk_text *out);

#endif
