/* GPT-2: Radford et al. 2019. The names and layouts are Hugging Face's (GPT2LMHeadModel): transformer.wte,
 * transformer.wpe, transformer.h.0.*, ..., transformer.ln_f; the head is wte's weight.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "nn/model_list.h"
#include "nn/transformer.h"

/* Weights are stored [in,out], as its Conv1D has them. */
static stk_value conv1d(stk_value x, int64_t units, double deviation, const char *name)
{
    return stk_dense_with(x, &(stk_dense_config){.units = units, .deviation = deviation, .in_out = true, .name = name});
}

static stk_value norm(stk_value x, const char *name, double eps)
{
    return stk_layer_norm_with(x, &(stk_layer_norm_config){.eps = eps, .name = name});
}

/* Part i of three of the last axis. */
static stk_value third(stk_value x, int i)
{
    stk_shape shape = stk_value_shape(x);
    if (shape.rank != 3) return x;
    int64_t n = shape.dim[2] / 3;
    return stk_slice(x, (int64_t[]){0, 0, i * n}, (int64_t[]){STK_ANY, STK_ANY, (i + 1) * n}, (int64_t[]){1, 1, 1});
}

stk_value stk_decoder_block(stk_value x, const stk_block_config *config)
{
    stk_block_config c = config ? *config : (stk_block_config){.attend = {.heads = 1}};
    stk_shape shape = stk_value_shape(x);
    int64_t width = shape.rank ? shape.dim[shape.rank - 1] : 0;
    double into_sum = c.deviation > 0 ? c.deviation : STK_TRANSFORMER_DEVIATION;
    c.attend.causal = true;
    stk_value qkv = conv1d(norm(x, "ln_1", c.eps), 3 * width, STK_TRANSFORMER_DEVIATION, "attn.c_attn");
    stk_value y = stk_attend(third(qkv, 0), third(qkv, 1), third(qkv, 2), &c.attend);
    x = stk_add(x, stk_dropout(conv1d(y, width, into_sum, "attn.c_proj"), c.dropout));
    y = conv1d(norm(x, "ln_2", c.eps), stk_block_hidden(&c, x), STK_TRANSFORMER_DEVIATION, "mlp.c_fc");
    return stk_add(x, stk_dropout(conv1d(stk_gelu_tanh(y), width, into_sum, "mlp.c_proj"), c.dropout));
}

/* Name, layers, heads, width. */
#define SIZES(X)                                                                                                       \
    X("124m", 12, 12, 768)                                                                                             \
    X("mini", 6, 6, 192)

#define X(name, ...) name,
static const char *const size_words[] = {SIZES(X) NULL};
#undef X

bool stk_gpt2_size(const char *size, stk_transformer_config *out)
{
    if (!size || !out) return false;
#define X(name, layers, heads, width) {layers, heads, width, 0, 50257, 1024, 0, 0},
    static const stk_transformer_config sizes[] = {SIZES(X)};
#undef X
    for (int i = 0; size_words[i]; i++) {
        if (strcmp(size_words[i], size)) continue;
        *out = sizes[i];
        return true;
    }
    return false;
}

stk_value stk_count_targets(stk_value targets)
{
    stk_graph *graph = targets.graph;
    double ignored = (double)stk_linear_cross_entropy_default().ignore_index;
    stk_value none = stk_graph_constant(graph, STK_I32, (stk_shape){.rank = 0}, ignored);
    return stk_reduce_sum(stk_cast_to(stk_not_equal(targets, none), STK_F32), 1u << 1);
}

/* x plus the embeddings of its positions, the first of which is the cache's. */
static stk_value add_positions_from(stk_value x, int64_t rows, stk_value first)
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "positions", "wpe")) return stk_value_none(x.graph);
    if (!stk_layer_need_sequence(&layer)) return stk_value_none(x.graph);
    stk_init init = {STK_INIT_NORMAL, STK_TRANSFORMER_DEVIATION};
    stk_value weight = stk_layer_variable(&layer, "weight", STK_SHAPE(rows, layer.shape.dim[2]), init, true);
    stk_value ids = stk_add(stk_iota(x.graph, STK_I32, STK_SHAPE(layer.shape.dim[1]), 0), stk_cast_to(first, STK_I32));
    return stk_layer_end(&layer, stk_add(x, stk_gather(weight, ids, 0)));
}

