/* The recipe's loss: which field is the target, and how it looks beside the model's output. See recipe/build.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/query.h"
#include "nn/model_list.h"
#include "recipe/build.h"
#include "stoker/nn/loss.h"
#include "tensor/shape.h"

/* --- the target --- */

/* The field, what it is for one sample, and the output it is compared with, without the batch. */
typedef struct target {
    const char *name;
    stk_tensor_desc desc;
    stk_shape output;
} target;

static bool has_field(const stk_dataset *dataset, const char *field)
{
    stk_tensor_desc desc;
    return stk_dataset_field(dataset, field, false, &desc.dtype, &desc.shape) == STK_OK;
}

const char *stk_build_target(const stk_recipe *recipe, const stk_dataset *train)
{
    const stk_yaml_node *given = stk_yaml_get(recipe->loss, "target");
    if (!recipe->model_class->build || !strcmp(recipe->loss->key, "masked_lm")) return "targets";
    if (given) return given->text;
    if (recipe->model_class->target) return recipe->model_class->target;
    return !has_field(train, "label") && has_field(train, "mask") ? "mask" : "label";
}

static stk_status find_target(const stk_recipe *recipe, const stk_dataset *train, target *out)
{
    const stk_yaml_node *given = stk_yaml_get(recipe->loss, "target");
    out->name = stk_build_target(recipe, train);
    stk_status status = stk_dataset_field(train, out->name, true, &out->desc.dtype, &out->desc.shape);
    if (status == STK_OK || !given) return status;
    return stk_build_fail(given, status);
}

static int64_t last_of(stk_shape shape)
{
    return shape.rank ? shape.dim[shape.rank - 1] : 1;
}

/* As shape, but for a last side of 1. */
static bool is_column_of(stk_shape column, stk_shape shape)
{
    if (column.rank != shape.rank + 1 || last_of(column) != 1) return false;
    column.rank--;
    return stk_shape_equal(column, shape);
}

static stk_status refuse(const stk_recipe *recipe, const target *t)
{
    char label[STK_SHAPE_TEXT_BYTES], output[STK_SHAPE_TEXT_BYTES];
    return stk_yaml_fail(recipe->model, "the model's output is %s a sample, and the field '%s' %s: '%s' compares %s",
                         stk_shape_text(t->output, output), t->name, stk_desc_text(t->desc, label), recipe->loss->key,
                         strcmp(recipe->loss->key, "cross_entropy")
                             ? "numbers of equal shapes"
                             : "[...,classes] with class numbers [...], or with shares of classes");
}

/* The target as a value of the model; the input itself where that is the target. */
static stk_value add_target(stk_model *model, const target *t)
{
    stk_value x = stk_graph_find(stk_model_graph(model), STK_OP_input, t->name);
    return x.id >= 0 ? x : stk_model_input_named(model, t->name, t->desc.dtype, t->desc.shape);
}

/* With [N] in front of a sample's shape. */
static stk_value reshape_samples(stk_value x, stk_shape sample)
{
    stk_shape shape = {.rank = sample.rank + 1, .dim = {STK_ANY}};
    for (int i = 0; i < sample.rank; i++)
        shape.dim[1 + i] = sample.dim[i];
    return stk_reshape(x, shape);
}

/* Whole numbers in place of classes: i32, one fewer side than the output. */
static stk_value as_numbers(const target *t, stk_value y)
{
    stk_shape sample = t->output;
    sample.rank--;
    if (t->desc.dtype != STK_I32) y = stk_cast_to(y, STK_I32);
    return stk_shape_equal(sample, t->desc.shape) ? y : reshape_samples(y, sample);
}

/* f32 of the output's shape. */
static stk_value as_output(const target *t, stk_value y)
{
    if (t->desc.dtype != STK_F32) y = stk_cast_to(y, STK_F32);
    return stk_shape_equal(t->output, t->desc.shape) ? y : reshape_samples(y, t->output);
}

