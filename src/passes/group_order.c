/* See passes/group_order.h. */
#include "passes/group_order.h"

#include <stdlib.h>

#include "base/error.h"

stk_status stk_group_order_make(const stk_groups *groups, stk_group_order *out)
{
    size_t n = (size_t)groups->n_nodes + 1;
    *out = (stk_group_order){.groups = groups};
    out->place = malloc(n * sizeof(*out->place));
    out->at = malloc(n * sizeof(*out->at));
    out->mark = calloc(n, sizeof(*out->mark));
    out->heap = malloc(n * sizeof(*out->heap));
    if (!out->place || !out->at || !out->mark || !out->heap) return stk_fail_memory(n * sizeof(*out->heap));
    for (int32_t i = 0; i < groups->n_nodes; i++)
        out->place[i] = out->at[i] = i;
    return STK_OK;
}

void stk_group_order_free(stk_group_order *order)
{
    free(order->place);
    free(order->at);
    free(order->mark);
    free(order->heap);
}

/* --- the groups that are still to be looked at; the one that stands first comes first --- */

static void push(stk_group_order *o, int32_t group)
{
    const int32_t *place = o->place;
    if (o->mark[group] == o->n_search) return;
    o->mark[group] = o->n_search;
    int32_t i = o->n_heap++;
    for (; i > 0 && place[group] < place[o->heap[(i - 1) / 2]]; i = (i - 1) / 2)
        o->heap[i] = o->heap[(i - 1) / 2];
    o->heap[i] = group;
}

static int32_t pop(stk_group_order *o)
{
    const int32_t *place = o->place;
    int32_t top = o->heap[0], last = o->heap[--o->n_heap], i = 0;
    for (int32_t child; (child = 2 * i + 1) < o->n_heap; i = child) {
        if (child + 1 < o->n_heap && place[o->heap[child + 1]] < place[o->heap[child]]) child++;
        if (place[last] <= place[o->heap[child]]) break;
        o->heap[i] = o->heap[child];
    }
    o->heap[i] = last;
    return top;
}

/* Adds the groups that `group` reads and that stand after `early`; true when it reads `early` itself. */
static bool push_makers(stk_group_order *o, int32_t group, int32_t early)
{
    const stk_groups *g = o->groups;
    bool reads_early = false;
    for (int32_t i = group; i >= 0; i = g->next[i]) {
        const stk_node *node = &g->graph->node[i];
        for (int j = 0; j < node->n_in; j++) {
            int32_t maker = g->group[g->graph->value[node->in[j]].node];
            reads_early |= maker == early;
            if (maker != group && o->place[maker] > o->place[early]) push(o, maker);
        }
    }
    return reads_early;
}

/* Those that stand near `early` are looked at first: a path, where there is one, mostly begins there. */
bool stk_group_order_waits(stk_group_order *o, int32_t early, int32_t late)
{
    if (o->place[early] > o->place[late]) return false;
    o->n_search++;
    o->n_heap = 0;
    push_makers(o, late, early);
    while (o->n_heap > 0)
        if (push_makers(o, pop(o), early)) return true;
    return false;
}

/* Marks the groups before `end` that wait for `first`. */
static void mark_waiting(stk_group_order *o, int32_t first, int32_t end)
{
    const stk_groups *g = o->groups;
    o->n_search++;
    o->n_heap = 0;
    for (int32_t group = first; group >= 0; group = o->n_heap > 0 ? pop(o) : -1)
        for (int32_t i = group; i >= 0; i = g->next[i])
            for (int32_t k = g->first_user[i]; k < g->first_user[i + 1]; k++) {
                int32_t user = g->group[g->user[k]];
                if (user != group && o->place[user] < end) push(o, user);
            }
}

static void put(stk_group_order *o, int32_t group, int32_t place)
{
    o->at[place] = group;
    o->place[group] = place;
}

/* Between the two stand groups that wait for the first, which come after the new group, and others, some of which the
 * second waits for, which come before it. */
void stk_group_order_join(stk_group_order *o, int32_t a, int32_t b)
{
    int32_t name = a < b ? a : b, n_after = 0;
    int32_t first = o->place[a] < o->place[b] ? a : b, begin = o->place[first], end = o->place[first == a ? b : a];
    int32_t to = begin, *after = o->heap;
    mark_waiting(o, first, end);
    for (int32_t p = begin + 1; p < end; p++) {
        int32_t group = o->at[p];
        if (group < 0) continue;
        if (o->mark[group] == o->n_search)
            after[n_after++] = group;
        else
            put(o, group, to++);
    }
    put(o, name, to++);
    for (int32_t i = 0; i < n_after; i++)
        put(o, after[i], to++);
    while (to <= end)
        o->at[to++] = -1;
}
