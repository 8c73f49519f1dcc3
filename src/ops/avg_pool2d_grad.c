/* The gradient of avg_pool2d: each pixel of a window gets an equal share. */
#include "ops/pool2d.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc dy = call->in[0], dx = stk_desc_make(dy.dtype, call->attrs->shape), y;
    STK_RETURN_IF_ERROR(stk_pool_out(call->op, dx, &call->attrs->window, &y));
    STK_RETURN_IF_ERROR(stk_rule_need("dy", dy, y.dtype, y.shape));
    call->out[0] = dx;
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = stk_rule_count(call->in[0].shape) * stk_rule_window_taps(&call->attrs->window);
}

static void decompose(const stk_decompose_call *call)
{
    stk_value dy = stk_compose_wide(call->in[0]);
    stk_pool_taps taps;
    stk_shape shape = call->attrs->shape;
    if (stk_pool_is_whole(&call->attrs->window, shape)) {
        stk_value share = stk_scale_by(dy, 1 / stk_rule_window_taps(&call->attrs->window));
        stk_compose_set(call, 0, stk_broadcast(share, shape));
        return;
    }
    if (!stk_pool_find_taps(&call->attrs->window, shape, stk_value_shape(dy), &taps)) return;
    dy = stk_mul(dy, stk_pool_share(&taps, call->graph, stk_value_dtype(dy)));
    stk_value sum = stk_pool_put(&taps, dy, 0);
    for (int i = 1; i < taps.n_taps; i++)
        sum = stk_add(sum, stk_pool_put(&taps, dy, i));
    stk_compose_set(call, 0, stk_pool_cut(&taps, sum));
}

STK_POOL_RULE(avg_pool2d_grad, 1, NULL);
STK_POOL_RULE(avg_pool3d_grad, 1, NULL);
