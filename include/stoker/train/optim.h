/* Optimisers and schedules: plain settings. The update itself is part of the training graph.
 *
 * Defaults are PyTorch's. `like_keras` gives Keras' arithmetic: SGD with the rate inside the velocity; Adam with eps
 * 1e-7 added to sqrt(v) and the bias correction folded into the rate, and AdamW's decay of 0.004; RMSprop with eps 1e-7
 * inside the root and the rate inside the velocity. In Keras the decay of
 * every optimiser acts on the parameters, as AdamW's does; in PyTorch that of SGD and Adam is added to the gradient.
 */
#ifndef STOKER_TRAIN_OPTIM_H
#define STOKER_TRAIN_OPTIM_H

#include "stoker/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum stk_optimizer_kind {
    STK_OPTIMIZER_SGD,
    STK_OPTIMIZER_ADAM,
    STK_OPTIMIZER_ADAMW,
    STK_OPTIMIZER_RMSPROP,
    STK_OPTIMIZER_ADAGRAD,
    STK_OPTIMIZER_LAMB, /* You et al. 2020 */
    STK_OPTIMIZER_LARS, /* You et al. 2017 */
    STK_OPTIMIZER_MUON, /* Jordan et al. 2024; AdamW for vectors, embeddings and the last layer */
    STK_N_OPTIMIZERS
} stk_optimizer_kind;

/* Fields left 0 take the default of the kind. */
typedef struct stk_optimizer {
    stk_optimizer_kind kind;
    double lr;           /* sgd, rmsprop, adagrad 0.01; lars 0.1; the others, and rmsprop like Keras, 0.001 */
    double weight_decay; /* 0; adamw 0.01, like Keras 0.004; lamb 0.01, lars 1e-4, muon 0.1. Negative: none */
    double momentum;     /* sgd, rmsprop 0; lars 0.9; muon 0.95 */
    bool nesterov;       /* sgd, muon; torch's Muon has it on */
    double beta1, beta2; /* 0.9, 0.999; of rmsprop only beta2 counts: 0.99, or 0.9 like Keras */
    double eps;          /* 1e-8, like Keras 1e-7; adagrad 1e-10, lamb 1e-6, muon 1e-7 */
    double trust;        /* lars: the rate for a layer whose gradient is as large as its weights; 0.001 */
    double rest_lr;      /* muon: AdamW's rate for the other parameters; 0: 3e-4. It follows the same schedule */
    bool centered;       /* rmsprop: by the variance */
    bool like_keras;     /* sgd, adam, adamw, rmsprop */
} stk_optimizer;

STK_API stk_optimizer stk_optimizer_fill(stk_optimizer_kind kind, stk_optimizer settings);
#ifndef __cplusplus
/* stk_sgd(.lr = 0.1, .momentum = 0.9) */
#define stk_sgd(...)     stk_optimizer_fill(STK_OPTIMIZER_SGD, (stk_optimizer){__VA_ARGS__})
#define stk_adam(...)    stk_optimizer_fill(STK_OPTIMIZER_ADAM, (stk_optimizer){__VA_ARGS__})
#define stk_adamw(...)   stk_optimizer_fill(STK_OPTIMIZER_ADAMW, (stk_optimizer){__VA_ARGS__})
#define stk_rmsprop(...) stk_optimizer_fill(STK_OPTIMIZER_RMSPROP, (stk_optimizer){__VA_ARGS__})
#define stk_adagrad(...) stk_optimizer_fill(STK_OPTIMIZER_ADAGRAD, (stk_optimizer){__VA_ARGS__})
#define stk_lamb(...)    stk_optimizer_fill(STK_OPTIMIZER_LAMB, (stk_optimizer){__VA_ARGS__})
#define stk_lars(...)    stk_optimizer_fill(STK_OPTIMIZER_LARS, (stk_optimizer){__VA_ARGS__})
#define stk_muon(...)    stk_optimizer_fill(STK_OPTIMIZER_MUON, (stk_optimizer){__VA_ARGS__})
#endif

/* Training in f16 multiplies the loss, so that small gradients do not become 0, and divides the gradients again.
 * DYNAMIC: as torch.amp.GradScaler; a step whose gradients are not finite is skipped and the scale shrinks. */
