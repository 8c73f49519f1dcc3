/* Shapes: elements stay as they are and go elsewhere. */
#include <stdlib.h>
#include <string.h>

#include "onnx/build_list.h"

enum { MOST_IDS = 1 << 24 };

/* The shape of input i; false after an error. */
static bool shape_of(stk_build *b, int i, stk_value *x, stk_shape *shape)
{
    *x = stk_onnx_input(b, i);
    *shape = stk_value_shape(*x);
    return x->id >= 0;
}

#define BEGIN                                                                                                          \
    stk_value x;                                                                                                       \
    stk_shape shape;                                                                                                   \
    if (!shape_of(b, 0, &x, &shape)) return stk_graph_status(b->model->graph)

static stk_status shape_from(const int64_t *list, int n, stk_shape *out)
{
    *out = (stk_shape){.rank = n};
    if (n > STK_MAX_RANK) return stk_fail(STK_UNSUPPORTED, "%d dimensions are too many", n);
    for (int i = 0; i < n; i++) {
        bool is_open = stk_onnx_is_batch(list[i]);
        if (list[i] < -1 || (list[i] > INT32_MAX && !is_open))
            return stk_fail(STK_INVALID, "a dimension is %lld", (long long)list[i]);
        out->dim[i] = is_open ? STK_ANY : list[i];
    }
    return STK_OK;
}

/* [0,3,-1] of [?,12,6,7], or with the batch's size, or a multiple of it, on both sides: -1 follows from the rest. */
static stk_status infer_beside_batch(stk_value x, const int64_t *list, stk_shape *to)
{
    stk_shape from = stk_value_shape(x);
    int64_t known = 1, batch = STK_ONNX_BATCH;
    int inferred = -1;
    if (from.rank < 1 || to->rank < 1 || from.dim[0] != STK_ANY || to->dim[0] != STK_ANY) return STK_OK;
    if (list[0] != 0) {
        if (!stk_onnx_is_batch(list[0])) return STK_OK;
        STK_RETURN_IF_ERROR(stk_onnx_size_by_batch(x, 0, &batch));
        known = list[0] / STK_ONNX_BATCH;
    }
    for (int i = 1; i < to->rank; i++) {
        if (list[i] == -1 && inferred < 0)
            inferred = i;
        else if (to->dim[i] <= 0 || to->dim[i] > INT32_MAX || known > INT32_MAX)
            return STK_OK;
        else
            known *= to->dim[i];
    }
    int64_t n = stk_shape_product(from, 1, from.rank) * (batch / STK_ONNX_BATCH);
    if (inferred > 0 && n > 0 && n % known == 0) to->dim[inferred] = n / known;
    return STK_OK;
}

stk_status stk_onnx_build_Reshape(stk_build *b)
{
    BEGIN;
    int n = 0;
    stk_shape to;
    const int64_t *list = stk_onnx_attribute_ints(b, "shape", &n);
    if (!list) STK_RETURN_IF_ERROR(stk_onnx_input_ints(b, 1, &list, &n));
    STK_RETURN_IF_ERROR(shape_from(list, n, &to));
    for (int i = 0; i < n; i++) {
        if (to.dim[i] == 0 && !stk_onnx_attribute_int(b, "allowzero", 0)) {
            if (i >= shape.rank) return stk_fail(STK_INVALID, "its shape takes over a dimension that there is none of");
            to.dim[i] = shape.dim[i];
        } else if (to.dim[i] == -1) {
            to.dim[i] = STK_ANY;
        }
    }
    STK_RETURN_IF_ERROR(infer_beside_batch(x, list, &to));
    return stk_onnx_output(b, 0, stk_reshape(x, to));
}

/* Of axes from .. to - 1; open where one of them is. */
static int64_t product_of(stk_shape shape, int from, int to)
{
    for (int i = from; i < to; i++)
        if (shape.dim[i] == STK_ANY) return STK_ANY;
    return stk_shape_product(shape, from, to);
}

stk_status stk_onnx_build_Flatten(stk_build *b)
{
    BEGIN;
    int64_t axis = stk_onnx_attribute_int(b, "axis", 1);
    if (axis < 0) axis += shape.rank;
    if (axis < 0 || axis > shape.rank) return stk_fail(STK_INVALID, "its axis is none of %d", (int)shape.rank);
    return stk_onnx_output(
        b, 0, stk_reshape(x, STK_SHAPE(product_of(shape, 0, (int)axis), product_of(shape, (int)axis, shape.rank))));
}

