/* Each rank's part of the sum over all ranks: half of an all-reduce, rank_gather being the other. */
#include "ops/rank_parts.h"

static stk_status infer(stk_op_call *call)
{
    return stk_rank_parts_infer(call);
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = stk_rule_count(call->in[0].shape);
}

const stk_op_rule stk_rule_rank_scatter = {
    .name = "rank_scatter",
    .kind = STK_KIND_OPAQUE,
    .n_in = 1,
    .n_out = 1,
    .infer = infer,
    .cost = cost,
    .print = stk_rank_parts_print,
};
