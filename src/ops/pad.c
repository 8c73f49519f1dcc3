/* Elements of one value before and after x on each axis. */
#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc x = call->in[0], y = x;
    for (int i = 0; i < x.shape.rank; i++) {
        int64_t low = call->attrs->pad.low[i], high = call->attrs->pad.high[i];
        char text[STK_SHAPE_TEXT_BYTES];
        const int64_t limit = INT64_C(1) << 47;
        if (low < 0 || high < 0 || low > limit || high > limit)
            return stk_fail(STK_INVALID, "padding %lld and %lld of axis %d of x %s must be 0 or more, and sane",
                            (long long)low, (long long)high, i, stk_shape_text(x.shape, text));
        if (x.shape.dim[i] == STK_ANY && (low || high))
            return stk_fail(STK_INVALID, "axis %d of x %s is of unknown size and cannot be padded", i,
                            stk_shape_text(x.shape, text));
        y.shape.dim[i] += low + high;
    }
    call->out[0] = y;
    return STK_OK;
}

static stk_status grad(const stk_grad_call *call)
{
    if (!call->need[0] || call->grad_out[0].id < 0) return STK_OK;
    stk_shape x = stk_value_shape(call->in[0]);
    int64_t start[STK_MAX_RANK], stop[STK_MAX_RANK], step[STK_MAX_RANK];
    for (int i = 0; i < x.rank; i++) {
        start[i] = call->attrs->pad.low[i];
        stop[i] = x.dim[i] == STK_ANY ? STK_ANY : start[i] + x.dim[i];
        step[i] = 1;
    }
    call->grad_in[0] = stk_slice(call->grad_out[0], start, stop, step);
    return stk_rule_built(call->grad_in[0]);
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    (void)call;
    out->flops = 0;
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    int last = STK_MAX_RANK - 1;
    while (last > 0 && !attrs->pad.low[last] && !attrs->pad.high[last])
        last--;
    for (int i = 0; i <= last; i++)
        stk_text_add(out, i ? ",%lld:%lld" : " pad=%lld:%lld", (long long)attrs->pad.low[i],
                     (long long)attrs->pad.high[i]);
    if (attrs->pad.value != 0) stk_text_add(out, " value=%g", attrs->pad.value);
}

const stk_op_rule stk_rule_pad = {
    .name = "pad",
    .kind = STK_KIND_OPAQUE,
    .n_in = 1,
    .n_out = 1,
    .autocast = STK_AUTOCAST_FOLLOW,
    .infer = infer,
    .grad = grad,
    .cost = cost,
    .print = print,
};

stk_value stk_pad(stk_value x, const int64_t *low, const int64_t *high, double value)
{
    if (!stk_rule_usable(x)) return stk_rule_none(x.graph);
    stk_attrs attrs = stk_attrs_zero();
    for (int i = 0; i < stk_value_shape(x).rank; i++) {
        attrs.pad.low[i] = low[i];
        attrs.pad.high[i] = high[i];
    }
    attrs.pad.value = value;
    return stk_rule_add(STK_OP_pad, &attrs, &x, 1);
}
