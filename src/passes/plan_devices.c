/* Packing the buffers of several devices: who uses each, then plan_order.h. */
#include <stdlib.h>

#include "base/error.h"
#include "passes/plan.h"

typedef struct packing {
    const stk_graph *graph;
    stk_plan *plan;
    stk_plan_buffer *buffer;
    int32_t n;
} packing;

static void note_user(const stk_plan *plan, const stk_plan_use *use, int32_t value, int32_t node)
{
    const stk_planned_value *v = &plan->value[value];
    if (v->place == STK_PLACE_ARENA) use[v->buffer].user[node / 64] |= (uint64_t)1 << (node % 64);
}

/* user: [n_buffers][n_words], zeroed. */
static void find_users(const packing *p, stk_plan_use *use, uint64_t *user)
{
    const stk_graph *graph = p->graph;
    for (int32_t k = 0; k < p->n; k++) {
        const stk_plan_buffer *b = &p->buffer[k];
        int32_t device = b->value < 0 ? stk_plan_queue(graph, b->first) : graph->value[b->value].device;
        use[k] = (stk_plan_use){device, user + (size_t)k * (size_t)p->plan->order.n_words};
        use[k].user[b->first / 64] |= (uint64_t)1 << (b->first % 64);
    }
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        for (int j = 0; !p->plan->skipped[i] && j < node->n_in; j++)
            note_user(p->plan, use, node->in[j], i);
        for (int j = 0; !p->plan->skipped[i] && j < node->n_out; j++)
            note_user(p->plan, use, node->first_out + j, i);
    }
}

/* The bound is that of each device's buffers as if the nodes ran in their order, which they may. */
static stk_status find_bounds(const packing *p, const stk_plan_use *use)
{
    stk_plan *plan = p->plan;
    stk_plan_buffer *own = malloc(((size_t)p->n + 1) * sizeof(*own));
    stk_status status = own ? STK_OK : stk_fail_memory((size_t)p->n * sizeof(*own));
    for (int32_t d = plan->n_devices - 1; d >= 0 && status == STK_OK; d--) {
        int32_t n = 0;
        size_t bound;
        for (int32_t k = 0; k < p->n; k++)
            if (use[k].device == d) own[n++] = p->buffer[k];
        status = stk_plan_find_bound(own, n, p->graph->n_nodes, &bound, &plan->peak_node);
        if (status == STK_OK) plan->lower_bound_bytes += bound;
    }
    free(own);
    return status;
}

stk_status stk_plan_pack_devices(const stk_graph *graph, stk_plan *plan, stk_plan_buffer *buffer, int32_t n_buffers)
{
    packing p = {graph, plan, buffer, n_buffers};
    size_t n = (size_t)n_buffers + 1;
    stk_plan_use *use = calloc(n, sizeof(*use));
    uint64_t *user = calloc(n * (size_t)plan->order.n_words, sizeof(*user));
    stk_status status = STK_OK;
    if (!use || !user) STK_TRY(stk_fail_memory(n * (size_t)plan->order.n_words * sizeof(*user)));
    find_users(&p, use, user);
    STK_TRY(find_bounds(&p, use));
    STK_TRY(stk_plan_pack_ordered(buffer, n_buffers, use, &plan->order, plan->device_bytes));
    for (int32_t d = 0; d < plan->n_devices; d++)
        plan->arena_bytes += plan->device_bytes[d];
done:
    free(use);
    free(user);
    return status;
}
