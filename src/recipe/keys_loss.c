/* Keys of losses and metrics. */
#include "recipe/keys.h"

#define TARGET                                                                                                         \
    {                                                                                                                  \
        .name = "target", .type = STK_KEY_TEXT,                                                                        \
        .doc = "The field that the output is compared with. Default: label, or mask where there is no label."          \
    }
static const stk_key weight_key = {.name = "weight", .type = STK_KEY_REAL, .least = 0, .most = 1e30};
static const stk_key cross_entropy_keys[] = {
    {.name = "smoothing",
     .type = STK_KEY_REAL,
     .default_value = "0",
     .least = 0,
     .most = 0.99,
     .doc = "The share of each label that goes to all classes alike."},
    {.name = "class_weights",
     .type = STK_KEY_LIST,
     .element = &weight_key,
     .doc = "A factor for each class; the mean is over the factors, as in PyTorch. Default: 1."},
    {.name = "ignore",
     .type = STK_KEY_INT,
     .least = -2147483648.0,
     .most = 2147483647,
     .doc = "Positions with this label do not count, as -100 or 255. Default: all count."},
    TARGET,
    END};
static const stk_key bce_keys[] = {{.name = "positive_weight",
                                    .type = STK_KEY_REAL,
                                    .default_value = "1",
                                    .least = 0,
                                    .most = 1e30,
                                    .above = true,
                                    .doc = "The factor of what is 1."},
                                   TARGET,
                                   END};
static const stk_key huber_keys[] = {{.name = "delta",
                                      .type = STK_KEY_REAL,
                                      .default_value = "1",
                                      .least = 0,
                                      .most = 1e30,
                                      .above = true,
                                      .doc = "Where the square becomes a line."},
                                     TARGET,
                                     END};
static const stk_key dice_keys[] = {{.name = "smooth",
                                     .type = STK_KEY_REAL,
                                     .default_value = "1",
                                     .least = 0,
                                     .most = 1e30,
                                     .above = true,
                                     .doc = "Added above and below."},
                                    TARGET,
                                    END};
static const char *const mining_words[] = {"hard", "semi_hard", NULL};
static const stk_key triplet_keys[] = {
    {.name = "margin",
     .type = STK_KEY_REAL,
     .default_value = "0.2",
     .least = 0,
     .most = 1e6,
     .doc = "By how much a row shall be nearer to those of its class than to others."},
    {.name = "mining",
     .type = STK_KEY_WORD,
     .words = mining_words,
     .default_value = "hard",
     .doc = "hard: the farthest of its class and the nearest of another in the batch; Hermans et al. 2017. semi_hard: "
            "each "
            "of its class, and the nearest of another that is farther off; Schroff et al. 2015."},
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
    LOSS("triplet", triplet_keys, "Rows of numbers: near to those of the same class in the batch, far from others."),
    {.name = "masked_lm",
     .type = STK_KEY_NONE,
     .doc = "Of bert: what hidden tokens were (data.train.masked); Devlin et al. 2019."},
    END};

/* --- metrics --- */

static const char *const average_words[] = {"macro", "micro", "binary", NULL};
static const stk_key average_keys[] = {
    {.name = "average",
     .type = STK_KEY_WORD,
     .words = average_words,
     .default_value = "macro",
     .doc = "macro: the mean over classes; micro: of all counts together; binary: of class 1 of two."},
    END};
static const stk_key top_keys[] = {
    {.name = "k", .type = STK_KEY_INT, .least = 1, .most = 1e6, .required = true, .doc = "How many guesses there are."},
    END};
static const stk_key recall_at_keys[] = {{.name = "k",
                                          .type = STK_KEY_INT,
                                          .least = 1,
                                          .most = 99999,
                                          .default_value = "1",
                                          .doc = "How many of the nearest are looked at."},
                                         END};
#define RATE_OF(kind, text)                                                                                            \
    {                                                                                                                  \
        .name = kind, .type = STK_KEY_MAP, .keys = average_keys, .doc = text                                           \
    }
static const stk_key metric_kinds[] = {
    {.name = "accuracy", .type = STK_KEY_NONE, .doc = "The share of classes, positions or labels that is right."},
    RATE_OF("precision", "Of what was given a class, the share that is of it."),
    RATE_OF("recall", "Of what is of a class, the share that was given it."),
    RATE_OF("f1", "The harmonic mean of both."),
    RATE_OF("iou", "Intersection over union, of positions or samples."),
    {.name = "auc", .type = STK_KEY_NONE, .doc = "The area under the ROC curve, by 8192 bins of scores."},
    {.name = "top_k", .type = STK_KEY_MAP, .keys = top_keys, .doc = "The share whose class is among the k largest."},
    {.name = "confusion",
     .type = STK_KEY_NONE,
     .doc = "Counts of label and class given, in result.json and as a picture in the report."},
    {.name = "mse", .type = STK_KEY_NONE, .doc = "Mean squared error."},
    {.name = "rmse", .type = STK_KEY_NONE, .doc = "Its root."},
    {.name = "mae", .type = STK_KEY_NONE, .doc = "Mean absolute error."},
    {.name = "r2", .type = STK_KEY_NONE, .doc = "The share of the variance that is explained."},
    {.name = "perplexity", .type = STK_KEY_NONE, .doc = "exp of the mean loss."},
    {.name = "recall_at",
     .type = STK_KEY_MAP,
     .keys = recall_at_keys,
     .doc = "Evaluation only: the share whose k nearest others of the data set hold one of their class."},
    END};
const stk_key stk_metric_key = {.name = "metric", .type = STK_KEY_CHOICE, .keys = metric_kinds};
