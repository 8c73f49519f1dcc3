/* Random numbers by key; the formula is in graph/random.h. */
#include "graph/random.h"

#include "device/cpu/cpu.h"

typedef struct random_state {
    int64_t n_rows, n; /* n elements a row */
    double first, factor;
    int64_t stream;
    bool is_f64, is_normal;
    int n_threads;
} random_state;

static void random_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const random_state *s = task->state;
    uint64_t key = stk_random_key(*(const int64_t *)task->args->in[0], s->stream);
    int64_t sample = *(const int64_t *)task->args->in[1], n_blocks = (s->n + 3) / 4, begin, end;
    stk_cpu_share(s->n_rows * n_blocks, 1, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        int64_t row = i / n_blocks, at = i % n_blocks * 4;
        double block[4];
        stk_random_block(key, sample, row, at / 4, s->is_normal, block);
        for (int64_t k = 0; k < 4 && at + k < s->n; k++) {
            double x = s->first + s->factor * block[k];
            if (s->is_f64)
                ((double *)task->args->out[0])[row * s->n + at + k] = x;
            else
                ((float *)task->args->out[0])[row * s->n + at + k] = (float)x;
        }
    }
}

static stk_status run(const void *p, const stk_kernel_args *args)
{
    const random_state *s = p;
    stk_cpu_parallel(s->n_threads, random_share, &(stk_cpu_task){p, args});
    return STK_OK;
}

stk_status stk_cpu_random_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    stk_tensor_desc y = call->out[0];
    const stk_attrs *attrs = call->attrs;
    if (y.dtype != STK_F32 && y.dtype != STK_F64) return stk_cpu_widen_kernel(device, call, stk_cpu_random_kernel, out);
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(random_state), run, out));
    random_state *s = out->state;
    s->n_rows = y.shape.dim[0];
    s->n = stk_shape_product(y.shape, 1, y.shape.rank);
    s->first = attrs->random.a;
    s->factor = attrs->random.normal ? attrs->random.b : attrs->random.b - attrs->random.a;
    s->stream = attrs->random.stream;
    s->is_f64 = y.dtype == STK_F64;
    s->is_normal = attrs->random.normal;
    s->n_threads = stk_cpu_threads_for((double)s->n_rows * (double)s->n * 8, device->base.n_threads);
    return STK_OK;
}
