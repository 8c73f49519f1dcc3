/* Products and normalisations. */
#include "onnx/build_list.h"

/* Batches that differ become those of both, where one has 1 or none. One matrix on the right is for all as it is. */
static stk_status match_batches(stk_value *x, stk_value *y)
{
    stk_shape a = stk_value_shape(*x), c = stk_value_shape(*y), of_a = a, of_c = c, both;
    of_a.rank -= 2;
    of_c.rank -= 2;
    if (of_a.rank < 0 || of_c.rank <= 0 || stk_shape_equal(of_a, of_c)) return STK_OK;
    STK_RETURN_IF_ERROR(stk_shape_broadcast(of_a, of_c, &both));
    stk_shape to = both;
    to.rank += 2;
    for (int i = 0; i < 2; i++)
        to.dim[both.rank + i] = a.dim[of_a.rank + i];
    *x = stk_broadcast(*x, to);
    for (int i = 0; i < 2; i++)
        to.dim[both.rank + i] = c.dim[of_c.rank + i];
    *y = stk_broadcast(*y, to);
    return STK_OK;
}

/* numpy's matmul: vectors are rows on the left and columns on the right. */
static stk_value product(stk_value x, stk_value y)
{
    stk_shape a = stk_value_shape(x), c = stk_value_shape(y);
    bool row = a.rank == 1, column = c.rank == 1;
    if (row) x = stk_reshape(x, STK_SHAPE(1, a.dim[0]));
    if (column) y = stk_reshape(y, STK_SHAPE(c.dim[0], 1));
    if (stk_graph_keep_error(x.graph, match_batches(&x, &y)) != STK_OK) return stk_value_none(x.graph);
    stk_value z = stk_matmul(x, y, false, false);
    stk_shape shape = stk_value_shape(z), kept = {.rank = 0};
    for (int i = 0; i < shape.rank; i++)
        if (!(row && i == shape.rank - 2) && !(column && i == shape.rank - 1)) kept.dim[kept.rank++] = shape.dim[i];
    return row || column ? stk_reshape(z, kept) : z;
}

stk_status stk_onnx_build_MatMul(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0), y = stk_onnx_input(b, 1);
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    if (stk_value_shape(x).rank < 1 || stk_value_shape(y).rank < 1)
        return stk_fail(STK_INVALID, "its inputs are scalars");
    return stk_onnx_output(b, 0, product(x, y));
}

/* x + c for rows x. Where these are the batch's and something more, [N*T,C], c is added to [N,T,C], since what grows to
   an open side grows to the batch. */
static stk_status add_to_rows(stk_value x, stk_value c, stk_value *y)
{
    int64_t n = STK_ONNX_BATCH;
    STK_RETURN_IF_ERROR(stk_graph_status(x.graph));
    stk_shape shape = stk_value_shape(x), of = stk_value_shape(c);
    bool grows = of.rank < 2 || of.dim[0] == 1;
    if (shape.rank == 2 && shape.dim[0] == STK_ANY && grows) STK_RETURN_IF_ERROR(stk_onnx_size_by_batch(x, 0, &n));
    if (n == STK_ONNX_BATCH) {
        *y = stk_add(x, c);
        return STK_OK;
    }
    if (of.rank == 2) c = stk_reshape(c, STK_SHAPE(of.dim[1]));
    x = stk_reshape(x, STK_SHAPE(STK_ANY, n / STK_ONNX_BATCH, shape.dim[1]));
    *y = stk_reshape(stk_add(x, c), shape);
    return STK_OK;
}

stk_status stk_onnx_build_Gemm(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0), y = stk_onnx_input(b, 1);
    y = stk_matmul(x, y, stk_onnx_attribute_int(b, "transA", 0), stk_onnx_attribute_int(b, "transB", 0));
    double alpha = stk_onnx_attribute_float(b, "alpha", 1), beta = stk_onnx_attribute_float(b, "beta", 1);
    if (alpha != 1) y = stk_scale_by(y, alpha);
    if (stk_onnx_has_input(b, 2)) {
        stk_value c = beta != 1 ? stk_scale_by(stk_onnx_input(b, 2), beta) : stk_onnx_input(b, 2);
        STK_RETURN_IF_ERROR(add_to_rows(y, c, &y));
    }
    return stk_onnx_output(b, 0, y);
}

