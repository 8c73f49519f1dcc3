/* This rank's part of a value that all ranks have alike. */
#include "ops/rank_parts.h"

static stk_status infer(stk_op_call *call)
{
    return stk_rank_parts_infer(call);
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = 0;
    out->bytes = 2 * stk_rule_count(call->out[0].shape) * (double)stk_dtype_bytes(call->out[0].dtype);
}

const stk_op_rule stk_rule_rank_part = {
    .name = "rank_part",
    .kind = STK_KIND_OPAQUE,
    .n_in = 1,
    .n_out = 1,
    .infer = infer,
    .cost = cost,
    .print = stk_rank_parts_print,
};
