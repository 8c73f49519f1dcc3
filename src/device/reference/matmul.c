/* Matrix product, plus a bias for each column: three loops for each matrix of the batch. */
#include "device/reference/reference.h"

static stk_status run(const stk_op_call *call, const double *const *in, double *const *out)
{
    stk_shape a = call->in[0].shape, b = call->in[1].shape, c = call->out[0].shape;
    bool ta = call->attrs->matmul.transpose_a, tb = call->attrs->matmul.transpose_b;
    int64_t m = c.dim[c.rank - 2], n = c.dim[c.rank - 1], k = a.dim[a.rank - (ta ? 2 : 1)];
    int64_t n_batch = stk_shape_product(c, 0, c.rank - 2);
    for (int64_t i_batch = 0; i_batch < n_batch; i_batch++) {
        const double *pa = in[0] + i_batch * m * k, *pb = in[1] + (b.rank > 2 ? i_batch * k * n : 0);
        double *pc = out[0] + i_batch * m * n;
        for (int64_t i = 0; i < m; i++) {
            for (int64_t j = 0; j < n; j++) {
                double sum = 0;
                for (int64_t l = 0; l < k; l++)
                    sum += pa[ta ? l * m + i : i * k + l] * pb[tb ? j * k + l : l * n + j];
                pc[i * n + j] = call->n_in == 3 ? sum + in[2][j] : sum;
            }
        }
    }
    return STK_OK;
}

stk_status stk_ref_matmul_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run, out);
}
