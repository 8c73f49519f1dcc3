/* See packed.h. */
#include "engine/packed.h"

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

static int find_copy(const stk_packed_copies *copies, int variable, uint64_t layout)
{
    for (int i = 0; i < copies->n; i++) {
        const stk_packed_copy *copy = &copies->copy[i];
        if (copy->variable == variable && copy->layout == layout) return i;
    }
    return -1;
}

static int32_t variable_of_cast(const stk_graph *graph, int32_t cast)
{
    return without_names(graph, graph->node[cast].in[0]);
}

/* Whether node i would have packed what its input j is cast of, and may. */
static bool may_keep(const stk_program *program, int32_t i, int j, int32_t cast)
{
    const stk_graph *graph = program->graph;
    const stk_kernel *kernel = &program->kernel[i];
    if (!kernel->packed_bytes || kernel->packed_input != j) return false;
    if (!program->engine->packed.n_programs) return true; /* the first one */
    const char *name = graph->node[graph->value[variable_of_cast(graph, cast)].node].name;
    int variable = stk_variables_find(&program->engine->variables, name);
    return variable >= 0 && find_copy(&program->engine->packed, variable, kernel->packed_layout) >= 0;
}

/* is_name[i]: node i is a cast that only kernels read that have it packed. */
static void find_casts(const stk_program *program, bool *is_name)
{
    const stk_graph *graph = program->graph;
    for (int32_t i = 0; i < graph->n_nodes; i++)
        is_name[i] = graph->node[i].op == STK_OP_cast && find_cast(graph, graph->node[i].first_out) == i;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        for (int j = 0; j < node->n_in && node->op != STK_OP_reshape; j++) {
            int32_t cast = find_cast(graph, node->in[j]);
            if (cast >= 0 && is_name[cast]) is_name[cast] = may_keep(program, i, j, cast);
        }
    }
    for (int r = 0; r < graph->n_roots; r++) {
        int32_t cast = find_cast(graph, graph->root[r].value);
        if (cast >= 0) is_name[cast] = false;
    }
}

static void add_weight(stk_program *program, int32_t node, int32_t variable)
{
    stk_packed *packed = &program->packed;
    const stk_kernel *kernel = &program->kernel[node];
    int k = 0;
    while (k < packed->n && !(packed->weight[k].variable == variable &&
                              program->kernel[packed->weight[k].node].packed_layout == kernel->packed_layout))
        k++;
    packed->of_node[node] = k;
    if (k < packed->n) return;
    packed->weight[packed->n++] = (stk_packed_weight){node, variable, -1, -1};
    packed->kernel[k] = (stk_kernel){.run = kernel->pack, .state = kernel->state, .impl = kernel->impl};
    packed->bytes += (kernel->packed_bytes + 63) / 64 * 64;
}

stk_status stk_packed_find(stk_program *program)
{
    const stk_graph *graph = program->graph;
    stk_packed *packed = &program->packed;
    size_t n = (size_t)graph->n_nodes + 1;
    packed->weight = calloc(n, sizeof(*packed->weight));
    packed->kernel = calloc(n, sizeof(*packed->kernel));
    packed->of_node = malloc(n * sizeof(*packed->of_node));
    packed->is_name = calloc(n, sizeof(*packed->is_name));
    if (!packed->weight || !packed->kernel || !packed->of_node || !packed->is_name)
        return stk_fail_memory(n * sizeof(*packed->kernel));
    find_casts(program, packed->is_name);
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        packed->of_node[i] = -1;
        if (!program->kernel[i].packed_bytes) continue;
        int32_t cast = find_cast(graph, graph->node[i].in[program->kernel[i].packed_input]);
        if (cast >= 0 && packed->is_name[cast]) add_weight(program, i, variable_of_cast(graph, cast));
    }
    return STK_OK;
}

static void leave_copies(stk_engine *engine)
{
    stk_packed_copies *copies = &engine->packed;
    if (--copies->n_programs > 0) return;
    if (copies->data) engine->device->class->free(engine->device, copies->data, copies->bytes);
    free(copies->copy);
    *copies = (stk_packed_copies){0};
}

