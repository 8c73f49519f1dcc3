/* Keys of layers. */
#include "recipe/keys.h"

const char *const stk_like_words[] = {"pytorch", "keras", NULL};
const char *const stk_layer_dtype_words[] = {"auto", "f32", NULL};
static const char *const init_words[] = {"default",       "he_normal",      "he_uniform",
                                         "glorot_normal", "glorot_uniform", "he_normal_fan_out",
                                         "zero",          "dirac",          NULL};

extern const stk_key stk_layer_kinds[]; /* residual layers hold layers */
const stk_key stk_layer_key = {.name = "layer", .type = STK_KEY_CHOICE, .keys = stk_layer_kinds};

#define INIT                                                                                                           \
    {                                                                                                                  \
        .name = "init", .type = STK_KEY_WORD, .words = init_words, .default_value = "default",                         \
        .doc = "How weights begin; default: uniform +-1/sqrt(fan in), as PyTorch; dirac: the first filters let their " \
               "channel through, the others are as by default."                                                        \
    }

static const stk_key dense_keys[] = {
    {.name = "units",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e8,
     .required = true,
     .doc = "The width of the output."},
    {.name = "bias", .type = STK_KEY_BOOL, .default_value = "true", .doc = "Whether a bias is added."},
    INIT,
    DTYPE,
    END};
/* What convolutions share: sizes, and the rest. */
#define CONV_SIZES                                                                                                     \
    {.name = "kernel",                                                                                                 \
     .type = STK_KEY_INT,                                                                                              \
     .least = 1,                                                                                                       \
     .most = 1024,                                                                                                     \
     .default_value = "3",                                                                                             \
     .doc = "All sides of the kernel."},                                                                               \
        {.name = "stride",                                                                                             \
         .type = STK_KEY_INT,                                                                                          \
         .least = 1,                                                                                                   \
         .most = 1024,                                                                                                 \
         .default_value = "1",                                                                                         \
         .doc = "Pixels between outputs."},                                                                            \
    {                                                                                                                  \
        .name = "dilation", .type = STK_KEY_INT, .least = 1, .most = 1024, .default_value = "1",                       \
        .doc = "Pixels between taps."                                                                                  \
    }
#define CONV_REST                                                                                                      \
    {.name = "padding", .type = STK_KEY_TEXT, .default_value = "same", .doc = "same, none, or pixels on each side."},  \
        {.name = "bias", .type = STK_KEY_BOOL, .default_value = "true", .doc = "Whether a bias is added."}, INIT,      \
        LIKE, DTYPE, END
#define FILTERS                                                                                                        \
    {                                                                                                                  \
        .name = "filters", .type = STK_KEY_INT, .least = 1, .most = 1e6, .required = true,                             \
        .doc = "Channels of the output."                                                                               \
    }
#define GROUPS                                                                                                         \
    {                                                                                                                  \
        .name = "groups", .type = STK_KEY_INT, .least = 1, .most = 1e6, .default_value = "1",                          \
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
     .default_value = "2",
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
     .default_value = "0",
     .doc = "Pixels that are left out on each side."},
    {.name = "output_padding",
     .type = STK_KEY_INT,
     .least = 0,
     .most = 1024,
     .default_value = "0",
     .doc = "Further pixels at the end, fewer than stride."},
    GROUPS,
    {.name = "bias", .type = STK_KEY_BOOL, .default_value = "true", .doc = "Whether a bias is added."},
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
                                           .default_value = "false",
                                           .doc = "The scale starts at 0: for the end of a residual."},
                                          {.name = "scale",
                                           .type = STK_KEY_BOOL,
                                           .default_value = "true",
                                           .doc = "Whether the scale is trained; false: it stays 1."},
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
    {.name = "padding",
     .type = STK_KEY_INT,
     .least = 0,
     .most = 1024,
     .default_value = "0",
     .doc = "Pixels on each side."},
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
static const stk_key residual_keys[] = {{.name = "layers",
                                         .type = STK_KEY_LIST,
                                         .element = &stk_layer_key,
                                         .required = true,
                                         .doc = "The way that learns."},
                                        {.name = "shortcut",
                                         .type = STK_KEY_LIST,
                                         .element = &stk_layer_key,
                                         .default_value = "[]",
                                         .doc = "Layers of the other way. Default: none."},
                                        DTYPE,
                                        END};

/* --- layers on sequences, norms, shapes --- */

#define COUNT(key, most_, text)                                                                                        \
    {                                                                                                                  \
        .name = key, .type = STK_KEY_INT, .least = 1, .most = most_, .required = true, .doc = text                     \
    }
#define EPS                                                                                                            \
    {                                                                                                                  \
        .name = "eps", .type = STK_KEY_REAL, .default_value = "1e-5", .least = 0, .above = true,                       \
        .doc = "Added to the variance."                                                                                \
    }
static const stk_key layer_norm_keys[] = {EPS, DTYPE, END};
static const stk_key group_norm_keys[] = {COUNT("groups", 1e6, "Groups of neighbouring channels."), EPS, DTYPE, END};
static const char *const upsample_words[] = {"nearest", "linear", NULL};
static const stk_key upsample_keys[] = {COUNT("scale", 64, "How many times larger each side becomes."),
                                        {.name = "mode",
                                         .type = STK_KEY_WORD,
                                         .words = upsample_words,
                                         .default_value = "nearest",
                                         .doc = "linear: bilinear, of volumes trilinear, without aligned corners."},
                                        DTYPE,
                                        END};
static const stk_key embedding_keys[] = {COUNT("rows", 2147483647, "Numbers that there are, from 0."),
                                         COUNT("width", 1e6, "Numbers that each becomes."), END};
