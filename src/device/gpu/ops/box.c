/* See box.h. */
#include "device/gpu/ops/box.h"

#include <string.h>

enum { GROUP = 256, TILE = 32, TILE_ROWS = 8, LEAST_TILED = 8, MOST_UNIT = 16 };

void gpu_add_axis(gpu_box *box, int64_t size, int64_t src, int64_t dst)
{
    int last = box->n_axes - 1;
    if (size == 1) return;
    if (last >= 0 && box->src[last] == src * size && box->dst[last] == dst * size)
        box->size[last] *= size;
    else
        box->size[box->n_axes++] = size;
    box->src[box->n_axes - 1] = src;
    box->dst[box->n_axes - 1] = dst;
}

size_t gpu_unit_of(size_t n_bytes)
{
    size_t unit = MOST_UNIT;
    while (n_bytes % unit)
        unit /= 2;
    return unit;
}

static bool halves(const gpu_box *box)
{
    int last = box->n_axes - 1;
    bool fits = box->src[last] == 1 && box->dst[last] == 1 && box->size[last] % 2 == 0 && box->src_first % 2 == 0 &&
                box->dst_first % 2 == 0;
    for (int a = 0; a < last; a++)
        fits = fits && box->src[a] % 2 == 0 && box->dst[a] % 2 == 0;
    return fits;
}

/* Two elements that lie side by side on both sides are one of twice their bytes. */
static void widen(gpu_box *box)
{
    int last = box->n_axes - 1;
    while (box->unit_bytes < MOST_UNIT && halves(box)) {
        box->unit_bytes *= 2;
        box->src_first /= 2;
        box->dst_first /= 2;
        for (int a = 0; a < last; a++) {
            box->src[a] /= 2;
            box->dst[a] /= 2;
        }
        box->size[last] /= 2;
    }
}

/* The axis along which that side lies in one piece, or -1. */
static int find_unit_stride(const gpu_box *box, const int64_t *stride)
{
    for (int a = 0; a < box->n_axes; a++)
        if (stride[a] == 1 && box->size[a] >= LEAST_TILED) return a;
    return -1;
}

static void take_axis(gpu_box *box, int axis)
{
    box->n_axes--;
    for (int a = axis; a < box->n_axes; a++) {
        box->size[a] = box->size[a + 1];
        box->src[a] = box->src[a + 1];
        box->dst[a] = box->dst[a + 1];
    }
}

static void keep_an_axis(gpu_box *box)
{
    if (box->n_axes > 0) return;
    box->n_axes = 1;
    box->size[0] = 1;
    box->src[0] = box->dst[0] = 0;
}

static void add_launch(gpu_maker *m, const gpu_box *box, const char *kernel, int i_in, int i_out)
{
    int64_t wide[3 * STK_MAX_RANK];
    int32_t narrow[3 * STK_MAX_RANK];
    int n = 0;
    const int64_t *part[3] = {box->size, box->src, box->dst};
    for (int k = 0; k < 3; k++)
        for (int a = 0; a < box->n_axes; a++, n++) {
            wide[n] = part[k][a];
            narrow[n] = (int32_t)part[k][a];
        }
    gpu_add(m, "move.dev", kernel, "#define UNIT unit_%zu\n#define N_AXES %d\n", box->unit_bytes, box->n_axes);
    gpu_in(m, i_in);
    gpu_out(m, i_out);
    gpu_bytes(m, m->wide ? (const void *)wide : narrow, (size_t)n * (m->wide ? sizeof(*wide) : sizeof(*narrow)));
    gpu_index(m, box->src_first);
    gpu_index(m, box->dst_first);
}

static int64_t count(const gpu_box *box)
{
    int64_t n = 1;
    for (int a = 0; a < box->n_axes; a++)
        n *= box->size[a];
    return n;
}

/* Columns lie in one piece in src, rows in dst. */
static void add_tiles(gpu_maker *m, gpu_box *box, int columns, int rows, int i_in, int i_out)
{
    int64_t n_columns = box->size[columns], n_rows = box->size[rows];
    int64_t src_stride = box->src[rows], dst_stride = box->dst[columns];
    take_axis(box, columns > rows ? columns : rows);
    take_axis(box, columns > rows ? rows : columns);
    keep_an_axis(box);
    add_launch(m, box, "copy_tiles", i_in, i_out);
    gpu_index(m, n_rows);
    gpu_index(m, n_columns);
    gpu_index(m, src_stride);
    gpu_index(m, dst_stride);
    gpu_group(m, TILE, TILE_ROWS, 1);
    gpu_groups(m, count(box) * ((n_rows + TILE - 1) / TILE) * ((n_columns + TILE - 1) / TILE), 1, 1);
}

void gpu_copy_box(gpu_maker *m, gpu_box box, int i_in, int i_out)
{
    int64_t n = count(&box);
    if (n == 0) return;
    keep_an_axis(&box);
    int columns = find_unit_stride(&box, box.src), rows = find_unit_stride(&box, box.dst);
    if (columns >= 0 && rows >= 0 && columns != rows) {
        add_tiles(m, &box, columns, rows, i_in, i_out);
        return;
    }
    if (n == 1) box.src[0] = box.dst[0] = 0;
    widen(&box);
    add_launch(m, &box, "copy_box", i_in, i_out);
    gpu_index(m, count(&box));
    gpu_items(m, count(&box), GROUP);
}
