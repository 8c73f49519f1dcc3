/* Loss scales' settings: checks. The arithmetic is pass loss_scale's. */
#include "base/error.h"
#include "stoker/train/optim.h"

stk_status stk_loss_scale_check(const stk_loss_scale *s)
{
    STK_NEED(s);
    if ((unsigned)s->kind > STK_LOSS_SCALE_DYNAMIC)
        return stk_fail(STK_INVALID, "loss scale: there is no kind %d", (int)s->kind);
    if (s->kind == STK_LOSS_SCALE_NONE) return STK_OK;
    if (!(s->initial > 0 && s->initial <= 0x1p127))
        return stk_fail(STK_INVALID, "the loss scale is %g, and must be above 0 and at most 2^127", s->initial);
    if (s->kind == STK_LOSS_SCALE_FIXED) return STK_OK;
    if (!(s->growth >= 1 && s->growth <= 1e6))
        return stk_fail(STK_INVALID, "the growth of the loss scale is %g, and must be 1 or more", s->growth);
    if (!(s->backoff > 0 && s->backoff < 1))
        return stk_fail(STK_INVALID, "the backoff of the loss scale is %g, and must be between 0 and 1", s->backoff);
    if (s->every < 1)
        return stk_fail(STK_INVALID, "the loss scale grows every %lld steps, and that must be 1 or more",
                        (long long)s->every);
    return STK_OK;
}
