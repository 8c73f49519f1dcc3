/* Elements along an axis by number: copies of rows, in the largest units that a row consists of. */
#include "device/gpu/ops/box.h"

enum { GROUP = 256 };

void gpu_make_gather(gpu_maker *m)
{
    const stk_op_call *call = m->call;
    stk_shape x = call->in[0].shape;
    int axis = call->attrs->axis;
    size_t row_bytes = (size_t)stk_shape_product(x, axis + 1, x.rank) * stk_dtype_bytes(call->in[0].dtype);
    size_t unit = gpu_unit_of(row_bytes);
    int64_t n_units = (int64_t)(row_bytes / unit), n_ids = stk_shape_count(call->in[1].shape);
    int64_t n = stk_shape_product(x, 0, axis) * n_ids * n_units;
    if (n == 0) return;
    gpu_add(m, "gather.dev", "gather", "#define UNIT unit_%zu\n", unit);
    gpu_in(m, 0);
    gpu_in(m, 1);
    gpu_out(m, 0);
    gpu_index(m, n_ids);
    gpu_index(m, x.dim[axis]);
    gpu_index(m, n_units);
    gpu_index(m, n);
    gpu_fault(m, STK_NO_ROW, "id %lld at position %lld is not one of the %lld rows", x.dim[axis]);
    gpu_items(m, n, GROUP);
}
