/* See columns.h. */
#include "device/gpu/ops/columns.h"

#include "device/gpu/ops/rows.h"

/* Rows that a work-item goes down at least, where there are enough of them. */
enum { GROUP = 256, MOST_SIDE = 32, SUM_GROUPS = 512, OTHER_GROUPS = 4096, LEAST_SUMMED = 8, LEAST_OTHER = 2 };

gpu_columns gpu_find_columns(stk_dtype dtype, int64_t n_outer, int64_t n_along, int64_t n_columns, bool is_summed)
{
    gpu_columns c = {.n_outer = n_outer, .n_along = n_along, .n_columns = n_columns, .n_side = 1, .n_parts = 1};
    c.each = gpu_each(dtype, n_columns);
    int64_t n_wide = n_columns / c.each, n_wanted = is_summed ? SUM_GROUPS : OTHER_GROUPS;
    while (c.n_side < MOST_SIDE && c.n_side < n_wide)
        c.n_side *= 2;
    int64_t n_groups = n_outer * ((n_wide + c.n_side - 1) / c.n_side);
    int64_t least = (GROUP / c.n_side) * (is_summed ? LEAST_SUMMED : LEAST_OTHER);
    if (n_groups) c.n_parts = n_wanted / n_groups;
    if (c.n_parts > n_along / least) c.n_parts = n_along / least;
    if (c.n_parts < 1) c.n_parts = 1;
    c.n_each = n_along ? (n_along + c.n_parts - 1) / c.n_parts : 1;
    c.n_parts = n_along ? (n_along + c.n_each - 1) / c.n_each : 1;
    return c;
}

void gpu_over_columns(gpu_maker *m, const gpu_columns *c)
{
    int64_t n_wide = c->n_columns / c->each;
    gpu_index(m, c->n_outer);
    gpu_index(m, c->n_along);
    gpu_index(m, c->n_columns);
    gpu_index(m, c->n_each);
    gpu_int(m, c->n_side);
    gpu_group(m, GROUP, 1, 1);
    gpu_groups(m, c->n_outer * ((n_wide + c->n_side - 1) / c->n_side), c->n_parts, 1);
}

int64_t gpu_count_parts(const gpu_columns *c)
{
    return c->n_parts * c->n_outer * c->n_columns;
}
