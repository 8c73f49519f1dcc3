/* Triplets: the anchor shall be nearer to the positive than to the negative. Given ones, and those found in a batch. */
#include "nn/loss.h"

static const char *const mining_words[] = {[STK_TRIPLET_HARD] = "hard", [STK_TRIPLET_SEMI_HARD] = "semi_hard", NULL};
static const stk_key keys[] = {
    {.name = "margin",
     .type = STK_KEY_REAL,
     .default_value = "0.2",
     .least = 0,
     .most = 1e6,
     .doc = "By how much a row shall be nearer to those of its class than to others."},
    {.name = "mining",
     .type = STK_KEY_WORD,
     .words = mining_words,
     .default_value = "hard",
     .doc = "hard: the farthest of its class and the nearest of another in the batch; Hermans et al. 2017. semi_hard: "
            "each "
            "of its class, and the nearest of another that is farther off; Schroff et al. 2015."},
    STK_LOSS_TARGET,
    STK_LOSS_END};

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

/* --- mined --- */

/* Larger than any distance, and not a triplet's when it comes out. */
#define FAR 1e30

static stk_value number(stk_value like, double value)
{
    return stk_graph_constant(like.graph, stk_value_dtype(like), (stk_shape){0}, value);
}

/* Euclidean distances along the last axis. Below 1e-6 they have no gradient, which would not be finite at 0. */
static stk_value distances(stk_value a, stk_value b, uint32_t last)
{
    stk_value squares = stk_reduce_sum(stk_square(stk_sub(a, b)), last);
    return stk_sqrt(stk_max(squares, number(squares, 1e-12)));
}

static stk_value count(stk_value yes, stk_value like, uint32_t axes)
{
    return stk_reduce_sum(stk_cast_to(yes, stk_value_dtype(like)), axes);
}

/* What one kind of mining finds for each row. */
typedef struct mined {
    stk_value loss, n; /* [N]; the sum over triplets, and how many there are */
} mined;

static mined mine_hard(stk_value rows, stk_value labels, double margin)
{
    stk_value a = stk_reshape(rows, (stk_shape){.rank = 3, .dim = {STK_ANY, 1, stk_value_shape(rows).dim[1]}});
    stk_value d = distances(a, stk_transpose(a, (int32_t[]){1, 0, 2}), 4);
    stk_value y = stk_reshape(labels, (stk_shape){.rank = 2, .dim = {STK_ANY, 1}});
    stk_value same = stk_equal(y, stk_transpose(y, (int32_t[]){1, 0}));
    /* The row itself is of its class and the nearest, so that it is the farthest only where it is alone. */
    stk_value positive = stk_reduce_max(stk_select(same, d, number(d, -1)), 2);
    stk_value negative = stk_reduce_min(stk_select(same, number(d, FAR), d), 2);
    stk_value n_same = count(same, d, 2), one = number(d, 1), far = number(d, FAR / 2);
    stk_value there = stk_select(stk_less(negative, far), stk_greater(n_same, one), stk_less(one, one));
    stk_value loss = stk_relu(stk_shift_by(stk_sub(positive, negative), margin));
    return (mined){stk_select(there, loss, number(d, 0)), stk_cast_to(there, stk_value_dtype(d))};
}

