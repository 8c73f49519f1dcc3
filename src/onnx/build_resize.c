/* Resize and Upsample, axis by axis: each axis is a sum of gathers, one for each neighbour that counts. Coordinates and
 * neighbours: ONNX's operator description, Resize-19, and onnx/reference/ops/op_resize.py.
 */
#include <math.h>
#include <stdlib.h>

#include "onnx/build_list.h"

enum { MOST_TAPS = 256 };

typedef enum resize_mode { RESIZE_NEAREST, RESIZE_LINEAR, RESIZE_CUBIC } resize_mode;

typedef struct resize {
    resize_mode mode;
    bool antialias, excludes_outside;
    double cubic, outside; /* the cubic's coefficient; the number outside of the image */
} resize;

/* One axis of it. */
typedef struct axis_plan {
    int64_t n_in, n_out;
    double scale, roi[2]; /* roi: start and end, as shares of the axis */
} axis_plan;

/* Where output i lies in the input. */
static double place_of(const stk_build *b, const axis_plan *a, int64_t i)
{
    double y = (double)i, n_in = (double)a->n_in, width = a->scale * n_in;
#define MODE(text) stk_onnx_attribute_is(b, "coordinate_transformation_mode", text)
    if (b->opset < 11 || MODE("asymmetric")) return y / a->scale;
    if (MODE("align_corners")) {
        /* The standard's width is a fraction where the scale makes one; PyTorch means the pixels that there are. */
        if (b->model->is_pytorchs) width = (double)a->n_out;
        return width == 1 ? 0 : y * (n_in - 1) / (width - 1);
    }
    if (MODE("tf_half_pixel_for_nn")) return (y + 0.5) / a->scale;
    if (MODE("tf_crop_and_resize")) {
        /* In f32, as ONNX Runtime has it: a last place decides whether a pixel at the border is outside. */
        float start = (float)a->roi[0], end = (float)a->roi[1], last = (float)n_in - 1;
        if (width == 1) return 0.5 * (double)((start + end) * last);
        float step = (float)i * (end - start) * last;
        return (double)(start * last + step / (float)(width - 1));
    }
    if (MODE("pytorch_half_pixel") && width == 1) return -0.5;
    double offset = MODE("half_pixel_symmetric") ? n_in / 2 * (1 - (double)a->n_out / width) : 0;
    return offset + (y + 0.5) / a->scale - 0.5;
}

static int64_t nearest_of(const stk_build *b, double x)
{
    double low = floor(x);
    if (b->opset < 11 || stk_onnx_attribute_is(b, "nearest_mode", "floor")) return (int64_t)low;
    if (stk_onnx_attribute_is(b, "nearest_mode", "ceil")) return (int64_t)ceil(x);
    if (stk_onnx_attribute_is(b, "nearest_mode", "round_prefer_ceil")) return (int64_t)(x - low >= 0.5 ? low + 1 : low);
    return (int64_t)(x - low <= 0.5 ? low : low + 1);
}

static double kernel_at(const resize *r, double x)
{
    double size = fabs(x), a = r->cubic;
    if (r->mode == RESIZE_LINEAR) return size < 1 ? 1 - size : 0;
    if (size <= 1) return ((a + 2) * size - (a + 3)) * size * size + 1;
    return size < 2 ? ((a * size - 5 * a) * size + 8 * a) * size - 4 * a : 0;
}

/* How many neighbours count. */
static int count_taps(const resize *r, const axis_plan *a)
{
    if (r->mode == RESIZE_NEAREST) return 1;
    double reach = r->mode == RESIZE_LINEAR ? 1 : 2, scale = r->antialias && a->scale < 1 ? a->scale : 1;
    double n = 2 * ceil(reach / scale);
    return n > MOST_TAPS ? MOST_TAPS + 1 : (int)n;
}

/* The neighbours of output i and what each counts: ids[n_taps], weight[n_taps]. */
static void find_taps(const stk_build *b, const resize *r, const axis_plan *a, int64_t i, int n_taps, int64_t *ids,
                      double *weight)
{
    double x = place_of(b, a, i), scale = r->antialias && a->scale < 1 ? a->scale : 1, sum = 0;
    int64_t first = (int64_t)floor(x) - n_taps / 2 + 1;
    if (r->mode == RESIZE_NEAREST) first = nearest_of(b, x);
    for (int k = 0; k < n_taps; k++) {
        bool outside = first + k < 0 || first + k >= a->n_in;
        weight[k] = r->mode == RESIZE_NEAREST ? 1 : kernel_at(r, ((double)(first + k) - x) * scale);
        if (r->excludes_outside && outside) weight[k] = 0;
        sum += weight[k];
        ids[k] = first + k < 0 ? 0 : first + k >= a->n_in ? a->n_in - 1 : first + k;
    }
    for (int k = 0; k < n_taps && (r->antialias || r->excludes_outside) && sum != 0; k++)
        weight[k] /= sum;
}

