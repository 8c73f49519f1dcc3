/* Queues, events and captures. A queue is one of OpenCL's that works in order; a capture a command buffer, or a list of
 * kernels whose arguments are set, where the device has none. */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "device/gpu/opencl/opencl.h"

/* No buffer is made of so few, as of an op that is timed alone: PoCL's events tell when kernels begin and end, and not
 * when a buffer did. */
enum { FEW_LAUNCHES = 8 };

typedef struct opencl_queue {
    gpu_queue head;
    gpu_context *context;
    cl_command_queue queue;
} opencl_queue;

typedef struct opencl_event {
    gpu_event head;
    cl_event event; /* NULL: it has passed */
    gpu_context *context;
} opencl_event;

/* --- queues --- */

static stk_status open_queue(stk_device *device, gpu_context *context, stk_queue **out)
{
    cl_int code;
    opencl_queue *queue = calloc(1, sizeof(*queue));
    if (!queue) return stk_fail_memory(sizeof(*queue));
    queue->head.base.device = device;
    queue->context = context;
    queue->queue = cl.clCreateCommandQueue(context->context, context->device, CL_QUEUE_PROFILING_ENABLE, &code);
    if (code != CL_SUCCESS) {
        free(queue);
        return opencl_check(code, "clCreateCommandQueue");
    }
    *out = &queue->head.base;
    return STK_OK;
}

static void close_queue(stk_queue *base)
{
    opencl_queue *queue = (opencl_queue *)base;
    if (!queue->context->hangs) {
        cl.clFinish(queue->queue);
        cl.clReleaseCommandQueue(queue->queue);
    }
    free(queue);
}

static stk_status copy(stk_queue *base, void *dst, const void *src, size_t bytes, stk_copy_kind kind)
{
    opencl_queue *queue = (opencl_queue *)base;
    cl_mem from = NULL, to = NULL;
    size_t from_at = 0, to_at = 0;
    if (kind != STK_COPY_TO_DEVICE) STK_RETURN_IF_ERROR(opencl_find(queue->context, src, bytes, &from, &from_at));
    if (kind != STK_COPY_TO_HOST) STK_RETURN_IF_ERROR(opencl_find(queue->context, dst, bytes, &to, &to_at));
    if (kind == STK_COPY_TO_DEVICE)
        return opencl_check(cl.clEnqueueWriteBuffer(queue->queue, to, CL_FALSE, to_at, bytes, src, 0, NULL, NULL),
                            "clEnqueueWriteBuffer");
    if (kind == STK_COPY_TO_HOST)
        return opencl_check(cl.clEnqueueReadBuffer(queue->queue, from, CL_FALSE, from_at, bytes, dst, 0, NULL, NULL),
                            "clEnqueueReadBuffer");
    return opencl_check(cl.clEnqueueCopyBuffer(queue->queue, from, to, from_at, to_at, bytes, 0, NULL, NULL),
                        "clEnqueueCopyBuffer");
}

/* --- events --- */

static stk_status open_event(stk_device *device, gpu_context *context, stk_event **out)
{
    opencl_event *event = calloc(1, sizeof(*event));
    if (!event) return stk_fail_memory(sizeof(*event));
    event->head.device = device;
    event->context = context;
    *out = (stk_event *)event;
    return STK_OK;
}

static void close_event(stk_event *base)
{
    opencl_event *event = (opencl_event *)base;
    if (event->event) cl.clReleaseEvent(event->event);
    free(event);
}

/* The queue is told to begin: nothing that waits for this mark may wait for ever. */
static stk_status record(stk_queue *base, stk_event *to)
{
    opencl_queue *queue = (opencl_queue *)base;
    opencl_event *event = (opencl_event *)to;
    cl_event mark;
    STK_RETURN_IF_ERROR(
        opencl_check(cl.clEnqueueMarkerWithWaitList(queue->queue, 0, NULL, &mark), "clEnqueueMarkerWithWaitList"));
    if (event->event) cl.clReleaseEvent(event->event);
    event->event = mark;
    return opencl_check(cl.clFlush(queue->queue), "clFlush");
}

static stk_status wait_for(stk_queue *base, const stk_event *from)
{
    const opencl_event *event = (const opencl_event *)from;
    if (!event->event) return STK_OK;
    return opencl_check(cl.clEnqueueBarrierWithWaitList(((opencl_queue *)base)->queue, 1, &event->event, NULL),
                        "clEnqueueBarrierWithWaitList");
}

static stk_status sync(const stk_event *base)
{
    const opencl_event *event = (const opencl_event *)base;
    return event->event ? opencl_wait(event->context, event->event) : STK_OK;
}

