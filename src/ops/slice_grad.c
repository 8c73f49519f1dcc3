/* The gradient of slice: dy at the taken places of dx, zeros elsewhere. */
#include "ops/compose.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc dy = call->in[0], dx = stk_desc_make(dy.dtype, call->attrs->shape), taken;
    /* dy must be what slice takes of dx. */
    stk_op_call forward = {.op = STK_OP_slice, .attrs = call->attrs, .n_in = 1, .n_out = 1, .in = &dx, .out = &taken};
    STK_RETURN_IF_ERROR(stk_rule_slice.infer(&forward));
    STK_RETURN_IF_ERROR(stk_rule_need("dy", dy, dy.dtype, taken.shape));
    call->out[0] = dx;
    return STK_OK;
}

static stk_status grad(const stk_grad_call *call)
{
    if (!call->need[0] || call->grad_out[0].id < 0) return STK_OK;
    stk_attrs attrs = *call->attrs;
    memset(&attrs.shape, 0, sizeof(attrs.shape));
    call->grad_in[0] = stk_rule_add(STK_OP_slice, &attrs, call->grad_out, 1);
    return stk_rule_built(call->grad_in[0]);
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    (void)call;
    out->flops = 0;
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_rule_slice.print(attrs, out);
}

/* Zeros between, by an axis of their own behind; then before and behind. */
static stk_value spread_axis(stk_value dy, const stk_attrs *attrs, int axis)
{
    stk_shape shape = stk_value_shape(dy);
    int64_t n = shape.dim[axis], size = attrs->shape.dim[axis], step = attrs->slice.step[axis];
    int64_t start = attrs->slice.start[axis];
    if (n > 1 && step > 1) {
        stk_shape apart = {
            .rank = 3,
            .dim = {stk_shape_product(shape, 0, axis + 1), 1, stk_shape_product(shape, axis + 1, shape.rank)}};
        dy = stk_compose_pad(stk_reshape(dy, apart), 1, 0, step - 1, 0);
        shape.dim[axis] = n * step;
        n = (n - 1) * step + 1;
        dy = stk_compose_cut(stk_reshape(dy, shape), axis, 0, n);
    }
    return stk_compose_pad(dy, axis, start, size - start - n, 0);
}

static void decompose(const stk_decompose_call *call)
{
    stk_value dx = call->in[0];
    for (int axis = 0; axis < call->attrs->shape.rank; axis++)
        dx = spread_axis(dx, call->attrs, axis);
    call->made[0] = dx;
}

const stk_op_rule stk_rule_slice_grad = {
    .name = "slice_grad",
    .kind = STK_KIND_OPAQUE,
    .n_in = 1,
    .n_out = 1,
    .autocast = STK_AUTOCAST_FOLLOW,
    .infer = infer,
    .grad = grad,
    .cost = cost,
    .print = print,
    .decompose = decompose,
};
