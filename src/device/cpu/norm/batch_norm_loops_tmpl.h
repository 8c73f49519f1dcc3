/* The loops of batch_norm_tmpl.h over a part's rows, in plain C. For batch_norm_isa.c, before that file. */

/* The forward result, and what tells the backward pass where ReLU was 0: both must be the same to the bit. */
static inline T NAME(affine)(T x, T mean, T factor, T bias)
{
    return (x - mean) * factor + bias;
}

enum { NAME(TILE) = 64 };

/* Sums of distances from `shift` and of their squares: with a shift near the mean nothing cancels. */
static void NAME(measure)(const stk_batch_norm_rows *p, const S *x, const T *shift, double *first, double *second)
{
    int64_t n_channels = p->n_channels;
    for (int64_t row = p->begin; row < p->end; row += STK_BATCH_NORM_ROWS) {
        int64_t n_rows = p->end - row < STK_BATCH_NORM_ROWS ? p->end - row : STK_BATCH_NORM_ROWS;
        for (int64_t at = 0; at < n_channels; at += NAME(TILE)) {
            int n = n_channels - at < NAME(TILE) ? (int)(n_channels - at) : NAME(TILE);
            T sum[NAME(TILE)] = {0}, squares[NAME(TILE)] = {0};
            const S *from = x + row * n_channels + at;
            for (int64_t r = 0; r < n_rows; r++, from += n_channels) {
#pragma omp simd
                for (int c = 0; c < n; c++) {
                    T d = LOAD(from[c]) - shift[at + c];
                    sum[c] += d;
                    squares[c] += d * d;
                }
            }
            for (int c = 0; c < n; c++) {
                first[at + c] += (double)sum[c];
                second[at + c] += (double)squares[c];
            }
        }
    }
}

/* Some channels of y = x normalised, rounded, plus the residual. */
static inline void NAME(normalize_some_onto)(bool relu, int64_t n, const S *x, const T *mean, const T *factor,
                                             const T *bias, const S *residual, S *y)
{
    T least = relu ? 0 : -(T)INFINITY;
#pragma omp simd
    for (int64_t c = 0; c < n; c++) {
        S alone = STORE(NAME(affine)(LOAD(x[c]), mean[c], factor[c], bias[c]));
        T v = LOAD(alone) + LOAD(residual[c]);
        y[c] = STORE(v <= least ? least : v);
    }
}

static inline void NAME(normalize_some)(bool relu, int64_t n, const S *x, const T *mean, const T *factor, const T *bias,
                                        S *y)
{
    if (relu) {
#pragma omp simd
        for (int64_t c = 0; c < n; c++) {
            T v = NAME(affine)(LOAD(x[c]), mean[c], factor[c], bias[c]);
            y[c] = STORE(v <= 0 ? 0 : v);
        }
    } else {
#pragma omp simd
        for (int64_t c = 0; c < n; c++)
            y[c] = STORE(NAME(affine)(LOAD(x[c]), mean[c], factor[c], bias[c]));
    }
}

enum { NAME(FAR_TILE) = 1024 / sizeof(S) };

/* As many channels at once as fit into a buffer that goes past the caches; all, where they are to stay there. */
static void NAME(normalize_onto)(const stk_batch_norm_rows *p, const S *x, const T *mean, const T *factor,
                                 const T *bias, const S *residual, S *y)
{
    _Alignas(64) S buffer[NAME(FAR_TILE)];
    int64_t n_channels = p->n_channels;
    bool far = stk_batch_norm_is_far(p, y, sizeof(S)) && y != x && y != residual;
    int64_t tile = far ? NAME(FAR_TILE) : n_channels;
    for (int64_t i = p->begin * n_channels; i < p->end * n_channels; i += n_channels)
        for (int64_t c = 0, n; c < n_channels; c += n) {
            n = n_channels - c < tile ? n_channels - c : tile;
            NAME(normalize_some_onto)
            (p->relu, n, x + i + c, mean + c, factor + c, bias + c, residual + i + c, far ? buffer : y + i + c);
            if (far) stk_stream(y + i + c, buffer, (size_t)n * sizeof(S));
        }
    if (far) stk_stream_end();
}

static void NAME(normalize)(const stk_batch_norm_rows *p, const S *x, const T *mean, const T *factor, const T *bias,
                            S *y)
{
    _Alignas(64) S buffer[NAME(FAR_TILE)];
    int64_t n_channels = p->n_channels;
    bool far = stk_batch_norm_is_far(p, y, sizeof(S)) && y != x;
    int64_t tile = far ? NAME(FAR_TILE) : n_channels;
    for (int64_t i = p->begin * n_channels; i < p->end * n_channels; i += n_channels)
        for (int64_t c = 0, n; c < n_channels; c += n) {
            n = n_channels - c < tile ? n_channels - c : tile;
            NAME(normalize_some)(p->relu, n, x + i + c, mean + c, factor + c, bias + c, far ? buffer : y + i + c);
            if (far) stk_stream(y + i + c, buffer, (size_t)n * sizeof(S));
        }
    if (far) stk_stream_end();
}

