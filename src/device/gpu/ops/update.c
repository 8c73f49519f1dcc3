/* Updates of parameters: one sweep over memory. */
#include <math.h>

#include "device/gpu/gpu.h"

enum { GROUP = 256 };

/* Every input of the parameter's shape may be overwritten by what comes of it. */
static void set_in_place(gpu_maker *m, int n_whole)
{
    for (int i = 0; i < m->call->n_out; i++)
        m->in_place[i] = (1u << n_whole) - 1;
}

static bool begin(gpu_maker *m, const char *kernel)
{
    const stk_op_call *call = m->call;
    const char *type = gpu_type(m, call->in[0].dtype);
    if (stk_shape_count(call->in[0].shape) == 0) return false;
    gpu_add(m, "update.dev", kernel, "#define T %s\n", type);
    for (int i = 0; i < call->n_in; i++)
        gpu_in(m, i);
    for (int i = 0; i < call->n_out; i++)
        gpu_out(m, i);
    return true;
}

static void end(gpu_maker *m)
{
    int64_t n = stk_shape_count(m->call->in[0].shape);
    gpu_index(m, n);
    gpu_items(m, n, GROUP);
}

void gpu_make_sgd_update(gpu_maker *m)
{
    const stk_attrs *a = m->call->attrs;
    bool has_velocity = a->sgd.momentum != 0;
    set_in_place(m, has_velocity ? 3 : 2);
    if (!begin(m, has_velocity ? "sgd_momentum_update" : "sgd_update")) return;
    if (has_velocity) gpu_float(m, a->sgd.momentum);
    gpu_float(m, a->sgd.weight_decay);
    if (has_velocity) gpu_int(m, a->sgd.nesterov);
    gpu_int(m, a->sgd.like_keras);
    end(m);
}

static void add_beta(gpu_maker *m, double beta)
{
    gpu_float(m, beta);
    gpu_float(m, 1 - beta);
    gpu_float(m, beta > 0 ? log(beta) : -1e30);
}

void gpu_make_adam_update(gpu_maker *m)
{
    const stk_attrs *a = m->call->attrs;
    set_in_place(m, 4);
    if (!begin(m, "adam_update")) return;
    add_beta(m, a->adam.beta1);
    add_beta(m, a->adam.beta2);
    gpu_float(m, a->adam.eps);
    gpu_float(m, a->adam.weight_decay);
    gpu_int(m, a->adam.decoupled);
    gpu_int(m, a->adam.like_keras);
    end(m);
}
