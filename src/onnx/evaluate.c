/* Values that decide about shapes: where all that they depend on is known, the graph so far is computed for them, on
 * the reference device, node by node.
 */
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "graph/query.h"
#include "onnx/model.h"

enum { MOST_BYTES = 1 << 20, MOST_VALUES = 20000 }; /* of one value, since shapes are small; and how many values */

/* What the leaf holds, or NULL. */
static const void *leaf_data(stk_onnx *model, const stk_node *node)
{
    if (node->op == STK_OP_variable) {
        int32_t i = stk_name_table_find(&model->weight_by_name, node->name);
        return i < 0 ? NULL : model->weight[i].data;
    }
    stk_onnx_value *v = node->op == STK_OP_input ? stk_onnx_find(model, node->name) : NULL;
    return v && v->is_input && v->tensor ? v->tensor->data : NULL;
}

static stk_status run_node(stk_onnx *model, int32_t i_node, void **memory)
{
    const stk_graph *graph = model->graph;
    const stk_node *node = &graph->node[i_node];
    stk_status status = STK_OK;
    stk_kernel kernel = {0};
    void *scratch = NULL;
    size_t n = (size_t)(node->n_in + node->n_out);
    stk_tensor_desc *desc = calloc(n + 1, sizeof(*desc));
    void **pointer = calloc(n + 1, sizeof(*pointer));
    if (!desc || !pointer) STK_TRY(stk_fail_memory(n * sizeof(*desc)));
    stk_op_call call = stk_graph_call(graph, i_node, desc, desc + node->n_in);
    STK_TRY(model->reference->class->kernel(model->reference, &call, &kernel));
    if (kernel.scratch_bytes && !(scratch = calloc(1, kernel.scratch_bytes)))
        STK_TRY(stk_fail_memory(kernel.scratch_bytes));
    for (int i = 0; i < node->n_in; i++)
        pointer[i] = memory[node->in[i]];
    for (int i = 0; i < node->n_out; i++)
        pointer[node->n_in + i] = memory[node->first_out + i];
    stk_entry entry = {&kernel, {.in = pointer, .out = pointer + node->n_in, .scratch = scratch}};
    int i_failed;
    STK_TRY(model->reference->class->run(model->reference, &entry, 1, &i_failed));
done:
    stk_kernel_free(&kernel);
    free(scratch);
    free(pointer);
    free(desc);
    return status;
}

static stk_status run_needed(stk_onnx *model, const bool *needed, void **memory)
{
    stk_graph *graph = model->graph;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        if (!needed[i]) continue;
        for (int j = 0; j < node->n_out; j++) {
            stk_tensor_desc desc = graph->value[node->first_out + j].desc;
            if (!stk_shape_known(desc.shape) || stk_desc_bytes(desc) > MOST_BYTES)
                return stk_fail(STK_UNSUPPORTED, "it depends on a value of unknown or great size");
            memory[node->first_out + j] = calloc(1, stk_desc_bytes(desc) + 64);
            if (!memory[node->first_out + j]) return stk_fail_memory(stk_desc_bytes(desc));
        }
        if (node->op == STK_OP_input || node->op == STK_OP_variable) {
            const void *data = leaf_data(model, node);
            if (!data) return stk_fail(STK_UNSUPPORTED, "it depends on the input '%s'", node->name);
            memcpy(memory[node->first_out], data, stk_desc_bytes(graph->value[node->first_out].desc));
        } else {
            STK_RETURN_IF_ERROR(run_node(model, i, memory));
        }
    }
    return STK_OK;
}

stk_status stk_onnx_evaluate(stk_onnx *model, stk_onnx_value *value, const stk_onnx_tensor **out)
{
    stk_status status = STK_OK;
    void **memory = NULL;
    bool *needed = NULL;
    *out = value->tensor;
    if (*out) return STK_OK;
    if (++model->n_evaluated > MOST_VALUES)
        return stk_fail(STK_UNSUPPORTED, "more than %d values must be computed to know the model's shapes",
                        MOST_VALUES);
    stk_value x = stk_onnx_plain(model, value);
    STK_RETURN_IF_ERROR(stk_graph_status(model->graph));
    stk_graph *graph = model->graph;
    if (!model->reference) STK_RETURN_IF_ERROR(stk_device_open("reference", NULL, &model->reference));
    memory = calloc((size_t)graph->n_values + 1, sizeof(*memory));
    needed = calloc((size_t)graph->n_nodes + 1, sizeof(*needed));
    if (!memory || !needed) STK_TRY(stk_fail_memory((size_t)graph->n_values * sizeof(*memory)));
    stk_graph_mark_needed(x, needed);
    STK_TRY(run_needed(model, needed, memory));
    *out = stk_onnx_new_tensor(model->arena, stk_value_dtype(x), stk_value_shape(x), memory[x.id]);
    if (!*out) STK_TRY(stk_fail_memory(64));
done:
    for (int32_t i = 0; memory && i < graph->n_values; i++)
        free(memory[i]);
    free(memory);
    free(needed);
    if (status != STK_OK) stk_fail_prefix(status, "the value '%s' must be known: ", value->name);
    return status;
}
