/* Large products in f32 by oneDNN's sgemm, in parts that our threads take (matmul_onednn.h). */
#include "device/cpu/matmul/matmul_impls.h"
#include "device/cpu/matmul/matmul_onednn.h"

typedef struct sgemm_state {
    stk_matmul_sizes sizes;
    int n_threads;
    int depth; /* parts of k */
} sgemm_state;

static stk_status run(const void *p, const stk_kernel_args *args)
{
    const sgemm_state *s = p;
    const stk_matmul_sizes *z = &s->sizes;
    const stk_gemm *own = &z->gemm;
    stk_sgemm g = {.m = own->m, .n = own->n, .k = own->k, .c_step = own->n};
    g.transpose_a = own->a_col != 1;
    g.transpose_b = own->b_col != 1;
    g.a_step = stk_gemm_a_step(own);
    g.b_step = stk_gemm_b_step(own);
    g.bias = z->has_bias ? args->in[2] : NULL;
    for (int64_t i = 0; i < z->n_batch; i++) {
        g.a = (const float *)((const char *)args->in[0] + i * z->a_step);
        g.b = (const float *)((const char *)args->in[1] + i * z->b_step);
        g.c = (float *)((char *)args->out[0] + i * z->c_step);
        STK_RETURN_IF_ERROR(s->depth > 1 ? stk_sgemm_run_deep(&g, s->depth, s->n_threads, args->scratch)
                                         : stk_sgemm_run(&g, s->n_threads));
    }
    return STK_OK;
}

bool stk_matmul_sgemm_supports(const stk_cpu_device *device, const stk_op_call *call)
{
    stk_matmul_sizes sizes = stk_matmul_sizes_of(call);
    const stk_gemm *g = &sizes.gemm;
    return call->in[0].dtype == STK_F32 && sizes.n_batch < 4 * stk_matmul_threads(device, &sizes) &&
           stk_sgemm_pays(g->m, g->n, g->k) && !stk_matmul_meets_few_sets(device, call);
}

/* Not a vector by a matrix: memory's speed counts there, and other ways read as fast. */
bool stk_matmul_sgemm_can(const stk_cpu_device *device, const stk_op_call *call)
{
    stk_matmul_sizes sizes = stk_matmul_sizes_of(call);
    return call->in[0].dtype == STK_F32 && sizes.gemm.m > 1 && sizes.gemm.n > 1 &&
           !stk_matmul_meets_few_sets(device, call);
}

stk_status stk_matmul_sgemm_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(sgemm_state), run, out));
    sgemm_state *s = out->state;
    s->sizes = stk_matmul_sizes_of(call);
    s->n_threads = stk_matmul_threads(device, &s->sizes);
    const stk_gemm *g = &s->sizes.gemm;
    s->depth = stk_sgemm_depth(g->m, g->n, g->k, s->n_threads);
    out->scratch_bytes = stk_sgemm_deep_bytes(g->m, g->n, s->depth);
    out->library_bytes = STK_ONEDNN_BYTES + stk_sgemm_library_bytes(g->m, g->n, g->k, s->n_threads);
    return STK_OK;
}
