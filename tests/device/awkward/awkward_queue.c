/* The device's queues: a thread each, a list of jobs, and events as counters. See awkward.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/rng.h"
#include "device/awkward/awkward.h"

struct stk_event {
    awkward_device *device;
    uint64_t n_recorded, n_passed; /* guarded by the device's lock, as what follows */
    awkward_clock clock;           /* of what the last record is behind */
};

struct stk_capture {
    int n_entries;
    stk_entry *entry; /* with inside addresses */
    void **pointers;
};

typedef enum job_kind { JOB_COPY, JOB_LAUNCH, JOB_RECORD, JOB_WAIT, JOB_FORGET } job_kind;

typedef struct job {
    struct job *next;
    job_kind kind;
    void *dst;
    const void *src;
    size_t bytes;
    bool src_is_host, dst_is_host;
    const stk_capture *capture;
    const stk_event *awaited;
    stk_event *event;
    uint64_t mark;
} job;

typedef struct awkward_queue {
    stk_queue base;
    stk_thread thread;
    job *first, *last; /* guarded by the device's lock, as what follows */
    bool is_busy, is_closing;
    int i_queue;
    awkward_clock clock; /* of what was enqueued; guarded by the device's lock */
    uint64_t n_delays;   /* the thread's own */
} awkward_queue;

static awkward_device *device_of(const stk_queue *queue)
{
    return (awkward_device *)queue->device;
}

/* --- the thread --- */

/* Mostly nothing, sometimes a tenth of a millisecond, rarely much more. */
static void delay(awkward_queue *queue)
{
    uint32_t word = stk_philox((uint64_t)(uintptr_t)queue, 3, queue->n_delays++).v[0];
    long us = word % 8 ? 0 : word % 512 ? (long)(word >> 9) % 100 : 2000;
    if (us) nanosleep(&(struct timespec){0, us * 1000}, NULL);
}

static stk_status launch_now(awkward_queue *queue, const stk_capture *capture)
{
    for (int i = 0; i < capture->n_entries; i++) {
        const stk_entry *entry = &capture->entry[i];
        delay(queue);
        STK_RETURN_IF_ERROR(entry->kernel->run(entry->kernel->state, &entry->args));
    }
    return STK_OK;
}

static stk_status do_job(awkward_queue *queue, const job *j)
{
    delay(queue);
    if (j->kind == JOB_FORGET) awkward_poison_arenas(device_of(&queue->base));
    if (j->kind == JOB_COPY) memcpy(j->dst, j->src, j->bytes);
    return j->kind == JOB_LAUNCH ? launch_now(queue, j->capture) : STK_OK;
}

/* The lock is held. After a failure, nothing is worked off but events. */
static void work_off(awkward_queue *queue, job *j)
{
    awkward_device *device = device_of(&queue->base);
    stk_status status = STK_OK;
    while (j->kind == JOB_WAIT && j->awaited->n_passed < j->mark)
        stk_cond_wait(device->changed, device->lock);
    if (device->failed == STK_OK) {
        stk_mutex_unlock(device->lock);
        status = do_job(queue, j);
        stk_mutex_lock(device->lock);
    }
    if (status != STK_OK && device->failed == STK_OK) {
        device->failed = status;
        snprintf(device->error, sizeof(device->error), "%s", stk_error_text());
    }
    if (j->kind == JOB_RECORD && j->event->n_passed < j->mark) j->event->n_passed = j->mark;
}

static void run_queue(void *p)
{
    awkward_queue *queue = p;
    awkward_device *device = device_of(&queue->base);
    stk_mutex_lock(device->lock);
    while (true) {
        job *j = queue->first;
        if (!j && queue->is_closing) break;
        if (!j) {
            stk_cond_wait(device->changed, device->lock);
            continue;
        }
        queue->first = j->next;
        queue->is_busy = true;
        work_off(queue, j);
        queue->is_busy = false;
        free(j);
        stk_cond_broadcast(device->changed);
    }
    stk_mutex_unlock(device->lock);
}

/* --- enqueueing; the lock is held --- */

static bool touch(awkward_queue *queue, const void *p, size_t n, bool writes)
{
    awkward_device *device = device_of(&queue->base);
    return awkward_touch(device, queue->i_queue, &queue->clock, p, n, writes);
}

/* Only what is the device's: addresses of its inside. */
static bool touch_copy(awkward_queue *queue, const job *j)
{
    return (j->src_is_host || touch(queue, j->src, j->bytes, false)) &&
           (j->dst_is_host || touch(queue, j->dst, j->bytes, true));
}

