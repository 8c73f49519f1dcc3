/* A value on another device of the program. */
#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    int32_t device = call->attrs->copy_to.device;
    if (device < 0 || device >= STK_MOST_DEVICES)
        return stk_fail(STK_INVALID, "there is no device %d: a program has %d at most", (int)device, STK_MOST_DEVICES);
    call->out[0] = call->in[0];
    return STK_OK;
}

/* Back to where x lies. */
static stk_status grad(const stk_grad_call *call)
{
    if (!call->need[0] || call->grad_out[0].id < 0) return STK_OK;
    call->grad_in[0] = stk_copy_to(call->grad_out[0], call->graph->value[call->in[0].id].device);
    return stk_rule_built(call->grad_in[0]);
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    (void)call;
    out->flops = 0;
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_text_add(out, " device=%d", (int)attrs->copy_to.device);
}

const stk_op_rule stk_rule_copy_to = {
    .name = "copy_to",
    .kind = STK_KIND_OPAQUE,
    .n_in = 1,
    .n_out = 1,
    .autocast = STK_AUTOCAST_FOLLOW,
    .infer = infer,
    .grad = grad,
    .cost = cost,
    .print = print,
};

stk_value stk_copy_to(stk_value x, int device)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.copy_to.device = device;
    return stk_rule_add(STK_OP_copy_to, &attrs, &x, 1);
}
