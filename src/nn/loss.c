/* Losses: one number a sample. */
#include "nn/layer.h"

stk_value stk_cross_entropy_smooth(stk_value logits, stk_value labels, double smoothing)
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, logits, "cross_entropy", NULL)) return stk_value_none(logits.graph);
    if (!(smoothing >= 0 && smoothing < 1))
        return stk_layer_fail(&layer, "the smoothing is %g, and must be in [0,1)", smoothing);
    if (layer.shape.rank != 2) {
        char text[STK_SHAPE_TEXT_BYTES];
        return stk_layer_fail(&layer, "the logits are %s, and must be [N,classes]", stk_shape_text(layer.shape, text));
    }
    if (labels.graph != logits.graph || labels.id < 0) return stk_layer_fail(&layer, "the labels are no value");
    return stk_layer_end(&layer, stk_cross_entropy_raw(logits, labels, smoothing));
}

stk_value stk_cross_entropy(stk_value logits, stk_value labels)
{
    return stk_cross_entropy_smooth(logits, labels, 0);
}

stk_value stk_mean_squared_error(stk_value x, stk_value y)
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "mean_squared_error", NULL)) return stk_value_none(x.graph);
    if (y.graph != x.graph || y.id < 0) return stk_layer_fail(&layer, "the second value is none");
    if (!stk_layer_need_float(&layer)) return stk_value_none(x.graph);
    /* [N,1] and [N] would broadcast to [N,N] in silence. */
    if (layer.shape.rank < 1 || !stk_shape_equal(layer.shape, stk_value_shape(y))) {
        char a[STK_SHAPE_TEXT_BYTES], b[STK_SHAPE_TEXT_BYTES];
        return stk_layer_fail(&layer, "the two values are %s and %s, and must both be the same [N,...]",
                              stk_shape_text(layer.shape, a), stk_shape_text(stk_value_shape(y), b));
    }
    stk_value loss = stk_square(stk_sub(x, y));
    uint32_t axes = ((1u << layer.shape.rank) - 1u) & ~1u;
    return stk_layer_end(&layer, axes ? stk_reduce_mean(loss, axes) : loss);
}
