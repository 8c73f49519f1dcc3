/* Sums over micro-batches, and what they were: accumulate, carry. */
#include "device/gpu/gpu.h"

enum { GROUP = 256, UNIT = 16 };

void gpu_make_accumulate(gpu_maker *m)
{
    int64_t n = stk_shape_count(m->call->in[0].shape);
    if (m->call->in[0].dtype != STK_F32) gpu_refuse(m);
    /* In place the sum lies there already. */
    if (n == 0 || m->call->attrs->accumulate.in_place) return;
    gpu_add(m, "accumulate.dev", "accumulate", "%s", "");
    gpu_in(m, 0);
    gpu_in(m, 1);
    gpu_out(m, 0);
    gpu_index(m, n);
    gpu_items(m, n, GROUP);
}

void gpu_make_carry(gpu_maker *m)
{
    int64_t n_bytes = (int64_t)stk_desc_bytes(m->call->out[0]);
    if (n_bytes == 0) return;
    gpu_add(m, "accumulate.dev", "carry", "%s", "");
    gpu_in(m, 0);
    gpu_out(m, 0);
    gpu_index(m, n_bytes / UNIT);
    gpu_int(m, (int32_t)(n_bytes % UNIT));
    gpu_items(m, n_bytes / UNIT + 1 > UNIT ? n_bytes / UNIT + 1 : UNIT, GROUP);
}
