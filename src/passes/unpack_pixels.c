/* Images that arrive as u8 are normalised in the step: a quarter of the bytes to copy, and the data threads' last stage
 * is the device's. The same arithmetic as that stage's, product and sum rounded each, and so the same bits.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/query.h"
#include "passes/passes.h"

static stk_value make_vector(stk_graph *graph, const float *x, int n)
{
    stk_value each[4];
    for (int c = 0; c < n; c++)
        each[c] = stk_graph_constant(graph, STK_F32, (stk_shape){.rank = 1, .dim = {1}}, (double)x[c]);
    return n == 1 ? each[0] : stk_concat(each, n, 0);
}

stk_status pass_unpack_pixels(stk_graph *graph, const stk_pass_options *options)
{
    const stk_pixel_scale *p = options->pixels;
    stk_value image = {graph, -1};
    if (!p) return STK_OK;
    image = stk_graph_find(graph, STK_OP_input, p->input);
    if (image.id < 0) return STK_OK;
    stk_tensor_desc *desc = &graph->value[image.id].desc;
    if (desc->dtype != STK_F32 || desc->shape.rank < 1 || desc->shape.dim[desc->shape.rank - 1] != p->n)
        return stk_fail(STK_INTERNAL, "input '%s' is no image of %d channels in f32", p->input, p->n);
    int32_t n_before = graph->n_values;
    desc->dtype = graph->node[graph->value[image.id].node].attrs.dtype = STK_U8;
    stk_value scaled = stk_mul(stk_cast_to(image, STK_F32), make_vector(graph, p->a, p->n));
    stk_value x = stk_add(scaled, make_vector(graph, p->b, p->n));
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    /* Nodes from before read x; the cast reads the image. */
    int32_t *replace = stk_pass_identity(graph, 0);
    if (!replace) return stk_fail_memory((size_t)graph->n_values * sizeof(*replace));
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        stk_node *node = &graph->node[i];
        for (int32_t j = 0; node->first_out < n_before && j < node->n_in; j++)
            if (node->in[j] == image.id) node->in[j] = x.id;
    }
    for (int32_t i = 0; i < graph->n_roots; i++)
        if (graph->root[i].value == image.id) graph->root[i].value = x.id;
    stk_status status = stk_graph_rewrite(graph, replace);
    free(replace);
    return status;
}
