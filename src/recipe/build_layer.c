/* Layers with settings, one after the other: what an entry of a `layers:` list builds. Lists are in build_layers.c. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "nn/layer.h"
#include "recipe/build.h"
#include "stoker/nn/layers.h"
#include "stoker/nn/vit.h"
#include "tensor/shape.h"

static stk_initializer get_init(const stk_yaml_node *settings)
{
    static const struct {
        const char *name;
        stk_initializer init;
    } names[] = {{"he_normal", STK_INIT_HE_NORMAL},
                 {"he_uniform", STK_INIT_HE_UNIFORM},
                 {"glorot_normal", STK_INIT_GLOROT_NORMAL},
                 {"glorot_uniform", STK_INIT_GLOROT_UNIFORM},
                 {"he_normal_fan_out", STK_INIT_HE_NORMAL_FAN_OUT},
                 {"zero", STK_INIT_ZERO},
                 {"dirac", STK_INIT_DIRAC}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (stk_yaml_is(settings, "init", names[i].name)) return names[i].init;
    return STK_INIT_DEFAULT;
}

static stk_status build_conv(const stk_yaml_node *s, stk_value (*make)(stk_value, const stk_conv2d_config *),
                             stk_value *x)
{
    const stk_yaml_node *padding = stk_yaml_get(s, "padding"), *bias = stk_yaml_get(s, "bias");
    stk_conv2d_config config = {.filters = stk_yaml_int(s, "filters", 0),
                                .kernel = (int)stk_yaml_int(s, "kernel", 3),
                                .stride = (int)stk_yaml_int(s, "stride", 1),
                                .dilation = (int)stk_yaml_int(s, "dilation", 1),
                                .groups = (int)stk_yaml_int(s, "groups", 1),
                                .no_bias = bias && !bias->truth,
                                .like_keras = stk_yaml_is(s, "like", "keras"),
                                .init = get_init(s)};
    if (!strcmp(padding->text, "none") || !strcmp(padding->text, "0")) {
        config.padding = -1;
    } else if (strcmp(padding->text, "same")) {
        char *end;
        long pixels = strtol(padding->text, &end, 10);
        if (*end || pixels < 0 || pixels > 1024)
            return stk_yaml_fail(padding, "'padding' must be same, none, or pixels from 0 to 1024, not '%.40s'",
                                 padding->text);
        config.padding = (int)pixels;
    }
    *x = make(*x, &config);
    return STK_OK;
}

static void build_batch_norm(const stk_yaml_node *s, stk_value *x)
{
    const stk_yaml_node *zero = stk_yaml_get(s, "zero_scale"), *scale = stk_yaml_get(s, "scale");
    stk_batch_norm_config config = {.momentum = stk_yaml_real(s, "momentum", 0),
                                    .eps = stk_yaml_real(s, "eps", 0),
                                    .like_keras = stk_yaml_is(s, "like", "keras"),
                                    .zero_scale = zero && zero->truth,
                                    .fixed_scale = scale && !scale->truth};
    *x = stk_batch_norm_with(*x, &config);
}

static void build_transpose(const stk_yaml_node *s, stk_value *x)
{
    const stk_yaml_node *bias = stk_yaml_get(s, "bias");
    int kernel = (int)stk_yaml_int(s, "kernel", 2);
    stk_conv2d_transpose_config config = {.filters = stk_yaml_int(s, "filters", 0),
                                          .kernel = kernel,
                                          .stride = (int)stk_yaml_int(s, "stride", kernel),
                                          .padding = (int)stk_yaml_int(s, "padding", 0),
                                          .output_padding = (int)stk_yaml_int(s, "output_padding", 0),
                                          .groups = (int)stk_yaml_int(s, "groups", 1),
                                          .no_bias = bias && !bias->truth,
                                          .init = get_init(s)};
    *x = strcmp(s->key, "conv3d_transpose") ? stk_conv2d_transpose_with(*x, &config)
                                            : stk_conv3d_transpose_with(*x, &config);
}

static void build_dense(const stk_yaml_node *s, stk_value *x)
{
    const stk_yaml_node *bias = stk_yaml_get(s, "bias");
    stk_dense_config config = {
        .units = stk_yaml_int(s, "units", 0), .no_bias = bias && !bias->truth, .init = get_init(s)};
    *x = stk_dense_with(*x, &config);
}

static const struct {
    const char *name;
    stk_value (*build)(stk_value x);
} plain_layers[] = {{"relu", stk_relu},
                    {"gelu", stk_gelu},
                    {"silu", stk_silu},
                    {"tanh", stk_tanh},
                    {"sigmoid", stk_sigmoid},
                    {"softmax", stk_softmax},
                    {"flatten", stk_flatten},
                    {"global_pool", stk_global_mean},
                    {"global_max_pool", stk_global_max_pool},
                    {"relu6", stk_relu6},
                    {"elu", stk_elu},
                    {"hard_sigmoid", stk_hard_sigmoid},
                    {"hard_swish", stk_hard_swish},
                    {"softplus", stk_softplus}};

static const struct {
    const char *name;
    stk_value (*build)(stk_value x, const stk_conv2d_config *config);
} convolutions[] = {
    {"conv2d", stk_conv2d_with}, {"conv3d", stk_conv3d_with}, {"depthwise_conv2d", stk_depthwise_conv2d_with}};

static const struct {
    const char *name;
    stk_value (*build)(stk_value x, int size, int stride, int padding);
} pools[] = {{"max_pool", stk_max_pool_with},
             {"avg_pool", stk_avg_pool_with},
             {"max_pool3d", stk_max_pool3d_with},
             {"avg_pool3d", stk_avg_pool3d_with}};

static void build_attention_block(const stk_yaml_node *s, stk_value *x)
{
    stk_block_config config = {.attend = {.heads = (int)stk_yaml_int(s, "heads", 1),
                                          .causal = stk_yaml_bool(s, "causal"),
                                          .dropout = stk_yaml_real(s, "dropout", 0)},
                               .hidden = stk_yaml_int(s, "hidden", 0),
                               .dropout = stk_yaml_real(s, "dropout", 0)};
    /* A scope of its own, or the names of a second block would be those of the first. */
    stk_layer layer;
    if (!stk_layer_begin(&layer, *x, "attention_block", NULL)) return;
    stk_scope_push(x->graph, stk_layer_own_name(&layer));
    *x = stk_yaml_bool(s, "norm_first") ? stk_prenorm_block(*x, &config) : stk_encoder_block(*x, &config);
    stk_scope_pop(layer.graph);
}

