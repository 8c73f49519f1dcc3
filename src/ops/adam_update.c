/* Adam (Kingma & Ba 2015) and AdamW (Loshchilov & Hutter 2019). */
#include <math.h>

#include "ops/compose.h"

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

/* 1 - beta^t = 1 - exp(-z): by tanh, which loses nothing where z is small. */
static stk_value correct(stk_value t, double beta)
{
    if (beta == 0) return stk_compose_constant(t, 1);
    stk_value h = stk_tanh(stk_scale_by(t, -log(beta) / 2));
    return stk_div(stk_scale_by(h, 2), stk_shift_by(h, 1));
}

static void decompose(const stk_decompose_call *call)
{
    const stk_attrs *a = call->attrs;
    stk_value p = stk_compose_wide(call->in[0]), g = stk_compose_wide(call->in[3]), lr = call->in[4];
    stk_value t = stk_shift_by(stk_cast_to(call->in[5], stk_value_dtype(lr)), 1);
    stk_value correct_m = correct(t, a->adam.beta1), correct_v = correct(t, a->adam.beta2);
    if (a->adam.weight_decay != 0 && a->adam.decoupled)
        p = stk_sub(p, stk_mul(stk_scale_by(lr, a->adam.weight_decay), p));
    else if (a->adam.weight_decay != 0)
        g = stk_add(g, stk_scale_by(p, a->adam.weight_decay));
    stk_value m =
        stk_add(stk_scale_by(stk_compose_wide(call->in[1]), a->adam.beta1), stk_scale_by(g, 1 - a->adam.beta1));
    stk_value v = stk_add(stk_scale_by(stk_compose_wide(call->in[2]), a->adam.beta2),
                          stk_scale_by(stk_square(g), 1 - a->adam.beta2));
    stk_value rate = stk_div(lr, correct_m), size = v;
    if (a->adam.like_keras)
        rate = stk_mul(rate, stk_sqrt(correct_v));
    else
        size = stk_div(v, correct_v);
    stk_value step = stk_div(m, stk_shift_by(stk_sqrt(size), a->adam.eps));
    stk_compose_set(call, 0, stk_sub(p, stk_mul(rate, step)));
    stk_compose_set(call, 1, m);
    stk_compose_set(call, 2, v);
}

const stk_op_rule stk_rule_adam_update = {
    .name = "adam_update",
    .kind = STK_KIND_OPAQUE,
    .n_in = 6,
    .n_out = 3,
    .infer = infer,
    .cost = cost,
    .print = print,
    .decompose = decompose,
};
