/* What a layer is to a recipe: its keys, and how it is built from checked settings. A layer's file ends with this, and
 * src/nn/layer_list.h has a line for it. See docs/adding-a-layer.md.
 */
#ifndef STK_NN_LAYER_CLASS_H
#define STK_NN_LAYER_CLASS_H

#include "base/error.h"
#include "nn/layer.h"
#include "settings/schema.h"

struct stk_layer_walk; /* recipe/layer_walk.h */

typedef struct stk_layer_class {
    stk_key key;
    /* One of these three. A layer without settings: */
    stk_value (*apply)(stk_value x);
    /* One with settings, which are checked; *x becomes the layer of *x. What is wrong with its arguments may stay the
     * graph's error (stk_layer_fail): the list puts the recipe's line before it. */
    stk_status (*build)(const stk_yaml_node *settings, stk_value *x);
    /* One that names, joins or holds others of its list. */
    stk_status (*build_in)(struct stk_layer_walk *walk, const stk_yaml_node *settings, stk_value *x);
    bool begins;     /* may stand where there is no value yet */
    bool reads_file; /* its key 'file' is a path, which is looked for as data is */
} stk_layer_class;

/* --- keys that several have; a table ends with {.name = NULL} --- */

#define STK_KEY_DTYPE                                                                                                  \
    {                                                                                                                  \
        .name = "dtype", .type = STK_KEY_WORD, .words = (const char *const[]){"auto", "f32", NULL},                    \
        .default_value = "auto", .doc = "f32: computes in f32 whatever the recipe's precision."                        \
    }
/* Whose formula: PyTorch's or Keras's. */
#define STK_KEY_LIKE                                                                                                   \
    {                                                                                                                  \
        .name = "like", .type = STK_KEY_WORD, .words = (const char *const[]){"pytorch", "keras", NULL},                \
        .default_value = "pytorch", .doc = "Whose arithmetic and defaults to follow."                                  \
    }
#define STK_KEY_BIAS                                                                                                   \
    {                                                                                                                  \
        .name = "bias", .type = STK_KEY_BOOL, .default_value = "true", .doc = "Whether a bias is added."               \
    }
#define STK_KEY_EPS                                                                                                    \
    {                                                                                                                  \
        .name = "eps", .type = STK_KEY_REAL, .default_value = "1e-5", .least = 0, .above = true,                       \
        .doc = "Added to the variance."                                                                                \
    }
/* A whole number from 1 that must be given. */
#define STK_KEY_COUNT(key, most_, text)                                                                                \
    {                                                                                                                  \
        .name = key, .type = STK_KEY_INT, .least = 1, .most = most_, .required = true, .doc = text                     \
    }
/* How weights begin, which stk_initializer_of reads. */
extern const char *const stk_initializer_words[];
#define STK_KEY_INITIALIZER                                                                                            \
    {                                                                                                                  \
        .name = "init", .type = STK_KEY_WORD, .words = stk_initializer_words, .default_value = "default",              \
        .doc = "How weights begin; default: uniform +-1/sqrt(fan in), as PyTorch; dirac: the first filters let their " \
               "channel through, the others are as by default."                                                        \
    }
stk_initializer stk_initializer_of(const stk_yaml_node *settings);

#endif
