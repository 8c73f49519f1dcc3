#include "optim/average.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"

stk_status stk_average_check(const stk_average *settings)
{
    if (settings->decay >= 0 && settings->decay < 1) return STK_OK;
    return stk_fail(STK_INVALID, "the decay of the weights' mean is %g, and must be in [0,1)", settings->decay);
}

static stk_value f32(stk_graph *graph, double x)
{
    return stk_graph_constant(graph, STK_F32, (stk_shape){.rank = 0}, x);
}

/* The mean's share in the new one: 0 at the first step; later the decay, or less while (1 + n) / (10 + n) is. */
static stk_value make_share(stk_graph *graph, const stk_average *settings)
{
    stk_value count = stk_graph_variable(graph, "average.count", STK_I64, (stk_shape){.rank = 0},
                                         (stk_init){STK_INIT_CONSTANT, 0}, false);
    stk_value zero = stk_graph_constant(graph, STK_I64, (stk_shape){.rank = 0}, 0), share = f32(graph, settings->decay);
    stk_graph_update(graph, count, stk_add(count, stk_graph_constant(graph, STK_I64, (stk_shape){.rank = 0}, 1)));
    if (settings->warmup) {
        stk_value n = stk_cast_to(count, STK_F32);
        share = stk_min(share, stk_div(stk_shift_by(n, 1), stk_shift_by(n, 10)));
    }
    return stk_select(stk_greater(count, zero), share, f32(graph, 0));
}

/* Gives the trained variable its other name, and its own to the mean. */
static stk_value take_name(stk_graph *graph, int32_t variable)
{
    int32_t i_node = graph->value[variable].node;
    const stk_node *node = &graph->node[i_node];
    const char *name = node->name;
    stk_tensor_desc desc = graph->value[variable].desc;
    stk_init init = node->attrs.leaf.init;
    stk_text raw = {0};
    stk_text_add(&raw, "%s" STK_AVERAGE_RAW, name);
    char *copy = stk_text_status(&raw) == STK_OK ? stk_arena_text(graph->arena, stk_text_get(&raw)) : NULL;
    stk_text_free(&raw);
    if (!copy) {
        stk_graph_keep_error(graph, stk_fail_memory(64));
        return stk_value_none(graph);
    }
    graph->node[i_node].name = copy;
    stk_graph_forget_names(graph);
    return stk_graph_variable(graph, name, desc.dtype, desc.shape, init, false);
}

static void add_mean(stk_graph *graph, int32_t variable, int32_t updated, stk_value share)
{
    stk_value weight = stk_value_of(graph, updated), mean = take_name(graph, variable);
    stk_dtype dtype = stk_value_dtype(weight);
    stk_value kept = dtype == STK_F32 ? share : stk_cast_to(share, dtype);
    stk_value fresh = stk_sub(stk_graph_constant(graph, dtype, (stk_shape){.rank = 0}, 1), kept);
    stk_graph_update(graph, mean, stk_add(stk_mul(mean, kept), stk_mul(weight, fresh)));
}

stk_status stk_average_build(stk_graph *graph, const stk_average *settings)
{
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    if (settings->decay == 0) return STK_OK;
    STK_RETURN_IF_ERROR(stk_graph_keep_error(graph, stk_average_check(settings)));
    stk_value share = make_share(graph, settings);
    int n_roots = graph->n_roots; /* without those that are added here */
    for (int i = 0; i < n_roots && stk_graph_status(graph) == STK_OK; i++) {
        int32_t variable = graph->root[i].variable;
        if (variable < 0 || !graph->node[graph->value[variable].node].attrs.leaf.trainable) continue;
        add_mean(graph, variable, graph->root[i].value, share);
    }
    return stk_graph_status(graph);
}
