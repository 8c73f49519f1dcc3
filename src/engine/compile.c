/* From a graph to a program: run the passes, ask the device for kernels, plan the memory, list the entries. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/program.h"
#include "passes/passes.h"

/* Why the options leave the pass out, or NULL. By name, so that a program whose list lacks a pass does not link it. */
static const char *why_left_out(const char *name, const stk_compile_options *options)
{
    bool scales = options->loss_scale.kind >= STK_LOSS_SCALE_FIXED || options->skip_nonfinite;
    bool fuses = !strcmp(name, "fuse") || !strcmp(name, "fuse_residual") || !strcmp(name, "fuse_epilogue");
    if (!strcmp(name, "autocast") && options->compute == STK_F32 && !options->tf32) return "all is computed in f32";
    if (!strcmp(name, "loss_scale") && !scales) return "the loss is not scaled and no step is skipped";
    if (!strcmp(name, "unpack_pixels") && !options->pixels) return "images come as the network reads them";
    if (!strcmp(name, "replicate") && stk_comm_n_ranks(options->comm) < 2) return "there is one replica";
    if (!strcmp(name, "overlap") && stk_comm_n_ranks(options->comm) < 2) return "there is one replica";
    if (!strcmp(name, "overlap") && !options->overlap) return "sums are waited for where they are";
    return fuses && options->no_fuse ? "nothing is fused" : NULL;
}

/* The same of passes for several devices. */
static const char *why_one_device(const char *name, const stk_engine *engine)
{
    bool places = !strcmp(name, "place") || !strcmp(name, "settle");
    return places && engine->n_devices == 1 ? "there is one device" : NULL;
}

static bool shares_memory(const stk_engine *engine)
{
    bool all = true;
    for (int d = 0; d < engine->n_devices; d++)
        all &= engine->on[d].device->class->on_host;
    return all;
}

static bool is_dumped(const char *name, const stk_compile_options *options)
{
    const char *wanted = options->dump_after;
    return wanted && options->dump && (!strcmp(wanted, "all") || !strcmp(wanted, name));
}

static stk_status run_passes(const stk_named_pass *passes, const stk_engine *engine, stk_graph *graph,
                             const stk_compile_options *options, int64_t n_micro, stk_recompute_report *recomputed)
{
    stk_pass_options pass_options = {.caps = engine->device->caps,
                                     .training = !options->inference,
                                     .compute = options->compute,
                                     .tf32 = options->tf32,
                                     .n_micro = n_micro,
                                     .strict_rows = options->strict ? options->micro : 0,
                                     .n_ranks = stk_comm_n_ranks(options->comm),
                                     .sync_norm = options->sync_norm,
                                     .overlap = options->overlap ? STK_MOST_OVERLAP : 0,
                                     .narrow_sums = options->narrow_sums,
                                     .local_steps = options->local_steps,
                                     .shard_state = options->shard_state,
                                     .loss_scale = options->loss_scale,
                                     .skip_nonfinite = options->skip_nonfinite,
                                     .pixels = options->pixels,
                                     .recompute = options->recompute,
                                     .recompute_most = options->recompute_most,
                                     .recompute_share = options->recompute_share,
                                     .recompute_report = recomputed,
                                     .place = options->place,
                                     .n_places = options->n_places,
                                     .n_devices = engine->n_devices,
                                     .shared_memory = shares_memory(engine),
                                     .stop = options->stop};
    for (int i = 0; passes[i].name; i++) {
        STK_RETURN_IF_ERROR(stk_pass_ask_stop(options->stop));
        const char *why = why_left_out(passes[i].name, options);
        if (!why) why = why_one_device(passes[i].name, engine);
        if (why && options->dump_after && !strcmp(options->dump_after, passes[i].name))
            return stk_fail(STK_NOT_FOUND, "there is no graph after the pass '%s', which is left out: %s",
                            passes[i].name, why);
        if (why) continue;
        stk_status status = passes[i].run(graph, &pass_options);
#ifndef NDEBUG
        if (status == STK_OK) status = stk_graph_verify(graph);
#endif
        if (status != STK_OK) return stk_fail_prefix(status, "pass '%s': ", passes[i].name);
        if (!is_dumped(passes[i].name, options)) continue;
        char *text = stk_graph_print(graph);
        if (!text) return stk_fail_memory(1024);
        options->dump(options->dump_user, passes[i].name, text);
        free(text);
    }
    return STK_OK;
}

