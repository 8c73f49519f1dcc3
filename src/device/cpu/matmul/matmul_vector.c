/* One row times a matrix. Parts are ranges of the matrix's rows as they lie in memory, so that each thread reads one
 * stretch of it: where these rows are what is summed over, each part has sums of its own, added up in order at the end.
 */
#include "device/cpu/matmul/matmul_vector.h"

#include <string.h>

#include "device/cpu/matmul/matmul_impls.h"

typedef struct matvec_state {
    const stk_matvec_table *fns;
    int64_t n, k;
    bool rows_are_results; /* the matrix is [n,k], else [k,n] */
    bool has_bias;
    int n_parts;
    int64_t sum_step; /* floats from one part's sums to the next */
} matvec_state;

typedef struct matvec_task {
    const matvec_state *s;
    const stk_kernel_args *args;
} matvec_task;

enum { GRAIN = 4 };

static void dot_share(const void *p, int i_part, int n_parts)
{
    const matvec_task *task = p;
    const matvec_state *s = task->s;
    int64_t begin, end;
    stk_cpu_share(s->n, GRAIN, i_part, n_parts, &begin, &end);
    s->fns->dot_rows(end - begin, s->k, task->args->in[0], (const float *)task->args->in[1] + begin * s->k,
                     (float *)task->args->out[0] + begin);
}

static void add_share(const void *p, int i_part, int n_parts)
{
    const matvec_task *task = p;
    const matvec_state *s = task->s;
    int64_t begin, end;
    float *sums = n_parts == 1 ? task->args->out[0] : (float *)task->args->scratch + i_part * s->sum_step;
    stk_cpu_share(s->k, GRAIN, i_part, n_parts, &begin, &end);
    memset(sums, 0, (size_t)s->n * sizeof(*sums));
    s->fns->add_rows(s->n, end - begin, (const float *)task->args->in[0] + begin,
                     (const float *)task->args->in[1] + begin * s->n, sums);
}

static void add_bias(const matvec_state *s, const stk_kernel_args *args)
{
    const float one = 1;
    if (s->has_bias) s->fns->add_rows(s->n, 1, &one, args->in[2], args->out[0]);
}

static stk_status run(const void *p, const stk_kernel_args *args)
{
    const matvec_state *s = p;
    matvec_task task = {s, args};
    if (s->n == 0) return STK_OK;
    stk_cpu_parallel(s->n_parts, s->rows_are_results ? dot_share : add_share, &task);
    if (s->rows_are_results || s->n_parts == 1) {
        add_bias(s, args);
        return STK_OK;
    }
    const float one = 1;
    memset(args->out[0], 0, (size_t)s->n * sizeof(float));
    for (int i = 0; i < s->n_parts; i++)
        s->fns->add_rows(s->n, 1, &one, (const float *)args->scratch + i * s->sum_step, args->out[0]);
    add_bias(s, args);
    return STK_OK;
}

bool stk_matmul_vector_supports(const stk_cpu_device *device, const stk_op_call *call)
{
    stk_matmul_sizes sizes = stk_matmul_sizes_of(call);
    (void)device;
    return call->in[0].dtype == STK_F32 && sizes.gemm.m == 1 && sizes.n_batch == 1;
}

stk_status stk_matmul_vector_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    enum { PARTS_A_THREAD = 4 };
    stk_matmul_sizes sizes = stk_matmul_sizes_of(call);
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(matvec_state), run, out));
    matvec_state *s = out->state;
    s->fns = stk_matvec_of(device->isa);
    s->n = sizes.gemm.n;
    s->k = sizes.gemm.k;
    s->has_bias = sizes.has_bias;
    s->rows_are_results = sizes.gemm.b_row == 1;
    int n_threads = stk_cpu_threads_for((double)s->n * (double)s->k, device->base.n_threads);
    s->n_parts = n_threads > 1 ? PARTS_A_THREAD * n_threads : 1;
    s->sum_step = (s->n + 15) / 16 * 16;
    if (!s->rows_are_results && s->n_parts > 1) out->scratch_bytes = (size_t)(s->n_parts * s->sum_step) * sizeof(float);
    return STK_OK;
}
