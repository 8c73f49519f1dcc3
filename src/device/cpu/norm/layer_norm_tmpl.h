/* For layer_norm_isa.c, once for each S that x, y and their gradients are stored in; sums, statistics and parameters
 * are T. LOAD and STORE turn one into the other.
 *
 * A row stays in the first-level cache while it is read for its mean, its variance and its result, so memory is read
 * once. Sums are of RUN elements at most before they go into doubles.
 */

enum { NAME(RUN) = 1024 };

static double NAME(sum_row)(int64_t n, const S *x)
{
    double total = 0;
    for (int64_t at = 0; at < n; at += NAME(RUN)) {
        int64_t end = n - at < NAME(RUN) ? n : at + NAME(RUN);
        T sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = at; i < end; i++)
            sum += LOAD(x[i]);
        total += (double)sum;
    }
    return total;
}

/* Sums of the distances from `near`, which is close to the mean, and of their squares. */
static void NAME(measure_spread)(int64_t n, const S *x, T near, double sums[2])
{
    sums[0] = sums[1] = 0;
    for (int64_t at = 0; at < n; at += NAME(RUN)) {
        int64_t end = n - at < NAME(RUN) ? n : at + NAME(RUN);
        T sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum, squares)
        for (int64_t i = at; i < end; i++) {
            T distance = LOAD(x[i]) - near;
            sum += distance;
            squares += distance * distance;
        }
        sums[0] += (double)sum;
        sums[1] += (double)squares;
    }
}

static void NAME(forward)(int64_t n_rows, int64_t n, const void *src, const void *src_scale, const void *src_bias,
                          double eps, void *dst, void *dst_mean, void *dst_inv_std)
{
    const T *scale = src_scale, *bias = src_bias;
    double count = n ? (double)n : 1, sums[2];
    for (int64_t row = 0; row < n_rows; row++) {
        const S *x = (const S *)src + row * n;
        S *y = (S *)dst + row * n;
        T near = (T)(NAME(sum_row)(n, x) / count);
        NAME(measure_spread)(n, x, near, sums);
        double rest = sums[0] / count, var = sums[1] / count - rest * rest;
        /* What rounding left out of `near` counts where a row is far from zero. A NaN stays one. */
        T inv_std = (T)(1 / sqrt((var < 0 ? 0 : var) + eps)), far = (T)rest;
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            y[i] = STORE((LOAD(x[i]) - near - far) * inv_std * scale[i] + bias[i]);
        ((T *)dst_mean)[row] = (T)((double)near + rest);
        ((T *)dst_inv_std)[row] = inv_std;
    }
}

/* Sums over the row of d and of d * normal, where d = dy * scale; the row's part of dscale and dbias. */
static void NAME(measure)(int64_t n, const S *dy, const S *x, const T *scale, T mean, T inv_std, T *dscale, T *dbias,
                          double sums[2])
{
    sums[0] = sums[1] = 0;
    for (int64_t at = 0; at < n; at += NAME(RUN)) {
        int64_t end = n - at < NAME(RUN) ? n : at + NAME(RUN);
        T sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
        for (int64_t i = at; i < end; i++) {
            T normal = (LOAD(x[i]) - mean) * inv_std, g = LOAD(dy[i]), d = g * scale[i];
            dscale[i] += g * normal;
            dbias[i] += g;
            sum += d;
            product += d * normal;
        }
        sums[0] += (double)sum;
        sums[1] += (double)product;
    }
}

static void NAME(grad)(int64_t n_rows, int64_t n, const void *src_dy, const void *src_x, const void *src_scale,
                       const void *src_mean, const void *src_inv_std, void *dst, void *part, double *total)
{
    const T *scale = src_scale;
    T *dscale = part, *dbias = dscale + n;
    for (int64_t from = 0; from < n_rows; from += STK_LAYER_NORM_ROWS) {
        int64_t to = n_rows - from < STK_LAYER_NORM_ROWS ? n_rows : from + STK_LAYER_NORM_ROWS;
        for (int64_t i = 0; i < 2 * n; i++)
            dscale[i] = 0;
        for (int64_t row = from; row < to; row++) {
            const S *dy = (const S *)src_dy + row * n, *x = (const S *)src_x + row * n;
            S *dx = (S *)dst + row * n;
            T mean = ((const T *)src_mean)[row], inv_std = ((const T *)src_inv_std)[row];
            double sums[2];
            NAME(measure)(n, dy, x, scale, mean, inv_std, dscale, dbias, sums);
            T offset = (T)(sums[0] / (double)n), slope = (T)(sums[1] / (double)n) * inv_std;
#pragma omp simd
            for (int64_t i = 0; i < n; i++)
                dx[i] = STORE(inv_std * (LOAD(dy[i]) * scale[i] - offset - (LOAD(x[i]) - mean) * slope));
        }
        for (int64_t i = 0; i < 2 * n; i++)
            total[i] += (double)dscale[i];
    }
}
