/* What own convolution kernels do, as lists made once: which pixels have which taps inside the image.
 *
 * Padding is absent, not zero: outputs are sorted by the taps that lie inside the image, so that nothing is multiplied
 * by padding (an infinite weight stays harmless there, and a 3x3 on 4x4 pixels does 31 % less) and no padded copy is
 * made. Outputs with the same taps form a class:
 *
 *     corner  top   corner        Taps side by side in an image row are side by side in memory as well, channels and
 *     left   inner  right         all, so that an inner output of a 3x3 reads three segments of 3 C elements: a direct
 *     corner bottom corner        convolution after Zhang, Franchetti & Low 2018, without im2col.
 *
 * The gradient of data is a convolution of grad_dst by the flipped kernel; with a stride s it is s x s of them, one for
 * each phase of an output pixel, and each has the taps that hit grad_dst at that phase.
 */
#ifndef STK_DEVICE_CPU_CONV_CONV2D_PLAN_H
#define STK_DEVICE_CPU_CONV_CONV2D_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "device/cpu/onednn/onednn.h"

/* Output i reads inputs i * stride - pad + tap * dilation. pad may be negative. */
typedef struct stk_conv_axis {
    int64_t n_in, n_out, n_taps, stride, pad, dilation;
    int64_t out_first, out_step; /* output i is pixel out_first + i * out_step */
    int64_t tap_first, tap_step; /* tap j is row or column tap_first + j * tap_step of the kernel */
} stk_conv_axis;

/* Outputs [begin, end) of an axis have taps [first_tap, end_tap) inside. */
typedef struct stk_conv_range {
    int64_t begin, end, first_tap, end_tap;
} stk_conv_range;

/* n elements from x on, counted from the output's first tap, times rows of weights from k on. */
typedef struct stk_conv_segment {
    int64_t x, k, n;
} stk_conv_segment;

/* Segments whose weights, for one tile's columns, fit into the L1 cache. */
typedef struct stk_conv_chunk {
    int64_t first, n;
} stk_conv_chunk;

typedef struct stk_conv_class {
    stk_conv_range y, x;
    int64_t first_chunk, n_chunks; /* one at least, which may be empty */
} stk_conv_class;

/* A convolution of stride `axis[].stride` over whole images. */
typedef struct stk_conv_phase {
    stk_conv_axis axis[2];
    int64_t n_rows, first_row; /* of packed weights: taps times input channels, and those of earlier phases */
    int64_t first_class, n_classes;
} stk_conv_phase;

/* Forward, or the gradient of data. Read-only after it is made. */
typedef struct stk_conv_dense {
    int64_t n_images, c_in, c_out;
    int64_t in_image, in_row, out_image, out_row; /* elements */
    bool has_relu;
    int64_t kernel_w;
    int64_t weight_tap, weight_in, weight_out; /* elements from one to the next */
    int64_t n_rows;                            /* of all phases */
    int64_t n_phases, n_classes, n_chunks, n_segments;
    stk_conv_phase *phases;
    stk_conv_class *classes;
    stk_conv_chunk *chunks;
    stk_conv_segment *segments;
} stk_conv_dense;

/* A tap: its weights from k on, and the outputs, y by x, whose input under it lies inside. */
typedef struct stk_conv_slice {
    int64_t k;
    int64_t y, end_y, x, end_x; /* outputs */
    int64_t in_y, in_x;         /* input of output (0, 0) */
} stk_conv_slice;

/* The gradient of weights. */
typedef struct stk_conv_weight {
    stk_dtype dtype; /* of x and grad_dst: F32, BF16 or F16; set by the caller, F32 at first */
    int64_t n_images, c_in, c_out, in_h, in_w, out_h, out_w;
    int64_t in_image, in_row, in_pixel; /* elements from one to the next */
    int64_t stride_y, stride_x;
    int64_t first_y, last_y; /* input rows of output row 0: first and last tap */
    int64_t n_rows;          /* kernel elements of an output channel */
    int64_t n_slices;
    stk_conv_slice *slices;
} stk_conv_weight;

/* Free each with its function, also after a failure. depth: rows of weights in a chunk. */
stk_status stk_conv_plan_dense(const stk_conv_shape *shape, int64_t depth, stk_conv_dense *out);
void stk_conv_dense_free(stk_conv_dense *dense);
stk_status stk_conv_plan_weight(const stk_conv_shape *shape, stk_conv_weight *out);
void stk_conv_weight_free(stk_conv_weight *weight);

#endif
