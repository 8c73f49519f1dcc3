/* For attention_isa.c, once for each T.
 *
 *   forward     for each block of queries:                   backward    for each block of keys:
 *                 for each block of keys:                                  for each block of queries that see them:
 *                   tile = q k'                                              tile = q k', dtile = dy v'
 *                   tile = exp(tile - the row's maximum)                     tile = p, dtile = ds
 *                   sum += tile v, rescaled as the maximum grows             dv += tile' dy, dk += dtile' q
 *                 y = sum / the row's sum                                    dq += dtile k
 */

/* --- keys and values --- */

/* Keys [s, s + n) that do not count become zeros in packed k' [D,n]: NaN in them then reaches nobody. */
static void NAME(clear_columns)(const stk_attention_call *call, int64_t i_sample, int64_t s, int64_t n, T *packed)
{
    const uint8_t *mask = call->mask + i_sample * call->size.s + s;
    int64_t cols = call->gemm->tile_cols, d = call->size.d;
    for (int64_t i = 0; i < n; i++)
        for (int64_t l = 0; l < d && !mask[i]; l++)
            packed[(i / cols * d + l) * cols + i % cols] = 0;
}

/* The same of packed v [n,D]. */
static void NAME(clear_rows)(const stk_attention_call *call, int64_t i_sample, int64_t s, int64_t n, T *packed)
{
    const uint8_t *mask = call->mask + i_sample * call->size.s + s;
    int64_t cols = call->gemm->tile_cols;
    for (int64_t i = 0; i < n; i++)
        for (int64_t col = 0; col < call->size.d && !mask[i]; col++)
            packed[(col / cols * n + i) * cols + col % cols] = 0;
}

/* n rows of x from [i_sample,s,h,0] on, as a block of D rows and n columns, and as one of n rows and D columns. */
static void NAME(pack_across)(const stk_attention_call *call, const void *x, int64_t i_sample, int64_t h, int64_t s,
                              int64_t n, T *to)
{
    int64_t at = row_at(call, call->size.s, i_sample, s, h), step = step_of(call);
    call->gemm->pack_block((const T *)x + at, 1, step, call->size.d, n, to);
    if (call->mask) NAME(clear_columns)(call, i_sample, s, n, to);
}

static void NAME(pack_along)(const stk_attention_call *call, const void *x, int64_t i_sample, int64_t h, int64_t s,
                             int64_t n, T *to)
{
    int64_t at = row_at(call, call->size.s, i_sample, s, h), step = step_of(call);
    call->gemm->pack_block((const T *)x + at, step, 1, n, call->size.d, to);
    if (call->mask) NAME(clear_rows)(call, i_sample, s, n, to);
}

/* --- forward --- */

typedef struct NAME(rows) {
    T most[QUERIES], sum[QUERIES]; /* of each query so far */
    T *tile;                       /* [QUERIES][KEYS] */
    T *acc;                        /* [QUERIES][pad(D)] */
} NAME(rows);

/* Row i of the tile, query t against n keys from s on, from scores to exponentials. */
static void NAME(soften_row)(const stk_attention_call *call, NAME(rows) * rows, int64_t i_sample, int64_t h, int64_t i,
                             int64_t t, int64_t s, int64_t n)
{
    T *x = rows->tile + i * KEYS, *acc = rows->acc + i * pad(call->size.d);
    int64_t seen = count_seen(call, t, s, n);
    T most = NAME(scale_scores)(seen, (T)call->scale, call->mask ? call->mask + i_sample * call->size.s + s : NULL, x);
    most = most > rows->most[i] ? most : rows->most[i];
    /* Where all scores are -inf, exp(-inf - -inf) would not be 0. */
    T from = most == -(T)INFINITY ? 0 : most;
    T sum = NAME(exp_scores)(seen, from, x);
    for (int64_t j = seen; j < n; j++)
        x[j] = 0;
    if (s > 0) {
        T factor = EXP(rows->most[i] - from);
        sum += rows->sum[i] * factor;
#pragma omp simd
        for (int64_t e = 0; e < call->size.d; e++)
            acc[e] *= factor;
    }
    rows->most[i] = most;
    rows->sum[i] = sum;
    if (call->rate > 0) {
        uint8_t keeps[MOST_KEYS];
        draw_row(call, i_sample, h, t, s, seen, keeps);
        NAME(drop_scores)(seen, keeps, x);
    }
}

