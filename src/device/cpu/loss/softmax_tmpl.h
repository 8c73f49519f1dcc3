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

/* Long rows are summed in parts of SOME: one sum over all of them would round more and more of each element away. */
enum { NAME(SOME) = 1024 };

static T NAME(sum_exp)(int64_t n, const T *x, T most)
{
    T sum = 0;
    for (int64_t begin = 0; begin < n; begin += NAME(SOME)) {
        int64_t end = begin + NAME(SOME) < n ? begin + NAME(SOME) : n;
        T part = 0;
#pragma omp simd reduction(+ : part)
        for (int64_t i = begin; i < end; i++)
            part += EXP(x[i] - most);
        sum += part;
    }
    return sum;
}

/* y = exp(x - most), and its sum. y may be x: each element is read before it is written. */
static T NAME(put_exp)(int64_t n, const T *x, T most, T *y)
{
    T sum = 0;
    for (int64_t begin = 0; begin < n; begin += NAME(SOME)) {
        int64_t end = begin + NAME(SOME) < n ? begin + NAME(SOME) : n;
        T part = 0;
#pragma omp simd reduction(+ : part)
        for (int64_t i = begin; i < end; i++) {
            T e = EXP(x[i] - most);
            y[i] = e;
            part += e;
        }
        sum += part;
    }
    return sum;
}

