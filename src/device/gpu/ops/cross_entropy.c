/* Cross-entropy, its gradient and in_top_k: kernels/cross_entropy.dev. */
#include "device/gpu/ops/rows.h"

static gpu_rows begin(gpu_maker *m, const char *kernel)
{
    const stk_op_call *call = m->call;
    gpu_rows rows = gpu_find_rows(call->in[0], gpu_pack(call->in[0].dtype));
    gpu_add(m, "cross_entropy.dev", kernel, "#define T %s\n#define LABELS %d\n", stk_dtype_name(call->in[0].dtype),
            call->in[1].shape.rank == 1);
    for (int i = 0; i < call->n_in; i++)
        gpu_in(m, i);
    gpu_out(m, 0);
    gpu_over_rows(m, &rows);
    return rows;
}

static void add_fault(gpu_maker *m, const gpu_rows *rows)
{
    gpu_fault(m, STK_CORRUPT, "label %lld of row %lld is not one of the %lld classes", rows->n);
}

static void make_loss(gpu_maker *m, const char *kernel)
{
    double smoothing = m->call->attrs->cross_entropy.smoothing;
    gpu_rows rows = begin(m, kernel);
    gpu_float(m, 1 - smoothing);
    gpu_float(m, rows.n ? smoothing / (double)rows.n : 0);
    add_fault(m, &rows);
}

void gpu_make_cross_entropy(gpu_maker *m)
{
    make_loss(m, "loss");
}

void gpu_make_cross_entropy_grad(gpu_maker *m)
{
    make_loss(m, "loss_grad");
    m->in_place[0] = 1;
}

void gpu_make_in_top_k(gpu_maker *m)
{
    gpu_rows rows = begin(m, "top_k");
    gpu_int(m, m->call->attrs->in_top_k.k);
    add_fault(m, &rows);
}
