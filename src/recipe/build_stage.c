/* Stages from a recipe. See recipe/build.h. */
#include "data/stage/stage_list.h"
#include "recipe/build.h"

stk_status stk_build_stage(const stk_yaml_node *stage, stk_stage **out)
{
    const stk_yaml_node *settings = stage->child;
    const stk_stage_class *class = stk_stage_find(settings->key);
    *out = NULL;
    if (!class || !class->build) return stk_yaml_fail(settings, "stage '%s' cannot be built", settings->key);
    return class->build(settings, out);
}