stk_status stk_onnx_build_Squeeze(stk_build *b)
{
    BEGIN;
    uint32_t axes;
    stk_shape to = {.rank = 0};
    STK_RETURN_IF_ERROR(stk_onnx_settle_axes(b, 1, shape.rank, false, &axes));
    for (int i = 0; i < shape.rank; i++) {
        bool goes = axes ? axes >> i & 1 : shape.dim[i] == 1;
        if (goes && shape.dim[i] != 1) return stk_fail(STK_INVALID, "axis %d is not one long", i);
        if (!goes) to.dim[to.rank++] = shape.dim[i];
    }
    return stk_onnx_output(b, 0, stk_reshape(x, to));
}

stk_status stk_onnx_build_Unsqueeze(stk_build *b)
{
    BEGIN;
    int n = 0;
    uint32_t axes;
    const int64_t *list = stk_onnx_attribute_ints(b, "axes", &n);
    if (!list) STK_RETURN_IF_ERROR(stk_onnx_input_ints(b, 1, &list, &n));
    if (n > STK_MAX_RANK - shape.rank)
        return stk_fail(STK_UNSUPPORTED, "%d and %d dimensions are too many", (int)shape.rank, n);
    stk_shape to = {.rank = shape.rank + n};
    STK_RETURN_IF_ERROR(stk_onnx_settle_axes(b, 1, to.rank, false, &axes));
    for (int i = 0, k = 0; i < to.rank; i++) {
        bool is_new = axes >> i & 1;
        if (!is_new && k == shape.rank) return stk_fail(STK_INVALID, "an axis is named twice");
        to.dim[i] = is_new ? 1 : shape.dim[k++];
    }
    return stk_onnx_output(b, 0, stk_reshape(x, to));
}

stk_status stk_onnx_build_Transpose(stk_build *b)
{
    BEGIN;
    int n;
    int32_t p[STK_MAX_RANK] = {0};
    const int64_t *list = stk_onnx_attribute_ints(b, "perm", &n);
    if (list && n != shape.rank) return stk_fail(STK_INVALID, "its permutation has %d axes", n);
    for (int i = 0; i < shape.rank; i++)
        p[i] = list ? (int32_t)(list[i] < 0 || list[i] > 99 ? 99 : list[i]) : shape.rank - 1 - i;
    return stk_onnx_output(b, 0, shape.rank ? stk_transpose(x, p) : x);
}

stk_status stk_onnx_build_Expand(stk_build *b)
{
    BEGIN;
    int n;
    const int64_t *list;
    stk_shape to;
    STK_RETURN_IF_ERROR(stk_onnx_input_ints(b, 1, &list, &n));
    STK_RETURN_IF_ERROR(shape_from(list, n, &to));
    STK_RETURN_IF_ERROR(stk_onnx_check_open(list, n));
    STK_RETURN_IF_ERROR(stk_shape_broadcast(shape, to, &to));
    if (!n || !stk_onnx_is_batch(list[0]) || list[0] == STK_ONNX_BATCH || shape.rank > to.rank ||
        to.rank == STK_MAX_RANK)
        return stk_onnx_output(b, 0, stk_broadcast(x, to));
    /* Some for each sample: along an axis of their own. */
    stk_shape one = {.rank = to.rank + 1}, each = one;
    if (shape.rank == to.rank && shape.dim[0] != 1) return stk_onnx_output(b, 0, x);
    for (int i = 0; i <= to.rank; i++) {
        int from = i - (to.rank + 1 - shape.rank);
        one.dim[i] = from < 0 || i < 2 ? 1 : shape.dim[from];
        each.dim[i] = i == 0 ? STK_ANY : i == 1 ? list[0] / STK_ONNX_BATCH : to.dim[i - 1];
    }
    return stk_onnx_output(b, 0, stk_reshape(stk_broadcast(stk_reshape(x, one), each), to));
}

