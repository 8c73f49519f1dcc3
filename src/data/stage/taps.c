#include "data/stage/taps.h"

#include <math.h>

static double scale_of(const stk_axis *axis)
{
    return (double)axis->n_in / (double)axis->n_out;
}

int64_t stk_axis_most_taps(const stk_axis *axis)
{
    double scale = scale_of(axis);
    return axis->antialias && scale > 1 ? 2 * (int64_t)ceil(scale) + 1 : 2;
}

static int64_t triangle(const stk_axis *axis, int64_t i, int64_t *out_first, float *weight)
{
    double scale = scale_of(axis), width = scale > 1 ? scale : 1, centre = ((double)i + 0.5) * scale, sum = 0;
    int64_t first = (int64_t)(centre - width + 0.5), last = (int64_t)(centre + width + 0.5);
    if (first < 0) first = 0;
    if (last > axis->n_in) last = axis->n_in;
    if (last - first > stk_axis_most_taps(axis)) last = first + stk_axis_most_taps(axis);
    for (int64_t k = first; k < last; k++) {
        double distance = fabs(((double)k - centre + 0.5) / width);
        weight[k - first] = distance < 1 ? (float)(1 - distance) : 0;
        sum += (double)weight[k - first];
    }
    for (int64_t k = first; k < last; k++)
        weight[k - first] = (float)((double)weight[k - first] / sum);
    *out_first = first;
    return last - first;
}

static int64_t two_nearest(const stk_axis *axis, int64_t i, int64_t *out_first, float *weight)
{
    double x = ((double)i + 0.5) * scale_of(axis) - 0.5;
    if (x < 0) x = 0;
    int64_t first = (int64_t)x;
    if (first > axis->n_in - 1) first = axis->n_in - 1;
    *out_first = first;
    if (first + 1 >= axis->n_in) {
        weight[0] = 1;
        return 1;
    }
    double share = x - (double)first;
    weight[0] = (float)(1 - share);
    weight[1] = (float)share;
    return 2;
}

int64_t stk_axis_taps(const stk_axis *axis, int64_t i, int64_t *first, float *weight)
{
    i = axis->from + (axis->mirrored ? axis->n - 1 - i : i);
    return axis->antialias ? triangle(axis, i, first, weight) : two_nearest(axis, i, first, weight);
}
