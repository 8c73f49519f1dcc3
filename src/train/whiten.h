/* A first layer that whitens patches of the data: see stk_whiten in stoker/train/trainer.h. Threads: the trainer's. */
#ifndef STK_TRAIN_WHITEN_H
#define STK_TRAIN_WHITEN_H

#include "graph/graph.h"
#include "stoker/train/trainer.h"

/* That the graph has such a layer. */
stk_status stk_whiten_check(const stk_graph *graph, const stk_whiten *settings);
/* Before the first step, what config.whiten says. */
stk_status stk_trainer_whiten(stk_trainer *trainer);

#endif
