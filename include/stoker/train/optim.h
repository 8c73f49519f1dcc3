/* Optimisers and schedules: plain settings. The update itself is part of the training graph.
 *
 * In C a macro takes what is not as the default: stk_adam(.lr = 0.1, .beta1 = 0). Each has a function without settings
 * for other languages, as stk_adam_default, whose result is then changed field by field.
 *
 * Defaults are PyTorch's. `like_keras` gives Keras' arithmetic: SGD with the rate inside the velocity; Adam with eps
 * 1e-7 added to sqrt(v) and the bias correction folded into the rate, and AdamW's decay of 0.004; RMSprop with eps 1e-7
 * inside the root and the rate inside the velocity. In Keras the decay of every optimiser acts on the parameters, as
 * AdamW's does; in PyTorch that of SGD and Adam is added to the gradient.
 */
#ifndef STOKER_TRAIN_OPTIM_H
#define STOKER_TRAIN_OPTIM_H

#include "stoker/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every optimiser, once: X(STK_OPTIMIZER_..., name). See docs/adding-an-optimiser.md. */
#define STK_OPTIMIZER_LIST(X)                                                                                          \
    X(SGD, sgd)                                                                                                        \
    X(ADAM, adam)                                                                                                      \
    X(ADAMW, adamw)                                                                                                    \
    X(RMSPROP, rmsprop)                                                                                                \
    X(ADAGRAD, adagrad)                                                                                                \
    X(LAMB, lamb) /* You et al. 2020 */                                                                                \
    X(LARS, lars) /* You et al. 2017 */                                                                                \
    X(MUON, muon) /* Jordan et al. 2024; AdamW for vectors, embeddings and the last layer */

typedef enum stk_optimizer_kind {
#define X(KIND, name) STK_OPTIMIZER_##KIND,
    STK_OPTIMIZER_LIST(X)
#undef X
        STK_N_OPTIMIZERS
} stk_optimizer_kind;

/* A number means what it says, 0 too. The defaults are what stk_sgd(), stk_sgd_default() and so on write into it. */
typedef struct stk_optimizer {
    stk_optimizer_kind kind;
    double lr;           /* sgd, rmsprop, adagrad 0.01; lars 0.1; the others, and rmsprop like Keras, 0.001 */
    double weight_decay; /* 0; adamw 0.01, like Keras 0.004; lamb 0.01, lars 1e-4, muon 0.1 */
    double momentum;     /* sgd, rmsprop 0; lars 0.9; muon 0.95 */
    bool nesterov;       /* sgd, muon; torch's Muon has it on */
    double beta1, beta2; /* 0.9, 0.999; of rmsprop only beta2 counts: 0.99, or 0.9 like Keras */
    double eps;          /* 1e-8, like Keras 1e-7; adagrad 1e-10, lamb 1e-6, muon 1e-7 */
    double trust;        /* lars: the rate for a layer whose gradient is as large as its weights; 0.001 */
    double rest_lr;      /* muon: AdamW's rate for the other parameters; 3e-4. It follows the same schedule */
    bool centered;       /* rmsprop: by the variance */
    bool like_keras;     /* sgd, adam, adamw, rmsprop */
} stk_optimizer;

/* All that a kind's settings are where nothing is said, to be changed: in C++, Python and wherever macros are not at
 * hand. like_keras is for kinds that have it. Another kind than there is comes back as it is, and is an error where it
 * is used. */
STK_API stk_optimizer stk_optimizer_default(stk_optimizer_kind kind, bool like_keras);
/* stk_sgd_default(), stk_adam_default() and so on. */
#define X(KIND, name) STK_API stk_optimizer stk_##name##_default(void);
STK_OPTIMIZER_LIST(X)
#undef X

