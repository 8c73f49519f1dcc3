/* See reduce.h. */
#include <stdio.h>

#include "device/gpu/ops/reduce.h"

enum { WANTED_GROUPS = 512, MOST_PARTS = 256 };

void gpu_reduce_settings(int kind, char *out, size_t n)
{
    static const char *const text[STK_N_REDUCE] = {
        [STK_REDUCE_SUM] = "#define REDUCE_FIRST 0.0f\n#define REDUCE(a, b) ((a) + (b))\n",
        [STK_REDUCE_MEAN] = "#define REDUCE_FIRST 0.0f\n#define REDUCE(a, b) ((a) + (b))\n",
        [STK_REDUCE_MAX] = "#define REDUCE_FIRST (-INFINITE)\n#define REDUCE(a, b) max_f(a, b)\n",
        [STK_REDUCE_MIN] = "#define REDUCE_FIRST INFINITE\n#define REDUCE(a, b) min_f(a, b)\n",
        [STK_REDUCE_PROD] = "#define REDUCE_FIRST 1.0f\n#define REDUCE(a, b) ((a) * (b))\n",
    };
    snprintf(out, n, "%s", text[kind]);
}

int64_t gpu_reduce_parts(int64_t n_groups, int64_t n_along, int64_t least, int64_t *n_each)
{
    int64_t n_parts = n_groups ? WANTED_GROUPS / n_groups : 1;
    if (n_parts > MOST_PARTS) n_parts = MOST_PARTS;
    if (n_parts > n_along / least) n_parts = n_along / least;
    if (n_parts < 1) n_parts = 1;
    *n_each = n_along ? (n_along + n_parts - 1) / n_parts : 1;
    return n_along ? (n_along + *n_each - 1) / *n_each : 1;
}

void gpu_join_parts(gpu_maker *m, int kind, size_t part, int64_t n_parts, int64_t n, int64_t n_along, int i_out)
{
    char reduce[256];
    gpu_reduce_settings(kind, reduce, sizeof(reduce));
    const char *type = gpu_type(m, m->call->out[i_out].dtype);
    gpu_add(m, "reduce.dev", "join_parts", "%s#define T %s\n", reduce, type);
    gpu_scratch(m, part);
    gpu_out(m, i_out);
    gpu_index(m, n_parts);
    gpu_index(m, n);
    gpu_float(m, kind == STK_REDUCE_MEAN ? (double)n_along : 1);
    gpu_items(m, n, 256);
}
