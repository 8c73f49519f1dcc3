/* See nn/model_class.h. */
#include "nn/model_class.h"

const stk_key stk_width_key = {.name = "width", .type = STK_KEY_INT, .least = 1, .most = 1e6};

stk_status stk_widths_of(const stk_yaml_node *settings, const char *key, int64_t widths[STK_MOST_WIDTHS], int *n)
{
    const stk_yaml_node *list = stk_yaml_get(settings, key);
    *n = 0;
    for (const stk_yaml_node *width = list ? list->child : NULL; width; width = width->next) {
        if (*n == STK_MOST_WIDTHS) return stk_yaml_fail(list, "more than %d widths", STK_MOST_WIDTHS);
        widths[(*n)++] = width->integer;
    }
    return STK_OK;
}

stk_status stk_some_widths_of(const stk_yaml_node *settings, const char *key, int64_t widths[STK_MOST_WIDTHS], int *n)
{
    STK_RETURN_IF_ERROR(stk_widths_of(settings, key, widths, n));
    return *n > 0 ? STK_OK : stk_yaml_fail(stk_yaml_get(settings, key), "'%s' is empty", key);
}

stk_resnet_stem stk_stem_of(const stk_yaml_node *settings)
{
    return stk_yaml_is(settings, "stem", "cifar") ? STK_STEM_CIFAR : STK_STEM_IMAGENET;
}

const stk_value *stk_pad_mask_of(const stk_yaml_node *settings, stk_value tokens, stk_value *mask)
{
    const stk_yaml_node *pad = stk_yaml_get(settings, "pad");
    if (!pad) return NULL;
    stk_value none = stk_graph_constant(tokens.graph, STK_I32, (stk_shape){0}, (double)pad->integer);
    *mask = stk_not_equal(tokens, none);
    return mask;
}
