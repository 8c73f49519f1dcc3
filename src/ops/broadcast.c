/* Repeats x along axes where it has 1, and along new axes in front. */
#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    stk_shape to = call->attrs->shape, common;
    stk_tensor_desc x = call->in[0];
    STK_RETURN_IF_ERROR(stk_desc_check(stk_desc_make(x.dtype, to)));
    STK_RETURN_IF_ERROR(stk_shape_broadcast(x.shape, to, &common));
    if (!stk_shape_equal(common, to)) {
        char tx[STK_SHAPE_TEXT_BYTES], ty[STK_SHAPE_TEXT_BYTES];
        return stk_fail(STK_INVALID, "x %s cannot become %s: only axes of size 1 can grow", stk_shape_text(x.shape, tx),
                        stk_shape_text(to, ty));
    }
    stk_rule_out(call, 0, x.dtype, to);
    return STK_OK;
}

static stk_status grad(const stk_grad_call *call)
{
    if (!call->need[0] || call->grad_out[0].id < 0) return STK_OK;
    stk_shape x = stk_value_shape(call->in[0]), y = stk_value_shape(call->grad_out[0]);
    uint32_t axes = 0;
    for (int i = 0; i < y.rank; i++) {
        int ix = i - (y.rank - x.rank);
        if (ix < 0 || (x.dim[ix] == 1 && y.dim[i] != 1)) axes |= 1u << i;
    }
    stk_value dx = axes ? stk_reduce_sum_wide(call->grad_out[0], axes) : call->grad_out[0];
    if (dx.id >= 0 && !stk_shape_equal(stk_value_shape(dx), x)) dx = stk_reshape(dx, x);
    dx = stk_cast_to(dx, stk_value_dtype(call->in[0]));
    call->grad_in[0] = dx;
    return stk_rule_built(dx);
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    (void)call;
    out->flops = 0;
}

const stk_op_rule stk_rule_broadcast = {
    .name = "broadcast",
    .kind = STK_KIND_BROADCAST,
    .n_in = 1,
    .n_out = 1,
    .autocast = STK_AUTOCAST_FOLLOW,
    .infer = infer,
    .grad = grad,
    .cost = cost,
};

stk_value stk_broadcast(stk_value x, stk_shape shape)
{
    if (!stk_rule_usable(x)) return stk_rule_none(x.graph);
    stk_attrs attrs = stk_attrs_zero();
    if (shape.rank < 0 || shape.rank > STK_MAX_RANK)
        return stk_rule_fail(x.graph, stk_fail(STK_INVALID, "broadcast: rank %d is out of range", shape.rank));
    attrs.shape = stk_desc_make(STK_F32, shape).shape;
    return stk_rule_add(STK_OP_broadcast, &attrs, &x, 1);
}
