/* The multi-layer perceptron. */
#include "nn/layer.h"

stk_value stk_mlp(stk_value x, const int64_t *hidden, int n_hidden, double dropout, int64_t classes)
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "mlp", NULL)) return stk_value_none(x.graph);
    if (!stk_layer_need_range(&layer, "the number of hidden layers", n_hidden, 0, INT32_MAX))
        return stk_value_none(x.graph);
    if (!hidden && n_hidden) return stk_layer_fail(&layer, "the hidden widths are missing");
    x = stk_flatten(x);
    for (int i = 0; i < n_hidden; i++)
        x = stk_dropout(stk_relu(stk_dense(x, hidden[i])), dropout);
    return stk_dense(x, classes);
}