static stk_status finish(stk_queue *base)
{
    opencl_queue *queue = (opencl_queue *)base;
    cl_event mark;
    STK_RETURN_IF_ERROR(
        opencl_check(cl.clEnqueueMarkerWithWaitList(queue->queue, 0, NULL, &mark), "clEnqueueMarkerWithWaitList"));
    stk_status status = opencl_check(cl.clFlush(queue->queue), "clFlush");
    if (status == STK_OK) status = opencl_wait(queue->context, mark);
    cl.clReleaseEvent(mark);
    return status;
}

/* --- captures --- */

static void release(stk_capture *base)
{
    opencl_capture *capture = (opencl_capture *)base;
    if (capture->context->launched == capture) capture->context->launched = NULL;
    if (capture->buffer) capture->context->buffers.clReleaseCommandBufferKHR(capture->buffer);
    for (int i = 0; i < capture->n_launches; i++) {
        if (capture->launch[i].done) cl.clReleaseEvent(capture->launch[i].done);
        if (capture->launch[i].kernel) cl.clReleaseKernel(capture->launch[i].kernel);
    }
    if (capture->done && capture->done[0]) cl.clReleaseEvent(capture->done[0]);
    free(capture->done);
    free(capture->launch);
    free(capture);
}

/* Memory is two arguments of a kernel: the handle, and how far in. */
static stk_status set_arguments(const gpu_context *context, cl_kernel kernel, const gpu_bound_launch *from)
{
    cl_uint n = 0;
    cl_int code = CL_SUCCESS;
    for (int i = 0; i < from->n_arguments && code == CL_SUCCESS; i++) {
        const gpu_argument *a = &from->argument[i];
        if (a->bytes) {
            code = cl.clSetKernelArg(kernel, n++, a->bytes, a->value);
            continue;
        }
        cl_mem memory = NULL;
        size_t offset = 0;
        if (a->address) STK_RETURN_IF_ERROR(opencl_find(context, a->address, 0, &memory, &offset));
        cl_ulong at = offset;
        code = cl.clSetKernelArg(kernel, n++, sizeof(memory), &memory);
        if (code == CL_SUCCESS) code = cl.clSetKernelArg(kernel, n++, sizeof(at), &at);
    }
    if (code != CL_SUCCESS)
        return stk_fail(STK_INTERNAL, "kernel '%s' does not take its argument number %d (%d)", from->kernel, (int)n - 1,
                        (int)code);
    return STK_OK;
}

static stk_status make_launch(const gpu_context *context, const gpu_bound_launch *from, opencl_launch *to)
{
    cl_int code;
    snprintf(to->name, sizeof(to->name), "%s", from->kernel);
    to->kernel = cl.clCreateKernel(from->module->program, from->kernel, &code);
    if (code != CL_SUCCESS) return stk_fail(STK_INTERNAL, "there is no kernel '%s' (%d)", from->kernel, (int)code);
    for (int i = 0; i < 3; i++) {
        to->local[i] = from->group[i];
        to->global[i] = (size_t)from->group[i] * from->n_groups[i];
    }
    return set_arguments(context, to->kernel, from);
}

/* Buffers are an improvement: where one cannot be made, the list is launched as it is. */
static void make_buffer(gpu_context *context, opencl_capture *capture)
{
    const cl_command_buffer_symbols *f = &context->buffers;
    cl_int code;
    const cl_bitfield overlap[] = {CL_COMMAND_BUFFER_FLAGS_KHR, CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR, 0};
    cl_command_buffer_khr buffer =
        f->clCreateCommandBufferKHR(1, &context->queue, context->buffers_overlap ? overlap : NULL, &code);
    if (code != CL_SUCCESS) return;
    for (int i = 0; i < capture->n_launches && code == CL_SUCCESS; i++) {
        const opencl_launch *l = &capture->launch[i];
        code = f->clCommandNDRangeKernelKHR(buffer, NULL, NULL, l->kernel, 3, NULL, l->global, l->local, 0, NULL, NULL,
                                            NULL);
    }
    if (code == CL_SUCCESS) code = f->clFinalizeCommandBufferKHR(buffer);
    if (code == CL_SUCCESS)
        capture->buffer = buffer;
    else
        f->clReleaseCommandBufferKHR(buffer);
}

static stk_status make_capture(gpu_context *context, const gpu_bound_launch *launches, int n, stk_capture **out)
{
    stk_status status = STK_OK;
    opencl_capture *capture = calloc(1, sizeof(*capture));
    if (!capture) return stk_fail_memory(sizeof(*capture));
    capture->head.driver = &opencl_driver;
    capture->context = context;
    capture->launch = calloc((size_t)n + 1, sizeof(*capture->launch));
    capture->done = calloc(1, sizeof(*capture->done));
    if (!capture->launch || !capture->done) STK_TRY(stk_fail_memory((size_t)n * sizeof(*capture->launch)));
    for (; capture->n_launches < n; capture->n_launches++) {
        status = make_launch(context, &launches[capture->n_launches], &capture->launch[capture->n_launches]);
        if (status == STK_OK) continue;
        capture->n_launches++;
        goto done;
    }
    if (context->has_command_buffers && n > FEW_LAUNCHES) make_buffer(context, capture);
    *out = (stk_capture *)capture;
    capture = NULL;
done:
    if (capture) release((stk_capture *)capture);
    return status;
}

