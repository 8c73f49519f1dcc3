/* The gradient of embedding's weight: rows of dy added up by their numbers, onto zeros or onto a third input. */
#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    if (call->n_in != 2 && call->n_in != 3)
        return stk_fail(STK_INVALID, "%d inputs do not fit: it takes dy, ids and perhaps a base", call->n_in);
    stk_tensor_desc dy = call->in[0], ids = call->in[1];
    stk_shape weight = call->attrs->shape;
    char text[STK_SHAPE_TEXT_BYTES];
    STK_RETURN_IF_ERROR(stk_rule_need_float("dy", dy));
    if (ids.dtype != STK_I32 || ids.shape.rank >= STK_MAX_RANK)
        return stk_fail(STK_INVALID, "ids %s must be i32 with fewer than %d dimensions", stk_desc_text(ids, text),
                        STK_MAX_RANK);
    if (weight.rank != 2)
        return stk_fail(STK_INVALID, "the weight's shape %s must have 2 dimensions", stk_shape_text(weight, text));
    stk_shape rows = ids.shape;
    rows.dim[rows.rank++] = weight.dim[1];
    STK_RETURN_IF_ERROR(stk_rule_need("dy", dy, dy.dtype, rows));
    if (call->n_in == 3) STK_RETURN_IF_ERROR(stk_rule_need("base", call->in[2], dy.dtype, weight));
    stk_rule_out(call, 0, dy.dtype, weight);
    return STK_OK;
}

static stk_status grad(const stk_grad_call *call)
{
    stk_value d = call->grad_out[0];
    if (d.id < 0) return STK_OK;
    if (call->need[0]) {
        call->grad_in[0] = stk_embedding_raw(d, call->in[1]);
        STK_RETURN_IF_ERROR(stk_rule_built(call->grad_in[0]));
    }
    if (call->n_in == 3 && call->need[2]) call->grad_in[2] = d;
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = stk_rule_count(call->in[0].shape);
}

const stk_op_rule stk_rule_embedding_grad = {
    .name = "embedding_grad",
    .kind = STK_KIND_OPAQUE,
    .n_in = -1,
    .n_out = 1,
    .infer = infer,
    .grad = grad,
    .cost = cost,
};