static void NAME(finish_row)(const stk_attention_call *call, const NAME(rows) * rows, int64_t i_sample, int64_t h,
                             int64_t i, int64_t t, bool sees)
{
    T *y = (T *)call->y + row_at(call, call->size.t, i_sample, t, h);
    const T *acc = rows->acc + i * pad(call->size.d);
    T factor = call->rate >= 1 ? 0 : (T)(1 / (1 - call->rate)) / rows->sum[i];
    for (int64_t e = 0; e < call->size.d; e++)
        y[e] = sees ? acc[e] * factor : 0;
    T *lse = (T *)call->lse + (i_sample * call->size.h + h) * call->size.t + t;
    *lse = sees ? rows->most[i] + LOG(rows->sum[i]) : -(T)INFINITY;
}

/* m queries from t on against all keys that they see. */
static void NAME(forward_block)(const stk_attention_call *call, int64_t i_sample, int64_t h, int64_t t, int64_t m,
                                NAME(rows) * rows, const T *packed_k, const T *packed_v)
{
    int64_t d = call->size.d, end = call->causal ? least(call->size.s, t + m) : call->size.s;
    int64_t first = find_first_key(call, i_sample), v_step = call->gemm->block_elements(KEYS, d);
    const T *q = (const T *)call->q + row_at(call, call->size.t, i_sample, t, h);
    for (int64_t i = 0; i < m; i++) {
        rows->most[i] = -(T)INFINITY;
        rows->sum[i] = 0;
    }
    for (int64_t s = 0; s < end; s += KEYS) {
        int64_t n = least(KEYS, end - s), depth = least(KEYS, call->size.s - s);
        stk_gemm_block g = {.m = m, .n = n, .k = d, .a = q, .a_row = step_of(call), .a_col = 1};
        g.b = packed_k + s * d;
        g.depth = d;
        g.c = rows->tile;
        g.c_row = KEYS;
        g.skip = call->causal ? STK_SKIP_COLUMNS : STK_SKIP_NONE;
        g.diagonal = t - s;
        call->gemm->multiply_block(&g);
        for (int64_t i = 0; i < m; i++)
            NAME(soften_row)(call, rows, i_sample, h, i, t + i, s, n);
        g = (stk_gemm_block){.m = m, .n = d, .k = n, .a = rows->tile, .a_row = KEYS, .a_col = 1};
        g.b = packed_v + s / KEYS * v_step;
        g.depth = depth;
        g.c = rows->acc;
        g.c_row = pad(d);
        g.adds = s > 0;
        g.skip = call->causal ? STK_SKIP_END : STK_SKIP_NONE;
        g.diagonal = t - s;
        call->gemm->multiply_block(&g);
    }
    for (int64_t i = 0; i < m; i++)
        NAME(finish_row)(call, rows, i_sample, h, i, t + i, first < (call->causal ? least(end, t + i + 1) : end));
}

static size_t NAME(forward_bytes)(const stk_attention_call *call)
{
    int64_t s = pad(call->size.s), d = call->size.d;
    return (size_t)(QUERIES * (KEYS + pad(d)) + s * d + s * pad(d)) * sizeof(T);
}

