/* The gradient of cross_entropy with respect to the logits: (softmax - labels) * dloss. */
#include "ops/loss.h"

static stk_status infer(stk_op_call *call)
{
    STK_RETURN_IF_ERROR(stk_loss_check(call));
    stk_tensor_desc loss = stk_loss_out(call->in[0]);
    STK_RETURN_IF_ERROR(stk_rule_need("dloss", call->in[2], loss.dtype, loss.shape));
    call->out[0] = call->in[0];
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = 6 * stk_rule_count(call->in[0].shape);
}

static void decompose(const stk_decompose_call *call)
{
    stk_value logits = stk_compose_wide(call->in[0]);
    stk_value target = stk_loss_compose_target(call->in[1], logits, call->attrs->cross_entropy.smoothing);
    stk_compose_set(call, 0, stk_loss_compose_grad(logits, target, call->in[2]));
}

const stk_op_rule stk_rule_cross_entropy_grad = {
    .name = "cross_entropy_grad",
    .kind = STK_KIND_OPAQUE,
    .n_in = 3,
    .n_out = 1,
    .infer = infer,
    .cost = cost,
    .print = stk_loss_print,
    .decompose = decompose,
};
