/* Zeroes a share of x and scales the rest. Srivastava et al. 2014. The mask's formula is in graph/dropout.h; it depends
 * on nothing but the key, so the same op on dy is the gradient.
 */
#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    double rate = call->attrs->dropout.rate;
    STK_RETURN_IF_ERROR(stk_rule_need_float("x", call->in[0]));
    STK_RETURN_IF_ERROR(stk_rule_need("seed", call->in[1], STK_I64, stk_rule_scalar_shape()));
    STK_RETURN_IF_ERROR(stk_rule_need("sample", call->in[2], STK_I64, stk_rule_scalar_shape()));
    if (!(rate >= 0 && rate <= 1)) return stk_fail(STK_INVALID, "rate %g must be between 0 and 1", rate);
    call->out[0] = call->in[0];
    return STK_OK;
}

static stk_status grad(const stk_grad_call *call)
{
    if (!call->need[0] || call->grad_out[0].id < 0) return STK_OK;
    stk_value in[3] = {call->grad_out[0], call->in[1], call->in[2]};
    call->grad_in[0] = stk_rule_add(STK_OP_dropout, call->attrs, in, 3);
    return stk_rule_built(call->grad_in[0]);
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_text_add(out, " rate=%g stream=%lld", attrs->dropout.rate, (long long)attrs->dropout.stream);
}

const stk_op_rule stk_rule_dropout = {
    .name = "dropout",
    .kind = STK_KIND_ELEMENT,
    .n_in = 3,
    .n_out = 1,
    .autocast = STK_AUTOCAST_FOLLOW,
    .infer = infer,
    .grad = grad,
    .print = print,
};

stk_value stk_dropout_raw(stk_value x, stk_value seed, stk_value sample, double rate, int64_t stream)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.dropout.rate = rate;
    attrs.dropout.stream = stream;
    return stk_rule_add(STK_OP_dropout, &attrs, (stk_value[]){x, seed, sample}, 3);
}
