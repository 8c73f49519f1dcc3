/* What every queue can do, by what its class does. */
#include "device/queue.h"

#include "base/error.h"

stk_status stk_queue_copy_now(stk_queue *queue, void *dst, const void *src, size_t bytes, stk_copy_kind kind)
{
    const stk_queue_class *queues = queue->device->class->queues;
    STK_RETURN_IF_ERROR(queues->copy(queue, dst, src, bytes, kind));
    return queues->finish(queue);
}

stk_status stk_queue_wait_for(stk_queue *queue, const stk_device *other, const stk_event *event)
{
    if (other->class == queue->device->class) return other->class->queues->wait(queue, event);
    return other->class->queues->sync(event);
}

stk_status stk_queue_run_now(stk_queue *queue, const stk_entry *entries, int n_entries, int *i_failed)
{
    const stk_queue_class *queues = queue->device->class->queues;
    stk_capture *capture;
    *i_failed = -1;
    queue->ran_ns = -1;
    /* Nothing is to be made of the list there, and a step that is profiled allocates nothing either. */
    if (queue->device->class->on_host) return queue->device->class->run(queue->device, entries, n_entries, i_failed);
    STK_RETURN_IF_ERROR(queues->capture(queue->device, entries, n_entries, &capture));
    stk_status launched = queues->launch(queue, capture, i_failed);
    stk_status finished = queues->finish(queue);
    if (launched == STK_OK && finished == STK_OK && queues->took_ns) queue->ran_ns = queues->took_ns(capture);
    queues->release(capture);
    return launched != STK_OK ? launched : finished;
}
