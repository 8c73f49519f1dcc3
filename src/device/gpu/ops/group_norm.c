/* Group norm: each column of a sample is measured, the columns of a group are joined, and a second sweep normalises;
 * the gradient likewise. */
#include "device/gpu/ops/norm.h"
#include "device/gpu/ops/reduce.h"

static gpu_columns find_columns(stk_tensor_desc x, bool is_summed)
{
    return gpu_find_columns(x.dtype, x.shape.dim[0], stk_shape_product(x.shape, 1, x.shape.rank - 1),
                            x.shape.dim[x.shape.rank - 1], is_summed);
}

void gpu_make_group_norm(gpu_maker *m)
{
    const stk_op_call *call = m->call;
    gpu_columns c = find_columns(call->in[0], true), all = find_columns(call->in[0], false);
    int64_t n_groups = call->attrs->group_norm.groups, width = c.n_columns / n_groups;
    gpu_norm_settings s = {.dtype = call->in[0].dtype, .by = GPU_BY_GROUP};
    size_t part = gpu_add_measure(m, &c);
    gpu_add(m, "norm_join.dev", "join_groups", "%s", "");
    gpu_scratch(m, part);
    gpu_out(m, 1);
    gpu_out(m, 2);
    gpu_index(m, c.n_parts);
    gpu_index(m, c.n_outer);
    gpu_index(m, c.n_columns);
    gpu_index(m, c.n_each);
    gpu_index(m, c.n_along);
    gpu_index(m, width);
    gpu_float(m, call->attrs->group_norm.eps);
    gpu_group(m, 256, 1, 1);
    gpu_groups(m, c.n_outer * n_groups, 1, 1);
    gpu_add_norm(m, "apply", &s, &all);
    gpu_in(m, 0);
    gpu_in(m, 1);
    gpu_in(m, 2);
    gpu_out(m, 1);
    gpu_out(m, 2);
    gpu_out(m, 0);
    gpu_over_columns(m, &all);
    gpu_index(m, width);
    m->in_place[0] = 1;
}

/* x, dy, scale, in bias's place again scale, mean, inv_std: what kernels of norm_columns.dev begin with. */
static void add_memory(gpu_maker *m)
{
    static const int inputs[] = {1, 0, 2, 2, 3, 4};
    for (int i = 0; i < 6; i++)
        gpu_in(m, inputs[i]);
}

void gpu_make_group_norm_grad(gpu_maker *m)
{
    const stk_op_call *call = m->call;
    gpu_columns c = find_columns(call->in[1], true), all = find_columns(call->in[1], false);
    int64_t n_groups = call->attrs->group_norm.groups, width = c.n_columns / n_groups;
    gpu_norm_settings s = {.dtype = call->in[1].dtype, .by = GPU_BY_GROUP};
    size_t part = gpu_take_parts(m, &c), bytes = (size_t)(c.n_outer * n_groups) * sizeof(float);
    size_t group = gpu_take(m, 2 * bytes);
    gpu_add_norm(m, "sums", &s, &c);
    add_memory(m);
    gpu_scratch(m, part);
    gpu_index(m, c.n_parts);
    gpu_over_columns(m, &c);
    gpu_index(m, width);
    gpu_sum_parts(m, part, c.n_parts * c.n_outer, c.n_columns, 2);
    gpu_sum_parts(m, part + (size_t)gpu_count_parts(&c) * sizeof(float), c.n_parts * c.n_outer, c.n_columns, 1);
    gpu_add(m, "norm_join.dev", "join_group_sums", "%s", "");
    gpu_scratch(m, part);
    gpu_in(m, 2);
    gpu_scratch(m, group);
    gpu_index(m, c.n_parts);
    gpu_index(m, c.n_outer);
    gpu_index(m, c.n_columns);
    gpu_index(m, width);
    gpu_float(m, (double)(c.n_along * width));
    gpu_group(m, 256, 1, 1);
    gpu_groups(m, c.n_outer * n_groups, 1, 1);
    gpu_add_norm(m, "gradient", &s, &all);
    add_memory(m);
    gpu_scratch(m, group);
    gpu_scratch(m, group + bytes);
    gpu_out(m, 0);
    gpu_float(m, 1);
    gpu_over_columns(m, &all);
    gpu_index(m, width);
    m->in_place[0] = 3;
}
