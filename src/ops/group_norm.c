/* Group normalisation: Wu & He 2018. Like layer_norm, over all axes of a sample and the channels of a group. */
#include "ops/group_norm.h"
#include "ops/compose.h"

stk_status stk_group_norm_check(const stk_attrs *attrs, stk_tensor_desc x, stk_shape *channels, stk_shape *groups)
{
    char text[STK_SHAPE_TEXT_BYTES];
    int64_t g = attrs->group_norm.groups;
    STK_RETURN_IF_ERROR(stk_rule_need_float("x", x));
    if (x.shape.rank < 2 || x.shape.dim[x.shape.rank - 1] == STK_ANY)
        return stk_fail(STK_INVALID, "x %s must be [N,...,C] with a known C", stk_desc_text(x, text));
    *channels = stk_rule_vector_shape(x.shape.dim[x.shape.rank - 1]);
    *groups = (stk_shape){.rank = 2, .dim = {x.shape.dim[0], g}};
    if (g < 1 || channels->dim[0] % g != 0)
        return stk_fail(STK_INVALID, "the channels of x %s do not make %lld equal groups", stk_desc_text(x, text),
                        (long long)g);
    if (attrs->group_norm.eps > 0) return STK_OK;
    return stk_fail(STK_INVALID, "eps is %g, and must be more than 0", attrs->group_norm.eps);
}

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc x = call->in[0];
    stk_shape channels, groups;
    stk_dtype dtype = stk_rule_stat_dtype(x.dtype);
    STK_RETURN_IF_ERROR(stk_group_norm_check(call->attrs, x, &channels, &groups));
    STK_RETURN_IF_ERROR(stk_rule_need("scale", call->in[1], dtype, channels));
    STK_RETURN_IF_ERROR(stk_rule_need("bias", call->in[2], dtype, channels));
    call->out[0] = x;
    stk_rule_out(call, 1, dtype, groups);
    stk_rule_out(call, 2, dtype, groups);
    return STK_OK;
}

static stk_status grad(const stk_grad_call *call)
{
    stk_value dy = call->grad_out[0];
    if (call->grad_out[1].id >= 0 || call->grad_out[2].id >= 0)
        return stk_fail(STK_UNSUPPORTED, "group_norm has no gradient through its mean and inv_std outputs");
    if (dy.id < 0 || !(call->need[0] || call->need[1] || call->need[2])) return STK_OK;
    stk_value in[5] = {dy, call->in[0], call->in[1], call->out[1], call->out[2]};
    stk_value dx = stk_rule_add(STK_OP_group_norm_grad, call->attrs, in, 5);
    STK_RETURN_IF_ERROR(stk_rule_built(dx));
    for (int i = 0; i < 3; i++)
        if (call->need[i]) call->grad_in[i] = stk_value_sibling(dx, i);
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = 8 * stk_rule_count(call->in[0].shape);
}

void stk_group_norm_print(const stk_attrs *attrs, stk_text *out)
{
    stk_text_add(out, " groups=%lld eps=%g", (long long)attrs->group_norm.groups, attrs->group_norm.eps);
}

stk_shape stk_group_norm_split(const stk_attrs *attrs, stk_shape x)
{
    int64_t g = attrs->group_norm.groups;
    return STK_SHAPE(x.dim[0], stk_shape_product(x, 1, x.rank - 1), g, x.dim[x.rank - 1] / g);
}

static void decompose(const stk_decompose_call *call)
{
    enum { ROWS_AND_CHANNELS = 1 << 1 | 1 << 3 };
    stk_shape split = stk_group_norm_split(call->attrs, stk_value_shape(call->in[0]));
    stk_shape groups = STK_SHAPE(split.dim[2], split.dim[3]);
    stk_value x = stk_reshape(stk_compose_wide(call->in[0]), split);
    stk_value mean = stk_compose_mean(x, ROWS_AND_CHANNELS), distance = stk_sub(x, mean);
    stk_value var = stk_compose_mean(stk_square(distance), ROWS_AND_CHANNELS);
    stk_value inv_std = stk_rsqrt(stk_shift_by(var, call->attrs->group_norm.eps));
    stk_value scale = stk_reshape(call->in[1], groups), bias = stk_reshape(call->in[2], groups);
    stk_value y = stk_add(stk_mul(stk_mul(distance, inv_std), scale), bias);
    stk_compose_set(call, 0, stk_reshape(y, stk_value_shape(call->in[0])));
    stk_compose_set(call, 1, stk_reshape(mean, stk_value_shape(call->out[1])));
    stk_compose_set(call, 2, stk_reshape(inv_std, stk_value_shape(call->out[2])));
}

const stk_op_rule stk_rule_group_norm = {
    .name = "group_norm",
    .kind = STK_KIND_OPAQUE,
    .n_in = 3,
    .n_out = 3,
    .autocast = STK_AUTOCAST_FIRST,
    .infer = infer,
    .grad = grad,
    .cost = cost,
    .print = stk_group_norm_print,
    .decompose = decompose,
};

stk_value stk_group_norm_raw(stk_value x, stk_value scale, stk_value bias, int64_t groups, double eps)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.group_norm.eps = eps;
    attrs.group_norm.groups = groups;
    return stk_rule_add(STK_OP_group_norm, &attrs, (stk_value[]){x, scale, bias}, 3);
}
