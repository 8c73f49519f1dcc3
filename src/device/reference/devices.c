/* Between devices on the host, whose memory is one. */
#include <string.h>

#include "device/reference/reference.h"

static stk_status run_copy(const stk_op_call *call, const stk_kernel_args *args)
{
    size_t bytes = stk_desc_bytes(call->in[0]);
    if (bytes && args->out[0] != args->in[0]) memcpy(args->out[0], args->in[0], bytes);
    return STK_OK;
}

stk_status stk_ref_copy_to_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_plain(call, run_copy, 1, out);
}

static stk_status run_add(const stk_op_call *call, const double *const *in, double *const *out)
{
    int64_t n = stk_shape_count(call->in[0].shape);
    for (int64_t k = 0; k < n; k++) {
        double sum = 0;
        for (int i = 0; i < call->n_in; i++)
            sum += in[i][k];
        for (int i = 0; i < call->n_out; i++)
            out[i][k] = call->attrs->all_reduce.mean ? sum / call->n_in : sum;
    }
    return STK_OK;
}

stk_status stk_ref_all_reduce_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_add, out);
}
