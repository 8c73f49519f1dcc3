/* Running a program: pointers are set when the arena or a binding has changed, then the device launches the list. */
#include "engine/program.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "trace/trace.h"

void stk_program_free(stk_program *program)
{
    if (!program) return;
    const stk_queue_class *queues = program->engine->device->class->queues;
    for (int i = 0; i < STK_N_SIDES; i++)
        queues->release(program->capture[i]);
    stk_dispatch_free(program);
    stk_transfer_free(program);
    stk_packed_drop(program);
    for (int32_t i = 0; program->kernel && i < program->graph->n_nodes; i++)
        stk_kernel_free(&program->kernel[i]);
    for (int i = 0; program->copy_kernel && i < program->plan.n_copies; i++)
        stk_kernel_free(&program->copy_kernel[i]);
    free(program->kernel);
    free(program->copy_kernel);
    free(program->variable);
    free(program->entry);
    free(program->info);
    free(program->about);
    free(program->pointers);
    free(program->input);
    free(program->values);
    stk_io_block_free(&program->inputs);
    stk_plan_free(&program->plan);
    stk_micro_free(&program->micro);
    stk_parts_free(&program->parts);
    stk_graph_free(program->graph);
    free(program);
}

size_t stk_program_variable_bytes(const stk_program *program)
{
    const stk_graph *graph = program->graph;
    size_t bytes = 0;
    for (int32_t i = 0; i < graph->n_nodes; i++)
        if (graph->node[i].op == STK_OP_variable) bytes += stk_desc_bytes(graph->value[graph->node[i].first_out].desc);
    return bytes;
}

static size_t library_bytes(const stk_program *program)
{
    size_t most = 0;
    for (int32_t i = 0; i < program->graph->n_nodes; i++)
        if (program->kernel[i].library_bytes > most) most = program->kernel[i].library_bytes;
    return most;
}

/* A node's part of graph and plan, and its kernel: about that, by what the C library gives out for whole networks. */
enum { NODE_BYTES = 3 << 10 };

static size_t own_bytes(const stk_program *program)
{
    size_t n_sides = (size_t)program->n_sides, n = (size_t)program->n_entries;
    return n * (n_sides * sizeof(*program->entry) + sizeof(*program->info) + sizeof(*program->about)) +
           n_sides * program->n_pointers * sizeof(*program->pointers) + (size_t)program->graph->n_nodes * NODE_BYTES;
}

size_t stk_program_own_bytes(const stk_program *program)
{
    size_t bytes = own_bytes(program), library = library_bytes(program);
    for (const stk_program *other = program->engine->programs; other; other = other->next) {
        if (other == program) continue;
        bytes += own_bytes(other);
        if (library_bytes(other) > library) library = library_bytes(other);
    }
    return library + (bytes > STK_UNCOUNTED_PROGRAM_BYTES ? bytes - STK_UNCOUNTED_PROGRAM_BYTES : 0);
}

int stk_program_input(const stk_program *program, const char *name)
{
    return stk_graph_find(program->graph, STK_OP_input, name).id;
}

stk_tensor_desc stk_program_input_desc(const stk_program *program, int i_input)
{
    return program->graph->value[i_input].desc;
}

void stk_program_bind(stk_program *program, int i_input, const void *data)
{
    if (i_input < 0 || program->input[i_input] == data) return;
    program->input[i_input] = data;
    program->is_bound = false;
    /* On other devices the program reads copies, which always lie in the same place. */
    if (!program->transfer) program->dirty = true;
}

stk_status stk_program_set(stk_program *program, int i_input, const void *value)
{
    if (i_input < 0) return STK_OK;
    size_t offset = stk_io_block_find(&program->inputs, i_input), bytes = stk_program_input_bytes(program, i_input);
    if (bytes > STK_MOST_SET_BYTES)
        return stk_fail(STK_INVALID, "an input of %zu bytes is too long to be set: bind it", bytes);
    memcpy(program->values + offset, value, bytes);
    stk_program_bind(program, i_input, program->values + offset);
    return STK_OK;
}