static bool touch_launch(awkward_queue *queue, const stk_capture *capture)
{
    bool is_ordered = true;
    for (int i = 0; i < capture->n_entries && is_ordered; i++) {
        const stk_entry *entry = &capture->entry[i];
        const awkward_kernel *k = entry->kernel->state;
        for (int j = 0; j < k->n_in; j++)
            is_ordered &= touch(queue, entry->args.in[j], k->bytes[j], false);
        for (int j = 0; j < k->n_out; j++)
            is_ordered &= touch(queue, entry->args.out[j], k->bytes[k->n_in + j], true);
    }
    return is_ordered;
}

/* False: no event orders it behind other work on the same memory. */
static bool order(awkward_queue *queue, const job *j)
{
    if (j->kind == JOB_WAIT) {
        awkward_join(&queue->clock, &j->awaited->clock);
        return true;
    }
    awkward_begin_work(device_of(&queue->base), queue->i_queue, &queue->clock);
    if (j->kind == JOB_RECORD) j->event->clock = queue->clock;
    if (j->kind == JOB_COPY) return touch_copy(queue, j);
    return j->kind != JOB_LAUNCH || touch_launch(queue, j->capture);
}

static stk_status enqueue(stk_queue *base, job content)
{
    awkward_queue *queue = (awkward_queue *)base;
    awkward_device *device = device_of(base);
    job *j = malloc(sizeof(*j));
    if (!j) return stk_fail_memory(sizeof(*j));
    *j = content;
    stk_mutex_lock(device->lock);
    if (!order(queue, j)) {
        stk_mutex_unlock(device->lock);
        free(j);
        return stk_fail(STK_INTERNAL, "two queues use the same memory, and no event says which one is first");
    }
    if (j->kind == JOB_RECORD) j->mark = ++j->event->n_recorded;
    if (j->kind == JOB_WAIT) j->mark = j->awaited->n_recorded;
    if (queue->first)
        queue->last->next = j;
    else
        queue->first = j;
    queue->last = j;
    stk_cond_broadcast(device->changed);
    stk_mutex_unlock(device->lock);
    return STK_OK;
}

static stk_status copy(stk_queue *queue, void *dst, const void *src, size_t bytes, stk_copy_kind kind)
{
    awkward_device *device = device_of(queue);
    job j = {.kind = JOB_COPY, .dst = dst, .src = src, .bytes = bytes};
    j.src_is_host = kind == STK_COPY_TO_DEVICE;
    j.dst_is_host = kind == STK_COPY_TO_HOST;
    if (bytes == 0) return STK_OK;
    if (kind != STK_COPY_TO_HOST) j.dst = awkward_translate(device, dst, bytes);
    if (kind != STK_COPY_TO_DEVICE) j.src = awkward_translate(device, src, bytes);
    if (!j.dst || !j.src) return stk_fail(STK_INTERNAL, "a copy of %zu bytes is not of living device memory", bytes);
    if ((kind == STK_COPY_TO_HOST && awkward_owns(device, dst, bytes)) ||
        (kind == STK_COPY_TO_DEVICE && awkward_owns(device, src, bytes)))
        return stk_fail(STK_INTERNAL, "a copy has a device address on the host's side");
    return enqueue(queue, j);
}

static stk_status launch(stk_queue *queue, const stk_capture *capture, int *i_failed)
{
    *i_failed = -1;
    return enqueue(queue, (job){.kind = JOB_LAUNCH, .capture = capture});
}

static stk_status record(stk_queue *queue, stk_event *event)
{
    return enqueue(queue, (job){.kind = JOB_RECORD, .event = event});
}

static stk_status wait_for(stk_queue *queue, const stk_event *event)
{
    return enqueue(queue, (job){.kind = JOB_WAIT, .awaited = event});
}

static stk_status forget(stk_queue *queue)
{
    return enqueue(queue, (job){.kind = JOB_FORGET});
}

/* --- waiting; the lock is held --- */

static stk_status failure_of(const awkward_device *device)
{
    return device->failed == STK_OK ? STK_OK : stk_fail(device->failed, "%s", device->error);
}

static stk_status finish(stk_queue *base)
{
    awkward_queue *queue = (awkward_queue *)base;
    awkward_device *device = device_of(base);
    stk_mutex_lock(device->lock);
    while (queue->first || queue->is_busy)
        stk_cond_wait(device->changed, device->lock);
    awkward_join(device->known, &queue->clock);
    stk_status status = failure_of(device);
    stk_mutex_unlock(device->lock);
    return status;
}

