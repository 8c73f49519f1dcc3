/* Mixup and cutmix from a recipe. See recipe/build.h. */
#include "stoker/data/mixup.h"

#include "recipe/build.h"
#include "tensor/shape.h"

static int64_t get_classes(const stk_yaml_node *node)
{
    const stk_yaml_node *classes = stk_yaml_get(node, "classes");
    return classes ? classes->integer : 0;
}

static int64_t find_n_classes(const stk_recipe *recipe, const stk_dataset *dataset)
{
    const stk_recipe_part *train = &recipe->part[STK_PART_TRAIN];
    int64_t n = get_classes(train->mixup);
    if (n == 0) n = get_classes(train->cutmix);
    if (n == 0) n = stk_dataset_classes(dataset, NULL);
    return n > 0 ? n : get_classes(recipe->model);
}

stk_status stk_build_mixup(const stk_recipe *recipe, int i_part, stk_dataset *dataset)
{
    const stk_recipe_part *train = &recipe->part[STK_PART_TRAIN];
    const stk_yaml_node *node = train->mixup ? train->mixup : train->cutmix;
    stk_tensor_desc label;
    if (!node || stk_dataset_field(dataset, "label", false, &label.dtype, &label.shape) != STK_OK) return STK_OK;
    if (label.dtype == STK_I32 && label.shape.rank == 0) {
        int64_t n = find_n_classes(recipe, dataset);
        if (n < 1)
            return stk_yaml_fail_key(node, "'%s' needs 'classes': this source of data does not tell how many there are",
                                     node->key);
        stk_dataset_apply_to(dataset, "label", stk_one_hot(n));
    }
    if (i_part != STK_PART_TRAIN) return stk_build_check(node, dataset);
    if (train->mixup) stk_dataset_mixup(dataset, stk_yaml_get(train->mixup, "alpha")->real);
    if (train->cutmix) stk_dataset_cutmix(dataset, stk_yaml_get(train->cutmix, "alpha")->real);
    return stk_build_check(node, dataset);
}
