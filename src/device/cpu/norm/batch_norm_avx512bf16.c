/* Batch norm of bf16 where the processor rounds to that in one instruction. In plain C rounding takes longer than
 * memory does; here all four loops are as fast as memory, which they ask for some lines ahead: from tensors larger than
 * the caches the processor's own guesses bring half as much.
 */
#include "device/cpu/norm/batch_norm.h"

#ifdef __AVX512BF16__

#include <math.h>

#define T       float
#define S       uint16_t
#define LOAD(x) bf16_to_f32(x)
#define NAME(x) x##_bf16
#include "device/cpu/simd/bf16_lanes.h"
#include "device/cpu/simd/half.h"

/* All loops take a line at a time with a constant mask, and then the channels that are left. */
enum { LINE = 32, TILE = 512, GROUP = 4, AHEAD = 1024 }; /* elements; GROUP: rows */

INLINE void store_line(uint16_t *to, __m512 x[2])
{
    _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(x[1], x[0]));
}

/* far: past the caches, where a store would first fetch what it writes over. */
INLINE void store_result(uint16_t *to, __m512 x[2], const bool far)
{
    if (far)
        _mm512_stream_si512((__m512i *)(void *)to, (__m512i)_mm512_cvtne2ps_pbh(x[1], x[0]));
    else
        store_line(to, x);
}

INLINE void fetch(const uint16_t *from)
{
    _mm_prefetch((const char *)(from + AHEAD), _MM_HINT_T0);
}

/* Where ReLU let the gradient pass: the same bits as normalize compares. */
INLINE __m512 affine(__m512 distance, __m512 factor, __m512 bias)
{
    return _mm512_fmadd_ps(distance, factor, bias);
}

INLINE __m512 where_positive(__m512 v, __m512 x)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_GT_OQ), x);
}

/* Sums of one block of rows, in f32, and where they go on. */
typedef struct block_sums {
    float first[TILE], second[TILE];
} block_sums;

static void clear_sums(block_sums *b, int64_t n)
{
    for (int64_t c = 0; c < n; c += LANES) {
        _mm512_storeu_ps(b->first + c, _mm512_setzero_ps());
        _mm512_storeu_ps(b->second + c, _mm512_setzero_ps());
    }
}

static void add_sums(const block_sums *b, int64_t n, double *first, double *second)
{
    for (int64_t c = 0; c < n; c++) {
        first[c] += (double)b->first[c];
        second[c] += (double)b->second[c];
    }
}

/* --- forward --- */

INLINE void measure_vec(const int n_rows, const uint16_t *x, int64_t row_step, const float *shift, float *first,
                        float *second, __mmask16 mask)
{
    __m512 sum = _mm512_loadu_ps(first), squares = _mm512_loadu_ps(second), from = load_param(shift, mask);
    for (int r = 0; r < n_rows; r++) {
        __m512 d = _mm512_sub_ps(load(x + r * row_step, mask), from);
        sum = _mm512_add_ps(sum, d);
        squares = _mm512_fmadd_ps(d, d, squares);
    }
    _mm512_storeu_ps(first, sum);
    _mm512_storeu_ps(second, squares);
}

INLINE void measure_rows(const int n_rows, const uint16_t *x, int64_t row_step, const float *shift, int64_t n,
                         block_sums *to)
{
    int64_t c = 0;
    for (; c + LINE <= n; c += LINE) {
        for (int r = 0; r < n_rows; r++)
            fetch(x + r * row_step + c);
        for (int64_t i = c; i < c + LINE; i += LANES)
            measure_vec(n_rows, x + i, row_step, shift + i, to->first + i, to->second + i, ALL);
    }
    for (; c < n; c += LANES)
        measure_vec(n_rows, x + c, row_step, shift + c, to->first + c, to->second + c, mask_of(n - c));
}

static void measure_bf16(const stk_batch_norm_rows *p, const uint16_t *x, const float *shift, double *first,
                         double *second)
{
    block_sums sums;
    for (int64_t begin = p->begin; begin < p->end; begin += STK_BATCH_NORM_ROWS) {
        int64_t end = p->end - begin < STK_BATCH_NORM_ROWS ? p->end : begin + STK_BATCH_NORM_ROWS;
        for (int64_t c = 0; c < p->n_channels; c += TILE) {
            int64_t n = p->n_channels - c < TILE ? p->n_channels - c : TILE, row = begin;
            clear_sums(&sums, n);
            for (; row + GROUP <= end; row += GROUP)
                measure_rows(GROUP, x + row * p->n_channels + c, p->n_channels, shift + c, n, &sums);
            for (; row < end; row++)
                measure_rows(1, x + row * p->n_channels + c, p->n_channels, shift + c, n, &sums);
            add_sums(&sums, n, first + c, second + c);
        }
    }
}

