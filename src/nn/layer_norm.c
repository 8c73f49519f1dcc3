/* Layer normalisation: Ba et al. 2016. */
#include "nn/layer_list.h"

stk_value stk_layer_norm_with(stk_value x, const stk_layer_norm_config *config)
{
    stk_layer_norm_config c = config ? *config : (stk_layer_norm_config){0};
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "layer_norm", c.name)) return stk_value_none(x.graph);
    if (!stk_layer_need_float(&layer)) return stk_value_none(x.graph);
    if (c.eps == 0) c.eps = c.like_keras ? 1e-3 : 1e-5;
    if (!(c.eps > 0)) return stk_layer_fail(&layer, "eps is %g, and must be more than 0", c.eps);
    int rank = layer.shape.rank;
    int64_t n = rank ? layer.shape.dim[rank - 1] : 0;
    if (rank < 2 || n < 1) {
        char text[STK_SHAPE_TEXT_BYTES];
        return stk_layer_fail(&layer, "its input is %s, and must be [N,...,C] with a known C",
                              stk_shape_text(layer.shape, text));
    }
    stk_value scale = stk_layer_variable(&layer, "weight", STK_SHAPE(n), (stk_init){STK_INIT_CONSTANT, 1}, true);
    stk_value bias = stk_layer_variable(&layer, "bias", STK_SHAPE(n), (stk_init){STK_INIT_CONSTANT, 0}, true);
    return stk_layer_end(&layer, stk_layer_norm_raw(x, scale, bias, c.eps));
}

stk_value stk_layer_norm(stk_value x)
{
    return stk_layer_norm_with(x, NULL);
}

/* --- in a recipe --- */

static stk_status build(const stk_yaml_node *s, stk_value *x)
{
    *x = stk_layer_norm_with(*x, &(stk_layer_norm_config){.eps = stk_yaml_real(s, "eps", 0)});
    return STK_OK;
}

static const stk_key keys[] = {STK_KEY_EPS, STK_KEY_DTYPE, {.name = NULL}};

const stk_layer_class stk_layer_class_layer_norm = {
    .key = {.name = "layer_norm", .type = STK_KEY_MAP, .keys = keys, .doc = "Over channels; Ba et al. 2016."},
    .build = build,
};
