/* Convolution and pooling: [N,C,L], [N,C,H,W] and [N,C,D,H,W]. They work on channels-last images; a line is an image
 * one pixel high.
 */
#include <string.h>

#include "onnx/build_list.h"

/* Input i with channels last; *was_line: it was [N,C,L]. */
static stk_value images(stk_build *b, int i, bool *was_line)
{
    stk_onnx_value *v = stk_onnx_input_entry(b, i);
    *was_line = false;
    if (v) stk_onnx_make(b->model, v);
    if (v && v->nhwc) return v->value;
    stk_value x = stk_onnx_input(b, i);
    stk_shape shape = stk_value_shape(x);
    if (x.id < 0) return x;
    if (shape.rank < 3 || shape.rank > 5) {
        stk_graph_keep_error(x.graph, stk_fail(STK_UNSUPPORTED, "its input %d has %d dimensions, and can have 3 to 5",
                                               i, (int)shape.rank));
        return stk_value_none(x.graph);
    }
    *was_line = shape.rank == 3;
    if (*was_line) x = stk_reshape(x, STK_SHAPE(shape.dim[0], shape.dim[1], 1, shape.dim[2]));
    if (shape.rank == 5) return stk_transpose(x, (int32_t[]){0, 2, 3, 4, 1});
    return stk_onnx_to_nhwc(x);
}

static stk_status put_images(stk_build *b, stk_value y, bool is_line)
{
    stk_shape shape = stk_value_shape(y);
    if (shape.rank == 4 && !is_line) return stk_onnx_output_nhwc(b, 0, y);
    if (shape.rank == 5) return stk_onnx_output(b, 0, stk_transpose(y, (int32_t[]){0, 4, 1, 2, 3}));
    y = stk_onnx_to_nchw(y);
    return stk_onnx_output(b, 0, stk_reshape(y, STK_SHAPE(shape.dim[0], shape.dim[3], shape.dim[2])));
}

static int32_t small(int64_t x)
{
    return x < 0 ? -1 : x > 1 << 20 ? 1 << 20 : (int32_t)x;
}

static int64_t limited(int64_t size)
{
    return size < 0 ? 0 : size > INT32_MAX ? INT32_MAX : size;
}

/* One number for each dimension of the window, from a list of those of the model, which may be one shorter. */
static void spread(const int64_t *list, int n, int n_dims, int32_t default_value, int32_t *out)
{
    for (int i = 0; i < n_dims; i++) {
        int k = i - (n_dims - n);
        out[i] = list && k >= 0 ? small(list[k]) : default_value;
    }
}

/* Padding so that the output is ceil(size / stride), the odd pixel at the end or the beginning. */
static void pad_same(stk_window *w, const int64_t *size, int n_dims, bool at_end)
{
    for (int i = 0; i < n_dims; i++) {
        int64_t n_out = (size[i] + w->stride[i] - 1) / w->stride[i];
        int64_t total = (n_out - 1) * w->stride[i] + (int64_t)(w->kernel[i] - 1) * w->dilation[i] + 1 - size[i];
        if (total < 0) total = 0;
        w->pad_low[i] = small(at_end ? total / 2 : total - total / 2);
        w->pad_high[i] = small(total) - w->pad_low[i];
    }
}

/* The attribute's list, which must have n numbers of 0 or more where it is there. */
static stk_status read_list(const stk_build *b, const char *name, int n, const int64_t **out)
{
    int n_given;
    *out = stk_onnx_attribute_ints(b, name, &n_given);
    if (!n_given) *out = NULL;
    if (*out && n_given != n)
        return stk_fail(STK_INVALID, "its attribute '%s' has %d numbers, and must have %d", name, n_given, n);
    for (int i = 0; *out && i < n; i++)
        if ((*out)[i] < 0 || (*out)[i] > 1 << 20)
            return stk_fail(STK_UNSUPPORTED, "its attribute '%s' has %lld, and may have 0 to %d here", name,
                            (long long)(*out)[i], 1 << 20);
    return STK_OK;
}

