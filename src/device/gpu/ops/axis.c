/* Along one axis: iota. */
#include "device/gpu/gpu.h"

enum { GROUP = 256 };

void gpu_make_iota(gpu_maker *m)
{
    stk_tensor_desc y = m->call->out[0];
    int axis = m->call->attrs->axis;
    int64_t n = stk_shape_count(y.shape);
    if (n == 0) return;
    gpu_add(m, "axis.dev", "iota", "#define T %s\n", gpu_type(m, y.dtype));
    gpu_out(m, 0);
    gpu_index(m, y.shape.dim[axis]);
    gpu_index(m, stk_shape_product(y.shape, axis + 1, y.shape.rank));
    gpu_index(m, n);
    gpu_items(m, n, GROUP);
}
