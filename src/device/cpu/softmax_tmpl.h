/* For softmax_isa.c, once for each T. */

/* Rows of a few classes would be all tail: they are filled up to whole vectors with -inf, whose exp is 0. */
enum { NAME(SHORT) = 64, NAME(WHOLE) = 16 };

static int64_t NAME(fill_up)(int64_t n, const T *x, T *to)
{
    int64_t whole = (n + NAME(WHOLE) - 1) / NAME(WHOLE) * NAME(WHOLE);
    for (int64_t i = 0; i < whole; i++)
        to[i] = i < n ? x[i] : -(T)INFINITY;
    return whole;
}

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
    const T *x = src, *shares = src_shares, *row = x;
    T filled[NAME(SHORT)];
    int64_t n_row = n;
    if (n < NAME(SHORT)) n_row = NAME(fill_up)(n, x, filled), row = filled;
    T most = NAME(find_max)(n_row, row), norm = LOG(NAME(sum_exp)(n_row, row, most)), sum = 0;
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
    T filled[NAME(SHORT)], *e = dx;
    int64_t n_row = n;
    if (n < NAME(SHORT)) n_row = NAME(fill_up)(n, x, filled), x = e = filled;
    T most = NAME(find_max)(n_row, x), sum = 0;
    if (label < 0) {
        total = 0;
        for (int64_t i = 0; i < n; i++)
            total += shares[i] * rest + each;
    }
    /* e may be x: each element is read before it is written. */
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n_row; i++) {
        T part = EXP(x[i] - most);
        e[i] = part;
        sum += part;
    }
    T factor = total / sum;
    if (label >= 0) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            dx[i] = d * (e[i] * factor - each);
        dx[label] -= d * rest;
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            dx[i] = d * (e[i] * factor - (shares[i] * rest + each));
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