/* A vector of channels, shaped to fit [N,C,...]. */
static stk_value by_channel(stk_value c, int rank)
{
    stk_shape shape = {.rank = rank};
    for (int i = 0; i < rank; i++)
        shape.dim[i] = i == 1 ? stk_shape_count(stk_value_shape(c)) : 1;
    return stk_reshape(c, shape);
}

/* By its running statistics, in an op that passes know. */
static stk_value normalise_batch(stk_value x, const stk_value c[4], double eps)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.batch_norm.eps = eps;
    attrs.batch_norm.frozen = 1;
    return stk_graph_add(x.graph, STK_OP_batch_norm, &attrs, (stk_value[]){x, c[0], c[1], c[2], c[3]}, 5);
}

/* By the batch's statistics, which the running ones follow; x has its channels last. */
static stk_status train_on_batches(stk_build *b, stk_value x, const stk_value c[4], stk_value *y)
{
    stk_attrs attrs = stk_attrs_zero();
    for (int i = 2; i < 4; i++)
        if (stk_value_node(c[i])->op != STK_OP_variable)
            return stk_fail(STK_UNSUPPORTED,
                            "its input %d is computed: there is nothing to keep its running statistics in", i + 1);
    attrs.batch_norm.eps = stk_onnx_attribute_float(b, "epsilon", 1e-5);
    attrs.batch_norm.momentum = 1 - stk_onnx_attribute_float(b, "momentum", 0.9); /* ONNX's is the old one's share. */
    attrs.batch_norm.unbiased = b->model->is_pytorchs;
    *y = stk_graph_add(x.graph, STK_OP_batch_norm, &attrs, (stk_value[]){x, c[0], c[1], c[2], c[3]}, 5);
    stk_graph_update(x.graph, c[2], stk_value_sibling(*y, 3));
    stk_graph_update(x.graph, c[3], stk_value_sibling(*y, 4));
    return stk_graph_status(x.graph);
}

stk_status stk_onnx_build_BatchNormalization(stk_build *b)
{
    if (b->opset < 7 && !stk_onnx_attribute_int(b, "is_test", 0))
        return stk_fail(STK_UNSUPPORTED, "its attribute 'is_test' is 0: it is in training mode");
    if (b->opset >= 7 && b->opset < 14 && stk_onnx_has_output(b, 1))
        return stk_fail(STK_UNSUPPORTED, "it has more than one output: it is in training mode");
    stk_onnx_value *v = stk_onnx_input_entry(b, 0);
    bool nhwc = v && v->nhwc;
    stk_value x = nhwc ? v->value : stk_onnx_input(b, 0), c[4];
    int rank = stk_value_shape(x).rank;
    for (int i = 0; i < 4; i++) {
        c[i] = stk_onnx_input(b, 1 + i);
        if (c[i].id < 0 || rank < 2) return stk_fail(STK_INVALID, "it lacks an input, or channels");
        if (stk_shape_count(stk_value_shape(c[i])) != stk_value_shape(x).dim[nhwc ? rank - 1 : 1])
            return stk_fail(STK_INVALID, "its input %d is not one number for each channel", i + 1);
        if (i >= 2) stk_graph_freeze(c[i]);
    }
    if (b->model->trains_batch_norm && stk_value_dtype(x) == STK_F32) {
        stk_value y, last = nhwc ? x : stk_onnx_axis_to_end(x, 1);
        STK_RETURN_IF_ERROR(train_on_batches(b, last, c, &y));
        return nhwc ? stk_onnx_output_nhwc(b, 0, y) : stk_onnx_output(b, 0, stk_onnx_axis_from_end(y, 1));
    }
    for (int i = 0; i < 4; i++) {
        if (nhwc && stk_value_shape(c[i]).rank != 1)
            c[i] = stk_reshape(c[i], STK_SHAPE(stk_value_shape(x).dim[rank - 1]));
        if (!nhwc) c[i] = by_channel(c[i], rank);
    }
    if (nhwc && stk_value_dtype(x) == STK_F32)
        return stk_onnx_output_nhwc(b, 0, normalise_batch(x, c, stk_onnx_attribute_float(b, "epsilon", 1e-5)));
    stk_value factor = stk_mul(c[0], stk_rsqrt(stk_shift_by(c[3], stk_onnx_attribute_float(b, "epsilon", 1e-5))));
    stk_value y = stk_add(stk_mul(stk_sub(x, c[2]), factor), c[1]);
    return nhwc ? stk_onnx_output_nhwc(b, 0, y) : stk_onnx_output(b, 0, y);
}

