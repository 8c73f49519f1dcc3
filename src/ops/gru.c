/* All steps of a GRU in one direction; see recurrent.h. */
#include "ops/recurrent.h"

enum { X, WEIGHT, BIAS, H0, N_FIXED };
enum { H, GATES, PART };

static stk_status infer(stk_op_call *call)
{
    stk_recurrent_sizes size;
    if (call->n_in < N_FIXED) return stk_fail(STK_INVALID, "%d inputs do not fit", call->n_in);
    STK_RETURN_IF_ERROR(stk_recurrent_read("x", call->in[X], STK_GRU_GATES, &size));
    STK_RETURN_IF_ERROR(stk_recurrent_need_weight(call, WEIGHT, &size, STK_GRU_GATES));
    STK_RETURN_IF_ERROR(
        stk_rule_need("bias", call->in[BIAS], call->in[X].dtype, stk_rule_vector_shape(STK_GRU_GATES * size.h)));
    STK_RETURN_IF_ERROR(stk_recurrent_need_state(call, "h0", H0, &size));
    STK_RETURN_IF_ERROR(stk_recurrent_need_rest(call, N_FIXED, 0, &size));
    stk_rule_out(call, H, call->in[X].dtype, STK_SHAPE(size.n, size.t, size.h));
    call->out[GATES] = call->in[X];
    call->out[PART] = call->out[H];
    return STK_OK;
}

static stk_status grad(const stk_grad_call *call)
{
    stk_value dh = call->grad_out[H];
    if (call->grad_out[GATES].id >= 0 || call->grad_out[PART].id >= 0)
        return stk_fail(STK_UNSUPPORTED, "gru has a gradient through its first output alone");
    if (dh.id < 0) return STK_OK;
    stk_value in[7] = {dh, call->out[H], call->out[GATES], call->out[PART], call->in[WEIGHT], call->in[H0]};
    int n_in = 6;
    if (call->attrs->recurrent.has_mask) in[n_in++] = call->in[N_FIXED];
    stk_value dx = stk_rule_add(STK_OP_gru_grad, call->attrs, in, n_in);
    STK_RETURN_IF_ERROR(stk_rule_built(dx));
    stk_value dstate = stk_value_sibling(dx, 1);
    if (call->need[X]) call->grad_in[X] = dx;
    if (call->need[WEIGHT])
        call->grad_in[WEIGHT] =
            stk_recurrent_grad_weight(dstate, call->out[H], call->in[H0], call->attrs->recurrent.reverse);
    if (call->need[BIAS]) call->grad_in[BIAS] = stk_recurrent_grad_bias(dstate);
    if (call->need[H0]) call->grad_in[H0] = stk_value_sibling(dx, 2);
    return stk_graph_status(call->graph);
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    double h = (double)call->out[H].shape.dim[2];
    out->flops = stk_rule_count(call->in[X].shape) * (2 * h + 14);
}

static void decompose(const stk_decompose_call *call)
{
    int64_t h_size = stk_value_shape(call->out[H]).dim[2];
    stk_recurrent_steps s;
    if (!stk_recurrent_begin_steps(call, call->in[X], STK_GRU_GATES, N_FIXED,
                                   (int64_t[]){h_size, STK_GRU_GATES * h_size, h_size}, 3, &s))
        return;
    stk_value weight = stk_compose_wide(call->in[WEIGHT]), bias = stk_compose_wide(call->in[BIAS]);
    stk_value h = stk_recurrent_first(call->in[H0]), none = stk_rule_none(call->graph);
    for (int64_t k = 0; k < s.size.t; k++) {
        int64_t t = stk_recurrent_step(&s, k);
        stk_value from_h = stk_recurrent_from_state(h, weight, bias);
        stk_value x = stk_recurrent_pick(call->in[X], t);
        stk_value r = stk_sigmoid(stk_add(stk_recurrent_gate(&s, x, 0), stk_recurrent_gate(&s, from_h, 0)));
        stk_value z = stk_sigmoid(stk_add(stk_recurrent_gate(&s, x, 1), stk_recurrent_gate(&s, from_h, 1)));
        stk_value part = stk_broadcast(stk_recurrent_gate(&s, from_h, 2), STK_SHAPE(s.size.n, s.size.h));
        stk_value n = stk_tanh(stk_add(stk_recurrent_gate(&s, x, 2), stk_mul(r, part)));
        stk_value h_new = stk_add(n, stk_mul(z, h.id < 0 ? stk_neg(n) : stk_sub(h, n)));
        stk_value gates = stk_concat((stk_value[]){r, z, n}, 3, 1);
        h = stk_recurrent_choose(&s, t, h_new, h);
        s.made[0][t] = h;
        s.made[1][t] = stk_recurrent_choose(&s, t, gates, none);
        s.made[2][t] = stk_recurrent_choose(&s, t, part, none);
    }
    stk_recurrent_end_steps(&s, (int[]){H, GATES, PART});
}

const stk_op_rule stk_rule_gru = {
    .name = "gru",
    .kind = STK_KIND_OPAQUE,
    .n_in = -1,
    .n_out = 3,
    .infer = infer,
    .grad = grad,
    .cost = cost,
    .print = stk_recurrent_print,
    .decompose = decompose,
};

stk_value stk_gru_raw(stk_value x, const stk_recurrence *r)
{
    stk_attrs attrs = stk_attrs_zero();
    if (!r) return stk_rule_none(x.graph);
    stk_value in[N_FIXED + 1] = {x, r->weight, r->bias, r->h0, r->mask};
    attrs.recurrent.reverse = r->reverse;
    attrs.recurrent.has_mask = r->mask.id >= 0;
    return stk_rule_add(STK_OP_gru, &attrs, in, N_FIXED + (r->mask.id >= 0));
}
