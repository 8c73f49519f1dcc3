/* The gradient of gru, from the last step to the first. dstate is dx with the third gate times r: what the state's
 * product gave, of which the gradient of the weight is a product. See recurrent.h. */
#include "ops/recurrent.h"

enum { DH, H, GATES, PART, WEIGHT, H0, N_FIXED };
enum { DX, DSTATE, DH0 };

static stk_status infer(stk_op_call *call)
{
    stk_recurrent_sizes size;
    if (call->n_in < N_FIXED) return stk_fail(STK_INVALID, "%d inputs do not fit", call->n_in);
    STK_RETURN_IF_ERROR(stk_recurrent_read("gates", call->in[GATES], STK_GRU_GATES, &size));
    STK_RETURN_IF_ERROR(stk_recurrent_need_steps(call, "dh", DH, &size, size.h));
    STK_RETURN_IF_ERROR(stk_recurrent_need_steps(call, "h", H, &size, size.h));
    STK_RETURN_IF_ERROR(stk_recurrent_need_steps(call, "gates", GATES, &size, STK_GRU_GATES * size.h));
    STK_RETURN_IF_ERROR(stk_recurrent_need_steps(call, "part", PART, &size, size.h));
    STK_RETURN_IF_ERROR(stk_recurrent_need_weight(call, WEIGHT, &size, STK_GRU_GATES));
    STK_RETURN_IF_ERROR(stk_recurrent_need_state(call, "h0", H0, &size));
    STK_RETURN_IF_ERROR(stk_recurrent_need_rest(call, N_FIXED, 0, &size));
    call->out[DX] = call->out[DSTATE] = call->in[GATES];
    call->out[DH0] = call->in[H0];
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    double h = (double)call->in[DH].shape.dim[2];
    out->flops = stk_rule_count(call->in[GATES].shape) * (2 * h + 14);
}

static void decompose(const stk_decompose_call *call)
{
    int64_t width = stk_value_shape(call->in[GATES]).dim[2];
    stk_recurrent_steps s;
    if (!stk_recurrent_begin_steps(call, call->in[GATES], STK_GRU_GATES, N_FIXED, (int64_t[]){width, width}, 2, &s))
        return;
    s.backward = true;
    stk_value none = stk_rule_none(call->graph);
    stk_value weight = stk_compose_wide(call->in[WEIGHT]), h0 = stk_compose_wide(call->in[H0]);
    stk_value dh = stk_recurrent_or_zeros(stk_rule_none(call->graph), h0);
    for (int64_t k = 0; k < s.size.t; k++) {
        int64_t t = stk_recurrent_step(&s, k), before = stk_recurrent_before(&s, t);
        stk_value gates = stk_recurrent_pick(call->in[GATES], t), h_before = h0;
        if (before >= 0) h_before = stk_recurrent_pick(call->in[H], before);
        stk_value r = stk_recurrent_gate(&s, gates, 0), z = stk_recurrent_gate(&s, gates, 1);
        stk_value n = stk_recurrent_gate(&s, gates, 2);
        dh = stk_add(dh, stk_recurrent_pick(call->in[DH], t));
        stk_value kept = stk_mul(dh, z), dn = stk_recurrent_tanh_grad(stk_sub(dh, kept), n);
        stk_value dr = stk_recurrent_sigmoid_grad(stk_mul(dn, stk_recurrent_pick(call->in[PART], t)), r);
        stk_value dz = stk_recurrent_sigmoid_grad(stk_mul(dh, stk_sub(h_before, n)), z);
        stk_value dx = stk_concat((stk_value[]){dr, dz, dn}, 3, 1);
        stk_value dstate = stk_concat((stk_value[]){dr, dz, stk_mul(dn, r)}, 3, 1);
        s.made[0][t] = stk_recurrent_choose(&s, t, dx, none);
        s.made[1][t] = stk_recurrent_choose(&s, t, dstate, none);
        stk_value passed = stk_add(kept, stk_matmul(dstate, weight, false, false));
        dh = stk_recurrent_choose(&s, t, passed, dh);
    }
    stk_recurrent_end_steps(&s, (int[]){DX, DSTATE});
    stk_compose_set(call, DH0, dh);
}

const stk_op_rule stk_rule_gru_grad = {
    .name = "gru_grad",
    .kind = STK_KIND_OPAQUE,
    .n_in = -1,
    .n_out = 3,
    .infer = infer,
    .cost = cost,
    .print = stk_recurrent_print,
    .decompose = decompose,
};