static void NAME(forward)(const stk_attention_call *call, int64_t n, int64_t h, int64_t begin, int64_t end,
                          void *scratch)
{
    int64_t d = call->size.d, n_keys = call->causal ? least(call->size.s, end) : call->size.s;
    T *packed_k = (T *)scratch + QUERIES * (KEYS + pad(d)), *packed_v = packed_k + pad(call->size.s) * d;
    NAME(rows) rows = {.tile = scratch, .acc = (T *)scratch + QUERIES * KEYS};
    for (int64_t s = 0; s < n_keys; s += KEYS) {
        int64_t here = least(KEYS, call->size.s - s);
        NAME(pack_across)(call, call->k, n, h, s, here, packed_k + s * d);
        NAME(pack_along)(call, call->v, n, h, s, here, packed_v + s / KEYS * call->gemm->block_elements(KEYS, d));
    }
    for (int64_t t = begin; t < end; t += QUERIES)
        NAME(forward_block)(call, n, h, t, least(QUERIES, end - t), &rows, packed_k, packed_v);
}

/* --- backward --- */

/* What is used at a time, all in scratch. */
typedef struct NAME(grad_blocks) {
    T *dot;                                          /* [T]: dy . y */
    T *tile, *dtile;                                 /* [GRAD_QUERIES][GRAD_KEYS] */
    T *k_across, *k_along, *v_across, *q_along, *dy; /* packed */
} NAME(grad_blocks);

/* Lays the blocks out; the number of elements. */
static int64_t NAME(lay_out)(const stk_attention_call *call, T *scratch, NAME(grad_blocks) * out)
{
    int64_t d = call->size.d, sizes[] = {pad(call->size.t),     GRAD_QUERIES * GRAD_KEYS, GRAD_QUERIES * GRAD_KEYS,
                                         GRAD_KEYS * d,         GRAD_KEYS * pad(d),       GRAD_KEYS * d,
                                         GRAD_QUERIES * pad(d), GRAD_QUERIES * pad(d)};
    T **to[] = {&out->dot,     &out->tile,     &out->dtile,   &out->k_across,
                &out->k_along, &out->v_across, &out->q_along, &out->dy};
    int64_t at = 0;
    for (int i = 0; i < 8; i++) {
        if (scratch) *to[i] = scratch + at;
        at += pad(sizes[i]);
    }
    return at;
}

static size_t NAME(backward_bytes)(const stk_attention_call *call)
{
    NAME(grad_blocks) blocks;
    return (size_t)NAME(lay_out)(call, NULL, &blocks) * sizeof(T);
}

/* Row i of the tiles: query t against n keys from s on. */
static void NAME(grad_row)(const stk_attention_call *call, const NAME(grad_blocks) * b, int64_t i_sample, int64_t h,
                           int64_t i, int64_t t, int64_t s, int64_t n)
{
    const uint8_t *mask = call->mask ? call->mask + i_sample * call->size.s + s : NULL;
    T lse = ((const T *)call->lse)[(i_sample * call->size.h + h) * call->size.t + t];
    T *x = b->tile + i * GRAD_KEYS, *dx = b->dtile + i * GRAD_KEYS;
    int64_t seen = lse == -(T)INFINITY && mask ? 0 : count_seen(call, t, s, n);
    if (call->rate > 0) {
        uint8_t keeps[MOST_KEYS];
        T factor = call->rate >= 1 ? 0 : (T)(1 / (1 - call->rate));
        draw_row(call, i_sample, h, t, s, seen, keeps);
        NAME(grad_dropped)(seen, mask, keeps, factor, (T)call->scale, lse, b->dot[t], x, dx);
    } else {
        NAME(grad_plain)(seen, mask, (T)call->scale, lse, b->dot[t], x, dx);
    }
    for (int64_t j = seen; j < n; j++)
        x[j] = dx[j] = 0;
}

