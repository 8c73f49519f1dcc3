/* The same rate throughout. */
#include "optim/schedule.h"

static const stk_key keys[] = {STK_OPTIM_WARMUP, STK_OPTIM_END};

const stk_schedule_class stk_schedule_class_constant = {
    .key = STK_OPTIM_KIND("constant", keys, "The same rate throughout."),
};