/* Each axis by a broadcast along a new one before it. */
stk_status stk_onnx_build_Tile(stk_build *b)
{
    BEGIN;
    int n;
    const int64_t *times;
    STK_RETURN_IF_ERROR(stk_onnx_input_ints(b, 1, &times, &n));
    if (n != shape.rank) return stk_fail(STK_INVALID, "its repeats are %d numbers for %d axes", n, (int)shape.rank);
    for (int i = 0; i < n; i++) {
        if (times[i] < 0 || times[i] > INT32_MAX) return stk_fail(STK_INVALID, "a repeat is %lld", (long long)times[i]);
        int64_t before = stk_shape_product(shape, 0, i), after = stk_shape_product(shape, i, n);
        x = stk_broadcast(stk_reshape(x, STK_SHAPE(before, 1, after)), STK_SHAPE(before, times[i], after));
        if (x.id < 0) break;
        shape.dim[i] = stk_dim_times(shape.dim[i], times[i]);
        x = stk_reshape(x, shape);
    }
    return stk_onnx_output(b, 0, x);
}

stk_status stk_onnx_build_Concat(stk_build *b)
{
    BEGIN;
    int axis, n = stk_onnx_n_inputs(b);
    STK_RETURN_IF_ERROR(stk_onnx_settle_axis(stk_onnx_attribute_int(b, "axis", 0), shape.rank, &axis));
    stk_value *all = stk_arena_alloc(b->model->arena, (size_t)n * sizeof(*all));
    if (!all) return stk_fail_memory((size_t)n * sizeof(*all));
    for (int i = 0; i < n; i++)
        all[i] = stk_onnx_input(b, i);
    return stk_onnx_output(b, 0, stk_concat(all, n, axis));
}

/* Elements from start on, n of them, step apart (which may be negative), along one axis. */
static stk_value take_range(stk_build *b, stk_value x, int axis, int64_t start, int64_t n, int64_t step)
{
    int64_t from[STK_MAX_RANK] = {0}, to[STK_MAX_RANK], by[STK_MAX_RANK];
    for (int i = 0; i < STK_MAX_RANK; i++) {
        to[i] = STK_ANY;
        by[i] = 1;
    }
    if (step > 0) {
        from[axis] = n ? start : 0;
        to[axis] = n ? start + (n - 1) * step + 1 : 0;
        by[axis] = step;
        return stk_slice(x, from, to, by);
    }
    int32_t *ids;
    if (stk_graph_keep_error(x.graph, stk_onnx_new_ids(b, n, &ids)) != STK_OK) return stk_value_none(x.graph);
    for (int64_t i = 0; i < n; i++)
        ids[i] = (int32_t)(start + i * step);
    return stk_gather(x, stk_onnx_index_value(b, ids, n), axis);
}

static int64_t clamp_index(int64_t i, int64_t low, int64_t high)
{
    return i < low ? low : i > high ? high : i;
}

stk_status stk_onnx_build_Slice(stk_build *b)
{
    BEGIN;
    int n, n_ends, n_axes = 0, n_steps = 0;
    const int64_t *starts = stk_onnx_attribute_ints(b, "starts", &n),
                  *ends = stk_onnx_attribute_ints(b, "ends", &n_ends);
    const int64_t *axes = stk_onnx_attribute_ints(b, "axes", &n_axes), *steps = NULL;
    if (!starts) STK_RETURN_IF_ERROR(stk_onnx_input_ints(b, 1, &starts, &n));
    if (!ends) STK_RETURN_IF_ERROR(stk_onnx_input_ints(b, 2, &ends, &n_ends));
    if (!axes && stk_onnx_has_input(b, 3)) STK_RETURN_IF_ERROR(stk_onnx_input_ints(b, 3, &axes, &n_axes));
    if (stk_onnx_has_input(b, 4)) STK_RETURN_IF_ERROR(stk_onnx_input_ints(b, 4, &steps, &n_steps));
    if (n != n_ends || (axes && n_axes != n) || (steps && n_steps != n))
        return stk_fail(STK_INVALID, "its lists differ in length");
    for (int i = 0; i < n; i++) {
        int axis;
        STK_RETURN_IF_ERROR(stk_onnx_settle_axis(axes ? axes[i] : i, shape.rank, &axis));
        int64_t size = shape.dim[axis], step = steps ? steps[i] : 1, start = starts[i], end = ends[i];
        if (stk_onnx_is_batch(start) || (stk_onnx_is_batch(end) && size != STK_ANY))
            return stk_fail(STK_UNSUPPORTED, "it takes as many as the batch is large, which is not known yet");
        if (size == STK_ANY && step == 1 && start == 0 && end >= INT32_MAX) continue; /* all of the batch */
        if (step == 0 || step < -INT32_MAX || size == STK_ANY)
            return stk_fail(STK_INVALID, "its step is 0, or a size unknown");
        start = clamp_index(start < 0 ? start + size : start, 0, step > 0 ? size : size - 1);
        end = clamp_index(end < 0 ? end + size : end, step > 0 ? 0 : -1, size);
        if (ends[i] < 0 && ends[i] < -size) end = step > 0 ? 0 : -1;
        int64_t room = step > 0 ? end - start : start - end, size_of_step = step > 0 ? step : -step;
        x = take_range(b, x, axis, start, room > 0 ? (room - 1) / size_of_step + 1 : 0, step);
    }
    return stk_onnx_output(b, 0, x);
}