/* weight, one number for each element of the axis, shaped to fit x. */
static stk_value along(stk_build *b, stk_value x, int axis, const float *weight, int64_t n)
{
    stk_shape shape = {.rank = stk_value_shape(x).rank};
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = i == axis ? n : 1;
    stk_value w = stk_onnx_fixed_value(b, STK_F32, STK_SHAPE(n), weight);
    return stk_reshape(stk_cast_to(w, stk_value_dtype(x)), shape);
}

/* Outputs beyond the image are the number for outside. */
static stk_value replace_outside(stk_build *b, const resize *r, const axis_plan *a, stk_value x, int axis, float *mark)
{
    bool some = false;
    for (int64_t i = 0; i < a->n_out; i++) {
        double at = place_of(b, a, i);
        mark[i] = at < 0 || at > (double)(a->n_in - 1);
        some |= mark[i] != 0;
    }
    if (!some) return x;
    stk_value marks = along(b, x, axis, mark, a->n_out);
    return stk_select(stk_greater(marks, stk_onnx_like(x, 0.5)), stk_onnx_like(x, r->outside), x);
}

static stk_value resize_axis(stk_build *b, const resize *r, const axis_plan *a, stk_value x, int axis)
{
    int n_taps = count_taps(r, a);
    int64_t taps[MOST_TAPS];
    double weights[MOST_TAPS];
    int32_t *ids = NULL;
    stk_value y = stk_value_none(x.graph);
    size_t n = (size_t)n_taps * (size_t)a->n_out;
    float *weight = stk_arena_alloc(b->model->arena, (n + 1) * sizeof(*weight));
    stk_status status = weight ? stk_onnx_new_ids(b, (int64_t)n, &ids) : stk_fail_memory(n * sizeof(*weight));
    if (stk_graph_keep_error(x.graph, status) != STK_OK) return y;
    for (int64_t i = 0; i < a->n_out; i++) {
        find_taps(b, r, a, i, n_taps, taps, weights);
        for (int k = 0; k < n_taps; k++) {
            ids[k * a->n_out + i] = (int32_t)taps[k];
            weight[k * a->n_out + i] = (float)weights[k];
        }
    }
    for (int k = 0; k < n_taps; k++) {
        stk_value part = stk_gather(x, stk_onnx_index_value(b, ids + k * a->n_out, a->n_out), axis);
        if (r->mode != RESIZE_NEAREST) part = stk_mul(part, along(b, part, axis, weight + k * a->n_out, a->n_out));
        y = k ? stk_add(y, part) : part;
    }
    return stk_onnx_attribute_is(b, "coordinate_transformation_mode", "tf_crop_and_resize") && b->opset >= 11
               ? replace_outside(b, r, a, y, axis, weight)
               : y;
}

/* --- what a node says --- */

static bool read_list(const stk_onnx_tensor *t, int n, double *out)
{
    if (stk_shape_count(t->shape) != n) return false;
    for (int i = 0; i < n; i++)
        out[i] = stk_onnx_number(t, i);
    return true;
}

/* Numbers of input i, if it is there and not empty: n of them, or twice as many. */
static stk_status read_input(stk_build *b, int i, int n, double *out, bool *there)
{
    const stk_onnx_tensor *t;
    *there = false;
    if (!stk_onnx_has_input(b, i)) return STK_OK;
    STK_RETURN_IF_ERROR(stk_onnx_input_tensor(b, i, &t));
    if (stk_shape_count(t->shape) == 0) return STK_OK;
    if (!read_list(t, n, out))
        return stk_fail(STK_INVALID, "its input %d has %lld numbers, and must have %d", i,
                        (long long)stk_shape_count(t->shape), n);
    *there = true;
    return STK_OK;
}

/* One scale for all of the axes, so that the image keeps its proportions. */
static void keep_proportions(const stk_build *b, int n, const int *axis, axis_plan *plan)
{
    bool larger = stk_onnx_attribute_is(b, "keep_aspect_ratio_policy", "not_smaller");
    if (!larger && !stk_onnx_attribute_is(b, "keep_aspect_ratio_policy", "not_larger")) return;
    double scale = plan[axis[0]].scale;
    for (int i = 1; i < n; i++) {
        double s = plan[axis[i]].scale;
        if (larger ? s > scale : s < scale) scale = s;
    }
    for (int i = 0; i < n; i++) {
        axis_plan *p = &plan[axis[i]];
        p->scale = scale;
        p->n_out = (int64_t)(scale * (double)p->n_in + 0.5);
    }
}

static stk_status read_axes(stk_build *b, int rank, int *n, int *axis)
{
    const int64_t *list = stk_onnx_attribute_ints(b, "axes", n);
    if (!list) *n = rank;
    if (*n < 1 || *n > rank) return stk_fail(STK_INVALID, "its axes are %d of %d", *n, rank);
    for (int i = 0; i < *n; i++) {
        axis[i] = i;
        if (list) STK_RETURN_IF_ERROR(stk_onnx_settle_axis(list[i], rank, &axis[i]));
    }
    return STK_OK;
}