/* (x - mean) / sqrt(var + eps) over the axes. */
static stk_value standardise(stk_value x, uint32_t axes, double eps)
{
    stk_shape kept = stk_value_shape(x);
    for (int i = 0; i < kept.rank; i++)
        if (axes >> i & 1) kept.dim[i] = 1;
    stk_value rest = stk_sub(x, stk_reshape(stk_reduce_mean(x, axes), kept));
    stk_value var = stk_reshape(stk_reduce_mean(stk_square(rest), axes), kept);
    return stk_mul(rest, stk_rsqrt(stk_shift_by(var, eps)));
}

stk_status stk_onnx_build_InstanceNormalization(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0), scale = stk_onnx_input(b, 1), bias = stk_onnx_input(b, 2);
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    int rank = stk_value_shape(x).rank;
    if (rank < 3) return stk_fail(STK_INVALID, "its input has %d dimensions", rank);
    stk_value y = standardise(x, ((1u << rank) - 1u) & ~3u, stk_onnx_attribute_float(b, "epsilon", 1e-5));
    return stk_onnx_output(b, 0, stk_add(stk_mul(y, by_channel(scale, rank)), by_channel(bias, rank)));
}

/* Scale and bias are of groups in opset 18, and of channels from 21 on. */
stk_status stk_onnx_build_GroupNormalization(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0), scale = stk_onnx_input(b, 1), bias = stk_onnx_input(b, 2);
    stk_shape shape = stk_value_shape(x);
    int64_t groups = stk_onnx_attribute_int(b, "num_groups", 0);
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    if (shape.rank < 3 || shape.dim[1] < 1 || groups < 1 || shape.dim[1] % groups)
        return stk_fail(STK_INVALID, "its channels do not make %lld equal groups", (long long)groups);
    stk_shape grouped = STK_SHAPE(shape.dim[0], groups, stk_shape_product(shape, 1, shape.rank) / groups);
    stk_value y = standardise(stk_reshape(x, grouped), 1u << 2, stk_onnx_attribute_float(b, "epsilon", 1e-5));
    if (b->opset < 21) y = stk_add(stk_mul(y, by_channel(scale, 3)), by_channel(bias, 3));
    y = stk_reshape(y, shape);
    if (b->opset >= 21) y = stk_add(stk_mul(y, by_channel(scale, shape.rank)), by_channel(bias, shape.rank));
    return stk_onnx_output(b, 0, y);
}

stk_status stk_onnx_build_MeanVarianceNormalization(stk_build *b)
{
    uint32_t axes;
    stk_value x = stk_onnx_input(b, 0);
    int rank = stk_value_shape(x).rank;
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    STK_RETURN_IF_ERROR(stk_onnx_settle_axes(b, 1, rank, false, &axes));
    if (!axes) axes = ((1u << rank) - 1u) & ~2u; /* The default_value: all but the channels. */
    return stk_onnx_output(b, 0, standardise(x, axes, 1e-9));
}

