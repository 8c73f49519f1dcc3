/* For the tables of keys: what one takes from another. */
#ifndef STK_RECIPE_KEYS_H
#define STK_RECIPE_KEYS_H

#include "recipe/recipe.h"

/* Of a table. */
#define END                                                                                                            \
    {                                                                                                                  \
        .name = NULL                                                                                                   \
    }
#define SIDES .least = 1, .most = 65536

/* Whose formula: PyTorch's or Keras's. */
extern const char *const stk_like_words[];
#define LIKE                                                                                                           \
    {                                                                                                                  \
        .name = "like", .type = STK_KEY_WORD, .words = stk_like_words, .default_value = "pytorch",                     \
        .doc = "Whose arithmetic and defaults to follow."                                                              \
    }

/* Of layers. */
extern const char *const stk_layer_dtype_words[];
#define DTYPE                                                                                                          \
    {                                                                                                                  \
        .name = "dtype", .type = STK_KEY_WORD, .words = stk_layer_dtype_words, .default_value = "auto",                \
        .doc = "f32: computes in f32 whatever the recipe's precision."                                                 \
    }

extern const stk_key stk_tensorboard_keys[], stk_prometheus_keys[]; /* keys_observe.c */
extern const stk_key stk_init_keys[], stk_group_key;
extern const stk_key stk_lookahead_keys[], stk_whiten_keys[], stk_tta_keys[]; /* keys_extra.c */
extern const stk_key stk_stage_key, stk_metric_key, stk_layer_key;
/* Of data sets of data sets; they hold sources. */
extern const stk_key stk_concatenate_keys[], stk_zip_keys[], stk_interleave_keys[], stk_mix_keys[];
extern const stk_key stk_synthetic_keys[], stk_bert_keys[], stk_gpt2_keys[];
extern const stk_key stk_vgg_keys[], stk_mobilenet_keys[], stk_vit_keys[], stk_unet_keys[], stk_cnn3d_keys[],
    stk_autoencoder_keys[], stk_wide_and_deep_keys[], stk_recurrent_keys[];
extern const stk_key stk_source_kinds[], stk_data_keys[];
extern const stk_key stk_model_kinds[], stk_loss_kinds[], stk_optimizer_kinds[], stk_schedule_kinds[],
    stk_loss_scale_kinds[];

#endif
