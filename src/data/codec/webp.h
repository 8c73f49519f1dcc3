/* WebP; see image.h, which everything but codec/ uses. A build without libwebp refuses such files by name. */
#ifndef STK_DATA_CODEC_WEBP_H
#define STK_DATA_CODEC_WEBP_H

#include "data/codec/image.h"

/* From the header; nothing is decoded. An animation is refused: STK_UNSUPPORTED. */
stk_status stk_webp_size(stk_span encoded, int64_t *height, int64_t *width);
stk_status stk_webp_decode(stk_span encoded, int64_t height, int64_t width, int channels, uint8_t *dst);

#endif
