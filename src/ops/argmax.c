/* The index of the largest element along an axis; a NaN is the largest. */
#include "ops/compose.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc x = call->in[0];
    int axis = call->attrs->argmax.axis;
    char text[STK_SHAPE_TEXT_BYTES];
    if (x.dtype == STK_BOOL) return stk_fail(STK_INVALID, "x %s needs numbers; cast first", stk_desc_text(x, text));
    if (axis < 0 || axis >= x.shape.rank)
        return stk_fail(STK_INVALID, "axis %d is out of range for x %s", axis, stk_shape_text(x.shape, text));
    if (x.shape.dim[axis] == 0 || x.shape.dim[axis] > INT32_MAX)
        return stk_fail(STK_INVALID, "axis %d of x %s is empty or too long", axis, stk_shape_text(x.shape, text));
    stk_shape y = {.rank = x.shape.rank - 1};
    for (int i = 0; i < y.rank; i++)
        y.dim[i] = x.shape.dim[i < axis ? i : i + 1];
    stk_rule_out(call, 0, STK_I32, y);
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = stk_rule_count(call->in[0].shape);
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_text_add(out, " axis=%d%s", attrs->argmax.axis, attrs->argmax.last ? " last" : "");
}

/* The first, or last, number of those that equal the largest. */
static void decompose(const stk_decompose_call *call)
{
    stk_value x = call->in[0];
    int axis = call->attrs->argmax.axis;
    bool last = call->attrs->argmax.last;
    stk_shape shape = stk_value_shape(x);
    stk_value index = stk_iota(call->graph, STK_I32, shape, axis);
    stk_value none = stk_compose_constant(index, last ? -1 : (double)shape.dim[axis]);
    stk_value is_most = stk_equal(x, stk_compose_max(x, 1u << axis));
    stk_value found = stk_select(is_most, index, stk_select(stk_equal(x, x), none, index));
    call->made[0] = last ? stk_reduce_max(found, 1u << axis) : stk_reduce_min(found, 1u << axis);
}

const stk_op_rule stk_rule_argmax = {
    .name = "argmax",
    .kind = STK_KIND_OPAQUE,
    .n_in = 1,
    .n_out = 1,
    .infer = infer,
    .cost = cost,
    .print = print,
    .decompose = decompose,
    .stops_gradient = true,
};

stk_value stk_argmax(stk_value x, int axis, bool last)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.argmax.axis = axis;
    attrs.argmax.last = last;
    return stk_rule_add(STK_OP_argmax, &attrs, &x, 1);
}
