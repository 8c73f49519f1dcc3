/* See engine/transfer.h. */
#include "engine/transfer.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/program.h"

/* --- blocks --- */

static int compare_parts(const void *a, const void *b)
{
    const stk_io_part *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return x->value < y->value ? -1 : x->value > y->value;
}

static void place_parts(stk_io_block *block)
{
    for (int i = 0; i < block->n_parts; i++) {
        block->part[i].offset = block->bytes;
        block->bytes += (block->part[i].bytes + 63) / 64 * 64;
    }
}

stk_status stk_transfer_list_inputs(const stk_program *program, stk_io_block *out)
{
    const stk_graph *graph = program->graph;
    *out = (stk_io_block){.part = calloc((size_t)graph->n_nodes + 1, sizeof(*out->part))};
    if (!out->part) return stk_fail_memory((size_t)graph->n_nodes * sizeof(*out->part));
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        if (graph->node[i].op != STK_OP_input) continue;
        int32_t value = graph->node[i].first_out;
        out->part[out->n_parts++] = (stk_io_part){.value = value, .bytes = stk_program_input_bytes(program, value)};
    }
    qsort(out->part, (size_t)out->n_parts, sizeof(*out->part), compare_parts);
    place_parts(out);
    return STK_OK;
}

static stk_status list_outputs(const stk_graph *graph, stk_io_block *out)
{
    *out = (stk_io_block){.part = calloc((size_t)graph->n_roots + 1, sizeof(*out->part))};
    if (!out->part) return stk_fail_memory((size_t)graph->n_roots * sizeof(*out->part));
    for (int32_t i = 0; i < graph->n_roots; i++) {
        int32_t value = graph->root[i].value;
        if (graph->root[i].variable >= 0) continue; /* An update. */
        out->part[out->n_parts++] = (stk_io_part){.value = value, .bytes = stk_desc_bytes(graph->value[value].desc)};
    }
    place_parts(out);
    return STK_OK;
}

void stk_io_block_free(stk_io_block *block)
{
    free(block->part);
    *block = (stk_io_block){0};
}

size_t stk_io_block_find(const stk_io_block *block, int32_t value)
{
    for (int i = 0; i < block->n_parts; i++)
        if (block->part[i].value == value) return block->part[i].offset;
    return SIZE_MAX;
}

/* --- memory and events --- */

static stk_status alloc_host(stk_device *device, size_t bytes, char **out)
{
    void *p = NULL;
    if (device->class->alloc_host) {
        STK_RETURN_IF_ERROR(device->class->alloc_host(device, bytes, &p));
    } else if (!(p = aligned_alloc(64, (bytes / 64 + 1) * 64))) {
        return stk_fail_memory(bytes);
    }
    *out = p;
    return STK_OK;
}

static void free_host(stk_device *device, void *p, size_t bytes)
{
    if (p && device->class->free_host)
        device->class->free_host(device, p, bytes);
    else
        free(p);
}

static stk_status alloc_device(stk_device *device, size_t bytes, char **out)
{
    void *p;
    STK_RETURN_IF_ERROR(device->class->alloc(device, bytes, STK_MEMORY_ZEROED, &p));
    *out = p;
    return STK_OK;
}

stk_status stk_transfer_new(stk_program *program, stk_transfer **out)
{
    stk_device *device = program->engine->device;
    const stk_queue_class *queues = device->class->queues;
    stk_transfer *t = calloc(1, sizeof(*t));
    if (!t) return stk_fail_memory(sizeof(*t));
    *out = t; /* What is made before a failure is freed with the program. */
    t->i_shown = -1;
    STK_RETURN_IF_ERROR(list_outputs(program->graph, &t->result));
    for (int i = 0; i < STK_N_SIDES; i++) {
        STK_RETURN_IF_ERROR(alloc_device(device, program->inputs.bytes, &t->side[i].device));
        STK_RETURN_IF_ERROR(alloc_host(device, program->values_bytes, &t->side[i].staging));
        STK_RETURN_IF_ERROR(queues->open_event(device, &t->side[i].copied));
        STK_RETURN_IF_ERROR(queues->open_event(device, &t->side[i].ran));
    }
    for (int i = 0; i < STK_RUNS_KEPT; i++) {
        STK_RETURN_IF_ERROR(alloc_device(device, t->result.bytes, &t->slot[i].device));
        STK_RETURN_IF_ERROR(alloc_host(device, t->result.bytes, &t->slot[i].host));
        STK_RETURN_IF_ERROR(queues->open_event(device, &t->slot[i].read));
    }
    return STK_OK;
}

