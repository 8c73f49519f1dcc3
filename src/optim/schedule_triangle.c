/* Straight up and straight down, as numpy.interp(step, [0, peak * n_steps, n_steps], [first_share, 1, final_share]). */
#include <math.h>

#include "optim/schedule.h"

static const stk_key keys[] = {
    STK_OPTIM_SHARE("first", "0", "The rate of the first step, as a share of the full rate."),
    STK_OPTIM_SHARE("peak", "0.25", "The share of all steps after which the rate is full."),
    STK_OPTIM_SHARE("final", "0", "The rate at the end, as a share of the full rate."), STK_OPTIM_END};

static double share(const stk_schedule *s, const stk_schedule_place *at)
{
    double n_up = floor(s->peak * (double)at->n_steps), n_down = (double)at->n_steps - n_up;
    if (at->step < n_up) return s->first_share + (1 - s->first_share) * at->step / n_up;
    double done = n_down > 0 ? (at->step - n_up) / n_down : 1;
    if (done > 1) done = 1;
    return 1 + (s->final_share - 1) * done;
}

const stk_schedule_class stk_schedule_class_triangle = {
    .key = STK_OPTIM_KIND("triangle", keys, "Straight up to the full rate, and straight down."),
    .defaults = {.peak = 0.25},
    .share = share,
};
