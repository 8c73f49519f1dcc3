/* The index along an axis. */
#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc desc = stk_desc_make(call->attrs->dtype, call->attrs->shape);
    char text[STK_SHAPE_TEXT_BYTES];
    STK_RETURN_IF_ERROR(stk_desc_check(desc));
    if (call->attrs->axis < 0 || call->attrs->axis >= desc.shape.rank || desc.dtype == STK_BOOL)
        return stk_fail(STK_INVALID, "axis %d of %s cannot be counted along", call->attrs->axis,
                        stk_desc_text(desc, text));
    call->out[0] = desc;
    return STK_OK;
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_text_add(out, " axis=%d", attrs->axis);
}

const stk_op_rule stk_rule_iota = {
    .name = "iota",
    .kind = STK_KIND_OPAQUE,
    .n_in = 0,
    .n_out = 1,
    .infer = infer,
    .print = print,
    .stops_gradient = true,
};

stk_value stk_iota(stk_graph *graph, stk_dtype dtype, stk_shape shape, int axis)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.dtype = dtype;
    attrs.shape = shape;
    attrs.axis = axis;
    return graph ? stk_graph_add(graph, STK_OP_iota, &attrs, NULL, 0) : stk_rule_none(graph);
}
