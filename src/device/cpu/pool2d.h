/* Pooling and its gradients, NHWC, all channels of a pixel side by side. */
#ifndef STK_DEVICE_CPU_POOL2D_H
#define STK_DEVICE_CPU_POOL2D_H

#include "device/cpu/isa.h"
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

typedef struct stk_pool_table {
    stk_pool_fns f32, f64;
} stk_pool_table;

STK_ISA_TABLE(stk_pool_table, stk_pool)

#endif
