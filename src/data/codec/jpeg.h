/* JPEG; see image.h, which everything but codec/ uses. */
#ifndef STK_DATA_CODEC_JPEG_H
#define STK_DATA_CODEC_JPEG_H

#include "data/codec/jpeg_crop.h"

/* From the frame header; nothing is decoded. */
stk_status stk_jpeg_size(stk_span encoded, int64_t *height, int64_t *width);
/* Of the frame: 1 for grey images; 0 where there is none. */
int stk_jpeg_components(stk_span encoded);
stk_status stk_jpeg_decode(stk_span encoded, int64_t height, int64_t width, int channels, uint8_t *dst);
/* dst [rect.height, rect.width, channels]; the whole file is read and judged. */
stk_status stk_jpeg_decode_by_library(stk_span encoded, int64_t height, int64_t width, const stk_rect *rect,
                                      int channels, uint8_t *dst);

#endif
