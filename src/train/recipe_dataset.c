/* The input pipeline of a recipe alone. See stoker/run.h. */
#include <string.h>

#include "base/error.h"
#include "stoker/run.h"
#include "train/build.h"

stk_status stk_recipe_dataset(const char *path, const char *const *set, int n_set, const char *part, stk_dataset **out,
                              stk_loader_config *config)
{
    static const char *const parts[STK_N_PARTS] = {"train", "valid", "test"};
    stk_recipe *recipe;
    stk_status status;
    int i_part = 0;
    *out = NULL;
    while (i_part < STK_N_PARTS && strcmp(parts[i_part], part) != 0)
        i_part++;
    if (i_part == STK_N_PARTS) return stk_fail(STK_INVALID, "a part is train, valid or test, not '%s'", part);
    STK_RETURN_IF_ERROR(stk_recipe_read(path, set, n_set, &recipe));
    if (!recipe->part[i_part].node) STK_TRY(stk_fail(STK_NOT_FOUND, "recipe '%s' has no part '%s'", path, part));
    STK_TRY(stk_recipe_find_data(recipe));
    STK_TRY(stk_build_dataset(recipe, i_part, out));
    *config = stk_loader_config_default();
    config->n_threads = (int)recipe->max_threads;
    config->seed = recipe->seed;
    config->memory_limit_bytes = stk_build_data_memory(recipe);
done:
    stk_recipe_free(recipe);
    return status;
}
