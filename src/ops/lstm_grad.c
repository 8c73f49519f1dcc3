/* The gradient of lstm, from the last step to the first; that of its weight is a product of dx. See recurrent.h. */
#include "ops/recurrent.h"

enum { DH, C, GATES, WEIGHT, C0, N_FIXED };
enum { DX, DH0, DC0 };

static stk_status infer(stk_op_call *call)
{
    stk_recurrent_sizes size;
    if (call->n_in < N_FIXED) return stk_fail(STK_INVALID, "%d inputs do not fit", call->n_in);
    STK_RETURN_IF_ERROR(stk_recurrent_read("gates", call->in[GATES], STK_LSTM_GATES, &size));
    STK_RETURN_IF_ERROR(stk_recurrent_need_steps(call, "dh", DH, &size, size.h));
    STK_RETURN_IF_ERROR(stk_recurrent_need_steps(call, "c", C, &size, size.h));
    STK_RETURN_IF_ERROR(stk_recurrent_need_steps(call, "gates", GATES, &size, STK_LSTM_GATES * size.h));
    STK_RETURN_IF_ERROR(stk_recurrent_need_weight(call, WEIGHT, &size, STK_LSTM_GATES));
    STK_RETURN_IF_ERROR(stk_recurrent_need_state(call, "c0", C0, &size));
    STK_RETURN_IF_ERROR(stk_recurrent_need_rest(call, N_FIXED, 1, &size));
    int i_dc = N_FIXED + (call->attrs->recurrent.has_mask != 0);
    if (call->n_in > i_dc) STK_RETURN_IF_ERROR(stk_recurrent_need_steps(call, "dc", i_dc, &size, size.h));
    call->out[DX] = call->in[GATES];
    call->out[DH0] = call->out[DC0] = call->in[C0];
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    double h = (double)call->in[DH].shape.dim[2];
    out->flops = stk_rule_count(call->in[GATES].shape) * (2 * h + 12);
}

static void decompose(const stk_decompose_call *call)
{
    int i_dc = N_FIXED + (call->attrs->recurrent.has_mask != 0);
    int64_t width = stk_value_shape(call->in[GATES]).dim[2];
    stk_recurrent_steps s;
    if (!stk_recurrent_begin_steps(call, call->in[GATES], STK_LSTM_GATES, N_FIXED, &width, 1, &s)) return;
    s.backward = true;
    stk_value none = stk_rule_none(call->graph);
    stk_value weight = stk_compose_wide(call->in[WEIGHT]), c0 = stk_compose_wide(call->in[C0]);
    stk_value dh = stk_recurrent_or_zeros(stk_rule_none(call->graph), c0), dc = dh;
    for (int64_t k = 0; k < s.size.t; k++) {
        int64_t t = stk_recurrent_step(&s, k), before = stk_recurrent_before(&s, t);
        stk_value gates = stk_recurrent_pick(call->in[GATES], t), c_before = c0;
        if (before >= 0) c_before = stk_recurrent_pick(call->in[C], before);
        stk_value i = stk_recurrent_gate(&s, gates, 0), f = stk_recurrent_gate(&s, gates, 1);
        stk_value g = stk_recurrent_gate(&s, gates, 2), o = stk_recurrent_gate(&s, gates, 3);
        stk_value shown = stk_tanh(stk_recurrent_pick(call->in[C], t));
        dh = stk_add(dh, stk_recurrent_pick(call->in[DH], t));
        if (call->n_in > i_dc) dc = stk_add(dc, stk_recurrent_pick(call->in[i_dc], t));
        stk_value dc_new = stk_add(dc, stk_recurrent_tanh_grad(stk_mul(dh, o), shown));
        stk_value dgates = stk_concat((stk_value[]){stk_recurrent_sigmoid_grad(stk_mul(dc_new, g), i),
                                                    stk_recurrent_sigmoid_grad(stk_mul(dc_new, c_before), f),
                                                    stk_recurrent_tanh_grad(stk_mul(dc_new, i), g),
                                                    stk_recurrent_sigmoid_grad(stk_mul(dh, shown), o)},
                                      4, 1);
        dgates = stk_recurrent_choose(&s, t, dgates, none);
        s.made[0][t] = dgates;
        dc = stk_recurrent_choose(&s, t, stk_mul(dc_new, f), dc);
        dh = stk_recurrent_choose(&s, t, stk_matmul(dgates, weight, false, false), dh);
    }
    stk_recurrent_end_steps(&s, (int[]){DX});
    stk_compose_set(call, DH0, dh);
    stk_compose_set(call, DC0, dc);
}

const stk_op_rule stk_rule_lstm_grad = {
    .name = "lstm_grad",
    .kind = STK_KIND_OPAQUE,
    .n_in = -1,
    .n_out = 3,
    .infer = infer,
    .cost = cost,
    .print = stk_recurrent_print,
    .decompose = decompose,
};
