#include "data/stage/taps.h"

#include <math.h>

static double scale_of(const stk_axis *axis)
{
    return (double)axis->n_in / (double)axis->n_out;
}

/* Inputs that count on each side of the centre, where the filter is not widened. */
static int reach_of(stk_filter filter)
{
    return filter == STK_FILTER_BICUBIC ? 2 : 1;
}

int64_t stk_axis_most_taps(const stk_axis *axis)
{
    double scale = scale_of(axis);
    int reach = reach_of(axis->how.filter);
    if (axis->how.filter == STK_FILTER_NEAREST) return 1;
    return axis->how.antialias && scale > 1 ? 2 * (int64_t)ceil(reach * scale) + 1 : 2 * reach;
}

static double cubic(double x, double a)
{
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/* Bilinear or bicubic, as wide as the scale where it is antialiased; the sum of what counts is made 1. */
static int64_t widened(const stk_axis *axis, int64_t i, int64_t *out_first, float *weight)
{
    bool is_cubic = axis->how.filter == STK_FILTER_BICUBIC;
    double scale = scale_of(axis), width = axis->how.antialias && scale > 1 ? scale : 1;
    double centre = ((double)i + 0.5) * scale, sum = 0, reach = reach_of(axis->how.filter) * width;
    int64_t first = (int64_t)(centre - reach + 0.5), last = (int64_t)(centre + reach + 0.5);
    if (first < 0) first = 0;
    if (last > axis->n_in) last = axis->n_in;
    if (last - first > stk_axis_most_taps(axis)) last = first + stk_axis_most_taps(axis);
    for (int64_t k = first; k < last; k++) {
        double distance = fabs(((double)k - centre + 0.5) / width);
        double w = is_cubic ? cubic(distance, -0.5) : distance < 1 ? 1 - distance : 0;
        weight[k - first] = (float)w;
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

/* OpenCV's: the weights of inputs outside go to the outermost ones. */
static int64_t four_nearest(const stk_axis *axis, int64_t i, int64_t *out_first, float *weight)
{
    double x = ((double)i + 0.5) * scale_of(axis) - 0.5, below = floor(x);
    int64_t at = (int64_t)below - 1, end = axis->n_in - 1;
    int64_t first = at < 0 ? 0 : at > end ? end : at, last = at + 3 < 0 ? 0 : at + 3 > end ? end : at + 3;
    for (int k = 0; k < 4; k++)
        weight[k] = 0;
    for (int64_t k = at; k < at + 4; k++) {
        int64_t inside = k < 0 ? 0 : k > end ? end : k;
        weight[inside - first] += (float)cubic(fabs((double)k - x), -0.75);
    }
    *out_first = first;
    return last - first + 1;
}

static int64_t nearest(const stk_axis *axis, int64_t i, int64_t *out_first, float *weight)
{
    double centre = axis->how.like == STK_LIKE_OPENCV ? 0 : 0.5;
    int64_t first = (int64_t)(((double)i + centre) * scale_of(axis));
    *out_first = first < axis->n_in ? first : axis->n_in - 1;
    weight[0] = 1;
    return 1;
}

int64_t stk_axis_taps(const stk_axis *axis, int64_t i, int64_t *first, float *weight)
{
    const stk_sampling *how = &axis->how;
    i = axis->from + (axis->flipped ? axis->n - 1 - i : i);
    if (how->filter == STK_FILTER_NEAREST) return nearest(axis, i, first, weight);
    if (how->filter == STK_FILTER_BICUBIC && how->like == STK_LIKE_OPENCV) return four_nearest(axis, i, first, weight);
    if (how->filter == STK_FILTER_BILINEAR && !how->antialias) return two_nearest(axis, i, first, weight);
    return widened(axis, i, first, weight);
}
