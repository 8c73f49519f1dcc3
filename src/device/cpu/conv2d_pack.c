#include "device/cpu/conv2d_pack.h"

#include <stdbool.h>
#include <string.h>

#include "device/cpu/parallel.h"

enum { LANES = STK_PACK_LANES };

/* Weights of one tap: element (o, c) is at from[o * o_step + c]. */
typedef struct tap {
    const uint16_t *from;
    int64_t o_step;
} tap;

static tap find_tap(const stk_conv_packing *p, const uint16_t *weight, int64_t y, int64_t x)
{
    return (tap){weight + (y * p->kernel_w + x) * p->c, p->kernel_h * p->kernel_w * p->c};
}

static uint32_t element(const stk_conv_packing *p, tap t, int64_t o, int64_t c)
{
    return o < p->o && c < p->c ? t.from[o * t.o_step + c] : 0;
}

/* LANES output channels of all twos of c. These lie side by side, and those of a channel are read a line at a time. */
static void pack_in_pairs(const stk_conv_packing *p, tap t, int64_t o, uint16_t *to)
{
    bool is_whole = o + LANES <= p->o && p->c % 2 == 0;
    for (int64_t c = 0; c < p->padded_c; c += 2 * LANES) {
        int64_t end = p->padded_c - c < 2 * LANES ? p->padded_c : c + 2 * LANES;
        for (int64_t i = 0; i < LANES; i++) {
            uint16_t *pair = to + c / 2 * p->c_step + 2 * i;
            if (is_whole) {
                const uint16_t *from = t.from + (o + i) * t.o_step;
                for (int64_t k = c; k < end; k += 2, pair += p->c_step)
                    memcpy(pair, from + k, sizeof(uint32_t));
            } else
                for (int64_t k = c; k < end; k += 2, pair += p->c_step) {
                    pair[0] = (uint16_t)element(p, t, o + i, k);
                    pair[1] = (uint16_t)element(p, t, o + i, k + 1);
                }
        }
    }
}

/* LANES output channels of LANES others. */
static void pack_out_pairs(const stk_conv_packing *p, tap t, int64_t o, int64_t c, uint16_t *to)
{
    bool is_whole = o + LANES <= p->o && c + LANES <= p->c;
    for (int64_t i = 0; i < LANES; i += 2, to += (ptrdiff_t)2 * LANES) {
        uint32_t pair[LANES];
        if (is_whole) {
            const uint16_t *low = t.from + (o + i) * t.o_step + c, *high = low + t.o_step;
            for (int k = 0; k < LANES; k++)
                pair[k] = low[k] | (uint32_t)high[k] << 16;
        } else
            for (int k = 0; k < LANES; k++)
                pair[k] = element(p, t, o + i, c + k) | element(p, t, o + i + 1, c + k) << 16;
        memcpy(to, pair, sizeof(pair));
    }
}

void stk_conv_pack_share(const stk_conv_packing *p, const uint16_t *weight, uint16_t *to, int i_part, int n_parts)
{
    int64_t begin, end, n_taps = p->kernel_h * p->kernel_w;
    stk_cpu_share(p->padded_o / LANES * n_taps, 1, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        int64_t o = i / n_taps * LANES, y = i % n_taps / p->kernel_w, x = i % p->kernel_w;
        tap t = find_tap(p, weight, y, x);
        uint16_t *at = to + o / p->block * p->o_step + y * p->y_step + x * p->x_step;
        if (p->kind == STK_PACK_IN_PAIRS)
            pack_in_pairs(p, t, o, at + o % p->block * 2);
        else
            for (int64_t c = 0; c < p->padded_c; c += LANES)
                pack_out_pairs(p, t, o, c, at + c / LANES * p->c_step);
    }
}
