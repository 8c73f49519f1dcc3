/* What happens before what, where a program has several queues: one for each device, worked off side by side.
 *
 *     queue 0   a ----> b ----> d           a node waits for those of other queues that make what it reads; so
 *                 \            ^            a happens before c and d, and nothing is known of b and c
 *     queue 1       '-> c ----'
 *
 * Two values may share memory where every use of the first happens before the second is made.
 */
#ifndef STK_PASSES_PLAN_ORDER_H
#define STK_PASSES_PLAN_ORDER_H

#include "graph/graph.h"
#include "passes/plan_offsets.h"

typedef struct stk_plan_order {
    int32_t n_nodes, n_words;
    uint64_t *before;    /* [n_nodes][n_words]: bit m of row i: node m happens before node i */
    int32_t *first_wait; /* [n_nodes + 1] */
    int32_t *wait;       /* node i waits for nodes wait[first_wait[i]] .. wait[first_wait[i + 1] - 1] */
} stk_plan_order;

/* The queue of a node: the device of its first output. */
static inline int32_t stk_plan_queue(const stk_graph *graph, int32_t node)
{
    return graph->value[graph->node[node].first_out].device;
}
/* skipped: by node, those that do nothing: leaves, and names of their first input. */
stk_status stk_plan_order_make(const stk_graph *graph, const bool *skipped, stk_plan_order *out);
void stk_plan_order_free(stk_plan_order *order);

static inline bool stk_plan_before(const stk_plan_order *order, int32_t a, int32_t b)
{
    return order->before[(size_t)b * (size_t)order->n_words + (size_t)a / 64] >> (a % 64) & 1;
}

/* A buffer in a program of several queues. */
typedef struct stk_plan_use {
    int32_t device;
    uint64_t *user; /* [n_words]: the nodes that make or read what lies there */
} stk_plan_use;

/* Sets every offset, from 0 on each device; peak[STK_MOST_DEVICES]: the highest ends. Buffers whose last node is
 * n_nodes live to the end. The largest go first, each to the lowest place where it fits. */
stk_status stk_plan_pack_ordered(stk_plan_buffer *buffer, int32_t n, const stk_plan_use *use,
                                 const stk_plan_order *order, size_t *peak);

/* plan_devices.c: the same for a plan whose values have their buffers; its sizes, too. */
struct stk_plan;
stk_status stk_plan_pack_devices(const stk_graph *graph, struct stk_plan *plan, stk_plan_buffer *buffer, int32_t n);

#endif
