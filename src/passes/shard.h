/* ZeRO-1 (Rajbhandari et al. 2020) as a rewriting of the update: each rank updates a part of each large parameter, and
 * has the optimiser's state for that part alone.
 *
 *   before:  grad [-> accumulate] -> scale, clip, update(p, m, v) -> p, m, v
 *   after:   grad [-> accumulate] -> rank_scatter -> scale, clip, update(rank_part(p), m, v) -> part -> rank_gather ->
 * p
 *                                                                                            -> m, v: parts
 *
 * What comes behind a gradient is followed element by element, after Xu et al. 2020, "Automatic Cross-Replica Sharding
 * of Weight Update": element-wise ops and the optimisers' own work on parts; sums over all elements, as norms are,
 * become sums over ranks. A gradient that meets anything else (Muon's products, an output) stays whole, and so does
 * its update. So no optimiser is named here.
 */
#ifndef STK_PASSES_SHARD_H
#define STK_PASSES_SHARD_H

#include "graph/graph.h"

/* Elements from which a parameter is shared out. */
enum { STK_SHARD_LEAST = 1 << 14 };

typedef struct stk_sharder stk_sharder;

/* Looks which gradients' sums (nodes accumulate of grad nodes) can be shared out. narrow: those in f32 go from rank to
 * rank in bf16. */
stk_status stk_shard_new(stk_graph *graph, int n_ranks, bool narrow, stk_sharder **out);
/* Accepts NULL. */
void stk_shard_free(stk_sharder *sharder);
/* Whether that of node i_sum is. sharder may be NULL: none is. */
bool stk_shard_takes(const stk_sharder *sharder, int32_t i_sum);
/* From now on the sum's part is that of `value`: a rank_scatter, made now. */
stk_status stk_shard_begin(stk_sharder *sharder, int32_t i_sum, int32_t value);
/* All have begun: the updates, behind them. Roots are redirected; the graph is to be rewritten. */
stk_status stk_shard_finish(stk_sharder *sharder);

#endif
