/* Losses of recipes: each one descriptor in a file of its own, src/nn/loss_NAME.c. See docs/adding-a-loss.md. */
#ifndef STK_NN_LOSS_LIST_H
#define STK_NN_LOSS_LIST_H

#include "settings/schema.h"
#include "stoker/nn/loss.h"

/* Every loss, once, in the order of the reference. */
#define STK_LOSS_LIST(X)                                                                                               \
    X(cross_entropy)                                                                                                   \
    X(bce)                                                                                                             \
    X(mse)                                                                                                             \
    X(mae)                                                                                                             \
    X(huber)                                                                                                           \
    X(dice)                                                                                                            \
    X(triplet)                                                                                                         \
    X(masked_lm)

/* What a loss compares the model's output [N,...] with; targets that do not fit are refused before `build`. */
typedef enum stk_loss_compares {
    STK_LOSS_NUMBERS, /* with f32 of the output's shape */
    STK_LOSS_CLASSES, /* [N,...,C] with class numbers i32 [N,...], or with shares f32 of the output's shape */
    STK_LOSS_REGIONS, /* class numbers of several classes, else numbers */
    STK_LOSS_ROWS,    /* [N,D] with one class number a sample, i32 [N]; the output is rows to compare */
    STK_LOSS_TOKENS   /* nothing of this: the network builds it itself */
} stk_loss_compares;

/* What a run with that loss predicts. */
typedef enum stk_loss_predicts {
    STK_LOSS_PREDICTS_NUMBERS,
    STK_LOSS_PREDICTS_CLASS,
    STK_LOSS_PREDICTS_LABELS
} stk_loss_predicts;

typedef struct stk_loss_class {
    stk_key key; /* its name and settings in a recipe */
    stk_loss_compares compares;
    stk_loss_predicts predicts;
    const char *network; /* TOKENS: the only kind of model that has it */
    /* The settings, as checked, become the model's loss. Arguments that do not fit are the graph's error; an error that
     * has a place in the recipe is returned. */
    stk_status (*build)(const stk_yaml_node *settings, stk_model *model, stk_value output, stk_value target);
} stk_loss_class;

#define X(name) extern const stk_loss_class stk_loss_class_##name;
STK_LOSS_LIST(X)
#undef X

/* NULL: there is none of that name. */
const stk_loss_class *stk_loss_class_of(const char *name);
/* All keys, for a choice; NULL at the end. */
extern const stk_key *const stk_loss_kinds[];

/* Of their tables of keys. */
#define STK_LOSS_TARGET                                                                                                \
    {                                                                                                                  \
        .name = "target", .type = STK_KEY_TEXT,                                                                        \
        .doc = "The field that the output is compared with. Default: label, or mask where there is no label."          \
    }
#define STK_LOSS_END                                                                                                   \
    {                                                                                                                  \
        .name = NULL                                                                                                   \
    }
/* For losses that have no other settings. */
extern const stk_key stk_loss_target_keys[];
#define STK_LOSS_KEY(name_, keys_, doc_)                                                                               \
    {                                                                                                                  \
        .name = name_, .type = STK_KEY_MAP, .keys = keys_, .no_short = true, .doc = doc_                               \
    }

#endif
