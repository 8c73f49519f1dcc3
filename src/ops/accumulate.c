/* The sum over micro-batches: y = x in the first, whose row is 0, and y + x in the others. Its memory is its own for
 * the whole run, see passes/plan.h. It has no gradient, since it is what gradients go into.
 */
#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    STK_RETURN_IF_ERROR(stk_rule_need_float("x", call->in[0]));
    STK_RETURN_IF_ERROR(stk_rule_need("row", call->in[1], STK_I64, stk_rule_scalar_shape()));
    call->out[0] = call->in[0];
    return STK_OK;
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    if (attrs->accumulate.in_place) stk_text_add(out, " in_place");
}

const stk_op_rule stk_rule_accumulate = {
    .name = "accumulate",
    .kind = STK_KIND_OPAQUE,
    .n_in = 2,
    .n_out = 1,
    .infer = infer,
    .print = print,
};
