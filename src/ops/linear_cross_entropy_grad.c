/* The gradients of linear_cross_entropy with respect to x and weight, and the loss itself: some rows' logits are made,
 * turned into (softmax - labels) * dloss where they are, and multiplied twice; then the next rows follow. With a base
 * the weight's gradient is added to it. That of a 16-bit weight is f32, as it was summed up.
 */
#include "ops/linear_loss.h"

static stk_status infer(stk_op_call *call)
{
    if (call->n_in != 4 && call->n_in != 5)
        return stk_fail(STK_INVALID, "%d inputs do not fit: it takes x, weight, labels, dloss and perhaps a base",
                        call->n_in);
    STK_RETURN_IF_ERROR(stk_linear_loss_check(call));
    stk_tensor_desc loss = stk_linear_loss_out(call);
    STK_RETURN_IF_ERROR(stk_rule_need("dloss", call->in[3], loss.dtype, loss.shape));
    stk_dtype sum = stk_rule_stat_dtype(call->in[1].dtype);
    if (call->n_in == 5) STK_RETURN_IF_ERROR(stk_rule_need("base", call->in[4], sum, call->in[1].shape));
    call->out[0] = call->in[0];
    call->out[1] = stk_desc_make(sum, call->in[1].shape);
    call->out[2] = loss;
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = 3 * stk_linear_loss_flops(call);
}

static void decompose(const stk_decompose_call *call)
{
    stk_linear_loss_parts p = stk_linear_loss_compose(call);
    stk_attrs attrs = stk_attrs_zero();
    attrs.cross_entropy.smoothing = call->attrs->linear_cross_entropy.smoothing;
    stk_value loss = stk_cross_entropy_raw(p.logits, p.labels, attrs.cross_entropy.smoothing);
    stk_value in[3] = {p.logits, p.labels, call->in[3]};
    stk_value d = stk_rule_add(STK_OP_cross_entropy_grad, &attrs, in, 3);
    /* A row that does not count may hold anything, a NaN too. */
    d = stk_compose_where(stk_compose_keep(p.counts, stk_value_shape(p.logits), 1 << 1), d, 0);
    d = stk_cast_to(d, stk_value_dtype(call->in[0]));
    stk_value dweight = stk_linear_loss_multiply(d, call->in[0], true, false);
    stk_compose_set(call, 0, stk_linear_loss_multiply(d, call->in[1], false, false));
    stk_compose_set(call, 1, call->n_in == 5 ? stk_add(call->in[4], dweight) : dweight);
    stk_compose_set(call, 2, stk_compose_where(p.counts, loss, 0));
}

const stk_op_rule stk_rule_linear_cross_entropy_grad = {
    .name = "linear_cross_entropy_grad",
    .kind = STK_KIND_OPAQUE,
    .n_in = -1,
    .n_out = 3,
    .infer = infer,
    .cost = cost,
    .print = stk_linear_loss_print,
    .decompose = decompose,
};
