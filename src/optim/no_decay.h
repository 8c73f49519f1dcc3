/* Which parameters go without weight decay. */
#ifndef STK_OPTIM_NO_DECAY_H
#define STK_OPTIM_NO_DECAY_H

#include "graph/graph.h"

/* parts: comma-separated, "bias,norm"; spaces around a part do not count; NULL or "": none. A part matches each
 * parameter whose name contains it. The part "norm" matches, besides, every scale and bias of a normalisation layer,
 * whatever its name ("bn1.weight"). */
bool stk_no_decay_matches(const stk_graph *graph, int32_t variable, const char *parts);

#endif
