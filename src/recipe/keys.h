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
#define LIKE                                                                                                           \
    {                                                                                                                  \
        .name = "like", .type = STK_KEY_WORD, .words = (const char *const[]){"pytorch", "keras", NULL},                \
        .default_value = "pytorch", .doc = "Whose arithmetic and defaults to follow."                                  \
    }

extern const stk_key stk_tensorboard_keys[], stk_prometheus_keys[]; /* keys_observe.c */
extern const stk_key stk_init_keys[], stk_group_key;
extern const stk_key stk_lookahead_keys[], stk_whiten_keys[], stk_tta_keys[]; /* keys_extra.c */
extern const stk_key stk_stage_choice;                                        /* keys_stage.c */
extern const stk_key stk_metric_key;
/* Of data sets of data sets; they hold sources. */
extern const stk_key stk_concatenate_keys[], stk_zip_keys[], stk_interleave_keys[], stk_mix_keys[];
extern const stk_key stk_synthetic_keys[];
extern const stk_key stk_source_kinds[], stk_data_keys[];
extern const stk_key *const stk_model_kinds[]; /* keys_model.c */
extern const stk_key stk_loss_kinds[], stk_optimizer_kinds[], stk_schedule_kinds[], stk_loss_scale_kinds[];

#endif
