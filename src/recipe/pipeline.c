/* The input pipeline of a recipe alone, and whether it is a recipe. See stoker/train/run.h. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/dataset/dataset.h"
#include "recipe/build.h"
#include "stoker/train/run.h"

/* The recipe with its data found, and which part is wanted. */
static stk_status read_recipe(const char *path, const char *const *set, int n_set, const char *part, stk_recipe **out,
                              int *i_part)
{
    static const char *const parts[STK_N_PARTS] = {"train", "valid", "test"};
    stk_status status;
    *out = NULL;
    for (*i_part = 0; *i_part < STK_N_PARTS && strcmp(parts[*i_part], part) != 0;)
        ++*i_part;
    if (*i_part == STK_N_PARTS) return stk_fail(STK_INVALID, "a part is train, valid or test, not '%s'", part);
    STK_RETURN_IF_ERROR(stk_recipe_read(path, set, n_set, out));
    if (!(*out)->part[*i_part].node) STK_TRY(stk_fail(STK_NOT_FOUND, "recipe '%s' has no part '%s'", path, part));
    STK_TRY(stk_recipe_find_data(*out));
done:
    return status;
}

stk_status stk_recipe_dataset(const char *path, const char *const *set, int n_set, const char *part, stk_dataset **out,
                              stk_loader_config *config)
{
    STK_NEED(path);
    STK_NEED(part);
    STK_NEED(out);
    STK_NEED(config);
    stk_recipe *recipe;
    stk_status status;
    int i_part;
    *out = NULL;
    STK_TRY(read_recipe(path, set, n_set, part, &recipe, &i_part));
    STK_TRY(stk_build_dataset(recipe, i_part, out));
    *config = stk_loader_config_default();
    config->n_threads = (int)recipe->max_threads;
    config->seed = recipe->seed;
    config->memory_limit_bytes = stk_build_data_memory(recipe);
done:
    stk_recipe_free(recipe);
    return status;
}

stk_status stk_recipe_source(const char *path, const char *const *set, int n_set, const char *part, stk_dataset **out)
{
    STK_NEED(path);
    STK_NEED(part);
    STK_NEED(out);
    stk_recipe *recipe;
    stk_memory *own = NULL;
    stk_status status;
    int i_part;
    *out = NULL;
    STK_TRY(read_recipe(path, set, n_set, part, &recipe, &i_part));
    const stk_recipe_part *of = &recipe->part[recipe->part[i_part].share > 0 ? STK_PART_TRAIN : i_part];
    STK_TRY(stk_memory_enter_own(stk_build_read_memory(recipe), &own));
    STK_TRY(stk_build_source(of->source, recipe->seed, out));
    (*out)->memory_limit_bytes = stk_build_read_memory(recipe);
    STK_TRY(stk_build_check(of->source, *out));
done:
    stk_dataset_leave_memory(own);
    stk_recipe_free(recipe);
    if (status == STK_OK) return STK_OK;
    stk_dataset_free(*out);
    *out = NULL;
    return status;
}

stk_status stk_recipe_check(const char *path, const char *const *set, int n_set)
{
    stk_recipe *recipe;
    STK_RETURN_IF_ERROR(stk_recipe_read(path, set, n_set, &recipe));
    stk_status status = stk_recipe_want_model(recipe);
    stk_recipe_free(recipe);
    return status;
}
