/* Losses of numbers that are compared one by one. */
#include "nn/loss.h"
#include "stoker/nn/layers.h"

static stk_value scalar(stk_value like, double value)
{
    return stk_graph_constant(like.graph, stk_value_dtype(like), (stk_shape){0}, value);
}

stk_value stk_binary_cross_entropy(stk_value x, stk_value y, double positive_weight)
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "binary_cross_entropy", NULL)) return stk_value_none(x.graph);
    if (!stk_loss_need_pair(&layer, y)) return stk_value_none(x.graph);
    if (positive_weight == 0) positive_weight = 1;
    if (!(positive_weight > 0 && positive_weight < 1e30))
        return stk_layer_fail(&layer, "the positive weight is %g, and must be above 0", positive_weight);
    /* -y w log(s(x)) - (1 - y) log(1 - s(x)), where -log(s(x)) = softplus(-x) and -log(1 - s(x)) = x + softplus(-x) */
    stk_value soft = stk_softplus(stk_neg(x)), rest = stk_mul(stk_sub(scalar(x, 1), y), x);
    if (positive_weight != 1) soft = stk_mul(soft, stk_shift_by(stk_scale_by(y, positive_weight - 1), 1));
    return stk_layer_end(&layer, stk_loss_mean(stk_add(rest, soft)));
}

stk_value stk_mean_absolute_error(stk_value x, stk_value y)
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "mean_absolute_error", NULL)) return stk_value_none(x.graph);
    if (!stk_loss_need_pair(&layer, y)) return stk_value_none(x.graph);
    return stk_layer_end(&layer, stk_loss_mean(stk_abs(stk_sub(x, y))));
}

stk_value stk_huber(stk_value x, stk_value y, double delta)
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "huber", NULL)) return stk_value_none(x.graph);
    if (!stk_loss_need_pair(&layer, y)) return stk_value_none(x.graph);
    if (delta == 0) delta = 1;
    if (!(delta > 0 && delta < 1e30)) return stk_layer_fail(&layer, "delta is %g, and must be above 0", delta);
    stk_value d = stk_abs(stk_sub(x, y)), near = stk_min(d, scalar(d, delta));
    return stk_layer_end(&layer, stk_loss_mean(stk_mul(near, stk_sub(d, stk_scale_by(near, 0.5)))));
}