INLINE __m512 normalize_vec(const uint16_t *x, const float *mean, const float *factor, const float *bias, __m512 least,
                            __mmask16 mask)
{
    __m512 d = _mm512_sub_ps(load(x, mask), load_param(mean, mask));
    return _mm512_max_ps(least, affine(d, load_param(factor, mask), load_param(bias, mask)));
}

INLINE void normalize(const stk_batch_norm_rows *p, const bool far, const uint16_t *x, const float *mean,
                      const float *factor, const float *bias, uint16_t *y)
{
    /* The larger of two is the second if that is a NaN. */
    const __m512 least = _mm512_set1_ps(p->relu ? 0 : -INFINITY);
    const int64_t n = p->n_channels;
    for (int64_t row = p->begin; row < p->end; row++) {
        const uint16_t *from = x + row * n;
        uint16_t *to = y + row * n;
        int64_t c = 0;
        for (; c + LINE <= n; c += LINE) {
            __m512 v[2];
            fetch(from + c);
            for (int i = 0, at = 0; i < 2; i++, at += LANES)
                v[i] = normalize_vec(from + c + at, mean + c + at, factor + c + at, bias + c + at, least, ALL);
            store_result(to + c, v, far);
        }
        for (; c < n; c += LANES) {
            __mmask16 mask = mask_of(n - c);
            store(to + c, normalize_vec(from + c, mean + c, factor + c, bias + c, least, mask), mask);
        }
    }
    if (far) stk_stream_end();
}

static void normalize_bf16(const stk_batch_norm_rows *p, const uint16_t *x, const float *mean, const float *factor,
                           const float *bias, uint16_t *y)
{
    if (y != x && stk_batch_norm_is_far(p, y, sizeof(*y)))
        normalize(p, true, x, mean, factor, bias, y);
    else
        normalize(p, false, x, mean, factor, bias, y);
}

/* What the rounded result of normalisation and the residual make. */
INLINE __m512 add_residual(__m512 v, const uint16_t *residual, __m512 least, __mmask16 mask)
{
    __m512i rounded = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(v));
    __m512 alone = _mm512_castsi512_ps(_mm512_slli_epi32(rounded, 16));
    return _mm512_max_ps(least, _mm512_add_ps(alone, load(residual, mask)));
}

INLINE void normalize_onto(const stk_batch_norm_rows *p, const bool far, const uint16_t *x, const float *mean,
                           const float *factor, const float *bias, const uint16_t *residual, uint16_t *y)
{
    const __m512 least = _mm512_set1_ps(p->relu ? 0 : -INFINITY), none = _mm512_set1_ps(-INFINITY);
    const int64_t n = p->n_channels;
    for (int64_t row = p->begin; row < p->end; row++) {
        const uint16_t *from = x + row * n, *other = residual + row * n;
        uint16_t *to = y + row * n;
        int64_t c = 0;
        for (; c + LINE <= n; c += LINE) {
            __m512 v[2];
            fetch(from + c);
            fetch(other + c);
            for (int i = 0, at = 0; i < 2; i++, at += LANES) {
                v[i] = normalize_vec(from + c + at, mean + c + at, factor + c + at, bias + c + at, none, ALL);
                v[i] = add_residual(v[i], other + c + at, least, ALL);
            }
            store_result(to + c, v, far);
        }
        for (; c < n; c += LANES) {
            __mmask16 mask = mask_of(n - c);
            __m512 v = normalize_vec(from + c, mean + c, factor + c, bias + c, none, mask);
            store(to + c, add_residual(v, other + c, least, mask), mask);
        }
    }
    if (far) stk_stream_end();
}

static void normalize_onto_bf16(const stk_batch_norm_rows *p, const uint16_t *x, const float *mean, const float *factor,
                                const float *bias, const uint16_t *residual, uint16_t *y)
{
    if (y != x && y != residual && stk_batch_norm_is_far(p, y, sizeof(*y)))
        normalize_onto(p, true, x, mean, factor, bias, residual, y);
    else
        normalize_onto(p, false, x, mean, factor, bias, residual, y);
}

/* --- gradient --- */

