/* The model's graph for TensorBoard's graph view: layers are groups, ops are nodes. */
#ifndef STK_RUN_OBSERVE_GRAPH_H
#define STK_RUN_OBSERVE_GRAPH_H

#include "events/event_file.h"
#include "stoker/train/trainer.h"

stk_status stk_observe_write_graph(stk_event_file *file, stk_trainer *trainer);

#endif
