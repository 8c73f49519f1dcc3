/* Rows of a weight by number. */
#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc weight = call->in[0], ids = call->in[1];
    char text[STK_SHAPE_TEXT_BYTES];
    STK_RETURN_IF_ERROR(stk_rule_need_float("weight", weight));
    STK_RETURN_IF_ERROR(stk_rule_need_rank("weight", weight, 2));
    if (weight.shape.dim[0] == STK_ANY || weight.shape.dim[1] == STK_ANY)
        return stk_fail(STK_INVALID, "weight %s must be of known size", stk_desc_text(weight, text));
    if (ids.dtype != STK_I32 || ids.shape.rank >= STK_MAX_RANK)
        return stk_fail(STK_INVALID, "ids %s must be i32 with fewer than %d dimensions", stk_desc_text(ids, text),
                        STK_MAX_RANK);
    stk_shape y = ids.shape;
    y.dim[y.rank++] = weight.shape.dim[1];
    stk_rule_out(call, 0, weight.dtype, y);
    return STK_OK;
}

static stk_status grad(const stk_grad_call *call)
{
    if (!call->need[0] || call->grad_out[0].id < 0) return STK_OK;
    stk_attrs attrs = stk_attrs_zero();
    attrs.shape = stk_value_shape(call->in[0]);
    call->grad_in[0] = stk_rule_add(STK_OP_embedding_grad, &attrs, (stk_value[]){call->grad_out[0], call->in[1]}, 2);
    return stk_rule_built(call->grad_in[0]);
}

/* No arithmetic, and of the weight only the rows that are asked for. */
static void cost(const stk_op_call *call, stk_cost *out)
{
    double n_ids = stk_rule_count(call->in[1].shape);
    out->flops = 0;
    out->bytes = 4 * n_ids + 2 * stk_rule_count(call->out[0].shape) * (double)stk_dtype_bytes(call->out[0].dtype);
}

const stk_op_rule stk_rule_embedding = {
    .name = "embedding",
    .kind = STK_KIND_OPAQUE,
    .n_in = 2,
    .n_out = 1,
    .infer = infer,
    .grad = grad,
    .cost = cost,
};

stk_value stk_embedding_raw(stk_value weight, stk_value ids)
{
    return stk_rule_add(STK_OP_embedding, NULL, (stk_value[]){weight, ids}, 2);
}
