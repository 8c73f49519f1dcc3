/* Losses: one number a sample. */
#include "nn/loss.h"

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

bool stk_loss_need_pair(const stk_layer *layer, stk_value y)
{
    if (y.graph != layer->graph || y.id < 0) {
        stk_layer_fail(layer, "the second value is none");
        return false;
    }
    if (!stk_layer_need_float(layer)) return false;
    if (layer->shape.rank >= 1 && stk_shape_equal(layer->shape, stk_value_shape(y))) return true;
    char a[STK_SHAPE_TEXT_BYTES], b[STK_SHAPE_TEXT_BYTES];
    stk_layer_fail(layer, "the two values are %s and %s, and must both be the same [N,...]",
                   stk_shape_text(layer->shape, a), stk_shape_text(stk_value_shape(y), b));
    return false;
}

stk_value stk_loss_mean(stk_value x)
{
    int rank = stk_value_shape(x).rank;
    return rank > 1 ? stk_reduce_mean(x, ((1u << rank) - 1u) & ~1u) : x;
}

stk_value stk_loss_rows(stk_value logits)
{
    stk_shape shape = stk_value_shape(logits);
    return shape.rank == 2 ? logits : stk_reshape(logits, STK_SHAPE(STK_ANY, shape.dim[shape.rank - 1]));
}

stk_value stk_loss_list(stk_value labels)
{
    return stk_value_shape(labels).rank == 1 ? labels : stk_reshape(labels, STK_SHAPE(STK_ANY));
}

stk_value stk_loss_by_sample(stk_value x, int64_t n_positions)
{
    return stk_reshape(x, STK_SHAPE(STK_ANY, n_positions));
}
