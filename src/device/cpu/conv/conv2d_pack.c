#include "device/cpu/conv/conv2d_pack.h"

#include <string.h>

#include "device/cpu/threads/parallel.h"

enum { LANES = STK_PACK_LANES };

/* What is packed at a time: output channels [o, o + block) of one tap, and input channels [c, c + n). */
typedef struct pack_item {
    int64_t o, y, x, c, n;
} pack_item;

/* Blocks of output channels, then taps, then ranges of input channels. */
static pack_item find_item(const stk_conv_packing *p, int64_t n_ranges, int64_t i)
{
    enum { AT_ONCE = STK_PACK_AT_ONCE };
    int64_t range = i % n_ranges, tap = i / n_ranges % (p->kernel_h * p->kernel_w);
    pack_item item = {.o = i / n_ranges / (p->kernel_h * p->kernel_w) * p->block, .c = range * AT_ONCE};
    item.y = tap / p->kernel_w;
    item.x = tap % p->kernel_w;
    item.n = p->c - item.c < AT_ONCE ? p->c - item.c : AT_ONCE;
    return item;
}

static void pack(const stk_tile_fns *tiles, const stk_conv_packing *p, const uint16_t *weight, const float *wide,
                 pack_item item, uint16_t *to)
{
    const int64_t n_taps = p->kernel_h * p->kernel_w, tap = item.y * p->kernel_w + item.x;
    /* From an output channel to the next, and from an input channel. */
    int64_t from_o = p->is_turned ? 1 : n_taps * p->c, from_c = p->is_turned ? n_taps * p->o : 1;
    int64_t from_tap = p->is_turned ? (n_taps - 1 - tap) * p->o : tap * p->c;
    int64_t at = item.o * from_o + from_tap + item.c * from_c;
    int64_t n_o = p->o - item.o < p->block ? p->o - item.o : p->block;
    /* Of the product that a tap is, pairs go along what is summed over: a panel's rows. Its columns are the others. */
    bool in_pairs = p->kind == STK_PACK_IN_PAIRS;
    int64_t row = in_pairs ? from_c : from_o, col = in_pairs ? from_o : from_c;
    int64_t k = in_pairs ? item.n : n_o, n = in_pairs ? n_o : item.n;
    int64_t width = in_pairs ? p->block : LANES, depth = in_pairs ? p->padded_c : p->c_step / LANES;
    to += item.o / p->block * p->o_step + item.y * p->y_step + item.x * p->x_step;
    to += in_pairs ? item.c / 2 * p->c_step : item.c / LANES * p->c_step;
    for (int64_t j = 0; !in_pairs && n_o < p->block && j < n; j += LANES)
        memset(to + j / LANES * p->c_step, 0, sizeof(*to) * LANES * LANES);
    if (wide)
        tiles->pack_rounded(wide + at, row, col, k, n, (int)width, depth, to);
    else
        tiles->pack_far(weight + at, row, col, k, n, (int)width, depth, to);
}

void stk_conv_pack_share(const stk_tile_fns *tiles, const stk_conv_packing *p, const uint16_t *weight,
                         const float *wide, uint16_t *to, int i_part, int n_parts)
{
    int64_t begin, end, n_ranges = (p->c + STK_PACK_AT_ONCE - 1) / STK_PACK_AT_ONCE;
    stk_cpu_share(p->padded_o / p->block * p->kernel_h * p->kernel_w * n_ranges, 1, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++)
        pack(tiles, p, weight, wide, find_item(p, n_ranges, i), to);
}
