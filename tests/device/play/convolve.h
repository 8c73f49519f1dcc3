/* A convolution, or a gradient of one, as cuDNN defines it, on the host: channels last, sums in f32, then a bias and
 * ReLU, and the result rounded once. */
#ifndef TESTS_DEVICE_PLAY_CONVOLVE_H
#define TESTS_DEVICE_PLAY_CONVOLVE_H

#include <stddef.h>
#include <stdint.h>

enum { PLAY_FORWARD, PLAY_GRAD_DATA, PLAY_GRAD_WEIGHT };

typedef struct play_convolution {
    int64_t n_images, x_channels, y_channels, groups;
    int64_t x_side[3], y_side[3], taps[3], stride[3], dilation[3], pad_low[3], pad_high[3];
    int32_t pass, n_sides, type, type_out;  /* types: product.h's */
    int32_t has_bias, relu, tf32, reserved; /* tf32: what is multiplied is rounded to 10 bits */
    int64_t number[4];                      /* of x, weight, y, bias in the graph */
    /* Where they lie; 0 until it is run. */
    uint64_t at[4], workspace;
    size_t workspace_bytes;
} play_convolution;

/* convolution: a play_convolution */
void play_convolve(void *convolution);
/* Elements of x, weight, y, bias. */
int64_t play_convolution_count(const play_convolution *p, int i);

#endif
