/* Rewriting: redirect users of values, drop what no root needs, and put the nodes in order again.
 *
 *   replace:  v7 -> v12      users of v7 now use v12
 *   mark:     from the roots backwards
 *   sort:     a node may go once its inputs have gone; among those that may, the oldest goes first
 *             (Kahn 1962, with a heap). So an update runs as soon as its gradient is there; yet it counts as no
 *             older than the other readers of its variable, so that it can work in place after them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/graph.h"

typedef struct rewriter {
    stk_graph *graph;
    const int32_t *replace;
    const int32_t *given_age;   /* by node; NULL: its number */
    uint8_t *needed;            /* by node */
    int32_t *n_waiting;         /* by node: inputs that have not gone yet */
    int32_t *first_user, *user; /* users of node i: user[first_user[i]] .. user[first_user[i + 1] - 1] */
    int32_t *age;               /* by node: its place among those that may go */
    int32_t *heap;              /* nodes that may go; also the stack of mark_needed */
    int32_t n_heap;
    int32_t *order; /* old node numbers in their new order */
    int32_t n_placed;
} rewriter;

/* Follows chains of replacements; a cycle is our own mistake and ends the walk after n_values steps. */
static int32_t resolve(const rewriter *r, int32_t value)
{
    for (int32_t i = 0; i < r->graph->n_values && r->replace[value] != value; i++)
        value = r->replace[value];
    return value;
}

static void redirect_users(rewriter *r)
{
    stk_graph *graph = r->graph;
    for (int i = 0; i < graph->n_nodes; i++)
        for (int j = 0; j < graph->node[i].n_in; j++)
            graph->node[i].in[j] = resolve(r, graph->node[i].in[j]);
    for (int i = 0; i < graph->n_roots; i++)
        graph->root[i].value = resolve(r, graph->root[i].value);
}

static void mark_node(rewriter *r, int32_t i)
{
    if (r->needed[i]) return;
    r->needed[i] = 1;
    r->heap[r->n_heap++] = i;
}

static void mark_needed(rewriter *r)
{
    stk_graph *graph = r->graph;
    for (int i = 0; i < graph->n_roots; i++) {
        mark_node(r, graph->value[graph->root[i].value].node);
        if (graph->root[i].variable >= 0) mark_node(r, graph->value[graph->root[i].variable].node);
    }
    while (r->n_heap > 0) {
        const stk_node *node = &graph->node[r->heap[--r->n_heap]];
        for (int j = 0; j < node->n_in; j++)
            mark_node(r, graph->value[node->in[j]].node);
    }
}

static stk_status list_users(rewriter *r)
{
    stk_graph *graph = r->graph;
    int32_t n_edges = 0;
    for (int i = 0; i < graph->n_nodes; i++)
        if (r->needed[i])
            for (int j = 0; j < graph->node[i].n_in; j++, n_edges++)
                r->first_user[graph->value[graph->node[i].in[j]].node + 1]++;
    for (int i = 0; i < graph->n_nodes; i++)
        r->first_user[i + 1] += r->first_user[i];
    r->user = malloc((size_t)(n_edges + 1) * sizeof(*r->user));
    if (!r->user) return stk_fail_memory((size_t)n_edges * sizeof(*r->user));
    int32_t *fill = r->order; /* free until the sort begins */
    memcpy(fill, r->first_user, (size_t)graph->n_nodes * sizeof(*fill));
    for (int i = 0; i < graph->n_nodes; i++)
        if (r->needed[i])
            for (int j = 0; j < graph->node[i].n_in; j++) {
                r->user[fill[graph->value[graph->node[i].in[j]].node]++] = i;
                r->n_waiting[i]++;
            }
    return STK_OK;
}

static void set_ages(rewriter *r)
{
    stk_graph *graph = r->graph;
    for (int i = 0; i < graph->n_nodes; i++)
        r->age[i] = r->given_age ? r->given_age[i] : i;
    for (int i = 0; i < graph->n_roots; i++) {
        if (graph->root[i].variable < 0) continue;
        int32_t maker = graph->value[graph->root[i].value].node;
        int32_t variable = graph->value[graph->root[i].variable].node;
        for (int32_t k = r->first_user[variable]; k < r->first_user[variable + 1]; k++)
            if (r->age[r->user[k]] > r->age[maker]) r->age[maker] = r->age[r->user[k]];
    }
}

static bool goes_before(const rewriter *r, int32_t a, int32_t b)
{
    return r->age[a] != r->age[b] ? r->age[a] < r->age[b] : a > b; /* a reader itself goes before the update */
}

static void heap_push(rewriter *r, int32_t x)
{
    int32_t i = r->n_heap++;
    for (; i > 0 && goes_before(r, x, r->heap[(i - 1) / 2]); i = (i - 1) / 2)
        r->heap[i] = r->heap[(i - 1) / 2];
    r->heap[i] = x;
}