/* Axes: anchor, positive, negative, and the row's numbers behind them. */
static mined mine_semi_hard(stk_value rows, stk_value labels, double margin)
{
    stk_value a = stk_reshape(rows, (stk_shape){.rank = 4, .dim = {STK_ANY, 1, 1, stk_value_shape(rows).dim[1]}});
    stk_value d_positive = distances(a, stk_transpose(a, (int32_t[]){1, 0, 2, 3}), 8); /* [N,N,1] */
    stk_value d_negative = distances(a, stk_transpose(a, (int32_t[]){1, 2, 0, 3}), 8); /* [N,1,N] */
    stk_value y = stk_reshape(labels, (stk_shape){.rank = 3, .dim = {STK_ANY, 1, 1}});
    stk_value zero = number(d_positive, 0), far = number(d_positive, FAR);
    stk_value other = stk_not_equal(y, stk_transpose(y, (int32_t[]){1, 2, 0}));
    stk_value beyond = stk_select(stk_greater(d_negative, d_positive), stk_select(other, d_negative, far), far);
    stk_value nearest = stk_reduce_min(beyond, 4);                               /* [N,N] */
    stk_value farthest = stk_reduce_max(stk_select(other, d_negative, zero), 4); /* [N,1] */
    stk_value negative = stk_select(stk_less(nearest, number(nearest, FAR / 2)), nearest, farthest);
    stk_value loss = stk_relu(stk_shift_by(stk_sub(stk_reduce_sum(d_positive, 4), negative), margin));
    /* Pairs of a class, none with itself: rows are told apart by their place. */
    stk_value place = stk_cumsum(stk_cast_to(stk_equal(y, y), stk_value_dtype(rows)), 0, false, false);
    stk_value apart = stk_not_equal(place, stk_transpose(place, (int32_t[]){1, 0, 2}));
    stk_value pair = stk_cast_to(stk_equal(y, stk_transpose(y, (int32_t[]){1, 0, 2})), stk_value_dtype(rows));
    pair = stk_reduce_sum(stk_select(apart, pair, zero), 4);                                        /* [N,N] */
    stk_value any = stk_cast_to(stk_greater(farthest, number(farthest, 0)), stk_value_dtype(rows)); /* [N,1] */
    pair = stk_mul(pair, any);
    return (mined){stk_reduce_sum(stk_mul(loss, pair), 2), stk_reduce_sum(pair, 2)};
}

stk_value stk_triplet_mined(stk_value rows, stk_value labels, stk_triplet_mining mining, double margin,
                            stk_value *weight)
{
    stk_layer layer;
    char a[STK_SHAPE_TEXT_BYTES], b[STK_SHAPE_TEXT_BYTES];
    if (weight) *weight = stk_value_none(rows.graph);
    if (!stk_layer_begin(&layer, rows, "triplet", NULL)) return stk_value_none(rows.graph);
    if (labels.graph != rows.graph || labels.id < 0) return stk_layer_fail(&layer, "the labels are no value");
    if (layer.shape.rank != 2 || stk_value_shape(labels).rank != 1 || stk_value_dtype(labels) != STK_I32)
        return stk_layer_fail(&layer, "the rows are %s and the labels %s, and must be [N,D] and i32 [N]",
                              stk_shape_text(layer.shape, a),
                              stk_desc_text(stk_desc_make(stk_value_dtype(labels), stk_value_shape(labels)), b));
    if (mining != STK_TRIPLET_HARD && mining != STK_TRIPLET_SEMI_HARD)
        return stk_layer_fail(&layer, "there is no mining %d", (int)mining);
    if (!(margin >= 0 && margin <= 1e6))
        return stk_layer_fail(&layer, "the margin is %g, and must be 0 or more", margin);
    if (stk_value_dtype(rows) == STK_F16 || stk_value_dtype(rows) == STK_BF16) rows = stk_cast_to(rows, STK_F32);
    mined found = mining == STK_TRIPLET_HARD ? mine_hard(rows, labels, margin) : mine_semi_hard(rows, labels, margin);
    if (weight) *weight = stk_value_dtype(found.n) == STK_F32 ? found.n : stk_cast_to(found.n, STK_F32);
    return stk_layer_end(&layer, stk_div(found.loss, stk_max(found.n, number(found.n, 1))));
}

static stk_status build(const stk_yaml_node *settings, stk_model *model, stk_value output, stk_value target)
{
    bool semi_hard = stk_yaml_is(settings, "mining", mining_words[STK_TRIPLET_SEMI_HARD]);
    stk_value weight;
    stk_model_loss(model, stk_triplet_mined(output, target, semi_hard ? STK_TRIPLET_SEMI_HARD : STK_TRIPLET_HARD,
                                            stk_yaml_real(settings, "margin", 0.2), &weight));
    stk_model_loss_weight(model, weight);
    return STK_OK;
}

const stk_loss_class stk_loss_class_triplet = {
    .key = STK_LOSS_KEY("triplet", keys,
                        "Rows of numbers: near to those of the same class in the batch, far from others."),
    .compares = STK_LOSS_ROWS,
    .build = build,
};
