/* Data parallelism: ranks that each train on a share of every batch and add up what they find (passes/replicate.c).
 *
 * A rank is a trainer with a communication. Ranks of one process are threads: the first one's trainer makes the others,
 * which share its model and its data sets, and starts a thread for each. Ranks of many processes each have a trainer of
 * their own, made alike. After each step all ranks have the same variables, bit for bit, so that all of them come to
 * the same decisions; the first rank alone tells and saves. Goyal et al. 2017, "Accurate, Large Minibatch SGD", has the
 * arithmetic; that the sum over ranks is one over the global batch is pass replicate's.
 */
#ifndef STK_TRAIN_REPLICAS_H
#define STK_TRAIN_REPLICAS_H

#include "train/trainer.h"

/* Before the engine is opened: what can be shared out is refused otherwise; communication and threads of the replicas
 * that the configuration asks for. */
stk_status stk_replicas_begin(stk_trainer *trainer);
/* Once limits are known in bytes: a replica's part of them, but for devices that have memory of their own. */
void stk_replicas_divide_memory(stk_trainer *trainer);
/* Makes and prepares the other replicas of this process; the first one is prepared. */
stk_status stk_replicas_prepare(stk_trainer *trainer, int64_t n_epochs);
void stk_replicas_free(stk_trainer *trainer);

/* Runs the loop on all replicas of this process, and returns the first failure that is not another's. */
stk_status stk_replicas_run(stk_trainer *trainer, int64_t n_epochs);
/* Collective: checks that all ranks have the same step, and gives all of them the first rank's variables and state. */
stk_status stk_replicas_sync(stk_trainer *trainer);
/* Collective: data of all ranks become the first one's. */
stk_status stk_replicas_take_first(const stk_trainer *trainer, void *data, size_t bytes);
/* Collective: each of the n numbers becomes the sum over all ranks. */
stk_status stk_replicas_add(const stk_trainer *trainer, double *sums, int n);
/* Collective: records that any rank has skipped count for all. */
stk_status stk_replicas_join_skipped(stk_trainer *trainer);

#endif