static bool fits_numbers(const target *t)
{
    stk_shape positions = t->output;
    if (positions.rank < 1 || stk_dtype_is_float(t->desc.dtype)) return false;
    positions.rank--;
    return stk_shape_equal(positions, t->desc.shape) || is_column_of(t->desc.shape, positions);
}

static bool fits_output(const target *t)
{
    return stk_shape_equal(t->output, t->desc.shape) || is_column_of(t->output, t->desc.shape) ||
           is_column_of(t->desc.shape, t->output);
}

/* --- kinds --- */

static stk_status check_classes(const stk_recipe *recipe, const stk_dataset *train, const target *t)
{
    int64_t n = stk_dataset_classes(train, NULL), n_outputs = last_of(t->output);
    if (t->output.rank != 1 || t->desc.shape.rank > 1) return STK_OK;
    if (t->desc.shape.rank == 0 && n > n_outputs)
        return stk_yaml_fail(recipe->model, "the data has %lld classes, the model's output only %lld", (long long)n,
                             (long long)n_outputs);
    if (t->desc.shape.rank == 1 && t->desc.shape.dim[0] != n_outputs)
        return stk_yaml_fail(recipe->model, "the labels have %lld numbers each, the model's output %lld",
                             (long long)t->desc.shape.dim[0], (long long)n_outputs);
    return STK_OK;
}

static stk_status make_weights(const stk_yaml_node *list, double **out, int64_t *n)
{
    *out = NULL;
    *n = 0;
    if (!list) return STK_OK;
    *out = calloc((size_t)list->n_children + 1, sizeof(**out));
    if (!*out) return stk_fail_memory((size_t)list->n_children * sizeof(**out));
    for (const stk_yaml_node *weight = list->child; weight; weight = weight->next)
        (*out)[(*n)++] = weight->real;
    return STK_OK;
}

static stk_status build_cross_entropy(const stk_recipe *recipe, const stk_dataset *train, const target *t,
                                      stk_model *model, stk_value output)
{
    const stk_yaml_node *ignore = stk_yaml_get(recipe->loss, "ignore");
    const stk_yaml_node *weights = stk_yaml_get(recipe->loss, "class_weights");
    double *list;
    stk_cross_entropy_config config = {
        .smoothing = recipe->smoothing, .ignores = ignore, .ignore_index = ignore ? ignore->integer : 0};
    STK_RETURN_IF_ERROR(check_classes(recipe, train, t));
    if (!fits_numbers(t) && !(stk_dtype_is_float(t->desc.dtype) && fits_output(t))) return refuse(recipe, t);
    stk_value y = add_target(model, t);
    y = fits_numbers(t) ? as_numbers(t, y) : as_output(t, y);
    stk_model_target(model, y, ignore, config.ignore_index);
    /* The usual one is a single op. */
    if (!ignore && !weights && t->output.rank == 1) {
        stk_model_loss(model, recipe->smoothing > 0 ? stk_cross_entropy_smooth(output, y, recipe->smoothing)
                                                    : stk_cross_entropy(output, y));
        return STK_OK;
    }
    if (weights && weights->n_children != last_of(t->output))
        return stk_yaml_fail(weights, "'class_weights' has %lld numbers, the model tells %lld classes apart",
                             (long long)weights->n_children, (long long)last_of(t->output));
    STK_RETURN_IF_ERROR(make_weights(weights, &list, &config.n_class_weights));
    config.class_weights = list;
    stk_value weight;
    stk_model_loss(model, stk_cross_entropy_with(output, y, &config, &weight));
    if (weight.id >= 0) stk_model_loss_weight(model, weight);
    free(list);
    return STK_OK;
}

static stk_value compare(const stk_yaml_node *loss, stk_value x, stk_value y)
{
    if (!strcmp(loss->key, "mse")) return stk_mean_squared_error(x, y);
    if (!strcmp(loss->key, "mae")) return stk_mean_absolute_error(x, y);
    if (!strcmp(loss->key, "huber")) return stk_huber(x, y, stk_yaml_real(loss, "delta", 0));
    if (!strcmp(loss->key, "dice")) return stk_dice(x, y, stk_yaml_real(loss, "smooth", 0));
    return stk_binary_cross_entropy(x, y, stk_yaml_real(loss, "positive_weight", 0));
}

