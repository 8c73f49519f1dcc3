/* Along one axis: iota, argmax, cumsum. A work-item goes along a line where there are many, or short ones; else a group
 * does. */
#include "device/gpu/gpu.h"

enum { GROUP = 256, LEAST_LONG = 64, MANY_LINES = 1 << 15 };

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

static bool is_long(stk_shape x, int axis)
{
    int64_t n_inner = stk_shape_product(x, axis + 1, x.rank), n_lines = stk_shape_product(x, 0, axis) * n_inner;
    return x.dim[axis] >= LEAST_LONG && (n_inner < GROUP / 8 || n_lines < MANY_LINES);
}

/* What stands behind the launch's settings. */
static void add_lines(gpu_maker *m, int axis)
{
    stk_shape x = m->call->in[0].shape;
    int64_t n_inner = stk_shape_product(x, axis + 1, x.rank), n_lines = stk_shape_product(x, 0, axis) * n_inner;
    gpu_in(m, 0);
    gpu_out(m, 0);
    gpu_index(m, x.dim[axis]);
    gpu_index(m, n_inner);
    gpu_index(m, n_lines);
    if (is_long(x, axis)) {
        gpu_group(m, GROUP, 1, 1);
        gpu_groups(m, n_lines, 1, 1);
    } else {
        gpu_items(m, n_lines, GROUP);
    }
}

void gpu_make_argmax(gpu_maker *m)
{
    stk_tensor_desc x = m->call->in[0];
    int axis = m->call->attrs->argmax.axis;
    if (stk_shape_count(x.shape) == 0) return;
    gpu_add(m, "axis.dev", is_long(x.shape, axis) ? "argmax_long" : "argmax_lines", "#define T %s\n#define LAST %d\n",
            gpu_type(m, x.dtype), m->call->attrs->argmax.last != 0);
    add_lines(m, axis);
}

void gpu_make_cumsum(gpu_maker *m)
{
    stk_tensor_desc x = m->call->in[0];
    int axis = m->call->attrs->cumsum.axis;
    m->in_place[0] = 1;
    if (stk_shape_count(x.shape) == 0) return;
    gpu_add(m, "axis.dev", is_long(x.shape, axis) ? "cumsum_long" : "cumsum_lines",
            "#define T %s\n#define EXCLUSIVE %d\n#define REVERSE %d\n", gpu_type(m, x.dtype),
            m->call->attrs->cumsum.exclusive != 0, m->call->attrs->cumsum.reverse != 0);
    add_lines(m, axis);
}
