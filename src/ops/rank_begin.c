/* The beginning of what ranks add up while each of them does other things (passes/overlap.c). Several values of a sum
 * go together into one; one alone, and a part of a sum, lies where its result will. A value that ranks do not divide is
 * padded, and the padded form lives until the end.
 */
#include "ops/rank_parts.h"

static stk_status infer_sum(stk_op_call *call)
{
    int64_t n = 0;
    if (call->n_in < 1 || call->n_in > STK_MOST_RANK_SUMS)
        return stk_fail(STK_INVALID, "needs 1 to %d values, not %d", STK_MOST_RANK_SUMS, call->n_in);
    for (int i = 0; i < call->n_in; i++) {
        if (call->in[i].dtype != call->in[0].dtype) return stk_fail(STK_INVALID, "values of two types");
        n += stk_shape_count(call->in[i].shape);
    }
    stk_rule_out(call, 0, call->in[0].dtype, call->n_in == 1 ? call->in[0].shape : stk_rule_vector_shape(n));
    return STK_OK;
}

static stk_status infer(stk_op_call *call)
{
    int64_t n_ranks = call->attrs->ranks.n;
    call->n_out = 1;
    if (n_ranks == 0) return infer_sum(call);
    STK_RETURN_IF_ERROR(stk_rank_parts_infer(call));
    int64_t part = stk_rank_parts_count(call->in[0].shape, (int32_t)n_ranks);
    if (part * n_ranks == stk_shape_count(call->in[0].shape)) return STK_OK;
    call->n_out = 2;
    stk_rule_out(call, 1, call->in[0].dtype, stk_rule_vector_shape(part * n_ranks));
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = 0;
    for (int i = 0; i < call->n_in; i++)
        out->flops += stk_rule_count(call->in[i].shape);
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_rank_parts_print(attrs, out);
    stk_text_add(out, " ticket=%d", (int)attrs->ranks.ticket);
}

const stk_op_rule stk_rule_rank_begin = {
    .name = "rank_begin",
    .kind = STK_KIND_OPAQUE,
    .n_in = -1,
    .n_out = 1,
    .infer = infer,
    .cost = cost,
    .print = print,
};
