/* Gaussian blur of u8 images [H,W,C], the edges reflected without the outermost pixel: torchvision's gaussian_blur,
 * within
 * 1. Worked in f32, columns first. Threads: any. */
#ifndef STK_DATA_STAGE_BLUR_H
#define STK_DATA_STAGE_BLUR_H

#include "data/stage/stage.h"

enum { STK_BLUR_MOST_KERNEL = 255 };

/* kernel: odd; half of it must be less than each side. dst may not be src. */
stk_status stk_blur(int kernel, double sigma, const uint8_t *src, uint8_t *dst, int64_t height, int64_t width,
                    int channels, stk_scratch *scratch);

#endif
