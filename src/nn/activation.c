/* Activations that are more than one element-wise operation; fusion makes one kernel of each. */
#include "nn/layer.h"

stk_value stk_gelu(stk_value x)
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "gelu", NULL)) return stk_value_none(x.graph);
    stk_value share = stk_scale_by(stk_shift_by(stk_erf(stk_scale_by(x, 0.70710678118654752440)), 1), 0.5);
    return stk_layer_end(&layer, stk_mul(x, share));
}

stk_value stk_gelu_tanh(stk_value x)
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "gelu", NULL)) return stk_value_none(x.graph);
    /* sqrt(2 / pi) * (x + 0.044715 x^3), factored so that x^3 is not a power. */
    stk_value inner =
        stk_shift_by(stk_scale_by(stk_square(x), 0.044715 * 0.79788456080286535588), 0.79788456080286535588);
    stk_value share = stk_scale_by(stk_shift_by(stk_tanh(stk_mul(x, inner)), 1), 0.5);
    return stk_layer_end(&layer, stk_mul(x, share));
}

stk_value stk_silu(stk_value x)
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "silu", NULL)) return stk_value_none(x.graph);
    return stk_layer_end(&layer, stk_mul(x, stk_sigmoid(x)));
}
