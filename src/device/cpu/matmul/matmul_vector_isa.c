#include "device/cpu/matmul/matmul_vector.h"

/* Four rows at a time: as many streams as the prefetchers follow easily, and as many sums as hide the adders' latency.
 */
static void dot_rows(int64_t n, int64_t k, const float *x, const float *w, float *y)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const float *r0 = w + i * k, *r1 = r0 + k, *r2 = r1 + k, *r3 = r2 + k;
        float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
        for (int64_t l = 0; l < k; l++) {
            s0 += r0[l] * x[l];
            s1 += r1[l] * x[l];
            s2 += r2[l] * x[l];
            s3 += r3[l] * x[l];
        }
        y[i] = s0;
        y[i + 1] = s1;
        y[i + 2] = s2;
        y[i + 3] = s3;
    }
    for (; i < n; i++) {
        const float *row = w + i * k;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t l = 0; l < k; l++)
            sum += row[l] * x[l];
        y[i] = sum;
    }
}

static void add_rows(int64_t n, int64_t k, const float *x, const float *w, float *y)
{
    int64_t l = 0;
    for (; l + 4 <= k; l += 4) {
        const float *r0 = w + l * n, *r1 = r0 + n, *r2 = r1 + n, *r3 = r2 + n;
        float x0 = x[l], x1 = x[l + 1], x2 = x[l + 2], x3 = x[l + 3];
#pragma omp simd
        for (int64_t j = 0; j < n; j++)
            y[j] += (x0 * r0[j] + x1 * r1[j]) + (x2 * r2[j] + x3 * r3[j]);
    }
    for (; l < k; l++) {
        const float *row = w + l * n, factor = x[l];
#pragma omp simd
        for (int64_t j = 0; j < n; j++)
            y[j] += factor * row[j];
    }
}

const stk_matvec_table STK_ISA_NAME(stk_matvec) = {dot_rows, add_rows};
