/* Batches from a recipe: plain ones, or padded. */
#include <stdlib.h>

#include "base/error.h"
#include "stoker/ragged.h"
#include "train/build.h"

static stk_padding read_padding(const stk_yaml_node *pad)
{
    const stk_yaml_node *length = stk_yaml_get(pad, "length"), *most = stk_yaml_get(pad, "max_length");
    return (stk_padding){.length = length ? length->integer : 0,
                         .max_length = most ? most->integer : 0,
                         .value = stk_yaml_get(pad, "value")->real};
}

static stk_status pad_batches(const stk_yaml_node *pad, int64_t n, bool drop_remainder, stk_dataset *dataset)
{
    const stk_yaml_node *fields = stk_yaml_get(pad, "fields");
    int n_fields = fields ? fields->n_children : 1, i = 0;
    stk_padding *paddings = calloc((size_t)n_fields + 1, sizeof(*paddings));
    if (!paddings) return stk_fail_memory((size_t)n_fields * sizeof(*paddings));
    paddings[0] = read_padding(pad);
    for (const stk_yaml_node *field = fields ? fields->child : NULL; field; field = field->next) {
        paddings[i] = paddings[0];
        paddings[i++].field = field->text;
    }
    stk_dataset_padded_batch(dataset, n, drop_remainder, paddings, n_fields);
    free(paddings);
    return stk_build_check(pad, dataset);
}

stk_status stk_build_batches(const stk_recipe *recipe, int64_t n, bool drop_remainder, stk_dataset *dataset)
{
    if (recipe->pad) return pad_batches(recipe->pad, n, drop_remainder, dataset);
    stk_dataset_batch(dataset, n, drop_remainder);
    return STK_OK;
}
