/* What the functions of build_*.c share: a node's inputs, outputs and attributes. */
#include <stdio.h>
#include <string.h>

#include "onnx/model.h"

int stk_onnx_n_inputs(const stk_build *b)
{
    return (int)b->node->n_input;
}

bool stk_onnx_has_input(const stk_build *b, int i)
{
    return (size_t)i < b->node->n_input && b->node->input[i] && b->node->input[i][0];
}

bool stk_onnx_has_output(const stk_build *b, int i)
{
    return (size_t)i < b->node->n_output && b->node->output[i] && b->node->output[i][0];
}

stk_onnx_value *stk_onnx_input_entry(stk_build *b, int i)
{
    return stk_onnx_has_input(b, i) ? stk_onnx_find(b->model, b->node->input[i]) : NULL;
}

stk_value stk_onnx_input(stk_build *b, int i)
{
    stk_onnx_value *v = stk_onnx_input_entry(b, i);
    if (v) return stk_onnx_plain(b->model, v);
    stk_graph_keep_error(b->model->graph, stk_fail(STK_CORRUPT, "its input %d is missing", i));
    return stk_value_none(b->model->graph);
}

stk_status stk_onnx_input_tensor(stk_build *b, int i, const stk_onnx_tensor **out)
{
    stk_onnx_value *v = stk_onnx_input_entry(b, i);
    if (!v) return stk_fail(STK_CORRUPT, "its input %d is missing", i);
    return stk_onnx_evaluate(b->model, v, out);
}

stk_status stk_onnx_input_ints(stk_build *b, int i, const int64_t **out, int *n)
{
    const stk_onnx_tensor *t;
    STK_RETURN_IF_ERROR(stk_onnx_input_tensor(b, i, &t));
    int64_t count = stk_shape_count(t->shape);
    if (t->shape.rank > 1 || count > 1024 || stk_dtype_is_float(t->dtype))
        return stk_fail(STK_INVALID, "its input %d must be a short list of integers", i);
    int64_t *list = stk_arena_alloc(b->model->arena, (size_t)(count + 1) * sizeof(*list));
    if (!list) return stk_fail_memory((size_t)count * sizeof(*list));
    for (int64_t k = 0; k < count; k++)
        list[k] = t->dtype == STK_I64 ? ((const int64_t *)t->data)[k] : (int64_t)stk_onnx_number(t, k);
    *out = list;
    *n = (int)count;
    return STK_OK;
}

static stk_status put_output(stk_build *b, int i, stk_onnx_value value)
{
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    value.holds_batch = b->carries_batch;
    if (!value.tensor && value.value.id < 0) return stk_fail(STK_INTERNAL, "its output %d was not made", i);
    return stk_onnx_has_output(b, i) ? stk_onnx_put(b->model, b->node->output[i], value) : STK_OK;
}

stk_status stk_onnx_output(stk_build *b, int i, stk_value value)
{
    return put_output(b, i, (stk_onnx_value){.value = value});
}

stk_status stk_onnx_output_nhwc(stk_build *b, int i, stk_value value)
{
    return put_output(b, i, (stk_onnx_value){.value = value, .nhwc = true});
}

stk_status stk_onnx_output_tensor(stk_build *b, int i, stk_dtype dtype, stk_shape shape, const void *data)
{
    const stk_onnx_tensor *tensor = stk_onnx_new_tensor(b->model->arena, dtype, shape, data);
    if (!tensor) return stk_fail_memory(64);
    return put_output(b, i, (stk_onnx_value){.tensor = tensor, .value = stk_value_none(b->model->graph)});
}

stk_status stk_onnx_settle_axis(int64_t axis, int rank, int *out)
{
    *out = (int)(axis < 0 ? axis + rank : axis);
    if (axis >= -rank && axis < rank) return STK_OK;
    return stk_fail(STK_INVALID, "the axis %lld is none of %d", (long long)axis, rank);
}

