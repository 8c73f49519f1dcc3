/* The queues of devices on the host: each call does its work before it returns. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/queue.h"

struct stk_capture {
    const stk_entry *entry;
    int n_entries;
};

/* An event has nothing to remember; the host's queues give out this one. */
struct stk_event {
    char unused;
};

static stk_event passed;

static stk_status open_queue(stk_device *device, stk_queue **out)
{
    stk_queue *queue = calloc(1, sizeof(*queue));
    if (!queue) return stk_fail_memory(sizeof(*queue));
    queue->device = device;
    *out = queue;
    return STK_OK;
}

static void close_queue(stk_queue *queue)
{
    free(queue);
}

static stk_status copy(stk_queue *queue, void *dst, const void *src, size_t bytes, stk_copy_kind kind)
{
    (void)queue;
    (void)kind;
    if (bytes) memcpy(dst, src, bytes);
    return STK_OK;
}

static stk_status reach(stk_device *device, stk_device *other)
{
    (void)device;
    (void)other;
    return STK_OK;
}

static stk_status capture(stk_device *device, const stk_entry *entries, int n_entries, stk_capture **out)
{
    (void)device;
    stk_capture *made = malloc(sizeof(*made));
    if (!made) return stk_fail_memory(sizeof(*made));
    *made = (stk_capture){entries, n_entries};
    *out = made;
    return STK_OK;
}

static void release(stk_capture *capture)
{
    free(capture);
}

static stk_status launch(stk_queue *queue, const stk_capture *capture, int *i_failed)
{
    return queue->device->class->run(queue->device, capture->entry, capture->n_entries, i_failed);
}

static stk_status open_event(stk_device *device, stk_event **out)
{
    (void)device;
    *out = &passed;
    return STK_OK;
}

static void close_event(stk_event *event)
{
    (void)event;
}

static stk_status record(stk_queue *queue, stk_event *event)
{
    (void)queue;
    (void)event;
    return STK_OK;
}

static stk_status wait_for(stk_queue *queue, const stk_event *event)
{
    (void)queue;
    (void)event;
    return STK_OK;
}

static stk_status sync(const stk_event *event)
{
    (void)event;
    return STK_OK;
}

static stk_status finish(stk_queue *queue)
{
    (void)queue;
    return STK_OK;
}

const stk_queue_class stk_queue_class_host = {
    .open = open_queue,
    .close = close_queue,
    .copy = copy,
    .reach = reach,
    .capture = capture,
    .release = release,
    .launch = launch,
    .open_event = open_event,
    .close_event = close_event,
    .record = record,
    .wait = wait_for,
    .sync = sync,
    .finish = finish,
};
