/* Triplets: the anchor shall be nearer to the positive than to the negative. */
#include "nn/loss.h"

static stk_value distance(stk_value a, stk_value b)
{
    /* The 1e-6 keeps the root's gradient finite where both rows are equal. */
    return stk_sqrt(stk_reduce_sum(stk_square(stk_shift_by(stk_sub(a, b), 1e-6)), 2));
}

stk_value stk_triplet(stk_value anchor, stk_value positive, stk_value negative, double margin)
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, anchor, "triplet", NULL)) return stk_value_none(anchor.graph);
    if (!stk_loss_need_pair(&layer, positive) || !stk_loss_need_pair(&layer, negative))
        return stk_value_none(anchor.graph);
    if (layer.shape.rank != 2) {
        char text[STK_SHAPE_TEXT_BYTES];
        return stk_layer_fail(&layer, "the rows are %s, and must be [N,D]", stk_shape_text(layer.shape, text));
    }
    stk_value loss = stk_shift_by(stk_sub(distance(anchor, positive), distance(anchor, negative)), margin);
    return stk_layer_end(&layer, stk_relu(loss));
}