void *stk_program_locate(const stk_program *program, int32_t value, int i_side)
{
    static char no_elements[64]; /* Where there is no arena, all values are empty; kernels count on a pointer. */
    const stk_planned_value *place = &program->plan.value[value];
    switch (place->place) {
    case STK_PLACE_VARIABLE: return program->engine->variables.variable[program->variable[place->leaf]].data;
    case STK_PLACE_INPUT:
        if (program->transfer)
            return program->transfer->side[i_side].device + stk_io_block_find(&program->inputs, place->leaf);
        return (void *)program->input[place->leaf];
    default: {
        void *arena = stk_program_home(program, value)->arena;
        return arena ? (char *)arena + place->offset : no_elements;
    }
    }
}

/* The same for an entry that reads slice i_micro of the batch. */
static void *locate_slice(const stk_program *program, int32_t value, int i_side, int32_t i_micro)
{
    const stk_planned_value *place = &program->plan.value[value];
    char *p = stk_program_locate(program, value, i_side);
    return i_micro > 0 && place->place == STK_PLACE_INPUT ? p + stk_micro_offset(program, place->leaf, i_micro) : p;
}

static void set_pointers_of(stk_program *program, int e, int i_side)
{
    stk_kernel_args *args = &program->entry[i_side * program->n_entries + e].args;
    void **in = (void **)args->in, **out = (void **)args->out;
    int32_t i = program->info[e].node;
    if (i < -program->plan.n_copies) {
        int k = -1 - i - program->plan.n_copies;
        in[0] = stk_program_locate(program, program->packed.weight[k].variable, i_side);
        out[0] = stk_packed_locate(program, k);
        return;
    }
    if (i < 0) {
        const stk_planned_copy *copy = &program->plan.copy[-1 - i];
        in[0] = stk_program_locate(program, copy->value, i_side);
        out[0] = stk_program_locate(program, copy->variable, i_side);
        return;
    }
    const stk_node *node = &program->graph->node[i];
    for (int j = 0; j < node->n_in; j++)
        in[j] = locate_slice(program, node->in[j], i_side, program->info[e].i_micro);
    for (int j = 0; j < node->n_out; j++)
        out[j] = stk_program_locate(program, node->first_out + j, i_side);
    if (program->kernel[i].scratch_bytes)
        args->scratch = (char *)stk_program_home(program, node->first_out)->arena + program->plan.scratch_offset[i];
    if (program->packed.n && program->packed.of_node[i] >= 0)
        args->packed = stk_packed_locate(program, program->packed.of_node[i]);
}

static stk_status check_inputs(stk_program *program)
{
    const stk_graph *graph = program->graph;
    if (program->is_bound) return STK_OK;
    for (int32_t i = 0; i < graph->n_nodes; i++)
        if (graph->node[i].op == STK_OP_input && !program->input[graph->node[i].first_out])
            return stk_fail(STK_INVALID, "input '%s' is not bound", graph->node[i].name);
    program->is_bound = true;
    return STK_OK;
}

/* Tells a device that would rather not leave everything in the arena what is read of it after a run: the outputs. */
static stk_status keep_outputs(const stk_program *program, int i_side)
{
    const stk_queue_class *queues = program->engine->device->class->queues;
    if (!queues->keep || !program->transfer) return STK_OK;
    const stk_io_block *result = &program->transfer->result;
    stk_kept *kept = calloc((size_t)result->n_parts + 1, sizeof(*kept));
    if (!kept) return stk_fail_memory((size_t)result->n_parts * sizeof(*kept));
    for (int i = 0; i < result->n_parts; i++)
        kept[i] = (stk_kept){stk_program_locate(program, result->part[i].value, i_side), result->part[i].bytes};
    stk_status status = queues->keep(program->capture[i_side], kept, result->n_parts);
    free(kept);
    return status;
}

