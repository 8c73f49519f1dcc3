/* See dispatch.h. */
#include "engine/dispatch.h"

#include <stdlib.h>

#include "base/error.h"
#include "engine/program.h"

static const stk_queue_class *queues_of(const stk_home *on)
{
    return on->device->class->queues;
}

static const stk_home *source_of(const stk_program *program, int32_t node)
{
    return stk_program_home(program, program->graph->node[node].in[0]);
}

bool stk_dispatch_is_staged(const stk_program *program, int32_t node)
{
    const stk_node *copy = &program->graph->node[node];
    if (copy->op != STK_OP_copy_to || program->engine->n_devices == 1) return false;
    return !source_of(program, node)->device->class->on_host ||
           !stk_program_home(program, copy->first_out)->device->class->on_host;
}

/* --- who waits for whom --- */

static bool is_staged(const stk_program *program, int e)
{
    return program->info[e].node >= 0 && stk_dispatch_is_staged(program, program->info[e].node);
}

/* A variable that is written at the end may have been read by any device: the first copy on a queue waits for all. */
static void wait_for_all(stk_program *program, int e, const int32_t *last_of, bool *is_first, int32_t *n)
{
    stk_dispatch_entry *info = &program->dispatch->entry[e];
    for (int d = 0; d < STK_MOST_DEVICES && is_first[info->queue]; d++)
        if (d != info->queue && last_of[d] >= 0) program->dispatch->wait[(*n)++] = last_of[d];
    is_first[info->queue] = false;
}

static stk_status list_waits(stk_program *program)
{
    const stk_plan_order *order = &program->plan.order;
    size_t n_nodes = (size_t)program->graph->n_nodes, most = STK_MOST_DEVICES * STK_MOST_DEVICES + 1;
    int32_t last_of[STK_MOST_DEVICES], n = 0, *entry_of = malloc((n_nodes + 1) * sizeof(*entry_of));
    bool is_first[STK_MOST_DEVICES];
    if (order->first_wait) most += (size_t)order->first_wait[n_nodes];
    program->dispatch->wait = malloc(most * sizeof(*program->dispatch->wait));
    if (!entry_of || !program->dispatch->wait) {
        free(entry_of);
        return stk_fail_memory(most * sizeof(*entry_of));
    }
    for (int d = 0; d < STK_MOST_DEVICES; d++) {
        last_of[d] = -1;
        is_first[d] = true;
    }
    for (int e = 0; e < program->n_entries; e++) {
        stk_dispatch_entry *info = &program->dispatch->entry[e];
        int32_t i = program->info[e].node;
        info->queue = i >= 0 ? stk_plan_queue(program->graph, i)
                             : program->graph->value[program->plan.copy[-1 - i].variable].device;
        info->first_wait = n;
        if (i < 0) {
            wait_for_all(program, e, last_of, is_first, &n);
        } else {
            entry_of[i] = last_of[info->queue] = e;
            for (int32_t k = order->first_wait ? order->first_wait[i] : 0; order->wait && k < order->first_wait[i + 1];
                 k++)
                program->dispatch->wait[n++] = entry_of[order->wait[k]];
        }
        info->n_waits = n - info->first_wait;
    }
    free(entry_of);
    return STK_OK;
}

/* --- segments --- */

static bool begins_segment(const stk_program *program, int e, const bool *is_awaited)
{
    const stk_dispatch_entry *entry = program->dispatch->entry;
    return e == 0 || entry[e].queue != entry[e - 1].queue || entry[e].n_waits > 0 || is_awaited[e - 1] ||
           is_staged(program, e) || is_staged(program, e - 1);
}

static stk_status add_staged(stk_program *program, stk_segment *segment)
{
    stk_dispatch *s = program->dispatch;
    int32_t node = program->info[segment->first].node, value = program->graph->node[node].in[0];
    stk_staged_copy *copy = &s->staged[s->n_staged];
    const stk_home *from = source_of(program, node);
    const stk_device_class *class = from->device->class;
    segment->staged = s->n_staged++;
    *copy = (stk_staged_copy){.from = program->graph->value[value].device,
                              .bytes = stk_desc_bytes(program->graph->value[value].desc)};
    STK_RETURN_IF_ERROR(class->queues->open_event(from->device, &copy->ready));
    STK_RETURN_IF_ERROR(class->queues->open_event(from->device, &copy->sent));
    if (class->alloc_host) return class->alloc_host(from->device, copy->bytes, &copy->host);
    copy->host = aligned_alloc(64, (copy->bytes / 64 + 1) * 64);
    return copy->host ? STK_OK : stk_fail_memory(copy->bytes);
}

