/* Calling single kernels of a device. Buffers have exactly the bytes of their descs, 64-byte aligned. */
#ifndef STK_TESTS_DEVICE_CPU_CALL_H
#define STK_TESTS_DEVICE_CPU_CALL_H

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "device/device.h"
#include "graph/fused.h"

enum { CALL_MOST = 12 };

typedef struct call {
    stk_op op;
    stk_attrs attrs;
    int n_in, n_out;
    stk_tensor_desc in_desc[CALL_MOST], out_desc[CALL_MOST];
    void *in[CALL_MOST];
} call;

static inline void *call_alloc(size_t bytes)
{
    void *p = NULL;
    if (posix_memalign(&p, 64, bytes ? bytes : 1)) abort();
    memset(p, 0xff, bytes);
    return p;
}

/* Uniform in [low, high). */
static inline double call_random(uint64_t seed, uint64_t i, double low, double high)
{
    return low + (high - low) * (double)(stk_philox(seed, 7, i).v[0] >> 8) * 0x1p-24;
}

/* An input with the next number; integers below high, bool half and half. Returns its number. */
static inline int call_add(call *c, stk_dtype dtype, stk_shape shape, double low, double high)
{
    int i = c->n_in++;
    c->in_desc[i] = (stk_tensor_desc){dtype, shape};
    c->in[i] = call_alloc(stk_desc_bytes(c->in_desc[i]));
    for (int64_t k = 0, n = stk_shape_count(shape); k < n; k++) {
        double x = call_random((uint64_t)i + 1, (uint64_t)k, low, high);
        switch (dtype) {
        case STK_F32: ((float *)c->in[i])[k] = (float)x; break;
        case STK_F64: ((double *)c->in[i])[k] = x; break;
        case STK_I64: ((int64_t *)c->in[i])[k] = (int64_t)x; break;
        case STK_I32: ((int32_t *)c->in[i])[k] = (int32_t)x; break;
        case STK_BF16: ((uint16_t *)c->in[i])[k] = (uint16_t)(0x3f00 + k % 200); break;
        case STK_F16: ((uint16_t *)c->in[i])[k] = (uint16_t)(0x3800 + k % 500); break;
        case STK_BOOL: ((uint8_t *)c->in[i])[k] = x - low >= (high - low) / 2; break;
        default: ((uint8_t *)c->in[i])[k] = (uint8_t)(int)x; break;
        }
    }
    return i;
}

static inline void call_add_out(call *c, stk_dtype dtype, stk_shape shape)
{
    c->out_desc[c->n_out++] = (stk_tensor_desc){dtype, shape};
}

static inline void call_free(call *c)
{
    for (int i = 0; i < CALL_MOST; i++)
        free(c->in[i]);
    memset(c, 0, sizeof(*c));
}

/* Behind scratch memory, where a kernel must not write: code that a library makes as it runs is seen by no sanitizer.
 */
enum { CALL_GUARD = 1 << 16, CALL_GUARD_BYTE = 0xa5 };

static inline stk_status call_check_guard(const stk_kernel *kernel, const void *scratch)
{
    const unsigned char *guard = (const unsigned char *)scratch + kernel->scratch_bytes;
    for (int i = 0; i < CALL_GUARD; i++)
        if (guard[i] != CALL_GUARD_BYTE)
            return stk_fail(STK_CORRUPT, "'%s' writes %d bytes behind its scratch memory", kernel->impl, i);
    return STK_OK;
}

/* A kernel that was made of the call; frees it. The rest as in call_run. */
static inline stk_status call_run_made(const call *c, stk_device *device, stk_kernel *kernel, int in_place,
                                       void *out[CALL_MOST])
{
    void *in[CALL_MOST], *scratch = call_alloc(kernel->scratch_bytes + CALL_GUARD);
    stk_status status = STK_OK;
    int i_failed;
    memcpy(in, c->in, sizeof(in));
    memset(out, 0, CALL_MOST * sizeof(*out));
    memset((char *)scratch + kernel->scratch_bytes, CALL_GUARD_BYTE, CALL_GUARD);
    for (int o = 0; o < c->n_out; o++) {
        out[o] = call_alloc(stk_desc_bytes(c->out_desc[o]));
        if (in_place < 0 || in_place / 32 != o) continue;
        memcpy(out[o], c->in[in_place % 32], stk_desc_bytes(c->out_desc[o]));
        in[in_place % 32] = out[o];
    }
    stk_entry entry = {kernel, {.in = in, .out = out, .scratch = kernel->scratch_bytes ? scratch : NULL}};
    STK_TRY(device->class->run(device, &entry, 1, &i_failed));
    status = call_check_guard(kernel, scratch);
done:
    free(scratch);
    stk_kernel_free(kernel);
    return status;
}

/* in_place >= 0: output in_place / 32 in a copy of input in_place % 32. Free each of out[] with free(). */
static inline stk_status call_run(const call *c, stk_device *device, int in_place, void *out[CALL_MOST],
                                  uint32_t *in_place_bits)
{
    stk_tensor_desc out_desc[CALL_MOST];
    memcpy(out_desc, c->out_desc, sizeof(out_desc));
    stk_op_call op_call = {c->op, &c->attrs, c->n_in, c->n_out, c->in_desc, out_desc};
    stk_kernel kernel = {0};
    memset(out, 0, CALL_MOST * sizeof(*out));
    STK_RETURN_IF_ERROR(device->class->kernel(device, &op_call, &kernel));
    if (in_place_bits) memcpy(in_place_bits, kernel.in_place, sizeof(kernel.in_place));
    return call_run_made(c, device, &kernel, in_place, out);
}

static inline void call_free_outputs(void *out[CALL_MOST])
{
    for (int i = 0; i < CALL_MOST; i++)
        free(out[i]);
}

/* The cpu device with an instruction set ("avx2"; one that is not here gives the best that is) and a thread count. */
static inline stk_device *call_open(const char *isa, int n_threads)
{
    stk_device *device = NULL;
    if (isa)
        setenv("STOKER_ISA", isa, 1);
    else
        unsetenv("STOKER_ISA");
    stk_status status = stk_device_open("cpu", &(stk_device_config){.n_threads = n_threads}, &device);
    unsetenv("STOKER_ISA");
    return status == STK_OK ? device : NULL;
}

#endif
