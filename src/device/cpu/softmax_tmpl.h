/* For softmax_isa.c, once for each T. */

/* A NaN is passed over here: it comes out of the sum. */
static T NAME(find_max)(int64_t n, const T *x)
{
    T most = -(T)INFINITY;
#pragma omp simd reduction(max : most)
    for (int64_t i = 0; i < n; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

static T NAME(sum_exp)(int64_t n, const T *x, T most)
{
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += EXP(x[i] - most);
    return sum;
}

static void NAME(softmax)(int64_t n, const void *src, void *dst)
{
    const T *x = src;
    T *y = dst, most = NAME(find_max)(n, x), sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) {
        T e = EXP(x[i] - most);
        y[i] = e;
        sum += e;
    }
    T factor = 1 / sum;
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] *= factor;
}

static void NAME(softmax_grad)(int64_t n, const void *src_y, const void *src_dy, void *dst)
{
    const T *y = src_y, *dy = src_dy;
    T *dx = dst, sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += y[i] * dy[i];
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        dx[i] = y[i] * (dy[i] - sum);
}

static void NAME(loss)(int64_t n, const void *src, int64_t label, const void *src_shares, double smoothing, void *dst)
{
    const T *x = src, *shares = src_shares;
    T most = NAME(find_max)(n, x), norm = LOG(NAME(sum_exp)(n, x, most)), sum = 0;
    T each = (T)(smoothing / (double)n), rest = (T)(1 - smoothing);
    if (label >= 0 && smoothing == 0) {
        sum = norm - (x[label] - most);
    } else {
        /* A class without a share adds nothing, even where its logit is -inf. */
        for (int64_t i = 0; i < n; i++) {
            T share = (label >= 0 ? (T)(i == label) : shares[i]) * rest + each;
            if (share != 0) sum += share * (norm - (x[i] - most));
        }
    }
    *(T *)dst = sum;
}

static void NAME(loss_grad)(int64_t n, const void *src, int64_t label, const void *src_shares, double smoothing,
                            const void *src_dloss, void *dst)
{
    const T *x = src, *shares = src_shares;
    T *dx = dst, d = *(const T *)src_dloss;
    T each = (T)(smoothing / (double)n), rest = (T)(1 - smoothing), total = 1;
    T most = NAME(find_max)(n, x), sum = 0;
    if (label < 0) {
        total = 0;
        for (int64_t i = 0; i < n; i++)
            total += shares[i] * rest + each;
    }
    /* dx may be x: each element is read before it is written. */
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) {
        T e = EXP(x[i] - most);
        dx[i] = e;
        sum += e;
    }
    T factor = total / sum;
    if (label >= 0) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            dx[i] = d * (dx[i] * factor - each);
        dx[label] -= d * rest;
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            dx[i] = d * (dx[i] * factor - (shares[i] * rest + each));
    }
}

static void NAME(in_top_k)(int64_t n, const void *src, int64_t label, int k, float *out)
{
    const T *x = src, own = x[label];
    int64_t n_before = 0;
#pragma omp simd reduction(+ : n_before)
    for (int64_t i = 0; i < n; i++)
        n_before += (x[i] > own) | ((x[i] == own) & (i < label));
    /* A network that gives NaN has recognised nothing. */
    *out = n_before < k && own == own;
}