/* Strides, dilations, pads and groups; the kernel is set. x has channels last. */
static stk_status read_window(stk_build *b, stk_shape x, bool is_line, stk_window *w)
{
    int n_dims = x.rank - 2, n = is_line ? 1 : n_dims;
    const int64_t *list;
    STK_RETURN_IF_ERROR(read_list(b, "kernel_shape", n, &list));
    for (int i = 0; list && i < n; i++)
        if (list[i] != w->kernel[n_dims - n + i])
            return stk_fail(STK_INVALID, "its attribute 'kernel_shape' has %lld where its weight has %d",
                            (long long)list[i], (int)w->kernel[n_dims - n + i]);
    STK_RETURN_IF_ERROR(read_list(b, "strides", n, &list));
    spread(list, n, n_dims, 1, w->stride);
    STK_RETURN_IF_ERROR(read_list(b, "dilations", n, &list));
    spread(list, n, n_dims, 1, w->dilation);
    w->groups = small(stk_onnx_attribute_int(b, "group", 1));
    STK_RETURN_IF_ERROR(read_list(b, "pads", 2 * n, &list));
    if (stk_onnx_attribute_is(b, "auto_pad", "VALID")) list = NULL;
    spread(list, n, n_dims, 0, w->pad_low);
    spread(list ? list + n : NULL, n, n_dims, 0, w->pad_high);
    for (int i = 0; i < n_dims; i++)
        if (w->stride[i] < 1 || w->dilation[i] < 1 || w->kernel[i] < 1 || x.dim[1 + i] < 0 || x.dim[1 + i] > INT32_MAX)
            return stk_fail(STK_INVALID, "its window or its image has no size, or one that is too large");
    bool upper = stk_onnx_attribute_is(b, "auto_pad", "SAME_UPPER");
    if (upper || stk_onnx_attribute_is(b, "auto_pad", "SAME_LOWER")) pad_same(w, x.dim + 1, n_dims, upper);
    return STK_OK;
}

/* A window that is larger than the image with its padding gives nothing at all in ONNX. */
static stk_status check_room(const stk_window *w, const int64_t *size, int n_dims)
{
    for (int i = 0; i < n_dims; i++) {
        int64_t span = (int64_t)(w->kernel[i] - 1) * w->dilation[i] + 1;
        int64_t room = size[i] + w->pad_low[i] + w->pad_high[i];
        if (span > room)
            return stk_fail(STK_UNSUPPORTED, "its window spans %lld pixels, and the image has %lld with its padding",
                            (long long)span, (long long)room);
    }
    return STK_OK;
}

/* One number for each channel of y. */
static stk_value add_bias(stk_build *b, stk_value y)
{
    if (!stk_onnx_has_input(b, 2)) return y;
    stk_value bias = stk_onnx_input(b, 2);
    stk_shape shape = stk_value_shape(bias), of_y = stk_value_shape(y);
    if (bias.id >= 0 && y.id >= 0 && (shape.rank != 1 || shape.dim[0] != of_y.dim[of_y.rank - 1])) {
        stk_graph_keep_error(y.graph, stk_fail(STK_INVALID, "its bias is not one number for each channel"));
        return stk_value_none(y.graph);
    }
    return stk_add(y, bias);
}

stk_status stk_onnx_build_Conv(stk_build *b)
{
    bool is_line, weight_is_line;
    stk_value x = images(b, 0, &is_line), weight = images(b, 1, &weight_is_line);
    stk_shape shape = stk_value_shape(x), of_weight = stk_value_shape(weight);
    stk_window w = {0};
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    if (shape.rank != of_weight.rank) return stk_fail(STK_INVALID, "its weight does not fit its input");
    for (int i = 0; i < shape.rank - 2; i++)
        w.kernel[i] = small(of_weight.dim[1 + i]);
    STK_RETURN_IF_ERROR(read_window(b, shape, is_line, &w));
    STK_RETURN_IF_ERROR(check_room(&w, shape.dim + 1, shape.rank - 2));
    stk_value y = shape.rank == 5 ? stk_conv3d_raw(x, weight, w) : stk_conv2d_raw(x, weight, w);
    return put_images(b, add_bias(b, y), is_line);
}

