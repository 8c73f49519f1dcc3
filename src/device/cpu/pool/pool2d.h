/* Pooling and its gradients, NHWC, all channels of a pixel side by side. */
#ifndef STK_DEVICE_CPU_POOL_POOL2D_H
#define STK_DEVICE_CPU_POOL_POOL2D_H

#include "device/cpu/simd/isa.h"
#include "graph/op.h"

/* A pixel's window: where its taps inside the image lie, as element offsets of channel 0. */
typedef struct stk_pool_taps {
    int n;
    const int64_t *offset;
} stk_pool_taps;

/* Each for one output pixel. x or dx: the whole tensor; y, dy: the pixel's channels. */
typedef struct stk_pool_fns {
    void (*max)(int64_t n_channels, const stk_pool_taps *taps, const void *x, void *y);
    void (*avg)(int64_t n_channels, const stk_pool_taps *taps, const void *x, void *y);
    /* Add to dx; with `alone` no other window holds these pixels, so that they are written instead. */
    void (*max_grad)(int64_t n_channels, const stk_pool_taps *taps, const void *x, const void *y, const void *dy,
                     void *dx, bool alone);
    void (*avg_grad)(int64_t n_channels, const stk_pool_taps *taps, const void *dy, void *dx, bool alone);
} stk_pool_fns;

/* Max pooling of bf16, whose numbers are read as f32. */
typedef struct stk_pool_half_fns {
    void (*max)(int64_t n_channels, const stk_pool_taps *taps, const void *x, void *y);
    /* Adds to sums + to[tap], the f32 gradient of that tap's pixel. */
    void (*max_grad)(int64_t n_channels, const stk_pool_taps *taps, const int64_t *to, const uint16_t *x,
                     const uint16_t *y, const uint16_t *dy, float *sums);
} stk_pool_half_fns;

/* A row of n windows of h x w pixels that lie inside the image and do not overlap; elements from a window to the next,
 * and from a row of the image to the next. */
typedef struct stk_pool_row {
    int h, w;
    int64_t n, c, step, row;
} stk_pool_row;

/* x, dx: the first window's first pixel; y, dy: its result's. All of the windows' dx are written. */
typedef struct stk_pool_row_fns {
    void (*max)(const stk_pool_row *row, const void *x, void *y);
    void (*max_grad)(const stk_pool_row *row, const void *x, const void *y, const void *dy, void *dx);
} stk_pool_row_fns;

typedef struct stk_pool_table {
    stk_pool_fns f32, f64;
    stk_pool_half_fns bf16;
    stk_pool_row_fns f32_rows, bf16_rows;
} stk_pool_table;

STK_ISA_TABLE(stk_pool_table, stk_pool)

/* --- windows --- */

typedef struct stk_pool_axis {
    int64_t n_in, n_out, n_taps, stride, pad, dilation;
} stk_pool_axis;

static inline bool stk_pool_find_input(const stk_pool_axis *a, int64_t i_out, int64_t i_tap, int64_t *i_in)
{
    *i_in = i_out * a->stride - a->pad + i_tap * a->dilation;
    return *i_in >= 0 && *i_in < a->n_in;
}

/* Axis number k of the window over images x with results y; below 0: an axis that they do not have. */
static inline stk_pool_axis stk_pool_make_axis(const stk_window *w, stk_shape x, stk_shape y, int k)
{
    if (k < 0) return (stk_pool_axis){1, 1, 1, 1, 0, 1};
    return (stk_pool_axis){x.dim[1 + k], y.dim[1 + k], w->kernel[k], w->stride[k], w->pad_low[k], w->dilation[k]};
}

#endif
