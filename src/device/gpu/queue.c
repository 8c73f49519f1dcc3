/* Queues and captures: what the driver has, with faults copied behind launches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/gpu/join.h"

static gpu_device *device_of(const stk_queue *queue)
{
    return (gpu_device *)queue->device;
}

/* --- queues and events --- */

static stk_status open_queue(stk_device *base, stk_queue **out)
{
    gpu_device *device = (gpu_device *)base;
    return device->driver->open_queue(base, device->context, out);
}

static void close_queue(stk_queue *queue)
{
    if (queue) device_of(queue)->driver->close_queue(queue);
}

static stk_status copy(stk_queue *queue, void *dst, const void *src, size_t bytes, stk_copy_kind kind)
{
    return bytes ? device_of(queue)->driver->copy(queue, dst, src, bytes, kind) : STK_OK;
}

static stk_status reach(stk_device *base, stk_device *other)
{
    const gpu_device *device = (gpu_device *)base;
    if (!device->driver->reach)
        return stk_fail(STK_UNSUPPORTED, "devices '%s' do not copy to each other", base->class->name);
    return device->driver->reach(device->context, ((gpu_device *)other)->context);
}

/* Kernels may have told of a fault since the last time: it comes to the host with this mark. */
static stk_status copy_fault(stk_queue *queue)
{
    gpu_device *device = device_of(queue);
    if (!((gpu_queue *)queue)->launched) return STK_OK;
    ((gpu_queue *)queue)->launched = false;
    return device->driver->copy(queue, device->fault_host, device->fault, GPU_FAULT_WORDS * sizeof(int32_t),
                                STK_COPY_TO_HOST);
}

static stk_status open_event(stk_device *base, stk_event **out)
{
    gpu_device *device = (gpu_device *)base;
    return device->driver->open_event(base, device->context, out);
}

static gpu_device *device_of_event(const stk_event *event)
{
    return (gpu_device *)((const gpu_event *)event)->device;
}

static void close_event(stk_event *event)
{
    if (event) device_of_event(event)->driver->close_event(event);
}

static stk_status record(stk_queue *queue, stk_event *event)
{
    STK_RETURN_IF_ERROR(copy_fault(queue));
    return device_of(queue)->driver->record(queue, event);
}

static stk_status wait_for(stk_queue *queue, const stk_event *event)
{
    return device_of(queue)->driver->wait(queue, event);
}

static stk_status sync(const stk_event *event)
{
    gpu_device *device = device_of_event(event);
    return gpu_check(device, device->driver->sync(event));
}

static stk_status finish(stk_queue *queue)
{
    gpu_device *device = device_of(queue);
    stk_status status = copy_fault(queue);
    if (status == STK_OK) status = device->driver->finish(queue);
    return gpu_check(device, status);
}

/* --- captures --- */

/* Launches of all entries, with their arguments one after the other. */
typedef struct bound_list {
    gpu_bound_launch *launch;
    gpu_argument *argument;
    char (*name)[GPU_NAME_BYTES];
    gpu_joined *joined;
    int n_launches, n_arguments;
} bound_list;

static void free_list(bound_list *list)
{
    free(list->launch);
    free(list->argument);
    free(list->name);
    free(list->joined);
}

static gpu_argument bind(const gpu_device *device, const gpu_kernel *kernel, const gpu_launch_argument *a,
                         const stk_kernel_args *args)
{
    switch (a->kind) {
    case GPU_IN: return (gpu_argument){.address = (char *)args->in[a->i] + a->offset};
    case GPU_OUT: return (gpu_argument){.address = (char *)args->out[a->i] + a->offset};
    case GPU_SCRATCH: return (gpu_argument){.address = (char *)args->scratch + a->offset};
    case GPU_FAULT: return (gpu_argument){.address = device->fault};
    default: return (gpu_argument){.value = kernel->values + a->offset, .bytes = a->bytes};
    }
}