/* The weight is [C,O/groups,...] in ONNX, which is that of the convolution whose gradient this is. */
stk_status stk_onnx_build_ConvTranspose(stk_build *b)
{
    bool is_line, weight_is_line;
    int n;
    stk_value x = images(b, 0, &is_line), weight = images(b, 1, &weight_is_line);
    stk_shape shape = stk_value_shape(x), of_weight = stk_value_shape(weight);
    stk_window w = {0};
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    int n_dims = shape.rank - 2;
    if (shape.rank != of_weight.rank) return stk_fail(STK_INVALID, "its weight does not fit its input");
    for (int i = 0; i < n_dims; i++)
        w.kernel[i] = small(of_weight.dim[1 + i]);
    STK_RETURN_IF_ERROR(read_window(b, shape, is_line, &w));
    int32_t more[3] = {0};
    const int64_t *list, *wanted;
    n = is_line ? 1 : n_dims;
    STK_RETURN_IF_ERROR(read_list(b, "output_padding", n, &list));
    spread(list, n, n_dims, 0, more);
    STK_RETURN_IF_ERROR(read_list(b, "output_shape", n, &wanted));
    bool upper = stk_onnx_attribute_is(b, "auto_pad", "SAME_UPPER"),
         same = upper || stk_onnx_attribute_is(b, "auto_pad", "SAME_LOWER");
    for (int i = 0; i < n_dims && (wanted || same); i++) {
        int64_t full = (shape.dim[1 + i] - 1) * w.stride[i] + (int64_t)(w.kernel[i] - 1) * w.dilation[i] + 1 + more[i];
        int64_t size = wanted && i >= n_dims - n ? limited(wanted[n - n_dims + i])
                       : same                    ? shape.dim[1 + i] * w.stride[i]
                                                 : full;
        int64_t total = full - size;
        if (total < 0) {
            more[i] = small(more[i] - total);
            total = 0;
        }
        w.pad_low[i] = small(upper ? total / 2 : total - total / 2);
        w.pad_high[i] = small(total) - w.pad_low[i];
    }
    stk_value y =
        shape.rank == 5 ? stk_conv3d_transpose_raw(x, weight, w, more) : stk_conv2d_transpose_raw(x, weight, w, more);
    return put_images(b, add_bias(b, y), is_line);
}

/* With ceil_mode the last window may stand out beyond the padding: *beyond by as many pixels. Windows that begin behind
 * the image are none.
 */
static void round_up(stk_window *w, const int64_t *size, int n_dims, int32_t *beyond)
{
    for (int i = 0; i < n_dims; i++) {
        int64_t span = (int64_t)(w->kernel[i] - 1) * w->dilation[i] + 1;
        int64_t room = size[i] + w->pad_low[i] + w->pad_high[i] - span;
        int64_t n_out = room < 0 ? 1 : (room + w->stride[i] - 1) / w->stride[i] + 1;
        if (n_out > 1 && (n_out - 1) * w->stride[i] >= size[i] + w->pad_low[i]) n_out--;
        int64_t needed = (n_out - 1) * w->stride[i] + span - size[i] - w->pad_low[i];
        beyond[i] = needed > w->pad_high[i] ? small(needed - w->pad_high[i]) : 0;
        w->pad_high[i] = needed < 0 ? 0 : small(needed);
    }
}

/* The padding as pixels of zeros, which then count; what is beyond it does not. */
static stk_value pad_images(stk_value x, stk_window *w, const int32_t *beyond)
{
    int64_t low[STK_MAX_RANK] = {0}, high[STK_MAX_RANK] = {0};
    int n_dims = stk_value_shape(x).rank - 2;
    for (int i = 0; i < n_dims; i++) {
        low[1 + i] = w->pad_low[i];
        high[1 + i] = w->pad_high[i] - beyond[i];
        w->pad_low[i] = 0;
        w->pad_high[i] = beyond[i];
    }
    return stk_pad(x, low, high, 0);
}

