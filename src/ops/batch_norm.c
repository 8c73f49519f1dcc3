/* Batch normalisation in training: y = (x - mean) * inv_std * scale + bias over all axes but the last.
 * Ioffe & Szegedy 2015. Statistics are f32 (f64 for f64 x), whatever the dtype of x. A sixth input is a
 * residual: it is added to the result, rounded as that would be, before the ReLU.
 */
#include "ops/batch_norm.h"

#include "ops/compose.h"

static stk_status infer(stk_op_call *call)
{
    static const char *const roles[] = {"x", "scale", "bias", "running_mean", "running_var"};
    stk_tensor_desc x = call->in[0];
    char text[STK_SHAPE_TEXT_BYTES];
    if (call->n_in != 5 && call->n_in != 6)
        return stk_fail(STK_INVALID, "%d inputs do not fit: it takes 5 and perhaps a residual", call->n_in);
    STK_RETURN_IF_ERROR(stk_rule_need_float("x", x));
    if (x.shape.rank < 2 || x.shape.dim[x.shape.rank - 1] == STK_ANY)
        return stk_fail(STK_INVALID, "x %s must be [..., C] with a known number of channels", stk_desc_text(x, text));
    stk_shape channels = stk_rule_vector_shape(x.shape.dim[x.shape.rank - 1]);
    stk_dtype dtype = stk_rule_stat_dtype(x.dtype);
    for (int i = 1; i < 5; i++)
        STK_RETURN_IF_ERROR(stk_rule_need(roles[i], call->in[i], dtype, channels));
    if (call->n_in == 6) STK_RETURN_IF_ERROR(stk_rule_need("residual", call->in[5], x.dtype, x.shape));
    call->out[0] = x;
    for (int i = 1; i < 5; i++)
        stk_rule_out(call, i, dtype, channels);
    return STK_OK;
}

static stk_status grad(const stk_grad_call *call)
{
    stk_value dy = call->grad_out[0];
    stk_attrs attrs = *call->attrs;
    if (call->grad_out[1].id >= 0 || call->grad_out[2].id >= 0)
        return stk_fail(STK_UNSUPPORTED, "batch_norm has no gradient through its mean and inv_std outputs");
    /* The running statistics are kept apart from the gradient, as everywhere. */
    if (dy.id < 0) return STK_OK;
    if (call->n_in == 6 && attrs.batch_norm.relu) {
        stk_value zero = stk_rule_scalar(dy.graph, stk_value_dtype(dy), 0);
        dy = stk_select(stk_greater(call->out[0], zero), dy, zero);
        attrs.batch_norm.relu = 0;
    }
    if (call->n_in == 6 && call->need[5]) call->grad_in[5] = dy;
    if (!(call->need[0] || call->need[1] || call->need[2])) return stk_rule_built(dy);
    stk_value in[6] = {dy, call->in[0], call->in[1], call->in[2], call->out[1], call->out[2]};
    stk_value dx = stk_rule_add(STK_OP_batch_norm_grad, &attrs, in, 6);
    STK_RETURN_IF_ERROR(stk_rule_built(dx));
    for (int i = 0; i < 3; i++)
        if (call->need[i]) call->grad_in[i] = stk_value_sibling(dx, i);
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = (call->n_in == 6 ? 8 : 7) * stk_rule_count(call->in[0].shape);
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_text_add(out, " eps=%g momentum=%g", attrs->batch_norm.eps, attrs->batch_norm.momentum);
    if (attrs->batch_norm.unbiased) stk_text_add(out, " unbiased");
    if (attrs->batch_norm.relu) stk_text_add(out, " relu");
    if (attrs->batch_norm.frozen) stk_text_add(out, " frozen");
}

/* An empty batch says nothing about the data; of one row there is no unbiased variance. */
static void decompose_running(const stk_decompose_call *call, double n, stk_value mean, stk_value var)
{
    double momentum = n > 0 ? call->attrs->batch_norm.momentum : 0;
    if (call->attrs->batch_norm.unbiased && n > 1) var = stk_scale_by(var, n / (n - 1));
    stk_value found[2] = {mean, var};
    for (int i = 0; i < 2; i++)
        stk_compose_set(call, 3 + i,
                        stk_add(stk_scale_by(call->in[3 + i], 1 - momentum), stk_scale_by(found[i], momentum)));
}

/* Over the rows of all ranks. */
static stk_value mean_over(stk_value x, uint32_t rows, int n_ranks)
{
    stk_value mean = stk_compose_mean(x, rows), sum;
    if (n_ranks < 2) return mean;
    stk_rank_sum(&mean, 1, &sum);
    return stk_scale_by(sum, 1 / (double)n_ranks);
}

void stk_batch_norm_compose(const stk_decompose_call *call, int n_ranks)
{
    stk_value x = stk_compose_wide(call->in[0]);
    stk_shape shape = stk_value_shape(x), channels = stk_value_shape(call->in[1]);
    uint32_t rows = stk_compose_rows(shape);
    stk_value mean = stk_reshape(mean_over(x, rows, n_ranks), channels), distance = stk_sub(x, mean);
    stk_value var = stk_reshape(mean_over(stk_square(distance), rows, n_ranks), channels);
    stk_value inv_std = stk_rsqrt(stk_shift_by(var, call->attrs->batch_norm.eps));
    stk_value y = stk_add(stk_mul(stk_mul(distance, inv_std), call->in[1]), call->in[2]);
    if (call->n_in == 6) y = stk_add(y, stk_compose_wide(call->in[5]));
    stk_compose_set(call, 0, stk_compose_relu(y, call->attrs->batch_norm.relu));
    stk_compose_set(call, 1, mean);
    stk_compose_set(call, 2, inv_std);
    decompose_running(call, (double)stk_shape_product(shape, 0, shape.rank - 1) * n_ranks, mean, var);
}

static void decompose(const stk_decompose_call *call)
{
    stk_batch_norm_compose(call, 1);
}

const stk_op_rule stk_rule_batch_norm = {
    .name = "batch_norm",
    .kind = STK_KIND_OPAQUE,
    .n_in = -1,
    .n_out = 5,
    .autocast = STK_AUTOCAST_FIRST,
    .infer = infer,
    .grad = grad,
    .cost = cost,
    .print = print,
    .decompose = decompose,
};
