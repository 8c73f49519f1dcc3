/* Between devices on the host, whose memory is one: plain copies, and sums in a fixed order. */
#include <string.h>

#include "device/cpu/cpu.h"

enum { BLOCK = 256 };

typedef struct devices_state {
    int64_t n; /* elements; copy: bytes */
    int n_values, n_threads;
    bool mean, is_double;
} devices_state;

static void copy_bytes(const void *p, int i_thread, int n_threads)
{
    const stk_cpu_task *task = p;
    const devices_state *s = task->state;
    int64_t begin, end;
    stk_cpu_share(s->n, 64, i_thread, n_threads, &begin, &end);
    if (end > begin)
        memcpy((char *)task->args->out[0] + begin, (const char *)task->args->in[0] + begin, (size_t)(end - begin));
}

static stk_status run_copy(const void *p, const stk_kernel_args *args)
{
    const devices_state *s = p;
    if (args->out[0] != args->in[0]) stk_cpu_parallel(s->n_threads, copy_bytes, &(stk_cpu_task){s, args});
    return STK_OK;
}

stk_status stk_cpu_copy_to_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(devices_state), run_copy, out));
    devices_state *s = out->state;
    s->n = (int64_t)stk_desc_bytes(call->in[0]);
    s->n_threads = stk_cpu_threads_for((double)stk_shape_count(call->in[0].shape), device->base.n_threads);
    out->in_place[0] = 1;
    return STK_OK;
}

/* All inputs of a block are read before an output of it is written. */
#define ADD_BLOCK(type)                                                                                                \
    static void add_##type(const devices_state *s, const stk_kernel_args *args, int64_t at, int64_t n)                 \
    {                                                                                                                  \
        type sum[BLOCK];                                                                                               \
        memcpy(sum, (const type *)args->in[0] + at, (size_t)n * sizeof(type));                                         \
        for (int i = 1; i < s->n_values; i++) {                                                                        \
            const type *x = (const type *)args->in[i] + at;                                                            \
            for (int64_t k = 0; k < n; k++)                                                                            \
                sum[k] += x[k];                                                                                        \
        }                                                                                                              \
        for (int64_t k = 0; s->mean && k < n; k++)                                                                     \
            sum[k] /= (type)s->n_values;                                                                               \
        for (int i = 0; i < s->n_values; i++)                                                                          \
            memcpy((type *)args->out[i] + at, sum, (size_t)n * sizeof(type));                                          \
    }
ADD_BLOCK(float)
ADD_BLOCK(double)

static void add_part(const void *p, int i_thread, int n_threads)
{
    const stk_cpu_task *task = p;
    const devices_state *s = task->state;
    int64_t begin, end;
    stk_cpu_share(s->n, BLOCK, i_thread, n_threads, &begin, &end);
    for (int64_t at = begin; at < end; at += BLOCK) {
        int64_t n = end - at < BLOCK ? end - at : BLOCK;
        (s->is_double ? add_double : add_float)(s, task->args, at, n);
    }
}

static stk_status run_add(const void *p, const stk_kernel_args *args)
{
    const devices_state *s = p;
    stk_cpu_parallel(s->n_threads, add_part, &(stk_cpu_task){s, args});
    return STK_OK;
}

stk_status stk_cpu_all_reduce_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    stk_dtype dtype = call->in[0].dtype;
    if (dtype == STK_BF16 || dtype == STK_F16)
        return stk_cpu_widen_kernel(device, call, stk_cpu_all_reduce_kernel, out);
    if (dtype != STK_F32 && dtype != STK_F64) return stk_cpu_unsupported(call);
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(devices_state), run_add, out));
    devices_state *s = out->state;
    s->n = stk_shape_count(call->in[0].shape);
    s->n_values = call->n_in;
    s->mean = call->attrs->all_reduce.mean;
    s->is_double = dtype == STK_F64;
    s->n_threads = stk_cpu_threads_for((double)s->n * call->n_in, device->base.n_threads);
    for (int i = 0; i < call->n_out && i < 8; i++)
        out->in_place[i] = 1u << i;
    return STK_OK;
}