stk_status stk_onnx_build_LayerNormalization(stk_build *b)
{
    int axis;
    stk_value x = stk_onnx_input(b, 0), scale = stk_onnx_input(b, 1);
    stk_shape shape = stk_value_shape(x), stats = shape;
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    STK_RETURN_IF_ERROR(stk_onnx_settle_axis(stk_onnx_attribute_int(b, "axis", -1), shape.rank, &axis));
    int64_t n = stk_shape_product(shape, axis, shape.rank);
    bool is_open = axis > 0 && shape.dim[0] < 0;
    stk_shape rows = STK_SHAPE(is_open ? STK_ANY : stk_shape_product(shape, 0, axis), n), row = STK_SHAPE(n);
    for (int i = axis; i < shape.rank; i++)
        stats.dim[i] = 1;
    stk_value bias = stk_onnx_has_input(b, 2) ? stk_onnx_input(b, 2) : stk_scale_by(scale, 0);
    stk_value y = stk_layer_norm_raw(stk_reshape(x, rows), stk_reshape(scale, row), stk_reshape(bias, row),
                                     stk_onnx_attribute_float(b, "epsilon", 1e-5));
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    STK_RETURN_IF_ERROR(stk_onnx_output(b, 0, stk_reshape(y, shape)));
    if (stk_onnx_has_output(b, 1))
        STK_RETURN_IF_ERROR(stk_onnx_output(b, 1, stk_reshape(stk_value_sibling(y, 1), stats)));
    return stk_onnx_has_output(b, 2) ? stk_onnx_output(b, 2, stk_reshape(stk_value_sibling(y, 2), stats)) : STK_OK;
}

/* Krizhevsky et al. 2012: by the squares of neighbouring channels. */
stk_status stk_onnx_build_LRN(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0);
    stk_shape shape = stk_value_shape(x);
    int64_t size = stk_onnx_attribute_int(b, "size", 1), low[STK_MAX_RANK] = {0}, high[STK_MAX_RANK] = {0};
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    if (shape.rank < 2 || size < 1 || size > 1024) return stk_fail(STK_INVALID, "its size or its input does not fit");
    low[1] = (size - 1) / 2;
    high[1] = size - 1 - low[1];
    stk_value wide = stk_pad(stk_square(x), low, high, 0), sum = stk_value_none(x.graph);
    for (int64_t k = 0; k < size; k++) {
        int64_t start[STK_MAX_RANK] = {0}, stop[STK_MAX_RANK], step[STK_MAX_RANK];
        for (int i = 0; i < STK_MAX_RANK; i++) {
            stop[i] = STK_ANY;
            step[i] = 1;
        }
        start[1] = k;
        stop[1] = k + shape.dim[1];
        stk_value part = stk_slice(wide, start, stop, step);
        sum = k ? stk_add(sum, part) : part;
    }
    double alpha = stk_onnx_attribute_float(b, "alpha", 1e-4), beta = stk_onnx_attribute_float(b, "beta", 0.75);
    stk_value base = stk_shift_by(stk_scale_by(sum, alpha / (double)size), stk_onnx_attribute_float(b, "bias", 1));
    return stk_onnx_output(b, 0, stk_div(x, stk_pow(base, stk_onnx_like(base, beta))));
}

/* x / |x| along an axis, 0 where all is 0. */
stk_status stk_onnx_build_LpNormalization(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0);
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    stk_shape kept = stk_value_shape(x);
    bool absolute = stk_onnx_attribute_int(b, "p", 2) == 1;
    int axis;
    STK_RETURN_IF_ERROR(stk_onnx_settle_axis(stk_onnx_attribute_int(b, "axis", -1), kept.rank, &axis));
    kept.dim[axis] = 1;
    stk_value size = stk_reduce_sum(absolute ? stk_abs(x) : stk_square(x), 1u << axis);
    size = stk_reshape(absolute ? size : stk_sqrt(size), kept);
    stk_value zero = stk_onnx_like(x, 0);
    return stk_onnx_output(b, 0, stk_select(stk_equal(size, zero), zero, stk_div(x, size)));
}
