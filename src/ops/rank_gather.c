/* What all ranks have parts of. The second input is only looked at for its shape: the result may lie there. */
#include "ops/rank_parts.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc part = call->in[0], whole = call->in[1];
    int64_t n = stk_rank_parts_count(whole.shape, call->attrs->ranks.n);
    if (n < 0) return stk_fail(STK_INVALID, "%d ranks, or a shape that is not known", (int)call->attrs->ranks.n);
    STK_RETURN_IF_ERROR(stk_rule_need("part", part, whole.dtype, stk_rule_vector_shape(n)));
    stk_rule_out(call, 0, whole.dtype, whole.shape);
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = 0;
    out->bytes = 2 * stk_rule_count(call->out[0].shape) * (double)stk_dtype_bytes(call->out[0].dtype);
}

const stk_op_rule stk_rule_rank_gather = {
    .name = "rank_gather",
    .kind = STK_KIND_OPAQUE,
    .n_in = 2,
    .n_out = 1,
    .infer = infer,
    .cost = cost,
    .print = stk_rank_parts_print,
};
