/* Another dtype: floats round to nearest even; to integers towards zero, held at the ends, NaN as 0; to bool: not 0. */
#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    stk_dtype dtype = call->attrs->dtype;
    if ((unsigned)dtype >= STK_N_DTYPES) return stk_fail(STK_INVALID, "no such dtype: %d", (int)dtype);
    stk_rule_out(call, 0, dtype, call->in[0].shape);
    return STK_OK;
}

/* A gradient that was rounded just now is taken as it was before: so that of a weight keeps f32 from its sum on. */
static stk_value cast_back(stk_value dy, stk_dtype dtype)
{
    const stk_node *maker = stk_value_node(dy);
    if (maker && maker->op == STK_OP_cast) {
        stk_value wide = {dy.graph, maker->in[0]};
        if (stk_value_dtype(wide) == dtype) return wide;
    }
    return stk_cast_to(dy, dtype);
}

static stk_status grad(const stk_grad_call *call)
{
    stk_dtype from = stk_value_dtype(call->in[0]);
    bool smooth = stk_dtype_is_float(from) && stk_dtype_is_float(call->attrs->dtype);
    if (!call->need[0] || call->grad_out[0].id < 0 || !smooth) return STK_OK;
    call->grad_in[0] = cast_back(call->grad_out[0], from);
    return stk_rule_built(call->grad_in[0]);
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_text_add(out, " dtype=%s", stk_dtype_name(attrs->dtype));
}

const stk_op_rule stk_rule_cast = {
    .name = "cast",
    .kind = STK_KIND_ELEMENT,
    .n_in = 1,
    .n_out = 1,
    .autocast = STK_AUTOCAST_FOLLOW,
    .infer = infer,
    .grad = grad,
    .print = print,
};

stk_value stk_cast_to(stk_value x, stk_dtype dtype)
{
    if (!stk_rule_usable(x) || stk_value_dtype(x) == dtype) return x;
    stk_attrs attrs = stk_attrs_zero();
    attrs.dtype = dtype;
    return stk_rule_add(STK_OP_cast, &attrs, &x, 1);
}