/* All but the final norm, in whose scope this ends; *wte becomes the weight of embedding and head. */
static stk_value run_blocks(stk_value tokens, const stk_transformer_config *c, const stk_attend_cache *cache,
                            stk_value *wte)
{
    stk_block_config block = {.attend = {.heads = c->heads, .dropout = c->dropout, .cache = cache},
                              .hidden = c->hidden,
                              .dropout = c->dropout,
                              .deviation = STK_TRANSFORMER_DEVIATION / sqrt(2.0 * c->layers)};
    stk_value x = stk_embed_words(tokens, c, "wte", wte);
    if (cache && cache->position.id >= 0)
        x = add_positions_from(x, c->positions, cache->position);
    else
        x = stk_add_positions(x, c->positions, "wpe");
    x = stk_dropout(x, c->dropout);
    for (int i = 0; i < c->layers; i++) {
        char scope[32];
        snprintf(scope, sizeof(scope), "h.%d", i);
        stk_scope_push(tokens.graph, scope);
        x = stk_decoder_block(x, &block);
        stk_scope_pop(tokens.graph);
    }
    return x;
}

stk_value stk_gpt2(stk_value tokens, stk_value targets, const stk_transformer_config *config)
{
    stk_transformer_config c = config ? *config : (stk_transformer_config){0};
    stk_graph *graph = tokens.graph;
    stk_layer layer;
    if (!stk_layer_begin(&layer, tokens, "gpt2", NULL)) return stk_value_none(graph);
    if (!stk_transformer_check(&layer, &c)) return stk_value_none(graph);
    stk_scope_push(graph, "transformer");
    stk_value wte, x = run_blocks(tokens, &c, NULL, &wte);
    x = norm(x, "ln_f", 0);
    stk_scope_pop(graph);
    return stk_layer_end(&layer, stk_tied_loss(x, wte, targets, c.smoothing));
}

stk_value stk_gpt2_logits(stk_value tokens, stk_value row_ids, const stk_transformer_config *config,
                          const stk_attend_cache *cache)
{
    stk_transformer_config c = config ? *config : (stk_transformer_config){0};
    stk_graph *graph = tokens.graph;
    stk_layer layer;
    c.dropout = 0;
    if (!stk_layer_begin(&layer, tokens, "gpt2", NULL)) return stk_value_none(graph);
    if (!stk_transformer_check(&layer, &c)) return stk_value_none(graph);
    stk_scope_push(graph, "transformer");
    stk_value wte, x = run_blocks(tokens, &c, cache, &wte);
    stk_value rows = stk_gather(stk_reshape(x, STK_SHAPE(STK_ANY, c.width)), row_ids, 0);
    x = norm(rows, "ln_f", 0);
    stk_scope_pop(graph);
    return stk_layer_end(&layer, stk_matmul(x, wte, false, true));
}

/* --- in a recipe --- */

static stk_status configure(const stk_yaml_node *s, stk_transformer_config *out)
{
    return stk_transformer_configure(s, stk_gpt2_size, out);
}

static stk_status build_loss(const stk_model_call *call, stk_value *out)
{
    stk_transformer_config config;
    STK_RETURN_IF_ERROR(configure(call->settings, &config));
    config.smoothing = call->smoothing;
    *out = stk_gpt2(call->x, call->targets, &config);
    return STK_OK;
}

static const stk_key keys[] = {{.name = "size",
                                .type = STK_KEY_WORD,
                                .words = size_words,
                                .default_value = "124m",
                                .doc = "12 layers of 768, 6 of 192."},
                               STK_TRANSFORMER_KEYS,
                               {.name = NULL}};

#define ROW(size)                                                                                                      \
    {                                                                                                                  \
        .name = "gpt2: {size: " size "}", .of = "1024 tokens",                                                         \
        .fields = "tokens: {shape: [1024], below: 50257}, targets: {shape: [1024], below: 50257}"                      \
    }
const stk_model_class stk_model_class_gpt2 = {
    .key = {.name = "gpt2",
            .type = STK_KEY_MAP,
            .keys = keys,
            .no_short = true,
            .doc = "A language model; Radford et al. 2019. The data has tokens and targets."},
    .takes = STK_MODEL_TAKES_TOKENS,
    .generates = true,
    .build_loss = build_loss,
    .configure = configure,
    .sample = {ROW("mini"), ROW("124m")},
    .place = 160,
};