/* In place of a number: the default of the kind. */
#define STK_NOT_SET (-0x1p1000)
/* Each number that is STK_NOT_SET becomes the kind's default, by settings.like_keras. */
STK_API stk_optimizer stk_optimizer_fill(stk_optimizer_kind kind, stk_optimizer settings);
/* By a recipe's text: "adam", "{sgd: {lr: 0.1, momentum: 0.9}}"; docs/recipe.md. Errors name line and column. */
STK_API stk_status stk_optimizer_parse(const char *text, stk_optimizer *out);
#ifndef __cplusplus
/* What the user gives stands behind the marks of what is not given, and replaces them. */
#pragma GCC diagnostic ignored "-Woverride-init"
#define STK_OPTIMIZER_NOT_SET                                                                                          \
    .lr = STK_NOT_SET, .weight_decay = STK_NOT_SET, .momentum = STK_NOT_SET, .beta1 = STK_NOT_SET,                     \
    .beta2 = STK_NOT_SET, .eps = STK_NOT_SET, .trust = STK_NOT_SET, .rest_lr = STK_NOT_SET
#define STK_OPTIMIZER(KIND, ...)                                                                                       \
    stk_optimizer_fill(STK_OPTIMIZER_##KIND, (stk_optimizer){STK_OPTIMIZER_NOT_SET, __VA_ARGS__})
/* stk_sgd(.lr = 0.1, .momentum = 0.9) */
#define stk_sgd(...)     STK_OPTIMIZER(SGD, __VA_ARGS__)
#define stk_adam(...)    STK_OPTIMIZER(ADAM, __VA_ARGS__)
#define stk_adamw(...)   STK_OPTIMIZER(ADAMW, __VA_ARGS__)
#define stk_rmsprop(...) STK_OPTIMIZER(RMSPROP, __VA_ARGS__)
#define stk_adagrad(...) STK_OPTIMIZER(ADAGRAD, __VA_ARGS__)
#define stk_lamb(...)    STK_OPTIMIZER(LAMB, __VA_ARGS__)
#define stk_lars(...)    STK_OPTIMIZER(LARS, __VA_ARGS__)
#define stk_muon(...)    STK_OPTIMIZER(MUON, __VA_ARGS__)
#endif

/* Training in f16 multiplies the loss, so that small gradients do not become 0, and divides the gradients again.
 * DYNAMIC: as torch.amp.GradScaler; a step whose gradients are not finite is skipped and the scale shrinks. */
typedef enum stk_loss_scale_kind {
    STK_LOSS_SCALE_AUTO, /* DYNAMIC for f16, else NONE */
    STK_LOSS_SCALE_NONE,
    STK_LOSS_SCALE_FIXED, /* by `initial` */
    STK_LOSS_SCALE_DYNAMIC
} stk_loss_scale_kind;

typedef struct stk_loss_scale {
    stk_loss_scale_kind kind; /* AUTO */
    double initial;           /* 2^16; Keras has 2^15 */
    double growth;            /* 2: the factor after `every` finite steps in a row */
    double backoff;           /* 0.5: the factor after a skipped step */
    int64_t every;            /* 2000 steps */
} stk_loss_scale;

STK_API stk_loss_scale stk_loss_scale_default(void);
STK_API stk_status stk_loss_scale_check(const stk_loss_scale *settings);

/* A running mean of the weights (EMA), kept next to them: mean = decay * mean + (1 - decay) * weight after each step,
 * the first of which copies the weights; torch.optim.swa_utils' EMA and Keras' use_ema do the same. Evaluation,
 * prediction and checkpoints take the mean for the network's weights; batch norm's running statistics are the last
 * ones. */
typedef struct stk_average {
    double decay; /* 0: no mean is kept */
    bool warmup;  /* while it is less, (1 + n) / (10 + n) is the decay, after n steps: as TensorFlow's num_updates */
} stk_average;

/* Replicas take local steps, and after so many one together: with d = begun - mean(weight) over the replicas,
 *   v = momentum v + d,   weight = begun = begun - lr (d + momentum v)
 * Douillard et al. 2023, "DiLoCo", algorithm 1. It is taken at the end of an epoch, too. */
typedef struct stk_outer {
    int64_t every; /* steps; 0: none */
    double lr, momentum;
} stk_outer;
STK_API stk_outer stk_outer_default(void); /* lr 0.7, momentum 0.9, every 100 steps; a trainer's configuration: none */

/* Zhang et al. 2019: slow weights go along behind. After every N steps
 *   slow = slow + alpha * (weight - slow),   weight = slow
 * and behind the last step weight = slow. Batch norm's running statistics, which belong to the weights, go the same
 * way. With a power alpha is not the same throughout: behind t of n steps it is 1 - (1 - alpha) * (t / n)^power, so
 * that the weights are held back more and more, as in Jordan 2024. */
typedef struct stk_lookahead {
    int64_t every; /* steps; 0: none */
    double alpha;  /* from 0 to 1; 0.5 */
    double power;  /* 0: alpha throughout */
} stk_lookahead;
STK_API stk_lookahead stk_lookahead_default(void); /* every 5 steps; that of a trainer's configuration: none */

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

/* Every schedule, once: X(STK_SCHEDULE_..., name). */
#define STK_SCHEDULE_LIST(X)                                                                                           \
    X(CONSTANT, constant)                                                                                              \
    X(STEP, step)                                                                                                      \
    X(COSINE, cosine)                                                                                                  \
    X(TRIANGLE, triangle)

typedef enum stk_schedule_kind {
#define X(KIND, name) STK_SCHEDULE_##KIND,
    STK_SCHEDULE_LIST(X)
#undef X
        STK_N_SCHEDULES
} stk_schedule_kind;

/* A number means what it says, as in stk_optimizer. */
typedef struct stk_schedule {
    stk_schedule_kind kind;
    double warmup_epochs; /* 0; linear: of w steps, step i has (i + 1) / w of the full rate */
    double every_epochs;  /* step: multiplied by gamma each time, counted from the start of training; 0: never */
    double gamma;         /* step: 0.1 */
    double final_share;   /* 0; cosine, triangle: the rate at the end, as a share of the full rate */
    double first_share;   /* 0; triangle: the rate of the first step, as a share of the full rate */
    double peak;          /* triangle: the share of all steps, rounded down, after which the rate is full; 0.25 */
} stk_schedule;

/* stk_constant_schedule_default(), stk_step_schedule_default() and so on. */
#define X(KIND, name) STK_API stk_schedule stk_##name##_schedule_default(void);
STK_SCHEDULE_LIST(X)
#undef X
/* Each number that is STK_NOT_SET becomes the kind's default. */
STK_API stk_schedule stk_schedule_fill(stk_schedule_kind kind, stk_schedule settings);
#ifndef __cplusplus
#define STK_SCHEDULE(KIND, ...)                                                                                        \
    stk_schedule_fill(STK_SCHEDULE_##KIND, (stk_schedule){.warmup_epochs = STK_NOT_SET,                                \
                                                          .every_epochs = STK_NOT_SET,                                 \
                                                          .gamma = STK_NOT_SET,                                        \
                                                          .final_share = STK_NOT_SET,                                  \
                                                          .first_share = STK_NOT_SET,                                  \
                                                          .peak = STK_NOT_SET,                                         \
                                                          __VA_ARGS__})
/* stk_step_schedule(.every_epochs = 30, .warmup_epochs = 5) */
#define stk_constant_schedule(...) STK_SCHEDULE(CONSTANT, __VA_ARGS__)
#define stk_step_schedule(...)     STK_SCHEDULE(STEP, __VA_ARGS__)
#define stk_cosine_schedule(...)   STK_SCHEDULE(COSINE, __VA_ARGS__)
#define stk_triangle_schedule(...) STK_SCHEDULE(TRIANGLE, __VA_ARGS__)
#endif
STK_API stk_status stk_schedule_check(const stk_schedule *settings);

/* The rate for step number i_step (from 0) of n_steps. Cosine: Loshchilov & Hutter 2017, without restarts, over the
 * steps after the warm-up. Triangle: straight from first_share to 1 and on to final_share; the last step is one before
 * the end. schedule NULL: constant; of a kind that there is not: NAN. */
STK_API double stk_schedule_rate(const stk_schedule *schedule, double lr, int64_t i_step, int64_t n_steps,
                                 int64_t steps_per_epoch);

#ifdef __cplusplus
}
#endif
#endif
