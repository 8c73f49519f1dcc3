/* Adam (Kingma & Ba 2015) and AdamW (Loshchilov & Hutter 2019). */
#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc param = call->in[0];
    STK_RETURN_IF_ERROR(stk_rule_need_float("param", param));
    STK_RETURN_IF_ERROR(stk_rule_need("m", call->in[1], param.dtype, param.shape));
    STK_RETURN_IF_ERROR(stk_rule_need("v", call->in[2], param.dtype, param.shape));
    STK_RETURN_IF_ERROR(stk_rule_need("grad", call->in[3], param.dtype, param.shape));
    STK_RETURN_IF_ERROR(stk_rule_need("lr", call->in[4], stk_rule_stat_dtype(param.dtype), stk_rule_scalar_shape()));
    STK_RETURN_IF_ERROR(stk_rule_need("step", call->in[5], STK_I64, stk_rule_scalar_shape()));
    for (int i = 0; i < 3; i++)
        call->out[i] = param;
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = 14 * stk_rule_count(call->in[0].shape);
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_text_add(out, " beta1=%g beta2=%g eps=%g", attrs->adam.beta1, attrs->adam.beta2, attrs->adam.eps);
    if (attrs->adam.weight_decay != 0) stk_text_add(out, " weight_decay=%g", attrs->adam.weight_decay);
    if (attrs->adam.decoupled) stk_text_add(out, " decoupled");
    if (attrs->adam.like_keras) stk_text_add(out, " like_keras");
}

const stk_op_rule stk_rule_adam_update = {
    .name = "adam_update",
    .kind = STK_KIND_OPAQUE,
    .n_in = 6,
    .n_out = 3,
    .infer = infer,
    .cost = cost,
    .print = print,
};
