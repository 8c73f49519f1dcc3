/* See recompute.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "passes/recompute.h"

/* --- the two halves of the step --- */

static bool is_leaf(const stk_node *node)
{
    return node->op == STK_OP_input || node->op == STK_OP_variable || node->op == STK_OP_constant;
}

static void mark_halves(stk_keeping *k)
{
    const stk_graph *graph = k->graph;
    for (int32_t i = 0; i < k->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        k->is_backward[i] = node->backward;
        for (int j = 0; j < node->n_in; j++)
            k->is_backward[i] |= k->is_backward[graph->value[node->in[j]].node];
        for (int j = 0; j < node->n_in && k->is_backward[i]; j++) {
            int32_t maker = graph->value[node->in[j]].node;
            k->is_kept[node->in[j]] |= !k->is_backward[maker] && !is_leaf(&graph->node[maker]);
        }
    }
    for (int i = 0; i < graph->n_roots; i++)
        (graph->root[i].variable >= 0 ? k->is_update : k->is_output)[graph->root[i].value] = true;
}

stk_status stk_keeping_make(const stk_graph *graph, stk_keeping *out)
{
    size_t n = (size_t)graph->n_nodes + 1, v = (size_t)graph->n_values + 1;
    *out = (stk_keeping){.graph = graph, .n_nodes = graph->n_nodes, .n_values = graph->n_values};
    out->is_backward = calloc(n, sizeof(*out->is_backward));
    out->is_kept = calloc(v, sizeof(*out->is_kept));
    out->is_dropped = calloc(v, sizeof(*out->is_dropped));
    out->is_output = calloc(v, sizeof(*out->is_output));
    out->is_update = calloc(v, sizeof(*out->is_update));
    out->order = malloc(2 * n * sizeof(*out->order));
    out->is_copied = calloc(n, sizeof(*out->is_copied));
    out->bytes = calloc(2 * v, sizeof(*out->bytes));
    out->from = calloc(2 * v, sizeof(*out->from));
    out->to = calloc(2 * v, sizeof(*out->to));
    out->storage = calloc(2 * v, sizeof(*out->storage));
    out->change = calloc(2 * n + 2, sizeof(*out->change));
    if (!out->is_backward || !out->is_kept || !out->is_dropped || !out->is_output || !out->is_update || !out->order ||
        !out->is_copied || !out->bytes || !out->from || !out->to || !out->storage || !out->change) {
        stk_keeping_free(out);
        return stk_fail_memory(v * sizeof(*out->bytes));
    }
    mark_halves(out);
    return STK_OK;
}

void stk_keeping_free(stk_keeping *k)
{
    free(k->is_backward);
    free(k->is_kept);
    free(k->is_dropped);
    free(k->is_output);
    free(k->is_update);
    free(k->order);
    free(k->is_copied);
    free(k->bytes);
    free(k->from);
    free(k->to);
    free(k->storage);
    free(k->change);
    *k = (stk_keeping){0};
}

/* --- the walk --- */

/* Statistics of a batch norm are small, always kept, and what its copy is made from. */
static bool is_statistic(const stk_graph *graph, int32_t v)
{
    const stk_node *node = &graph->node[graph->value[v].node];
    return node->op == STK_OP_batch_norm && v != node->first_out;
}

/* True when a copy reads v itself. */
static bool is_there(const stk_keeping *k, int32_t v)
{
    int32_t maker = k->graph->value[v].node;
    return is_leaf(&k->graph->node[maker]) || k->is_backward[maker] || is_statistic(k->graph, v) ||
           (k->is_kept[v] && !k->is_dropped[v]);
}

int32_t stk_keeping_read(const stk_keeping *k, int32_t node, int32_t v)
{
    if (node >= k->n_nodes) return is_there(k, v) ? v : v + k->n_values;
    return k->is_backward[node] && k->is_dropped[v] ? v + k->n_values : v;
}

int stk_keeping_inputs(const stk_keeping *k, int32_t node, const int32_t **in, int32_t room[5])
{
    const stk_node *source = &k->graph->node[node >= k->n_nodes ? node - k->n_nodes : node];
    *in = source->in;
    if (node < k->n_nodes || source->op != STK_OP_batch_norm) return source->n_in;
    memcpy(room, source->in, 3 * sizeof(*room));
    room[3] = source->first_out + 1;
    room[4] = source->first_out + 2;
    *in = room;
    return 5;
}