static stk_status sync(const stk_event *event)
{
    stk_mutex_lock(event->device->lock);
    for (uint64_t mark = event->n_recorded; event->n_passed < mark;)
        stk_cond_wait(event->device->changed, event->device->lock);
    awkward_join(event->device->known, &event->clock);
    stk_status status = failure_of(event->device);
    stk_mutex_unlock(event->device->lock);
    return status;
}

/* --- opening and closing --- */

static stk_status open_queue(stk_device *device, stk_queue **out)
{
    awkward_queue *queue = calloc(1, sizeof(*queue));
    if (!queue) return stk_fail_memory(sizeof(*queue));
    queue->base.device = device;
    queue->i_queue = awkward_next_queue();
    stk_status status = stk_thread_start(&queue->thread, "awkward", false, run_queue, queue);
    if (status != STK_OK) {
        free(queue);
        return status;
    }
    *out = &queue->base;
    return STK_OK;
}

static void close_queue(stk_queue *base)
{
    awkward_queue *queue = (awkward_queue *)base;
    if (!queue) return;
    awkward_device *device = device_of(base);
    stk_mutex_lock(device->lock);
    queue->is_closing = true;
    stk_cond_broadcast(device->changed);
    stk_mutex_unlock(device->lock);
    stk_thread_join(&queue->thread);
    awkward_join(device->known, &queue->clock);
    free(queue);
}

static stk_status open_event(stk_device *device, stk_event **out)
{
    stk_event *event = calloc(1, sizeof(*event));
    if (!event) return stk_fail_memory(sizeof(*event));
    event->device = (awkward_device *)device;
    *out = event;
    return STK_OK;
}

static void close_event(stk_event *event)
{
    free(event);
}

/* --- captures --- */

static void release(stk_capture *capture)
{
    if (!capture) return;
    free(capture->entry);
    free(capture->pointers);
    free(capture);
}

static stk_status translate_args(awkward_device *device, const stk_entry *entry, void **pointers, stk_entry *out)
{
    const awkward_kernel *k = entry->kernel->state;
    size_t scratch_bytes = entry->kernel->scratch_bytes;
    *out = (stk_entry){entry->kernel, {.in = pointers, .out = pointers + k->n_in}};
    bool is_alive = true;
    for (int i = 0; i < k->n_in; i++)
        is_alive &= !!(pointers[i] = awkward_translate(device, entry->args.in[i], k->bytes[i]));
    for (int i = 0; i < k->n_out; i++)
        is_alive &= !!(pointers[k->n_in + i] = awkward_translate(device, entry->args.out[i], k->bytes[k->n_in + i]));
    if (scratch_bytes)
        is_alive &= !!(out->args.scratch = awkward_translate(device, entry->args.scratch, scratch_bytes));
    return is_alive ? STK_OK : stk_fail(STK_INTERNAL, "a kernel's memory is not living device memory");
}

static stk_status capture(stk_device *base, const stk_entry *entries, int n_entries, stk_capture **out)
{
    stk_capture *made = calloc(1, sizeof(*made));
    stk_status status = STK_OK;
    size_t n_pointers = 1;
    if (!made) return stk_fail_memory(sizeof(*made));
    for (int i = 0; i < n_entries; i++) {
        const awkward_kernel *k = entries[i].kernel->state;
        n_pointers += (size_t)(k->n_in + k->n_out);
    }
    made->entry = calloc((size_t)n_entries + 1, sizeof(*made->entry));
    void **next = made->pointers = calloc(n_pointers, sizeof(*made->pointers));
    if (!made->entry || !next) STK_TRY(stk_fail_memory(n_pointers * sizeof(*next)));
    for (int i = 0; i < n_entries; i++) {
        const awkward_kernel *k = entries[i].kernel->state;
        STK_TRY(translate_args((awkward_device *)base, &entries[i], next, &made->entry[made->n_entries++]));
        next += k->n_in + k->n_out;
    }
    *out = made;
    made = NULL;
done:
    release(made);
    return status;
}

const stk_queue_class awkward_queues = {
    .open = open_queue,
    .close = close_queue,
    .copy = copy,
    .capture = capture,
    .release = release,
    .launch = launch,
    .open_event = open_event,
    .close_event = close_event,
    .record = record,
    .wait = wait_for,
    .forget = forget,
    .sync = sync,
    .finish = finish,
};
