/* Keys of losses and metrics. */
#include "train/keys.h"

#define TARGET                                                                                                         \
    {                                                                                                                  \
        .name = "target", .type = STK_KEY_TEXT,                                                                        \
        .doc = "The field that the output is compared with. Default: label, or mask where there is no label."          \
    }
static const stk_key weight_key = {.name = "weight", .type = STK_KEY_REAL, .least = 0, .most = 1e30};
static const stk_key cross_entropy_keys[] = {
    {.name = "smoothing",
     .type = STK_KEY_REAL,
     .standard = "0",
     .least = 0,
     .most = 0.99,
     .doc = "The share of each label that goes to all classes alike."},
    {.name = "class_weights",
     .type = STK_KEY_LIST,
     .element = &weight_key,
     .doc = "A factor for each class; the sum is divided by the number of samples, as in Keras. Default: 1."},
    {.name = "ignore",
     .type = STK_KEY_INT,
     .least = -2147483648.0,
     .most = 2147483647,
     .doc = "Positions with this label do not count, as -100 or 255. Default: all count."},
    TARGET,
    END};
static const stk_key bce_keys[] = {{.name = "positive_weight",
                                    .type = STK_KEY_REAL,
                                    .standard = "1",
                                    .least = 0,
                                    .most = 1e30,
                                    .above = true,
                                    .doc = "The factor of what is 1."},
                                   TARGET,
                                   END};
static const stk_key huber_keys[] = {{.name = "delta",
                                      .type = STK_KEY_REAL,
                                      .standard = "1",
                                      .least = 0,
                                      .most = 1e30,
                                      .above = true,
                                      .doc = "Where the square becomes a line."},
                                     TARGET,
                                     END};
static const stk_key dice_keys[] = {{.name = "smooth",
                                     .type = STK_KEY_REAL,
                                     .standard = "1",
                                     .least = 0,
                                     .most = 1e30,
                                     .above = true,
                                     .doc = "Added above and below."},
                                    TARGET,
                                    END};
static const stk_key target_keys[] = {TARGET, END};

#define LOSS(kind, keys_, text)                                                                                        \
    {                                                                                                                  \
        .name = kind, .type = STK_KEY_MAP, .keys = keys_, .no_short = true, .doc = text                                \
    }
const stk_key stk_loss_kinds[] = {
    LOSS("cross_entropy", cross_entropy_keys, "Softmax cross-entropy, of a sample or of each of its positions."),
    LOSS("bce", bce_keys, "Binary cross-entropy of logits: each number of the output is a class of its own."),
    LOSS("mse", target_keys, "Mean squared error; labels must be numbers like the output (one_hot)."),
    LOSS("mae", target_keys, "Mean absolute error."),
    LOSS("huber", huber_keys, "Squared near 0, absolute from delta on; Huber 1964."),
    LOSS("dice", dice_keys, "Overlap of regions; Milletari et al. 2016."),
    END};
