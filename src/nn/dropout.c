/* Dropout: Srivastava et al. 2014. Masks are keyed by the global sample number, see graph/dropout.h. */
#include "graph/query.h"
#include "nn/layer_list.h"

stk_value stk_dropout(stk_value x, double rate)
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "dropout", NULL)) return stk_value_none(x.graph);
    if (!(rate >= 0 && rate < 1)) return stk_layer_fail(&layer, "the rate is %g, and must be in [0,1)", rate);
    if (!stk_layer_need_float(&layer)) return stk_value_none(x.graph);
    if (layer.shape.rank < 1) return stk_layer_fail(&layer, "its input is a scalar, and must be [N,...]");
    if (rate == 0) return x;

    int64_t stream = stk_graph_next_stream(layer.graph);
    stk_value seed = stk_graph_scalar_input(layer.graph, "seed", STK_I64);
    stk_value sample = stk_graph_scalar_input(layer.graph, "sample", STK_I64);
    return stk_layer_end(&layer, stk_dropout_raw(x, seed, sample, rate, stream));
}

/* --- in a recipe --- */

static stk_status build(const stk_yaml_node *s, stk_value *x)
{
    *x = stk_dropout(*x, stk_yaml_real(s, "rate", 0));
    return STK_OK;
}

static const stk_key keys[] = {{.name = "rate",
                                .type = STK_KEY_REAL,
                                .least = 0,
                                .most = 0.99,
                                .required = true,
                                .doc = "The share that is zeroed in training."},
                               STK_KEY_DTYPE,
                               {.name = NULL}};

const stk_layer_class stk_layer_class_dropout = {
    .key = {.name = "dropout", .type = STK_KEY_MAP, .keys = keys, .doc = "Zeroes a share at random in training."},
    .build = build,
};
