/* See convolution.h: a convolution described to cuDNN. Its tensors are N, C, then the sides, whatever the order in
 * memory, which strides tell; ours is channels last, of weights too. Bias and ReLU are operations of their own behind
 * it, on sums in f32 that only the graph has: the library makes one kernel of all, or has no plan. */
#include "device/gpu/cuda/convolution.h"

enum { MOST_RANK = 5, BYTE_ALIGNMENT = 16 }; /* alignment: all that kernels of the library ask for; ours is 64 */

/* --- descriptors --- */

cudnn_descriptor cuda_dnn_make(cuda_descriptors *list, int kind)
{
    cudnn_descriptor d = NULL;
    if (!list->code && list->n == CUDA_MOST_DESCRIPTORS) list->code = CUDNN_STATUS_NOT_SUPPORTED;
    if (!list->code) list->code = cudnn.cudnnBackendCreateDescriptor(kind, &d);
    if (list->code) return NULL;
    return list->made[list->n++] = d;
}

void cuda_dnn_set(cuda_descriptors *list, cudnn_descriptor d, int attribute, int type, int64_t n, const void *values)
{
    if (!list->code) list->code = cudnn.cudnnBackendSetAttribute(d, attribute, type, n, values);
}

void cuda_dnn_finish(cuda_descriptors *list, cudnn_descriptor d)
{
    if (!list->code) list->code = cudnn.cudnnBackendFinalize(d);
}

void cuda_dnn_free(cuda_descriptors *list)
{
    while (list->n > 0)
        cudnn.cudnnBackendDestroyDescriptor(list->made[--list->n]);
}

static void set_int(cuda_descriptors *list, cudnn_descriptor d, int attribute, int64_t value)
{
    cuda_dnn_set(list, d, attribute, CUDNN_TYPE_INT64, 1, &value);
}

static void set_enum(cuda_descriptors *list, cudnn_descriptor d, int attribute, int type, int value)
{
    cuda_dnn_set(list, d, attribute, type, 1, &value);
}

