/* Elements added up along an axis by number, onto zeros or onto a third input: the gradient of gather. */
#include "ops/gather.h"

static stk_status infer(stk_op_call *call)
{
    if (call->n_in != 2 && call->n_in != 3)
        return stk_fail(STK_INVALID, "%d inputs do not fit: it takes dy, ids and perhaps a base", call->n_in);
    stk_tensor_desc dy = call->in[0];
    stk_shape base = call->attrs->shape, rows;
    STK_RETURN_IF_ERROR(stk_rule_need_float("dy", dy));
    STK_RETURN_IF_ERROR(stk_gather_shape("base", base, call->in[1], call->attrs->axis, &rows));
    STK_RETURN_IF_ERROR(stk_rule_need("dy", dy, dy.dtype, rows));
    if (call->n_in == 3) STK_RETURN_IF_ERROR(stk_rule_need("base", call->in[2], dy.dtype, base));
    stk_rule_out(call, 0, dy.dtype, base);
    return STK_OK;
}

static stk_status grad(const stk_grad_call *call)
{
    stk_value d = call->grad_out[0];
    if (d.id < 0) return STK_OK;
    if (call->need[0]) {
        call->grad_in[0] = stk_gather(d, call->in[1], call->attrs->axis);
        STK_RETURN_IF_ERROR(stk_rule_built(call->grad_in[0]));
    }
    if (call->n_in == 3 && call->need[2]) call->grad_in[2] = d;
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = stk_rule_count(call->in[0].shape);
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_text_add(out, " axis=%d", attrs->axis);
}

const stk_op_rule stk_rule_scatter_add = {
    .name = "scatter_add",
    .kind = STK_KIND_OPAQUE,
    .n_in = -1,
    .n_out = 1,
    .infer = infer,
    .grad = grad,
    .cost = cost,
    .print = print,
};

stk_value stk_scatter_add(stk_value base, stk_value ids, stk_value dy, int axis)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.shape = stk_value_shape(base);
    attrs.axis = axis;
    return stk_rule_add(STK_OP_scatter_add, &attrs, (stk_value[]){dy, ids, base}, 3);
}
