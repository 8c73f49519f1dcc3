/* All steps of an LSTM in one direction; see recurrent.h. */
#include "ops/recurrent.h"

enum { X, WEIGHT, BIAS, H0, C0, N_FIXED };
enum { H, C, GATES };

static stk_status infer(stk_op_call *call)
{
    stk_recurrent_sizes size;
    if (call->n_in < N_FIXED) return stk_fail(STK_INVALID, "%d inputs do not fit", call->n_in);
    STK_RETURN_IF_ERROR(stk_recurrent_read("x", call->in[X], STK_LSTM_GATES, &size));
    STK_RETURN_IF_ERROR(stk_recurrent_need_weight(call, WEIGHT, &size, STK_LSTM_GATES));
    STK_RETURN_IF_ERROR(
        stk_rule_need("bias", call->in[BIAS], call->in[X].dtype, stk_rule_vector_shape(STK_LSTM_GATES * size.h)));
    STK_RETURN_IF_ERROR(stk_recurrent_need_state(call, "h0", H0, &size));
    STK_RETURN_IF_ERROR(stk_recurrent_need_state(call, "c0", C0, &size));
    STK_RETURN_IF_ERROR(stk_recurrent_need_rest(call, N_FIXED, 0, &size));
    stk_rule_out(call, H, call->in[X].dtype, STK_SHAPE(size.n, size.t, size.h));
    call->out[C] = call->out[H];
    call->out[GATES] = call->in[X];
    return STK_OK;
}

static stk_status grad(const stk_grad_call *call)
{
    stk_value dh = call->grad_out[H], dc = call->grad_out[C], in[7];
    int n_in = 0;
    if (call->grad_out[GATES].id >= 0)
        return stk_fail(STK_UNSUPPORTED, "lstm has no gradient through its third output, the gates");
    if (dh.id < 0 && dc.id < 0) return STK_OK;
    in[n_in++] = stk_recurrent_or_zeros(dh, call->out[H]);
    in[n_in++] = call->out[C];
    in[n_in++] = call->out[GATES];
    in[n_in++] = call->in[WEIGHT];
    in[n_in++] = call->in[C0];
    if (call->attrs->recurrent.has_mask) in[n_in++] = call->in[N_FIXED];
    if (dc.id >= 0) in[n_in++] = dc;
    stk_value dx = stk_rule_add(STK_OP_lstm_grad, call->attrs, in, n_in);
    STK_RETURN_IF_ERROR(stk_rule_built(dx));
    if (call->need[X]) call->grad_in[X] = dx;
    if (call->need[WEIGHT])
        call->grad_in[WEIGHT] =
            stk_recurrent_grad_weight(dx, call->out[H], call->in[H0], call->attrs->recurrent.reverse);
    if (call->need[BIAS]) call->grad_in[BIAS] = stk_recurrent_grad_bias(dx);
    if (call->need[H0]) call->grad_in[H0] = stk_value_sibling(dx, 1);
    if (call->need[C0]) call->grad_in[C0] = stk_value_sibling(dx, 2);
    return stk_graph_status(call->graph);
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    double h = (double)call->out[H].shape.dim[2];
    out->flops = stk_rule_count(call->in[X].shape) * (2 * h + 12);
}

static void decompose(const stk_decompose_call *call)
{
    int64_t h_size = stk_value_shape(call->out[H]).dim[2];
    stk_recurrent_steps s;
    if (!stk_recurrent_begin_steps(call, call->in[X], STK_LSTM_GATES, N_FIXED,
                                   (int64_t[]){h_size, h_size, STK_LSTM_GATES * h_size}, 3, &s))
        return;
    stk_value weight = stk_compose_wide(call->in[WEIGHT]), bias = stk_compose_wide(call->in[BIAS]);
    stk_value h = stk_recurrent_first(call->in[H0]), c = stk_recurrent_first(call->in[C0]);
    stk_value none = stk_rule_none(call->graph);
    for (int64_t k = 0; k < s.size.t; k++) {
        int64_t t = stk_recurrent_step(&s, k);
        stk_value from_h = stk_recurrent_from_state(h, weight, bias);
        stk_value all = stk_add(stk_recurrent_pick(call->in[X], t), from_h);
        stk_value i = stk_sigmoid(stk_recurrent_gate(&s, all, 0)), f = stk_sigmoid(stk_recurrent_gate(&s, all, 1));
        stk_value g = stk_tanh(stk_recurrent_gate(&s, all, 2)), o = stk_sigmoid(stk_recurrent_gate(&s, all, 3));
        stk_value added = stk_mul(i, g), c_new = c.id < 0 ? added : stk_add(stk_mul(f, c), added);
        stk_value h_new = stk_mul(o, stk_tanh(c_new));
        stk_value gates = stk_concat((stk_value[]){i, f, g, o}, 4, 1);
        c = stk_recurrent_choose(&s, t, c_new, c);
        h = stk_recurrent_choose(&s, t, h_new, h);
        s.made[0][t] = h;
        s.made[1][t] = c;
        s.made[2][t] = stk_recurrent_choose(&s, t, gates, none);
    }
    stk_recurrent_end_steps(&s, (int[]){H, C, GATES});
}

const stk_op_rule stk_rule_lstm = {
    .name = "lstm",
    .kind = STK_KIND_OPAQUE,
    .n_in = -1,
    .n_out = 3,
    .infer = infer,
    .grad = grad,
    .cost = cost,
    .print = stk_recurrent_print,
    .decompose = decompose,
};

stk_value stk_lstm_raw(stk_value x, const stk_recurrence *r)
{
    stk_attrs attrs = stk_attrs_zero();
    if (!r) return stk_rule_none(x.graph);
    stk_value in[N_FIXED + 1] = {x, r->weight, r->bias, r->h0, r->c0, r->mask};
    attrs.recurrent.reverse = r->reverse;
    attrs.recurrent.has_mask = r->mask.id >= 0;
    return stk_rule_add(STK_OP_lstm, &attrs, in, N_FIXED + (r->mask.id >= 0));
}
