/* Data sets from a recipe. See recipe/build.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/dataset/dataset.h"
#include "recipe/build.h"
#include "recipe/data_record.h"
#include "recipe/keys.h"
#include "stoker/data/cache.h"
#include "stoker/data/fields.h"
#include "stoker/data/index.h"
#include "stoker/data/masked.h"
#include "stoker/data/tokenizer.h"
#include "tensor/shape.h"

stk_status stk_build_fail(const stk_yaml_node *node, stk_status status)
{
    return stk_yaml_locate(node, status);
}

stk_status stk_build_check(const stk_yaml_node *node, const stk_dataset *dataset)
{
    stk_status status = stk_dataset_status(dataset);
    return status == STK_OK ? STK_OK : stk_build_fail(node, status);
}

const stk_yaml_node *stk_build_stages_of(const stk_recipe *recipe, int i_part)
{
    const stk_recipe_part *part = recipe->part;
    if (part[i_part].stages || i_part != STK_PART_VALID) return part[i_part].stages;
    /* Validation is like the test: without what is random in training. */
    if (part[STK_PART_TEST].node) return part[STK_PART_TEST].stages;
    return part[STK_PART_TRAIN].stages;
}

static bool holds_others(const stk_yaml_node *stage)
{
    return !strcmp(stage->child->key, stk_stage_with.name);
}

/* Stages of one field, or of several with the same draws. */
static stk_status build_with(const stk_yaml_node *with, stk_dataset *dataset)
{
    const char **fields;
    int n, n_images = (int)stk_yaml_get(with, "images")->integer;
    stk_status status = STK_OK;
    STK_RETURN_IF_ERROR(stk_yaml_texts(stk_yaml_get(with, "fields"), &fields, &n));
    if (n == 0) STK_TRY(stk_yaml_fail(with, "'fields' is empty"));
    for (const stk_yaml_node *node = stk_yaml_get(with, "stages")->child; node; node = node->next) {
        stk_stage *stage;
        if (holds_others(node))
            STK_TRY(stk_yaml_fail(node, "'%s' cannot stand inside of '%s'", stk_stage_with.name, stk_stage_with.name));
        STK_TRY(stk_build_stage(node, &stage));
        if (n == 1)
            stk_dataset_apply_to(dataset, fields[0], stage);
        else
            stk_dataset_apply_together(dataset, fields, n_images < n ? n_images : n, n_images < n ? n - n_images : 0,
                                       stage);
        STK_TRY(stk_build_check(node, dataset));
    }
done:
    free(fields);
    return status;
}

stk_status stk_build_stages(const stk_yaml_node *stages, stk_dataset *dataset)
{
    for (const stk_yaml_node *node = stages ? stages->child : NULL; node; node = node->next) {
        stk_stage *stage;
        if (holds_others(node)) {
            STK_RETURN_IF_ERROR(build_with(node->child, dataset));
            continue;
        }
        STK_RETURN_IF_ERROR(stk_build_stage(node, &stage));
        stk_dataset_apply_to(dataset, NULL, stage);
        STK_RETURN_IF_ERROR(stk_build_check(node, dataset));
    }
    return STK_OK;
}

void stk_build_order(const stk_recipe_part *part, uint64_t seed, stk_dataset *dataset)
{
    /* By file records are drawn, as a split draws them; by data samples, where the others are placed. */
    bool by_data = part->shard_policy == STK_SHARD_DATA;
    if (part->n_shards > 1 && !by_data)
        stk_dataset_shard_by(dataset, part->shard_policy, part->n_shards, part->i_shard);
    if (part->skip > 0) stk_dataset_skip(dataset, part->skip);
    if (part->take >= 0) stk_dataset_take(dataset, part->take);
    if (part->n_shards > 1 && by_data) stk_dataset_shard(dataset, part->n_shards, part->i_shard);
    stk_build_regroup(part, dataset);
    if (part->shuffle)
        stk_dataset_shuffle_with(dataset,
                                 (stk_shuffle){.seed = seed, .window = part->window, .once = part->shuffle_once});
    if (part->repeat > 1) stk_dataset_repeat(dataset, part->repeat);
}

