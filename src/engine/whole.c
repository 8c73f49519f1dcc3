/* See engine/whole.h. */
#include "engine/whole.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/program.h"
#include "graph/layers.h"

/* --- the module --- */

static stk_status get_capture(stk_program *program, stk_capture **out)
{
    const stk_device *device = program->engine->device;
    *out = NULL;
    if (!device->class->queues->print || !device->class->queues->analyse)
        return stk_fail(STK_UNSUPPORTED, "the device '%s' compiles no whole programs", device->class->name);
    STK_RETURN_IF_ERROR(stk_program_prepare(program));
    *out = program->capture[0];
    return STK_OK;
}

/* Of the first side: variables, inputs, outputs. */
static int list_places(const stk_program *program, stk_named_place *out)
{
    const stk_variables *variables = &program->engine->variables;
    const stk_graph *graph = program->graph;
    int n = 0;
    for (int i = 0; i < variables->n; i++)
        out[n++] = (stk_named_place){variables->variable[i].data, stk_desc_bytes(variables->variable[i].desc),
                                     variables->variable[i].name};
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        int32_t value = graph->node[i].first_out;
        if (graph->node[i].op == STK_OP_input)
            out[n++] = (stk_named_place){stk_program_locate(program, value, 0), stk_program_input_bytes(program, value),
                                         graph->node[i].name};
    }
    for (int32_t i = 0; i < graph->n_roots; i++)
        if (graph->root[i].variable < 0)
            out[n++] = (stk_named_place){stk_program_locate(program, graph->root[i].value, 0),
                                         stk_desc_bytes(graph->value[graph->root[i].value].desc), graph->root[i].name};
    return n;
}

stk_status stk_program_print_module(stk_program *program, stk_text *out)
{
    stk_capture *capture;
    STK_RETURN_IF_ERROR(get_capture(program, &capture));
    size_t most = (size_t)(program->engine->variables.n + program->graph->n_nodes + program->graph->n_roots) + 1;
    stk_named_place *places = calloc(most, sizeof(*places));
    if (!places) return stk_fail_memory(most * sizeof(*places));
    int n = list_places(program, places);
    stk_status status = program->engine->device->class->queues->print(capture, places, n, out);
    free(places);
    return status;
}

stk_status stk_program_analyse(stk_program *program, stk_compiled_program *out)
{
    stk_capture *capture;
    STK_RETURN_IF_ERROR(get_capture(program, &capture));
    return program->engine->device->class->queues->analyse(capture, out);
}

size_t stk_program_fed_bytes(const stk_program *program)
{
    const stk_graph *graph = program->graph;
    size_t bytes = 0;
    for (int32_t i = 0; i < graph->n_nodes; i++)
        if (graph->node[i].op == STK_OP_input) bytes += stk_program_input_bytes(program, graph->node[i].first_out);
    return bytes;
}

/* --- tiles --- */

static bool is_product(stk_op op)
{
    return op == STK_OP_matmul || op == STK_OP_conv2d || op == STK_OP_conv2d_grad_data ||
           op == STK_OP_conv2d_grad_weight || op == STK_OP_conv3d || op == STK_OP_conv3d_grad_data ||
           op == STK_OP_conv3d_grad_weight;
}

static double fill_up(double n, double side)
{
    double tiles = (double)(int64_t)((n + side - 1) / side);
    return n > 0 ? tiles * side / n : 1;
}

/* How many times its arithmetic a product takes where rows fill up to 8 and columns and what is summed over to 128. Of
 * a convolution: as a product of all its places. */
static double pad_product(const stk_op_call *call, double flops)
{
    stk_shape y = call->out[0].shape;
    double count = (double)stk_shape_count(y);
    double columns = y.rank > 0 ? (double)y.dim[y.rank - 1] : 1, rows = y.rank > 1 ? (double)y.dim[y.rank - 2] : 1;
    if (call->op != STK_OP_matmul) rows = columns > 0 ? count / columns : 1;
    double inner = count > 0 ? flops / (2 * count) : 1;
    return fill_up(rows, 8) * fill_up(columns, 128) * fill_up(inner, 128);
}

/* Keeps the three layers that lose most. */
static void note_layer(stk_compiled_plan *out, stk_layer_name layer, double lost)
{
    stk_padded_layer new = {.lost_flops = lost};
    snprintf(new.name, sizeof(new.name), "%.*s", layer.text ? layer.n : 1, layer.text ? layer.text : "-");
    for (int i = 0; i < STK_PADDED_LAYERS; i++)
        if (!strcmp(out->padded[i].name, new.name)) {
            new.lost_flops += out->padded[i].lost_flops;
            memmove(&out->padded[i], &out->padded[i + 1], (size_t)(STK_PADDED_LAYERS - 1 - i) * sizeof(new));
            out->padded[STK_PADDED_LAYERS - 1] = (stk_padded_layer){.lost_flops = 0};
        }
    for (int i = 0; i < STK_PADDED_LAYERS; i++) {
        if (out->padded[i].lost_flops >= new.lost_flops) continue;
        memmove(&out->padded[i + 1], &out->padded[i], (size_t)(STK_PADDED_LAYERS - 1 - i) * sizeof(new));
        out->padded[i] = new;
        return;
    }
}

static void read_node(const stk_program *program, int32_t i, const stk_op_call *call, stk_layer_name layer,
                      stk_compiled_plan *out)
{
    stk_cost cost = {0};
    int64_t times = stk_program_times(program, i);
    if (times == 0) return;
    if (call->op == STK_OP_gather) out->n_gathers++;
    if (call->op == STK_OP_scatter_add) out->n_scatters++;
    if (!is_product(call->op)) return;
    stk_op_get_rule(call->op)->cost(call, &cost);
    double flops = cost.flops * (double)times, factor = pad_product(call, cost.flops);
    out->n_products++;
    out->product_flops += flops;
    out->padded_flops += flops * factor;
    if (call->in[0].dtype == STK_F32) {
        out->n_f32_products++;
        out->f32_flops += flops;
    }
    if (factor > 1.02) note_layer(out, layer, flops * (factor - 1));
}

stk_status stk_program_read_tiles(const stk_program *program, stk_compiled_plan *out)
{
    const stk_graph *graph = program->graph;
    stk_tensor_desc *desc = malloc(((size_t)graph->n_values + 64) * 2 * sizeof(*desc));
    stk_layer_name *layer = calloc((size_t)graph->n_nodes + 1, sizeof(*layer));
    stk_status status = STK_OK;
    if (!desc || !layer) STK_TRY(stk_fail_memory((size_t)graph->n_values * sizeof(*desc)));
    STK_TRY(stk_graph_find_layers(graph, layer));
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        if (graph->node[i].op == STK_OP_input || graph->node[i].op == STK_OP_variable) continue;
        stk_op_call call = stk_graph_call(graph, i, desc, desc + graph->n_values + 64);
        read_node(program, i, &call, layer[i], out);
    }
done:
    free(desc);
    free(layer);
    return status;
}