static stk_status cut(stk_program *program, const bool *is_awaited)
{
    stk_dispatch *s = program->dispatch;
    for (int e = 0; e < program->n_entries; e++) {
        if (begins_segment(program, e, is_awaited))
            s->segment[s->n_segments++] = (stk_segment){.first = e, .device = s->entry[e].queue, .staged = -1};
        stk_segment *segment = &s->segment[s->n_segments - 1];
        const stk_home *on = &program->engine->on[segment->device];
        segment->n++;
        s->segment_of[e] = s->n_segments - 1;
        if (is_staged(program, e)) STK_RETURN_IF_ERROR(add_staged(program, segment));
        if (is_awaited[e]) STK_RETURN_IF_ERROR(queues_of(on)->open_event(on->device, &segment->event));
    }
    return STK_OK;
}

static stk_status open_events(stk_program *program)
{
    stk_dispatch *s = program->dispatch;
    const stk_engine *engine = program->engine;
    STK_RETURN_IF_ERROR(queues_of(&engine->on[0])->open_event(engine->device, &s->begun));
    for (int d = 1; d < engine->n_devices; d++) {
        const stk_home *on = &engine->on[d];
        STK_RETURN_IF_ERROR(queues_of(on)->open_event(on->device, &s->ended[d]));
        STK_RETURN_IF_ERROR(queues_of(on)->open_event(on->device, &s->unused[d]));
    }
    return STK_OK;
}

stk_status stk_dispatch_new(stk_program *program)
{
    stk_dispatch *s = program->dispatch = calloc(1, sizeof(*s)); /* Freed with the program, whatever fails. */
    size_t n = (size_t)program->n_entries + 1;
    bool *is_awaited = calloc(n, sizeof(*is_awaited));
    stk_status status = STK_OK;
    if (!s || !is_awaited) STK_TRY(stk_fail_memory(n * sizeof(*s->segment)));
    s->entry = calloc(n, sizeof(*s->entry));
    s->segment = calloc(n, sizeof(*s->segment));
    s->segment_of = calloc(n, sizeof(*s->segment_of));
    s->staged = calloc(n, sizeof(*s->staged));
    if (!s->entry || !s->segment || !s->segment_of || !s->staged) STK_TRY(stk_fail_memory(n * sizeof(*s->segment)));
    STK_TRY(list_waits(program));
    for (int e = 0; e < program->n_entries; e++)
        for (int k = 0; k < s->entry[e].n_waits && !is_staged(program, e); k++)
            is_awaited[s->wait[s->entry[e].first_wait + k]] = true;
    STK_TRY(cut(program, is_awaited));
    STK_TRY(open_events(program));
done:
    free(is_awaited);
    return status;
}

static void free_staged(const stk_home *from, stk_staged_copy *copy)
{
    queues_of(from)->close_event(copy->ready);
    queues_of(from)->close_event(copy->sent);
    if (copy->host && from->device->class->alloc_host)
        from->device->class->free_host(from->device, copy->host, copy->bytes);
    else
        free(copy->host);
}

void stk_dispatch_free(stk_program *program)
{
    stk_dispatch *s = program->dispatch;
    const stk_engine *engine = program->engine;
    if (!s) return;
    for (int i = 0; i < s->n_segments; i++) {
        const stk_queue_class *queues = queues_of(&engine->on[s->segment[i].device]);
        for (int side = 0; side < STK_N_SIDES; side++)
            queues->release(s->segment[i].capture[side]);
        queues->close_event(s->segment[i].event);
    }
    for (int i = 0; i < s->n_staged; i++)
        free_staged(&engine->on[s->staged[i].from], &s->staged[i]);
    queues_of(&engine->on[0])->close_event(s->begun);
    for (int d = 1; d < engine->n_devices; d++) {
        queues_of(&engine->on[d])->close_event(s->ended[d]);
        queues_of(&engine->on[d])->close_event(s->unused[d]);
    }
    free(s->entry);
    free(s->wait);
    free(s->segment);
    free(s->segment_of);
    free(s->staged);
    free(s);
    program->dispatch = NULL;
}

/* --- a run --- */

stk_status stk_dispatch_capture(stk_program *program, int i_side)
{
    stk_dispatch *s = program->dispatch;
    for (int i = 0; i < s->n_segments; i++) {
        stk_segment *segment = &s->segment[i];
        const stk_home *on = &program->engine->on[segment->device];
        const stk_entry *entry = program->entry + i_side * program->n_entries + segment->first;
        if (segment->staged >= 0) continue;
        queues_of(on)->release(segment->capture[i_side]);
        segment->capture[i_side] = NULL;
        STK_RETURN_IF_ERROR(queues_of(on)->capture(on->device, entry, segment->n, &segment->capture[i_side]));
    }
    return STK_OK;
}

