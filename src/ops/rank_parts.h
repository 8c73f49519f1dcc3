/* Parts of a value, one for each rank: of equal length, the last ones with zeros behind what there is. */
#ifndef STK_OPS_RANK_PARTS_H
#define STK_OPS_RANK_PARTS_H

#include "ops/rule.h"

/* Elements of a part; -1 where that is not known. */
static inline int64_t stk_rank_parts_count(stk_shape whole, int32_t n_ranks)
{
    if (n_ranks < 1 || !stk_shape_known(whole)) return -1;
    return (stk_shape_count(whole) + n_ranks - 1) / n_ranks;
}

/* Of a call whose first input is whole and whose output is a part. */
static inline stk_status stk_rank_parts_infer(stk_op_call *call)
{
    int64_t n = stk_rank_parts_count(call->in[0].shape, call->attrs->ranks.n);
    if (n < 0) return stk_fail(STK_INVALID, "%d ranks, or a shape that is not known", (int)call->attrs->ranks.n);
    stk_rule_out(call, 0, call->in[0].dtype, stk_rule_vector_shape(n));
    return STK_OK;
}

static inline void stk_rank_parts_print(const stk_attrs *attrs, stk_text *out)
{
    stk_text_add(out, " ranks=%d", (int)attrs->ranks.n);
}

#endif
