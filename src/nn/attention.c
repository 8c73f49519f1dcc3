/* Attention of several heads: Vaswani et al. 2017. */
#include "nn/transformer.h"

/* [N,T,C] -> [N,T,heads,C/heads] */
static stk_value split_heads(stk_value x, int heads)
{
    stk_shape shape = stk_value_shape(x);
    return stk_reshape(x, STK_SHAPE(shape.dim[0], shape.dim[1], heads, shape.dim[2] / heads));
}

static bool check_attend(const stk_layer *layer, const stk_attend_config *c)
{
    if (!stk_layer_need_sequence(layer) || !stk_layer_need_range(layer, "the number of heads", c->heads, 1, INT32_MAX))
        return false;
    int64_t width = layer->shape.dim[2];
    if (width % c->heads) {
        stk_layer_fail(layer, "a width of %lld does not divide into %d heads", (long long)width, c->heads);
        return false;
    }
    if (c->dropout >= 0 && c->dropout < 1) return true;
    stk_layer_fail(layer, "the dropout is %g, and must be in [0,1)", c->dropout);
    return false;
}

static bool check_cache(const stk_layer *layer, const stk_attend_config *c)
{
    if (!c->causal || c->mask || c->dropout > 0 || layer->shape.dim[0] == STK_ANY) {
        stk_layer_fail(layer, "a cache is for causal attention of a known batch, without mask and dropout");
        return false;
    }
    return stk_layer_need_range(layer, "the number of the cache's rows", c->cache->rows, layer->shape.dim[1],
                                INT32_MAX);
}

/* The variable of that name with x written into it, which it becomes. */
static stk_value keep(const stk_layer *layer, const stk_attend_cache *cache, const char *name, stk_value x)
{
    stk_shape shape = stk_value_shape(x);
    shape.dim[1] = cache->rows;
    stk_value position = cache->position;
    if (position.id < 0) position = stk_graph_constant(layer->graph, STK_I64, (stk_shape){0}, 0);
    stk_value variable = stk_layer_variable(layer, name, shape, (stk_init){STK_INIT_CONSTANT, 0}, false);
    stk_value filled = stk_write_at(variable, x, position);
    stk_graph_update(layer->graph, variable, filled);
    return filled;
}

/* q, k and v [N,T,heads,C/heads]. */
static stk_value attend_to_cache(const stk_layer *layer, const stk_attend_config *c, stk_value q, stk_value k,
                                 stk_value v)
{
    if (!check_cache(layer, c)) return stk_value_none(layer->graph);
    stk_value keys = keep(layer, c->cache, "cached_keys", k), values = keep(layer, c->cache, "cached_values", v);
    if (c->cache->position.id >= 0) return stk_cached_attention(q, keys, values, c->cache->position, 0);
    stk_value none = stk_value_none(layer->graph);
    return stk_attention_raw(q, k, v, none, none, none, (stk_attention){.causal = true});
}

stk_value stk_attend(stk_value q, stk_value k, stk_value v, const stk_attend_config *config)
{
    stk_attend_config c = config ? *config : (stk_attend_config){.heads = 1};
    stk_graph *graph = q.graph;
    stk_layer layer;
    if (!stk_layer_begin(&layer, q, "attention", NULL)) return stk_value_none(graph);
    if (!check_attend(&layer, &c)) return stk_value_none(graph);
    if (c.cache) {
        stk_value y =
            attend_to_cache(&layer, &c, split_heads(q, c.heads), split_heads(k, c.heads), split_heads(v, c.heads));
        return stk_layer_end(&layer, stk_reshape(y, layer.shape));
    }
    stk_value none = stk_value_none(graph), seed = none, sample = none;
    stk_attention options = {.causal = c.causal, .dropout = c.dropout};
    if (c.dropout > 0) {
        options.stream = stk_graph_next_stream(graph);
        seed = stk_graph_scalar_input(graph, "seed", STK_I64);
        sample = stk_graph_scalar_input(graph, "sample", STK_I64);
    }
    stk_value y = stk_attention_raw(split_heads(q, c.heads), split_heads(k, c.heads), split_heads(v, c.heads),
                                    c.mask ? *c.mask : none, seed, sample, options);
    return stk_layer_end(&layer, stk_reshape(y, layer.shape));
}

stk_value stk_self_attention(stk_value x, const stk_self_attention_config *config)
{
    stk_self_attention_config c = config ? *config : (stk_self_attention_config){.attend = {.heads = 1}};
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "self_attention", c.name)) return stk_value_none(x.graph);
    if (!check_attend(&layer, &c.attend)) return stk_value_none(x.graph);
    int64_t width = layer.shape.dim[2];
    stk_scope_push(x.graph, stk_layer_own_name(&layer));
    stk_value q = stk_normal_dense(x, width, "query"), k = stk_normal_dense(x, width, "key");
    stk_value v = stk_normal_dense(x, width, "value");
    stk_value y = stk_normal_dense(stk_attend(q, k, v, &c.attend), width, "output");
    stk_scope_pop(x.graph);
    return stk_layer_end(&layer, y);
}
