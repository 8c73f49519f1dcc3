/* Squared near 0 and absolute from delta on (Huber 1964). */
#include "nn/loss.h"

static const stk_key keys[] = {{.name = "delta",
                                .type = STK_KEY_REAL,
                                .default_value = "1",
                                .least = 0,
                                .most = 1e30,
                                .above = true,
                                .doc = "Where the square becomes a line."},
                               STK_LOSS_TARGET,
                               STK_LOSS_END};

static stk_value scalar(stk_value like, double value)
{
    return stk_graph_constant(like.graph, stk_value_dtype(like), (stk_shape){0}, value);
}

stk_value stk_huber(stk_value x, stk_value y, double delta)
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "huber", NULL)) return stk_value_none(x.graph);
    if (!stk_loss_need_pair(&layer, y)) return stk_value_none(x.graph);
    if (!(delta > 0 && delta < 1e30)) return stk_layer_fail(&layer, "delta is %g, and must be above 0", delta);
    stk_value d = stk_abs(stk_sub(x, y)), near = stk_min(d, scalar(d, delta));
    return stk_layer_end(&layer, stk_loss_mean(stk_mul(near, stk_sub(d, stk_scale_by(near, 0.5)))));
}

static stk_status build(const stk_yaml_node *settings, stk_model *model, stk_value output, stk_value target)
{
    stk_model_loss(model, stk_huber(output, target, stk_yaml_real(settings, "delta", 1)));
    return STK_OK;
}

const stk_loss_class stk_loss_class_huber = {
    .key = STK_LOSS_KEY("huber", keys, "Squared near 0, absolute from delta on; Huber 1964."),
    .compares = STK_LOSS_NUMBERS,
    .build = build,
};