stk_status stk_onnx_build_Split(stk_build *b)
{
    BEGIN;
    int axis, n = 0, n_out = (int)b->node->n_output;
    int64_t at = 0;
    const int64_t *sizes = stk_onnx_attribute_ints(b, "split", &n);
    STK_RETURN_IF_ERROR(stk_onnx_settle_axis(stk_onnx_attribute_int(b, "axis", 0), shape.rank, &axis));
    if (!sizes && stk_onnx_has_input(b, 1)) STK_RETURN_IF_ERROR(stk_onnx_input_ints(b, 1, &sizes, &n));
    int64_t wanted = stk_onnx_attribute_int(b, "num_outputs", n_out);
    if (wanted != n_out)
        return stk_fail(STK_INVALID, "its attribute 'num_outputs' is %lld, and it has %d outputs", (long long)wanted,
                        n_out);
    if ((sizes && n != n_out) || n_out < 1) return stk_fail(STK_INVALID, "it has %d outputs and %d sizes", n_out, n);
    int64_t each = (shape.dim[axis] + n_out - 1) / n_out;
    for (int i = 0; i < n_out; i++) {
        int64_t size = sizes ? sizes[i] : each;
        if (!sizes && size > shape.dim[axis] - at) size = shape.dim[axis] - at;
        if (size < 0 || size > shape.dim[axis] - at) return stk_fail(STK_INVALID, "its sizes do not add up");
        STK_RETURN_IF_ERROR(stk_onnx_output(b, i, take_range(b, x, axis, at, size, 1)));
        at += size;
    }
    return STK_OK;
}

stk_status stk_onnx_build_Shape(stk_build *b)
{
    BEGIN;
    int64_t start = stk_onnx_attribute_int(b, "start", 0), end = stk_onnx_attribute_int(b, "end", shape.rank);
    start = clamp_index(start < 0 ? start + shape.rank : start, 0, shape.rank);
    end = clamp_index(end < 0 ? end + shape.rank : end, start, shape.rank);
    for (int64_t i = start; i < end; i++) {
        if (shape.dim[i] != STK_ANY) continue;
        if (!b->model->borrows_graph)
            return stk_fail(STK_UNSUPPORTED,
                            "it needs to know the dimension%s%s%s that the model leaves open: give it a size",
                            b->model->open_name ? " '" : "", b->model->open_name ? b->model->open_name : "",
                            b->model->open_name ? "'" : "");
        STK_RETURN_IF_ERROR(stk_onnx_size_by_batch(x, i, &shape.dim[i]));
        b->carries_batch = true;
    }
    return stk_onnx_output_tensor(b, 0, STK_I64, STK_SHAPE(end - start), shape.dim + start);
}

stk_status stk_onnx_build_Size(stk_build *b)
{
    BEGIN;
    int64_t n = stk_shape_count(shape);
    if (!stk_shape_known(shape)) return stk_fail(STK_UNSUPPORTED, "it needs to know a dimension that is open");
    return stk_onnx_output_tensor(b, 0, STK_I64, (stk_shape){.rank = 0}, &n);
}

