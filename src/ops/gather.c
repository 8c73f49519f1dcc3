/* Elements along an axis by number: numpy's take. */
#include "ops/gather.h"

static stk_status check_axis(const char *role, stk_shape shape, int axis)
{
    char text[STK_SHAPE_TEXT_BYTES];
    if (axis < 0 || axis >= shape.rank)
        return stk_fail(STK_INVALID, "axis %d is out of range for %s %s", axis, role, stk_shape_text(shape, text));
    if (shape.dim[axis] == STK_ANY)
        return stk_fail(STK_INVALID, "axis %d of %s %s must be of known size", axis, role, stk_shape_text(shape, text));
    return STK_OK;
}

stk_status stk_gather_shape(const char *role, stk_shape x, stk_tensor_desc ids, int axis, stk_shape *y)
{
    char text[STK_SHAPE_TEXT_BYTES];
    STK_RETURN_IF_ERROR(check_axis(role, x, axis));
    if (ids.dtype != STK_I32 || x.rank - 1 + ids.shape.rank > STK_MAX_RANK)
        return stk_fail(STK_INVALID, "ids %s must be i32 with at most %d dimensions", stk_desc_text(ids, text),
                        STK_MAX_RANK + 1 - x.rank);
    *y = (stk_shape){.rank = x.rank - 1 + ids.shape.rank};
    for (int i = 0; i < axis; i++)
        y->dim[i] = x.dim[i];
    for (int i = 0; i < ids.shape.rank; i++)
        y->dim[axis + i] = ids.shape.dim[i];
    for (int i = axis + 1; i < x.rank; i++)
        y->dim[i - 1 + ids.shape.rank] = x.dim[i];
    return STK_OK;
}

static stk_status infer(stk_op_call *call)
{
    stk_shape y;
    STK_RETURN_IF_ERROR(stk_gather_shape("x", call->in[0].shape, call->in[1], call->attrs->axis, &y));
    stk_rule_out(call, 0, call->in[0].dtype, y);
    return STK_OK;
}

static stk_status grad(const stk_grad_call *call)
{
    if (!call->need[0] || call->grad_out[0].id < 0) return STK_OK;
    stk_attrs attrs = stk_attrs_zero();
    attrs.shape = stk_value_shape(call->in[0]);
    attrs.axis = call->attrs->axis;
    call->grad_in[0] = stk_rule_add(STK_OP_scatter_add, &attrs, (stk_value[]){call->grad_out[0], call->in[1]}, 2);
    return stk_rule_built(call->grad_in[0]);
}

/* No arithmetic, and of x only what is asked for. */
static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = 0;
    out->bytes = 4 * stk_rule_count(call->in[1].shape) +
                 2 * stk_rule_count(call->out[0].shape) * (double)stk_dtype_bytes(call->out[0].dtype);
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_text_add(out, " axis=%d", attrs->axis);
}

const stk_op_rule stk_rule_gather = {
    .name = "gather",
    .kind = STK_KIND_OPAQUE,
    .n_in = 2,
    .n_out = 1,
    .autocast = STK_AUTOCAST_RESULT,
    .infer = infer,
    .grad = grad,
    .cost = cost,
    .print = print,
};

stk_value stk_gather(stk_value x, stk_value ids, int axis)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.axis = axis;
    return stk_rule_add(STK_OP_gather, &attrs, (stk_value[]){x, ids}, 2);
}

stk_value stk_embedding_raw(stk_value weight, stk_value ids)
{
    if (!stk_rule_usable(weight)) return stk_rule_none(weight.graph);
    stk_status status =
        stk_rule_need_rank("weight", stk_desc_make(stk_value_dtype(weight), stk_value_shape(weight)), 2);
    return status == STK_OK ? stk_gather(weight, ids, 0) : stk_rule_fail(weight.graph, status);
}