static stk_status check_inputs(const stk_graph *graph, const stk_device *device)
{
    for (int32_t i = 0; i < graph->n_nodes && !device->caps->u8; i++)
        if (graph->node[i].op == STK_OP_input && graph->value[graph->node[i].first_out].desc.dtype == STK_U8)
            return stk_fail(STK_UNSUPPORTED, "input '%s': the device '%s' takes no bytes", graph->node[i].name,
                            device->class->name);
    return STK_OK;
}

/* What takes long of kernels is made ahead, for all of them. */
static stk_status expect_kernels(const stk_program *program, const volatile int *stop, stk_tensor_desc *desc)
{
    const stk_graph *graph = program->graph;
    const stk_engine *engine = program->engine;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        stk_op op = graph->node[i].op;
        if (op == STK_OP_input || op == STK_OP_variable || stk_op_is_of_ranks(op)) continue;
        if (stk_dispatch_is_staged(program, i)) continue;
        stk_device *device = stk_program_home(program, graph->node[i].first_out)->device;
        if (!device->class->expect) continue;
        stk_op_call call = stk_graph_call(graph, i, desc, desc + graph->n_values + 64);
        STK_RETURN_IF_ERROR(device->class->expect(device, &call));
    }
    for (int i = 0; i < engine->n_devices; i++) {
        stk_device *device = engine->on[i].device;
        if (device->class->prepare) STK_RETURN_IF_ERROR(device->class->prepare(device, stop));
    }
    return STK_OK;
}

static stk_status find_kernels(stk_program *program, const stk_compile_options *options)
{
    const stk_graph *graph = program->graph;
    stk_status status = STK_OK;
    stk_tensor_desc *desc = NULL;
    program->kernel = calloc((size_t)graph->n_nodes + 1, sizeof(*program->kernel));
    desc = malloc(((size_t)graph->n_values + 64) * 2 * sizeof(*desc));
    if (!program->kernel || !desc) STK_TRY(stk_fail_memory((size_t)graph->n_nodes * sizeof(*program->kernel)));
    STK_TRY(expect_kernels(program, options->stop, desc));
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        stk_op op = graph->node[i].op;
        if (op == STK_OP_input || op == STK_OP_variable) continue;
        if (stk_dispatch_is_staged(program, i)) continue;
        STK_TRY(stk_pass_ask_stop(options->stop));
        stk_device *device = stk_program_home(program, graph->node[i].first_out)->device;
        stk_op_call call = stk_graph_call(graph, i, desc, desc + graph->n_values + 64);
        STK_TRY(stk_op_is_of_ranks(op) ? stk_ranks_kernel(device, options->comm, &call, &program->kernel[i])
                                       : device->class->kernel(device, &call, &program->kernel[i]));
    }
done:
    free(desc);
    return status;
}

/* A copy is a reshape to the same shape. */
static stk_status find_copy_kernels(stk_program *program)
{
    const stk_plan *plan = &program->plan;
    program->copy_kernel = calloc((size_t)plan->n_copies + 1, sizeof(*program->copy_kernel));
    if (!program->copy_kernel) return stk_fail_memory((size_t)plan->n_copies * sizeof(*program->copy_kernel));
    for (int i = 0; i < plan->n_copies; i++) {
        stk_tensor_desc in = program->graph->value[plan->copy[i].value].desc, out = in;
        stk_attrs attrs = stk_attrs_zero();
        attrs.shape = in.shape;
        stk_op_call call = {STK_OP_reshape, &attrs, 1, 1, &in, &out};
        stk_device *device = stk_program_home(program, plan->copy[i].variable)->device;
        STK_RETURN_IF_ERROR(device->class->kernel(device, &call, &program->copy_kernel[i]));
    }
    return STK_OK;
}

