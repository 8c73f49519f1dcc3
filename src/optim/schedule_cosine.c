/* Half a cosine (Loshchilov & Hutter 2017, without restarts), as torch.optim.lr_scheduler.CosineAnnealingLR with T_max
 * steps after the warm-up.
 */
#include <math.h>

#include "optim/schedule.h"

static const stk_key keys[] = {STK_OPTIM_WARMUP,
                               STK_OPTIM_SHARE("final", "0", "The rate at the end, as a share of the full rate."),
                               STK_OPTIM_END};

static double share(const stk_schedule *s, const stk_schedule_place *at)
{
    double n = (double)at->n_steps - at->n_warmup;
    double done = n > 0 ? (at->step - at->n_warmup) / n : 1;
    if (done < 0) done = 0;
    if (done > 1) done = 1;
    return s->final_share + (1 - s->final_share) * 0.5 * (1 + cos(3.14159265358979323846 * done));
}

const stk_schedule_class stk_schedule_class_cosine = {
    .key = STK_OPTIM_KIND("cosine", keys, "Half a cosine, from full to final."),
    .share = share,
};
