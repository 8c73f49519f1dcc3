/* Recompute: what the forward pass made is recomputed in the backward pass instead of being kept all the time. What
 * costs next to nothing always is (recompute_light.c); the rest under a memory limit, or where layers are named.
 *
 * auto drops one value after the other: of those alive where most bytes are, the one that frees most for what making it
 * again costs, provided that the peak does not rise; that many values, or as long as the costs are a small share of the
 * step's. Copies use the same ops on the same values, so that the bits of
 * all results stay the same. A batch norm is recomputed from its statistics. Griewank & Walther, "Evaluating
 * derivatives", 2nd edition, chapter 12; Chen et al. 2016 for networks.
 */
#include "passes/recompute.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/layers.h"
#include "passes/passes.h"

/* --- auto --- */

bool stk_keeping_may_drop(const stk_keeping *k, int32_t v)
{
    const stk_node *maker = &k->graph->node[k->graph->value[v].node];
    bool is_statistic = maker->op == STK_OP_batch_norm && v != maker->first_out;
    return k->is_kept[v] && !k->is_dropped[v] && !k->is_output[v] && !k->is_update[v] && !is_statistic &&
           maker->op != STK_OP_reshape;
}

/* The value alive at the peak that frees most for its cost; refused[v]: tried before. -1: none is left. */
static int32_t find_best(stk_keeping *k, const bool *refused)
{
    int32_t best = -1;
    double best_rate = 0, flops;
    for (int32_t v = 0; v < k->n_values; v++) {
        if (!stk_keeping_may_drop(k, v) || refused[v] || k->bytes[v] == 0) continue;
        int32_t storage = k->storage[v];
        if (k->from[storage] > k->peak_at || k->to[storage] < k->peak_at) continue;
        double rate = (double)k->bytes[v] / (stk_keeping_cost(k, v, &flops) + 1);
        /* Of equals the larger one: fewer are needed. */
        if (rate < best_rate * 0.999 || (best >= 0 && rate < best_rate * 1.001 && k->bytes[v] <= k->bytes[best]))
            continue;
        best = v;
        best_rate = rate;
    }
    return best;
}

/* Drops `most` values at most, and with a budget only large ones, but parameters of fewer bits, whose costs together
 * stay within it, and which are a matter of memory, not of arithmetic. A refused value may be tried again once another
 * was dropped, a few times. */
static stk_status drop_best(stk_keeping *k, int32_t most, double budget, const volatile int *stop)
{
    enum { MOST_TRIES = 3, LEAST_BYTES = 1 << 20 };
    bool *refused = calloc((size_t)k->n_values + 1, sizeof(*refused));
    uint8_t *n_tries = calloc((size_t)k->n_values + 1, sizeof(*n_tries));
    stk_status status = STK_OK;
    double spent = 0;
    if (!refused || !n_tries) STK_TRY(stk_fail_memory((size_t)k->n_values));
    for (int32_t v = 0; v < k->n_values && budget > 0; v++)
        if (stk_desc_bytes(k->graph->value[v].desc) < LEAST_BYTES || stk_keeping_is_narrow_parameter(k->graph, v)) {
            refused[v] = true;
            n_tries[v] = MOST_TRIES;
        }
    stk_keeping_simulate(k);
    for (int32_t n = 0; n < most;) {
        size_t before = k->peak;
        STK_TRY(stk_pass_ask_stop(stop));
        int32_t v = find_best(k, refused);
        if (v < 0) break;
        double flops, cost = stk_keeping_cost(k, v, &flops);
        if (budget > 0 && (spent + cost > budget || flops > cost / 2)) {
            refused[v] = true;
            n_tries[v] = MOST_TRIES;
            continue;
        }
        k->is_dropped[v] = true;
        stk_keeping_simulate(k);
        if (k->peak <= before) {
            n++;
            spent += cost;
            for (int32_t i = 0; i < k->n_values; i++)
                refused[i] = n_tries[i] >= MOST_TRIES;
            continue;
        }
        k->is_dropped[v] = false;
        refused[v] = true;
        n_tries[v]++;
        stk_keeping_simulate(k);
    }
done:
    free(refused);
    free(n_tries);
    return status;
}

/* --- layers by name --- */

/* True when all that use v in the forward pass belong to the layer, so that v is not what it gives to the next one. */
static bool is_inside(const stk_keeping *k, const stk_layer_name *layer, int32_t v, const char *name, size_t n)
{
    const stk_graph *graph = k->graph;
    if (!stk_layer_is_within(layer[graph->value[v].node], name, n)) return false;
    for (int32_t i = 0; i < k->n_nodes; i++)
        for (int j = 0; j < graph->node[i].n_in && !k->is_backward[i]; j++)
            if (graph->node[i].in[j] == v && !stk_layer_is_within(layer[i], name, n)) return false;
    return true;
}

static stk_status drop_layer(stk_keeping *k, const stk_layer_name *layer, const char *name, size_t n)
{
    bool found = false;
    for (int32_t i = 0; i < k->n_nodes; i++)
        found |= stk_layer_is_within(layer[i], name, n);
    if (!found) return stk_fail(STK_NOT_FOUND, "no layer '%.*s' to recompute", (int)n, name);
    for (int32_t v = 0; v < k->n_values; v++)
        if (stk_keeping_may_drop(k, v) && is_inside(k, layer, v, name, n)) k->is_dropped[v] = true;
    return STK_OK;
}

