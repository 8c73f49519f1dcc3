/* Learning rates over time: pure functions of the step. Warm-up: Goyal et al. 2017. */
#include <math.h>

#include "optim/schedule.h"

double stk_schedule_rate(const stk_schedule *schedule, double lr, int64_t i_step, int64_t n_steps,
                         int64_t steps_per_epoch)
{
    if (!schedule) return lr;
    const stk_schedule_class *class = stk_schedule_class_of(schedule->kind);
    stk_schedule_place at = {.step = (double)i_step, .n_steps = n_steps, .steps_per_epoch = steps_per_epoch};
    if (!class) return NAN;
    at.n_warmup = stk_schedule_steps(schedule->warmup_epochs, steps_per_epoch);
    if (at.step < at.n_warmup) return lr * (at.step + 1) / at.n_warmup;
    return class->share ? lr * class->share(schedule, &at) : lr;
}
