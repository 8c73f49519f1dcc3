/* Attention's arithmetic on one row of scores, for each T: behind attention_rows.h, before attention_tmpl.h. */

/* x[i] *= factor, -inf where the mask is false; the maximum. A NaN is passed over here: it comes out of the sum. */
static T NAME(scale_scores)(int64_t n, T factor, const uint8_t *mask, T *x)
{
    T most = -(T)INFINITY;
    if (!mask) {
#pragma omp simd reduction(max : most)
        for (int64_t i = 0; i < n; i++) {
            x[i] *= factor;
            most = x[i] > most ? x[i] : most;
        }
    } else {
#pragma omp simd reduction(max : most)
        for (int64_t i = 0; i < n; i++) {
            x[i] = mask[i] ? x[i] * factor : -(T)INFINITY;
            most = x[i] > most ? x[i] : most;
        }
    }
    return most;
}

static T NAME(exp_scores)(int64_t n, T most, T *x)
{
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) {
        T e = EXP(x[i] - most);
        x[i] = e;
        sum += e;
    }
    return sum;
}

static void NAME(drop_scores)(int64_t n, const uint8_t *keeps, T *x)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        x[i] = keeps[i] ? x[i] : 0;
}

/* From scores x to weights p, and from dp (in dx) to the scores' gradients: ds = p (dp - dot) scale. */
static void NAME(grad_plain)(int64_t n, const uint8_t *mask, T scale, T lse, T dot, T *x, T *dx)
{
    if (!mask) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            T p = EXP(x[i] * scale - lse);
            x[i] = p;
            dx[i] = p * (dx[i] - dot) * scale;
        }
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            T p = EXP(x[i] * scale - lse), ds = p * (dx[i] - dot) * scale;
            x[i] = mask[i] ? p : 0;
            dx[i] = mask[i] ? ds : 0;
        }
    }
}

/* The same with dropout; factor is 1/(1-rate). */
static void NAME(grad_dropped)(int64_t n, const uint8_t *mask, const uint8_t *keeps, T factor, T scale, T lse, T dot,
                               T *x, T *dx)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        T keep = keeps[i] ? factor : 0, p = EXP(x[i] * scale - lse);
        x[i] = p * keep;
        dx[i] = p * ((keeps[i] ? dx[i] * keep : 0) - dot) * scale;
    }
    for (int64_t i = 0; mask && i < n; i++) {
        x[i] = mask[i] ? x[i] : 0;
        dx[i] = mask[i] ? dx[i] : 0;
    }
}
