/* Vision transformers: Dosovitskiy et al. 2021. The names are torchvision's (vit_b_16): class_token, conv_proj,
 * encoder.pos_embedding, encoder.layers.encoder_layer_0.*, ..., encoder.ln, heads.head.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "nn/model_list.h"
#include "nn/transformer.h"
#include "stoker/nn/vit.h"

static const double EPS = 1e-6;

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

/* PyTorch's MultiheadAttention, whose three weights are one. */
static stk_value attend(stk_value x, const stk_attend_config *config)
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "self_attention", "self_attention")) return stk_value_none(x.graph);
    if (!stk_layer_need_sequence(&layer)) return stk_value_none(x.graph);
    int64_t width = layer.shape.dim[2];
    stk_init glorot = {STK_INIT_UNIFORM, sqrt(6.0 / (4.0 * (double)width))}, zero = {STK_INIT_CONSTANT, 0};
    stk_value weight = stk_layer_variable(&layer, "in_proj_weight", STK_SHAPE(3 * width, width), glorot, true);
    stk_value bias = stk_layer_variable(&layer, "in_proj_bias", STK_SHAPE(3 * width), zero, true);
    stk_value qkv = stk_add(stk_matmul(x, weight, false, true), bias);
    stk_value y = stk_attend(third(qkv, 0), third(qkv, 1), third(qkv, 2), config);
    y = stk_dense_with(y, &(stk_dense_config){.units = width, .deviation = 0.02, .name = "self_attention.out_proj"});
    return stk_layer_end(&layer, y);
}

stk_value stk_prenorm_block(stk_value x, const stk_block_config *config)
{
    stk_block_config c = config ? *config : (stk_block_config){.attend = {.heads = 1}};
    stk_shape shape = stk_value_shape(x);
    int64_t width = shape.rank ? shape.dim[shape.rank - 1] : 0;
    double eps = c.eps > 0 ? c.eps : EPS;
    x = stk_add(x, stk_dropout(attend(norm(x, "ln_1", eps), &c.attend), c.dropout));
    stk_value y = stk_dense_with(
        norm(x, "ln_2", eps),
        &(stk_dense_config){.units = stk_block_hidden(&c, x), .init = STK_INIT_GLOROT_UNIFORM, .name = "mlp.0"});
    y = stk_dropout(stk_gelu(y), c.dropout);
    y = stk_dense_with(y, &(stk_dense_config){.units = width, .init = STK_INIT_GLOROT_UNIFORM, .name = "mlp.3"});
    return stk_add(x, stk_dropout(y, c.dropout));
}

/* Name, layers, heads, patch, width. */
#define SIZES(X)                                                                                                       \
    X("tiny", 12, 3, 16, 192)                                                                                          \
    X("small", 12, 6, 16, 384)                                                                                         \
    X("base", 12, 12, 16, 768)

#define X(name, ...) name,
static const char *const size_words[] = {SIZES(X) NULL};
#undef X

bool stk_vit_size(const char *size, stk_vit_config *out)
{
    if (!size || !out) return false;
#define X(name, layers, heads, patch, width) {layers, heads, patch, width, 0, 0, 0, 0},
    static const stk_vit_config sizes[] = {SIZES(X)};
#undef X
    for (int i = 0; size_words[i]; i++) {
        if (strcmp(size_words[i], size)) continue;
        *out = sizes[i];
        return true;
    }
    return false;
}

static bool check(const stk_layer *layer, const stk_vit_config *c)
{
    if (!stk_layer_need_space(layer, 2) || !stk_layer_need_range(layer, "the number of layers", c->layers, 1, 10000) ||
        !stk_layer_need_range(layer, "the patch", c->patch, 1, 1024) ||
        !stk_layer_need_range(layer, "the width", c->width, 1, INT32_MAX / 16))
        return false;
    const int64_t *side = layer->shape.dim + 1;
    if (side[0] % c->patch == 0 && side[1] % c->patch == 0) return true;
    stk_layer_fail(layer, "images of %lld x %lld do not divide into patches of %d", (long long)side[0],
                   (long long)side[1], c->patch);
    return false;
}

/* Patches and the token of the class in front of them, with their positions: [N,1+patches,width]. */
static stk_value embed(const stk_layer *layer, stk_value x, const stk_vit_config *c)
{
    stk_init zero = {STK_INIT_CONSTANT, 0}, positions = {STK_INIT_NORMAL, 0.02};
    int64_t n = layer->shape.dim[1] / c->patch * (layer->shape.dim[2] / c->patch), width = c->width;
    x = stk_conv2d_with(
        x, &(stk_conv2d_config){
               .filters = width, .kernel = c->patch, .stride = c->patch, .padding = -1, .name = "conv_proj"});
    x = stk_reshape(x, STK_SHAPE(STK_ANY, n, width));
    stk_value token = stk_graph_variable(layer->graph, "class_token", layer->dtype, STK_SHAPE(1, 1, width), zero, true);
    stk_value first = stk_slice(x, (int64_t[]){0, 0, 0}, (int64_t[]){STK_ANY, 1, width}, (int64_t[]){1, 1, 1});
    /* One for each sample: nothing else tells how many there are. */
    first = stk_add(stk_scale_by(first, 0), token);
    x = stk_concat((stk_value[]){first, x}, 2, 1);
    stk_value place = stk_graph_variable(layer->graph, "encoder.pos_embedding", layer->dtype,
                                         STK_SHAPE(1, n + 1, width), positions, true);
    return stk_dropout(stk_add(x, place), c->dropout);
}