static stk_status launch(stk_queue *base, const stk_capture *from)
{
    opencl_queue *queue = (opencl_queue *)base;
    const opencl_capture *capture = (const opencl_capture *)from;
    queue->context->launched = capture;
    if (capture->buffer) {
        if (capture->done[0] && !queue->context->buffers_overlap)
            STK_RETURN_IF_ERROR(opencl_wait(queue->context, capture->done[0]));
        if (capture->done[0]) cl.clReleaseEvent(capture->done[0]);
        capture->done[0] = NULL;
        return opencl_check(queue->context->buffers.clEnqueueCommandBufferKHR(1, &queue->queue, capture->buffer, 0,
                                                                              NULL, capture->done),
                            "clEnqueueCommandBufferKHR");
    }
    for (int i = 0; i < capture->n_launches; i++) {
        opencl_launch *l = &capture->launch[i];
        if (l->done) cl.clReleaseEvent(l->done);
        l->done = NULL;
        STK_RETURN_IF_ERROR(opencl_check(
            cl.clEnqueueNDRangeKernel(queue->queue, l->kernel, 3, NULL, l->global, l->local, 0, NULL, &l->done),
            "clEnqueueNDRangeKernel"));
    }
    return STK_OK;
}

static int64_t took_ns(const stk_capture *from)
{
    const opencl_capture *capture = (const opencl_capture *)from;
    cl_event first = capture->done[0], last = first;
    cl_ulong begin = 0, end = 0;
    if (!capture->buffer && capture->n_launches > 0) {
        first = capture->launch[0].done;
        last = capture->launch[capture->n_launches - 1].done;
    }
    if (!first || !last ||
        cl.clGetEventProfilingInfo(first, CL_PROFILING_COMMAND_START, sizeof(begin), &begin, NULL) != CL_SUCCESS ||
        cl.clGetEventProfilingInfo(last, CL_PROFILING_COMMAND_END, sizeof(end), &end, NULL) != CL_SUCCESS ||
        end < begin)
        return -1;
    return (int64_t)(end - begin);
}

static int count_calls(const stk_capture *from)
{
    const opencl_capture *capture = (const opencl_capture *)from;
    return capture->buffer ? 1 : capture->n_launches;
}

/* OpenCL tells no free memory. */
static void tell_memory(const gpu_context *context, stk_device_memory *out)
{
    (void)context;
    *out = (stk_device_memory){0};
}

const gpu_driver opencl_driver = {
    .name = "opencl",
    .dialect = "dialect_opencl.h",
    .load = opencl_load,
    .count = opencl_count,
    .open = opencl_open,
    .close = opencl_close,
    .alloc = opencl_alloc,
    .free = opencl_free,
    .alloc_host = opencl_alloc_host,
    .free_host = opencl_free_host,
    .memory = tell_memory,
    .build = opencl_build,
    .save = opencl_save,
    .restore = opencl_restore,
    .unload = opencl_unload,
    .open_queue = open_queue,
    .close_queue = close_queue,
    .copy = copy,
    .finish = finish,
    .open_event = open_event,
    .close_event = close_event,
    .record = record,
    .wait = wait_for,
    .sync = sync,
    .capture = make_capture,
    .release = release,
    .launch = launch,
    .took_ns = took_ns,
    .count_calls = count_calls,
};

/* --- the device --- */

static stk_status open_device(const stk_device_config *config, stk_device **out)
{
    return gpu_open(&opencl_driver, &stk_device_class_opencl, config, out);
}

const stk_device_class stk_device_class_opencl = {
    .name = "opencl",
    .about = "GPUs and whatever else has a driver for OpenCL 1.2",
    .count = opencl_count,
    .best_gpu = opencl_best_gpu,
    .probe = opencl_load,
    .open = open_device,
    .close = gpu_close,
    .alloc = gpu_alloc,
    .free = gpu_free,
    .alloc_host = gpu_alloc_host,
    .free_host = gpu_free_host,
    .kernel = gpu_find_kernel,
    .expect = gpu_expect_kernel,
    .prepare = gpu_prepare_kernels,
    .queues = &gpu_queues,
    .memory = gpu_memory,
    .chip = gpu_tell_chip,
    .describe = gpu_describe,
};
