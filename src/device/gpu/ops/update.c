/* Updates of parameters: one sweep over memory, for several parameters at a time. */
#include <math.h>

#include "device/gpu/gpu.h"

enum { GROUP = 256 };

/* As update.dev has them. */
typedef struct sgd_settings {
    float momentum, decay;
    int32_t nesterov, like_keras;
} sgd_settings;

typedef struct adam_settings {
    float beta_1, rest_1, log_1, beta_2, rest_2, log_2, eps, decay;
    int32_t decoupled, like_keras;
} adam_settings;

/* The first n_own inputs are the parameter's, and may be overwritten by what comes of it; the others are shared. */
static void add(gpu_maker *m, const char *kernel, int n_own, const void *settings, size_t n_settings)
{
    const stk_op_call *call = m->call;
    const int64_t n = stk_shape_count(call->in[0].shape);
    for (int i = 0; i < call->n_out; i++)
        m->in_place[i] = (1u << n_own) - 1;
    if (n == 0) return;
    gpu_add(m, "update.dev", kernel, "#define T %s\n", gpu_type(m, call->in[0].dtype));
    for (int i = 0; i < n_own; i++)
        gpu_in(m, i);
    for (int i = 0; i < call->n_out; i++)
        gpu_out(m, i);
    gpu_slots(m);
    for (int i = n_own; i < call->n_in; i++)
        gpu_in(m, i);
    gpu_bytes(m, settings, n_settings);
    gpu_slot_sizes(m, n, GROUP);
}

void gpu_make_sgd_update(gpu_maker *m)
{
    const stk_attrs *a = m->call->attrs;
    const sgd_settings settings = {(float)a->sgd.momentum, (float)a->sgd.weight_decay, a->sgd.nesterov,
                                   a->sgd.like_keras};
    if (a->sgd.momentum != 0)
        add(m, "sgd_momentum_update", 3, &settings, sizeof(settings));
    else
        add(m, "sgd_update", 2, &settings, sizeof(settings));
}

static float log_of(double beta)
{
    return beta > 0 ? (float)log(beta) : -1e30f;
}

void gpu_make_adam_update(gpu_maker *m)
{
    const stk_attrs *a = m->call->attrs;
    const double beta_1 = a->adam.beta1, beta_2 = a->adam.beta2;
    const adam_settings settings = {.beta_1 = (float)beta_1,
                                    .rest_1 = (float)(1 - beta_1),
                                    .log_1 = log_of(beta_1),
                                    .beta_2 = (float)beta_2,
                                    .rest_2 = (float)(1 - beta_2),
                                    .log_2 = log_of(beta_2),
                                    .eps = (float)a->adam.eps,
                                    .decay = (float)a->adam.weight_decay,
                                    .decoupled = a->adam.decoupled,
                                    .like_keras = a->adam.like_keras};
    add(m, "adam_update", 4, &settings, sizeof(settings));
}