/* m queries from t on against n packed keys from s on. */
static void NAME(grad_block)(const stk_attention_call *call, const NAME(grad_blocks) * b, int64_t i_sample, int64_t h,
                             int64_t t, int64_t m, int64_t s, int64_t n)
{
    int64_t d = call->size.d, step = step_of(call);
    int64_t row = row_at(call, call->size.t, i_sample, t, h), key = row_at(call, call->size.s, i_sample, s, h);
    const stk_gemm_fns *gemm = call->gemm;
    gemm->pack_block((const T *)call->q + row, step, 1, m, d, b->q_along);
    gemm->pack_block((const T *)call->dy + row, step, 1, m, d, b->dy);
    stk_gemm_block g = {.m = m, .n = n, .k = d, .a_row = step, .a_col = 1, .depth = d, .c_row = GRAD_KEYS};
    g.diagonal = t - s;
    g.skip = call->causal ? STK_SKIP_COLUMNS : STK_SKIP_NONE;
    g.a = (const T *)call->q + row, g.b = b->k_across, g.c = b->tile;
    gemm->multiply_block(&g);
    g.a = (const T *)call->dy + row, g.b = b->v_across, g.c = b->dtile;
    gemm->multiply_block(&g);
    for (int64_t i = 0; i < m; i++)
        NAME(grad_row)(call, b, i_sample, h, i, t + i, s, n);
    g = (stk_gemm_block){.m = n, .n = d, .k = m, .a_row = 1, .a_col = GRAD_KEYS, .depth = m, .c_row = step};
    g.diagonal = t - s;
    g.skip = call->causal ? STK_SKIP_START : STK_SKIP_NONE;
    g.adds = t > 0;
    g.a = b->tile, g.b = b->dy, g.c = (T *)call->dv + key;
    gemm->multiply_block(&g);
    g.a = b->dtile, g.b = b->q_along, g.c = (T *)call->dk + key;
    gemm->multiply_block(&g);
    g = (stk_gemm_block){.m = m, .n = d, .k = n, .a_row = GRAD_KEYS, .a_col = 1, .depth = n, .c_row = step};
    g.diagonal = t - s;
    g.skip = call->causal ? STK_SKIP_END : STK_SKIP_NONE;
    g.adds = s > 0;
    g.a = b->dtile, g.b = b->k_along, g.c = (T *)call->dq + row;
    gemm->multiply_block(&g);
}

/* Rows [begin, end) of one head. */
static void NAME(clear_head)(const stk_attention_call *call, void *x, int64_t n_rows, int64_t n, int64_t h,
                             int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        memset((T *)x + row_at(call, n_rows, n, i, h), 0, (size_t)call->size.d * sizeof(T));
}

static void NAME(dot_rows)(const stk_attention_call *call, int64_t n, int64_t h, T *out)
{
    for (int64_t t = 0; t < call->size.t; t++) {
        int64_t row = row_at(call, call->size.t, n, t, h);
        const T *dy = (const T *)call->dy + row, *y = (const T *)call->y + row;
        T sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t e = 0; e < call->size.d; e++)
            sum += dy[e] * y[e];
        out[t] = sum;
    }
}

static void NAME(backward)(const stk_attention_call *call, int64_t n, int64_t h, void *scratch)
{
    NAME(grad_blocks) b;
    stk_attention_sizes z = call->size;
    NAME(lay_out)(call, scratch, &b);
    NAME(dot_rows)(call, n, h, b.dot);
    /* What no block writes. */
    int64_t reached = z.t == 0 ? 0 : call->causal ? least(z.s, z.t) : z.s;
    if (z.s == 0) NAME(clear_head)(call, call->dq, z.t, n, h, 0, z.t);
    NAME(clear_head)(call, call->dk, z.s, n, h, reached, z.s);
    NAME(clear_head)(call, call->dv, z.s, n, h, reached, z.s);
    for (int64_t s = 0; s < reached; s += GRAD_KEYS) {
        int64_t n_keys = least(GRAD_KEYS, z.s - s);
        NAME(pack_across)(call, call->k, n, h, s, n_keys, b.k_across);
        NAME(pack_along)(call, call->k, n, h, s, n_keys, b.k_along);
        NAME(pack_across)(call, call->v, n, h, s, n_keys, b.v_across);
        for (int64_t t = call->causal ? s / GRAD_QUERIES * GRAD_QUERIES : 0; t < z.t; t += GRAD_QUERIES)
            NAME(grad_block)(call, &b, n, h, t, least(GRAD_QUERIES, z.t - t), s, n_keys);
    }
}
