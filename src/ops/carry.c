/* What the micro-batch before left in a sum over micro-batches, and zeros in the first, whose row is 0: what is added
 * to it in place is the sum, with no gradient of a single micro-batch in between. It has no gradient, see accumulate.
 */
#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc y = stk_desc_make(call->attrs->dtype, call->attrs->shape);
    STK_RETURN_IF_ERROR(stk_rule_need("row", call->in[0], STK_I64, stk_rule_scalar_shape()));
    STK_RETURN_IF_ERROR(stk_rule_need_float("y", y));
    call->out[0] = y;
    return STK_OK;
}

const stk_op_rule stk_rule_carry = {
    .name = "carry",
    .kind = STK_KIND_OPAQUE,
    .n_in = 1,
    .n_out = 1,
    .infer = infer,
};
