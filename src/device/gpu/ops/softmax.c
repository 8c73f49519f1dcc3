/* Softmax over the last axis and its gradient: kernels/softmax.dev. */
#include "device/gpu/ops/rows.h"

static void make(gpu_maker *m, const char *kernel)
{
    const stk_op_call *call = m->call;
    stk_dtype dtype = call->in[0].dtype;
    gpu_rows rows = gpu_find_rows(call->in[0], gpu_pack(dtype));
    gpu_add(m, "softmax.dev", kernel, "#define T %s\n#define HELD %d\n", stk_dtype_name(dtype), rows.n_held);
    for (int i = 0; i < call->n_in; i++)
        gpu_in(m, i);
    gpu_out(m, 0);
    gpu_over_rows(m, &rows);
    m->in_place[0] = (1u << call->n_in) - 1;
}

void gpu_make_softmax(gpu_maker *m)
{
    make(m, "softmax");
}

void gpu_make_softmax_grad(gpu_maker *m)
{
    make(m, "softmax_grad");
}
