/* See infer/inference_graph.h. */
#include "infer/inference_graph.h"

#include <stdlib.h>

#include "base/error.h"

/* x [N*T,D] times the head's weight [V,D], as [N,T,V] where the tokens are [N,T]. */
static stk_value logits_of_loss(stk_graph *graph, const stk_node *loss)
{
    stk_value x = stk_value_of(graph, loss->in[0]), weight = stk_value_of(graph, loss->in[1]);
    stk_value tokens = stk_graph_find(graph, STK_OP_input, "tokens");
    stk_value logits = stk_matmul(x, weight, false, true);
    stk_shape shape = stk_value_shape(tokens), flat = stk_value_shape(logits);
    if (tokens.id < 0 || shape.rank != 2 || flat.rank != 2) return logits;
    return stk_reshape(logits, STK_SHAPE(shape.dim[0], shape.dim[1], flat.dim[1]));
}

static stk_value find_logits(const stk_model *model, stk_graph *graph)
{
    stk_value output = stk_model_get_output(model);
    if (output.id >= 0) return stk_value_of(graph, output.id); /* Ids stay the same in a clone. */
    for (int i = graph->n_nodes - 1; i >= 0; i--) {
        const stk_node node = graph->node[i]; /* A copy: the array moves. */
        if (node.op == STK_OP_linear_cross_entropy) return logits_of_loss(graph, &node);
    }
    return stk_value_none(graph);
}

stk_status stk_inference_graph(const stk_model *model, int64_t batch, stk_graph **out)
{
    stk_status status;
    int32_t *same = NULL;
    *out = NULL;
    stk_graph *graph = stk_graph_clone(stk_model_graph((stk_model *)model), batch);
    if (!graph) return stk_fail_memory(1024);
    stk_value logits = find_logits(model, graph);
    STK_TRY(stk_graph_status(graph));
    if (logits.id < 0) STK_TRY(stk_fail(STK_INVALID, "the model has no output to predict with"));
    graph->n_roots = 0;
    stk_graph_output(graph, "logits", logits);
    STK_TRY(stk_graph_status(graph));
    same = malloc(((size_t)graph->n_values + 1) * sizeof(*same));
    if (!same) STK_TRY(stk_fail_memory((size_t)graph->n_values * sizeof(*same)));
    for (int32_t i = 0; i < graph->n_values; i++)
        same[i] = i;
    STK_TRY(stk_graph_rewrite(graph, same)); /* What no output needs goes. */
    *out = graph;
    graph = NULL;
done:
    free(same);
    stk_graph_free(graph);
    return status;
}
