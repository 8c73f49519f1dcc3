/* Keys of optimiser and schedule. */
#include "recipe/keys.h"

#define RATE(text)                                                                                                     \
    {                                                                                                                  \
        .name = "lr", .type = STK_KEY_REAL, .default_value = text, .least = 0, .above = true,                          \
        .doc = "The learning rate."                                                                                    \
    }
#define EPS(doc_)                                                                                                      \
    {                                                                                                                  \
        .name = "eps", .type = STK_KEY_REAL, .least = 0, .above = true, .doc = doc_                                    \
    }
#define BETAS                                                                                                          \
    {.name = "beta1",                                                                                                  \
     .type = STK_KEY_REAL,                                                                                             \
     .default_value = "0.9",                                                                                           \
     .least = 0,                                                                                                       \
     .most = 1,                                                                                                        \
     .above = true,                                                                                                    \
     .doc = "Decay of the mean of gradients."},                                                                        \
    {                                                                                                                  \
        .name = "beta2", .type = STK_KEY_REAL, .default_value = "0.999", .least = 0, .most = 1, .above = true,         \
        .doc = "Decay of the mean of squares."                                                                         \
    }
#define ADAM_EPS EPS("Added to the root. Default: 1e-8, or 1e-7 like Keras.")
static const stk_key sgd_keys[] = {
    RATE("0.01"),
    {.name = "momentum", .type = STK_KEY_REAL, .default_value = "0", .least = 0, .most = 1, .doc = "0: none."},
    {.name = "nesterov", .type = STK_KEY_BOOL, .default_value = "false", .doc = "Nesterov's momentum."},
    {.name = "weight_decay",
     .type = STK_KEY_REAL,
     .default_value = "0",
     .least = 0,
     .most = 1,
     .doc = "Added to the gradient, as L2; like Keras: taken from the weights."},
    LIKE,
    END};
static const stk_key adam_keys[] = {RATE("0.001"),
                                    BETAS,
                                    ADAM_EPS,
                                    {.name = "weight_decay",
                                     .type = STK_KEY_REAL,
                                     .default_value = "0",
                                     .least = 0,
                                     .most = 1,
                                     .doc = "Added to the gradient, as L2; like Keras: taken from the weights."},
                                    LIKE,
                                    END};
static const stk_key adamw_keys[] = {RATE("0.001"),
                                     BETAS,
                                     ADAM_EPS,
                                     {.name = "weight_decay",
                                      .type = STK_KEY_REAL,
                                      .least = 0,
                                      .most = 1,
                                      .doc = "Taken from the weights. Default: 0.01, or 0.004 like Keras."},
                                     LIKE,
                                     END};
#define DECAY(doc_)                                                                                                    \
    {                                                                                                                  \
        .name = "weight_decay", .type = STK_KEY_REAL, .least = 0, .most = 1, .doc = doc_                               \
    }
#define MOMENTUM(standard_, doc_)                                                                                      \
    {                                                                                                                  \
        .name = "momentum", .type = STK_KEY_REAL, .default_value = standard_, .least = 0, .most = 1, .doc = doc_       \
    }
static const stk_key rmsprop_keys[] = {
    {.name = "lr",
     .type = STK_KEY_REAL,
     .least = 0,
     .above = true,
     .doc = "The learning rate. Default: 0.01, or 0.001 like Keras."},
    {.name = "beta2",
     .type = STK_KEY_REAL,
     .least = 0,
     .most = 1,
     .above = true,
     .doc = "Decay of the mean of squares. Default: 0.99, or 0.9 like Keras."},
    MOMENTUM("0", "0: none."),
    {.name = "centered",
     .type = STK_KEY_BOOL,
     .default_value = "false",
     .doc = "By the variance, not the mean of squares."},
    EPS("Added to the root; like Keras: inside it. Default: 1e-8, or 1e-7 like Keras."),
    DECAY("Added to the gradient, as L2; like Keras: taken from the weights."),
    LIKE,
    END};
static const stk_key adagrad_keys[] = {RATE("0.01"), EPS("Added to the root. Default: 1e-10."),
                                       DECAY("Added to the gradient, as L2."), END};
static const stk_key lamb_keys[] = {RATE("0.001"), BETAS, EPS("Added to the root. Default: 1e-6."),
                                    DECAY("Part of the update. Default: 0.01."), END};
static const stk_key lars_keys[] = {
    RATE("0.1"),
    MOMENTUM("0.9", "Of the update."),
    DECAY("Part of the update. Default: 1e-4."),
    {.name = "trust",
     .type = STK_KEY_REAL,
     .default_value = "0.001",
     .least = 0,
     .above = true,
     .doc = "The rate of a layer is multiplied by it and by norm(weights) / norm(update)."},
    END};
static const stk_key muon_keys[] = {RATE("0.001"),
                                    MOMENTUM("0.95", "Of the gradient."),
                                    {.name = "nesterov",
                                     .type = STK_KEY_BOOL,
                                     .default_value = "false",
                                     .doc = "Nesterov's momentum, which is on in torch unless said otherwise."},
                                    DECAY("Taken from the weights. Default: 0.1."),
                                    {.name = "rest_lr",
                                     .type = STK_KEY_REAL,
                                     .default_value = "0.0003",
                                     .least = 0,
                                     .above = true,
                                     .doc = "AdamW's rate for vectors, embeddings and the last layer."},
                                    END};