static stk_status make_variables(stk_program *program)
{
    const stk_graph *graph = program->graph;
    program->variable = calloc((size_t)graph->n_values + 1, sizeof(*program->variable));
    program->input = calloc((size_t)graph->n_values + 1, sizeof(*program->input));
    if (!program->variable || !program->input)
        return stk_fail_memory((size_t)graph->n_values * sizeof(*program->variable));
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        if (node->op != STK_OP_variable || program->plan_only) continue;
        int number;
        STK_RETURN_IF_ERROR(stk_variables_get(&program->engine->variables, node->name,
                                              graph->value[node->first_out].desc, graph->value[node->first_out].device,
                                              &node->attrs, &number));
        program->variable[node->first_out] = number;
    }
    return STK_OK;
}

static stk_status make_entries(stk_program *program)
{
    size_t n = (size_t)program->n_entries + 1, n_lists = (size_t)program->n_sides;
    size_t n_pointers = program->n_pointers * n_lists + 1;
    program->entry = calloc(n * n_lists, sizeof(*program->entry));
    program->info = calloc(n, sizeof(*program->info));
    program->pointers = calloc(n_pointers, sizeof(*program->pointers));
    if (!program->entry || !program->info || !program->pointers)
        return stk_fail_memory(n_pointers * sizeof(*program->pointers));
    return STK_OK;
}

/* What list_entries will list for one side at most: weights that others pack are not in it. */
static stk_status count_entries(stk_program *program)
{
    const stk_graph *graph = program->graph;
    const stk_plan *plan = &program->plan;
    size_t n = (size_t)program->packed.n, n_pointers = 2 * n;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        size_t times = (size_t)stk_program_times(program, i);
        n += times;
        n_pointers += times * (size_t)(graph->node[i].n_in + graph->node[i].n_out);
    }
    for (int i = 0; i < plan->n_copies; i++) {
        size_t times = plan->copy[i].in_body ? (size_t)program->micro.n : 1;
        n += times;
        n_pointers += 2 * times;
    }
    if (n > INT_MAX)
        return stk_fail(STK_UNSUPPORTED, "%zu kernels a step are too many: the %lld micro-batches are too small", n,
                        (long long)program->micro.n);
    program->n_entries = (int)n;
    program->n_pointers = n_pointers;
    return STK_OK;
}

/* Where the next entry and its pointers go. */
typedef struct entry_writer {
    stk_program *program;
    stk_entry *entry;
    void **next;
    int n; /* of this side */
} entry_writer;

static void add_entry(entry_writer *w, int32_t node, int32_t i_micro, const stk_kernel *kernel, int n_in, int n_out)
{
    w->program->info[w->n++] = (stk_program_entry_info){.node = node, .i_micro = i_micro};
    *w->entry++ = (stk_entry){kernel, {.in = w->next, .out = w->next + n_in}};
    w->next += n_in + n_out;
}

/* Those whose variable that node has written. */
static void add_kept(entry_writer *w, int32_t writer)
{
    const stk_program *program = w->program;
    for (int k = 0; k < program->packed.n; k++)
        if (program->packed.weight[k].writer == writer)
            add_entry(w, -1 - program->plan.n_copies - k, 0, &program->packed.kernel[k], 1, 1);
}

static void add_nodes(entry_writer *w, int32_t begin, int32_t end, int32_t i_micro)
{
    const stk_program *program = w->program;
    for (int32_t i = begin; i < end; i++) {
        const stk_node *node = &program->graph->node[i];
        bool is_late = stk_program_is_late(program, i);
        if (is_late && i_micro < program->micro.n - 1) continue;
        if (!program->plan.skipped[i])
            add_entry(w, i, is_late ? 0 : i_micro, &program->kernel[i], node->n_in, node->n_out);
        add_kept(w, i);
    }
}

static void add_copies(entry_writer *w, bool in_body, int32_t i_micro)
{
    const stk_program *program = w->program;
    for (int i = 0; i < program->plan.n_copies; i++)
        if (program->plan.copy[i].in_body == in_body) add_entry(w, -1 - i, i_micro, &program->copy_kernel[i], 1, 1);
}

/* The body's entries stand there once for each slice. Each side's list has pointers of its own, since the inputs of a
 * side lie elsewhere. */
