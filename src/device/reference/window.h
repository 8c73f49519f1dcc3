/* Windows over images and volumes: which pixel of x lies under a tap for a pixel of y. An image is a volume of depth 1.
 */
#ifndef STK_DEVICE_REFERENCE_WINDOW_H
#define STK_DEVICE_REFERENCE_WINDOW_H

#include "graph/op.h"

typedef struct stk_ref_axis {
    int64_t n_in, n_out, n_taps, stride, pad, dilation;
} stk_ref_axis;

typedef struct stk_ref_window {
    stk_ref_axis axis[3]; /* depth, height, width */
    int64_t n_taps, n_y;  /* taps a window; pixels of y in all images */
} stk_ref_window;

/* x and y as [N,H,W,C] or [N,D,H,W,C]. */
static inline stk_ref_window stk_ref_window_make(const stk_window *w, stk_shape x, stk_shape y)
{
    stk_ref_window out = {.n_taps = 1, .n_y = y.dim[0]};
    int n_dims = x.rank - 2;
    for (int i = 0; i < 3; i++) {
        int k = i - (3 - n_dims);
        out.axis[i] =
            k < 0 ? (stk_ref_axis){1, 1, 1, 1, 0, 1} : (stk_ref_axis){x.dim[1 + k], y.dim[1 + k],  w->kernel[k],
                                                                      w->stride[k], w->pad_low[k], w->dilation[k]};
        out.n_taps *= out.axis[i].n_taps;
        out.n_y *= out.axis[i].n_out;
    }
    return out;
}

/* The pixel of x under tap number i_tap for pixel number i_y, counted over all images; -1: it lies outside. */
static inline int64_t stk_ref_window_pixel(const stk_ref_window *w, int64_t i_y, int64_t i_tap)
{
    int64_t at[3];
    for (int i = 2; i >= 0; i--) {
        const stk_ref_axis *a = &w->axis[i];
        at[i] = i_y % a->n_out * a->stride - a->pad + i_tap % a->n_taps * a->dilation;
        if (at[i] < 0 || at[i] >= a->n_in) return -1;
        i_y /= a->n_out;
        i_tap /= a->n_taps;
    }
    return ((i_y * w->axis[0].n_in + at[0]) * w->axis[1].n_in + at[1]) * w->axis[2].n_in + at[2];
}

#endif
