/* Learning rates over time: pure functions of the step. Warm-up: Goyal et al. 2017. */
#include <math.h>

#include "stoker/train/optim.h"

/* Epochs as a whole number of steps, at least 0. */
static double to_steps(double epochs, int64_t steps_per_epoch)
{
    double n = epochs * (double)steps_per_epoch;
    return n > 0 ? floor(n + 0.5) : 0; /* NaN is 0 too. */
}

/* As torch.optim.lr_scheduler.StepLR, stepped after each epoch. */
static double step_share(const stk_schedule *schedule, double step, int64_t steps_per_epoch)
{
    double every = to_steps(schedule->every_epochs, steps_per_epoch);
    if (every < 1) return 1;
    return pow(schedule->gamma == 0 ? 0.1 : schedule->gamma, floor(step / every));
}

/* As torch.optim.lr_scheduler.CosineAnnealingLR with T_max steps after the warm-up. */
static double cosine_share(const stk_schedule *schedule, double step, double n_warmup, int64_t n_steps)
{
    double n = (double)n_steps - n_warmup;
    double done = n > 0 ? (step - n_warmup) / n : 1;
    if (done < 0) done = 0;
    if (done > 1) done = 1;
    return schedule->final_share + (1 - schedule->final_share) * 0.5 * (1 + cos(3.14159265358979323846 * done));
}

/* As numpy.interp(step, [0, peak * n_steps, n_steps], [first_share, 1, final_share]). */
static double triangle_share(const stk_schedule *schedule, double step, int64_t n_steps)
{
    double n_up = floor(schedule->peak * (double)n_steps), n_down = (double)n_steps - n_up;
    if (step < n_up) return schedule->first_share + (1 - schedule->first_share) * step / n_up;
    double done = n_down > 0 ? (step - n_up) / n_down : 1;
    if (done > 1) done = 1;
    return 1 + (schedule->final_share - 1) * done;
}

double stk_schedule_rate(const stk_schedule *schedule, double lr, int64_t i_step, int64_t n_steps,
                         int64_t steps_per_epoch)
{
    if (!schedule) return lr;
    double step = (double)i_step, n_warmup = to_steps(schedule->warmup_epochs, steps_per_epoch);
    if (step < n_warmup) return lr * (step + 1) / n_warmup;
    switch (schedule->kind) {
    case STK_SCHEDULE_STEP: return lr * step_share(schedule, step, steps_per_epoch);
    case STK_SCHEDULE_COSINE: return lr * cosine_share(schedule, step, n_warmup, n_steps);
    case STK_SCHEDULE_TRIANGLE: return lr * triangle_share(schedule, step, n_steps);
    case STK_SCHEDULE_CONSTANT: break;
    }
    return lr;
}
