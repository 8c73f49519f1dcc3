/* For the tables of keys: what one takes from another. */
#ifndef STK_RECIPE_KEYS_H
#define STK_RECIPE_KEYS_H

#include "recipe/recipe.h"

#define END STK_KEY_END

/* Whose formula: PyTorch's or Keras's. */
#define LIKE                                                                                                           \
    {                                                                                                                  \
        .name = "like", .type = STK_KEY_WORD, .words = (const char *const[]){"pytorch", "keras", NULL},                \
        .default_value = "pytorch", .doc = "Whose arithmetic and defaults to follow."                                  \
    }

extern const stk_key stk_tensorboard_keys[], stk_prometheus_keys[]; /* keys_observe.c */
extern const stk_key stk_init_keys[], stk_group_key;
extern const stk_key stk_lookahead_keys[], stk_sync_keys[], stk_whiten_keys[], stk_tta_keys[]; /* keys_extra.c */
extern const stk_key stk_stage_choice;                                                         /* keys_stage.c */
extern const stk_key stk_stage_with; /* the stage that holds others */
extern const stk_key stk_set_key;    /* one of those that a data set is made of */
extern const stk_key *const stk_source_kinds[], *const stk_model_kinds[];
extern const stk_key stk_data_keys[];
extern const stk_key stk_loss_scale_kinds[];

/* A source made of whole data sets, each a list entry under `of`: build_combined.c. */
typedef struct stk_combined {
    const stk_yaml_node *settings;
    uint64_t seed;
    stk_dataset *const *sets; /* [n], taken */
    const double *weights;    /* [n] */
    int n;
} stk_combined;
typedef struct stk_combined_kind {
    stk_key key;
    stk_dataset *(*combine)(const stk_combined *c);
} stk_combined_kind;
stk_status stk_build_combined(const stk_combined_kind *kind, const stk_yaml_node *source, uint64_t seed,
                              stk_dataset **out);
#define STK_COMBINED_LIST(X) X(concatenate) X(zip) X(interleave) X(mix)
#define X(kind)              extern const stk_combined_kind stk_combined_##kind;
STK_COMBINED_LIST(X)
#undef X

#endif