stk_value stk_vit(stk_value x, const stk_vit_config *config, int64_t classes)
{
    stk_vit_config c = config ? *config : (stk_vit_config){0};
    stk_layer layer;
    stk_graph *graph = x.graph;
    if (!stk_layer_begin(&layer, x, "vit", NULL)) return stk_value_none(graph);
    if (!check(&layer, &c)) return stk_value_none(graph);
    stk_block_config block = {.attend = {.heads = c.heads, .dropout = c.attention_dropout},
                              .hidden = c.hidden,
                              .dropout = c.dropout,
                              .eps = c.eps > 0 ? c.eps : EPS};
    x = embed(&layer, x, &c);
    for (int i = 0; i < c.layers; i++) {
        char scope[64];
        snprintf(scope, sizeof(scope), "encoder.layers.encoder_layer_%d", i);
        stk_scope_push(graph, scope);
        x = stk_prenorm_block(x, &block);
        stk_scope_pop(graph);
    }
    x = norm(x, "encoder.ln", block.eps);
    x = stk_slice(x, (int64_t[]){0, 0, 0}, (int64_t[]){STK_ANY, 1, c.width}, (int64_t[]){1, 1, 1});
    x = stk_reshape(x, STK_SHAPE(STK_ANY, c.width));
    return stk_dense_with(x, &(stk_dense_config){.units = classes, .init = STK_INIT_ZERO, .name = "heads.head"});
}

/* --- in a recipe --- */

static stk_status build(const stk_model_call *call, stk_value *out)
{
    const stk_yaml_node *s = call->settings, *size = stk_yaml_get(s, "size");
    stk_vit_config c;
    if (!stk_vit_size(size->text, &c)) return stk_yaml_fail(size, "there is no size '%.60s'", size->text);
    c.layers = (int)stk_yaml_int(s, "layers", c.layers);
    c.heads = (int)stk_yaml_int(s, "heads", c.heads);
    c.patch = (int)stk_yaml_int(s, "patch", c.patch);
    c.width = stk_yaml_int(s, "width", c.width);
    c.hidden = stk_yaml_int(s, "hidden", c.hidden);
    c.dropout = stk_yaml_real(s, "dropout", 0);
    c.eps = stk_yaml_real(s, "eps", 0);
    *out = stk_vit(call->x, &c, call->n_classes);
    return STK_OK;
}

#define MAYBE(key, text)                                                                                               \
    {                                                                                                                  \
        .name = key, .type = STK_KEY_INT, .least = 1, .most = 1e6, .doc = text                                         \
    }
static const stk_key keys[] = {{.name = "size",
                                .type = STK_KEY_WORD,
                                .words = size_words,
                                .default_value = "base",
                                .doc = "12 layers of 192, 384 or 768."},
                               MAYBE("patch", "Sides of the patches in pixels. Default: 16."),
                               MAYBE("layers", "Default: as size says."),
                               MAYBE("heads", "Default: as size says."),
                               MAYBE("width", "Default: as size says."),
                               MAYBE("hidden", "Default: four times the width."),
                               {.name = "dropout",
                                .type = STK_KEY_REAL,
                                .default_value = "0",
                                .least = 0,
                                .most = 0.99,
                                .doc = "Of what blocks add."},
                               {.name = "eps",
                                .type = STK_KEY_REAL,
                                .default_value = "1e-6",
                                .least = 0,
                                .above = true,
                                .doc = "Of the layer norms, torchvision's; Hugging Face's ViTs have 1e-12."},
                               STK_KEY_CLASSES("the data"),
                               {.name = NULL}};

#define ROW(size)                                                                                                      \
    {                                                                                                                  \
        .name = "vit: {size: " size "}", .of = "224 x 224 x 3, 1000 classes", .fields = "image: [224, 224, 3]",        \
        .n_classes = 1000                                                                                              \
    }
const stk_model_class stk_model_class_vit = {
    .key = {.name = "vit",
            .type = STK_KEY_MAP,
            .keys = keys,
            .no_short = true,
            .doc = "Patches as a sequence; Dosovitskiy et al. 2021."},
    .has_classes = true,
    .is_published = true,
    .build = build,
    .sample = {ROW("tiny"), ROW("base")},
    .place = 90,
};
