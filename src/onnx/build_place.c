/* Elements in other places: the middle of an axis, what a condition keeps, sequences turned over, rows written into a
 * cache, columns put back into an image.
 */
#include <string.h>

#include "onnx/build_list.h"

stk_value stk_onnx_cut(stk_value x, int axis, int64_t start, int64_t size)
{
    int64_t first[STK_MAX_RANK] = {0}, stop[STK_MAX_RANK], step[STK_MAX_RANK];
    for (int k = 0; k < STK_MAX_RANK; k++) {
        stop[k] = STK_ANY;
        step[k] = 1;
    }
    first[axis] = start;
    stop[axis] = start + size;
    return stk_slice(x, first, stop, step);
}

stk_status stk_onnx_build_CenterCropPad(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0);
    const int64_t *size;
    int n, n_axes = 0;
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    STK_RETURN_IF_ERROR(stk_onnx_input_ints(b, 1, &size, &n));
    const int64_t *axes = stk_onnx_attribute_ints(b, "axes", &n_axes);
    stk_shape shape = stk_value_shape(x);
    if (n != (axes ? n_axes : shape.rank)) return stk_fail(STK_INVALID, "its shape has not as many sizes as axes");
    int64_t low[STK_MAX_RANK] = {0}, high[STK_MAX_RANK] = {0};
    for (int i = 0; i < n; i++) {
        int axis;
        STK_RETURN_IF_ERROR(stk_onnx_settle_axis(axes ? axes[i] : i, shape.rank, &axis));
        int64_t more = size[i] - shape.dim[axis];
        if (size[i] < 0 || shape.dim[axis] == STK_ANY) return stk_fail(STK_UNSUPPORTED, "a size is not known");
        if (more < 0) x = stk_onnx_cut(x, axis, -more / 2, size[i]);
        low[axis] = more > 0 ? more / 2 : 0;
        high[axis] = more > 0 ? more - more / 2 : 0;
    }
    return stk_onnx_output(b, 0, stk_pad(x, low, high, 0));
}

stk_status stk_onnx_build_Compress(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0);
    const int64_t *keep;
    int n, axis = 0;
    int32_t *ids;
    int64_t n_kept = 0;
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    STK_RETURN_IF_ERROR(stk_onnx_input_ints(b, 1, &keep, &n));
    stk_shape shape = stk_value_shape(x);
    if (!stk_shape_known(shape)) return stk_fail(STK_UNSUPPORTED, "its input's shape is not known");
    if (stk_onnx_attribute(b, "axis"))
        STK_RETURN_IF_ERROR(stk_onnx_settle_axis(stk_onnx_attribute_int(b, "axis", 0), shape.rank, &axis));
    else
        x = stk_reshape(x, STK_SHAPE(stk_shape_count(shape)));
    if (n > stk_value_shape(x).dim[axis]) return stk_fail(STK_INVALID, "its condition is longer than the axis");
    STK_RETURN_IF_ERROR(stk_onnx_new_ids(b, n, &ids));
    for (int i = 0; i < n; i++)
        if (keep[i]) ids[n_kept++] = i;
    return stk_onnx_output(b, 0, stk_gather(x, stk_onnx_index_value(b, ids, n_kept), axis));
}

/* How many there are decides about the shape, and so x must be known. */
stk_status stk_onnx_build_NonZero(stk_build *b)
{
    const stk_onnx_tensor *x;
    STK_RETURN_IF_ERROR(stk_onnx_input_tensor(b, 0, &x));
    int64_t n = stk_shape_count(x->shape), n_found = 0, at = 0;
    stk_shape shape = x->shape.rank ? x->shape : STK_SHAPE(1); /* a number is a list of one */
    for (int64_t i = 0; i < n; i++)
        n_found += stk_onnx_number(x, i) != 0;
    int64_t *places = stk_arena_alloc(b->model->arena, (size_t)(n_found * shape.rank + 1) * sizeof(*places));
    if (!places) return stk_fail_memory((size_t)n_found * sizeof(*places));
    for (int64_t i = 0; i < n; i++) {
        if (stk_onnx_number(x, i) == 0) continue;
        for (int axis = 0; axis < shape.rank; axis++)
            places[axis * n_found + at] = i / stk_shape_product(shape, axis + 1, shape.rank) % shape.dim[axis];
        at++;
    }
    return stk_onnx_output_tensor(b, 0, STK_I64, STK_SHAPE(shape.rank, n_found), places);
}

/* x with that axis behind the first one. Its own inverse only where axis is 0 or 1. */
static stk_value axis_second(stk_value x, int axis, bool back)
{
    int32_t p[STK_MAX_RANK];
    int rank = stk_value_shape(x).rank, n = 0;
    p[n++] = 0;
    p[n++] = axis;
    for (int i = 1; i < rank; i++)
        if (i != axis) p[n++] = i;
    int32_t inverse[STK_MAX_RANK];
    for (int i = 0; i < rank; i++)
        inverse[p[i]] = i;
    return stk_transpose(x, back ? inverse : p);
}

