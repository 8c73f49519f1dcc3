/* For batch_norm_isa.c, once for each S that x, y and their gradients are stored in; sums and parameters are T. LOAD
 * and STORE turn one into the other, and NAME(x) gives each function its suffix.
 *
 * Both directions read memory twice: one sweep for sums, one that writes. Parts share the rows; each has its sums of
 * every channel, and when all are done each adds up all of them for itself, in the same order.
 */

/* The forward result, and what tells the backward pass where ReLU was 0: both must be the same to the bit. */
static inline T NAME(affine)(T x, T mean, T factor, T bias)
{
    return (x - mean) * factor + bias;
}

enum { NAME(TILE) = 64, NAME(ROWS) = 64 };

typedef struct NAME(part) {
    const stk_batch_norm_state *state;
    int64_t begin, end; /* rows */
    double *sums;       /* of this part: [2][padded] */
    T *param;           /* of this part: [4][padded] */
    int64_t padded;
} NAME(part);

static double *NAME(part_slots)(const stk_cpu_task *task, int64_t padded, int i_part)
{
    return (double *)task->args->scratch + STK_BATCH_NORM_SLOTS * padded * i_part;
}

static NAME(part) NAME(find_part)(const stk_cpu_task *task, int i_part, int n_parts)
{
    const stk_batch_norm_state *s = task->state;
    NAME(part) p = {.state = s, .padded = stk_batch_norm_padded(s->n_channels)};
    p.sums = NAME(part_slots)(task, p.padded, i_part);
    p.param = (T *)(p.sums + STK_BATCH_NORM_SUMS * p.padded);
    stk_cpu_share(s->n_rows, NAME(ROWS), i_part, n_parts, &p.begin, &p.end);
    return p;
}

/* With sums of zero. */
static NAME(part) NAME(make_part)(const stk_cpu_task *task, int i_part, int n_parts)
{
    NAME(part) p = NAME(find_part)(task, i_part, n_parts);
    for (int64_t c = 0; c < STK_BATCH_NORM_SUMS * p.padded; c++)
        p.sums[c] = 0;
    return p;
}

/* The sum over all parts. */
static double NAME(total)(const stk_cpu_task *task, int64_t padded, int n_parts, int64_t i)
{
    double sum = 0;
    for (int part = 0; part < n_parts; part++)
        sum += NAME(part_slots)(task, padded, part)[i];
    return sum;
}

/* --- forward --- */

/* Sums of distances from `shift` and of their squares: with a shift near the mean nothing cancels. */
static void NAME(measure)(const NAME(part) * p, const S *x, const T *shift)
{
    int64_t n_channels = p->state->n_channels;
    for (int64_t row = p->begin; row < p->end; row += NAME(ROWS)) {
        int64_t n_rows = p->end - row < NAME(ROWS) ? p->end - row : NAME(ROWS);
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
                p->sums[at + c] += (double)sum[c];
                p->sums[p->padded + at + c] += (double)squares[c];
            }
        }
    }
}

/* A first guess of the means: those of the first rows. */
static void NAME(guess)(const stk_batch_norm_state *s, const S *x, T *shift)
{
    int64_t n = s->n_rows < 16 ? s->n_rows : 16;
    for (int64_t c = 0; c < s->n_channels; c++)
        shift[c] = 0;
    for (int64_t r = 0; r < n; r++)
        for (int64_t c = 0; c < s->n_channels; c++)
            shift[c] += LOAD(x[r * s->n_channels + c]) / (T)n;
}

static void NAME(normalize)(const NAME(part) * p, const S *x, const T *mean, const T *factor, const T *bias, S *y)
{
    int64_t n_channels = p->state->n_channels;
    for (int64_t i = p->begin * n_channels; i < p->end * n_channels; i += n_channels) {
        const S *from = x + i;
        S *to = y + i;
        if (p->state->relu) {
#pragma omp simd
            for (int64_t c = 0; c < n_channels; c++) {
                T v = NAME(affine)(LOAD(from[c]), mean[c], factor[c], bias[c]);
                to[c] = STORE(v <= 0 ? 0 : v);
            }
        } else {
#pragma omp simd
            for (int64_t c = 0; c < n_channels; c++)
                to[c] = STORE(NAME(affine)(LOAD(from[c]), mean[c], factor[c], bias[c]));
        }
    }
}

static void NAME(measure_share)(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const S *x = task->args->in[0];
    NAME(part) part = NAME(make_part)(task, i_part, n_parts);
    NAME(guess)(task->state, x, part.param);
    NAME(measure)(&part, x, part.param);
}