/* A sample's sides, of which one may be -1. */
static stk_status build_reshape(const stk_yaml_node *s, stk_value *x)
{
    stk_shape shape = {.rank = 1, .dim = {STK_ANY}}, from = stk_value_shape(*x);
    int64_t count = from.rank > 0 ? stk_shape_product(from, 1, from.rank) : 0, known = 1;
    int open = -1;
    for (const stk_yaml_node *side = s->child; side; side = side->next) {
        if (shape.rank == STK_MAX_RANK) return stk_yaml_fail(s, "more than %d sides", STK_MAX_RANK - 1);
        if (side->integer == 0 || (side->integer < 0 && open >= 0))
            return stk_yaml_fail(side, "a side is 0, or the second that is -1");
        if (side->integer < 0)
            open = shape.rank;
        else
            known = stk_dim_times(known, side->integer);
        shape.dim[shape.rank++] = side->integer;
    }
    if (open >= 0) shape.dim[open] = count / known;
    if (count < 1 || (open < 0 ? known : stk_dim_times(known, shape.dim[open])) != count) {
        char a[STK_SHAPE_TEXT_BYTES];
        return stk_yaml_fail(s, "%s a sample has %lld numbers, which these sides do not hold", stk_shape_text(from, a),
                             (long long)count);
    }
    *x = stk_reshape(*x, shape);
    return STK_OK;
}

/* Whole numbers of other types as i32. */
static stk_value as_numbers(stk_value x)
{
    stk_dtype dtype = stk_value_dtype(x);
    return dtype == STK_I32 || stk_dtype_is_float(dtype) ? x : stk_cast_to(x, STK_I32);
}

/* Layers of a few numbers. False: it is none of them. */
static bool build_small(const stk_yaml_node *s, stk_value *x)
{
    stk_group_norm_config group = {.groups = stk_yaml_int(s, "groups", 1), .eps = stk_yaml_real(s, "eps", 0)};
    stk_layer_norm_config norm = {.eps = stk_yaml_real(s, "eps", 0)};
    if (!strcmp(s->key, "dropout"))
        *x = stk_dropout(*x, stk_yaml_real(s, "rate", 0));
    else if (!strcmp(s->key, "scale"))
        *x = stk_scale_by(*x, stk_yaml_real(s, "by", 0));
    else if (!strcmp(s->key, "leaky_relu"))
        *x = stk_leaky_relu(*x, stk_yaml_real(s, "slope", 0));
    else if (!strcmp(s->key, "layer_norm"))
        *x = stk_layer_norm_with(*x, &norm);
    else if (!strcmp(s->key, "group_norm"))
        *x = stk_group_norm_with(*x, &group);
    else if (!strcmp(s->key, "embedding"))
        *x = stk_embedding(as_numbers(*x), stk_yaml_int(s, "rows", 0), stk_yaml_int(s, "width", 0));
    else if (!strcmp(s->key, "positions"))
        *x = stk_positions(*x, stk_yaml_int(s, "rows", 0), NULL);
    else if (!strcmp(s->key, "upsample"))
        *x = stk_yaml_is(s, "mode", "linear") ? stk_upsample_linear(*x, (int)stk_yaml_int(s, "scale", 1))
                                              : stk_upsample_nearest(*x, (int)stk_yaml_int(s, "scale", 1));
    else
        return false;
    return true;
}

stk_status stk_build_layer(const stk_yaml_node *s, stk_value *x)
{
    for (size_t i = 0; i < sizeof(plain_layers) / sizeof(plain_layers[0]); i++) {
        if (strcmp(plain_layers[i].name, s->key)) continue;
        *x = plain_layers[i].build(*x);
        return STK_OK;
    }
    for (size_t i = 0; i < sizeof(convolutions) / sizeof(convolutions[0]); i++)
        if (!strcmp(convolutions[i].name, s->key)) return build_conv(s, convolutions[i].build, x);
    for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++) {
        if (strcmp(pools[i].name, s->key)) continue;
        int size = (int)stk_yaml_int(s, "size", 2);
        *x = pools[i].build(*x, size, (int)stk_yaml_int(s, "stride", size), (int)stk_yaml_int(s, "padding", 0));
        return STK_OK;
    }
    if (build_small(s, x)) return STK_OK;
    if (!strcmp(s->key, "reshape")) return build_reshape(s, x);
    if (!strcmp(s->key, "dense"))
        build_dense(s, x);
    else if (!strcmp(s->key, "batch_norm"))
        build_batch_norm(s, x);
    else if (!strcmp(s->key, "conv2d_transpose") || !strcmp(s->key, "conv3d_transpose"))
        build_transpose(s, x);
    else if (!strcmp(s->key, "attention_block"))
        build_attention_block(s, x);
    else
        return stk_yaml_fail(s, "layer '%s' cannot be built", s->key);
    return STK_OK;
}
