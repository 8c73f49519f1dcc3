/* Data sets from a recipe. See train/build.h. */
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "tensor/shape.h"
#include "train/build.h"

static int64_t get_int(const stk_yaml_node *node, const char *key, int64_t standard)
{
    const stk_yaml_node *child = stk_yaml_get(node, key);
    return child ? child->integer : standard;
}

static bool get_bool(const stk_yaml_node *node, const char *key)
{
    const stk_yaml_node *child = stk_yaml_get(node, key);
    return child && child->truth;
}

/* --- stages --- */

/* size, or height and width. */
static stk_status get_sides(const stk_yaml_node *settings, int64_t *height, int64_t *width)
{
    const stk_yaml_node *size = stk_yaml_get(settings, "size"), *h = stk_yaml_get(settings, "height"),
                        *w = stk_yaml_get(settings, "width");
    if ((size != NULL) == (h || w) || (h != NULL) != (w != NULL))
        return stk_yaml_fail(settings, "'%s' needs either 'size', or 'height' and 'width'", settings->key);
    *height = size ? size->integer : h->integer;
    *width = size ? size->integer : w->integer;
    return STK_OK;
}

static stk_status make_resize(const stk_yaml_node *settings, stk_stage **out)
{
    int64_t height, width;
    const stk_yaml_node *shorter = stk_yaml_get(settings, "shorter");
    bool antialias = get_bool(settings, "antialias");
    if (shorter) {
        if (settings->n_children > 2)
            return stk_yaml_fail(shorter, "'shorter' says it all; leave out 'size', 'height' and 'width'");
        *out = stk_resize_shorter(shorter->integer, antialias);
        return STK_OK;
    }
    STK_RETURN_IF_ERROR(get_sides(settings, &height, &width));
    *out = stk_resize(height, width, antialias);
    return STK_OK;
}

static stk_status make_normalize(const stk_yaml_node *settings, stk_stage **out)
{
    const stk_yaml_node *name = stk_yaml_get(settings, "name");
    const stk_yaml_node *lists[2] = {stk_yaml_get(settings, "mean"), stk_yaml_get(settings, "std")};
    float values[2][4];
    if (name && !lists[0] && !lists[1]) {
        *out = stk_normalize_named(name->text);
        return STK_OK;
    }
    if (name || !lists[0] || !lists[1])
        return stk_yaml_fail(settings, "'normalize' needs either a name, or 'mean' and 'std'");
    if (lists[0]->n_children != lists[1]->n_children || lists[0]->n_children < 1 || lists[0]->n_children > 4)
        return stk_yaml_fail(settings, "'mean' and 'std' need one number for each channel");
    for (int k = 0; k < 2; k++) {
        int n = 0;
        for (const stk_yaml_node *number = lists[k]->child; number; number = number->next) {
            values[k][n++] = (float)number->real;
            if (k == 1 && number->real <= 0) return stk_yaml_fail(number, "'std' must be above 0");
        }
    }
    *out = stk_normalize(values[0], values[1], lists[0]->n_children);
    return STK_OK;
}

static stk_status make_center_crop(const stk_yaml_node *settings, stk_stage **out)
{
    int64_t height, width;
    STK_RETURN_IF_ERROR(get_sides(settings, &height, &width));
    *out = stk_center_crop(height, width);
    return STK_OK;
}

static stk_status make_simple(const stk_yaml_node *settings, stk_stage **out)
{
    const char *kind = settings->key;
    if (!strcmp(kind, "decode"))
        *out = stk_decode_channels((int)get_int(settings, "channels", 3));
    else if (!strcmp(kind, "random_crop"))
        *out = stk_random_crop(get_int(settings, "size", 0), get_int(settings, "pad", 0));
    else if (!strcmp(kind, "random_resized_crop"))
        *out = stk_random_resized_crop(get_int(settings, "size", 0), get_bool(settings, "antialias"));
    else if (!strcmp(kind, "random_flip"))
        *out = stk_random_flip();
    else if (!strcmp(kind, "cast"))
        *out = stk_cast(!strcmp(stk_yaml_get(settings, "dtype")->text, "u8") ? STK_U8 : STK_F32);
    else if (!strcmp(kind, "scale"))
        *out = stk_scale(stk_yaml_get(settings, "factor")->real);
    else if (!strcmp(kind, "one_hot"))
        *out = stk_one_hot(get_int(settings, "classes", 0));
    else
        return stk_yaml_fail(settings, "stage '%s' cannot be built", kind);
    return STK_OK;
}

stk_status stk_build_stage(const stk_yaml_node *stage, stk_stage **out)
{
    const stk_yaml_node *settings = stage->child;
    *out = NULL;
    if (!strcmp(settings->key, "resize")) return make_resize(settings, out);
    if (!strcmp(settings->key, "normalize")) return make_normalize(settings, out);
    if (!strcmp(settings->key, "center_crop")) return make_center_crop(settings, out);
    return make_simple(settings, out);
}

/* --- data sets --- */

