/* Lets a batch norm do the sum and the ReLU behind it, and its gradient take the mask and the sums of gradients:
 *
 *   relu(batch_norm(x, ..) + r)                      becomes   batch_norm(x, .., r) with ReLU
 *   d = select(y > 0, dy + dy2, 0)                   becomes   dx, .., d = batch_norm_sum_grad(x, dy, dy2, y, ..)
 *   dx, .. = batch_norm_grad(d, x, ..)
 *
 * so that the end of a residual block is not written and read once more in either direction. The bits stay the same,
 * but that 16-bit gradients are summed up before they are rounded. Only where what is read is in memory in any case: a
 * group of element-wise nodes keeps what is between them in registers, and reads through broadcasts.
 */
#include <stdlib.h>

#include "base/error.h"
#include "passes/passes.h"

typedef struct joiner {
    stk_graph *graph;
    int32_t n_nodes; /* before some are added */
    int32_t *n_uses; /* by value */
    bool *is_read;   /* by value: something else than an element-wise node uses it, or a root */
    int32_t *replace, *age;
} joiner;

static const stk_node *maker_of(const joiner *j, int32_t value)
{
    return &j->graph->node[j->graph->value[value].node];
}

static bool is_element(const stk_node *node)
{
    return stk_op_get_rule(node->op)->kind == STK_KIND_ELEMENT;
}

static void find_readers(joiner *j)
{
    const stk_graph *graph = j->graph;
    for (int i = 0; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->node[i].n_in; k++)
            j->is_read[graph->node[i].in[k]] |= !is_element(&graph->node[i]);
    for (int i = 0; i < graph->n_roots; i++)
        j->is_read[graph->root[i].value] = true;
}

/* Whether the value is in memory in any case. */
static bool is_stored(const joiner *j, int32_t value)
{
    const stk_node *maker = maker_of(j, value);
    if (maker->op == STK_OP_broadcast || maker->op == STK_OP_constant) return false;
    return !is_element(maker) || j->is_read[value];
}

static bool is_binary_add(const joiner *j, int32_t value)
{
    const stk_node *node = maker_of(j, value);
    return node->op == STK_OP_binary && node->attrs.element.kind == STK_BINARY_add && j->n_uses[value] == 1;
}

static bool is_zero(const joiner *j, int32_t value)
{
    const stk_node *node = maker_of(j, value);
    return node->op == STK_OP_constant && node->attrs.constant.value == 0;
}

static bool is_alone(const joiner *j, int32_t value)
{
    const stk_node *node = maker_of(j, value);
    return (node->op == STK_OP_batch_norm || node->op == STK_OP_batch_norm_apply) && node->first_out == value &&
           node->n_in == 5 && !node->attrs.batch_norm.relu && j->n_uses[value] == 1;
}

/* Of two batch norms the later one, which then waits for nothing. */
static stk_status join_forward(joiner *j, const stk_node *relu)
{
    if (!is_binary_add(j, relu->in[0])) return STK_OK;
    const int32_t *in = maker_of(j, relu->in[0])->in;
    int one = in[0] > in[1] ? 0 : 1;
    if (!is_alone(j, in[one])) one = !one;
    if (!is_alone(j, in[one]) || !is_stored(j, in[!one])) return STK_OK;
    stk_node *norm = &j->graph->node[j->graph->value[in[one]].node];
    int32_t *with = stk_arena_alloc(j->graph->arena, 6 * sizeof(*with));
    if (!with) return stk_fail_memory(6 * sizeof(*with));
    for (int i = 0; i < 5; i++)
        with[i] = norm->in[i];
    with[5] = in[!one];
    norm->in = with;
    norm->n_in = 6;
    norm->attrs.batch_norm.relu = 1;
    j->replace[relu->first_out] = norm->first_out;
    return STK_OK;
}

static stk_status join_backward(joiner *j, stk_node grad)
{
    stk_graph *graph = j->graph;
    int32_t d = grad.in[0];
    if (maker_of(j, d)->op != STK_OP_select || grad.attrs.batch_norm.relu || j->replace[d] != d) return STK_OK;
    const stk_node *select = maker_of(j, d), *compare = maker_of(j, select->in[0]);
    if (compare->op != STK_OP_compare || compare->attrs.element.kind != STK_COMPARE_greater) return STK_OK;
    if (!is_zero(j, compare->in[1]) || !is_zero(j, select->in[2]) || !is_binary_add(j, select->in[1])) return STK_OK;
    const stk_node *add = maker_of(j, select->in[1]);
    int32_t y = compare->in[0], from = graph->value[d].node;
    if (!is_stored(j, add->in[0]) || !is_stored(j, add->in[1]) || !is_stored(j, y)) return STK_OK;
    int32_t ids[] = {grad.in[1], add->in[0], add->in[1], y, grad.in[2], grad.in[4], grad.in[5]};
    stk_value in[7];
    for (int i = 0; i < 7; i++)
        in[i] = stk_value_of(graph, ids[i]);
    /* From here on nodes may have moved. */
    stk_value x = stk_graph_add(graph, STK_OP_batch_norm_sum_grad, &grad.attrs, in, 7);
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    for (int i = 0; i < 3; i++)
        j->replace[grad.first_out + i] = x.id + i;
    j->replace[d] = x.id + 3;
    graph->node[graph->n_nodes - 1].backward = true;
    j->age[graph->n_nodes - 1] = from;
    return STK_OK;
}

stk_status pass_fuse_residual(stk_graph *graph, const stk_pass_options *options)
{
    enum { MADE = 4 }; /* values of each batch_norm_sum_grad */
    const stk_device_caps *caps = stk_pass_caps(options);
    bool has_grad = stk_device_caps_has(caps, STK_OP_batch_norm_sum_grad);
    if (!caps->norm_residual && !has_grad) return stk_graph_status(graph);
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    stk_status status = STK_OK;
    size_t n = (size_t)graph->n_nodes + 1;
    joiner j = {.graph = graph, .n_nodes = graph->n_nodes};
    j.n_uses = stk_pass_count_uses(graph);
    j.replace = stk_pass_identity(graph, MADE * graph->n_nodes);
    j.age = malloc(2 * n * sizeof(*j.age));
    j.is_read = calloc((size_t)graph->n_values + 1, sizeof(*j.is_read));
    if (!j.n_uses || !j.is_read || !j.replace || !j.age) STK_TRY(stk_fail_memory(n * sizeof(*j.age)));
    find_readers(&j);
    for (int32_t i = 0; i < j.n_nodes; i++)
        j.age[i] = i;
    for (int32_t i = 0; i < j.n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        bool is_relu = node->op == STK_OP_unary && node->attrs.element.kind == STK_UNARY_relu;
        if (is_relu && caps->norm_residual) STK_TRY(join_forward(&j, node));
        if (node->op == STK_OP_batch_norm_grad && has_grad) STK_TRY(join_backward(&j, *node));
    }
    STK_TRY(stk_graph_rewrite_aged(graph, j.replace, j.age));
done:
    free(j.n_uses);
    free(j.is_read);
    free(j.replace);
    free(j.age);
    return status;
}
