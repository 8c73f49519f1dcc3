#include "harness/run_graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "harness/harness.h"

static bool is_leaf(const stk_node *node)
{
    return node->op == STK_OP_input || node->op == STK_OP_variable || node->op == STK_OP_constant;
}

static stk_status open_node(graph_run *run, int32_t i_node)
{
    const stk_node *node = &run->graph->node[i_node];
    for (int32_t v = node->first_out; v < node->first_out + node->n_out; v++) {
        stk_tensor_desc desc = run->graph->value[v].desc;
        if (!stk_shape_known(desc.shape)) return stk_fail(STK_INVALID, "value %d has an unknown shape", v);
        run->value[v] = harness_alloc(stk_desc_bytes(desc));
        if (!run->value[v]) return stk_fail_memory(stk_desc_bytes(desc));
        if (!is_leaf(node)) continue;
        double first = node->op == STK_OP_constant ? node->attrs.constant.value : 0;
        for (int64_t i = 0, n = stk_shape_count(desc.shape); i < n; i++)
            harness_store(desc.dtype, run->value[v], i, first);
    }
    if (is_leaf(node)) return STK_OK;
    stk_tensor_desc *desc = calloc((size_t)(node->n_in + node->n_out), sizeof(*desc));
    if (!desc) return stk_fail_memory(sizeof(*desc));
    stk_op_call call = stk_graph_call(run->graph, i_node, desc, desc + node->n_in);
    stk_status status = run->device->class->kernel(run->device, &call, &run->kernel[i_node]);
    free(desc);
    if (status != STK_OK) return status;
    run->scratch[i_node] = harness_alloc(run->kernel[i_node].scratch_bytes);
    return run->scratch[i_node] ? STK_OK : stk_fail_memory(run->kernel[i_node].scratch_bytes);
}

stk_status graph_run_open(const stk_graph *graph, stk_device *device, graph_run *out)
{
    stk_status status = STK_OK;
    memset(out, 0, sizeof(*out));
    STK_TRY(stk_graph_status(graph));
    out->graph = graph;
    out->device = device;
    out->value = calloc((size_t)graph->n_values + 1, sizeof(*out->value));
    out->kernel = calloc((size_t)graph->n_nodes + 1, sizeof(*out->kernel));
    out->scratch = calloc((size_t)graph->n_nodes + 1, sizeof(*out->scratch));
    if (!out->value || !out->kernel || !out->scratch) STK_TRY(stk_fail_memory((size_t)graph->n_values * 8));
    for (int32_t i = 0; i < graph->n_nodes; i++)
        STK_TRY(open_node(out, i));
done:
    if (status != STK_OK) graph_run_close(out);
    return status;
}

void graph_run_close(graph_run *run)
{
    for (int32_t v = 0; run->value && v < run->graph->n_values; v++)
        free(run->value[v]);
    for (int32_t i = 0; run->kernel && i < run->graph->n_nodes; i++)
        stk_kernel_free(&run->kernel[i]);
    for (int32_t i = 0; run->scratch && i < run->graph->n_nodes; i++)
        free(run->scratch[i]);
    free(run->value);
    free(run->kernel);
    free(run->scratch);
    memset(run, 0, sizeof(*run));
}

static stk_status run_node(graph_run *run, int32_t i_node)
{
    const stk_node *node = &run->graph->node[i_node];
    int i_failed = 0;
    void **in = calloc((size_t)node->n_in + 1, sizeof(*in));
    if (!in) return stk_fail_memory(sizeof(*in));
    for (int i = 0; i < node->n_in; i++)
        in[i] = run->value[node->in[i]];
    stk_entry entry = {&run->kernel[i_node],
                       {.in = in, .out = run->value + node->first_out, .scratch = run->scratch[i_node]}};
    stk_status status = run->device->class->run(run->device, &entry, 1, &i_failed);
    free(in);
    return status == STK_OK ? status : stk_fail_prefix(status, "node %d (%s): ", i_node, stk_op_name(node->op));
}

stk_status graph_run_all(graph_run *run)
{
    for (int32_t i = 0; i < run->graph->n_nodes; i++)
        if (!is_leaf(&run->graph->node[i])) STK_RETURN_IF_ERROR(run_node(run, i));
    return STK_OK;
}

void *graph_run_leaf(const graph_run *run, const char *name)
{
    stk_value x = stk_graph_find(run->graph, STK_OP_input, name);
    if (x.id < 0) x = stk_graph_find(run->graph, STK_OP_variable, name);
    return x.id < 0 ? NULL : run->value[x.id];
}

void *graph_run_output(const graph_run *run, const char *name)
{
    stk_value x = stk_graph_find_output(run->graph, name);
    return x.id < 0 ? NULL : run->value[x.id];
}
