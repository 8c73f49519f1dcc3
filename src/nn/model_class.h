/* What a network by name is to a recipe: its keys, how it is built from checked settings, and what must be known of it
 * elsewhere. A network's file ends with this, and src/nn/model_list.h has a line for it. See docs/adding-a-model.md.
 */
#ifndef STK_NN_MODEL_CLASS_H
#define STK_NN_MODEL_CLASS_H

#include "base/error.h"
#include "nn/layer.h"
#include "settings/schema.h"
#include "stoker/nn/transformer.h"

/* From which fields of the data its input comes. */
typedef enum stk_model_takes {
    STK_MODEL_TAKES_NUMBERS, /* one field of f32 with known sides: an image, a volume, a row */
    STK_MODEL_TAKES_TOKENS,  /* tokens or text, i32 [N,T] */
    STK_MODEL_TAKES_FIELDS   /* what it asks for itself, by get_field */
} stk_model_takes;

struct stk_model_data; /* recipe/build.h */

typedef struct stk_model_call {
    const stk_yaml_node *settings; /* the model's, checked */
    stk_value x;                   /* the input; no value (id -1) for STK_MODEL_TAKES_FIELDS */
    int64_t n_classes;             /* with has_classes */
    stk_value targets;             /* of build_loss: i32 [N,T] */
    double smoothing;              /* of build_loss: the share of each target that goes to all alike */
    /* A field of the data, of one shape, as an input. Errors are about place. */
    stk_status (*get_field)(const struct stk_model_data *data, const stk_yaml_node *place, const char *field,
                            stk_value *out);
    const struct stk_model_data *data; /* for get_field */
} stk_model_call;

/* A row of `stoker models`: a recipe on random samples that the network is built for. */
typedef struct stk_model_sample {
    const char *name;   /* as `model:` takes it, "vit: {size: tiny}"; NULL: the model's own name */
    const char *of;     /* "224 x 224 x 3, 1000 classes" */
    const char *fields; /* of the source `synthetic` */
    const char *rest;   /* further lines of the recipe; NULL: none */
    int n_classes;      /* 0: it has none */
} stk_model_sample;

enum { STK_MODEL_MOST_SAMPLES = 2 };

typedef struct stk_model_class {
    stk_key key;
    stk_model_takes takes;
    bool has_classes;   /* what its setting 'classes' says, else the data */
    const char *target; /* the field that it learns where the loss names none; NULL: label, or mask */
    bool is_published;  /* others publish its weights, of images of 224 pixels: stoker import --as NAME, or NAME-SIZE */
    bool generates;     /* generates text: its weights are those of stk_gpt2_logits, and configure is there */
    /* The output. NULL: there is only a loss. Errors of the network may stay the graph's. */
    stk_status (*build)(const stk_model_call *call, stk_value *out);
    /* The mean loss of the positions of x by targets, those of -100 left out: without build the only one, else that of
     * `loss: masked_lm`. NULL: no such loss. */
    stk_status (*build_loss)(const stk_model_call *call, stk_value *out);
    /* Of networks with a vocabulary that the data's tokenizer may tell; NULL: of others. */
    stk_status (*configure)(const stk_yaml_node *settings, stk_transformer_config *out);
    stk_model_sample sample[STK_MODEL_MOST_SAMPLES];
    int place; /* of its rows in `stoker models`; 0: at the end */
} stk_model_class;

/* --- keys that several have; a table ends with {.name = NULL} --- */

/* from: where the number comes from when the recipe does not say it. */
#define STK_KEY_CLASSES(from)                                                                                          \
    {                                                                                                                  \
        .name = "classes", .type = STK_KEY_INT, .least = 1, .most = 1e6,                                               \
        .doc = "How many classes there are. Default: as many as " from " has."                                         \
    }
extern const stk_key stk_width_key;
#define STK_KEY_WIDTHS(key, text, doc_)                                                                                \
    {                                                                                                                  \
        .name = key, .type = STK_KEY_LIST, .element = &stk_width_key, .default_value = text, .doc = doc_               \
    }
#define STK_KEY_NUMBER(key, text, doc_)                                                                                \
    {                                                                                                                  \
        .name = key, .type = STK_KEY_INT, .default_value = text, .least = 1, .most = 1e6, .doc = doc_                  \
    }
#define STK_KEY_STEM(doc_)                                                                                             \
    {                                                                                                                  \
        .name = "stem", .type = STK_KEY_WORD, .words = (const char *const[]){"imagenet", "cifar", NULL},               \
        .default_value = "imagenet", .doc = doc_                                                                       \
    }

/* The numbers of a list of STK_KEY_WIDTHS. */
enum { STK_MOST_WIDTHS = 256 };
stk_status stk_widths_of(const stk_yaml_node *settings, const char *key, int64_t widths[STK_MOST_WIDTHS], int *n);
/* The same of a list that must not be empty. */
stk_status stk_some_widths_of(const stk_yaml_node *settings, const char *key, int64_t widths[STK_MOST_WIDTHS], int *n);
stk_resnet_stem stk_stem_of(const stk_yaml_node *settings);
/* mask [N,T] of the tokens that are not the setting 'pad': its address, or NULL without such a setting. */
const stk_value *stk_pad_mask_of(const stk_yaml_node *settings, stk_value tokens, stk_value *mask);

/* --- rows of `stoker models` that several have --- */

#define STK_SAMPLE_PHOTOS                                                                                              \
    {                                                                                                                  \
        .of = "224 x 224 x 3, 1000 classes", .fields = "image: [224, 224, 3]", .n_classes = 1000                       \
    }

/* A model around a graph that stays its owner's. NULL: no memory. */
stk_model *stk_model_over(stk_graph *graph);

#endif
