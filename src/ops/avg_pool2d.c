/* The mean of each window's pixels inside the image; padding is not counted. */
#include "ops/pool2d.h"

static stk_status infer(stk_op_call *call)
{
    return stk_pool_out(call->op, call->in[0], &call->attrs->window, &call->out[0]);
}

static stk_status grad(const stk_grad_call *call)
{
    if (!call->need[0] || call->grad_out[0].id < 0) return STK_OK;
    stk_attrs attrs = *call->attrs;
    attrs.shape = stk_value_shape(call->in[0]);
    call->grad_in[0] =
        stk_rule_add(stk_value_shape(call->in[0]).rank == 5 ? STK_OP_avg_pool3d_grad : STK_OP_avg_pool2d_grad, &attrs,
                     call->grad_out, 1);
    return stk_rule_built(call->grad_in[0]);
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = stk_rule_count(call->out[0].shape) * stk_rule_window_taps(&call->attrs->window);
}

static void decompose(const stk_decompose_call *call)
{
    stk_value x = stk_compose_wide(call->in[0]);
    stk_shape shape = stk_value_shape(x), y = stk_value_shape(call->out[0]);
    stk_pool_taps taps;
    if (stk_pool_is_whole(&call->attrs->window, shape)) {
        stk_compose_set(call, 0, stk_compose_mean(x, stk_compose_rows(shape) & ~1u));
        return;
    }
    if (!stk_pool_find_taps(&call->attrs->window, shape, y, &taps)) return;
    stk_value padded = stk_pool_pad(&taps, x, 0), sum = stk_pool_take(&taps, padded, 0);
    for (int i = 1; i < taps.n_taps; i++)
        sum = stk_add(sum, stk_pool_take(&taps, padded, i));
    stk_compose_set(call, 0, stk_mul(sum, stk_pool_share(&taps, call->graph, stk_value_dtype(x))));
}

STK_POOL_RULE(avg_pool2d, 1, grad);
STK_POOL_RULE(avg_pool3d, 1, grad);

static stk_value make(stk_op op, stk_value x, stk_window window)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.window = window;
    return stk_rule_add(op, &attrs, &x, 1);
}

stk_value stk_avg_pool2d_raw(stk_value x, stk_window window)
{
    return make(STK_OP_avg_pool2d, x, window);
}

stk_value stk_avg_pool3d_raw(stk_value x, stk_window window)
{
    return make(STK_OP_avg_pool3d, x, window);
}
