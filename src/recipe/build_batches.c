/* Batches from a recipe: plain ones, padded ones, or those of samples of like length. */
#include <stdlib.h>

#include "base/error.h"
#include "recipe/build.h"
#include "stoker/data/ragged.h"

static stk_padding read_padding(const stk_yaml_node *pad)
{
    const stk_yaml_node *length = stk_yaml_get(pad, "length"), *most = stk_yaml_get(pad, "max_length");
    return (stk_padding){.length = length ? length->integer : 0,
                         .max_length = most ? most->integer : 0,
                         .value = stk_yaml_get(pad, "value")->real};
}

/* The paddings that a recipe's settings are; *out is malloc'ed. */
static stk_status read_paddings(const stk_yaml_node *pad, stk_padding **out, int *n)
{
    const stk_yaml_node *fields = stk_yaml_get(pad, "fields");
    int i = 0;
    *n = fields ? fields->n_children : 1;
    *out = calloc((size_t)*n + 1, sizeof(**out));
    if (!*out) return stk_fail_memory((size_t)*n * sizeof(**out));
    (*out)[0] = read_padding(pad);
    for (const stk_yaml_node *field = fields ? fields->child : NULL; field; field = field->next) {
        (*out)[i] = (*out)[0];
        (*out)[i++].field = field->text;
    }
    return STK_OK;
}

/* Numbers of a list, or as many times `default_value` where there is none; malloc'ed. */
static int64_t *read_numbers(const stk_yaml_node *list, int64_t default_value, int n)
{
    int64_t *numbers = calloc((size_t)n + 1, sizeof(*numbers));
    const stk_yaml_node *node = list ? list->child : NULL;
    for (int i = 0; numbers && i < n; i++) {
        numbers[i] = node ? node->integer : default_value;
        if (node) node = node->next;
    }
    return numbers;
}

static stk_status read_buckets(const stk_yaml_node *pad, int64_t batch, bool drop_remainder, stk_buckets *out)
{
    const stk_yaml_node *tokens = stk_yaml_get(pad, "tokens"), *by = stk_yaml_get(pad, "by");
    const stk_yaml_node *boundaries = stk_yaml_get(pad, "boundaries"), *sizes = stk_yaml_get(pad, "batches");
    *out = (stk_buckets){.field = by ? by->text : NULL,
                         .tokens = tokens ? tokens->integer : 0,
                         .pad_to_boundary = stk_yaml_get(pad, "to_boundary")->truth,
                         .drop_remainder = drop_remainder};
    if (tokens && (boundaries || sizes))
        return stk_yaml_fail_key(boundaries ? boundaries : sizes, "'tokens' sets the boundaries and sizes of batches");
    if (!boundaries) return STK_OK;
    out->n_boundaries = boundaries->n_children;
    if (sizes && sizes->n_children != out->n_boundaries + 1)
        return stk_yaml_fail(sizes, "%d boundaries make %d buckets, but 'batches' has %d sizes", out->n_boundaries,
                             out->n_boundaries + 1, sizes->n_children);
    out->boundaries = read_numbers(boundaries, 0, out->n_boundaries);
    out->batch_sizes = read_numbers(sizes, batch, out->n_boundaries + 1);
    return out->boundaries && out->batch_sizes ? STK_OK : stk_fail_memory((size_t)out->n_boundaries * sizeof(int64_t));
}

static stk_status pad_batches(const stk_yaml_node *pad, const stk_recipe_part *part, int64_t n, stk_dataset *dataset)
{
    stk_padding *paddings = NULL;
    stk_buckets buckets = {0};
    int n_paddings;
    /* Batches of buckets differ in size as it is, so only those who ask for it lose the rest of each. */
    bool drops = part->drop_remainder && stk_yaml_get(part->node, "remainder");
    stk_status status;
    STK_TRY(read_paddings(pad, &paddings, &n_paddings));
    STK_TRY(read_buckets(pad, n, drops, &buckets));
    if (buckets.tokens || buckets.boundaries)
        stk_dataset_bucket_batch(dataset, &buckets, paddings, n_paddings);
    else
        stk_dataset_padded_batch(dataset, n, part->drop_remainder, paddings, n_paddings);
    STK_TRY(stk_build_check(pad, dataset));
done:
    free(paddings);
    free((void *)buckets.boundaries);
    free((void *)buckets.batch_sizes);
    return status;
}

stk_status stk_build_batches(const stk_recipe *recipe, const stk_recipe_part *part, int64_t n, stk_dataset *dataset)
{
    if (recipe->pad) return pad_batches(recipe->pad, part, n, dataset);
    stk_dataset_batch(dataset, n, part->drop_remainder);
    return STK_OK;
}
