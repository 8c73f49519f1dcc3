/* See breakdown.h. What lives in the arena is counted where most is alive. */
#include "engine/breakdown.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/program.h"
#include "graph/layers.h"
#include "passes/plan_offsets.h"

/* --- variables --- */

/* True for "conv.weight.momentum" where "conv.weight" is trained: state of the optimiser. Where it is "conv.weight.raw"
 * that is trained, "conv.weight" is its mean. */
static bool belongs_to_trained(const stk_graph *graph, const char *name)
{
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        if (node->op != STK_OP_variable || !node->attrs.leaf.trainable) continue;
        size_t n = strlen(node->name), whole = n;
        if (n > 4 && !strcmp(node->name + n - 4, ".raw")) n -= 4;
        if (!strncmp(name, node->name, n) && (name[n] == '.' || (n < whole && !name[n]))) return true;
    }
    return false;
}

static void count_variables(const stk_graph *graph, stk_memory_plan *out)
{
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        if (node->op != STK_OP_variable) continue;
        stk_tensor_desc desc = graph->value[node->first_out].desc;
        size_t bytes = stk_desc_bytes(desc);
        if (node->attrs.leaf.trainable) {
            out->n_trainable += stk_shape_count(desc.shape);
            out->trainable_bytes += bytes;
        } else if (belongs_to_trained(graph, node->name)) {
            out->optimizer_bytes += bytes;
        } else {
            out->n_frozen += stk_shape_count(desc.shape);
            out->frozen_bytes += bytes;
        }
    }
}

/* --- the arena --- */

/* True for what an update of a variable reads, and for sums of it. */
static bool is_gradient(const stk_graph *graph, int32_t value)
{
    const stk_node *maker = &graph->node[graph->value[value].node];
    if (maker->op == STK_OP_accumulate || maker->op == STK_OP_carry) return true;
    if (!maker->backward) return false;
    for (int r = 0; r < graph->n_roots; r++) {
        if (graph->root[r].variable < 0) continue;
        const stk_node *update = &graph->node[graph->value[graph->root[r].value].node];
        for (int j = 0; j < update->n_in; j++)
            if (update->in[j] == value) return true;
    }
    return false;
}

const char *stk_program_name_use(const stk_program *program, int32_t value)
{
    const stk_graph *graph = program->graph;
    if (value < 0) return "workspace";
    if (is_gradient(graph, value)) return "gradient";
    return graph->node[graph->value[value].node].backward ? "backward" : "activation";
}

/* "layer1.0" of "layer1.0.conv1": two parts are enough to find one's way. */
static int shorten(stk_layer_name layer)
{
    int n_dots = 0;
    for (int i = 0; i < layer.n; i++)
        if (layer.text[i] == '.' && ++n_dots == 2) return i;
    return layer.n;
}

static void add_to_layer(stk_memory_plan *out, stk_layer_name layer, size_t bytes)
{
    char name[sizeof(out->layer->name)];
    snprintf(name, sizeof(name), "%.*s", layer.text ? shorten(layer) : 1, layer.text ? layer.text : "-");
    for (int i = 0; i < out->n_layers; i++)
        if (!strcmp(out->layer[i].name, name)) {
            out->layer[i].bytes += bytes;
            return;
        }
    memcpy(out->layer[out->n_layers].name, name, sizeof(name));
    out->layer[out->n_layers++].bytes = bytes;
}

static void count_arena(const stk_program *program, const stk_layer_name *layer, stk_memory_plan *out)
{
    const stk_graph *graph = program->graph;
    const stk_plan *plan = &program->plan;
    size_t alive = 0;
    for (int32_t i = 0; i < plan->n_buffers; i++) {
        const stk_plan_buffer *b = &plan->buffer[i];
        if (b->first > plan->peak_node || b->last < plan->peak_node) continue;
        alive += b->bytes;
        if (b->value < 0) {
            out->workspace_bytes += b->bytes;
        } else if (is_gradient(graph, b->value)) {
            out->gradient_bytes += b->bytes;
        } else if (graph->node[graph->value[b->value].node].backward) {
            out->backward_bytes += b->bytes;
        } else {
            out->activation_bytes += b->bytes;
            add_to_layer(out, layer[graph->value[b->value].node], b->bytes);
        }
    }
    out->unused_bytes = plan->arena_bytes - alive;
}

stk_status stk_program_break_down(const stk_program *program, stk_memory_plan *out)
{
    const stk_graph *graph = program->graph;
    stk_program_info info = stk_program_get_info(program);
    stk_layer_name *layer = calloc((size_t)graph->n_nodes + 1, sizeof(*layer));
    *out = (stk_memory_plan){.layer = calloc((size_t)program->plan.n_buffers + 1, sizeof(*out->layer))};
    if (!layer || !out->layer) {
        free(layer);
        stk_memory_plan_free(out);
        return stk_fail_memory((size_t)graph->n_nodes * sizeof(*layer));
    }
    stk_status status = stk_graph_find_layers(graph, layer);
    if (status != STK_OK) {
        free(layer);
        stk_memory_plan_free(out);
        return status;
    }
    count_variables(graph, out);
    count_arena(program, layer, out);
    free(layer);
    out->arena_bytes = info.arena_bytes;
    out->lower_bound_bytes = info.lower_bound_bytes;
    out->packed_bytes = info.packed_bytes;
    out->spread_bytes = info.spread_bytes;
    out->program_bytes = info.program_bytes;
    out->peak_bytes = info.arena_bytes + stk_program_variable_bytes(program) + info.packed_bytes;
    out->flops = info.flops;
    out->bytes = info.bytes;
    out->recompute_flops = info.recompute_flops;
    out->n_kept = info.n_kept;
    out->n_recomputed = info.n_recomputed;
    out->n_micro = info.n_micro;
    for (int32_t i = 0; i < graph->n_nodes; i++)
        out->n_groups += graph->node[i].op == STK_OP_fused;
    return STK_OK;
}

void stk_memory_plan_free(stk_memory_plan *plan)
{
    if (!plan) return;
    free(plan->layer);
    *plan = (stk_memory_plan){0};
}

double stk_program_expect_s(const stk_program *program, const stk_device_speed *speed)
{
    const stk_graph *graph = program->graph;
    double sum = 0;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        double times = (double)stk_program_times(program, i);
        if (times == 0) continue;
        stk_cost cost = stk_graph_cost(graph, i);
        double saved = program->kernel[i].flops, flops = saved > 0 ? saved : cost.flops;
        double compute = flops / speed->flops_per_s, move = cost.bytes / speed->bytes_per_s;
        sum += times * (compute > move ? compute : move);
    }
    return sum;
}
