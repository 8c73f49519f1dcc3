/* matmul: the list of ways to multiply, best first, and what a call is. */
#include "device/cpu/matmul/matmul_impls.h"

static const stk_cpu_impl impls[] = {
    /* What is made for this processor's vectors, where it pays. Both name themselves, and oneDNN may refuse. */
    {NULL, stk_matmul_tiles_supports, stk_matmul_tiles_make},
    {NULL, stk_matmul_onednn_supports, stk_matmul_onednn_make},
    /* Small ones in bf16, which would go through f32. */
    {NULL, stk_matmul_small_tiles_supports, stk_matmul_tiles_make},
    {NULL, stk_matmul_small_onednn_supports, stk_matmul_onednn_make},
    /* One row: as fast as memory gives the matrix. */
    {"own vector", stk_matmul_vector_supports, stk_matmul_vector_make},
    /* Large ones in f32. */
    {"onednn sgemm", stk_matmul_sgemm_supports, stk_matmul_sgemm_make},
    /* Small ones, and all in f64. */
    {NULL, stk_matmul_own_supports, stk_matmul_own_make},
    STK_CPU_IMPL_WIDENED,
    {0},
};

/* What a family's table may choose: all that can, in no order. */
const stk_cpu_way stk_matmul_ways[] = {
    {"tiles", {NULL, stk_matmul_tiles_can, stk_matmul_tiles_make}},
    {"onednn", {NULL, stk_matmul_onednn_can, stk_matmul_onednn_make}},
    {"vector", {"own vector", stk_matmul_vector_supports, stk_matmul_vector_make}},
    {"sgemm", {"onednn sgemm", stk_matmul_sgemm_can, stk_matmul_sgemm_make}},
    {"own", {NULL, stk_matmul_own_supports, stk_matmul_own_make}},
    {"widened", STK_CPU_IMPL_WIDENED},
    {NULL, {0}},
};

stk_status stk_cpu_matmul_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return stk_cpu_make_best(device, call, stk_matmul_ways, impls, out);
}

stk_matmul_sizes stk_matmul_sizes_of(const stk_op_call *call)
{
    stk_matmul_sizes sizes = {0}, *s = &sizes;
    stk_shape a = call->in[0].shape, b = call->in[1].shape, c = call->out[0].shape;
    bool ta = call->attrs->matmul.transpose_a, tb = call->attrs->matmul.transpose_b;
    stk_gemm *g = &s->gemm;
    s->has_bias = call->n_in == 3;
    g->m = c.dim[c.rank - 2];
    g->n = c.dim[c.rank - 1];
    g->k = a.dim[a.rank - (ta ? 2 : 1)];
    g->a_row = ta ? 1 : g->k;
    g->a_col = ta ? g->m : 1;
    g->b_row = tb ? 1 : g->n;
    g->b_col = tb ? g->k : 1;
    s->n_batch = stk_shape_product(c, 0, c.rank - 2);
    bool shared = b.rank == 2;
    if (shared && !ta) {
        /* All rows of all matrices below each other. */
        g->m *= s->n_batch;
        s->n_batch = 1;
    }
    int64_t bytes = (int64_t)stk_dtype_bytes(call->out[0].dtype);
    s->a_step = g->m * g->k * bytes;
    s->b_step = shared ? 0 : g->k * g->n * bytes;
    s->c_step = g->m * g->n * bytes;
    return sizes;
}

double stk_matmul_flops(const stk_matmul_sizes *s)
{
    return 2.0 * (double)s->n_batch * (double)s->gemm.m * (double)s->gemm.n * (double)s->gemm.k;
}

int stk_matmul_threads(const stk_cpu_device *device, const stk_matmul_sizes *sizes)
{
    return stk_matmul_flops(sizes) < 2.5e5 ? 1 : device->base.n_threads;
}
