/* See engine/profile.h. */
#include "engine/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/breakdown.h"
#include "engine/program.h"
#include "graph/layers.h"
#include "passes/plan_offsets.h"

/* --- what an entry is for --- */

/* True for a node whose output is a variable's next content. */
static bool updates(const stk_graph *graph, const stk_node *node)
{
    for (int r = 0; r < graph->n_roots; r++) {
        int32_t value = graph->root[r].value;
        if (graph->root[r].variable >= 0 && value >= node->first_out && value < node->first_out + node->n_out)
            return true;
    }
    return false;
}

/* By the op's name, so that an op that is added finds its place by its family. */
static const char *name_work(const stk_graph *graph, const stk_node *node)
{
    static const struct {
        const char *part, *work;
    } families[] = {
        {"linear_cross_entropy", "loss"},
        {"cross_entropy", "loss"},
        {"in_top_k", "loss"},
        {"conv", "conv"},
        {"matmul", "matmul"},
        {"norm", "normalisation"},
        {"attention", "attention"},
        {"pool", "pooling"},
        {"update", "optimiser"},
        {"softmax", "attention"},
        {"gather", "embedding"},
        {"scatter", "embedding"},
    };
    const char *name = stk_op_name(node->op);
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
        if (strstr(name, families[i].part)) return families[i].work;
    if (updates(graph, node)) return "optimiser";
    return node->op == STK_OP_fused ? "fused" : "other";
}

/* --- the table --- */

/* Bytes alive at each node: what begins there less what has ended. */
static stk_status find_alive(const stk_plan *plan, int32_t n_nodes, int64_t **out)
{
    int64_t *alive = calloc((size_t)n_nodes + 2, sizeof(*alive));
    if (!alive) return stk_fail_memory((size_t)n_nodes * sizeof(*alive));
    for (int32_t i = 0; i < plan->n_buffers; i++) {
        const stk_plan_buffer *b = &plan->buffer[i];
        if (b->first < 0 || b->first > n_nodes) continue;
        alive[b->first] += (int64_t)b->bytes;
        if (b->last < n_nodes) alive[b->last + 1] -= (int64_t)b->bytes;
    }
    for (int32_t i = 1; i <= n_nodes; i++)
        alive[i] += alive[i - 1];
    *out = alive;
    return STK_OK;
}

static void fill(const stk_program *program, int e, const stk_layer_name *layer, const int64_t *alive,
                 stk_trace_kernel *out)
{
    const stk_graph *graph = program->graph;
    int32_t i = program->info[e].node;
    char text[STK_SHAPE_TEXT_BYTES];
    *out = (stk_trace_kernel){.op = "copy", .impl = "", .work = "optimiser", .node = -1};
    if (i < -program->plan.n_copies) snprintf(out->op, sizeof(out->op), "pack");
    if (i < 0) return;
    const stk_node *node = &graph->node[i];
    snprintf(out->op, sizeof(out->op), "%s", stk_op_name(node->op));
    if (layer[i].text) snprintf(out->layer, sizeof(out->layer), "%.*s", layer[i].n, layer[i].text);
    out->impl = program->kernel[i].impl ? program->kernel[i].impl : "";
    out->work = name_work(graph, node);
    out->node = i;
    out->alive_bytes = alive[i];
    stk_cost cost = stk_graph_cost(graph, i);
    out->flops = cost.flops;
    out->bytes = cost.bytes;
    snprintf(out->shape, sizeof(out->shape), "%s", stk_desc_text(graph->value[node->first_out].desc, text));
}

stk_status stk_program_get_about(stk_program *program, const stk_trace_kernel **about, int *n)
{
    const stk_graph *graph = program->graph;
    stk_layer_name *layer = NULL;
    int64_t *alive = NULL;
    stk_status status = STK_OK;
    if (program->about) goto done;
    stk_trace_kernel *made = calloc((size_t)program->n_entries + 1, sizeof(*made));
    layer = calloc((size_t)graph->n_nodes + 1, sizeof(*layer));
    if (!made || !layer) status = stk_fail_memory((size_t)program->n_entries * sizeof(*made));
    if (status == STK_OK) status = stk_graph_find_layers(graph, layer);
    if (status == STK_OK) status = find_alive(&program->plan, graph->n_nodes, &alive);
    if (status != STK_OK) {
        free(made);
        goto done;
    }
    for (int e = 0; e < program->n_entries; e++)
        fill(program, e, layer, alive, &made[e]);
    program->about = made;
done:
    free(layer);
    free(alive);
    *about = program->about;
    *n = program->n_entries;
    return status;
}

int64_t stk_program_entry_ns(const stk_program *program, int i_entry)
{
    return program->info[i_entry].time_ns;
}

int64_t stk_program_kernels_ns(const stk_program *program)
{
    return program->kernels_ns;
}

int64_t stk_program_ranks_ns(const stk_program *program)
{
    int64_t sum = 0;
    for (int e = 0; e < program->n_entries; e++) {
        int32_t node = program->info[e].node;
        if (node >= 0 && stk_op_is_of_ranks(program->graph->node[node].op)) sum += program->info[e].time_ns;
    }
    return sum;
}

int64_t stk_program_n_profiled(const stk_program *program)
{
    return program->n_profiled;
}

void stk_program_trace(stk_program *program, bool on)
{
    program->tracing = on;
    program->profiling = on;
}

/* --- the arena --- */

static int compare_bytes(const void *a, const void *b)
{
    size_t x = ((const stk_plan_buffer *)a)->bytes, y = ((const stk_plan_buffer *)b)->bytes;
    return x < y ? 1 : x > y ? -1 : 0;
}

int stk_program_get_arena(stk_program *program, stk_arena_use *use, int n_most, int32_t *n_nodes)
{
    const stk_plan *plan = &program->plan;
    const stk_trace_kernel *about;
    int n_entries, n = 0;
    stk_plan_buffer *order = malloc(((size_t)plan->n_buffers + 1) * sizeof(*order));
    *n_nodes = program->graph->n_nodes;
    if (!order || stk_program_get_about(program, &about, &n_entries) != STK_OK) {
        free(order);
        return 0;
    }
    memcpy(order, plan->buffer, (size_t)plan->n_buffers * sizeof(*order));
    qsort(order, (size_t)plan->n_buffers, sizeof(*order), compare_bytes);
    for (; n < plan->n_buffers && n < n_most; n++) {
        const stk_plan_buffer *b = &order[n];
        use[n] = (stk_arena_use){.offset = b->offset,
                                 .bytes = b->bytes,
                                 .first = b->first,
                                 .last = b->last,
                                 .what = stk_program_name_use(program, b->value),
                                 .layer = ""};
        int32_t node = b->value < 0 ? b->first : program->graph->value[b->value].node;
        for (int e = 0; e < n_entries; e++)
            if (about[e].node == node) {
                use[n].layer = about[e].layer;
                break;
            }
    }
    free(order);
    return n;
}
