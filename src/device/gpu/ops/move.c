/* Moving elements: reshape, transpose, slice, concat. What differs is the box alone. */
#include "device/gpu/ops/box.h"

static void find_strides(stk_shape shape, int64_t stride[STK_MAX_RANK])
{
    int64_t n = 1;
    for (int a = shape.rank - 1; a >= 0; n *= shape.dim[a--])
        stride[a] = n;
}

static gpu_box box_of(const gpu_maker *m)
{
    return (gpu_box){.unit_bytes = stk_dtype_bytes(m->call->out[0].dtype)};
}

void gpu_make_reshape(gpu_maker *m)
{
    gpu_box box = box_of(m);
    gpu_add_axis(&box, stk_shape_count(m->call->in[0].shape), 1, 1);
    gpu_copy_box(m, box, 0, 0);
    gpu_copies(m, 0, 0);
    m->in_place[0] = 1;
}

void gpu_make_transpose(gpu_maker *m)
{
    gpu_box box = box_of(m);
    stk_shape y = m->call->out[0].shape;
    int64_t src[STK_MAX_RANK], dst[STK_MAX_RANK];
    find_strides(m->call->in[0].shape, src);
    find_strides(y, dst);
    for (int a = 0; a < y.rank; a++)
        gpu_add_axis(&box, y.dim[a], src[m->call->attrs->permutation[a]], dst[a]);
    gpu_copy_box(m, box, 0, 0);
}

void gpu_make_slice(gpu_maker *m)
{
    gpu_box box = box_of(m);
    stk_shape y = m->call->out[0].shape;
    int64_t src[STK_MAX_RANK], dst[STK_MAX_RANK];
    find_strides(m->call->in[0].shape, src);
    find_strides(y, dst);
    for (int a = 0; a < y.rank; a++) {
        box.src_first += m->call->attrs->slice.start[a] * src[a];
        gpu_add_axis(&box, y.dim[a], src[a] * m->call->attrs->slice.step[a], dst[a]);
    }
    gpu_copy_box(m, box, 0, 0);
}

/* A launch for each source: its rows, from its place in each row of the whole on. */
void gpu_make_concat(gpu_maker *m)
{
    const stk_op_call *call = m->call;
    int axis = call->attrs->concat.axis;
    stk_shape y = call->out[0].shape;
    int64_t n_rows = stk_shape_product(y, 0, axis), n_inner = stk_shape_product(y, axis + 1, y.rank), at = 0;
    for (int i = 0; i < call->n_in; i++) {
        gpu_box box = box_of(m);
        int64_t n = call->in[i].shape.dim[axis];
        box.dst_first = at * n_inner;
        gpu_add_axis(&box, n_rows, n * n_inner, y.dim[axis] * n_inner);
        gpu_add_axis(&box, n * n_inner, 1, 1);
        gpu_copy_box(m, box, i, 0);
        at += n;
    }
}
