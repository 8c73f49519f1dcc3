/* TopK and CumProd: order and products along an axis. */
#include "onnx/build_list.h"

enum { MOST_SORTED = 4096 };

/* Whether a comes before b: the larger or the smaller first, of equal ones the first; NaN counts as the largest. */
static stk_value comes_before(stk_value a, stk_value b, stk_value a_is_first, bool largest)
{
    stk_value before = largest ? stk_greater(a, b) : stk_less(a, b), same = stk_equal(a, b);
    stk_value no = stk_not_equal(a_is_first, a_is_first);
    if (stk_dtype_is_float(stk_value_dtype(a))) {
        stk_value a_nan = stk_not_equal(a, a), b_nan = stk_not_equal(b, b);
        before = stk_select(largest ? a_nan : b_nan, stk_not_equal(a_nan, b_nan), before);
        same = stk_select(a_nan, b_nan, same);
    }
    return stk_select(before, before, stk_select(same, a_is_first, no));
}

/* x [..., n] -> [..., k]: the indices of the first k, i32. Each element's rank is how many come before it. */
static stk_value order_of(stk_value x, int64_t k, bool largest)
{
    stk_shape shape = stk_value_shape(x), column = shape, row = shape, at = {.rank = shape.rank + 1};
    int64_t n = shape.dim[shape.rank - 1];
    int last = shape.rank;
    column.rank = row.rank = at.rank;
    column.dim[last - 1] = n;
    column.dim[last] = 1;
    row.dim[last - 1] = 1;
    row.dim[last] = n;
    for (int i = 0; i < at.rank; i++)
        at.dim[i] = 1;
    stk_shape columns = at, rows = at;
    columns.dim[last - 1] = n;
    rows.dim[last] = n;
    stk_value i = stk_iota(x.graph, STK_I32, columns, last - 1), j = stk_iota(x.graph, STK_I32, rows, last);
    stk_value before = comes_before(stk_reshape(x, row), stk_reshape(x, column), stk_less(j, i), largest);
    stk_value rank = stk_reduce_sum(stk_cast_to(before, STK_I32), 1u << last);
    /* The element whose rank is r stands at r. */
    stk_shape places = at;
    places.dim[last - 1] = k;
    stk_value place = stk_iota(x.graph, STK_I32, places, last - 1);
    stk_value here = stk_equal(stk_reshape(rank, row), place);
    return stk_reduce_max(stk_select(here, j, stk_onnx_like(j, 0)), 1u << last);
}

stk_status stk_onnx_build_TopK(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0);
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    stk_shape shape = stk_value_shape(x);
    int axis, n = 1;
    int64_t k = stk_onnx_attribute_int(b, "k", 1);
    const int64_t *list;
    STK_RETURN_IF_ERROR(stk_onnx_settle_axis(stk_onnx_attribute_int(b, "axis", -1), shape.rank, &axis));
    if (b->opset >= 10) {
        STK_RETURN_IF_ERROR(stk_onnx_input_ints(b, 1, &list, &n));
        if (n == 1) k = list[0];
    }
    if (n != 1 || k < 0 || k > shape.dim[axis])
        return stk_fail(STK_INVALID, "its k is %lld of %lld", (long long)k, (long long)shape.dim[axis]);
    if (shape.rank + 1 > STK_MAX_RANK || shape.dim[axis] < 1 || shape.dim[axis] > MOST_SORTED)
        return stk_fail(STK_UNSUPPORTED, "its axis has %lld numbers, and can have 1 to %d here",
                        (long long)shape.dim[axis], MOST_SORTED);
    stk_value moved = stk_onnx_axis_to_end(x, axis);
    stk_value ids = order_of(moved, k, stk_onnx_attribute_int(b, "largest", 1) != 0);
    stk_shape of = stk_value_shape(moved), to = of;
    if (!stk_shape_known(of) && of.rank > 1) return stk_fail(STK_UNSUPPORTED, "its input's size is not known");
    to.dim[to.rank - 1] = k;
    stk_value place = stk_onnx_place_of_elements(ids, of, of.rank - 1);
    stk_value values = stk_reshape(stk_gather(stk_reshape(moved, STK_SHAPE(stk_shape_count(of))), place, 0), to);
    STK_RETURN_IF_ERROR(stk_onnx_output(b, 0, stk_onnx_axis_from_end(values, axis)));
    if (!stk_onnx_has_output(b, 1)) return STK_OK;
    return stk_onnx_output(b, 1, stk_cast_to(stk_onnx_axis_from_end(ids, axis), STK_I64));
}

/* x with n ones before its axis, as long as before. */
static stk_value shift(stk_value x, int axis, int64_t n)
{
    int64_t start[STK_MAX_RANK] = {0}, stop[STK_MAX_RANK], step[STK_MAX_RANK], low[STK_MAX_RANK] = {0},
            high[STK_MAX_RANK] = {0};
    stk_shape shape = stk_value_shape(x);
    for (int i = 0; i < shape.rank; i++) {
        stop[i] = STK_ANY;
        step[i] = 1;
    }
    stop[axis] = shape.dim[axis] - n;
    low[axis] = n;
    return stk_pad(stk_slice(x, start, stop, step), low, high, 1);
}

static stk_value reversed(stk_build *b, stk_value x, int axis)
{
    int64_t n = stk_value_shape(x).dim[axis];
    int32_t *ids;
    if (stk_graph_keep_error(x.graph, stk_onnx_new_ids(b, n, &ids)) != STK_OK) return stk_value_none(x.graph);
    for (int64_t i = 0; i < n; i++)
        ids[i] = (int32_t)(n - 1 - i);
    return stk_gather(x, stk_onnx_index_value(b, ids, n), axis);
}

/* Products of 2, 4, 8, ... neighbours, so that there are few steps. */
stk_status stk_onnx_build_CumProd(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0);
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    const int64_t *list;
    int axis, n;
    bool reverse = stk_onnx_attribute_int(b, "reverse", 0) != 0;
    STK_RETURN_IF_ERROR(stk_onnx_input_ints(b, 1, &list, &n));
    if (n != 1) return stk_fail(STK_INVALID, "its axis is not one number");
    STK_RETURN_IF_ERROR(stk_onnx_settle_axis(list[0], stk_value_shape(x).rank, &axis));
    int64_t size = stk_value_shape(x).dim[axis];
    if (size < 1) return stk_fail(STK_UNSUPPORTED, "its axis has no known size");
    if (reverse) x = reversed(b, x, axis);
    if (stk_onnx_attribute_int(b, "exclusive", 0)) x = shift(x, axis, 1);
    for (int64_t done = 1; done < size; done *= 2)
        x = stk_mul(x, shift(x, axis, done));
    return stk_onnx_output(b, 0, reverse ? reversed(b, x, axis) : x);
}
