/* Activations that are more than one element-wise operation; fusion makes one kernel of each. */
#include "nn/layer_list.h"
#include "stoker/nn/layers.h"

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

static stk_value number(stk_value like, double value)
{
    return stk_graph_constant(like.graph, stk_value_dtype(like), (stk_shape){0}, value);
}

/* Begins a layer on floats without parameters. */
static bool begin(stk_layer *layer, stk_value x, const char *kind)
{
    return stk_layer_begin(layer, x, kind, NULL) && stk_layer_need_float(layer);
}

stk_value stk_relu6(stk_value x)
{
    stk_layer layer;
    if (!begin(&layer, x, "relu6")) return stk_value_none(x.graph);
    return stk_layer_end(&layer, stk_min(stk_relu(x), number(x, 6)));
}

stk_value stk_leaky_relu(stk_value x, double slope)
{
    stk_layer layer;
    if (!begin(&layer, x, "leaky_relu")) return stk_value_none(x.graph);
    if (!(slope >= 0 && slope < 1)) return stk_layer_fail(&layer, "the slope is %g, and must be in [0,1)", slope);
    return stk_layer_end(&layer, stk_select(stk_greater(x, number(x, 0)), x, stk_scale_by(x, slope)));
}

stk_value stk_elu(stk_value x)
{
    stk_layer layer;
    if (!begin(&layer, x, "elu")) return stk_value_none(x.graph);
    /* A select and no minimum: at 0 the whole gradient goes on, as PyTorch has it. */
    stk_value above = stk_greater(x, number(x, 0)), below = stk_select(above, number(x, 0), x);
    return stk_layer_end(&layer, stk_select(above, x, stk_expm1(below)));
}

stk_value stk_hard_sigmoid(stk_value x)
{
    stk_layer layer;
    if (!begin(&layer, x, "hard_sigmoid")) return stk_value_none(x.graph);
    return stk_layer_end(&layer, stk_scale_by(stk_min(stk_relu(stk_shift_by(x, 3)), number(x, 6)), 1.0 / 6));
}

stk_value stk_hard_swish(stk_value x)
{
    stk_layer layer;
    if (!begin(&layer, x, "hard_swish")) return stk_value_none(x.graph);
    return stk_layer_end(&layer, stk_mul(x, stk_hard_sigmoid(x)));
}

stk_value stk_softplus(stk_value x)
{
    stk_layer layer;
    if (!begin(&layer, x, "softplus")) return stk_value_none(x.graph);
    /* max(x, 0) + log(1 + exp(-|x|)): no exponent above 0, and the sigmoid for a gradient, at 0 as well. */
    stk_value minus_size = stk_select(stk_greater(x, number(x, 0)), stk_neg(x), x);
    return stk_layer_end(&layer, stk_add(stk_relu(x), stk_log1p(stk_exp(minus_size))));
}

/* --- in a recipe --- */

#define ACTIVATION(kind, text)                                                                                         \
    const stk_layer_class stk_layer_class_##kind = {                                                                   \
        .key = {.name = #kind, .type = STK_KEY_NONE, .doc = text},                                                     \
        .apply = stk_##kind,                                                                                           \
    };
ACTIVATION(relu, "max(x, 0).")
ACTIVATION(gelu, "With the exact erf.")
ACTIVATION(silu, "x * sigmoid(x).")
ACTIVATION(tanh, "Hyperbolic tangent.")
ACTIVATION(sigmoid, "1 / (1 + exp(-x)).")
ACTIVATION(softmax, "Shares that add up to 1; not before cross_entropy, which has its own.")
ACTIVATION(relu6, "min(max(x, 0), 6).")
ACTIVATION(elu, "exp(x) - 1 below 0.")
ACTIVATION(hard_sigmoid, "relu6(x + 3) / 6.")
ACTIVATION(hard_swish, "x * hard_sigmoid(x).")
ACTIVATION(softplus, "log(1 + exp(x)).")

static stk_status build_leaky_relu(const stk_yaml_node *s, stk_value *x)
{
    *x = stk_leaky_relu(*x, stk_yaml_real(s, "slope", 0));
    return STK_OK;
}

static const stk_key leaky_keys[] = {
    {.name = "slope", .type = STK_KEY_REAL, .default_value = "0.01", .least = 0, .most = 0.99, .doc = "Below 0."},
    {.name = NULL}};

const stk_layer_class stk_layer_class_leaky_relu = {
    .key = {.name = "leaky_relu", .type = STK_KEY_MAP, .keys = leaky_keys, .doc = "A slope below 0."},
    .build = build_leaky_relu,
};
