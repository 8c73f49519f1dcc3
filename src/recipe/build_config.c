/* The trainer's configuration from a recipe. See recipe/build.h. */
#include "recipe/build.h"

stk_trainer_config stk_build_config(const stk_recipe *recipe)
{
    stk_trainer_config config = recipe->config;
    config.device = recipe->device;
    config.n_threads = (int)recipe->max_threads;
    config.seed = recipe->seed;
    config.precision = recipe->precision;
    config.keep_gradients = recipe->tensorboard.on && recipe->tensorboard.gradients;
    config.no_decay = recipe->no_decay;
    config.recompute = recipe->recompute;
    if (recipe->memory_bytes >= 0)
        config.memory_limit_bytes = (size_t)recipe->memory_bytes;
    else
        config.memory_share = recipe->memory_bytes == -1 ? STK_MEMORY_FREE : recipe->memory_share;
    config.data_memory_bytes = stk_build_data_memory(recipe);
    return config;
}
