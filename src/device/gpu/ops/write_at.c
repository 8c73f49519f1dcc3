/* Rows written into a longer array: a copy of it, none in place, and the rows. */
#include "device/gpu/ops/box.h"

enum { GROUP = 256 };

void gpu_make_write_at(gpu_maker *m)
{
    const stk_op_call *call = m->call;
    stk_shape x = call->in[0].shape, rows = call->in[1].shape;
    size_t row_bytes = (size_t)stk_shape_product(x, 2, x.rank) * stk_dtype_bytes(call->in[0].dtype);
    size_t unit = gpu_unit_of(row_bytes);
    int64_t n_units = (int64_t)(row_bytes / unit), n = x.dim[0] * rows.dim[1] * n_units;
    gpu_box whole = {.unit_bytes = stk_dtype_bytes(call->in[0].dtype)};
    gpu_add_axis(&whole, stk_shape_count(x), 1, 1);
    gpu_copy_box(m, whole, 0, 0);
    gpu_copies(m, 0, 0);
    m->in_place[0] = 1;
    if (n == 0) return;
    gpu_add(m, "write_at.dev", "write_at", "#define UNIT unit_%zu\n", unit);
    gpu_in(m, 1);
    gpu_in(m, 2);
    gpu_out(m, 0);
    gpu_index(m, x.dim[1]);
    gpu_index(m, rows.dim[1]);
    gpu_index(m, n_units);
    gpu_index(m, n);
    gpu_fault(m, STK_INVALID, "position %lld: %lld rows from there on do not lie within the cache's %lld", x.dim[1]);
    gpu_items(m, n, GROUP);
}
