/* Layer norm along rows (kernels/layer_norm.dev); dscale and dbias are sums of columns. */
#include "device/gpu/ops/norm.h"
#include "device/gpu/ops/reduce.h"
#include "device/gpu/ops/rows.h"

static void add_rows(gpu_maker *m, const char *kernel, stk_tensor_desc x, gpu_rows *rows)
{
    int each = gpu_each(x.dtype, x.shape.dim[x.shape.rank - 1]);
    *rows = gpu_find_rows(x, each);
    gpu_add(m, "layer_norm.dev", kernel, "#define T %s\n#define EACH %d\n#define HELD %d\n", stk_dtype_name(x.dtype),
            each, rows->n_held);
    for (int i = 0; i < m->call->n_in; i++)
        gpu_in(m, i);
    gpu_out(m, 0);
}

void gpu_make_layer_norm(gpu_maker *m)
{
    gpu_rows rows;
    add_rows(m, "layer_norm", m->call->in[0], &rows);
    gpu_out(m, 1);
    gpu_out(m, 2);
    gpu_over_rows(m, &rows);
    gpu_float(m, m->call->attrs->layer_norm.eps);
    m->in_place[0] = 1;
}

/* The sums come first: dx may lie where dy or x does. */
void gpu_make_layer_norm_grad(gpu_maker *m)
{
    stk_tensor_desc x = m->call->in[1];
    int64_t n = x.shape.dim[x.shape.rank - 1];
    gpu_columns c = gpu_find_columns(x.dtype, 1, stk_shape_product(x.shape, 0, x.shape.rank - 1), n, true);
    gpu_norm_settings s = {.dtype = x.dtype, .by = GPU_BY_ROW};
    gpu_rows rows;
    size_t part = gpu_take_parts(m, &c);
    gpu_add_norm(m, "sums", &s, &c);
    gpu_in(m, 1);
    gpu_in(m, 0);
    gpu_in(m, 2);
    gpu_in(m, 2);
    gpu_in(m, 3);
    gpu_in(m, 4);
    gpu_scratch(m, part);
    gpu_index(m, c.n_parts);
    gpu_over_columns(m, &c);
    gpu_index(m, 1);
    gpu_sum_parts(m, part, c.n_parts, n, 2);
    gpu_sum_parts(m, part + (size_t)gpu_count_parts(&c) * sizeof(float), c.n_parts, n, 1);
    add_rows(m, "layer_norm_grad", x, &rows);
    gpu_over_rows(m, &rows);
    m->in_place[0] = 3;
}
