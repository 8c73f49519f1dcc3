/* Keys of models and layers. */
#include "train/keys.h"

const char *const stk_like_words[] = {"pytorch", "keras", NULL};
const char *const stk_layer_dtype_words[] = {"auto", "f32", NULL};
static const char *const init_words[] = {"default",        "he_normal",         "he_uniform", "glorot_normal",
                                         "glorot_uniform", "he_normal_fan_out", "zero",       NULL};

#define CLASSES                                                                                                        \
    {                                                                                                                  \
        .name = "classes", .type = STK_KEY_INT, .least = 1, .most = 1e6,                                               \
        .doc = "How many classes there are. Default: as many as the folder of images has."                             \
    }

static const stk_key width_key = {.name = "width", .type = STK_KEY_INT, .least = 1, .most = 1e6};
static const stk_key mlp_keys[] = {{.name = "hidden",
                                    .type = STK_KEY_LIST,
                                    .element = &width_key,
                                    .standard = "[128]",
                                    .doc = "The widths of the hidden layers."},
                                   {.name = "dropout",
                                    .type = STK_KEY_REAL,
                                    .standard = "0",
                                    .least = 0,
                                    .most = 0.99,
                                    .doc = "The rate after each hidden layer."},
                                   CLASSES,
                                   END};
static const stk_key cnn_keys[] = {{.name = "widths",
                                    .type = STK_KEY_LIST,
                                    .element = &width_key,
                                    .standard = "[32, 64, 128]",
                                    .doc = "Filters of each convolution; 2x2 max pooling stands between them."},
                                   CLASSES,
                                   END};
static const char *const stem_words[] = {"imagenet", "cifar", NULL};
static const stk_key resnet_keys[] = {{.name = "stem",
                                       .type = STK_KEY_WORD,
                                       .words = stem_words,
                                       .standard = "imagenet",
                                       .doc = "imagenet: 7x7 stride 2 and pooling; cifar: 3x3, for small images."},
                                      CLASSES,
                                      END};

enum { N_LAYER_KINDS = 20 };
extern const stk_key stk_layer_kinds[N_LAYER_KINDS + 1]; /* residual layers hold layers */
static const stk_key layer_key = {.name = "layer", .type = STK_KEY_CHOICE, .keys = stk_layer_kinds};

#define INIT                                                                                                           \
    {                                                                                                                  \
        .name = "init", .type = STK_KEY_WORD, .words = init_words, .standard = "default",                              \
        .doc = "How weights begin; default: uniform +-1/sqrt(fan in), as PyTorch."                                     \
    }

static const stk_key dense_keys[] = {
    {.name = "units",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e8,
     .required = true,
     .doc = "The width of the output."},
    {.name = "bias", .type = STK_KEY_BOOL, .standard = "true", .doc = "Whether a bias is added."},
    INIT,
    DTYPE,
    END};
/* What convolutions share: sizes, and the rest. */
#define CONV_SIZES                                                                                                     \
    {.name = "kernel",                                                                                                 \
     .type = STK_KEY_INT,                                                                                              \
     .least = 1,                                                                                                       \
     .most = 1024,                                                                                                     \
     .standard = "3",                                                                                                  \
     .doc = "All sides of the kernel."},                                                                               \
        {.name = "stride",                                                                                             \
         .type = STK_KEY_INT,                                                                                          \
         .least = 1,                                                                                                   \
         .most = 1024,                                                                                                 \
         .standard = "1",                                                                                              \
         .doc = "Pixels between outputs."},                                                                            \
    {                                                                                                                  \
        .name = "dilation", .type = STK_KEY_INT, .least = 1, .most = 1024, .standard = "1",                            \
        .doc = "Pixels between taps."                                                                                  \
    }
#define CONV_REST                                                                                                      \
    {.name = "padding", .type = STK_KEY_TEXT, .standard = "same", .doc = "same, none, or pixels on each side."},       \
        {.name = "bias", .type = STK_KEY_BOOL, .standard = "true", .doc = "Whether a bias is added."}, INIT, LIKE,     \
        DTYPE, END
#define FILTERS                                                                                                        \
    {                                                                                                                  \
        .name = "filters", .type = STK_KEY_INT, .least = 1, .most = 1e6, .required = true,                             \
        .doc = "Channels of the output."                                                                               \
    }
#define GROUPS                                                                                                         \
    {                                                                                                                  \
        .name = "groups", .type = STK_KEY_INT, .least = 1, .most = 1e6, .standard = "1",                               \
        .doc = "Groups of channels that do not mix."                                                                   \
    }
static const stk_key conv_keys[] = {FILTERS, CONV_SIZES, GROUPS, CONV_REST};
static const stk_key depthwise_keys[] = {
    {.name = "filters",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e6,
     .doc = "Channels of the output, a multiple of the input's. Default: as many."},
    CONV_SIZES,
    CONV_REST};