/* What both sweeps read, from some channel on. */
typedef struct grad_args {
    const uint16_t *dy, *x;
    const float *mean, *factor, *bias, *offset, *slope;
} grad_args;

INLINE grad_args move_on(grad_args a, int64_t n)
{
    return (grad_args){a.dy + n, a.x + n, a.mean + n, a.factor + n, a.bias + n, a.offset + n, a.slope + n};
}

INLINE void sum_grads_vec(const int n_rows, const bool relu, grad_args a, int64_t row_step, float *first, float *second,
                          __mmask16 mask)
{
    __m512 sum = _mm512_loadu_ps(first), product = _mm512_loadu_ps(second), mean = load_param(a.mean, mask);
    __m512 factor = load_param(a.factor, mask), bias = load_param(a.bias, mask);
    for (int r = 0; r < n_rows; r++) {
        __m512 distance = _mm512_sub_ps(load(a.x + r * row_step, mask), mean), d = load(a.dy + r * row_step, mask);
        if (relu) d = where_positive(affine(distance, factor, bias), d);
        sum = _mm512_add_ps(sum, d);
        product = _mm512_fmadd_ps(d, distance, product);
    }
    _mm512_storeu_ps(first, sum);
    _mm512_storeu_ps(second, product);
}

INLINE void sum_grads_rows(const int n_rows, const bool relu, grad_args a, int64_t row_step, int64_t n, block_sums *to)
{
    int64_t c = 0;
    for (; c + LINE <= n; c += LINE) {
        for (int r = 0; r < n_rows; r++) {
            fetch(a.x + r * row_step + c);
            fetch(a.dy + r * row_step + c);
        }
        for (int64_t i = c; i < c + LINE; i += LANES)
            sum_grads_vec(n_rows, relu, move_on(a, i), row_step, to->first + i, to->second + i, ALL);
    }
    for (; c < n; c += LANES)
        sum_grads_vec(n_rows, relu, move_on(a, c), row_step, to->first + c, to->second + c, mask_of(n - c));
}

INLINE void sum_grads(const bool relu, const stk_batch_norm_rows *p, grad_args all, double *first, double *second)
{
    block_sums sums;
    const int64_t step = p->n_channels;
    for (int64_t begin = p->begin; begin < p->end; begin += STK_BATCH_NORM_ROWS) {
        int64_t end = p->end - begin < STK_BATCH_NORM_ROWS ? p->end : begin + STK_BATCH_NORM_ROWS;
        for (int64_t c = 0; c < step; c += TILE) {
            int64_t n = step - c < TILE ? step - c : TILE, row = begin;
            grad_args a = move_on(all, c);
            a.dy += begin * step;
            a.x += begin * step;
            clear_sums(&sums, n);
            for (; row + GROUP <= end; row += GROUP, a.dy += GROUP * step, a.x += GROUP * step)
                sum_grads_rows(GROUP, relu, a, step, n, &sums);
            for (; row < end; row++, a.dy += step, a.x += step)
                sum_grads_rows(1, relu, a, step, n, &sums);
            add_sums(&sums, n, first + c, second + c);
        }
    }
}

static void sum_grads_bf16(const stk_batch_norm_rows *p, const uint16_t *dy, const uint16_t *x, const float *mean,
                           const float *factor, const float *bias, double *first, double *second)
{
    grad_args a = {dy, x, mean, factor, bias, .offset = mean, .slope = mean}; /* which are not read */
    if (p->relu)
        sum_grads(true, p, a, first, second);
    else
        sum_grads(false, p, a, first, second);
}

/* What the sweep over a sum's gradients reads and writes, from some element on. */
typedef struct masked_args {
    const uint16_t *dy, *dy2, *y, *x;
    uint16_t *d;
} masked_args;

INLINE masked_args move_masked(masked_args a, int64_t n)
{
    return (masked_args){a.dy + n, a.dy2 + n, a.y + n, a.x + n, a.d + n};
}

INLINE void sum_masked_vec(const int n_rows, masked_args a, int64_t row_step, const float *mean, float *first,
                           float *second, __mmask16 mask)
{
    __m512 sum = _mm512_loadu_ps(first), product = _mm512_loadu_ps(second), center = load_param(mean, mask);
    for (int r = 0; r < n_rows; r++, a = move_masked(a, row_step)) {
        __m512 d = where_positive(load(a.y, mask), _mm512_add_ps(load(a.dy, mask), load(a.dy2, mask)));
        sum = _mm512_add_ps(sum, d);
        product = _mm512_fmadd_ps(d, _mm512_sub_ps(load(a.x, mask), center), product);
        store(a.d, d, mask);
    }
    _mm512_storeu_ps(first, sum);
    _mm512_storeu_ps(second, product);
}

