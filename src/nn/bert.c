/* BERT: Devlin et al. 2019. The names are Hugging Face's (BertForSequenceClassification): bert.embeddings.*,
 * bert.encoder.layer.0.*, ..., bert.pooler.dense, classifier; and BertForMaskedLM: cls.predictions.*, whose decoder has
 * the weight of the embedding.
 */
#include <stdio.h>
#include <string.h>

#include "nn/model_list.h"
#include "nn/transformer.h"

static const double EPS = 1e-12;

static stk_value norm(stk_value x, const char *name, double eps)
{
    return stk_layer_norm_with(x, &(stk_layer_norm_config){.eps = eps, .name = name});
}

stk_value stk_encoder_block(stk_value x, const stk_block_config *config)
{
    stk_block_config c = config ? *config : (stk_block_config){.attend = {.heads = 1}};
    stk_shape shape = stk_value_shape(x);
    int64_t width = shape.rank ? shape.dim[shape.rank - 1] : 0;
    double eps = c.eps > 0 ? c.eps : EPS;
    stk_scope_push(x.graph, "attention");
    stk_value q = stk_normal_dense(x, width, "self.query"), k = stk_normal_dense(x, width, "self.key");
    stk_value v = stk_normal_dense(x, width, "self.value");
    stk_value y = stk_normal_dense(stk_attend(q, k, v, &c.attend), width, "output.dense");
    x = norm(stk_add(stk_dropout(y, c.dropout), x), "output.LayerNorm", eps);
    stk_scope_pop(x.graph);
    y = stk_gelu(stk_normal_dense(x, stk_block_hidden(&c, x), "intermediate.dense"));
    y = stk_normal_dense(y, width, "output.dense");
    return norm(stk_add(stk_dropout(y, c.dropout), x), "output.LayerNorm", eps);
}

/* Name, layers, heads, width. */
#define SIZES(X)                                                                                                       \
    X("base", 12, 12, 768)                                                                                             \
    X("mini", 4, 4, 256)                                                                                               \
    X("tiny", 2, 2, 128)

#define X(name, ...) name,
static const char *const size_words[] = {SIZES(X) NULL};
#undef X

bool stk_bert_size(const char *size, stk_transformer_config *out)
{
    if (!size || !out) return false;
#define X(name, layers, heads, width) {layers, heads, width, 0, 30522, 512, 0.1, 0},
    static const stk_transformer_config sizes[] = {SIZES(X)};
#undef X
    for (int i = 0; size_words[i]; i++) {
        if (strcmp(size_words[i], size)) continue;
        *out = sizes[i];
        return true;
    }
    return false;
}

/* Words, positions and the type of the sentence, of which there is one: the first of two. */
static stk_value embed(stk_value tokens, const stk_transformer_config *c, stk_value *words)
{
    stk_scope_push(tokens.graph, "embeddings");
    stk_value x = stk_embed_words(tokens, c, "word_embeddings", words);
    x = stk_add_positions(x, c->positions, "position_embeddings");
    stk_layer layer;
    if (stk_layer_begin(&layer, x, "token_type", "token_type_embeddings")) {
        stk_init init = {STK_INIT_NORMAL, STK_TRANSFORMER_DEVIATION};
        stk_value types = stk_layer_variable(&layer, "weight", STK_SHAPE(2, c->width), init, true);
        x = stk_add(x, stk_slice(types, (int64_t[]){0, 0}, (int64_t[]){1, c->width}, (int64_t[]){1, 1}));
    }
    x = stk_dropout(norm(x, "LayerNorm", EPS), c->dropout);
    stk_scope_pop(tokens.graph);
    return x;
}

/* What the classifier sees: the first position, through a dense layer and tanh. */
static stk_value pool(stk_value x, int64_t width)
{
    stk_value first = stk_slice(x, (int64_t[]){0, 0, 0}, (int64_t[]){STK_ANY, 1, width}, (int64_t[]){1, 1, 1});
    return stk_tanh(stk_normal_dense(stk_reshape(first, STK_SHAPE(STK_ANY, width)), width, "pooler.dense"));
}

/* The blocks, in the scope "bert", in which this ends; *words becomes the weight of the embedding. */
static stk_value encode(stk_value tokens, const stk_value *mask, const stk_transformer_config *c, stk_value *words)
{
    stk_block_config block = {
        .attend = {.heads = c->heads, .dropout = c->dropout, .mask = mask}, .hidden = c->hidden, .dropout = c->dropout};
    stk_value x = embed(tokens, c, words);
    for (int i = 0; i < c->layers; i++) {
        char scope[32];
        snprintf(scope, sizeof(scope), "encoder.layer.%d", i);
        stk_scope_push(tokens.graph, scope);
        x = stk_encoder_block(x, &block);
        stk_scope_pop(tokens.graph);
    }
    return x;
}

