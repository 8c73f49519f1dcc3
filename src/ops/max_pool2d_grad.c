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

/* The largest so far of each window, and which tap it is. A NaN is the largest, and what is inside the image before
 * what is not. */
typedef struct winner {
    stk_value value, tap, inside;
} winner;

static void meet(const stk_pool_taps *t, int i, stk_value seen, stk_value inside, winner *w)
{
    stk_value one = stk_compose_constant(seen, 1), zero = stk_compose_constant(seen, 0);
    stk_value is_nan = stk_select(stk_equal(seen, seen), zero, stk_select(stk_equal(w->value, w->value), one, zero));
    stk_value wins = stk_select(stk_greater(seen, w->value), one, is_nan);
    if (!stk_shape_equal(t->x, t->padded)) {
        stk_value is_inside = stk_pool_take(t, inside, i);
        wins = stk_select(stk_greater(w->inside, zero), wins, is_inside);
        w->inside = stk_max(w->inside, is_inside);
    }
    stk_value does = stk_greater(wins, zero);
    w->value = stk_select(does, seen, w->value);
    w->tap = stk_select(does, stk_compose_constant(w->tap, i), w->tap);
}

/* y is not looked at: a compiler that makes x again for each of its readers may round it another way, and then no tap
 * equals y, or none of them does. */
static void decompose(const stk_decompose_call *call)
{
    stk_value x = call->in[0], dy = call->in[2], sum = stk_rule_none(call->graph);
    stk_pool_taps taps;
    if (!stk_pool_find_taps(&call->attrs->window, stk_value_shape(x), stk_value_shape(dy), &taps)) return;
    stk_value padded = stk_pool_pad(&taps, x, -INFINITY), wide = stk_compose_wide(dy);
    stk_value inside = stk_pool_inside(&taps, call->graph, stk_value_dtype(x));
    winner w = {stk_pool_take(&taps, padded, 0), stk_compose_constant(wide, 0), stk_pool_take(&taps, inside, 0)};
    for (int i = 1; i < taps.n_taps; i++)
        meet(&taps, i, stk_pool_take(&taps, padded, i), inside, &w);
    for (int i = 0; i < taps.n_taps; i++) {
        stk_value gets = stk_equal(w.tap, stk_compose_constant(w.tap, i));
        stk_value part = stk_pool_put(&taps, stk_compose_where(gets, wide, 0), i);
        sum = i ? stk_add(sum, part) : part;
    }
    stk_compose_set(call, 0, stk_pool_cut(&taps, sum));
}

STK_POOL_RULE(max_pool2d_grad, 3, NULL);
STK_POOL_RULE(max_pool3d_grad, 3, NULL);