INLINE void sum_masked_rows(const int n_rows, masked_args a, int64_t row_step, const float *mean, int64_t n,
                            block_sums *to)
{
    int64_t c = 0;
    for (; c + LINE <= n; c += LINE) {
        for (int64_t at = c, r = 0; r < n_rows; r++, at += row_step) {
            fetch(a.dy + at);
            fetch(a.dy2 + at);
            fetch(a.y + at);
            fetch(a.x + at);
        }
        for (int64_t i = c; i < c + LINE; i += LANES)
            sum_masked_vec(n_rows, move_masked(a, i), row_step, mean + i, to->first + i, to->second + i, ALL);
    }
    for (; c < n; c += LANES)
        sum_masked_vec(n_rows, move_masked(a, c), row_step, mean + c, to->first + c, to->second + c, mask_of(n - c));
}

static void sum_masked_bf16(const stk_batch_norm_rows *p, const uint16_t *dy, const uint16_t *dy2, const uint16_t *y,
                            const uint16_t *x, const float *mean, uint16_t *d, double *first, double *second)
{
    enum { TWO = 2 }; /* rows: five streams each */
    block_sums sums;
    const int64_t step = p->n_channels;
    for (int64_t begin = p->begin; begin < p->end; begin += STK_BATCH_NORM_ROWS) {
        int64_t end = p->end - begin < STK_BATCH_NORM_ROWS ? p->end : begin + STK_BATCH_NORM_ROWS;
        for (int64_t c = 0; c < step; c += TILE) {
            int64_t n = step - c < TILE ? step - c : TILE, row = begin;
            masked_args a = move_masked((masked_args){dy, dy2, y, x, d}, begin * step + c);
            clear_sums(&sums, n);
            for (; row + TWO <= end; row += TWO, a = move_masked(a, TWO * step))
                sum_masked_rows(TWO, a, step, mean + c, n, &sums);
            for (; row < end; row++, a = move_masked(a, step))
                sum_masked_rows(1, a, step, mean + c, n, &sums);
            add_sums(&sums, n, first + c, second + c);
        }
    }
}

/* dx = factor * (d - offset - slope * (x - mean)). */
INLINE __m512 grad_vec(const bool relu, grad_args a, __mmask16 mask)
{
    __m512 factor = load_param(a.factor, mask), d = load(a.dy, mask);
    __m512 distance = _mm512_sub_ps(load(a.x, mask), load_param(a.mean, mask));
    if (relu) d = where_positive(affine(distance, factor, load_param(a.bias, mask)), d);
    d = _mm512_sub_ps(d, load_param(a.offset, mask));
    return _mm512_mul_ps(factor, _mm512_fnmadd_ps(load_param(a.slope, mask), distance, d));
}

INLINE void write_grads(const bool relu, const stk_batch_norm_rows *p, grad_args a, uint16_t *dx)
{
    const int64_t n = p->n_channels;
    a.dy += p->begin * n;
    a.x += p->begin * n;
    dx += p->begin * n;
    for (int64_t row = p->begin; row < p->end; row++, a.dy += n, a.x += n, dx += n) {
        int64_t c = 0;
        for (; c + LINE <= n; c += LINE) {
            fetch(a.dy + c);
            fetch(a.x + c);
            __m512 d[2] = {grad_vec(relu, move_on(a, c), ALL), grad_vec(relu, move_on(a, c + LANES), ALL)};
            store_line(dx + c, d);
        }
        for (; c < n; c += LANES) {
            __mmask16 mask = mask_of(n - c);
            store(dx + c, grad_vec(relu, move_on(a, c), mask), mask);
        }
    }
}

static void write_grads_bf16(const stk_batch_norm_rows *p, const uint16_t *dy, const uint16_t *x, const float *mean,
                             const float *factor, const float *bias, const float *offset, const float *slope,
                             uint16_t *dx)
{
    grad_args a = {dy, x, mean, factor, bias, offset, slope};
    if (p->relu)
        write_grads(true, p, a, dx);
    else
        write_grads(false, p, a, dx);
}

#include "device/cpu/norm/batch_norm_tmpl.h"

const stk_batch_norm_fns stk_batch_norm_avx512bf16 = STK_BATCH_NORM_FNS(bf16);

#else
typedef int stk_batch_norm_is_not_built_for_bf16;
#endif
