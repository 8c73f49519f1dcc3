/* Products by product.h: large ones of bf16 where the processor multiplies it, and f32 on AVX-512. */
#include "device/cpu/matmul/matmul_impls.h"
#include "device/cpu/matmul/matmul_onednn.h"
#include "device/cpu/matmul/product.h"
#include "device/cpu/matmul/tile_product.h"
#include "device/cpu/simd/isa.h"

static stk_product_shape product_of(const stk_matmul_sizes *sizes, const stk_op_call *call)
{
    const stk_gemm *g = &sizes->gemm;
    int64_t bytes = (int64_t)stk_dtype_bytes(call->out[0].dtype); /* what sizes count in */
    stk_product_shape shape = {.m = g->m, .n = g->n, .k = g->k, .c_step = g->n, .in = call->in[0].dtype};
    shape.out = call->out[0].dtype;
    shape.transpose_a = g->a_col != 1;
    shape.transpose_b = g->b_col != 1;
    shape.a_step = stk_gemm_a_step(g);
    shape.b_step = stk_gemm_b_step(g);
    shape.has_bias = sizes->has_bias;
    shape.n_batch = sizes->n_batch;
    shape.a_next = sizes->a_step / bytes;
    shape.b_next = sizes->b_step / bytes;
    shape.c_next = sizes->c_step / bytes;
    return shape;
}

/* What product.h can do, and where that is faster than what follows. */
static bool is_possible(const stk_cpu_device *device, const stk_product_shape *shape)
{
    return stk_product_is_fast(device, shape->in) && shape->out != STK_F16;
}

static bool pays(const stk_cpu_device *device, const stk_product_shape *shape)
{
    if (!is_possible(device, shape)) return false;
    if (shape->in == STK_F32)
        return shape->n_batch < 4 * device->base.n_threads && stk_sgemm_pays(shape->m, shape->n, shape->k);
    return stk_product_pays(shape);
}

bool stk_matmul_tiles_supports(const stk_cpu_device *device, const stk_op_call *call)
{
    stk_matmul_sizes sizes = stk_matmul_sizes_of(call);
    stk_product_shape shape = product_of(&sizes, call);
    return stk_matmul_meets_few_sets(device, call) ||
           (pays(device, &shape) && stk_tile_product_pays(device->isa, &shape));
}

bool stk_matmul_tiles_can(const stk_cpu_device *device, const stk_op_call *call)
{
    stk_matmul_sizes sizes = stk_matmul_sizes_of(call);
    stk_product_shape shape = product_of(&sizes, call);
    return is_possible(device, &shape) && stk_tile_product_covers(device->isa, &shape);
}

/* Measured on a Xeon with 2 threads: from the depth on, tiles took 0.56 to 1.05 of sgemm's time in 20 calls, and 0.82
 * to 1.31 where rows are multiples of 512 elements only; docs/kernels.md has others. Other makers' processors keep what
 * they had. */
bool stk_matmul_meets_few_sets(const stk_cpu_device *device, const stk_op_call *call)
{
    enum { STEP = 1024, LEAST_DEPTH = 1920 };
    stk_matmul_sizes sizes = stk_matmul_sizes_of(call);
    const stk_gemm *g = &sizes.gemm;
    return call->in[0].dtype == STK_F32 && g->a_col != 1 && g->a_col % STEP == 0 && g->k >= LEAST_DEPTH &&
           stk_isa_is_of_intel() && stk_matmul_tiles_can(device, call);
}

bool stk_matmul_onednn_supports(const stk_cpu_device *device, const stk_op_call *call)
{
    stk_matmul_sizes sizes = stk_matmul_sizes_of(call);
    stk_product_shape shape = product_of(&sizes, call);
    return pays(device, &shape) && !stk_tile_product_pays(device->isa, &shape);
}

/* In f32 not a vector, as for sgemm. */
bool stk_matmul_onednn_can(const stk_cpu_device *device, const stk_op_call *call)
{
    stk_matmul_sizes sizes = stk_matmul_sizes_of(call);
    stk_product_shape shape = product_of(&sizes, call);
    if (!is_possible(device, &shape) || shape.m < 1 || shape.n < 1 || shape.k < 1) return false;
    return shape.in == STK_BF16 || (shape.m > 1 && shape.n > 1);
}

/* Widening small ones to f32 takes up to 17 times as long: a weight of one column is enough for that. */
static double work_of_half(const stk_op_call *call)
{
    stk_gemm g = stk_matmul_sizes_of(call).gemm;
    return call->in[0].dtype == STK_BF16 ? (double)g.m * (double)g.n * (double)g.k : 0;
}

bool stk_matmul_small_tiles_supports(const stk_cpu_device *device, const stk_op_call *call)
{
    enum { LEAST = 1 << 14 };
    return work_of_half(call) >= LEAST && stk_matmul_tiles_can(device, call);
}

bool stk_matmul_small_onednn_supports(const stk_cpu_device *device, const stk_op_call *call)
{
    enum { LEAST = 1 << 15 };
    return work_of_half(call) >= LEAST && stk_matmul_onednn_can(device, call);
}

static stk_status make(const stk_cpu_device *device, const stk_op_call *call, stk_product_way way, stk_kernel *out)
{
    stk_matmul_sizes sizes = stk_matmul_sizes_of(call);
    stk_product_shape shape = product_of(&sizes, call);
    shape.way = way;
    STK_RETURN_IF_ERROR(stk_product_kernel(device, &shape, 0, 1, out));
    if (call->in[1].shape.rank == 2) stk_product_kernel_keep_b(out);
    return STK_OK;
}

stk_status stk_matmul_tiles_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return make(device, call, STK_PRODUCT_BY_TILES, out);
}

stk_status stk_matmul_onednn_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return make(device, call, STK_PRODUCT_BY_ONEDNN, out);
}