stk_value stk_bert(stk_value tokens, const stk_value *mask, const stk_transformer_config *config, int64_t classes)
{
    stk_transformer_config c = config ? *config : (stk_transformer_config){0};
    stk_graph *graph = tokens.graph;
    stk_layer layer;
    if (!stk_layer_begin(&layer, tokens, "bert", NULL)) return stk_value_none(graph);
    if (!stk_transformer_check(&layer, &c)) return stk_value_none(graph);
    stk_scope_push(graph, "bert");
    stk_value words, x = pool(encode(tokens, mask, &c, &words), c.width);
    stk_scope_pop(graph);
    return stk_normal_dense(stk_dropout(x, c.dropout), classes, "classifier");
}

/* Weight and bias [V] of the decoder as one weight [V,width+1], whose input has a 1 at its end. */
static stk_value with_bias(const stk_layer *layer, stk_value weight, int64_t rows)
{
    stk_init zero = {STK_INIT_CONSTANT, 0};
    stk_value bias = stk_layer_variable(layer, "bias", STK_SHAPE(rows), zero, true);
    return stk_concat((stk_value[]){weight, stk_reshape(bias, STK_SHAPE(rows, 1))}, 2, 1);
}

static stk_value with_one(stk_value x)
{
    stk_shape shape = stk_value_shape(x);
    if (shape.rank != 3) return stk_value_none(x.graph); /* after an error */
    stk_value first = stk_slice(x, (int64_t[]){0, 0, 0}, (int64_t[]){STK_ANY, STK_ANY, 1}, (int64_t[]){1, 1, 1});
    stk_value one = stk_graph_constant(x.graph, stk_value_dtype(x), (stk_shape){.rank = 0}, 1);
    /* As many as there are positions: nothing else tells how many samples there are. */
    return stk_concat((stk_value[]){x, stk_add(stk_scale_by(first, 0), one)}, 2, 2);
}

stk_value stk_bert_masked(stk_value tokens, const stk_value *mask, stk_value targets,
                          const stk_transformer_config *config)
{
    stk_transformer_config c = config ? *config : (stk_transformer_config){0};
    stk_graph *graph = tokens.graph;
    stk_layer layer, head;
    if (!stk_layer_begin(&layer, tokens, "bert", NULL)) return stk_value_none(graph);
    if (!stk_transformer_check(&layer, &c)) return stk_value_none(graph);
    stk_scope_push(graph, "bert");
    stk_value words, x = encode(tokens, mask, &c, &words);
    stk_scope_pop(graph);
    x = stk_gelu(stk_normal_dense(x, c.width, "cls.predictions.transform.dense"));
    x = norm(x, "cls.predictions.transform.LayerNorm", EPS);
    if (!stk_layer_begin(&head, x, "predictions", "cls.predictions")) return stk_value_none(graph);
    stk_value weight = with_bias(&head, words, c.vocabulary);
    return stk_layer_end(&layer, stk_tied_loss(with_one(x), weight, targets, c.smoothing));
}

/* --- in a recipe --- */

static stk_status configure(const stk_yaml_node *s, stk_transformer_config *out)
{
    return stk_transformer_configure(s, stk_bert_size, out);
}

static stk_status build(const stk_model_call *call, stk_value *out)
{
    stk_transformer_config config;
    stk_value mask;
    STK_RETURN_IF_ERROR(configure(call->settings, &config));
    *out = stk_bert(call->x, stk_pad_mask_of(call->settings, call->x, &mask), &config, call->n_classes);
    return STK_OK;
}

static stk_status build_loss(const stk_model_call *call, stk_value *out)
{
    stk_transformer_config config;
    stk_value mask;
    STK_RETURN_IF_ERROR(configure(call->settings, &config));
    config.smoothing = call->smoothing;
    *out = stk_bert_masked(call->x, stk_pad_mask_of(call->settings, call->x, &mask), call->targets, &config);
    return STK_OK;
}

static const stk_key keys[] = {
    {.name = "size",
     .type = STK_KEY_WORD,
     .words = size_words,
     .default_value = "base",
     .doc = "12 layers of 768, 4 of 256, 2 of 128."},
    STK_KEY_CLASSES("the data"),
    {.name = "pad",
     .type = STK_KEY_INT,
     .least = 0,
     .most = 2147483647,
     .doc = "The token that sequences are filled up with, which nothing attends to. Default: all tokens count."},
    STK_TRANSFORMER_KEYS,
    {.name = NULL}};

#define ROW(size)                                                                                                      \
    {                                                                                                                  \
        .name = "bert: {size: " size "}", .of = "128 tokens, 2 classes",                                               \
        .fields = "tokens: {shape: [128], below: 30522}", .n_classes = 2                                               \
    }
const stk_model_class stk_model_class_bert = {
    .key = {.name = "bert",
            .type = STK_KEY_MAP,
            .keys = keys,
            .no_short = true,
            .doc = "Classes of sequences of tokens; Devlin et al. 2019. The data has tokens "
                   "(or text, tokenized) and label."},
    .takes = STK_MODEL_TAKES_TOKENS,
    .has_classes = true,
    .build = build,
    .build_loss = build_loss,
    .configure = configure,
    .sample = {ROW("mini"), ROW("base")},
    .place = 140,
};
