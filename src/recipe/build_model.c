/* Models from a recipe: inputs, the network that its descriptor builds, and the loss. See recipe/build.h. */
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "nn/model_list.h"
#include "recipe/build.h"
#include "stoker/nn/transformer.h"

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

stk_status stk_build_check_model(const stk_recipe *recipe, const stk_model *model)
{
    stk_text why = {0};
    if (stk_model_status(model) == STK_OK) return STK_OK;
    stk_text_add(&why, "%s", stk_error_text());
    stk_status status = stk_yaml_fail(recipe->model, "%s", stk_text_get(&why));
    stk_text_free(&why);
    return status;
}

bool stk_build_takes_tokens(const stk_recipe *recipe)
{
    return recipe->model_class && recipe->model_class->takes == STK_MODEL_TAKES_TOKENS;
}

bool stk_build_generates(const stk_recipe *recipe)
{
    return recipe->model_class && recipe->model_class->generates;
}

stk_status stk_build_transformer_config(const stk_recipe *recipe, stk_transformer_config *out)
{
    STK_RETURN_IF_ERROR(recipe->model_class->configure(recipe->model, out));
    out->smoothing = recipe->smoothing;
    return STK_OK;
}

static bool hides_tokens(const stk_recipe *recipe)
{
    return !strcmp(recipe->loss->key, "masked_lm");
}

/* A network's own loss of all positions. */
static stk_status build_own_loss(const stk_model_data *data, stk_model_call *call)
{
    const stk_recipe *recipe = data->recipe;
    stk_value loss;
    if (hides_tokens(recipe) && recipe->model_class->build) {
        if (!recipe->part[STK_PART_TRAIN].masked)
            return stk_yaml_fail(recipe->loss, "the loss 'masked_lm' needs hidden tokens: data.train.masked");
    } else if (strcmp(recipe->loss->key, "cross_entropy")) {
        return stk_yaml_fail(stk_yaml_get(recipe->yaml->root, "loss"), "'%s' has a cross_entropy loss",
                             recipe->model_kind);
    }
    STK_RETURN_IF_ERROR(stk_build_tokens(data, stk_build_target(recipe, data->train), &call->targets));
    STK_RETURN_IF_ERROR(recipe->model_class->build_loss(call, &loss));
    stk_model_loss(data->model, loss);
    stk_model_loss_weight(data->model, stk_count_targets(call->targets));
    return stk_build_check_model(recipe, data->model);
}

static stk_status build(const stk_model_data *data)
{
    const stk_recipe *recipe = data->recipe;
    const stk_model_class *class = recipe->model_class;
    stk_value none = {stk_model_graph(data->model), -1}, output = none;
    stk_model_call call = {.settings = recipe->model,
                           .x = none,
                           .targets = none,
                           .smoothing = recipe->smoothing,
                           .get_field = stk_build_field,
                           .data = data};
    if (class->takes == STK_MODEL_TAKES_NUMBERS) STK_RETURN_IF_ERROR(stk_build_input(data, false, &call.x));
    if (class->takes == STK_MODEL_TAKES_TOKENS) STK_RETURN_IF_ERROR(stk_build_tokens(data, NULL, &call.x));
    if (class->build_loss && (!class->build || hides_tokens(recipe))) return build_own_loss(data, &call);
    if (class->has_classes) STK_RETURN_IF_ERROR(stk_build_n_classes(recipe, data->train, &call.n_classes));
    STK_RETURN_IF_ERROR(class->build(&call, &output));
    STK_RETURN_IF_ERROR(stk_build_check_model(recipe, data->model));
    return stk_build_loss(recipe, data->train, data->model, output);
}

stk_status stk_build_model(const stk_recipe *recipe, const stk_dataset *train, stk_model **out)
{
    stk_status status;
    stk_model *model = stk_model_new(recipe->name);
    *out = NULL;
    STK_TRY(build(&(stk_model_data){recipe, train, model}));
    STK_TRY(stk_model_status(model));
    *out = model;
    return STK_OK;
done:
    stk_model_free(model);
    return status;
}
