/* The reference device: its table of kernels and its functions. */
#include "device/reference/reference.h"

#include <stdlib.h>
#include <string.h>

#include "device/queue.h"

/* One slot for each op; those of leaves and marks are empty. */
static stk_status (*const kernels[STK_N_OPS])(const stk_op_call *, stk_kernel *) = {
#define X(name) [STK_OP_##name] = stk_ref_##name##_kernel,
    STK_KERNEL_OP_LIST(X)
#undef X
};

static stk_status open_reference(const stk_device_config *config, stk_device **out)
{
    (void)config; /* One thread, whatever is asked for. */
    stk_device *device = calloc(1, sizeof(*device));
    if (!device) return stk_fail_memory(sizeof(*device));
    device->class = &stk_device_class_reference;
    device->n_threads = 1;
    *out = device;
    return STK_OK;
}

static void close_reference(stk_device *device)
{
    free(device);
}

static stk_status alloc_memory(stk_device *device, size_t bytes, stk_memory_kind kind, void **out)
{
    (void)kind; /* All of it is zeroed. */
    (void)device;
    size_t rounded = (bytes / 64 + 1) * 64;
    *out = rounded > bytes ? aligned_alloc(64, rounded) : NULL;
    if (!*out) return stk_fail_memory(bytes);
    memset(*out, 0, rounded);
    return STK_OK;
}

static void free_memory(stk_device *device, void *p, size_t bytes)
{
    (void)device;
    (void)bytes;
    free(p);
}

static stk_status find_kernel(stk_device *device, const stk_op_call *call, stk_kernel *out)
{
    (void)device;
    memset(out, 0, sizeof(*out));
    if ((unsigned)call->op >= STK_N_OPS || !kernels[call->op])
        return stk_fail(STK_UNSUPPORTED, "the reference device has no kernel for '%s'", stk_op_name(call->op));
    STK_RETURN_IF_ERROR(kernels[call->op](call, out));
    out->impl = "reference";
    return STK_OK;
}

static stk_status run_entries(stk_device *device, const stk_entry *entries, int n_entries, int *i_failed)
{
    (void)device;
    for (int i = 0; i < n_entries; i++) {
        stk_status status = entries[i].kernel->run(entries[i].kernel->state, &entries[i].args);
        if (status == STK_OK) continue;
        *i_failed = i;
        return status;
    }
    return STK_OK;
}

static void describe(const stk_device *device, stk_text *out)
{
    (void)device;
    stk_text_add(out, "1 thread, plain C in double precision");
}

const stk_device_class stk_device_class_reference = {
    .name = "reference",
    .about = "plain C in double precision: the oracle for the other devices, slow",
    .on_host = true,
    .caps = &stk_device_caps_all,
    .open = open_reference,
    .close = close_reference,
    .alloc = alloc_memory,
    .free = free_memory,
    .kernel = find_kernel,
    .queues = &stk_queue_class_host,
    .run = run_entries,
    .describe = describe,
};
