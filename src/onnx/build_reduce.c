/* Over axes: sums and their kin, indices of maxima, running sums, softmax. */
#include <math.h>

#include "onnx/build_list.h"

/* y, which lacks the axes, with them as ones. */
static stk_value keep_axes(stk_value y, stk_shape x, uint32_t axes)
{
    for (int i = 0; i < x.rank; i++)
        if (axes >> i & 1) x.dim[i] = 1;
    return stk_reshape(y, x);
}

typedef enum reduction { SUM, MEAN, MAX, MIN, PROD, L1, L2, SUM_SQUARE, LOG_SUM, LOG_SUM_EXP } reduction;

/* log(sum(exp(x))) with the maximum taken out, so that nothing overflows, where it is a number. */
static stk_value log_sum_exp(stk_value x, uint32_t axes)
{
    stk_shape shape = stk_value_shape(x);
    stk_value most = stk_reduce_max(x, axes);
    most = stk_select(stk_less(stk_abs(most), stk_onnx_like(most, INFINITY)), most, stk_onnx_like(most, 0));
    stk_value rest = stk_sub(x, keep_axes(most, shape, axes));
    return stk_add(stk_log(stk_reduce_sum(stk_exp(rest), axes)), most);
}

static stk_value reduce(stk_value x, uint32_t axes, reduction kind)
{
    switch (kind) {
    case SUM: return stk_reduce_sum(x, axes);
    case MEAN: return stk_reduce_mean(x, axes);
    case MAX: return stk_reduce_max(x, axes);
    case MIN: return stk_reduce_min(x, axes);
    case PROD: return stk_reduce_prod(x, axes);
    case L1: return stk_reduce_sum(stk_abs(x), axes);
    case L2: return stk_sqrt(stk_reduce_sum(stk_square(x), axes));
    case SUM_SQUARE: return stk_reduce_sum(stk_square(x), axes);
    case LOG_SUM: return stk_log(stk_reduce_sum(x, axes));
    default: return log_sum_exp(x, axes);
    }
}

/* What is made of a number alone, where there are no axes. */
static stk_value of_one(stk_value x, reduction kind)
{
    switch (kind) {
    case L1:
    case L2: return stk_abs(x);
    case SUM_SQUARE: return stk_square(x);
    case LOG_SUM: return stk_log(x);
    default: return x;
    }
}

static stk_status build_reduce(stk_build *b, reduction kind)
{
    uint32_t axes;
    stk_value x = stk_onnx_input(b, 0);
    stk_shape shape = stk_value_shape(x);
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    STK_RETURN_IF_ERROR(
        stk_onnx_settle_axes(b, 1, shape.rank, !stk_onnx_attribute_int(b, "noop_with_empty_axes", 0), &axes));
    if (!axes) return stk_onnx_output(b, 0, of_one(x, kind));
    stk_dtype dtype = stk_value_dtype(x);
    stk_value y = stk_cast_to(reduce(dtype == STK_BOOL ? stk_cast_to(x, STK_U8) : x, axes, kind), dtype);
    return stk_onnx_output(b, 0, stk_onnx_attribute_int(b, "keepdims", 1) ? keep_axes(y, shape, axes) : y);
}

#define REDUCED(Name, kind)                                                                                            \
    stk_status stk_onnx_build_##Name(stk_build *b)                                                                     \
    {                                                                                                                  \
        return build_reduce(b, kind);                                                                                  \
    }
REDUCED(ReduceSum, SUM)
REDUCED(ReduceMean, MEAN)
REDUCED(ReduceMax, MAX)
REDUCED(ReduceMin, MIN)
REDUCED(ReduceProd, PROD)
REDUCED(ReduceL1, L1)
REDUCED(ReduceL2, L2)
REDUCED(ReduceSumSquare, SUM_SQUARE)
REDUCED(ReduceLogSum, LOG_SUM)
REDUCED(ReduceLogSumExp, LOG_SUM_EXP)

