/* Streams and events, and copies between the host and the chip. */
#include <stdlib.h>

#include "base/error.h"
#include "device/gpu/cuda/cuda.h"

typedef struct cuda_queue {
    gpu_queue head;
    gpu_context *context;
    cu_stream stream;
} cuda_queue;

typedef struct cuda_event {
    gpu_event head;
    gpu_context *context;
    cu_event event; /* has passed while it was never recorded */
} cuda_event;

cu_stream cuda_stream_of(const stk_queue *queue)
{
    return ((const cuda_queue *)queue)->stream;
}

stk_status cuda_open_queue(stk_device *device, gpu_context *context, stk_queue **out)
{
    cuda_queue *queue = calloc(1, sizeof(*queue));
    if (!queue) return stk_fail_memory(sizeof(*queue));
    queue->head.base.device = device;
    queue->context = context;
    stk_status status = cuda_enter(context);
    if (status == STK_OK)
        status = cuda_check(cu.cuStreamCreateWithPriority(&queue->stream, CU_STREAM_NON_BLOCKING, 0),
                            "cuStreamCreateWithPriority");
    if (status != STK_OK) {
        free(queue);
        return status;
    }
    *out = &queue->head.base;
    return STK_OK;
}

void cuda_close_queue(stk_queue *base)
{
    cuda_queue *queue = (cuda_queue *)base;
    if (!queue->context->hangs) (void)!cuda_wait_stream(queue->context, queue->stream);
    if (!queue->context->hangs) cu.cuStreamDestroy(queue->stream);
    free(queue);
}

/* Of memory that is not pinned the driver's own copy waits for the stream, and cannot be given up: this does, first. */
stk_status cuda_copy(stk_queue *base, void *dst, const void *src, size_t bytes, stk_copy_kind kind)
{
    cuda_queue *queue = (cuda_queue *)base;
    const void *host = kind == STK_COPY_TO_DEVICE ? src : kind == STK_COPY_TO_HOST ? dst : NULL;
    if (host && !cuda_is_pinned(queue->context, host, bytes))
        STK_RETURN_IF_ERROR(cuda_wait_stream(queue->context, queue->stream));
    STK_RETURN_IF_ERROR(cuda_enter(queue->context));
    return cuda_check_work(
        queue->context, cu.cuMemcpyAsync((cu_address)(uintptr_t)dst, (cu_address)(uintptr_t)src, bytes, queue->stream),
        "cuMemcpyAsync");
}

/* Where the chips have no way to each other, the driver copies by way of the host. */
stk_status cuda_reach(gpu_context *context, gpu_context *other)
{
    int can = 0;
    STK_RETURN_IF_ERROR(cuda_enter(context));
    STK_RETURN_IF_ERROR(cuda_check(cu.cuDeviceCanAccessPeer(&can, context->chip->device, other->chip->device),
                                   "cuDeviceCanAccessPeer"));
    if (!can) return STK_OK;
    int code = cu.cuCtxEnablePeerAccess(other->context, 0);
    return code == CU_PEER_IS_ENABLED ? STK_OK : cuda_check(code, "cuCtxEnablePeerAccess");
}

stk_status cuda_finish(stk_queue *base)
{
    cuda_queue *queue = (cuda_queue *)base;
    return cuda_wait_stream(queue->context, queue->stream);
}

/* --- events --- */

stk_status cuda_open_event(stk_device *device, gpu_context *context, stk_event **out)
{
    cuda_event *event = calloc(1, sizeof(*event));
    if (!event) return stk_fail_memory(sizeof(*event));
    event->head.device = device;
    event->context = context;
    stk_status status = cuda_enter(context);
    if (status == STK_OK) status = cuda_check(cu.cuEventCreate(&event->event, CU_EVENT_NO_TIMING), "cuEventCreate");
    if (status != STK_OK) {
        free(event);
        return status;
    }
    *out = (stk_event *)event;
    return STK_OK;
}

void cuda_close_event(stk_event *base)
{
    cuda_event *event = (cuda_event *)base;
    if (!event->context->hangs && cuda_enter(event->context) == STK_OK) cu.cuEventDestroy(event->event);
    free(event);
}

stk_status cuda_record(stk_queue *base, stk_event *to)
{
    cuda_queue *queue = (cuda_queue *)base;
    STK_RETURN_IF_ERROR(cuda_enter(queue->context));
    return cuda_check_work(queue->context, cu.cuEventRecord(((cuda_event *)to)->event, queue->stream), "cuEventRecord");
}

stk_status cuda_wait_for(stk_queue *base, const stk_event *from)
{
    cuda_queue *queue = (cuda_queue *)base;
    STK_RETURN_IF_ERROR(cuda_enter(queue->context));
    return cuda_check_work(queue->context, cu.cuStreamWaitEvent(queue->stream, ((const cuda_event *)from)->event, 0),
                           "cuStreamWaitEvent");
}

stk_status cuda_sync(const stk_event *base)
{
    const cuda_event *event = (const cuda_event *)base;
    return cuda_wait_event(event->context, event->event);
}