static const stk_key conv_transpose_keys[] = {
    FILTERS,
    {.name = "kernel",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1024,
     .standard = "2",
     .doc = "Both sides of the kernel."},
    {.name = "stride",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1024,
     .doc = "How many times larger the image becomes. Default: kernel."},
    {.name = "padding",
     .type = STK_KEY_INT,
     .least = 0,
     .most = 1024,
     .standard = "0",
     .doc = "Pixels that are left out on each side."},
    {.name = "output_padding",
     .type = STK_KEY_INT,
     .least = 0,
     .most = 1024,
     .standard = "0",
     .doc = "Further pixels at the end, fewer than stride."},
    GROUPS,
    {.name = "bias", .type = STK_KEY_BOOL, .standard = "true", .doc = "Whether a bias is added."},
    INIT,
    DTYPE,
    END};
static const stk_key batch_norm_keys[] = {{.name = "momentum",
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
                                           .standard = "false",
                                           .doc = "The scale starts at 0: for the end of a residual."},
                                          LIKE,
                                          DTYPE,
                                          END};
static const stk_key pool_keys[] = {
    {.name = "size",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1024,
     .required = true,
     .doc = "All sides of the window."},
    {.name = "stride", .type = STK_KEY_INT, .least = 1, .most = 1024, .doc = "Pixels between windows. Default: size."},
    {.name = "padding", .type = STK_KEY_INT, .least = 0, .most = 1024, .standard = "0", .doc = "Pixels on each side."},
    DTYPE,
    END};
static const stk_key dropout_keys[] = {{.name = "rate",
                                        .type = STK_KEY_REAL,
                                        .least = 0,
                                        .most = 0.99,
                                        .required = true,
                                        .doc = "The share that is zeroed in training."},
                                       DTYPE,
                                       END};
static const stk_key residual_keys[] = {
    {.name = "layers", .type = STK_KEY_LIST, .element = &layer_key, .required = true, .doc = "The way that learns."},
    {.name = "shortcut",
     .type = STK_KEY_LIST,
     .element = &layer_key,
     .standard = "[]",
     .doc = "Layers of the other way. Default: none."},
    DTYPE,
    END};

const stk_key stk_layer_kinds[N_LAYER_KINDS + 1] = {
    {.name = "dense", .type = STK_KEY_MAP, .keys = dense_keys, .doc = "Every input to every output."},
    {.name = "conv2d", .type = STK_KEY_MAP, .keys = conv_keys, .doc = "Convolution."},
    {.name = "depthwise_conv2d", .type = STK_KEY_MAP, .keys = depthwise_keys, .doc = "A filter for each channel."},
    {.name = "conv2d_transpose",
     .type = STK_KEY_MAP,
     .keys = conv_transpose_keys,
     .doc = "Transposed convolution: a larger image."},
    {.name = "conv3d", .type = STK_KEY_MAP, .keys = conv_keys, .doc = "Convolution of volumes."},
    {.name = "batch_norm", .type = STK_KEY_MAP, .keys = batch_norm_keys, .doc = "Batch normalisation."},
    {.name = "relu", .type = STK_KEY_NONE, .doc = "max(x, 0)."},
    {.name = "gelu", .type = STK_KEY_NONE, .doc = "With the exact erf."},
    {.name = "silu", .type = STK_KEY_NONE, .doc = "x * sigmoid(x)."},
    {.name = "tanh", .type = STK_KEY_NONE, .doc = "Hyperbolic tangent."},
    {.name = "sigmoid", .type = STK_KEY_NONE, .doc = "1 / (1 + exp(-x))."},
    {.name = "softmax",
     .type = STK_KEY_NONE,
     .doc = "Shares that add up to 1; not before cross_entropy, which has its own."},
    {.name = "max_pool", .type = STK_KEY_MAP, .keys = pool_keys, .doc = "The largest of each window."},
    {.name = "avg_pool",
     .type = STK_KEY_MAP,
     .keys = pool_keys,
     .doc = "The mean of each window; padding is not counted."},
    {.name = "max_pool3d", .type = STK_KEY_MAP, .keys = pool_keys, .doc = "The same for volumes."},
    {.name = "avg_pool3d", .type = STK_KEY_MAP, .keys = pool_keys, .doc = "The same for volumes."},
    {.name = "global_pool", .type = STK_KEY_NONE, .doc = "The mean of the whole image or volume, for each channel."},
    {.name = "flatten", .type = STK_KEY_NONE, .doc = "An image to one row."},
    {.name = "dropout", .type = STK_KEY_MAP, .keys = dropout_keys, .doc = "Zeroes a share at random in training."},
    {.name = "residual", .type = STK_KEY_MAP, .keys = residual_keys, .doc = "The sum of layers and shortcut."},
    END};

#define RESNET(kind, text)                                                                                             \
    {                                                                                                                  \
        .name = kind, .type = STK_KEY_MAP, .keys = resnet_keys, .no_short = true, .doc = text                          \
    }
const stk_key stk_model_kinds[] = {{.name = "mlp",
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
                                   {.name = "layers",
                                    .type = STK_KEY_LIST,
                                    .element = &layer_key,
                                    .doc = "Your own, from input to output; see below."},
                                   END};
