/* See kept.h. */
#include "engine/kept.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/program.h"

/* --- finding --- */

static int32_t without_names(const stk_graph *graph, int32_t value)
{
    while (graph->node[graph->value[value].node].op == STK_OP_reshape)
        value = graph->node[graph->value[value].node].in[0];
    return value;
}

/* The node that casts a variable from f32 into the value, or -1. */
static int32_t find_cast(const stk_graph *graph, int32_t value)
{
    int32_t i = graph->value[without_names(graph, value)].node;
    if (graph->node[i].op != STK_OP_cast) return -1;
    int32_t from = without_names(graph, graph->node[i].in[0]);
    bool is_variable = graph->node[graph->value[from].node].op == STK_OP_variable;
    return is_variable && graph->value[from].desc.dtype == STK_F32 ? i : -1;
}

/* is_name[i]: node i is a cast that only kernels read that keep it. */
static void find_casts(const stk_program *program, bool *is_name)
{
    const stk_graph *graph = program->graph;
    for (int32_t i = 0; i < graph->n_nodes; i++)
        is_name[i] = graph->node[i].op == STK_OP_cast && find_cast(graph, graph->node[i].first_out) == i;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        const stk_kernel *kernel = &program->kernel[i];
        for (int j = 0; j < node->n_in && node->op != STK_OP_reshape; j++) {
            int32_t cast = find_cast(graph, node->in[j]);
            if (cast >= 0 && !(kernel->kept_bytes && kernel->kept_input == j)) is_name[cast] = false;
        }
    }
    for (int r = 0; r < graph->n_roots; r++) {
        int32_t cast = find_cast(graph, graph->root[r].value);
        if (cast >= 0) is_name[cast] = false;
    }
}

/* Calls that differ in nothing but where their inputs lie have the same kernel. */
static bool is_same_call(const stk_graph *graph, int32_t a, int32_t b)
{
    const stk_node *x = &graph->node[a], *y = &graph->node[b];
    if (x->op != y->op || x->n_in != y->n_in || memcmp(&x->attrs, &y->attrs, sizeof(x->attrs))) return false;
    for (int j = 0; j < x->n_in; j++) {
        stk_tensor_desc p = graph->value[x->in[j]].desc, q = graph->value[y->in[j]].desc;
        if (p.dtype != q.dtype || !stk_shape_equal(p.shape, q.shape)) return false;
    }
    return true;
}

static int find_like(const stk_program *program, int32_t node, int32_t variable)
{
    const stk_kept *kept = &program->kept;
    for (int k = 0; k < kept->n; k++)
        if (kept->weight[k].variable == variable && is_same_call(program->graph, kept->weight[k].node, node)) return k;
    return -1;
}

static void add_weight(stk_program *program, int32_t node, int32_t variable)
{
    stk_kept *kept = &program->kept;
    const stk_kernel *kernel = &program->kernel[node];
    int k = find_like(program, node, variable);
    if (k < 0) {
        k = kept->n++;
        kept->weight[k] = (stk_kept_weight){node, variable, -1, kept->bytes, kernel->kept_bytes};
        kept->kernel[k] = (stk_kernel){.run = kernel->keep, .state = kernel->state, .impl = kernel->impl};
        kept->bytes += (kernel->kept_bytes + 63) / 64 * 64;
    }
    kept->of_node[node] = k;
}

stk_status stk_kept_find(stk_program *program)
{
    const stk_graph *graph = program->graph;
    stk_kept *kept = &program->kept;
    size_t n = (size_t)graph->n_nodes + 1;
    kept->weight = calloc(n, sizeof(*kept->weight));
    kept->kernel = calloc(n, sizeof(*kept->kernel));
    kept->of_node = malloc(n * sizeof(*kept->of_node));
    kept->is_name = calloc(n, sizeof(*kept->is_name));
    if (!kept->weight || !kept->kernel || !kept->of_node || !kept->is_name)
        return stk_fail_memory(n * sizeof(*kept->kernel));
    find_casts(program, kept->is_name);
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        kept->of_node[i] = -1;
        if (!program->kernel[i].kept_bytes) continue;
        int32_t cast = find_cast(graph, graph->node[i].in[program->kernel[i].kept_input]);
        if (cast < 0 || !kept->is_name[cast]) continue;
        add_weight(program, i, without_names(graph, graph->node[cast].in[0]));
    }
    return STK_OK;
}

void stk_kept_drop(stk_program *program)
{
    stk_kept *kept = &program->kept;
    stk_device *device = program->engine->device;
    if (kept->data) device->class->free(device, kept->data, kept->bytes);
    free(kept->weight);
    free(kept->of_node);
    free(kept->is_name);
    free(kept->kernel);
    free(kept->entry);
    free(kept->pointers);
    *kept = (stk_kept){0};
}

/* A cast whose variable changes within the body of micro-batches would be read by the next one: no weight does. */
void stk_kept_find_writers(stk_program *program)
{
    const stk_graph *graph = program->graph;
    for (int k = 0; k < program->kept.n; k++) {
        stk_kept_weight *w = &program->kept.weight[k];
        for (int r = 0; r < graph->n_roots; r++) {
            if (graph->root[r].variable != w->variable) continue;
            const stk_planned_value *place = &program->plan.value[graph->root[r].value];
            bool in_place = place->place == STK_PLACE_VARIABLE && place->leaf == w->variable;
            w->writer = in_place ? graph->value[graph->root[r].value].node : graph->n_nodes;
        }
    }
}

/* --- making --- */

void *stk_kept_locate(const stk_program *program, int i)
{
    return (char *)program->kept.data + program->kept.weight[i].offset;
}

stk_status stk_kept_alloc(stk_program *program)
{
    stk_kept *kept = &program->kept;
    stk_device *device = program->engine->device;
    if (!kept->n) return STK_OK;
    size_t n = (size_t)kept->n;
    kept->entry = calloc(n, sizeof(*kept->entry));
    kept->pointers = calloc(2 * n, sizeof(*kept->pointers));
    if (!kept->entry || !kept->pointers) return stk_fail_memory(n * sizeof(*kept->entry));
    STK_RETURN_IF_ERROR(device->class->alloc(device, kept->bytes, STK_MEMORY_SCRATCH, &kept->data));
    for (int k = 0; k < kept->n; k++) {
        void **in = kept->pointers + 2 * (size_t)k;
        in[0] = stk_program_locate(program, kept->weight[k].variable, 0);
        in[1] = stk_kept_locate(program, k);
        kept->entry[k] = (stk_entry){&kept->kernel[k], {.in = in, .out = in + 1}};
    }
    return STK_OK;
}

stk_status stk_kept_refresh(stk_program *program)
{
    stk_kept *kept = &program->kept;
    int i_failed = -1;
    if (!kept->n || kept->version == program->engine->variables.version) return STK_OK;
    stk_status status = stk_queue_run_now(program->engine->compute, kept->entry, kept->n, &i_failed);
    if (status != STK_OK) return stk_fail_prefix(status, "packing weights: ");
    kept->version = program->engine->variables.version;
    return STK_OK;
}
