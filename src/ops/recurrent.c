#include "ops/recurrent.h"

#include <stdlib.h>

/* --- checks --- */

stk_status stk_recurrent_read(const char *role, stk_tensor_desc x, int n_gates, stk_recurrent_sizes *out)
{
    char text[STK_SHAPE_TEXT_BYTES];
    STK_RETURN_IF_ERROR(stk_rule_need_float(role, x));
    if (x.shape.rank != 3 || x.shape.dim[1] < 1 || x.shape.dim[2] < 1 || x.shape.dim[2] % n_gates)
        return stk_fail(STK_INVALID, "%s %s must be [N,T,%dH], of known T and H of 1 and more", role,
                        stk_desc_text(x, text), n_gates);
    *out = (stk_recurrent_sizes){x.shape.dim[0], x.shape.dim[1], x.shape.dim[2] / n_gates};
    return STK_OK;
}

stk_status stk_recurrent_need_steps(const stk_op_call *call, const char *role, int i, const stk_recurrent_sizes *size,
                                    int64_t width)
{
    return stk_rule_need(role, call->in[i], call->in[0].dtype, STK_SHAPE(size->n, size->t, width));
}

stk_status stk_recurrent_need_state(const stk_op_call *call, const char *role, int i, const stk_recurrent_sizes *size)
{
    return stk_rule_need(role, call->in[i], call->in[0].dtype, STK_SHAPE(size->n, size->h));
}

stk_status stk_recurrent_need_weight(const stk_op_call *call, int i, const stk_recurrent_sizes *size, int n_gates)
{
    return stk_rule_need("weight", call->in[i], call->in[0].dtype, STK_SHAPE(n_gates * size->h, size->h));
}

stk_status stk_recurrent_need_rest(const stk_op_call *call, int n_fixed, int n_more, const stk_recurrent_sizes *size)
{
    bool has_mask = call->attrs->recurrent.has_mask != 0;
    int n = n_fixed + has_mask;
    if (call->n_in < n || call->n_in > n + n_more)
        return stk_fail(STK_INVALID, "%d inputs do not fit: it takes %d to %d", call->n_in, n, n + n_more);
    return has_mask ? stk_rule_need("mask", call->in[n_fixed], STK_BOOL, STK_SHAPE(size->n, size->t)) : STK_OK;
}

void stk_recurrent_print(const stk_attrs *attrs, stk_text *out)
{
    if (attrs->recurrent.reverse) stk_text_add(out, " reverse");
    if (attrs->recurrent.has_mask) stk_text_add(out, " masked");
}

/* --- gradients --- */

static stk_value join(stk_value a, stk_value b)
{
    return stk_concat((stk_value[]){a, b}, 2, 1);
}

/* States before each step: [N,T,H]. */
static stk_value shift_states(stk_value h, stk_value h0, bool reverse)
{
    stk_shape shape = stk_value_shape(h);
    int64_t t = shape.dim[1];
    stk_value first = stk_reshape(h0, STK_SHAPE(shape.dim[0], 1, shape.dim[2]));
    if (t == 1) return first;
    return reverse ? join(stk_compose_cut(h, 1, 1, t - 1), first) : join(first, stk_compose_cut(h, 1, 0, t - 1));
}

stk_value stk_recurrent_grad_weight(stk_value dgates, stk_value h, stk_value h0, bool reverse)
{
    stk_value before = shift_states(h, h0, reverse);
    stk_dtype dtype = stk_value_dtype(h);
    stk_attrs attrs = stk_attrs_zero();
    attrs.matmul.transpose_a = 1;
    attrs.matmul.wide = dtype == STK_BF16 || dtype == STK_F16;
    stk_shape shape = stk_value_shape(dgates), states = stk_value_shape(before);
    bool is_known = stk_shape_known(shape);
    if (is_known) {
        /* One large product sums over samples and steps by itself. */
        dgates = stk_reshape(dgates, STK_SHAPE(shape.dim[0] * shape.dim[1], shape.dim[2]));
        before = stk_reshape(before, STK_SHAPE(states.dim[0] * states.dim[1], states.dim[2]));
    }
    stk_value grad = stk_rule_add(STK_OP_matmul, &attrs, (stk_value[]){dgates, before}, 2);
    return stk_cast_to(is_known ? grad : stk_reduce_sum(grad, 1), dtype);
}

stk_value stk_recurrent_grad_bias(stk_value dgates)
{
    return stk_cast_to(stk_reduce_sum_wide(dgates, 3), stk_value_dtype(dgates));
}