static void NAME(softmax)(int64_t n, const void *src, void *dst)
{
    const T *x = src;
    T *y = dst, factor = 1 / NAME(put_exp)(n, x, NAME(find_max)(n, x), y);
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
        for (int64_t begin = 0; begin < n; begin += NAME(SOME)) {
            int64_t end = begin + NAME(SOME) < n ? begin + NAME(SOME) : n;
            T part = 0;
            for (int64_t i = begin; i < end; i++) {
                T share = (label >= 0 ? (T)(i == label) : shares[i]) * rest + each;
                if (share != 0) part += share * (norm - (x[i] - most));
            }
            sum += part;
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
    T most = NAME(find_max)(n, x);
    if (label < 0) {
        total = 0;
        for (int64_t i = 0; i < n; i++)
            total += shares[i] * rest + each;
    }
    T factor = total / NAME(put_exp)(n, x, most, dx);
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

/* Both at once, for a class number: the exponentials are made once. */
static void NAME(loss_and_grad)(int64_t n, const void *src, int64_t label, double smoothing, const void *src_dloss,
                                void *dst_loss, void *dst)
{
    const T *x = src;
    T *dx = dst, d = *(const T *)src_dloss, each = (T)(smoothing / (double)n), rest = (T)(1 - smoothing);
    T most = NAME(find_max)(n, x), own = x[label] - most, below = 0;
    if (smoothing != 0)
        for (int64_t i = 0; i < n; i++)
            below += x[i] - most;
    T sum = NAME(put_exp)(n, x, most, dx), norm = LOG(sum), factor = 1 / sum, loss = 0;
    /* A class without a share adds nothing, even where its logit is -inf. */
    if (rest != 0) loss += rest * (norm - own);
    if (smoothing != 0) loss += each * ((T)n * norm - below);
    *(T *)dst_loss = loss;
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        dx[i] = d * (dx[i] * factor - each);
    dx[label] -= d * rest;
}

/* --- few classes: rows of them would be all tail, so that GROUP rows lie side by side in vectors instead --- */

enum { NAME(GROUP) = 16 };

/* to[i][r] = x[r][i]; rows that there are none of repeat the first. */
static void NAME(lay_aside)(int64_t n_rows, int64_t n, const T *x, T to[STK_FEW_CLASSES][NAME(GROUP)])
{
    for (int64_t r = 0; r < NAME(GROUP); r++)
        for (int64_t i = 0; i < n; i++)
            to[i][r] = x[(r < n_rows ? r : 0) * n + i];
}

/* to [n][GROUP] becomes exp(x - most); most and sum by row. */
static void NAME(exp_aside)(int64_t n, T to[STK_FEW_CLASSES][NAME(GROUP)], T *most, T *sum)
{
    for (int r = 0; r < NAME(GROUP); r++) {
        most[r] = -(T)INFINITY;
        sum[r] = 0;
    }
    for (int64_t i = 0; i < n; i++)
#pragma omp simd
        for (int r = 0; r < NAME(GROUP); r++)
            most[r] = to[i][r] > most[r] ? to[i][r] : most[r];
    for (int64_t i = 0; i < n; i++)
#pragma omp simd
        for (int r = 0; r < NAME(GROUP); r++) {
            T e = EXP(to[i][r] - most[r]);
            to[i][r] = e;
            sum[r] += e;
        }
}

static void NAME(few_loss)(int64_t n_rows, int64_t n, const void *src, const int32_t *labels, double smoothing,
                           void *dst)
{
    T aside[STK_FEW_CLASSES][NAME(GROUP)], most[NAME(GROUP)], norm[NAME(GROUP)];
    T each = (T)(smoothing / (double)n), rest = (T)(1 - smoothing);
    for (int64_t row = 0; row < n_rows; row += NAME(GROUP)) {
        const T *x = (const T *)src + row * n;
        int64_t n_here = n_rows - row < NAME(GROUP) ? n_rows - row : NAME(GROUP);
        NAME(lay_aside)(n_here, n, x, aside);
        NAME(exp_aside)(n, aside, most, norm);
#pragma omp simd
        for (int r = 0; r < NAME(GROUP); r++)
            norm[r] = LOG(norm[r]);
        for (int64_t r = 0; r < n_here; r++, x += n) {
            T sum = rest * (norm[r] - (x[labels[row + r]] - most[r]));
            for (int64_t i = 0; i < n && smoothing != 0; i++)
                sum += each * (norm[r] - (x[i] - most[r]));
            ((T *)dst)[row + r] = sum;
        }
    }
}

static void NAME(few_loss_grad)(int64_t n_rows, int64_t n, const void *src, const int32_t *labels, double smoothing,
                                const void *src_dloss, void *dst)
{
    T aside[STK_FEW_CLASSES][NAME(GROUP)], most[NAME(GROUP)], sum[NAME(GROUP)];
    const T *dloss = src_dloss;
    T each = (T)(smoothing / (double)n), rest = (T)(1 - smoothing);
    for (int64_t row = 0; row < n_rows; row += NAME(GROUP)) {
        T *dx = (T *)dst + row * n;
        int64_t n_here = n_rows - row < NAME(GROUP) ? n_rows - row : NAME(GROUP);
        NAME(lay_aside)(n_here, n, (const T *)src + row * n, aside);
        NAME(exp_aside)(n, aside, most, sum);
        for (int64_t r = 0; r < n_here; r++, dx += n) {
            T d = dloss[row + r], factor = 1 / sum[r];
            for (int64_t i = 0; i < n; i++)
                dx[i] = d * (aside[i][r] * factor - each);
            dx[labels[row + r]] -= d * rest;
        }
    }
}

/* A row's own logit must be a number: a network that gives NaN has recognised nothing. */
static void NAME(few_in_top_k)(int64_t n_rows, int64_t n, const void *src, const int32_t *labels, int k, float *out)
{
    T aside[STK_FEW_CLASSES][NAME(GROUP)], own[NAME(GROUP)];
    int32_t label[NAME(GROUP)] = {0};
    for (int64_t row = 0; row < n_rows; row += NAME(GROUP)) {
        int64_t n_here = n_rows - row < NAME(GROUP) ? n_rows - row : NAME(GROUP);
        int32_t n_before[NAME(GROUP)] = {0};
        NAME(lay_aside)(n_here, n, (const T *)src + row * n, aside);
        for (int64_t r = 0; r < n_here; r++)
            label[r] = labels[row + r];
        for (int r = 0; r < NAME(GROUP); r++)
            own[r] = aside[label[r]][r];
        for (int32_t i = 0; i < (int32_t)n; i++)
#pragma omp simd
            for (int r = 0; r < NAME(GROUP); r++)
                n_before[r] += (aside[i][r] > own[r]) | ((aside[i][r] == own[r]) & (i < label[r]));
        for (int64_t r = 0; r < n_here; r++)
            out[row + r] = n_before[r] < k && own[r] == own[r];
    }
}

static void NAME(in_top_k)(int64_t n, const void *src, int64_t label, int k, float *out)
{
    const T *x = src, own = x[label];
    int64_t n_before = 0;
#pragma omp simd reduction(+ : n_before)
    for (int64_t i = 0; i < n; i++)
        n_before += (x[i] > own) | ((x[i] == own) & (i < label));
    *out = n_before < k && own == own;
}
