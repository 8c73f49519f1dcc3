/* Attention of heads, y = softmax(q k' scale) v, whose T x S weights are never stored: blocks of keys pass by a block
 * of queries, and a running maximum and sum keep the softmax exact. Dao, Fu, Ermon, Rudra & Ré 2022, "FlashAttention",
 * algorithms 1 and 4; the running sum is Milakov & Gimelshein's, 2018. The second output, the log of the sum of each
 * row's exponentials, is all that the gradient needs next to inputs and result.
 */
#include "ops/attention.h"

#include <math.h>

static stk_status check_tensors(const stk_op_call *call, int i_q)
{
    static const char *const role[] = {"q", "k", "v"};
    stk_tensor_desc q = call->in[i_q], k = call->in[i_q + 1];
    char ta[STK_SHAPE_TEXT_BYTES], tb[STK_SHAPE_TEXT_BYTES];
    STK_RETURN_IF_ERROR(stk_rule_need_float("q", q));
    for (int i = 0; i < 3; i++)
        STK_RETURN_IF_ERROR(stk_rule_need_rank(role[i], call->in[i_q + i], 4));
    for (int axis = 1; axis < 4; axis++)
        if (q.shape.dim[axis] == STK_ANY || k.shape.dim[axis] == STK_ANY)
            return stk_fail(STK_INVALID, "q %s and k %s may leave only the batch open", stk_desc_text(q, ta),
                            stk_desc_text(k, tb));
    stk_shape fits = q.shape;
    fits.dim[1] = k.shape.dim[1];
    for (int i = 1; i < 3; i++)
        if (call->in[i_q + i].dtype != q.dtype || !stk_shape_equal(call->in[i_q + i].shape, fits))
            return stk_fail(STK_INVALID, "%s %s does not fit q %s: q is [N,T,H,D], k and v are [N,S,H,D]", role[i],
                            stk_desc_text(call->in[i_q + i], tb), stk_desc_text(q, ta));
    if (q.shape.dim[3] < 1) return stk_fail(STK_INVALID, "q %s has heads of no size", stk_shape_text(q.shape, ta));
    return STK_OK;
}

stk_status stk_attention_check(const stk_op_call *call, int i_q, int i_rest)
{
    int n_rest = call->n_in - i_rest;
    double rate = call->attrs->attention.rate;
    if (n_rest < 0 || n_rest > 3)
        return stk_fail(STK_INVALID, "%d inputs: it takes q, k, v, then a mask or none, then seed and sample or none",
                        call->n_in);
    STK_RETURN_IF_ERROR(check_tensors(call, i_q));
    stk_attention_sizes size = stk_attention_get_sizes(call->in[i_q].shape, call->in[i_q + 1].shape);
    if (stk_attention_has_mask(call->n_in, i_rest))
        STK_RETURN_IF_ERROR(stk_rule_need("mask", call->in[i_rest], STK_BOOL, STK_SHAPE(size.n, size.s)));
    if (!(rate >= 0 && rate <= 1)) return stk_fail(STK_INVALID, "dropout %g must be between 0 and 1", rate);
    if (!isfinite(call->attrs->attention.scale)) return stk_fail(STK_INVALID, "the scale is not a finite number");
    if (!stk_attention_has_dropout(call->n_in, i_rest))
        return rate == 0 ? STK_OK : stk_fail(STK_INVALID, "dropout %g needs seed and sample", rate);
    STK_RETURN_IF_ERROR(stk_rule_need("seed", call->in[call->n_in - 2], STK_I64, stk_rule_scalar_shape()));
    return stk_rule_need("sample", call->in[call->n_in - 1], STK_I64, stk_rule_scalar_shape());
}

double stk_attention_pairs(const stk_op_call *call, int i_q)
{
    stk_shape q = call->in[i_q].shape;
    double t = (double)q.dim[1], s = (double)call->in[i_q + 1].shape.dim[1];
    double seen = t * s;
    if (call->attrs->attention.causal) seen = t <= s ? t * (t + 1) / 2 : s * (s + 1) / 2 + (t - s) * s;
    return seen * (double)q.dim[2] * (q.dim[0] == STK_ANY ? 1 : (double)q.dim[0]);
}

void stk_attention_print(const stk_attrs *attrs, stk_text *out)
{
    stk_text_add(out, " scale=%g", attrs->attention.scale);
    if (attrs->attention.causal) stk_text_add(out, " causal");
    if (attrs->attention.rate > 0)
        stk_text_add(out, " dropout=%g stream=%lld", attrs->attention.rate, (long long)attrs->attention.stream);
}

static stk_status infer(stk_op_call *call)
{
    STK_RETURN_IF_ERROR(stk_attention_check(call, 0, STK_ATTENTION_FIXED));
    stk_shape q = call->in[0].shape;
    call->out[0] = call->in[0];
    stk_rule_out(call, 1, stk_rule_stat_dtype(call->in[0].dtype), STK_SHAPE(q.dim[0], q.dim[2], q.dim[1]));
    return STK_OK;
}

static stk_status grad(const stk_grad_call *call)
{
    enum { MOST = 9 };
    stk_value in[MOST] = {call->grad_out[0], call->in[0], call->in[1], call->in[2], call->out[0], call->out[1]};
    int n_in = 6;
    if (call->grad_out[1].id >= 0)
        return stk_fail(STK_UNSUPPORTED, "attention has no gradient for its second output, the log-sum-exp");
    if (call->grad_out[0].id < 0) return STK_OK;
    for (int i = STK_ATTENTION_FIXED; i < call->n_in; i++)
        in[n_in++] = call->in[i];
    stk_value dq = stk_rule_add(STK_OP_attention_grad, call->attrs, in, n_in);
    STK_RETURN_IF_ERROR(stk_rule_built(dq));
    for (int i = 0; i < STK_ATTENTION_FIXED; i++)
        if (call->need[i]) call->grad_in[i] = stk_value_sibling(dq, i);
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = 4 * stk_attention_pairs(call, 0) * (double)call->in[0].shape.dim[3];
}