stk_status stk_onnx_settle_axes(stk_build *b, int i, int rank, bool all, uint32_t *out)
{
    int n = 0;
    const int64_t *axes = stk_onnx_attribute_ints(b, "axes", &n);
    if (!axes && stk_onnx_has_input(b, i)) STK_RETURN_IF_ERROR(stk_onnx_input_ints(b, i, &axes, &n));
    *out = n || !all ? 0 : (1u << rank) - 1u;
    for (int k = 0; k < n; k++) {
        int axis;
        STK_RETURN_IF_ERROR(stk_onnx_settle_axis(axes[k], rank, &axis));
        *out |= 1u << axis;
    }
    return STK_OK;
}

stk_value stk_onnx_like(stk_value x, double value)
{
    return x.graph && x.id >= 0 ? stk_graph_constant(x.graph, stk_value_dtype(x), (stk_shape){.rank = 0}, value) : x;
}

stk_value stk_onnx_axis_to_end(stk_value x, int axis)
{
    int32_t p[STK_MAX_RANK] = {0};
    int rank = stk_value_shape(x).rank, n = 0;
    for (int i = 0; i < rank; i++)
        if (i != axis) p[n++] = i;
    if (n < rank) p[n] = axis;
    return axis == rank - 1 ? x : stk_transpose(x, p);
}

stk_value stk_onnx_axis_from_end(stk_value x, int axis)
{
    int32_t p[STK_MAX_RANK] = {0};
    int rank = stk_value_shape(x).rank;
    for (int i = 0; i < rank; i++)
        p[i] = i < axis ? i : i == axis ? rank - 1 : i - 1;
    return axis == rank - 1 ? x : stk_transpose(x, p);
}

stk_status stk_onnx_new_ids(stk_build *b, int64_t n, int32_t **out)
{
    enum { MOST_IDS = 1 << 26 };
    b->model->n_ids += n < MOST_IDS ? n : MOST_IDS;
    if (b->model->n_ids >= MOST_IDS)
        return stk_fail(STK_UNSUPPORTED, "the model's lists of indices have more than %d elements together", MOST_IDS);
    *out = stk_arena_alloc(b->model->arena, (size_t)(n + 1) * sizeof(**out));
    return *out ? STK_OK : stk_fail_memory((size_t)n * sizeof(**out));
}

stk_value stk_onnx_index_value(stk_build *b, const int32_t *ids, int64_t n)
{
    return stk_onnx_fixed_value(b, STK_I32, STK_SHAPE(n), ids);
}

stk_value stk_onnx_fixed_value(stk_build *b, stk_dtype dtype, stk_shape shape, const void *data)
{
    char name[64];
    stk_onnx *model = b->model;
    snprintf(name, sizeof(name), "onnx.indices.%d", model->n_made++);
    stk_onnx_value value = {.value = stk_value_none(model->graph), .is_fixed = true};
    value.tensor = stk_onnx_new_tensor(model->arena, dtype, shape, data);
    stk_status status = value.tensor ? stk_onnx_put(model, name, value) : stk_fail_memory(64);
    if (stk_graph_keep_error(model->graph, status) != STK_OK) return stk_value_none(model->graph);
    return stk_onnx_plain(model, stk_onnx_find(model, name));
}

/* Only images have that order: any others are refused. */
static stk_value reorder(stk_value x, const int32_t *order)
{
    int rank = stk_value_shape(x).rank;
    if (rank == 4) return stk_transpose(x, order);
    if (x.id >= 0) stk_graph_keep_error(x.graph, stk_fail(STK_INVALID, "a value of rank %d stands for images", rank));
    return stk_value_none(x.graph);
}

/* A gather looks at each. */
stk_value stk_onnx_within(stk_value ids, int64_t n)
{
    return stk_gather(stk_iota(ids.graph, STK_I32, STK_SHAPE(n), 0), ids, 0);
}

stk_value stk_onnx_to_nhwc(stk_value x)
{
    return reorder(x, (int32_t[]){0, 2, 3, 1});
}

stk_value stk_onnx_to_nchw(stk_value x)
{
    return reorder(x, (int32_t[]){0, 3, 1, 2});
}
