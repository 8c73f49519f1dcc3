/* Whether all elements of all inputs are finite: one sweep, of which each part takes its share of every input. */
#include <stdatomic.h>
#include <stdlib.h>

#include "device/cpu/cpu.h"
#include "device/cpu/rows/axis.h"

typedef struct finite_input {
    stk_dtype dtype;
    int64_t n;
} finite_input;

typedef struct finite_state {
    const stk_axis_table *table;
    int n_parts, n_in;
    finite_input in[]; /* n_in */
} finite_state;

typedef struct finite_task {
    const finite_state *state;
    const stk_kernel_args *args;
    atomic_bool *bad; /* the same whatever the order */
} finite_task;

static bool is_finite(const stk_axis_table *table, stk_dtype dtype, int64_t n, const void *x)
{
    switch (dtype) {
    case STK_F64: return table->finite_64(n, x);
    case STK_F32: return table->finite_32(n, x);
    default: return table->finite_16(n, x, dtype == STK_BF16 ? 0x7f80 : 0x7c00);
    }
}

static void check_share(const void *p, int i_part, int n_parts)
{
    const finite_task *task = p;
    const finite_state *s = task->state;
    bool all = true;
    for (int i = 0; i < s->n_in; i++) {
        int64_t begin, end;
        stk_cpu_share(s->in[i].n, 64, i_part, n_parts, &begin, &end);
        const char *x = (const char *)task->args->in[i] + (size_t)begin * stk_dtype_bytes(s->in[i].dtype);
        all &= is_finite(s->table, s->in[i].dtype, end - begin, x);
    }
    if (!all) atomic_store(task->bad, true);
}

static stk_status run(const void *p, const stk_kernel_args *args)
{
    const finite_state *s = p;
    atomic_bool bad = false;
    stk_cpu_parallel(s->n_parts, check_share, &(finite_task){s, args, &bad});
    *(uint8_t *)args->out[0] = !bad;
    return STK_OK;
}

stk_status stk_cpu_all_finite_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    size_t bytes = sizeof(finite_state) + (size_t)call->n_in * sizeof(finite_input);
    double n = 0;
    STK_RETURN_IF_ERROR(stk_cpu_new_state(bytes, run, out));
    finite_state *s = out->state;
    s->table = stk_axis_of(device->isa);
    s->n_in = call->n_in;
    for (int i = 0; i < call->n_in; i++) {
        s->in[i] = (finite_input){call->in[i].dtype, stk_shape_count(call->in[i].shape)};
        n += (double)s->in[i].n;
    }
    s->n_parts = stk_cpu_threads_for(n, device->base.n_threads);
    return STK_OK;
}