static stk_status build_pool(stk_build *b, bool is_max)
{
    bool is_line;
    stk_value x = images(b, 0, &is_line), y;
    stk_shape shape = stk_value_shape(x);
    stk_dtype dtype = stk_value_dtype(x);
    stk_window w = {0};
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    int n_dims = shape.rank - 2;
    if (stk_onnx_has_output(b, 1)) return stk_fail(STK_UNSUPPORTED, "it gives indices, which there are none of here");
    const int64_t *kernel;
    int n = is_line ? 1 : n_dims;
    int32_t beyond[3] = {0};
    STK_RETURN_IF_ERROR(read_list(b, "kernel_shape", n, &kernel));
    if (!kernel) return stk_fail(STK_INVALID, "it lacks the attribute 'kernel_shape'");
    spread(kernel, n, n_dims, 1, w.kernel);
    STK_RETURN_IF_ERROR(read_window(b, shape, is_line, &w));
    w.groups = 1;
    if (stk_onnx_attribute_int(b, "ceil_mode", 0)) round_up(&w, shape.dim + 1, n_dims, beyond);
    STK_RETURN_IF_ERROR(check_room(&w, shape.dim + 1, n_dims));
    if (!is_max && stk_onnx_attribute_int(b, "count_include_pad", 0)) x = pad_images(x, &w, beyond);
    if (!stk_dtype_is_float(dtype)) x = stk_cast_to(x, STK_F32);
    if (is_max)
        y = shape.rank == 5 ? stk_max_pool3d_raw(x, w) : stk_max_pool2d_raw(x, w);
    else
        y = shape.rank == 5 ? stk_avg_pool3d_raw(x, w) : stk_avg_pool2d_raw(x, w);
    return put_images(b, stk_cast_to(y, dtype), is_line);
}

stk_status stk_onnx_build_MaxPool(stk_build *b)
{
    return build_pool(b, true);
}

stk_status stk_onnx_build_AveragePool(stk_build *b)
{
    return build_pool(b, false);
}

/* (sum of |x|^p)^(1/p): a mean over padding that counts, times the window. */
stk_status stk_onnx_build_LpPool(stk_build *b)
{
    bool is_line;
    stk_value x = images(b, 0, &is_line);
    stk_shape shape = stk_value_shape(x);
    stk_window w = {0};
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    int n_dims = shape.rank - 2, n = is_line ? 1 : n_dims;
    const int64_t *kernel;
    int32_t beyond[3] = {0};
    double p = (double)stk_onnx_attribute_int(b, "p", 2), count = 1;
    if (!(p >= 1)) return stk_fail(STK_INVALID, "its attribute 'p' is %g", p);
    STK_RETURN_IF_ERROR(read_list(b, "kernel_shape", n, &kernel));
    if (!kernel) return stk_fail(STK_INVALID, "it lacks the attribute 'kernel_shape'");
    spread(kernel, n, n_dims, 1, w.kernel);
    STK_RETURN_IF_ERROR(read_window(b, shape, is_line, &w));
    w.groups = 1;
    for (int i = 0; i < n_dims; i++)
        count *= w.kernel[i];
    if (stk_onnx_attribute_int(b, "ceil_mode", 0)) {
        round_up(&w, shape.dim + 1, n_dims, beyond);
        memset(beyond, 0, sizeof(beyond)); /* Zeros there add nothing. */
    }
    STK_RETURN_IF_ERROR(check_room(&w, shape.dim + 1, n_dims));
    x = stk_abs(x);
    x = pad_images(p == 1 ? x : stk_pow(x, stk_onnx_like(x, p)), &w, beyond);
    stk_value y = stk_scale_by(shape.rank == 5 ? stk_avg_pool3d_raw(x, w) : stk_avg_pool2d_raw(x, w), count);
    return put_images(b, p == 1 ? y : stk_pow(y, stk_onnx_like(y, 1 / p)), is_line);
}

static stk_status build_global(stk_build *b, stk_value (*f)(stk_value x, uint32_t axes))
{
    stk_value x = stk_onnx_input(b, 0);
    stk_shape shape = stk_value_shape(x), ones = shape;
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    for (int i = 2; i < shape.rank; i++)
        ones.dim[i] = 1;
    return stk_onnx_output(b, 0, stk_reshape(f(x, ((1u << shape.rank) - 1u) & ~3u), ones));
}

stk_status stk_onnx_build_GlobalAveragePool(stk_build *b)
{
    return build_global(b, stk_reduce_mean);
}

stk_status stk_onnx_build_GlobalMaxPool(stk_build *b)
{
    return build_global(b, stk_reduce_max);
}
