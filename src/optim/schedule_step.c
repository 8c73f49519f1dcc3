/* Smaller by a factor every N epochs, as torch.optim.lr_scheduler.StepLR, stepped after each epoch. */
#include <math.h>

#include "optim/schedule.h"

static const stk_key keys[] = {{.name = "every",
                                .type = STK_KEY_REAL,
                                .least = 0,
                                .most = 1e6,
                                .above = true,
                                .required = true,
                                .doc = "Epochs between the steps."},
                               STK_OPTIM_SHARE("gamma", "0.1", "The rate is multiplied by it each time."),
                               STK_OPTIM_WARMUP,
                               STK_OPTIM_END};

static double share(const stk_schedule *s, const stk_schedule_place *at)
{
    double every = stk_schedule_steps(s->every_epochs, at->steps_per_epoch);
    return every < 1 ? 1 : pow(s->gamma, floor(at->step / every));
}

const stk_schedule_class stk_schedule_class_step = {
    .key = STK_OPTIM_KIND("step", keys, "Smaller every N epochs."),
    .defaults = {.gamma = 0.1},
    .share = share,
};
