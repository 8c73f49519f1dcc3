/* Batch norm: columns are measured in parts, the parts are joined, and a second sweep normalises. The gradient likewise
 * sums up in parts and sweeps once more. */
#include "device/gpu/ops/norm.h"
#include "device/gpu/ops/reduce.h"

static gpu_columns find_columns(stk_tensor_desc x, bool is_summed)
{
    return gpu_find_columns(x.dtype, 1, stk_shape_product(x.shape, 0, x.shape.rank - 1), x.shape.dim[x.shape.rank - 1],
                            is_summed);
}

static void add_memory(gpu_maker *m, const int *inputs, int n)
{
    for (int i = 0; i < n; i++)
        gpu_in(m, inputs[i]);
}

/* mean and inv_std: inputs 3 and 4 (is_applied), or outputs 1 and 2. */
static void add_normalize(gpu_maker *m, bool is_applied)
{
    const stk_op_call *call = m->call;
    gpu_columns c = find_columns(call->in[0], false);
    bool has_residual = call->n_in == 6;
    gpu_norm_settings s = {.dtype = call->in[0].dtype,
                           .by = GPU_BY_COLUMN,
                           .relu = call->attrs->batch_norm.relu,
                           .residual = has_residual};
    gpu_add_norm(m, "apply", &s, &c);
    add_memory(m, (const int[]){0, 1, 2}, 3);
    (is_applied ? gpu_in : gpu_out)(m, is_applied ? 3 : 1);
    (is_applied ? gpu_in : gpu_out)(m, is_applied ? 4 : 2);
    if (has_residual) gpu_in(m, 5);
    gpu_out(m, 0);
    gpu_over_columns(m, &c);
    gpu_index(m, 1);
    m->in_place[0] = has_residual ? 1u << 5 | 1 : 1;
}

void gpu_make_batch_norm_apply(gpu_maker *m)
{
    add_normalize(m, true);
}

/* An empty batch says nothing about the data; of one row there is no unbiased variance. */
void gpu_make_batch_norm(gpu_maker *m)
{
    const stk_attrs *attrs = m->call->attrs;
    gpu_columns c = find_columns(m->call->in[0], true);
    double n = (double)c.n_along;
    size_t part = gpu_add_measure(m, &c);
    gpu_add(m, "norm_join.dev", "join_columns", "%s", "");
    gpu_scratch(m, part);
    add_memory(m, (const int[]){3, 4}, 2);
    for (int i = 1; i < 5; i++)
        gpu_out(m, i);
    gpu_index(m, c.n_parts);
    gpu_index(m, c.n_columns);
    gpu_index(m, c.n_each);
    gpu_index(m, c.n_along);
    gpu_float(m, attrs->batch_norm.eps);
    gpu_float(m, c.n_along ? attrs->batch_norm.momentum : 0);
    gpu_float(m, attrs->batch_norm.unbiased && n > 1 ? n / (n - 1) : 1);
    gpu_items(m, c.n_columns * 32, 256);
    add_normalize(m, false);
}

/* dscale and dbias out of the parts, then dx of what is left of dy: input 0, or output 3. Inputs: x, dy, scale, bias,
 * mean, inv_std. */
static void add_gradient(gpu_maker *m, const gpu_norm_settings *s, const gpu_columns *summed, size_t part,
                         const int inputs[6], bool from_d)
{
    gpu_columns c = find_columns(m->call->in[inputs[0]], false);
    gpu_sum_parts(m, part, summed->n_parts, c.n_columns, 2);
    gpu_sum_parts(m, part + (size_t)gpu_count_parts(summed) * sizeof(float), summed->n_parts, c.n_columns, 1);
    gpu_add_norm(m, "gradient", s, &c);
    gpu_in(m, inputs[0]);
    (from_d ? gpu_out : gpu_in)(m, from_d ? 3 : inputs[1]);
    add_memory(m, inputs + 2, 4);
    gpu_out(m, 2);
    gpu_out(m, 1);
    gpu_out(m, 0);
    gpu_float(m, (double)c.n_along);
    gpu_over_columns(m, &c);
    gpu_index(m, 1);
}

static void end_sums(gpu_maker *m, const gpu_columns *c, size_t part)
{
    gpu_scratch(m, part);
    gpu_index(m, c->n_parts);
    gpu_over_columns(m, c);
    gpu_index(m, 1);
}

void gpu_make_batch_norm_grad(gpu_maker *m)
{
    static const int inputs[] = {1, 0, 2, 3, 4, 5};
    gpu_columns c = find_columns(m->call->in[1], true);
    gpu_norm_settings s = {.dtype = m->call->in[1].dtype, .by = GPU_BY_COLUMN, .relu = m->call->attrs->batch_norm.relu};
    size_t part = gpu_take_parts(m, &c);
    gpu_add_norm(m, "sums", &s, &c);
    add_memory(m, inputs, 6);
    end_sums(m, &c, part);
    add_gradient(m, &s, &c, part, inputs, false);
    m->in_place[0] = 3;
}

/* d is written where it is summed up, while x is still to be read. */
void gpu_make_batch_norm_sum_grad(gpu_maker *m)
{
    static const int inputs[] = {0, 1, 4, 4, 5, 6};
    gpu_columns c = find_columns(m->call->in[0], true);
    gpu_norm_settings s = {.dtype = m->call->in[0].dtype, .by = GPU_BY_COLUMN}, adding = s;
    adding.adds = true;
    size_t part = gpu_take_parts(m, &c);
    gpu_add_norm(m, "sums", &adding, &c);
    add_memory(m, (const int[]){0, 1, 2, 3}, 4);
    gpu_out(m, 3);
    add_memory(m, inputs + 2, 4);
    end_sums(m, &c, part);
    add_gradient(m, &s, &c, part, inputs, true);
    m->in_place[0] = 1;
    m->in_place[3] = 1u << 1 | 1u << 2 | 1u << 3;
}
