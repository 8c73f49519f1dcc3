/* Cross-entropy of x weight', a linear layer onto many classes, one loss a row. The logits exist for some rows at a
 * time only, forward and backward, so that a vocabulary of 50,000 costs no memory (as in Wijmans et al. 2024, "Cut your
 * losses in large-vocabulary language models", but by rows).
 *
 * The gradient is one op that makes the logits again, and from them the loss too. Where a graph has both, and what
 * weights the losses does not depend on them, the pass join_loss drops the forward op: then the logits are made once.
 */
#include "ops/linear_loss.h"

stk_status stk_linear_loss_check(const stk_op_call *call)
{
    stk_tensor_desc x = call->in[0], weight = call->in[1];
    double smoothing = call->attrs->linear_cross_entropy.smoothing;
    char ta[STK_SHAPE_TEXT_BYTES], tb[STK_SHAPE_TEXT_BYTES];
    STK_RETURN_IF_ERROR(stk_rule_need_float("x", x));
    STK_RETURN_IF_ERROR(stk_rule_need_rank("x", x, 2));
    STK_RETURN_IF_ERROR(stk_rule_need_rank("weight", weight, 2));
    if (weight.dtype != x.dtype || weight.shape.dim[1] != x.shape.dim[1] || x.shape.dim[1] == STK_ANY ||
        weight.shape.dim[0] == STK_ANY)
        return stk_fail(STK_INVALID, "weight %s does not fit x %s: x is [M,D], weight [V,D] of the same dtype",
                        stk_desc_text(weight, tb), stk_desc_text(x, ta));
    if (!(smoothing >= 0 && smoothing <= 1))
        return stk_fail(STK_INVALID, "smoothing %g must be between 0 and 1", smoothing);
    return stk_rule_need("labels", call->in[2], STK_I32, stk_rule_vector_shape(x.shape.dim[0]));
}

stk_tensor_desc stk_linear_loss_out(const stk_op_call *call)
{
    return stk_desc_make(stk_rule_stat_dtype(call->in[0].dtype), stk_rule_vector_shape(call->in[0].shape.dim[0]));
}

void stk_linear_loss_print(const stk_attrs *attrs, stk_text *out)
{
    if (attrs->linear_cross_entropy.smoothing != 0)
        stk_text_add(out, " smoothing=%g", attrs->linear_cross_entropy.smoothing);
    stk_text_add(out, " ignore=%lld", (long long)attrs->linear_cross_entropy.ignore_index);
}

double stk_linear_loss_flops(const stk_op_call *call)
{
    return 2 * stk_rule_count(call->in[0].shape) * (double)call->in[1].shape.dim[0];
}

static stk_status infer(stk_op_call *call)
{
    STK_RETURN_IF_ERROR(stk_linear_loss_check(call));
    call->out[0] = stk_linear_loss_out(call);
    return STK_OK;
}

static stk_status grad(const stk_grad_call *call)
{
    if (call->grad_out[0].id < 0 || (!call->need[0] && !call->need[1])) return STK_OK;
    stk_value in[4] = {call->in[0], call->in[1], call->in[2], call->grad_out[0]};
    stk_value dx = stk_rule_add(STK_OP_linear_cross_entropy_grad, call->attrs, in, 4);
    STK_RETURN_IF_ERROR(stk_rule_built(dx));
    if (call->need[0]) call->grad_in[0] = dx;
    /* Rounded for the rule's sake: what casts it back takes it as it was (cast.c). */
    if (call->need[1]) call->grad_in[1] = stk_cast_to(stk_value_sibling(dx, 1), stk_value_dtype(call->in[1]));
    return call->need[1] ? stk_rule_built(call->grad_in[1]) : STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = stk_linear_loss_flops(call);
}

stk_value stk_linear_loss_multiply(stk_value a, stk_value b, bool transpose_a, bool transpose_b)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.matmul.transpose_a = transpose_a;
    attrs.matmul.transpose_b = transpose_b;
    attrs.matmul.wide = stk_value_dtype(a) == STK_BF16 || stk_value_dtype(a) == STK_F16;
    return stk_rule_add(STK_OP_matmul, &attrs, (stk_value[]){a, b}, 2);
}

stk_linear_loss_parts stk_linear_loss_compose(const stk_decompose_call *call)
{
    int64_t ignored = call->attrs->linear_cross_entropy.ignore_index;
    stk_value labels = call->in[2];
    bool may_occur = ignored >= INT32_MIN && ignored <= INT32_MAX;
    stk_linear_loss_parts p = {.logits = stk_linear_loss_multiply(call->in[0], call->in[1], false, true)};
    p.counts =
        may_occur ? stk_not_equal(labels, stk_compose_constant(labels, (double)ignored)) : stk_equal(labels, labels);
    p.labels = stk_compose_where(p.counts, labels, 0);
    return p;
}

static void decompose(const stk_decompose_call *call)
{
    stk_linear_loss_parts p = stk_linear_loss_compose(call);
    stk_value loss = stk_cross_entropy_raw(p.logits, p.labels, call->attrs->linear_cross_entropy.smoothing);
    stk_compose_set(call, 0, stk_compose_where(p.counts, loss, 0));
}

const stk_op_rule stk_rule_linear_cross_entropy = {
    .name = "linear_cross_entropy",
    .kind = STK_KIND_OPAQUE,
    .n_in = 3,
    .n_out = 1,
    .autocast = STK_AUTOCAST_LOSS,
    .infer = infer,
    .grad = grad,
    .cost = cost,
    .print = stk_linear_loss_print,
    .decompose = decompose,
};

stk_linear_cross_entropy stk_linear_cross_entropy_default(void)
{
    return (stk_linear_cross_entropy){.ignore_index = -100};
}

stk_value stk_linear_cross_entropy_raw(stk_value x, stk_value weight, stk_value labels,
                                       stk_linear_cross_entropy options)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.linear_cross_entropy.smoothing = options.smoothing;
    attrs.linear_cross_entropy.ignore_index = options.ignore_index;
    return stk_rule_add(STK_OP_linear_cross_entropy, &attrs, (stk_value[]){x, weight, labels}, 3);
}
