/* Memory: handles of OpenCL behind addresses that are made up, in rising order and never twice. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/gpu/opencl/opencl.h"

enum { APART = 4096 }; /* between blocks, so that an address behind the end of one is nobody's */

stk_status opencl_alloc(gpu_context *context, size_t bytes, void **out)
{
    const uint32_t zero = 0;
    cl_int code;
    size_t rounded = (bytes + 63) / 64 * 64;
    if (rounded < bytes) return stk_fail_memory(bytes);
    opencl_block *grown = realloc(context->block, ((size_t)context->n_blocks + 1) * sizeof(*grown));
    if (!grown) return stk_fail_memory(sizeof(*grown));
    context->block = grown;
    cl_mem memory = cl.clCreateBuffer(context->context, CL_MEM_READ_WRITE, rounded, NULL, &code);
    if (code != CL_SUCCESS) return opencl_check(code, "clCreateBuffer");
    /* Drivers take memory when it is first written: it is, here, so that what is missing is missed now. */
    code = cl.clEnqueueFillBuffer(context->queue, memory, &zero, sizeof(zero), 0, rounded, 0, NULL, NULL);
    if (code == CL_SUCCESS) code = cl.clFinish(context->queue);
    if (code != CL_SUCCESS) {
        cl.clReleaseMemObject(memory);
        return opencl_check(code, "clEnqueueFillBuffer");
    }
    grown[context->n_blocks++] = (opencl_block){context->next, rounded, memory};
    *out = (void *)context->next;
    context->next += (rounded + APART - 1) / APART * APART + APART;
    return STK_OK;
}

/* The block that begins last of those that do not begin behind the address; -1: none. */
static int find_block(const gpu_context *context, uintptr_t address)
{
    int low = -1, high = context->n_blocks - 1;
    while (low < high) {
        int middle = low + (high - low + 1) / 2;
        if (context->block[middle].address <= address)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

void opencl_free(gpu_context *context, void *p)
{
    int i = find_block(context, (uintptr_t)p);
    if (i < 0 || context->block[i].address != (uintptr_t)p) return;
    cl.clReleaseMemObject(context->block[i].memory);
    context->n_blocks--;
    memmove(&context->block[i], &context->block[i + 1], (size_t)(context->n_blocks - i) * sizeof(*context->block));
}

stk_status opencl_find(const gpu_context *context, const void *p, size_t bytes, cl_mem *memory, size_t *offset)
{
    int i = find_block(context, (uintptr_t)p);
    const opencl_block *b = i < 0 ? NULL : &context->block[i];
    size_t at = b ? (uintptr_t)p - b->address : 0;
    if (!b || at > b->bytes || bytes > b->bytes - at)
        return stk_fail(STK_INTERNAL, "%zu bytes at %p are not memory of the device", bytes, p);
    *memory = b->memory;
    *offset = at;
    return STK_OK;
}

/* --- the host's: mapped for as long as it lives --- */

stk_status opencl_alloc_host(gpu_context *context, size_t bytes, void **out)
{
    cl_int code;
    opencl_mapping *grown = realloc(context->mapping, ((size_t)context->n_mappings + 1) * sizeof(*grown));
    if (!grown) return stk_fail_memory(sizeof(*grown));
    context->mapping = grown;
    /* With room to begin at 64 bytes. */
    cl_mem memory =
        cl.clCreateBuffer(context->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes + 64, NULL, &code);
    if (code != CL_SUCCESS) return opencl_check(code, "clCreateBuffer");
    void *p = cl.clEnqueueMapBuffer(context->queue, memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes + 64, 0, NULL,
                                    NULL, &code);
    if (code != CL_SUCCESS) {
        cl.clReleaseMemObject(memory);
        return opencl_check(code, "clEnqueueMapBuffer");
    }
    grown[context->n_mappings++] = (opencl_mapping){p, memory};
    *out = (void *)(((uintptr_t)p + 63) / 64 * 64);
    return STK_OK;
}

void opencl_free_host(gpu_context *context, void *p)
{
    for (int i = 0; i < context->n_mappings; i++) {
        opencl_mapping *m = &context->mapping[i];
        if ((uintptr_t)p - (uintptr_t)m->p >= 64) continue;
        cl.clEnqueueUnmapMemObject(context->queue, m->memory, m->p, 0, NULL, NULL);
        cl.clFinish(context->queue);
        cl.clReleaseMemObject(m->memory);
        *m = context->mapping[--context->n_mappings];
        return;
    }
}
