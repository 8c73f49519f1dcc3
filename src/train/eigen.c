#include "train/eigen.h"

#include <math.h>

enum { MOST_SWEEPS = 60 };

static void swap(double *a, double *b)
{
    double kept = *a;
    *a = *b;
    *b = kept;
}

/* The sum of squares next to the diagonal, and on it. */
static void measure(const double *a, int64_t n, double *off, double *on)
{
    *off = *on = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            *(i == j ? on : off) += a[i * n + j] * a[i * n + j];
}

/* Turns rows and columns p and q so that a[p][q] becomes 0, and v's rows with them. */
static void rotate(double *a, double *v, int64_t n, int64_t p, int64_t q)
{
    double apq = a[p * n + q];
    if (apq == 0) return;
    double theta = (a[q * n + q] - a[p * n + p]) / (2 * apq);
    double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1)), c = 1 / sqrt(t * t + 1), s = t * c;
    for (int64_t k = 0; k < n; k++) {
        double x = a[k * n + p], y = a[k * n + q];
        a[k * n + p] = c * x - s * y;
        a[k * n + q] = s * x + c * y;
    }
    for (int64_t k = 0; k < n; k++) {
        double x = a[p * n + k], y = a[q * n + k];
        a[p * n + k] = c * x - s * y;
        a[q * n + k] = s * x + c * y;
        x = v[p * n + k];
        y = v[q * n + k];
        v[p * n + k] = c * x - s * y;
        v[q * n + k] = s * x + c * y;
    }
}

void stk_eigen_symmetric(double *a, int64_t n, double *v)
{
    double off, on;
    for (int64_t i = 0; i < n * n; i++)
        v[i] = i % (n + 1) == 0;
    measure(a, n, &off, &on);
    for (int i = 0; i < MOST_SWEEPS && off > 1e-28 * on; i++) {
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++)
                rotate(a, v, n, p, q);
        measure(a, n, &off, &on);
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t most = i;
        for (int64_t j = i + 1; j < n; j++)
            if (a[j * n + j] > a[most * n + most]) most = j;
        if (most == i) continue;
        swap(&a[i * n + i], &a[most * n + most]);
        for (int64_t k = 0; k < n; k++)
            swap(&v[i * n + k], &v[most * n + k]);
    }
}