stk_value stk_recurrent_or_zeros(stk_value grad, stk_value x)
{
    if (grad.id >= 0) return grad;
    return stk_broadcast(stk_rule_scalar(x.graph, stk_value_dtype(x), 0), stk_value_shape(x));
}

/* --- compositions --- */

bool stk_recurrent_begin_steps(const stk_decompose_call *call, stk_value x, int n_gates, int i_mask,
                               const int64_t *width, int n_made, stk_recurrent_steps *out)
{
    stk_shape shape = stk_value_shape(x);
    *out = (stk_recurrent_steps){
        .call = call, .size = {shape.dim[0], shape.dim[1], shape.dim[2] / n_gates}, .n_made = n_made};
    out->mask = call->attrs->recurrent.has_mask ? call->in[i_mask] : stk_rule_none(call->graph);
    if (out->size.t > STK_MOST_COMPOSED_STEPS) {
        stk_rule_fail(call->graph, stk_fail(STK_UNSUPPORTED,
                                            "%lld steps: this device has no kernel for them and computes one after the "
                                            "other, %d at most",
                                            (long long)out->size.t, STK_MOST_COMPOSED_STEPS));
        return false;
    }
    size_t n = (size_t)out->size.t;
    stk_value *all = calloc(n * (size_t)n_made, sizeof(*all));
    if (!all) {
        stk_rule_fail(call->graph, stk_fail_memory(n * (size_t)n_made * sizeof(*all)));
        return false;
    }
    for (int i = 0; i < n_made; i++) {
        out->made[i] = all + (size_t)i * n;
        out->width[i] = width[i];
    }
    return true;
}

void stk_recurrent_end_steps(stk_recurrent_steps *steps, const int *i_output)
{
    for (int i = 0; i < steps->n_made; i++) {
        for (int64_t t = 0; t < steps->size.t; t++)
            steps->made[i][t] = stk_reshape(steps->made[i][t], STK_SHAPE(steps->size.n, 1, steps->width[i]));
        stk_value all = steps->made[i][0];
        if (steps->size.t > 1) all = stk_concat(steps->made[i], (int)steps->size.t, 1);
        stk_compose_set(steps->call, i_output[i], all);
    }
    free(steps->made[0]);
}

int64_t stk_recurrent_step(const stk_recurrent_steps *steps, int64_t i)
{
    bool from_last = (steps->call->attrs->recurrent.reverse != 0) != steps->backward;
    return from_last ? steps->size.t - 1 - i : i;
}

int64_t stk_recurrent_before(const stk_recurrent_steps *steps, int64_t step)
{
    if (!steps->call->attrs->recurrent.reverse) return step - 1;
    return step + 1 < steps->size.t ? step + 1 : -1;
}

stk_value stk_recurrent_pick(stk_value x, int64_t t)
{
    stk_shape shape = stk_value_shape(x);
    return stk_reshape(stk_compose_wide(stk_compose_cut(x, 1, t, 1)), STK_SHAPE(shape.dim[0], shape.dim[2]));
}

stk_value stk_recurrent_gate(const stk_recurrent_steps *steps, stk_value x, int i)
{
    return stk_compose_cut(x, 1, i * steps->size.h, steps->size.h);
}

stk_value stk_recurrent_choose(const stk_recurrent_steps *steps, int64_t t, stk_value a, stk_value b)
{
    if (steps->mask.id < 0) return a;
    if (b.id < 0) b = stk_compose_constant(a, 0);
    return stk_select(stk_compose_cut(steps->mask, 1, t, 1), a, b);
}

stk_value stk_recurrent_from_state(stk_value h, stk_value weight, stk_value bias)
{
    stk_value row = stk_reshape(bias, STK_SHAPE(1, stk_value_shape(bias).dim[0]));
    return h.id < 0 ? row : stk_add(stk_matmul(h, weight, false, true), row);
}

stk_value stk_recurrent_first(stk_value state)
{
    stk_graph *graph = state.graph;
    int32_t source = state.id;
    const stk_node *node = &graph->node[graph->value[source].node];
    while (node->op == STK_OP_broadcast || node->op == STK_OP_reshape || node->op == STK_OP_cast)
        node = &graph->node[graph->value[source = node->in[0]].node];
    if (node->op == STK_OP_constant && node->attrs.constant.value == 0) return stk_rule_none(graph);
    return stk_compose_wide(state);
}

stk_value stk_recurrent_sigmoid_grad(stk_value dy, stk_value y)
{
    return stk_mul(dy, stk_mul(y, stk_sub(stk_compose_constant(y, 1), y)));
}

stk_value stk_recurrent_tanh_grad(stk_value dy, stk_value y)
{
    return stk_mul(dy, stk_sub(stk_compose_constant(y, 1), stk_mul(y, y)));
}
