/* See cudnn.h: a graph of operations understood as one convolution. Only what Stoker describes is understood. */
#include "device/play/cudnn.h"

#include <string.h>

#include "device/play/product.h"

/* Of a pass: how its operation calls what it is of. */
static const struct {
    int kind, window, x, weight, y, alpha, beta;
} passes[] = {
    [PLAY_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    [PLAY_GRAD_DATA] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    [PLAY_GRAD_WEIGHT] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

static int pass_of(const dnn_descriptor *operation)
{
    for (int i = PLAY_FORWARD; i <= PLAY_GRAD_WEIGHT; i++)
        if (passes[i].kind == operation->kind) return i;
    return -1;
}

static int type_of(const dnn_descriptor *tensor)
{
    const int type = dnn_enum(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE);
    return type == CUDNN_DATA_FLOAT ? TYPE_F32 : type == CUDNN_DATA_HALF ? TYPE_F16 : TYPE_BF16;
}

static bool is_virtual(const dnn_descriptor *tensor)
{
    const dnn_value *v = dnn_find(tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
    return v && *(const bool *)v->bytes;
}

/* Its sizes, which are N, C, sides; false: it does not lie with its channels last, or has another rank. */
static bool take_tensor(const dnn_descriptor *tensor, int n_sides, int64_t *outer, int64_t *channels, int64_t *side)
{
    const dnn_value *dim = dnn_find(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS);
    const dnn_value *stride = dnn_find(tensor, CUDNN_ATTR_TENSOR_STRIDES);
    const int64_t *d = dim->bytes, *s = stride->bytes;
    if (dim->n != 2 + n_sides || stride->n != dim->n || dnn_int(tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) < 1)
        return false;
    *outer = d[0];
    *channels = d[1];
    int64_t step = d[1];
    bool fits = s[1] == 1 && d[0] > 0 && d[1] > 0;
    for (int i = n_sides - 1; i >= 0; i--) {
        side[i] = d[2 + i];
        fits = fits && s[2 + i] == step && d[2 + i] > 0;
        step *= d[2 + i];
    }
    return fits && s[0] == step;
}

static bool take_window(const dnn_descriptor *window, play_convolution *p)
{
    const struct {
        int attribute;
        int64_t *to;
    } all[] = {{CUDNN_ATTR_CONVOLUTION_DILATIONS, p->dilation},
               {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, p->stride},
               {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, p->pad_low},
               {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, p->pad_high}};
    p->n_sides = (int32_t)dnn_int(window, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
    if (p->n_sides < 2 || p->n_sides > 3) return false;
    for (int i = 0; i < 4; i++) {
        const dnn_value *v = dnn_find(window, all[i].attribute);
        if (v->n != p->n_sides) return false;
        memcpy(all[i].to, v->bytes, (size_t)v->n * sizeof(int64_t));
    }
    return dnn_enum(window, CUDNN_ATTR_CONVOLUTION_COMP_TYPE) == CUDNN_DATA_FLOAT &&
           dnn_enum(window, CUDNN_ATTR_CONVOLUTION_CONV_MODE) == CUDNN_CROSS_CORRELATION;
}

/* Sizes that fit each other, as the real one checks them. */
static bool fits(const play_convolution *p, int64_t n_y, int64_t o, int64_t group)
{
    if (n_y != p->n_images || o != p->y_channels || p->x_channels % group) return false;
    if (p->y_channels % (p->x_channels / group)) return false;
    for (int i = 0; i < p->n_sides; i++) {
        const int64_t span = p->x_side[i] + p->pad_low[i] + p->pad_high[i] - p->dilation[i] * (p->taps[i] - 1) - 1;
        if (span < 0 || p->stride[i] < 1 || span / p->stride[i] + 1 != p->y_side[i]) return false;
    }
    return true;
}

int dnn_finish_operation(dnn_descriptor *d)
{
    play_convolution *p = &d->convolution;
    int64_t n_y = 0, o = 0, group = 0;
    const int pass = pass_of(d);
    const dnn_descriptor *x = dnn_other(d, passes[pass].x, 0), *weight = dnn_other(d, passes[pass].weight, 0);
    const dnn_descriptor *y = dnn_other(d, passes[pass].y, 0);
    const float alpha = *(const float *)dnn_find(d, passes[pass].alpha)->bytes;
    const float beta = *(const float *)dnn_find(d, passes[pass].beta)->bytes;
    *p = (play_convolution){.pass = pass};
    if (!take_window(dnn_other(d, passes[pass].window, 0), p) || alpha != 1 || beta != 0 ||
        !take_tensor(x, p->n_sides, &p->n_images, &p->x_channels, p->x_side) ||
        !take_tensor(weight, p->n_sides, &o, &group, p->taps) ||
        !take_tensor(y, p->n_sides, &n_y, &p->y_channels, p->y_side) || !fits(p, n_y, o, group))
        return dnn_misuse(CUDNN_STATUS_BAD_PARAM, "cuDNN: a convolution whose parts do not fit each other");
    p->groups = p->x_channels / group;
    p->type = type_of(pass == PLAY_FORWARD ? x : y);
    if (type_of(pass == PLAY_GRAD_WEIGHT ? x : weight) != p->type) return CUDNN_STATUS_NOT_SUPPORTED;
    p->number[0] = dnn_int(x, CUDNN_ATTR_TENSOR_UNIQUE_ID);
    p->number[1] = dnn_int(weight, CUDNN_ATTR_TENSOR_UNIQUE_ID);
    p->number[2] = dnn_int(y, CUDNN_ATTR_TENSOR_UNIQUE_ID);
    return 0;
}

static const dnn_descriptor *result_of(const dnn_descriptor *operation)
{
    const int pass = pass_of(operation);
    if (pass < 0) return dnn_other(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 0);
    return dnn_other(operation,
                     pass == PLAY_FORWARD     ? passes[pass].y
                     : pass == PLAY_GRAD_DATA ? passes[pass].x
                                              : passes[pass].weight,
                     0);
}

/* What follows: a bias, ReLU, an identity, in this order, of sums in f32. */
static int add_pointwise(play_convolution *p, const dnn_descriptor *operation, const dnn_descriptor *from)
{
    const dnn_descriptor *what = dnn_other(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 0);
    const dnn_descriptor *bias = dnn_other(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 0);
    int64_t one = 0, channels = 0, side[3] = {0};
    if (dnn_other(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 0) != from || !is_virtual(from) ||
        type_of(from) != TYPE_F32 || dnn_enum(what, CUDNN_ATTR_POINTWISE_MATH_PREC) != CUDNN_DATA_FLOAT)
        return dnn_misuse(CUDNN_STATUS_BAD_PARAM, "cuDNN: an operation that does not go on with the one before it");
    switch (dnn_enum(what, CUDNN_ATTR_POINTWISE_MODE)) {
    case CUDNN_POINTWISE_ADD:
        if (!bias || p->has_bias || p->relu || !take_tensor(bias, p->n_sides, &one, &channels, side) || one != 1 ||
            channels != play_convolution_count(p, 3) || type_of(bias) != TYPE_F32)
            return dnn_misuse(CUDNN_STATUS_BAD_PARAM, "cuDNN: a bias that is none");
        p->has_bias = 1;
        p->number[3] = dnn_int(bias, CUDNN_ATTR_TENSOR_UNIQUE_ID);
        return 0;
    case CUDNN_POINTWISE_RELU_FWD:
        if (dnn_enum(what, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION) != CUDNN_PROPAGATE_NAN)
            return dnn_misuse(CUDNN_STATUS_BAD_PARAM, "cuDNN: a ReLU that loses what is not a number");
        p->relu = 1;
        return 0;
    case CUDNN_POINTWISE_IDENTITY: return 0;
    default: return dnn_misuse(CUDNN_STATUS_NOT_SUPPORTED, "cuDNN: an operation that is not played");
    }
}

int dnn_finish_graph(dnn_descriptor *d)
{
    const dnn_descriptor *first = dnn_other(d, CUDNN_ATTR_OPERATIONGRAPH_OPS, 0), *operation = first;
    if (pass_of(first) < 0) return dnn_misuse(CUDNN_STATUS_NOT_SUPPORTED, "cuDNN: a graph without a convolution");
    d->convolution = first->convolution;
    for (int i = 1; (operation = dnn_other(d, CUDNN_ATTR_OPERATIONGRAPH_OPS, i)); i++) {
        int code =
            add_pointwise(&d->convolution, operation, result_of(dnn_other(d, CUDNN_ATTR_OPERATIONGRAPH_OPS, i - 1)));
        if (code) return code;
        first = operation;
    }
    const dnn_descriptor *out = result_of(first);
    if (is_virtual(out)) return dnn_misuse(CUDNN_STATUS_BAD_PARAM, "cuDNN: a graph that writes nothing");
    d->convolution.type_out = type_of(out);
    d->convolution.number[d->convolution.pass == PLAY_FORWARD     ? 2
                          : d->convolution.pass == PLAY_GRAD_DATA ? 0
                                                                  : 1] = dnn_int(out, CUDNN_ATTR_TENSOR_UNIQUE_ID);
    return 0;
}
