/* Positions: a learned vector for each place of a sequence. */
#include "nn/layer_list.h"
#include "nn/transformer.h"
#include "stoker/nn/layers.h"

stk_value stk_positions(stk_value x, int64_t rows, const char *name)
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "positions", name)) return stk_value_none(x.graph);
    if (!stk_layer_need_range(&layer, "rows", rows, 1, INT32_MAX)) return stk_value_none(x.graph);
    return stk_add_positions(x, rows, stk_layer_own_name(&layer));
}

/* --- in a recipe --- */

static stk_status build(const stk_yaml_node *s, stk_value *x)
{
    *x = stk_positions(*x, stk_yaml_int(s, "rows", 0), NULL);
    return STK_OK;
}

static const stk_key keys[] = {STK_KEY_COUNT("rows", 2147483647, "The longest sequence."), {.name = NULL}};

const stk_layer_class stk_layer_class_positions = {
    .key = {.name = "positions", .type = STK_KEY_MAP, .keys = keys, .doc = "Adds a learned vector to each place."},
    .build = build,
};