/* Negative ids count from the end. */
static stk_value settle_ids(stk_value ids, int64_t size)
{
    ids = stk_cast_to(ids, STK_I32);
    stk_value n = stk_onnx_like(ids, (double)size);
    return stk_select(stk_less(ids, stk_onnx_like(ids, 0)), stk_add(ids, n), ids);
}

stk_status stk_onnx_build_Gather(stk_build *b)
{
    BEGIN;
    int axis;
    STK_RETURN_IF_ERROR(stk_onnx_settle_axis(stk_onnx_attribute_int(b, "axis", 0), shape.rank, &axis));
    return stk_onnx_output(b, 0, stk_gather(x, settle_ids(stk_onnx_input(b, 1), shape.dim[axis]), axis));
}

stk_value stk_onnx_place_of_elements(stk_value ids, stk_shape shape, int axis)
{
    stk_shape to = stk_value_shape(ids);
    stk_value place = stk_onnx_like(stk_cast_to(ids, STK_I32), 0);
    for (int i = 0; i < shape.rank; i++) {
        stk_value index = i == axis ? settle_ids(ids, shape.dim[i]) : stk_iota(ids.graph, STK_I32, to, i);
        place = stk_add(place, stk_scale_by(index, (double)stk_shape_product(shape, i + 1, shape.rank)));
    }
    return place;
}

stk_status stk_onnx_build_GatherElements(stk_build *b)
{
    BEGIN;
    int axis;
    stk_value ids = stk_onnx_input(b, 1);
    STK_RETURN_IF_ERROR(stk_onnx_settle_axis(stk_onnx_attribute_int(b, "axis", 0), shape.rank, &axis));
    if (stk_value_shape(ids).rank != shape.rank || stk_shape_count(shape) > INT32_MAX)
        return stk_fail(STK_INVALID, "its indices do not fit its input");
    stk_value place = stk_onnx_place_of_elements(ids, shape, axis);
    x = stk_reshape(x, STK_SHAPE(stk_shape_count(shape)));
    return stk_onnx_output(b, 0, stk_gather(x, place, 0));
}

typedef enum padding { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP } padding;

static padding padding_of(const stk_build *b)
{
    static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
    for (int i = PAD_REFLECT; i <= PAD_WRAP; i++)
        if (stk_onnx_attribute_is(b, "mode", names[i])) return (padding)i;
    return PAD_CONSTANT;
}

/* Index i of a padded axis, in the axis itself. */
static int32_t index_within(int64_t i, int64_t n, padding mode)
{
    if (mode == PAD_WRAP) return (int32_t)((i % n + n) % n);
    if (mode == PAD_EDGE || n < 2) return (int32_t)clamp_index(i, 0, n - 1);
    int64_t period = 2 * (n - 1);
    i = (i % period + period) % period;
    return (int32_t)(i < n ? i : period - i);
}

/* low and high of each axis from the list, of those axes that input 3 names where it is given. */
static stk_status read_pads(stk_build *b, int rank, int64_t *low, int64_t *high)
{
    int n, n_axes = rank;
    const int64_t *axes = NULL, *pads = stk_onnx_attribute_ints(b, "pads", &n);
    if (!pads) STK_RETURN_IF_ERROR(stk_onnx_input_ints(b, 1, &pads, &n));
    if (stk_onnx_has_input(b, 3)) STK_RETURN_IF_ERROR(stk_onnx_input_ints(b, 3, &axes, &n_axes));
    if (n != 2 * n_axes || n_axes > rank)
        return stk_fail(STK_INVALID, "its pads are %d numbers, and must be two for each of %d axes", n, n_axes);
    for (int i = 0; i < n_axes; i++) {
        int axis = i;
        if (axes) STK_RETURN_IF_ERROR(stk_onnx_settle_axis(axes[i], rank, &axis));
        low[axis] = pads[i];
        high[axis] = pads[n_axes + i];
        if (low[axis] < -(1 << 20) || high[axis] < -(1 << 20) || low[axis] > 1 << 20 || high[axis] > 1 << 20)
            return stk_fail(STK_UNSUPPORTED, "a pad of its axis %d is beyond %d", axis, 1 << 20);
    }
    return STK_OK;
}