typedef enum stk_loss_scale_kind {
    STK_LOSS_SCALE_AUTO, /* DYNAMIC for f16, else NONE */
    STK_LOSS_SCALE_NONE,
    STK_LOSS_SCALE_FIXED, /* by `initial` */
    STK_LOSS_SCALE_DYNAMIC
} stk_loss_scale_kind;

/* Fields left 0 take the default. */
typedef struct stk_loss_scale {
    stk_loss_scale_kind kind;
    double initial;  /* 2^16; like Keras 2^15 */
    double growth;   /* 2: the factor after `every` finite steps in a row */
    double backoff;  /* 0.5: the factor after a skipped step */
    int64_t every;   /* 2000 steps */
    bool like_keras; /* Keras' defaults */
} stk_loss_scale;

STK_API stk_loss_scale stk_loss_scale_fill(stk_loss_scale settings);
STK_API stk_status stk_loss_scale_check(const stk_loss_scale *settings);

/* A running mean of the weights (EMA), kept beside them: mean = decay * mean + (1 - decay) * weight after each step,
 * the first of which copies the weights; torch.optim.swa_utils' EMA and Keras' use_ema do the same. Evaluation,
 * prediction and checkpoints take the mean for the network's weights; batch norm's running statistics are the last
 * ones. */
typedef struct stk_average {
    double decay; /* 0: no mean is kept */
    bool warmup;  /* while it is less, (1 + n) / (10 + n) is the decay, after n steps: as TensorFlow's num_updates */
} stk_average;

/* Zhang et al. 2019: slow weights go along behind. After every so many steps
 *   slow = slow + alpha * (weight - slow),   weight = slow
 * and behind the last step weight = slow. Batch norm's running statistics, which belong to the weights, go the same
 * way. With a power alpha is not the same throughout: behind t of n steps it is 1 - (1 - alpha) * (t / n)^power, so
 * that the weights are held back more and more, as in Jordan 2024. */
typedef struct stk_lookahead {
    int64_t every; /* steps; 0: none */
    double alpha;  /* above 0, at most 1; 0: 0.5 */
    double power;  /* 0: alpha throughout */
} stk_lookahead;

/* Parameters with settings of their own; the first group that matches one counts. Frozen ones have no gradient, no
 * state and no update; a batch norm whose scale is frozen goes by its running statistics, which stay, as in Keras. */
typedef struct stk_param_group {
    const char *match;   /* comma-separated: whole names, parts at their start ("layer1"), or patterns ("*.bias") */
    double lr_factor;    /* of the learning rate */
    double weight_decay; /* below 0: the optimiser's */
    bool frozen;
    double until_epochs; /* from then on their rate is 0; 0: never */
} stk_param_group;
enum { STK_MOST_GROUPS = 32 };

typedef enum stk_schedule_kind {
    STK_SCHEDULE_CONSTANT,
    STK_SCHEDULE_STEP,
    STK_SCHEDULE_COSINE,
    STK_SCHEDULE_TRIANGLE
} stk_schedule_kind;
typedef struct stk_schedule {
    stk_schedule_kind kind;
    double warmup_epochs; /* linear: of w steps, step i has (i + 1) / w of the full rate */
    double every_epochs;  /* step: multiplied by gamma each time, counted from the start of training; 0: never */
    double gamma;         /* step: 0: 0.1 */
    double final_share;   /* cosine, triangle: the rate at the end, as a share of the full rate */
    double first_share;   /* triangle: the rate of the first step, as a share of the full rate */
    double peak;          /* triangle: the share of all steps, rounded down, after which the rate is full */
} stk_schedule;

/* The rate for step number i_step (from 0) of n_steps. Cosine: Loshchilov & Hutter 2017, without restarts, over the
 * steps after the warm-up. Triangle: straight from first_share to 1 and on to final_share; the last step is one before
 * the end. schedule NULL: constant. */
STK_API double stk_schedule_rate(const stk_schedule *schedule, double lr, int64_t i_step, int64_t n_steps,
                                 int64_t steps_per_epoch);

#ifdef __cplusplus
}
#endif
#endif
