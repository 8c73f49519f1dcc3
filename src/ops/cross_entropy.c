/* Cross-entropy of a softmax, one loss a row, for class numbers or shares; label smoothing as Szegedy et al. 2016. */
#include "ops/loss.h"

stk_status stk_loss_check(const stk_op_call *call)
{
    stk_tensor_desc logits = call->in[0], labels = call->in[1];
    double smoothing = call->attrs->cross_entropy.smoothing;
    char ta[STK_SHAPE_TEXT_BYTES], tb[STK_SHAPE_TEXT_BYTES];
    STK_RETURN_IF_ERROR(stk_rule_need_float("logits", logits));
    STK_RETURN_IF_ERROR(stk_rule_need_rank("logits", logits, 2));
    if (!(smoothing >= 0 && smoothing <= 1))
        return stk_fail(STK_INVALID, "smoothing %g must be between 0 and 1", smoothing);
    bool numbers = labels.dtype == STK_I32 && stk_shape_equal(labels.shape, stk_rule_vector_shape(logits.shape.dim[0]));
    bool shares = labels.dtype == stk_rule_stat_dtype(logits.dtype) && stk_shape_equal(labels.shape, logits.shape);
    if (numbers || shares) return STK_OK;
    return stk_fail(STK_INVALID, "labels %s do not fit logits %s: they must be i32[N] or %s[N,C]",
                    stk_desc_text(labels, tb), stk_desc_text(logits, ta),
                    stk_dtype_name(stk_rule_stat_dtype(logits.dtype)));
}

stk_tensor_desc stk_loss_out(stk_tensor_desc logits)
{
    return stk_desc_make(stk_rule_stat_dtype(logits.dtype), stk_rule_vector_shape(logits.shape.dim[0]));
}

void stk_loss_print(const stk_attrs *attrs, stk_text *out)
{
    if (attrs->cross_entropy.smoothing != 0) stk_text_add(out, " smoothing=%g", attrs->cross_entropy.smoothing);
}

static stk_status infer(stk_op_call *call)
{
    STK_RETURN_IF_ERROR(stk_loss_check(call));
    call->out[0] = stk_loss_out(call->in[0]);
    return STK_OK;
}

static stk_status grad(const stk_grad_call *call)
{
    if (call->grad_out[0].id < 0) return STK_OK;
    if (call->need[1]) return stk_fail(STK_UNSUPPORTED, "cross_entropy has no gradient for its labels");
    if (!call->need[0]) return STK_OK;
    stk_value in[3] = {call->in[0], call->in[1], call->grad_out[0]};
    call->grad_in[0] = stk_rule_add(STK_OP_cross_entropy_grad, call->attrs, in, 3);
    return stk_rule_built(call->grad_in[0]);
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = 5 * stk_rule_count(call->in[0].shape);
}

enum { CLASSES = 1 << 1 };

stk_value stk_loss_compose_target(stk_value labels, stk_value logits, double smoothing)
{
    stk_shape shape = stk_value_shape(logits);
    stk_value share = labels;
    if (stk_value_shape(labels).rank == 1) {
        stk_value number = stk_reshape(stk_compose_check(labels, shape.dim[1]), STK_SHAPE(shape.dim[0], 1));
        share = stk_equal(number, stk_iota(logits.graph, STK_I32, shape, 1));
        share = stk_cast_to(share, stk_value_dtype(logits));
    }
    return smoothing == 0 ? share : stk_shift_by(stk_scale_by(share, 1 - smoothing), smoothing / (double)shape.dim[1]);
}

stk_value stk_loss_compose(stk_value logits, stk_value target)
{
    stk_value below = stk_sub(logits, stk_compose_max(logits, CLASSES));
    stk_value log_share = stk_sub(below, stk_log(stk_compose_sum(stk_exp(below), CLASSES)));
    stk_value is_shared = stk_not_equal(target, stk_compose_constant(target, 0));
    /* A class without a share adds nothing, even where its logit is -inf. */
    return stk_neg(stk_reduce_sum(stk_compose_where(is_shared, stk_mul(target, log_share), 0), CLASSES));
}

stk_value stk_loss_compose_grad(stk_value logits, stk_value target, stk_value dloss)
{
    stk_value e = stk_exp(stk_sub(logits, stk_compose_max(logits, CLASSES)));
    stk_value share = stk_mul(stk_div(e, stk_compose_sum(e, CLASSES)), stk_compose_sum(target, CLASSES));
    return stk_mul(stk_sub(share, target), stk_compose_keep(dloss, stk_value_shape(logits), CLASSES));
}

static void decompose(const stk_decompose_call *call)
{
    stk_value logits = stk_compose_wide(call->in[0]);
    stk_value target = stk_loss_compose_target(call->in[1], logits, call->attrs->cross_entropy.smoothing);
    stk_compose_set(call, 0, stk_loss_compose(logits, target));
}

const stk_op_rule stk_rule_cross_entropy = {
    .name = "cross_entropy",
    .kind = STK_KIND_OPAQUE,
    .n_in = 2,
    .n_out = 1,
    .infer = infer,
    .grad = grad,
    .cost = cost,
    .print = stk_loss_print,
    .decompose = decompose,
};

stk_value stk_cross_entropy_raw(stk_value logits, stk_value labels, double smoothing)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.cross_entropy.smoothing = smoothing;
    return stk_rule_add(STK_OP_cross_entropy, &attrs, (stk_value[]){logits, labels}, 2);
}
