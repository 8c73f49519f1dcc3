/* See nn/transformer.h. */
#include "nn/transformer.h"

stk_value stk_normal_dense(stk_value x, int64_t units, const char *name)
{
    return stk_dense_with(x, &(stk_dense_config){.units = units, .deviation = STK_TRANSFORMER_DEVIATION, .name = name});
}

stk_value stk_embed_words(stk_value tokens, const stk_transformer_config *config, const char *name, stk_value *weight)
{
    stk_layer layer;
    *weight = stk_value_none(tokens.graph);
    if (!stk_layer_begin(&layer, tokens, "embedding", name)) return *weight;
    stk_init init = {STK_INIT_NORMAL, STK_TRANSFORMER_DEVIATION};
    layer.dtype = STK_F32;
    *weight = stk_layer_variable(&layer, "weight", STK_SHAPE(config->vocabulary, config->width), init, true);
    return stk_layer_end(&layer, stk_embedding_raw(*weight, tokens));
}

stk_value stk_add_positions(stk_value x, int64_t rows, const char *name)
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "positions", name)) return stk_value_none(x.graph);
    if (!stk_layer_need_sequence(&layer)) return stk_value_none(x.graph);
    int64_t length = layer.shape.dim[1], width = layer.shape.dim[2];
    if (length > rows)
        return stk_layer_fail(&layer, "sequences of %lld positions are longer than the %lld that there are",
                              (long long)length, (long long)rows);
    stk_init init = {STK_INIT_NORMAL, STK_TRANSFORMER_DEVIATION};
    stk_value weight = stk_layer_variable(&layer, "weight", STK_SHAPE(rows, width), init, true);
    stk_value first = stk_slice(weight, (int64_t[]){0, 0}, (int64_t[]){length, width}, (int64_t[]){1, 1});
    return stk_layer_end(&layer, stk_add(x, first));
}

int64_t stk_block_hidden(const stk_block_config *config, stk_value x)
{
    stk_shape shape = stk_value_shape(x);
    return config->hidden || shape.rank < 1 ? config->hidden : 4 * shape.dim[shape.rank - 1];
}

bool stk_transformer_check(const stk_layer *layer, const stk_transformer_config *c)
{
    if (layer->shape.rank != 2 || stk_value_dtype(layer->x) != STK_I32) {
        char text[STK_SHAPE_TEXT_BYTES];
        stk_layer_fail(layer, "its input is %s, and must be tokens i32[N,T]",
                       stk_desc_text(stk_desc_make(stk_value_dtype(layer->x), layer->shape), text));
        return false;
    }
    return stk_layer_need_range(layer, "the number of layers", c->layers, 1, 10000) &&
           stk_layer_need_range(layer, "the width", c->width, 1, INT32_MAX / 16) &&
           stk_layer_need_range(layer, "the vocabulary", c->vocabulary, 1, INT32_MAX) &&
           stk_layer_need_range(layer, "the number of positions", c->positions, 1, INT32_MAX) &&
           stk_layer_need_range(layer, "the hidden width", c->hidden, 0, INT32_MAX);
}

stk_value stk_tied_loss(stk_value x, stk_value weight, stk_value targets, double smoothing)
{
    stk_shape shape = stk_value_shape(x);
    stk_linear_cross_entropy options = stk_linear_cross_entropy_default();
    options.smoothing = smoothing;
    if (shape.rank != 3) return stk_value_none(x.graph); /* after an error */
    stk_value rows = stk_reshape(x, STK_SHAPE(STK_ANY, shape.dim[2]));
    stk_value loss = stk_linear_cross_entropy_raw(rows, weight, stk_reshape(targets, STK_SHAPE(STK_ANY)), options);
    stk_value sum = stk_reduce_sum(stk_reshape(loss, STK_SHAPE(STK_ANY, shape.dim[1])), 1u << 1);
    stk_value one = stk_graph_constant(x.graph, STK_F32, (stk_shape){.rank = 0}, 1);
    stk_value count = stk_max(stk_count_targets(targets), one);
    return stk_div(sum, stk_cast_to(count, stk_value_dtype(sum)));
}

stk_status stk_transformer_configure(const stk_yaml_node *s,
                                     bool (*get_size)(const char *size, stk_transformer_config *out),
                                     stk_transformer_config *out)
{
    const stk_yaml_node *size = stk_yaml_get(s, "size");
    if (!get_size(size->text, out)) return stk_yaml_fail(size, "there is no size '%.60s'", size->text);
    out->layers = (int)stk_yaml_int(s, "layers", out->layers);
    out->heads = (int)stk_yaml_int(s, "heads", out->heads);
    out->width = stk_yaml_int(s, "width", out->width);
    out->hidden = stk_yaml_int(s, "hidden", out->hidden);
    out->vocabulary = stk_yaml_int(s, "vocabulary", out->vocabulary);
    out->positions = stk_yaml_int(s, "positions", out->positions);
    out->dropout = stk_yaml_real(s, "dropout", out->dropout);
    return STK_OK;
}