/* Rows [B,s,...] of x by number [B,S] within each sample. */
static stk_value pick_rows(stk_value x, stk_value number)
{
    stk_shape shape = stk_value_shape(x), flat = {.rank = shape.rank - 1};
    flat.dim[0] = shape.dim[0] * shape.dim[1];
    for (int i = 2; i < shape.rank; i++)
        flat.dim[i - 1] = shape.dim[i];
    stk_value sample = stk_iota(x.graph, STK_I32, STK_SHAPE(shape.dim[0], 1), 0);
    stk_value first = stk_mul(sample, stk_onnx_like(sample, (double)shape.dim[1]));
    return stk_gather(stk_reshape(x, flat), stk_add(first, number), 0);
}

stk_status stk_onnx_build_ReverseSequence(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0), lengths = stk_onnx_input(b, 1);
    int64_t batch = stk_onnx_attribute_int(b, "batch_axis", 1), time = stk_onnx_attribute_int(b, "time_axis", 0);
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    stk_shape shape = stk_value_shape(x);
    if (shape.rank < 2 || batch < 0 || batch > 1 || time != 1 - batch)
        return stk_fail(STK_INVALID, "its axes of batch and time must be 0 and 1");
    if (!stk_shape_known(shape)) return stk_fail(STK_UNSUPPORTED, "its input's shape is not known");
    int32_t swap[STK_MAX_RANK] = {1, 0};
    for (int i = 2; i < shape.rank; i++)
        swap[i] = i;
    if (batch == 1) x = stk_transpose(x, swap);
    int64_t n = shape.dim[batch], n_steps = shape.dim[time];
    stk_value step = stk_iota(x.graph, STK_I32, STK_SHAPE(1, n_steps), 1);
    stk_value end = stk_reshape(stk_cast_to(lengths, STK_I32), STK_SHAPE(n, 1));
    stk_value from_end = stk_sub(stk_sub(end, stk_onnx_like(end, 1)), step);
    stk_value y = pick_rows(x, stk_select(stk_less(step, end), from_end, step));
    return stk_onnx_output(b, 0, batch == 1 ? stk_transpose(y, swap) : y);
}

stk_status stk_onnx_build_TensorScatter(stk_build *b)
{
    stk_value cache = stk_onnx_input(b, 0), rows = stk_onnx_input(b, 1);
    int axis;
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    stk_shape shape = stk_value_shape(cache), part = stk_value_shape(rows);
    STK_RETURN_IF_ERROR(stk_onnx_settle_axis(stk_onnx_attribute_int(b, "axis", -2), shape.rank, &axis));
    if (axis == 0 || part.rank != shape.rank) return stk_fail(STK_INVALID, "its axis or its update does not fit");
    if (!stk_shape_known(shape) || !stk_shape_known(part)) return stk_fail(STK_UNSUPPORTED, "a shape is not known");
    int64_t n = shape.dim[0], n_all = shape.dim[axis], n_rows = part.dim[axis];
    if (n_rows < 1) return stk_onnx_output(b, 0, cache);
    stk_value place = stk_iota(cache.graph, STK_I32, STK_SHAPE(1, n_all), 1), number = place;
    stk_value zero = stk_onnx_like(place, 0);
    if (stk_onnx_has_input(b, 2))
        number = stk_sub(place, stk_reshape(stk_cast_to(stk_onnx_input(b, 2), STK_I32), STK_SHAPE(n, 1)));
    number = stk_broadcast(number, STK_SHAPE(n, n_all));
    if (stk_onnx_attribute_is(b, "mode", "circular"))
        number = stk_select(stk_less(number, zero), stk_add(number, stk_onnx_like(number, (double)n_all)), number);
    stk_value last = stk_onnx_like(number, (double)(n_rows - 1));
    stk_value held = stk_min(stk_max(number, zero), last), is_new = stk_equal(held, number);
    stk_value picked = pick_rows(axis_second(rows, axis, false), held), old = axis_second(cache, axis, false);
    stk_shape marks = {.rank = shape.rank, .dim = {n, n_all}};
    for (int i = 2; i < shape.rank; i++)
        marks.dim[i] = 1;
    stk_value y = stk_select(stk_reshape(is_new, marks), picked, old);
    return stk_onnx_output(b, 0, axis_second(y, axis, true));
}

/* --- Col2Im --- */

enum { MOST_DIMS = 5 };

typedef struct columns {
    int n_dims;
    int64_t image[MOST_DIMS], block[MOST_DIMS], padded[MOST_DIMS], places[MOST_DIMS];
    int64_t low[MOST_DIMS], stride[MOST_DIMS], dilation[MOST_DIMS];
    int64_t n_block, n_places, n_padded;
} columns;

