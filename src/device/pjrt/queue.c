/* Queues: pjrt.h.
 *
 * The plug-in itself knows what must wait for what, since a buffer never changes and carries its own "ready". So a
 * queue is only the list of what is under way, an event the list as it was when it was recorded, and a queue never
 * waits for an event.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/pjrt/pjrt.h"

typedef struct work_list {
    pjrt_work **work;
    int n, n_slots;
} work_list;

typedef struct pjrt_queue {
    stk_queue base;
    work_list list;
} pjrt_queue;

struct stk_event {
    pjrt_device *device;
    work_list list;
};

static pjrt_device *device_of(const stk_queue *queue)
{
    return (pjrt_device *)queue->device;
}

/* --- failures --- */

stk_status pjrt_keep_failure(pjrt_device *device, stk_status status)
{
    if (status != STK_OK && device->failed == STK_OK) {
        device->failed = status;
        snprintf(device->failure, sizeof(device->failure), "%s", stk_error_text());
    }
    return status;
}

static stk_status tell_failure(const pjrt_device *device)
{
    return device->failed == STK_OK ? STK_OK : stk_fail(device->failed, "%s", device->failure);
}

static stk_status check_ids(const pjrt_work *work)
{
    for (int i = 0; i < work->n_checks; i++)
        if (work->ids[i] != PJRT_NO_BAD_ID)
            return stk_fail(STK_NO_ROW, "%s: id %d is not one of the %lld rows", stk_op_name(work->check[i].op),
                            work->ids[i], (long long)work->check[i].limit);
    return STK_OK;
}

/* --- lists of work --- */

static void drop_work(pjrt_device *device, pjrt_work *work)
{
    if (--work->n_users > 0) return;
    pjrt_destroy_event(device->plugin, work->event);
    pjrt_drop_content(device, work->content);
    free(work->ids);
    free(work->check);
    free(work);
}

static void empty_list(pjrt_device *device, work_list *list)
{
    for (int i = 0; i < list->n; i++)
        drop_work(device, list->work[i]);
    list->n = 0;
}

static stk_status make_room(work_list *list, int n)
{
    if (n <= list->n_slots) return STK_OK;
    int n_slots = n > 2 * list->n_slots ? n : 2 * list->n_slots;
    pjrt_work **grown = realloc(list->work, (size_t)n_slots * sizeof(pjrt_work *));
    if (!grown) return stk_fail_memory((size_t)n_slots * sizeof(pjrt_work *));
    list->work = grown;
    list->n_slots = n_slots;
    return STK_OK;
}

/* Waits for what is done in any case, or is to be done, and learns of its failure. */
static void end_work(pjrt_device *device, pjrt_work *work)
{
    pjrt_event_args await = {.head = {sizeof(await), NULL}, .event = work->event};
    if (!work->event) return;
    pjrt_keep_failure(device, pjrt_call(device->plugin, PJRT_EVENT_AWAIT, &await, "running"));
    pjrt_destroy_event(device->plugin, work->event);
    work->event = NULL;
    if (device->failed == STK_OK) pjrt_keep_failure(device, check_ids(work));
}

static stk_status wait_for(pjrt_device *device, work_list *list)
{
    for (int i = 0; i < list->n; i++)
        end_work(device, list->work[i]);
    empty_list(device, list);
    return tell_failure(device);
}

static bool is_done(const pjrt_device *device, const pjrt_work *work)
{
    pjrt_is_ready_args ready = {.head = {sizeof(ready), NULL}, .event = work->event};
    if (!work->event) return true;
    pjrt_call_quietly(device->plugin, PJRT_EVENT_IS_READY, &ready);
    return ready.is_ready;
}

static void forget_done(pjrt_device *device, work_list *list)
{
    int n = 0;
    for (int i = 0; i < list->n; i++) {
        pjrt_work *work = list->work[i];
        if (!is_done(device, work)) {
            list->work[n++] = work;
            continue;
        }
        end_work(device, work);
        drop_work(device, work);
    }
    list->n = n;
}

stk_status pjrt_add_work(stk_queue *base, pjrt_work work)
{
    pjrt_queue *queue = (pjrt_queue *)base;
    pjrt_work *kept = malloc(sizeof(*kept));
    forget_done(device_of(base), &queue->list);
    stk_status status = make_room(&queue->list, queue->list.n + 1);
    if (!kept && status == STK_OK) status = stk_fail_memory(sizeof(*kept));
    if (status != STK_OK) {
        pjrt_destroy_event(device_of(base)->plugin, work.event);
        pjrt_drop_content(device_of(base), work.content);
        free(work.ids);
        free(work.check);
        free(kept);
        return status;
    }
    *kept = work;
    kept->n_users = 1;
    queue->list.work[queue->list.n++] = kept;
    return STK_OK;
}

/* --- the table's functions --- */

static stk_status open_queue(stk_device *device, stk_queue **out)
{
    pjrt_queue *queue = calloc(1, sizeof(*queue));
    if (!queue) return stk_fail_memory(sizeof(*queue));
    queue->base.device = device;
    queue->base.ran_ns = -1;
    *out = &queue->base;
    return STK_OK;
}

static void close_queue(stk_queue *base)
{
    pjrt_queue *queue = (pjrt_queue *)base;
    if (!queue) return;
    (void)wait_for(device_of(base), &queue->list);
    free(queue->list.work);
    free(queue);
}

static stk_status copy(stk_queue *queue, void *dst, const void *src, size_t bytes, stk_copy_kind kind)
{
    pjrt_device *device = device_of(queue);
    if (bytes == 0) return STK_OK;
    if (kind == STK_COPY_TO_DEVICE) return pjrt_write(device, dst, src, bytes);
    if (kind == STK_COPY_ON_DEVICE) return pjrt_move(device, dst, src, bytes);
    return pjrt_read(device, queue, dst, src, bytes);
}

static stk_status open_event(stk_device *device, stk_event **out)
{
    *out = calloc(1, sizeof(**out));
    if (!*out) return stk_fail_memory(sizeof(**out));
    (*out)->device = (pjrt_device *)device;
    return STK_OK;
}

static void close_event(stk_event *event)
{
    if (!event) return;
    empty_list(event->device, &event->list);
    free(event->list.work);
    free(event);
}

static stk_status record(stk_queue *base, stk_event *event)
{
    pjrt_queue *queue = (pjrt_queue *)base;
    empty_list(event->device, &event->list);
    forget_done(event->device, &queue->list);
    STK_RETURN_IF_ERROR(make_room(&event->list, queue->list.n));
    for (int i = 0; i < queue->list.n; i++) {
        queue->list.work[i]->n_users++;
        event->list.work[event->list.n++] = queue->list.work[i];
    }
    return STK_OK;
}

static stk_status wait(stk_queue *queue, const stk_event *event)
{
    (void)queue;
    (void)event;
    return STK_OK;
}

static stk_status sync(const stk_event *event)
{
    return wait_for(event->device, &((stk_event *)event)->list);
}

static stk_status finish(stk_queue *base)
{
    return wait_for(device_of(base), &((pjrt_queue *)base)->list);
}

const stk_queue_class pjrt_queues = {
    .open = open_queue,
    .close = close_queue,
    .copy = copy,
    .capture = pjrt_capture,
    .keep = pjrt_keep,
    .print = pjrt_print,
    .analyse = pjrt_analyse,
    .release = pjrt_release,
    .launch = pjrt_launch,
    .open_event = open_event,
    .close_event = close_event,
    .record = record,
    .wait = wait,
    .sync = sync,
    .finish = finish,
};
