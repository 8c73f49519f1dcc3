/* What a schedule is: one descriptor in a file of its own, named in STK_SCHEDULE_LIST of optim.h. */
#ifndef STK_OPTIM_SCHEDULE_H
#define STK_OPTIM_SCHEDULE_H

#include "optim/keys.h"
#include "stoker/train/optim.h"

/* Where a run is, after the warm-up. */
typedef struct stk_schedule_place {
    double step; /* from 0 */
    double n_warmup;
    int64_t n_steps, steps_per_epoch;
} stk_schedule_place;

typedef struct stk_schedule_class {
    stk_key key;           /* its name and settings in a recipe */
    stk_schedule defaults; /* of the fields that it takes; its key's table says the same, which a test compares */
    double (*share)(const stk_schedule *s, const stk_schedule_place *at); /* of the full rate; NULL: 1 */
} stk_schedule_class;

#define X(KIND, name) extern const stk_schedule_class stk_schedule_class_##name;
STK_SCHEDULE_LIST(X)
#undef X

/* NULL: there is no such kind. */
const stk_schedule_class *stk_schedule_class_of(stk_schedule_kind kind);
/* All keys, for a choice; NULL at the end. */
extern const stk_key *const stk_schedule_kinds[];

/* node: the chosen kind with its settings, {cosine: {warmup: 5}}'s child. */
stk_status stk_schedule_read(const stk_yaml_node *node, stk_schedule *out);

/* Epochs as a whole number of steps, at least 0. */
double stk_schedule_steps(double epochs, int64_t steps_per_epoch);

#endif
