/* Loss scales' settings: defaults and checks. The arithmetic is pass loss_scale's. */
#include "base/error.h"
#include "stoker/train/optim.h"

static double or_default(double value, double default_value)
{
    return value == 0 ? default_value : value;
}

stk_loss_scale stk_loss_scale_fill(stk_loss_scale settings)
{
    stk_loss_scale s = settings;
    s.initial = or_default(s.initial, s.like_keras ? 0x1p15 : 0x1p16);
    s.growth = or_default(s.growth, 2);
    s.backoff = or_default(s.backoff, 0.5);
    if (s.every == 0) s.every = 2000;
    return s;
}

stk_status stk_loss_scale_check(const stk_loss_scale *s)
{
    if (!(s->initial > 0 && s->initial <= 0x1p127))
        return stk_fail(STK_INVALID, "the loss scale is %g, and must be above 0 and at most 2^127", s->initial);
    if (!(s->growth >= 1 && s->growth <= 1e6))
        return stk_fail(STK_INVALID, "the growth of the loss scale is %g, and must be 1 or more", s->growth);
    if (!(s->backoff > 0 && s->backoff < 1))
        return stk_fail(STK_INVALID, "the backoff of the loss scale is %g, and must be between 0 and 1", s->backoff);
    if (s->every < 1)
        return stk_fail(STK_INVALID, "the loss scale grows every %lld steps, and that must be 1 or more",
                        (long long)s->every);
    return STK_OK;
}
