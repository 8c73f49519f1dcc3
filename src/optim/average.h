/* The running mean of a network's weights, next to the weights that are trained: what users call EMA.
 *
 *   mean = decay * mean + (1 - decay) * weight      after each update; the first copies the weights
 *
 * as torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn and Keras' use_ema. Like there, running statistics
 * of batch norm are no weights: the last ones count.
 */
#ifndef STK_OPTIM_AVERAGE_H
#define STK_OPTIM_AVERAGE_H

#include "graph/graph.h"
#include "stoker/train/optim.h"

/* What the weights that are trained are called: the mean has the parameter's own name, so that evaluation, checkpoints
 * and whoever reads them take it without knowing. */
#define STK_AVERAGE_RAW ".raw"

stk_status stk_average_check(const stk_average *settings);

/* After the updates have been added: each trainable variable "w" that is updated becomes "w.raw", and a variable "w" is
 * its mean. Both must be the same before the first step. "average.count" i64 [] counts the steps. */
stk_status stk_average_build(stk_graph *graph, const stk_average *settings);

#endif
