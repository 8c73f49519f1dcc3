/* Models from a recipe: the networks by name, and `layers:` lists. See train/build.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "tensor/shape.h"
#include "train/build.h"

static int64_t get_int(const stk_yaml_node *node, const char *key, int64_t standard)
{
    const stk_yaml_node *child = stk_yaml_get(node, key);
    return child ? child->integer : standard;
}

static double get_real(const stk_yaml_node *node, const char *key)
{
    const stk_yaml_node *child = stk_yaml_get(node, key);
    return child ? child->real : 0;
}

static bool is_word(const stk_yaml_node *node, const char *key, const char *word)
{
    const stk_yaml_node *child = stk_yaml_get(node, key);
    return child && !strcmp(child->text, word);
}

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
                 {"zero", STK_INIT_ZERO}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (is_word(settings, "init", names[i].name)) return names[i].init;
    return STK_INIT_DEFAULT;
}

/* --- layers with settings --- */

static stk_status build_conv(const stk_yaml_node *s, stk_value (*make)(stk_value, const stk_conv2d_config *),
                             stk_value *x)
{
    const stk_yaml_node *padding = stk_yaml_get(s, "padding"), *bias = stk_yaml_get(s, "bias");
    stk_conv2d_config config = {.filters = get_int(s, "filters", 0),
                                .kernel = (int)get_int(s, "kernel", 3),
                                .stride = (int)get_int(s, "stride", 1),
                                .dilation = (int)get_int(s, "dilation", 1),
                                .groups = (int)get_int(s, "groups", 1),
                                .no_bias = bias && !bias->truth,
                                .like_keras = is_word(s, "like", "keras"),
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

static stk_status build_residual(const stk_yaml_node *s, stk_value *x)
{
    stk_value main_way, shortcut;
    STK_RETURN_IF_ERROR(stk_build_layers(stk_yaml_get(s, "layers"), *x, &main_way));
    STK_RETURN_IF_ERROR(stk_build_layers(stk_yaml_get(s, "shortcut"), *x, &shortcut));
    stk_shape a = stk_value_shape(main_way), b = stk_value_shape(shortcut);
    /* The addition would broadcast, which a residual never means. */
    if (!stk_shape_equal(a, b)) {
        char a_text[STK_SHAPE_TEXT_BYTES], b_text[STK_SHAPE_TEXT_BYTES];
        return stk_yaml_fail(s, "the layers give %s and the shortcut %s; they must be equal to be added",
                             stk_shape_text(a, a_text), stk_shape_text(b, b_text));
    }
    *x = stk_add(main_way, shortcut);
    return STK_OK;
}

static void build_batch_norm(const stk_yaml_node *s, stk_value *x)
{
    const stk_yaml_node *zero = stk_yaml_get(s, "zero_scale");
    stk_batch_norm_config config = {.momentum = get_real(s, "momentum"),
                                    .eps = get_real(s, "eps"),
                                    .like_keras = is_word(s, "like", "keras"),
                                    .zero_scale = zero && zero->truth};
    *x = stk_batch_norm_with(*x, &config);
}

static void build_conv2d_transpose(const stk_yaml_node *s, stk_value *x)
{
    const stk_yaml_node *bias = stk_yaml_get(s, "bias");
    int kernel = (int)get_int(s, "kernel", 2);
    stk_conv2d_transpose_config config = {.filters = get_int(s, "filters", 0),
                                          .kernel = kernel,
                                          .stride = (int)get_int(s, "stride", kernel),
                                          .padding = (int)get_int(s, "padding", 0),
                                          .output_padding = (int)get_int(s, "output_padding", 0),
                                          .groups = (int)get_int(s, "groups", 1),
                                          .no_bias = bias && !bias->truth,
                                          .init = get_init(s)};
    *x = stk_conv2d_transpose_with(*x, &config);
}

static void build_dense(const stk_yaml_node *s, stk_value *x)
{
    const stk_yaml_node *bias = stk_yaml_get(s, "bias");
    stk_dense_config config = {.units = get_int(s, "units", 0), .no_bias = bias && !bias->truth, .init = get_init(s)};
    *x = stk_dense_with(*x, &config);
}

/* --- lists of layers --- */

static const struct {
    const char *name;
    stk_value (*build)(stk_value x);
} plain_layers[] = {
    {"relu", stk_relu},       {"gelu", stk_gelu},       {"silu", stk_silu},       {"tanh", stk_tanh},
    {"sigmoid", stk_sigmoid}, {"softmax", stk_softmax}, {"flatten", stk_flatten}, {"global_pool", stk_global_pool}};

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

static stk_status build_layer(const stk_yaml_node *s, stk_value *x)
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
        int size = (int)get_int(s, "size", 2);
        *x = pools[i].build(*x, size, (int)get_int(s, "stride", size), (int)get_int(s, "padding", 0));
        return STK_OK;
    }
    if (!strcmp(s->key, "residual")) return build_residual(s, x);
    if (!strcmp(s->key, "dense"))
        build_dense(s, x);
    else if (!strcmp(s->key, "batch_norm"))
        build_batch_norm(s, x);
    else if (!strcmp(s->key, "conv2d_transpose"))
        build_conv2d_transpose(s, x);
    else if (!strcmp(s->key, "dropout"))
        *x = stk_dropout(*x, get_real(s, "rate"));
    else
        return stk_yaml_fail(s, "layer '%s' cannot be built", s->key);
    return STK_OK;
}

