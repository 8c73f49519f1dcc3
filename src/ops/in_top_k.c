/* 1 where the label is among the k largest logits of its row, else 0; among ties the lower class comes first. */
#include "ops/compose.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc logits = call->in[0];
    STK_RETURN_IF_ERROR(stk_rule_need_float("logits", logits));
    STK_RETURN_IF_ERROR(stk_rule_need_rank("logits", logits, 2));
    stk_shape rows = stk_rule_vector_shape(logits.shape.dim[0]);
    STK_RETURN_IF_ERROR(stk_rule_need("labels", call->in[1], STK_I32, rows));
    if (call->attrs->in_top_k.k < 1)
        return stk_fail(STK_INVALID, "k must be 1 or more, not %d", call->attrs->in_top_k.k);
    stk_rule_out(call, 0, STK_F32, rows);
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = stk_rule_count(call->in[0].shape);
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_text_add(out, " k=%d", attrs->in_top_k.k);
}

static void decompose(const stk_decompose_call *call)
{
    enum { CLASSES = 1 << 1 };
    stk_value logits = stk_compose_wide(call->in[0]);
    stk_shape shape = stk_value_shape(logits), column = STK_SHAPE(shape.dim[0], 1);
    stk_value number = stk_reshape(stk_compose_check(call->in[1], shape.dim[1]), column);
    stk_value class = stk_iota(call->graph, STK_I32, shape, 1);
    /* Of all others a zero, so that what is picked stays as it is. */
    stk_value own = stk_compose_sum(stk_compose_where(stk_equal(number, class), logits, 0), CLASSES);
    stk_value one = stk_compose_constant(logits, 1);
    stk_value tied = stk_compose_where(stk_less(class, number), one, 0);
    stk_value before = stk_select(stk_greater(logits, own), one, stk_compose_where(stk_equal(logits, own), tied, 0));
    stk_value n_before = stk_compose_sum(before, CLASSES);
    stk_value is_in = stk_less(n_before, stk_compose_constant(n_before, call->attrs->in_top_k.k));
    /* A network that gives NaN has recognised nothing. */
    is_in = stk_compose_where(stk_equal(own, own), stk_cast_to(is_in, STK_F32), 0);
    stk_compose_set(call, 0, stk_reshape(is_in, stk_value_shape(call->out[0])));
}

const stk_op_rule stk_rule_in_top_k = {
    .name = "in_top_k",
    .kind = STK_KIND_OPAQUE,
    .n_in = 2,
    .n_out = 1,
    .infer = infer,
    .cost = cost,
    .print = print,
    .decompose = decompose,
    .stops_gradient = true,
};

stk_value stk_in_top_k(stk_value logits, stk_value labels, int k)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.in_top_k.k = k;
    return stk_rule_add(STK_OP_in_top_k, &attrs, (stk_value[]){logits, labels}, 2);
}