static stk_status apply_order(const stk_recipe *recipe, int i_part, stk_dataset *dataset)
{
    const stk_recipe_part *part = &recipe->part[i_part];
    double share = recipe->part[STK_PART_VALID].share;
    /* One seed for both sides of the cut, so that they are disjoint. */
    if (share > 0 && i_part == STK_PART_TRAIN) stk_dataset_split(dataset, share, true, recipe->seed);
    if (share > 0 && i_part == STK_PART_VALID) stk_dataset_split(dataset, share, false, recipe->seed);
    stk_dataset_on_error_with(dataset, part->on_error);
    STK_RETURN_IF_ERROR(stk_build_check(part->node, dataset));
    STK_RETURN_IF_ERROR(stk_build_filter(part->filter, dataset));
    /* A part cut from train is made of what train is made of. */
    if (share > 0 && i_part == STK_PART_VALID)
        STK_RETURN_IF_ERROR(stk_build_filter(recipe->part[STK_PART_TRAIN].filter, dataset));
    stk_build_order(part, recipe->seed, dataset);
    return STK_OK;
}

stk_status stk_build_masked(const stk_recipe *recipe, stk_dataset *dataset)
{
    const stk_yaml_node *masked = recipe->part[STK_PART_TRAIN].masked;
    stk_tokenizer *tokenizer;
    if (!masked) return STK_OK;
    const stk_yaml_node *path = stk_yaml_get(masked, "tokenizer");
    stk_status status = stk_tokenizer_open(path->text, NULL, &tokenizer);
    if (status != STK_OK) return stk_build_fail(path, status);
    stk_dataset_mask_tokens(dataset, tokenizer, stk_yaml_get(masked, "share")->real);
    stk_tokenizer_free(tokenizer);
    return stk_build_check(path, dataset);
}

static stk_status apply_index(const stk_recipe_part *part, stk_dataset *dataset)
{
    if (!part->index) return STK_OK;
    if (!strcmp(part->index->text, "auto"))
        stk_dataset_index_auto(dataset);
    else
        stk_dataset_index(dataset, strcmp(part->index->text, "none") ? part->index->text : NULL);
    return stk_build_check(part->index, dataset);
}

static void apply_cache(const stk_yaml_node *node, stk_dataset *dataset)
{
    static const char *const words[] = {"none", "memory", "disk", "auto"};
    const stk_yaml_node *in = stk_yaml_get(node, "in"), *path = stk_yaml_get(node, "path");
    for (int kind = 0; in && kind < 4; kind++)
        if (!strcmp(in->text, words[kind])) stk_dataset_cache(dataset, (stk_cache_kind)kind, path ? path->text : NULL);
}

/* Of data that are not here: nothing of them is left out or put in another order. */
static stk_status build_blank(const stk_recipe *recipe, int i_part, stk_dataset **out)
{
    bool is_staged;
    stk_status status;
    *out = NULL;
    STK_TRY(stk_data_record_open(recipe->record, i_part, out, &is_staged));
    if (!is_staged) {
        stk_build_class_labels(*out);
        STK_TRY(stk_build_stages(stk_build_stages_of(recipe, i_part), *out));
        STK_TRY(stk_build_mixup(recipe, i_part, *out));
    }
    stk_dataset_batch(*out, 1, false);
    STK_TRY(stk_build_check(recipe->part[i_part].node, *out));
    return STK_OK;
done:
    stk_dataset_free(*out);
    *out = NULL;
    return status;
}

static stk_status build_part(const stk_recipe *recipe, int i_part, stk_dataset **out)
{
    const stk_recipe_part *part = &recipe->part[i_part];
    const stk_recipe_part *source = part->share > 0 ? &recipe->part[STK_PART_TRAIN] : part;
    stk_status status;
    *out = NULL;
    if (!part->node) return STK_OK;
    if (recipe->record) return build_blank(recipe, i_part, out);
    stk_dataset *dataset = NULL;
    STK_TRY(stk_build_source(source->source, recipe->seed, &dataset));
    STK_TRY(apply_index(source, dataset));
    stk_build_class_labels(dataset);
    STK_TRY(stk_build_stages(stk_build_stages_of(recipe, i_part), dataset));
    STK_TRY(stk_build_mixup(recipe, i_part, dataset));
    STK_TRY(stk_build_masked(recipe, dataset));
    STK_TRY(apply_order(recipe, i_part, dataset));
    STK_TRY(stk_build_check(part->node, dataset));
    apply_cache(part->cache, dataset);
    /* Evaluation has nothing to fill up, so a small set needs no large batch. */
    int64_t batch = recipe->batch, count = stk_dataset_count(dataset);
    if (i_part != STK_PART_TRAIN && count > 0 && count < batch) batch = count;
    STK_TRY(stk_build_batches(recipe, part, batch, dataset));
    STK_TRY(stk_build_check(part->node, dataset));
    if (stk_dataset_n_batches(dataset) < 1) STK_TRY(stk_yaml_fail(part->node, "no samples are left for this part"));
    *out = dataset;
    return STK_OK;
done:
    stk_dataset_free(dataset);
    return status;
}