/* The first guess is still where measure_share left it. */
static void NAME(normalize_share)(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const stk_batch_norm_state *s = task->state;
    const stk_kernel_args *args = task->args;
    const S *x = args->in[0];
    const T *scale = args->in[1], *bias = args->in[2];
    const T *running_mean = args->in[3], *running_var = args->in[4];
    T *out_mean = args->out[1], *out_inv_std = args->out[2], *new_mean = args->out[3], *new_var = args->out[4];
    NAME(part) part = NAME(find_part)(task, i_part, n_parts);
    T *shift = part.param, *mean = shift + part.padded, *factor = mean + part.padded;
    int64_t begin, end;
    stk_cpu_share(s->n_channels, 16, i_part, n_parts, &begin, &end);
    double n = s->n_rows ? (double)s->n_rows : 1, momentum = s->n_rows ? s->momentum : 0;
    for (int64_t c = 0; c < s->n_channels; c++) {
        double distance = NAME(total)(task, part.padded, n_parts, c) / n;
        double var = NAME(total)(task, part.padded, n_parts, part.padded + c) / n - distance * distance;
        var = var < 0 ? 0 : var;
        double full_mean = (double)shift[c] + distance, inv_std = 1 / sqrt(var + s->eps);
        mean[c] = (T)full_mean;
        factor[c] = (T)inv_std * scale[c];
        if (c < begin || c >= end) continue;
        out_mean[c] = (T)full_mean;
        out_inv_std[c] = (T)inv_std;
        /* An empty batch says nothing about the data; of one row there is no unbiased variance. */
        if (s->unbiased && s->n_rows > 1) var *= n / (n - 1);
        new_mean[c] = (T)((double)running_mean[c] * (1 - momentum) + full_mean * momentum);
        new_var[c] = (T)((double)running_var[c] * (1 - momentum) + var * momentum);
    }
    NAME(normalize)(&part, x, mean, factor, bias, args->out[0]);
}

/* The result again, from statistics that are known: the same bits as normalize_share writes. */
static void NAME(apply_share)(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const stk_batch_norm_state *s = task->state;
    const stk_kernel_args *args = task->args;
    const S *x = args->in[0];
    const T *scale = args->in[1], *bias = args->in[2], *mean = args->in[3], *inv_std = args->in[4];
    NAME(part) part = NAME(find_part)(task, i_part, n_parts);
    T *factor = part.param;
    for (int64_t c = 0; c < s->n_channels; c++)
        factor[c] = inv_std[c] * scale[c];
    NAME(normalize)(&part, x, mean, factor, bias, args->out[0]);
}

/* --- gradient --- */

/* Sums of d and of d times the distance from the mean, where d is dy behind the ReLU. */
static void NAME(sum_grads)(const NAME(part) * p, const S *dy, const S *x, const T *mean, const T *factor,
                            const T *bias)
{
    int64_t n_channels = p->state->n_channels;
    bool relu = p->state->relu;
    for (int64_t row = p->begin; row < p->end; row += NAME(ROWS)) {
        int64_t n_rows = p->end - row < NAME(ROWS) ? p->end - row : NAME(ROWS);
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
                p->sums[at + c] += (double)sum[c];
                p->sums[p->padded + at + c] += (double)product[c];
            }
        }
    }
}

/* dx = factor * (d - offset - slope * (x - mean)). */
static void NAME(write_grads)(const NAME(part) * p, const S *dy, const S *x, const T *mean, const T *factor,
                              const T *bias, const T *offset, const T *slope, S *dx)
{
    int64_t n_channels = p->state->n_channels;
    for (int64_t i = p->begin * n_channels; i < p->end * n_channels; i += n_channels) {
        const S *from = x + i, *grad = dy + i;
        S *to = dx + i;
        if (p->state->relu) {
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

static void NAME(sum_grads_share)(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const stk_batch_norm_state *s = task->state;
    void *const *in = task->args->in;
    const T *scale = in[2], *inv_std = in[5];
    NAME(part) part = NAME(make_part)(task, i_part, n_parts);
    T *factor = part.param;
    for (int64_t c = 0; c < s->n_channels; c++)
        factor[c] = inv_std[c] * scale[c];
    NAME(sum_grads)(&part, in[0], in[1], in[4], factor, in[3]);
}

/* The factors are still where sum_grads_share left them. */
static void NAME(write_grads_share)(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const stk_batch_norm_state *s = task->state;
    const stk_kernel_args *args = task->args;
    const S *dy = args->in[0], *x = args->in[1];
    const T *bias = args->in[3], *mean = args->in[4], *inv_std = args->in[5];
    T *dscale = args->out[1], *dbias = args->out[2];
    NAME(part) part = NAME(find_part)(task, i_part, n_parts);
    T *factor = part.param, *offset = factor + part.padded, *slope = offset + part.padded;
    int64_t begin, end;
    stk_cpu_share(s->n_channels, 16, i_part, n_parts, &begin, &end);
    double n = s->n_rows ? (double)s->n_rows : 1;
    for (int64_t c = 0; c < s->n_channels; c++) {
        double sum = NAME(total)(task, part.padded, n_parts, c);
        double product = NAME(total)(task, part.padded, n_parts, part.padded + c) * (double)inv_std[c];
        offset[c] = (T)(sum / n);
        slope[c] = (T)(product * (double)inv_std[c] / n);
        if (c < begin || c >= end) continue;
        dscale[c] = (T)product;
        dbias[c] = (T)sum;
    }
    NAME(write_grads)(&part, dy, x, mean, factor, bias, offset, slope, args->out[0]);
}
