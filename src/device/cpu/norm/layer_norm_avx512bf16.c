/* Layer norm of bf16 where the processor rounds to that in one instruction: layer_norm_tmpl.h's sums and results, in
 * the same runs. In plain C a row took four times as long as reading it from memory.
 */
#include "device/cpu/norm/layer_norm.h"

#ifdef __AVX512BF16__

#include <math.h>

#include "device/cpu/simd/bf16_lanes.h"

enum { RUN = 1024 }; /* elements that are summed up before they go into doubles */

/* body(i, mask, k) for a row's vectors from `at` to `end`, whole ones with a constant mask. Sums are kept in SUMS
 * parts, of which k is one: one addition need not wait for the other. */
enum { SUMS = 4 };

#define FOR_VECTORS(at, end, body)                                                                                     \
    do {                                                                                                               \
        int64_t i = (at);                                                                                              \
        for (; i + SUMS * LANES <= (end); i += SUMS * LANES) {                                                         \
            body(i, ALL, 0);                                                                                           \
            body(i + LANES, ALL, 1);                                                                                   \
            body(i + 2 * LANES, ALL, 2);                                                                               \
            body(i + 3 * LANES, ALL, 3);                                                                               \
        }                                                                                                              \
        for (; i + LANES <= (end); i += LANES)                                                                         \
            body(i, ALL, 0);                                                                                           \
        if (i < (end)) body(i, mask_of((end)-i), 0);                                                                   \
    } while (0)

INLINE double add_up(const __m512 sum[SUMS])
{
    __m512 all = _mm512_add_ps(_mm512_add_ps(sum[0], sum[1]), _mm512_add_ps(sum[2], sum[3]));
    return (double)_mm512_reduce_add_ps(all);
}

/* --- forward --- */

static double sum_row(int64_t n, const uint16_t *x)
{
    double total = 0;
    for (int64_t at = 0; at < n; at += RUN) {
        int64_t end = n - at < RUN ? n : at + RUN;
        __m512 sum[SUMS] = {_mm512_setzero_ps()};
#define BODY(i, mask, k) sum[k] = _mm512_add_ps(sum[k], load(x + (i), mask))
        FOR_VECTORS(at, end, BODY);
#undef BODY
        total += add_up(sum);
    }
    return total;
}

/* Sums of the distances from `near`, which is close to the mean, and of their squares. */
static void measure_spread(int64_t n, const uint16_t *x, float near, double sums[2])
{
    __m512 center = _mm512_set1_ps(near);
    sums[0] = sums[1] = 0;
    for (int64_t at = 0; at < n; at += RUN) {
        int64_t end = n - at < RUN ? n : at + RUN;
        __m512 sum[SUMS] = {_mm512_setzero_ps()}, squares[SUMS] = {_mm512_setzero_ps()};
#define BODY(i, mask, k)                                                                                               \
    do {                                                                                                               \
        __m512 distance = _mm512_maskz_sub_ps(mask, load(x + (i), mask), center);                                      \
        sum[k] = _mm512_add_ps(sum[k], distance);                                                                      \
        squares[k] = _mm512_fmadd_ps(distance, distance, squares[k]);                                                  \
    } while (0)
        FOR_VECTORS(at, end, BODY);
#undef BODY
        sums[0] += add_up(sum);
        sums[1] += add_up(squares);
    }
}

static void forward(int64_t n_rows, int64_t n, const void *src, const void *src_scale, const void *src_bias, double eps,
                    void *dst, void *dst_mean, void *dst_inv_std)
{
    const float *scale = src_scale, *bias = src_bias;
    double count = n ? (double)n : 1, sums[2];
    for (int64_t row = 0; row < n_rows; row++) {
        const uint16_t *x = (const uint16_t *)src + row * n;
        uint16_t *y = (uint16_t *)dst + row * n;
        float near = (float)(sum_row(n, x) / count);
        measure_spread(n, x, near, sums);
        double rest = sums[0] / count, var = sums[1] / count - rest * rest;
        /* What rounding left out of `near` counts where a row is far from zero. A NaN stays one. */
        float inv_std = (float)(1 / sqrt((var < 0 ? 0 : var) + eps));
        __m512 close = _mm512_set1_ps(near), far = _mm512_set1_ps((float)rest), factor = _mm512_set1_ps(inv_std);
#define BODY(i, mask, k)                                                                                               \
    do {                                                                                                               \
        __m512 normal = _mm512_sub_ps(_mm512_sub_ps(load(x + (i), mask), close), far);                                 \
        normal = _mm512_mul_ps(normal, factor);                                                                        \
        store(y + (i), _mm512_fmadd_ps(normal, load_param(scale + (i), mask), load_param(bias + (i), mask)), mask);    \
    } while (0)
        FOR_VECTORS(0, n, BODY);
#undef BODY
        ((float *)dst_mean)[row] = (float)((double)near + rest);
        ((float *)dst_inv_std)[row] = inv_std;
    }
}