static void set_descriptor(cuda_descriptors *list, cudnn_descriptor d, int attribute, cudnn_descriptor value)
{
    cuda_dnn_set(list, d, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

/* --- tensors --- */

static int type_of(int32_t dtype)
{
    return dtype == STK_F32 ? CUDNN_DATA_FLOAT : dtype == STK_F16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
}

/* outer, channels, and the sides; sides NULL: all are 1. is_virtual: it is in no memory. */
static cudnn_descriptor add_tensor(cuda_descriptors *list, int64_t number, int type, int n_sides, int64_t outer,
                                   int64_t channels, const int64_t *sides, bool is_virtual)
{
    int64_t dim[MOST_RANK] = {outer, channels}, stride[MOST_RANK] = {0, 1}, step = channels;
    cudnn_descriptor d = cuda_dnn_make(list, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    for (int i = n_sides - 1; i >= 0; i--) {
        dim[2 + i] = sides ? sides[i] : 1;
        stride[2 + i] = step;
        step *= dim[2 + i];
    }
    stride[0] = step;
    set_int(list, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, number);
    set_enum(list, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
    cuda_dnn_set(list, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 2 + n_sides, dim);
    cuda_dnn_set(list, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 2 + n_sides, stride);
    set_int(list, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, BYTE_ALIGNMENT);
    if (is_virtual) cuda_dnn_set(list, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    cuda_dnn_finish(list, d);
    return d;
}

/* What the convolution, or a gradient, writes: number and type are those of what is at its end. */
static cudnn_descriptor add_result(cuda_descriptors *list, const gpu_library_convolution *w, int64_t number, int type,
                                   bool is_virtual)
{
    switch (w->pass) {
    case GPU_CONVOLUTION_FORWARD:
        return add_tensor(list, number, type, w->n_sides, w->n_images, w->y_channels, w->y_side, is_virtual);
    case GPU_CONVOLUTION_GRAD_DATA:
        return add_tensor(list, number, type, w->n_sides, w->n_images, w->x_channels, w->x_side, is_virtual);
    default:
        return add_tensor(list, number, type, w->n_sides, w->y_channels, w->x_channels / w->groups, w->taps,
                          is_virtual);
    }
}

static int64_t number_of_result(const gpu_library_convolution *w)
{
    if (w->pass == GPU_CONVOLUTION_FORWARD) return CUDA_TENSOR_Y;
    return w->pass == GPU_CONVOLUTION_GRAD_DATA ? CUDA_TENSOR_X : CUDA_TENSOR_WEIGHT;
}

/* --- operations --- */

static cudnn_descriptor add_window(cuda_descriptors *list, const gpu_library_convolution *w)
{
    cudnn_descriptor d = cuda_dnn_make(list, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set_enum(list, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    set_enum(list, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
    set_int(list, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, w->n_sides);
    cuda_dnn_set(list, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, w->n_sides, w->dilation);
    cuda_dnn_set(list, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, w->n_sides, w->stride);
    cuda_dnn_set(list, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, w->n_sides, w->pad_low);
    cuda_dnn_set(list, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, w->n_sides, w->pad_high);
    cuda_dnn_finish(list, d);
    return d;
}

/* Of a pass: its operation, and what its attributes are called; x, weight, y are dx, dweight, dy in gradients. */
typedef struct pass_names {
    int operation, window, x, weight, y, alpha, beta;
} pass_names;

static const pass_names names[] = {
    [GPU_CONVOLUTION_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    [GPU_CONVOLUTION_GRAD_DATA] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    [GPU_CONVOLUTION_GRAD_WEIGHT] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

static cudnn_descriptor add_convolution(cuda_descriptors *list, const gpu_library_convolution *w,
                                        cudnn_descriptor result)
{
    const pass_names *name = &names[w->pass];
    const float one = 1, zero = 0;
    const int type = type_of(w->dtype);
    cudnn_descriptor window = add_window(list, w), x = result, weight = result, y = result;
    if (w->pass != GPU_CONVOLUTION_GRAD_DATA)
        x = add_tensor(list, CUDA_TENSOR_X, type, w->n_sides, w->n_images, w->x_channels, w->x_side, false);
    if (w->pass != GPU_CONVOLUTION_GRAD_WEIGHT)
        weight = add_tensor(list, CUDA_TENSOR_WEIGHT, type, w->n_sides, w->y_channels, w->x_channels / w->groups,
                            w->taps, false);
    if (w->pass != GPU_CONVOLUTION_FORWARD)
        y = add_tensor(list, CUDA_TENSOR_Y, type, w->n_sides, w->n_images, w->y_channels, w->y_side, false);
    cudnn_descriptor d = cuda_dnn_make(list, name->operation);
    set_descriptor(list, d, name->window, window);
    set_descriptor(list, d, name->x, x);
    set_descriptor(list, d, name->weight, weight);
    set_descriptor(list, d, name->y, y);
    cuda_dnn_set(list, d, name->alpha, CUDNN_TYPE_FLOAT, 1, &one);
    cuda_dnn_set(list, d, name->beta, CUDNN_TYPE_FLOAT, 1, &zero);
    cuda_dnn_finish(list, d);
    return d;
}

/* added NULL: there is no second operand. A NaN stays one. */
static cudnn_descriptor add_pointwise(cuda_descriptors *list, int mode, cudnn_descriptor from, cudnn_descriptor added,
                                      cudnn_descriptor to)
{
    cudnn_descriptor what = cuda_dnn_make(list, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set_enum(list, what, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
    set_enum(list, what, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    if (mode == CUDNN_POINTWISE_RELU_FWD)
        set_enum(list, what, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, CUDNN_PROPAGATE_NAN);
    cuda_dnn_finish(list, what);
    cudnn_descriptor d = cuda_dnn_make(list, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set_descriptor(list, d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
    set_descriptor(list, d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, from);
    if (added) set_descriptor(list, d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, added);
    set_descriptor(list, d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to);
    cuda_dnn_finish(list, d);
    return d;
}

/* --- the graph --- */

cudnn_descriptor cuda_dnn_describe(const cuda_dnn *dnn, const gpu_library_convolution *w, cuda_descriptors *list)
{
    cudnn_descriptor operation[3];
    int n = 0;
    const int64_t channels = w->pass == GPU_CONVOLUTION_FORWARD ? w->y_channels : w->x_channels;
    /* Of 16 bits, f32 results are what only engines of fused graphs are good at: an identity makes it one. */
    const bool widens = w->dtype_out != w->dtype && !w->has_bias && !w->relu;
    const bool goes_on = w->has_bias || w->relu || widens;
    cudnn_descriptor out = add_result(list, w, number_of_result(w), type_of(w->dtype_out), false);
    cudnn_descriptor sum = goes_on ? add_result(list, w, 's', CUDNN_DATA_FLOAT, true) : out;
    operation[n++] = add_convolution(list, w, sum);
    if (w->has_bias) {
        cudnn_descriptor bias =
            add_tensor(list, CUDA_TENSOR_BIAS, CUDNN_DATA_FLOAT, w->n_sides, 1, channels, NULL, false);
        cudnn_descriptor to = w->relu ? add_result(list, w, 't', CUDNN_DATA_FLOAT, true) : out;
        operation[n++] = add_pointwise(list, CUDNN_POINTWISE_ADD, sum, bias, to);
        sum = to;
    }
    if (w->relu) operation[n++] = add_pointwise(list, CUDNN_POINTWISE_RELU_FWD, sum, NULL, out);
    if (widens) operation[n++] = add_pointwise(list, CUDNN_POINTWISE_IDENTITY, sum, NULL, out);
    cudnn_descriptor graph = cuda_dnn_make(list, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (dnn->handle) cuda_dnn_set(list, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &dnn->handle);
    cuda_dnn_set(list, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, operation);
    cuda_dnn_finish(list, graph);
    return list->code ? NULL : graph;
}
