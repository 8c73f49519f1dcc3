/* Groups of nodes in an order in which each stands after those that it waits for, kept as groups join. So whether one
 * waits for another over others is asked of the groups that stand between the two alone, and not of the whole graph:
 * a recurrent network of many steps is long. After Pearce & Kelly, A dynamic topological sort algorithm for directed
 * acyclic graphs, 2006.
 */
#ifndef STK_PASSES_GROUP_ORDER_H
#define STK_PASSES_GROUP_ORDER_H

#include "graph/graph.h"

/* All borrowed; a group is named after its first member. */
typedef struct stk_groups {
    const stk_graph *graph;
    int32_t n_nodes;
    const int32_t *group;             /* by node: its group */
    const int32_t *next;              /* by node: the next member of its group; -1: the last */
    const int32_t *first_user, *user; /* users of node i: user[first_user[i]] .. user[first_user[i + 1] - 1] */
} stk_groups;

typedef struct stk_group_order {
    const stk_groups *groups;
    int32_t *place; /* by group */
    int32_t *at;    /* by place: the group that stands there; -1: none */
    int32_t *mark, *heap;
    int32_t n_search, n_heap;
} stk_group_order;

/* Each node a group of its own, and the nodes in an order in which they can run. */
stk_status stk_group_order_make(const stk_groups *groups, stk_group_order *out);
void stk_group_order_free(stk_group_order *order); /* accepts an empty one */
/* True when group `late` waits for group `early` over groups that are neither. Direct use is no such path. */
bool stk_group_order_waits(stk_group_order *order, int32_t early, int32_t late);
/* Before groups a and b, of which neither waits for the other over others, become one with the smaller name. */
void stk_group_order_join(stk_group_order *order, int32_t a, int32_t b);

#endif
