/* Layer normalisation: y = (x - mean) * inv_std * scale + bias over the last axis. Ba et al. 2016. Statistics are f32
 * (f64 for f64 x), whatever the dtype of x.
 */
#include "ops/compose.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc x = call->in[0];
    char text[STK_SHAPE_TEXT_BYTES];
    STK_RETURN_IF_ERROR(stk_rule_need_float("x", x));
    if (x.shape.rank < 1 || x.shape.dim[x.shape.rank - 1] == STK_ANY)
        return stk_fail(STK_INVALID, "x %s must be [..., C] with a known C", stk_desc_text(x, text));
    stk_shape last = stk_rule_vector_shape(x.shape.dim[x.shape.rank - 1]), rows = x.shape;
    stk_dtype dtype = stk_rule_stat_dtype(x.dtype);
    rows.dim[--rows.rank] = 0;
    STK_RETURN_IF_ERROR(stk_rule_need("scale", call->in[1], dtype, last));
    STK_RETURN_IF_ERROR(stk_rule_need("bias", call->in[2], dtype, last));
    if (!(call->attrs->layer_norm.eps > 0))
        return stk_fail(STK_INVALID, "eps is %g, and must be more than 0", call->attrs->layer_norm.eps);
    call->out[0] = x;
    stk_rule_out(call, 1, dtype, rows);
    stk_rule_out(call, 2, dtype, rows);
    return STK_OK;
}

static stk_status grad(const stk_grad_call *call)
{
    stk_value dy = call->grad_out[0];
    if (call->grad_out[1].id >= 0 || call->grad_out[2].id >= 0)
        return stk_fail(STK_UNSUPPORTED, "layer_norm has no gradient through its mean and inv_std outputs");
    if (dy.id < 0 || !(call->need[0] || call->need[1] || call->need[2])) return STK_OK;
    stk_value in[5] = {dy, call->in[0], call->in[1], call->out[1], call->out[2]};
    stk_value dx = stk_rule_add(STK_OP_layer_norm_grad, NULL, in, 5);
    STK_RETURN_IF_ERROR(stk_rule_built(dx));
    for (int i = 0; i < 3; i++)
        if (call->need[i]) call->grad_in[i] = stk_value_sibling(dx, i);
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = 8 * stk_rule_count(call->in[0].shape);
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_text_add(out, " eps=%g", attrs->layer_norm.eps);
}

static void decompose(const stk_decompose_call *call)
{
    stk_value x = stk_compose_wide(call->in[0]);
    uint32_t last = 1u << (stk_value_shape(x).rank - 1);
    stk_value mean = stk_compose_mean(x, last), distance = stk_sub(x, mean);
    stk_value var = stk_compose_mean(stk_square(distance), last);
    stk_value inv_std = stk_rsqrt(stk_shift_by(var, call->attrs->layer_norm.eps));
    stk_compose_set(call, 0, stk_add(stk_mul(stk_mul(distance, inv_std), call->in[1]), call->in[2]));
    stk_compose_set(call, 1, stk_reshape(mean, stk_value_shape(call->out[1])));
    stk_compose_set(call, 2, stk_reshape(inv_std, stk_value_shape(call->out[2])));
}

const stk_op_rule stk_rule_layer_norm = {
    .name = "layer_norm",
    .kind = STK_KIND_OPAQUE,
    .n_in = 3,
    .n_out = 3,
    .autocast = STK_AUTOCAST_FIRST,
    .infer = infer,
    .grad = grad,
    .cost = cost,
    .print = print,
    .decompose = decompose,
};

stk_value stk_layer_norm_raw(stk_value x, stk_value scale, stk_value bias, double eps)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.layer_norm.eps = eps;
    return stk_rule_add(STK_OP_layer_norm, &attrs, (stk_value[]){x, scale, bias}, 3);
}
