/* The configuration where nothing is said, apart from the trainer: recipes that are only read have it, too. */
#include "stoker/train/trainer.h"

stk_whiten stk_whiten_default(void)
{
    return (stk_whiten){.n_samples = 5000, .eps = 5e-4};
}

stk_trainer_config stk_trainer_config_default(void)
{
    stk_trainer_config config = {.loss_scale = stk_loss_scale_default(),
                                 .lookahead = stk_lookahead_default(),
                                 .whiten = stk_whiten_default(),
                                 .schedule = stk_constant_schedule_default()};
    config.lookahead.every = 0;
    return config;
}