static const stk_key positions_keys[] = {COUNT("rows", 2147483647, "The longest sequence."), END};
static const stk_key attention_keys[] = {
    COUNT("heads", 1e4, "Heads, which divide the width."),
    {.name = "causal",
     .type = STK_KEY_BOOL,
     .default_value = "false",
     .doc = "Whether positions see only those before."},
    {.name = "hidden", .type = STK_KEY_INT, .least = 1, .most = 1e7, .doc = "The width in between. Default: 4 times."},
    {.name = "dropout", .type = STK_KEY_REAL, .default_value = "0", .least = 0, .most = 0.99, .doc = "Of both halves."},
    {.name = "norm_first",
     .type = STK_KEY_BOOL,
     .default_value = "false",
     .doc = "Norms before the halves, as in GPT-2 and ViT; otherwise behind their sums, as in BERT."},
    END};
static const stk_key leaky_keys[] = {
    {.name = "slope", .type = STK_KEY_REAL, .default_value = "0.01", .least = 0, .most = 0.99, .doc = "Below 0."}, END};
static const stk_key scale_keys[] = {
    {.name = "by", .type = STK_KEY_REAL, .required = true, .doc = "The factor."}, DTYPE, END};
static const stk_key side_key = {.name = "side", .type = STK_KEY_INT, .least = -1, .most = 1e9};
static const stk_key value_key = {.name = "name", .type = STK_KEY_TEXT};
static const stk_key block_keys[] = {
    {.name = "layers", .type = STK_KEY_LIST, .element = &stk_layer_key, .required = true, .doc = "What is in it."},
    {.name = "scope", .type = STK_KEY_TEXT, .doc = "What stands before the names of its parameters: 'encoder.'"},
    {.name = "repeat",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1000,
     .default_value = "1",
     .doc = "How often it comes."},
    END};
static const stk_key plugin_keys[] = {
    {.name = "file", .type = STK_KEY_TEXT, .required = true, .doc = "A shared object, looked for as data is."},
    {.name = "layer", .type = STK_KEY_TEXT, .doc = "Which of its layers. Default: the first."},
    {.name = "settings", .type = STK_KEY_TEXT, .default_value = "''", .doc = "A text for it."},
    END};
static const stk_key onnx_keys[] = {
    {.name = "file", .type = STK_KEY_TEXT, .required = true, .doc = "The model, looked for as data is."},
    {.name = "output", .type = STK_KEY_TEXT, .doc = "The value inside that is the result. Default: the first output."},
    END};
#define VALUES(key, text)                                                                                              \
    {                                                                                                                  \
        .name = key, .type = STK_KEY_LIST, .element = &value_key, .one_is_list = true, .doc = text                     \
    }

const stk_key stk_layer_kinds[] = {
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
    {.name = "conv3d_transpose",
     .type = STK_KEY_MAP,
     .keys = conv_transpose_keys,
     .doc = "Transposed convolution: a larger volume."},
    {.name = "upsample", .type = STK_KEY_MAP, .keys = upsample_keys, .doc = "A larger image or volume."},
    {.name = "layer_norm", .type = STK_KEY_MAP, .keys = layer_norm_keys, .doc = "Over channels; Ba et al. 2016."},
    {.name = "group_norm", .type = STK_KEY_MAP, .keys = group_norm_keys, .doc = "Over groups; Wu & He 2018."},
    {.name = "global_max_pool", .type = STK_KEY_NONE, .doc = "The largest of all positions, for each channel."},
    {.name = "embedding", .type = STK_KEY_MAP, .keys = embedding_keys, .doc = "A vector for each whole number."},
    {.name = "positions", .type = STK_KEY_MAP, .keys = positions_keys, .doc = "Adds a learned vector to each place."},
    {.name = "attention_block",
     .type = STK_KEY_MAP,
     .keys = attention_keys,
     .doc = "Self-attention and two dense layers, each added to its input; Vaswani et al. 2017."},
    {.name = "relu6", .type = STK_KEY_NONE, .doc = "min(max(x, 0), 6)."},
    {.name = "leaky_relu", .type = STK_KEY_MAP, .keys = leaky_keys, .doc = "A slope below 0."},
    {.name = "elu", .type = STK_KEY_NONE, .doc = "exp(x) - 1 below 0."},
    {.name = "hard_sigmoid", .type = STK_KEY_NONE, .doc = "relu6(x + 3) / 6."},
    {.name = "hard_swish", .type = STK_KEY_NONE, .doc = "x * hard_sigmoid(x)."},
    {.name = "softplus", .type = STK_KEY_NONE, .doc = "log(1 + exp(x))."},
    {.name = "scale", .type = STK_KEY_MAP, .keys = scale_keys, .doc = "Times a number."},
    {.name = "reshape",
     .type = STK_KEY_LIST,
     .element = &side_key,
     .doc = "Another shape of a sample: [7, 7, 32]; one side may be -1, what is left."},
    {.name = "block", .type = STK_KEY_MAP, .keys = block_keys, .no_short = true, .doc = "Layers under one name."},
    {.name = "name", .type = STK_KEY_TEXT, .doc = "Names what comes out of the layers so far."},
    {.name = "from", .type = STK_KEY_TEXT, .doc = "Goes on from what has that name, or from a field of the data."},
    VALUES("add", "Adds what has these names; all shapes must be equal."),
    VALUES("mul", "Multiplies by what has these names; sides must be equal or 1."),
    VALUES("concat", "Puts what has these names behind it, along the channels."),
    {.name = "onnx",
     .type = STK_KEY_MAP,
     .keys = onnx_keys,
     .doc = "A network from an ONNX file, with its weights, which are trained on; onnx.md."},
    {.name = "plugin", .type = STK_KEY_MAP, .keys = plugin_keys, .doc = "A layer of one's own in C; custom.md."},
    END};