/* Negative pads take away. */
static stk_value cut_negative_pads(stk_build *b, stk_value x, int64_t *low, int64_t *high)
{
    for (int i = 0; i < stk_value_shape(x).rank; i++) {
        int64_t first = low[i] < 0 ? -low[i] : 0, size = stk_value_shape(x).dim[i];
        int64_t rest = size - first - (high[i] < 0 ? -high[i] : 0);
        if (low[i] >= 0 && high[i] >= 0) continue;
        if (size == STK_ANY || rest < 0) {
            stk_graph_keep_error(x.graph, stk_fail(STK_INVALID, "its pads take more from axis %d than it has", i));
            return stk_value_none(x.graph);
        }
        x = take_range(b, x, i, first, rest, 1);
        if (low[i] < 0) low[i] = 0;
        if (high[i] < 0) high[i] = 0;
    }
    return x;
}

stk_status stk_onnx_build_Pad(stk_build *b)
{
    BEGIN;
    int64_t low[STK_MAX_RANK] = {0}, high[STK_MAX_RANK] = {0};
    STK_RETURN_IF_ERROR(read_pads(b, shape.rank, low, high));
    double value = stk_onnx_attribute_float(b, "value", 0);
    const stk_onnx_tensor *t;
    if (stk_onnx_has_input(b, 2)) {
        STK_RETURN_IF_ERROR(stk_onnx_input_tensor(b, 2, &t));
        if (stk_shape_count(t->shape) != 1) return stk_fail(STK_INVALID, "its value is not one number");
        value = stk_onnx_number(t, 0);
    }
    padding mode = padding_of(b);
    x = cut_negative_pads(b, x, low, high);
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    shape = stk_value_shape(x);
    for (int i = 0; i < shape.rank; i++) {
        int64_t n_out = shape.dim[i] + low[i] + high[i];
        if (n_out > MOST_IDS) return stk_fail(STK_UNSUPPORTED, "its axis %d becomes too long", i);
        if (mode == PAD_CONSTANT || (!low[i] && !high[i])) continue;
        if (shape.dim[i] < 1)
            return stk_fail(STK_UNSUPPORTED, "its axis %d has no known size, which its mode needs", i);
        int32_t *ids;
        STK_RETURN_IF_ERROR(stk_onnx_new_ids(b, n_out, &ids));
        for (int64_t k = 0; k < n_out; k++)
            ids[k] = index_within(k - low[i], shape.dim[i], mode);
        x = stk_gather(x, stk_onnx_index_value(b, ids, n_out), i);
    }
    return stk_onnx_output(b, 0, mode == PAD_CONSTANT ? stk_pad(x, low, high, value) : x);
}

/* [N,C,H,W]: blocks of pixels into channels and back. */
stk_status stk_onnx_build_DepthToSpace(stk_build *b)
{
    BEGIN;
    int64_t k = stk_onnx_attribute_int(b, "blocksize", 0), *d = shape.dim;
    if (shape.rank != 4 || k < 1 || k > 1024 || d[1] % (k * k)) return stk_fail(STK_INVALID, "its blocks do not fit");
    bool rows_first = stk_onnx_attribute_is(b, "mode", "CRD");
    int64_t c = d[1] / (k * k);
    x = stk_reshape(x, rows_first ? STK_SHAPE(d[0], c, k, k, d[2], d[3]) : STK_SHAPE(d[0], k, k, c, d[2], d[3]));
    x = stk_transpose(x, rows_first ? (int32_t[]){0, 1, 4, 2, 5, 3} : (int32_t[]){0, 3, 4, 1, 5, 2});
    return stk_onnx_output(b, 0, stk_reshape(x, STK_SHAPE(d[0], c, d[2] * k, d[3] * k)));
}

stk_status stk_onnx_build_SpaceToDepth(stk_build *b)
{
    BEGIN;
    int64_t k = stk_onnx_attribute_int(b, "blocksize", 0), *d = shape.dim;
    if (shape.rank != 4 || k < 1 || k > 1024 || d[2] % k || d[3] % k)
        return stk_fail(STK_INVALID, "its blocks do not fit");
    x = stk_reshape(x, STK_SHAPE(d[0], d[1], d[2] / k, k, d[3] / k, k));
    bool channels_first = stk_onnx_attribute_is(b, "mode", "CRD");
    x = stk_transpose(x, channels_first ? (int32_t[]){0, 1, 3, 5, 2, 4} : (int32_t[]){0, 3, 5, 1, 2, 4});
    return stk_onnx_output(b, 0, stk_reshape(x, STK_SHAPE(d[0], stk_dim_times(d[1], k * k), d[2] / k, d[3] / k)));
}

