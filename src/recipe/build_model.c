/* Models from a recipe: the networks by name, and `layers:` lists. See recipe/build.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "recipe/build.h"
#include "tensor/shape.h"

/* --- networks by name --- */

stk_status stk_build_n_classes(const stk_recipe *recipe, const stk_dataset *train, int64_t *out)
{
    const stk_yaml_node *classes = stk_yaml_get(recipe->model, "classes");
    *out = classes ? classes->integer : stk_dataset_classes(train, NULL);
    if (*out > 0) return STK_OK;
    return stk_yaml_fail(recipe->model,
                         "'%s' needs 'classes', as in {%s: {classes: 10}}: this source of data does not tell how many "
                         "there are",
                         recipe->model_kind, recipe->model_kind);
}

static stk_status read_widths(const stk_yaml_node *list, int64_t widths[256], int *n)
{
    *n = 0;
    for (const stk_yaml_node *width = list->child; width; width = width->next) {
        if (*n == 256) return stk_yaml_fail(list, "more than 256 widths");
        widths[(*n)++] = width->integer;
    }
    return STK_OK;
}

static stk_status build_network(const stk_recipe *recipe, const stk_dataset *train, stk_model *network, stk_value x,
                                stk_value *out)
{
    const stk_yaml_node *model = recipe->model;
    int64_t widths[256], classes;
    int n;
    if (!strcmp(recipe->model_kind, "layers")) {
        if (model->n_children == 0) return stk_yaml_fail(model, "'layers' is empty");
        *out = x;
        return stk_build_layers(model, train, network, out);
    }
    if (stk_build_is_network(recipe->model_kind)) {
        *out = x;
        return stk_build_named(recipe, train, network, out);
    }
    STK_RETURN_IF_ERROR(stk_build_n_classes(recipe, train, &classes));
    if (!strcmp(recipe->model_kind, "mlp")) {
        STK_RETURN_IF_ERROR(read_widths(stk_yaml_get(model, "hidden"), widths, &n));
        *out = stk_mlp(x, widths, n, stk_yaml_real(model, "dropout", 0), classes);
    } else if (!strcmp(recipe->model_kind, "cnn")) {
        STK_RETURN_IF_ERROR(read_widths(stk_yaml_get(model, "widths"), widths, &n));
        if (n == 0) return stk_yaml_fail(stk_yaml_get(model, "widths"), "'widths' is empty");
        *out = stk_cnn(x, widths, n, classes);
    } else { /* resnet18 and its like */
        int depth = atoi(recipe->model_kind + strlen("resnet"));
        *out = stk_resnet(x, depth, classes, stk_yaml_is(model, "stem", "cifar") ? STK_STEM_CIFAR : STK_STEM_IMAGENET);
    }
    return STK_OK;
}

stk_status stk_build_check_model(const stk_recipe *recipe, const stk_model *model)
{
    stk_text why = {0};
    if (stk_model_status(model) == STK_OK) return STK_OK;
    stk_text_add(&why, "%s", stk_error_text());
    stk_status status = stk_yaml_fail(recipe->model, "%s", stk_text_get(&why));
    stk_text_free(&why);
    return status;
}

/* The field that the network begins with: the first of these that the data has. */
static const char *find_input(const stk_dataset *train)
{
    static const char *const names[] = {"image", "clip", "volume", "x", "features", "tokens", "text"};
    stk_tensor_desc desc;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (stk_dataset_field(train, names[i], false, &desc.dtype, &desc.shape) == STK_OK) return names[i];
    return "image"; /* Asking for it says what there is. */
}

static stk_status add_input(const stk_recipe *recipe, const stk_dataset *train, stk_model *model, stk_value *out)
{
    stk_tensor_desc desc;
    char text[STK_SHAPE_TEXT_BYTES];
    const char *field = find_input(train);
    bool is_list = !strcmp(recipe->model_kind, "layers");
    STK_RETURN_IF_ERROR(stk_dataset_field(train, field, true, &desc.dtype, &desc.shape));
    if (!stk_shape_known(desc.shape))
        return stk_yaml_fail(recipe->pad ? recipe->pad : recipe->part[STK_PART_TRAIN].node,
                             "field '%s' has another length in every batch: training needs one, so set "
                             "'length'",
                             field);
    if (desc.dtype != STK_F32 && !(is_list && desc.dtype == STK_I32))
        return stk_yaml_fail(
            recipe->part[STK_PART_TRAIN].node,
            "the model wants images in f32, and field '%s' comes as %s after all stages: add the stage "
            "{scale: 1/255} or {normalize: ...}",
            field, stk_desc_text(desc, text));
    *out = stk_model_input_named(model, field, desc.dtype, desc.shape);
    return STK_OK;
}

/* A network from one field of a sample, or with `layers` from several, into a new model. */
static stk_status build_images(const stk_recipe *recipe, const stk_dataset *train, stk_model *model)
{
    const stk_yaml_node *first = recipe->model->child;
    bool names_input = !strcmp(recipe->model_kind, "layers") && first && !strcmp(first->child->key, "from");
    names_input = names_input || !strcmp(recipe->model_kind, "wide_and_deep");
    stk_value x = {stk_model_graph(model), -1}, output;
    if (!names_input) STK_RETURN_IF_ERROR(add_input(recipe, train, model, &x));
    STK_RETURN_IF_ERROR(build_network(recipe, train, model, x, &output));
    STK_RETURN_IF_ERROR(stk_build_check_model(recipe, model));
    return stk_build_loss(recipe, train, model, output);
}

stk_status stk_build_model(const stk_recipe *recipe, const stk_dataset *train, stk_model **out)
{
    stk_status status;
    stk_model *model = stk_model_new(recipe->name);
    *out = NULL;
    if (stk_build_takes_tokens(recipe->model_kind))
        STK_TRY(stk_build_of_tokens(recipe, train, model));
    else
        STK_TRY(build_images(recipe, train, model));
    STK_TRY(stk_model_status(model));
    *out = model;
    return STK_OK;
done:
    stk_model_free(model);
    return status;
}
