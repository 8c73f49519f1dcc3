/* For batch_norm_isa.c, once for each S that x, y and their gradients are stored in; sums and parameters are T. LOAD
 * and STORE turn one into the other, and NAME(x) gives each function its suffix. The loops come before:
 * batch_norm_loops_tmpl.h, or others with the same names.
 *
 * Both directions read memory twice: one sweep for sums, one that writes. Parts share the rows; each has its sums of
 * every channel, and when all are done each adds up all of them for itself, in the same order.
 */

typedef struct NAME(part) {
    stk_batch_norm_rows rows;
    double *sums; /* of this part: [2][padded] */
    T *param;     /* of this part: [4][padded] */
    int64_t padded;
} NAME(part);

static double *NAME(part_slots)(const stk_cpu_task *task, int64_t padded, int i_part)
{
    return (double *)task->args->scratch + STK_BATCH_NORM_SLOTS * padded * i_part;
}

static NAME(part) NAME(find_part)(const stk_cpu_task *task, int i_part, int n_parts)
{
    const stk_batch_norm_state *s = task->state;
    NAME(part) p = {.padded = stk_batch_norm_padded(s->n_channels)};
    p.sums = NAME(part_slots)(task, p.padded, i_part);
    p.param = (T *)(p.sums + STK_BATCH_NORM_SUMS * p.padded);
    p.rows = (stk_batch_norm_rows){.n_channels = s->n_channels, .relu = s->relu, .is_large = s->is_large};
    stk_cpu_share(s->n_rows, STK_BATCH_NORM_ROWS, i_part, n_parts, &p.rows.begin, &p.rows.end);
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

static void NAME(write)(const stk_batch_norm_state *s, const stk_batch_norm_rows *rows, const stk_kernel_args *args,
                        const T *mean, const T *factor)
{
    if (s->has_residual)
        NAME(normalize_onto)(rows, args->in[0], mean, factor, args->in[2], args->in[5], args->out[0]);
    else
        NAME(normalize)(rows, args->in[0], mean, factor, args->in[2], args->out[0]);
}

static void NAME(measure_share)(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const S *x = task->args->in[0];
    NAME(part) part = NAME(make_part)(task, i_part, n_parts);
    NAME(guess)(task->state, x, part.param);
    NAME(measure)(&part.rows, x, part.param, part.sums, part.sums + part.padded);
}

/* The first guess is still where measure_share left it. */
static void NAME(normalize_share)(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const stk_batch_norm_state *s = task->state;
    const stk_kernel_args *args = task->args;
    const T *scale = args->in[1];
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
    NAME(write)(s, &part.rows, args, mean, factor);
}

/* The result again, from statistics that are known: the same bits as normalize_share writes. */
static void NAME(apply_share)(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const stk_batch_norm_state *s = task->state;
    const stk_kernel_args *args = task->args;
    const T *scale = args->in[1], *mean = args->in[3], *inv_std = args->in[4];
    NAME(part) part = NAME(find_part)(task, i_part, n_parts);
    T *factor = part.param;
    for (int64_t c = 0; c < s->n_channels; c++)
        factor[c] = inv_std[c] * scale[c];
    NAME(write)(s, &part.rows, args, mean, factor);
}

/* --- gradient --- */

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
    NAME(sum_grads)(&part.rows, in[0], in[1], in[4], factor, in[3], part.sums, part.sums + part.padded);
}

/* What the second sweep reads; the factors are still where the first one left them. */
typedef struct NAME(grads) {
    const S *dy, *x;
    const T *bias, *mean, *inv_std;
} NAME(grads);

static void NAME(write_share)(const stk_cpu_task *task, NAME(grads) in, int i_part, int n_parts)
{
    const stk_batch_norm_state *s = task->state;
    const stk_kernel_args *args = task->args;
    const T *inv_std = in.inv_std;
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
    NAME(write_grads)(&part.rows, in.dy, in.x, in.mean, factor, in.bias, offset, slope, args->out[0]);
}

static void NAME(write_grads_share)(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    void *const *in = task->args->in;
    NAME(write_share)(task, (NAME(grads)){in[0], in[1], in[3], in[4], in[5]}, i_part, n_parts);
}

/* --- gradient behind a sum and its ReLU --- */

static void NAME(sum_masked_share)(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const stk_batch_norm_state *s = task->state;
    void *const *in = task->args->in;
    const T *scale = in[4], *inv_std = in[6];
    NAME(part) part = NAME(make_part)(task, i_part, n_parts);
    for (int64_t c = 0; c < s->n_channels; c++)
        part.param[c] = inv_std[c] * scale[c];
    NAME(sum_masked)
    (&part.rows, in[1], in[2], in[3], in[0], in[5], task->args->out[3], part.sums, part.sums + part.padded);
}

/* The mask is in d, so that no ReLU is left and the bias is not read. */
static void NAME(write_masked_share)(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    void *const *in = task->args->in;
    NAME(write_share)(task, (NAME(grads)){task->args->out[3], in[0], in[5], in[5], in[6]}, i_part, n_parts);
}