/* A capture of the host's sees new pointers by itself; others are captured again, which happens when the arena has
 * moved.
 */
static stk_status set_pointers(stk_program *program)
{
    stk_device *device = program->engine->device;
    const stk_queue_class *queues = device->class->queues;
    for (int s = 0; s < program->n_sides; s++) {
        for (int e = 0; e < program->n_entries; e++)
            set_pointers_of(program, e, s);
        if (program->dispatch) STK_RETURN_IF_ERROR(stk_dispatch_capture(program, s));
        if (program->dispatch || (program->capture[s] && device->class->on_host)) continue;
        queues->release(program->capture[s]);
        program->capture[s] = NULL;
        STK_RETURN_IF_ERROR(
            queues->capture(device, program->entry + s * program->n_entries, program->n_entries, &program->capture[s]));
        STK_RETURN_IF_ERROR(keep_outputs(program, s));
    }
    program->dirty = false;
    program->arena_version = program->engine->arena_version;
    return STK_OK;
}

static bool is_out_of_date(const stk_program *program)
{
    return program->dirty || program->arena_version != program->engine->arena_version;
}

stk_status stk_program_prepare(stk_program *program)
{
    return program->transfer && !program->plan_only && is_out_of_date(program) ? set_pointers(program) : STK_OK;
}

static void trace_entry(const stk_program *program, int e, int64_t from, int64_t begin, int64_t end)
{
    const stk_trace_kernel *about = &program->about[e];
    int64_t number = program->n_profiled * program->n_entries + e;
    stk_trace_event event = {.begin_ns = from, .end_ns = begin, .name = "launch", .kernel = about, .value = number};
    event.kind = STK_TRACE_LAUNCH;
    stk_trace_add(&event);
    event.begin_ns = begin;
    event.end_ns = end;
    event.name = about->op;
    event.kind = STK_TRACE_KERNEL;
    stk_trace_add(&event);
}

static stk_status launch_profiled(stk_program *program, int i_side, int *i_failed)
{
    stk_queue *queue = program->engine->compute;
    const stk_entry *entry = program->entry + i_side * program->n_entries;
    if (program->dispatch) STK_RETURN_IF_ERROR(stk_dispatch_begin_alone(program));
    STK_RETURN_IF_ERROR(queue->device->class->queues->finish(queue));
    int64_t last = stk_clock_ns();
    queue->ran_ns = -1;
    for (int e = 0; e < program->n_entries; e++) {
        int64_t start = stk_clock_ns();
        stk_status status = program->dispatch ? stk_dispatch_run_alone(program, e, i_side, i_failed)
                                              : stk_queue_run_now(queue, entry + e, 1, i_failed);
        if (status != STK_OK) {
            *i_failed = e;
            return status;
        }
        int64_t end = stk_clock_ns();
        /* Where the device tells, launching and waiting are no part of the kernel's time. */
        if (queue->ran_ns >= 0 && queue->ran_ns < end - start) start = end - queue->ran_ns;
        program->info[e].time_ns += end - start;
        program->kernels_ns += end - start;
        /* Another rank in this process may trace: without a table of its own, this one's entries are not in it. */
        if (program->tracing && program->about && stk_trace_on()) trace_entry(program, e, last, start, end);
        last = end;
    }
    program->n_profiled++;
    return STK_OK;
}

/* The first variable that a node reads; NULL: none. */
static const char *find_variable(const stk_graph *graph, const stk_node *node)
{
    for (int j = 0; j < node->n_in; j++) {
        const stk_node *source = &graph->node[graph->value[node->in[j]].node];
        if (source->op == STK_OP_variable) return source->name;
    }
    return NULL;
}

/* Says which kernel failed, and of which parameter. */
static stk_status blame(const stk_graph *graph, int32_t i, stk_status status)
{
    if (i < 0) return stk_fail_prefix(status, "copying or packing a variable: ");
    const char *name = find_variable(graph, &graph->node[i]), *op = stk_op_name(graph->node[i].op);
    return name ? stk_fail_prefix(status, "%s of '%s': ", op, name) : stk_fail_prefix(status, "%s: ", op);
}

