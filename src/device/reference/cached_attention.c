/* Caches of keys and values: rows written into them, and attention to them, one query after the other. */
#include <math.h>
#include <string.h>

#include "device/reference/reference.h"

/* Where rows [N,T,...] go in x [N,S,...]; STK_INVALID where they do not fit there. */
static stk_status check_position(int64_t position, int64_t n_rows, int64_t n_all)
{
    if (position >= 0 && position <= n_all - n_rows) return STK_OK;
    return stk_fail(STK_INVALID, "position %lld: %lld rows from there on do not lie within the cache's %lld",
                    (long long)position, (long long)n_rows, (long long)n_all);
}

static stk_status run_write(const stk_op_call *call, const stk_kernel_args *args)
{
    stk_shape x = call->in[0].shape, rows = call->in[1].shape;
    int64_t position = *(const int64_t *)args->in[2];
    size_t row = (size_t)stk_shape_product(x, 2, x.rank) * stk_dtype_bytes(call->in[0].dtype);
    STK_RETURN_IF_ERROR(check_position(position, rows.dim[1], x.dim[1]));
    if (args->out[0] != args->in[0]) memcpy(args->out[0], args->in[0], stk_desc_bytes(call->in[0]));
    for (int64_t n = 0; n < x.dim[0]; n++)
        memcpy((char *)args->out[0] + (size_t)(n * x.dim[1] + position) * row,
               (const char *)args->in[1] + (size_t)(n * rows.dim[1]) * row, (size_t)rows.dim[1] * row);
    return STK_OK;
}

/* Row [n,t,h] of q and y against rows 0 .. n_keys - 1 of the caches. */
static void attend_row(const stk_op_call *call, const stk_kernel_args *args, int64_t n, int64_t t, int64_t h,
                       int64_t n_keys)
{
    stk_shape q = call->in[0].shape, k = call->in[1].shape;
    stk_dtype dtype = call->in[0].dtype;
    int64_t d = q.dim[3], at = ((n * q.dim[1] + t) * q.dim[2] + h) * d;
    double *score = args->scratch, most = -INFINITY, sum = 0;
    for (int64_t s = 0; s < n_keys; s++) {
        int64_t key = ((n * k.dim[1] + s) * k.dim[2] + h) * d;
        double dot = 0;
        for (int64_t e = 0; e < d; e++)
            dot += stk_ref_load(dtype, args->in[0], at + e) * stk_ref_load(dtype, args->in[1], key + e);
        score[s] = dot * call->attrs->attention.scale;
        most = isnan(score[s]) || score[s] > most ? score[s] : most;
    }
    for (int64_t s = 0; s < n_keys; s++)
        sum += exp(score[s] - most);
    for (int64_t e = 0; e < d; e++) {
        double y = 0;
        for (int64_t s = 0; s < n_keys; s++)
            y += exp(score[s] - most) / sum *
                 stk_ref_load(dtype, args->in[2], ((n * k.dim[1] + s) * k.dim[2] + h) * d + e);
        stk_ref_store(dtype, args->out[0], at + e, y);
    }
}

static stk_status run_attention(const stk_op_call *call, const stk_kernel_args *args)
{
    stk_shape q = call->in[0].shape;
    int64_t position = *(const int64_t *)args->in[3];
    STK_RETURN_IF_ERROR(check_position(position, q.dim[1], call->in[1].shape.dim[1]));
    for (int64_t n = 0; n < q.dim[0]; n++)
        for (int64_t t = 0; t < q.dim[1]; t++)
            for (int64_t h = 0; h < q.dim[2]; h++)
                attend_row(call, args, n, t, h, position + t + 1);
    return STK_OK;
}

stk_status stk_ref_write_at_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_plain(call, run_write, 1, out);
}

stk_status stk_ref_cached_attention_kernel(const stk_op_call *call, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(stk_ref_make_plain(call, run_attention, 0, out));
    out->scratch_bytes = ((size_t)call->in[1].shape.dim[1] + 1) * sizeof(double);
    return STK_OK;
}