/* Row and column numbers of the last two axes. */
static void grid(stk_value x, stk_shape shape, stk_value *row, stk_value *column)
{
    *row = stk_iota(x.graph, STK_I32, shape, shape.rank - 2);
    *column = stk_iota(x.graph, STK_I32, shape, shape.rank - 1);
}

stk_status stk_onnx_build_Trilu(stk_build *b)
{
    BEGIN;
    int n;
    const int64_t *list;
    int64_t k = 0;
    stk_value row, column;
    if (stk_onnx_has_input(b, 1)) {
        STK_RETURN_IF_ERROR(stk_onnx_input_ints(b, 1, &list, &n));
        if (n == 1) k = clamp_index(list[0], -INT32_MAX / 2, INT32_MAX / 2);
    }
    if (shape.rank < 2) return stk_fail(STK_INVALID, "its input has no rows");
    if (stk_shape_count(shape) == 0) return stk_onnx_output(b, 0, x);
    grid(x, shape, &row, &column);
    row = stk_shift_by(row, (double)k);
    stk_value stays =
        stk_onnx_attribute_int(b, "upper", 1) ? stk_less_equal(row, column) : stk_greater_equal(row, column);
    return stk_onnx_output(b, 0, stk_select(stays, x, stk_onnx_like(x, 0)));
}

stk_status stk_onnx_build_EyeLike(stk_build *b)
{
    BEGIN;
    stk_dtype dtype = stk_value_dtype(x);
    stk_value row, column;
    if (stk_onnx_attribute(b, "dtype"))
        STK_RETURN_IF_ERROR(stk_onnx_dtype((int32_t)stk_onnx_attribute_int(b, "dtype", 0), &dtype));
    if (shape.rank != 2) return stk_fail(STK_INVALID, "its input is no matrix");
    grid(x, shape, &row, &column);
    row = stk_shift_by(row, (double)clamp_index(stk_onnx_attribute_int(b, "k", 0), -INT32_MAX / 2, INT32_MAX / 2));
    return stk_onnx_output(b, 0, stk_cast_to(stk_equal(row, column), dtype));
}

stk_status stk_onnx_build_OneHot(stk_build *b)
{
    BEGIN;
    int axis;
    const stk_onnx_tensor *depth, *values;
    STK_RETURN_IF_ERROR(stk_onnx_input_tensor(b, 1, &depth));
    STK_RETURN_IF_ERROR(stk_onnx_input_tensor(b, 2, &values));
    STK_RETURN_IF_ERROR(stk_onnx_settle_axis(stk_onnx_attribute_int(b, "axis", -1), shape.rank + 1, &axis));
    double n = stk_shape_count(depth->shape) == 1 ? stk_onnx_number(depth, 0) : 0;
    if (!(n >= 1 && n <= INT32_MAX) || stk_shape_count(values->shape) != 2 || shape.rank >= STK_MAX_RANK)
        return stk_fail(STK_INVALID, "its depth or values are none");
    stk_shape to = {.rank = shape.rank + 1}, one = to;
    for (int i = 0; i < to.rank; i++) {
        one.dim[i] = i == axis ? 1 : shape.dim[i < axis ? i : i - 1];
        to.dim[i] = i == axis ? (int64_t)n : one.dim[i];
    }
    stk_value hot = stk_equal(stk_iota(x.graph, STK_I32, to, axis), stk_reshape(settle_ids(x, (int64_t)n), one));
    stk_value zero = stk_cast_to(stk_iota(x.graph, STK_I32, STK_SHAPE(1), 0), values->dtype);
    return stk_onnx_output(b, 0,
                           stk_select(hot, stk_onnx_like(zero, stk_onnx_number(values, 1)),
                                      stk_onnx_like(zero, stk_onnx_number(values, 0))));
}