static stk_status list_entries(stk_program *program)
{
    STK_RETURN_IF_ERROR(make_entries(program));
    int32_t body = program->parts.n_begin, end = body + program->parts.n_body;
    entry_writer w = {.program = program, .entry = program->entry, .next = program->pointers};
    for (int side = 0; side < program->n_sides; side++) {
        w.n = 0;
        add_nodes(&w, 0, body, 0);
        for (int32_t i = 0; i < program->micro.n && end > body; i++) {
            add_nodes(&w, body, end, i);
            add_copies(&w, true, i);
        }
        add_nodes(&w, end, program->graph->n_nodes, 0);
        add_copies(&w, false, 0);
        add_kept(&w, program->graph->n_nodes);
    }
    program->n_entries = w.n;
    program->dirty = true;
    return STK_OK;
}

static stk_status make_inputs(stk_program *program)
{
    STK_RETURN_IF_ERROR(stk_transfer_list_inputs(program, &program->inputs));
    for (int i = 0; i < program->inputs.n_parts; i++) {
        const stk_io_part *part = &program->inputs.part[i];
        if (part->bytes <= STK_MOST_SET_BYTES) program->values_bytes = part->offset + (part->bytes + 63) / 64 * 64;
    }
    program->values = aligned_alloc(64, program->values_bytes + 64);
    if (!program->values) return stk_fail_memory(program->values_bytes);
    if (program->engine->device->class->on_host || program->plan_only) return STK_OK;
    return stk_transfer_new(program, &program->transfer);
}

static stk_status dump_plan(const stk_program *program, const stk_compile_options *options)
{
    if (!is_dumped("plan", options)) return STK_OK;
    stk_text text = {0};
    stk_plan_print(&program->plan, program->graph, &text);
    stk_status status = stk_text_status(&text);
    if (status == STK_OK) options->dump(options->dump_user, "plan", stk_text_get(&text));
    stk_text_free(&text);
    return status;
}

/* Another program of the engine may have more, such as the optimiser's state. */
static size_t all_variable_bytes(const stk_program *program)
{
    size_t own = stk_program_variable_bytes(program), all = program->engine->variables.bytes;
    return own > all ? own : all;
}

static size_t planned_bytes(const stk_program *program)
{
    return all_variable_bytes(program) + program->plan.arena_bytes + program->packed.bytes +
           stk_program_own_bytes(program);
}

/* Where a limit leaves room for it next to a checkpoint's copy. */
static void spread_plan(stk_program *program, size_t limit)
{
    size_t others = 2 * all_variable_bytes(program) + program->packed.bytes + stk_program_own_bytes(program);
    size_t room = !limit ? SIZE_MAX : limit > others ? limit - others : 0;
    stk_plan_spread(program->engine->device->apart_bytes, room, &program->plan);
}

/* Keeping weights packed is worth little: it makes no plan too large, nor takes the place of a checkpoint's copy. */
static stk_status make_plan(stk_program *program, const stk_compile_options *options)
{
    const stk_graph *graph = program->graph;
    if (options->keep_packed && program->engine->n_devices == 1) STK_RETURN_IF_ERROR(stk_packed_find(program));
    STK_RETURN_IF_ERROR(
        stk_plan_make(graph, program->kernel, program->packed.is_name, &program->parts, &program->plan));
    size_t limit = stk_compile_limit(options), variables = all_variable_bytes(program);
    size_t arena = program->plan.arena_bytes, shared = program->engine->on[0].arena_bytes;
    STK_RETURN_IF_ERROR(count_entries(program));
    size_t needed = 2 * variables + (arena > shared ? arena : shared) + program->packed.bytes;
    needed += stk_program_own_bytes(program);
    if (program->packed.n && limit && needed > limit) {
        stk_packed_drop(program);
        stk_plan_free(&program->plan);
        STK_RETURN_IF_ERROR(stk_plan_make(graph, program->kernel, NULL, &program->parts, &program->plan));
        STK_RETURN_IF_ERROR(count_entries(program));
    }
    spread_plan(program, limit);
    stk_packed_find_writers(program);
    for (int r = 0; r < graph->n_roots; r++)
        program->updates |= graph->root[r].variable >= 0;
    return STK_OK;
}