const stk_key stk_optimizer_kinds[] = {
    {.name = "sgd", .type = STK_KEY_MAP, .keys = sgd_keys, .no_short = true, .doc = "Stochastic gradient descent."},
    {.name = "adam", .type = STK_KEY_MAP, .keys = adam_keys, .no_short = true, .doc = "Kingma & Ba 2015."},
    {.name = "adamw", .type = STK_KEY_MAP, .keys = adamw_keys, .no_short = true, .doc = "Loshchilov & Hutter 2019."},
    {.name = "rmsprop", .type = STK_KEY_MAP, .keys = rmsprop_keys, .no_short = true, .doc = "Tieleman & Hinton 2012."},
    {.name = "adagrad", .type = STK_KEY_MAP, .keys = adagrad_keys, .no_short = true, .doc = "Duchi et al. 2011."},
    {.name = "lamb",
     .type = STK_KEY_MAP,
     .keys = lamb_keys,
     .no_short = true,
     .doc = "You et al. 2020: for large batches; what `no_decay` names keeps the plain rate."},
    {.name = "lars",
     .type = STK_KEY_MAP,
     .keys = lars_keys,
     .no_short = true,
     .doc = "You et al. 2017: as LAMB, of SGD."},
    {.name = "muon",
     .type = STK_KEY_MAP,
     .keys = muon_keys,
     .no_short = true,
     .doc = "Jordan et al. 2024: hidden matrices."},
    END};

#define WARMUP                                                                                                         \
    {                                                                                                                  \
        .name = "warmup", .type = STK_KEY_REAL, .default_value = "0", .least = 0, .most = 1e6,                         \
        .doc = "Epochs in which the rate grows linearly to its full value."                                            \
    }
static const stk_key constant_keys[] = {WARMUP, END};
static const stk_key step_keys[] = {{.name = "every",
                                     .type = STK_KEY_REAL,
                                     .least = 0,
                                     .most = 1e6,
                                     .above = true,
                                     .required = true,
                                     .doc = "Epochs between the steps."},
                                    {.name = "gamma",
                                     .type = STK_KEY_REAL,
                                     .default_value = "0.1",
                                     .least = 0,
                                     .most = 1,
                                     .above = true,
                                     .doc = "The rate is multiplied by it each time."},
                                    WARMUP,
                                    END};
static const stk_key cosine_keys[] = {WARMUP,
                                      {.name = "final",
                                       .type = STK_KEY_REAL,
                                       .default_value = "0",
                                       .least = 0,
                                       .most = 1,
                                       .doc = "The rate at the end, as a share of the full rate."},
                                      END};
#define SHARE_OF_RATE(key_name, text)                                                                                  \
    {                                                                                                                  \
        .name = key_name, .type = STK_KEY_REAL, .default_value = "0", .least = 0, .most = 1, .doc = text               \
    }
static const stk_key triangle_keys[] = {
    SHARE_OF_RATE("first", "The rate of the first step, as a share of the full rate."),
    {.name = "peak",
     .type = STK_KEY_REAL,
     .default_value = "0.25",
     .least = 0,
     .most = 1,
     .doc = "The share of all steps after which the rate is full."},
    SHARE_OF_RATE("final", "The rate at the end, as a share of the full rate."),
    END};
const stk_key stk_schedule_kinds[] = {
    {.name = "constant",
     .type = STK_KEY_MAP,
     .keys = constant_keys,
     .no_short = true,
     .doc = "The same rate throughout."},
    {.name = "step", .type = STK_KEY_MAP, .keys = step_keys, .no_short = true, .doc = "Smaller every so many epochs."},
    {.name = "cosine",
     .type = STK_KEY_MAP,
     .keys = cosine_keys,
     .no_short = true,
     .doc = "Half a cosine, from full to final."},
    {.name = "triangle",
     .type = STK_KEY_MAP,
     .keys = triangle_keys,
     .no_short = true,
     .doc = "Straight up to the full rate, and straight down."},
    END};

static const stk_key fixed_scale_keys[] = {{.name = "scale",
                                            .type = STK_KEY_REAL,
                                            .least = 0,
                                            .most = 1e38,
                                            .above = true,
                                            .required = true,
                                            .doc = "The factor."},
                                           END};
static const stk_key dynamic_scale_keys[] = {
    {.name = "initial",
     .type = STK_KEY_REAL,
     .least = 0,
     .most = 1e38,
     .above = true,
     .doc = "The first factor. Default: 2^16 = 65536, or 2^15 like Keras."},
    {.name = "growth",
     .type = STK_KEY_REAL,
     .default_value = "2",
     .least = 1,
     .most = 1e6,
     .doc = "What the scale is multiplied by after so many finite steps in a row, unless it would become infinite."},
    {.name = "every",
     .type = STK_KEY_INT,
     .default_value = "2000",
     .least = 1,
     .most = 1e12,
     .doc = "How many those are."},
    {.name = "backoff",
     .type = STK_KEY_REAL,
     .default_value = "0.5",
     .least = 0,
     .most = 0.999,
     .above = true,
     .doc = "What it is multiplied by after a step that was skipped, because its gradients were not finite."},
    LIKE,
    END};
const stk_key stk_loss_scale_kinds[] = {
    {.name = "auto", .type = STK_KEY_NONE, .doc = "dynamic for f16, else none."},
    {.name = "none", .type = STK_KEY_NONE, .doc = "No scale."},
    {.name = "dynamic",
     .type = STK_KEY_MAP,
     .keys = dynamic_scale_keys,
     .no_short = true,
     .doc = "As large as gradients allow; a step that overflows is skipped and counted."},
    {.name = "fixed", .type = STK_KEY_MAP, .keys = fixed_scale_keys, .doc = "The same factor throughout."},
    END};
