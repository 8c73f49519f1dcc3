/* Eigenvalues and eigenvectors: what defines them, for matrices of many kinds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "train/eigen.h"

enum { MOST = 27 };

static double uniform(uint64_t i)
{
    stk_rng rng = stk_rng_make(3, 0, i, 0);
    return (double)stk_rng_u32(&rng) * 0x1p-31 - 1;
}

/* A v = value v, rows of v orthonormal, the largest value first. */
static void check(const double *matrix, int n)
{
    double a[MOST * MOST], v[MOST * MOST], most = 0;
    memcpy(a, matrix, (size_t)(n * n) * sizeof(*a));
    for (int i = 0; i < n * n; i++)
        most = fmax(most, fabs(a[i]));
    stk_eigen_symmetric(a, n, v);
    for (int i = 0; i < n; i++) {
        double value = a[i * n + i];
        assert_true(i == 0 || value <= a[(i - 1) * n + i - 1]);
        for (int k = 0; k < n; k++) {
            double product = 0, dot = 0;
            for (int j = 0; j < n; j++) {
                product += matrix[k * n + j] * v[i * n + j];
                dot += v[k * n + j] * v[i * n + j];
            }
            assert_true(fabs(product - value * v[i * n + k]) <= 1e-12 * (1 + most) * n);
            assert_true(fabs(dot - (i == k)) <= 1e-12);
        }
    }
}

static void eigenvectors_of_any_symmetric_matrix(void **state)
{
    double a[MOST * MOST] = {0};
    (void)state;
    check(a, 12); /* zeros */
    for (int n = 1; n <= MOST; n += n < 4 ? 1 : 23) {
        for (int i = 0; i < n; i++)
            for (int j = i; j < n; j++)
                a[i * n + j] = a[j * n + i] = uniform((uint64_t)(i * MOST + j));
        check(a, n);
        for (int i = 0; i < n * n; i++) /* of rank one, and with numbers far apart */
            a[i] = 1e6 * uniform((uint64_t)(i / n)) * uniform((uint64_t)(i % n)) + (i % (n + 1) == 0 ? 1e-3 * i : 0);
        check(a, n);
        for (int i = 0; i < n * n; i++) /* all values equal */
            a[i] = i % (n + 1) == 0 ? 7 : 0;
        check(a, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(eigenvectors_of_any_symmetric_matrix)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
