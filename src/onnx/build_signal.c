/* DFT as products with matrices of cosines and sines, and the windows of signals, which are numbers. */
#include <math.h>

#include "onnx/build_list.h"

enum { MOST_ELEMENTS = 1 << 24 };
#define TURN 6.28318530717958647692

/* --- DFT --- */

typedef struct transform {
    int axis;
    int64_t n_in, length, n_out; /* what is read along the axis, of how many it is one, what is made */
    bool inverse, onesided;
} transform;

/* [n_in,n_out] of cos or sin (2 pi i j / length), scaled as the inverse is. */
static stk_status make_matrix(stk_build *b, const transform *t, bool is_sine, stk_dtype dtype, stk_value *out)
{
    size_t n = (size_t)(t->n_in * t->n_out), bytes = stk_dtype_bytes(dtype);
    void *data = stk_arena_alloc(b->model->arena, n * bytes + 1);
    if (!data) return stk_fail_memory(n * bytes);
    for (int64_t i = 0; i < t->n_in; i++) {
        /* Of a one-sided spectrum all but the ends stand for two. */
        bool twice = t->inverse && t->onesided && i > 0 && 2 * i != t->length;
        double factor = (twice ? 2 : 1) / (t->inverse ? (double)t->length : 1);
        for (int64_t j = 0; j < t->n_out; j++) {
            double angle = TURN * (double)(i * j % t->length) / (double)t->length;
            double v = factor * (is_sine ? sin(angle) : cos(angle));
            if (dtype == STK_F64)
                ((double *)data)[i * t->n_out + j] = v;
            else
                ((float *)data)[i * t->n_out + j] = (float)v;
        }
    }
    *out = stk_onnx_fixed_value(b, dtype, STK_SHAPE(t->n_in, t->n_out), data);
    return STK_OK;
}

static stk_status read_transform(stk_build *b, stk_shape shape, transform *t)
{
    const int64_t *list;
    int n;
    int64_t axis = b->opset < 20 ? stk_onnx_attribute_int(b, "axis", 1) : -2;
    if (shape.rank < 2 || shape.dim[shape.rank - 1] < 1 || shape.dim[shape.rank - 1] > 2)
        return stk_fail(STK_INVALID, "its input must end in a dimension of 1 or 2");
    if (b->opset >= 20 && stk_onnx_has_input(b, 2)) {
        STK_RETURN_IF_ERROR(stk_onnx_input_ints(b, 2, &list, &n));
        if (n == 1) axis = list[0];
    }
    STK_RETURN_IF_ERROR(stk_onnx_settle_axis(axis, shape.rank, &t->axis));
    if (t->axis == shape.rank - 1) return stk_fail(STK_INVALID, "its axis is the one of real and imaginary parts");
    t->inverse = stk_onnx_attribute_int(b, "inverse", 0) != 0;
    t->onesided = stk_onnx_attribute_int(b, "onesided", 0) != 0;
    int64_t size = shape.dim[t->axis];
    t->length = t->inverse && t->onesided ? 2 * (size - 1) : size;
    if (stk_onnx_has_input(b, 1)) {
        STK_RETURN_IF_ERROR(stk_onnx_input_ints(b, 1, &list, &n));
        if (n == 1) t->length = list[0];
    }
    t->n_in = t->inverse && t->onesided ? t->length / 2 + 1 : t->length;
    t->n_out = !t->inverse && t->onesided ? t->length / 2 + 1 : t->length;
    if (size == STK_ANY || t->length < 1 || t->length > MOST_ELEMENTS || t->n_in * t->n_out > MOST_ELEMENTS)
        return stk_fail(STK_UNSUPPORTED, "it has a length of %lld, and can have 1 to 4096 here", (long long)t->length);
    return STK_OK;
}

/* Along the last axis, zeros behind or the end cut off. */
static stk_value fit(stk_value x, int64_t n)
{
    stk_shape shape = stk_value_shape(x);
    int last = shape.rank - 1;
    int64_t low[STK_MAX_RANK] = {0}, high[STK_MAX_RANK] = {0};
    if (shape.dim[last] >= n) return stk_onnx_cut(x, last, 0, n);
    high[last] = n - shape.dim[last];
    return stk_pad(x, low, high, 0);
}