static double node_cost(const stk_keeping *k, int32_t i, double *flops)
{
    enum { FLOPS_A_BYTE = 6 }; /* what processors of today compute while they move a byte; in 16 bits twice as much */
    const stk_graph *graph = k->graph;
    const stk_node *node = &graph->node[i];
    stk_tensor_desc in[STK_MOST_INPUTS], out[STK_MOST_OUTPUTS];
    *flops = 0;
    if (node->op == STK_OP_reshape || node->n_in > 64 || node->n_out > 16) return 0;
    stk_op_call call = stk_graph_call(graph, i, in, out);
    stk_cost cost = stk_op_cost(&call);
    *flops = node->op == STK_OP_batch_norm ? cost.flops / 2 : cost.flops;
    /* Element-wise nodes mostly run in groups that keep what is between them in registers. */
    if (stk_op_get_rule(node->op)->kind == STK_KIND_ELEMENT) cost.bytes = (double)stk_desc_bytes(out[0]);
    bool is_narrow = node->n_out > 0 && stk_dtype_bytes(out[0].dtype) == 2;
    return *flops + (is_narrow ? 2 : 1) * FLOPS_A_BYTE * cost.bytes;
}

/* Adds the copy of node i to the order, after copies of what it needs; returns the cost of all of them. */
static double copy_node(stk_keeping *k, int32_t i)
{
    int32_t room[5];
    const int32_t *in;
    double cost = 0, flops;
    if (k->is_copied[i]) return 0;
    k->is_copied[i] = true;
    int n_in = stk_keeping_inputs(k, i + k->n_nodes, &in, room);
    for (int j = 0; j < n_in; j++)
        if (!is_there(k, in[j])) cost += copy_node(k, k->graph->value[in[j]].node);
    k->order[k->n_order++] = i + k->n_nodes;
    cost += node_cost(k, i, &flops);
    k->flops += flops;
    return cost;
}

void stk_keeping_walk(stk_keeping *k)
{
    const stk_graph *graph = k->graph;
    memset(k->is_copied, 0, (size_t)k->n_nodes * sizeof(*k->is_copied));
    k->n_order = 0;
    k->flops = 0;
    for (int32_t i = 0; i < k->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        for (int j = 0; j < node->n_in && k->is_backward[i]; j++)
            if (k->is_dropped[node->in[j]]) copy_node(k, graph->value[node->in[j]].node);
        k->order[k->n_order++] = i;
    }
}

double stk_keeping_step_cost(const stk_keeping *k)
{
    double sum = 0, flops;
    for (int32_t i = 0; i < k->n_nodes; i++)
        sum += node_cost(k, i, &flops);
    return sum;
}

double stk_keeping_cost(stk_keeping *k, int32_t v, double *flops)
{
    int32_t n_order = k->n_order;
    double before = k->flops;
    k->is_dropped[v] = true;
    double cost = copy_node(k, k->graph->value[v].node);
    k->is_dropped[v] = false;
    for (int32_t i = n_order; i < k->n_order; i++)
        k->is_copied[k->order[i] - k->n_nodes] = false;
    k->n_order = n_order;
    *flops = k->flops - before;
    k->flops = before;
    return cost;
}

/* --- the simulation --- */

static bool is_element(const stk_node *node)
{
    return stk_op_get_rule(node->op)->kind == STK_KIND_ELEMENT;
}

/* May write where an input was that is not read again. */
static bool works_in_place(const stk_node *node)
{
    return is_element(node) || node->op == STK_OP_batch_norm || node->op == STK_OP_batch_norm_apply ||
           node->op == STK_OP_batch_norm_grad || node->op == STK_OP_softmax || node->op == STK_OP_softmax_grad ||
           (node->op == STK_OP_scatter_add && node->n_in == 3);
}

static const stk_node *source_of(const stk_keeping *k, int32_t node)
{
    return &k->graph->node[node >= k->n_nodes ? node - k->n_nodes : node];
}

/* Element-wise values whose users are all of their group are never stored: their bytes stay 0. */
static void find_stored(stk_keeping *k)
{
    const stk_graph *graph = k->graph;
    memset(k->bytes, 0, 2 * (size_t)k->n_values * sizeof(*k->bytes));
    for (int32_t at = 0; at < k->n_order; at++) {
        int32_t node = k->order[at], room[5];
        const stk_node *source = source_of(k, node);
        const int32_t *in;
        int n_in = stk_keeping_inputs(k, node, &in, room);
        bool is_late = node >= k->n_nodes || k->is_backward[node];
        for (int j = 0; j < n_in; j++) {
            int32_t v = stk_keeping_read(k, node, in[j]);
            const stk_node *maker = &graph->node[graph->value[in[j]].node];
            bool made_late = v >= k->n_values || k->is_backward[graph->value[in[j]].node];
            bool is_through = maker->op == STK_OP_broadcast || maker->op == STK_OP_constant;
            bool together = is_element(source) && (is_through || (is_element(maker) && made_late == is_late));
            if (!together) k->bytes[v] = stk_desc_bytes(graph->value[in[j]].desc);
        }
    }
    for (int32_t v = 0; v < k->n_values; v++) {
        const stk_node *maker = &graph->node[graph->value[v].node];
        if (k->is_output[v]) k->bytes[v] = stk_desc_bytes(graph->value[v].desc);
        if (maker->op == STK_OP_input || maker->op == STK_OP_variable || k->is_update[v]) k->bytes[v] = 0;
    }
}

