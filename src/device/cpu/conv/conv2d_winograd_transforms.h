/* For conv2d_winograd_isa.c: the transforms of conv2d_winograd.h in one dimension, of vectors, for tiles of m outputs,
 * which read m + 2 inputs. In two dimensions they are done for all columns and then for all rows. For 2 outputs, with
 * rows apart by commas:
 *
 *     B' = 1 0 -1 0, 0 1 1 0, 0 -1 1 0, 0 1 0 -1     G = 1 0 0, 1/2 1/2 1/2, 1/2 -1/2 1/2, 0 0 1
 *     A' = 1 1 1 0, 0 1 -1 -1
 *
 * For 4 outputs they are made of polynomials at 0, P, -P, Q, -Q and infinity (Toom and Cook). With these points, whose
 * squares are exact, errors are half of what they are at 1 and 2 (Barabasz et al. 2020 search for such points):
 *
 *     A'  row i: 0^i P^i (-P)^i Q^i (-Q)^i, and 1 at the end of the last row
 *     G   row of a point x: 1 x x^2, over the product of its distances from the others; then 0 0 1
 *     B'  row of a point: the product of (t - other point), as factors of 1, t, t^2, ...; then that of all points
 */
#ifndef STK_DEVICE_CPU_CONV_CONV2D_WINOGRAD_TRANSFORMS_H
#define STK_DEVICE_CPU_CONV_CONV2D_WINOGRAD_TRANSFORMS_H

#include "device/cpu/conv/conv2d_vec.h"

enum { MOST_SIDE = 6, MOST_OUTPUTS = 4 };

#define P   0.625f
#define Q   1.5f
#define PP  (P * P)
#define QQ  (Q * Q)
#define AT0 (1 / (PP * QQ))
#define ATP (1 / (2 * PP * (PP - QQ)))
#define ATQ (1 / (2 * QQ * (QQ - PP)))

#define INLINE static inline __attribute__((always_inline))

/* d = B' d. */
INLINE void transform_input(const int m, vec d[MOST_SIDE])
{
    if (m == 2) {
        vec sum = d[1] + d[2], difference = d[2] - d[1];
        d[0] -= d[2];
        d[3] = d[1] - d[3];
        d[1] = sum;
        d[2] = difference;
        return;
    }
    vec even_p = d[4] - QQ * d[2], odd_p = P * (d[3] - QQ * d[1]);
    vec even_q = d[4] - PP * d[2], odd_q = Q * (d[3] - PP * d[1]);
    d[0] = PP * QQ * d[0] - (PP + QQ) * d[2] + d[4];
    d[5] = PP * QQ * d[1] - (PP + QQ) * d[3] + d[5];
    d[1] = even_p + odd_p;
    d[2] = even_p - odd_p;
    d[3] = even_q + odd_q;
    d[4] = even_q - odd_q;
}

/* y = A' d. */
INLINE void transform_output(const int m, const vec d[MOST_SIDE], vec y[MOST_OUTPUTS])
{
    if (m == 2) {
        y[0] = d[0] + d[1] + d[2];
        y[1] = d[1] - d[2] - d[3];
        return;
    }
    vec even_p = d[1] + d[2], odd_p = P * (d[1] - d[2]), even_q = d[3] + d[4], odd_q = Q * (d[3] - d[4]);
    y[0] = d[0] + even_p + even_q;
    y[1] = odd_p + odd_q;
    y[2] = PP * even_p + QQ * even_q;
    y[3] = PP * odd_p + QQ * odd_q + d[5];
}

/* d = A g. */
INLINE void transform_grad(const int m, const vec g[MOST_OUTPUTS], vec d[MOST_SIDE])
{
    if (m == 2) {
        d[0] = g[0];
        d[1] = g[0] + g[1];
        d[2] = g[0] - g[1];
        d[3] = -g[1];
        return;
    }
    vec even_p = g[0] + PP * g[2], odd_p = P * (g[1] + PP * g[3]);
    vec even_q = g[0] + QQ * g[2], odd_q = Q * (g[1] + QQ * g[3]);
    d[0] = g[0];
    d[1] = even_p + odd_p;
    d[2] = even_p - odd_p;
    d[3] = even_q + odd_q;
    d[4] = even_q - odd_q;
    d[5] = g[3];
}

/* u = G g. */
INLINE void transform_weight(const int m, const vec g[3], vec u[MOST_SIDE])
{
    if (m == 2) {
        vec outer = 0.5f * (g[0] + g[2]), inner = 0.5f * g[1];
        u[0] = g[0];
        u[1] = outer + inner;
        u[2] = outer - inner;
        u[3] = g[2];
        return;
    }
    vec even_p = ATP * (g[0] + PP * g[2]), odd_p = ATP * P * g[1];
    vec even_q = ATQ * (g[0] + QQ * g[2]), odd_q = ATQ * Q * g[1];
    u[0] = AT0 * g[0];
    u[1] = even_p + odd_p;
    u[2] = even_p - odd_p;
    u[3] = even_q + odd_q;
    u[4] = even_q - odd_q;
    u[5] = g[2];
}

/* g = G' s. */
INLINE void transform_sums(const int m, const vec s[MOST_SIDE], vec g[3])
{
    if (m == 2) {
        vec sum = 0.5f * (s[1] + s[2]);
        g[0] = s[0] + sum;
        g[1] = 0.5f * (s[1] - s[2]);
        g[2] = s[3] + sum;
        return;
    }
    vec even_p = ATP * (s[1] + s[2]), odd_p = ATP * P * (s[1] - s[2]);
    vec even_q = ATQ * (s[3] + s[4]), odd_q = ATQ * Q * (s[3] - s[4]);
    g[0] = AT0 * s[0] + even_p + even_q;
    g[1] = odd_p + odd_q;
    g[2] = PP * even_p + QQ * even_q + s[5];
}

#undef P
#undef Q
#undef PP
#undef QQ
#undef AT0
#undef ATP
#undef ATQ

#endif
