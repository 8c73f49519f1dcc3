/* See plan_order.h. */
#include "passes/plan_order.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

void stk_plan_order_free(stk_plan_order *order)
{
    free(order->before);
    free(order->first_wait);
    free(order->wait);
    *order = (stk_plan_order){0};
}

static uint64_t *row_of(const stk_plan_order *order, int32_t i)
{
    return order->before + (size_t)i * (size_t)order->n_words;
}

/* What happens before m, and m itself, happens before i. */
static void join(stk_plan_order *order, int32_t i, int32_t m)
{
    uint64_t *row = row_of(order, i);
    const uint64_t *other = row_of(order, m);
    for (int32_t w = 0; w < order->n_words; w++)
        row[w] |= other[w];
    row[m / 64] |= (uint64_t)1 << (m % 64);
}

/* The node that makes the value in fact; -1: it is there from the start. */
static int32_t find_maker(const stk_graph *graph, const bool *skipped, int32_t value)
{
    int32_t i = graph->value[value].node;
    while (skipped[i] && graph->node[i].n_in > 0)
        i = graph->value[graph->node[i].in[0]].node;
    return skipped[i] ? -1 : i;
}

/* Late makers first: with them the earlier ones of their queue have happened, too. */
static void add_waits(stk_plan_order *order, const stk_graph *graph, const bool *skipped, int32_t i, int32_t *n_waits)
{
    const stk_node *node = &graph->node[i];
    for (;;) {
        int32_t latest = -1;
        for (int j = 0; j < node->n_in; j++) {
            int32_t m = find_maker(graph, skipped, node->in[j]);
            if (m > latest && !stk_plan_before(order, m, i)) latest = m;
        }
        if (latest < 0) return;
        order->wait[(*n_waits)++] = latest;
        join(order, i, latest);
    }
}

stk_status stk_plan_order_make(const stk_graph *graph, const bool *skipped, stk_plan_order *out)
{
    int32_t last[STK_MOST_DEVICES], n_waits = 0;
    size_t n_in = 1, n_nodes = (size_t)graph->n_nodes;
    for (int32_t i = 0; i < graph->n_nodes; i++)
        n_in += (size_t)graph->node[i].n_in;
    *out = (stk_plan_order){.n_nodes = graph->n_nodes, .n_words = graph->n_nodes / 64 + 1};
    out->before = calloc(n_nodes * (size_t)out->n_words + 1, sizeof(*out->before));
    out->first_wait = calloc(n_nodes + 1, sizeof(*out->first_wait));
    out->wait = calloc(n_in, sizeof(*out->wait));
    if (!out->before || !out->first_wait || !out->wait) {
        stk_plan_order_free(out);
        return stk_fail_memory(n_nodes * n_nodes / 8);
    }
    memset(last, -1, sizeof(last));
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        int32_t queue = stk_plan_queue(graph, i);
        out->first_wait[i] = n_waits;
        if (skipped[i]) continue;
        if (last[queue] >= 0) join(out, i, last[queue]);
        add_waits(out, graph, skipped, i, &n_waits);
        last[queue] = i;
    }
    out->first_wait[graph->n_nodes] = n_waits;
    return STK_OK;
}

/* --- packing --- */

/* Every use of a happens before b is made; its first node makes it. */
static bool is_over(const stk_plan_buffer *a, const stk_plan_use *use, const stk_plan_buffer *b,
                    const stk_plan_order *order)
{
    const uint64_t *before = row_of(order, b->first);
    if (a->last >= order->n_nodes) return false;
    for (int32_t w = 0; w < order->n_words; w++)
        if (use->user[w] & ~before[w]) return false;
    return true;
}

typedef struct taken {
    size_t from, to;
} taken;

static int compare_taken(const void *a, const void *b)
{
    const taken *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

static _Thread_local const stk_plan_buffer *sorted; /* what compare_sizes compares */

static int compare_sizes(const void *a, const void *b)
{
    int32_t i = *(const int32_t *)a, k = *(const int32_t *)b;
    if (sorted[i].bytes != sorted[k].bytes) return sorted[i].bytes > sorted[k].bytes ? -1 : 1;
    return i < k ? -1 : 1;
}

static size_t find_gap(taken *taken_, int32_t n, size_t bytes)
{
    size_t at = 0;
    qsort(taken_, (size_t)n, sizeof(*taken_), compare_taken);
    for (int32_t i = 0; i < n && taken_[i].from < at + bytes; i++)
        if (taken_[i].to > at) at = taken_[i].to;
    return at;
}

stk_status stk_plan_pack_ordered(stk_plan_buffer *buffer, int32_t n, const stk_plan_use *use,
                                 const stk_plan_order *order, size_t *peak)
{
    int32_t *by_size = malloc(((size_t)n + 1) * sizeof(*by_size));
    taken *in_the_way = malloc(((size_t)n + 1) * sizeof(*in_the_way));
    memset(peak, 0, STK_MOST_DEVICES * sizeof(*peak));
    for (int32_t i = 0; by_size && i < n; i++)
        by_size[i] = i;
    sorted = buffer;
    if (by_size) qsort(by_size, (size_t)n, sizeof(*by_size), compare_sizes);
    for (int32_t i = 0; by_size && in_the_way && i < n; i++) {
        stk_plan_buffer *b = &buffer[by_size[i]];
        const stk_plan_use *own = &use[by_size[i]];
        int32_t n_taken = 0;
        for (int32_t k = 0; k < i; k++) {
            const stk_plan_buffer *other = &buffer[by_size[k]];
            const stk_plan_use *theirs = &use[by_size[k]];
            if (theirs->device != own->device || is_over(b, own, other, order) || is_over(other, theirs, b, order))
                continue;
            in_the_way[n_taken++] = (taken){other->offset, other->offset + other->bytes};
        }
        b->offset = find_gap(in_the_way, n_taken, b->bytes);
        if (b->offset + b->bytes > peak[own->device]) peak[own->device] = b->offset + b->bytes;
    }
    stk_status status = by_size && in_the_way ? STK_OK : stk_fail_memory((size_t)n * sizeof(*in_the_way));
    free(by_size);
    free(in_the_way);
    return status;
}
