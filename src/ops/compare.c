/* y = a < b and its kin, element by element, as bool. A comparison with NaN is false, "not equal" true. */
#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    int kind = call->attrs->element.kind;
    stk_tensor_desc a = call->in[0], b = call->in[1];
    if (kind < 0 || kind >= STK_N_COMPARE) return stk_fail(STK_INVALID, "no such kind: %d", kind);
    if (a.dtype != b.dtype || !stk_shape_equal(a.shape, b.shape)) {
        char ta[STK_SHAPE_TEXT_BYTES], tb[STK_SHAPE_TEXT_BYTES];
        return stk_fail(STK_INVALID, "'%s' of a %s and b %s needs equal dtypes and shapes", stk_compare_name(kind),
                        stk_desc_text(a, ta), stk_desc_text(b, tb));
    }
    stk_rule_out(call, 0, STK_BOOL, a.shape);
    return STK_OK;
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_text_add(out, " kind=%s", stk_compare_name(attrs->element.kind));
}

const stk_op_rule stk_rule_compare = {
    .name = "compare",
    .kind = STK_KIND_ELEMENT,
    .n_in = 2,
    .n_out = 1,
    .autocast = STK_AUTOCAST_FOLLOW,
    .infer = infer,
    .print = print,
    .stops_gradient = true,
};

static stk_value add_compare(int kind, stk_value a, stk_value b)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.element.kind = kind;
    stk_value in[2] = {a, b};
    if (!stk_rule_broadcast_all(in, 2)) return stk_rule_none(a.graph);
    return stk_rule_add(STK_OP_compare, &attrs, in, 2);
}

#define X(name)                                                                                                        \
    stk_value stk_##name(stk_value a, stk_value b)                                                                     \
    {                                                                                                                  \
        return add_compare(STK_COMPARE_##name, a, b);                                                                  \
    }
STK_COMPARE_LIST(X)
#undef X
