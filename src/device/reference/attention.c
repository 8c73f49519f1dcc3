/* Attention and its gradient, one query after the other: a row of weights at a time, as the formula has it. */
#include <math.h>

#include "device/reference/reference.h"
#include "graph/attention.h"

/* One call, whose inputs are read where they are: the seed has more bits than a double. */
typedef struct attention_run {
    stk_attention_sizes size;
    stk_dtype dtype, stat;
    double scale, rate;
    bool causal;
    const void *q, *k, *v;
    const uint8_t *mask; /* NULL: none */
    uint64_t key;
    int64_t sample;
} attention_run;

static attention_run open_run(const stk_op_call *call, const stk_kernel_args *args, int i_q, int i_rest)
{
    attention_run r = {.size = stk_attention_get_sizes(call->in[i_q].shape, call->in[i_q + 1].shape)};
    r.dtype = call->in[i_q].dtype;
    r.stat = r.dtype == STK_F64 ? STK_F64 : STK_F32;
    r.scale = call->attrs->attention.scale;
    r.causal = call->attrs->attention.causal;
    r.q = args->in[i_q];
    r.k = args->in[i_q + 1];
    r.v = args->in[i_q + 2];
    if (stk_attention_has_mask(call->n_in, i_rest)) r.mask = args->in[i_rest];
    if (stk_attention_has_dropout(call->n_in, i_rest)) {
        r.rate = call->attrs->attention.rate;
        r.key = stk_dropout_key(*(const int64_t *)args->in[call->n_in - 2], call->attrs->attention.stream);
        r.sample = *(const int64_t *)args->in[call->n_in - 1];
    }
    return r;
}

/* Where [n,i,h,0] is among rows of n_rows. */
static int64_t row_at(const attention_run *r, int64_t n_rows, int64_t n, int64_t i, int64_t h)
{
    return ((n * n_rows + i) * r->size.h + h) * r->size.d;
}

static double dot(const attention_run *r, const void *a, int64_t a_at, const void *b, int64_t b_at)
{
    double sum = 0;
    for (int64_t i = 0; i < r->size.d; i++)
        sum += stk_ref_load(r->dtype, a, a_at + i) * stk_ref_load(r->dtype, b, b_at + i);
    return sum;
}

static bool sees(const attention_run *r, int64_t n, int64_t t, int64_t s)
{
    return (!r->causal || s <= t) && (!r->mask || r->mask[n * r->size.s + s]);
}

/* What dropout makes of one weight of 1. */
static double kept(const attention_run *r, int64_t n, int64_t h, int64_t t, int64_t s)
{
    if (r->rate == 0) return 1;
    int64_t element = stk_dropout_attention_element(h, r->size.t, t, r->size.s, s);
    return stk_dropout_keeps(r->key, r->sample, n, element, r->rate) ? 1 / (1 - r->rate) : 0;
}

/* The scores of one query, and the log of the sum of their exponentials: -inf where it sees no key. */
static double score_row(const attention_run *r, int64_t n, int64_t h, int64_t t, double *score)
{
    double most = -INFINITY, sum = 0;
    for (int64_t s = 0; s < r->size.s; s++) {
        if (!sees(r, n, t, s)) continue;
        score[s] = r->scale * dot(r, r->q, row_at(r, r->size.t, n, t, h), r->k, row_at(r, r->size.s, n, s, h));
        most = isnan(score[s]) || score[s] > most ? score[s] : most;
    }
    for (int64_t s = 0; s < r->size.s; s++)
        if (sees(r, n, t, s)) sum += exp(score[s] - most);
    return log(sum) + most;
}

