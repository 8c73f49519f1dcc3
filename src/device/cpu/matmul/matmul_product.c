/* Products by product.h: large ones of bf16 where the processor multiplies it, and f32 on AVX-512. */
#include "device/cpu/matmul/matmul_impls.h"
#include "device/cpu/matmul/matmul_onednn.h"
#include "device/cpu/matmul/product.h"

static stk_product_shape product_of(const stk_matmul_sizes *sizes, const stk_op_call *call)
{
    const stk_gemm *g = &sizes->gemm;
    int64_t bytes = (int64_t)stk_dtype_bytes(call->out[0].dtype); /* what sizes count in */
    stk_product_shape shape = {.m = g->m, .n = g->n, .k = g->k, .c_step = g->n, .in = call->in[0].dtype};
    shape.out = call->out[0].dtype;
    shape.transpose_a = g->a_col != 1;
    shape.transpose_b = g->b_col != 1;
    shape.a_step = shape.transpose_a ? g->a_col : g->a_row;
    shape.b_step = shape.transpose_b ? g->b_col : g->b_row;
    shape.has_bias = sizes->has_bias;
    shape.n_batch = sizes->n_batch;
    shape.a_next = sizes->a_step / bytes;
    shape.b_next = sizes->b_step / bytes;
    shape.c_next = sizes->c_step / bytes;
    return shape;
}

bool stk_matmul_product_supports(const stk_cpu_device *device, const stk_op_call *call)
{
    stk_matmul_sizes sizes = stk_matmul_sizes_of(call);
    stk_product_shape shape = product_of(&sizes, call);
    if (!stk_product_is_fast(device, shape.in)) return false;
    if (shape.in == STK_F32)
        return sizes.n_batch < 4 * device->base.n_threads && stk_sgemm_pays(shape.m, shape.n, shape.k);
    return shape.out != STK_F16 && stk_product_pays(&shape);
}

stk_status stk_matmul_product_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    stk_matmul_sizes sizes = stk_matmul_sizes_of(call);
    stk_product_shape shape = product_of(&sizes, call);
    STK_RETURN_IF_ERROR(stk_product_kernel(device, &shape, 0, 1, out));
    if (call->in[1].shape.rank == 2) stk_product_kernel_keep_b(out);
    return STK_OK;
}
