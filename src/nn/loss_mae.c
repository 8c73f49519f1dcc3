/* Mean absolute error. */
#include "nn/loss.h"

stk_value stk_mean_absolute_error(stk_value x, stk_value y)
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "mean_absolute_error", NULL)) return stk_value_none(x.graph);
    if (!stk_loss_need_pair(&layer, y)) return stk_value_none(x.graph);
    return stk_layer_end(&layer, stk_loss_mean(stk_abs(stk_sub(x, y))));
}

static stk_status build(const stk_yaml_node *settings, stk_model *model, stk_value output, stk_value target)
{
    (void)settings;
    stk_model_loss(model, stk_mean_absolute_error(output, target));
    return STK_OK;
}

const stk_loss_class stk_loss_class_mae = {
    .key = STK_LOSS_KEY("mae", stk_loss_target_keys, "Mean absolute error."),
    .compares = STK_LOSS_NUMBERS,
    .build = build,
};
