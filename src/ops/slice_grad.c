/* The gradient of slice: dy at the taken places of dx, zeros elsewhere. */
#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc dy = call->in[0], dx = stk_desc_make(dy.dtype, call->attrs->shape), taken;
    /* dy must be what slice takes of dx. */
    stk_op_call forward = {.op = STK_OP_slice, .attrs = call->attrs, .n_in = 1, .n_out = 1, .in = &dx, .out = &taken};
    STK_RETURN_IF_ERROR(stk_rule_slice.infer(&forward));
    STK_RETURN_IF_ERROR(stk_rule_need("dy", dy, dy.dtype, taken.shape));
    call->out[0] = dx;
    return STK_OK;
}

static stk_status grad(const stk_grad_call *call)
{
    if (!call->need[0] || call->grad_out[0].id < 0) return STK_OK;
    stk_attrs attrs = *call->attrs;
    memset(&attrs.shape, 0, sizeof(attrs.shape));
    call->grad_in[0] = stk_rule_add(STK_OP_slice, &attrs, call->grad_out, 1);
    return stk_rule_built(call->grad_in[0]);
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    (void)call;
    out->flops = 0;
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_rule_slice.print(attrs, out);
}

const stk_op_rule stk_rule_slice_grad = {
    .name = "slice_grad",
    .kind = STK_KIND_OPAQUE,
    .n_in = 1,
    .n_out = 1,
    .autocast = STK_AUTOCAST_FOLLOW,
    .infer = infer,
    .grad = grad,
    .cost = cost,
    .print = print,
};
