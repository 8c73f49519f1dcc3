/* What optimisers' and schedules' tables of keys have in common. */
#ifndef STK_OPTIM_KEYS_H
#define STK_OPTIM_KEYS_H

#include "settings/schema.h"

/* The end of a table. */
#define STK_OPTIM_END                                                                                                  \
    {                                                                                                                  \
        .name = NULL                                                                                                   \
    }
/* Whose formula and defaults: PyTorch's or Keras's. */
extern const char *const stk_optim_like_words[];
#define STK_OPTIM_LIKE                                                                                                 \
    {                                                                                                                  \
        .name = "like", .type = STK_KEY_WORD, .words = stk_optim_like_words, .default_value = "pytorch",               \
        .doc = "Whose arithmetic and defaults to follow."                                                              \
    }
#define STK_OPTIM_RATE(standard_)                                                                                      \
    {                                                                                                                  \
        .name = "lr", .type = STK_KEY_REAL, .default_value = standard_, .least = 0, .above = true,                     \
        .doc = "The learning rate."                                                                                    \
    }
#define STK_OPTIM_SHARE(name_, standard_, doc_)                                                                        \
    {                                                                                                                  \
        .name = name_, .type = STK_KEY_REAL, .default_value = standard_, .least = 0, .most = 1, .doc = doc_            \
    }
#define STK_OPTIM_BETAS                                                                                                \
    STK_OPTIM_SHARE("beta1", "0.9", "Decay of the mean of gradients."),                                                \
        STK_OPTIM_SHARE("beta2", "0.999", "Decay of the mean of squares.")
#define STK_OPTIM_EPS(doc_)                                                                                            \
    {                                                                                                                  \
        .name = "eps", .type = STK_KEY_REAL, .least = 0, .most = 1e30, .doc = doc_                                     \
    }
#define STK_OPTIM_WARMUP                                                                                               \
    {                                                                                                                  \
        .name = "warmup", .type = STK_KEY_REAL, .default_value = "0", .least = 0, .most = 1e6,                         \
        .doc = "Epochs in which the rate grows linearly to its full value."                                            \
    }
/* The key of the kind itself. */
#define STK_OPTIM_KIND(name_, keys_, doc_)                                                                             \
    {                                                                                                                  \
        .name = name_, .type = STK_KEY_MAP, .keys = keys_, .no_short = true, .doc = doc_                               \
    }

#endif
