/* One run over the logits instead of two: where a graph holds linear_cross_entropy and its gradient, which makes the
 * loss as well, users of the loss take it from the gradient,
 *
 *   loss = linear_cross_entropy(x, weight, labels)
 *   dx, dweight, again = linear_cross_entropy_grad(x, weight, labels, dloss)        users of loss use again
 *
 * unless dloss itself depends on the loss, or the device has no kernel of the gradient, whose composition makes the
 * logits as often in any case. A mean over the rows does not: its gradient is a constant.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "passes/passes.h"

/* Whether node `late` depends on a value of node `early`; depends is scratch, by node. */
static bool depends_on(const stk_graph *graph, int32_t early, int32_t late, bool *depends)
{
    memset(depends, 0, (size_t)graph->n_nodes * sizeof(*depends));
    depends[early] = true;
    for (int32_t i = early + 1; i <= late; i++)
        for (int j = 0; j < graph->node[i].n_in; j++)
            depends[i] |= depends[graph->value[graph->node[i].in[j]].node];
    return depends[late];
}

static bool belong_together(const stk_node *loss, const stk_node *grad)
{
    return loss->op == STK_OP_linear_cross_entropy && grad->op == STK_OP_linear_cross_entropy_grad && !grad->barrier &&
           !memcmp(loss->in, grad->in, 3 * sizeof(*loss->in)) && stk_attrs_equal(&loss->attrs, &grad->attrs);
}

stk_status pass_fuse_loss(stk_graph *graph, const stk_pass_options *options)
{
    enum { LOSS = 2 }; /* output of the gradient */
    if (!stk_device_caps_has(stk_pass_caps(options), STK_OP_linear_cross_entropy_grad)) return STK_OK;
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    stk_status status = STK_OK;
    int32_t *replace = stk_pass_identity(graph, 0);
    bool *depends = malloc((size_t)graph->n_nodes + 1);
    if (!replace || !depends) STK_TRY(stk_fail_memory((size_t)graph->n_values * sizeof(*replace)));
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const stk_node *loss = &graph->node[i];
        for (int32_t k = i + 1; loss->op == STK_OP_linear_cross_entropy && k < graph->n_nodes; k++) {
            const stk_node *grad = &graph->node[k];
            if (!belong_together(loss, grad) || depends_on(graph, i, k, depends)) continue;
            replace[loss->first_out] = grad->first_out + LOSS;
            break;
        }
    }
    STK_TRY(stk_graph_rewrite(graph, replace));
done:
    free(replace);
    free(depends);
    return status;
}
