/* The sum over micro-batches: y = x in the first, whose row is 0, and y + x in the others. Its memory is its own for
 * the whole run, see passes/plan.h. It has no gradient, since it is what gradients go into.
 *
 * In a tree: as a number that counts micro-batches in binary carries its ones, so are sums of 1, 2, 4 ... neighbours
 * added to what waits on their level. The topmost level is y itself.
 *
 *   micro-batch   0    1      2    3            of 4
 *   level 0       0           2
 *   y                  0+1         (0+1)+(2+3)
 */
#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    STK_RETURN_IF_ERROR(stk_rule_need_float("x", call->in[0]));
    STK_RETURN_IF_ERROR(stk_rule_need("row", call->in[1], STK_I64, stk_rule_scalar_shape()));
    for (int i = 0; i < STK_MOST_LEVELS; i++)
        call->out[i] = call->in[0];
    int32_t n = call->attrs->accumulate.log2_parts;
    if (n < 0 || n > STK_MOST_LEVELS)
        return stk_fail(STK_INVALID, "accumulate: a tree of %d levels; at most %d are possible", n, STK_MOST_LEVELS);
    call->n_out = n > 1 ? n : 1;
    return STK_OK;
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    if (attrs->accumulate.in_place) stk_text_add(out, " in_place");
    if (attrs->accumulate.log2_parts > 1)
        stk_text_add(out, " tree of %d parts of %lld rows", 1 << attrs->accumulate.log2_parts,
                     (long long)attrs->accumulate.rows);
}

const stk_op_rule stk_rule_accumulate = {
    .name = "accumulate",
    .kind = STK_KIND_OPAQUE,
    .n_in = 2,
    .n_out = STK_MOST_LEVELS,
    .infer = infer,
    .print = print,
};
