/* Dice: how much two regions overlap. */
#include "nn/loss.h"

static const stk_key keys[] = {{.name = "smooth",
                                .type = STK_KEY_REAL,
                                .default_value = "1",
                                .least = 0,
                                .most = 1e30,
                                .above = true,
                                .doc = "Added above and below."},
                               STK_LOSS_TARGET,
                               STK_LOSS_END};

/* p and y as [N,positions,C]. */
static bool make_regions(const stk_layer *layer, stk_value logits, stk_value labels, stk_value *p, stk_value *y)
{
    stk_shape x = layer->shape, shape = stk_value_shape(labels);
    int64_t n_classes = x.rank > 1 ? x.dim[x.rank - 1] : 0;
    bool are_numbers = stk_value_dtype(labels) == STK_I32, fits = x.rank >= 2 && n_classes > 0;
    fits = fits && shape.rank == x.rank - are_numbers;
    for (int i = 0; fits && i < shape.rank; i++)
        fits = x.dim[i] == shape.dim[i] && (i == 0 || x.dim[i] > 0);
    if (!fits) {
        char a[STK_SHAPE_TEXT_BYTES], b[STK_SHAPE_TEXT_BYTES];
        stk_layer_fail(
            layer, "the logits are %s and the labels %s; they must be [N,...,classes] and i32 [N,...], or both alike",
            stk_shape_text(x, a), stk_desc_text(stk_desc_make(stk_value_dtype(labels), shape), b));
        return false;
    }
    int64_t n_positions = stk_shape_product(x, 1, x.rank - 1);
    stk_shape regions = STK_SHAPE(STK_ANY, n_positions, n_classes);
    logits = stk_reshape(logits, regions);
    *p = are_numbers ? stk_softmax(logits) : stk_sigmoid(logits);
    *y = stk_reshape(labels, are_numbers ? STK_SHAPE(STK_ANY, n_positions, 1) : regions);
    if (are_numbers) *y = stk_equal(*y, stk_iota(layer->graph, STK_I32, STK_SHAPE(1, 1, n_classes), 2));
    *y = stk_cast_to(*y, stk_value_dtype(*p));
    return true;
}

stk_value stk_dice(stk_value logits, stk_value labels, double smooth)
{
    stk_layer layer;
    stk_value p, y;
    if (!stk_layer_begin(&layer, logits, "dice", NULL)) return stk_value_none(logits.graph);
    if (labels.graph != logits.graph || labels.id < 0) return stk_layer_fail(&layer, "the labels are no value");
    if (!stk_layer_need_float(&layer)) return stk_value_none(logits.graph);
    if (!(smooth > 0 && smooth < 1e30)) return stk_layer_fail(&layer, "smooth is %g, and must be above 0", smooth);
    if (!make_regions(&layer, logits, labels, &p, &y)) return stk_value_none(logits.graph);
    stk_value both = stk_shift_by(stk_scale_by(stk_reduce_sum(stk_mul(p, y), 2), 2), smooth);
    stk_value all = stk_shift_by(stk_add(stk_reduce_sum(p, 2), stk_reduce_sum(y, 2)), smooth);
    stk_value overlap = stk_reduce_mean(stk_div(both, all), 2);
    return stk_layer_end(&layer, stk_shift_by(stk_neg(overlap), 1));
}

static stk_status build(const stk_yaml_node *settings, stk_model *model, stk_value output, stk_value target)
{
    stk_model_loss(model, stk_dice(output, target, stk_yaml_real(settings, "smooth", 1)));
    return STK_OK;
}

const stk_loss_class stk_loss_class_dice = {
    .key = STK_LOSS_KEY("dice", keys, "Overlap of regions; Milletari et al. 2016."),
    .compares = STK_LOSS_REGIONS,
    .build = build,
};
