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

/* --- TensorFlow's, whose positions and weights are f32 --- */

/* tf.image.resize without antialiasing. */
static int64_t two_nearest_f32(const stk_axis *axis, int64_t i, int64_t *out_first, float *weight)
{
    float scale = (float)axis->n_in / (float)axis->n_out, x = ((float)i + 0.5f) * scale - 0.5f, below = floorf(x);
    int64_t end = axis->n_in - 1, first = (int64_t)below, last = (int64_t)ceilf(x);
    first = first < 0 ? 0 : first > end ? end : first;
    last = last < 0 ? 0 : last > end ? end : last;
    *out_first = first;
    weight[0] = 1;
    if (last == first) return 1;
    weight[1] = x - below;
    weight[0] = 1 - weight[1];
    return 2;
}

/* Its cubic is read from a table of 1024 steps; what lies outside does not count. */
static int64_t four_nearest_f32(const stk_axis *axis, int64_t i, int64_t *out_first, float *weight)
{
    enum { STEPS = 1024 };
    float scale = (float)axis->n_in / (float)axis->n_out, x = ((float)i + 0.5f) * scale - 0.5f, below = floorf(x);
    float step = (float)lrintf((x - below) * STEPS) / STEPS, sum = 0;
    int64_t at = (int64_t)below - 1, first = at < 0 ? 0 : at;
    int64_t last = at + 3 > axis->n_in - 1 ? axis->n_in - 1 : at + 3;
    for (int64_t k = first; k <= last; k++) {
        weight[k - first] = (float)cubic(fabs((double)(k - at - 1) - (double)step), -0.5);
        sum += weight[k - first];
    }
    for (int64_t k = first; k <= last; k++)
        weight[k - first] /= sum;
    *out_first = first;
    return last - first + 1;
}

/* With antialiasing: its op ScaleAndTranslate. */
static int64_t widened_f32(const stk_axis *axis, int64_t i, int64_t *out_first, float *weight)
{
    bool is_cubic = axis->how.filter == STK_FILTER_BICUBIC;
    float scale = 1 / ((float)axis->n_out / (float)axis->n_in), width = scale > 1 ? scale : 1, by = 1 / width;
    float centre = ((float)i + 0.5f) * scale, reach = (float)reach_of(axis->how.filter) * width, sum = 0;
    int64_t end = axis->n_in - 1, most = stk_axis_most_taps(axis);
    int64_t first = (int64_t)ceilf(centre - reach - 0.5f), last = (int64_t)floorf(centre + reach - 0.5f);
    first = first < 0 ? 0 : first > end ? end : first;
    last = last < first ? first : last > end ? end : last;
    if (last - first >= most) last = first + most - 1;
    for (int64_t k = first; k <= last; k++) {
        float x = fabsf((float)k + 0.5f - centre) * by;
        float w = is_cubic ? (float)cubic((double)x, -0.5) : x < 1 ? 1 - x : 0;
        weight[k - first] = w;
        sum += w;
    }
    for (int64_t k = first; k <= last; k++)
        weight[k - first] /= sum;
    *out_first = first;
    return last - first + 1;
}

static int64_t taps_of(const stk_axis *axis, int64_t i, int64_t *first, float *weight)
{
    const stk_sampling *how = &axis->how;
    bool is_cubic = how->filter == STK_FILTER_BICUBIC;
    if (how->like == STK_LIKE_TF)
        return (how->antialias ? widened_f32 : is_cubic ? four_nearest_f32 : two_nearest_f32)(axis, i, first, weight);
    if (is_cubic && how->like == STK_LIKE_OPENCV) return four_nearest(axis, i, first, weight);
    return (is_cubic || how->antialias ? widened : two_nearest)(axis, i, first, weight);
}

/* --- the nearest, whose rounding is each system's own: what comes out is one input or the next --- */

static int64_t nearest_opencv(const stk_axis *axis, int64_t i)
{
    return (int64_t)floor((double)i * (1 / ((double)axis->n_out / (double)axis->n_in)));
}

static int64_t nearest_tf(const stk_axis *axis, int64_t i)
{
    return (int64_t)floorf(((float)i + 0.5f) * ((float)axis->n_in / (float)axis->n_out));
}

/* Pillow adds the step to where it is. */
static void fill_nearest(const stk_axis *axis, int32_t *first, int32_t *count, float *weight)
{
    double step = scale_of(axis), at = 0.5 * step;
    for (int64_t i = 0; i < axis->from + axis->n; i++, at += step) {
        int64_t k = i - axis->from, to = axis->flipped ? axis->n - 1 - k : k;
        if (k < 0) continue;
        int64_t in = axis->how.like == STK_LIKE_OPENCV ? nearest_opencv(axis, i)
                     : axis->how.like == STK_LIKE_TF   ? nearest_tf(axis, i)
                                                       : (int64_t)at;
        first[to] = (int32_t)(in < axis->n_in ? in : axis->n_in - 1);
        count[to] = 1;
        weight[to] = 1;
    }
}

void stk_axis_taps(const stk_axis *axis, int32_t *first, int32_t *count, float *weight)
{
    int64_t most = stk_axis_most_taps(axis);
    if (axis->how.filter == STK_FILTER_NEAREST) {
        fill_nearest(axis, first, count, weight);
        return;
    }
    for (int64_t i = 0; i < axis->n; i++) {
        int64_t at, out = axis->from + (axis->flipped ? axis->n - 1 - i : i);
        count[i] = (int32_t)taps_of(axis, out, &at, weight + i * most);
        first[i] = (int32_t)at;
    }
}
