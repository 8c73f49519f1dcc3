/* A value kept between runs. */
#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc desc = stk_desc_make(call->attrs->dtype, call->attrs->shape);
    STK_RETURN_IF_ERROR(stk_desc_check(desc));
    if (!stk_shape_known(desc.shape)) {
        char text[STK_SHAPE_TEXT_BYTES];
        return stk_fail(STK_INVALID, "a variable's shape %s must be known", stk_shape_text(desc.shape, text));
    }
    call->out[0] = desc;
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    (void)call;
    *out = (stk_cost){0};
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    static const char *const kinds[] = {"constant", "uniform", "normal", "identity"};
    int kind = (int)attrs->leaf.init.kind;
    stk_text_add(out, " init=%s:%g", kind >= 0 && kind < 4 ? kinds[kind] : "?", attrs->leaf.init.a);
    if (!attrs->leaf.trainable) stk_text_add(out, " fixed");
}

const stk_op_rule stk_rule_variable = {
    .name = "variable",
    .kind = STK_KIND_LEAF,
    .n_in = 0,
    .n_out = 1,
    .infer = infer,
    .cost = cost,
    .print = print,
};