/* The last launch into the one before it, where that may be. */
static void join_last(bound_list *list)
{
    const int last = list->n_launches - 1;
    if (last == 0) return;
    gpu_bound_launch *into = &list->launch[last - 1];
    gpu_argument *argument = &list->argument[list->n_arguments - list->launch[last].n_arguments - into->n_arguments];
    if (!gpu_join(&list->joined[last - 1], into, argument, list->joined[last].launch, &list->launch[last])) return;
    list->n_arguments -= list->launch[last].n_arguments;
    list->n_launches--;
}

static void bind_entry(const gpu_device *device, const stk_entry *entry, bound_list *list)
{
    const gpu_kernel *kernel = entry->kernel->state;
    for (int i = 0; i < kernel->n_launches; i++) {
        const gpu_launch *from = &kernel->launch[i];
        if (from->n_groups[0] == 0 || from->n_groups[1] == 0 || from->n_groups[2] == 0) continue;
        if (from->copies && entry->args.in[from->copy_in] == entry->args.out[from->copy_out]) continue;
        gpu_bound_launch *to = &list->launch[list->n_launches];
        char *name = list->name[list->n_launches++];
        if (from->unit)
            gpu_kernel_name(from->unit, from->kernel, name);
        else
            snprintf(name, GPU_NAME_BYTES, "%s", from->kernel);
        const bool convolves = from->convolution.plan != NULL;
        *to = (gpu_bound_launch){.product = from->unit || convolves ? NULL : &from->product,
                                 .convolution = convolves ? &from->convolution : NULL,
                                 .module = from->unit ? from->unit->module : NULL,
                                 .kernel = name,
                                 .argument = &list->argument[list->n_arguments],
                                 .n_arguments = from->n_arguments};
        memcpy(to->n_groups, from->n_groups, sizeof(to->n_groups));
        memcpy(to->group, from->group, sizeof(to->group));
        for (int j = 0; j < from->n_arguments; j++)
            list->argument[list->n_arguments++] = bind(device, kernel, &from->argument[j], &entry->args);
        list->joined[list->n_launches - 1] = (gpu_joined){.launch = from, .n_used = 1};
        join_last(list);
    }
}

static stk_status bind_entries(const gpu_device *device, const stk_entry *entries, int n_entries, bound_list *list)
{
    size_t n_launches = 1, n_arguments = 1;
    for (int e = 0; e < n_entries; e++) {
        const gpu_kernel *kernel = entries[e].kernel->state;
        n_launches += (size_t)kernel->n_launches;
        for (int i = 0; i < kernel->n_launches; i++)
            n_arguments += (size_t)kernel->launch[i].n_arguments;
    }
    list->launch = calloc(n_launches, sizeof(*list->launch));
    list->argument = calloc(n_arguments, sizeof(*list->argument));
    list->name = calloc(n_launches, sizeof(*list->name));
    list->joined = calloc(n_launches, sizeof(*list->joined));
    if (!list->launch || !list->argument || !list->name || !list->joined)
        return stk_fail_memory(n_launches * sizeof(*list->launch));
    for (int e = 0; e < n_entries; e++)
        bind_entry(device, &entries[e], list);
    return STK_OK;
}

static stk_status capture(stk_device *base, const stk_entry *entries, int n_entries, stk_capture **out)
{
    gpu_device *device = (gpu_device *)base;
    bound_list list = {0};
    stk_status status = STK_OK;
    STK_TRY(gpu_build(device));
    STK_TRY(bind_entries(device, entries, n_entries, &list));
    STK_TRY(device->driver->capture(device->context, list.launch, list.n_launches, out));
done:
    free_list(&list);
    return status;
}

static void release(stk_capture *capture)
{
    if (capture) ((const gpu_capture *)capture)->driver->release(capture);
}

static stk_status launch(stk_queue *queue, const stk_capture *capture, int *i_failed)
{
    *i_failed = -1;
    ((gpu_queue *)queue)->launched = true;
    return device_of(queue)->driver->launch(queue, capture);
}

static int64_t took_ns(const stk_capture *capture)
{
    const gpu_driver *driver = ((const gpu_capture *)capture)->driver;
    return driver->took_ns ? driver->took_ns(capture) : -1;
}

const stk_queue_class gpu_queues = {
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
    .took_ns = took_ns,
};
