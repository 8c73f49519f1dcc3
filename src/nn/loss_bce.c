/* Binary cross-entropy: each number a class of its own. */
#include "nn/loss.h"
#include "stoker/nn/layers.h"

static const stk_key keys[] = {{.name = "positive_weight",
                                .type = STK_KEY_REAL,
                                .default_value = "1",
                                .least = 0,
                                .most = 1e30,
                                .above = true,
                                .doc = "The factor of what is 1."},
                               STK_LOSS_TARGET,
                               STK_LOSS_END};

static stk_value scalar(stk_value like, double value)
{
    return stk_graph_constant(like.graph, stk_value_dtype(like), (stk_shape){0}, value);
}

stk_value stk_binary_cross_entropy(stk_value x, stk_value y, double positive_weight)
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "binary_cross_entropy", NULL)) return stk_value_none(x.graph);
    if (!stk_loss_need_pair(&layer, y)) return stk_value_none(x.graph);
    if (!(positive_weight > 0 && positive_weight < 1e30))
        return stk_layer_fail(&layer, "the positive weight is %g, and must be above 0", positive_weight);
    /* -y w log(s(x)) - (1 - y) log(1 - s(x)), where -log(s(x)) = softplus(-x) and -log(1 - s(x)) = x + softplus(-x) */
    stk_value soft = stk_softplus(stk_neg(x)), rest = stk_mul(stk_sub(scalar(x, 1), y), x);
    if (positive_weight != 1) soft = stk_mul(soft, stk_shift_by(stk_scale_by(y, positive_weight - 1), 1));
    return stk_layer_end(&layer, stk_loss_mean(stk_add(rest, soft)));
}

static stk_status build(const stk_yaml_node *settings, stk_model *model, stk_value output, stk_value target)
{
    stk_model_loss(model, stk_binary_cross_entropy(output, target, stk_yaml_real(settings, "positive_weight", 1)));
    return STK_OK;
}

const stk_loss_class stk_loss_class_bce = {
    .key =
        STK_LOSS_KEY("bce", keys, "Binary cross-entropy of logits: each number of the output is a class of its own."),
    .compares = STK_LOSS_NUMBERS,
    .predicts = STK_LOSS_PREDICTS_LABELS,
    .build = build,
};
