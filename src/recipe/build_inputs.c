/* What a network takes from the data: its inputs. See recipe/build.h. */
#include <string.h>

#include "base/error.h"
#include "graph/query.h"
#include "recipe/build.h"
#include "tensor/shape.h"
#include "train/batch_shapes.h"

static bool has_field(const stk_dataset *dataset, const char *field)
{
    stk_tensor_desc desc;
    return stk_dataset_field(dataset, field, false, &desc.dtype, &desc.shape) == STK_OK;
}

stk_status stk_build_field(const stk_model_data *data, const stk_yaml_node *place, const char *field, stk_value *out)
{
    stk_tensor_desc desc;
    *out = stk_graph_find(stk_model_graph(data->model), STK_OP_input, field);
    if (out->id >= 0) return STK_OK;
    if (!data->train) return stk_yaml_fail(place, "there is no input '%.60s'", field);
    STK_RETURN_IF_ERROR(stk_dataset_field(data->train, field, true, &desc.dtype, &desc.shape));
    if (!stk_shape_known(desc.shape))
        return stk_yaml_fail(place, "field '%s' differs from sample to sample: training needs one shape", field);
    *out = stk_model_input_named(data->model, field, desc.dtype, desc.shape);
    return STK_OK;
}

/* --- numbers --- */

/* The field that the network begins with: the first of these that the data has. */
static const char *find_input(const stk_dataset *train)
{
    static const char *const names[] = {"image", "clip", "volume", "x", "features", "tokens", "text"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (has_field(train, names[i])) return names[i];
    return "image"; /* Asking for it says what there is. */
}

const char *stk_build_sample_word(const stk_recipe *recipe, const stk_dataset *train)
{
    static const char *const words[][2] = {
        {"image", "image"}, {"clip", "clip"}, {"volume", "volume"}, {"tokens", "sequence"}};
    stk_tensor_desc desc;
    if (stk_build_takes_tokens(recipe)) return "sequence";
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (!has_field(train, words[i][0])) continue;
        /* Columns of a table are often called 'image', since that is what networks read. */
        bool is_row = stk_dataset_field(train, words[i][0], true, &desc.dtype, &desc.shape) == STK_OK &&
                      desc.shape.rank < 2 && strcmp(words[i][0], "tokens");
        return is_row ? "sample" : words[i][1];
    }
    return has_field(train, "text") ? "text" : "sample";
}

stk_status stk_build_input(const stk_model_data *data, bool takes_whole, stk_value *out)
{
    stk_tensor_desc desc;
    char text[STK_SHAPE_TEXT_BYTES];
    const stk_recipe *recipe = data->recipe;
    const char *field = find_input(data->train);
    STK_RETURN_IF_ERROR(stk_dataset_field(data->train, field, true, &desc.dtype, &desc.shape));
    if (!stk_shape_known(desc.shape))
        return stk_yaml_fail(recipe->pad ? recipe->pad : recipe->part[STK_PART_TRAIN].node,
                             "field '%s' has another length in every batch: training needs one, so set "
                             "'length'",
                             field);
    if (desc.dtype != STK_F32 && !(takes_whole && desc.dtype == STK_I32))
        return stk_yaml_fail(
            recipe->part[STK_PART_TRAIN].node,
            "the model wants images in f32, and field '%s' comes as %s after all stages: add the stage "
            "{scale: 1/255} or {normalize: ...}",
            field, stk_desc_text(desc, text));
    *out = stk_model_input_named(data->model, field, desc.dtype, desc.shape);
    return STK_OK;
}

/* --- tokens --- */

/* Of samples that differ in length; STK_ANY where batches do not make it one. */
static int64_t open_length(const stk_recipe *recipe, const stk_dataset *train)
{
    int64_t rows, length = recipe->open_length;
    if (length == 0) stk_shapes_largest(train, &rows, &length);
    return length > 0 ? length : STK_ANY;
}

stk_status stk_build_tokens(const stk_model_data *data, const char *field, stk_value *out)
{
    stk_tensor_desc desc;
    char text[STK_SHAPE_TEXT_BYTES];
    const stk_recipe *recipe = data->recipe;
    const stk_yaml_node *length = stk_yaml_get(recipe->model, "length");
    if (!field) field = has_field(data->train, "tokens") || !has_field(data->train, "text") ? "tokens" : "text";
    STK_RETURN_IF_ERROR(stk_dataset_field(data->train, field, true, &desc.dtype, &desc.shape));
    if (desc.shape.rank == 1 && desc.shape.dim[0] == STK_ANY) desc.shape.dim[0] = open_length(recipe, data->train);
    if (desc.dtype != STK_I32 || desc.shape.rank != 1 || desc.shape.dim[0] == STK_ANY)
        return stk_yaml_fail(
            recipe->part[STK_PART_TRAIN].node,
            "field '%s' is %s after all stages; '%s' wants tokens i32 [length]: add the stage {tokenize: "
            "{tokenizer: ..., length: ...}}, or pad the batches to a 'length'",
            field, stk_desc_text(desc, text), recipe->model_kind);
    if (length && length->integer != desc.shape.dim[0])
        return stk_yaml_fail(length, "the model's length is %lld, the data has %lld %s a sample",
                             (long long)length->integer, (long long)desc.shape.dim[0], field);
    *out = stk_model_input_named(data->model, field, desc.dtype, desc.shape);
    return STK_OK;
}
