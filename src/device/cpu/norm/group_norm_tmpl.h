/* For group_norm_isa.c, once for each T. Sums are by channel first, whatever the groups, so that they are vectors; a
 * group's are made of those of its channels. The sums of up to ROWS rows are of type T, then they go into doubles.
 */

enum { NAME(TILE) = 64, NAME(ROWS) = 64 };

/* sums[c] of x - shift and sums[n_channels + c] of its square, the shift being the first row's. */
static void NAME(measure)(const stk_group_norm_sizes *s, const T *x, double *sums)
{
    int64_t n_channels = s->n_channels;
    for (int64_t c = 0; c < 2 * n_channels; c++)
        sums[c] = 0;
    for (int64_t row = 0; row < s->n_rows; row += NAME(ROWS)) {
        int64_t n_rows = s->n_rows - row < NAME(ROWS) ? s->n_rows - row : NAME(ROWS);
        for (int64_t at = 0; at < n_channels; at += NAME(TILE)) {
            int n = n_channels - at < NAME(TILE) ? (int)(n_channels - at) : NAME(TILE);
            T sum[NAME(TILE)] = {0}, squares[NAME(TILE)] = {0};
            const T *from = x + row * n_channels + at;
            for (int64_t r = 0; r < n_rows; r++, from += n_channels) {
#pragma omp simd
                for (int c = 0; c < n; c++) {
                    T d = from[c] - x[at + c];
                    sum[c] += d;
                    squares[c] += d * d;
                }
            }
            for (int c = 0; c < n; c++) {
                sums[at + c] += (double)sum[c];
                sums[n_channels + at + c] += (double)squares[c];
            }
        }
    }
}

/* Mean and variance of channels begin .. end-1 together. */
static void NAME(join)(const stk_group_norm_sizes *s, const T *x, const double *sums, int64_t begin, int64_t end,
                       double *mean, double *var)
{
    double n_rows = s->n_rows ? (double)s->n_rows : 1, n = (double)(end - begin), spread = 0;
    *mean = 0;
    for (int64_t c = begin; c < end && s->n_rows; c++)
        *mean += ((double)x[c] + sums[c] / n_rows) / n;
    for (int64_t c = begin; c < end && s->n_rows; c++) {
        double rest = sums[c] / n_rows, distance = (double)x[c] + rest - *mean;
        double own = sums[s->n_channels + c] / n_rows - rest * rest;
        spread += ((own < 0 ? 0 : own) + distance * distance) / n;
    }
    *var = spread;
}

static void NAME(forward)(const stk_group_norm_sizes *s, const void *src, const void *src_scale, const void *src_bias,
                          void *dst, void *dst_mean, void *dst_inv_std, double *scratch)
{
    const T *x = src, *scale = src_scale, *bias = src_bias;
    int64_t n_channels = s->n_channels, n_each = n_channels / s->n_groups;
    T *factor = (T *)(scratch + 2 * n_channels), *center = (T *)(scratch + 3 * n_channels);
    NAME(measure)(s, x, scratch);
    for (int64_t g = 0; g < s->n_groups; g++) {
        double mean, var;
        NAME(join)(s, x, scratch, g * n_each, (g + 1) * n_each, &mean, &var);
        double inv_std = 1 / sqrt(var + s->eps);
        ((T *)dst_mean)[g] = (T)mean;
        ((T *)dst_inv_std)[g] = (T)inv_std;
        for (int64_t c = g * n_each; c < (g + 1) * n_each; c++) {
            center[c] = (T)mean;
            factor[c] = (T)inv_std * scale[c];
        }
    }
    for (int64_t row = 0; row < s->n_rows; row++) {
        const T *from = x + row * n_channels;
        T *to = (T *)dst + row * n_channels;
#pragma omp simd
        for (int64_t c = 0; c < n_channels; c++)
            to[c] = (from[c] - center[c]) * factor[c] + bias[c];
    }
}

/* sums[c] of dy, sums[n_channels + c] of dy times the distance from the mean. */
static void NAME(measure_grads)(const stk_group_norm_sizes *s, const T *dy, const T *x, const T *center, double *sums)
{
    int64_t n_channels = s->n_channels;
    for (int64_t c = 0; c < 2 * n_channels; c++)
        sums[c] = 0;
    for (int64_t row = 0; row < s->n_rows; row += NAME(ROWS)) {
        int64_t n_rows = s->n_rows - row < NAME(ROWS) ? s->n_rows - row : NAME(ROWS);
        for (int64_t at = 0; at < n_channels; at += NAME(TILE)) {
            int n = n_channels - at < NAME(TILE) ? (int)(n_channels - at) : NAME(TILE);
            T sum[NAME(TILE)] = {0}, product[NAME(TILE)] = {0};
            for (int64_t r = row; r < row + n_rows; r++) {
                const T *from = x + r * n_channels + at, *grad = dy + r * n_channels + at;
#pragma omp simd
                for (int c = 0; c < n; c++) {
                    sum[c] += grad[c];
                    product[c] += grad[c] * (from[c] - center[at + c]);
                }
            }
            for (int c = 0; c < n; c++) {
                sums[at + c] += (double)sum[c];
                sums[n_channels + at + c] += (double)product[c];
            }
        }
    }
}

/* dx = factor * dy - offset - slope * (x - center), the last two of a group. */
static void NAME(grad)(const stk_group_norm_sizes *s, const void *src_dy, const void *src_x, const void *src_scale,
                       const void *src_mean, const void *src_inv_std, void *dst, double *total, double *scratch)
{
    const T *dy = src_dy, *x = src_x, *scale = src_scale, *mean = src_mean, *inv_std = src_inv_std;
    int64_t n_channels = s->n_channels, n_each = n_channels / s->n_groups;
    T *center = (T *)(scratch + 2 * n_channels), *factor = center + n_channels;
    T *offset = (T *)(scratch + 4 * n_channels), *slope = offset + n_channels;
    double n = (double)(s->n_rows * n_each);
    for (int64_t c = 0; c < n_channels; c++) {
        center[c] = mean[c / n_each];
        factor[c] = inv_std[c / n_each] * scale[c];
    }
    NAME(measure_grads)(s, dy, x, center, scratch);
    for (int64_t g = 0; g < s->n_groups; g++) {
        double sum = 0, product = 0, inv = (double)inv_std[g];
        for (int64_t c = g * n_each; c < (g + 1) * n_each; c++) {
            sum += scratch[c] * (double)scale[c];
            product += scratch[n_channels + c] * (double)scale[c];
            total[c] += scratch[n_channels + c] * inv;
            total[n_channels + c] += scratch[c];
        }
        for (int64_t c = g * n_each; c < (g + 1) * n_each; c++) {
            offset[c] = (T)(inv * sum / n);
            slope[c] = (T)(inv * inv * inv * product / n);
        }
    }
    for (int64_t row = 0; row < s->n_rows; row++) {
        const T *from = x + row * n_channels, *grad = dy + row * n_channels;
        T *to = (T *)dst + row * n_channels;
#pragma omp simd
        for (int64_t c = 0; c < n_channels; c++)
            to[c] = factor[c] * grad[c] - offset[c] - slope[c] * (from[c] - center[c]);
    }
}