/* All devices begin once the inputs are there and nothing of the run before is under way. */
static stk_status begin(stk_program *program)
{
    const stk_engine *engine = program->engine;
    const stk_event *begun = program->dispatch->begun;
    STK_RETURN_IF_ERROR(queues_of(&engine->on[0])->record(engine->compute, program->dispatch->begun));
    for (int d = 1; d < engine->n_devices; d++) {
        const stk_home *on = &engine->on[d];
        STK_RETURN_IF_ERROR(stk_queue_wait_for(on->compute, engine->device, begun));
        if (queues_of(on)->forget) STK_RETURN_IF_ERROR(queues_of(on)->forget(on->compute));
    }
    return STK_OK;
}

static stk_status end(stk_program *program)
{
    const stk_engine *engine = program->engine;
    for (int d = 1; d < engine->n_devices; d++) {
        const stk_home *on = &engine->on[d];
        STK_RETURN_IF_ERROR(queues_of(on)->record(on->compute, program->dispatch->ended[d]));
        STK_RETURN_IF_ERROR(stk_queue_wait_for(engine->compute, on->device, program->dispatch->ended[d]));
    }
    return STK_OK;
}

/* Behind all that the source has been given so far, which includes what makes the value. */
static stk_status copy_by_host(const stk_program *program, const stk_segment *segment, const stk_entry *entry)
{
    const stk_staged_copy *copy = &program->dispatch->staged[segment->staged];
    const stk_home *from = &program->engine->on[copy->from], *to = &program->engine->on[segment->device];
    STK_RETURN_IF_ERROR(queues_of(from)->record(from->compute, copy->ready));
    STK_RETURN_IF_ERROR(queues_of(from)->wait(from->out, copy->ready));
    STK_RETURN_IF_ERROR(queues_of(from)->copy(from->out, copy->host, entry->args.in[0], copy->bytes, STK_COPY_TO_HOST));
    STK_RETURN_IF_ERROR(queues_of(from)->record(from->out, copy->sent));
    STK_RETURN_IF_ERROR(stk_queue_wait_for(to->compute, from->device, copy->sent));
    return queues_of(to)->copy(to->compute, entry->args.out[0], copy->host, copy->bytes, STK_COPY_TO_DEVICE);
}

static stk_status wait_for_entries(const stk_program *program, const stk_segment *segment)
{
    const stk_dispatch *s = program->dispatch;
    const stk_dispatch_entry *info = &s->entry[segment->first];
    for (int k = 0; k < info->n_waits; k++) {
        const stk_segment *other = &s->segment[s->segment_of[s->wait[info->first_wait + k]]];
        STK_RETURN_IF_ERROR(stk_queue_wait_for(program->engine->on[segment->device].compute,
                                               program->engine->on[other->device].device, other->event));
    }
    return STK_OK;
}

static stk_status launch_segment(stk_program *program, stk_segment *segment, int i_side, int *i_failed)
{
    const stk_home *on = &program->engine->on[segment->device];
    const stk_entry *entry = program->entry + i_side * program->n_entries + segment->first;
    *i_failed = -1;
    if (segment->staged >= 0) {
        STK_RETURN_IF_ERROR(copy_by_host(program, segment, entry));
    } else {
        STK_RETURN_IF_ERROR(wait_for_entries(program, segment));
        STK_RETURN_IF_ERROR(queues_of(on)->launch(on->compute, segment->capture[i_side], i_failed));
    }
    return segment->event ? queues_of(on)->record(on->compute, segment->event) : STK_OK;
}

stk_status stk_dispatch_launch(stk_program *program, int i_side, int *i_failed)
{
    stk_dispatch *s = program->dispatch;
    STK_RETURN_IF_ERROR(begin(program));
    for (int i = 0; i < s->n_segments; i++) {
        stk_status status = launch_segment(program, &s->segment[i], i_side, i_failed);
        if (status == STK_OK) continue;
        if (*i_failed >= 0) *i_failed += s->segment[i].first;
        return status;
    }
    return end(program);
}

stk_status stk_dispatch_begin_alone(stk_program *program)
{
    STK_RETURN_IF_ERROR(begin(program));
    return stk_engine_finish(program->engine);
}

stk_status stk_dispatch_run_alone(stk_program *program, int e, int i_side, int *i_failed)
{
    stk_dispatch *s = program->dispatch;
    const stk_segment *segment = &s->segment[s->segment_of[e]];
    const stk_entry *entry = program->entry + i_side * program->n_entries + e;
    stk_queue *queue = program->engine->on[segment->device].compute;
    *i_failed = -1;
    if (segment->staged < 0) return stk_queue_run_now(queue, entry, 1, i_failed);
    STK_RETURN_IF_ERROR(copy_by_host(program, segment, entry));
    return queue->device->class->queues->finish(queue);
}

stk_status stk_dispatch_failure(const stk_program *program)
{
    const stk_engine *engine = program->engine;
    for (int d = 1; d < engine->n_devices; d++)
        STK_RETURN_IF_ERROR(queues_of(&engine->on[d])->sync(program->dispatch->unused[d]));
    return STK_OK;
}
