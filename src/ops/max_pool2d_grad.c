/* The gradient of max_pool2d: the first maximum of each window, row by row, gets all. */
#include <math.h>

#include "ops/pool2d.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc x = call->in[0], y;
    STK_RETURN_IF_ERROR(stk_pool_out(call->op, x, &call->attrs->window, &y));
    STK_RETURN_IF_ERROR(stk_rule_need("y", call->in[1], y.dtype, y.shape));
    STK_RETURN_IF_ERROR(stk_rule_need("dy", call->in[2], y.dtype, y.shape));
    call->out[0] = x;
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = stk_rule_count(call->in[2].shape) * stk_rule_window_taps(&call->attrs->window);
}

/* 1 where the tap holds the maximum and is inside the image. A NaN is the maximum. */
static stk_value holds(const stk_pool_taps *t, stk_value seen, stk_value y, stk_value inside, int i)
{
    stk_value one = stk_compose_constant(y, 1), zero = stk_compose_constant(y, 0);
    stk_value is_nan = stk_select(stk_equal(y, y), zero, stk_select(stk_equal(seen, seen), zero, one));
    stk_value equal = stk_select(stk_equal(seen, y), one, is_nan);
    return stk_shape_equal(t->x, t->padded) ? equal : stk_mul(equal, stk_pool_take(t, inside, i));
}

static void decompose(const stk_decompose_call *call)
{
    stk_value x = call->in[0], y = call->in[1], dy = call->in[2], sum = stk_rule_none(call->graph);
    stk_pool_taps taps;
    if (!stk_pool_find_taps(&call->attrs->window, stk_value_shape(x), stk_value_shape(y), &taps)) return;
    stk_value padded = stk_pool_pad(&taps, x, -INFINITY), zero = stk_compose_constant(y, 0), left = zero;
    stk_value inside = stk_pool_inside(&taps, call->graph, stk_value_dtype(x));
    for (int i = 0; i < taps.n_taps; i++) {
        stk_value is = holds(&taps, stk_pool_take(&taps, padded, i), y, inside, i);
        stk_value first = i ? stk_mul(is, left) : is;
        left = i ? stk_sub(left, first) : stk_sub(stk_compose_constant(y, 1), first);
        stk_value part = stk_compose_wide(stk_select(stk_greater(first, zero), dy, zero));
        part = stk_pool_put(&taps, part, i);
        sum = i ? stk_add(sum, part) : part;
    }
    stk_compose_set(call, 0, stk_pool_cut(&taps, sum));
}

STK_POOL_RULE(max_pool2d_grad, 3, NULL);
STK_POOL_RULE(max_pool3d_grad, 3, NULL);
