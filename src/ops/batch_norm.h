/* What the compositions of batch norm's gradients share. */
#ifndef STK_OPS_BATCH_NORM_H
#define STK_OPS_BATCH_NORM_H

#include "ops/compose.h"

/* Makes outputs 0 to 2 of d, what comes back, and normal, the normalised x. */
void stk_batch_norm_compose_grad(const stk_decompose_call *call, stk_value d, stk_value normal, stk_value scale,
                                 stk_value inv_std);

/* batch_norm out of others, as its decompose, with the statistics of all ranks' rows, equally many on each. */
void stk_batch_norm_compose(const stk_decompose_call *call, int n_ranks);

#endif
