/* GatherND: elements or slices by index vectors. */
#include "onnx/build_list.h"

/* What index number i counts in: the places of one step of it in x with its first n_index dimensions laid flat. */
static int64_t stride_of(stk_shape shape, int i, int n_index)
{
    return stk_shape_product(shape, i + 1, n_index);
}

/* Index vectors [..., n_index] as places [...]; negative ones count from the end. */
static stk_value place_of(stk_value ids, stk_shape shape, int n_index)
{
    stk_shape of = stk_value_shape(ids), to = of;
    stk_value place = stk_value_none(ids.graph);
    to.rank--;
    for (int i = 0; i < n_index; i++) {
        int64_t start[STK_MAX_RANK] = {0}, stop[STK_MAX_RANK], step[STK_MAX_RANK];
        for (int d = 0; d < of.rank; d++) {
            stop[d] = STK_ANY;
            step[d] = 1;
        }
        start[of.rank - 1] = i;
        stop[of.rank - 1] = i + 1;
        stk_value one = stk_cast_to(stk_reshape(stk_slice(ids, start, stop, step), to), STK_I32);
        stk_value below = stk_less(one, stk_onnx_like(one, 0));
        one = stk_select(below, stk_add(one, stk_onnx_like(one, (double)shape.dim[i])), one);
        one = stk_mul(one, stk_onnx_like(one, (double)stride_of(shape, i, n_index)));
        place = i ? stk_add(place, one) : one;
    }
    return place;
}

stk_status stk_onnx_place_of_vectors(stk_value x, stk_value ids, stk_value *rows, stk_value *place)
{
    stk_shape shape = stk_value_shape(x), of = stk_value_shape(ids), flat = {0};
    if (of.rank < 1 || of.dim[of.rank - 1] < 1 || of.dim[of.rank - 1] > shape.rank)
        return stk_fail(STK_INVALID, "its indices have no length between 1 and the rank of its input");
    int n_index = (int)of.dim[of.rank - 1];
    if (!stk_shape_known(shape)) return stk_fail(STK_UNSUPPORTED, "its input's size is not known");
    flat.dim[flat.rank++] = stk_shape_product(shape, 0, n_index);
    for (int i = n_index; i < shape.rank; i++)
        flat.dim[flat.rank++] = shape.dim[i];
    if (flat.dim[0] > INT32_MAX) return stk_fail(STK_UNSUPPORTED, "its input is too large");
    *rows = stk_reshape(x, flat);
    *place = place_of(ids, shape, n_index);
    return STK_OK;
}

/* The numbers of the batch's dimensions, put before each index. */
static stk_value with_batch(stk_value ids, int n_batch)
{
    stk_shape shape = stk_value_shape(ids);
    stk_value parts[STK_MAX_RANK + 1];
    shape.dim[shape.rank - 1] = 1;
    for (int i = 0; i < n_batch; i++)
        parts[i] = stk_iota(ids.graph, STK_I32, shape, i);
    parts[n_batch] = stk_cast_to(ids, STK_I32);
    return stk_concat(parts, n_batch + 1, shape.rank - 1);
}

stk_status stk_onnx_build_GatherND(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0), ids = stk_onnx_input(b, 1), rows, place;
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    int64_t n_batch = stk_onnx_attribute_int(b, "batch_dims", 0);
    if (n_batch < 0 || n_batch >= stk_value_shape(ids).rank || n_batch >= stk_value_shape(x).rank)
        return stk_fail(STK_INVALID, "its attribute 'batch_dims' is %lld", (long long)n_batch);
    if (n_batch && !stk_shape_known(stk_value_shape(ids)))
        return stk_fail(STK_UNSUPPORTED, "the size of its indices is not known");
    if (n_batch) ids = with_batch(ids, (int)n_batch);
    STK_RETURN_IF_ERROR(stk_onnx_place_of_vectors(x, ids, &rows, &place));
    return stk_onnx_output(b, 0, stk_gather(rows, place, 0));
}
