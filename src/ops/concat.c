/* Values one after the other along one axis. */
#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    int axis = call->attrs->concat.axis;
    if (call->n_in < 1) return stk_fail(STK_INVALID, "needs at least one value");
    stk_tensor_desc y = call->in[0];
    char tx[STK_SHAPE_TEXT_BYTES], ty[STK_SHAPE_TEXT_BYTES];
    if (axis < 0 || axis >= y.shape.rank)
        return stk_fail(STK_INVALID, "axis %d is out of range for x0 %s", axis, stk_shape_text(y.shape, ty));
    for (int i = 1; i < call->n_in; i++) {
        stk_tensor_desc x = call->in[i];
        bool fits = x.dtype == y.dtype && x.shape.rank == y.shape.rank;
        for (int j = 0; fits && j < x.shape.rank; j++)
            fits = j == axis || x.shape.dim[j] == call->in[0].shape.dim[j];
        if (!fits)
            return stk_fail(STK_INVALID, "x0 %s and x%d %s differ in more than axis %d", stk_desc_text(call->in[0], ty),
                            i, stk_desc_text(x, tx), axis);
        if (x.shape.dim[axis] == STK_ANY || y.shape.dim[axis] == STK_ANY)
            return stk_fail(STK_INVALID, "axis %d of x0 %s and x%d %s must be of known size", axis,
                            stk_shape_text(call->in[0].shape, ty), i, stk_shape_text(x.shape, tx));
        y.shape.dim[axis] += x.shape.dim[axis];
    }
    call->out[0] = y;
    return STK_OK;
}

static stk_status grad(const stk_grad_call *call)
{
    stk_value dy = call->grad_out[0];
    if (dy.id < 0) return STK_OK;
    int axis = call->attrs->concat.axis;
    int64_t at = 0;
    for (int i = 0; i < call->n_in; i++) {
        int64_t start[STK_MAX_RANK] = {0}, stop[STK_MAX_RANK], step[STK_MAX_RANK];
        for (int j = 0; j < STK_MAX_RANK; j++) {
            stop[j] = STK_ANY; /* to the end */
            step[j] = 1;
        }
        int64_t size = stk_value_shape(call->in[i]).dim[axis];
        start[axis] = at;
        if (call->n_in > 1) stop[axis] = at + size;
        at += size;
        if (!call->need[i]) continue;
        call->grad_in[i] = call->n_in > 1 ? stk_slice(dy, start, stop, step) : dy;
        STK_RETURN_IF_ERROR(stk_rule_built(call->grad_in[i]));
    }
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    (void)call;
    out->flops = 0;
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_text_add(out, " axis=%d", attrs->concat.axis);
}

const stk_op_rule stk_rule_concat = {
    .name = "concat",
    .kind = STK_KIND_OPAQUE,
    .n_in = -1,
    .n_out = 1,
    .autocast = STK_AUTOCAST_FOLLOW,
    .infer = infer,
    .grad = grad,
    .cost = cost,
    .print = print,
};

stk_value stk_concat(const stk_value *x, int n, int axis)
{
    if (n < 1) return stk_rule_none(NULL);
    stk_attrs attrs = stk_attrs_zero();
    attrs.concat.axis = axis;
    return stk_rule_add(STK_OP_concat, &attrs, x, n);
}
