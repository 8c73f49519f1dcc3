/* Local steps: each rank trains by itself for a number of steps, then all go one step of an outer optimiser from where
 * they began, along the mean of the ways that they have gone. So ranks talk once in that many steps.
 *
 *   rank 0   w -> step, step, step ... -> w0 ──┐  d = w - mean(w0, w1),  v = momentum v + d,
 *   rank 1   w -> step, step, step ... -> w1 ──┘  w = w - lr (d + momentum v), the same on both
 *
 * Douillard et al. 2023, "DiLoCo: Distributed Low-Communication Training of Language Models", algorithm 1, with
 * Nesterov's momentum as PyTorch's SGD has it. Each weight has two more variables: where the steps began ("w.outer")
 * and v ("w.outer_velocity"). Losses, metrics and statistics of batch norm are still those of all ranks in each step.
 */
#ifndef STK_TRAIN_OUTER_H
#define STK_TRAIN_OUTER_H

#include "train/trainer.h"

/* STK_UNSUPPORTED: the configuration asks for something else that looks at the weights of each step. */
stk_status stk_outer_check(const stk_trainer *trainer);
/* The program, behind the training step's, whose weights it has. Nothing without outer steps. */
stk_status stk_outer_prepare(stk_trainer *trainer);
/* By the first rank, before the first step: the weights are where the steps begin. */
stk_status stk_outer_start(stk_trainer *trainer);
/* Whether an outer step comes behind the last one begun: at the end of an epoch, too. */
bool stk_outer_is_due(const stk_trainer *trainer);
/* Collective, behind each step whose results are read: does the outer one where it is due. */
stk_status stk_outer_step(stk_trainer *trainer);

#endif
