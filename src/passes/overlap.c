/* Sums of gradients over ranks go on while the backward pass does.
 *
 *   before:  dw3 -> rank_sum -> update   dw2 -> rank_sum -> update   dw1 -> ...
 *   after:   dw3 -> rank_begin   dw2 -> rank_begin   rank_await -> update   dw1 -> ...
 *
 * Each sum begins where it was, and is waited for just before the call that comes `options->overlap` calls behind it,
 * or behind the last gradient. What is added up, with whom and in which order, stays as it is, and so do all bits. What
 * the backward pass itself waits for, and sums of what other sums make, stay as they are. Calls are counted with those,
 * so that no more than that many are under way on any rank.
 */
#include <stdlib.h>

#include "base/error.h"
#include "passes/passes.h"

typedef struct overlapper {
    stk_graph *graph;
    int32_t n_nodes, n_values; /* before any is added */
    bool *behind;              /* by node: it depends on the backward pass */
    bool *before;              /* by node: some of the backward pass depends on it */
    bool *summed;              /* by node: it depends on a sum of gradients */
    int32_t *call;             /* [n_calls]: nodes at which ranks meet */
    int32_t n_calls;
    int32_t *replace, *age;
} overlapper;

static bool meets(const stk_node *node)
{
    return stk_op_is_of_ranks(node->op) && node->op != STK_OP_rank_part;
}

static bool is_sum(const stk_node *node)
{
    return node->op == STK_OP_rank_sum || node->op == STK_OP_rank_scatter;
}

static bool is_taken(const overlapper *o, int32_t i)
{
    return is_sum(&o->graph->node[i]) && o->behind[i] && !o->before[i] && !o->summed[i];
}

static void mark(overlapper *o)
{
    const stk_graph *graph = o->graph;
    for (int32_t i = 0; i < o->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        o->behind[i] = node->backward;
        for (int j = 0; j < node->n_in; j++)
            o->behind[i] |= o->behind[graph->value[node->in[j]].node];
        if (meets(node)) o->call[o->n_calls++] = i;
    }
    for (int32_t i = o->n_nodes - 1; i >= 0; i--)
        for (int j = 0; j < graph->node[i].n_in; j++)
            o->before[graph->value[graph->node[i].in[j]].node] |= o->before[i] || graph->node[i].backward;
    for (int32_t i = 0; i < o->n_nodes; i++)
        for (int j = 0; j < graph->node[i].n_in; j++) {
            int32_t source = graph->value[graph->node[i].in[j]].node;
            o->summed[i] |= o->summed[source] || is_taken(o, source);
        }
}

/* Returns the node that awaits. */
static stk_status divide(overlapper *o, int32_t i, int32_t ticket, int32_t *awaits)
{
    stk_graph *graph = o->graph;
    stk_node node = graph->node[i]; /* A copy: the array moves. */
    stk_attrs attrs = stk_attrs_zero();
    stk_value in[STK_MOST_RANK_SUMS + 1];
    attrs.ranks.n = node.op == STK_OP_rank_scatter ? node.attrs.ranks.n : 0;
    attrs.ranks.ticket = ticket;
    for (int j = 0; j < node.n_in; j++)
        in[j] = stk_value_of(graph, node.in[j]);
    stk_value begun = stk_graph_add(graph, STK_OP_rank_begin, &attrs, in, node.n_in);
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    int n_in = 1;
    if (attrs.ranks.n) {
        const stk_node *begin = &graph->node[graph->value[begun.id].node];
        if (begin->n_out == 2) in[0] = stk_value_of(graph, begun.id + 1);
        in[1] = in[0];
        in[0] = begun;
        n_in = 2;
    } else if (node.n_in == 1) {
        in[0] = begun;
    } else {
        in[node.n_in] = begun;
        n_in = node.n_in + 1;
    }
    stk_value done = stk_graph_add(graph, STK_OP_rank_await, &attrs, in, n_in);
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    for (int j = 0; j < node.n_out; j++)
        o->replace[node.first_out + j] = done.id + j;
    *awaits = graph->value[done.id].node;
    return STK_OK;
}

/* Room between two nodes' ages for all that is awaited. */
static stk_status divide_all(overlapper *o, int32_t n_taken, int32_t most)
{
    int32_t room = n_taken + 2, last = 0, n = 0;
    for (int32_t i = 0; i < o->n_nodes; i++) {
        o->age[i] = i * room;
        if (is_taken(o, i)) last = i;
    }
    for (int32_t c = 0; c < o->n_calls; c++) {
        int32_t i = o->call[c], awaits;
        if (!is_taken(o, i)) continue;
        STK_RETURN_IF_ERROR(divide(o, i, n % STK_MOST_TICKETS, &awaits));
        o->age[awaits - 1] = i * room;
        bool is_late = c + most >= o->n_calls || o->call[c + most] > last;
        o->age[awaits] = is_late ? last * room + 1 + n : o->call[c + most] * room - 1;
        n++;
    }
    return STK_OK;
}

stk_status pass_overlap(stk_graph *graph, const stk_pass_options *options)
{
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    if (!options || options->n_ranks < 2 || options->overlap < 1) return STK_OK;
    stk_status status = STK_OK;
    size_t n = (size_t)graph->n_nodes + 1;
    overlapper o = {.graph = graph, .n_nodes = graph->n_nodes, .n_values = graph->n_values};
    bool *flags = calloc(3 * n, sizeof(*flags));
    o.call = malloc(n * sizeof(*o.call));
    o.age = calloc(3 * n, sizeof(*o.age));
    o.replace = stk_pass_identity(graph, 3 * graph->n_values);
    if (!flags || !o.call || !o.age || !o.replace) STK_TRY(stk_fail_memory(3 * n * sizeof(*o.age)));
    o.behind = flags;
    o.before = flags + n;
    o.summed = flags + 2 * n;
    mark(&o);
    int32_t n_taken = 0;
    for (int32_t c = 0; c < o.n_calls; c++)
        n_taken += is_taken(&o, o.call[c]);
    if (n_taken == 0 || o.n_nodes >= INT32_MAX / (n_taken + 3)) goto done;
    STK_TRY(divide_all(&o, n_taken, options->overlap < STK_MOST_OVERLAP ? options->overlap : STK_MOST_OVERLAP));
    STK_TRY(stk_graph_rewrite_aged(graph, o.replace, o.age));
done:
    free(flags);
    free(o.call);
    free(o.age);
    free(o.replace);
    return status;
}
