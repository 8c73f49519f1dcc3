#ifndef STK_DATA_CODEC_JPEG_CROP_MASK_H
#define STK_DATA_CODEC_JPEG_CROP_MASK_H

#include <immintrin.h>

/* The first n of 64 bytes; n may be more, or less than 1. */
static inline __mmask64 stk_first_bytes(int n)
{
    return n >= 64 ? ~(__mmask64)0 : n <= 0 ? 0 : ((__mmask64)1 << n) - 1;
}

#endif
