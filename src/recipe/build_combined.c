/* A source of several data sets from its keys. See recipe/build.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "recipe/build.h"

static void rename_fields(const stk_yaml_node *names, stk_dataset *dataset)
{
    for (const stk_yaml_node *name = names ? names->child : NULL; name; name = name->next)
        stk_dataset_rename(dataset, name->key, name->text);
}

/* One of the data sets; *out is NULL after an error. */
static stk_status build_set(const stk_yaml_node *set, uint64_t seed, stk_dataset **out)
{
    const stk_yaml_node *source = stk_yaml_get(set, "source")->child;
    stk_recipe_part part = {.node = set};
    stk_dataset *dataset = NULL;
    stk_status status;
    *out = NULL;
    STK_TRY(stk_recipe_take_order(set, &part));
    STK_TRY(stk_build_combined(source, seed, &dataset));
    if (!dataset) STK_TRY(stk_build_source(source, &dataset));
    STK_TRY(stk_build_check(source, dataset));
    rename_fields(stk_yaml_get(set, "rename"), dataset);
    stk_build_class_labels(dataset);
    STK_TRY(stk_build_check(set, dataset));
    STK_TRY(stk_build_stages(stk_yaml_get(set, "stages"), dataset));
    STK_TRY(stk_build_filter(part.filter, dataset));
    /* Not the part's own seed: shuffling twice by one key is no better than once. */
    stk_build_order(&part, seed + 1, dataset);
    STK_TRY(stk_build_check(set, dataset));
    *out = dataset;
    dataset = NULL;
done:
    stk_dataset_free(dataset);
    return status;
}

static stk_dataset *combine(const stk_yaml_node *source, uint64_t seed, stk_dataset *const *sets, const double *weights,
                            int n)
{
    const stk_yaml_node *cycle = stk_yaml_get(source, "cycle");
    if (!strcmp(source->key, "concatenate")) return stk_dataset_concatenate(sets, n);
    if (!strcmp(source->key, "zip")) return stk_dataset_zip(sets, n);
    if (!strcmp(source->key, "mix"))
        return stk_dataset_mix(sets, weights, n, !strcmp(stk_yaml_get(source, "until")->text, "first"), seed);
    return stk_dataset_interleave(sets, n, cycle ? cycle->integer : n, stk_yaml_get(source, "block")->integer);
}

stk_status stk_build_combined(const stk_yaml_node *source, uint64_t seed, stk_dataset **out)
{
    const stk_yaml_node *of = stk_yaml_get(source, "of");
    *out = NULL;
    if (!of) return STK_OK;
    stk_status status = STK_OK;
    int n = 0;
    size_t most = (size_t)of->n_children;
    stk_dataset **sets = calloc(most + 1, sizeof(*sets));
    double *weights = calloc(most + 1, sizeof(*weights));
    if (!sets || !weights) STK_TRY(stk_fail_memory(most * sizeof(*sets)));
    for (const stk_yaml_node *set = of->child; set; set = set->next) {
        weights[n] = stk_yaml_get(set, "weight")->real;
        STK_TRY(build_set(set, seed, &sets[n]));
        n++;
    }
    *out = combine(source, seed, sets, weights, n);
    n = 0;
done:
    while (n > 0)
        stk_dataset_free(sets[--n]);
    free(sets);
    free(weights);
    return status;
}
