/* Products of matrices: kernels/matmul.dev. */
#include "device/gpu/ops/product.h"

/* As matmul.dev's struct. */
typedef struct matrices {
    int64_t a_batch, b_batch;
    int32_t m, n, k;
} matrices;

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
    matrices operands = {.a_batch = rows * k,
                         .b_batch = b.rank == a.rank ? k * columns : 0,
                         .m = (int32_t)rows,
                         .n = (int32_t)columns,
                         .k = (int32_t)k};
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
                                        .operands = &operands,
                                        .operands_bytes = sizeof(operands)});
}
