/* Products of matrices: kernels/matmul.dev. */
#include "device/gpu/ops/product.h"

void gpu_multiply_matrices(gpu_maker *m, const gpu_matrices *matrices, int64_t ldc, bool transpose_a, bool transpose_b,
                           const gpu_product_places *places)
{
    gpu_multiply(m, &(gpu_product_call){.file = "matmul.dev",
                                        .settings = "",
                                        .n_batch = 1,
                                        .m = matrices->m,
                                        .n = matrices->n,
                                        .k = matrices->k,
                                        .ldc = ldc,
                                        .a_along_k = !transpose_a,
                                        .b_along_k = transpose_b,
                                        .a_run = matrices->lda,
                                        .b_run = matrices->ldb,
                                        .runs_are_rows = true,
                                        .matrices = matrices,
                                        .places = places,
                                        .operands = matrices,
                                        .operands_bytes = sizeof(*matrices)});
}

void gpu_make_matmul(gpu_maker *m)
{
    const stk_op_call *call = m->call;
    stk_shape a = call->in[0].shape, b = call->in[1].shape, c = call->out[0].shape;
    bool ta = call->attrs->matmul.transpose_a, tb = call->attrs->matmul.transpose_b;
    int64_t rows = c.dim[c.rank - 2], columns = c.dim[c.rank - 1], k = a.dim[a.rank - (ta ? 2 : 1)];
    int64_t n_batch = stk_shape_product(c, 0, c.rank - 2);
    /* One b for all: their rows are rows of one product. */
    if (b.rank < a.rank && !ta) {
        rows *= n_batch;
        n_batch = 1;
    }
    gpu_matrices operands = {.a_batch = rows * k,
                             .b_batch = b.rank == a.rank ? k * columns : 0,
                             .m = (int32_t)rows,
                             .n = (int32_t)columns,
                             .k = (int32_t)k,
                             .lda = (int32_t)(ta ? rows : k),
                             .ldb = (int32_t)(tb ? k : columns)};
    gpu_multiply(m, &(gpu_product_call){.file = "matmul.dev",
                                        .settings = "",
                                        .n_batch = n_batch,
                                        .m = rows,
                                        .n = columns,
                                        .k = k,
                                        .c_batch = rows * columns,
                                        .ldc = columns,
                                        .i_b = 1,
                                        .a_along_k = !ta,
                                        .b_along_k = tb,
                                        .a_run = ta ? rows : k,
                                        .b_run = tb ? k : columns,
                                        .runs_are_rows = true,
                                        .matrices = &operands,
                                        .operands = &operands,
                                        .operands_bytes = sizeof(operands)});
}