/* Sums of d and of d times the distance from the mean, where d is dy behind the ReLU. */
static void NAME(sum_grads)(const stk_batch_norm_rows *p, const S *dy, const S *x, const T *mean, const T *factor,
                            const T *bias, double *first, double *second)
{
    int64_t n_channels = p->n_channels;
    bool relu = p->relu;
    for (int64_t row = p->begin; row < p->end; row += STK_BATCH_NORM_ROWS) {
        int64_t n_rows = p->end - row < STK_BATCH_NORM_ROWS ? p->end - row : STK_BATCH_NORM_ROWS;
        for (int64_t at = 0; at < n_channels; at += NAME(TILE)) {
            int n = n_channels - at < NAME(TILE) ? (int)(n_channels - at) : NAME(TILE);
            T sum[NAME(TILE)] = {0}, product[NAME(TILE)] = {0};
            for (int64_t r = row; r < row + n_rows; r++) {
                const S *from = x + r * n_channels + at, *grad = dy + r * n_channels + at;
                if (relu) {
#pragma omp simd
                    for (int c = 0; c < n; c++) {
                        T u = LOAD(from[c]), v = NAME(affine)(u, mean[at + c], factor[at + c], bias[at + c]);
                        T g = LOAD(grad[c]), d = v > 0 ? g : 0;
                        sum[c] += d;
                        product[c] += d * (u - mean[at + c]);
                    }
                } else {
#pragma omp simd
                    for (int c = 0; c < n; c++) {
                        T g = LOAD(grad[c]);
                        sum[c] += g;
                        product[c] += g * (LOAD(from[c]) - mean[at + c]);
                    }
                }
            }
            for (int c = 0; c < n; c++) {
                first[at + c] += (double)sum[c];
                second[at + c] += (double)product[c];
            }
        }
    }
}

/* d = dy + dy2 where the ReLU behind the sum let y pass, and the sums of it. */
static void NAME(sum_masked)(const stk_batch_norm_rows *p, const S *dy, const S *dy2, const S *y, const S *x,
                             const T *mean, S *d, double *first, double *second)
{
    int64_t n_channels = p->n_channels;
    for (int64_t row = p->begin; row < p->end; row += STK_BATCH_NORM_ROWS) {
        int64_t n_rows = p->end - row < STK_BATCH_NORM_ROWS ? p->end - row : STK_BATCH_NORM_ROWS;
        for (int64_t at = 0; at < n_channels; at += NAME(TILE)) {
            int n = n_channels - at < NAME(TILE) ? (int)(n_channels - at) : NAME(TILE);
            T sum[NAME(TILE)] = {0}, product[NAME(TILE)] = {0};
            for (int64_t r = row; r < row + n_rows; r++) {
                int64_t i = r * n_channels + at;
                const S *from = x + i, *grad = dy + i, *grad2 = dy2 + i, *out = y + i;
                S *to = d + i;
                /* d may lie where one of the others does; an element is read before it is written. */
#pragma omp simd
                for (int c = 0; c < n; c++) {
                    T u = LOAD(grad[c]) + LOAD(grad2[c]), g = LOAD(out[c]) > 0 ? u : 0;
                    sum[c] += g;
                    product[c] += g * (LOAD(from[c]) - mean[at + c]);
                    to[c] = STORE(g);
                }
            }
            for (int c = 0; c < n; c++) {
                first[at + c] += (double)sum[c];
                second[at + c] += (double)product[c];
            }
        }
    }
}

/* dx = factor * (d - offset - slope * (x - mean)). */
static void NAME(write_grads)(const stk_batch_norm_rows *p, const S *dy, const S *x, const T *mean, const T *factor,
                              const T *bias, const T *offset, const T *slope, S *dx)
{
    int64_t n_channels = p->n_channels;
    for (int64_t i = p->begin * n_channels; i < p->end * n_channels; i += n_channels) {
        const S *from = x + i, *grad = dy + i;
        S *to = dx + i;
        if (p->relu) {
#pragma omp simd
            for (int64_t c = 0; c < n_channels; c++) {
                T u = LOAD(from[c]), v = NAME(affine)(u, mean[c], factor[c], bias[c]);
                T g = LOAD(grad[c]), d = v > 0 ? g : 0;
                to[c] = STORE(factor[c] * (d - offset[c] - slope[c] * (u - mean[c])));
            }
        } else {
#pragma omp simd
            for (int64_t c = 0; c < n_channels; c++)
                to[c] = STORE(factor[c] * (LOAD(grad[c]) - offset[c] - slope[c] * (LOAD(from[c]) - mean[c])));
        }
    }
}
