/* For optimizer_isa.c, once for each T. */

static void NAME(sgd)(int64_t n, const stk_sgd_numbers *k, const void *src_param, const void *src_grad, void *dst)
{
    const T *param = src_param, *grad = src_grad;
    T *out = dst, lr = (T)k->lr, keep = (T)(1 - k->decay_param), decay = (T)k->decay_grad;
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        out[i] = keep * param[i] - lr * (grad[i] + decay * param[i]);
}

/* v = momentum * v + g;  param -= lr * (v, or g + momentum * v with Nesterov).
 * Like Keras the rate stands inside v: v = momentum * v - lr * g;  param += v, or momentum * v - lr * g. */
static void NAME(momentum)(int64_t n, const stk_sgd_numbers *k, const void *src_param, const void *src_velocity,
                           const void *src_grad, void *dst, void *dst_velocity)
{
    const T *param = src_param, *velocity = src_velocity, *grad = src_grad;
    T *out = dst, *out_velocity = dst_velocity;
    T lr = (T)k->lr, keep = (T)(1 - k->decay_param), decay = (T)k->decay_grad, momentum = (T)k->momentum;
    T fresh = k->like_keras ? -lr : 1;
    /* v = momentum * v + fresh * g;  param = keep * param + a * v + b * g. */
    T a = k->like_keras ? (k->nesterov ? momentum : 1) : (k->nesterov ? -lr * momentum : -lr);
    T b = k->nesterov ? -lr : 0;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        T p = param[i], g = grad[i] + decay * p, v = momentum * velocity[i] + fresh * g;
        out_velocity[i] = v;
        out[i] = keep * p + (a * v + b * g);
    }
}

/* in: param, m, v, grad. The bias corrections are inside step and root_factor. */
static void NAME(adam)(int64_t n, const stk_adam_numbers *k, const void *const in[4], void *const out[3])
{
    const T *param = in[0], *src_m = in[1], *src_v = in[2], *grad = in[3];
    T *dst = out[0], *dst_m = out[1], *dst_v = out[2];
    T beta1 = (T)k->beta1, beta2 = (T)k->beta2, rest1 = (T)(1 - k->beta1), rest2 = (T)(1 - k->beta2);
    T keep = (T)(1 - k->decay_param), decay = (T)k->decay_grad;
    T step = (T)k->step, root_factor = (T)k->root_factor, eps = (T)k->eps;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        T p = param[i], g = grad[i] + decay * p;
        T m = beta1 * src_m[i] + rest1 * g, v = beta2 * src_v[i] + rest2 * g * g;
        dst_m[i] = m;
        dst_v[i] = v;
        dst[i] = keep * p - step * m / (SQRT(v) * root_factor + eps);
    }
}
