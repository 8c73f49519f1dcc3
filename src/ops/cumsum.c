/* Running sums along an axis. */
#include "ops/compose.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc x = call->in[0];
    int axis = call->attrs->cumsum.axis;
    char text[STK_SHAPE_TEXT_BYTES];
    if (x.dtype == STK_BOOL) return stk_fail(STK_INVALID, "x %s needs numbers; cast first", stk_desc_text(x, text));
    if (axis < 0 || axis >= x.shape.rank)
        return stk_fail(STK_INVALID, "axis %d is out of range for x %s", axis, stk_shape_text(x.shape, text));
    call->out[0] = x;
    return STK_OK;
}

/* An element is part of the sums behind it, so the gradient adds up from the other end. */
static stk_status grad(const stk_grad_call *call)
{
    if (!call->need[0] || call->grad_out[0].id < 0) return STK_OK;
    call->grad_in[0] = stk_cumsum(call->grad_out[0], call->attrs->cumsum.axis, call->attrs->cumsum.exclusive,
                                  !call->attrs->cumsum.reverse);
    return stk_rule_built(call->grad_in[0]);
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_text_add(out, " axis=%d%s%s", attrs->cumsum.axis, attrs->cumsum.exclusive ? " exclusive" : "",
                 attrs->cumsum.reverse ? " reverse" : "");
}

/* All elements but the last k along the axis, moved by k places; zeros come in. */
static stk_value move(stk_value x, int axis, bool reverse, int64_t k)
{
    int64_t n = stk_value_shape(x).dim[axis];
    stk_value rest = stk_compose_cut(x, axis, reverse ? k : 0, n - k);
    return stk_compose_pad(rest, axis, reverse ? 0 : k, reverse ? k : 0, 0);
}

/* Sums of 2, 4, 8, ... neighbours: Hillis & Steele 1986. */
static void decompose(const stk_decompose_call *call)
{
    int axis = call->attrs->cumsum.axis;
    bool reverse = call->attrs->cumsum.reverse;
    bool is_float = stk_dtype_is_float(stk_value_dtype(call->in[0]));
    stk_value y = is_float ? stk_compose_wide(call->in[0]) : call->in[0];
    int64_t n = stk_value_shape(y).dim[axis];
    if (call->attrs->cumsum.exclusive && n > 0) y = move(y, axis, reverse, 1);
    for (int64_t k = 1; k < n; k *= 2)
        y = stk_add(y, move(y, axis, reverse, k));
    stk_compose_set(call, 0, y);
}

const stk_op_rule stk_rule_cumsum = {
    .name = "cumsum",
    .kind = STK_KIND_OPAQUE,
    .n_in = 1,
    .n_out = 1,
    .infer = infer,
    .grad = grad,
    .print = print,
    .decompose = decompose,
};

stk_value stk_cumsum(stk_value x, int axis, bool exclusive, bool reverse)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.cumsum.axis = axis;
    attrs.cumsum.exclusive = exclusive;
    attrs.cumsum.reverse = reverse;
    return stk_rule_add(STK_OP_cumsum, &attrs, &x, 1);
}
