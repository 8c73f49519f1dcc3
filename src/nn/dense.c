/* Dense layers: y = x weight^T + bias over the last axis. */
#include "nn/layer_list.h"

stk_value stk_dense_with(stk_value x, const stk_dense_config *config)
{
    stk_dense_config c = config ? *config : (stk_dense_config){0};
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "dense", c.name)) return stk_value_none(x.graph);
    if (!stk_layer_need_range(&layer, "units", c.units, 1, INT32_MAX) || !stk_layer_need_float(&layer))
        return stk_value_none(x.graph);
    int rank = layer.shape.rank;
    int64_t n_in = rank ? layer.shape.dim[rank - 1] : 0;
    if (rank < 2 || n_in < 1) {
        char text[STK_SHAPE_TEXT_BYTES];
        return stk_layer_fail(&layer, "its input is %s, and must be [N,...,C] with a known C",
                              stk_shape_text(layer.shape, text));
    }
    double fan_in = (double)n_in, fan_out = (double)c.units;
    stk_init first = stk_initializer_resolve(c.init, fan_in, fan_out), bias = stk_initializer_bias(c.init, fan_in);
    if (c.deviation > 0) {
        first = (stk_init){STK_INIT_NORMAL, c.deviation};
        bias = (stk_init){STK_INIT_CONSTANT, 0};
    }
    stk_shape shape = c.in_out ? STK_SHAPE(n_in, c.units) : STK_SHAPE(c.units, n_in);
    stk_value y = stk_matmul(x, stk_layer_variable(&layer, "weight", shape, first, true), false, !c.in_out);
    if (!c.no_bias) y = stk_add(y, stk_layer_variable(&layer, "bias", STK_SHAPE(c.units), bias, true));
    return stk_layer_end(&layer, y);
}

stk_value stk_dense(stk_value x, int64_t units)
{
    return stk_dense_with(x, &(stk_dense_config){.units = units});
}

/* --- in a recipe --- */

static stk_status build(const stk_yaml_node *s, stk_value *x)
{
    stk_dense_config config = {
        .units = stk_yaml_int(s, "units", 0), .no_bias = !stk_yaml_bool(s, "bias"), .init = stk_initializer_of(s)};
    *x = stk_dense_with(*x, &config);
    return STK_OK;
}

static const stk_key keys[] = {STK_KEY_COUNT("units", 1e8, "The width of the output."),
                               STK_KEY_BIAS,
                               STK_KEY_INITIALIZER,
                               STK_KEY_DTYPE,
                               {.name = NULL}};

const stk_layer_class stk_layer_class_dense = {
    .key = {.name = "dense", .type = STK_KEY_MAP, .keys = keys, .doc = "Every input to every output."},
    .build = build,
};
