/* Keys of models. */
#include "recipe/keys.h"

#define CLASSES                                                                                                        \
    {                                                                                                                  \
        .name = "classes", .type = STK_KEY_INT, .least = 1, .most = 1e6,                                               \
        .doc = "How many classes there are. Default: as many as the folder of images has."                             \
    }

static const stk_key width_key = {.name = "width", .type = STK_KEY_INT, .least = 1, .most = 1e6};
static const stk_key mlp_keys[] = {{.name = "hidden",
                                    .type = STK_KEY_LIST,
                                    .element = &width_key,
                                    .default_value = "[128]",
                                    .doc = "The widths of the hidden layers."},
                                   {.name = "dropout",
                                    .type = STK_KEY_REAL,
                                    .default_value = "0",
                                    .least = 0,
                                    .most = 0.99,
                                    .doc = "The rate after each hidden layer."},
                                   CLASSES,
                                   END};
static const stk_key cnn_keys[] = {{.name = "widths",
                                    .type = STK_KEY_LIST,
                                    .element = &width_key,
                                    .default_value = "[32, 64, 128]",
                                    .doc = "Filters of each convolution; 2x2 max pooling stands between them."},
                                   CLASSES,
                                   END};
static const char *const stem_words[] = {"imagenet", "cifar", NULL};
static const stk_key resnet_keys[] = {{.name = "stem",
                                       .type = STK_KEY_WORD,
                                       .words = stem_words,
                                       .default_value = "imagenet",
                                       .doc = "imagenet: 7x7 stride 2 and pooling; cifar: 3x3, for small images."},
                                      CLASSES,
                                      END};

#define RESNET(kind, text)                                                                                             \
    {                                                                                                                  \
        .name = kind, .type = STK_KEY_MAP, .keys = resnet_keys, .no_short = true, .doc = text                          \
    }
#define NETWORK(kind, keys_, text)                                                                                     \
    {                                                                                                                  \
        .name = kind, .type = STK_KEY_MAP, .keys = keys_, .no_short = true, .doc = text                                \
    }
const stk_key stk_model_kinds[] = {
    {.name = "mlp",
     .type = STK_KEY_MAP,
     .keys = mlp_keys,
     .no_short = true,
     .doc = "Flatten, dense layers with ReLU, dense."},
    {.name = "cnn",
     .type = STK_KEY_MAP,
     .keys = cnn_keys,
     .no_short = true,
     .doc = "3x3 convolutions with batch norm, ReLU and pooling, global mean, dense."},
    RESNET("resnet18", "He et al. 2016."),
    RESNET("resnet34", "He et al. 2016."),
    RESNET("resnet50", "With bottlenecks, their stride in the 3x3 convolution (v1.5)."),
    RESNET("resnet101", "The same, deeper."),
    NETWORK("vgg16", stk_vgg_keys, "Simonyan & Zisserman 2015."),
    NETWORK("mobilenet_v2", stk_mobilenet_keys, "Sandler et al. 2018."),
    NETWORK("vit", stk_vit_keys, "Patches as a sequence; Dosovitskiy et al. 2021."),
    NETWORK("unet", stk_unet_keys, "An image to a class for each pixel; Ronneberger et al. 2015."),
    NETWORK("cnn3d", stk_cnn3d_keys, "Volumes or clips to classes."),
    NETWORK("autoencoder", stk_autoencoder_keys, "An image to itself, through a few numbers."),
    NETWORK("wide_and_deep", stk_wide_and_deep_keys, "Tables; Cheng et al. 2016."),
    {.name = "bert",
     .type = STK_KEY_MAP,
     .keys = stk_bert_keys,
     .no_short = true,
     .doc = "Classes of sequences of tokens; Devlin et al. 2019. The data has tokens "
            "(or text, tokenized) and label."},
    {.name = "gpt2",
     .type = STK_KEY_MAP,
     .keys = stk_gpt2_keys,
     .no_short = true,
     .doc = "A language model; Radford et al. 2019. The data has tokens and targets."},
    NETWORK("lstm", stk_recurrent_keys,
            "Classes of sequences of tokens: embedding, LSTM, dense on its last state; Hochreiter & Schmidhuber 1997."),
    NETWORK("gru", stk_recurrent_keys, "The same with a GRU; Cho et al. 2014."),
    {.name = "layers",
     .type = STK_KEY_LIST,
     .element = &stk_layer_key,
     .doc = "Your own, from input to output; see below."},
    END};