/* Some devices give memory out in smaller pieces than they have. */
static stk_status check_piece(const stk_program *program)
{
    const stk_device *device = program->engine->device;
    size_t most = device->most_piece_bytes, bytes = program->plan.arena_bytes;
    stk_text text = {0};
    if (!most || bytes <= most) return STK_OK;
    stk_plan_print_largest(&program->plan, program->graph, 5, &text);
    stk_fail(
        STK_NO_MEMORY,
        "the plan needs %.1f MiB for activations in one piece, and '%s' gives out %.1f MiB at most; make the batch or "
        "the model smaller. The largest buffers:\n%s",
        (double)bytes / 1048576, device->class->name, (double)most / 1048576, stk_text_get(&text));
    stk_text_free(&text);
    return STK_NO_MEMORY;
}

static stk_status check_limit(const stk_program *program, const stk_compile_options *options)
{
    size_t variables = all_variable_bytes(program), limit = options->memory_limit_bytes;
    if (!limit || planned_bytes(program) <= stk_compile_limit(options)) return check_piece(program);
    stk_text text = {0}, limit_text = {0}, lists = {0};
    if (limit >> 20)
        stk_text_add(&limit_text, "%.1f MiB", (double)limit / 1048576);
    else
        stk_text_add(&limit_text, "%zu bytes (sizes have units, as in 100MiB)", limit);
    if (options->reserved_bytes)
        stk_text_add(&limit_text, ", of which the input pipeline takes %.1f MiB",
                     (double)options->reserved_bytes / 1048576);
    if (stk_program_own_bytes(program))
        stk_text_add(&lists,
                     ", %.1f for the program itself: lists of kernels, once for each micro-batch, and libraries",
                     (double)stk_program_own_bytes(program) / 1048576);
    stk_plan_print_largest(&program->plan, program->graph, 5, &text);
    stk_fail(
        STK_NO_MEMORY,
        "the plan needs %.1f MiB (%.1f for parameters and optimiser state, %.1f for activations%s), the limit is %s; "
        "make the batch smaller, the model smaller or the limit larger. The largest buffers:\n%s",
        (double)planned_bytes(program) / 1048576, (double)variables / 1048576,
        (double)program->plan.arena_bytes / 1048576, stk_text_get(&lists), stk_text_get(&limit_text),
        stk_text_get(&text));
    stk_text_free(&lists);
    stk_text_free(&limit_text);
    stk_text_free(&text);
    return STK_NO_MEMORY;
}

stk_status stk_engine_compile_by(const stk_named_pass *passes, stk_engine *engine, stk_graph *graph,
                                 const stk_compile_options *options, stk_program **out)
{
    stk_status status;
    stk_program *program = calloc(1, sizeof(*program));
    if (!program) {
        stk_graph_free(graph);
        return stk_fail_memory(sizeof(*program));
    }
    program->engine = engine;
    program->plan_only = options->plan_only;
    program->graph = graph;
    program->n_sides = engine->device->class->on_host ? 1 : STK_N_SIDES;
    STK_TRY(stk_graph_status(graph));
    STK_TRY(stk_micro_make(options->batch, options->micro, &program->micro));
    STK_TRY(run_passes(passes, engine, graph, options, program->micro.n, &program->recomputed));
    if (program->micro.n > 1) STK_TRY(stk_parts_arrange(graph, &program->parts));
    STK_TRY(stk_program_check_devices(program));
    STK_TRY(check_inputs(graph, engine->device));
    STK_TRY(find_kernels(program, options));
    STK_TRY(stk_pass_ask_stop(options->stop));
    STK_TRY(make_plan(program, options));
    STK_TRY(stk_pass_ask_stop(options->stop));
    STK_TRY(dump_plan(program, options));
    STK_TRY(check_limit(program, options));
    STK_TRY(stk_program_check_device_limits(program, options));
    STK_TRY(find_copy_kernels(program));
    STK_TRY(make_variables(program));
    if (!options->plan_only) STK_TRY(stk_packed_alloc(program));
    STK_TRY(make_inputs(program));
    if (!options->plan_only) STK_TRY(list_entries(program));
    if (!options->plan_only && engine->n_devices > 1) STK_TRY(stk_dispatch_new(program));
    stk_micro_bind(program);
    if (!options->plan_only) STK_TRY(stk_program_reserve(program));
    program->next = engine->programs;
    engine->programs = program;
    *out = program;
    return STK_OK;
done:
    stk_program_free(program); /* It has never run. */
    return status;
}
