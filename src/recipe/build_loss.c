/* The recipe's loss: which field is the target, and how it looks next to the model's output. See recipe/build.h. */
#include <string.h>

#include "base/error.h"
#include "graph/query.h"
#include "nn/loss_list.h"
#include "nn/model_list.h"
#include "recipe/build.h"
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
    const stk_loss_class *class = stk_loss_class_of(recipe->loss->key);
    if (!recipe->model_class->build || (class && class->compares == STK_LOSS_TOKENS)) return "targets";
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

static stk_status refuse(const stk_recipe *recipe, const stk_loss_class *class, const target *t)
{
    char label[STK_SHAPE_TEXT_BYTES], output[STK_SHAPE_TEXT_BYTES];
    return stk_yaml_fail(recipe->model, "the model's output is %s a sample, and the field '%s' %s: '%s' compares %s",
                         stk_shape_text(t->output, output), t->name, stk_desc_text(t->desc, label), recipe->loss->key,
                         class->compares == STK_LOSS_CLASSES
                             ? "[...,classes] with class numbers [...], or with shares of classes"
                             : "numbers of equal shapes");
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

/* The target as the loss wants it, in *out. */
static stk_status fit_classes(const stk_recipe *recipe, const stk_loss_class *class, const stk_dataset *train,
                              const target *t, stk_model *model, stk_value *out)
{
    STK_RETURN_IF_ERROR(check_classes(recipe, train, t));
    if (!fits_numbers(t) && !(stk_dtype_is_float(t->desc.dtype) && fits_output(t))) return refuse(recipe, class, t);
    stk_value y = add_target(model, t);
    *out = fits_numbers(t) ? as_numbers(t, y) : as_output(t, y);
    return STK_OK;
}

static stk_status fit_numbers(const stk_recipe *recipe, const stk_loss_class *class, const target *t, stk_model *model,
                              stk_value *out)
{
    bool by_number = class->compares == STK_LOSS_REGIONS && last_of(t->output) > 1 && fits_numbers(t);
    /* Class numbers next to several outputs. */
    if (!by_number && t->desc.shape.rank == 0 && last_of(t->output) > 1)
        return stk_yaml_fail(recipe->loss, "loss '%s' needs vectors for labels: add the stage {one_hot: %lld}",
                             recipe->loss->key, (long long)last_of(t->output));
    if (!by_number && !fits_output(t)) return refuse(recipe, class, t);
    stk_value y = add_target(model, t);
    *out = by_number ? as_numbers(t, y) : as_output(t, y);
    return STK_OK;
}

static stk_status fit_rows(const stk_recipe *recipe, const target *t, stk_model *model, stk_value *out)
{
    char label[STK_SHAPE_TEXT_BYTES], text[STK_SHAPE_TEXT_BYTES];
    bool is_one = t->desc.shape.rank == 0 || stk_shape_equal(t->desc.shape, STK_SHAPE(1));
    if (t->output.rank != 1 || !is_one || stk_dtype_is_float(t->desc.dtype))
        return stk_yaml_fail(recipe->model,
                             "the model's output is %s a sample, and the field '%s' %s: '%s' takes one row of numbers, "
                             "and a class number",
                             stk_shape_text(t->output, text), t->name, stk_desc_text(t->desc, label),
                             recipe->loss->key);
    *out = as_numbers(t, add_target(model, t));
    return STK_OK;
}

/* The loss of a target that the output is compared with. */
static stk_status build(const stk_recipe *recipe, const stk_loss_class *class, const stk_dataset *train,
                        const target *t, stk_model *model, stk_value output)
{
    stk_value y;
    if (class->compares == STK_LOSS_CLASSES)
        STK_RETURN_IF_ERROR(fit_classes(recipe, class, train, t, model, &y));
    else if (class->compares == STK_LOSS_ROWS)
        STK_RETURN_IF_ERROR(fit_rows(recipe, t, model, &y));
    else
        STK_RETURN_IF_ERROR(fit_numbers(recipe, class, t, model, &y));
    stk_model_target(model, y, false, 0);
    if (class->compares == STK_LOSS_ROWS) stk_model_embedding(model, output);
    STK_RETURN_IF_ERROR(class->build(recipe->loss, model, output, y));
    if (class->compares != STK_LOSS_ROWS) stk_model_output(model, output);
    return stk_build_check_model(recipe, model);
}

stk_status stk_build_loss(const stk_recipe *recipe, const stk_dataset *train, stk_model *model, stk_value output)
{
    target t;
    stk_shape shape = stk_value_shape(output);
    char text[STK_SHAPE_TEXT_BYTES];
    const stk_loss_class *class = stk_loss_class_of(recipe->loss->key);
    if (!class) return stk_yaml_fail_key(recipe->loss, "no loss '%.60s'", recipe->loss->key);
    if (class->compares == STK_LOSS_TOKENS)
        return stk_yaml_fail(recipe->loss, "the loss '%s' is for the model '%s', not '%s'", recipe->loss->key,
                             class->network, recipe->model_kind ? recipe->model_kind : "?");
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
    return build(recipe, class, train, &t, model, output);
}
