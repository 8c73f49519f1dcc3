/* The gradients of linear_cross_entropy with respect to x and weight, and the loss itself: some rows' logits are made,
 * turned into (softmax - labels) * dloss where they are, and multiplied twice; then the next rows follow.
 */
#include "ops/linear_loss.h"

static stk_status infer(stk_op_call *call)
{
    STK_RETURN_IF_ERROR(stk_linear_loss_check(call));
    stk_tensor_desc loss = stk_linear_loss_out(call);
    STK_RETURN_IF_ERROR(stk_rule_need("dloss", call->in[3], loss.dtype, loss.shape));
    call->out[0] = call->in[0];
    call->out[1] = call->in[1];
    call->out[2] = loss;
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = 3 * stk_linear_loss_flops(call);
}

const stk_op_rule stk_rule_linear_cross_entropy_grad = {
    .name = "linear_cross_entropy_grad",
    .kind = STK_KIND_OPAQUE,
    .n_in = 4,
    .n_out = 3,
    .infer = infer,
    .cost = cost,
    .print = stk_linear_loss_print,
};
