/* A plan in words: where each value lies and for how long, in the order of the nodes. */
#include "base/text.h"
#include "passes/plan.h"
#include "passes/plan_offsets.h"

static double mib(size_t bytes)
{
    return (double)bytes / 1048576;
}

static void print_peak(const stk_plan *plan, const stk_graph *graph, stk_text *out)
{
    size_t bound = plan->lower_bound_bytes;
    stk_text_add(out, "arena of %.3f MiB, %.1f %% above the %.3f MiB that are alive at once", mib(plan->arena_bytes),
                 bound ? 100 * ((double)plan->arena_bytes / (double)bound - 1) : 0, mib(bound));
    if (plan->peak_node < graph->n_nodes)
        stk_text_add(out, " at node %d, %s", (int)plan->peak_node, stk_op_name(graph->node[plan->peak_node].op));
    if (plan->spread_bytes) stk_text_add(out, "; spread over %.3f MiB", mib(plan->spread_bytes));
    stk_text_add(out, "\n");
}

static void print_value(const stk_plan *plan, const stk_graph *graph, int32_t v, stk_text *out)
{
    const stk_planned_value *value = &plan->value[v];
    char text[STK_SHAPE_TEXT_BYTES];
    stk_text_add(out, "v%d  %s  ", (int)v, stk_desc_text(graph->value[v].desc, text));
    if (value->place == STK_PLACE_ARENA) {
        const stk_plan_buffer *buffer = &plan->buffer[value->buffer];
        stk_text_add(out, "bytes %zu to %zu, alive from node %d to %d", value->offset, value->offset + buffer->bytes,
                     (int)buffer->first, (int)buffer->last);
        if (graph->value[v].device) stk_text_add(out, ", on device %d", (int)graph->value[v].device);
        if (buffer->value != v) stk_text_add(out, ", with v%d", (int)buffer->value);
    } else {
        const stk_node *leaf = &graph->node[graph->value[value->leaf].node];
        stk_text_add(out, "in %s '%s'", value->place == STK_PLACE_VARIABLE ? "variable" : "input", leaf->name);
    }
    stk_text_add(out, "\n");
}

void stk_plan_print(const stk_plan *plan, const stk_graph *graph, stk_text *out)
{
    print_peak(plan, graph, out);
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        if (node->op == STK_OP_input || node->op == STK_OP_variable) continue;
        stk_text_add(out, "node %d  %s%s\n", (int)i, stk_op_name(node->op),
                     plan->skipped[i] ? ", another name only" : "");
        for (int j = 0; j < node->n_out; j++) {
            stk_text_add(out, "  ");
            print_value(plan, graph, node->first_out + j, out);
        }
    }
    for (int i = 0; i < plan->n_copies; i++)
        stk_text_add(out, "copy  v%d into variable '%s'%s\n", (int)plan->copy[i].value,
                     graph->node[graph->value[plan->copy[i].variable].node].name,
                     plan->copy[i].in_body ? ", after each micro-batch" : "");
}