stk_status stk_onnx_build_Range(stk_build *b)
{
    const stk_onnx_tensor *t[3];
    double x[3];
    for (int i = 0; i < 3; i++) {
        STK_RETURN_IF_ERROR(stk_onnx_input_tensor(b, i, &t[i]));
        if (stk_shape_count(t[i]->shape) != 1) return stk_fail(STK_INVALID, "its input %d is not a number", i);
        x[i] = stk_onnx_number(t[i], 0);
    }
    if (x[1] < 9e15 && stk_onnx_is_batch((int64_t)x[1])) { /* NaN is no number of elements either. */
        if (x[0] != 0 || x[2] != 1 || x[1] != (double)STK_ONNX_BATCH)
            return stk_fail(STK_UNSUPPORTED, "it counts to the size of the batch otherwise than from 0 on by 1");
        return stk_onnx_output(b, 0, stk_iota(b->model->graph, t[0]->dtype, STK_SHAPE(STK_ANY), 0));
    }
    double room = (x[1] - x[0]) / x[2];
    if (!(room < 1 << 28)) return stk_fail(STK_INVALID, "it has no end");
    int64_t n = room > 0 ? (int64_t)room + ((double)(int64_t)room < room) : 0;
    stk_value y = stk_iota(b->model->graph, t[0]->dtype, STK_SHAPE(n), 0);
    return stk_onnx_output(b, 0, stk_shift_by(stk_scale_by(y, x[2]), x[0]));
}

stk_status stk_onnx_build_ConstantOfShape(stk_build *b)
{
    int n;
    const int64_t *list;
    stk_shape to;
    stk_onnx_tensor t = {.dtype = STK_F32, .shape = STK_SHAPE(1)};
    double value = 0;
    const Onnx__AttributeProto *a = stk_onnx_attribute(b, "value");
    STK_RETURN_IF_ERROR(stk_onnx_input_ints(b, 0, &list, &n));
    STK_RETURN_IF_ERROR(shape_from(list, n, &to));
    STK_RETURN_IF_ERROR(stk_onnx_check_open(list, n));
    if (a && a->t) {
        STK_RETURN_IF_ERROR(stk_onnx_read_tensor(b->model->arena, b->model->folder, a->t, NULL, &t));
        if (stk_shape_count(t.shape) == 1) value = stk_onnx_number(&t, 0);
    }
    if (n && stk_onnx_is_batch(list[0]) && list[0] != STK_ONNX_BATCH && n < STK_MAX_RANK) {
        stk_shape each = {.rank = n + 1, .dim = {STK_ANY, list[0] / STK_ONNX_BATCH}};
        for (int i = 1; i < n; i++)
            each.dim[i + 1] = to.dim[i];
        return stk_onnx_output(b, 0, stk_reshape(stk_graph_constant(b->model->graph, t.dtype, each, value), to));
    }
    return stk_onnx_output(b, 0, stk_graph_constant(b->model->graph, t.dtype, to, value));
}

/* Its numbers are no parameters. */
static stk_status constant(stk_build *b, stk_dtype dtype, stk_shape shape, const void *data)
{
    STK_RETURN_IF_ERROR(stk_onnx_output_tensor(b, 0, dtype, shape, data));
    if (stk_onnx_has_output(b, 0)) stk_onnx_find(b->model, b->node->output[0])->is_fixed = true;
    return STK_OK;
}

stk_status stk_onnx_build_Constant(stk_build *b)
{
    const Onnx__AttributeProto *a;
    stk_onnx_tensor t;
    if ((a = stk_onnx_attribute(b, "value")) && a->t) {
        STK_RETURN_IF_ERROR(stk_onnx_read_tensor(b->model->arena, b->model->folder, a->t, NULL, &t));
        return constant(b, t.dtype, t.shape, t.data);
    }
    stk_shape scalar = {.rank = 0};
    if ((a = stk_onnx_attribute(b, "value_int"))) return constant(b, STK_I64, scalar, &a->i);
    if ((a = stk_onnx_attribute(b, "value_float"))) return constant(b, STK_F32, scalar, &a->f);
    if ((a = stk_onnx_attribute(b, "value_ints"))) return constant(b, STK_I64, STK_SHAPE((int64_t)a->n_ints), a->ints);
    if ((a = stk_onnx_attribute(b, "value_floats")))
        return constant(b, STK_F32, STK_SHAPE((int64_t)a->n_floats), a->floats);
    return stk_fail(STK_UNSUPPORTED, "it has no value that is a tensor or numbers");
}
