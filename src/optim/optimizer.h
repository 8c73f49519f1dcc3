/* What an optimiser is: one descriptor in a file of its own, named in STK_OPTIMIZER_LIST of optim.h. Settings come from
 * C or from a recipe's tree that has been checked against the descriptor's key. See docs/adding-an-optimiser.md.
 */
#ifndef STK_OPTIM_OPTIMIZER_H
#define STK_OPTIM_OPTIMIZER_H

#include "optim/keys.h"
#include "optim/step.h"

typedef struct stk_optimizer_class {
    stk_key key;            /* its name and settings in a recipe, called as the fields of stk_optimizer */
    stk_optimizer defaults; /* of the fields that it takes; its key's table says the same, which a test compares */
    stk_optimizer keras;    /* with like_keras; like_keras false: there is no such */
    bool counts;            /* its update takes the number of the step */
    /* What a recipe can say wrongly besides single values; NULL: nothing. settings: as checked. */
    stk_status (*check_recipe)(const stk_yaml_node *settings, const stk_optimizer *o);
    stk_status (*check)(const stk_optimizer *o); /* the same from C; NULL: nothing but ranges */
    void (*add)(const stk_optim_step *s);        /* one parameter's update */
} stk_optimizer_class;

#define X(KIND, name) extern const stk_optimizer_class stk_optimizer_class_##name;
STK_OPTIMIZER_LIST(X)
#undef X

/* NULL: there is no such kind. */
const stk_optimizer_class *stk_optimizer_class_of(stk_optimizer_kind kind);
/* All keys, for a choice; NULL at the end. */
extern const stk_key *const stk_optimizer_kinds[];

stk_status stk_optimizer_check(const stk_optimizer *o);
/* node: the chosen kind with its settings, {adam: {lr: 0.1}}'s child. */
stk_status stk_optimizer_read(const stk_yaml_node *node, stk_optimizer *out);

#endif
