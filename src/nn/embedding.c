/* Embeddings: a vector for each number. */
#include "nn/layer_list.h"

stk_value stk_embedding_with(stk_value ids, const stk_embedding_config *config)
{
    stk_embedding_config c = config ? *config : (stk_embedding_config){0};
    stk_layer layer;
    if (!stk_layer_begin(&layer, ids, "embedding", c.name)) return stk_value_none(ids.graph);
    if (!stk_layer_need_range(&layer, "rows", c.rows, 1, INT32_MAX) ||
        !stk_layer_need_range(&layer, "width", c.width, 1, INT32_MAX))
        return stk_value_none(ids.graph);
    if (!(c.deviation >= 0)) return stk_layer_fail(&layer, "the deviation is %g, and must be 0 or more", c.deviation);
    if (stk_value_dtype(ids) != STK_I32 || layer.shape.rank < 1 || layer.shape.rank >= STK_MAX_RANK) {
        char text[STK_SHAPE_TEXT_BYTES];
        return stk_layer_fail(&layer, "its input is %s, and must be numbers i32[N,...] of fewer than %d dimensions",
                              stk_desc_text(stk_desc_make(stk_value_dtype(ids), layer.shape), text), STK_MAX_RANK);
    }
    stk_init init = {STK_INIT_NORMAL, c.deviation == 0 ? 1 : c.deviation};
    if (c.like_keras) init = (stk_init){STK_INIT_UNIFORM, 0.05};
    stk_value weight = stk_layer_variable(&layer, "weight", STK_SHAPE(c.rows, c.width), init, true);
    return stk_layer_end(&layer, stk_embedding_raw(weight, ids));
}

stk_value stk_embedding(stk_value ids, int64_t rows, int64_t width)
{
    return stk_embedding_with(ids, &(stk_embedding_config){.rows = rows, .width = width});
}

/* --- in a recipe --- */

/* Whole numbers of other types as i32. */
static stk_status build(const stk_yaml_node *s, stk_value *x)
{
    stk_dtype dtype = stk_value_dtype(*x);
    if (dtype != STK_I32 && !stk_dtype_is_float(dtype)) *x = stk_cast_to(*x, STK_I32);
    *x = stk_embedding(*x, stk_yaml_int(s, "rows", 0), stk_yaml_int(s, "width", 0));
    return STK_OK;
}

static const stk_key keys[] = {STK_KEY_COUNT("rows", 2147483647, "Numbers that there are, from 0."),
                               STK_KEY_COUNT("width", 1e6, "Numbers that each becomes."),
                               {.name = NULL}};

const stk_layer_class stk_layer_class_embedding = {
    .key = {.name = "embedding", .type = STK_KEY_MAP, .keys = keys, .doc = "A vector for each whole number."},
    .build = build,
};
