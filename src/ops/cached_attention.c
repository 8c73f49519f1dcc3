/* Attention of new positions to all so far, y = softmax(q k' scale) v, where k and v are caches whose rows 0 ..
 * position
 * + T - 1 are filled, and query t sees rows 0 .. position + t. What lies behind is not read. For generation, so that it
 * has no gradient. Shazeer 2019, "Fast Transformer Decoding", section 2.4.
 */
#include <math.h>

#include "ops/attention.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc q = call->in[0], k = call->in[1], v = call->in[2];
    char ta[STK_SHAPE_TEXT_BYTES], tb[STK_SHAPE_TEXT_BYTES];
    STK_RETURN_IF_ERROR(stk_rule_need_float("q", q));
    STK_RETURN_IF_ERROR(stk_rule_need_rank("q", q, 4));
    STK_RETURN_IF_ERROR(stk_rule_need_rank("k", k, 4));
    stk_shape fits = q.shape;
    fits.dim[1] = k.shape.dim[1];
    if (k.dtype != q.dtype || !stk_shape_equal(k.shape, fits) || q.shape.dim[1] > k.shape.dim[1])
        return stk_fail(STK_INVALID, "k %s does not fit q %s: q is [N,T,H,D], k and v are [N,S,H,D] with T <= S",
                        stk_desc_text(k, tb), stk_desc_text(q, ta));
    STK_RETURN_IF_ERROR(stk_rule_need("v", v, k.dtype, k.shape));
    if (q.shape.dim[3] < 1) return stk_fail(STK_INVALID, "q %s has heads of no size", stk_shape_text(q.shape, ta));
    if (!isfinite(call->attrs->attention.scale)) return stk_fail(STK_INVALID, "the scale is not a finite number");
    STK_RETURN_IF_ERROR(stk_rule_need("position", call->in[3], STK_I64, stk_rule_scalar_shape()));
    call->out[0] = q;
    return STK_OK;
}

/* As for full caches: how far they are filled is known later. */
static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = 4 * stk_rule_count(call->in[0].shape) * (double)call->in[1].shape.dim[1];
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_text_add(out, " scale=%g", attrs->attention.scale);
}

static void decompose(const stk_decompose_call *call)
{
    enum { KEYS = 1 << 3 };
    stk_value q = stk_attention_swap_heads(call->in[0]), k = stk_attention_swap_heads(call->in[1]), v = call->in[2];
    int64_t t = stk_value_shape(call->in[0]).dim[1], s = stk_value_shape(v).dim[1];
    stk_value position = stk_compose_check_position(call->in[3], s - t + 1);
    stk_value query = stk_add(stk_iota(call->graph, STK_I32, STK_SHAPE(t, s), 0), position);
    stk_value sees = stk_less_equal(stk_iota(call->graph, STK_I32, STK_SHAPE(t, s), 1), query);
    stk_value score = stk_scale_by(stk_attention_multiply(q, k, false, true), call->attrs->attention.scale);
    score = stk_compose_where(sees, score, -INFINITY);
    stk_value e = stk_exp(stk_sub(score, stk_compose_max(score, KEYS)));
    stk_value share = stk_div(e, stk_compose_sum(e, KEYS));
    /* What lies behind the last query's row may be anything, a NaN too. */
    stk_value end = stk_add(position, stk_compose_constant(position, (double)t));
    stk_value is_filled = stk_less(stk_iota(call->graph, STK_I32, STK_SHAPE(s, 1, 1), 0), end);
    v = stk_attention_swap_heads(stk_compose_where(is_filled, v, 0));
    stk_compose_set(call, 0, stk_attention_swap_heads(stk_attention_multiply(share, v, false, false)));
}

const stk_op_rule stk_rule_cached_attention = {
    .name = "cached_attention",
    .kind = STK_KIND_OPAQUE,
    .n_in = 4,
    .n_out = 1,
    .autocast = STK_AUTOCAST_NARROW,
    .infer = infer,
    .cost = cost,
    .print = print,
    .decompose = decompose,
};

stk_value stk_cached_attention(stk_value q, stk_value k, stk_value v, stk_value position, double scale)
{
    stk_attrs attrs = stk_attrs_zero();
    stk_shape shape = stk_value_shape(q);
    attrs.attention.scale = scale == 0 && shape.rank == 4 ? 1 / sqrt((double)shape.dim[3]) : scale;
    return stk_rule_add(STK_OP_cached_attention, &attrs, (stk_value[]){q, k, v, position}, 4);
}
