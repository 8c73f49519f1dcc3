/* The inside of pass_recompute: which values are kept for the backward pass, and what happens where some are dropped.
 *
 *   forward          | backward
 *   a -> b -> c -> l | ... db(b, dc) ... da(a, db)          b is kept from its making until db
 *   a -> b -> c -> l | ... b' = remake(a), db(b', dc) ...   b is dropped after c, and recomputed from what is kept
 *
 * A walk gives the order of such a step: the nodes of the graph, and copies of forward nodes right before the first
 * that needs them. A copy's inputs are kept values, or copies in turn. Numbers from n_nodes (n_values) on stand for the
 * copies of nodes (values).
 */
#ifndef STK_PASSES_RECOMPUTE_H
#define STK_PASSES_RECOMPUTE_H

#include "graph/graph.h"

typedef struct stk_keeping {
    const stk_graph *graph;
    int32_t n_nodes, n_values;
    bool *is_backward; /* by node: depends on what autodiff made */
    bool *is_kept;     /* by value: made forward, read backward */
    bool *is_dropped;  /* by value: is_kept, and to be recomputed */
    bool *is_output;   /* by value: a named root */
    bool *is_update;   /* by value: a root that a variable becomes; it is written there */

    /* of the last walk */
    int32_t *order, n_order;
    bool *is_copied; /* by node */
    double flops;    /* of all copies */

    /* of the last simulation */
    size_t peak;
    int32_t peak_at;    /* place in order */
    size_t *bytes;      /* by value, copies too: what it takes as stored */
    int32_t *from, *to; /* by value, copies too: places in order, both included */
    int32_t *storage;   /* by value, copies too: whose memory it is (reshapes are other names) */
    size_t *change;     /* by place */
} stk_keeping;

/* Whether v is kept and could be recomputed. */
bool stk_keeping_may_drop(const stk_keeping *k, int32_t v);
/* Whether v is a parameter of fewer bits: kept without a limit, it costs half of the parameter's bytes, and making it
 * again takes as long as the first time. */
bool stk_keeping_is_narrow_parameter(const stk_graph *graph, int32_t v);
/* Drops what is always recomputed; see recompute_light.c. */
stk_status stk_keeping_drop_light(stk_keeping *k, int32_t *n_dropped);

stk_status stk_keeping_make(const stk_graph *graph, stk_keeping *out);
void stk_keeping_free(stk_keeping *keeping);

/* What input value v is for node (a copy where n_nodes or more): v itself or its copy. */
int32_t stk_keeping_read(const stk_keeping *k, int32_t node, int32_t v);
/* Inputs of a node or copy, in most[n_in or more]; returns how many. A batch norm's copy reads its statistics too. */
int stk_keeping_inputs(const stk_keeping *k, int32_t node, const int32_t **in, int32_t room[5]);
void stk_keeping_walk(stk_keeping *k);
/* Walks, and finds the most bytes alive at once, scratch memory not counted. */
void stk_keeping_simulate(stk_keeping *k);
/* What recomputing v would cost next to what is recomputed already: flops, and bytes at 6 flops each. *flops: the first
 * of them. */
double stk_keeping_cost(stk_keeping *k, int32_t v, double *flops);
/* Of the whole step with nothing recomputed, counted alike. */
double stk_keeping_step_cost(const stk_keeping *k);

#endif
