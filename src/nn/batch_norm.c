/* Batch normalisation: Ioffe & Szegedy 2015. The running statistics are variables that the graph updates itself. */
#include "nn/layer_list.h"

/* Settles momentum (as the share of the new batch) and eps; false with an error kept where they are out of range. */
static bool settle(const stk_layer *layer, stk_batch_norm_config *c)
{
    if (c->eps == 0) c->eps = c->like_keras ? 1e-3 : 1e-5;
    if (!(c->eps > 0)) {
        stk_layer_fail(layer, "eps is %g, and must be more than 0", c->eps);
        return false;
    }
    if (!(c->momentum >= 0 && c->momentum <= 1)) {
        stk_layer_fail(layer, "momentum is %g, and must be between 0 and 1", c->momentum);
        return false;
    }
    if (c->like_keras)
        c->momentum = c->momentum == 0 ? 0.01 : 1 - c->momentum; /* Keras gives the share of the old value. */
    else if (c->momentum == 0)
        c->momentum = 0.1;
    return true;
}

stk_value stk_batch_norm_with(stk_value x, const stk_batch_norm_config *config)
{
    stk_batch_norm_config c = config ? *config : (stk_batch_norm_config){0};
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "batch_norm", c.name)) return stk_value_none(x.graph);
    if (!stk_layer_need_float(&layer) || !settle(&layer, &c)) return stk_value_none(x.graph);
    int rank = layer.shape.rank;
    int64_t n = rank ? layer.shape.dim[rank - 1] : 0;
    if (rank < 2 || n < 1) {
        char text[STK_SHAPE_TEXT_BYTES];
        return stk_layer_fail(&layer, "its input is %s, and must be [N,...,C] with a known C",
                              stk_shape_text(layer.shape, text));
    }
    stk_init zero = {STK_INIT_CONSTANT, 0}, one = {STK_INIT_CONSTANT, 1};
    stk_value in[5] = {x};
    in[1] = stk_layer_variable(&layer, "weight", STK_SHAPE(n), c.zero_scale ? zero : one, !c.fixed_scale);
    in[2] = stk_layer_variable(&layer, "bias", STK_SHAPE(n), zero, true);
    in[3] = stk_layer_variable(&layer, "running_mean", STK_SHAPE(n), zero, false);
    in[4] = stk_layer_variable(&layer, "running_var", STK_SHAPE(n), one, false);

    stk_attrs attrs = stk_attrs_zero();
    attrs.batch_norm.eps = c.eps;
    attrs.batch_norm.momentum = c.momentum;
    attrs.batch_norm.unbiased = !c.like_keras;
    stk_value y = stk_graph_add(layer.graph, STK_OP_batch_norm, &attrs, in, 5);
    stk_graph_update(layer.graph, in[3], stk_value_sibling(y, 3));
    stk_graph_update(layer.graph, in[4], stk_value_sibling(y, 4));
    return stk_layer_end(&layer, y);
}

stk_value stk_batch_norm(stk_value x)
{
    return stk_batch_norm_with(x, NULL);
}

/* --- in a recipe --- */

static stk_status build(const stk_yaml_node *s, stk_value *x)
{
    stk_batch_norm_config config = {.momentum = stk_yaml_real(s, "momentum", 0),
                                    .eps = stk_yaml_real(s, "eps", 0),
                                    .like_keras = stk_yaml_is(s, "like", "keras"),
                                    .zero_scale = stk_yaml_bool(s, "zero_scale"),
                                    .fixed_scale = !stk_yaml_bool(s, "scale")};
    *x = stk_batch_norm_with(*x, &config);
    return STK_OK;
}

static const stk_key keys[] = {{.name = "momentum",
                                .type = STK_KEY_REAL,
                                .least = 0,
                                .most = 1,
                                .above = true,
                                .doc = "Of the running statistics. Default: 0.1, or 0.99 in Keras' sense."},
                               {.name = "eps",
                                .type = STK_KEY_REAL,
                                .least = 0,
                                .above = true,
                                .doc = "Added to the variance. Default: 1e-5, or 1e-3 like Keras."},
                               {.name = "zero_scale",
                                .type = STK_KEY_BOOL,
                                .default_value = "false",
                                .doc = "The scale starts at 0: for the end of a residual."},
                               {.name = "scale",
                                .type = STK_KEY_BOOL,
                                .default_value = "true",
                                .doc = "Whether the scale is trained; false: it stays 1."},
                               STK_KEY_LIKE,
                               STK_KEY_DTYPE,
                               {.name = NULL}};

const stk_layer_class stk_layer_class_batch_norm = {
    .key = {.name = "batch_norm", .type = STK_KEY_MAP, .keys = keys, .doc = "Batch normalisation."},
    .build = build,
};
