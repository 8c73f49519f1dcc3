/* See data/stage/keys.h. */
#include "data/stage/keys.h"

const stk_key stk_stage_number_key = {.name = "number", .type = STK_KEY_REAL};

const char *const stk_stage_filter_words[] = {
    [STK_FILTER_BILINEAR] = "bilinear", [STK_FILTER_BICUBIC] = "bicubic", [STK_FILTER_NEAREST] = "nearest", NULL};

stk_filter stk_stage_read_filter(const stk_yaml_node *settings)
{
    return (stk_filter)stk_yaml_word(settings, "filter", stk_stage_filter_words);
}

stk_status stk_stage_read_sides(const stk_yaml_node *settings, int64_t *height, int64_t *width)
{
    const stk_yaml_node *size = stk_yaml_get(settings, "size"), *h = stk_yaml_get(settings, "height"),
                        *w = stk_yaml_get(settings, "width");
    if ((size != NULL) == (h || w) || (h != NULL) != (w != NULL))
        return stk_yaml_fail(settings, "'%s' needs either 'size', or 'height' and 'width'", settings->key);
    *height = size ? size->integer : h->integer;
    *width = size ? size->integer : w->integer;
    return STK_OK;
}
