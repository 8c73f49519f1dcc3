/* See norm.h. */
#include "device/gpu/ops/norm.h"

void gpu_add_norm(gpu_maker *m, const char *kernel, const gpu_norm_settings *s, const gpu_columns *columns)
{
    gpu_add(m, "norm_columns.dev", kernel,
            "#define T %s\n#define EACH %d\n#define BY %d\n#define RELU %d\n#define RESIDUAL %d\n#define ADDS %d\n",
            stk_dtype_name(s->dtype), columns->each, s->by, s->relu, s->residual, s->adds);
}

size_t gpu_take_parts(gpu_maker *m, const gpu_columns *columns)
{
    return gpu_take(m, (size_t)gpu_count_parts(columns) * 2 * sizeof(float));
}

size_t gpu_add_measure(gpu_maker *m, const gpu_columns *columns)
{
    size_t part = gpu_take_parts(m, columns);
    gpu_add(m, "norm_measure.dev", "measure", "#define T %s\n#define EACH %d\n", stk_dtype_name(m->call->in[0].dtype),
            columns->each);
    gpu_in(m, 0);
    gpu_scratch(m, part);
    gpu_index(m, columns->n_parts);
    gpu_over_columns(m, columns);
    return part;
}
