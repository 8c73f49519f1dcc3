/* What a network computes is copied for each view, with the same variables; simplify merges what the copies share. */
#include "train/views.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/query.h"

enum { MOST_IN = 16 };

/* The numbers 0 .. n-1, moved by shift and reflected at both ends, as i32 for stk_gather; backwards if flipped. */
static stk_value make_places(stk_graph *graph, int64_t n, int shift, bool flipped)
{
    stk_shape shape = {.rank = 1, .dim = {n}};
    stk_value last = stk_graph_constant(graph, STK_F32, (stk_shape){0}, (double)(n - 1));
    stk_value at = stk_iota(graph, STK_F32, shape, 0);
    if (flipped) at = stk_sub(last, at);
    if (shift) at = stk_sub(last, stk_abs(stk_sub(last, stk_abs(stk_shift_by(at, shift)))));
    return stk_cast_to(at, STK_I32);
}

static stk_value make_view(stk_value image, int shift, bool flipped)
{
    stk_shape shape = stk_value_shape(image);
    if (shift) image = stk_gather(image, make_places(image.graph, shape.dim[1], shift, false), 1);
    if (shift || flipped) image = stk_gather(image, make_places(image.graph, shape.dim[2], shift, flipped), 2);
    return image;
}

/* The nodes that image is needed for, up to output, once more with view in its place. map: [n_values] of the graph as
 * it was before the first view. */
static stk_value copy_for(stk_graph *graph, stk_value output, stk_value image, stk_value view, int32_t *map)
{
    int32_t n_nodes = graph->value[output.id].node + 1;
    for (int32_t i = 0; i < n_nodes; i++)
        for (int j = 0; j < graph->node[i].n_out; j++)
            map[graph->node[i].first_out + j] = -1;
    map[image.id] = view.id;
    for (int32_t i = 0; i < n_nodes; i++) {
        stk_node node = graph->node[i]; /* A copy: the array moves. */
        stk_value in[MOST_IN];
        bool sees_image = false;
        for (int j = 0; j < node.n_in; j++)
            sees_image |= map[node.in[j]] >= 0;
        if (!sees_image) continue;
        if (node.n_in > MOST_IN) {
            stk_graph_keep_error(graph, stk_fail(STK_UNSUPPORTED, "'tta': an op has %d inputs", (int)node.n_in));
            break;
        }
        for (int j = 0; j < node.n_in; j++)
            in[j] = stk_value_of(graph, map[node.in[j]] >= 0 ? map[node.in[j]] : node.in[j]);
        stk_value y = stk_graph_add(graph, node.op, &node.attrs, in, node.n_in);
        if (y.id < 0) break;
        graph->node[graph->n_nodes - 1].keep_f32 = node.keep_f32;
        for (int j = 0; j < node.n_out; j++)
            map[node.first_out + j] = y.id + j;
    }
    if (stk_graph_status(graph) != STK_OK) return stk_value_none(graph);
    return stk_value_of(graph, map[output.id]);
}

static stk_status check(const stk_graph *graph, stk_value output, stk_value image, const stk_views *settings)
{
    stk_shape shape = stk_value_shape(image);
    if (output.id < 0) return stk_fail(STK_INVALID, "'tta' takes the mean of the model's output, and it has none");
    if (image.id < 0 || image.graph != graph || shape.rank != 4)
        return stk_fail(STK_INVALID, "'tta' is for networks with an input 'image' of [N,H,W,C]");
    if (!stk_dtype_is_float(stk_value_dtype(output)))
        return stk_fail(STK_INVALID, "'tta' takes the mean of the model's output, which is no float");
    if (settings->shift < 0 || settings->shift >= shape.dim[1] || settings->shift >= shape.dim[2])
        return stk_fail(STK_INVALID, "'tta' cannot shift images of %lld x %lld by %d pixels", (long long)shape.dim[1],
                        (long long)shape.dim[2], settings->shift);
    return STK_OK;
}

stk_status stk_views_average(stk_graph *graph, stk_value output, const stk_views *settings)
{
    stk_status status = STK_OK;
    int32_t *map = NULL, *replace = NULL;
    stk_value image = stk_graph_find(graph, STK_OP_input, "image"), mean = stk_value_none(graph);
    if (!settings->flip && settings->shift == 0) return STK_OK;
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    STK_RETURN_IF_ERROR(check(graph, output, image, settings));
    map = malloc(((size_t)graph->n_values + 1) * sizeof(*map));
    if (!map) return stk_fail_memory((size_t)graph->n_values * sizeof(*map));
    int n_shifts = settings->shift ? 3 : 1, n_flips = settings->flip ? 2 : 1;
    for (int i = 0; i < n_shifts * n_flips; i++) {
        int shift = i / n_flips == 0 ? 0 : i / n_flips == 1 ? -settings->shift : settings->shift;
        double share = (n_shifts == 1 ? 1 : shift == 0 ? 0.5 : 0.25) / n_flips;
        /* Of the image as it comes there is a copy, too: who uses the output itself will use the mean. */
        stk_value part = copy_for(graph, output, image, make_view(image, shift, i % n_flips > 0), map);
        STK_TRY(stk_graph_status(graph));
        if (part.id < 0) STK_TRY(stk_fail(STK_INVALID, "'tta': the output does not depend on the image"));
        part = stk_scale_by(part, share);
        mean = i ? stk_add(mean, part) : part;
        STK_TRY(stk_graph_status(graph));
    }
    replace = malloc((size_t)graph->n_values * sizeof(*replace));
    if (!replace) STK_TRY(stk_fail_memory((size_t)graph->n_values * sizeof(*replace)));
    for (int32_t i = 0; i < graph->n_values; i++)
        replace[i] = i;
    replace[output.id] = mean.id;
    STK_TRY(stk_graph_rewrite(graph, replace));
done:
    free(map);
    free(replace);
    return status;
}