void stk_transfer_free(stk_program *program)
{
    stk_transfer *t = program->transfer;
    stk_device *device = program->engine->device;
    const stk_queue_class *queues = device->class->queues;
    if (!t) return;
    for (int i = 0; i < STK_N_SIDES; i++) {
        if (t->side[i].device) device->class->free(device, t->side[i].device, program->inputs.bytes);
        free_host(device, t->side[i].staging, program->values_bytes);
        queues->close_event(t->side[i].copied);
        queues->close_event(t->side[i].ran);
    }
    for (int i = 0; i < STK_RUNS_KEPT; i++) {
        if (t->slot[i].device) device->class->free(device, t->slot[i].device, t->result.bytes);
        free_host(device, t->slot[i].host, t->result.bytes);
        queues->close_event(t->slot[i].read);
    }
    stk_io_block_free(&t->result);
    free(t);
    program->transfer = NULL;
}

/* --- a run --- */

/* Copies parts [first, end), whose values were set, from the staging memory: one copy. */
static stk_status copy_set_values(stk_program *program, int i_side, int first, int end)
{
    if (first == end) return STK_OK;
    const stk_io_part *part = program->inputs.part;
    size_t begin = part[first].offset, bytes = part[end - 1].offset + part[end - 1].bytes - begin;
    stk_engine *engine = program->engine;
    return engine->device->class->queues->copy(engine->in, program->transfer->side[i_side].device + begin,
                                               program->transfer->side[i_side].staging + begin, bytes,
                                               STK_COPY_TO_DEVICE);
}

static stk_status copy_inputs(stk_program *program, int i_side)
{
    const stk_io_block *inputs = &program->inputs;
    stk_engine *engine = program->engine;
    char *staging = program->transfer->side[i_side].staging, *device = program->transfer->side[i_side].device;
    int first_set = 0;
    for (int i = 0; i < inputs->n_parts; i++) {
        const stk_io_part *part = &inputs->part[i];
        const void *src = program->input[part->value];
        if (src == program->values + part->offset) {
            memcpy(staging + part->offset, src, part->bytes);
            continue;
        }
        STK_RETURN_IF_ERROR(copy_set_values(program, i_side, first_set, i));
        first_set = i + 1;
        STK_RETURN_IF_ERROR(engine->device->class->queues->copy(engine->in, device + part->offset, src, part->bytes,
                                                                STK_COPY_TO_DEVICE));
    }
    return copy_set_values(program, i_side, first_set, inputs->n_parts);
}

stk_status stk_transfer_begin(stk_program *program, int *i_side)
{
    stk_engine *engine = program->engine;
    stk_transfer *t = program->transfer;
    const stk_queue_class *queues = engine->device->class->queues;
    int i = (int)(t->n_runs % STK_N_SIDES);
    STK_RETURN_IF_ERROR(queues->sync(t->side[i].copied)); /* The staging memory has been read. */
    STK_RETURN_IF_ERROR(queues->wait(engine->in, t->side[i].ran));
    STK_RETURN_IF_ERROR(copy_inputs(program, i));
    STK_RETURN_IF_ERROR(queues->record(engine->in, t->side[i].copied));
    STK_RETURN_IF_ERROR(queues->wait(engine->compute, t->side[i].copied));
    *i_side = i;
    return STK_OK;
}

stk_status stk_transfer_end(stk_program *program)
{
    stk_engine *engine = program->engine;
    stk_transfer *t = program->transfer;
    const stk_queue_class *queues = engine->device->class->queues;
    int i_side = (int)(t->n_runs % STK_N_SIDES), i_slot = (int)(t->n_runs % STK_RUNS_KEPT);
    STK_RETURN_IF_ERROR(queues->wait(engine->compute, t->slot[i_slot].read));
    for (int i = 0; i < t->result.n_parts; i++) {
        const stk_io_part *part = &t->result.part[i];
        STK_RETURN_IF_ERROR(queues->copy(engine->compute, t->slot[i_slot].device + part->offset,
                                         stk_program_locate(program, part->value, i_side), part->bytes,
                                         STK_COPY_ON_DEVICE));
    }
    STK_RETURN_IF_ERROR(queues->record(engine->compute, t->side[i_side].ran));
    STK_RETURN_IF_ERROR(queues->wait(engine->out, t->side[i_side].ran));
    STK_RETURN_IF_ERROR(
        queues->copy(engine->out, t->slot[i_slot].host, t->slot[i_slot].device, t->result.bytes, STK_COPY_TO_HOST));
    STK_RETURN_IF_ERROR(queues->record(engine->out, t->slot[i_slot].read));
    t->n_runs++;
    return STK_OK;
}
