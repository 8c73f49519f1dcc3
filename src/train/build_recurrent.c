/* Text classifiers of recurrent layers from a recipe. See train/build.h. */
#include <string.h>

#include "base/error.h"
#include "stoker/recurrent.h"
#include "train/build.h"

stk_status stk_build_recurrent(const stk_recipe *recipe, const stk_dataset *train, stk_model *model, stk_value tokens)
{
    const stk_yaml_node *settings = recipe->model, *pad = stk_yaml_get(settings, "pad");
    stk_recurrent_classifier c = {.vocabulary = stk_yaml_get(settings, "vocabulary")->integer,
                                  .width = stk_yaml_get(settings, "width")->integer,
                                  .dropout = stk_yaml_get(settings, "dropout")->real};
    stk_value mask = tokens;
    int64_t classes;
    STK_RETURN_IF_ERROR(stk_build_n_classes(recipe, train, &classes));
    if (pad) {
        stk_value none = stk_graph_constant(tokens.graph, STK_I32, (stk_shape){0}, (double)pad->integer);
        mask = stk_not_equal(tokens, none);
    }
    c.recurrent =
        (stk_recurrent_config){.kind = !strcmp(recipe->model_kind, "lstm") ? STK_RECURRENT_LSTM : STK_RECURRENT_GRU,
                               .units = stk_yaml_get(settings, "units")->integer,
                               .layers = (int)stk_yaml_get(settings, "layers")->integer,
                               .bidirectional = stk_yaml_get(settings, "bidirectional")->truth,
                               .dropout = c.dropout,
                               .mask = pad ? &mask : NULL};
    stk_value logits = stk_classify_recurrent(tokens, &c, classes);
    STK_RETURN_IF_ERROR(stk_build_check_model(recipe, model));
    return stk_build_loss(recipe, train, model, logits);
}