/* --- backward --- */

/* Sums over the row of d and of d * normal, where d = dy * scale; the row's part of dscale and dbias. */
static void measure(int64_t n, const uint16_t *dy, const uint16_t *x, const float *scale, float mean, float inv_std,
                    float *dscale, float *dbias, double sums[2])
{
    __m512 center = _mm512_set1_ps(mean), factor = _mm512_set1_ps(inv_std);
    sums[0] = sums[1] = 0;
    for (int64_t at = 0; at < n; at += RUN) {
        int64_t end = n - at < RUN ? n : at + RUN;
        __m512 sum[SUMS] = {_mm512_setzero_ps()}, product[SUMS] = {_mm512_setzero_ps()};
#define BODY(i, mask, k)                                                                                               \
    do {                                                                                                               \
        __m512 normal = _mm512_mul_ps(_mm512_sub_ps(load(x + (i), mask), center), factor);                             \
        __m512 g = load(dy + (i), mask), d = _mm512_mul_ps(g, load_param(scale + (i), mask));                          \
        __m512 to_scale = _mm512_fmadd_ps(g, normal, load_param(dscale + (i), mask));                                  \
        _mm512_mask_storeu_ps(dscale + (i), mask, to_scale);                                                           \
        _mm512_mask_storeu_ps(dbias + (i), mask, _mm512_add_ps(g, load_param(dbias + (i), mask)));                     \
        sum[k] = _mm512_add_ps(sum[k], d);                                                                             \
        product[k] = _mm512_fmadd_ps(d, normal, product[k]);                                                           \
    } while (0)
        FOR_VECTORS(at, end, BODY);
#undef BODY
        sums[0] += add_up(sum);
        sums[1] += add_up(product);
    }
}

static void grad(int64_t n_rows, int64_t n, const void *src_dy, const void *src_x, const void *src_scale,
                 const void *src_mean, const void *src_inv_std, void *dst, void *part, double *total)
{
    const float *scale = src_scale;
    float *dscale = part, *dbias = dscale + n;
    for (int64_t from = 0; from < n_rows; from += STK_LAYER_NORM_ROWS) {
        int64_t to = n_rows - from < STK_LAYER_NORM_ROWS ? n_rows : from + STK_LAYER_NORM_ROWS;
        for (int64_t i = 0; i < 2 * n; i++)
            dscale[i] = 0;
        for (int64_t row = from; row < to; row++) {
            const uint16_t *dy = (const uint16_t *)src_dy + row * n, *x = (const uint16_t *)src_x + row * n;
            uint16_t *dx = (uint16_t *)dst + row * n;
            float mean = ((const float *)src_mean)[row], inv_std = ((const float *)src_inv_std)[row];
            double sums[2];
            measure(n, dy, x, scale, mean, inv_std, dscale, dbias, sums);
            __m512 offset = _mm512_set1_ps((float)(sums[0] / (double)n)), center = _mm512_set1_ps(mean);
            __m512 slope = _mm512_set1_ps((float)(sums[1] / (double)n) * inv_std), factor = _mm512_set1_ps(inv_std);
#define BODY(i, mask, k)                                                                                               \
    do {                                                                                                               \
        __m512 d = _mm512_fmsub_ps(load(dy + (i), mask), load_param(scale + (i), mask), offset);                       \
        d = _mm512_fnmadd_ps(_mm512_sub_ps(load(x + (i), mask), center), slope, d);                                    \
        store(dx + (i), _mm512_mul_ps(d, factor), mask);                                                               \
    } while (0)
            FOR_VECTORS(0, n, BODY);
#undef BODY
        }
        for (int64_t i = 0; i < 2 * n; i++)
            total[i] += (double)dscale[i];
    }
}

const stk_layer_norm_fns stk_layer_norm_avx512bf16 = {forward, grad};

#else
typedef int stk_layer_norm_is_not_built_for_bf16;
#endif
