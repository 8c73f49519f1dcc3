#include "device/cpu/attention/cached_attention.h"

#include <math.h>

#include "device/cpu/element/element_math.h"

/* Scores of all keys, their maximum, their exponentials, then the sum of values: a query and its scores stay in the
 * first-level cache while keys and values pass by once. */
#define ATTEND_ROW(suffix, T, EXP)                                                                                     \
    static void attend_##suffix(int64_t d, int64_t n_keys, int64_t step, double scale, const void *src_q,              \
                                const void *src_k, const void *src_v, void *scratch, void *dst)                        \
    {                                                                                                                  \
        const T *q = src_q, *k = src_k, *v = src_v;                                                                    \
        T *score = scratch, *y = dst, most = -INFINITY, sum = 0;                                                       \
        for (int64_t s = 0; s < n_keys; s++) {                                                                         \
            const T *key = k + s * step;                                                                               \
            T dot = 0;                                                                                                 \
            _Pragma("omp simd reduction(+ : dot)") for (int64_t e = 0; e < d; e++) dot += q[e] * key[e];               \
            score[s] = dot * (T)scale;                                                                                 \
            most = score[s] != score[s] || score[s] > most ? score[s] : most;                                          \
        }                                                                                                              \
        _Pragma("omp simd reduction(+ : sum)") for (int64_t s = 0; s < n_keys; s++)                                    \
        {                                                                                                              \
            score[s] = EXP(score[s] - most);                                                                           \
            sum += score[s];                                                                                           \
        }                                                                                                              \
        for (int64_t e = 0; e < d; e++)                                                                                \
            y[e] = 0;                                                                                                  \
        for (int64_t s = 0; s < n_keys; s++) {                                                                         \
            const T *value = v + s * step, weight = score[s];                                                          \
            _Pragma("omp simd") for (int64_t e = 0; e < d; e++) y[e] += weight * value[e];                             \
        }                                                                                                              \
        for (int64_t e = 0; e < d; e++)                                                                                \
            y[e] /= sum;                                                                                               \
    }

ATTEND_ROW(f32, float, exp_f32)
ATTEND_ROW(f64, double, exp)

const stk_attend_row_table STK_ISA_NAME(stk_attend_row) = {attend_f32, attend_f64};