static stk_status run_attention(const stk_op_call *call, const stk_kernel_args *args)
{
    attention_run r = open_run(call, args, 0, STK_ATTENTION_FIXED);
    stk_attention_sizes z = r.size;
    double *score = args->scratch;
    for (int64_t i = 0; i < z.n * z.h * z.t; i++) {
        int64_t n = i / (z.h * z.t), h = i / z.t % z.h, t = i % z.t;
        double lse = score_row(&r, n, h, t, score);
        stk_ref_store(r.stat, args->out[1], i, lse);
        for (int64_t e = 0; e < z.d; e++) {
            double y = 0;
            for (int64_t s = 0; s < z.s; s++)
                if (sees(&r, n, t, s))
                    y += exp(score[s] - lse) * kept(&r, n, h, t, s) *
                         stk_ref_load(r.dtype, r.v, row_at(&r, z.s, n, s, h) + e);
            stk_ref_store(r.dtype, args->out[0], row_at(&r, z.t, n, t, h) + e, y);
        }
    }
    return STK_OK;
}

/* dst[0 .. d-1] += factor * src[at ..]. */
static void add_row(const attention_run *r, double factor, const void *src, int64_t at, double *dst)
{
    for (int64_t e = 0; e < r->size.d; e++)
        dst[e] += factor * stk_ref_load(r->dtype, src, at + e);
}

/* scratch: scores [S], then dq [T,D], dk [S,D] and dv [S,D] of one head, as doubles. */
static void grad_head(const attention_run *r, const stk_kernel_args *args, int64_t n, int64_t h)
{
    stk_attention_sizes z = r->size;
    double *score = args->scratch, *dq = score + z.s, *dk = dq + z.t * z.d, *dv = dk + z.s * z.d;
    for (int64_t i = 0; i < (z.t + 2 * z.s) * z.d; i++)
        dq[i] = 0;
    for (int64_t t = 0; t < z.t; t++) {
        int64_t row = row_at(r, z.t, n, t, h);
        double total = dot(r, args->in[0], row, args->in[4], row);
        double lse = stk_ref_load(r->stat, args->in[5], (n * z.h + h) * z.t + t);
        score_row(r, n, h, t, score);
        for (int64_t s = 0; s < z.s; s++) {
            if (!sees(r, n, t, s)) continue;
            int64_t other = row_at(r, z.s, n, s, h);
            double p = exp(score[s] - lse), keep = kept(r, n, h, t, s);
            double ds = p * (keep * dot(r, args->in[0], row, r->v, other) - total) * r->scale;
            add_row(r, p * keep, args->in[0], row, dv + s * z.d);
            add_row(r, ds, r->k, other, dq + t * z.d);
            add_row(r, ds, r->q, row, dk + s * z.d);
        }
    }
    for (int64_t t = 0; t < z.t; t++)
        for (int64_t e = 0; e < z.d; e++)
            stk_ref_store(r->dtype, args->out[0], row_at(r, z.t, n, t, h) + e, dq[t * z.d + e]);
    for (int64_t s = 0; s < z.s; s++)
        for (int64_t e = 0; e < z.d; e++) {
            stk_ref_store(r->dtype, args->out[1], row_at(r, z.s, n, s, h) + e, dk[s * z.d + e]);
            stk_ref_store(r->dtype, args->out[2], row_at(r, z.s, n, s, h) + e, dv[s * z.d + e]);
        }
}

static stk_status run_grad(const stk_op_call *call, const stk_kernel_args *args)
{
    attention_run r = open_run(call, args, 1, STK_ATTENTION_GRAD_FIXED);
    for (int64_t n = 0; n < r.size.n; n++)
        for (int64_t h = 0; h < r.size.h; h++)
            grad_head(&r, args, n, h);
    return STK_OK;
}

stk_status stk_ref_attention_kernel(const stk_op_call *call, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(stk_ref_make_plain(call, run_attention, 0, out));
    out->scratch_bytes = ((size_t)call->in[1].shape.dim[1] + 1) * sizeof(double);
    return STK_OK;
}

stk_status stk_ref_attention_grad_kernel(const stk_op_call *call, stk_kernel *out)
{
    stk_attention_sizes z = stk_attention_get_sizes(call->in[1].shape, call->in[2].shape);
    STK_RETURN_IF_ERROR(stk_ref_make_plain(call, run_grad, 0, out));
    out->scratch_bytes = (size_t)(z.s + (z.t + 2 * z.s) * z.d + 1) * sizeof(double);
    return STK_OK;
}