static stk_status build_numbers(const stk_recipe *recipe, const target *t, stk_model *model, stk_value output)
{
    bool by_number = !strcmp(recipe->loss->key, "dice") && last_of(t->output) > 1 && fits_numbers(t);
    /* Class numbers beside several outputs. */
    if (!by_number && t->desc.shape.rank == 0 && last_of(t->output) > 1)
        return stk_yaml_fail(recipe->loss, "loss '%s' needs vectors for labels: add the stage {one_hot: %lld}",
                             recipe->loss->key, (long long)last_of(t->output));
    if (!by_number && !fits_output(t)) return refuse(recipe, t);
    stk_value y = add_target(model, t);
    y = by_number ? as_numbers(t, y) : as_output(t, y);
    stk_model_target(model, y, false, 0);
    stk_model_loss(model, compare(recipe->loss, output, y));
    return STK_OK;
}

static stk_status build_triplet(const stk_recipe *recipe, const target *t, stk_model *model, stk_value output)
{
    const stk_yaml_node *mining = stk_yaml_get(recipe->loss, "mining");
    char label[STK_SHAPE_TEXT_BYTES], text[STK_SHAPE_TEXT_BYTES];
    bool is_one = t->desc.shape.rank == 0 || stk_shape_equal(t->desc.shape, STK_SHAPE(1));
    if (t->output.rank != 1 || !is_one || stk_dtype_is_float(t->desc.dtype))
        return stk_yaml_fail(recipe->model,
                             "the model's output is %s a sample, and the field '%s' %s: 'triplet' takes one row of "
                             "numbers, and a class number",
                             stk_shape_text(t->output, text), t->name, stk_desc_text(t->desc, label));
    stk_value y = as_numbers(t, add_target(model, t)), weight;
    stk_triplet_mining kind = mining && !strcmp(mining->text, "semi_hard") ? STK_TRIPLET_SEMI_HARD : STK_TRIPLET_HARD;
    stk_model_target(model, y, false, 0);
    stk_model_embedding(model, output);
    stk_model_loss(model, stk_triplet_mined(output, y, kind, stk_yaml_real(recipe->loss, "margin", 0), &weight));
    stk_model_loss_weight(model, weight);
    return stk_build_check_model(recipe, model);
}

stk_status stk_build_loss(const stk_recipe *recipe, const stk_dataset *train, stk_model *model, stk_value output)
{
    target t;
    stk_shape shape = stk_value_shape(output);
    char text[STK_SHAPE_TEXT_BYTES];
    if (!strcmp(recipe->loss->key, "masked_lm"))
        return stk_yaml_fail(recipe->loss, "the loss 'masked_lm' is for the model 'bert', not '%s'",
                             recipe->model_kind ? recipe->model_kind : "?");
    STK_RETURN_IF_ERROR(find_target(recipe, train, &t));
    if (shape.rank < 2)
        return stk_yaml_fail(recipe->model, "the model's output is %s; it must be at least one row of numbers a sample",
                             stk_shape_text(shape, text));
    t.output = (stk_shape){.rank = shape.rank - 1};
    for (int i = 0; i < t.output.rank; i++)
        t.output.dim[i] = shape.dim[1 + i];
    /* Images to classes is what most want. */
    if (shape.rank > 2 && t.desc.shape.rank == 0)
        return stk_yaml_fail(recipe->model,
                             "the model's output is %s; it must be one row of numbers a sample (flatten or global_pool "
                             "before the last dense layer)",
                             stk_shape_text(shape, text));
    if (!strcmp(recipe->loss->key, "triplet")) return build_triplet(recipe, &t, model, output);
    if (!strcmp(recipe->loss->key, "cross_entropy"))
        STK_RETURN_IF_ERROR(build_cross_entropy(recipe, train, &t, model, output));
    else
        STK_RETURN_IF_ERROR(build_numbers(recipe, &t, model, output));
    stk_model_output(model, output);
    return stk_build_check_model(recipe, model);
}