static int32_t heap_pop(rewriter *r)
{
    int32_t top = r->heap[0], x = r->heap[--r->n_heap], i = 0;
    for (;;) {
        int32_t child = 2 * i + 1;
        if (child >= r->n_heap) break;
        if (child + 1 < r->n_heap && goes_before(r, r->heap[child + 1], r->heap[child])) child++;
        if (!goes_before(r, r->heap[child], x)) break;
        r->heap[i] = r->heap[child];
        i = child;
    }
    r->heap[i] = x;
    return top;
}

static stk_status sort(rewriter *r)
{
    int32_t n_needed = 0;
    set_ages(r);
    for (int i = 0; i < r->graph->n_nodes; i++) {
        n_needed += r->needed[i];
        if (r->needed[i] && r->n_waiting[i] == 0) heap_push(r, i);
    }
    while (r->n_heap > 0) {
        int32_t i = heap_pop(r);
        r->order[r->n_placed++] = i;
        for (int32_t k = r->first_user[i]; k < r->first_user[i + 1]; k++)
            if (--r->n_waiting[r->user[k]] == 0) heap_push(r, r->user[k]);
    }
    if (r->n_placed != n_needed) return stk_fail(STK_INTERNAL, "the graph has a cycle");
    return STK_OK;
}

/* Writes nodes and values again in the order found, with new value ids. */
static stk_status renumber(rewriter *r)
{
    stk_graph *graph = r->graph;
    stk_status status = STK_OK;
    stk_node *node = malloc((size_t)(r->n_placed + 1) * sizeof(*node));
    stk_value_info *value = malloc((size_t)(graph->n_values + 1) * sizeof(*value));
    int32_t *id = malloc((size_t)(graph->n_values + 1) * sizeof(*id));
    int32_t n_values = 0;
    if (!node || !value || !id) STK_TRY(stk_fail_memory((size_t)graph->n_values * sizeof(*value)));
    for (int32_t i = 0; i < r->n_placed; i++) {
        node[i] = graph->node[r->order[i]];
        for (int j = 0; j < node[i].n_in; j++)
            node[i].in[j] = id[node[i].in[j]];
        for (int j = 0; j < node[i].n_out; j++) {
            id[node[i].first_out + j] = n_values + j;
            value[n_values + j] = graph->value[node[i].first_out + j];
            value[n_values + j].node = i;
        }
        node[i].first_out = n_values;
        n_values += node[i].n_out;
    }
    for (int i = 0; i < graph->n_roots; i++) {
        graph->root[i].value = id[graph->root[i].value];
        if (graph->root[i].variable >= 0) graph->root[i].variable = id[graph->root[i].variable];
    }
    free(graph->node);
    free(graph->value);
    graph->node = node;
    graph->node_capacity = r->n_placed + 1;
    graph->value_capacity = graph->n_values + 1;
    graph->value = value;
    graph->n_nodes = r->n_placed;
    graph->n_values = n_values;
    stk_graph_forget_names(graph);
    node = NULL;
    value = NULL;
done:
    free(node);
    free(value);
    free(id);
    return status;
}

stk_status stk_graph_rewrite_aged(stk_graph *graph, const int32_t *replace, const int32_t *age)
{
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    stk_status status = STK_OK;
    size_t n = (size_t)graph->n_nodes + 2;
    rewriter r = {.graph = graph, .replace = replace, .given_age = age};
    r.needed = calloc(n, sizeof(*r.needed));
    r.n_waiting = calloc(n, sizeof(*r.n_waiting));
    r.first_user = calloc(n, sizeof(*r.first_user));
    r.order = malloc(n * sizeof(*r.order));
    r.age = malloc(n * sizeof(*r.age));
    r.heap = malloc(n * sizeof(*r.heap));
    if (!r.needed || !r.n_waiting || !r.first_user || !r.order || !r.age || !r.heap)
        STK_TRY(stk_fail_memory(n * sizeof(*r.order)));
    redirect_users(&r);
    mark_needed(&r);
    STK_TRY(list_users(&r));
    STK_TRY(sort(&r));
    STK_TRY(renumber(&r));
done:
    free(r.needed);
    free(r.n_waiting);
    free(r.first_user);
    free(r.user);
    free(r.order);
    free(r.age);
    free(r.heap);
    return status;
}

stk_status stk_graph_rewrite(stk_graph *graph, const int32_t *replace)
{
    return stk_graph_rewrite_aged(graph, replace, NULL);
}

stk_status stk_graph_reorder(stk_graph *graph, const int32_t *order, int32_t n)
{
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    rewriter r = {.graph = graph, .n_placed = n, .order = (int32_t *)order};
    return renumber(&r);
}
