/* Stochastic gradient descent with momentum, as torch.optim.SGD: the velocity is 0 at first. */
#include "ops/compose.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc param = call->in[0];
    bool has_velocity = call->attrs->sgd.momentum != 0;
    int n_in = has_velocity ? 4 : 3;
    if (call->n_in != n_in)
        return stk_fail(STK_INVALID, "%d inputs do not fit momentum %g: it needs %d", call->n_in,
                        call->attrs->sgd.momentum, n_in);
    STK_RETURN_IF_ERROR(stk_rule_need_float("param", param));
    if (has_velocity) STK_RETURN_IF_ERROR(stk_rule_need("velocity", call->in[1], param.dtype, param.shape));
    STK_RETURN_IF_ERROR(stk_rule_need("grad", call->in[n_in - 2], param.dtype, param.shape));
    STK_RETURN_IF_ERROR(
        stk_rule_need("lr", call->in[n_in - 1], stk_rule_stat_dtype(param.dtype), stk_rule_scalar_shape()));
    call->n_out = has_velocity ? 2 : 1;
    for (int i = 0; i < call->n_out; i++)
        call->out[i] = param;
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = (call->attrs->sgd.momentum != 0 ? 6 : 4) * stk_rule_count(call->in[0].shape);
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_text_add(out, " momentum=%g", attrs->sgd.momentum);
    if (attrs->sgd.weight_decay != 0) stk_text_add(out, " weight_decay=%g", attrs->sgd.weight_decay);
    if (attrs->sgd.nesterov) stk_text_add(out, " nesterov");
    if (attrs->sgd.like_keras) stk_text_add(out, " like_keras");
}

static void decompose(const stk_decompose_call *call)
{
    const stk_attrs *a = call->attrs;
    bool has_velocity = a->sgd.momentum != 0;
    stk_value p = stk_compose_wide(call->in[0]), g = stk_compose_wide(call->in[has_velocity ? 2 : 1]);
    stk_value lr = call->in[has_velocity ? 3 : 2], v;
    if (a->sgd.weight_decay != 0 && a->sgd.like_keras)
        p = stk_sub(p, stk_mul(stk_scale_by(lr, a->sgd.weight_decay), p));
    else if (a->sgd.weight_decay != 0)
        g = stk_add(g, stk_scale_by(p, a->sgd.weight_decay));
    stk_value step = a->sgd.like_keras ? stk_neg(stk_mul(lr, g)) : g;
    if (has_velocity) {
        v = stk_add(stk_scale_by(stk_compose_wide(call->in[1]), a->sgd.momentum), step);
        step = a->sgd.nesterov ? stk_add(step, stk_scale_by(v, a->sgd.momentum)) : v;
        stk_compose_set(call, 1, v);
    }
    stk_compose_set(call, 0, a->sgd.like_keras ? stk_add(p, step) : stk_sub(p, stk_mul(lr, step)));
}

/* 2 outputs, or 1 without momentum: infer says which. */
const stk_op_rule stk_rule_sgd_update = {
    .name = "sgd_update",
    .kind = STK_KIND_OPAQUE,
    .n_in = -1,
    .n_out = 2,
    .infer = infer,
    .cost = cost,
    .print = print,
    .decompose = decompose,
};
