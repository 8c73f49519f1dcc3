/* The trainer's configuration from a recipe. See recipe/build.h. */
#include "recipe/build.h"

stk_trainer_config stk_build_config(const stk_recipe *recipe)
{
    stk_trainer_config config = stk_trainer_config_default();
    config.device = recipe->device;
    config.n_threads = (int)recipe->max_threads;
    config.seed = recipe->seed;
    config.precision = recipe->precision;
    config.loss_scale = recipe->loss_scale;
    config.on_nan = recipe->on_nan;
    config.average = recipe->average;
    config.lookahead = recipe->lookahead;
    config.whiten = recipe->whiten;
    config.views = recipe->views;
    config.clip_norm = recipe->clip_norm;
    config.grad_norm = recipe->log_grad_norm;
    config.keep_gradients = recipe->tensorboard.on && recipe->tensorboard.gradients;
    config.schedule = recipe->schedule;
    config.no_decay = recipe->no_decay;
    config.groups = recipe->group;
    config.n_groups = recipe->n_groups;
    config.recompute = recipe->recompute;
    config.micro_batch = recipe->micro_batch;
    config.accumulate = recipe->accumulate;
    if (recipe->memory_bytes >= 0)
        config.memory_limit_bytes = (size_t)recipe->memory_bytes;
    else
        config.memory_share = recipe->memory_bytes == -1 ? STK_MEMORY_FREE : recipe->memory_share;
    config.data_memory_bytes = stk_build_data_memory(recipe);
    config.patience = recipe->patience;
    config.stop_metric = recipe->stop_metric;
    config.min_delta = recipe->min_delta;
    config.best_metric = recipe->best_metric;
    config.measures = recipe->measure;
    config.n_measures = recipe->n_measures;
    return config;
}