static stk_status build_arg(stk_build *b, bool least)
{
    int axis;
    stk_value x = stk_onnx_input(b, 0);
    stk_shape shape = stk_value_shape(x);
    STK_RETURN_IF_ERROR(stk_onnx_settle_axis(stk_onnx_attribute_int(b, "axis", 0), shape.rank, &axis));
    if (least && stk_value_dtype(x) == STK_U8) x = stk_cast_to(x, STK_I32);
    stk_value y = stk_argmax(least ? stk_neg(x) : x, axis, stk_onnx_attribute_int(b, "select_last_index", 0));
    if (stk_onnx_attribute_int(b, "keepdims", 1)) y = keep_axes(y, shape, 1u << axis);
    return stk_onnx_output(b, 0, stk_cast_to(y, STK_I64));
}

stk_status stk_onnx_build_ArgMax(stk_build *b)
{
    return build_arg(b, false);
}

stk_status stk_onnx_build_ArgMin(stk_build *b)
{
    return build_arg(b, true);
}

stk_status stk_onnx_build_CumSum(stk_build *b)
{
    const int64_t *list;
    int axis, n;
    stk_value x = stk_onnx_input(b, 0);
    STK_RETURN_IF_ERROR(stk_onnx_input_ints(b, 1, &list, &n));
    if (n != 1) return stk_fail(STK_INVALID, "its axis is not a number");
    STK_RETURN_IF_ERROR(stk_onnx_settle_axis(list[0], stk_value_shape(x).rank, &axis));
    return stk_onnx_output(
        b, 0, stk_cumsum(x, axis, stk_onnx_attribute_int(b, "exclusive", 0), stk_onnx_attribute_int(b, "reverse", 0)));
}

stk_value stk_onnx_log_softmax_of(stk_value x, int axis)
{
    stk_shape shape = stk_value_shape(x);
    uint32_t axes = 1u << axis;
    stk_value rest = stk_sub(x, keep_axes(stk_reduce_max(x, axes), shape, axes));
    return stk_sub(rest, stk_log(keep_axes(stk_reduce_sum(stk_exp(rest), axes), shape, axes)));
}

static stk_value softmax_of(stk_value x, int axis)
{
    return stk_onnx_axis_from_end(stk_softmax(stk_onnx_axis_to_end(x, axis)), axis);
}

/* 1 for the first of the largest. */
static stk_value hardmax_of(stk_value x, int axis)
{
    stk_shape shape = stk_value_shape(x);
    stk_value best = keep_axes(stk_argmax(x, axis, false), shape, 1u << axis);
    return stk_cast_to(stk_equal(stk_iota(x.graph, STK_I32, shape, axis), best), stk_value_dtype(x));
}

/* Before opset 13 the axes from the given one on counted as one. */
static stk_status build_soft(stk_build *b, stk_value (*f)(stk_value x, int axis))
{
    int axis;
    stk_value x = stk_onnx_input(b, 0);
    stk_shape shape = stk_value_shape(x);
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    STK_RETURN_IF_ERROR(
        stk_onnx_settle_axis(stk_onnx_attribute_int(b, "axis", b->opset < 13 ? 1 : -1), shape.rank, &axis));
    if (b->opset >= 13) return stk_onnx_output(b, 0, f(x, axis));
    stk_shape flat = STK_SHAPE(stk_shape_product(shape, 0, axis), stk_shape_product(shape, axis, shape.rank));
    return stk_onnx_output(b, 0, stk_reshape(f(stk_reshape(x, flat), 1), shape));
}

stk_status stk_onnx_build_Softmax(stk_build *b)
{
    return build_soft(b, softmax_of);
}

stk_status stk_onnx_build_LogSoftmax(stk_build *b)
{
    return build_soft(b, stk_onnx_log_softmax_of);
}

stk_status stk_onnx_build_Hardmax(stk_build *b)
{
    return build_soft(b, hardmax_of);
}
