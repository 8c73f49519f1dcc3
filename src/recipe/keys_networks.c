/* Keys of networks by name beyond those of keys_model.c. */
#include "recipe/keys.h"

#define CLASSES                                                                                                        \
    {                                                                                                                  \
        .name = "classes", .type = STK_KEY_INT, .least = 1, .most = 1e6,                                               \
        .doc = "How many classes there are. Default: as many as the data has."                                         \
    }
static const stk_key width_key = {.name = "width", .type = STK_KEY_INT, .least = 1, .most = 1e6};
#define WIDTHS(key, text, doc_)                                                                                        \
    {                                                                                                                  \
        .name = key, .type = STK_KEY_LIST, .element = &width_key, .default_value = text, .doc = doc_                   \
    }
#define COUNT(key, text, doc_)                                                                                         \
    {                                                                                                                  \
        .name = key, .type = STK_KEY_INT, .default_value = text, .least = 1, .most = 1e6, .doc = doc_                  \
    }
#define MAYBE(key, doc_)                                                                                               \
    {                                                                                                                  \
        .name = key, .type = STK_KEY_INT, .least = 1, .most = 1e6, .doc = doc_                                         \
    }
static const char *const stem_words[] = {"imagenet", "cifar", NULL};
static const char *const vit_words[] = {"tiny", "small", "base", NULL};

const stk_key stk_vgg_keys[] = {COUNT("hidden", "4096", "The width of the two dense layers before the last."), CLASSES,
                                END};
const stk_key stk_mobilenet_keys[] = {{.name = "stem",
                                       .type = STK_KEY_WORD,
                                       .words = stem_words,
                                       .default_value = "imagenet",
                                       .doc = "cifar: two strides fewer, for small images."},
                                      CLASSES,
                                      END};
const stk_key stk_vit_keys[] = {{.name = "size",
                                 .type = STK_KEY_WORD,
                                 .words = vit_words,
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
                                CLASSES,
                                END};
const stk_key stk_unet_keys[] = {
    WIDTHS("widths", "[64, 128, 256, 512, 1024]", "Channels at each depth; sides are halved in between."), CLASSES,
    END};
const stk_key stk_cnn3d_keys[] = {
    WIDTHS("widths", "[16, 32, 64]", "Filters of each convolution; 2x2x2 max pooling stands between them."), CLASSES,
    END};
const stk_key stk_autoencoder_keys[] = {
    WIDTHS("widths", "[32, 64]", "Filters of each convolution, which halves the sides."),
    COUNT("code", "32", "Numbers in the middle."), END};
static const stk_key rows_key = {.name = "rows", .type = STK_KEY_INT, .least = 1, .most = 2147483647};
const stk_key stk_wide_and_deep_keys[] = {
    {.name = "categories",
     .type = STK_KEY_NAMED,
     .element = &rows_key,
     .doc = "Fields of whole numbers, and how many each can be: {user: 5000, item: 300}."},
    {.name = "numbers", .type = STK_KEY_TEXT, .doc = "A field of numbers. Default: none."},
    COUNT("width", "8", "Numbers that a category becomes."),
    WIDTHS("hidden", "[64, 32]", "The widths of the deep part's hidden layers."),
    COUNT("outputs", "1", "Numbers that come out."),
    END};
