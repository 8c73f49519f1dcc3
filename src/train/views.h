/* Test-time augmentation: the output of a graph becomes the mean of its outputs for several views of the image. */
#ifndef STK_TRAIN_VIEWS_H
#define STK_TRAIN_VIEWS_H

#include "graph/graph.h"
#include "stoker/train/trainer.h"

/* Whoever uses `output` in the graph uses the mean from then on; the input "image" [N,H,W,C] is what there are views
 * of. Values are renumbered. Does nothing where settings ask for one view. */
stk_status stk_views_average(stk_graph *graph, stk_value output, const stk_views *settings);

#endif