stk_status stk_build_dataset(const stk_recipe *recipe, int i_part, stk_dataset **out)
{
    stk_memory *own;
    size_t limit = stk_build_read_memory(recipe);
    *out = NULL;
    /* What is read whole, and records that are looked at, are bounded as in a loader. */
    STK_RETURN_IF_ERROR(stk_memory_enter_own(limit, &own));
    stk_status status = build_part(recipe, i_part, out);
    if (*out) (*out)->memory_limit_bytes = limit;
    stk_dataset_leave_memory(own);
    return status;
}

stk_status stk_build_single(const stk_recipe *recipe, int i_part, const uint8_t *pixels, stk_shape raw,
                            stk_dataset **out)
{
    static const int32_t no_label = 0; /* Stages of the label need one. */
    const stk_array_field fields[] = {{.name = "image", .dtype = STK_U8, .sample = raw, .data = pixels},
                                      {.name = "label", .dtype = STK_I32, .data = &no_label}};
    stk_status status;
    stk_dataset *dataset = stk_dataset_arrays(1, fields, 2);
    *out = NULL;
    STK_TRY(stk_dataset_status(dataset));
    STK_TRY(stk_build_stages(stk_build_stages_of(recipe, i_part), dataset));
    STK_TRY(stk_build_mixup(recipe, STK_PART_TEST, dataset));
    stk_dataset_batch(dataset, 1, false);
    STK_TRY(stk_dataset_status(dataset));
    *out = dataset;
    return STK_OK;
done:
    stk_dataset_free(dataset);
    return status;
}

/* --- do the parts go together? --- */

static stk_status check_classes(const stk_recipe_part *part, const char *name, const stk_dataset *train,
                                const stk_dataset *other)
{
    const char *const *a = NULL, *const *b = NULL;
    int64_t n = stk_dataset_classes(train, &a), m = stk_dataset_classes(other, &b);
    if (n == 0 || m == 0) return STK_OK;
    for (int64_t i = 0; i < n || i < m; i++) {
        if (i < n && i < m && !strcmp(a[i], b[i])) continue;
        bool is_missing = i >= m || (i < n && strcmp(a[i], b[i]) < 0);
        return stk_yaml_fail(part->node, "the classes of train and %s differ: '%.80s' is only in %s", name,
                             is_missing ? a[i] : b[i], is_missing ? "train" : name);
    }
    return STK_OK;
}

static stk_status check_part(const stk_recipe_part *part, const char *name, const stk_dataset *train,
                             const stk_dataset *other)
{
    static const char *const fields[] = {"image", "tokens", "text", "targets", "label"};
    if (!other) return STK_OK;
    STK_RETURN_IF_ERROR(check_classes(part, name, train, other));
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        stk_tensor_desc a, b;
        char a_text[STK_SHAPE_TEXT_BYTES], b_text[STK_SHAPE_TEXT_BYTES];
        if (stk_dataset_field(train, fields[i], false, &a.dtype, &a.shape) != STK_OK) continue;
        STK_RETURN_IF_ERROR(stk_dataset_field(train, fields[i], true, &a.dtype, &a.shape));
        stk_status status = stk_dataset_field(other, fields[i], true, &b.dtype, &b.shape);
        if (status != STK_OK) return stk_build_fail(part->node, status);
        if (a.dtype == b.dtype && stk_shape_equal(a.shape, b.shape)) continue;
        bool is_image = !strcmp(fields[i], "image") && a.shape.rank == 3 && b.shape.rank == 3;
        return stk_yaml_fail(part->node, "field '%s' of train is %s, that of %s is %s%s", fields[i],
                             stk_desc_text(a, a_text), name, stk_desc_text(b, b_text),
                             is_image ? "; the stages of both must end alike: 'decode' has the channels, 'resize' and "
                                        "'center_crop' make one size of all"
                                      : "");
    }
    return STK_OK;
}

stk_status stk_build_check_parts(const stk_recipe *recipe, const stk_dataset *train, const stk_dataset *valid,
                                 const stk_dataset *test)
{
    STK_RETURN_IF_ERROR(check_part(&recipe->part[STK_PART_VALID], "valid", train, valid));
    return check_part(&recipe->part[STK_PART_TEST], "test", train, test);
}
