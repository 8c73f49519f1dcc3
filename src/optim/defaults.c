/* Settings where nothing is said, apart from what trains by them: recipes that are only read have them, too. */
#include "stoker/train/optim.h"

stk_loss_scale stk_loss_scale_default(void)
{
    return (stk_loss_scale){.initial = 0x1p16, .growth = 2, .backoff = 0.5, .every = 2000};
}

stk_outer stk_outer_default(void)
{
    return (stk_outer){.every = 100, .lr = 0.7, .momentum = 0.9};
}

stk_lookahead stk_lookahead_default(void)
{
    return (stk_lookahead){.every = 5, .alpha = 0.5};
}
