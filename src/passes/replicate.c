/* Replicate: ranks share each batch, and what they find adds up.
 *
 *   before:  grad(loss, w) -> accumulate -> clip, update               loss -> accumulate -> output
 *   after:   grad(loss, w) [-> accumulate] -> rank_sum -> clip, update  loss [-> accumulate] -> rank_sum -> output
 *
 * The sums over micro-batches stay where there are any. Pass accumulate has marked all sums over parts of the batch, of
 * which ranks' shares are one more kind. Gradients come in the order of the backward pass, the last layer's first;
 * small ones go together, so that a call is worth its way, and large ones alone, so that nothing is copied. Running
 * statistics of batch norms become the means over ranks, so that every rank has the same variables after each step (of
 * strict steps pass accumulate has seen to that); or
 * their statistics are sums over ranks in the first place. Where the optimiser's state is shared out, each rank gets
 * its part of a large gradient's sum alone: shard.h. With local steps (train/outer.h) each rank keeps its own
 * gradients.
 */
#include <stdlib.h>

#include "base/error.h"
#include "ops/batch_norm.h"
#include "passes/parts.h"
#include "passes/passes.h"
#include "passes/shard.h"

/* In bytes: what goes alone, and what goes together at most. */
enum { LARGE = 256 << 10, TOGETHER = 1 << 20 };

typedef struct replicator {
    stk_graph *graph;
    int n_ranks;
    stk_sharder *sharder; /* NULL: optimisers' state is not shared out */
    bool narrow;          /* what is added up now goes from rank to rank in bf16 */
    bool local;           /* gradients are each rank's own */
    bool in_micro;        /* the sums over micro-batches stay */
    int32_t n_nodes;
    bool *behind_sum; /* by value: some sum comes before it */
    /* Those that go together next. */
    stk_value value[STK_MOST_RANK_SUMS];
    int32_t from[STK_MOST_RANK_SUMS]; /* whose readers then read the sum */
    int n;
    size_t bytes;
} replicator;

static stk_status sum_up(const replicator *r, const stk_value *value, const int32_t *from, int n, bool mean)
{
    stk_value x[STK_MOST_RANK_SUMS], sum[STK_MOST_RANK_SUMS];
    stk_graph *graph = r->graph;
    int32_t n_nodes = graph->n_nodes;
    stk_dtype dtype = stk_value_dtype(value[0]);
    for (int i = 0; i < n; i++)
        x[i] = r->narrow && dtype == STK_F32 ? stk_cast_to(value[i], STK_BF16) : value[i];
    stk_rank_sum(x, n, sum);
    for (int i = 0; i < n; i++) {
        if (mean) sum[i] = stk_scale_by(sum[i], 1 / (double)r->n_ranks);
        sum[i] = stk_cast_to(sum[i], dtype);
    }
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    for (int i = 0; i < n; i++)
        stk_part_redirect(graph, n_nodes, from[i], sum[i].id);
    return STK_OK;
}

static stk_status flush(replicator *r, bool mean)
{
    int n = r->n;
    r->n = 0;
    r->bytes = 0;
    return n > 0 ? sum_up(r, r->value, r->from, n, mean) : STK_OK;
}

static stk_status put(replicator *r, int32_t value, int32_t from, bool mean)
{
    stk_tensor_desc desc = r->graph->value[value].desc;
    size_t bytes = stk_desc_bytes(desc) / (r->narrow ? 2 : 1);
    stk_value x = stk_value_of(r->graph, value);
    if (bytes >= LARGE) return sum_up(r, &x, &from, 1, mean);
    bool differs = r->n > 0 && r->graph->value[r->value[0].id].desc.dtype != desc.dtype;
    if (differs || r->bytes + bytes > TOGETHER || r->n == STK_MOST_RANK_SUMS) STK_RETURN_IF_ERROR(flush(r, mean));
    r->value[r->n] = x;
    r->from[r->n++] = from;
    r->bytes += bytes;
    return STK_OK;
}

static void mark_behind_sums(const replicator *r)
{
    for (int32_t i = 0; i < r->n_nodes; i++) {
        const stk_node *node = &r->graph->node[i];
        bool behind = false;
        for (int j = 0; j < node->n_in; j++) {
            const stk_node *source = &r->graph->node[r->graph->value[node->in[j]].node];
            behind |= r->behind_sum[node->in[j]] || source->op == STK_OP_accumulate;
        }
        for (int j = 0; j < node->n_out; j++)
            r->behind_sum[node->first_out + j] = behind;
    }
}

static bool is_of_gradient(const stk_graph *graph, const stk_node *sum)
{
    return graph->node[graph->value[sum->in[0]].node].op == STK_OP_grad;
}

static stk_status add_up(replicator *r, int32_t i)
{
    const stk_node *sum = &r->graph->node[i];
    return put(r, r->in_micro ? sum->first_out : sum->in[0], sum->first_out, false);
}

/* Those of a rank's share alone: its sum is over the size of all. */
static stk_status keep_own(replicator *r, int32_t i)
{
    const stk_node *sum = &r->graph->node[i];
    int32_t n_nodes = r->graph->n_nodes, from = sum->first_out;
    stk_value own = stk_scale_by(stk_value_of(r->graph, r->in_micro ? from : sum->in[0]), r->n_ranks);
    STK_RETURN_IF_ERROR(stk_graph_status(r->graph));
    stk_part_redirect(r->graph, n_nodes, from, own.id);
    return STK_OK;
}

