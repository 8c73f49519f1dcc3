/* What losses share: both sides must agree, and the numbers of a sample become one. */
#ifndef STK_NN_LOSS_H
#define STK_NN_LOSS_H

#include "nn/layer.h"
#include "nn/loss_list.h"

/* False, with an error kept, unless y is a value shaped as the layer's x [N,...], which is a float; neither is
 * broadcast: [N,1] and [N] would become [N,N] in silence. */
bool stk_loss_need_pair(const stk_layer *layer, stk_value y);
/* [N,...] -> [N], the mean over all but the batch. */
stk_value stk_loss_mean(stk_value x);
/* As [M,C]: all positions of all samples, one row each. */
stk_value stk_loss_rows(stk_value logits);
/* labels [N,...] as [M]. */
stk_value stk_loss_list(stk_value labels);
/* A row [M] of positions back to [N,positions]. */
stk_value stk_loss_by_sample(stk_value x, int64_t n_positions);

#endif
