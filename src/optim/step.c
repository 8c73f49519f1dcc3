/* What optimisers share. See optim/step.h. */
#include "optim/step.h"

#include "base/text.h"

stk_value stk_optim_state(stk_value param, const char *part)
{
    stk_graph *graph = param.graph;
    const stk_node *node = stk_value_node(param);
    stk_value state = stk_value_none(graph);
    stk_text name = {0};
    if (!node) return state;
    stk_text_add(&name, "%s.%s", node->name, part);
    if (stk_graph_keep_error(graph, stk_text_status(&name)) == STK_OK)
        state = stk_graph_variable(graph, stk_text_get(&name), stk_value_dtype(param), stk_value_shape(param),
                                   (stk_init){STK_INIT_CONSTANT, 0}, false);
    stk_text_free(&name);
    return state;
}

void stk_optim_update(stk_op op, const stk_attrs *attrs, const stk_value *in, int n_in, int n_state)
{
    stk_value y = stk_graph_add(in[0].graph, op, attrs, in, n_in);
    for (int i = 0; i <= n_state; i++)
        stk_graph_update(in[0].graph, in[i], stk_value_sibling(y, i));
}

stk_value stk_optim_decayed_grad(const stk_optim_step *s)
{
    return s->weight_decay == 0 ? s->grad : stk_add(s->grad, stk_scale_by(s->param, s->weight_decay));
}

stk_value stk_optim_norm(stk_value x)
{
    stk_value squares = stk_square(x);
    return stk_sqrt(stk_value_shape(squares).rank ? stk_reduce_sum(squares, 0) : squares);
}

stk_value stk_optim_ratio(stk_value a, stk_value b)
{
    stk_value zero = stk_scale_by(a, 0), one = stk_shift_by(zero, 1);
    stk_value share = stk_select(stk_greater(b, zero), stk_div(a, b), one);
    return stk_select(stk_greater(a, zero), share, one);
}
