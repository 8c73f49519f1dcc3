/* The end of what rank_begin began. The values that went in are there for their shapes, and the sums may lie in their
 * place; a part's whole is there because it is read until now.
 */
#include "ops/rank_parts.h"

static stk_status infer(stk_op_call *call)
{
    bool is_part = call->attrs->ranks.n > 0;
    int n = is_part || call->n_in == 1 ? 1 : call->n_in - 1;
    if (is_part ? call->n_in != 2 : call->n_in < 1 || n > STK_MOST_RANK_SUMS)
        return stk_fail(STK_INVALID, "%d values are not what was begun", call->n_in);
    call->n_out = n;
    for (int i = 0; i < n; i++)
        call->out[i] = call->in[i];
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = 0;
    out->bytes = 0;
    for (int i = 0; i < call->n_out; i++)
        out->bytes += 2 * stk_rule_count(call->out[i].shape) * (double)stk_dtype_bytes(call->out[i].dtype);
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_text_add(out, " ticket=%d", (int)attrs->ranks.ticket);
}

const stk_op_rule stk_rule_rank_await = {
    .name = "rank_await",
    .kind = STK_KIND_OPAQUE,
    .n_in = -1,
    .n_out = 1,
    .infer = infer,
    .cost = cost,
    .print = print,
};
