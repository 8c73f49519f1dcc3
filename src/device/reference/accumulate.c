/* Sums over micro-batches, and what they were. */
#include <string.h>

#include "base/error.h"
#include "device/reference/reference.h"

static void add_in_tree(const stk_op_call *call, const stk_kernel_args *args)
{
    int n_levels = call->attrs->accumulate.log2_parts;
    int64_t n = stk_shape_count(call->in[0].shape), part = *(const int64_t *)args->in[1] / call->attrs->accumulate.rows;
    for (int64_t i = 0; i < n; i++) {
        bool is_f64 = call->in[0].dtype == STK_F64;
        double sum = is_f64 ? ((const double *)args->in[0])[i] : (double)((const float *)args->in[0])[i];
        int l = 0;
        for (int64_t rest = part; rest & 1; rest >>= 1, l++) {
            const void *waits = stk_accumulate_level(args->out, n_levels, l);
            sum = is_f64 ? ((const double *)waits)[i] + sum : (double)(((const float *)waits)[i] + (float)sum);
        }
        void *dst = stk_accumulate_level(args->out, n_levels, l);
        if (is_f64)
            ((double *)dst)[i] = sum;
        else
            ((float *)dst)[i] = (float)sum;
    }
}

static stk_status run(const stk_op_call *call, const stk_kernel_args *args)
{
    int64_t n = stk_shape_count(call->in[0].shape);
    if (call->n_out > 1) {
        add_in_tree(call, args);
        return STK_OK;
    }
    if (*(const int64_t *)args->in[1] == 0) {
        memcpy(args->out[0], args->in[0], stk_desc_bytes(call->in[0]));
        return STK_OK;
    }
    for (int64_t i = 0; i < n; i++)
        if (call->in[0].dtype == STK_F64)
            ((double *)args->out[0])[i] += ((const double *)args->in[0])[i];
        else
            ((float *)args->out[0])[i] += ((const float *)args->in[0])[i];
    return STK_OK;
}

stk_status stk_ref_accumulate_kernel(const stk_op_call *call, stk_kernel *out)
{
    if (call->in[0].dtype != STK_F32 && call->in[0].dtype != STK_F64)
        return stk_fail(STK_UNSUPPORTED, "accumulate: %s sums over micro-batches are not supported",
                        stk_dtype_name(call->in[0].dtype));
    return stk_ref_make_plain(call, run, 0, out);
}

static stk_status run_carry(const stk_op_call *call, const stk_kernel_args *args)
{
    if (*(const int64_t *)args->in[0] == 0) memset(args->out[0], 0, stk_desc_bytes(call->out[0]));
    return STK_OK;
}

stk_status stk_ref_carry_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_plain(call, run_carry, 0, out);
}
