/* The layer scale of a recipe. */
#include "nn/layer_list.h"

static stk_status build(const stk_yaml_node *s, stk_value *x)
{
    *x = stk_scale_by(*x, stk_yaml_real(s, "by", 0));
    return STK_OK;
}

static const stk_key keys[] = {
    {.name = "by", .type = STK_KEY_REAL, .required = true, .doc = "The factor."}, STK_KEY_DTYPE, {.name = NULL}};

const stk_layer_class stk_layer_class_scale = {
    .key = {.name = "scale", .type = STK_KEY_MAP, .keys = keys, .doc = "Times a number."},
    .build = build,
};