void stk_packed_drop(stk_program *program)
{
    stk_packed *packed = &program->packed;
    if (packed->shares) leave_copies(program->engine);
    free(packed->weight);
    free(packed->of_node);
    free(packed->is_name);
    free(packed->kernel);
    free(packed->entry);
    free(packed->pointers);
    *packed = (stk_packed){0};
}

/* A cast whose variable changes within the body of micro-batches would be read by the next one: no weight does. */
void stk_packed_find_writers(stk_program *program)
{
    const stk_graph *graph = program->graph;
    for (int k = 0; k < program->packed.n; k++) {
        stk_packed_weight *w = &program->packed.weight[k];
        for (int r = 0; r < graph->n_roots; r++) {
            if (graph->root[r].variable != w->variable) continue;
            const stk_planned_value *place = &program->plan.value[graph->root[r].value];
            bool in_place = place->place == STK_PLACE_VARIABLE && place->leaf == w->variable;
            w->writer = in_place ? graph->value[graph->root[r].value].node : graph->n_nodes;
        }
    }
}

/* --- making --- */

void *stk_packed_locate(const stk_program *program, int i)
{
    const stk_packed_copies *copies = &program->engine->packed;
    return (char *)copies->data + copies->copy[program->packed.weight[i].copy].offset;
}

/* All that the first program wants, in one piece. */
static stk_status make_copies(const stk_program *program, stk_packed_copies *copies)
{
    const stk_packed *packed = &program->packed;
    stk_device *device = program->engine->device;
    size_t offset = 0;
    copies->copy = calloc((size_t)packed->n, sizeof(*copies->copy));
    if (!copies->copy) return stk_fail_memory((size_t)packed->n * sizeof(*copies->copy));
    for (int k = 0; k < packed->n; k++) {
        const stk_kernel *kernel = &program->kernel[packed->weight[k].node];
        copies->copy[k] =
            (stk_packed_copy){program->variable[packed->weight[k].variable], kernel->packed_layout, offset, 0};
        offset += (kernel->packed_bytes + 63) / 64 * 64;
    }
    copies->n = packed->n;
    copies->bytes = offset;
    return device->class->alloc(device, copies->bytes, STK_MEMORY_SCRATCH, &copies->data);
}

stk_status stk_packed_alloc(stk_program *program)
{
    stk_packed *packed = &program->packed;
    stk_packed_copies *copies = &program->engine->packed;
    if (!packed->n) return STK_OK;
    size_t n = (size_t)packed->n;
    packed->entry = calloc(n, sizeof(*packed->entry));
    packed->pointers = calloc(2 * n, sizeof(*packed->pointers));
    if (!packed->entry || !packed->pointers) return stk_fail_memory(n * sizeof(*packed->entry));
    packed->shares = true;
    if (copies->n_programs++ == 0) STK_RETURN_IF_ERROR(make_copies(program, copies));
    for (int k = 0; k < packed->n; k++) {
        stk_packed_weight *w = &packed->weight[k];
        void **in = packed->pointers + 2 * (size_t)k;
        w->copy = find_copy(copies, program->variable[w->variable], program->kernel[w->node].packed_layout);
        in[0] = stk_program_locate(program, w->variable, 0);
        in[1] = stk_packed_locate(program, k);
        packed->entry[k] = (stk_entry){&packed->kernel[k], {.in = in, .out = in + 1}};
    }
    return STK_OK;
}

stk_status stk_packed_refresh(stk_program *program)
{
    uint64_t version = program->engine->variables.version;
    for (int k = 0; k < program->packed.n; k++) {
        stk_packed_copy *copy = &program->engine->packed.copy[program->packed.weight[k].copy];
        int i_failed = -1;
        if (copy->version == version) continue;
        stk_status status = stk_queue_run_now(program->engine->compute, &program->packed.entry[k], 1, &i_failed);
        if (status != STK_OK) return stk_fail_prefix(status, "packing weights: ");
        copy->version = version;
    }
    return STK_OK;
}

void stk_packed_note_run(stk_program *program)
{
    for (int k = 0; k < program->packed.n; k++)
        program->engine->packed.copy[program->packed.weight[k].copy].version = program->engine->variables.version;
}
