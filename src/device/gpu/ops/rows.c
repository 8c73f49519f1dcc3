/* See rows.h. */
#include "device/gpu/ops/rows.h"

/* Packs of a work-item that are read at the same time, and few settings, of which each is a program. */
enum { MOST_PACKS = 4, WARP = 32 };

int gpu_pack(stk_dtype dtype)
{
    return 16 / (int)stk_dtype_bytes(dtype);
}

int gpu_each(stk_dtype dtype, int64_t n)
{
    return n % gpu_pack(dtype) ? 1 : gpu_pack(dtype);
}

gpu_rows gpu_find_rows(stk_tensor_desc x, int n_pack)
{
    int64_t n = x.shape.dim[x.shape.rank - 1];
    gpu_rows rows = {.n = n, .n_rows = stk_shape_product(x.shape, 0, x.shape.rank - 1), .n_items = 1};
    /* A row that begins inside of a pack may touch one more. */
    int64_t n_packs = n % n_pack ? n / n_pack + 2 : n / n_pack;
    while (rows.n_items < GPU_ROW_GROUP &&
           (rows.n_items < WARP ? rows.n_items < n_packs : rows.n_items * MOST_PACKS < n_packs))
        rows.n_items *= 2;
    int64_t n_held = (n_packs + rows.n_items - 1) / rows.n_items;
    rows.n_held = n_held <= 1 ? 1 : n_held <= MOST_PACKS ? MOST_PACKS : 0;
    return rows;
}

void gpu_over_rows(gpu_maker *m, const gpu_rows *rows)
{
    int n_side = GPU_ROW_GROUP / rows->n_items;
    gpu_index(m, rows->n_rows);
    gpu_index(m, rows->n);
    gpu_int(m, rows->n_items);
    gpu_group(m, GPU_ROW_GROUP, 1, 1);
    gpu_groups(m, (rows->n_rows + n_side - 1) / n_side, 1, 1);
}