/* plan: [rank], of which only the axes named are resized. */
static stk_status read_plan(stk_build *b, int rank, axis_plan *plan)
{
    int n, axis[STK_MAX_RANK];
    bool has_scales, has_sizes, has_roi = false, is_old = b->opset < 11;
    double scales[STK_MAX_RANK], sizes[STK_MAX_RANK], roi[2 * STK_MAX_RANK];
    STK_RETURN_IF_ERROR(read_axes(b, rank, &n, axis));
    STK_RETURN_IF_ERROR(read_input(b, is_old ? 1 : 2, n, scales, &has_scales));
    STK_RETURN_IF_ERROR(read_input(b, 3, n, sizes, &has_sizes));
    if (stk_onnx_attribute_is(b, "coordinate_transformation_mode", "tf_crop_and_resize"))
        STK_RETURN_IF_ERROR(read_input(b, 1, 2 * n, roi, &has_roi));
    if (has_scales == has_sizes) return stk_fail(STK_INVALID, "it must have either scales or sizes");
    for (int i = 0; i < n; i++) {
        axis_plan *p = &plan[axis[i]];
        if (p->n_in == STK_ANY && (has_sizes || scales[i] != 1))
            return stk_fail(STK_UNSUPPORTED, "the size of its axis %d is not known", axis[i]);
        p->scale = has_scales ? scales[i] : sizes[i] / (double)p->n_in;
        p->n_out = has_sizes ? (int64_t)sizes[i] : (int64_t)(scales[i] * (double)p->n_in);
        if (has_roi) p->roi[0] = roi[i];
        if (has_roi) p->roi[1] = roi[n + i];
        if (p->n_in == STK_ANY) p->n_out = STK_ANY;
    }
    if (has_sizes) keep_proportions(b, n, axis, plan);
    return STK_OK;
}

/* The model's axis i, where channels come last here. */
static int own_axis(int i, int rank, bool last)
{
    return !last || i == 0 ? i : i == 1 ? rank - 1 : i - 1;
}

static stk_status build(stk_build *b, const resize *r)
{
    stk_onnx_value *v = stk_onnx_input_entry(b, 0);
    bool last = v && v->nhwc;
    stk_value x = last ? v->value : stk_onnx_input(b, 0);
    stk_shape shape = stk_value_shape(x);
    stk_dtype dtype = stk_value_dtype(x);
    axis_plan plan[STK_MAX_RANK];
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    for (int i = 0; i < shape.rank; i++) {
        int64_t n = shape.dim[own_axis(i, shape.rank, last)];
        plan[i] = (axis_plan){n, n, 1, {0, 1}};
    }
    STK_RETURN_IF_ERROR(read_plan(b, shape.rank, plan));
    bool sums = r->mode != RESIZE_NEAREST && !stk_dtype_is_float(dtype);
    if (sums) x = stk_cast_to(x, STK_F32);
    for (int i = 0; i < shape.rank; i++) {
        const axis_plan *p = &plan[i];
        if (p->n_in == p->n_out && p->scale == 1 && p->roi[0] == 0 && p->roi[1] == 1) continue;
        if (p->n_in < 1 || p->n_out < 0 || p->n_out > INT32_MAX || !(p->scale > 0))
            return stk_fail(STK_INVALID, "its axis %d of %lld becomes %lld, by %g", i, (long long)p->n_in,
                            (long long)p->n_out, p->scale);
        if (count_taps(r, p) > MOST_TAPS)
            return stk_fail(STK_UNSUPPORTED,
                            "its axis %d becomes so much smaller that more than %d numbers count for one", i,
                            MOST_TAPS);
        x = resize_axis(b, r, p, x, own_axis(i, shape.rank, last));
    }
    if (sums) x = stk_cast_to(stk_round(x), dtype);
    return last ? stk_onnx_output_nhwc(b, 0, x) : stk_onnx_output(b, 0, x);
}

static resize_mode mode_of(const stk_build *b)
{
    if (stk_onnx_attribute_is(b, "mode", "cubic")) return RESIZE_CUBIC;
    return stk_onnx_attribute_is(b, "mode", "linear") ? RESIZE_LINEAR : RESIZE_NEAREST;
}

stk_status stk_onnx_build_Resize(stk_build *b)
{
    resize r = {.mode = mode_of(b),
                .antialias = stk_onnx_attribute_int(b, "antialias", 0) != 0,
                .excludes_outside = stk_onnx_attribute_int(b, "exclude_outside", 0) != 0,
                .cubic = stk_onnx_attribute_float(b, "cubic_coeff_a", -0.75),
                .outside = stk_onnx_attribute_float(b, "extrapolation_value", 0)};
    if (r.antialias && r.mode == RESIZE_NEAREST)
        return stk_fail(STK_INVALID, "its attribute 'antialias' is 1, and its mode is nearest");
    return build(b, &r);
}

/* Resize with asymmetric coordinates, before opset 10; in opset 7 its scales are an attribute. */
stk_status stk_onnx_build_Upsample(stk_build *b)
{
    const resize r = {.mode = mode_of(b)};
    if (b->opset >= 11) return stk_fail(STK_UNSUPPORTED, "there is no such op from opset 10 on");
    return build(b, &r);
}