static stk_status drop_layers(stk_keeping *k, const char *names)
{
    stk_status status = STK_OK;
    stk_layer_name *layer = malloc(((size_t)k->n_nodes + 1) * sizeof(*layer));
    if (!layer) return stk_fail_memory((size_t)k->n_nodes * sizeof(*layer));
    STK_TRY(stk_graph_find_layers(k->graph, layer));
    for (const char *at = names; *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        if (n > 0) STK_TRY(drop_layer(k, layer, at, n));
        at += n;
    }
done:
    free(layer);
    return status;
}

/* --- writing it down --- */

/* Adds the copy of node i; made[v]: the first value of each copy so far. */
static stk_status add_copy(const stk_keeping *k, stk_graph *graph, int32_t i, int32_t *made)
{
    const int32_t *in;
    int32_t room[5];
    stk_value values[64];
    int n_in = stk_keeping_inputs(k, i + k->n_nodes, &in, room);
    if (n_in > 64) return stk_fail(STK_UNSUPPORTED, "a node with %d inputs cannot be recomputed", n_in);
    for (int j = 0; j < n_in; j++) {
        int32_t v = stk_keeping_read(k, i + k->n_nodes, in[j]);
        values[j] = stk_value_of(graph, v < k->n_values ? v : made[v - k->n_values]);
    }
    stk_node source = graph->node[i];
    stk_op op = source.op == STK_OP_batch_norm ? STK_OP_batch_norm_apply : source.op;
    stk_value x = stk_graph_add(graph, op, &source.attrs, values, n_in);
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    graph->node[graph->n_nodes - 1].barrier = true;
    graph->node[graph->n_nodes - 1].backward = true;
    for (int j = 0; j < source.n_out; j++)
        made[source.first_out + j] = x.id + j;
    return STK_OK;
}

/* Takes out of the order what no root needs any more: an original of which everybody reads the copy. */
static stk_status leave_out_unread(const stk_graph *graph, int32_t *order, int32_t *n)
{
    bool *needed = calloc((size_t)graph->n_nodes + 1, sizeof(*needed));
    int32_t n_kept = 0;
    if (!needed) return stk_fail_memory((size_t)graph->n_nodes);
    for (int i = 0; i < graph->n_roots; i++) {
        needed[graph->value[graph->root[i].value].node] = true;
        if (graph->root[i].variable >= 0) needed[graph->value[graph->root[i].variable].node] = true;
    }
    for (int32_t at = *n - 1; at >= 0; at--) {
        const stk_node *node = &graph->node[order[at]];
        for (int j = 0; j < node->n_in && needed[order[at]]; j++)
            needed[graph->value[node->in[j]].node] = true;
    }
    for (int32_t at = 0; at < *n; at++)
        if (needed[order[at]]) order[n_kept++] = order[at];
    *n = n_kept;
    free(needed);
    return STK_OK;
}

static stk_status write_copies(stk_keeping *k, stk_graph *graph)
{
    stk_status status = STK_OK;
    int32_t *made = malloc(((size_t)k->n_values + 1) * sizeof(*made));
    if (!made) return stk_fail_memory((size_t)k->n_values * sizeof(*made));
    stk_keeping_walk(k);
    for (int32_t at = 0; at < k->n_order; at++) {
        int32_t node = k->order[at];
        if (node >= k->n_nodes) {
            STK_TRY(add_copy(k, graph, node - k->n_nodes, made));
            k->order[at] = graph->n_nodes - 1;
            continue;
        }
        int32_t *in = graph->node[node].in;
        for (int j = 0; j < graph->node[node].n_in; j++) {
            int32_t v = stk_keeping_read(k, node, in[j]);
            if (v >= k->n_values) in[j] = made[v - k->n_values];
        }
    }
    STK_TRY(leave_out_unread(graph, k->order, &k->n_order));
    STK_TRY(stk_graph_reorder(graph, k->order, k->n_order));
done:
    free(made);
    return status;
}

stk_status pass_recompute(stk_graph *graph, const stk_pass_options *options)
{
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    stk_status status = STK_OK;
    stk_keeping k;
    int32_t n_light;
    STK_RETURN_IF_ERROR(stk_keeping_make(graph, &k));
    stk_recompute_report report = {0};
    STK_TRY(stk_keeping_drop_light(&k, &n_light));
    if (n_light > 0) stk_keeping_walk(&k);
    double light_flops = k.flops;
    for (int32_t v = 0; v < k.n_values; v++)
        report.n_kept += stk_keeping_may_drop(&k, v);
    if (options && options->recompute && !strcmp(options->recompute, "auto"))
        STK_TRY(drop_best(&k, options->recompute_most, options->recompute_share * stk_keeping_step_cost(&k),
                          options->stop));
    else if (options && options->recompute)
        STK_TRY(drop_layers(&k, options->recompute));
    for (int32_t v = 0; v < k.n_values; v++)
        report.n_dropped += k.is_dropped[v];
    if (report.n_dropped > 0) STK_TRY(write_copies(&k, graph));
    report.n_dropped -= n_light;
    report.flops = k.flops - light_flops;
    if (options && options->recompute_report) *options->recompute_report = report;
done:
    stk_keeping_free(&k);
    return status;
}
