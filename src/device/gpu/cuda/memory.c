/* Memory of the chip, whose addresses are the driver's own, and the host's that is pinned. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/gpu/cuda/cuda.h"

stk_status cuda_alloc(gpu_context *context, size_t bytes, void **out)
{
    cu_address p = 0;
    STK_RETURN_IF_ERROR(cuda_enter(context));
    STK_RETURN_IF_ERROR(cuda_check(cu.cuMemAlloc(&p, bytes), "cuMemAlloc"));
    stk_status status = cuda_check(cu.cuMemsetD8Async(p, 0, bytes, context->stream), "cuMemsetD8Async");
    if (status == STK_OK) status = cuda_wait_stream(context, context->stream);
    if (status != STK_OK) {
        if (!context->hangs) cu.cuMemFree(p);
        return status;
    }
    *out = (void *)(uintptr_t)p;
    return STK_OK;
}

/* It waits for all work of the device, and so for ever where that hangs. */
void cuda_free(gpu_context *context, void *p)
{
    if (!context->hangs && cuda_enter(context) == STK_OK) cu.cuMemFree((cu_address)(uintptr_t)p);
}

stk_status cuda_alloc_host(gpu_context *context, size_t bytes, void **out)
{
    void *p = NULL;
    cuda_pin *grown = realloc(context->pin, ((size_t)context->n_pins + 1) * sizeof(*grown));
    if (!grown) return stk_fail_memory(sizeof(*grown));
    context->pin = grown;
    STK_RETURN_IF_ERROR(cuda_enter(context));
    int code = cu.cuMemHostAlloc(&p, bytes, CU_HOST_PORTABLE);
    if (code == CU_OUT_OF_MEMORY)
        return stk_fail(
            STK_NO_MEMORY,
            "cuMemHostAlloc: %zu bytes of the host's memory cannot be pinned: there is too little of it, or "
            "a limit (ulimit -l)",
            bytes);
    STK_RETURN_IF_ERROR(cuda_check(code, "cuMemHostAlloc"));
    grown[context->n_pins++] = (cuda_pin){p, bytes};
    *out = p;
    return STK_OK;
}

void cuda_free_host(gpu_context *context, void *p)
{
    for (int i = 0; i < context->n_pins; i++) {
        if (context->pin[i].p != p) continue;
        context->pin[i] = context->pin[--context->n_pins];
        if (!context->hangs && cuda_enter(context) == STK_OK) cu.cuMemFreeHost(p);
        return;
    }
}

bool cuda_is_pinned(const gpu_context *context, const void *p, size_t bytes)
{
    for (int i = 0; i < context->n_pins; i++) {
        const cuda_pin *pin = &context->pin[i];
        const size_t at = (uintptr_t)p - (uintptr_t)pin->p;
        if (at < pin->bytes && bytes <= pin->bytes - at) return true;
    }
    return false;
}

/* Kernels and graphs come after a plan, and lie in the same memory: what is free is told without their part. */
enum { PROGRAM_MIB = 256, PROGRAM_SHARE = 16 };

void cuda_tell_memory(const gpu_context *context, stk_device_memory *out)
{
    size_t free_bytes = 0, total = 0;
    *out = (stk_device_memory){0};
    if (cuda_enter(context) != STK_OK || cu.cuMemGetInfo(&free_bytes, &total) != CU_SUCCESS) return;
    size_t part = total / PROGRAM_SHARE < (size_t)PROGRAM_MIB << 20 ? total / PROGRAM_SHARE : (size_t)PROGRAM_MIB << 20;
    *out = (stk_device_memory){.total = total, .free = free_bytes > part ? free_bytes - part : 0};
}