/* Losses and metrics together; each alone that is made of other sums. */
static stk_status add_up_results(replicator *r)
{
    for (int32_t i = 0; i < r->n_nodes; i++) {
        const stk_node *node = &r->graph->node[i];
        if (node->op != STK_OP_accumulate || is_of_gradient(r->graph, node) || r->behind_sum[node->first_out]) continue;
        STK_RETURN_IF_ERROR(add_up(r, i));
    }
    STK_RETURN_IF_ERROR(flush(r, false));
    for (int32_t i = 0; i < r->n_nodes; i++) {
        const stk_node *node = &r->graph->node[i];
        if (node->op != STK_OP_accumulate || is_of_gradient(r->graph, node) || !r->behind_sum[node->first_out])
            continue;
        STK_RETURN_IF_ERROR(add_up(r, i));
        STK_RETURN_IF_ERROR(flush(r, false));
    }
    return STK_OK;
}

static stk_status add_up_gradients(replicator *r, bool narrow)
{
    r->narrow = narrow;
    for (int32_t i = r->n_nodes - 1; i >= 0; i--) {
        const stk_node *sum = &r->graph->node[i];
        if (sum->op != STK_OP_accumulate || !is_of_gradient(r->graph, sum)) continue;
        if (r->local)
            STK_RETURN_IF_ERROR(keep_own(r, i));
        else if (stk_shard_takes(r->sharder, i))
            STK_RETURN_IF_ERROR(stk_shard_begin(r->sharder, i, r->in_micro ? sum->first_out : sum->in[0]));
        else
            STK_RETURN_IF_ERROR(add_up(r, i));
    }
    STK_RETURN_IF_ERROR(flush(r, false));
    r->narrow = false;
    return r->sharder ? stk_shard_finish(r->sharder) : STK_OK;
}

/* Outputs 3 and 4 of a batch norm that is trained. */
static stk_status average_statistics(replicator *r)
{
    for (int32_t i = 0; i < r->n_nodes; i++) {
        const stk_node *node = &r->graph->node[i];
        for (int o = 3; node->op == STK_OP_batch_norm && o < node->n_out; o++)
            STK_RETURN_IF_ERROR(put(r, node->first_out + o, node->first_out + o, true));
    }
    return flush(r, true);
}

/* The same out of other ops, with sums over ranks in them, which autodiff goes through. */
static stk_status compose_norm(stk_graph *graph, int32_t i, int n_ranks)
{
    stk_node node = graph->node[i]; /* A copy: the array moves. */
    stk_value in[6], out[5], made[5];
    for (int j = 0; j < node.n_in; j++)
        in[j] = stk_value_of(graph, node.in[j]);
    for (int o = 0; o < node.n_out; o++) {
        out[o] = stk_value_of(graph, node.first_out + o);
        made[o] = stk_value_none(graph);
    }
    stk_decompose_call call = {graph, &node.attrs, node.n_in, node.n_out, in, out, made};
    int32_t n_nodes = graph->n_nodes;
    stk_batch_norm_compose(&call, n_ranks);
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    for (int o = 0; o < node.n_out; o++)
        stk_part_redirect(graph, n_nodes, node.first_out + o, made[o].id);
    return STK_OK;
}

static stk_status sync_norms(replicator *r)
{
    for (int32_t i = 0; i < r->n_nodes; i++)
        if (r->graph->node[i].op == STK_OP_batch_norm) STK_RETURN_IF_ERROR(compose_norm(r->graph, i, r->n_ranks));
    return STK_OK;
}

/* Every rank must have the same variables. */
static stk_status check_updates(stk_graph *graph)
{
    stk_part_marks is = {NULL, NULL};
    stk_status status = stk_part_marks_make(graph, &is);
    for (int i = 0; i < graph->n_roots && status == STK_OK; i++) {
        int32_t variable = graph->root[i].variable;
        if (variable < 0 || !is.varies[graph->root[i].value]) continue;
        if (is.has_grad[graph->root[i].value]) continue; /* A choice between two states that are alike. */
        status = stk_fail(STK_UNSUPPORTED, "'%s' would be another one on each replica",
                          graph->node[graph->value[variable].node].name);
    }
    stk_part_marks_free(&is);
    return status;
}

stk_status pass_replicate(stk_graph *graph, const stk_pass_options *options)
{
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    if (!options || options->n_ranks < 2) return STK_OK;
    stk_status status = STK_OK;
    replicator r = {.graph = graph,
                    .n_ranks = options->n_ranks,
                    .local = options->local_steps,
                    .in_micro = options->n_micro > 1,
                    .n_nodes = graph->n_nodes};
    int32_t *identity = NULL;
    r.behind_sum = calloc((size_t)graph->n_values + 1, sizeof(*r.behind_sum));
    if (!r.behind_sum) STK_TRY(stk_fail_memory((size_t)graph->n_values));
    mark_behind_sums(&r);
    if (options->shard_state) STK_TRY(stk_shard_new(graph, r.n_ranks, options->narrow_sums, &r.sharder));
    STK_TRY(add_up_results(&r));
    STK_TRY(add_up_gradients(&r, options->narrow_sums));
    if (!options->strict_rows) STK_TRY(options->sync_norm ? sync_norms(&r) : average_statistics(&r));
    if (!(identity = stk_pass_identity(graph, 0))) STK_TRY(stk_fail_memory((size_t)graph->n_values));
    STK_TRY(stk_graph_rewrite(graph, identity));
    if (!r.local) STK_TRY(check_updates(graph));
done:
    stk_shard_free(r.sharder);
    free(r.behind_sum);
    free(identity);
    return status;
}