/* Puts the recipe's place before an error that data found. */
static stk_status fail_part(const stk_yaml_node *node, stk_status status)
{
    stk_text text = {0};
    stk_text_add(&text, "%s", stk_error_text());
    stk_yaml_fail(node, "%s", stk_text_get(&text));
    stk_text_free(&text);
    return status;
}

static const stk_yaml_node *find_stages(const stk_recipe *recipe, int i_part)
{
    const stk_recipe_part *part = recipe->part;
    if (part[i_part].stages || i_part != STK_PART_VALID) return part[i_part].stages;
    /* Validation is like the test: without what is random in training. */
    if (part[STK_PART_TEST].node) return part[STK_PART_TEST].stages;
    return part[STK_PART_TRAIN].stages;
}

static stk_status apply_stages(const stk_yaml_node *stages, stk_dataset *dataset)
{
    for (const stk_yaml_node *node = stages ? stages->child : NULL; node; node = node->next) {
        stk_stage *stage;
        STK_RETURN_IF_ERROR(stk_build_stage(node, &stage));
        stk_dataset_apply_to(dataset, NULL, stage);
        stk_status status = stk_dataset_status(dataset);
        if (status != STK_OK) return fail_part(node, status);
    }
    return STK_OK;
}

static void apply_order(const stk_recipe *recipe, int i_part, stk_dataset *dataset)
{
    const stk_recipe_part *part = &recipe->part[i_part];
    double share = recipe->part[STK_PART_VALID].share;
    /* One seed for both sides of the cut, so that they are disjoint. */
    if (share > 0 && i_part == STK_PART_TRAIN) stk_dataset_split(dataset, share, true, recipe->seed);
    if (share > 0 && i_part == STK_PART_VALID) stk_dataset_split(dataset, share, false, recipe->seed);
    if (part->skip > 0) stk_dataset_skip(dataset, part->skip);
    if (part->take >= 0) stk_dataset_take(dataset, part->take);
    if (part->n_shards > 1) stk_dataset_shard(dataset, part->n_shards, part->i_shard);
    if (part->shuffle) stk_dataset_shuffle(dataset, recipe->seed);
    if (part->repeat > 1) stk_dataset_repeat(dataset, part->repeat);
    stk_dataset_on_error(dataset, part->on_error);
}

stk_status stk_build_dataset(const stk_recipe *recipe, int i_part, stk_dataset **out)
{
    const stk_recipe_part *part = &recipe->part[i_part];
    const stk_recipe_part *source = part->share > 0 ? &recipe->part[STK_PART_TRAIN] : part;
    stk_status status;
    *out = NULL;
    if (!part->node) return STK_OK;
    stk_dataset *dataset = NULL;
    STK_TRY(stk_build_source(source->source, &dataset));
    if ((status = stk_dataset_status(dataset)) != STK_OK) STK_TRY(fail_part(source->source, status));
    apply_order(recipe, i_part, dataset);
    if ((status = stk_dataset_status(dataset)) != STK_OK) STK_TRY(fail_part(part->node, status));
    stk_build_class_labels(dataset);
    STK_TRY(apply_stages(find_stages(recipe, i_part), dataset));
    /* Evaluation has nothing to fill up, so a small set needs no large batch. */
    int64_t batch = recipe->batch, count = stk_dataset_count(dataset);
    if (i_part != STK_PART_TRAIN && count > 0 && count < batch) batch = count;
    stk_dataset_batch(dataset, batch, part->drop_remainder);
    if ((status = stk_dataset_status(dataset)) != STK_OK) STK_TRY(fail_part(part->node, status));
    if (stk_dataset_n_batches(dataset) < 1) STK_TRY(stk_yaml_fail(part->node, "no samples are left for this part"));
    *out = dataset;
    return STK_OK;
done:
    stk_dataset_free(dataset);
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
    STK_TRY(apply_stages(find_stages(recipe, i_part), dataset));
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
    static const char *const fields[] = {"image", "label"};
    if (!other) return STK_OK;
    STK_RETURN_IF_ERROR(check_classes(part, name, train, other));
    for (int i = 0; i < 2; i++) {
        stk_tensor_desc a, b;
        char a_text[STK_SHAPE_TEXT_BYTES], b_text[STK_SHAPE_TEXT_BYTES];
        STK_RETURN_IF_ERROR(stk_dataset_field(train, fields[i], true, &a.dtype, &a.shape));
        stk_status status = stk_dataset_field(other, fields[i], true, &b.dtype, &b.shape);
        if (status != STK_OK) return fail_part(part->node, status);
        if (a.dtype == b.dtype && stk_shape_equal(a.shape, b.shape)) continue;
        return stk_yaml_fail(part->node, "the %ss of train are %s, those of %s are %s", fields[i],
                             stk_desc_text(a, a_text), name, stk_desc_text(b, b_text));
    }
    return STK_OK;
}

stk_status stk_build_check_parts(const stk_recipe *recipe, const stk_dataset *train, const stk_dataset *valid,
                                 const stk_dataset *test)
{
    STK_RETURN_IF_ERROR(check_part(&recipe->part[STK_PART_VALID], "valid", train, valid));
    return check_part(&recipe->part[STK_PART_TEST], "test", train, test);
}