stk_value stk_attention_swap_heads(stk_value x)
{
    return stk_transpose(x, (int32_t[]){0, 2, 1, 3});
}

stk_value stk_attention_multiply(stk_value a, stk_value b, bool transpose_a, bool transpose_b)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.matmul.transpose_a = transpose_a;
    attrs.matmul.transpose_b = transpose_b;
    attrs.matmul.wide = stk_value_dtype(b) == STK_BF16 || stk_value_dtype(b) == STK_F16;
    return stk_rule_add(STK_OP_matmul, &attrs, (stk_value[]){stk_cast_to(a, stk_value_dtype(b)), b}, 2);
}

stk_value stk_attention_compose_see(const stk_attention_parts *p, stk_value x, double unseen)
{
    const stk_decompose_call *call = p->call;
    stk_shape pairs = STK_SHAPE(p->size.t, p->size.s);
    if (stk_attention_has_mask(call->n_in, p->i_rest)) {
        stk_value mask = stk_reshape(call->in[p->i_rest], STK_SHAPE(p->size.n, 1, 1, p->size.s));
        x = stk_compose_where(mask, x, unseen);
    }
    if (!call->attrs->attention.causal) return x;
    stk_value key = stk_iota(call->graph, STK_I32, pairs, 1), query = stk_iota(call->graph, STK_I32, pairs, 0);
    return stk_compose_where(stk_less_equal(key, query), x, unseen);
}

stk_attention_parts stk_attention_compose(const stk_decompose_call *call, int i_q, int i_rest)
{
    stk_attention_parts p = {.call = call, .i_rest = i_rest};
    p.size = stk_attention_get_sizes(stk_value_shape(call->in[i_q]), stk_value_shape(call->in[i_q + 1]));
    p.q = stk_attention_swap_heads(call->in[i_q]);
    p.k = stk_attention_swap_heads(call->in[i_q + 1]);
    p.v = stk_attention_swap_heads(call->in[i_q + 2]);
    p.score = stk_scale_by(stk_attention_multiply(p.q, p.k, false, true), call->attrs->attention.scale);
    p.score = stk_attention_compose_see(&p, p.score, -INFINITY);
    return p;
}

stk_value stk_attention_compose_weights(const stk_attention_parts *p, stk_value lse)
{
    enum { KEYS = 1 << 3 };
    stk_value below = stk_sub(p->score, stk_compose_keep(lse, stk_value_shape(p->score), KEYS));
    /* Where a query sees no key this is inf - inf. */
    return stk_attention_compose_see(p, stk_exp(below), 0);
}

/* Each query's mask begins a block of random numbers, so that rows are filled up to whole blocks. */
stk_value stk_attention_compose_drop(const stk_attention_parts *p, stk_value x)
{
    enum { KEYS = 3 };
    const stk_decompose_call *call = p->call;
    if (!stk_attention_has_dropout(call->n_in, p->i_rest)) return x;
    int64_t over = p->size.s % STK_DROPOUT_BLOCK, more = over ? STK_DROPOUT_BLOCK - over : 0;
    x = stk_dropout_raw(stk_compose_pad(x, KEYS, 0, more, 0), call->in[call->n_in - 2], call->in[call->n_in - 1],
                        call->attrs->attention.rate, call->attrs->attention.stream);
    return more ? stk_compose_cut(x, KEYS, 0, p->size.s) : x;
}

static void decompose(const stk_decompose_call *call)
{
    enum { KEYS = 1 << 3 };
    stk_attention_parts p = stk_attention_compose(call, 0, STK_ATTENTION_FIXED);
    stk_value most = stk_compose_max(p.score, KEYS);
    stk_value e = stk_attention_compose_see(&p, stk_exp(stk_sub(p.score, most)), 0);
    stk_value lse = stk_reshape(stk_add(stk_log(stk_compose_sum(e, KEYS)), most), stk_value_shape(call->out[1]));
    stk_value weights = stk_attention_compose_drop(&p, stk_attention_compose_weights(&p, lse));
    stk_compose_set(call, 0, stk_attention_swap_heads(stk_attention_multiply(weights, p.v, false, false)));
    stk_compose_set(call, 1, lse);
}

const stk_op_rule stk_rule_attention = {
    .name = "attention",
    .kind = STK_KIND_OPAQUE,
    .n_in = -1,
    .n_out = 2,
    .autocast = STK_AUTOCAST_NARROW,
    .infer = infer,
    .grad = grad,
    .cost = cost,
    .print = stk_attention_print,
    .decompose = decompose,
};

stk_value stk_attention_raw(stk_value q, stk_value k, stk_value v, stk_value mask, stk_value seed, stk_value sample,
                            stk_attention options)
{
    stk_attrs attrs = stk_attrs_zero();
    stk_shape shape = stk_value_shape(q);
    stk_value in[6] = {q, k, v};
    int n_in = STK_ATTENTION_FIXED;
    attrs.attention.causal = options.causal;
    attrs.attention.rate = options.dropout;
    attrs.attention.stream = options.dropout > 0 ? options.stream : 0;
    attrs.attention.scale = options.scale;
    if (options.scale == 0 && shape.rank == 4) attrs.attention.scale = 1 / sqrt((double)shape.dim[3]);
    if (mask.id >= 0) in[n_in++] = mask;
    if (options.dropout > 0) {
        in[n_in++] = seed;
        in[n_in++] = sample;
    }
    return stk_rule_add(STK_OP_attention, &attrs, in, n_in);
}