/* Whether some entry up to the one that failed, -1: nobody knows which, writes a variable. */
static bool has_written(const stk_program *program, int i_failed)
{
    if (i_failed < 0) return program->updates;
    for (int e = 0; e <= i_failed; e++) {
        int32_t i = program->info[e].node;
        if (i < 0 && i >= -program->plan.n_copies) return true;
        for (int j = 0; i >= 0 && j < program->graph->node[i].n_out; j++)
            if (program->plan.value[program->graph->node[i].first_out + j].place == STK_PLACE_VARIABLE) return true;
    }
    return false;
}

bool stk_program_is_torn(const stk_program *program)
{
    return program->is_torn;
}

static stk_status launch(stk_program *program, int i_side)
{
    stk_queue *queue = program->engine->compute;
    uint64_t *version = &program->engine->variables.version;
    int i_failed = -1;
    *version += program->updates;
    stk_status status = program->profiling ? launch_profiled(program, i_side, &i_failed)
                        : program->dispatch
                            ? stk_dispatch_launch(program, i_side, &i_failed)
                            : queue->device->class->queues->launch(queue, program->capture[i_side], &i_failed);
    program->is_torn = status != STK_OK && has_written(program, i_failed);
    /* What it writes it has packed again. */
    if (status == STK_OK) stk_packed_note_run(program);
    if (status == STK_OK || i_failed < 0) return status;
    return blame(program->graph, program->info[i_failed].node, status);
}

stk_status stk_program_run(stk_program *program)
{
    int i_side = 0;
    if (program->plan_only) return stk_fail(STK_INVALID, "the program was only planned");
    STK_RETURN_IF_ERROR(check_inputs(program));
    if (is_out_of_date(program)) STK_RETURN_IF_ERROR(set_pointers(program));
    STK_RETURN_IF_ERROR(stk_packed_refresh(program));
    const stk_queue_class *queues = program->engine->device->class->queues;
    if (queues->forget) STK_RETURN_IF_ERROR(queues->forget(program->engine->compute));
    if (!program->transfer) return launch(program, 0);
    STK_RETURN_IF_ERROR(stk_transfer_begin(program, &i_side));
    STK_RETURN_IF_ERROR(launch(program, i_side));
    return stk_transfer_end(program);
}

stk_status stk_program_wait_inputs(stk_program *program)
{
    const stk_transfer *t = program->transfer;
    if (!t || t->n_runs == 0) return STK_OK;
    return program->engine->device->class->queues->sync(t->side[(t->n_runs - 1) % STK_N_SIDES].copied);
}

stk_status stk_program_wait_earlier(stk_program *program)
{
    const stk_transfer *t = program->transfer;
    if (!t || t->n_runs <= STK_N_SIDES) return STK_OK;
    return program->engine->device->class->queues->sync(t->slot[(t->n_runs - 1 - STK_N_SIDES) % STK_RUNS_KEPT].read);
}

stk_status stk_program_wait(stk_program *program, int n_back)
{
    stk_transfer *t = program->transfer;
    if (n_back < 0 || n_back >= (t ? STK_RUNS_KEPT : 1) || (t && n_back >= t->n_runs))
        return stk_fail(STK_INVALID, "the results of the run %d before the last are not kept", n_back);
    if (!t) return STK_OK;
    t->i_shown = t->n_runs - 1 - n_back;
    STK_RETURN_IF_ERROR(program->engine->device->class->queues->sync(t->slot[t->i_shown % STK_RUNS_KEPT].read));
    return program->dispatch ? stk_dispatch_failure(program) : STK_OK;
}