stk_status stk_onnx_build_DFT(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0), cosine, sine;
    transform t;
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    stk_dtype dtype = stk_value_dtype(x), inside = dtype == STK_F64 ? STK_F64 : STK_F32;
    stk_shape shape = stk_value_shape(x);
    STK_RETURN_IF_ERROR(read_transform(b, shape, &t));
    STK_RETURN_IF_ERROR(make_matrix(b, &t, false, inside, &cosine));
    STK_RETURN_IF_ERROR(make_matrix(b, &t, true, inside, &sine));
    bool is_complex = shape.dim[shape.rank - 1] == 2;
    int parts = shape.rank - 2; /* where they are once the axis is last */
    x = fit(stk_onnx_axis_to_end(stk_cast_to(x, inside), t.axis), t.n_in);
    stk_value re = stk_onnx_cut(x, parts, 0, 1), im = is_complex ? stk_onnx_cut(x, parts, 1, 1) : re, y[2];
    if (t.inverse) sine = stk_neg(sine);
    y[0] = stk_matmul(re, cosine, false, false);
    y[1] = stk_neg(stk_matmul(re, sine, false, false));
    if (is_complex) {
        y[0] = stk_add(y[0], stk_matmul(im, sine, false, false));
        y[1] = stk_add(y[1], stk_matmul(im, cosine, false, false));
    }
    stk_value all = t.inverse && t.onesided ? y[0] : stk_concat(y, 2, parts);
    return stk_onnx_output(b, 0, stk_cast_to(stk_onnx_axis_from_end(all, t.axis), dtype));
}

/* --- windows --- */

/* c[0] + c[1] cos(a) + c[2] cos(2 a), where a goes round once. */
static stk_status build_window(stk_build *b, const double c[3])
{
    const int64_t *size;
    int n;
    stk_dtype dtype;
    STK_RETURN_IF_ERROR(stk_onnx_input_ints(b, 0, &size, &n));
    STK_RETURN_IF_ERROR(stk_onnx_dtype((int32_t)stk_onnx_attribute_int(b, "output_datatype", 1), &dtype));
    if (n != 1 || size[0] < 0 || size[0] > MOST_ELEMENTS)
        return stk_fail(STK_UNSUPPORTED, "it has no size of 0 to %d", MOST_ELEMENTS);
    if (dtype != STK_F32 && dtype != STK_F64)
        return stk_fail(STK_UNSUPPORTED, "its attribute 'output_datatype' is %s, and can be f32 or f64 here",
                        stk_dtype_name(dtype));
    bool periodic = stk_onnx_attribute_int(b, "periodic", 1) != 0;
    double round = (double)(periodic ? size[0] : size[0] - 1);
    double *y = stk_arena_alloc(b->model->arena, (size_t)size[0] * sizeof(*y) + 1);
    if (!y) return stk_fail_memory((size_t)size[0] * sizeof(*y));
    for (int64_t i = 0; i < size[0]; i++) {
        double a = round > 0 ? TURN * (double)i / round : 0, v = c[0] + c[1] * cos(a) + c[2] * cos(2 * a);
        if (dtype == STK_F64)
            y[i] = v;
        else
            ((float *)y)[i] = (float)v;
    }
    return stk_onnx_output_tensor(b, 0, dtype, STK_SHAPE(size[0]), y);
}

stk_status stk_onnx_build_HannWindow(stk_build *b)
{
    return build_window(b, (const double[]){0.5, -0.5, 0});
}

stk_status stk_onnx_build_HammingWindow(stk_build *b)
{
    return build_window(b, (const double[]){25.0 / 46, -21.0 / 46, 0});
}

stk_status stk_onnx_build_BlackmanWindow(stk_build *b)
{
    return build_window(b, (const double[]){0.42, -0.5, 0.08});
}