stk_status stk_build_layers(const stk_yaml_node *layers, stk_value x, stk_value *out)
{
    *out = x;
    for (const stk_yaml_node *layer = layers ? layers->child : NULL; layer; layer = layer->next) {
        bool keeps_f32 = is_word(layer->child, "dtype", "f32");
        if (keeps_f32) stk_f32_push(x.graph);
        STK_RETURN_IF_ERROR(build_layer(layer->child, out));
        if (keeps_f32) stk_f32_pop(x.graph);
        if (stk_graph_status(x.graph) == STK_OK) continue;
        /* The graph knows what is wrong, the recipe where. */
        stk_text text = {0};
        stk_text_add(&text, "%s", stk_error_text());
        stk_status status = stk_yaml_fail(layer, "%s", stk_text_get(&text));
        stk_text_free(&text);
        return status;
    }
    return STK_OK;
}

/* --- networks by name --- */

stk_status stk_build_n_classes(const stk_recipe *recipe, const stk_dataset *train, int64_t *out)
{
    const stk_yaml_node *classes = stk_yaml_get(recipe->model, "classes");
    *out = classes ? classes->integer : stk_dataset_classes(train, NULL);
    if (*out > 0) return STK_OK;
    return stk_yaml_fail(recipe->model, "'%s' needs 'classes': this source of data does not tell how many there are",
                         recipe->model_kind);
}

static stk_status read_widths(const stk_yaml_node *list, int64_t widths[256], int *n)
{
    *n = 0;
    for (const stk_yaml_node *width = list->child; width; width = width->next) {
        if (*n == 256) return stk_yaml_fail(list, "more than 256 widths");
        widths[(*n)++] = width->integer;
    }
    return STK_OK;
}

static stk_status build_network(const stk_recipe *recipe, const stk_dataset *train, stk_value x, stk_value *out)
{
    const stk_yaml_node *model = recipe->model;
    int64_t widths[256], classes;
    int n;
    if (!strcmp(recipe->model_kind, "layers")) {
        if (model->n_children == 0) return stk_yaml_fail(model, "'layers' is empty");
        return stk_build_layers(model, x, out);
    }
    STK_RETURN_IF_ERROR(stk_build_n_classes(recipe, train, &classes));
    if (!strcmp(recipe->model_kind, "mlp")) {
        STK_RETURN_IF_ERROR(read_widths(stk_yaml_get(model, "hidden"), widths, &n));
        *out = stk_mlp(x, widths, n, get_real(model, "dropout"), classes);
    } else if (!strcmp(recipe->model_kind, "cnn")) {
        STK_RETURN_IF_ERROR(read_widths(stk_yaml_get(model, "widths"), widths, &n));
        if (n == 0) return stk_yaml_fail(stk_yaml_get(model, "widths"), "'widths' is empty");
        *out = stk_cnn(x, widths, n, classes);
    } else { /* resnet18 and its like */
        int depth = atoi(recipe->model_kind + strlen("resnet"));
        *out = stk_resnet(x, depth, classes, is_word(model, "stem", "cifar") ? STK_STEM_CIFAR : STK_STEM_IMAGENET);
    }
    return STK_OK;
}

stk_status stk_build_check_model(const stk_recipe *recipe, const stk_model *model)
{
    stk_text why = {0};
    if (stk_model_status(model) == STK_OK) return STK_OK;
    stk_text_add(&why, "%s", stk_error_text());
    stk_status status = stk_yaml_fail(recipe->model, "%s", stk_text_get(&why));
    stk_text_free(&why);
    return status;
}

/* A network from images to classes, into a new model. */
static stk_status build_images(const stk_recipe *recipe, const stk_dataset *train, stk_model *model)
{
    stk_tensor_desc image;
    stk_value output;
    char text[STK_SHAPE_TEXT_BYTES];
    STK_RETURN_IF_ERROR(stk_dataset_field(train, "image", true, &image.dtype, &image.shape));
    if (!stk_shape_known(image.shape))
        return stk_yaml_fail(recipe->pad, "the images have another length in every batch: training needs one, so set "
                                          "'length'");
    if (image.dtype != STK_F32)
        return stk_yaml_fail(
            recipe->part[STK_PART_TRAIN].node,
            "the images come as %s after all stages; the model wants f32: add the stage {scale: 1/255} "
            "or {normalize: ...}",
            stk_desc_text(image, text));
    stk_value x = stk_model_input_shape(model, image.dtype, image.shape);
    STK_RETURN_IF_ERROR(build_network(recipe, train, x, &output));
    STK_RETURN_IF_ERROR(stk_build_check_model(recipe, model));
    return stk_build_loss(recipe, train, model, output);
}

stk_status stk_build_model(const stk_recipe *recipe, const stk_dataset *train, stk_model **out)
{
    stk_status status;
    stk_model *model = stk_model_new(recipe->name);
    *out = NULL;
    if (stk_build_is_transformer(recipe->model_kind))
        STK_TRY(stk_build_transformer(recipe, train, model));
    else
        STK_TRY(build_images(recipe, train, model));
    STK_TRY(stk_model_status(model));
    *out = model;
    return STK_OK;
done:
    stk_model_free(model);
    return status;
}