const void *stk_program_output(const stk_program *program, const char *name, stk_tensor_desc *desc)
{
    const stk_transfer *t = program->transfer;
    stk_value x = stk_graph_find_output(program->graph, name);
    if (x.id < 0) return NULL;
    if (desc) *desc = program->graph->value[x.id].desc;
    if (!t) return stk_program_locate(program, x.id, 0);
    if (t->i_shown < 0) return NULL;
    return t->slot[t->i_shown % STK_RUNS_KEPT].host + stk_io_block_find(&t->result, x.id);
}

stk_program_info stk_program_get_info(const stk_program *program)
{
    const stk_graph *graph = program->graph;
    stk_program_info info = {.arena_bytes = program->plan.arena_bytes,
                             .lower_bound_bytes = program->plan.lower_bound_bytes,
                             .variable_bytes = program->plan_only ? stk_program_variable_bytes(program)
                                                                  : program->engine->variables.bytes,
                             .packed_bytes = program->packed.bytes,
                             .program_bytes = stk_program_own_bytes(program),
                             .spread_bytes = stk_plan_placed_bytes(&program->plan) - program->plan.arena_bytes,
                             .n_entries = program->n_entries,
                             .n_segments = program->dispatch ? program->dispatch->n_segments : 0,
                             .n_micro = (int)program->micro.n,
                             .n_kept = program->recomputed.n_kept,
                             .n_recomputed = program->recomputed.n_dropped,
                             .recompute_flops = program->recomputed.flops * (double)program->micro.n};
    size_t used[STK_MOST_DEVICES] = {0};
    memcpy(info.device_bytes, program->plan.device_bytes, sizeof(info.device_bytes));
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        double times = (double)stk_program_times(program, i);
        if (times == 0) continue;
        stk_cost cost = stk_graph_cost(graph, i);
        info.flops += times * cost.flops;
        info.bytes += times * cost.bytes;
        const stk_node *node = &graph->node[i];
        for (int j = 0; j < node->n_out; j++) {
            const stk_planned_value *place = &program->plan.value[node->first_out + j];
            size_t end = place->offset + (stk_desc_bytes(graph->value[node->first_out + j].desc) + 63) / 64 * 64;
            size_t *most = &used[graph->value[node->first_out + j].device];
            if (place->place == STK_PLACE_ARENA && end > *most) *most = end;
        }
        size_t *most = &used[graph->value[node->first_out].device];
        size_t end = program->plan.scratch_offset[i] + (program->kernel[i].scratch_bytes + 63) / 64 * 64;
        if (program->kernel[i].scratch_bytes && end > *most) *most = end;
    }
    for (int d = 0; d < STK_MOST_DEVICES; d++)
        info.used_bytes += used[d];
    info.used_bytes -= info.spread_bytes;
    return info;
}

void stk_program_print(const stk_program *program, stk_text *out)
{
    const stk_graph *graph = program->graph;
    for (int e = 0; e < program->n_entries; e++) {
        int32_t i = program->info[e].node;
        if (program->info[e].i_micro > 0) continue;
        if (i < 0) {
            stk_text_add(out, "%4d  %s\n", e, i < -program->plan.n_copies ? "pack" : "copy");
            continue;
        }
        stk_tensor_desc in[STK_MOST_INPUTS], dst[STK_MOST_OUTPUTS];
        char text[STK_SHAPE_TEXT_BYTES];
        const stk_node *node = &graph->node[i];
        stk_text_add(out, "%4d  %-20s %-24s", e, stk_op_name(node->op),
                     program->kernel[i].impl ? program->kernel[i].impl : "");
        if (node->n_in > 64) continue;
        stk_op_call call = stk_graph_call(graph, i, in, dst);
        for (int j = 0; j < node->n_in; j++)
            stk_text_add(out, " %s", stk_desc_text(in[j], text));
        stk_text_add(out, " -> %s  %.3f GFLOP\n", stk_desc_text(dst[0], text), stk_op_cost(&call).flops * 1e-9);
    }
}

void stk_program_profile(stk_program *program, bool on)
{
    program->profiling = on;
}