/* Sums over micro-batches live from the start of the first to the end of the last, wherever they stand in the order. */
static void keep_sums(stk_keeping *k)
{
    int32_t last = -1;
    for (int32_t at = 0; at < k->n_order; at++)
        if (source_of(k, k->order[at])->op == STK_OP_accumulate) last = at;
    for (int32_t at = 0; at <= last; at++) {
        const stk_node *source = source_of(k, k->order[at]);
        int32_t v = k->storage[source->first_out];
        if (source->op == STK_OP_carry || (source->op == STK_OP_accumulate && v == source->first_out)) k->from[v] = 0;
        if (source->op == STK_OP_accumulate && k->to[v] < last) k->to[v] = last;
    }
}

/* Where a value lies: reshapes and what is added to a carry are other names of an input. */
static int32_t storage_of(const stk_keeping *k, int32_t node, const int32_t *in, int n_in, int i_out)
{
    const stk_node *source = source_of(k, node);
    int i = -1;
    if (source->op == STK_OP_reshape || (source->op == STK_OP_accumulate && source->attrs.accumulate.in_place)) i = 0;
    if (source->op == STK_OP_linear_cross_entropy_grad && n_in == 5 && i_out == 1) i = 4;
    if (i >= 0) return k->storage[stk_keeping_read(k, node, in[i])];
    return source->first_out + i_out + (node >= k->n_nodes ? k->n_values : 0);
}

static void find_lifetimes(stk_keeping *k)
{
    for (int32_t at = 0; at < k->n_order; at++) {
        int32_t node = k->order[at], room[5];
        const stk_node *source = source_of(k, node);
        const int32_t *in;
        int n_in = stk_keeping_inputs(k, node, &in, room);
        int32_t shift = node >= k->n_nodes ? k->n_values : 0;
        for (int j = 0; j < n_in; j++)
            k->to[k->storage[stk_keeping_read(k, node, in[j])]] = at;
        for (int j = 0; j < source->n_out; j++) {
            int32_t v = source->first_out + j + shift;
            k->from[v] = k->to[v] = at;
            k->storage[v] = storage_of(k, node, in, n_in, j);
        }
    }
    for (int32_t v = 0; v < k->n_values; v++)
        if (k->is_output[v]) k->to[k->storage[v]] = k->n_order;
    keep_sums(k);
}

/* A value made over a dying input counts from the next place on. */
static void start_in_place(stk_keeping *k)
{
    for (int32_t at = 0; at < k->n_order; at++) {
        int32_t node = k->order[at], room[5];
        const stk_node *source = source_of(k, node);
        const int32_t *in;
        if (!works_in_place(source)) continue;
        int n_in = stk_keeping_inputs(k, node, &in, room);
        int32_t out = source->first_out + (node >= k->n_nodes ? k->n_values : 0);
        for (int j = 0; j < n_in; j++) {
            int32_t v = k->storage[stk_keeping_read(k, node, in[j])];
            if (k->to[v] != at || k->bytes[v] == 0 || k->bytes[v] != k->bytes[out]) continue;
            k->from[out] = at + 1;
            break;
        }
    }
}

void stk_keeping_simulate(stk_keeping *k)
{
    stk_keeping_walk(k);
    find_stored(k);
    find_lifetimes(k);
    start_in_place(k);
    size_t alive = 0;
    memset(k->change, 0, ((size_t)k->n_order + 2) * sizeof(*k->change));
    for (int32_t at = 0; at < k->n_order; at++) {
        const stk_node *source = source_of(k, k->order[at]);
        int32_t shift = k->order[at] >= k->n_nodes ? k->n_values : 0;
        for (int j = 0; j < source->n_out; j++) {
            int32_t v = source->first_out + j + shift;
            if (k->storage[v] != v || k->from[v] > k->to[v]) continue;
            k->change[k->from[v]] += k->bytes[v];
            k->change[k->to[v] + 1] -= k->bytes[v];
        }
    }
    k->peak = 0;
    k->peak_at = 0;
    for (int32_t at = 0; at <= k->n_order; at++) {
        alive += k->change[at];
        if (alive <= k->peak) continue;
        k->peak = alive;
        k->peak_at = at;
    }
}
