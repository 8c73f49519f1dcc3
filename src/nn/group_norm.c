/* Group normalisation: Wu & He 2018. */
#include "nn/layer_list.h"
#include "stoker/nn/layers.h"

stk_value stk_group_norm_with(stk_value x, const stk_group_norm_config *config)
{
    stk_group_norm_config c = config ? *config : (stk_group_norm_config){0};
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "group_norm", c.name)) return stk_value_none(x.graph);
    if (!stk_layer_need_float(&layer)) return stk_value_none(x.graph);
    if (c.eps == 0) c.eps = 1e-5;
    if (!(c.eps > 0)) return stk_layer_fail(&layer, "eps is %g, and must be more than 0", c.eps);
    int rank = layer.shape.rank;
    int64_t n = rank ? layer.shape.dim[rank - 1] : 0;
    if (rank < 2 || n < 1) {
        char text[STK_SHAPE_TEXT_BYTES];
        return stk_layer_fail(&layer, "its input is %s, and must be [N,...,C] with a known C",
                              stk_shape_text(layer.shape, text));
    }
    if (!stk_layer_need_range(&layer, "the number of groups", c.groups, 1, n)) return stk_value_none(x.graph);
    if (n % c.groups)
        return stk_layer_fail(&layer, "%lld channels do not divide into %lld groups", (long long)n,
                              (long long)c.groups);
    stk_value scale = stk_layer_variable(&layer, "weight", STK_SHAPE(n), (stk_init){STK_INIT_CONSTANT, 1}, true);
    stk_value bias = stk_layer_variable(&layer, "bias", STK_SHAPE(n), (stk_init){STK_INIT_CONSTANT, 0}, true);
    return stk_layer_end(&layer, stk_group_norm_raw(x, scale, bias, c.groups, c.eps));
}

stk_value stk_group_norm(stk_value x, int64_t groups)
{
    return stk_group_norm_with(x, &(stk_group_norm_config){.groups = groups});
}

/* --- in a recipe --- */

static stk_status build(const stk_yaml_node *s, stk_value *x)
{
    stk_group_norm_config config = {.groups = stk_yaml_int(s, "groups", 1), .eps = stk_yaml_real(s, "eps", 0)};
    *x = stk_group_norm_with(*x, &config);
    return STK_OK;
}

static const stk_key keys[] = {
    STK_KEY_COUNT("groups", 1e6, "Groups of neighbouring channels."), STK_KEY_EPS, STK_KEY_DTYPE, {.name = NULL}};

const stk_layer_class stk_layer_class_group_norm = {
    .key = {.name = "group_norm", .type = STK_KEY_MAP, .keys = keys, .doc = "Over groups; Wu & He 2018."},
    .build = build,
};
