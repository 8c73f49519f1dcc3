/* Packing: buffers with lifetimes get offsets in one arena, none overlapping another that is alive at the same time.
 *
 *     offset ^   +---------+
 *            |   |    b    |  +----+        No plan needs less than the bound: the largest sum of bytes that are
 *            |   +---------+  | d  |        alive at one node. Packing to the bound is not always possible, and
 *            |   +----+ +-----+----+        finding the best packing is NP-hard.
 *            |   | a  | |    c     |
 *            +---+----+-+----------+--> node
 *
 * Buffers are taken one after the other, each at the lowest gap in which it fits (or in the tightest one). Several
 * orders are tried: by size (Pisarchyk & Lee 2020), by size times lifetime, by lifetime, by time. Where none comes near
 * the bound, the buffer that reaches highest moves forward in the best order, and so on for a fixed number of tries,
 * of which fewer are made where there are many thousands of buffers.
 * The same buffers always give the same offsets.
 */
#ifndef STK_PASSES_PLAN_OFFSETS_H
#define STK_PASSES_PLAN_OFFSETS_H

#include "stoker/types.h"

typedef struct stk_plan_buffer {
    size_t bytes, offset;
    int32_t first, last; /* node numbers, both included */
    int32_t value;       /* one of its values, for people; -1: scratch of node `first` */
} stk_plan_buffer;

/* The largest sum of bytes alive at one of the nodes 0 .. n_nodes; *at, which may be NULL: that node. */
stk_status stk_plan_find_bound(const stk_plan_buffer *buffer, int32_t n, int32_t n_nodes, size_t *bound, int32_t *at);
/* Sets every offset; *peak is the highest end. bound: as found above; reaching it ends the search. */
stk_status stk_plan_pack(stk_plan_buffer *buffer, int32_t n, size_t bound, size_t *peak);

#endif