static stk_status read_columns(stk_build *b, columns *c)
{
    const int64_t *image, *block;
    int n, n_block, n_pads = 0, n_strides = 0, n_dilations = 0;
    STK_RETURN_IF_ERROR(stk_onnx_input_ints(b, 1, &image, &n));
    STK_RETURN_IF_ERROR(stk_onnx_input_ints(b, 2, &block, &n_block));
    const int64_t *pads = stk_onnx_attribute_ints(b, "pads", &n_pads);
    const int64_t *strides = stk_onnx_attribute_ints(b, "strides", &n_strides);
    const int64_t *dilations = stk_onnx_attribute_ints(b, "dilations", &n_dilations);
    if (n < 1 || n > MOST_DIMS || n_block != n || (pads && n_pads != 2 * n) || (strides && n_strides != n) ||
        (dilations && n_dilations != n))
        return stk_fail(STK_INVALID, "its sizes do not fit each other, or are more than %d", MOST_DIMS);
    *c = (columns){.n_dims = n, .n_block = 1, .n_places = 1, .n_padded = 1};
    for (int i = 0; i < n; i++) {
        int64_t low = pads ? pads[i] : 0, high = pads ? pads[n + i] : 0;
        c->image[i] = image[i];
        c->block[i] = block[i];
        c->low[i] = low;
        c->stride[i] = strides ? strides[i] : 1;
        c->dilation[i] = dilations ? dilations[i] : 1;
        if (image[i] < 1 || block[i] < 1 || low < 0 || high < 0 || c->stride[i] < 1 || c->dilation[i] < 1 ||
            image[i] > 1 << 20 || block[i] > 1 << 20 || low > 1 << 20 || high > 1 << 20 || c->dilation[i] > 1 << 20)
            return stk_fail(STK_INVALID, "a size is out of range");
        c->padded[i] = image[i] + low + high;
        int64_t extent = c->dilation[i] * (block[i] - 1) + 1;
        if (extent > c->padded[i]) return stk_fail(STK_INVALID, "its blocks are larger than the image");
        c->places[i] = (c->padded[i] - extent) / c->stride[i] + 1;
        c->n_block *= block[i];
        c->n_places *= c->places[i];
        c->n_padded *= c->padded[i];
        if (c->n_padded > 1 << 24 || c->n_block > 1 << 24 || c->n_places > 1 << 24)
            return stk_fail(STK_UNSUPPORTED, "its image has more than 16777216 pixels");
    }
    return STK_OK;
}

/* Where element k of the block at place l goes. */
static int32_t pixel_of(const columns *c, int64_t k, int64_t l)
{
    int64_t at = 0, step = 1;
    for (int i = c->n_dims - 1; i >= 0; i--) {
        at += (l % c->places[i] * c->stride[i] + k % c->block[i] * c->dilation[i]) * step;
        step *= c->padded[i];
        k /= c->block[i];
        l /= c->places[i];
    }
    return (int32_t)at;
}

stk_status stk_onnx_build_Col2Im(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0);
    columns c = {0};
    int32_t *ids;
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    STK_RETURN_IF_ERROR(read_columns(b, &c));
    stk_shape shape = stk_value_shape(x);
    if (shape.rank != 3 || !stk_shape_known(shape) || shape.dim[1] % c.n_block || shape.dim[2] != c.n_places)
        return stk_fail(STK_INVALID, "its input does not fit its image and blocks");
    int64_t n = shape.dim[0], channels = shape.dim[1] / c.n_block, n_all = c.n_block * c.n_places;
    STK_RETURN_IF_ERROR(stk_onnx_new_ids(b, n_all, &ids));
    for (int64_t i = 0; i < n_all; i++)
        ids[i] = pixel_of(&c, i / c.n_places, i % c.n_places);
    stk_value rows = stk_reshape(stk_transpose(stk_reshape(x, STK_SHAPE(n * channels, n_all)), (int32_t[]){1, 0}),
                                 STK_SHAPE(n_all, n * channels));
    stk_value zeros = stk_broadcast(stk_onnx_like(x, 0), STK_SHAPE(c.n_padded, n * channels));
    stk_value sums = stk_scatter_add(zeros, stk_onnx_index_value(b, ids, n_all), rows, 0);
    stk_shape image = {.rank = 2 + c.n_dims, .dim = {n, channels}};
    if (image.rank > STK_MAX_RANK) return stk_fail(STK_UNSUPPORTED, "its image has too many dimensions");
    for (int i = 0; i < c.n_dims; i++)
        image.dim[2 + i] = c.padded[i];
    stk_value y = stk_reshape(stk_transpose(sums, (int32_t[]){1, 0}), image);
    for (int i = 0; i < c.n_dims; i++)
        y = stk_onnx_cut(y, 2 + i, c.low[i], c.image[i]);
    return stk_onnx_output(b, 0, y);
}
