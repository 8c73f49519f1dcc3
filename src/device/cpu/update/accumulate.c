/* Sums over micro-batches: one sweep over memory. And what they were: no sweep but the first. */
#include <string.h>

#include "base/error.h"
#include "device/cpu/cpu.h"

typedef struct accumulate_state {
    int64_t n, rows;
    int n_levels; /* of a tree; 0: none */
    int n_threads;
    bool is_f64;
} accumulate_state;

static void add_f32(const float *src, float *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] += src[i];
}

static void add_f64(const double *src, double *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] += src[i];
}

/* dst = src + the sums that wait on levels [0, n), which may lie where dst does. */
static void add_levels_f32(const float *src, const void *const *level, int n, float *dst, int64_t begin, int64_t end)
{
    for (int64_t at = begin; at < end; at++) {
        float sum = src[at];
        for (int l = 0; l < n; l++)
            sum = ((const float *)level[l])[at] + sum;
        dst[at] = sum;
    }
}

static void add_levels_f64(const double *src, const void *const *level, int n, double *dst, int64_t begin, int64_t end)
{
    for (int64_t at = begin; at < end; at++) {
        double sum = src[at];
        for (int l = 0; l < n; l++)
            sum = ((const double *)level[l])[at] + sum;
        dst[at] = sum;
    }
}

static void add_in_tree(const void *p, int i_thread, int n_threads)
{
    const stk_cpu_task *task = p;
    const accumulate_state *s = task->state;
    void *const *out = task->args->out;
    const void *level[STK_MOST_LEVELS];
    int64_t begin, end, part = *(const int64_t *)task->args->in[1] / s->rows;
    int n = 0;
    for (; part & 1; part >>= 1, n++)
        level[n] = stk_accumulate_level(out, s->n_levels, n);
    void *dst = stk_accumulate_level(out, s->n_levels, n);
    stk_cpu_share(s->n, 16, i_thread, n_threads, &begin, &end);
    if (s->is_f64)
        add_levels_f64(task->args->in[0], level, n, dst, begin, end);
    else
        add_levels_f32(task->args->in[0], level, n, dst, begin, end);
}

static void add_share(const void *p, int i_thread, int n_threads)
{
    const stk_cpu_task *task = p;
    const accumulate_state *s = task->state;
    const void *src = task->args->in[0];
    void *dst = task->args->out[0];
    size_t bytes = s->is_f64 ? sizeof(double) : sizeof(float);
    int64_t begin, end;
    stk_cpu_share(s->n, 16, i_thread, n_threads, &begin, &end);
    if (begin == end) return;
    if (*(const int64_t *)task->args->in[1] == 0)
        memcpy((char *)dst + (size_t)begin * bytes, (const char *)src + (size_t)begin * bytes,
               (size_t)(end - begin) * bytes);
    else if (s->is_f64)
        add_f64((const double *)src + begin, (double *)dst + begin, end - begin);
    else
        add_f32((const float *)src + begin, (float *)dst + begin, end - begin);
}

static stk_status run(const void *p, const stk_kernel_args *args)
{
    const accumulate_state *s = p;
    stk_cpu_parallel(s->n_threads, s->n_levels > 1 ? add_in_tree : add_share, &(stk_cpu_task){p, args});
    return STK_OK;
}

stk_status stk_cpu_accumulate_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    stk_dtype dtype = call->in[0].dtype;
    if (dtype != STK_F32 && dtype != STK_F64)
        return stk_fail(STK_UNSUPPORTED, "accumulate: %s sums over micro-batches are not supported",
                        stk_dtype_name(dtype));
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(accumulate_state), run, out));
    accumulate_state *s = out->state;
    s->n = stk_shape_count(call->in[0].shape);
    s->is_f64 = dtype == STK_F64;
    s->n_levels = call->attrs->accumulate.log2_parts;
    s->rows = call->attrs->accumulate.rows;
    s->n_threads = stk_cpu_threads_for((double)s->n, device->base.n_threads);
    return STK_OK;
}

static void clear_share(const void *p, int i_thread, int n_threads)
{
    const stk_cpu_task *task = p;
    const accumulate_state *s = task->state;
    int64_t begin, end;
    stk_cpu_share(s->n, 64, i_thread, n_threads, &begin, &end);
    memset((char *)task->args->out[0] + begin, 0, (size_t)(end - begin));
}

static stk_status run_carry(const void *p, const stk_kernel_args *args)
{
    const accumulate_state *s = p;
    if (*(const int64_t *)args->in[0] == 0) stk_cpu_parallel(s->n_threads, clear_share, &(stk_cpu_task){p, args});
    return STK_OK;
}

stk_status stk_cpu_carry_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(accumulate_state), run_carry, out));
    accumulate_state *s = out->state;
    s->n = (int64_t)stk_desc_bytes(call->out[0]);
    s->n_threads = stk_cpu_threads_for((double)s->n / 4, device->base.n_threads);
    return STK_OK;
}
