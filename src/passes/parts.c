#include "passes/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { BEGIN, BODY, END };

bool stk_input_is_sliced(const stk_graph *graph, int32_t i_node)
{
    const stk_node *node = &graph->node[i_node];
    if (node->op != STK_OP_input) return false;
    return graph->value[node->first_out].desc.shape.rank > 0 || !strcmp(node->name, STK_MICRO_ROW);
}

static void find_parts(const stk_graph *graph, uint8_t *part)
{
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        part[i] = stk_input_is_sliced(graph, i) ? BODY : BEGIN;
        for (int j = 0; j < node->n_in; j++) {
            int32_t maker = graph->value[node->in[j]].node;
            uint8_t its = graph->node[maker].op == STK_OP_accumulate ? END : part[maker];
            if (its > part[i]) part[i] = its;
        }
    }
}

/* What the body does not need may wait for the end. Leaves are no work. */
static void move_to_end(const stk_graph *graph, uint8_t *part, bool *needed)
{
    for (int32_t i = graph->n_nodes - 1; i >= 0; i--) {
        const stk_node *node = &graph->node[i];
        if (part[i] == BEGIN && !needed[i] && node->n_in > 0) part[i] = END;
        for (int j = 0; j < node->n_in && part[i] != END; j++)
            needed[graph->value[node->in[j]].node] = true;
    }
}

/* Whether a value is a sum over micro-batches, or only another form of one. Marks what makes that form. */
static bool is_of_sum(const stk_graph *graph, int32_t value, bool *late)
{
    for (int32_t i = graph->value[value].node;; i = graph->value[graph->node[i].in[0]].node) {
        stk_op op = graph->node[i].op;
        if (op == STK_OP_accumulate) return true;
        if (op != STK_OP_cast && op != STK_OP_reshape) return false;
        late[i] = true;
    }
}

/* Sums over ranks that begin before the end, and what is awaited before the last of them begins: all or none, since
 * ranks meet in one order and only so many calls may be under way. */
static void find_late(const stk_graph *graph, const uint8_t *part, bool *late)
{
    int32_t last = -1;
    bool all = true;
    for (int32_t i = 0; i < graph->n_nodes && all; i++) {
        const stk_node *node = &graph->node[i];
        if (node->op != STK_OP_rank_begin) continue;
        for (int j = 0; j < node->n_in; j++)
            all &= is_of_sum(graph, node->in[j], late);
        late[last = i] = true;
    }
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        late[i] |= graph->node[i].op == STK_OP_rank_await && i < last;
        late[i] &= all && part[i] == END;
    }
}

stk_status stk_parts_arrange(stk_graph *graph, stk_parts *out)
{
    size_t n = (size_t)graph->n_nodes + 1;
    stk_status status = STK_OK;
    uint8_t *part = malloc(n);
    bool *needed = calloc(n, sizeof(*needed)), *late = calloc(n, sizeof(*late));
    int32_t *order = malloc(n * sizeof(*order)), n_order = 0;
    *out = (stk_parts){0};
    out->late = calloc(n, sizeof(*out->late));
    if (!part || !needed || !late || !order || !out->late) STK_TRY(stk_fail_memory(n * sizeof(*order)));
    find_parts(graph, part);
    move_to_end(graph, part, needed);
    find_late(graph, part, late);
    for (int32_t i = 0; i < graph->n_nodes; i++)
        if (late[i]) part[i] = BODY;
    for (int which = BEGIN; which <= END; which++)
        for (int32_t i = 0; i < graph->n_nodes; i++) {
            if (part[i] != which) continue;
            out->late[n_order] = late[i];
            order[n_order++] = i;
            out->n_begin += which == BEGIN;
            out->n_body += which == BODY;
        }
    STK_TRY(stk_graph_reorder(graph, order, n_order));
done:
    free(part);
    free(needed);
    free(late);
    free(order);
    return status;
}

void stk_parts_free(stk_parts *parts)
{
    free(parts->late);
    *parts = (stk_parts){0};
}
